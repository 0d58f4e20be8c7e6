"""The mean of each window."""

import math

from ..core.modes import autocasts
from ..core.op import TABLE, op
from ..core.promote import not_tensor
from ..core.tensor import Tensor
from .checks import refuse
from .outputs import placed
from .pool_windows import check_kind, check_padding, check_sizes, one_an_axis, pool_windows
from .windows import cut, padded

__all__ = ("avg_pool1d",)
FUNCTIONAL = ("avg_pool1d", "avg_pool2d", "avg_pool3d", "lp_pool1d", "lp_pool2d", "lp_pool3d")


def _divisor(xp, where, sizes, include_pad, override, kind):
    """What the sum of each window is divided by: a number, or an array [*count] where windows differ."""
    if override is not None:
        return override
    counts = []
    for k, s, p, n, size in zip(where.kernel, where.stride, where.before, where.count, sizes):
        first = [i * s - p for i in range(n)]
        stop = [min(f + k, size + p) for f in first]
        if include_pad:
            counts.append([b - a for a, b in zip(first, stop)])
        else:
            counts.append([min(b, size) - max(a, 0) for a, b in zip(first, stop)])
    if all(len(set(c)) == 1 for c in counts):
        return math.prod(c[0] for c in counts)
    total = xp.ones((), kind)
    for c in counts:
        total = total[..., None] * xp.asarray(c, kind)
    return total


def _slide(axis, start, where, a):
    last = start + (where.count[a] - 1) * where.stride[a] + 1
    return (slice(None),) * axis + (slice(start, last, where.stride[a]),)


@op(
    x=lambda m, g, x_shape, where, include_pad, override: m.avg_pool_backward(
        g, where=where, include_pad=include_pad, override=override, size=tuple(x_shape[-len(where.count) :])
    ),
    wide=True,
    node="AvgPool",
)
def avg_pool(xp, x, *, where, include_pad, override):
    """The sum of each window of the last axes, axis by axis, divided by how many elements count.

    Shapes      x [...,*S] -> [...,*where.count]
    """
    refuse(f"avg_pool{where.ndim}d", x, "bc")
    sizes, total = x.shape[x.ndim - where.ndim :], padded(xp, x, where)
    for a, kernel in enumerate(where.kernel):
        axis, source = x.ndim - where.ndim + a, total
        total = source[_slide(axis, 0, where, a)].copy()
        for k in range(1, kernel):
            total += source[_slide(axis, k, where, a)]
    divisor = _divisor(xp, where, sizes, include_pad, override, x.dtype)
    if x.dtype.kind in "iu":
        quotient = xp.abs(total) // abs(divisor)  # rounded towards zero
        return xp.where((total < 0) != (divisor < 0), -quotient, quotient).astype(x.dtype)
    return total / divisor


@op(
    x=lambda m, g, where, include_pad, override: m.avg_pool(g, where=where, include_pad=include_pad, override=override),
    wide=True,
    node="AvgPool",
)
def avg_pool_backward(xp, x, *, where, include_pad, override, size):
    """The adjoint of ``avg_pool``: x, divided, added to all elements of its window.

    Shapes      x [...,*where.count] -> [...,*size]
    """
    total = x / _divisor(xp, where, size, include_pad, override, x.dtype)
    reach = where.reach
    for a in reversed(range(where.ndim)):
        axis, source = x.ndim - where.ndim + a, total
        total = xp.zeros((*source.shape[:axis], reach[a], *source.shape[axis + 1 :]), x.dtype)
        for k in range(where.kernel[a]):
            total[_slide(axis, k, where, a)] += source
    return cut(xp, total, size, where)


def _pool(name, ndim, input, kernel_size, stride, padding, ceil_mode, include_pad, override=None):
    if not isinstance(input, Tensor):
        raise not_tensor(TABLE["avg_pool"], input)
    kernel = one_an_axis(name, "kernel_size", kernel_size, ndim)
    stride = kernel if stride is None or stride == () or stride == [] else one_an_axis(name, "stride", stride, ndim)
    padding = one_an_axis(name, "padding", padding, ndim)
    check_kind(kernel, stride, (1,) * ndim)
    if override == 0:
        raise RuntimeError("divisor must be not zero")
    check_padding(kernel, padding, (1,) * ndim)
    check_sizes(name, input, ndim)
    if ndim == 3 and any(n < k for n, k in zip(input.shape[-3:], kernel)):
        t, h, w = input.shape[-3:]
        came = f"input image (T: {t} H: {h} W: {w})"
        raise RuntimeError(f"{came} smaller than kernel size (kT: {kernel[0]} kH: {kernel[1]} kW: {kernel[2]})")
    where = pool_windows(input, kernel, stride, padding, (1,) * ndim, ceil_mode)
    return avg_pool(input, where=where, include_pad=bool(include_pad), override=override)


def avg_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    """The mean of each window of ``kernel_size`` elements; ``stride`` is ``kernel_size`` by default.

    Padding counts as zeros, or not at all without ``count_include_pad``; with ``ceil_mode`` a last window may reach
    past the end, and what lies past padding counts for nothing.

    Shapes      [N,C,T] or [C,T]
    Derivative  g over the count at all elements of the window
    Raises      RuntimeError where sizes do not fit
    """
    return _pool("avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad)


def avg_pool2d(
    input,
    kernel_size,
    stride=None,
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
    *,
    out=None,
):
    """As ``avg_pool1d`` over two axes; ``divisor_override`` takes the place of the count.

    Shapes      [N,C,H,W] or [C,H,W]
    """
    options = (stride, padding, ceil_mode, count_include_pad, divisor_override)
    return placed("avg_pool2d", _pool("avg_pool2d", 2, input, kernel_size, *options), out)


@autocasts
def avg_pool3d(
    input,
    kernel_size,
    stride=None,
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
    *,
    out=None,
):
    """As ``avg_pool2d`` over three axes.

    Shapes      [N,C,D,H,W] or [C,D,H,W]
    """
    options = (stride, padding, ceil_mode, count_include_pad, divisor_override)
    return placed("avg_pool3d", _pool("avg_pool3d", 3, input, kernel_size, *options), out)


# ---- power means


def _power(mean, norm_type, count):
    # PyTorch's words for x^p added up: signs of odd powers are kept until the root is drawn of their magnitude
    return (mean.sign() * mean.abs().relu() * count) ** (1.0 / norm_type)


def _lp_pool(ndim, pool, input, norm_type, kernel_size, stride, ceil_mode):
    kernel = one_an_axis(pool.__name__, "kernel_size", kernel_size, ndim)
    mean = pool(input**norm_type, kernel, stride, 0, ceil_mode)
    return _power(mean, norm_type, math.prod(kernel))


def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """(sum of x^p over each window)^(1/p), p = ``norm_type``.

    Shapes      [N,C,T] or [C,T]
    """
    return _lp_pool(1, avg_pool1d, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """As ``lp_pool1d`` over two axes.

    Shapes      [N,C,H,W] or [C,H,W]
    """
    return _lp_pool(2, avg_pool2d, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """As ``lp_pool1d`` over three axes.

    Shapes      [N,C,D,H,W] or [C,D,H,W]
    """
    return _lp_pool(3, avg_pool3d, input, norm_type, kernel_size, stride, ceil_mode)
