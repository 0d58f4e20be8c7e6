"""Broadcasting as a view, and its adjoint, the sum over what was repeated."""

import math

import numpy as np

from .. import errors
from ..core.op import TABLE, op
from ..core.shape import Size
from ..core.tensor import Tensor
from .checks import ndim_of
from .sizes import laid_over, sizes_of

__all__ = ("broadcast_shapes", "broadcast_tensors", "broadcast_to")


def _expand(input, *sizes, size=None, implicit=False):
    ndim = ndim_of(input, "expand")
    given = sizes_of(sizes, size, "expand", "size")
    shape, fresh = input.array.shape, len(given) - ndim
    if fresh < 0:
        raise RuntimeError(
            f"expand(torch.{input.dtype.legacy}Tensor{{{list(shape)}}}, size={list(given)}): the number of sizes "
            f"provided ({len(given)}) must be greater or equal to the number of dimensions in the tensor ({ndim})"
        )
    whole = list(given)
    for i, n in enumerate(given):
        have = shape[i - fresh] if i >= fresh else 1
        if n == -1 and i < fresh:
            first = "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension"
            raise RuntimeError(f"{first} {i}")
        if n == -1:
            whole[i] = have
        elif n != have and (have != 1 or n < 0):
            raise RuntimeError(
                f"The expanded size of the tensor ({n}) must match the existing size ({have}) at non-singleton "
                f"dimension {i}.  Target sizes: {list(given)}.  Tensor sizes: {list(shape)}"
            )
    return input, tuple(whole)


@op(prepare=_expand, x=lambda m, g, x_shape: m.sum_to(g, shape=x_shape), view=True)
def expand(xp, x, *, shape):
    """x repeated along its dims of length 1, and along new leading ones, without a copy; -1 keeps a dim.

    Shapes      x broadcasts to out
    Derivative  the sum over what was repeated
    Raises      RuntimeError where a dim is neither 1 nor as asked
    """
    if x.shape == shape:
        return x[...]
    x = x if x.ndim else xp.asarray(x)  # what a formula made may be a NumPy scalar
    fresh = len(shape) - x.ndim
    strides = (0,) * fresh + tuple([0 if n == 1 else s for n, s in zip(x.shape, x.strides)])
    if xp is np and x.flags.c_contiguous and x.size:
        return np.ndarray(shape, x.dtype, x, 0, strides)  # 0.3 us, where np.broadcast_to takes 4.2 and is read-only
    return laid_over(xp, x, shape, strides)


def expand_as(input, other):
    """``input.expand(other.shape)``."""
    return expand(input, other.array.shape)


def broadcast_to(input, *sizes, size=None):
    """``input.expand(size)``."""
    return expand(input, *sizes, size=size)


def broadcast_tensors(*tensors):
    """The tensors, all expanded to the shape that they broadcast to; a tuple.

    Raises      RuntimeError where there is no such shape
    """
    if len(tensors) == 1 and not isinstance(tensors[0], Tensor):
        tensors = tuple(tensors[0])
    shape = ()
    for t in tensors:
        shape = meet(shape, t.array.shape)
    return tuple(t if t.array.shape == shape else expand(t, shape) for t in tensors)


def meet(a, b):
    """The shape that two shapes broadcast to."""
    ndim = max(len(a), len(b))
    a, b = (1,) * (ndim - len(a)) + tuple(a), (1,) * (ndim - len(b)) + tuple(b)
    for d in reversed(range(ndim)):
        if a[d] != b[d] and 1 not in (a[d], b[d]):
            first = f"The size of tensor a ({a[d]}) must match the size of tensor b ({b[d]}) at non-singleton dimension"
            raise RuntimeError(errors.text(f"{first} {d}", f"got {a} and {b}"))
    return tuple(n if m == 1 else m for m, n in zip(a, b))


def fits(shape, target):
    """Whether an array of ``shape`` broadcasts to ``target`` as it is."""
    if shape == target:
        return True
    after = target[len(target) - len(shape) :]
    return len(shape) <= len(target) and all([n in (1, m) for n, m in zip(shape, after)])


def broadcast_shapes(*shapes):
    """The shape that tensors of these shapes broadcast to.

    Raises      RuntimeError where there is none
    """
    met = []
    for index, shape in enumerate(shapes):
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        met[:0] = [1] * (len(shape) - len(met))
        for back in range(1, len(shape) + 1):
            n = shape[-back]
            if n < 0 or (n != 1 and met[-back] not in (1, n)):
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {n} at {-back}! Mismatching argument at index "
                    f"{index} had {shape}; but expected shape should be broadcastable to {met}"
                )
            met[-back] = n if met[-back] == 1 else met[-back]
    return Size(met)


_ones = {}
_MOST_ONES = 1 << 18


def _row_sum(x, count):
    """The sum of the rows of ``x`` [count, C], by the BLAS: 28 us, add.reduce 52, for 2 MiB (EPYC 4, one core)."""
    ones = _ones.get(x.dtype)
    if ones is None or ones.size < count:
        ones = _ones[x.dtype] = np.ones(count, x.dtype)
    return ones[:count].dot(x)


@op(x=lambda m, g, x_shape: m.expand(g, shape=x_shape), wide=True)
def sum_to(xp, x, *, shape):
    """x added up over the dims that broadcasting ``shape`` to x's shape repeats: the adjoint of expand.

    Shapes      x such that shape broadcasts to it; out shape
    """
    if x.size == math.prod(shape):  # what was repeated was repeated once
        return x.reshape(shape)
    fresh = x.ndim - len(shape)
    kept = x.shape[fresh:]
    if kept == shape and xp is np and x.dtype.char in "fd" and x.flags.c_contiguous and x.size:
        count = x.size
        for n in shape:
            count //= n
        if 8 * count <= x.size and count <= _MOST_ONES:
            return _row_sum(x.reshape(count, -1), count).reshape(shape)
    axes = tuple(range(fresh)) + tuple([i + fresh for i, n in enumerate(shape) if n == 1 != kept[i]])
    return xp.add.reduce(x, axis=axes, dtype=x.dtype, keepdims=True).reshape(shape) if axes else x.reshape(shape)


def sum_to_size(input, *size):
    """``input`` added up to ``size``, which must broadcast to its shape; ``input`` itself where it has that shape.

    Raises      RuntimeError where it does not
    """
    shape, have = sizes_of(size, None, "sum_to_size", "size"), input.array.shape
    fresh = len(have) - len(shape)
    if fresh < 0 or any(n not in (1, m) for n, m in zip(shape, have[fresh:])):
        raise RuntimeError(f"size {{{list(shape)}}} is not expandable to size {{{list(have)}}}.")
    if shape == have and shape:
        return input
    whole = input if input.dtype.category >= 2 else input.long()  # sums of integers are int64
    return TABLE["sum"].call(whole) if not shape else sum_to(whole, shape=shape)


METHODS = ("broadcast_to", "expand", "expand_as", "sum_to_size")
