"""The mean or the largest element of each of a given count of parts of the axes."""

import itertools
import math

import numpy as np

from ..core.op import TABLE, op
from ..core.promote import not_tensor
from ..core.tensor import Tensor
from . import taps
from .average_pooling import avg_pool
from .checks import refuse
from .places import flat_index, take_places
from .taps import apply_taps
from .windows import Windows

__all__ = ("adaptive_avg_pool1d", "adaptive_max_pool1d")
FUNCTIONAL = (
    *("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"),
    *("adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d"),
)


def _counts(name, input, output_size, kind):
    """The count of parts of each axis: None keeps the axis."""
    ndim = int(name[-2])
    sizes = tuple(input.shape[max(input.ndim - ndim, 0) :])
    if output_size is None or isinstance(output_size, int) or hasattr(output_size, "__index__"):
        output_size = (output_size,) * ndim
    given = tuple(output_size)
    if ndim == 1 and len(given) != 1:
        raise RuntimeError(f"{name}() argument 'output_size' should contain one int (got {len(given)})")
    if len(given) != ndim:
        first = f"{name}: " if kind == "avg" else f"{name}(): internal error: "
        raise RuntimeError(f"{first}output_size{'' if kind == 'avg' else '.size()'} must be {ndim}")
    return tuple(n if c is None else c.__index__() for n, c in zip(sizes, given))


def _check(name, input, output_size, kind):
    if not isinstance(input, Tensor):
        raise not_tensor(TABLE["apply_taps"], input)
    ndim, shape = int(name[-2]), list(input.shape)
    if ndim > 1 and isinstance(output_size, (tuple, list)) and input.ndim <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    if input.ndim not in (ndim + 1, ndim + 2):
        if ndim == 1:
            raise RuntimeError(
                f"Expected 2 to 3 dimensions, but got {input.ndim}-dimensional tensor for argument #1 'self' (while "
                f"checking arguments for {name})"
            )
        colon = "" if kind == "avg" else ":"
        raise RuntimeError(f"{name}(): Expected {ndim + 1}D or {ndim + 2}D tensor, but got{colon} {shape}")
    counts = _counts(name, input, output_size, kind)
    for axis in range(input.ndim - ndim if kind == "avg" else input.ndim - ndim - 1 or 1, input.ndim):
        if shape[axis] == 0:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {shape} "
                f"with dimension {axis} being empty"
            )
    if min(counts) < 0 and kind == "max":
        made = [*shape[: input.ndim - ndim], *counts]
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(counts)}: {made}")
    if min(counts) < 0:
        inner = ", ".join(map(str, counts))
        raise RuntimeError(
            f"{name}: elements of output_size must be greater than or equal to 0 but received {{{inner}}}"
        )
    return counts


def adaptive_avg_pool(name, input, output_size):
    """The mean of each part, in the name of the public function ``name``."""
    counts = _check(name, input, output_size, "avg")
    refuse(name, input.array, "biuc")
    first = input.ndim - len(counts)
    sizes = tuple(input.shape[first:])
    if set(counts) == {1}:
        return input.mean(tuple(range(first, input.ndim)), keepdim=True)
    if all(c and n % c == 0 for n, c in zip(sizes, counts)):
        kernel = tuple(n // c for n, c in zip(sizes, counts))
        where = Windows(kernel, kernel, (0,) * len(counts), (1,) * len(counts), counts)
        return avg_pool(input, where=where, include_pad=True, override=None)
    if 0 in counts:
        return input.new_empty((*input.shape[:first], *counts))
    for axis, (n, c) in enumerate(zip(sizes, counts), first):
        input = apply_taps(input, axis=axis, taps=taps.area_taps(n, c))
    return input


def adaptive_avg_pool1d(input, output_size):
    """The mean of each of ``output_size`` parts: elements floor(i*T/n) up to ceil((i+1)*T/n).

    Shapes      [N,C,T] or [C,T]
    Derivative  g over the length of the part, at all its elements
    Raises      RuntimeError where sizes do not fit
    """
    return adaptive_avg_pool("adaptive_avg_pool1d", input, output_size)


def adaptive_avg_pool2d(input, output_size):
    """As ``adaptive_avg_pool1d`` over two axes; None keeps an axis.

    Shapes      [N,C,H,W] or [C,H,W]
    """
    return adaptive_avg_pool("adaptive_avg_pool2d", input, output_size)


def adaptive_avg_pool3d(input, output_size):
    """As ``adaptive_avg_pool1d`` over three axes; None keeps an axis.

    Shapes      [N,C,D,H,W] or [C,D,H,W]
    """
    return adaptive_avg_pool("adaptive_avg_pool3d", input, output_size)


# ---- the largest


@op()
def largest_of_parts(xp, x, *, starts, length):
    """The row-major index of the largest element of each part of the last axes, int64; of nans the last.

    ``starts``: for each axis and output the first and past-last element, ``length`` the longest part of each axis.
    """
    sizes = x.shape[x.ndim - len(length) :]
    best = index = None
    for step in itertools.product(*map(range, length)):
        # a part that is shorter is read at its last element again, which changes nothing
        places = [
            np.array([min(first + s, stop - 1) for first, stop in axis], np.int64) for s, axis in zip(step, starts)
        ]
        grid = [xp.asarray(p).reshape(-1, *(1,) * (len(places) - 1 - a)) for a, p in enumerate(places)]
        value, here = x[(..., *grid)], flat_index(xp, grid, sizes)
        if best is None:
            best, index = value, xp.broadcast_to(here, value.shape).astype(xp.int64)
            continue
        better = (value > best) | (value != value)
        best, index = xp.where(better, value, best), xp.where(better, here, index)
    return index


def pool_at(input, index, ndim):
    """The elements at row-major indices [...,*out] into the last ``ndim`` axes."""
    lead = input.shape[: input.ndim - ndim]
    flat = lead if len(lead) == 2 else (1, *lead)
    sizes, counts = (math.prod(t.shape[t.ndim - ndim :]) for t in (input, index))
    return take_places(input.reshape(*flat, sizes), index.reshape(*flat, counts)).reshape(index.shape)


def _max(name, input, output_size, return_indices):
    counts = _check(name, input, output_size, "max")
    refuse(name, input.array, "bc")
    ndim = len(counts)
    starts = tuple(tuple(taps.parts(n, c)) for n, c in zip(input.shape[input.ndim - ndim :], counts))
    length = tuple(max((stop - first for first, stop in axis), default=0) for axis in starts)
    if not math.prod(length):
        empty = input.new_empty((*input.shape[: input.ndim - ndim], *counts))
        return (empty, empty.long()) if return_indices else empty
    index = largest_of_parts(input.detach(), starts=starts, length=length)
    out = pool_at(input, index, ndim)
    return (out, index) if return_indices else out


def adaptive_max_pool1d(input, output_size, return_indices=False):
    """The largest of each of ``output_size`` parts: elements floor(i*T/n) up to ceil((i+1)*T/n).

    ``return_indices``: ``(out, indices)`` with the place of each in the flattened axes of the input.

    Shapes      [N,C,T] or [C,T]
    Derivative  g at the first of the largest elements
    Raises      RuntimeError where sizes do not fit
    """
    return _max("adaptive_max_pool1d", input, output_size, return_indices)


def adaptive_max_pool2d(input, output_size, return_indices=False):
    """As ``adaptive_max_pool1d`` over two axes; None keeps an axis.

    Shapes      [N,C,H,W] or [C,H,W]
    """
    return _max("adaptive_max_pool2d", input, output_size, return_indices)


def adaptive_max_pool3d(input, output_size, return_indices=False):
    """As ``adaptive_max_pool1d`` over three axes; None keeps an axis.

    Shapes      [N,C,D,H,W] or [C,D,H,W]
    """
    return _max("adaptive_max_pool3d", input, output_size, return_indices)
