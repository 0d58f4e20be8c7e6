"""Orthogonal factors, singular values and eigenvalues."""

import numpy as np

from ..backend import xp_of
from ..core.op import op
from ..core.tensor import wrap
from .linalg_checks import _LinAlgError, a_tensor, each, element, matrices, square_matrices
from .norms import complex_valued
from .outputs import placed, return_type
from .substitution import mH

__all__ = ()

_QR = return_type("linalg_qr", ("Q", "R"))
_SVD = return_type("linalg_svd", ("U", "S", "Vh"))
_Eigh = return_type("linalg_eigh", ("eigenvalues", "eigenvectors"))
_Eig = return_type("linalg_eig", ("eigenvalues", "eigenvectors"))

# The ops of this file have several outputs, which their derivatives need. The first-order rules take them as extras of
# the forward; the polymorphic formulas factorise again, so that they depend on x and second derivatives are right.


def _row(m, s):
    return m.reshape(s, shape=(*s.shape[:-1], 1, s.shape[-1]))


def _column(m, s):
    return m.reshape(s, shape=(*s.shape, 1))


def _eye(m, like):
    """The identity matrix in the shape of the square matrices ``like``."""
    ones = m.null(like) + 1
    return m.tril(ones, diagonal=0) - m.tril(ones, diagonal=-1)


def _differences(m, s):
    """E[i,j] = s[j] - s[i], and 1 on the diagonal."""
    E = _row(m, s) - _column(m, s)
    return E + _eye(m, E)


def _failed(name):
    def explain(error, x, **options):
        if not isinstance(error, np.linalg.LinAlgError):
            return None
        for i, a in each(x):
            if not np.isfinite(a).all():
                return _LinAlgError(
                    f"{name}: {element(x, i)}The algorithm failed to converge because the input matrix contained "
                    "non-finite values."
                )
        return _LinAlgError(f"{name}: The algorithm failed to converge because the input matrix is ill-conditioned.")

    return explain


# ---- QR


def _qr_back(m, g, Q, R):
    """(gQ + Q S) R^-H, S the hermitian matrix with the upper triangle of gR R^H - Q^H gQ.

    Source      Walter, Lehmann 2013, Algorithmica 65(3), section 3
    """
    gQ, gR = g
    inner = 0 if gR is None else m.matmul(gR, mH(m, R))
    inner = inner if gQ is None else inner - m.matmul(mH(m, Q), gQ)
    upper = m.triu(inner, diagonal=0)
    both = upper + mH(m, upper)
    total = m.matmul(Q, both - both * (0.5 * _eye(m, both)))
    total = total if gQ is None else total + gQ
    return mH(m, m.substitute(R, mH(m, total), upper=True))


@op(
    x=lambda m, g, x: _qr_back(m, g, *m.reduced_qr(x)),
    fused=lambda m, g, Q, R: (_qr_back(m, g, Q, R),),
    extras=("Q", "R"),
    outputs=2,
    holomorphic=False,
    node="LinalgQr",
)
def reduced_qr(xp, x):
    """Q [...,M,N] with orthonormal columns and R [...,N,N] upper triangular, x = Q R, M >= N."""
    Q, R = xp.linalg.qr(x)
    return (Q, R), Q, R


@op(x=lambda m, g, mode: _not_differentiable(mode), outputs=2, node="LinalgQr")
def other_qr(xp, x, *, mode):
    """The complete Q, or R alone: what has no derivative."""
    if mode == "complete":
        return xp.linalg.qr(x, mode="complete")
    return xp.empty(0, x.dtype), xp.linalg.qr(x, mode="r")


def _not_differentiable(mode):
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use "
            "linalg.qr(A, mode='reduced') if you are going to differentiate through linalg.qr."
        )
    raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols.")


def linalg_qr(A, mode="reduced", *, out=None):
    """Q and R, A = Q R: Q's columns orthonormal, R upper triangular; mode 'reduced', 'complete' or 'r' (R alone).

    Shapes      A [...,M,N] -> Q [...,M,K], R [...,K,N], K = min(M,N), or M for 'complete'
    Derivative  where A's first K columns are independent; not for 'r', nor for 'complete' with M > N
    """
    matrices("linalg.qr", A)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    m, n = A.shape[-2:]
    if mode == "r" or (mode == "complete" and m > n):
        return placed("linalg_qr", _QR(*other_qr(A, mode=mode)), out)
    if m >= n:
        return placed("linalg_qr", _QR(*reduced_qr(A)), out)
    from .joining import cat

    Q, R = reduced_qr(A[..., :m])  # the columns to the right are Q times Q^H times them
    return placed("linalg_qr", _QR(Q, cat([R, Q.mH @ A[..., m:]], -1)), out)


# ---- singular values


def _svd_back(m, g, U, S, Vh):
    """U (skew(U^H gU) / E S + S skew(V^H gV) / E + gS) V^H, and the parts of gU, gV outside the spaces of U, V.

    Source      Townsend 2016, Differentiating the singular value decomposition, equations 9 to 12
    """
    gU, gS, gVh = g
    k = S.shape[-1]
    last = S.ndim
    U = m.narrow(U, dim=last, start=0, length=k) if U.shape[-1] > k else U
    Vh = m.narrow(Vh, dim=last - 1, start=0, length=k) if Vh.shape[-2] > k else Vh
    gU = gU if gU is None or gU.shape[-1] == k else m.narrow(gU, dim=last, start=0, length=k)
    gVh = gVh if gVh is None or gVh.shape[-2] == k else m.narrow(gVh, dim=last - 1, start=0, length=k)
    inner = 0 if gS is None else _eye(m, m.matmul(Vh, mH(m, Vh))) * _row(m, gS)
    if gU is not None or gVh is not None:
        E = _differences(m, S * S)
    if gU is not None:
        inner = inner + _skew_part(m, m.matmul(mH(m, U), gU), E) * _row(m, S)
        inner = inner + _phase(m, m.matmul(mH(m, U), gU), S)
    if gVh is not None:
        inner = inner + _column(m, S) * _skew_part(m, m.matmul(Vh, mH(m, gVh)), E)
    total = m.matmul(m.matmul(U, inner), Vh)
    if gU is not None and U.shape[-2] > k:
        outside = gU - m.matmul(U, m.matmul(mH(m, U), gU))
        total = total + m.matmul(outside / _row(m, S), Vh)
    if gVh is not None and Vh.shape[-1] > k:
        outside = gVh - m.matmul(m.matmul(gVh, mH(m, Vh)), Vh)
        total = total + m.matmul(U, outside / _column(m, S))
    return total


def _skew_part(m, X, E):
    """(X - X^H) / E off the diagonal, 0 on it."""
    return (X - mH(m, X)) * (1 - _eye(m, E)) / E


def _phase(m, X, S):
    """The diagonal of the skew part over 2 S: 0 for real matrices, for complex ones the turn of U against V."""
    if not complex_valued(X):
        return 0
    return (X - mH(m, X)) * _eye(m, X) / (2 * _row(m, S))


@op(
    x=lambda m, g, x, full_matrices: _svd_back(m, g, *m.all_of_svd(x, full_matrices=full_matrices)),
    fused=lambda m, g, U, S, Vh: (_svd_back(m, g, U, S, Vh),),
    extras=("U", "S", "Vh"),
    outputs=3,
    holomorphic=False,
    explain=_failed("linalg.svd"),
    node="LinalgSvd",
)
def all_of_svd(xp, x, *, full_matrices):
    """U, S, Vh with x = U diag(S) Vh, S descending."""
    U, S, Vh = xp.linalg.svd(x, full_matrices=full_matrices)
    return (U, S, Vh), U, S, Vh


def linalg_svd(A, full_matrices=True, *, driver=None, out=None):
    """U, S, Vh with A = U diag(S) Vh: U and V unitary, S descending and not negative.

    Shapes      A [...,M,N] -> U [...,M,M], S [...,K], Vh [...,N,N], K = min(M,N); or [...,M,K], [...,K,N]
    Derivative  by U and V only where no two singular values are equal; of full matrices by the first K columns
    Raises      linalg.LinAlgError for values that are not finite
    """
    matrices("linalg.svd", A)
    if driver is not None and A.device.type != "cuda":
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )
    return placed("linalg_svd", _SVD(*all_of_svd(A, full_matrices=full_matrices)), out)


def svdvals(A, *, driver=None, out=None):
    """The singular values, descending: [...,M,N] -> [...,min(M,N)]."""
    matrices("linalg.svdvals", A)
    if A.node is not None:
        return placed("linalg_svdvals", linalg_svd(A, False, driver=driver).S, out)
    xp = xp_of(A.array)
    return placed("linalg_svdvals", wrap(xp.linalg.svd(A.array, compute_uv=False)), out)


# ---- eigenvalues


def _eigh_back(m, g, w, V):
    """V (gw + (V^H gV) / E) V^H, E[i,j] = w[j] - w[i], made hermitian.

    Source      Giles 2008, An extended collection of matrix derivative results, section 3.1
    """
    gw, gV = g
    inner = 0 if gw is None else _eye(m, V) * _row(m, gw)
    if gV is not None:
        inner = inner + _skew_part(m, m.matmul(mH(m, V), gV), _differences(m, w)) * 0.5
    return m.matmul(m.matmul(V, inner), mH(m, V))


@op(
    x=lambda m, g, x, UPLO: _eigh_back(m, g, *m.hermitian_eigen(x, UPLO=UPLO)),
    fused=lambda m, g, w, V: (_eigh_back(m, g, w, V),),
    extras=("w", "V"),
    outputs=2,
    holomorphic=False,
    explain=_failed("linalg.eigh"),
    node="LinalgEigh",
)
def hermitian_eigen(xp, x, *, UPLO):
    """Eigenvalues, ascending, and orthonormal eigenvectors of hermitian matrices, from one triangle."""
    w, V = xp.linalg.eigh(x, UPLO=UPLO)
    return (w, V), w, V


def eigh(A, UPLO="L", *, out=None):
    """Eigenvalues, ascending, and orthonormal eigenvectors of hermitian matrices; reads the triangle UPLO.

    Shapes      A [...,N,N] -> [...,N], [...,N,N] (eigenvectors are columns)
    Derivative  by the eigenvectors only where no two eigenvalues are equal
    """
    square_matrices("linalg.eigh", A)
    return placed("linalg_eigh", _Eigh(*hermitian_eigen(A, UPLO=_triangle(UPLO))), out)


def _triangle(UPLO):
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return UPLO.upper()


def eigvalsh(A, UPLO="L", *, out=None):
    """The eigenvalues of hermitian matrices, ascending."""
    square_matrices("linalg.eigvalsh", A)
    if A.node is not None:
        return placed("linalg_eigvalsh", hermitian_eigen(A, UPLO=_triangle(UPLO))[0], out)
    return placed("linalg_eigvalsh", wrap(xp_of(A.array).linalg.eigvalsh(A.array, UPLO=_triangle(UPLO))), out)


def _eig_back(m, g, w, V, real):
    """V^-H (gw + (V^H gV - V^H V diag(Re(V^H gV))) / conj(E)) V^H, E[i,j] = w[j] - w[i].

    Source      Boeddeker et al. 2017, arXiv:1701.00392, section 4.5
    """
    gw, gV = g
    inner = 0 if gw is None else _eye(m, V) * _row(m, gw)
    if gV is not None:
        VhgV = m.matmul(mH(m, V), gV)
        eye = _eye(m, VhgV)
        diagonal = m.sum(eye * VhgV, dim=(VhgV.ndim - 1,), keepdim=False)
        length = (diagonal + m.conj(diagonal)) * 0.5
        outside = VhgV - m.matmul(mH(m, V), V) * _row(m, length)
        inner = inner + outside * (1 - eye) / m.conj(_differences(m, w))
    total = m.solve_matrices(mH(m, V), m.matmul(inner, mH(m, V)))
    return m.real_part(total) if real else total


@op(
    x=lambda m, g, x: _eig_back(m, g, *m.general_eigen(x), not complex_valued(x)),
    fused=lambda m, g, x, w, V: (_eig_back(m, g, w, V, not complex_valued(x)),),
    extras=("w", "V"),
    outputs=2,
    holomorphic=False,
    node="LinalgEig",
)
def general_eigen(xp, x):
    """Eigenvalues and eigenvectors of length 1 of square matrices, complex."""
    w, V = xp.linalg.eig(x)
    d = np.complex64 if x.dtype in (np.float32, np.complex64) else np.complex128
    w, V = w.astype(d), V.astype(d)
    return (w, V), w, V


def _complex_beside(name, A):
    a_tensor(name, A, "input")
    if A.dtype.category < 2:
        raise RuntimeError(f"Unknown Complex ScalarType for {A.dtype.legacy}")


def eig(A, *, out=None):
    """Eigenvalues and eigenvectors of square matrices, complex, in no order; eigenvectors are columns of length 1.

    Derivative  where the eigenvalues differ, for functions that do not depend on the eigenvectors' phase
    Raises      RuntimeError for values that are not finite
    """
    _complex_beside("linalg.eig", A)
    square_matrices("linalg.eig", A)
    if not bool(xp_of(A.array).isfinite(A.array).all()):
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
    return placed("linalg_eig", _Eig(*general_eigen(A)), out)


def eigvals(A, *, out=None):
    """The eigenvalues of square matrices, complex, in no order."""
    _complex_beside("linalg.eigvals", A)
    square_matrices("linalg.eigvals", A)
    return placed("linalg_eigvals", eig(A).eigenvalues, out)


LINALG = {
    **{"qr": linalg_qr, "svd": linalg_svd, "svdvals": svdvals, "eigh": eigh, "eigvalsh": eigvalsh, "eig": eig},
    "eigvals": eigvals,
}
