"""Medians, quantiles, modes and histograms."""

import math

from .. import errors
from ..core.op import TABLE, op
from ..core.promote import lift
from ..core.shape import check_dim
from ..core.tensor import Tensor
from .checks import not_implemented, plain, reduced, refuse
from .extremum import nonempty, running, taken
from .outputs import placed, return_type

__all__ = ("median", "nanmedian", "mode", "quantile", "nanquantile", "histc", "histogram", "bincount")
METHODS = __all__

_Median = return_type("median", ("values", "indices"))
_NanMedian = return_type("nanmedian", ("values", "indices"))
_Mode = return_type("mode", ("values", "indices"))
_Histogram = return_type("histogram", ("hist", "bin_edges"))


@op(wide=True)
def order_of(xp, x, *, dim):
    """The places of x's elements from the smallest to the largest along ``dim``, nans last."""
    return xp.argsort(x, axis=dim, kind="stable") if x.ndim else xp.zeros((), xp.int64)


@op(wide=True)
def argmedian(xp, x, *, dim, skip):
    """The place of the lower median along ``dim``, at length 1; of a nan where there is one, unless ``skip``."""
    refuse("median_out", x, "bc")
    order = xp.argsort(x, axis=dim, kind="stable")
    n = x.shape[dim]
    count = (x == x).sum(dim, keepdims=True)  # of numbers: nans come last
    rank = xp.maximum(count - 1, 0) // 2 if skip else xp.where(count < n, count, (n - 1) // 2)
    return xp.take_along_axis(order, rank, dim)


def median(input, dim=None, keepdim=False, *, out=None):
    """The lower median of all, or (values, indices) along ``dim``; nan where one is nan.

    Derivative  to the element that was picked; over all in equal parts to the elements of its value
    Raises      IndexError where dim is empty; the median of nothing at all is nan
    """
    return _median("median", _Median, False, input, dim, keepdim, out)


def nanmedian(input, dim=None, keepdim=False, *, out=None):
    """The lower median of all that is not nan, or (values, indices) along ``dim``.

    Derivative  to the element that was picked; over all in equal parts to the elements of its value
    """
    return _median("nanmedian", _NanMedian, True, input, dim, keepdim, out)


def _median(name, pair, skip, input, dim, keepdim, out):
    if dim is None:
        return placed(name, TABLE["median_of_all"].raw(input, skip=skip), out)
    d = check_dim(dim, input.ndim)
    if input.ndim == 0:
        return placed(name, pair(TABLE["clone"].raw(input), TABLE["order_of"].raw(input, dim=0)), out)
    nonempty("median", input.array.shape, (d,))
    return placed(name, pair(*taken(input, TABLE["argmedian"].raw(input, dim=d, skip=skip), d, keepdim)), out)


def _median_back(m, g, x, out):
    hits = ((x == out) | ((x != x) & (out != out))) + m.null(x)
    return hits * (g / m.sum(hits, dim=None, keepdim=False))


@op(x=_median_back, wide=True, node="Median")
def median_of_all(xp, x, *, skip):
    """The lower median of all elements."""
    refuse("median_cpu", x, "bc")
    line = x.reshape(-1)
    if not line.size:
        return xp.full((), math.nan if x.dtype.kind == "f" else 0, x.dtype)
    return line[TABLE["argmedian"].forward(xp, line, dim=0, skip=skip)[0]]


@op(wide=True)
def argmode(xp, x, *, dim):
    """The last place of the most frequent element along ``dim``, of the smallest of equals, at length 1."""
    refuse("mode_cpu", x, "c")
    moved = xp.moveaxis(x, dim, -1)
    order = xp.argsort(moved, axis=-1, kind="stable")
    values = xp.take_along_axis(moved, order, -1)
    n = values.shape[-1]
    places = xp.arange(n)
    starts = xp.where(places == 0, True, xp.concatenate([values[..., :1], values[..., :-1]], -1) != values)
    first = running(xp, xp.maximum, xp.where(starts, places, 0), values.ndim - 1)
    length = places - first + 1  # of the run of equals up to here
    return xp.moveaxis(xp.take_along_axis(order, xp.argmax(length, axis=-1)[..., None], -1), -1, dim)


def mode(input, dim=-1, keepdim=False, *, out=None):
    """The named tuple (values, indices) of the most frequent element along ``dim``, the smallest of equals.

    Derivative  to the element that was picked
    Raises      IndexError where dim is empty
    """
    d = check_dim(dim, input.ndim)
    if input.ndim == 0:
        return placed("mode", _Mode(TABLE["clone"].raw(input), TABLE["order_of"].raw(input, dim=0)), out)
    nonempty("mode", input.array.shape, (d,))
    return placed("mode", _Mode(*taken(input, TABLE["argmode"].raw(input, dim=d), d, keepdim)), out)


# ---- quantiles

_BETWEEN = ("linear", "lower", "higher", "midpoint", "nearest")


def quantile(input, q, dim=None, keepdim=False, *, interpolation="linear", out=None):
    """The value below which lies the share ``q`` of ``input`` along ``dim`` (all by default); nan where one is nan.

    Shapes      q: a number, or [Q], which comes first in out
    Dtypes      float32, float64
    Derivative  to the two elements in between which it lies
    Raises      RuntimeError for q outside [0, 1], another dtype or interpolation, or an empty input
    """
    return placed("quantile", _quantile(input, q, dim, keepdim, interpolation, False), out)


def nanquantile(input, q, dim=None, keepdim=False, *, interpolation="linear", out=None):
    """As ``quantile``, of what is not nan; nan where nothing is left."""
    return placed("nanquantile", _quantile(input, q, dim, keepdim, interpolation, True), out)


def _quantile(input, q, dim, keepdim, interpolation, skip):
    q = _checked(input, q, interpolation)
    shape = input.array.shape
    d = None if dim is None else check_dim(dim, input.ndim)
    if d is None or not shape:
        rows = TABLE["reshape"].raw(input, shape=(input.numel(),))
    else:
        last = len(shape) - 1
        rows = TABLE["transpose"].raw(input, dim0=d, dim1=last) if d != last else input  # [..., N]
    n = rows.shape[-1]
    order = TABLE["order_of"].raw(rows, dim=rows.ndim - 1)
    ranked = TABLE["gather"].raw(rows, order, dim=rows.ndim - 1)
    rank = TABLE["rank_of"].raw(rows, TABLE["reshape"].raw(q, shape=(q.numel(),)), skip=skip)  # [..., Q]
    values = _between(ranked, rank, interpolation, n)
    return _laid_out(values, q, shape, d, keepdim)


def _checked(input, q, interpolation):
    if input.dtype.name not in ("float32", "float64"):
        raise RuntimeError("quantile() input tensor must be either float or double dtype")
    if interpolation not in _BETWEEN:
        raise RuntimeError(
            "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got "
            f"{interpolation}"
        )
    if not input.numel():
        raise RuntimeError(errors.text("quantile() input tensor must be non-empty", f"got {tuple(input.shape)}"))
    if not isinstance(q, Tensor):
        if not 0 <= plain(q) <= 1:
            raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q:g}")
        return lift(float(q), input, TABLE["order_of"])
    if q.ndim > 1:
        raise RuntimeError("quantile() q must be a scalar or 1D tensor")
    if q.dtype is not input.dtype:
        raise RuntimeError("quantile() q tensor must be same dtype as the input tensor")
    if not bool(((q.array >= 0) & (q.array <= 1)).all()):
        raise RuntimeError("quantile() q values must be in the range [0, 1]")
    return q


@op(y=lambda m, g, x, skip: m.sum_to(g * m.last_rank(x, skip=skip), shape=g.shape[-1:]))
def rank_of(xp, x, y, *, skip):
    """The place, fractional, of share y [Q] among the ordered last dim of x [..., N]; at a nan where it leads there."""
    count = (x == x).sum(-1, keepdims=True)
    rank = y * last_rank_of(xp, x, count, skip)
    return rank if skip else xp.where(count < x.shape[-1], xp.asarray(x.shape[-1] - 1, rank.dtype), rank)


@op()
def last_rank(xp, x, *, skip):
    """The place of the largest of the last dim of x, at length 1."""
    return last_rank_of(xp, x, (x == x).sum(-1, keepdims=True), skip)


def last_rank_of(xp, x, count, skip):
    return xp.maximum(count - 1, 0).astype(x.dtype) if skip else xp.full(count.shape, x.shape[-1] - 1, x.dtype)


def _between(ranked, rank, interpolation, n):
    """The values at fractional places ``rank`` [..., Q] of ``ranked`` [..., N]."""
    if interpolation == "nearest":
        rank = TABLE["round"].call(rank)
    low = TABLE["floor"].call(rank)
    below = _at(ranked, low, n)
    if interpolation in ("lower", "nearest"):
        return below
    above = _at(ranked, TABLE["ceil"].call(rank), n)
    if interpolation == "higher":
        return above
    weight = rank - low if interpolation == "linear" else 0.5
    return TABLE["lerp"].call(below, above, weight)


def _at(ranked, rank, n):
    return TABLE["gather"].raw(ranked, rank.detach().long(), dim=ranked.ndim - 1)


def _laid_out(values, q, shape, d, keepdim):
    """[..., Q], with dim ``d`` where the last one was, as [Q, *the reduced shape]; without Q for a number."""
    target = reduced(shape, (d,) if shape and d is not None else None, keepdim)
    if q.ndim:
        target = (q.numel(), *target)
    last = values.ndim - 1
    if values.ndim > 1:
        values = TABLE["transpose"].raw(values, dim0=d, dim1=last) if d != last else values
        values = TABLE["permute"].raw(values, dims=(d, *(k for k in range(values.ndim) if k != d)))  # [Q, ...]
    return TABLE["reshape"].raw(values, shape=target)


# ---- counts


def _range_of(xp, name, x, low, high, half=1):
    """The range to count in: as given, else x's own; where it is one place, from ``half`` below to ``half`` above."""
    if (low is None or (low == high and name == "histc")) and x.size:
        low, high = float(x.min()), float(x.max())
    if low is None:
        low, high = 0, 1
    if low == high:
        low, high = low - half, high + half
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"torch.{name}: range of [{low:g}, {high:g}] is not finite")
    if low > high:
        raise RuntimeError(f"torch.{name}: max must be larger than min")
    return low, high


def _bins(xp, x, edges):
    """The bin of each element of x, between ascending edges, the last of which counts; -1 outside."""
    place = xp.searchsorted(edges, x, side="right") - 1
    last = len(edges) - 1
    place = xp.where(x == edges[-1], last - 1, place)
    return xp.where((x >= edges[0]) & (x <= edges[-1]), place, -1)


def _even_bins(xp, x, bins, low, high):
    place = ((x - low) / (high - low) * bins).astype(xp.int64)
    return xp.where((x >= low) & (x <= high), xp.minimum(place, bins - 1), -1)


@op(wide=True)
def histc(xp, x, *, bins=100, min=0, max=0):
    """The counts of x's elements in ``bins`` equal parts of [min, max], of its own range where both are equal.

    Shapes      out [bins]
    Dtypes      floating; out as x. Elements outside, and nan, count nowhere
    Raises      RuntimeError where bins < 1, max < min, or the range is not finite
    """
    if x.dtype.kind in "biuc":
        raise not_implemented("histogram_cpu", x)
    if bins < 1:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    line = x.reshape(-1)
    low, high = _range_of(xp, "histc", line, min, max)
    place = _even_bins(xp, line, bins, low, high)
    return xp.bincount(place[place >= 0], minlength=bins).astype(x.dtype)


@op(wide=True, outputs=2)
def counted(xp, x, edges=None, weight=None, *, bins, low, high, density):
    """The histogram of x between ``edges``, or in ``bins`` equal parts of [low, high], and those edges."""
    line = x.reshape(-1)
    if edges is None:
        low, high = _range_of(xp, "histogram", line, low, high, 0.5)
        edges = xp.linspace(low, high, bins + 1).astype(x.dtype)
        place = _even_bins(xp, line, bins, low, high)
    else:
        place = _bins(xp, line, edges)
    inside = place >= 0
    weights = None if weight is None else weight.reshape(-1)[inside]
    counts = xp.bincount(place[inside], weights, minlength=len(edges) - 1).astype(x.dtype)
    if density:
        counts = counts / (counts.sum() * (edges[1:] - edges[:-1]))
    return counts, edges


def histogram(input, bins, *, range=None, weight=None, density=False, out=None):
    """The named tuple (hist, bin_edges): counts, or sums of ``weight``, of elements in bins.

    Shapes      bins: a count of equal parts of ``range`` (input's own by default), or ascending edges [N + 1]
    Dtypes      floating; out as input
    """
    if input.dtype.category != 2:
        raise not_implemented("histogramdd", input.array)
    if isinstance(bins, Tensor):
        result = TABLE["counted"].raw(input, bins, weight, bins=0, low=0, high=0, density=density)
    else:
        if bins < 1:
            raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
        low, high = range or (None, None)
        result = TABLE["counted"].raw(input, None, weight, bins=bins, low=low, high=high, density=density)
    return placed("histogram", _Histogram(*result), out)


def _counting(input, weights=None, minlength=0):
    if input.dtype.category != 1:
        raise not_implemented("bincount_cpu", input.array)
    if input.ndim != 1 or (input.numel() and int(input.array.min()) < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if weights is not None and weights.array.shape != input.array.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    return input, weights, minlength


@op(prepare=_counting)
def bincount(xp, x, w=None, *, minlength):
    """How often each of 0, 1, ... comes in x, or the sum of the weights there.

    Shapes      x [N]; weights [N]; out [max(x) + 1], at least minlength
    Dtypes      x integers; out int64, with weights float32 for float32, else float64
    Raises      RuntimeError for negative elements, other shapes or a negative minlength
    """
    if w is None:
        return xp.bincount(x, minlength=minlength).astype(xp.int64)
    single = w.dtype == xp.float32
    return xp.bincount(x, w, minlength=minlength).astype(xp.float32 if single else xp.float64)
