"""Writing single elements along a dim: replaced, added, multiplied, averaged, the largest or smallest kept."""

import numpy as np

from . import Error, Input, case

RANGE = "Dimension out of range (expected to be in range of [-2, 1], but got 5)"
APART = np.array([[0, 1, 3], [2, 0, 1]])  # no place twice in a row
TWICE = np.array([[0, 0, 3], [2, 2, 2]])


def places(x, dim, index):
    """The NumPy index of the places that ``index`` means along ``dim``."""
    return tuple(index if d == dim % x.ndim else i for d, i in enumerate(np.indices(index.shape, sparse=True)))


def scatter_ref(x, dim, index, src=None, value=None, reduce=None):
    out, src = np.array(x).reshape(x.shape or 1), value if src is None else src
    index = index.reshape(index.shape or 1)
    src = src.reshape(src.shape or 1)[tuple(map(slice, index.shape))] if isinstance(src, np.ndarray) else src
    if index.size:
        where = places(out, dim, index)
        {None: out.__setitem__, "add": adding(out), "multiply": multiplying(out)}[reduce](where, src)
    return out.reshape(x.shape)


def adding(out):
    return lambda where, src: np.add.at(out, where, src)


def multiplying(out):
    return lambda where, src: np.multiply.at(out, where, src)


def wrong(y):
    """The errors of indices that scatter's family shares; ``y`` makes the last argument, of a shape."""
    return [
        Error(RuntimeError, "index 9 is out of bounds for dimension 1 with siz", (3, 4), 1, np.array([[9]]), y((1, 1))),
        Error(RuntimeError, "index -1 is out of bounds for dimension 1 with s", (3, 4), 1, np.array([[-1]]), y((1, 1))),
        Error(RuntimeError, "Index tensor must have the same number of dimensions", (3, 4), 1, np.array([0]), y((1,))),
        Error(RuntimeError, "scatter(): Expected dtype int32/int64 for index", (3, 4), 1, np.zeros((1, 1)), y((1, 1))),
        Error(IndexError, RANGE, (3, 4), 5, APART, y((2, 3))),
    ]


SMALL = (
    "Expected index [2, 3] to be no larger than self [3, 4] apart from dimension 1 and to be no larger size than src"
)
TYPES = "scatter(): Expected self.dtype to be equal to src.dtype"
case(
    "scatter",
    scatter_ref,
    *(
        Input((3, 4), 1, APART, (2, 3)),
        Input((4, 3), 0, APART, (2, 3)),
        Input((3, 4), dim=-1, index=APART, src=np.ones((2, 3))),
    ),
    *(Input((3, 4), 1, APART, (3, 5)), Input((3, 4), 1, APART.astype(np.int32), (2, 3)), Input((), 0, np.array(0), ())),
    *wrong(lambda shape: shape),
    Error(RuntimeError, SMALL, (3, 4), 1, APART, (1, 3)),
    Error(RuntimeError, TYPES, (3, 4), 1, APART, APART),
    complex=True,
)
case("scatter", scatter_ref, Input((3, 4), 1, APART, np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])), ints=True, grad=1)
case("scatter", scatter_ref, Input((3, 4), 1, TWICE, (2, 3)), grad=0)
case(
    "scatter",
    scatter_ref,
    *(
        Input((3, 4), 1, TWICE, 2.5),
        Input((4, 3), 0, APART, value=1),
        Input((3, 4), 1, APART[:, :0], 1.0),
        Input((), 0, np.array(0), 3),
    ),
    *(Input((3, 4), 1, TWICE, 2.0, reduce="add"), Input((3, 4), 1, TWICE, 2.0, reduce="multiply")),
    *(Input((3, 4), 1, TWICE, (2, 3), reduce="add"), Input((3, 4), 1, TWICE, (2, 3), reduce="multiply")),
    *wrong(lambda shape: 1.0),
    Error(RuntimeError, "reduce argument must be either add or multiply.", (3, 4), 1, APART, 1.0, reduce="sum"),
    Error(RuntimeError, "value cannot be converted to type int8_t without o", np.zeros((3, 4), np.int8), 1, APART, 300),
)


def scatter_add_ref(x, dim, index, src):
    return scatter_ref(x, dim, index, src, reduce="add")


case(
    "scatter_add",
    scatter_add_ref,
    *(
        Input((3, 4), 1, TWICE, (2, 3)),
        Input((4, 3), 0, TWICE, (2, 3)),
        Input((3, 4), dim=-1, index=TWICE, src=np.ones((2, 3))),
    ),
    *(Input((3, 4), 1, TWICE, (3, 5)), Input((), 0, np.array([0, 0]), (2,)), Input((3, 4), 1, TWICE[:, :0], (2, 3))),
    *(Input((5,), 0, np.arange(1000) % 3, (1000,)), Input((2, 40), 1, np.arange(600).reshape(2, 300) % 33, (2, 300))),
    *wrong(lambda shape: shape),
    Error(RuntimeError, SMALL, (3, 4), 1, APART, (1, 3)),
    Error(RuntimeError, TYPES, (3, 4), 1, APART, APART),
    Error(TypeError, "scatter_add(): argument 'src' (position 4) must be Tensor, not int", (3, 4), 1, APART, 5),
    ints=True,
    complex=True,
)

# ---- reductions


def reduced(combine):
    """``scatter_reduce`` by its definition: a list of what counts at each place."""

    def ref(x, dim, index, src, reduce, include_self=True):
        out = x.copy()
        for place in np.ndindex(*x.shape):
            hits = [
                src[i]
                for i in np.ndindex(*index.shape)
                if index[i] == place[dim] and all(i[d] == p for d, p in enumerate(place) if d != dim % x.ndim)
            ]
            if hits:
                out[place] = combine([x[place], *hits] if include_self else hits)
        return out

    return ref


def whole_mean(values):
    mean = np.mean(values)
    return np.floor(mean) if np.asarray(values).dtype.kind in "iu" else mean


REDUCTIONS = {"sum": np.sum, "prod": np.prod, "mean": whole_mean, "amax": np.max, "amin": np.min}
X = np.random.default_rng(1).standard_normal((3, 4))
BIG = np.random.default_rng(4).standard_normal((4, 5))
Y = np.random.default_rng(2).standard_normal((2, 3))
for name, combine in REDUCTIONS.items():
    case(
        "scatter_reduce",
        reduced(combine),
        *(Input(X, 1, TWICE, Y, name), Input(X, 1, TWICE, Y, name, include_self=False), Input(X.T, 0, TWICE, Y, name)),
        *(
            Input(X, dim=1, index=TWICE, src=Y, reduce=name),
            Input(X, 1, TWICE, BIG, name),
        ),
        Error(RuntimeError, "reduce argument must be either sum, prod, mean, amax or amin, got", X, 1, TWICE, Y, "zzz"),
        Error(RuntimeError, "index 9 is out of bounds for dimension 1 with size 4", X, 1, TWICE + 9, Y, name),
        Error(RuntimeError, TYPES, X, 1, TWICE, TWICE, name),
        ints=True,
        roundings=6,
    )
ZEROS = np.array([[0.0, 2.0, 3.0, 0.0], [1.0, 0.5, 0.0, 2.0], [1.0, 1.0, 1.0, 1.0]])
case(
    "scatter_reduce",
    reduced(np.prod),
    Input(ZEROS, 1, TWICE, np.array([[2.0, 0.0, 3.0], [0.0, 0.0, 1.5]]), "prod"),
    grad=1,
)
case(
    "scatter_reduce",
    reduced(np.max),
    Input(np.array([np.nan, 1.0]), 0, np.array([0, 1]), np.array([1.0, np.nan]), "amax"),
    grad=0,
)


def index_reduce_ref(combine):
    def ref(x, dim, index, source, reduce, include_self=True):
        shape = [1] * x.ndim
        shape[dim] = index.size
        return reduced(combine)(
            x, dim, np.broadcast_to(index.reshape(shape), source.shape), source, reduce, include_self
        )

    return ref


for name in ("prod", "mean", "amax", "amin"):
    case(
        "index_reduce",
        index_reduce_ref(REDUCTIONS[name]),
        *(
            Input(X, 0, np.array([2, 0, 2]), BIG[:3, :4], name),
            Input(X, 1, np.array([1, 1]), Y.T[:, :2], name, include_self=False),
        ),
        Error(RuntimeError, "index_reduce(): Expected reduce to be one of prod, me", X, 0, np.array([0]), X[:1], "sum"),
        Error(IndexError, "index_reduce_(): Index is supposed to be a vector, but got dim:", X, 0, TWICE, X[:2], name),
        roundings=6,
    )
