"""Medians, quantiles, modes and histograms."""

import math

import numpy as np

from . import Error, Input, case
from .reduction import LINE, PARTLY

NAN, INF = math.nan, math.inf

# ---- orders


def nth(x, dim, keepdim):
    order = np.argsort(x, axis=dim, kind="stable")
    place = np.take(order, [(x.shape[dim] - 1) // 2], axis=dim)
    value = np.take_along_axis(x, place, dim)
    return tuple(r if keepdim else np.squeeze(r, dim) for r in (value, place))


def median_ref(x, dim=None, keepdim=False):
    if dim is None:
        return np.sort(x, axis=None)[(x.size - 1) // 2]
    return (x, np.array(0)) if x.ndim == 0 else nth(x, dim, keepdim)


NO_MEDIAN = Error(NotImplementedError, "\"median_cpu\" not implemented for 'Bool'", np.array([True]))
for name in ("median", "nanmedian"):
    case(
        name,
        median_ref,
        *(Input((5,)), Input((2, 4)), Input((2, 4), 0), Input((2, 5), dim=-1, keepdim=True), Input((), dim=0)),
        NO_MEDIAN,
        Error(IndexError, "median(): Expected reduction dim 0 to have non-zero size.", (0, 2), 0),
    )
    case(name, lambda x: np.array(NAN), Input((0,)), grad=0)
case("median", lambda x: np.array(NAN), Input(PARTLY), grad=0)
case("median", lambda x, dim: (np.array([NAN, 0.5]), np.array([1, 0])), Input(PARTLY, 1), grad=0)
case("nanmedian", lambda x: np.array(1.0), Input(PARTLY), grad=0)
case(
    "nanmedian",
    lambda x, dim: (np.array([1.0, NAN]), np.array([0, 0])),
    Input(np.array([[1.0, NAN, 3.0], [NAN, NAN, NAN]]), 1),
    grad=0,
)
case(
    "mode",
    lambda x, dim=-1: (np.array([2.0, 1.0]), np.array([2, 3])),
    Input(np.array([[1.0, 2.0, 2.0, 3.0], [3.0, 1.0, 3.0, 1.0]])),
    Input(np.array([[1.0, 3.0], [2.0, 1.0], [2.0, 3.0], [3.0, 1.0]]), 0),
    grad=0,
)
case(
    "mode",
    lambda x, dim=-1: (np.max(x, dim), np.argmax(x, dim)),
    Input(np.array([[1.0, 2.0]]), 0),
    Input(np.array([[3.0], [1.0]]), 1),
    Error(IndexError, "mode(): Expected reduction dim 0 to have non-zero size.", (0, 2), 0),
)


def quantile_ref(function):
    def ref(x, q, dim=None, keepdim=False, interpolation="linear"):
        return function(x, q, axis=dim, keepdims=keepdim, method=interpolation)

    return ref


Q = np.array([0.15, 0.5, 0.95])
EACH_WAY = [Input((5,), 0.3, interpolation=way) for way in ("linear", "lower", "higher", "midpoint")]
QUANTILES = [
    *(Input((2, 5), 0.4), Input((2, 5), 0.4, dim=0), Input((2, 5), Q, dim=1, keepdim=True), Input((3, 2, 4), Q, dim=0)),
    *(Input((3, 2, 4), Q), Input((3, 2, 4), Q, dim=1), Input((2, 5), 0.0), Input((2, 5), 1.0), Input((), 0.3)),
    Input((2, 5), 0.4, keepdim=True),
]
for name, ref in (("quantile", np.quantile), ("nanquantile", np.nanquantile)):
    case(
        name,
        quantile_ref(ref),
        *QUANTILES,
        *EACH_WAY,
        Error(RuntimeError, "quantile() q must be in the range [0, 1] but got 1.5", (2,), 1.5),
        Error(RuntimeError, "quantile() q values must be in the range [0, 1]", (2,), np.array([1.5])),
        Error(RuntimeError, "quantile() input tensor must be either float or double dtype", np.array([1]), 0.5),
        Error(RuntimeError, "quantile() q must be a scalar or 1D tensor", (2,), (1, 1)),
        Error(RuntimeError, "quantile() q tensor must be same dtype as the input tensor", (2,), np.array([1])),
        Error(RuntimeError, "quantile() input tensor must be non-empty", (0,), 0.5),
        Error(RuntimeError, "quantile() interpolation must be one of linear, lower,", (2,), 0.5, interpolation="up"),
        low=False,
        wrt=(0,),
        roundings=32,  # the place between two elements is rounded, and they may be much larger than what is between
    )
case("quantile", quantile_ref(np.quantile), Input((4,), 0.4, interpolation="nearest"), low=False)
case("quantile", quantile_ref(np.quantile), Input(np.array([3.0, 1.0, 2.0, 7.0]), Q), low=False, wrt=(1,))
case(
    "quantile",
    lambda x, q, dim: np.array([NAN, 0.5]),
    Input(np.array([[1, NAN], [0.5, 0.5]]), 0.5, 1),
    grad=0,
    low=False,
)
case("nanquantile", quantile_ref(np.nanquantile), Input(PARTLY, 0.3), Input(PARTLY, Q, dim=1), low=False, wrt=(0,))
case(
    "nanquantile",
    lambda x, q, dim: np.array([1.5, NAN]),
    Input(np.array([[1.0, 2], [NAN, NAN]]), 0.5, 1),
    grad=0,
    low=False,
)


# ---- counts


def histc_ref(x, bins=100, min=0, max=0):
    x = x.astype(np.float64)
    low, high = (float(x.min()), float(x.max())) if min == max and x.size else (min, max)
    low, high = (low - 1, high + 1) if low == high else (low, high)
    return np.histogram(x, bins, (low, high))[0].astype(np.float64)


NOT_FLOAT = Error(NotImplementedError, "\"histogram_cpu\" not implemented for 'Long'", np.array([1, 2]), 4)
case(
    "histc",
    histc_ref,
    *(Input(LINE, 4), Input(LINE, bins=3, min=-2, max=1), Input((0,), 3), Input(np.array([1.0, 1.0]), 4)),
    NOT_FLOAT,
    Error(RuntimeError, "torch.histogram(): bins must be > 0, but got 0 for dimension 0", (2,), 0),
    Error(RuntimeError, "torch.histc: max must be larger than min", (2,), 3, 2, 1),
    Error(RuntimeError, "is not finite", np.array([1.0, NAN]), 4),
    grad=0,
)


def histogram_ref(x, bins, range=None, weight=None, density=False):
    counts, edges = np.histogram(x.astype(np.float64), bins, range, density, weight)
    return counts.astype(np.float64), edges


case(
    "histogram",
    histogram_ref,
    *(Input(LINE, 4), Input(LINE, 3, range=(-2.0, 1.0)), Input(LINE, np.array([-3.0, 0.0, 0.5, 2.5]))),
    Input(LINE, 4, weight=np.array([1.0, 2.0, 4.0, 0.5, 3.0]), density=True),
    Error(NotImplementedError, "\"histogramdd\" not implemented for 'Long'", np.array([1, 2]), 4),
    grad=0,
    low=False,
)
COUNTS = np.array([1, 3, 1, 0, 3, 3])
NEGATIVE = "bincount only supports 1-d non-negative integral inputs."
case(
    "bincount",
    lambda x, weights=None, minlength=0: np.bincount(x, weights, minlength),
    *(Input(COUNTS), Input(COUNTS, minlength=9), Input(COUNTS[:0]), Input(COUNTS, (6,))),
    Error(RuntimeError, NEGATIVE, np.array([-1])),
    Error(RuntimeError, NEGATIVE, np.array([[1]])),
    Error(NotImplementedError, "\"bincount_cpu\" not implemented for 'Float'", (2,)),
    Error(RuntimeError, "minlength should be >= 0", np.array([1]), minlength=-1),
    Error(RuntimeError, "weights should be 1-d and have the same length as input", np.array([1, 2]), (1,)),
    grad=0,
    low=False,
)
