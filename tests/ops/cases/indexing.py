"""Reading and writing by index: brackets, index tensors and masks."""

import numpy as np

import cudagrad

from . import Error, Input, case

RANGE = "Dimension out of range (expected to be in range of [-2, 1], but got 5)"
I, J, ROWS = np.array([0, 1]), np.array([1, 0]), np.array([2, 0, 2, -1])
TWICE = np.array([[0, 2], [2, 2]])
MASK = np.array([[True, False, True, False], [False, False, False, False], [True, True, False, True]])
FIXED = dict(ints=True, complex=True)

# ---- brackets: each place of an index is an argument

case(
    "Tensor.__getitem__",
    lambda x, *index: x[index],
    *(
        Input((3, 4), 1),
        Input((3, 4), -1, 2),
        Input((3, 4), slice(1, None)),
        Input((3, 4), slice(None, None, 2), slice(1, 3)),
    ),
    *(
        Input((3, 4), None),
        Input((3, 4), slice(None), None, 1),
        Input((2, 3, 4), Ellipsis, 1),
        Input((2, 3, 4), 0, ..., 1),
    ),
    *(Input((3, 4), slice(2, 1)), Input((), ...), Input((), None), Input((3, 4))),
    *(Input((3, 4), ROWS), Input((3, 4), slice(None), TWICE), Input((3, 4), I, J), Input((2, 3, 4), slice(None), I, J)),
    *(Input((2, 3, 4), I, slice(None), J), Input((2, 3, 4, 2), slice(None), I, slice(None), J), Input((2, 3, 4), 0, I)),
    *(
        Input((2, 3, 4), TWICE[:, :1] // 2, I),
        Input((3, 4), MASK),
        Input((3, 4), MASK[:, 0]),
        Input((3, 4), slice(None), MASK[0]),
    ),
    *(
        Input((3, 4, 2), MASK),
        Input((2, 3, 4), slice(1), MASK),
        Input((3, 4, 2), MASK, np.array([1])),
        Input((3, 4), np.array([], int)),
    ),
    *(
        Input((3, 4), ~MASK & MASK),
        Input((3, 4), ROWS.astype(np.int32)),
        Input((3, 4), I, None),
        Input((0, 3), np.array([], int)),
    ),
    Error(IndexError, "index 5 is out of bounds for dimension 0 with size 3", (3, 4), 5),
    Error(IndexError, "index -5 is out of bounds for dimension 1 with size 4", (3, 4), 0, -5),
    Error(IndexError, "index 7 is out of bounds for dimension 0 with size 3", (3, 4), np.array([0, 7])),
    Error(IndexError, "index -4 is out of bounds for dimension 0 with size 3", (3, 4), np.array([0, -4])),
    Error(IndexError, "index 9 is out of bounds for dimension 1 with size 4", (3, 4), I, np.array([9, 0])),
    Error(IndexError, "index is out of bounds for dimension with size 0", (0, 4), np.array([0])),
    Error(IndexError, "too many indices for tensor of dimension 2", (3, 4), 0, 0, 0),
    Error(IndexError, "too many indices for tensor of dimension 2", (3, 4), I, I, I),
    Error(IndexError, "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in", (), 0),
    Error(IndexError, "slice() cannot be applied to a 0-dim tensor.", (), slice(None)),
    Error(IndexError, "tensors used as indices must be long, int, byte or bool tensors", (3, 4), np.array([1.0])),
    Error(IndexError, "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables ar", (3, 4), 1.5),
    Error(IndexError, "shape mismatch: indexing tensors could not be broadcast together with shapes", (3, 4), I, ROWS),
    Error(IndexError, "The shape of the mask [2] at index 0 does not match the shape of the inde", (3, 4), MASK[0, :2]),
    Error(IndexError, "The shape of the mask [3] at index 0 does not match the shape", (3, 4), slice(None), MASK[:, 0]),
    Error(ValueError, "step must be greater than zero", (3, 4), slice(None, None, -1)),
    Error(ValueError, "slice step cannot be zero", (3, 4), slice(None, None, 0)),
    Error(TypeError, "new(): invalid data type 'str'", (3, 4), "a"),
    f=lambda x, *index: x[index],
    **FIXED,
)


def written(x, value, *index):
    x = x.copy()
    x[index] = value
    return x


def write(x, value, *index):
    x = x.clone()
    x[index] = value
    return x


case(
    "Tensor.__setitem__",
    written,
    *(
        Input((3, 4), (4,), 1),
        Input((3, 4), (), slice(1, None)),
        Input((3, 4), (2, 1), slice(None, None, 2), slice(1, 3)),
    ),
    *(
        Input((3, 4), (3, 4), ...),
        Input((3, 4), (1, 4), None, 0),
        Input((), (), ...),
        Input((3, 4), 2.5, 0, 1),
        Input((3, 4), 7),
    ),
    *(
        Input((3, 4), (2, 4), np.array([2, 0])),
        Input((3, 4), (2,), I, J),
        Input((3, 4), (2,), slice(None), I),
        Input((3, 4), 1.5, I),
    ),
    *(Input((2, 3, 4), (2, 3), I, slice(None), J), Input((3, 4), (), MASK)),
    *(
        Input((3, 4), (5,), MASK),
        Input((3, 4), (4,), MASK[:, 0]),
        Input((3, 4), 0.5, MASK),
        Input((3, 4, 2), -1.5, MASK),
    ),
    *(Input((3, 4), (2, 1), I, slice(2)), Input((2, 3, 4), 3.0, slice(None), I, J)),
    Input((2, 3, 4, 2), (2, 2, 4), slice(None), I, slice(None), J),
    Input((3, 4), 1.5, slice(None), MASK[0]),
    Error(IndexError, "index 5 is out of bounds for dimension 0 with size 3", (3, 4), 1.0, 5),
    Error(IndexError, "index 5 is out of bounds for dimension 0 with size 4", (3, 4), 1.0, slice(None), np.array([5])),
    Error(RuntimeError, "The expanded size of the tensor (4) must match the existing size (5) at non", (3, 4), (5,), 0),
    Error(RuntimeError, "shape mismatch: value tensor of shape [5] cannot be broadcast to indexing r", (3, 4), (5,), I),
    Error(RuntimeError, "Index put requires the source and destination dtypes match, got", (3, 4), np.arange(4), I),
    Error(TypeError, "can't assign a list to a torch.", (3, 4), [1.0], 0),
    Error(TypeError, "can't assign a NoneType to a torch.", (3, 4), None, 0),
    Error(ValueError, "step must be greater than zero", (3, 4), 1.0, slice(None, None, -1)),
    f=write,
    complex=True,
)


def index_put_ref(x, indices, values, accumulate=False):
    x = x.copy()
    if accumulate:
        np.add.at(x, tuple(indices), values)
    else:
        x[tuple(indices)] = values
    return x


case(
    "index_put",
    index_put_ref,
    *(Input((3, 4), [I, J], (2,)), Input((3, 4), [TWICE], (2, 2, 4), True), Input((3, 4), [TWICE, TWICE], (), True)),
    *(Input((3, 4), [MASK], (5,)), Input((3, 4), [MASK[:, 0], I], (2,)), Input((3, 4), [I], (4,), accumulate=True)),
    Error(IndexError, "too many indices for tensor of dimension 1 (got 2)", (3,), [I, I], (2,)),
    Error(IndexError, "index 5 is out of bounds for dimension 0 with size 3", (3,), [np.array([5])], (1,)),
    Error(TypeError, "expected Tensor as element 0 in argument", (3,), [0], (1,)),
    Error(TypeError, "index_put(): argument 'indices' (position 2) must be tuple of Tensors, not Tenso", (3,), I, (2,)),
    complex=True,
)

# ---- elements along a dim


def gather_ref(x, dim, index, sparse_grad=False):
    if x.ndim == 0 or index.ndim == 0:
        return x.reshape(-1)[index]
    return np.take_along_axis(
        x[tuple(slice(n) if d != dim % x.ndim else slice(None) for d, n in enumerate(index.shape))], index, dim
    )


case(
    "gather",
    gather_ref,
    *(
        Input((3, 4), 0, TWICE),
        Input((3, 4), 1, TWICE),
        Input((3, 4), dim=-1, index=TWICE),
        Input((3,), 0, np.array([2, 2, 0, 2])),
    ),
    *(
        Input((), 0, np.array(0)),
        Input((), 0, I * 0),
        Input((3, 4), 1, np.zeros((3, 9), int)),
        Input((3, 4), 1, np.zeros((0, 4), int)),
    ),
    Error(RuntimeError, "index 5 is out of bounds for dimension 0 with size 3", (3, 4), 0, np.array([[5]])),
    Error(RuntimeError, "index -1 is out of bounds for dimension 0 with size 3", (3, 4), 0, np.array([[-1]])),
    Error(RuntimeError, "Index tensor must have the same number of dimensions as input tensor", (3, 4), 0, I),
    Error(RuntimeError, "Size does not match at dimension 0 expected index [4, 2] t", (3, 4), 1, np.zeros((4, 2), int)),
    Error(RuntimeError, "gather(): Expected dtype int32/int64 for index", (3, 4), 0, np.zeros((1, 1))),
    Error(IndexError, RANGE, (3, 4), 5, TWICE),
    **FIXED,
)
case(
    "take",
    lambda x, index: np.take(x, index),
    Input((3, 4), TWICE),
    Input((3, 4), np.array([-1, 11])),
    Input((), np.array(0)),
    complex=True,
)
case(
    "take",
    None,
    Error(IndexError, "out of range: tried to access index 12 on a tensor of 12 elements.", (3, 4), np.array([12])),
    Error(RuntimeError, "take(): Expected a long tensor for index, but got Int", (3, 4), np.array([1], np.int32)),
    Error(IndexError, "take(): tried to take from an empty tensor", (0,), np.array([0])),
)


def along(x, indices, dim=None):
    return np.take(x, indices.ravel()) if dim is None else np.take_along_axis(x, indices, dim)


case(
    "take_along_dim",
    along,
    *(Input((3, 4), np.array([[0], [1], [3]]), 1), Input((3, 4), np.array([[0, 2, 1, 1]]), 0), Input((3, 4), TWICE)),
    *(Input((3, 1), np.array([[0, 2, 1, 1]]), dim=0), Input((3, 4), np.array([[-1, 0, -3, 1]]), 0)),
    Error(RuntimeError, "torch.take_along_dim(): input and indices should have the same number of dimen", (3, 4), I, 0),
    Error(RuntimeError, "torch.take_along_dim(): dtype of indices should be Long bu", (3,), np.array([1], np.int32), 0),
)

# ---- whole slices


def changed(change):
    def ref(x, dim, index, *args, **named):
        x = np.array(x).reshape(x.shape or 1)
        change(np.moveaxis(x, dim, 0), np.atleast_1d(index), dim, *args, **named)
        return x

    return ref


def add(rows, index, dim, source, alpha=1):
    np.add.at(rows, index, alpha * np.moveaxis(source, dim, 0))


def put(rows, index, dim, source):
    rows[index] = np.moveaxis(source, dim, 0)


def fill(rows, index, dim, value):
    rows[index] = value


case(
    "index_select",
    lambda x, dim, index: np.take(x, np.atleast_1d(index), dim),
    *(
        Input((3, 4), 0, np.array([2, 0, 2])),
        Input((3, 4), 1, np.array([3])),
        Input((2, 3, 4), dim=-1, index=I),
        Input((3,), 0, np.array(1)),
    ),
    *(
        Input((40, 33), 0, np.arange(400) % 37),
        Input((40, 3), 0, np.arange(90) % 7),
        Input((2, 9, 17), 1, np.arange(600) % 5),
    ),
    Error(IndexError, "index out of range in self", (3, 4), 0, np.array([3])),
    Error(IndexError, "index out of range in self", (3, 4), 0, np.array([-1])),
    Error(IndexError, "index_select(): Index is supposed to be a vector", (3, 4), 0, TWICE),
    Error(RuntimeError, "index_select(): Expected dtype int32 or int64 for index", (3, 4), 0, np.zeros(1)),
    Error(IndexError, RANGE, (3, 4), 5, I),
    **FIXED,
)
case(
    "index_add",
    changed(add),
    *(Input((3, 4), 0, np.array([0, 2]), (2, 4)), Input((3, 4), 1, np.array([1, 1, 1]), (3, 3), alpha=2)),
    *(Input((3, 4), dim=0, index=TWICE[0], source=np.ones((2, 4))), Input((50, 20), 0, np.arange(600) % 3, (600, 20))),
    Error(RuntimeError, "index 7 is out of bounds for dimension 0 with size 3", (3, 4), 0, np.array([0, 7]), (2, 4)),
    Error(RuntimeError, "index_add_(): Number of indices (2) should be equal to source.size(dim", (3, 4), 0, I, (3, 4)),
    Error(RuntimeError, "source tensor shape must match self tensor shape, excluding the specif", (3, 4), 0, I, (2, 3)),
    Error(RuntimeError, "index_add_(): Expected dtype int32/int64 for index but got:", (3, 4), 0, np.zeros(2), (2, 4)),
    Error(IndexError, "index_add_(): Index is supposed to be a vector, but got dim: 2 with", (3, 4), 0, TWICE, (2, 4)),
    Error(RuntimeError, "must have the same scalar type", (3, 4), 0, I, np.zeros((2, 4), int)),
    complex=True,
)
case(
    "index_copy",
    changed(put),
    *(Input((3, 4), 0, np.array([2, 0]), (2, 4)), Input((3, 4), 1, I, (3, 2))),
    Error(IndexError, "index_copy_(): index 7 is out of bounds for dimension 0 w", (3, 4), 0, np.array([0, 7]), (2, 4)),
    Error(IndexError, "index_copy_(): Number of indices (2) should be equal to source.size(dim)", (3, 4), 0, I, (3, 4)),
    Error(IndexError, "index_copy_(): When source and destination are not scalars, their dimensio", (3, 4), 0, I, (4,)),
    Error(RuntimeError, "index_copy_(): Source/destination tensor must have same slice shapes.", (3, 4), 0, I, (2, 3)),
    Error(RuntimeError, "index_copy_(): Expected a long tensor for index, but got", (3, 4), 0, I.astype("i4"), (2, 4)),
    complex=True,
)
case(
    "index_fill",
    changed(fill),
    *(Input((3, 4), 0, I, 9), Input((3, 4), 1, np.array([-1]), 2.5), Input((3, 4), 0, np.array(1), np.array(3.0))),
    Error(IndexError, "index 3 is out of bounds for dimension 0 with size 3", (3, 4), 0, np.array([3]), 1),
    Error(RuntimeError, "Index has to be a vector/scalar", (3, 4), 0, TWICE, 1),
    Error(IndexError, "index_fill_(): Expected dtype int64 for index.", (3, 4), 0, np.zeros(1), 1),
    Error(RuntimeError, "index_fill_ only supports a 0-dimensional value tensor, but got tensor w", (3, 4), 0, I, (1,)),
    Error(RuntimeError, "index_fill_(): Converting complex Scalar to non-complex type is not suppor", (3, 4), 0, I, 1j),
    complex=True,
)


def put_ref(x, index, source, accumulate=False):
    flat = x.flatten()
    if accumulate:
        np.add.at(flat, index.ravel(), source.ravel())
    else:
        flat[index.ravel()] = source.ravel()
    return flat.reshape(x.shape)


case(
    "put",
    put_ref,
    *(
        Input((3, 4), np.array([0, -1]), (2,)),
        Input((3, 4), TWICE, (4,), True),
        Input((3, 4), np.array([[1, 2]]), (2, 1)),
    ),
    Error(IndexError, "out of range: tried to access index 99 on a tensor of 12 element", (3, 4), np.array([99]), (1,)),
    Error(IndexError, "put_(): Expected source and index to have the same number of elements, but got", (3,), I, (3,)),
)

# ---- masks

BYTES = MASK.astype(np.uint8)
case(
    "where",
    np.where,
    *(Input(MASK, (3, 4), (3, 4)), Input(MASK, (4,), (3, 1)), Input(np.array(True), (3, 4), ()), Input(MASK, (), 0.5)),
    *(Input(MASK, 2, (3, 4)), Input(MASK[:0], (0, 4), (4,)), Input(BYTES[:1] > 0, (2, 1), (2, 4))),
    Error(RuntimeError, "where expected condition to be a boolean tensor, but got a tensor wit", TWICE, (2, 2), (2, 2)),
    Error(TypeError, "where() received an invalid combination of arguments - got (Tensor, Tensor, st", MASK, (4,), "a"),
    Error(TypeError, "where() received an invalid combination of arguments - got (Tensor, Tensor), but ex", MASK, (4,)),
    Error(RuntimeError, "The size of tensor a (4) must match the size of tensor b (3) at non-single", MASK, (4,), (3,)),
    complex=True,
)
case(
    "where",
    np.where,
    *(
        Input(MASK, np.array([1, 2, 3, 4]), np.array([2])),
        Input(MASK, 1, 0),
        Input(MASK, 1.5, 0),
        Input(MASK, True, False),
    ),
    grad=0,
)
case("where", np.where, Input(MASK), Input(np.array([0.0, 2.0])), grad=0, f=lambda c: cudagrad.where(c))
case("Tensor.where", lambda x, c, y: np.where(c, x, y), Input((3, 4), MASK, 0.5), Input((3, 4), MASK, (4,)))
case(
    "nonzero",
    np.argwhere,
    *(Input(np.array([[0, 2.0], [0, 1]])), Input(MASK), Input(np.zeros((2, 2))), Input(np.array(3.0)), Input((2, 0))),
    grad=0,
)
case(
    "nonzero",
    lambda x, as_tuple: np.atleast_1d(x).nonzero(),
    *(Input(TWICE, as_tuple=True), Input(np.array(3.0), as_tuple=True)),
    grad=0,
    f=lambda x, as_tuple: cudagrad.nonzero(x, as_tuple=as_tuple),
)
case(
    "unravel_index",
    lambda indices, shape: list(np.unravel_index(indices, shape)),
    *(Input(TWICE, [3, 4]), Input(np.array(11), [2, 2, 3]), Input(np.array([5, 0], np.int32), 6)),
    Error(TypeError, "expected 'indices' to be integer dtype, but got torch.", (2,), [3]),
    Error(ValueError, "'shape' cannot have negative values, but got (2, -4)", TWICE, [2, -4]),
    Error(TypeError, "expected 'shape' to be int or sequence of ints, but got <class 'float'>", TWICE, 2.5),
    Error(TypeError, "expected 'shape' sequence to only contain ints, but got <class 'float'>", TWICE, [2, 2.5]),
    grad=0,
)
case("argwhere", np.argwhere, Input(MASK), Input(np.array(2)), grad=0)


def masked_fill_ref(x, mask, value):
    return np.where(mask, np.asarray(value, x.dtype), x)


ONLY = "masked_fill_ only supports boolean masks, but got mask with dtype"
case(
    "masked_fill",
    masked_fill_ref,
    *(
        Input((3, 4), MASK, 0.5),
        Input((3, 4), MASK[0], ()),
        Input((1, 4), MASK, 2),
        Input((), np.array(True), 1.5),
    ),
    Error(RuntimeError, f"{ONLY} unsigned char", (3, 4), BYTES, 0),
    Error(RuntimeError, f"{ONLY} long int", (2, 2), TWICE, 0),
    Error(RuntimeError, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor", (3, 4), MASK, (1,)),
    Error(RuntimeError, "The size of tensor a (2) must match the size of tensor b (4) at non-", (3, 4), MASK[0, :2], 0),
    Error(RuntimeError, "value cannot be converted to type int8_t with", np.array([1], np.int8), np.array([True]), 300),
    complex=True,
)
case("masked_fill", masked_fill_ref, Input((3, 4), MASK, 2), ints=True)
case("masked_fill", masked_fill_ref, Input((3, 4), MASK, np.inf), Input((3, 4), MASK, np.nan), grad=0)
case(
    "masked_select",
    lambda x, mask: np.broadcast_to(x, np.broadcast_shapes(x.shape, mask.shape))[
        np.broadcast_to(mask, np.broadcast_shapes(x.shape, mask.shape))
    ],
    *(Input((3, 4), MASK), Input((3, 4), MASK[0]), Input((4,), MASK), Input((), np.array([True, False, True]))),
    Error(RuntimeError, "masked_select: expected BoolTensor for mask", (3, 4), BYTES),
    Error(RuntimeError, "The size of tensor a (2) must match the size of tensor b (4) at non-sin", (3, 4), MASK[0, :2]),
    **FIXED,
)


def masked_scatter_ref(x, mask, source):
    x = np.array(np.broadcast_to(x, np.broadcast_shapes(x.shape, mask.shape)))
    mask = np.broadcast_to(mask, x.shape)
    x[mask] = source.ravel()[: mask.sum()]
    return x


case(
    "masked_scatter",
    masked_scatter_ref,
    *(Input((3, 4), MASK, (5,)), Input((3, 4), MASK[0], (3, 4)), Input((4,), MASK, (9,))),
    Error(RuntimeError, "Number of elements of source < number of ones in mask", (3, 4), MASK, (4,)),
    Error(RuntimeError, "masked_scatter_ only supports boolean masks, but got mask with dtype Lo", (2, 2), TWICE, (4,)),
    Error(RuntimeError, "masked_scatter: expected self and source to have same dtypes but", (3, 4), MASK, np.arange(9)),
)
