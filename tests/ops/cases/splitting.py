"""Parts of a tensor: slices, pieces, diagonals and triangles."""

import numpy as np

import cudagrad

from . import Error, Input, case

RANGE = "Dimension out of range (expected to be in range of [-3, 2], but got 5)"
FIXED = dict(ints=True, complex=True)

# ---- slices

case(
    "narrow",
    lambda x, dim, start, length: np.take(
        x, np.arange(start % max(x.shape[dim], 1), start % x.shape[dim] + length), dim
    ),
    *(
        Input((3, 4), 0, 1, 2),
        Input((3, 4), 1, -2, 1),
        Input((3, 4), dim=-1, start=0, length=4),
        Input((3, 4), 0, 1, 0),
    ),
    Error(RuntimeError, "start (0) + length (5) exceeds dimension size (2).", (2, 3), 0, 0, 5),
    Error(IndexError, "start out of range (expected to be in range of [-2, 2], but got 3)", (2, 3), 0, 3, 0),
    Error(RuntimeError, "narrow(): length must be non-negative.", (2, 3), 0, 0, -1),
    Error(RuntimeError, "narrow() cannot be applied to a 0-dim tensor.", (), 0, 0, 1),
    Error(RuntimeError, "start must be an 0-dim integral Tensor.", (2, 3), 0, np.array([1]), 1),
    Error(IndexError, RANGE, (2, 3, 4), 5, 0, 1),
    **FIXED,
)
case("narrow", lambda x, dim, start, length: x[1:3], Input((4, 2), 0, np.array(1), 2))
case("narrow_copy", lambda x, dim, start, length: x[1:3], Input((4, 2), 0, 1, 2))
case(
    "select",
    lambda x, dim, index: np.take(x, index, dim),
    *(Input((3, 4), 0, 1), Input((3, 4), 1, -1), Input((3, 4, 2), dim=-2, index=2)),
    Error(IndexError, "select(): index 2 out of range for tensor of size [2, 3] at dimension 0", (2, 3), 0, 2),
    Error(IndexError, "select() cannot be applied to a 0-dim tensor.", (), 0, 0),
    Error(IndexError, RANGE, (2, 3, 4), 5, 0),
    **FIXED,
)


def replaced(place):
    def ref(x, src, *args, **named):
        out = np.array(x)
        place(out, *args, **named)[...] = src
        return out

    return ref


case(
    "select_scatter",
    replaced(lambda x, dim, index: np.moveaxis(x, dim, 0)[index]),
    *(Input((3, 4), (4,), 0, 1), Input((3, 4), (3,), dim=1, index=-1)),
    Error(
        RuntimeError,
        "expected src to have a size equal to the slice of self. src size = [3], slice size = [4]",
        (3, 4),
        (3,),
        0,
        1,
    ),
)
case(
    "slice_scatter",
    replaced(lambda x, dim=0, start=None, end=None, step=1: np.moveaxis(x, dim, 0)[start:end:step]),
    *(Input((4, 3), (2, 3), 0, 1, 3), Input((4, 3), (2, 3), start=0, end=4, step=2), Input((2, 3), (2, 3))),
)


def on_diagonal(x, src, offset=0):
    x, i = x.copy(), np.arange(src.size)
    x[i + max(-offset, 0), i + max(offset, 0)] = src
    return x


case("diagonal_scatter", on_diagonal, Input((3, 3), (3,)), Input((3, 4), (2,), -1), Input((3, 4), (3,), offset=1))

# ---- pieces


def split_ref(x, sizes, dim=0):
    if isinstance(sizes, int):
        return np.split(x, range(sizes, x.shape[dim], sizes), dim)
    return np.split(x, np.cumsum(sizes)[:-1], dim)


case(
    "split",
    split_ref,
    *(Input((5, 2), 2), Input((5, 2), [1, 4]), Input((2, 6), 3, 1), Input((2, 6), [1, 2, 3], dim=-1), Input((4, 2), 9)),
    Error(RuntimeError, "split_size can only be 0 if dimension size is 0, but got dimension size of 2", (2, 3), 0),
    Error(RuntimeError, "split expects split_size be non-negative, but got split_size=-1", (2, 3), -1),
    Error(
        RuntimeError,
        "split_with_sizes expects split_sizes to sum exactly to 2 (input tensor's size at dimension 0)",
        (2, 3),
        [1, 2],
    ),
    Error(
        RuntimeError,
        "split_with_sizes expects split_sizes have only non-negative entries, but got split",
        (2, 3),
        [3, -1],
    ),
    Error(RuntimeError, "split expects at least a 1-dimensional tensor", (), 1),
    **FIXED,
)
case("split_with_sizes", split_ref, Input((5, 2), [2, 3]), Input((2, 5), [2, 3], dim=1))
case(
    "chunk",
    lambda x, chunks, dim=0: split_ref(x, -(-x.shape[dim] // chunks), dim),
    *(Input((5, 2), 4), Input((6, 2), 3), Input((2, 7), 3, 1), Input((2, 7), chunks=2, dim=-1)),
    Error(RuntimeError, "chunk expects `chunks` to be greater than 0, got: 0", (2, 3), 0),
    Error(RuntimeError, "chunk expects at least a 1-dimensional tensor", (), 1),
    **FIXED,
)
case("unsafe_split", split_ref, Input((5, 2), 2), Input((2, 6), 3, dim=1))
case("unsafe_split_with_sizes", split_ref, Input((5, 2), [2, 3]), Input((2, 5), [2, 3], dim=1))
case("unsafe_chunk", lambda x, chunks, dim=0: np.split(x, chunks, dim), Input((4, 2), 2), Input((2, 6), 3, dim=1))
case(
    "tensor_split",
    lambda x, where, dim=0: np.array_split(x, where.tolist() if isinstance(where, np.ndarray) else where, dim),
    *(
        Input((5, 2), 4),
        Input((7, 2), [1, 5]),
        Input((2, 7), 3, 1),
        Input((5,), np.array([1, 3])),
        Input((5,), np.array(2)),
    ),
    *(Input((3,), [2, 1]), Input((3,), [9])),
    Error(RuntimeError, "number of sections must be larger than 0, got 0", (2, 3), 0),
    Error(RuntimeError, "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims", (), 1),
    Error(
        RuntimeError,
        "tensor_split expected tensor_indices_or_sections to have dtype of long, but got Int",
        (2,),
        np.array(1, "i4"),
    ),
    Error(
        RuntimeError,
        "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-",
        (2,),
        np.array([[1]]),
    ),
)
case(
    "hsplit",
    np.hsplit,
    *(Input((2, 4), 2), Input((4,), [1, 3])),
    Error(
        RuntimeError,
        "torch.hsplit requires a tensor with at least 1 dimension, but got a tensor with 0 dimensions!",
        (),
        2,
    ),
    Error(
        RuntimeError,
        "torch.hsplit attempted to split along dimension 1, but the size of the dimension 3 is not",
        (2, 3),
        2,
    ),
)
case(
    "vsplit",
    np.vsplit,
    Input((4, 2), 2),
    Error(RuntimeError, "torch.vsplit requires a tensor with at least 2", (2,), 2),
)
case(
    "dsplit",
    np.dsplit,
    Input((2, 2, 4), [1]),
    Error(RuntimeError, "torch.dsplit requires a tensor with at least 3", (2, 2), 2),
)
case(
    "unbind",
    lambda x, dim=0: list(np.moveaxis(x, dim, 0)),
    *(Input((3, 2)), Input((3, 2), 1), Input((2, 3, 4), dim=-1), Input((3,))),
    Error(IndexError, "Dimension specified as 0 but tensor has no dimensions", ()),
    Error(IndexError, RANGE, (2, 3, 4), 5),
    **FIXED,
)

# ---- diagonals and triangles

SAME_DIMS = "diagonal dimensions cannot be identical 0, 0"
case(
    "diagonal",
    lambda x, offset=0, dim1=0, dim2=1: np.diagonal(x, offset, dim1, dim2),
    *(
        Input((3, 4)),
        Input((3, 4), 1),
        Input((3, 4), -2),
        Input((2, 3, 4), 1, 2, 0),
        Input((2, 3, 4), offset=-1, dim1=1, dim2=-1),
    ),
    Input((2, 3), 7),
    Error(RuntimeError, SAME_DIMS, (2, 3), 0, 0, 0),
    Error(IndexError, "Dimension out of range (expected to be in range of [-1, 0], but got 1)", (3,)),
    **FIXED,
)
case(
    "diag",
    lambda x, diagonal=0: np.diag(x, diagonal),
    *(Input((3,)), Input((3,), 2), Input((2,), -1), Input((3, 4)), Input((3, 4), 1), Input((3, 4), diagonal=-1)),
    Error(RuntimeError, "diag(): Supports 1D or 2D tensors. Got 3D", (2, 3, 4)),
    complex=True,
)


def embedded(x, offset=0, dim1=-2, dim2=-1):
    n = x.shape[-1] + abs(offset)
    out = np.zeros((*x.shape[:-1], n, n), x.dtype)
    i = np.arange(x.shape[-1])
    out[..., i + max(-offset, 0), i + max(offset, 0)] = x
    return np.moveaxis(out, (-2, -1), (dim1, dim2))


case(
    "diag_embed",
    embedded,
    *(
        Input((3,)),
        Input((2, 3)),
        Input((2, 3), 1),
        Input((2, 3), -2),
        Input((2, 3), 0, 0, 2),
        Input((2, 3), offset=1, dim1=1, dim2=0),
    ),
    Error(RuntimeError, SAME_DIMS, (2, 3), 0, 0, 0),
    **FIXED,
)
case("diagflat", lambda x, offset=0: np.diagflat(x, offset), Input((2, 3)), Input((3,), 1), Input(()))
for name, ref in (("tril", np.tril), ("triu", np.triu)):
    case(
        name,
        lambda x, diagonal=0, ref=ref: ref(x, diagonal),
        *(Input((3, 4)), Input((3, 4), 1), Input((2, 3, 3), diagonal=-1), Input((0, 3)), Input((2, 33))),
        Error(RuntimeError, f"{name}: input tensor must have at least 2 dimensions", (3,)),
        **FIXED,
    )
for name, ref in (("tril_indices", np.tril_indices), ("triu_indices", np.triu_indices)):
    case(
        name,
        lambda row, col, offset=0, dtype=None, ref=ref: np.stack(ref(row, offset, col)),
        *(Input(3, 3), Input(3, 4, 1), Input(4, 2, offset=-1), Input(0, 3), Input(3, 3, dtype=cudagrad.int32)),
        Error(RuntimeError, "row must be non-negative, got-1", -1, 2),
        Error(NotImplementedError, f"\"{name}\" not implemented for 'Float'", 3, 3, dtype=cudagrad.float32),
        grad=0,
    )


def filled(x, fill_value, wrap=False):
    x = x.copy()
    np.fill_diagonal(x, fill_value, wrap)
    return x


case(
    "Tensor.fill_diagonal_",
    filled,
    *(Input((3, 4), 5), Input((7, 3), 2.5), Input((7, 3), 2.5, True), Input((3, 3, 3), 1), Input((3, 3), fill_value=0)),
    Error(RuntimeError, "dimensions must larger than 1", (3,), 1),
    Error(RuntimeError, "all dimensions of input must be of equal length", (2, 3, 3), 1),
    f=lambda x, *args, **named: x.clone().fill_diagonal_(*args, **named),
)
