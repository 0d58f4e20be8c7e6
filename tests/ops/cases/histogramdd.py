"""Histograms of points."""

import numpy as np

from . import Error, Input, case

POINTS = np.random.default_rng(0).standard_normal((20, 2))
PLACES = np.array([[0.0, 1], [1, 0], [2, 0], [2, 2]])


def histogramdd(x, bins, range=None, weight=None, density=False):
    pairs = None if range is None else list(zip(range[::2], range[1::2]))
    bins = bins if isinstance(bins, (int, list, tuple)) else list(bins)
    hist, edges = np.histogramdd(x.reshape(-1, x.shape[-1]), bins, pairs, density, weight)
    return (hist, *edges)


def _case(*calls, **options):
    case("histogramdd", histogramdd, *calls, grad=0, low=False, f=_flat, **options)


def _flat(*args, **kwargs):
    import cudagrad

    hist, edges = cudagrad.histogramdd(*args, **kwargs)
    return (hist, *edges)


_case(
    Input(POINTS, 3),
    Input(POINTS, [2, 4]),
    Input(POINTS, [2, 3], density=True),
    Input(POINTS, 3, range=(-1, 1, -0.5, 2)),
    Input(PLACES, 2, weight=np.array([1.0, 2, 4, 8])),
    Error(RuntimeError, "torch.histogramdd: input tensor should have at least 2 dimensions", (3,), 2),
    Error(RuntimeError, "histogramdd: The size of bins must be equal to the innermost", PLACES, [3]),
    Error(RuntimeError, "torch.histogram(): bins must be > 0, but got 0 for dimension 1", PLACES, [3, 0]),
    Error(
        RuntimeError,
        "torch.histogramdd: for a 2-dimensional histogram range",
        PLACES,
        2,
        range=(0, 1),
    ),
    Error(RuntimeError, "torch.histogramdd: min should not exceed max", PLACES, 2, range=(1, 0, 0, 1)),
    Error(RuntimeError, "torch.histogramdd: if weight tensor is provided it should have", PLACES, 2, weight=np.ones(3)),
    Error(NotImplementedError, "\"histogramdd\" not implemented for 'Long'", np.ones((2, 2), int), 2),
)
case(
    "histogramdd",
    lambda x, bins: np.histogramdd(x, bins)[0],
    Input(PLACES, [np.array([0.0, 1, 2]), np.array([0.0, 2])]),
    grad=0,
    low=False,
    f=lambda x, bins: _flat(x, bins)[0],
)
