"""The largest and the smallest, their places, and running ones."""

import math

import numpy as np

from . import Error, Input, case
from .reduction import ALL_DIMS, BAD_DIMS, LINE, PARTLY, RANGE, reduces

NAN, INF = math.nan, math.inf

# ---- extremes

NO_DIM = "Expected reduction dim to be specified for input.numel() == 0."
HINT = " Specify the reduction dim with the 'dim' argument."
for name, ref in (("amax", np.max), ("amin", np.min)):
    case(
        name,
        reduces(ref),
        *ALL_DIMS,
        Input((0, 2), dim=1),
        *BAD_DIMS,
        Error(RuntimeError, f"{name}(): {NO_DIM}{HINT}", (0,)),
        Error(IndexError, f"{name}(): Expected reduction dim 0 to have non-zero size.", (0, 2), dim=0),
        ints=True,
    )
    case(name, reduces(ref), Input(PARTLY), Input(PARTLY, dim=0), grad=0)


def extreme(best, place):
    """max or min: of all, along a dim with its first place, or of two."""

    def ref(x, dim=None, keepdim=False, axis=None):
        dim = dim if axis is None else axis
        if isinstance(dim, np.ndarray):
            return {np.max: np.maximum, np.min: np.minimum}[best](x, dim)
        if dim is None:
            return best(x)
        if x.ndim == 0:
            return x, np.array(0)
        return best(x, dim, keepdims=keepdim), place(x, dim, keepdims=keepdim)

    return ref


for name, best, place in (("max", np.max, np.argmax), ("min", np.min, np.argmin)):
    case(
        name,
        extreme(best, place),
        *(Input((2, 3)), Input((2, 3), dim=0), Input((2, 3), -1, True), Input((2, 3), (3,)), Input((), dim=0)),
        *(Input((2, 3, 4), axis=1), Input((2, 0), 0), Input(())),
        Error(RuntimeError, f"{name}(): {NO_DIM}{HINT}", (0,)),
        Error(IndexError, f"{name}(): Expected reduction dim 0 to have non-zero size.", (0, 2), 0),
        Error(IndexError, RANGE, (2, 2), 2),
        Error(TypeError, f"{name}() received an invalid combination of arguments - got (Tensor, str), but", (2,), "a"),
        Error(NotImplementedError, f"\"{name}_all\" not implemented for 'ComplexFloat'", np.array([1j], np.complex64)),
    )
    case(name, extreme(best, place), Input(LINE), Input(LINE, dim=0), Input(PARTLY, dim=1), grad=0)
    case(name, extreme(best, place), Input(LINE), Input(LINE, dim=0), grad=0, ints=True)
    case(name, extreme(best, place), Input(np.array([[True, False], [True, True]]), dim=1), grad=0)

EMPTY = "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
case(
    "aminmax",
    lambda x, dim=None, keepdim=False: (np.min(x, dim, keepdims=keepdim), np.max(x, dim, keepdims=keepdim)),
    *(Input((2, 3)), Input((2, 3), dim=0), Input((2, 3), dim=1, keepdim=True)),
    Error(RuntimeError, EMPTY, (0,)),
    Error(IndexError, "aminmax: Expected reduction dim 0 to have non-zero size.", (0, 2), dim=0),
)

TIED = np.array([[1.0, 3.0, 3.0], [2.0, NAN, 5.0], [0.0, -1.0, -1.0]])
for name, ref in (("argmax", np.argmax), ("argmin", np.argmin)):
    case(
        name,
        lambda x, dim=None, keepdim=False, ref=ref: ref(x, dim, keepdims=keepdim),
        *(Input(TIED), Input(TIED, dim=0), Input(TIED, dim=1, keepdim=True), Input(TIED, keepdim=True), Input(())),
        Input((2, 0), dim=0),
        Error(IndexError, f"{name}(): {NO_DIM}", (0,)),
        Error(IndexError, f"{name}(): Expected reduction dim 0 to have non-zero size.", (0, 2), dim=0),
        Error(RuntimeError, f"{name}(): does not support bool input", np.array([True])),
        Error(RuntimeError, f"{name}(): does not support complex input", np.array([1j], np.complex64)),
        grad=0,
    )
    case(name, ref, Input(LINE), ints=True, grad=0)


def running_ref(better):
    def ref(x, dim):
        if x.ndim == 0:
            return x, np.array(0)
        moved = np.moveaxis(x, dim, 0)
        values, places = moved.copy(), np.zeros(moved.shape, np.int64)
        for k in range(1, len(moved)):
            takes = better(moved[k], values[k - 1]) | np.isnan(moved[k])
            takes &= ~np.isnan(values[k - 1]) | np.isnan(moved[k])
            values[k] = np.where(takes, moved[k], values[k - 1])
            places[k] = np.where(takes, k, places[k - 1])
        return np.moveaxis(values, 0, dim), np.moveaxis(places, 0, dim)

    return ref


for name, better in (("cummax", np.greater_equal), ("cummin", np.less_equal)):
    case(name, running_ref(better), Input((3, 5), 0), Input((3, 5), dim=-1), Input((), dim=0), Input((0,), 0))
    case(
        name, running_ref(better), Input(TIED, 0), Input(TIED, 1), Input(np.array([1.0, 3, 3, NAN, 2, NAN]), 0), grad=0
    )
    case(name, running_ref(better), Input(LINE, 0), grad=0, ints=True)
