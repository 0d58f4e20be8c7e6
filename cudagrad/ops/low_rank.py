"""Singular values of large matrices from random products: the first few, approximately."""

from .decomposition import linalg_qr, linalg_svd

__all__ = ("svd_lowrank", "pca_lowrank")


def _range(A, q, niter, M):
    """An orthonormal basis of what A (less M) makes of q random vectors, sharpened by ``niter`` turns.

    Source      Halko, Martinsson, Tropp 2009, arXiv:0909.4061, algorithms 4.4 and 5.1
    """
    from .random import randn

    def product(X):
        return A @ X if M is None else A @ X - M @ X

    def turned(X):
        return A.mH @ X if M is None else A.mH @ X - M.mH @ X

    Q = linalg_qr(product(randn(A.shape[-1], q, dtype=A.dtype, device=A.device))).Q
    for _ in range(niter):
        Q = linalg_qr(product(linalg_qr(turned(Q)).Q)).Q
    return Q


def svd_lowrank(A, q=6, niter=2, M=None):
    """U, S, V with A - M about U diag(S) V^H, of rank q at most.

    Shapes      A [...,M,N] -> U [...,M,k], S [...,k], V [...,N,k], k = min(q,M,N)
    """
    q = min(6 if q is None else q, *A.shape[-2:])
    if M is not None:
        M = M.expand(A.shape)
    wide = A.shape[-2] < A.shape[-1]
    if wide:
        A, M = A.mH, None if M is None else M.mH
    Q = _range(A, q, niter, M)
    B = Q.mH @ A if M is None else Q.mH @ (A - M)
    U, S, Vh = linalg_svd(B, full_matrices=False)
    U, V = Q @ U, Vh.mH
    return (V, S, U) if wide else (U, S, V)


def pca_lowrank(A, q=None, center=True, niter=2):
    """The first q principal components of the rows of A, as ``svd_lowrank`` of A less its column means.

    Raises      ValueError for q or niter out of range
    """
    m, n = A.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter)
