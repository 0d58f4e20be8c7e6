"""LU factorisation with partial pivoting, and systems solved by it."""

import numpy as np

from ..backend import xp_of
from ..core.op import op
from ..core.tensor import Tensor, wrap
from .linalg_checks import a_tensor, element, fit, matrices, on_host, one_dtype, square_matrices
from .outputs import placed, return_type
from .substitution import mH, substitute, triangle

__all__ = ("lu_solve", "lu_unpack")
METHODS = ("lu_solve",)

_LU = return_type("linalg_lu", ("P", "L", "U"))
_Factor = return_type("linalg_lu_factor", ("LU", "pivots"))
_FactorEx = return_type("linalg_lu_factor_ex", ("LU", "pivots", "info"))
_Unpacked = return_type("lu_unpack", ("P", "L", "U"))


def eliminate(xp, a, pivot=True):
    """Gaussian elimination of a batch [...,M,N]: L and U in one array, the row order, and the first zero pivot.

    ``order`` [...,M]: row i of the factors is row order[i] of ``a``. ``info`` [...]: 0, or the 1-based pivot that is 0.
    """
    a = a.copy()
    m, n = a.shape[-2:]
    order = xp.broadcast_to(xp.arange(m), a.shape[:-1]).copy()
    info = xp.zeros(a.shape[:-2], np.int32)
    for k in range(min(m, n)):
        if pivot:
            _swap_largest(xp, a, order, k)
        head = a[..., k, k]
        info = xp.where((head == 0) & (info == 0), k + 1, info).astype(np.int32)
        divisor = xp.where(head == 0, xp.ones((), a.dtype), head)[..., None]
        a[..., k + 1 :, k] /= divisor
        a[..., k + 1 :, k + 1 :] -= a[..., k + 1 :, k, None] * a[..., None, k, k + 1 :]
    return a, order, info


def _swap_largest(xp, a, order, k):
    """Bring the row with the largest entry of column k, at or below k, to place k."""
    best = _size(xp, a[..., k:, k]).argmax(-1) + k
    rows = xp.broadcast_to(xp.arange(a.shape[-2]), a.shape[:-1]).copy()
    xp.put_along_axis(rows, best[..., None], k, -1)
    rows[..., k] = best
    a[...] = xp.take_along_axis(a, rows[..., None], -2)
    order[...] = xp.take_along_axis(order, rows, -1)


def _size(xp, x):
    """What LAPACK compares pivots by: |x|, of complex numbers the sum of that of both parts."""
    return xp.abs(x.real) + xp.abs(x.imag) if x.dtype.kind == "c" else xp.abs(x)


def _pivots_of(xp, order):
    """LAPACK's form of a row order: in step i, row i changed places with row pivots[i], counted from 1."""
    m = order.shape[-1]
    at = xp.broadcast_to(xp.arange(m), order.shape).copy()  # which row lies where, while the swaps are replayed
    pivots = xp.empty(order.shape, np.int32)
    for i in range(m):
        j = (at == order[..., i, None]).argmax(-1)
        pivots[..., i] = j + 1
        moved = at[..., i].copy()
        xp.put_along_axis(at, j[..., None], moved[..., None], -1)
        at[..., i] = order[..., i]
    return pivots


def _order_of(xp, pivots, m):
    """The row order that LAPACK's pivots stand for."""
    order = xp.broadcast_to(xp.arange(m), (*pivots.shape[:-1], m)).copy()
    for i in range(pivots.shape[-1]):
        j = (pivots[..., i] - 1)[..., None]
        other = xp.take_along_axis(order, j, -1)
        xp.put_along_axis(order, j, order[..., i : i + 1].copy(), -1)
        order[..., i : i + 1] = other
    return order


def _lu_back(m, g, out):
    """Of A = L U: L^-H (tril(L^H gL, -1) + triu(gU U^H)) U^-H."""
    unit = triangle(m, out, -1, lower=True)
    L = unit + _unit_diagonal(m, out)
    U = m.triu(out, diagonal=0)
    Lh, Uh = mH(m, L), mH(m, U)
    inner = m.tril(m.matmul(Lh, m.tril(g, diagonal=-1)), diagonal=-1)
    inner = inner + m.triu(m.matmul(m.triu(g, diagonal=0), Uh), diagonal=0)
    left = m.substitute(Lh, inner, upper=True)
    return mH(m, m.substitute(U, mH(m, left), upper=True))


def _unit_diagonal(m, x):
    ones = m.null(x) + 1
    return m.tril(ones, diagonal=0) - m.tril(ones, diagonal=-1)


@op(x=_lu_back, holomorphic=False, node="LinalgLuFactorEx")
def eliminated(xp, x):
    """L (below the diagonal, which is 1) and U of square matrices whose rows are in the order of their pivots."""
    return eliminate(xp, x, pivot=False)[0]


def _factors(A):
    """L [...,M,K], U [...,K,N] with K = min(M,N), and arrays order and info."""
    array = A.array
    _, order, info = eliminate(xp_of(array), array)
    m, n = A.shape[-2:]
    k = min(m, n)
    rows = A.gather(-2, wrap(order).unsqueeze(-1).expand(A.shape))
    packed = eliminated(rows[..., :k, :k])
    L, U = packed.tril(-1) + _eye(packed), packed.triu()
    if m > k:  # the rows below: L2 U = A2
        below = substitute(U.mT, rows[..., k:, :].mT, upper=False).mT
        L = _joined([L, below], -2)
    if n > k:  # the columns to the right: L U2 = A2
        U = _joined([U, substitute(L, rows[..., :, k:], upper=False)], -1)
    return L, U, order, info


def _joined(tensors, dim):
    from .joining import cat

    return cat(tensors, dim)


def _eye(like):
    """The identity matrix in the size, dtype and device of ``like``'s last two axes."""
    return wrap(xp_of(like.array).eye(like.shape[-1], dtype=like.array.dtype))


def _permutation(xp, order, dtype):
    """P with A = P L U."""
    return (order[..., None, :] == xp.arange(order.shape[-1])[:, None]).astype(dtype)


def _check_pivot(pivot, A):
    if not pivot and A.device.type == "cpu":
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")


def _check_axes(name, A):
    if isinstance(A, Tensor) and A.ndim < 2:
        raise RuntimeError(f"{name}: Expected tensor with 2 or more dimensions. Got size: {list(A.shape)} instead")


def linalg_lu(A, *, pivot=True, out=None):
    """P, L, U with A = P L U: P a permutation, L lower triangular with ones on the diagonal, U upper triangular.

    Shapes      A [...,M,N] -> P [...,M,M], L [...,M,K], U [...,K,N], K = min(M,N)
    """
    _check_axes("linalg.lu", A)
    matrices("linalg.lu", A)
    _check_pivot(pivot, A)
    L, U, order, _ = _factors(A)
    return placed("linalg_lu", _LU(wrap(_permutation(xp_of(order), order, A.array.dtype)), L, U), out)


def lu_factor_ex(A, *, pivot=True, check_errors=False, out=None):
    """LU in one matrix, LAPACK's pivots, and ``info``: 0, or the 1-based place of the first zero on U's diagonal."""
    _check_axes("torch.lu_factor", A)
    matrices("linalg.lu_factor_ex", A)
    _check_pivot(pivot, A)
    L, U, order, info = _factors(A)
    m, n = A.shape[-2:]
    packed = L.tril(-1) if m >= n else _joined([L.tril(-1), L.new_zeros((*L.shape[:-1], n - m))], -1)
    packed = packed + (U if m <= n else _joined([U, U.new_zeros((*U.shape[:-2], m - n, n))], -2))
    if check_errors:
        _raise_singular("torch.linalg.lu_factor_ex", A.array, info)
    xp = xp_of(order)
    pivots = _pivots_of(xp, order)[..., : min(m, n)]
    return placed("linalg_lu_factor_ex", _FactorEx(packed, wrap(pivots), wrap(xp.asarray(info))), out)


def _raise_singular(name, array, info):
    info = on_host(info)
    bad = np.flatnonzero(info)
    if bad.size:
        i = int(bad[0])
        k = int(info.reshape(-1)[i])
        raise RuntimeError(
            f"{name}: {element(array, i)}U[{k},{k}] is zero and using it on lu_solve would result in a division by "
            "zero. If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or "
            "linalg.lu_factor_ex(A, pivot)"
        )


def lu_factor(A, *, pivot=True, out=None):
    """LU in one matrix and LAPACK's pivots, for ``lu_solve``."""
    a_tensor("linalg.lu_factor", A)
    made = lu_factor_ex(A, pivot=pivot)
    _raise_singular("torch.linalg.lu_factor", A.array, made.info.array)
    return placed("linalg_lu_factor", _Factor(made.LU, made.pivots), out)


def linalg_lu_solve(LU, pivots, B, *, left=True, adjoint=False, out=None):
    """X with A X = B (or X A = B, or A^H in A's place), A given by ``lu_factor``."""
    name = "torch.linalg.lu_solve"
    square_matrices(name, LU)
    one_dtype("linalg.lu_solve", LU, B, "LU and B")
    fit("linalg.lu_solve", LU, B, left)
    if not left:  # X A = B  <=>  A^H X^H = B^H
        return placed("linalg_lu_solve", linalg_lu_solve(LU, pivots, B.mH, adjoint=not adjoint).mH, out)
    xp = xp_of(pivots.array)
    order = _order_of(xp, pivots.array, LU.shape[-1])
    P = wrap(_permutation(xp, order, LU.array.dtype))
    L, U = LU.tril(-1) + _eye(LU), LU.triu()
    if not adjoint:
        X = substitute(U, substitute(L, P.mT @ B, upper=False), upper=True)
    else:
        X = P @ substitute(L.mH, substitute(U.mH, B, upper=False), upper=True)
    return placed("linalg_lu_solve", X, out)


def lu_solve(b, LU_data, LU_pivots, *, out=None):
    """As ``linalg.lu_solve(LU_data, LU_pivots, b)``."""
    return linalg_lu_solve(LU_data, LU_pivots, b, out=out)


def lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True, *, out=None):
    """P, L, U of what ``lu_factor`` gave; empty tensors for what is not asked for."""
    m, n = LU_data.shape[-2:]
    k = min(m, n)
    P = L = U = LU_data.new_empty((0,))
    if unpack_pivots:
        xp = xp_of(LU_pivots.array)
        P = wrap(_permutation(xp, _order_of(xp, LU_pivots.array, m), LU_data.array.dtype))
    if unpack_data:
        left = LU_data[..., :k]
        ones = wrap(xp_of(left.array).eye(m, k, dtype=left.array.dtype))
        L, U = left.tril(-1) + ones, LU_data[..., :k, :].triu()
    return placed("lu_unpack", _Unpacked(P, L, U), out)


LINALG = {"lu": linalg_lu, "lu_factor": lu_factor, "lu_factor_ex": lu_factor_ex, "lu_solve": linalg_lu_solve}
