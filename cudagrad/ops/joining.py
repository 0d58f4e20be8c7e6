"""Several tensors as one, and one tensor several times."""

import itertools
import operator
import warnings

import numpy as np

from .. import errors
from ..backend import xp_of
from ..core.op import TABLE, op
from ..core.promote import promote_all
from ..core.shape import check_dim
from ..core.tensor import Tensor, wrap
from .broadcasting import expand
from .checks import ndim_of
from .gathering import rows
from .shape import atleast_1d, atleast_2d, atleast_3d, reshape
from .sizes import sizes_of

__all__ = (
    *("block_diag", "cartesian_prod", "cat", "column_stack", "combinations", "concat", "concatenate", "dstack"),
    *("hstack", "meshgrid", "repeat_interleave", "row_stack", "stack", "tile", "vstack"),
)

# ---- one after the other


def _alike(tensors):
    """The one shape of a list of tensors with dims; None where it is no such list."""
    if tensors.__class__ not in (list, tuple) or not tensors:
        return None
    try:
        shape = tensors[0].array.shape
        for t in tensors:
            if t.array.shape != shape:
                return None
    except AttributeError:
        return None
    return shape


def _cat(tensors, dim=0, *, axis=None):
    dim, shape = dim if axis is None else axis, _alike(tensors)
    if shape:
        return tensors, check_dim(dim, len(shape))
    _check_list("cat", tensors)
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    shapes = [t.array.shape for t in tensors]
    if (0,) in shapes and any(len(s) != 1 for s in shapes):
        tensors = promote_all(TABLE["cat"], tensors)  # the dtype of an empty one still counts
        tensors = [t for t in tensors if t.array.shape != (0,)]
        shapes = [t.array.shape for t in tensors]
    first = shapes[0]
    dim = check_dim(dim, len(first)) if first else dim
    for i, s in enumerate(shapes):
        if not s:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
        if s != first:
            _check_joins(first, s, dim, i)
    return tensors, dim


def _check_joins(first, shape, dim, i):
    """RuntimeError where ``shape`` differs from the first tensor's in another dim than ``dim``."""
    if len(shape) != len(first):
        raise RuntimeError(f"Tensors must have same number of dimensions: got {len(first)} and {len(shape)}")
    for d, (m, n) in enumerate(zip(first, shape)):
        if m != n and d != dim:
            raise RuntimeError(
                errors.text(
                    f"Sizes of tensors must match except in dimension {dim}. Expected size {m} but got size {n} for "
                    f"tensor number {i} in the list.",
                    f"got {first} first and {shape} at {i}",
                )
            )


def _check_list(function, tensors):
    """TypeError where ``tensors`` is no list or tuple of Tensors."""
    if not isinstance(tensors, (list, tuple)):
        what = type(tensors).__name__
        raise TypeError(f"{function}(): argument 'tensors' (position 1) must be tuple of Tensors, not {what}")
    for i, t in enumerate(tensors):
        if not isinstance(t, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(t).__name__}")


def _cut(m, g, xs_shape, needs, dim):
    """The piece of ``g`` that each tensor became."""
    pieces, start = [], 0
    for shape, needed in zip(xs_shape, needs):
        pieces.append(m.narrow(g, dim=dim, start=start, length=shape[dim]) if needed else None)
        start += shape[dim]
    return pieces


@op(prepare=_cat, joint=_cut, promote=("xs",))
def cat(xp, *xs, dim):
    """The tensors one after the other along dim ``dim``.

    Shapes      equal but for ``dim``; tensors of shape (0,) are left out
    Dtypes      promoted to one
    Raises      ValueError for no tensors, RuntimeError where the shapes differ
    """
    return xp.concatenate(xs, dim)


def concat(tensors, dim=0, *, axis=None, out=None):
    """``cat(tensors, dim)``."""
    return cat(tensors, dim, axis=axis, out=out)


def concatenate(tensors, dim=0, *, axis=None, out=None):
    """``cat(tensors, dim)``."""
    return cat(tensors, dim, axis=axis, out=out)


def _stack(tensors, dim=0, *, axis=None):
    dim, shape = dim if axis is None else axis, _alike(tensors)
    if shape is not None:
        return tensors, check_dim(dim, len(shape) + 1)
    _check_list("stack", tensors)
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    first = tensors[0].array.shape
    for i, t in enumerate(tensors):
        if t.array.shape != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and "
                f"{list(t.array.shape)} at entry {i}"
            )
    return tensors, check_dim(dim, len(first) + 1)


def _pick(m, g, needs, dim):
    return [m.select(g, dim=dim, index=i) if needed else None for i, needed in enumerate(needs)]


@op(prepare=_stack, joint=_pick, promote=("xs",))
def stack(xp, *xs, dim):
    """The tensors side by side along a new dim ``dim``.

    Shapes      all equal
    Dtypes      promoted to one
    Raises      RuntimeError for no tensors, or where the shapes differ
    """
    return xp.stack(xs, dim)


def _grown(function, tensors, grow):
    if not isinstance(tensors, Tensor) and not tensors:
        raise RuntimeError(f"{function} expects a non-empty TensorList")
    _check_list(function, tensors)
    return [grow(t) for t in tensors]


def hstack(tensors, *, out=None):
    """The tensors one after the other along columns; along dim 0 where they are 1-d or 0-d."""
    tensors = _grown("hstack", tensors, atleast_1d)
    return cat(tensors, 0 if tensors[0].array.ndim == 1 else 1, out=out)


def vstack(tensors, *, out=None):
    """The tensors, each at least one row, one below the other."""
    return cat(_grown("vstack", tensors, atleast_2d), 0, out=out)


def row_stack(tensors, *, out=None):
    """``vstack(tensors)``."""
    return vstack(tensors, out=out)


def dstack(tensors, *, out=None):
    """The tensors, each at least 3-d, one behind the other."""
    return cat(_grown("dstack", tensors, atleast_3d), 2, out=out)


def column_stack(tensors, *, out=None):
    """The tensors side by side, the 1-d and 0-d ones as columns."""
    columns = _grown("column_stack", tensors, lambda t: t if t.array.ndim > 1 else reshape(t, (-1, 1)))
    return cat(columns, 1, out=out)


def _block_diag(*tensors):
    if len(tensors) == 1 and not isinstance(tensors[0], Tensor):
        tensors = tensors[0]
    _check_list("block_diag", tensors)
    for i, t in enumerate(tensors):
        if t.array.ndim > 2:
            raise RuntimeError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {t.array.ndim} "
                "dimensions"
            )
    return ([atleast_2d(t) for t in tensors] or [wrap(np.empty((1, 0), np.float32))],)


def _blocks(shapes):
    """The place of each block: slices of the rows and of the columns."""
    places, row, column = [], 0, 0
    for height, width in shapes:
        places.append((slice(row, row + height), slice(column, column + width)))
        row, column = row + height, column + width
    return places


def _block_gradients(m, g, xs_shape, needs):
    return [m.part(g, index=place) if needed else None for place, needed in zip(_blocks(xs_shape), needs)]


@op(prepare=_block_diag, joint=_block_gradients, promote=("xs",))
def block_diag(xp, *xs):
    """The matrices along the diagonal of one that is zero elsewhere; 1-d and 0-d tensors count as a row.

    Dtypes      promoted to one
    """
    out = xp.zeros((sum(x.shape[0] for x in xs), sum(x.shape[1] for x in xs)), xs[0].dtype)
    for x, place in zip(xs, _blocks([x.shape for x in xs])):
        out[place] = x
    return out


# ---- grids and choices


def meshgrid(*tensors, indexing=None):
    """The coordinates of a grid, one expanded tensor for each of the 1-d ``tensors``; a tuple.

    ``indexing``: "ij" (dim i runs along tensor i) or "xy" (the first two the other way round).

    Raises      RuntimeError for no tensors, tensors of more dims, of several dtypes, or another ``indexing``
    """
    if len(tensors) == 1 and not isinstance(tensors[0], Tensor):
        tensors = tuple(tensors[0])
    if indexing is None:
        warnings.warn(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.",
            UserWarning,
            stacklevel=2,
        )
    elif indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for t in tensors:
        if t.array.ndim > 1:
            first = f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {t.array.ndim}D"
            raise RuntimeError(errors.text(first, f"got {t.dtype} {tuple(t.shape)}"))
        if t.array.dtype is not tensors[0].array.dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    swap = indexing == "xy" and len(tensors) >= 2
    grids = _grid((tensors[1], tensors[0], *tensors[2:]) if swap else tensors)
    if not swap:
        return grids
    return grids[1], grids[0], *grids[2:]


def _grid(tensors):
    shape = tuple([t.array.size for t in tensors])
    ndim = len(shape)
    return tuple(
        expand(reshape(t, (1,) * i + (shape[i],) + (1,) * (ndim - i - 1)), shape) for i, t in enumerate(tensors)
    )


def _check_vectors(tensors):
    for t in tensors:
        if t.array.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(t.array.shape)}")


def cartesian_prod(*tensors):
    """Every choice of one element from each of the 1-d ``tensors``, a row each.

    Shapes      out [product of lengths, number of tensors]; one tensor comes back as it is
    """
    _check_vectors(tensors)
    if len(tensors) == 1:
        return tensors[0]
    return stack([reshape(g, (-1,)) for g in _grid(tensors)], 1)


def combinations(input, r=2, with_replacement=False):
    """Every choice of ``r`` elements of the 1-d ``input``, in the order of their places, a row each."""
    _check_vectors((input,))
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    xp = xp_of(input.array)
    if r == 0:
        return wrap(xp.empty((0,), input.array.dtype))
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = np.array(list(choose(range(input.array.size), r)), np.int64).reshape(-1, r)  # [choices, r]
    return rows(input, wrap(xp.asarray(places)), dim=0)


# ---- one tensor several times


def _repeat(input, *sizes, repeats=None):
    ndim = ndim_of(input, "repeat")
    times = () if not sizes and repeats is None and ndim == 0 else sizes_of(sizes, repeats, "repeat", "repeats")
    if len(times) < ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    shape = (1,) * (len(times) - ndim) + input.array.shape
    whole = [n * k for n, k in zip(shape, times)]
    for n in whole:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {whole}")
    return input, times


def _interleaved(shape, times):
    """``shape`` with the count of repetitions before each dim, and with 1 in its place."""
    shape = (1,) * (len(times) - len(shape)) + tuple(shape)
    whole = tuple(itertools.chain.from_iterable(zip(times, shape)))
    return whole, tuple(itertools.chain.from_iterable((1, n) for n in shape))


def _repeat_back(m, g, x_shape, repeats):
    whole, ones = _interleaved(x_shape, repeats)
    return m.reshape(m.sum_to(m.reshape(g, shape=whole), shape=ones), shape=x_shape)


@op(prepare=_repeat, x=_repeat_back)
def repeat(xp, x, *, repeats):
    """x laid out ``repeats`` times along each dim, new leading dims included; a copy.

    Shapes      out.shape[i] = repeats[i] * x.shape[i]
    Derivative  the sum over the repetitions
    """
    return xp.tile(x, repeats)


def tile(input, *sizes, dims=None):
    """``input.repeat``, with ones put before ``dims`` where it names fewer dims than there are."""
    times = sizes_of(sizes, dims, "tile", "dims")
    return repeat(input, (1,) * (input.array.ndim - len(times)) + times)


def _each_back(m, g, x_shape, dim, repeats):
    whole = (*x_shape[: dim + 1], repeats, *x_shape[dim + 1 :])
    ones = (*x_shape[: dim + 1], 1, *x_shape[dim + 1 :])
    return m.reshape(m.sum_to(m.reshape(g, shape=whole), shape=ones), shape=x_shape)


@op(x=_each_back, node="View")
def repeat_each(xp, x, *, dim, repeats):
    """x with each of its slices along ``dim`` ``repeats`` times in a row; a copy."""
    return xp.repeat(x, repeats, dim)


def repeat_interleave(input, repeats=None, dim=None, *, output_size=None):
    """``input`` with each slice along ``dim`` in a row as often as ``repeats`` (an int, or a count a slice) says.

    Without ``dim`` over the elements row by row. ``repeat_interleave(counts)`` gives the place of each copy.

    Raises      RuntimeError where the counts are negative or do not fit
    """
    if repeats is None:
        counts = _check_counts(input)
        return wrap(_places(xp_of(counts), counts, output_size).astype(counts.dtype, copy=False))
    if dim is None:
        input, dim = reshape(input, (-1,)), 0
    if input.array.ndim == 0:
        input = reshape(input, (1,))
    dim = check_dim(dim, input.array.ndim)
    if not isinstance(repeats, Tensor):
        if operator.index(repeats) < 0:
            raise RuntimeError("Repeats must be non-negative")
        return repeat_each(input, dim=dim, repeats=operator.index(repeats))
    counts, length = _check_counts(repeats), input.array.shape[dim]
    if counts.ndim == 0 or counts.size == 1:
        counts = xp_of(counts).broadcast_to(counts.reshape(-1), (length,))
    elif counts.size != length:
        raise RuntimeError(
            f"repeats must have the same size as input along dim, but got repeats.size(0) = {counts.size} and "
            f"input.size({dim}) = {length}"
        )
    return rows(input, wrap(_places(xp_of(counts), counts, output_size)), dim=dim)


def _check_counts(repeats):
    counts = repeats.array
    if counts.dtype.kind not in "iu" or counts.itemsize < 4:
        raise NotImplementedError(f"\"repeat_interleave_cpu\" not implemented for '{repeats.dtype.legacy}'")
    if counts.ndim > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if counts.size and int(counts.min()) < 0:
        raise RuntimeError("repeats can not be negative")
    return counts


def _places(xp, counts, output_size):
    """0 as often as the first count says, then 1, ...: the ends are searched for each place of the output."""
    ends = xp.cumsum(counts.reshape(-1), dtype=np.int64)
    total = int(ends[-1]) if ends.size else 0
    if output_size is not None and output_size != total:
        raise RuntimeError("allocated size does not match required size")
    return xp.searchsorted(ends, xp.arange(total, dtype=np.int64), side="right").astype(np.int64)


METHODS = ("repeat", "repeat_interleave", "tile")
