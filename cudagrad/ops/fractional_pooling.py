"""The largest element of windows whose distances are drawn at random, so that an axis can shrink by any factor."""

import itertools
import math

from ..core.op import TABLE, op
from ..core.promote import not_tensor
from ..core.shape import check_dim
from ..core.tensor import Tensor
from .adaptive_pooling import pool_at
from .checks import refuse
from .places import flat_index
from .windows import several

FUNCTIONAL = ("fractional_max_pool2d", "fractional_max_pool3d")


@op()
def largest_of_random_parts(xp, x, samples, *, kernel, counts):
    """The row-major index of the largest element of each window, int64; of nans the last.

    Window i of an axis starts at floor((i + u) * a) - floor(u * a), u the axis's sample, a = (S - K) / (count - 1), the
    last one at S - K.

    Shapes      x [N,C,*S]; samples [N,C,D]; out [N,C,*counts]
    """
    sizes, ndim = x.shape[2:], len(counts)
    starts = []
    for a, (n, k, c) in enumerate(zip(sizes, kernel, counts)):
        u = samples[..., a, None]  # [N,C,1]
        steps = (n - k) / (c - 1) if c > 1 else 0.0
        start = ((xp.arange(c) + u) * steps).astype(xp.int64) - (u * steps).astype(xp.int64)
        start[..., c - 1 :] = n - k
        starts.append(start.reshape(*x.shape[:2], *(c if i == a else 1 for i in range(ndim))))
    flat = x.reshape(*x.shape[:2], math.prod(sizes))
    best = index = None
    for step in itertools.product(*map(range, kernel)):
        here = xp.broadcast_to(flat_index(xp, [s + t for s, t in zip(starts, step)], sizes), (*x.shape[:2], *counts))
        value = xp.take_along_axis(flat, here.reshape(*x.shape[:2], math.prod(counts)), 2).reshape(here.shape)
        if best is None:
            best, index = value, here
            continue
        better = (value > best) | (value != value)
        best, index = xp.where(better, value, best), xp.where(better, here, index)
    return index


def _counts(name, input, output_size, output_ratio, ndim):
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    if output_size is not None:
        counts = several(output_size, ndim) if isinstance(output_size, int) else tuple(output_size)
        if len(counts) != ndim:
            raise RuntimeError(f"{name}: output_size must either be a single Int or tuple of Ints")
        return counts
    ratios = (output_ratio,) * ndim if isinstance(output_ratio, (int, float)) else tuple(output_ratio)
    return tuple(int(n * r) for n, r in zip(input.shape[input.ndim - ndim :], ratios))


def _check(name, input, kernel, counts):
    ndim, shape = len(counts), list(input.shape)
    if input.ndim not in (ndim + 1, ndim + 2):
        full = name + "_out" * (ndim == 3)
        raise RuntimeError(f"{full}(): Expected {ndim + 1}D or {ndim + 2}D tensor, but got: {shape}")
    for axis in range(input.ndim - ndim - 1, input.ndim):
        if shape[axis] == 0:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but got{shape} with "
                f"dimension {axis} being empty."
            )
    names = ("time", "height", "width")[3 - ndim :]
    for word, n, k, c in zip(names, shape[input.ndim - ndim :], kernel, counts):
        if c + k - 1 > n - (ndim == 3):
            out = "_out" if ndim == 3 else ""
            raise RuntimeError(f"{name}{out}(): pool {word} {k} too large relative to input {word} {n}")
    refuse(name, input.array, "biuc")


def _pool(ndim, input, kernel_size, output_size, output_ratio, return_indices, samples):
    name = f"fractional_max_pool{ndim}d"
    if not isinstance(input, Tensor):
        raise not_tensor(TABLE["largest_of_random_parts"], input)
    counts = _counts(name, input, output_size, output_ratio, ndim)
    kernel = several(kernel_size, ndim)
    if len(kernel) != ndim:
        raise RuntimeError(f"{name}: kernel_size must either be a single Int or tuple of Ints")
    if samples is None:
        check_dim(-ndim - 1, input.ndim)  # the axis of channels, which the samples are drawn for
    _check(name, input, kernel, counts)
    x = input if input.ndim == ndim + 2 else input.unsqueeze(0)
    if samples is None:
        samples = x.new_empty((*x.shape[:2], ndim)).uniform_()
    if samples.shape[0] < x.shape[0]:
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    samples = samples[: x.shape[0]].detach()
    if ndim == 2:
        samples = samples.flip(-1)  # of the width first, as PyTorch keeps them
    samples = samples.expand(*x.shape[:2], ndim)
    index = largest_of_random_parts(x.detach(), samples, kernel=kernel, counts=counts)
    index = index if input.ndim == ndim + 2 else index.squeeze(0)
    out = pool_at(input, index, ndim)
    return (out, index) if return_indices else out


def fractional_max_pool2d(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """The largest of each of ``output_size`` windows of ``kernel_size``, at distances drawn at random for each channel.

    ``output_ratio``: the count of windows over the length. ``return_indices``: ``(out, indices)``, as ``max_pool2d``.
    ``_random_samples``: [N,C,2] in [0, 1) in the place of random ones.

    Shapes      [N,C,H,W] or [C,H,W]
    Derivative  g at the first of the largest elements
    Raises      ValueError without a size, RuntimeError where sizes do not fit
    Source      Graham 2014, arXiv:1412.6071, section 3
    """
    return _pool(2, input, kernel_size, output_size, output_ratio, return_indices, _random_samples)


def fractional_max_pool3d(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """As ``fractional_max_pool2d`` over three axes.

    Shapes      [N,C,D,H,W] or [C,D,H,W]
    """
    return _pool(3, input, kernel_size, output_size, output_ratio, return_indices, _random_samples)
