"""Taps: a linear map of one axis in which each output is a weighted sum of a few inputs; and the op that applies it."""

import functools

import numpy as np

from ..core.op import op


class Taps:
    """Output i of an axis is the sum over k of ``weight[i,k]`` * input ``index[i,k]``; weight None stands for ones.

    ``size`` is the length of the input axis. Made once for each specification and compared by identity.
    """

    __slots__ = ("index", "weight", "size", "unused", "__dict__")

    def __init__(self, index, weight, size):
        self.index, self.weight, self.size = index, weight, size
        self.unused = None  # outputs that no input reaches

    def __repr__(self):
        return f"<taps {self.size} -> {len(self.index)}, {self.index.shape[1]} each>"

    @property
    def count(self):
        return len(self.index)

    @functools.cached_property
    def adjoint(self):
        """The transposed map: what each input gave to the outputs comes back to it."""
        weight = np.ones(self.index.shape) if self.weight is None else self.weight
        outputs = np.repeat(np.arange(self.count), self.index.shape[1])
        used = weight.ravel() != 0
        inputs, outputs, weight = self.index.ravel()[used], outputs[used], weight.ravel()[used]
        order = np.argsort(inputs, kind="stable")
        inputs, outputs, weight = inputs[order], outputs[order], weight[order]
        held = np.bincount(inputs, minlength=self.size)
        place = np.arange(len(inputs)) - np.repeat(np.cumsum(held) - held, held)
        index, factor = np.zeros((self.size, max(held.max(), 1)), np.int64), np.zeros((self.size, max(held.max(), 1)))
        index[inputs, place], factor[inputs, place] = outputs, weight
        # unused places repeat a tap of the same row, so that 0 * inf can spoil only what inf reaches anyway
        index = np.where(np.arange(index.shape[1]) < held[:, None], index, index[:, :1])
        made = Taps(index, factor, self.count)
        made.unused = np.flatnonzero(held == 0) if not held.all() else None
        made.__dict__["adjoint"] = self
        return made


@op(x=lambda m, g, axis, taps: m.apply_taps(g, axis=axis, taps=taps.adjoint), wide=True, node="Upsample")
def apply_taps(xp, x, *, axis, taps):
    """x with ``taps`` applied to its axis ``axis``, counted from the front.

    Derivative  the transposed taps applied to g
    """
    last = axis == x.ndim - 1 and x.ndim > 1
    if last:  # whole rows are copied faster than single elements
        x, axis = xp.ascontiguousarray(xp.moveaxis(x, -1, 0)), 0
    out = xp.take(x, xp.asarray(taps.index[:, 0]), axis)
    if taps.weight is not None:
        _blend(xp, x, out, axis, taps)
    if taps.unused is not None:
        out[(slice(None),) * axis + (xp.asarray(taps.unused),)] = 0
    return xp.ascontiguousarray(xp.moveaxis(out, 0, -1)) if last else out


def _blend(xp, x, out, axis, taps):
    """Turn the first taps in ``out`` into weighted sums of all of them."""
    shape = (-1, *(1,) * (x.ndim - axis - 1))
    weights = xp.asarray(taps.weight.astype(x.real.dtype))
    out *= weights[:, 0].reshape(shape)
    for k in range(1, taps.index.shape[1]):
        term = xp.take(x, xp.asarray(taps.index[:, k]), axis)
        term *= weights[:, k].reshape(shape)
        out += term


# ---- the taps of each mode, in PyTorch's single precision where it rounds to whole indices


def _step(size, count, scale, align_corners):
    """How far apart in the input neighbours of the output are."""
    if align_corners:
        return (size - 1) / (count - 1) if count > 1 else 0.0
    return 1 / scale if scale else size / count


@functools.lru_cache(maxsize=256)
def nearest_taps(size, count, scale=None, exact=False):
    """Output i is input floor(i * step), or floor((i + 1/2) * step) where ``exact``."""
    step = np.float32(1 / scale) if scale else np.float32(size) / np.float32(count)
    places = np.arange(count, dtype=np.float32)
    source = np.floor((places + np.float32(0.5)) * step if exact else places * step)
    return Taps(np.clip(source.astype(np.int64), 0, size - 1)[:, None], None, size)


def _sources(size, count, scale, align_corners):
    step, places = _step(size, count, scale, align_corners), np.arange(count)
    return places * step if align_corners else (places + 0.5) * step - 0.5


@functools.lru_cache(maxsize=256)
def linear_taps(size, count, scale=None, align_corners=False):
    """Two neighbours, weighted by their distance."""
    source = np.maximum(_sources(size, count, scale, align_corners), 0)
    low = np.minimum(np.floor(source).astype(np.int64), size - 1)
    part = np.clip(source - low, 0, 1)
    return Taps(np.stack([low, np.minimum(low + 1, size - 1)], 1), np.stack([1 - part, part], 1), size)


def cubic_weight(distance, a):
    """Keys's cubic convolution kernel with slope ``a`` at distance 1."""
    d = np.abs(distance)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((d - 5) * d + 8) * d * a - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0))


@functools.lru_cache(maxsize=256)
def cubic_taps(size, count, scale=None, align_corners=False):
    """Four neighbours, weighted by the cubic kernel with a = -0.75.

    Source      Keys 1981, Cubic convolution interpolation for digital image processing
    """
    source = _sources(size, count, scale, align_corners)
    low = np.floor(source).astype(np.int64)
    near = low[:, None] + np.arange(-1, 3)
    return Taps(np.clip(near, 0, size - 1), cubic_weight(source[:, None] - near, -0.75), size)


def _lanczos(distance):
    return np.where(np.abs(distance) < 3, np.sinc(distance) * np.sinc(distance / 3), 0)


FILTERS = {  # of antialiasing: the kernel and how far it reaches
    "linear": (lambda d: np.maximum(1 - np.abs(d), 0), 1.0),
    "cubic": (lambda d: cubic_weight(d, -0.5), 2.0),
    "lanczos": (_lanczos, 3.0),
}


@functools.lru_cache(maxsize=256)
def antialiased_taps(size, count, scale=None, align_corners=False, kind="linear"):
    """A kernel as wide as an output is in the input, so that nothing is skipped when the axis shrinks."""
    kernel, reach = FILTERS[kind]
    step = _step(size, count, scale, align_corners)
    wide = max(step, 1.0)
    centre = (np.arange(count) + 0.5) * step
    first = np.maximum((centre - reach * wide + 0.5).astype(np.int64), 0)
    stop = np.minimum((centre + reach * wide + 0.5).astype(np.int64), size)
    near = first[:, None] + np.arange(max((stop - first).max(), 1))
    weight = np.where(near < stop[:, None], kernel((near - centre[:, None] + 0.5) / wide), 0)
    total = weight.sum(1, keepdims=True)
    return Taps(np.minimum(near, size - 1), weight / np.where(total == 0, 1, total), size)


def parts(size, count):
    """First and past-last input of each of ``count`` parts that cover an axis; they overlap where they must."""
    return [(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]


@functools.lru_cache(maxsize=256)
def area_taps(size, count):
    """The mean of each of ``count`` parts of the axis."""
    first, stop = np.array(parts(size, count), np.int64).reshape(-1, 2).T
    length = stop - first
    near = first[:, None] + np.arange(max(length, default=1))
    weight = np.where(near < stop[:, None], 1 / length[:, None], 0)
    return Taps(np.minimum(near, stop[:, None] - 1), weight, size)
