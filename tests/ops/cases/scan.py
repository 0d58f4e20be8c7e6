"""Running sums and products, differences and integrals."""

import math

import numpy as np

from . import Error, Input, case
from .reduction import LINE, RANGE

NAN, INF = math.nan, math.inf

# ---- scans


def scans(function):
    def ref(x, dim, axis=None):
        return x.astype(np.int64) if x.ndim == 0 and x.dtype.kind in "bi" else function(x, dim) if x.ndim else x

    return ref


def widened(function):
    return lambda x, dim: function(x, dim, dtype=np.int64 if x.dtype.kind in "bi" else None)


def missing(name):
    return Error(TypeError, f'{name}() missing 1 required positional arguments: "dim"', (2,))


SCANS = [Input((3, 4), 0), Input((3, 4), dim=-1), Input((), 0), Input((0,), 0), Input((2, 33), 1)]
case("cumsum", scans(widened(np.cumsum)), *SCANS, Error(IndexError, RANGE, (2, 2), 2), missing("cumsum"), complex=True)
case("cumsum", scans(widened(np.cumsum)), Input(LINE, 0), ints=True)
ZEROS = np.array([[1.0, 0.0, 3.0, 2.0], [0.0, 2.0, 0.0, 1.5], [2.0, 1.0, -1.0, 0.5]])
case("cumprod", scans(widened(np.cumprod)), *SCANS, Input(ZEROS, 0), Input(ZEROS, 1), missing("cumprod"), complex=True)
case("cumprod", scans(widened(np.cumprod)), Input(np.array([1.0, -0.5, 1.5]), 0), ints=True)


def logcumsumexp_ref(x, dim):
    return np.log(np.cumsum(np.exp(x), dim)) if x.ndim else x


NO_INTS = Error(NotImplementedError, "\"logcumsumexp_out_cpu\" not implemented for 'Long'", np.array([1, 2]), 0)
case("logcumsumexp", logcumsumexp_ref, *SCANS[:3], SCANS[4], NO_INTS)
case(
    "logcumsumexp",
    lambda x, dim: np.array([-INF, -INF, 1.0, 1.0 + math.log(2)]),
    Input(np.array([-INF, -INF, 1.0, 1.0]), 0),
    Input(np.array([-INF, -INF, 1.0, 1.0]), dim=-1),
    grad=0,
)


def diff_ref(x, n=1, dim=-1, prepend=None, append=None):
    parts = [p for p in (prepend, x, append) if p is not None]
    return np.diff(np.concatenate(parts, dim), n, dim)


case(
    "diff",
    diff_ref,
    *(Input((5,)), Input((3, 4), dim=0), Input((3, 4), 2), Input((3,), n=0), Input((3,), n=5), Input((0,))),
    Input((3, 4), prepend=LINE[:3].reshape(3, 1), append=LINE[:3].reshape(3, 1) * 2),
    Error(RuntimeError, "diff expects input to be at least one-dimensional", ()),
    Error(RuntimeError, "order must be non-negative but got -1", (3,), -1),
    Error(RuntimeError, "diff expects prepend or append to be the same dimension as input", (2,), 1, -1, (1, 1)),
    ints=True,
    complex=True,
)
case("diff", np.diff, Input(np.array([True, False, True, True])), grad=0)


def areas(y, x, dx, dim):
    heights = np.moveaxis(y, dim, -1)
    heights = (heights[..., 1:] + heights[..., :-1]) / 2
    if x is None:
        return heights * (1 if dx is None else dx)
    return heights * np.diff(x if x.ndim == 1 else np.moveaxis(x, dim, -1))


def trapezoid_ref(y, x=None, dx=None, dim=-1):
    return areas(y, x, dx, dim).sum(-1)


BOTH = Error(
    TypeError,
    "trapezoid() received an invalid combination of arguments - got (Tensor, Tensor, dx=int)",
    (2,),
    (2,),
    dx=1,
)
PLACES = np.array([0.0, 0.5, 2.0, 3.5])
INTEGRALS = [
    *(Input((3, 4)), Input((3, 4), dim=0), Input((3, 4), dx=2.5), Input((3, 4), PLACES), Input((3, 4), (3, 4))),
    *(Input((4, 3), PLACES, dim=0), Input((1,))),
]
case("trapezoid", trapezoid_ref, *INTEGRALS, Input((0,)), BOTH)
case("trapz", trapezoid_ref, *INTEGRALS)
case(
    "cumulative_trapezoid",
    lambda y, x=None, dx=None, dim=-1: np.moveaxis(np.cumsum(areas(y, x, dx, dim), -1), -1, dim),
    *INTEGRALS,
)
UNEVEN = (
    "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to 'self.dim() = 2', since "
    "dim argument was not given, but got a list of length 1"
)


def gradient_ref(x, spacing=1, dim=None, edge_order=1):
    dims = tuple(range(x.ndim)) if dim is None else dim if isinstance(dim, tuple) else (dim,)
    steps = spacing if isinstance(spacing, list) else [spacing] * len(dims)
    found = np.gradient(x.astype(np.float64), *steps, axis=dims, edge_order=edge_order)
    return tuple(found) if isinstance(found, (tuple, list)) else (found,)


case(
    "gradient",
    gradient_ref,
    *(Input((5,)), Input((3, 4)), Input((3, 4), dim=1, spacing=0.5), Input((4, 5), spacing=[2.0, 0.5], edge_order=2)),
    Input((3, 4), spacing=[PLACES], dim=(1,)),
    Error(RuntimeError, "torch.gradient only supports edge_order=1 and edge_order=2.", (3,), edge_order=3),
    Error(RuntimeError, "torch.gradient expected each dimension size to be at least edge_order+1", (1,)),
    Error(RuntimeError, UNEVEN, (3, 3), spacing=[1]),
)
