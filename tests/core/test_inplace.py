"""Views, in-place writes and version counters."""

import gc
import weakref

import numpy as np
import pytest

import cudagrad as cg
from cudagrad.autograd import grad, gradcheck, gradgradcheck


def leaf(*values):
    return cg.tensor(list(values), dtype=cg.float64, requires_grad=True)


def matrix(n=2, m=3):
    return cg.tensor(np.arange(1.0, n * m + 1).reshape(n, m), requires_grad=True)


VIEWS = {
    "select": lambda t: t[0],
    "slice": lambda t: t[:, 1:],
    "step": lambda t: t[:, ::2],
    "transpose": lambda t: t.T,
    "view": lambda t: t.view(-1),
    "reshape": lambda t: t.reshape(3, 2),
    "permute": lambda t: t.permute(1, 0),
    "narrow": lambda t: t.narrow(1, 0, 2),
    "unsqueeze": lambda t: t.unsqueeze(0),
    "squeeze": lambda t: t.unsqueeze(0).squeeze(0),
    "diagonal": lambda t: t.diagonal(),
    "unfold": lambda t: t.unfold(1, 2, 2),
    "mT": lambda t: t.mT,
    "chain": lambda t: t.T[1:].view(-1) if t.T[1:].is_contiguous() else t.T[1:][:, 0],
    "none": lambda t: t[None, ..., 0],
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_shares_memory_and_version(name):
    base = matrix().detach()
    view = VIEWS[name](base)
    assert view._base is base
    before = base._version
    view.fill_(0)
    assert base._version == before + 1 == view._version
    assert (base == 0).sum().item() == view.numel()


@pytest.mark.parametrize("name", VIEWS)
def test_writing_into_a_view_is_differentiable_twice(name):
    view = VIEWS[name]

    def f(x, v):
        base = x * 1
        part = view(base)
        part.mul_(v)
        return base * base.sum()

    x, v = matrix(), cg.tensor(1.5, dtype=cg.float64, requires_grad=True)
    assert gradcheck(f, (x, v))
    assert gradgradcheck(f, (x, v))


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_taken_before_its_base_is_written_follows_it(name):
    view = VIEWS[name]

    def f(x):
        base = x * 1
        part = view(base)
        base.mul_(base.detach() * 0 + 3)
        return part * part

    assert gradcheck(f, matrix())
    x = matrix()
    (g,) = grad(f(x).sum(), x)
    chosen = np.zeros((2, 3))
    view(cg.from_numpy(chosen)).fill_(1)
    assert np.allclose(g.numpy(), chosen * 2 * 9 * x.detach().numpy())


def test_a_row_of_a_matrix_written_in_place():
    w = leaf(1.0, 2.0)
    base = cg.zeros(3, 2, dtype=cg.float64)
    base[1] = w * 3
    base[2] = base[1].clone() * w
    assert base.requires_grad
    (base * base).sum().backward()
    w_ = np.array([1.0, 2.0])
    assert np.allclose(w.grad.numpy(), 2 * 9 * w_ + 4 * 9 * w_**3)


def test_overwritten_places_have_no_gradient():
    x, v = matrix(), leaf(5.0)
    y = x * 2
    y[0] = 7.0
    y[1, 1:] = v
    y.masked_fill_(cg.tensor([[False, False, False], [True, False, False]]), 1.0)
    y.sum().backward()
    assert x.grad.tolist() == [[0.0] * 3, [0.0] * 3]
    assert v.grad.tolist() == [2.0]


def test_in_place_on_the_saved_output_is_noticed():
    x = leaf(1.0)
    y = x.exp()
    y.add_(1)
    with pytest.raises(
        RuntimeError, match=r"modified by an inplace operation: \[torch.DoubleTensor \[1\]\], which is output"
    ):
        y.sum().backward()
    y = x.sigmoid()
    y.add_(1).mul_(2)
    with pytest.raises(RuntimeError, match="is at version 2; expected version 0 instead"):
        y.sum().backward()


def test_the_error_names_both_lines():
    x = leaf(1.0)
    y = x.exp()  # saved here
    y.add_(1)  # changed here
    with pytest.raises(RuntimeError, match="(?s)saved here.*changed here"):
        y.sum().backward()


def test_an_op_that_saved_nothing_of_it_does_not_mind():
    x = leaf(1.0)
    y = x + 1
    y.mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [3.0]


@pytest.mark.parametrize("op", ["exp_", "tanh_", "sigmoid_", "sqrt_", "relu_", "neg_", "abs_"])
def test_in_place_ops_have_the_gradient_of_their_out_of_place_form(op):
    def f(x):
        y = x * 1
        return getattr(y, op)()

    assert gradcheck(f, leaf(0.3, 1.7))
    assert gradgradcheck(f, leaf(0.3, 1.7))


def test_two_in_place_ops_in_a_row():
    assert gradcheck(lambda x: (x * 1).mul_(2).tanh_(), leaf(0.1, -0.4))
    assert gradgradcheck(lambda x: (x * 1).mul_(2).tanh_(), leaf(0.1, -0.4))


def test_in_place_with_itself_as_the_other_operand():
    x = leaf(2.0, 3.0)
    y = x * 1
    y.add_(y)
    assert y.tolist() == [4.0, 6.0]
    assert grad(y.sum(), x)[0].tolist() == [2.0, 2.0]
    y = x * 1
    y.mul_(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_in_place_never_changes_the_dtype():
    x = cg.arange(3)
    with pytest.raises(RuntimeError, match="^result type Float can't be cast to the desired output type Long"):
        x.add_(1.5)
    with pytest.raises(RuntimeError, match="^result type Float can't be cast to the desired output type Long"):
        cg.arange(3).div_(2)
    assert x.tolist() == [0, 1, 2]
    y = cg.ones(2, dtype=cg.float32)
    y.add_(cg.ones(2, dtype=cg.float64))
    assert y.dtype is cg.float32


def test_in_place_never_changes_the_shape():
    x = cg.ones(3)
    with pytest.raises(RuntimeError, match=r"^output with shape \[3\] doesn't match the broadcast shape \[2, 3\]"):
        x.add_(cg.ones(2, 3))
    assert x.tolist() == [1.0] * 3


def test_expanded_memory_is_not_written_to():
    x = cg.ones(1).expand(3)
    with pytest.raises(
        RuntimeError, match="^unsupported operation: more than one element of the written-to tensor refers"
    ):
        x.add_(1)
    assert x.tolist() == [1.0] * 3


def test_a_leaf_that_is_itself_a_view_is_guarded_too():
    p = cg.arange(6.0).view(2, 3).requires_grad_()
    for write in (lambda: p[0].mul_(2), lambda: p.mul_(2), lambda: p.__setitem__(0, 1.0)):
        with pytest.raises(RuntimeError, match="^a view of a leaf Variable that requires grad is being used"):
            write()
    assert p.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


def test_the_error_counts_the_outputs():
    parts = (matrix() * 1).unbind(1)
    with pytest.raises(RuntimeError, match="^Output 2 of Unbind is a view and is being modified inplace"):
        parts[2].mul_(2)


@pytest.mark.parametrize(
    "make, name",
    [
        (lambda t: t.unbind(0), "Unbind"),
        (lambda t: t.split(1), "Split"),
        (lambda t: t.chunk(2), "Split"),
    ],
)
def test_one_of_several_views_is_not_written_to(make, name):
    x = matrix()
    part = make(x * 1)[0]
    with pytest.raises(RuntimeError, match=f"^Output 0 of {name} is a view and is being modified inplace"):
        part.mul_(2)


def test_a_view_made_under_no_grad_is_not_written_to_with_grad():
    x = matrix()
    y = x * 1
    with cg.no_grad():
        part = y[0]
    with pytest.raises(RuntimeError, match="^A view was created in no_grad mode and is being modified inplace"):
        part.mul_(2)


def test_duplicates_in_an_index_are_written_once_and_their_gradients_add_up():
    x = cg.zeros(2)
    x[[0, 0]] += 1
    assert x.tolist() == [1.0, 0.0]
    y = leaf(1.0, 2.0)
    y[[0, 0, 1]].sum().backward()
    assert y.grad.tolist() == [2.0, 1.0]


def test_a_graph_with_views_is_freed_without_the_cyclic_collector():
    gc.disable()
    try:
        x = leaf(1.0, 2.0)
        y = x * 2
        v = y[0]
        v.mul_(2)
        z = y.sum()
        gone = weakref.ref(y), weakref.ref(v)
        z.backward()
        del y, v, z
        assert [r() for r in gone] == [None, None]
    finally:
        gc.enable()


def test_detach_in_place_of_a_view_is_refused():
    x = matrix()
    with pytest.raises(RuntimeError, match="^Can't detach views in-place. Use detach"):
        (x * 1)[0].detach_()
    y = x * 1
    assert not y.detach_().requires_grad
    assert y.is_leaf


def test_copy_broadcasts_casts_and_carries_history():
    x = leaf(1.0, 2.0)
    y = cg.zeros(3, 2, dtype=cg.float32)
    y.copy_(x)
    assert y.tolist() == [[1.0, 2.0]] * 3
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match=r"^The size of tensor a \(2\) must match the size of tensor b \(3\) at"):
        cg.zeros(2).copy_(cg.zeros(3))


def test_out_is_written_cast_and_resized():
    out = cg.zeros(2)
    got = cg.add(cg.ones(2), cg.ones(2), out=out)
    assert got is out
    assert out.tolist() == [2.0, 2.0]
    assert out._version == 1
    with pytest.raises(
        RuntimeError, match="don't support automatic differentiation, but one of the arguments requires grad"
    ):
        cg.add(leaf(1.0), 1, out=cg.zeros(1))
    with pytest.raises(RuntimeError, match="^result type Float can't be cast to the desired output type Long"):
        cg.add(cg.ones(2), 1.5, out=cg.zeros(2, dtype=cg.int64))
