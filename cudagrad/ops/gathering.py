"""Reading and writing at places given by integer tensors: whole slices, or single elements along one dim."""

import numpy as np

from .. import errors
from ..core.inplace import bump, rebase
from ..core.modes import MODE
from ..core.op import SAME, op
from ..core.shape import check_dim
from ..core.tensor import Tensor
from ..core.views import alias
from ..core.writable import check_apart, check_writable
from .checks import looks, ndim_of
from .factory import filling
from .segments import add_rows, put_rows

__all__ = ()

SAFE = 65504.0  # numbers up to here fit every floating dtype

# ---- the arrays below: x as [P, M, S] or flat, the index as places in it


def out_of_range(index, size, dim):
    """The IndexError for an array of indices of which one is not in ``-size ... size - 1``."""
    if size == 0:
        return IndexError("index is out of bounds for dimension with size 0")
    bad = index[(index < -size) | (index >= size)].reshape(-1)
    return IndexError(f"index {int(bad[0])} is out of bounds for dimension {dim} with size {size}")


def largest_unsigned(index):
    """The largest place in a non-empty ``index``, a negative one counting as larger than any: one pass finds both."""
    return int(index.view(f"u{index.itemsize}").max())


def in_range(xp, index, size, dim):
    """``index`` as int64 with negative places counted from the front; IndexError for one out of range.

    On a GPU a place out of range is one that CuPy wraps round.
    """
    index = index.astype(np.int64, copy=False)
    if not index.size:
        return index
    if not looks(index):
        return xp.where(index < 0, index + size, index)
    if largest_unsigned(index) < size:
        return index
    if int(index.min()) < -size or int(index.max()) >= size:
        raise out_of_range(index, size, dim)
    return xp.where(index < 0, index + size, index)


def as_rows(x, dim):
    """``x`` as [P*M, S], with M its dim ``dim``; a view where x is contiguous. And P."""
    before = 1
    for n in x.shape[:dim]:
        before *= n
    after = 1
    for n in x.shape[dim + 1 :]:
        after *= n
    return x.reshape(before * x.shape[dim], after), before


def _row_places(xp, index, before, size):
    """The places in [P*M, S] of the rows ``index`` (flat) of each of the P blocks, flat."""
    return index if before == 1 else (xp.arange(before)[:, None] * size + index).reshape(-1)


def write_rows(xp, x, index, y, dim, write):
    """Apply ``write(xp, rows, places, values)`` to the array ``x`` in place, at ``index`` of dim ``dim``."""
    x = x if x.ndim else x.reshape(1)
    target = x if x.flags.c_contiguous else x.copy(order="C")
    rows, before = as_rows(target, dim)
    index = in_range(xp, index, x.shape[dim], 0).reshape(-1)
    if not index.size or not x.size:
        return
    values = y.reshape(before * index.size, -1) if hasattr(y, "reshape") else y
    write(xp, rows, _row_places(xp, index, before, x.shape[dim]), values)
    if target is not x:
        x[...] = target


# ---- whole slices: rows


def _take(xp, x, index, dim):
    if xp is np:
        return x.take(index, dim)
    return x.take(in_range(xp, index, x.shape[dim], dim), dim)


def _take_text(error, x, index, **options):
    if isinstance(error, IndexError):
        return out_of_range(index, x.shape[options["dim"]], 0)
    return None


def _add_rows(xp, total, g, index, dim):
    write_rows(xp, total, index, g, dim, add_rows)


@op(
    x=lambda m, g, index, x_shape, dim: m.rows_sum(g, index, shape=x_shape, dim=dim),
    adds=_add_rows,
    explain=_take_text,
    node="Index",
)
def rows(xp, x, index, *, dim):
    """The slices of x along ``dim`` at the places ``index``, negative ones counted from the end; a copy.

    Shapes      out x.shape[:dim] + index.shape + x.shape[dim+1:]
    Derivative  the gradients of a slice that was taken several times add up, in a fixed order
    Raises      IndexError for a place out of range
    """
    return _take(xp, x, index, dim)


def _rows_like(m, g, index, shape, dim):
    """The slices of g at ``index``, in the shape of what was written there: also 0-d ones count as one element."""
    d = m.rows(g, index, dim=dim)
    return d if tuple(d.shape) == tuple(shape) else m.reshape(d, shape=shape)


@op(x=lambda m, g, index, x_shape, dim: _rows_like(m, g, index, x_shape, dim))
def rows_sum(xp, x, index, *, shape, dim):
    """Zeros of ``shape`` with the slices x added at ``index`` of dim ``dim``: the adjoint of rows."""
    out = xp.zeros(shape, x.dtype)
    write_rows(xp, out, index, x, dim, add_rows)
    return out


def target_of_write(xp, x, inplace):
    """The array to write into: x, or a copy of it (an array also where x came as a NumPy scalar)."""
    return x if inplace else xp.array(x)


@op(x=SAME, y=lambda m, g, index, y_shape, dim: _rows_like(m, g, index, y_shape, dim), node="IndexAdd")
def rows_add(xp, x, index, y, *, dim, inplace=False):
    """x with the slices y added at ``index`` of dim ``dim``; ``inplace`` in x's own memory."""
    out = target_of_write(xp, x, inplace)
    write_rows(xp, out, index, y, dim, add_rows)
    return out


@op(
    x=lambda m, g, index, dim: m.rows_fill(g, index, dim=dim, value=0),
    y=lambda m, g, index, y_shape, dim: _rows_like(m, g, index, y_shape, dim),
    node="IndexCopy",
)
def rows_put(xp, x, index, y, *, dim, inplace=False):
    """x with its slices at ``index`` of dim ``dim`` replaced by y; of equal places the last wins."""
    out = target_of_write(xp, x, inplace)
    write_rows(xp, out, index, y, dim, put_rows)
    return out


@op(x=lambda m, g, index, dim: m.rows_fill(g, index, dim=dim, value=0), node="IndexFill")
def rows_fill(xp, x, index, *, dim, value, inplace=False):
    """x with its slices at ``index`` of dim ``dim`` filled with a number."""
    out = target_of_write(xp, x, inplace)
    write_rows(xp, out, index, value, dim, put_rows)
    return out


# ---- single elements along one dim


def element_places(xp, index, shape, dim):
    """The place in a row-major array of ``shape`` of the element at ``index[i, j, ...]`` of dim ``dim``, flat."""
    places, step = 0, 1
    for d in reversed(range(index.ndim)):
        along = index if d == dim else xp.arange(index.shape[d]).reshape((-1,) + (1,) * (index.ndim - 1 - d))
        places = places + along * step
        step *= shape[d]
    return xp.broadcast_to(places, index.shape).reshape(-1)


def write_elements(xp, x, index, y, dim, write):
    """Apply ``write(xp, column, places, values)`` to the array ``x`` in place, at ``index`` along ``dim``.

    ``y`` is a number, or an array of which the part of ``index``'s shape is taken.
    """
    if not index.size:
        return
    if not x.ndim or not index.ndim:  # a 0-d tensor counts as one of one element
        x, index = x.reshape(x.shape or 1), index.reshape(index.shape or 1)
        y = y.reshape(y.shape or 1) if hasattr(y, "reshape") else y
    target = x if x.flags.c_contiguous else x.copy(order="C")
    check_counted(index, x.shape[dim], dim)
    places = element_places(xp, index.astype(np.int64, copy=False), x.shape, dim)
    if hasattr(y, "reshape"):
        y = xp.ascontiguousarray(y[tuple([slice(n) for n in index.shape])]).reshape(-1, 1)
    write(xp, target.reshape(-1, 1), places, y)
    if target is not x:
        x[...] = target


def check_counted(index, size, dim):
    """RuntimeError where a place in a non-empty ``index`` is negative or not below ``size``."""
    if looks(index) and largest_unsigned(index) >= size:
        bad = index[(index < 0) | (index >= size)].reshape(-1)
        raise RuntimeError(f"index {int(bad[0])} is out of bounds for dimension {dim} with size {size}")


def check_places(name, input, dim, index, src=None):
    """``dim`` counted from the front, after PyTorch's checks of an index tensor for single elements."""
    dim = check_dim(dim, ndim_of(input, "gather"))
    if index.array.size == 0:
        return dim
    if index.array.dtype.kind != "i" or index.array.itemsize < 4:
        raise RuntimeError(
            errors.text(f"{name}(): Expected dtype int32/int64 for index", f"got {index.dtype}", "fix: index.long()")
        )
    what = "self" if name != "gather" else "input"
    if max(index.array.ndim, 1) != max(input.array.ndim, 1):
        raise RuntimeError(
            errors.text(
                f"Index tensor must have the same number of dimensions as {what} tensor",
                f"got index {tuple(index.shape)}, {what} {tuple(input.shape)}",
            )
        )
    if src is not None and max(src.array.ndim, 1) != max(index.array.ndim, 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    _check_sizes(name, input, dim, index, src)
    return dim


def _check_sizes(name, input, dim, index, src):
    for d, (n, most) in enumerate(zip(index.array.shape, input.array.shape)):
        if d != dim and n > most:
            if name == "gather":
                raise RuntimeError(
                    f"Size does not match at dimension {d} expected index {list(index.shape)} to be no larger than "
                    f"self {list(input.shape)} apart from dimension {dim}"
                )
            raise _too_large(input, dim, index, src)
    if src is not None and any(n > most for n, most in zip(index.array.shape, src.array.shape)):
        raise _too_large(input, dim, index, src)


def _too_large(input, dim, index, src):
    more = "" if src is None else f" and to be no larger size than src {list(src.shape)}"
    first = (
        f"Expected index {list(index.shape)} to be no larger than self {list(input.shape)} apart from dimension {dim}"
    )
    return RuntimeError(first + more)


def _gather(input, dim, index, *, sparse_grad=False):
    if not isinstance(index, Tensor):
        raise TypeError(f"gather(): argument 'index' (position 3) must be Tensor, not {type(index).__name__}")
    return input, index, check_places("gather", input, dim, index)


def _add_elements(xp, total, g, index, dim):
    write_elements(xp, total, index, g, dim, add_rows)


@op(
    prepare=_gather,
    x=lambda m, g, index, x_shape, dim: m.gather_sum(g, index, shape=x_shape, dim=dim),
    adds=_add_elements,
)
def gather(xp, x, index, *, dim):
    """out[i, j, ...] = x[.., index[i, j, ...], ..], the index standing in dim ``dim``.

    Shapes      out as index, which may be smaller than x in the other dims; nothing broadcasts
    Derivative  added up at the places read, in a fixed order
    Raises      RuntimeError for a place out of range or negative, or shapes that do not fit
    Differs     ``sparse_grad`` is accepted; the gradient is dense
    """
    if not index.size:
        return xp.empty(index.shape, x.dtype)
    check_counted(index, x.shape[dim] if x.ndim else 1, dim)
    if not x.ndim or not index.ndim:
        return x.reshape(-1)[index]
    last = index.ndim - 1
    return x[
        tuple(
            [index if d == dim else xp.arange(n).reshape((n,) + (1,) * (last - d)) for d, n in enumerate(index.shape)]
        )
    ]


@op(x=lambda m, g, index, dim: m.gather(g, index, dim=dim))
def gather_sum(xp, x, index, *, shape, dim):
    """Zeros of ``shape`` with each element of x added at ``index`` along ``dim``: the adjoint of gather."""
    out = xp.zeros(shape, x.dtype)
    write_elements(xp, out, index, x, dim, add_rows)
    return out


def fill_number(value, d):
    """``value``, a number of Python or NumPy, as the Python number that an element of dtype ``d`` becomes of it.

    Raises      RuntimeError, in PyTorch's words, where it does not fit
    """
    if d.category == 2 and value.__class__ in (int, float) and -SAFE <= value <= SAFE:
        return float(value)
    element = filling(value.item() if isinstance(value, np.generic) else value, d).item()
    return float(element) if d.category == 2 else element


# ---- in place: an op that may write into its input's own memory


def written(x, write, *sources):
    """``x`` after ``write(x as it was)``, an op that writes ``sources`` into x's memory and knows x's history."""
    check_writable(x)
    check_apart(x, sources, entirely=True)
    t = write(alias(x))
    bump(x)
    if MODE.grad:
        rebase(x, t)
    return x
