"""Indexing, views and memory: section H by line, as far as tests/core/test_inplace.py leaves it open."""
# ruff: noqa: E501  a row stands on its line, whole texts of PyTorch too

import warnings

import numpy as np
import pytest

import cudagrad as cg


def leaf(*values):
    return cg.tensor(list(values), dtype=cg.float64, requires_grad=True)


def matrix(n=2, m=3):
    return cg.arange(float(n * m), dtype=cg.float64).reshape(n, m).requires_grad_()


def first_line(raised):
    return str(raised.value).split("\n")[0]


# ---- 77


@pytest.mark.parametrize(
    "make, name",
    [
        (lambda t: t.unbind(0)[0], "Unbind"),
        (lambda t: t.chunk(2)[0], "Split"),
        (lambda t: t.split(1)[0], "Split"),
        (lambda t: t.split([1, 1])[0], "SplitWithSizes"),
        (lambda t: next(iter(t)), "Unbind"),
    ],
)
def test_77_the_text_for_one_of_several_views(make, name):
    part = make(matrix() * 1)
    with pytest.raises(RuntimeError) as raised:
        part.mul_(2)
    assert first_line(raised) == (
        f"Output 0 of {name} is a view and is being modified inplace. This view is the output of a function that returns "
        "multiple views. Such functions do not allow the output views to be modified inplace. You should replace the "
        "inplace operation by an out-of-place one."
    )


def test_77_the_text_names_the_output_that_was_written():
    part = (matrix() * 1).unbind(0)[1]
    with pytest.raises(RuntimeError, match="^Output 1 of Unbind is a view and is being modified inplace"):
        part.mul_(2)


def test_77_a_view_made_under_no_grad():
    y = matrix() * 1
    with cg.no_grad():
        view = y[0]
        view.mul_(1)
    with pytest.raises(RuntimeError) as raised:
        view.mul_(2)
    assert first_line(raised).startswith(
        "A view was created in no_grad mode and is being modified inplace with grad mode"
    )


def test_77_slices_of_results_are_written_as_copy_slices():
    x = matrix()
    y = x * 1
    y[0].mul_(5)
    assert repr(y.grad_fn).startswith("<CopySlices object at")
    view = y[1]
    view.mul_(7)
    assert view.grad_fn.name() in ("AsStridedBackward0", "SelectBackward0")
    y.sum().backward()
    assert x.grad.tolist() == [[5.0] * 3, [7.0] * 3]


# ---- 78


def test_78_a_view_follows_its_base():
    x = leaf(1.0, 2.0)
    y = x * 1
    view = y[0]
    before = view.grad_fn
    y.mul_(3)
    assert view.item() == 3.0
    assert view.grad_fn is not before
    view.backward()
    assert x.grad.tolist() == [3.0, 0.0]


# ---- 79


def test_79_a_duplicate_is_written_once_and_counted_twice():
    x = cg.zeros(2)
    x[[0, 0]] += 1
    assert x.tolist() == [1.0, 0.0]
    y = leaf(1.0, 2.0)
    y[[0, 0, 1]].sum().backward()
    assert y.grad.tolist() == [2.0, 1.0]
    assert cg.zeros(2).index_put((cg.tensor([0, 0]),), cg.ones(2), accumulate=True).tolist() == [2.0, 0.0]
    assert cg.zeros(2).scatter(0, cg.tensor([0, 0]), cg.tensor([1.0, 5.0])).tolist() == [5.0, 0.0]


@pytest.mark.parametrize("index", [3, -4])
def test_79_no_index_is_wrapped_round(index):
    x = cg.arange(3.0)
    for use in (
        lambda: x[cg.tensor([0, index])],
        lambda: x[[0, index]],
        lambda: x.index_put_((cg.tensor([index]),), cg.tensor(1.0)),
        lambda: x.__setitem__(cg.tensor([index]), 1.0),
    ):
        with pytest.raises(IndexError, match=f"^index {index} is out of bounds for dimension 0 with size 3"):
            use()
    with pytest.raises(RuntimeError, match=f"^index {index} is out of bounds for dimension 0 with size 3"):
        x.gather(0, cg.tensor([index]))
    with pytest.raises(IndexError, match="^index out of range in self"):
        cg.index_select(x, 0, cg.tensor([index]))
    with pytest.raises(IndexError, match="^index out of range in self"):
        cg.nn.functional.embedding(cg.tensor([index]), x[:, None])
    assert x.tolist() == [0.0, 1.0, 2.0]


# ---- 80


def test_80_expanded_memory_is_not_written():
    x = cg.zeros(1)
    for write in (lambda t: t.add_(1), lambda t: t.copy_(cg.ones(3)), lambda t: t.mul_(cg.ones(3))):
        with pytest.raises(RuntimeError) as raised:
            write(x.expand(3))
        assert first_line(raised) == (
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )
    assert x.item() == 0.0


def test_80_input_and_output_may_not_overlap_in_part():
    x = cg.arange(4.0)
    with pytest.raises(
        RuntimeError, match="^unsupported operation: some elements of the input tensor and the written-to tensor"
    ):
        x[1:].add_(x[:-1])
    with pytest.raises(
        RuntimeError, match="^unsupported operation: some elements of the input tensor and the written-to tensor"
    ):
        cg.add(x[:-1], 1, out=x[1:])
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0]
    x.add_(x)
    x[:1] += 1
    x.view(2, 2)[:1] += cg.ones(2)
    x.view(2, 2)[:, :1] += x.view(2, 2)[:, 1:]
    assert x.tolist() == [5.0, 3.0, 10.0, 6.0]


# ---- 81


def test_81_overwritten_places_have_no_gradient_and_the_value_has():
    x, v = leaf(1.0, 2.0, 3.0), leaf(7.0).reshape(())
    v.retain_grad()
    y = x * 2
    y[0] = v
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 2.0, 2.0]
    assert v.grad.item() == 1.0
    x, v = leaf(1.0, 2.0, 3.0), leaf(7.0).reshape(())
    v.retain_grad()
    x.masked_fill(cg.tensor([True, False, True]), v).sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 0.0]
    assert v.grad.item() == 2.0
    x, v = leaf(1.0, 2.0, 3.0), leaf(5.0)
    y = x * 1
    y[cg.tensor([True, False, True])] = v
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 0.0]
    assert v.grad.tolist() == [2.0]


# ---- 82


@pytest.mark.parametrize(
    "shape, use, expected",
    [
        ((3,), lambda x: x + cg.zeros(2, 3), [2.0] * 3),
        ((2, 1), lambda x: x + cg.zeros(2, 3), [[3.0], [3.0]]),
        ((1, 3), lambda x: x + cg.zeros(4, 2, 3), [[8.0] * 3]),
        ((), lambda x: x + cg.zeros(2, 3), 6.0),
        ((1,), lambda x: x + cg.zeros(()), [1.0]),
        ((1,), lambda x: x.expand(5), [5.0]),
        ((2, 1), lambda x: x.expand(3, 2, 4), [[12.0], [12.0]]),
        ((), lambda x: x.expand(3), 3.0),
        ((2, 1), lambda x: x.broadcast_to(2, 2), [[2.0], [2.0]]),
    ],
)
def test_82_the_gradient_of_a_broadcast_is_the_sum(shape, use, expected):
    x = cg.ones(shape, requires_grad=True)
    use(x).sum().backward()
    assert x.grad.shape == x.shape
    assert x.grad.tolist() == expected


# ---- 83


def test_83_gather_and_chunks():
    x = matrix()
    got = x.gather(1, cg.tensor([[2], [0]]))
    assert got.tolist() == [[2.0], [3.0]]
    assert x.gather(1, cg.tensor([[1]])).tolist() == [[1.0]]
    with pytest.raises(
        RuntimeError, match=r"^Size does not match at dimension 0 expected index \[3, 1\] to be no larger than"
    ):
        x.gather(1, cg.zeros(3, 1, dtype=cg.int64))
    assert [len(c) for c in cg.arange(5).chunk(4)] == [2, 2, 1]
    assert [len(c) for c in cg.arange(5).tensor_split(4)] == [2, 1, 1, 1]


# ---- 84


def test_84_transposes_lengths_and_truth():
    with pytest.warns(
        UserWarning, match="^The use of `x.T` on tensors of dimension other than 2 to reverse their shape"
    ):
        assert cg.zeros(1, 2, 3).T.shape == (3, 2, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cg.zeros(2, 3).T.shape == (3, 2)
    with pytest.raises(TypeError, match="^len.. of a 0-d tensor"):
        len(cg.tensor(1))
    with pytest.raises(TypeError, match="^iteration over a 0-d tensor"):
        iter(cg.tensor(1))
    with pytest.raises(RuntimeError) as raised:
        bool(cg.ones(2))
    assert first_line(raised) == "Boolean value of Tensor with more than one value is ambiguous"
    with pytest.raises(RuntimeError) as raised:
        cg.ones(2).item()
    assert first_line(raised) == "a Tensor with 2 elements cannot be converted to Scalar"


def test_84_membership_compares_elements_and_hashes_are_of_the_object():
    a, b = cg.tensor(1.0), cg.tensor(1.0)
    assert a in [b]
    assert a not in {b: 0}
    assert len({a, b}) == 2
    with pytest.raises(RuntimeError, match="^Boolean value of Tensor with more than one value is ambiguous"):
        assert cg.ones(2) in [cg.ones(2)]


# ---- 85


@pytest.mark.parametrize(
    "call, first",
    [
        (lambda: cg.ones(2, 3) @ cg.ones(2, 3), "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"),
        (lambda: cg.nn.Linear(3, 2)(cg.ones(1, 4)), "mat1 and mat2 shapes cannot be multiplied (1x4 and 3x2)"),
        (lambda: cg.ones(2, 3) + cg.ones(2, 4), "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1"),
        (lambda: cg.ones(2, 3).t().view(-1), "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous subspaces). Use .reshape(...) instead."),
        (lambda: cg.stack([cg.ones(1), cg.ones(2)]), "stack expects each tensor to be equal size, but got [1] at entry 0 and [2] at entry 1"),
        (lambda: cg.ones(6).view(4, 2), "shape '[4, 2]' is invalid for input of size 6"),
        (lambda: cg.ones(6).reshape(4, -1), "shape '[4, -1]' is invalid for input of size 6"),
        (lambda: cg.cat([cg.ones(1, 2), cg.ones(1, 3)]), "Sizes of tensors must match except in dimension 0. Expected size 2 but got size 3 for tensor number 1 in the list."),
        (lambda: cg.bmm(cg.ones(1, 2, 3), cg.ones(1, 2, 3)), "Expected size for first two dimensions of batch2 tensor to be: [1, 3] but got: [1, 2]."),
        (lambda: cg.ones(2, 3).expand(3, 3), "The expanded size of the tensor (3) must match the existing size (2) at non-singleton dimension 0.  Target sizes: [3, 3].  Tensor sizes: [2, 3]"),
        (lambda: cg.ones(3).permute(0, 1), "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of dimensions i.e. input.dim() = 1 is not equal to len(dims) = 2"),
        (lambda: cg.ones(2).squeeze(3), "Dimension out of range (expected to be in range of [-1, 0], but got 3)"),
        (lambda: cg.ones(3).narrow(0, 2, 2), "start (2) + length (2) exceeds dimension size (3)."),
        (lambda: cg.ones(3)[5], "index 5 is out of bounds for dimension 0 with size 3"),
        (lambda: cg.ones(3)[0, 0], "too many indices for tensor of dimension 1"),
        (lambda: cg.ones(3)[cg.tensor([True])], "The shape of the mask [1] at index 0 does not match the shape of the indexed tensor [3] at index 0"),
    ],
)  # fmt: skip
def test_85_texts_that_scripts_match_on(call, first):
    with pytest.raises((RuntimeError, IndexError)) as raised:
        call()
    assert first_line(raised) == first


# ---- 86


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda: cg.tensor([1.0, 2.5]), "tensor([1.0000, 2.5000])"),
        (lambda: cg.tensor([1.0, 2.0]), "tensor([1., 2.])"),
        (lambda: cg.tensor([1.0, 1e-6]), "tensor([1.0000e+00, 1.0000e-06])"),
        (lambda: cg.tensor([1e9]), "tensor([1.0000e+09])"),
        (lambda: cg.tensor([1.0], dtype=cg.float64), "tensor([1.], dtype=torch.float64)"),
        (lambda: cg.tensor([1]), "tensor([1])"),
        (lambda: cg.tensor([1], dtype=cg.int32), "tensor([1], dtype=torch.int32)"),
        (lambda: cg.tensor([True]), "tensor([True])"),
        (lambda: cg.tensor(1.0, requires_grad=True), "tensor(1., requires_grad=True)"),
        (lambda: cg.tensor([1.0], requires_grad=True) * 2, "tensor([2.], grad_fn=<MulBackward0>)"),
        (lambda: cg.tensor([float("nan"), float("inf"), 1.5]), "tensor([   nan,    inf, 1.5000])"),
        (lambda: cg.zeros(0), "tensor([])"),
        (lambda: cg.zeros(2, 0), "tensor([], size=(2, 0))"),
        (lambda: cg.tensor(1 + 2j), "tensor(1.+2.j)"),
    ],
)
def test_86_repr(make, text):
    assert repr(make()) == text


def test_86_names_and_next_functions():
    x = leaf(1.0)
    y = x * 2 + 1
    assert y.grad_fn.name() == "AddBackward0"
    (inner, index), constant = y.grad_fn.next_functions
    assert inner.name() == "MulBackward0"
    assert index == 0
    assert constant == (None, 0)
    names = [
        getattr(x, n)().grad_fn.name() for n in ("exp", "log", "sum", "mean", "tanh", "relu", "sqrt", "abs", "neg")
    ]
    assert names == [f"{n}Backward0" for n in ("Exp", "Log", "Sum", "Mean", "Tanh", "Relu", "Sqrt", "Abs", "Neg")]
    assert type(y.grad_fn).__name__ != ""
    assert np.isclose(y.item(), 3.0)
