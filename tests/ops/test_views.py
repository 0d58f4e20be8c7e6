"""Views: which functions share memory, what is written through them, and what becomes of their history."""

import numpy as np
import pytest

import cudagrad as cg


def counted(*shape):
    """0, 1, 2, ... in ``shape``, float64."""
    return cg.arange(float(np.prod(shape)), dtype=cg.float64).reshape(*shape).clone()


# Each function on a [2, 3, 4] tensor, and NumPy's view of the same elements.
VIEWS = {
    "x[1]": (lambda x: x[1], lambda a: a[1]),
    "x[:, 1:]": (lambda x: x[:, 1:], lambda a: a[:, 1:]),
    "x[..., ::2]": (lambda x: x[..., ::2], lambda a: a[..., ::2]),
    "x[0, 1, 2]": (lambda x: x[0, 1, 2], lambda a: a[0, 1, 2:3].reshape(())),
    "x[None]": (lambda x: x[None], lambda a: a[None]),
    "x[:, None]": (lambda x: x[:, None], lambda a: a[:, None]),
    "x[...]": (lambda x: x[...], lambda a: a[...]),
    "x[tensor(1)]": (lambda x: x[cg.tensor(1)], lambda a: a[1]),
    "view": (lambda x: x.view(6, 4), lambda a: a.reshape(6, 4)),
    "reshape": (lambda x: x.reshape(4, 6), lambda a: a.reshape(4, 6)),
    "flatten": (lambda x: x.flatten(1), lambda a: a.reshape(2, 12)),
    "unflatten": (lambda x: x.unflatten(2, (2, 2)), lambda a: a.reshape(2, 3, 2, 2)),
    "ravel": (lambda x: x.ravel(), lambda a: a.reshape(-1)),
    "squeeze": (lambda x: x[:1].squeeze(0), lambda a: a[0]),
    "unsqueeze": (lambda x: x.unsqueeze(-1), lambda a: a[..., None]),
    "transpose": (lambda x: x.transpose(0, 2), lambda a: a.swapaxes(0, 2)),
    "permute": (lambda x: x.permute(2, 0, 1), lambda a: a.transpose(2, 0, 1)),
    "movedim": (lambda x: x.movedim(0, 2), lambda a: np.moveaxis(a, 0, 2)),
    "mT": (lambda x: x.mT, lambda a: a.swapaxes(1, 2)),
    "t": (lambda x: x[0].t(), lambda a: a[0].T),
    "T": (lambda x: x[0].T, lambda a: a[0].T),
    "narrow": (lambda x: x.narrow(1, 1, 2), lambda a: a[:, 1:3]),
    "select": (lambda x: x.select(1, -1), lambda a: a[:, -1]),
    "diagonal": (lambda x: x.diagonal(1, 1, 2), lambda a: a.reshape(2, 12)[:, 1::5][:, :3]),
    "unfold": (lambda x: x.unfold(2, 2, 2), lambda a: a.reshape(2, 3, 2, 2)),
    "as_strided": (lambda x: x.as_strided((3, 2), (4, 1), 1), lambda a: a.reshape(6, 4)[:3, 1:3]),
    "split": (lambda x: x.split(2, 2)[1], lambda a: a[..., 2:]),
    "chunk": (lambda x: x.chunk(2, 1)[1], lambda a: a[:, 2:]),
    "tensor_split": (lambda x: x.tensor_split(2, 1)[0], lambda a: a[:, :2]),
    "unbind": (lambda x: x.unbind(1)[2], lambda a: a[:, 2]),
    "view_as": (lambda x: x.view_as(cg.zeros(3, 8)), lambda a: a.reshape(3, 8)),
    "view(dtype)": (lambda x: x.view(cg.int64), lambda a: a.view(np.int64)),
}


@pytest.mark.parametrize("make, definition", VIEWS.values(), ids=VIEWS)
def test_a_view_shares_memory_and_what_is_written_through_it_is_seen_in_the_base(make, definition):
    x, a = counted(2, 3, 4), np.arange(24.0).reshape(2, 3, 4)
    v, part = make(x), definition(a)
    assert v._is_view() and v._base is x
    assert np.array_equal(v.numpy(), part) and v.shape == part.shape
    assert np.shares_memory(v.numpy(), x.numpy())
    v.mul_(-2) if v.dtype.is_floating_point else v.zero_()
    part *= -2 if part.dtype.kind == "f" else 0
    assert np.array_equal(x.numpy(), a)
    assert x._version == v._version == 1


@pytest.mark.parametrize("name", [n for n in VIEWS if n not in ("view(dtype)", "split", "chunk", "unbind")])
def test_writing_into_a_view_of_a_result_gives_its_base_a_new_history(name):
    """y = 3 x; view(y) *= 5: the gradient of sum(w y) is 3 w, and 15 w where the view is."""
    make, definition = VIEWS[name]
    x = counted(2, 3, 4).requires_grad_()
    y = x * 3
    make(y).mul_(5)
    w = np.random.default_rng(0).standard_normal((2, 3, 4))
    (y * cg.from_numpy(w)).sum().backward()
    expected = 3 * w
    definition(expected)[...] *= 5
    assert np.allclose(x.grad.numpy(), expected)


@pytest.mark.parametrize("name", [n for n in VIEWS if n not in ("view(dtype)",)])
def test_a_view_taken_before_its_base_is_written_follows_the_new_value(name):
    make, definition = VIEWS[name]
    x = counted(2, 3, 4).requires_grad_()
    y = x * 3
    v = make(y)
    y.mul_(2)
    v.sum().backward()
    expected = np.zeros((2, 3, 4))
    definition(expected)[...] = 6
    assert np.array_equal(x.grad.numpy(), expected)


@pytest.mark.parametrize(
    "make, maker",
    [
        (lambda y: y.split(1), "Split"),
        (lambda y: y.split([1, 1]), "SplitWithSizes"),
        (lambda y: y.chunk(2), "Split"),
        (lambda y: y.unbind(), "Unbind"),
    ],
)
def test_one_of_several_views_may_not_be_written_where_a_gradient_is_wanted(make, maker):
    pieces = make(counted(2, 3).requires_grad_() * 2)
    with pytest.raises(
        RuntimeError, match=f"^Output 0 of {maker} is a view and is being modified inplace. This view is"
    ):
        pieces[0].mul_(2)
    plain = counted(2, 3)
    make(plain)[1].zero_()
    assert plain.tolist() == [[0, 1, 2], [0, 0, 0]]


def test_pieces_of_tensor_split_may_be_written():
    x = counted(4).requires_grad_()
    y = x * 2
    y.tensor_split(2)[0].mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [6, 6, 2, 2]


COPIES = {
    "clone": lambda x: x.clone(),
    "flip": lambda x: x.flip(0),
    "roll": lambda x: x.roll(1, 0),
    "repeat": lambda x: x.repeat(1, 1, 1),
    "tril": lambda x: x.tril(),
    "gather": lambda x: x.gather(0, cg.zeros(1, 3, 4, dtype=cg.int64)),
    "index_select": lambda x: x.index_select(0, cg.tensor([0])),
    "x[[0, 1]]": lambda x: x[[0, 1]],
    "x[x > 3]": lambda x: x[x > 3],
    "diag of a matrix": lambda x: cg.diag(x[0]),
    "reshape of what is apart in memory": lambda x: x.transpose(0, 1).reshape(-1),
    "contiguous of what is not": lambda x: x.transpose(0, 1).contiguous(),
    "cat": lambda x: cg.cat([x]),
}


@pytest.mark.parametrize("make", COPIES.values(), ids=COPIES)
def test_a_copy_is_no_view(make):
    x = counted(2, 3, 4)
    made = make(x)
    assert not made._is_view() and not np.shares_memory(made.numpy(), x.numpy())
    made.zero_()
    assert np.array_equal(x.numpy(), np.arange(24.0).reshape(2, 3, 4))


def test_what_changes_nothing_gives_the_tensor_itself():
    x = counted(3)
    assert x.contiguous() is x and x.flatten() is x and x.sum_to_size(3) is x and cg.atleast_1d(x) is x
    assert x.view(3) is not x and x.reshape(3) is not x and x.expand(3) is not x and x[:] is not x


def test_no_tensor_has_a_negative_stride():
    x = counted(3, 4)
    for made in (x.flip(0), x.flip(0, 1), x.rot90(), x.rot90(2), x.rot90(3), x.fliplr(), x.flipud()):
        assert min(made.stride()) > 0


def test_an_expanded_tensor_repeats_one_element_and_may_not_be_written():
    x = cg.ones(1)
    e = x.expand(3)
    assert e.stride() == (0,) and np.shares_memory(e.numpy(), x.numpy())
    with pytest.raises(
        RuntimeError, match="^unsupported operation: more than one element of the written-to tensor refers"
    ):
        e.add_(1)
    with pytest.raises(
        RuntimeError, match="^unsupported operation: more than one element of the written-to tensor refers"
    ):
        e[:] = 2
    e[0] = 5
    assert x.tolist() == [5] and e.tolist() == [5, 5, 5]


def test_expanding_any_layout_and_dtype_reads_the_right_elements():
    for dtype in (cg.float16, cg.bfloat16, cg.int8, cg.bool, cg.complex64, cg.float64):
        base = cg.arange(24).reshape(2, 3, 4).to(dtype)
        for part in (base[:, 1:2], base.transpose(0, 2)[1:2], base[1, :, ::2][:1], base[0, 0, 3]):
            e = part.expand(5, *([-1] * part.ndim))
            assert np.array_equal(e.array, np.stack([part.array] * 5))


@pytest.mark.parametrize("dtype", [cg.float16, cg.bfloat16, cg.int8, cg.bool, cg.complex64])
def test_views_of_every_dtype_share_memory(dtype):
    x = cg.ones(4, 6, dtype=dtype)
    views = (
        x[1:],
        x.t(),
        x.view(24),
        x.diagonal(),
        x.unfold(1, 3, 1),
        x.as_strided((2, 2), (6, 1), 1),
        x.expand(2, 4, 6),
    )
    for v in views:
        assert np.shares_memory(v.array, x.array) and v.dtype is dtype


def test_bytes_are_read_as_another_dtype():
    x = cg.tensor([1.0, -2.0], dtype=cg.float32)
    assert x.view(cg.int32).tolist() == [0x3F800000, 0xC0000000 - (1 << 32)]
    assert x.view(cg.uint8).shape == (8,) and x.view(cg.complex64).tolist() == [1 - 2j]
    assert x.view(cg.int16).view(cg.float32).tolist() == [1.0, -2.0]
    assert not x.requires_grad_().view(cg.int32).requires_grad


@pytest.mark.parametrize(
    "x, dtype, line",
    [
        (lambda: cg.ones(3), "float64", "self.size(-1) must be divisible by 2 to view Float as Double (different"),
        (lambda: cg.ones(4)[::2], "float64", "self.stride(-1) must be 1 to view Float as Double (different element"),
        (lambda: cg.ones(4)[1:3], "float64", "self.storage_offset() must be divisible by 2 to view Float as Double"),
        (lambda: cg.ones(3, 3)[:, :2], "float64", "self.stride(0) must be divisible by 2 to view Float as Double"),
        (
            lambda: cg.ones(4, 4).t(),
            "int16",
            "self.stride(-1) must be 1 to view Float as Short (different element sizes)",
        ),
        (lambda: cg.tensor(1.0), "int16", "self.dim() cannot be 0 to view Float as Short (different element sizes)"),
    ],
)
def test_bytes_that_do_not_fit_another_dtype_say_why(x, dtype, line):
    with pytest.raises(RuntimeError) as caught:
        x().view(getattr(cg, dtype))
    assert str(caught.value).startswith(line)


@pytest.mark.parametrize(
    "change, definition",
    [
        (lambda y: y.unsqueeze_(1), lambda a: a[:, None]),
        (lambda y: y.transpose_(0, 1), lambda a: a.T),
        (lambda y: y.t_(), lambda a: a.T),
        (lambda y: y.swapaxes_(0, 1), lambda a: a.T),
        (lambda y: y.swapdims_(0, 1), lambda a: a.T),
        (lambda y: y.unsqueeze_(0).squeeze_(), lambda a: a),
    ],
)
def test_a_shape_changed_in_place_keeps_the_history_of_the_tensor_and_of_its_views(change, definition):
    """y = 2 x; v a view of y; y in another shape; y *= 3: both end up as 6 x, and both know it."""
    x = counted(2, 3).requires_grad_()
    y = x * 2
    v = y[1]
    assert change(y) is y
    assert np.array_equal(y.detach().numpy(), definition(2 * np.arange(6.0).reshape(2, 3)))
    y.mul_(3)
    (y.sum() + v.sum()).backward()
    assert x.grad.tolist() == [[6, 6, 6], [12, 12, 12]]


def test_a_leaf_may_not_change_its_shape_in_place():
    with pytest.raises(
        RuntimeError, match="^a leaf Variable that requires grad is being used in an in-place operation."
    ):
        counted(2, 3).requires_grad_().unsqueeze_(0)


def test_a_tensor_that_was_saved_may_not_change_its_shape_in_place():
    y = counted(2, 3).requires_grad_().exp()
    y.unsqueeze_(0)
    with pytest.raises(
        RuntimeError, match="^one of the variables needed for gradient computation has been modified by an"
    ):
        y.sum().backward()


def test_slices_add_into_one_gradient_whatever_else_the_tensor_is_used_for():
    """Several slices of one tensor, one of them twice, beside a use of the whole."""
    x = counted(3, 4).requires_grad_()
    y = x * 1
    loss = (y[0] * 2).sum() + (y[1:] * 3).sum() + (y * 5).sum() + y[0, 1] * 7 + (y[[0, 0, 2]] * 11).sum()
    loss.backward()
    expected = np.full((3, 4), 5.0)
    expected[0] += 2 + 22
    expected[1:] += 3
    expected[0, 1] += 7
    expected[2] += 11
    assert np.array_equal(x.grad.numpy(), expected)


def test_elements_that_overlap_in_memory_share_their_gradient():
    """out[i] = x[i] + ... reads x at i and i + 1: inner elements are read twice."""
    x = counted(4).requires_grad_()
    (x * 1).as_strided((3, 2), (1, 1)).sum().backward()
    assert x.grad.tolist() == [1, 2, 2, 1]


def test_memory_formats_order_the_axes_in_memory():
    x = counted(2, 3, 4, 5)
    last = x.contiguous(memory_format=cg.channels_last)
    assert last.stride() == (60, 1, 15, 3) and np.array_equal(last.numpy(), x.numpy())
    assert last.contiguous(memory_format=cg.channels_last) is last
    assert last.clone().stride() == (60, 1, 15, 3)
    assert last.clone(memory_format=cg.contiguous_format).stride() == x.stride()
    assert last.contiguous().stride() == (60, 20, 5, 1)
    volume = counted(2, 3, 2, 2, 2)
    assert volume.clone(memory_format=cg.channels_last_3d).stride() == (24, 1, 12, 6, 3)
    with pytest.raises(RuntimeError, match="^required rank 4 tensor to use channels_last format"):
        counted(2, 3).contiguous(memory_format=cg.channels_last)
    with pytest.raises(RuntimeError, match="^preserve memory format is unsupported by the contiguous operator"):
        x.contiguous(memory_format=cg.preserve_format)


@pytest.mark.parametrize("shape", [(3,), (2, 3, 4), ()])
def test_the_transpose_of_what_is_no_matrix_warns(shape):
    x = counted(*shape) if shape else cg.tensor(1.0)
    with pytest.warns(
        UserWarning, match=r"The use of `x.T` on tensors of dimension|Tensor.T is deprecated on 0-D tensors"
    ):
        t = x.T
    assert t.shape == tuple(reversed(shape))


def test_a_grid_without_its_kind_of_indexing_warns():
    with pytest.warns(
        UserWarning, match="torch.meshgrid: in an upcoming release, it will be required to pass the indexing"
    ):
        a, b = cg.meshgrid(cg.arange(2), cg.arange(3))
    assert a.tolist() == [[0, 0, 0], [1, 1, 1]] and b.tolist() == [[0, 1, 2], [0, 1, 2]]


def test_functions_take_sizes_as_ints_lists_and_tensors_of_one_element():
    x = counted(2, 6)
    for made in (x.view(3, -1), x.view([3, 4]), x.view(cg.Size((3, 4))), x.view(cg.tensor(3), np.int64(4))):
        assert made.shape == (3, 4)
    assert x.repeat(cg.Size([1, 2])).shape == (2, 12) and x.permute(dims=(1, 0)).shape == (6, 2)
    assert x.expand(size=(2, 2, 6)).shape == (2, 2, 6) and x.flip(dims=(0,)).shape == (2, 6)
