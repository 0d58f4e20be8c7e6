"""Triangular systems, Cholesky factors and what they solve."""

import math

import numpy as np

from ..backend import xp_of
from ..core.op import TABLE, op
from ..core.tensor import wrap
from .linalg_checks import (
    each,
    equal_sides,
    failing_minor,
    first_minor,
    fit,
    floating,
    matrices,
    one_dtype,
    square_matrices,
)
from .matmul import _mT
from .norms import complex_valued
from .outputs import placed, return_type

__all__ = ("cholesky_solve", "cholesky_inverse")
METHODS = ("cholesky_solve", "cholesky_inverse")

_CholeskyEx = return_type("linalg_cholesky_ex", ("L", "info"))


def mH(m, x):
    """The conjugate transpose of matrices, in a formula."""
    return m.conj(_mT(m, x)) if complex_valued(x) else _mT(m, x)


def triangle(m, x, diagonal, lower):
    return m.tril(x, diagonal=diagonal) if lower else m.triu(x, diagonal=diagonal)


def _substitute_back(m, g, x, out, upper, needs, x_shape, y_shape):
    dy = m.substitute(_mT(m, x), g, upper=not upper)
    dx = m.sum_to(-m.matmul(dy, _mT(m, out)), shape=x_shape) if needs[0] else None
    return dx, m.sum_to(dy, shape=y_shape) if needs[1] else None


@op(joint=_substitute_back, node="LinalgSolveTriangular")
def substitute(xp, x, y, *, upper):
    """The solution of x X = y, x triangular, batches broadcast; inf or nan, and no error, where x is singular."""
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    x, y = xp.broadcast_to(x, batch + x.shape[-2:]), xp.broadcast_to(y, batch + y.shape[-2:])
    try:
        return xp.linalg.solve(x, y)
    except np.linalg.LinAlgError:
        return _by_rows(xp, x, y, upper)


def _by_rows(xp, x, y, upper):
    out = xp.zeros(y.shape, y.dtype)
    rows = range(x.shape[-1])
    for i in reversed(rows) if upper else rows:
        known = xp.matmul(x[..., i : i + 1, :], out)[..., 0, :]
        out[..., i, :] = (y[..., i, :] - known) / x[..., i, i, None]
    return out


def solve_triangular(A, B, *, upper, left=True, unitriangular=False, out=None):
    """X with A X = B (or X A = B), of A's upper or lower triangle alone, its diagonal taken as 1 if ``unitriangular``.

    Shapes      A [...,N,N], B [...,N,K] (or [...,K,N]); batch axes broadcast
    Raises      RuntimeError where shapes or dtypes do not fit; nothing where A is singular
    """
    name = "linalg.solve_triangular"
    square_matrices(name, A)
    matrices(name, B, "B")
    one_dtype(name, A, B)
    fit(name, A, B, left)
    skip = 1 if unitriangular else 0
    T = A.triu(skip) if upper else A.tril(-skip)
    if unitriangular:
        T = T + wrap(xp_of(A.array).eye(A.shape[-1], dtype=A.array.dtype))
    X = substitute(T, B, upper=upper) if left else substitute(T.mT, B.mT, upper=not upper).mT
    return placed("linalg_solve_triangular", X, out)


# ---- Cholesky


def _cholesky_back(m, g, out):
    """Half of S + S^H, S = L^-H P L^-1, P the lower triangle of L^H g with half of its diagonal.

    Source      Murray 2016, arXiv:1602.07527, equation 10
    """
    Lh = mH(m, out)
    inner = m.matmul(Lh, g)
    lower = (m.tril(inner, diagonal=0) + m.tril(inner, diagonal=-1)) * 0.5
    left = m.substitute(Lh, lower, upper=True)
    S = mH(m, m.substitute(Lh, mH(m, left), upper=True))
    return (S + mH(m, S)) * 0.5


@op(
    x=_cholesky_back,
    holomorphic=False,
    explain=lambda error, x: first_minor("linalg.cholesky", x),
    node="LinalgCholeskyEx",
)
def cholesky_lower(xp, x):
    """L, lower triangular, with x = L L^H; reads the lower triangle of x."""
    return xp.linalg.cholesky(x)


def linalg_cholesky(A, *, upper=False, out=None):
    """L, lower triangular, with A = L L^H; or with ``upper`` U with A = U^H U.

    Shapes      A [...,N,N]; its other triangle is not read
    Derivative  the symmetric part: that of a symmetric A
    Raises      linalg.LinAlgError, which names the minor, where A is not positive-definite
    """
    square_matrices("linalg.cholesky", A)
    return placed("linalg_cholesky", triangle_of(A, upper), out)


def triangle_of(A, upper):
    """The factor of ``linalg.cholesky``, of an A that was checked."""
    return cholesky_lower(A.mH).mH if upper else cholesky_lower(A)


def cholesky_ex(A, *, upper=False, check_errors=False, out=None):
    """L and ``info``: 0, or the order of the first leading minor that is not positive-definite, no error raised.

    Where ``info`` is not 0, L is A's triangle, a constant.
    """
    square_matrices("linalg.cholesky_ex", A)
    array = A.array
    orders = [failing_minor(a) for _, a in each(array)] if array.size else [0] * math.prod(array.shape[:-2])
    info = wrap(xp_of(array).asarray(np.array(orders, np.int32).reshape(array.shape[:-2])))
    if check_errors and any(orders):
        raise first_minor("linalg.cholesky_ex", array)
    L = _factor_where(info, A, upper) if any(orders) else triangle_of(A, upper)
    return placed("linalg_cholesky_ex", _CholeskyEx(L, info), out)


def _factor_where(info, A, upper):
    """The factors of the matrices whose ``info`` is 0, the triangles of the others."""
    xp = xp_of(A.array)
    failed = wrap(xp.asarray(info.array != 0)[..., None, None])
    L = triangle_of(TABLE["where"].raw(failed, wrap(xp.eye(A.shape[-1], dtype=A.array.dtype)), A), upper)
    return TABLE["where"].raw(failed, A.detach().triu() if upper else A.detach().tril(), L)


def cholesky_solve(B, L, upper=False, *, out=None):
    """X with A X = B, A = L L^H (or with ``upper`` A = L^H L).

    Shapes      B [...,N,K], L [...,N,N]; batch axes broadcast
    Raises      RuntimeError where shapes do not fit
    """
    for name, t in (("b", B), ("u", L)):
        if t.ndim < 2:
            raise RuntimeError(f"{name} should have at least 2 dimensions, but has {t.ndim} dimensions instead")
    equal_sides(None, L)
    if L.shape[-1] != B.shape[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for cholesky_solve: each A matrix is {L.shape[-1]} by {L.shape[-1]} but each b "
            f"matrix is {B.shape[-2]} by {B.shape[-1]}"
        )
    floating("cholesky_solve", L)
    T = L.triu() if upper else L.tril()
    first, second = (T.mH, T) if upper else (T, T.mH)
    X = substitute(second, substitute(first, B, upper=False), upper=True)
    return placed("cholesky_solve", X, out)


def cholesky_inverse(L, upper=False, *, out=None):
    """The inverse of A = L L^H (or with ``upper`` A = L^H L)."""
    square_matrices("cholesky_inverse", L)
    eye = wrap(xp_of(L.array).eye(L.shape[-1], dtype=L.array.dtype))
    return placed("cholesky_inverse", cholesky_solve(eye, L, upper), out)


LINALG = {"solve_triangular": solve_triangular, "cholesky": linalg_cholesky, "cholesky_ex": cholesky_ex}
