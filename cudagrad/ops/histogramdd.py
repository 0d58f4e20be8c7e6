"""Histograms of points in several dimensions."""

import math

import numpy as np

from ..backend import xp_of
from ..core.op import TABLE
from ..core.promote import not_tensor
from ..core.tensor import Tensor, wrap
from .checks import not_implemented
from .outputs import placed, return_type
from .statistics import _bins

__all__ = ("histogramdd",)

_Histogramdd = return_type("histogramdd", ("hist", "bin_edges"))
_NAME = "torch.histogramdd:"


def _check(input, bins, range, weight):
    """The edges, as tensors, or the counts of bins, one a dimension; RuntimeError where arguments do not fit."""
    if not isinstance(input, Tensor):
        raise not_tensor(TABLE["counted"], input)
    if input.ndim < 2:
        raise RuntimeError(f"{_NAME} input tensor should have at least 2 dimensions")
    if input.dtype.category != 2:
        raise not_implemented("histogramdd", input.array)
    dims = input.shape[-1]
    bins = (bins,) * dims if isinstance(bins, int) else tuple(bins)
    given = bool(bins) and isinstance(bins[0], Tensor)
    if len(bins) != dims and given:
        sequences = f"expected {dims} sequences of bin edges for a {dims}-dimensional histogram but got {len(bins)}"
        raise RuntimeError(f"{_NAME} {sequences}")
    if len(bins) != dims:
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
    if range is not None and len(range) != 2 * dims:
        should = f"a {dims}-dimensional histogram range should have {2 * dims} elements, but got {len(range)}"
        raise RuntimeError(f"{_NAME} for {should}")
    _check_weight(input, weight)
    for i, b in enumerate(bins):
        if not given and b < 1:
            raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {b} for dimension {i}")
        if given and b.dtype is not input.dtype:
            got = f"input with dtype {_spoken(input)} and bins for dimension {i} with dtype {_spoken(b)}"
            raise RuntimeError(f"{_NAME} input tensor and bins tensors should have the same dtype, but got {got}")
    return bins, given


def _check_weight(input, weight):
    if weight is None:
        return
    first = f"{_NAME} if weight tensor is provided"
    if weight.shape != input.shape[:-1]:
        got = f"input with shape {list(input.shape)} and weight with shape {list(weight.shape)}"
        should = "it should have the same shape as the input tensor excluding its innermost dimension"
        raise RuntimeError(f"{first} {should}, but got {got}")
    if weight.dtype is not input.dtype:
        got = f"but got input({_spoken(input)}), and weight({_spoken(weight)})"
        raise RuntimeError(f"{first}, input tensor and weight tensor should have the same dtype, {got}")


def _spoken(t):
    return {"Float": "float", "Double": "double"}.get(t.dtype.legacy, t.dtype.legacy)


def _even_edges(xp, x, count, low, high, dim):
    """The edges of ``count`` equal parts between the smallest and the largest of x, or of a range."""
    if low is None:
        low, high = (float(x.min()), float(x.max())) if x.size else (0.0, 1.0)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"{_NAME} dimension {dim}'s range [{low:g}, {high:g}] is not finite")
    if low > high:
        raise RuntimeError(f"{_NAME} min should not exceed max, but got min {low:g} max {high:g} for dimension {dim}")
    if low == high:
        low, high = low - 0.5, high + 0.5
    return xp.linspace(low, high, count + 1).astype(x.dtype)


def histogramdd(input, bins, *, range=None, weight=None, density=False, out=None):
    """The named tuple (hist, bin_edges): counts, or sums of ``weight``, of the points in the rows of ``input``.

    Shapes      input [..., D]; bins: a count, one a dimension, or D tensors of ascending edges; range: low and high of
                every dimension one after the other; weight [...]; hist of D dims
    Dtypes      floating; out as input
    Raises      RuntimeError where these do not fit
    """
    bins, given = _check(input, bins, range, weight)
    xp, dims = xp_of(input.array), input.shape[-1]
    points = input.array.reshape(-1, dims) if input.array.size else input.array.reshape(0, dims)
    edges, place, inside = [], 0, xp.ones(len(points), bool)
    for d, b in enumerate(bins):
        x = points[:, d]
        low, high = (None, None) if range is None else range[2 * d : 2 * d + 2]
        edges.append(b.array if given else _even_edges(xp, x, b, low, high, d))
        here = _bins(xp, x, edges[-1])
        inside &= here >= 0
        place = place * (len(edges[-1]) - 1) + here
    shape = [len(e) - 1 for e in edges]
    weights = None if weight is None else weight.array.reshape(-1)[inside]
    counts = xp.bincount(xp.asarray(place[inside], np.int64), weights, minlength=math.prod(shape))
    counts = counts.reshape(shape).astype(points.dtype)
    if density:
        counts = counts / counts.sum()
        for d, e in enumerate(edges):
            counts = counts / (e[1:] - e[:-1]).reshape((-1,) + (1,) * (dims - 1 - d))
    result = _Histogramdd(wrap(counts), tuple(wrap(e) for e in edges))
    if out is None:
        return result
    return _Histogramdd(placed("histogramdd", result.hist, out[0]), placed("histogramdd", result.bin_edges, out[1]))
