"""The functions that torch had before torch.linalg, most of them deprecated."""

from ..core.node import warn
from .decomposition import linalg_qr, linalg_svd
from .linalg_checks import a_tensor, equal_sides, square_matrices
from .lu import lu_factor_ex
from .outputs import placed, return_type
from .substitution import solve_triangular, triangle_of

__all__ = ("cholesky", "qr", "svd", "triangular_solve", "lu")
METHODS = __all__

_SVD = return_type("svd", ("U", "S", "V"))
_QR = return_type("qr", ("Q", "R"))
_LU = return_type("_lu_with_info", ("LU", "pivots", "info"))
_Solved = return_type("triangular_solve", ("solution", "cloned_coefficient"))


def cholesky(input, upper=False, *, out=None):
    """As ``linalg.cholesky``. Deprecated."""
    warn(
        "torch.cholesky is deprecated in favor of torch.linalg.cholesky and will be removed in a future PyTorch "
        "release.\nL = torch.cholesky(A)\nshould be replaced with\nL = torch.linalg.cholesky(A)\nand\n"
        "U = torch.cholesky(A, upper=True)\nshould be replaced with\nU = torch.linalg.cholesky(A).mH"
    )
    square_matrices("cholesky", input)
    return placed("cholesky", triangle_of(input, upper), out)


def qr(input, some=True, *, out=None):
    """As ``linalg.qr``, 'complete' where ``some`` is False. Deprecated."""
    warn(
        "torch.qr is deprecated in favor of torch.linalg.qr and will be removed in a future PyTorch release.\n"
        "The boolean parameter 'some' has been replaced with a string parameter 'mode'.\nQ, R = torch.qr(A, some)\n"
        "should be replaced with\nQ, R = torch.linalg.qr(A, 'reduced' if some else 'complete')"
    )
    a_tensor("qr", input, "input")
    return placed("qr", _QR(*linalg_qr(input, "reduced" if some else "complete")), out)


def svd(input, some=True, compute_uv=True, *, out=None):
    """U, S, V with input = U diag(S) V^H: V where ``linalg.svd`` gives V^H; U and V zeros without ``compute_uv``."""
    a_tensor("svd", input, "input")
    U, S, Vh = linalg_svd(input, full_matrices=not some)
    if not compute_uv:
        m, n = input.shape[-2:]
        U, Vh = U.new_zeros((*U.shape[:-2], m, m)), Vh.new_zeros((*Vh.shape[:-2], n, n))
    return placed("svd", _SVD(U, S, Vh.mH), out)


def triangular_solve(b, A, upper=True, transpose=False, unitriangular=False, *, out=None):
    """The solution of A X = b (A^T X = b), and a copy of A. Deprecated."""
    warn(
        "torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangular"
        "and will be removed in a future PyTorch release.\n"
        "torch.linalg.solve_triangular has its arguments reversed and does not return a copy of one of the inputs.\n"
        "X = torch.triangular_solve(B, A).solution\nshould be replaced with\nX = torch.linalg.solve_triangular(A, B)."
    )
    for name, t in (("b", b), ("A", A)):
        if t.ndim < 2:
            first = f"torch.triangular_solve: Expected {name} to have at least 2 dimensions, but it has"
            raise RuntimeError(f"{first} {t.ndim} dimensions instead")
    equal_sides(None, A)
    if A.shape[-1] != b.shape[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for triangular_solve: each A matrix is {A.shape[-2]} by {A.shape[-1]} but each "
            f"b matrix is {b.shape[-2]} by {b.shape[-1]}"
        )
    turned, upper_now = (A.mT, not upper) if transpose else (A, upper)
    X = solve_triangular(turned, b, upper=upper_now, unitriangular=unitriangular)
    return placed("triangular_solve", _Solved(X, A.clone()), out)


def lu(A, pivot=True, get_infos=False, out=None):
    """As ``linalg.lu_factor_ex``, without ``info`` by default. Deprecated."""
    warn(
        "torch.lu is deprecated in favor of torch.linalg.lu_factor / torch.linalg.lu_factor_ex and will be removed in "
        "a future PyTorch release.\nLU, pivots = torch.lu(A, compute_pivots)\nshould be replaced with\n"
        "LU, pivots = torch.linalg.lu_factor(A, compute_pivots)\nand\n"
        "LU, pivots, info = torch.lu(A, compute_pivots, get_infos=True)\nshould be replaced with\n"
        "LU, pivots, info = torch.linalg.lu_factor_ex(A, compute_pivots)"
    )
    made = lu_factor_ex(A, pivot=pivot)
    return placed("lu", _LU(*made) if get_infos else tuple(made)[:2], out)
