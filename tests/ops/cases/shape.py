"""The same elements in another shape, order or broadcast."""

import numpy as np

import cudagrad

from . import Error, Input, case

RANGE = "Dimension out of range (expected to be in range of [-3, 2], but got 5)"
FIXED = dict(ints=True, complex=True)

# ---- view and reshape

MISFIT = "shape '[5, 5]' is invalid for input of size 24"
HOLES = "only one dimension can be inferred"
for name in ("reshape", "Tensor.view"):
    case(
        name,
        lambda x, *shape: x.reshape(*shape),
        *(
            Input((2, 3, 4), [6, 4]),
            Input((2, 3, 4), [-1]),
            Input((2, 1, 4), [2, -1, 2]),
            Input((), [1, 1]),
            Input((1,), []),
        ),
        Input((0, 3), [3, 0]),
        Error(RuntimeError, MISFIT, (2, 3, 4), [5, 5]),
        Error(RuntimeError, "shape '[5, -1]' is invalid for input of size 24", (2, 3, 4), [5, -1]),
        Error(RuntimeError, HOLES, (2, 3, 4), [-1, -1]),
        Error(RuntimeError, "invalid shape dimension -2 at index 0 of shape [-2, 12]", (2, 3, 4), [-2, 12]),
        Error(RuntimeError, "cannot reshape tensor of 0 elements into shape [-1, 0] because", (0, 3), [-1, 0]),
        f=None if name == "reshape" else lambda x, *shape: (x if x.is_contiguous() else x.contiguous()).view(*shape),
        **FIXED,
    )
case("Tensor.reshape", lambda x, *n: x.reshape(n), Input((2, 6), 3, 4), Input((2, 6), 3, -1), Input((2, 6), -1))
case("reshape", lambda x, shape: x.reshape(shape), Input((2, 3), shape=[3, 2]))
case(
    "Tensor.view",
    None,
    Error(
        RuntimeError,
        "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
        "contiguous subspaces). Use .reshape(...) instead.",
        np.zeros((3, 2)).T,
        [6],
    ),
    Error(
        TypeError,
        "view() received an invalid combination of arguments - got (float, int), but expected",
        (2, 3),
        2.0,
        3,
    ),
    Error(TypeError, "view() received an invalid combination of arguments - got (), but expected one of:", (2, 3)),
)
case("reshape", None, Error(TypeError, "must be tuple of ints, but found element of type str at pos 0", (2, 3), ["a"]))
BITS = np.array([[1, 1 << 40, -3], [0, 7, 1 << 33]])
case(
    "Tensor.view",
    lambda x: x.view(np.int32),
    Input(BITS),
    Input(BITS[:, :2]),
    f=lambda x: x.contiguous().view(cudagrad.int32),
    grad=0,
)
case("Tensor.view_as", lambda x, y: x.reshape(y.shape), Input((2, 6), (3, 4)), f=lambda x, y: x.contiguous().view_as(y))
case("Tensor.reshape_as", lambda x, y: x.reshape(y.shape), Input((2, 6), (3, 4)))


def flat(x, start_dim=0, end_dim=-1):
    end = end_dim % x.ndim if x.ndim else 0
    return x.reshape(*x.shape[:start_dim], -1, *x.shape[end + 1 :])


case(
    "flatten",
    flat,
    *(
        Input((2, 3, 4)),
        Input((2, 3, 4), 1),
        Input((2, 3, 4), 0, 1),
        Input((2, 3, 4), start_dim=1, end_dim=-1),
        Input(()),
    ),
    *(Input((3,)), Input((0, 3), 0)),
    Error(RuntimeError, "flatten() has invalid args: start_dim cannot come after end_dim", (2, 3, 4), 2, 1),
    Error(IndexError, RANGE, (2, 3, 4), 5),
    **FIXED,
)
case("ravel", np.ravel, Input((2, 3)), Input(()), **FIXED)
case(
    "unflatten",
    lambda x, dim, sizes: x.reshape(*x.shape[:dim], *sizes, *x.shape[dim + 1 :]),
    *(Input((6, 2), 0, [2, 3]), Input((2, 6), 1, [-1, 2, 1]), Input((2, 6), dim=1, sizes=[3, 2])),
    Error(
        RuntimeError,
        "unflatten: Provided sizes [3, 3] don't multiply up to the size of dim 2 (4) in",
        (2, 3, 4),
        2,
        [3, 3],
    ),
    Error(RuntimeError, "unflatten: sizes must be non-empty", (2, 3, 4), 2, []),
    Error(IndexError, RANGE, (2, 3, 4), 5, [1]),
)

# ---- dims of length 1


def squeezed(x, dim=None):
    dims = range(x.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    return x.squeeze(tuple(d % x.ndim for d in dims if x.ndim and x.shape[d] == 1))


case(
    "squeeze",
    squeezed,
    *(
        Input((1, 3, 1)),
        Input((1, 3, 1), 0),
        Input((1, 3, 1), -1),
        Input((1, 3, 1), 1),
        Input((1, 3, 1), [0, 2]),
        Input(()),
    ),
    *(Input((), 0), Input((1, 3, 1), dim=0)),
    Error(IndexError, RANGE, (2, 3, 4), 5),
    Error(RuntimeError, "dim 0 appears multiple times in the list of dims", (1, 3), [0, 0]),
    **FIXED,
)
case(
    "unsqueeze",
    lambda x, dim: np.expand_dims(x, dim),
    *(Input((2, 3), 0), Input((2, 3), -1), Input((2, 3), 1), Input((2, 3), dim=2), Input((), 0)),
    Error(IndexError, "Dimension out of range (expected to be in range of [-4, 3], but got 9)", (2, 3, 4), 9),
    **FIXED,
)
for name, ref in (("atleast_1d", np.atleast_1d), ("atleast_2d", np.atleast_2d), ("atleast_3d", np.atleast_3d)):
    case(name, ref, Input(()), Input((3,)), Input((2, 3)), Input((2, 3, 4)), Input((3,), ()), ints=True)

# ---- transposes

case(
    "transpose",
    np.swapaxes,
    *(Input((2, 3, 4), 0, 1), Input((2, 3, 4), -1, 0), Input((2, 3, 4), 1, 1)),
    Error(IndexError, RANGE, (2, 3, 4), 0, 5),
    **FIXED,
)
for name in ("swapaxes", "swapdims"):
    case(name, np.swapaxes, Input((2, 3, 4), 0, 2), Error(IndexError, RANGE, (2, 3, 4), 0, 5))
case(
    "permute",
    lambda x, dims: x.transpose(dims),
    *(Input((2, 3, 4), [2, 0, 1]), Input((2, 3, 4), [-1, 1, 0]), Input((2, 3), dims=[1, 0]), Input((), [])),
    Error(RuntimeError, "permute(): duplicate dims are not allowed.", (2, 3, 4), [0, 1, 1]),
    Error(
        RuntimeError, "permute(sparse_coo): number of dimensions in the tensor input does not match", (2, 3, 4), [0, 1]
    ),
    Error(IndexError, RANGE, (2, 3, 4), [0, 1, 5]),
    **FIXED,
)
for name in ("movedim", "moveaxis"):
    case(
        name,
        np.moveaxis,
        *(Input((2, 3, 4), 0, 2), Input((2, 3, 4), -1, 0), Input((2, 3, 4), [0, 1], [2, 0]), Input((2, 3, 4), 1, 1)),
        Error(IndexError, RANGE, (2, 3, 4), 0, 5),
        Error(RuntimeError, "movedim: repeated dim in `source` ([0, 0])", (2, 3, 4), [0, 0], [0, 1]),
        Error(RuntimeError, "movedim: repeated dim in `destination` ([1, 1])", (2, 3, 4), [0, 1], [1, 1]),
        Error(
            RuntimeError, "movedim: Invalid source or destination dims: source ([0, 1] dims)", (2, 3, 4), [0, 1], [0]
        ),
    )
case(
    "t",
    np.transpose,
    *(Input((2, 3)), Input((3,)), Input(())),
    Error(RuntimeError, "t() expects a tensor with <= 2 dimensions, but self is 3D", (2, 3, 4)),
    **FIXED,
)
case("Tensor.T", np.transpose, Input((2, 3)), f=lambda x: x.T)
case(
    "Tensor.mT",
    lambda x: np.swapaxes(x, -1, -2),
    *(Input((2, 3)), Input((2, 3, 4))),
    Error(RuntimeError, "tensor.mT is only supported on matrices or batches of matrices. Got 1-D tensor.", (3,)),
    f=lambda x: x.mT,
)
case(
    "Tensor.mH",
    lambda x: np.conj(np.swapaxes(x, -1, -2)),
    *(Input((2, 3)), Input((2, 3, 4))),
    Error(RuntimeError, "tensor.mH is only supported on matrices or batches of matrices. Got 1-D tensor.", (3,)),
    f=lambda x: x.mH,
    complex=True,
)
case(
    "Tensor.H",
    lambda x: np.conj(x.T),
    Input((2, 3)),
    Error(RuntimeError, "tensor.H is only supported on matrices (2-D tensors). Got 1-D tensor.", (3,)),
    Error(RuntimeError, "tensor.H is only supported on matrices (2-D tensors). Got 3-D tensor. For batches", (2, 3, 4)),
    f=lambda x: x.H,
    complex=True,
)
case(
    "adjoint",
    lambda x: np.conj(np.swapaxes(x, -1, -2)),
    Input((2, 3)),
    Error(RuntimeError, "tensor.adjoint() is only supported on matrices or batches of matrices. Got 1-D tensor.", (3,)),
    complex=True,
)

# ---- flips and rolls

case(
    "flip",
    lambda x, dims: np.flip(x, dims),
    *(Input((2, 3), [0]), Input((2, 3, 4), [0, -1]), Input((2, 3), dims=[1]), Input((2, 3), [])),
    Error(RuntimeError, "dim 0 appears multiple times in the list of dims", (2, 3), [0, 0]),
    Error(IndexError, RANGE, (2, 3, 4), [5]),
    **FIXED,
)
case("Tensor.flip", lambda x, *dims: np.flip(x, dims), Input((2, 3), 0), Input((2, 3), 0, 1))
case("fliplr", np.fliplr, Input((2, 3)), Error(RuntimeError, "Input must be >= 2-d.", (3,)))
case("flipud", np.flipud, Input((2, 3)), Error(RuntimeError, "Input must be >= 1-d.", ()))


def rolled(x, shifts, dims=None):
    return np.roll(x, shifts, dims if dims else None)


case(
    "roll",
    rolled,
    *(Input((2, 3), 1), Input((2, 3), 2, 1), Input((2, 3), [1, -1], [0, 1]), Input((2, 3), shifts=-4, dims=1)),
    Error(RuntimeError, "`shifts` required", (2, 3), []),
    Error(RuntimeError, "shifts and dimensions must align. shifts: 2, dims:1", (2, 3), [1, 2], 0),
    Error(IndexError, RANGE, (2, 3, 4), 1, 5),
    **FIXED,
)
case(
    "rot90",
    lambda x, k=1, dims=(0, 1): np.rot90(x, k, dims),
    *(Input((2, 3)), Input((2, 3), 2), Input((2, 3, 4), -1, [0, 2]), Input((2, 3, 4), 3, [1, 2]), Input((2, 3), k=4)),
    Error(RuntimeError, "expected rotation dims to be different, but got dim0 = 0 and dim1 = 0", (2, 3), 1, [0, 0]),
    Error(RuntimeError, "expected total rotation dims == 2, but got dims = 1", (2, 3), 1, [0]),
    Error(RuntimeError, "expected total dims >= 2, but got total dims = 1", (3,), 1, [0, 1]),
    **FIXED,
)

# ---- broadcasting

case(
    "Tensor.expand",
    lambda x, *size: np.broadcast_to(x, size),
    *(Input((1, 3), 2, 3), Input((3,), 2, 4, 3), Input((), 2, 3), Input((2, 1, 3), 2, 4, 3), Input((1, 0), 2, 0)),
    Error(
        RuntimeError,
        "The expanded size of the tensor (3) must match the existing size (2) at non-singleton dimension 0.  "
        "Target sizes: "
        "[3, 3].  Tensor sizes: [2, 3]",
        (2, 3),
        3,
        3,
    ),
    Error(
        RuntimeError,
        "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension 0",
        (3,),
        -1,
        3,
    ),
    **FIXED,
)
case("Tensor.expand", lambda x, *size: np.broadcast_to(x, (2, 3)), Input((1, 3), 2, -1), Input((1, 3), [2, -1]))
case("broadcast_to", lambda x, size: np.broadcast_to(x, size), Input((1, 3), [2, 3]), Input((3,), size=[2, 3]))
case("Tensor.expand_as", lambda x, y: np.broadcast_to(x, y.shape), Input((1, 3), (2, 3)), wrt=[0])
case(
    "broadcast_tensors",
    np.broadcast_arrays,
    Input((2, 1), (3,), ()),
    Error(
        RuntimeError,
        "The size of tensor a (4) must match the size of tensor b (5) at non-singleton dimension 1",
        (3, 4),
        (5,),
    ),
)
case(
    "broadcast_shapes",
    lambda *shapes: np.array(np.broadcast_shapes(*shapes)),
    *(Input([2, 1], [3]), Input(3, [2, 1]), Input()),
    Error(
        RuntimeError,
        "Attempting to broadcast a dimension of length 4 at -1! Mismatching argument at index 1",
        [2, 3],
        [4],
    ),
    grad=0,
    f=lambda *shapes: np.array(cudagrad.broadcast_shapes(*shapes)),
)


def summed(x, *size):
    fresh = x.ndim - len(size)
    x = x.sum(tuple(range(fresh)))
    return x.sum(tuple(d for d, n in enumerate(size) if n == 1), keepdims=True)


case(
    "Tensor.sum_to_size",
    summed,
    *(Input((2, 3), 3), Input((2, 3), 1, 3), Input((2, 3), 2, 1), Input((2, 3), 2, 3), Input((4, 2, 3), 2, 1)),
    *(Input((64, 8), 8), Input((4, 16, 9), 9), Input((0, 3), 3), Input((33, 1, 40), 1, 40)),
    Error(RuntimeError, "size {[2, 5]} is not expandable to size {[2, 3]}.", (2, 3), 2, 5),
    complex=True,
)

# ---- copies and windows

case("clone", np.copy, Input((2, 3)), Input(()), **FIXED)
case("Tensor.contiguous", np.copy, Input((2, 3)), Input(np.arange(6.0).reshape(2, 3).T))


def unfolded(x, dim, size, step):
    if x.ndim == 0:
        return x.reshape(1)
    starts = range(0, x.shape[dim] - size + 1, step)
    return np.stack([np.moveaxis(np.take(x, range(s, s + size), dim), dim, -1) for s in starts], dim)


case(
    "Tensor.unfold",
    unfolded,
    *(
        Input((7,), 0, 3, 1),
        Input((7,), 0, 3, 2),
        Input((2, 5), 1, 2, 2),
        Input((5, 2), 0, 2, 1),
        Input((2, 5), 1, 1, 3),
    ),
    Input((), 0, 1, 1),
    Error(RuntimeError, "maximum size for tensor at dimension 0 is 2 but size is 5", (2, 3), 0, 5, 1),
    Error(RuntimeError, "step is 0 but must be > 0", (2, 3), 0, 1, 0),
    Error(RuntimeError, "size is -1 but must be >= 0", (2, 3), 0, -1, 1),
    **FIXED,
)


def strided(x, size, stride, storage_offset=0):
    places = storage_offset + sum(np.indices(size)[d] * s for d, s in enumerate(stride))
    return x.reshape(-1)[places]


case(
    "as_strided",
    strided,
    *(Input((12,), [3, 2], [2, 1]), Input((12,), [3, 3], [1, 1], 2), Input((3, 4), [2, 2], [1, 4], 1)),
    Error(RuntimeError, "mismatch in length of strides and shape", (4,), [2], [1, 1]),
    Error(
        RuntimeError, "as_strided: Negative strides are not supported at the moment, got strides: [-1]", (4,), [2], [-1]
    ),
    Error(RuntimeError, "Tensor: invalid storage offset -1", (4,), [2], [1], -1),
    Error(
        RuntimeError,
        "setStorage: sizes [100], strides [1], storage offset 0, and itemsize 8 requiring a storage size of "
        "800 are out of "
        "bounds for storage of size 32",
        np.zeros(4, int),
        [100],
        [1],
    ),
    f=lambda x, *args, **named: x.clone(memory_format=cudagrad.contiguous_format).as_strided(*args, **named),
    complex=True,
)
