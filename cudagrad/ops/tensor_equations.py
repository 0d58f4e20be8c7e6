"""Linear equations of tensors, Vandermonde matrices, products of reflections, and names that torch.linalg repeats."""

import math

from ..backend import xp_of
from ..core.op import TABLE
from ..core.shape import check_dim
from ..core.tensor import wrap
from .linalg import linalg_inv, solve
from .linalg_checks import matrices
from .outputs import placed

__all__ = ("orgqr",)
METHODS = ("orgqr",)


def tensorinv(A, ind=2, *, out=None):
    """The tensor X with tensordot(X, A, ind) the identity: A taken as a matrix of its first ``ind`` axes by the rest.

    Raises      RuntimeError where that is not square
    """
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    first, rest = math.prod(A.shape[:ind]), math.prod(A.shape[ind:])
    if first != rest:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{rest} != {first}"
        )
    made = linalg_inv(A.reshape(first, rest)).reshape(*A.shape[ind:], *A.shape[:ind])
    return placed("linalg_tensorinv", made, out)


def tensorsolve(A, B, dims=None, *, out=None):
    """X with tensordot(A, X, X.ndim) = B; the axes ``dims`` of A are moved to its end first.

    Raises      RuntimeError where A, as a matrix of B's axes by the rest, is not square
    """
    if dims is not None:
        moved = [check_dim(d, A.ndim) for d in dims]
        A = A.movedim(moved, tuple(range(A.ndim - len(moved), A.ndim)))
    rest = tuple(A.shape[B.ndim :])
    first, last = math.prod(A.shape[: B.ndim]), math.prod(rest)
    if first != last:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
            f"but got {last} != {first}"
        )
    return placed("linalg_tensorsolve", solve(A.reshape(first, last), B.reshape(-1)).reshape(rest), out)


def linalg_vander(x, *, N=None):
    """The powers x[i]^j, j = 0 to N-1: [...,M] -> [...,M,N], N = M by default."""
    if (N if N is not None else (x.shape[-1] if x.ndim else 0)) <= 1:
        raise RuntimeError("N must be greater than 1.")
    N = x.shape[-1] if N is None else N
    x = x if x.ndim else x.reshape(1)
    from .joining import cat

    powers = x.unsqueeze(-1).expand(*x.shape, N - 1).cumprod(-1)
    return cat([powers.new_ones((*x.shape, 1)), powers], -1)


def householder_product(A, tau, *, out=None):
    """The first N columns of H_1 H_2 ... H_K, H_i = 1 - tau[i] v_i v_i^H.

    v_i is the i-th column of A below its diagonal, with 1 on it and 0 above.

    Shapes      A [...,M,N], tau [...,K], M >= N >= K -> [...,M,N]
    """
    matrices("torch.linalg.householder_product", A, "input")
    m, n = A.shape[-2:]
    if m < n:
        raise RuntimeError(
            "torch.linalg.householder_product: input.shape[-2] must be greater than or equal to input.shape[-1]"
        )
    if tau.shape[-1] > n:
        raise RuntimeError(
            "torch.linalg.householder_product: input.shape[-1] must be greater than or equal to tau.shape[-1]"
        )
    eye = wrap(xp_of(A.array).eye(m, n, dtype=A.array.dtype))
    V, Q = A.tril(-1) + eye, TABLE["null"].raw(A) + eye
    if not tau.shape[-1]:
        Q = Q + tau.sum(-1)[..., None, None]  # nothing, but of tau's graph
    for i in reversed(range(tau.shape[-1])):
        v = V[..., i : i + 1]  # [..., M, 1]
        Q = Q - tau[..., i, None, None] * (v @ (v.mH @ Q))
    return placed("linalg_householder_product", Q, out)


def orgqr(input, input2, *, out=None):
    """As ``linalg.householder_product``."""
    return householder_product(input, input2, out=out)


def linalg_cross(input, other, *, dim=-1, out=None):
    """The cross product along ``dim``, of length 3; the other axes broadcast."""
    if input.ndim != other.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    d = check_dim(dim, input.ndim)
    if input.shape[d] != 3 or other.shape[d] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {input.shape[d]} and {other.shape[d]}"
        )
    return placed("linalg_cross", TABLE["cross"].raw(input, other, dim=d), out)


def linalg_diagonal(A, *, offset=0, dim1=-2, dim2=-1):
    """A view of the diagonals of matrices."""
    return A.diagonal(offset, dim1, dim2)


LINALG = {
    **{"tensorinv": tensorinv, "tensorsolve": tensorsolve, "vander": linalg_vander, "cross": linalg_cross},
    **{"diagonal": linalg_diagonal, "householder_product": householder_product},
}
