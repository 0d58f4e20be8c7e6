"""Windows that slide over the last axes of an array: how convolution, pooling, unfold and fold see it."""

import functools
import itertools
from typing import NamedTuple


class Windows(NamedTuple):
    """Where windows lie: window i of an axis covers i * stride - before + dilation * (0 .. kernel - 1).

    Every field is a tuple with one number an axis; ``count`` is how many windows there are.
    """

    kernel: tuple
    stride: tuple
    before: tuple
    dilation: tuple
    count: tuple

    @property
    def ndim(self):
        return len(self.kernel)

    @property
    def reach(self):
        """The length of each axis that the windows cover, from the start of the first to the end of the last."""
        return tuple((n - 1) * s + (k - 1) * d + 1 for k, s, _, d, n in zip(*self))

    @property
    def is_whole(self):
        """Whether each window is one element, and all elements in order: nothing has to be moved."""
        return set(self.kernel) == set(self.stride) == {1} and not any(self.before)


def several(value, ndim):
    """``value`` as a tuple of ``ndim``: one number stands for all axes."""
    if value.__class__ is int:
        return (value,) * ndim
    try:
        values = tuple(v.__index__() for v in value)
    except TypeError:
        return (value.__index__(),) * ndim
    return values * ndim if len(values) == 1 else values


def padded(xp, x, where, value=0):
    """x with its last axes cut or padded with ``value`` to exactly what the windows cover, [..., *reach].

    The same array where there is nothing to do.
    """
    sizes = x.shape[x.ndim - where.ndim :]
    if where.reach == sizes and not any(where.before):
        return x
    if not any(where.before) and all(r <= n for r, n in zip(where.reach, sizes)):
        return x[(..., *(slice(r) for r in where.reach))]
    out = xp.full((*x.shape[: x.ndim - where.ndim], *where.reach), value, x.dtype)
    into, taken = overlap(sizes, where)
    out[(..., *into)] = x[(..., *taken)]
    return out


def overlap(sizes, where):
    """The slices of the padded axes and of the axes of length ``sizes`` that are the same elements."""
    into, taken = [], []
    for n, before, reach in zip(sizes, where.before, where.reach):
        length = max(min(n, reach - before), 0)
        into.append(slice(before, before + length))
        taken.append(slice(length))
    return tuple(into), tuple(taken)


def cut(xp, x, sizes, where):
    """The adjoint of ``padded``: the part of [..., *reach] within axes of length ``sizes``, 0 where there is none.

    Contiguous, so that gradients and transposed convolutions can be viewed.
    """
    if where.reach == sizes and not any(where.before):
        return x
    into, taken = overlap(sizes, where)
    inner = x[(..., *into)]
    if all(t.stop == n for t, n in zip(taken, sizes)):
        return xp.ascontiguousarray(inner)
    out = xp.zeros((*x.shape[: x.ndim - where.ndim], *sizes), x.dtype)
    out[(..., *taken)] = inner
    return out


def view(xp, x, axis, where):
    """All windows of a padded array as a view: the axes from ``axis`` on become [*kernel, *count]."""
    last = axis + where.ndim
    steps = x.strides[axis:last]
    inside = tuple(s * d for s, d in zip(steps, where.dilation))
    between = tuple(s * t for s, t in zip(steps, where.stride))
    shape = (*x.shape[:axis], *where.kernel, *where.count, *x.shape[last:])
    strides = (*x.strides[:axis], *inside, *between, *x.strides[last:])
    return xp.lib.stride_tricks.as_strided(x, shape, strides)


@functools.lru_cache(maxsize=256)
def offsets(where):
    """For each place in a window, in row-major order: its index, and the slices of a padded array that hold it."""
    found = []
    for place in itertools.product(*map(range, where.kernel)):
        first = [p * d for p, d in zip(place, where.dilation)]
        window = (slice(f, f + (n - 1) * s + 1, s) for f, s, n in zip(first, where.stride, where.count))
        found.append((place, tuple(window)))
    return found
