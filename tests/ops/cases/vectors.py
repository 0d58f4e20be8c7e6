"""Products, distances and lengths of vectors, and covariances."""

import numpy as np

from . import Error, Input, case


def cross_ref(x, y, dim=-1):
    x, y = np.broadcast_arrays(x, y)
    a, b = np.moveaxis(x, dim, 0), np.moveaxis(y, dim, 0)
    rows = np.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])
    return np.moveaxis(rows, 0, dim)


case(
    "cross",
    cross_ref,
    Input((2, 3), (2, 3), dim=-1),
    Input((3, 4), (3, 1), dim=0),
    Error(RuntimeError, "linalg.cross: inputs dimension -1 must have length 3. Got 4 and 4", (2, 4), (2, 4), dim=-1),
    Error(RuntimeError, "no dimension of size 3 in input", (2, 4), (2, 4)),
    Error(RuntimeError, "linalg.cross: inputs must have the same number of dimensions.", (2, 3), (3,)),
    ints=True,
    complex=True,
)
case(
    "dist",
    lambda x, y, p=2: np.sum(np.abs(x - y) ** p) ** (1 / p),
    Input((2, 3), (3,)),
    Input((4,), (4,), p=3),
    Input((4,), (4,), p=1),
)


def renorm_ref(x, p, dim, maxnorm):
    others = tuple(k for k in range(x.ndim) if k != dim)
    length = np.sum(np.abs(x) ** p, axis=others, keepdims=True) ** (1 / p)
    return x * np.where(length > maxnorm, maxnorm / (length + 1e-7), 1).astype(x.dtype)


case(
    "renorm",
    renorm_ref,
    Input((3, 4), 2, 0, 1.5),
    Input((3, 4, 2), 1, 1, 4.0),
    Input((3, 4), 3, 1, 100.0),
    Error(RuntimeError, "renorm: input needs at least 2 dimensions, got 1 dimensions", (3,), 1, 0, 5),
    Error(RuntimeError, "renorm: non-positive-norm not supported", (3, 3), 0, 0, 5),
    Error(RuntimeError, "renorm: expected maxnorm to be >= 0 but got -5", (3, 3), 1, 0, -5),
)

COUNTS, SHARES = np.array([1, 3, 2, 1]), np.array([0.5, 1.0, 2.0, 0.25])
TWO = "expected input to have two or fewer dimensions but got an input with 3 dimensions"


def cov_ref(x, correction=1, fweights=None, aweights=None):
    return np.cov(x, ddof=correction, fweights=fweights, aweights=aweights)


case(
    "cov",
    cov_ref,
    *(Input((3, 4)), Input((4,)), Input((3, 4), correction=0), Input((3, 4), fweights=COUNTS)),
    Input((3, 4), aweights=SHARES),
    Input((3, 4), fweights=COUNTS, aweights=SHARES, correction=2),
    Error(RuntimeError, f"cov(): {TWO}", (2, 2, 2)),
    Error(RuntimeError, "cov(): bool dtype is not supported for input", np.array([True])),
    Error(
        RuntimeError,
        "cov(): expected fweights to have integral dtype but got fweights with Float",
        (3,),
        fweights=SHARES,
    ),
    Error(RuntimeError, "cov(): expected aweights to have floating point dtype but got", (4,), aweights=COUNTS),
    Error(RuntimeError, "cov(): fweights cannot be negative", (4,), fweights=-COUNTS),
    Error(RuntimeError, "cov(): aweights cannot be negative", (4,), aweights=-SHARES),
    Error(RuntimeError, "observations in the input but got 4 != 3", (3,), fweights=COUNTS),
    Error(RuntimeError, "one or fewer dimensions but got fweights with 2 dimensions", (4,), fweights=COUNTS[None]),
    wrt=(0,),
    low=False,
    complex=True,
)
case("corrcoef", np.corrcoef, Input((3, 4)), Error(RuntimeError, f"corrcoef(): {TWO}", (2, 2, 2)), low=False)
case("corrcoef", lambda x: np.array(1.0), Input((4,)), low=False)
