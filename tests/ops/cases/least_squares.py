"""Pseudo-inverses, least squares, LU, equations of tensors and low-rank factors."""

import numpy as np

import cudagrad as cg

from . import Error, HostError, Input, case
from .factors import MANY, TALL, WIDE
from .linalg import INF, LINALG, A, positive, random, regular, symmetric

# ---- pseudo-inverses and least squares

RANK_2 = np.outer([1.0, 2.0, -1.0, 3.0], [1.0, 2.0, 3.0]) + np.outer([2.0, 0.0, 1.0, -1.0], [0.0, 1.0, -1.0])
PINV = "expected a tensor with 2 or more dimensions of float, double, cfloat or cdouble types"
for name in ("pinverse", "linalg.pinv"):
    case(
        name,
        lambda x: np.linalg.pinv(x),
        *(Input(A), Input(TALL), Input(WIDE), Input(MANY)),
        Error(RuntimeError, PINV, (3,)),
        complex=True,
        **LINALG,
    )
case("linalg.pinv", lambda x: np.linalg.pinv(x, 1e-10), Input(RANK_2), Input(np.zeros((2, 3))), grad=0, **LINALG)
case(
    "linalg.pinv",
    lambda x, **o: np.linalg.pinv(symmetric(x)),
    Input(A),
    f=lambda x: cg.linalg.pinv((x + x.mT) / 2, hermitian=True),
    **LINALG,
)
case(
    "linalg.pinv",
    lambda x, *a, **o: np.linalg.pinv(x, 0.5),
    *(Input(np.diag([4.0, 3.0, 1.0]), rtol=0.5), Input(np.diag([4.0, 3.0, 1.0]), atol=2.0)),
    Input(np.diag([4.0, 3.0, 1.0]), 0.5),
    grad=0,
    **LINALG,
)
case(
    "linalg.matrix_rank",
    lambda x, *a, **o: np.linalg.matrix_rank(x, rtol=1e-6),
    *(Input(A), Input(TALL), Input(MANY), Input(RANK_2), Input(np.ones((3, 3))), Input(np.zeros((2, 3, 3)))),
    Input(positive(3, 3), hermitian=True),
    Error(RuntimeError, "torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions.", (2,)),
    grad=0,
    **LINALG,
)
case(
    "linalg.matrix_rank",
    lambda x, *a, **o: np.array(2),
    *(Input(np.diag([4.0, 3.0, 1.0]), **o) for o in ({"rtol": 0.5}, {"atol": 2.0}, {"tol": 2.0})),
    grad=0,
    **LINALG,
)
case(
    "linalg.cond",
    np.linalg.cond,
    *(Input(A, p) for p in (None, 2, -2, 1, -1, INF, -INF, "fro", "nuc")),
    Input(TALL),
    **LINALG,
)
case(
    "linalg.cond",
    lambda x, p: np.array(INF),
    Input(np.zeros((3, 3)), "fro"),
    Error(RuntimeError, "linalg.cond(ord=1): A must be batches of square matrices, but they are 3 by 2", (3, 2), 1),
    Error(RuntimeError, "linalg.cond got an invalid norm type: x", (3, 3), "x"),
    Error(RuntimeError, "linalg.cond: The input tensor must have at least 2 dimensions.", (3,)),
    grad=0,
    **LINALG,
)


def lstsq(a, b, driver=None):
    return np.linalg.pinv(a) @ (b if b.ndim > 1 else b)


case(
    "linalg.lstsq",
    lstsq,
    *(Input(x, (x.shape[-2], 2), driver=d) for x in (A, TALL, WIDE) for d in (None, "gels", "gelsd")),
    *(Input(TALL, (4,)), Input(MANY, (2, 4, 2))),
    Error(RuntimeError, "torch.linalg.lstsq: input must have at least 2 dimensions.", (3,), (3,)),
    Error(RuntimeError, "torch.linalg.lstsq: input.size(-2) should match other.size(-2)", (3, 2), (4, 1)),
    Error(RuntimeError, "parameter `driver` should be one of (gels, gelsy, gelsd, gelss)", (3, 2), (3, 1), driver="x"),
    f=lambda a, b, driver=None: cg.linalg.lstsq(a, b, driver=driver).solution,
    complex=True,
    **LINALG,
)
case(
    "linalg.lstsq",
    lambda a, b: (((a @ (np.linalg.pinv(a) @ b) - b) ** 2).sum(-2), np.array(3), np.linalg.svd(a, compute_uv=False)),
    Input(TALL, (4, 2)),
    f=lambda a, b: tuple(cg.linalg.lstsq(a, b, driver="gelsd"))[1:],
    grad=0,
    **LINALG,
)

# ---- LU


def lu(x):
    """Gaussian elimination of one matrix, row by row, with the largest pivot."""
    x = x.copy()
    m, n = x.shape
    order, k = np.arange(m), min(m, n)
    for i in range(k):
        p = i + np.abs(x[i:, i]).argmax()
        x[[i, p]], order[[i, p]] = x[[p, i]], order[[p, i]]
        x[i + 1 :, i] /= x[i, i]
        x[i + 1 :, i + 1 :] -= np.outer(x[i + 1 :, i], x[i, i + 1 :])
    return np.eye(m)[:, order], np.tril(x[:, :k], -1) + np.eye(m, k), np.triu(x[:k])


def batched(function):
    def ref(x, *a, **o):
        if x.ndim == 2:
            return function(x, *a, **o)
        parts = [function(m, *a, **o) for m in x]
        return tuple(np.stack(p) for p in zip(*parts)) if isinstance(parts[0], tuple) else np.stack(parts)

    return ref


case(
    "linalg.lu",
    batched(lu),
    *(Input(A), Input(TALL), Input(WIDE), Input(MANY)),
    HostError(RuntimeError, "linalg.lu_factor: LU without pivoting is not implemented on the CPU", (2, 2), pivot=False),
    **LINALG,
)


def packed(x):
    _, low, up = lu(x)
    full = np.zeros(x.shape)
    full[:, : low.shape[1]] += np.tril(low, -1)
    full[: up.shape[0]] += up
    return full


for name in ("linalg.lu_factor", "linalg.lu_factor_ex"):
    function = {"linalg.lu_factor": cg.linalg.lu_factor, "linalg.lu_factor_ex": cg.linalg.lu_factor_ex}[name]
    case(
        name,
        batched(packed),
        *(Input(A), Input(TALL), Input(WIDE), Input(MANY)),
        f=lambda x, function=function, **o: function(x, **o).LU,
        **LINALG,
    )
case(
    "linalg.lu_factor",
    None,
    Error(
        RuntimeError,
        "torch.linalg.lu_factor: U[1,1] is zero and using it on lu_solve would result in a",
        np.zeros((2, 2)),
    ),
)
case(
    "linalg.lu_factor_ex",
    lambda x: (np.array([1, 2]), np.array(2)),
    Input(np.array([[1.0, 2.0], [0.0, 0.0]])),
    f=lambda x: tuple(cg.linalg.lu_factor_ex(x))[1:],
    grad=0,
    **LINALG,
)


def by_lu(a, b, left=True, adjoint=False):
    a = a.T if adjoint else a
    return np.linalg.solve(a, b) if left else np.linalg.solve(a.T, b.T).T


case(
    "linalg.lu_solve",
    by_lu,
    *(Input(A, (3, 3), left=side, adjoint=t) for side in (True, False) for t in (True, False)),
    f=lambda a, b, **o: cg.linalg.lu_solve(*cg.linalg.lu_factor(a), b, **o),
    **LINALG,
)
case(
    "lu",
    batched(packed),
    *(Input(A), Input(TALL)),
    f=lambda x: cg.lu(x, get_infos=True).LU,
    **LINALG,
)
case(
    "lu_solve",
    lambda b, a: np.linalg.solve(a, b),
    Input((3, 2), A),
    f=lambda b, a: cg.lu_solve(b, *cg.linalg.lu_factor(a)),
    **LINALG,
)
case(
    "lu_unpack",
    lu,
    *(Input(A), Input(TALL), Input(WIDE)),
    f=lambda x: tuple(cg.lu_unpack(*cg.linalg.lu_factor(x))),
    **LINALG,
)

# ---- equations of tensors, reflections, and the rest

case(
    "linalg.tensorinv",
    np.linalg.tensorinv,
    *(Input(regular(6, 6).reshape(2, 3, 6), ind=2), Input(regular(6, 6).reshape(6, 3, 2), ind=1)),
    Error(RuntimeError, "Expected a strictly positive integer for 'ind', but got 0", (2, 3, 6), ind=0),
    Error(RuntimeError, "Expected self to satisfy the requirement prod(self.shape[ind:])", (2, 3, 5), ind=2),
    **LINALG,
)
case(
    "linalg.tensorsolve",
    lambda a, b, dims=None: np.linalg.tensorsolve(a, b, dims),
    *(Input(regular(6, 6).reshape(2, 3, 6), (2, 3)), Input(regular(6, 6).reshape(2, 6, 3), (2, 3), dims=(1,))),
    Error(RuntimeError, "but got 30 != 24", (6, 4, 2, 3, 5), (6, 4)),
    **LINALG,
)
case(
    "linalg.vander",
    lambda x, N=None: x[..., None] ** np.arange(N or x.shape[-1]),
    Input((3,)),
    Input((2, 3), N=5),
    roundings=16,
)
case("linalg.vander", None, Error(RuntimeError, "N must be greater than 1.", (3,), N=0))


def reflected(a, tau):
    m, n = a.shape
    product = np.eye(m)
    for i, t in enumerate(tau):
        v = np.zeros(m)
        v[i], v[i + 1 :] = 1, a[i + 1 :, i]
        product = product @ (np.eye(m) - t * np.outer(v, v))
    return product[:, :n]


SHORT = "torch.linalg.householder_product: input.shape[-2] must be greater than or equal to input.shape[-1]"
for name in ("orgqr", "linalg.householder_product"):
    case(name, reflected, Input((4, 3), (3,)), Input((3, 3), (2,)), Error(RuntimeError, SHORT, (2, 3), (2,)), **LINALG)
case(
    "linalg.cross",
    lambda x, y, dim=-1: np.cross(x, y, axis=dim),
    *(Input((2, 3), (2, 3)), Input((2, 3), (1, 3)), Input((3, 2), (3, 2), dim=0)),
    Error(RuntimeError, "linalg.cross: inputs must have the same number of dimensions.", (3,), (1, 3)),
    Error(RuntimeError, "linalg.cross: inputs dimension -1 must have length 3. Got 4 and 4", (2, 4), (2, 4)),
)
case(
    "linalg.diagonal",
    lambda x, offset=0, dim1=-2, dim2=-1: np.diagonal(x, offset, dim1, dim2),
    *(Input((2, 3, 4)), Input((2, 3, 4), offset=1, dim1=0, dim2=2)),
)

# ---- a few singular values; exact where the rank is no more than is asked for


def all_singular(x, q, **_):
    return np.linalg.svd(x, compute_uv=False)[..., :q], x


def few(x, q, **options):
    u, s, v = cg.svd_lowrank(x, q, **options)
    return s, (u * s.unsqueeze(-2)) @ v.mT


case(
    "svd_lowrank",
    all_singular,
    Input(RANK_2, 2),
    Input(RANK_2.T.copy(), 2),
    Input(A, 3),
    Input(TALL, 3),
    grad=0,
    f=few,
    **LINALG,
)
case(
    "svd_lowrank",
    lambda x, m: x - m,
    Input(TALL, random(1, 3)),
    grad=0,
    f=lambda x, m: (lambda u, s, v: (u * s.unsqueeze(-2)) @ v.mT)(*cg.svd_lowrank(x, 3, M=m)),
    **LINALG,
)
case(
    "pca_lowrank",
    lambda x, q=None, center=True: np.linalg.svd(x - x.mean(0) if center else x, compute_uv=False)[:q],
    *(Input(TALL), Input(TALL, 3, center=False)),
    Error(ValueError, "q(=7) must be non-negative integer and not greater than min(m, n)=4", (5, 4), q=7),
    Error(ValueError, "niter(=-1) must be non-negative integer", (5, 4), niter=-1),
    grad=0,
    f=lambda x, *a, **o: cg.pca_lowrank(x, *a, **o)[1],
    **LINALG,
)
