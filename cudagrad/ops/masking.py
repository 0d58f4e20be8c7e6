"""Choosing by masks: where, and the reading and writing of the places at which a mask is True."""

import math
import warnings

import numpy as np

from .. import dtypes, errors
from ..backend import array_of_number, xp_of
from ..core.inplace import write
from ..core.op import TABLE, op
from ..core.promote import cast, lift
from ..core.tensor import Tensor, wrap
from ..core.views import alias
from ..core.writable import check_writable
from .broadcasting import broadcast_tensors, expand, fits, meet
from .gathering import SAFE, fill_number, rows, rows_put, written
from .outputs import placed
from .shape import reshape

__all__ = ("argwhere", "masked_fill", "masked_scatter", "masked_select", "nonzero", "nonzero_static")
__all__ += ("unravel_index", "where")

_NUMBERS = (bool, int, float, complex)

# ---- where


def _where(condition, input, other):
    given = (condition, input, other)
    if not isinstance(condition, Tensor) or not all(isinstance(v, (Tensor, *_NUMBERS, np.generic)) for v in given):
        raise _wrong_arguments(given)
    if condition.array.dtype is not dtypes.bool.numpy:
        if condition.dtype is not dtypes.uint8:
            raise RuntimeError(
                f"where expected condition to be a boolean tensor, but got a tensor with dtype {condition.dtype.legacy}"
            )
        _deprecated(
            "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future "
            "version of PyTorch. Use a boolean condition instead."
        )
        condition = cast(condition, dtypes.bool.numpy)
    if not isinstance(input, Tensor) and not isinstance(other, Tensor):
        input, other = _numbers(input, other, condition.array)
    return condition, input, other


def _wrong_arguments(given):
    kinds = ", ".join(type(v).__name__ for v in given)
    first = f"where() received an invalid combination of arguments - got ({kinds}), but expected one of:"
    return TypeError(
        errors.text(first, " * (Tensor condition)", " * (Tensor condition, Tensor or number input, other)")
    )


def _numbers(x, y, like):
    """Two Python numbers as 0-d tensors of the dtype in which they meet."""
    d = dtypes.number_dtype(max(dtypes.category_of_number(v.item() if hasattr(v, "item") else v) for v in (x, y)))
    return wrap(array_of_number(x, d, like)), wrap(array_of_number(y, d, like))


def _deprecated(text):
    warnings.warn(text, UserWarning, stacklevel=4)


@op(
    prepare=_where,
    x=lambda m, g, c: m.only(g, c),
    y=lambda m, g, c: m.only(g, ~c),
    promote=("x", "y"),
    numbers=("x", "y"),
)
def where(xp, c, x, y):
    """x where the bool c is True, y elsewhere.

    Shapes      all broadcast
    Dtypes      x and y promoted to one; c bool
    Derivative  the gradient where the value was taken, 0 elsewhere
    """
    return xp.where(c, x, y)


_choose = where


def _where_or_places(condition, input=None, other=None, *, out=None):
    """``input`` where ``condition`` is True, ``other`` elsewhere; tensors or numbers, broadcast and promoted.

    ``where(condition)`` alone gives the places that are not zero, as ``nonzero(as_tuple=True)``.

    Raises      RuntimeError for a condition that is not bool
    """
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    if input is None or other is None:
        raise _wrong_arguments([v for v in (condition, input, other) if v is not None])
    return _choose(condition, input, other, out=out)


where = _where_or_places  # the op itself cannot give a tuple
where.__name__ = where.__qualname__ = "where"


def _where_of(self, condition, other):
    """``where(condition, self, other)``."""
    return where(condition, self, other)


# ---- the places that are not zero


def nonzero(input, *, out=None, as_tuple=False):
    """The places of the elements that are not zero, in row-major order: [count, ndim], or a tuple of [count] a dim."""
    array = input.array
    places = array.nonzero() if array.ndim else array.reshape(1).nonzero()
    if as_tuple:
        return tuple(wrap(p.astype(np.int64, copy=False)) for p in places)
    if not array.ndim:
        result = xp_of(array).empty((places[0].size, 0), np.int64)
    else:
        result = xp_of(array).stack(places, 1).astype(np.int64, copy=False)
    return placed("nonzero", wrap(result), out)


def nonzero_static(input, *, size, fill_value=-1, out=None):
    """``nonzero`` in exactly ``size`` rows: cut, or filled up with ``fill_value``."""
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    places = nonzero(input).array
    rows = xp_of(places).full((size, places.shape[1]), fill_value, np.int64)
    count = min(size, len(places))
    rows[:count] = places[:count]
    return placed("nonzero_static", wrap(rows), out)


def argwhere(input):
    """The places of the elements that are not zero, a row each."""
    return nonzero(input)


@op()
def coordinate(xp, x, *, step, size):
    """The coordinate along a dim of ``size``, whose places lie ``step`` apart, of the elements numbered x."""
    return (x // step % size).astype(np.int64, copy=False) if x.ndim else xp.asarray(x // step % size, np.int64)


def unravel_index(indices, shape):
    """The coordinates, a tensor a dim, of the elements of an array of ``shape`` numbered ``indices`` row by row.

    Raises      TypeError for indices that are no integers, ValueError for a negative length
    """
    if indices.dtype.category != 1:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if isinstance(shape, (int, Tensor)):
        shape = (shape,)
    if not isinstance(shape, (tuple, list)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    for n in shape:
        if not hasattr(n, "__index__"):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(n)}")
    shape = tuple([n.__index__() for n in shape])
    if any(n < 0 for n in shape):
        raise ValueError(f"'shape' cannot have negative values, but got {shape}")
    steps = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    return tuple(coordinate(indices, step=step, size=n) for step, n in zip(steps, shape))


# ---- masks


def _check_mask(name, mask, legacy=False):
    """RuntimeError where ``mask`` is not bool; PyTorch names dtypes here as C does."""
    if not isinstance(mask, Tensor):
        raise TypeError(f"{name}(): argument 'mask' (position 1) must be Tensor, not {type(mask).__name__}")
    if mask.dtype is not dtypes.bool:
        got = mask.dtype.legacy if legacy else mask.dtype.cpp
        first = f"{name} only supports boolean masks, but got mask with dtype {got}"
        raise RuntimeError(errors.text(first, "fix: mask.bool()"))


def _masked_fill(input, mask, value):
    _check_mask("masked_fill_", mask)
    if isinstance(value, Tensor):
        if value.array.ndim:
            raise RuntimeError(
                "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                f"{value.array.ndim} dimension(s)."
            )
        if value.array.__class__ is not input.array.__class__:
            value = value.to(input.device)
        if value.dtype.category == 3 > input.dtype.category:
            fill_number(value.item(), input.dtype)  # raises where there is an imaginary part
        return mask, value if value.array.dtype is input.array.dtype else cast(value, input.array.dtype)
    if value.__class__ is float and input.dtype.category == 2 and not abs(value) > SAFE:
        return mask, lift(value, input, TABLE["fill_where"])  # a constant that is kept
    return mask, wrap(array_of_number(fill_number(value, input.dtype), input.dtype, input.array))


def _mask_first(error, x, mask, v, **options):
    """PyTorch names the mask first where the two do not broadcast."""
    try:
        meet(mask.shape, x.shape)
    except RuntimeError as told:
        return told
    return None


@op(
    x=lambda m, g, mask: m.only(g, ~mask),
    v=lambda m, g, mask: m.only(g, mask),
    broadcast=True,
    explain=_mask_first,
    node="MaskedFill",
)
def fill_where(xp, x, mask, v, *, inplace=False):
    """x with the 0-d v in the places where the bool mask is True; ``inplace`` in x's own memory.

    Shapes      x and mask broadcast; out of their shape
    """
    if inplace:
        xp.copyto(x, v, where=mask)
        return x
    if not fits(mask.shape, x.shape):
        return xp.where(mask, v, x)
    out = xp.array(x)
    xp.copyto(out, v, where=mask)
    return out


def masked_fill(input, mask, value, *, out=None):
    """``input`` with ``value``, a number or a 0-d tensor, in the places where ``mask`` is True.

    Shapes      input and mask broadcast
    Dtypes      mask bool; out as input
    Raises      RuntimeError for another mask, or a number that does not fit the dtype
    """
    mask, value = _masked_fill(input, mask, value)
    return fill_where(input, mask, value, out=out)


def masked_fill_(self, mask, value):
    """In-place form of :func:`masked_fill`."""
    mask, value = _masked_fill(self, mask, value)
    met = np.broadcast_shapes(self.array.shape, mask.array.shape)
    if met != self.array.shape:
        raise RuntimeError(f"output with shape {list(self.shape)} doesn't match the broadcast shape {list(met)}")
    return written(self, lambda x: fill_where(x, mask, value, inplace=True))


def true_places(mask):
    """The places of a bool array, counted row by row, where it is True; a tensor."""
    return wrap(xp_of(mask).flatnonzero(mask).astype(np.int64, copy=False))


def masked_select(input, mask, *, out=None):
    """The elements of ``input`` in the places where ``mask`` is True, in row-major order.

    Shapes      input and mask broadcast; out [count]
    """
    if mask.dtype is not dtypes.bool:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    mask, input = broadcast_tensors(mask, input)
    return rows(reshape(input, (-1,)), true_places(mask.array), dim=0, out=out)


def _masked_scatter(input, mask, source):
    if isinstance(mask, Tensor) and mask.dtype is dtypes.uint8:
        _deprecated(
            "masked_scatter_ received a mask with dtype torch.uint8, this behavior is now deprecated,please use a mask "
            "with dtype torch.bool instead."
        )
    if source.array.dtype is not input.array.dtype:
        raise RuntimeError(
            "masked_scatter: expected self and source to have same dtypes but got"
            f"{input.dtype.legacy} and {source.dtype.legacy}"
        )
    _check_mask("masked_scatter_", mask, legacy=True)


def masked_scatter(input, mask, source):
    """``input`` with the elements of ``source``, in row-major order, in the places where ``mask`` is True.

    Raises      RuntimeError where there are fewer elements than places
    """
    _masked_scatter(input, mask, source)
    input, mask = broadcast_tensors(input, mask)
    places = true_places(mask.array)
    if source.array.size < places.array.size:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    taken = reshape(source, (-1,))[: places.array.size]
    return reshape(rows_put(reshape(input, (-1,)), places, taken, dim=0), input.array.shape)


def masked_scatter_(self, mask, source):
    """In-place form of :func:`masked_scatter`."""
    _masked_scatter(self, mask, source)
    expand(mask, self.array.shape)
    check_writable(self)
    return write(self, masked_scatter(alias(self), mask, source))


METHODS = {n: globals()[n] for n in __all__ if n not in ("where", "unravel_index")} | {"where": _where_of}
METHODS |= {"masked_fill_": masked_fill_, "masked_scatter_": masked_scatter_}
