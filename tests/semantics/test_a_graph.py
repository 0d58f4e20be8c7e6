"""Graphs, leaves and modes: what tests/core/test_graph.py leaves open of section A, by line."""

import warnings

import numpy as np
import pytest

import cudagrad as cg
from cudagrad.autograd import grad


def leaf(*values, dtype=None):
    return cg.tensor(list(values), dtype=dtype or cg.float64, requires_grad=True)


def test_4_the_warning_of_a_reference_cycle_comes_once_for_a_parameter_without_grad():
    x = leaf(2.0)
    with pytest.warns(UserWarning, match=r"^Using backward\(\) with create_graph=True will create a reference cycle"):
        (x * x).sum().backward(create_graph=True)
    first = x.grad
    (x * x).sum().backward(create_graph=True)
    assert x.grad is not first
    assert x.grad.tolist() == [8.0]
    assert first.tolist() == [4.0]
    x.grad = None


def test_5_the_first_gradient_may_be_adopted_and_is_a_tensor_of_its_own():
    x = cg.zeros(3, requires_grad=True)
    seen = []

    class Three(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 3

        @staticmethod
        def backward(ctx, g):
            d = g * 3
            seen.extend((d.data_ptr(), id(d)))
            return d

    Three.apply(x).sum().backward()
    assert x.grad.data_ptr() == seen[0]
    assert x.grad.tolist() == [3.0] * 3


def test_5_a_gradient_that_somebody_holds_is_not_adopted():
    x = cg.zeros(3, requires_grad=True)
    g = cg.ones(3)
    (x * 1).backward(g)
    x.grad.add_(5)
    assert g.tolist() == [1.0] * 3
    a, b = cg.zeros(3, requires_grad=True), cg.zeros(3, requires_grad=True)
    (a + b).backward(g)
    a.grad.add_(5)
    assert b.grad.tolist() == g.tolist() == [1.0] * 3


@pytest.mark.parametrize("strides", [(1, 3), (2, 1)])
def test_6_grad_has_the_strides_of_the_parameter_though_the_gradient_comes_transposed(strides):
    w = cg.empty_strided((3, 2), strides, dtype=cg.float64).fill_(1).requires_grad_()
    (w.t() * cg.arange(6.0, dtype=cg.float64).reshape(2, 3)).sum().backward()
    assert w.grad.stride() == strides
    assert w.grad.tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    (w * w.detach()).sum().backward()
    assert w.grad.stride() == strides


def test_9_inputs_of_backward_may_not_be_empty():
    with pytest.raises(RuntimeError, match=r"^`inputs` argument to `backward\(\)` cannot be empty"):
        leaf(1.0).sum().backward(inputs=[])


def test_10_the_whole_text_of_a_mismatch():
    with pytest.raises(RuntimeError) as raised:
        grad(leaf(1.0, 2.0) * 2, leaf(1.0), cg.ones(3, dtype=cg.float64), allow_unused=True)
    first = str(raised.value).split("\n")[0]
    assert first == (
        "Mismatch in shape: grad_output[0] has a shape of torch.Size([3]) and output[0] has a shape of torch.Size([2])."
    )


def test_12_a_write_under_no_grad_counts_as_a_version():
    x = leaf(1.0)
    with cg.no_grad():
        x.mul_(3)
        x[0] = 2
    assert x._version == 2
    assert x.requires_grad
    assert x.is_leaf


def test_13_detach_shares_the_counter_both_ways_and_data_neither_way():
    x = leaf(1.0)
    d, free = x.detach(), x.data
    d.add_(1)
    assert x._version == d._version == 1
    assert free._version == 0
    free.add_(1)
    assert x._version == 1
    assert x.tolist() == [3.0]
    assert d.data_ptr() == free.data_ptr() == x.data_ptr()


def test_15_a_parameter_made_under_no_grad_wants_a_gradient():
    with cg.no_grad():
        p = cg.nn.Parameter(cg.ones(2))
        assert p.requires_grad
        assert cg.zeros(1, requires_grad=True).requires_grad
    assert (p * 2).requires_grad


def test_15_enable_grad_within_inference_mode_leaves_grad_mode_and_results_alone():
    x = leaf(1.0)
    with cg.inference_mode(), cg.enable_grad():
        y = x * 2
        assert not y.requires_grad
        assert y.is_inference()


def test_16_a_generator_has_its_own_mode_also_when_the_caller_changes_his():
    @cg.no_grad()
    def steps():
        for _ in range(3):
            got = yield cg.is_grad_enabled()
            assert not cg.is_grad_enabled()
        return got

    g = steps()
    assert next(g) is False
    with cg.no_grad():
        assert g.send(1) is False
        assert not cg.is_grad_enabled()
    assert cg.is_grad_enabled()
    assert g.send(2) is False
    with pytest.raises(StopIteration) as end:
        g.send(3)
    assert end.value.value == 3
    assert cg.is_grad_enabled()


def test_17_views_of_inference_tensors_are_inference_tensors_and_may_not_be_written():
    with cg.inference_mode():
        x = cg.ones(2, 2)
        x.add_(1)
    view = x[0]
    assert view.is_inference()
    with pytest.raises(RuntimeError, match="^Inplace update to inference tensor outside InferenceMode is not allowed"):
        view.mul_(2)
    y = x.clone()
    assert not y.is_inference()
    assert (y.requires_grad_() * 2).requires_grad


def test_17_an_ordinary_tensor_written_in_inference_mode_is_noticed_by_its_graph():
    x = leaf(1.0)
    y = x * 1
    z = (y * y).sum()
    with cg.inference_mode():
        y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "bool"])
def test_18_only_floating_and_complex_tensors_may_require_a_gradient(dtype):
    x = cg.ones(2, dtype=getattr(cg, dtype))
    with pytest.raises(RuntimeError, match="^only Tensors of floating point and complex dtype can require gradients"):
        x.requires_grad = True
    with pytest.raises(RuntimeError, match="^only Tensors of floating point dtype can require gradients"):
        x.requires_grad_()
    with pytest.raises(RuntimeError, match="^Only Tensors of floating point and complex dtype can require gradients"):
        cg.tensor([1, 2], dtype=getattr(cg, dtype), requires_grad=True)
    assert cg.ones(1, dtype=cg.complex64).requires_grad_().requires_grad


def test_18_results_of_integers_and_bools_want_no_gradient():
    x = leaf(1.0, 2.0)
    for t in (x.argmin(), x == 1, x.int(), x.bool(), x.argsort(), x.isnan(), x.max(0).indices, x.sort().indices):
        assert not t.requires_grad
    assert x.max(0).values.requires_grad


def test_19_the_text_for_a_result_that_shall_want_no_gradient():
    with pytest.raises(RuntimeError) as raised:
        (leaf(1.0) * 2).requires_grad_(False)
    assert str(raised.value).split("\n")[0] == (
        "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a "
        "subgraph that doesn't require differentiation use var_no_grad = var.detach()."
    )


def test_19_retain_grad_of_a_leaf_does_nothing():
    x = leaf(1.0)
    x.retain_grad()
    assert not x.retains_grad
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3.0]


def test_20_deepcopy_of_a_module_keeps_tied_weights_tied():
    import copy

    m = cg.nn.Sequential(cg.nn.Linear(2, 2), cg.nn.Linear(2, 2))
    m[1].weight = m[0].weight
    twin = copy.deepcopy(m)
    assert twin[0].weight is twin[1].weight
    assert twin[0].weight is not m[0].weight


def test_21_conversions_that_change_nothing_return_the_tensor_also_in_a_graph():
    x = leaf(1.0) * 2
    assert x.to(cg.float64) is x
    assert x.double() is x
    assert x.type(cg.float64) is x
    assert x.to(x) is x
    for other in (x.clone(), x.detach(), x.view(1), x.double().to(cg.float64, copy=True)):
        assert other is not x


def test_22_create_graph_keeps_the_graph():
    x = leaf(3.0)
    y = (x * x * x).sum()
    (first,) = grad(y, x, create_graph=True)
    (again,) = grad(y, x, create_graph=True)
    (last,) = grad(y, x)
    assert first.tolist() == again.tolist() == last.tolist() == [27.0]
    with pytest.raises(RuntimeError, match="^Trying to backward through the graph a second time"):
        grad(y, x)


def test_22_create_graph_without_retain_graph_frees_the_graph():
    x = leaf(3.0)
    y = (x * x * x).sum()
    (first,) = grad(y, x, create_graph=True, retain_graph=False)
    assert first.requires_grad
    with pytest.raises(RuntimeError, match="^Trying to backward through the graph a second time"):
        grad(y, x)


def test_the_second_derivative_of_a_cube_at_3_is_18():
    x = leaf(3.0)
    (g,) = grad((x**3).sum(), x, create_graph=True)
    (h,) = grad(g.sum(), x)
    assert h.tolist() == [18.0]


def test_14_a_write_through_numpy_is_seen_by_all_who_share_and_by_no_counter():
    x = cg.zeros(3)
    view, array = x[1:], x.numpy()
    array[1] = 4
    assert view.tolist() == [4.0, 0.0]
    assert x._version == view._version == 0
    y = cg.from_numpy(array)
    y.add_(1)
    assert np.array_equal(array, [1, 5, 1])


def test_19_the_grad_of_a_result_warns_each_time_it_is_read_and_not_when_it_is_kept():
    y = leaf(1.0) * 2
    with pytest.warns(
        UserWarning, match="^The .grad attribute of a Tensor that is not a leaf Tensor is being accessed"
    ):
        assert y.grad is None
    y.retain_grad()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert y.grad is None
