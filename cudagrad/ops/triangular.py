"""Diagonals and triangles: matrices from them, and matrices without the rest."""

import numpy as np

from .. import dtypes
from ..core.op import TABLE, op
from ..core.shape import check_dim, strided
from ..core.writable import check_writable
from .checks import ndim_of
from .factory import build, finish, target_of
from .gathering import fill_number
from .shape import reshape
from .splitting import diagonal_of

__all__ = ("diag", "diag_embed", "diagflat", "tril", "tril_indices", "triu", "triu_indices")

# ---- triangles


def _triangle(name):
    def prepare(input, diagonal=0):
        if ndim_of(input, name) < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
        return input, diagonal

    return prepare


@op(prepare=_triangle("tril"), x=lambda m, g, diagonal: m.tril(g, diagonal=diagonal))
def tril(xp, x, *, diagonal):
    """The lower triangle of each matrix, up to ``diagonal`` places right of the main one; 0 elsewhere.

    Shapes      x, out [..., M, N]
    Raises      RuntimeError for fewer than two dims
    """
    return xp.tril(x, diagonal)


@op(prepare=_triangle("triu"), x=lambda m, g, diagonal: m.triu(g, diagonal=diagonal))
def triu(xp, x, *, diagonal):
    """The upper triangle of each matrix, from ``diagonal`` places right of the main one on; 0 elsewhere.

    Shapes      x, out [..., M, N]
    Raises      RuntimeError for fewer than two dims
    """
    return xp.triu(x, diagonal)


def _triangle_indices(name, row, col, offset, dtype, device, layout):
    """The places of a triangle of a ``row`` by ``col`` matrix, row by row: a tensor [2, count]."""
    for count, what in ((row, "row"), (col, "col")):
        if count < 0:
            raise RuntimeError(f"{what} must be non-negative, got{count}")
    d = dtypes.int64 if dtype is None else dtype
    if d.name not in ("int32", "int64"):
        raise NotImplementedError(f"\"{name}\" not implemented for '{d.legacy}'")
    inside = np.tri(row, col, offset if name == "tril_indices" else offset - 1, bool)
    places = np.stack((inside if name == "tril_indices" else ~inside).nonzero()).astype(d.numpy)
    return finish(build(target_of(device, layout), lambda xp: xp.asarray(places)))


def tril_indices(row, col, offset=0, *, dtype=None, device=None, layout=strided):
    """The places of the lower triangle of a ``row`` by ``col`` matrix, row by row.

    Shapes      out [2, count]
    Dtypes      int64 unless ``dtype`` says int32
    """
    return _triangle_indices("tril_indices", row, col, offset, dtype, device, layout)


def triu_indices(row, col, offset=0, *, dtype=None, device=None, layout=strided):
    """The places of the upper triangle of a ``row`` by ``col`` matrix, row by row.

    Shapes      out [2, count]
    Dtypes      int64 unless ``dtype`` says int32
    """
    return _triangle_indices("triu_indices", row, col, offset, dtype, device, layout)


# ---- matrices of diagonals


def _diag_embed(input, offset=0, dim1=-2, dim2=-1):
    ndim = ndim_of(input, "diag_embed") + 1
    first, second = check_dim(dim1, max(ndim, 1)), check_dim(dim2, max(ndim, 1))
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return input, offset, first, second


@op(
    prepare=_diag_embed,
    x=lambda m, g, offset, dim1, dim2: m.diagonal(g, offset=offset, dim1=dim1, dim2=dim2),
)
def diag_embed(xp, x, *, offset, dim1, dim2):
    """Square matrices in the dims ``dim1`` and ``dim2`` with the last dim of x on a diagonal, 0 elsewhere.

    Shapes      x [..., N]; out one dim more, the two of length N + abs(offset)
    """
    n = x.shape[-1] + abs(offset)
    shape = list(x.shape[:-1])
    for d in sorted((dim1, dim2)):
        shape.insert(d, n)
    out = xp.zeros(tuple(shape), x.dtype)
    diagonal_of(xp, out, offset, dim1, dim2)[...] = x
    return out


@op(x=lambda m, g, x_shape, offset: m.on_diagonal(g, shape=x_shape, offset=offset, dim1=0, dim2=1), node="DiagonalCopy")
def diagonal_copy(xp, x, *, offset):
    """A copy of a diagonal of the matrix x."""
    return diagonal_of(xp, x, offset, 0, 1).copy()


def diag(input, diagonal=0, *, out=None):
    """The matrix with a 1-d ``input`` on its diagonal, or a copy of the diagonal of a 2-d one.

    Raises      RuntimeError for any other number of dims
    """
    ndim = input.array.ndim
    if ndim not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {ndim}D")
    if ndim == 1:
        return diag_embed(input, diagonal, out=out)
    return TABLE["diagonal_copy"].raw(input, offset=diagonal, out=out)


def diagflat(input, offset=0):
    """The matrix with all elements of ``input``, row by row, on its diagonal."""
    return diag_embed(reshape(input, (-1,)), offset)


@op(x=lambda m, g, wrap: m.fill_diagonal(g, value=0, wrap=wrap))
def fill_diagonal(xp, x, *, value, wrap):
    """x with ``value`` where all its places are equal; of tall matrices again below a free row, with ``wrap``."""
    out = x.copy()
    _main_diagonal(out, wrap)[...] = value
    return out


def _main_diagonal(array, wrap):
    """The view of a contiguous array's main diagonal."""
    step = sum(array.strides) // array.itemsize or 1  # there are no steps in an array of no elements
    width = array.shape[-1]
    end = None if wrap or array.ndim > 2 or array.shape[0] <= width else width * width
    return array.reshape(-1)[:end:step]


def fill_diagonal_(self, fill_value, wrap=False):
    """Write ``fill_value`` on the main diagonal, in place.

    Raises      RuntimeError for fewer than two dims, or for unequal lengths of three or more
    """
    shape = self.array.shape
    if len(shape) < 2:
        raise RuntimeError("dimensions must larger than 1")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    value = fill_number(fill_value, self.dtype)
    check_writable(self)
    return self.copy_(TABLE["fill_diagonal"].raw(self, value=value, wrap=wrap))


METHODS = ("diag", "diag_embed", "diagflat", "tril", "triu", "fill_diagonal_")
INPLACE = ("tril", "triu")
