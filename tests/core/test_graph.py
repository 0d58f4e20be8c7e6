"""Graphs, leaves and modes: one test a line of what users of PyTorch rely on."""

import copy
import threading
import warnings

import numpy as np
import pytest

import cudagrad as cg
from cudagrad.autograd import backward, grad


def leaf(*values, dtype=None):
    return cg.tensor(list(values), dtype=dtype or cg.float64, requires_grad=True)


def test_backward_of_a_vector_needs_a_gradient():
    with pytest.raises(RuntimeError, match="^grad can be implicitly created only for scalar outputs"):
        (leaf(1.0, 2.0) * 2).backward()


def test_backward_of_a_complex_scalar_needs_a_gradient():
    x = cg.tensor(1 + 2j, requires_grad=True)
    with pytest.raises(RuntimeError, match="only for real scalar outputs but got torch.complex64"):
        (x * x).backward()


def test_backward_without_a_graph_is_an_error():
    with pytest.raises(RuntimeError, match="^element 0 of tensors does not require grad and does not have a grad_fn"):
        cg.ones(()).backward()


def test_a_second_backward_fails_only_where_something_was_saved():
    x = leaf(2.0)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="^Trying to backward through the graph a second time"):
        y.backward()
    x = leaf(1.0)
    y = (x + x).sum()
    y.backward()
    y.backward()
    assert x.grad.tolist() == [4.0]


def test_the_error_of_a_freed_graph_names_the_forward_line():
    x = leaf(2.0)
    y = (x * x).sum()  # the line to be named
    y.backward()
    with pytest.raises(RuntimeError, match="(?s)test_graph.py.*the line to be named"):
        y.backward()


def test_gradients_accumulate_into_the_same_tensor():
    x = leaf(1.0, 2.0)
    (x * 3).sum().backward()
    first = x.grad
    (x * 3).sum().backward()
    assert x.grad is first
    assert first.tolist() == [6.0, 6.0]


def test_create_graph_makes_a_new_grad_and_warns():
    x = leaf(1.0)
    (x * x).sum().backward()
    first = x.grad
    with pytest.warns(UserWarning, match="reference cycle"):
        leaf_y = leaf(3.0)
        (leaf_y * leaf_y).sum().backward(create_graph=True)
    assert leaf_y.grad.requires_grad
    (x * x).sum().backward(create_graph=True)
    assert x.grad is not first
    assert x.grad.tolist() == [4.0]


def test_grad_follows_the_layout_of_its_parameter():
    w = cg.tensor(np.arange(6.0).reshape(2, 3).T.copy().T, requires_grad=True)
    (w * w).sum().backward()
    assert w.stride() == w.grad.stride() == (1, 2)


def test_grad_has_the_dtype_of_the_leaf():
    x = cg.ones(2, dtype=cg.float16, requires_grad=True)
    x.float().sum().backward()
    assert x.grad.dtype is cg.float16


def test_assigning_a_grad_of_another_shape_or_dtype_is_an_error():
    x = leaf(1.0, 2.0)
    with pytest.raises(
        RuntimeError, match=r"^attempting to assign a gradient of size '\[3\]' to a tensor of size '\[2\]'"
    ):
        x.grad = cg.ones(3, dtype=cg.float64)
    with pytest.raises(
        RuntimeError, match="^attempting to assign a gradient with dtype 'float' to a tensor with grad_dtype 'Double'"
    ):
        x.grad = cg.ones(2, dtype=cg.float32)
    with pytest.raises(TypeError, match="^assigned grad expected to be a Tensor or None but got grad of type"):
        x.grad = 1.0
    assert x.grad is None


def test_grad_of_an_unused_input():
    x, y = leaf(1.0), leaf(2.0)
    with pytest.raises(RuntimeError, match="^The differentiated Tensor at index 1 appears to not have been used"):
        grad((x * 2).sum(), [x, y])
    assert grad((x * 2).sum(), [x, y], allow_unused=True)[1] is None
    assert grad((x * 2).sum(), [x, y], materialize_grads=True)[1].tolist() == [0.0]


def test_grad_leaves_grad_alone():
    x = leaf(3.0)
    (g,) = grad((x * x).sum(), x)
    assert g.tolist() == [6.0]
    assert x.grad is None


def test_backward_with_inputs_fills_only_those():
    a, b = leaf(1.0), leaf(2.0)
    (a * b).sum().backward(inputs=[a])
    assert a.grad.tolist() == [2.0]
    assert b.grad is None


def test_backward_with_a_non_leaf_input_fills_its_grad():
    a = leaf(3.0)
    b = a * 2
    (b * b).sum().backward(inputs=[b])
    assert b.grad.tolist() == [12.0]
    assert a.grad is None


def test_a_gradient_of_the_wrong_shape_is_an_error():
    with pytest.raises(RuntimeError, match=r"^Mismatch in shape: grad_output\[0\] has a shape of torch.Size\(\[3\]\)"):
        (leaf(1.0, 2.0) * 2).backward(cg.ones(3, dtype=cg.float64))


@pytest.mark.parametrize("write", ["add_", "item", "view"])
def test_a_leaf_that_wants_a_gradient_is_not_written_to(write):
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad is being used in an in-place operation"):
        if write == "add_":
            x.add_(1)
        elif write == "item":
            x[0] = 5
        else:
            x.view(2, 1).mul_(2)
    assert x.tolist() == [1.0, 2.0]
    assert x._version == 0


def test_a_leaf_changed_under_no_grad_is_noticed_by_the_graph_that_saved_it():
    x = leaf(1.0, 2.0)
    y = (x * x).sum()
    with cg.no_grad():
        x.mul_(3)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_detach_shares_the_version_counter_and_data_does_not():
    x = leaf(2.0)
    y = (x * x).sum()
    x.detach().mul_(5)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()
    x = leaf(1.0)
    y = (x * x).sum()
    x.data.mul_(5)
    y.backward()
    assert x.grad.tolist() == [10.0]


def test_data_may_change_the_shape():
    x = leaf(1.0)
    x.data = cg.zeros(3, dtype=cg.float64)
    assert x.shape == (3,)


def test_numpy_shares_memory_and_is_refused_where_a_gradient_is_wanted():
    x = cg.zeros(2)
    x.numpy()[0] = 7
    assert x.tolist() == [7.0, 0.0]
    assert x._version == 0
    with pytest.raises(RuntimeError, match=r"^Can't call numpy\(\) on Tensor that requires grad"):
        leaf(1.0).numpy()


def test_no_grad_makes_results_that_need_no_gradient_but_leaves_that_may():
    with cg.no_grad():
        x = cg.ones(2, requires_grad=True)
        assert x.requires_grad
        assert not (x * 2).requires_grad
        with cg.enable_grad():
            assert (x * 2).requires_grad
    assert (x * 2).requires_grad


def test_enable_grad_does_nothing_within_inference_mode():
    x = leaf(1.0)
    with cg.inference_mode(), cg.enable_grad():
        assert not (x * 2).requires_grad


def test_no_grad_decorates_functions_and_generators():
    @cg.no_grad()
    def plain(x):
        return x * 2

    @cg.no_grad
    def bare(x):
        return x * 2

    @cg.no_grad()
    def several():
        yield cg.is_grad_enabled()
        yield cg.is_grad_enabled()

    x = leaf(1.0)
    assert not plain(x).requires_grad
    assert not bare(x).requires_grad
    for inside in several():
        assert not inside
        assert cg.is_grad_enabled()


def test_set_grad_enabled_works_as_a_call_and_as_a_context():
    with cg.set_grad_enabled(False):
        assert not cg.is_grad_enabled()
    assert cg.is_grad_enabled()
    cg.set_grad_enabled(False)
    assert not cg.is_grad_enabled()
    cg.set_grad_enabled(True)

    @cg.set_grad_enabled(False)
    def inside():
        return cg.is_grad_enabled()

    assert cg.is_grad_enabled()
    assert not inside()


def test_grad_mode_is_of_the_thread():
    seen = []
    with cg.no_grad():
        thread = threading.Thread(target=lambda: seen.append(cg.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_inference_tensors_cannot_enter_a_graph():
    w = leaf(2.0)
    with cg.inference_mode():
        x = cg.ones(1, dtype=cg.float64)
        y = x * 2
    assert y.is_inference()
    with pytest.raises(RuntimeError, match="^Inference tensors cannot be saved for backward"):
        w * y
    with pytest.raises(RuntimeError, match="^Inplace update to inference tensor outside InferenceMode is not allowed"):
        y.add_(1)
    with pytest.raises(RuntimeError, match="^Inference tensors do not track version counter"):
        _ = y._version
    with pytest.raises(RuntimeError, match="^Setting requires_grad=True on inference tensor outside InferenceMode"):
        y.requires_grad_()
    (w * y.clone()).sum().backward()
    assert w.grad.tolist() == [2.0]


def test_only_floating_tensors_may_require_grad():
    with pytest.raises(RuntimeError, match="^only Tensors of floating point dtype can require gradients"):
        cg.ones(2, dtype=cg.int64).requires_grad_()
    x = leaf(1.0, 2.0)
    for result in (x.argmax(), x > 1, x.long()):
        assert not result.requires_grad


def test_requires_grad_of_a_result_cannot_be_taken_back():
    with pytest.raises(RuntimeError, match="^you can only change requires_grad flags of leaf variables"):
        (leaf(1.0) * 2).requires_grad = False


def test_grad_of_a_result_warns_and_retain_grad_keeps_it():
    x = leaf(3.0)
    y = x * 2
    with pytest.warns(UserWarning, match="not a leaf Tensor is being accessed"):
        assert y.grad is None
    y.retain_grad()
    (y * y).sum().backward()
    assert y.grad.tolist() == [12.0]
    x.retain_grad()
    with pytest.raises(RuntimeError, match="^can't retain_grad on Tensor that has requires_grad=False"):
        cg.ones(1).retain_grad()


def test_deepcopy_of_a_result_is_refused():
    with pytest.raises(RuntimeError, match="^Only Tensors created explicitly by the user"):
        copy.deepcopy(leaf(1.0) * 2)
    x = leaf(1.0, 2.0)
    x.grad = cg.ones(2, dtype=cg.float64)
    y = copy.deepcopy(x)
    assert y.requires_grad
    assert y.grad.tolist() == [1.0, 1.0]
    assert y.data_ptr() != x.data_ptr()


def test_conversions_to_the_same_are_the_tensor_itself():
    x = cg.ones(2)
    assert x.to(cg.float32) is x
    assert x.to("cpu") is x
    assert x.contiguous() is x
    assert x.float() is x
    assert x.cpu() is x
    for other in (x.clone(), x.detach(), x.view(2), x.to(cg.float32, copy=True)):
        assert other is not x


def test_a_chain_of_100000_nodes_needs_no_recursion():
    x = leaf(1.0)
    y = x
    for _ in range(100_000):
        y = y + 1
    y.sum().backward()
    assert x.grad.tolist() == [1.0]


def test_eight_threads_run_backward_on_graphs_that_share_leaves():
    w = cg.ones(10, dtype=cg.float64, requires_grad=True)

    def work():
        for _ in range(50):
            (w * 2).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert w.grad.tolist() == [8 * 50 * 2.0] * 10


def test_an_error_in_backward_leaves_no_part_of_a_gradient_behind():
    x = leaf(2.0)
    y = x * x
    y.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        y.sum().backward()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3.0]


def test_a_backward_inside_a_hook_does_not_disturb_the_outer_one():
    x = leaf(3.0)
    y = x * x

    def hook(g):
        z = leaf(5.0)
        with cg.enable_grad():
            (z * z).sum().backward()
        assert z.grad.tolist() == [10.0]

    y.register_hook(hook)
    (y + x).sum().backward()
    assert x.grad.tolist() == [7.0]


def test_grad_fn_has_pytorchs_names_and_next_functions():
    x = leaf(1.0, 2.0)
    y = x * 2
    assert y.grad_fn.name() == "MulBackward0"
    assert repr(y.grad_fn).startswith("<MulBackward0 object at")
    (first, index), constant = y.grad_fn.next_functions
    assert first.name() == "torch::autograd::AccumulateGrad"
    assert index == 0
    assert constant == (None, 0)
    assert x.grad_fn is None
    assert x.is_leaf
    assert not y.is_leaf


def test_grads_of_several_outputs_and_a_batch_of_gradients():
    x = leaf(1.0, 2.0)
    y = x * x
    (g,) = grad([y.sum(), (x * 3).sum()], [x])
    assert g.tolist() == [5.0, 7.0]
    rows = cg.eye(2, dtype=cg.float64)
    (jacobian,) = grad(x * x, x, rows, is_grads_batched=True)
    assert jacobian.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    backward([(x * 2).sum(), (x * x).sum()], [None, None])
    assert x.grad.tolist() == [4.0, 6.0]


def test_second_and_third_derivatives():
    x = leaf(2.0)
    y = x**4
    for value in (32.0, 48.0, 48.0, 24.0):
        (y,) = grad(y.sum(), x, create_graph=True)
        assert y.item() == pytest.approx(value)


def test_saved_arrays_are_freed_as_backward_goes():
    x = leaf(*range(1, 4))
    y = x.exp()
    z = y.exp().sum()
    k = z.grad_fn.next_functions[0][0]
    assert k._saved_result.tolist() == pytest.approx(np.exp(np.exp([1.0, 2.0, 3.0])).tolist())
    z.backward()
    with pytest.raises(RuntimeError, match="already been freed"):
        _ = k._saved_result


def test_warnings_do_not_leak_from_ops_on_extreme_values():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cg.tensor([0.0]).log().item() == -np.inf


def test_a_gradient_taken_back_and_asked_for_again_is_the_same_gradient_with_the_same_hooks():
    x = leaf(1.0, 2.0)
    y = (x * x).sum()
    x.register_hook(lambda g: g * 10)
    (x * 1).sum().backward()
    x.requires_grad_(False)
    assert x.grad.tolist() == [10.0, 10.0]
    (leaf(1.0) * 1).sum().backward()
    x.requires_grad_(True)
    y.backward()
    assert x.grad.tolist() == [30.0, 50.0]


def test_a_leaf_that_wants_no_gradient_any_more_gets_none():
    x, w = leaf(2.0), leaf(3.0)
    y = (x * w).sum()
    x.requires_grad_(False)
    y.backward()
    assert x.grad is None
    assert w.grad.tolist() == [2.0]
    x.grad = cg.ones(1, dtype=cg.float64)
    x.requires_grad_()
    (x * 4).sum().backward()
    assert x.grad.tolist() == [5.0]
    assert copy.deepcopy(x).grad.tolist() == [5.0]


def test_a_gradient_of_a_mean_may_be_written_and_viewed():
    x = cg.ones(2, 3, dtype=cg.float64, requires_grad=True)
    (g,) = grad(x.mean(), x)
    assert g.mul_(6).view(-1).tolist() == [1.0] * 6


def test_grad_of_nothing_is_an_error():
    with pytest.raises(RuntimeError, match=r"^`inputs` argument to `grad\(\)` cannot be empty"):
        grad(leaf(1.0).sum(), [])
