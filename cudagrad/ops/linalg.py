"""Determinants, inverses, linear systems, powers and exponentials of matrices."""

import math
import operator

import numpy as np

from ..backend import xp_of
from ..core.op import TABLE, op
from ..core.tensor import wrap
from .linalg_checks import (
    _LinAlgError,
    a_tensor,
    each,
    element,
    equal_sides,
    fit,
    floating,
    matrices,
    on_host,
    one_dtype,
    square_matrices,
    zero_pivot,
)
from .matmul import _mT
from .norms import complex_valued
from .outputs import placed, return_type
from .substitution import mH

__all__ = ("det", "slogdet", "logdet", "inverse", "matrix_power", "matrix_exp")
METHODS = ("det", "slogdet", "logdet", "inverse", "matrix_power", "matrix_exp")

_SignLog = return_type("slogdet", ("sign", "logabsdet"))
_LinalgSignLog = return_type("linalg_slogdet", ("sign", "logabsdet"))
_InvEx = return_type("linalg_inv_ex", ("inverse", "info"))
_SolveEx = return_type("linalg_solve_ex", ("result", "info"))


def _column(m, g):
    """One value a matrix, [...], as [...,1,1]."""
    return m.reshape(g, shape=(*g.shape, 1, 1))


# ---- determinants


def _cofactor_back(m, g, x):
    """Of det(x) * x^-T, for x that has an inverse."""
    inverse = _mT(m, m.matrix_inverse(x))
    inner = m.sum(g * inverse, dim=(x.ndim - 2, x.ndim - 1), keepdim=True)
    turned = m.matmul(m.matmul(inverse, _mT(m, g)), inverse)
    return (inner * inverse - turned) * _column(m, m.determinant(x))


@op(x=_cofactor_back)
def cofactors(xp, x):
    """The derivative of det(x): det(x) * x^-T, exact too where x has no inverse."""
    determinant = xp.linalg.det(x)
    if bool((xp.abs(determinant) > 0).all()):
        try:
            return determinant[..., None, None] * xp.linalg.inv(x).swapaxes(-1, -2)
        except np.linalg.LinAlgError:
            pass
    u, s, vh = xp.linalg.svd(x)
    n = s.shape[-1]
    others = xp.stack([xp.prod(xp.delete(s, i, -1), -1) for i in range(n)], -1) if n else s
    unit = xp.linalg.det(u) * xp.linalg.det(vh)
    return unit[..., None, None] * xp.matmul(u.conj() * others[..., None, :], vh.conj())


@op(x=lambda m, g, x: _column(m, g) * m.cofactors(x), node="LinalgDet")
def determinant(xp, x):
    """The determinants of square matrices."""
    return xp.linalg.det(x)


def linalg_det(A, *, out=None):
    """The determinants of square matrices [...,N,N] -> [...].

    Derivative  the cofactors, exact too for singular matrices
    Raises      RuntimeError where A is not square, or neither floating nor complex
    """
    square_matrices("linalg.det", A)
    return placed("linalg_det", determinant(A), out)


def det(input):
    """As ``linalg.det``."""
    a_tensor("det", input, "input")
    return linalg_det(input)


def _slogdet_back(m, g, x):
    """By the logarithm x^-H; by the sign 0 where it is real, else what keeps it on the circle."""
    sign, log = g
    scale = m.null(sign) if log is None else log
    if sign is not None and complex_valued(sign):
        unit, _ = m.sign_and_log(x)
        turn = m.conj(unit) * sign
        scale = scale + (turn - m.conj(turn)) * 0.5
    return _column(m, scale) * mH(m, m.matrix_inverse(x))


@op(x=_slogdet_back, outputs=2, holomorphic=False, node="LinalgSlogdet")
def sign_and_log(xp, x):
    """The signs of the determinants, and the logarithms of their magnitudes."""
    sign, log = xp.linalg.slogdet(x)
    return xp.asarray(sign).astype(x.dtype), xp.asarray(log).astype(x.real.dtype)


def _slogdet(name, A):
    square_matrices(name, A)
    return sign_and_log(A)


def linalg_slogdet(A, *, out=None):
    """sign and log|det| of square matrices; 0 and -inf where the determinant is 0.

    Derivative  of the logarithm: A^-H
    """
    return placed("linalg_slogdet", _LinalgSignLog(*_slogdet("linalg.slogdet", A)), out)


def slogdet(input):
    """As ``linalg.slogdet``."""
    a_tensor("slogdet", input, "input")
    return _SignLog(*_slogdet("linalg.slogdet", input))


def logdet(input):
    """log(det(input)): -inf where the determinant is 0, nan where it is negative."""
    a_tensor("logdet", input, "input")
    sign, log = _slogdet("logdet", input)
    if input.is_complex():
        return log + sign.log()
    return log.masked_fill(sign.detach() < 0, math.nan)


# ---- inverses and systems


def _singular(name):
    def explain(error, x, *others):
        found = zero_pivot(x) if isinstance(error, np.linalg.LinAlgError) else None
        if found is None:
            return None
        i, k = found
        return _LinAlgError(
            f"{name}: {element(x, i)}The diagonal element {k} is zero, the inversion could not be completed because "
            "the input matrix is singular."
        )

    return explain


@op(
    x=lambda m, g, out: -m.matmul(m.matmul(_mT(m, out), g), _mT(m, out)),
    explain=_singular("linalg.inv"),
    node="LinalgInvEx",
)
def matrix_inverse(xp, x):
    """The inverses of square matrices."""
    return xp.linalg.inv(x)


def linalg_inv(A, *, out=None):
    """The inverses of square matrices [...,N,N].

    Derivative  -A^-H @ g @ A^-H
    Raises      linalg.LinAlgError where one is singular
    """
    square_matrices("linalg.inv", A)
    return placed("linalg_inv", matrix_inverse(A), out)


def inverse(input, *, out=None):
    """As ``linalg.inv``."""
    a_tensor("inverse", input, "input")
    return linalg_inv(input, out=out)


def inv_ex(A, *, check_errors=False, out=None):
    """The inverses and ``info``: 0, or the 1-based place of the zero pivot, and then nan instead of an error."""
    name = "linalg.inv_ex"
    square_matrices(name, A)
    info, regular = _infos(A.array)
    if check_errors and not regular:
        raise _singular(name)(np.linalg.LinAlgError(), A.array)
    inverse = matrix_inverse(A) if regular else _nan_where(info, matrix_inverse(_regular(A, info)))
    return placed("linalg_inv_ex", _InvEx(inverse, info), out)


def _infos(array):
    """The zero pivot of every matrix, 0 where there is none, and whether there is none at all."""
    from .lu import eliminate

    xp = xp_of(array)
    info = eliminate(xp, array)[2]
    return wrap(xp.asarray(info)), not bool(info.any())


def _regular(A, info):
    """``A`` with the identity in place of the matrices whose ``info`` is not 0."""
    xp = xp_of(A.array)
    return TABLE["where"].raw(_of_matrices(info), wrap(xp.eye(A.shape[-1], dtype=A.array.dtype)), A)


def _nan_where(info, result):
    """``result`` with nan where the ``info`` of a matrix is not 0."""
    return result.masked_fill(_of_matrices(info), math.nan)


def _of_matrices(info):
    return wrap(xp_of(info.array).asarray(info.array != 0)[..., None, None])


def _solve_back(m, g, x, out, needs, x_shape, y_shape):
    dy = m.solve_matrices(_mT(m, x), g)
    dx = m.sum_to(-m.matmul(dy, _mT(m, out)), shape=x_shape) if needs[0] else None
    return dx, m.sum_to(dy, shape=y_shape) if needs[1] else None


def _unsolved(error, x, y):
    if not isinstance(error, np.linalg.LinAlgError):
        return None
    i = next((i for i, a in each(x) if np.linalg.matrix_rank(a) < a.shape[0]), 0)
    return _LinAlgError(f"torch.linalg.solve: {element(x, i)}The solver failed because the input matrix is singular.")


@op(joint=_solve_back, explain=_unsolved, node="LinalgSolveEx")
def solve_matrices(xp, x, y):
    """The solutions of x X = y, matrices whose batch axes broadcast."""
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    x, y = xp.broadcast_to(x, batch + x.shape[-2:]), xp.broadcast_to(y, batch + y.shape[-2:])
    return xp.linalg.solve(x, y)


def _is_vector(A, B):
    """Whether B is a batch of vectors and not of matrices, as PyTorch tells them apart."""
    return B.ndim == 1 or (A.ndim - 1 == B.ndim and tuple(B.shape) == tuple(A.shape[:-1]))


def solve(A, B, *, left=True, out=None):
    """X with A X = B, or X A = B where ``left`` is False.

    Shapes      A [...,N,N], B [...,N,K] or [...,N]; batch axes broadcast
    Derivative  by B: G = A^-H g; by A: -G X^H
    Raises      linalg.LinAlgError where A is singular, RuntimeError where shapes or dtypes do not fit

    >>> cudagrad.linalg.solve(cudagrad.tensor([[2.0, 0.0], [0.0, 4.0]]), cudagrad.tensor([2.0, 2.0]))
    tensor([1.0000, 0.5000])
    """
    name = "linalg.solve"
    square_matrices(name, A)
    vector = _is_vector(A, B)
    columns = B.unsqueeze(-1) if vector else B
    matrices(name, columns, "B")
    one_dtype(name, A, B)
    fit(name, A, columns, left)
    X = solve_matrices(A, columns) if left else solve_matrices(A.mT, columns.mT).mT
    return placed("linalg_solve", X.squeeze(-1) if vector else X, out)


def solve_ex(A, B, *, left=True, check_errors=False, out=None):
    """The solution and ``info``: 0, or the 1-based place of the zero pivot, and then nan instead of an error."""
    square_matrices("linalg.solve_ex", A)
    info, regular = _infos(A.array)
    if check_errors and not regular:
        i = int(np.flatnonzero(on_host(info.array))[0])
        raise _LinAlgError(
            f"torch.linalg.solve_ex: {element(A.array, i)}The solver failed because the input matrix is singular."
        )
    X = solve(A if regular else _regular(A, info), B, left=left)
    if not regular:
        X = _nan_where(info, X.unsqueeze(-1)).squeeze(-1) if _is_vector(A, B) else _nan_where(info, X)
    return placed("linalg_solve_ex", _SolveEx(X, info), out)


# ---- powers and exponentials


def linalg_matrix_power(A, n, *, out=None):
    """A multiplied n times by itself, by squaring; of the inverse for a negative n.

    Raises      RuntimeError where A is not square, linalg.LinAlgError for a negative n where it is singular
    """
    return placed("linalg_matrix_power", _power("linalg_matrix_power", A, n), out)


def _power(function, A, n):
    name = "linalg.matrix_power"
    if isinstance(n, float):
        raise TypeError(f"{function}(): argument 'n' (position 2) must be int, not float")
    n = operator.index(n)
    a_tensor(function, A, "input")
    if A.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    equal_sides(name, A)
    base, n = (linalg_inv(A), -n) if n < 0 else (A, n)
    result = None
    while n:
        if n & 1:
            result = base if result is None else result @ base
        n >>= 1
        if n:
            base = base @ base
    if result is None:
        xp = xp_of(A.array)
        nothing = TABLE["only"].raw(A, wrap(xp.zeros((), bool)))  # with A's place in the graph
        result = nothing + wrap(xp.eye(A.shape[-1], dtype=A.array.dtype))
    elif result is A:
        result = A.clone()
    return result


def matrix_power(input, n, *, out=None):
    """As ``linalg.matrix_power``."""
    return placed("matrix_power", _power("matrix_power", input, n), out)


# Padé's approximant of order 13 and the norm up to which it holds to double precision.
_PADE = (
    *(64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600),
    *(670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1),
)
_PADE_NORM = 5.371920351148152


def _exp_back(m, g, x):
    """The upper right block of the exponential of [[x^T, g], [0, x^T]].

    Source      Mathias 1996, SIAM J. Matrix Anal. Appl. 17(3) 610, theorem 4.1
    """
    n = x.shape[-1]
    turned = _mT(m, x)
    block = m.block_triangle(turned, g)
    whole = m.exponential(block)
    rows = m.narrow(whole, dim=x.ndim - 2, start=0, length=n)
    return m.narrow(rows, dim=x.ndim - 1, start=n, length=n)


def _block_back(m, g, x):
    """What of g belongs to both diagonal blocks."""
    n, rows, columns = x.shape[-1], x.ndim - 2, x.ndim - 1

    def block(i, j):
        part = m.narrow(g, dim=rows, start=i * n, length=n)
        return m.narrow(part, dim=columns, start=j * n, length=n)

    return block(0, 0) + block(1, 1)


def _corner_back(m, g, x_shape):
    n, last = x_shape[-1], len(x_shape) - 1
    return m.narrow(m.narrow(g, dim=last - 1, start=0, length=n), dim=last, start=n, length=n)


@op(x=_block_back, y=_corner_back)
def block_triangle(xp, x, y):
    """[[x, y], [0, x]] of square matrices of one shape."""
    n = x.shape[-1]
    out = xp.zeros((*x.shape[:-2], 2 * n, 2 * n), x.dtype)
    out[..., :n, :n] = out[..., n:, n:] = x
    out[..., :n, n:] = y
    return out


@op(x=_exp_back, node="LinalgMatrixExp")
def exponential(xp, x):
    """The exponentials of square matrices, by scaling and squaring.

    Source      Higham 2005, SIAM J. Matrix Anal. Appl. 26(4) 1179, algorithm 2.3
    """
    if not x.size:
        return x.copy()
    norm = float(xp.abs(x).sum(-2).max())
    squarings = max(0, math.ceil(math.log2(norm / _PADE_NORM))) if 0 < norm < math.inf else 0
    a = x / 2**squarings
    eye = xp.eye(x.shape[-1], dtype=x.dtype)
    a2 = xp.matmul(a, a)
    a4 = xp.matmul(a2, a2)
    a6 = xp.matmul(a4, a2)
    b = [x.real.dtype.type(c / _PADE[0]) for c in _PADE]  # scaled, so that float32 does not overflow
    odd = xp.matmul(a6, b[13] * a6 + b[11] * a4 + b[9] * a2) + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * eye
    odd = xp.matmul(a, odd)
    even = xp.matmul(a6, b[12] * a6 + b[10] * a4 + b[8] * a2) + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * eye
    out = xp.linalg.solve(even - odd, even + odd)
    for _ in range(squarings):
        out = xp.matmul(out, out)
    return out


def matrix_exp(input):
    """The matrix exponentials sum_k input^k / k! of square matrices [...,N,N].

    Dtypes      floating or complex; half types are computed in float32
    Raises      RuntimeError where input is not square, or neither floating nor complex
    """
    a_tensor("linalg.matrix_exp", input)
    if input.ndim < 2:
        raise RuntimeError("linalg.matrix_exp: The input tensor A must have at least 2 dimensions.")
    if input.dtype.itemsize == 2 and input.dtype.is_floating_point:
        return matrix_exp(input.float()).to(input.dtype)
    square_matrices("linalg.matrix_exp", input)
    return exponential(input)


def vecdot(x, y, *, dim=-1, out=None):
    """sum conj(x) * y over ``dim``; the other axes broadcast."""
    if x.dtype.itemsize != 2 or x.dtype.category < 2:
        floating("linalg.vecdot", x)
    return placed("linalg_vecdot", ((x.conj() if x.is_complex() else x) * y).sum(dim), out)


LINALG = {
    **{"det": linalg_det, "slogdet": linalg_slogdet, "inv": linalg_inv, "inv_ex": inv_ex, "solve": solve},
    **{"solve_ex": solve_ex, "matrix_power": linalg_matrix_power, "matrix_exp": matrix_exp, "vecdot": vecdot},
    "LinAlgError": _LinAlgError,
}
