"""Norms, determinants, inverses, systems and Cholesky factors, by NumPy in float64."""

import math

import numpy as np

import cudagrad as cg

from . import Error, Input, case

INF = math.inf
SQUARE = "A must be batches of square matrices, but they are 2 by 3 matrices"
FLAT = "The input tensor A must have at least 2 dimensions."
WHOLE = "Expected a floating point or complex tensor as input. Got Long"
LINALG = {"low": False, "roundings": 64}


def random(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape)


def regular(*shape, seed=1):
    """Square matrices far from singular."""
    return random(*shape, seed=seed) + 3 * np.eye(shape[-1])


def positive(*shape, seed=1):
    """Symmetric positive-definite matrices."""
    a = random(*shape, seed=seed)
    return a @ a.swapaxes(-1, -2) + np.eye(shape[-1])


def bad(name, kernel=None, alone=False, called=None):
    """What every function of square matrices refuses; ``kernel`` refuses half precision, ``alone`` also integers.

    ``called``: how the function and its first argument are called where that is no tensor.
    """
    called = called or f"{name.replace('.', '_')}(): argument 'A'"
    half = f"{name}: Low precision dtypes not supported. Got Half"
    no_half = Error(RuntimeError, half, cg.ones(2, 2).half())
    no_ints = Error(RuntimeError, f"{name}: {WHOLE}", np.ones((2, 2), int))
    if kernel:
        no_half = Error(NotImplementedError, f"\"{kernel}\" not implemented for 'Half'", cg.ones(2, 2).half())
    if alone:
        no_ints = Error(NotImplementedError, f"\"{kernel}\" not implemented for 'Long'", np.ones((2, 2), int))
    return [
        Error(RuntimeError, f"{name}: {SQUARE}", (2, 3)),
        Error(RuntimeError, f"{name}: {SQUARE}", np.ones((2, 3), int)),
        Error(RuntimeError, f"{name}: {FLAT}", (3,)),
        no_ints,
        no_half,
        Error(TypeError, f"{called} (position 1) must be Tensor, not int", 3),
    ]


def first(name, argument="A"):
    """A function of linalg called ``argument``, the one beside it input."""
    return f"{name.replace('.', '_')}(): argument '{argument if '.' in name else 'input'}'"


# ---- norms


def vector_norm(x, ord=2, dim=None, keepdim=False, dtype=None):
    axis = dim if dim is None or isinstance(dim, int) else tuple(dim)
    size = np.abs(x)
    if ord == 0:
        return (x != 0).sum(axis, keepdims=keepdim).astype(size.dtype)
    if abs(ord) == INF:
        return (size.max if ord > 0 else size.min)(axis, keepdims=keepdim)
    return (size**ord).sum(axis, keepdims=keepdim) ** (1 / ord)


ORDERS = (0, 0.5, 1, 1.5, 2, 3, INF, -INF, -1, -2.5)
case(
    "linalg.vector_norm",
    vector_norm,
    *(Input((3, 4), p, **o) for p in ORDERS for o in ({}, {"dim": 1}, {"dim": (0, 1), "keepdim": True})),
    *(Input((2, 3, 4), dim=(0, 2)), Input((), 3), Input((0, 3)), Input((0, 3), dim=0), Input((1000,))),
    Error(TypeError, "linalg_vector_norm(): argument 'ord' (position 2) must be Number, not str", (2,), "fro"),
    Error(RuntimeError, f"linalg.vector_norm: {WHOLE}", np.ones(2, int)),
    Error(RuntimeError, "cannot compute the inf norm on an empty tensor because the operation does not", (0,), INF),
    Error(
        RuntimeError, "cannot compute the -1 norm on the dimension 1because this dimension is empty", (2, 0), -1, dim=1
    ),
    Error(RuntimeError, "dim 0 appears multiple times in the list of dims", (2, 2), dim=(0, 0)),
    complex=False,
    roundings=16,
)
case("linalg.vector_norm", vector_norm, *(Input((3, 4), p) for p in (1, 1.5, 2, 3)), complex=True, roundings=16)


def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False):
    A = np.moveaxis(A, dim, (-2, -1))
    out = np.linalg.norm(A, ord, (-2, -1))
    return np.expand_dims(out, tuple(d % A.ndim for d in dim)) if keepdim else out


MATRIX_ORDERS = ("fro", "nuc", 2, -2, 1, -1, INF, -INF)
case(
    "linalg.matrix_norm",
    matrix_norm,
    *(Input((3, 4), p) for p in MATRIX_ORDERS),
    *(Input((2, 3, 4), p, dim=(0, 2), keepdim=True) for p in MATRIX_ORDERS),
    *(Input((2, 3, 4), p, dim=(2, 0)) for p in MATRIX_ORDERS),
    Error(RuntimeError, f"linalg.matrix_norm: {FLAT}", (2,)),
    Error(TypeError, "linalg_matrix_norm(): argument 'input' (position 1) must be Tensor, not int", 3),
    Error(RuntimeError, "linalg.matrix_norm: Order 3 not supported.", (2, 3), 3),
    Error(RuntimeError, "linalg.matrix_norm: dims must be different. Got (0, 0)", (2, 3), dim=(0, 0)),
    Error(RuntimeError, "linalg.matrix_norm: dim must be a 2-tuple. Got 0", (2, 3), dim=(0,)),
    **LINALG,
)


def either_norm(A, ord=None, dim=None, keepdim=False):
    return np.linalg.norm(A.reshape(-1) if ord is None and dim is None else A, ord, dim, keepdim)


case(
    "linalg.norm",
    either_norm,
    *(Input((2, 3)), Input((2, 3, 4)), Input((2, 3), "fro"), Input((2, 3), 2), Input((3,), 3), Input((2, 3), dim=1)),
    *(Input((2, 3, 4), 1, dim=(1, 2)), Input((2, 3), 1, 0, True)),
    Error(
        RuntimeError,
        "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got 3D.",
        (2, 3, 4),
        2,
    ),
    Error(RuntimeError, "linalg.matrix_norm: Order x not supported.", (2, 3), "x"),
    Error(TypeError, "linalg_norm(): argument 'input' (position 1) must be Tensor, not int", 3),
    **LINALG,
)


def norm(x, p="fro", dim=None, keepdim=False):
    if p == "nuc":
        return np.linalg.norm(x, p, dim or (-2, -1), keepdim)
    return vector_norm(x, 2 if p == "fro" or p is None else p, dim, keepdim)


for name in ("norm", "Tensor.norm"):
    case(
        name,
        norm,
        *(
            Input((2, 3)),
            Input((2, 3), 1),
            Input((2, 3), 3, 1, True),
            Input((2, 3), dim=(0, 1)),
            Input((2, 3), None, 0),
        ),
        roundings=16,
    )
case("norm", norm, Input((2, 3), "nuc"), **LINALG)
case("frobenius_norm", lambda x, dim: vector_norm(x, 2, dim), Input((2, 3), 1), Input((2, 3), dim=(0, 1)), roundings=16)
case("nuclear_norm", lambda x: matrix_norm(x, "nuc"), Input((2, 3)), Input((2, 3, 4)), **LINALG)
case(
    "norm_except_dim",
    lambda v, pow=2, dim=0: vector_norm(v, pow, tuple(d for d in range(v.ndim) if d != dim), dim != -1),
    *(Input((2, 3, 4)), Input((2, 3, 4), 2, 1), Input((2, 3, 4), 1, 2), Input((2, 3, 4), 2, -1)),
    roundings=16,
)
case(
    "trace",
    np.trace,
    *(Input((2, 3)), Input((3, 2)), Input((0, 2))),
    Error(RuntimeError, "trace: expected a matrix, but got tensor with dim 1", (2,)),
    ints=True,
    complex=True,
)

# ---- determinants, inverses, systems

A, B = regular(3, 3), regular(2, 3, 3, seed=2)
LOST = np.array([[1.0, 2.0, 3.0], [0.5, -1.0, 2.0], [1.5, 1.0, 5.0]])  # the last row is the sum of the others
for name in ("det", "linalg.det"):
    wrong = bad("linalg.det", "lu_cpu", called=first(name))
    case(name, np.linalg.det, Input(A), Input(B), Input((0, 3, 3)), *wrong, complex=True, **LINALG)
    case(
        name,
        np.linalg.det,
        Input(LOST),
        Input(np.zeros((3, 3))),
        Input(np.zeros((2, 2))),
        Input((0, 0)),
        grad=1,
        **LINALG,
    )
for name in ("slogdet", "linalg.slogdet"):
    wrong = bad("linalg.slogdet", called=first(name))
    case(name, lambda x: tuple(np.linalg.slogdet(x)), Input(A), Input(-B), *wrong, complex=True, **LINALG)
    case(name, lambda x: tuple(np.linalg.slogdet(x)), Input(np.zeros((2, 2))), grad=0, **LINALG)
case(
    "logdet",
    lambda x: np.log(np.linalg.det(x)),
    Input(positive(3, 3)),
    Input(positive(2, 3, 3)),
    *bad("logdet", called=first("logdet")),
    **LINALG,
)
case(
    "logdet", lambda x: np.log(np.linalg.det(x)), Input(np.diag([-1.0, 2.0])), Input(np.zeros((2, 2))), grad=0, **LINALG
)
SINGULAR = "The diagonal element {} is zero, the inversion could not be completed because the input matrix is singular."
LinAlgError = cg.linalg.LinAlgError
for name in ("inverse", "linalg.inv"):
    case(
        name,
        np.linalg.inv,
        *(Input(A), Input(B), Input((0, 3, 3))),
        *bad("linalg.inv", called=first(name)),
        Error(LinAlgError, "linalg.inv: " + SINGULAR.format(1), np.zeros((2, 2))),
        Error(
            LinAlgError, "linalg.inv: (Batch element 1): " + SINGULAR.format(2), np.stack([np.eye(2), np.ones((2, 2))])
        ),
        complex=True,
        **LINALG,
    )
case("linalg.inv_ex", lambda x: (np.linalg.inv(x), np.zeros(x.shape[:-2], int)), Input(A), Input(B), **LINALG)
case(
    "linalg.inv_ex",
    lambda x: (np.full(x.shape, math.nan), np.array(2)),
    Input(np.ones((2, 2))),
    *bad("linalg.inv", called=first("linalg.inv_ex")),
    Error(LinAlgError, "linalg.inv_ex: " + SINGULAR.format(2), np.ones((2, 2)), check_errors=True),
    grad=0,
    **LINALG,
)
# One matrix of a batch is singular: the others are inverted all the same.
ONE_LOST = np.stack([A, np.ones((3, 3)), 2 * np.eye(3)])
case(
    "linalg.inv_ex",
    lambda x: (np.stack([np.linalg.inv(x[0]), 0 * x[1] + math.nan, np.linalg.inv(x[2])]), np.array([0, 2, 0])),
    Input(ONE_LOST),
    f=cg.linalg.inv_ex,
    grad=0,
    **LINALG,
)


def solve(a, b, left=True, **_):
    vector = b.ndim == 1 or b.shape == a.shape[:-1]
    b = b[..., None] if vector else b
    x = np.linalg.solve(a, b) if left else np.linalg.solve(a.swapaxes(-1, -2), b.swapaxes(-1, -2)).swapaxes(-1, -2)
    return x[..., 0] if vector else x


FIT = "linalg.solve: Incompatible shapes of A and B for the equation "
STUCK = "The solver failed because the input matrix is singular."
case(
    "linalg.solve",
    solve,
    *(Input(A, (3,)), Input(A, (3, 2)), Input(B, (2, 3)), Input(B, (3, 2)), Input(A, (5, 3, 2)), Input(B, (3,))),
    *(Input(A, (2, 3), left=False), Input(B, (5, 1, 2, 3), left=False)),
    Error(RuntimeError, FIT + "AX = B (2x2 and 3x1)", (2, 2), (3,)),
    Error(RuntimeError, FIT + "XA = B (2x2 and 3x3)", (2, 2), (3, 3), left=False),
    Error(RuntimeError, "linalg.solve: " + SQUARE, (2, 3), (2, 2)),
    Error(LinAlgError, "torch.linalg.solve: " + STUCK, np.zeros((2, 2)), (2,)),
    Error(LinAlgError, "torch.linalg.solve: (Batch element 0): " + STUCK, np.zeros((3, 2, 2)), (2, 1)),
    complex=True,
    **LINALG,
)
case("linalg.solve_ex", lambda a, b: (solve(a, b), np.array(0)), Input(A, (3, 2)), **LINALG)
for columns, more in (((3, 3, 2), {}), ((3, 3), {}), ((3, 2, 3), {"left": False})):
    case(
        "linalg.solve_ex",
        lambda a, b, left=True: (
            np.stack([solve(a[0], b[0], left), 0 * b[1] + math.nan, solve(a[2], b[2], left)]),
            np.array([0, 2, 0]),
        ),
        Input(ONE_LOST, columns, **more),
        f=cg.linalg.solve_ex,
        grad=0,
        **LINALG,
    )
case(
    "linalg.solve_ex",
    None,
    Error(RuntimeError, "linalg.solve: " + SQUARE, (2, 3), (2, 2)),
    Error(NotImplementedError, "\"lu_cpu\" not implemented for 'Half'", *[cg.ones(2, 2).half()] * 2),
    Error(LinAlgError, "torch.linalg.solve_ex: " + STUCK, np.zeros((2, 2)), (2, 1), check_errors=True),
)


def triangle(a, upper, unitriangular=False):
    t = np.triu(a) if upper else np.tril(a)
    return t - np.diag(np.diag(t)) + np.eye(len(t)) if unitriangular else t


def solve_triangular(a, b, upper, left=True, unitriangular=False):
    t = triangle(a, upper, unitriangular)
    return np.linalg.solve(t, b) if left else np.linalg.solve(t.T, b.T).T


case(
    "linalg.solve_triangular",
    solve_triangular,
    *(Input(A, (3, 3), upper=u, left=side, unitriangular=v) for u in (0, 1) for side in (0, 1) for v in (0, 1)),
    Error(RuntimeError, "linalg.solve_triangular: Incompatible shapes of A and B for the", (2, 2), (3, 1), upper=True),
    Error(RuntimeError, "linalg.solve_triangular: The input tensor B must have at least 2", (2, 2), (2,), upper=True),
    complex=True,
    **LINALG,
)
case(
    "linalg.solve_triangular",
    lambda a, b, upper: np.array([[1.0], [INF]]),
    Input(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[1.0], [2.0]]), upper=False),
    grad=0,
    **LINALG,
)


def before(b, a, upper=True, transpose=False, unitriangular=False):
    t = triangle(a, upper, unitriangular)
    return np.linalg.solve(t.T if transpose else t, b), a


case(
    "triangular_solve",
    before,
    *(Input((3, 2), A, u, t, v) for u in (0, 1) for t in (0, 1) for v in (0, 1)),
    Error(RuntimeError, "Incompatible matrix sizes for triangular_solve: each A matrix is 3 by 3", (2, 1), (3, 3)),
    Error(RuntimeError, "torch.triangular_solve: Expected A to have at least 2 dimensions, but it", (2, 1), (3,)),
    Error(NotImplementedError, "\"triangular_solve_cpu\" not implemented for 'Half'", *[cg.ones(2, 2).half()] * 2),
    **LINALG,
)


def power(x, n):
    return np.linalg.matrix_power(x, n)


for name in ("matrix_power", "linalg.matrix_power"):
    said = name.replace(".", "_")
    case(
        name,
        power,
        *(Input(A, n) for n in (0, 1, 2, 3, 5, -1, -2)),
        Input(B, 3),
        Error(TypeError, f"{said}(): argument 'n' (position 2) must be int, not float", (2, 2), 1.5),
        Error(TypeError, f"{said}(): argument 'input' (position 1) must be Tensor, not int", 3, 1),
        Error(RuntimeError, "linalg.matrix_power: " + SQUARE, (2, 3), 2),
        **LINALG,
    )
case("linalg.matrix_power", power, Input(A, 3), ints=True, **LINALG)


def exponential(x):
    """The power series, of x / 2^10, squared ten times."""
    term = total = np.broadcast_to(np.eye(x.shape[-1]), x.shape)
    for k in range(1, 20):
        term = term @ (x / 2**10) / k
        total = total + term
    for _ in range(10):
        total = total @ total
    return total


for name in ("matrix_exp", "linalg.matrix_exp"):
    case(
        name,
        exponential,
        *(Input((3, 3)), Input((2, 3, 3)), Input(random(3, 3) * 4), Input(np.zeros((2, 2))), Input((0, 3, 3))),
        *bad("linalg.matrix_exp")[:-2],
        complex=True,
        low=False,
        roundings=2000,
    )

# ---- Cholesky

L = np.tril(random(3, 3)) + 2 * np.eye(3)
MINOR = "not positive-definite (the leading minor of order {} is not positive-definite)."


def symmetric(x):
    return (x + x.swapaxes(-1, -2)) / 2


def factor(A, upper=False):
    low = np.linalg.cholesky(symmetric(A))
    return low.swapaxes(-1, -2) if upper else low


case(
    "linalg.cholesky",
    factor,
    *(Input(positive(3, 3)), Input(positive(2, 3, 3)), Input(positive(3, 3), upper=True)),
    Error(LinAlgError, MINOR.format(1), -np.eye(2)),
    Error(LinAlgError, MINOR.format(3), np.diag([1.0, 2.0, -1.0, 4.0])),
    Error(LinAlgError, "linalg.cholesky: (Batch element 1): ", np.stack([np.eye(2), -np.eye(2)])),
    f=lambda A, upper=False: cg.linalg.cholesky((A + A.mT) / 2, upper=upper),
    **LINALG,
)
case("linalg.cholesky", None, *bad("linalg.cholesky", "cholesky_cpu", called=first("linalg.cholesky", "input")))
case(
    "linalg.cholesky of a hermitian matrix",
    lambda x: np.abs(np.linalg.cholesky(x @ x.conj().T + np.eye(3))),
    Input((3, 3)),
    f=lambda x: cg.linalg.cholesky(x @ x.mH + cg.eye(3, dtype=x.dtype, device=x.device)).abs(),
    complex=True,
    **LINALG,
)
case(
    "cholesky",
    lambda A, upper=False: factor(A, upper),
    Input(positive(3, 3)),
    Input(positive(3, 3), True),
    *bad("cholesky", "cholesky_cpu", alone=True, called=first("cholesky")),
    grad=0,
    **LINALG,
)
case(
    "linalg.cholesky_ex",
    lambda A, upper=False: (factor(A, upper), np.zeros(A.shape[:-2], int)),
    *(Input(positive(3, 3)), Input(positive(2, 3, 3), upper=True)),
    *bad("linalg.cholesky", "cholesky_cpu", called=first("linalg.cholesky_ex", "input")),
    Error(LinAlgError, "linalg.cholesky_ex: ", -np.eye(2), check_errors=True),
    grad=0,
    **LINALG,
)
case(
    "linalg.cholesky_ex",
    lambda A, upper=False: (
        np.stack([factor(A[0], upper), np.triu(A[1]) if upper else np.tril(A[1])]),
        np.array([0, 1]),
    ),
    *(Input(np.stack([positive(2, 2), -np.eye(2)]), upper=upper) for upper in (False, True)),
    grad=0,
    **LINALG,
)
case(
    "linalg.cholesky_ex",
    lambda A, order: np.array(order),
    *(Input(np.diag([1.0, 2.0, -1.0, 4.0]), 3), Input(-np.eye(2), 1)),
    f=lambda A, order: cg.linalg.cholesky_ex(A).info,
    grad=0,
    **LINALG,
)


def of_factor(low, upper):
    t = np.triu(low) if upper else np.tril(low)
    return t.T @ t if upper else t @ t.T


case(
    "cholesky_solve",
    lambda b, low, upper=False: np.linalg.solve(of_factor(low, upper), b),
    *(Input((3, 2), L), Input((3, 2), L.T.copy(), True)),
    Error(RuntimeError, "Incompatible matrix sizes for cholesky_solve: each A matrix is 2 by 2", (3, 1), (2, 2)),
    Error(RuntimeError, "b should have at least 2 dimensions, but has 1 dimensions instead", (2,), (2, 2)),
    Error(RuntimeError, SQUARE, (2, 2), (2, 3)),
    Error(NotImplementedError, "\"cholesky_solve_cpu\" not implemented for 'Half'", *[cg.ones(2, 2).half()] * 2),
    **LINALG,
)
case(
    "cholesky_inverse",
    lambda low, upper=False: np.linalg.inv(of_factor(low, upper)),
    *(Input(L), Input(L.T.copy(), True)),
    *bad("cholesky_inverse", "cholesky_inverse_out_cpu", alone=True, called=first("cholesky_inverse")),
    **LINALG,
)
