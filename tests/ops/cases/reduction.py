"""Sums, means, products, variances and tests over dims."""

import math

import numpy as np

from . import Error, Input, case

NAN, INF = math.nan, math.inf
RANGE = "Dimension out of range (expected to be in range of [-2, 1], but got 2)"
TWICE = "dim 0 appears multiple times in the list of dims"
LINE = np.array([0.5, -1.5, 2.5, 0.25, -3.0])
HOLES = np.array([[1.0, NAN, 3.0], [NAN, NAN, -2.0]])
PARTLY = np.array([[1.0, NAN, 3.0], [0.5, 4.0, -2.0]])


def over(dim):
    return tuple(dim) if isinstance(dim, (tuple, list)) else dim


def reduces(function, **fixed):
    """A NumPy reduction by PyTorch's keywords."""

    def ref(x, dim=None, keepdim=False, **options):
        return function(x, axis=over(dim) if x.ndim else None, keepdims=keepdim, **fixed, **options)

    return ref


ALL_DIMS = [
    *(Input((2, 3)), Input((2, 3), dim=0), Input((2, 3), dim=-1, keepdim=True), Input((2, 3, 4), dim=(0, 2))),
    *(Input((2, 3, 4), dim=(-1, 1), keepdim=True), Input(()), Input((), dim=0), Input((1, 31, 33), dim=1)),
]
BAD_DIMS = [Error(IndexError, RANGE, (2, 2), dim=2), Error(RuntimeError, TWICE, (2, 2), dim=(0, 0))]


def no_tensor(name):
    return Error(TypeError, f"{name}(): argument 'input' (position 1) must be Tensor, not int", 3)


# ---- sums and means


def sum_ref(x, dim=None, keepdim=False, axis=None, keepdims=None):
    dim, keepdim = (dim if axis is None else axis), (keepdim if keepdims is None else keepdims)
    return np.sum(
        x, axis=over(dim) if x.ndim else None, keepdims=keepdim, dtype=np.int64 if x.dtype.kind in "bi" else None
    )


case(
    "sum",
    sum_ref,
    *ALL_DIMS,
    *(Input((0, 3)), Input((0, 3), dim=0), Input((2, 3), axis=1, keepdims=True), Input((2, 1000), dim=1)),
    *BAD_DIMS,
    no_tensor("sum"),
    ints=True,
    complex=True,
)
case("sum", lambda x: np.sum(x), Input(np.array([True, True, False])), grad=0)
NO_MEAN = (
    "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: Long"
)
case(
    "mean",
    reduces(np.mean),
    *ALL_DIMS,
    *BAD_DIMS,
    no_tensor("mean"),
    Error(RuntimeError, NO_MEAN, np.array([1, 2])),
    complex=True,
)
case("mean", lambda x, dim=None: np.full(np.sum(x, dim).shape, NAN), Input((0,)), Input((2, 0), dim=1), grad=0)
case(
    "nansum",
    reduces(np.nansum),
    *(Input(PARTLY), Input(PARTLY, dim=0), Input(PARTLY, dim=1, keepdim=True), Input(HOLES, dim=0)),
    Error(RuntimeError, "nansum on CPU does not support complex inputs", np.array([1j], np.complex64)),
)
NO_NANMEAN = "nanmean(): expected input to have floating point or complex dtype but got Long"
case(
    "nanmean",
    reduces(np.nanmean),
    *(Input(PARTLY), Input(PARTLY, dim=0), Input(PARTLY, dim=1, keepdim=True)),
    Error(RuntimeError, NO_NANMEAN, np.array([1])),
)


def var_ref(x, dim=None, unbiased=None, correction=1, keepdim=False):
    ddof = correction if unbiased is None else int(unbiased)
    axes = tuple(range(x.ndim)) if dim is None else over(dim)
    away = x - x.mean(axis=axes, keepdims=True)
    squares = (away * np.conj(away)).real
    n = x.size // max(squares.sum(axis=axes).size, 1)
    return squares.sum(axis=axes, keepdims=keepdim) / (n - ddof)


VARIANCES = [
    *(Input((2, 3)), Input((2, 3), dim=0), Input((2, 3, 4), dim=(0, 2), keepdim=True), Input((5,), correction=0)),
    *(Input((5,), correction=2), Input((2, 3), unbiased=False), Input((4, 3), 0, False), Input((4, 3), 1, True)),
]
NO_VAR = Error(RuntimeError, "std and var only support floating point and complex dtypes", np.array([1, 2]))
case("var", var_ref, *VARIANCES, *BAD_DIMS, NO_VAR, complex=True)
case("std", lambda *a, **k: np.sqrt(var_ref(*a, **k)), *VARIANCES, *BAD_DIMS, NO_VAR, complex=True)


def with_mean(ref):
    def both(x, dim=None, unbiased=None, correction=1, keepdim=False):
        return ref(x, dim, unbiased, correction, keepdim), np.mean(x, axis=over(dim), keepdims=keepdim)

    return both


case("var_mean", with_mean(var_ref), *VARIANCES)
case("std_mean", with_mean(lambda *a: np.sqrt(var_ref(*a))), *VARIANCES)

# ---- products


def prod_ref(x, dim=None, keepdim=False):
    return np.prod(x, axis=dim if x.ndim else None, keepdims=keepdim, dtype=np.int64 if x.dtype.kind in "bi" else None)


NO_PROD = "prod() received an invalid combination of arguments - got (Tensor, dim=tuple), but expected one of:"
case(
    "prod",
    prod_ref,
    *(
        Input((2, 3)),
        Input((2, 3), dim=0),
        Input((2, 3), dim=1, keepdim=True),
        Input(()),
        Input((0,)),
        Input((), dim=0),
    ),
    *(Input(np.array([0.0, 2.0, 3.0])), Input(np.array([[0.0, 2.0, 0.0], [1.5, 0.0, 3.0]]), dim=1)),
    Error(IndexError, RANGE, (2, 2), dim=2),
    Error(TypeError, NO_PROD, (2, 2), dim=(0, 1)),
    complex=True,
)
case("prod", prod_ref, Input(np.array([1.0, 2.0, -1.5])), Input(np.array([[1.0, 2.0]]), dim=0), ints=True)


# ---- sums of exponentials


def logsumexp_ref(x, dim, keepdim=False):
    return np.log(np.sum(np.exp(x), axis=over(dim) if x.ndim else None, keepdims=keepdim))


case(
    "logsumexp",
    logsumexp_ref,
    *(Input((2, 3), 0), Input((2, 3), dim=-1, keepdim=True), Input((2,), 0)),
    Input((2, 3, 4), dim=[0, 2]),
    Input((), dim=0),
    Error(IndexError, RANGE, (2, 2), dim=2),
    Error(TypeError, 'logsumexp() missing 1 required positional arguments: "dim"', (2, 2)),
)
case(
    "logsumexp",
    lambda x, dim: np.array([1000.0 + math.log(2), INF, -INF]),
    Input(np.array([[1000.0, 1000.0], [INF, 1.0], [-INF, -INF]]), dim=1),
    grad=0,
)
case("logsumexp", lambda x, dim: np.full(np.sum(x, dim).shape, -INF), Input((0,), 0), Input((0, 2), 0), grad=0)

# ---- tests and counts

SIGNS = np.array([[1.0, 0.0, 2.0], [-1.0, 3.0, NAN]])
for name, ref in (("all", np.all), ("any", np.any)):
    calls = Input(SIGNS), Input(SIGNS, dim=0), Input(SIGNS, dim=(0, 1)), Input(SIGNS, dim=1, keepdim=True)
    case(name, reduces(ref), *calls, Input((0,)), Input((0, 2), dim=0), *BAD_DIMS, grad=0)
    case(name, lambda x, ref=ref: np.uint8(ref(x)), Input(np.array([1, 2], np.uint8)), Input(np.array([0], np.uint8)))
    case(name, lambda x, dim: x != 0, Input(SIGNS, dim=[]), grad=0)
case(
    "count_nonzero",
    lambda x, dim=None: np.count_nonzero(x, axis=over(dim)),
    *(Input(SIGNS), Input(SIGNS, dim=0), Input(SIGNS, dim=(0, 1)), Input((0,))),
    grad=0,
)
