"""Pseudo-inverses, least squares, ranks and condition numbers."""

import math

import numpy as np

from .. import errors
from ..backend import xp_of
from ..core.op import op
from ..core.tensor import Tensor, wrap
from .decomposition import _failed, svdvals
from .linalg import linalg_inv
from .linalg_checks import _LinAlgError, a_tensor, matrices, square_matrices
from .norms import linalg_norm
from .outputs import placed, return_type
from .substitution import mH

__all__ = ("pinverse",)
METHODS = ("pinverse",)

_Lstsq = return_type("linalg_lstsq", ("solution", "residuals", "rank", "singular_values"))
_DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def _inverse_values(xp, s, cut):
    """1 / s where |s| is above ``cut``, else 0."""
    kept = xp.abs(s) > cut
    return xp.where(kept, 1 / xp.where(kept, s, xp.ones((), s.dtype)), xp.zeros((), s.dtype))


def _cut(xp, s, shape, atol, rtol, dtype):
    """The magnitude up to which a singular value counts as 0: the larger of atol and rtol times the largest."""
    if rtol is None:
        given = atol is not None and bool(xp.asarray(atol > 0).any())
        rtol = 0.0 if given else max(shape[-2:]) * float(np.finfo(dtype).eps)
    largest = xp.abs(s).max(-1, keepdims=True) if s.shape[-1] else 0
    cut = _line(xp, rtol) * largest
    return cut if atol is None else xp.maximum(_line(xp, atol), cut)


def _line(xp, value):
    """A tolerance, one for all or one a matrix, to compare with the lines of singular values."""
    return value[..., None] if hasattr(value, "ndim") and value.ndim else value


def _pinv_back(m, g, x, P):
    """Adjoint of -P dx P + P P^H dx^H (1 - x P) + (1 - P x) dx^H P^H P.

    Source      Golub, Pereyra 1973, SIAM J. Numer. Anal. 10(2) 413, equation 4.12
    """
    Ph, gh = mH(m, P), mH(m, g)
    first = m.matmul(m.matmul(Ph, g), Ph)
    ghP, Pgh = m.matmul(gh, P), m.matmul(P, gh)
    second = m.matmul(ghP - m.matmul(x, m.matmul(P, ghP)), Ph)
    third = m.matmul(Ph, Pgh - m.matmul(m.matmul(Pgh, P), x))
    return second + third - first


@op(
    x=lambda m, g, x, out: _pinv_back(m, g, x, out), holomorphic=False, explain=_failed("linalg.svd"), node="LinalgPinv"
)
def pseudo_inverse(xp, x, *, atol, rtol, hermitian):
    """The Moore-Penrose inverses of matrices."""
    if hermitian:
        s, u = xp.linalg.eigh(x)
        vh = u.conj().swapaxes(-1, -2)
    else:
        u, s, vh = xp.linalg.svd(x, full_matrices=False)
    scale = _inverse_values(xp, s, _cut(xp, s, x.shape, atol, rtol, s.dtype))
    return xp.matmul(vh.conj().swapaxes(-1, -2) * scale[..., None, :], u.conj().swapaxes(-1, -2))


def pinv(A, rcond=None, hermitian=False, *, atol=None, rtol=None, out=None):
    """The Moore-Penrose inverse: singular values up to max(atol, rtol * the largest) count as 0.

    Shapes      A [...,M,N] -> [...,N,M]; with ``hermitian`` square, of its lower triangle
    Raises      RuntimeError for vectors
    """
    if A.ndim < 2 or A.dtype.category < 2 or A.dtype.itemsize == 2:
        raise RuntimeError(
            f"linalg.pinv({A.dtype.legacy}{{{list(A.shape)}}}): expected a tensor with 2 or more dimensions of float, "
            "double, cfloat or cdouble types"
        )
    if hermitian:
        square_matrices("linalg.eigh", A)
    rtol = rcond if rtol is None else rtol
    made = pseudo_inverse(A, atol=_plain(atol), rtol=_plain(rtol), hermitian=bool(hermitian))
    return placed("linalg_pinv", made, out)


def _plain(value):
    """A tolerance as a number or array."""
    if isinstance(value, Tensor):
        return value.item() if value.ndim == 0 else value.array
    return value


def pinverse(input, rcond=1e-15):
    """As ``linalg.pinv`` with rtol = rcond."""
    return pinv(input, rcond)


def _single_or_double(A):
    if isinstance(A, Tensor) and (A.dtype.category < 2 or A.dtype.itemsize == 2):
        raise RuntimeError("This function doesn't handle types other than float and double")


def matrix_rank(A, tol=None, hermitian=False, *, atol=None, rtol=None, out=None):
    """How many singular values (or |eigenvalues|) are above max(atol, rtol * the largest): int64.

    ``tol`` is an absolute tolerance. Default: rtol = max(M,N) * eps.
    """
    _single_or_double(A)
    matrices("torch.linalg.matrix_rank", A, "input")
    xp, array = xp_of(A.array), A.array
    atol, rtol = _plain(tol if tol is not None else atol), _plain(0.0 if tol is not None else rtol)
    s = xp.abs(xp.linalg.eigvalsh(array)) if hermitian else xp.linalg.svd(array, compute_uv=False)
    rank = (s > _cut(xp, s, array.shape, atol, rtol, s.dtype)).sum(-1)
    return placed("linalg_matrix_rank", wrap(xp.asarray(rank).astype(np.int64)), out)


def cond(A, p=None, *, out=None):
    """The condition number |A| |A^-1| in the norm p; None and 2, -2: from singular values. inf where A is singular.

    Raises      RuntimeError for another norm, or a matrix that is not square with a norm that needs the inverse
    """
    a_tensor("linalg.cond", A, "input")
    if A.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if p in (None, 2, -2):
        s = svdvals(A)
        ratio = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
        return placed("linalg_cond", ratio, out)
    if isinstance(p, str) and p not in ("fro", "nuc"):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    square_matrices(f"linalg.cond(ord={p})", A)
    try:
        result = linalg_norm(A, p, (-2, -1)) * linalg_norm(linalg_inv(A), p, (-2, -1))
    except _LinAlgError:
        result = A.new_full(A.shape[:-2], math.inf)
    return placed("linalg_cond", result, out)


# ---- least squares


def _lstsq_back(m, g, x, y, rcond, needs):
    """Of P y, P the pseudo-inverse of x."""
    g = g[0]
    P = m.pseudo_inverse(x, atol=None, rtol=rcond, hermitian=False)
    dx = _pinv_back(m, m.matmul(g, mH(m, y)), x, P) if needs[0] else None
    return dx, m.matmul(mH(m, P), g) if needs[1] else None


@op(joint=_lstsq_back, outputs=3, holomorphic=False, node="LinalgLstsq")
def least_squares(xp, x, y, *, rcond):
    """The shortest X with least |x X - y|, the ranks and the singular values of x."""
    u, s, vh = xp.linalg.svd(x, full_matrices=False)
    cut = _cut(xp, s, x.shape, None, rcond, s.dtype)
    inner = xp.matmul(u.conj().swapaxes(-1, -2), y) * _inverse_values(xp, s, cut)[..., None]
    rank = xp.asarray((s > cut).sum(-1)).astype(np.int64)
    return xp.matmul(vh.conj().swapaxes(-1, -2), inner), rank, s


def lstsq(A, B, rcond=None, *, driver=None, out=None):
    """The shortest X that makes |A X - B| least, and residuals, rank, singular values as the driver gives them.

    Shapes      A [...,M,N], B [...,M,K] or [...,M] -> solution [...,N,K] or [...,N]
    Derivative  of the solution, through the pseudo-inverse, and of the residuals
    Raises      RuntimeError where shapes or dtypes do not fit, for an unknown driver
    Differs     all drivers go by singular values, so 'gels' too copes with dependent columns
    """
    name = "torch.linalg.lstsq"
    _check_lstsq(name, A, B, driver)
    vector = B.ndim == A.ndim - 1
    right = B.unsqueeze(-1) if vector else B
    if A.shape[-2] != right.shape[-2]:
        dim = -1 if vector else -2
        first = f"{name}: input.size(-2) should match other.size({dim})"
        raise RuntimeError(errors.text(first, f"got input {tuple(A.shape)}, other {tuple(B.shape)}"))
    X, rank, s = least_squares(A, right, rcond=_plain(rcond))
    real = A.dtype.to_real()
    driver = driver or "gelsy"
    empty, no_rank = A.new_empty((0,), dtype=real), wrap(xp_of(A.array).empty(0, np.int64))
    residuals = A.flatten()[:0].real if A.is_complex() else A.flatten()[:0]  # empty, but of A's graph
    if driver != "gelsy" and A.shape[-2] > A.shape[-1] and bool((rank == A.shape[-1]).all()):
        left = A @ X - right
        residuals = (left * left.conj()).real.sum(-2) if left.is_complex() else (left * left).sum(-2)
    result = _Lstsq(
        X.squeeze(-1) if vector else X,
        residuals,
        rank if driver != "gels" else no_rank,
        s.detach() if driver in ("gelsd", "gelss") else empty,
    )
    return placed("linalg_lstsq", result, out)


def _check_lstsq(name, A, B, driver):
    if A.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if B.ndim < 1:
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    if A.dtype is not B.dtype:
        raise RuntimeError(
            f"{name}: Expected input and other to have the same dtype, but got input's dtype {A.dtype.legacy} and "
            f"other's dtype {B.dtype.legacy}"
        )
    _single_or_double(A)
    matrices("linalg.lstsq", A)
    if driver is not None and driver not in _DRIVERS:
        raise RuntimeError(f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")


LINALG = {"pinv": pinv, "matrix_rank": matrix_rank, "cond": cond, "lstsq": lstsq}
