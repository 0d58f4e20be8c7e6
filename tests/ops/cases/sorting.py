"""Orders, distinct elements, and searching."""

import numpy as np

import cudagrad

from . import Error, Input, case

NAN, INF = np.nan, np.inf
ODD = np.array([NAN, 1.0, INF, NAN, -1.0, 1.0, -INF])
DISTINCT = np.array([[3.0, 1.0, 2.0, 1.5], [0.5, 0.75, 0.0, 0.25], [-1.0, 4.0, -2.0, 3.5]])
TIES = np.array([[3.0, 1.0, 2.0, 1.0], [0.5, 0.5, 0.5, 0.25], [-1.0, 4.0, -1.0, 4.0]])
RANGE = "Dimension out of range (expected to be in range of [-2, 1], but got 5)"
LONG = np.random.default_rng(3).integers(0, 400, (2, 1500)) / 8.0  # with many ties

# ---- orders


def places(x, dim=-1, descending=False, stable=False, axis=None):
    """The stable order by keys: nan is the largest, equal elements keep theirs."""
    if x.ndim == 0:
        return np.array(0)
    dim = dim if axis is None else axis
    keys = np.moveaxis(x, dim, -1)
    order = np.empty(keys.shape, np.int64)
    for row in np.ndindex(keys.shape[:-1]):
        rank = [(np.isnan(v), v) if v.dtype.kind in "f" else (False, v) for v in keys[row]]
        rank = [(True, 0) if nan else (False, v) for nan, v in rank]
        first = sorted(range(len(rank)), key=lambda i: rank[i])
        if descending:
            first = sorted(range(len(rank)), key=lambda i: (rank[i], -i), reverse=True)
        order[row] = first
    return np.moveaxis(order, -1, dim)


def picked(x, index, dim):
    return np.take_along_axis(x, index, dim) if x.ndim else x


def sort_ref(x, dim=-1, descending=False, stable=False, axis=None):
    dim = dim if axis is None else axis
    index = places(x, dim, descending)
    return picked(x, index, dim), index


def orders(x):
    return [Input(x), Input(x, 0), Input(x, descending=True), Input(x, dim=-2, descending=True, stable=True)]


NO_COMPLEX = Error(RuntimeError, " Sort does not support complex dtypes on CPU", np.array([1j]))
OUT = Error(IndexError, RANGE, (2, 2), 5)
case("sort", sort_ref, *orders(DISTINCT), Input(()), Input((0, 3)), Input((2, 33), axis=0), NO_COMPLEX, OUT)
case("sort", sort_ref, *orders(TIES), Input(ODD), Input(ODD, descending=True), grad=0)
case("sort", sort_ref, Input(TIES), Input(TIES, 0, True), ints=True, grad=0)
case(
    "sort",
    sort_ref,
    Input(np.array([2, 255, 0], np.uint8), descending=True),
    Input(np.array([True, False, True])),
    grad=0,
)
case("argsort", places, *orders(TIES), Input(()), Input(ODD), Input(ODD, descending=True), NO_COMPLEX, OUT)
case("msort", lambda x: np.sort(x, 0) if x.ndim else x, Input((3, 2)), Input(()), Input((4,)))


def topk_ref(x, k, dim=-1, largest=True, sorted=True, axis=None):
    dim = dim if axis is None else axis
    index = places(x, dim, largest)
    index = np.take(index, range(k), dim) if x.ndim else index
    return picked(x, index, dim), index


case(
    "topk",
    topk_ref,
    *(
        Input(DISTINCT, 2),
        Input(DISTINCT, 2, 0),
        Input(DISTINCT, 3, largest=False),
        Input(DISTINCT, k=1, dim=-2, sorted=False),
        Input(DISTINCT, 0),
    ),
    *(Input((), 1), Input((2, 1500), 5), Input((2, 1500), 7, largest=False), Input((1500, 2), 3, axis=0)),
    Error(RuntimeError, "selected index k out of range", (4,), 5),
    Error(RuntimeError, "selected index k out of range", (4,), -1),
    Error(RuntimeError, "topk does not support bool dtypes on CPU", np.array([True]), 1),
    Error(IndexError, RANGE, (2, 2), 1, 5),
)
HOLES = np.where(np.arange(3000) % 700 == 0, NAN, np.resize(LONG[0], 3000))
TIED = dict(grad=0, f=lambda *args, **options: cudagrad.topk(*args, **options))  # where PyTorch promises no order
for calls in (
    (Input(ODD, 3), Input(ODD, 3, largest=False), Input(HOLES, 9), Input(HOLES, 9, largest=False)),
    (Input(np.full(2000, NAN), 3), Input(np.full(2000, NAN), 3, largest=False), Input(LONG, 0)),
    (Input(LONG, 5), Input(LONG, 7, largest=False), Input(LONG.T, 3, axis=0)),
):
    case("topk", topk_ref, *calls, **TIED)
case("topk", topk_ref, Input(TIES, 2), Input(TIES, 2, 0, False), ints=True, **TIED)


def kth_ref(x, k, dim=-1, keepdim=False, axis=None):
    dim = dim if axis is None else axis
    if x.ndim == 0:
        return x, np.array(0)
    index = np.take(places(x, dim), [k - 1], dim)
    value = np.take_along_axis(x, index, dim)
    return (value, index) if keepdim else (value.squeeze(dim), index.squeeze(dim))


case(
    "kthvalue",
    kth_ref,
    *(Input(DISTINCT, 2), Input(DISTINCT, 1, 0, True), Input(DISTINCT, k=3, dim=-2), Input((), 1)),
    Error(RuntimeError, "kthvalue(): selected number k out of range for dimension 0", (4,), 0),
    Error(RuntimeError, "kthvalue(): selected number k out of range for dimension 0", (4,), 5),
    Error(IndexError, "kthvalue(): Expected reduction dim 0 to have non-zero size.", (0,), 1),
)
case("kthvalue", kth_ref, Input(ODD, 6), Input(TIES, 2), grad=0, f=lambda x, k: cudagrad.kthvalue(x, k))

# ---- distinct elements


def unique_ref(x, sorted=True, return_inverse=False, return_counts=False, dim=None):
    values, inverse, counts = np.unique(x, return_inverse=True, return_counts=True, axis=dim, equal_nan=False)
    inverse = inverse.reshape(x.shape if dim is None else -1)
    found = [values] + [inverse] * return_inverse + [counts] * return_counts
    return found[0] if len(found) == 1 else found


ALL = dict(return_inverse=True, return_counts=True)
PAIRS = np.array([[3, 1], [2, 1], [3, 1]])
EMPTY = "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied"
case(
    "unique",
    unique_ref,
    *(Input(TIES), Input(TIES, **ALL), Input(TIES, sorted=False, return_counts=True), Input(PAIRS, dim=0, **ALL)),
    *(Input(PAIRS, dim=1, **ALL), Input(np.stack([PAIRS, PAIRS[::-1]], 2), dim=0, **ALL), Input(np.array(2.0), **ALL)),
    *(
        Input(np.array([True, False, True]), **ALL),
        Input(np.array([3, 1, 1]), dim=0, **ALL),
        Input(np.zeros((0, 3)), dim=0),
    ),
    *(Input(np.zeros(0), **ALL), Input(ODD), Input(np.array([1, 2, 2], np.uint8))),
    Error(RuntimeError, EMPTY, np.zeros((3, 0)), dim=0),
    Error(IndexError, RANGE, PAIRS, dim=5),
    grad=0,
)


def consecutive_ref(x, return_inverse=False, return_counts=False, dim=None):
    lines = x.reshape(-1, 1) if dim is None else np.moveaxis(x, dim, 0).reshape(x.shape[dim], -1)
    starts = [i for i in range(len(lines)) if i == 0 or (lines[i] != lines[i - 1]).any()]
    counts = np.diff([*starts, len(lines)]).astype(np.int64)
    inverse = np.repeat(np.arange(len(starts)), counts).reshape(x.shape if dim is None else -1)
    values = x.reshape(-1)[starts] if dim is None else np.take(x, starts, dim)
    found = [values] + [inverse] * return_inverse + [counts] * return_counts
    return found[0] if len(found) == 1 else found


RUNS = np.array([1, 1, 2, 2, 1, 3, 3])
case(
    "unique_consecutive",
    consecutive_ref,
    *(
        Input(RUNS),
        Input(RUNS, **ALL),
        Input(PAIRS[[0, 0, 1, 0]], dim=0, **ALL),
        Input(PAIRS, **ALL),
        Input(PAIRS, dim=1),
    ),
    *(Input(np.array([NAN, NAN, 2.0])), Input(RUNS, return_counts=True)),
    grad=0,
)

# ---- searching

EDGES = np.array([1.0, 3.0, 3.0, 5.0])
VALUES = np.array([[0.0, 1.0, 2.0], [3.0, 5.0, 6.0]])
GRID = np.array([[1, 3, 5], [2, 4, 6]])


def search_ref(edges, values, right=False, side=None, out_int32=False, sorter=None):
    side = "right" if right or side == "right" else "left"
    if edges.ndim == 1:
        return np.asarray(np.searchsorted(edges, values, side, sorter))
    return np.stack([np.searchsorted(e, v, side) for e, v in zip(edges, values)])


case(
    "searchsorted",
    search_ref,
    *(
        Input(EDGES, VALUES),
        Input(EDGES, VALUES, right=True),
        Input(EDGES, VALUES, side="right", out_int32=True),
        Input(EDGES, 3),
    ),
    *(
        Input(GRID, np.array([[3], [3]])),
        Input(GRID, GRID, right=True),
        Input(EDGES, np.array([NAN])),
        Input(EDGES, 2.5),
    ),
    *(Input(np.array([5, 1, 3]), np.array([2, 6]), sorter=np.array([1, 2, 0])), Input(np.array([1, 2]), VALUES)),
    Error(RuntimeError, "torch.searchsorted(): side and right can't be set to", EDGES, VALUES, side="left", right=True),
    Error(RuntimeError, "torch.searchsorted(): side can only be 'left' or 'right' but got x", EDGES, VALUES, side="x"),
    Error(RuntimeError, "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimen", GRID, 3),
    Error(RuntimeError, "torch.searchsorted(): boundaries tensor should be 1 dimension or the fi", GRID, np.array([3])),
    Error(RuntimeError, "torch.searchsorted(): boundary and sorter must have the", EDGES, VALUES, sorter=np.array([1])),
    Error(RuntimeError, "torch.searchsorted(): sorter index out of r", np.array([1, 2]), GRID, sorter=np.array([0, 5])),
    Error(RuntimeError, "torch.searchsorted(): sorter must be a tens", np.array([1]), GRID, sorter=np.array([0], "i4")),
    grad=0,
)
case(
    "bucketize",
    lambda values, edges, right=False, out_int32=False: search_ref(edges, values, right),
    *(Input(VALUES, EDGES), Input(VALUES, EDGES, right=True, out_int32=True), Input(3, EDGES)),
    Error(RuntimeError, "boundaries tensor must be 1 dimension, but got dim(2)", VALUES, GRID),
    grad=0,
)
