"""QR, singular values and eigenvalues: by NumPy, and by what the factors must give back."""

import math

import numpy as np

import cudagrad as cg

from . import Error, Input, case
from .linalg import FLAT, LINALG, A, B, LinAlgError, bad, random, symmetric

# ---- orthogonal factors and singular values

TALL, WIDE, MANY = random(4, 3, seed=3), random(3, 4, seed=4), random(2, 4, 3, seed=5)


def qr(x):
    """Q and R with a positive diagonal, which makes them unique."""
    q, r = np.linalg.qr(x)
    s = np.sign(np.diagonal(r, axis1=-2, axis2=-1))
    return q * s[..., None, :], r * s[..., :, None]


def positive_qr(x):
    q, r = cg.linalg.qr(x)
    s = r.diagonal(0, -2, -1).detach().sign()
    return q * s.unsqueeze(-2), r * s.unsqueeze(-1)


case("linalg.qr", qr, Input(A), Input(TALL), Input(WIDE), Input(MANY), f=positive_qr, **LINALG)
case(
    "linalg.qr",
    lambda x, mode: np.linalg.qr(x, mode),
    *(Input(x, mode="complete") for x in (A, TALL, WIDE)),
    grad=0,
    f=lambda x, mode: tuple(cg.linalg.qr(x, mode)),
    **LINALG,
)
case(
    "linalg.qr",
    lambda x: (np.zeros(0), np.linalg.qr(x, "r")),
    *(Input(A), Input(TALL), Input(WIDE)),
    Error(RuntimeError, "qr received unrecognized mode 'x' but expected one of 'reduced' (default)", (2, 2), mode="x"),
    Error(RuntimeError, f"linalg.qr: {FLAT}", (3,)),
    grad=0,
    f=lambda x, mode="r": tuple(cg.linalg.qr(x, mode)),
    **LINALG,
)
case(
    "qr",
    lambda x, some=True: np.linalg.qr(x, "reduced" if some else "complete"),
    Input(TALL),
    Input(TALL, False),
    grad=0,
    **LINALG,
)


def by_values(x, function):
    """What does not depend on the signs of singular vectors: the values, U f(S) V^H, |U|, |V|."""
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    return s, (u * function(s)[..., None, :]) @ vh, np.abs(u), np.abs(vh)


def our_by_values(x, full=False):
    u, s, vh = cg.linalg.svd(x, full_matrices=full)
    k = s.shape[-1]
    u, vh = u[..., :k], vh[..., :k, :]
    return s, (u * s.sin().unsqueeze(-2)) @ vh, u.abs(), vh.abs()


FINITE = "The algorithm failed to converge because the input matrix contained non-finite values."
case(
    "linalg.svd",
    lambda x, full=False: by_values(x, np.sin),
    *(Input(A), Input(TALL), Input(WIDE), Input(MANY), Input(TALL, full=True), Input(WIDE, full=True)),
    Error(LinAlgError, "linalg.svd: " + FINITE, np.full((2, 2), math.nan)),
    Error(RuntimeError, f"linalg.svd: {FLAT}", (3,)),
    f=our_by_values,
    **LINALG,
)
case(
    "linalg.svd",
    lambda x: by_values(x, np.sin),
    Input(A),
    f=our_by_values,
    complex=True,
    grad=1,
    **LINALG,
)
case(
    "linalg.svdvals",
    lambda x: np.linalg.svd(x, compute_uv=False),
    Input(A),
    Input(TALL),
    Input(WIDE),
    Input(MANY),
    **LINALG,
)


def recomposed(x, **options):
    u, s, v = cg.svd(x, **options)
    k = s.shape[-1]
    return s, (u[..., :k] * s.unsqueeze(-2)) @ v[..., :k].mT


case(
    "svd",
    lambda x, some=True: (np.linalg.svd(x, compute_uv=False), x),
    *(Input(TALL), Input(WIDE, some=False)),
    f=recomposed,
    **LINALG,
)
case(
    "svd",
    lambda x: (np.zeros((4, 4)), np.linalg.svd(x, compute_uv=False), np.zeros((3, 3))),
    Input(TALL),
    f=lambda x: tuple(cg.svd(x, compute_uv=False)),
    grad=0,
    **LINALG,
)

# ---- eigenvalues


def eigen(x):
    w, v = np.linalg.eigh(symmetric(x))
    return w, np.abs(v), (v * np.sin(w)[..., None, :]) @ v.swapaxes(-1, -2)


def our_eigen(x, UPLO="L"):
    w, v = cg.linalg.eigh((x + x.mT) / 2, UPLO)
    return w, v.abs(), (v * w.sin().unsqueeze(-2)) @ v.mT


case(
    "linalg.eigh",
    lambda x, UPLO="L": eigen(x),
    *(Input(A), Input(B), Input(A, UPLO="U"), Input(A, UPLO="u")),
    Error(RuntimeError, "Expected UPLO argument to be 'L' or 'U', but got X", (3, 3), "X"),
    f=our_eigen,
    **LINALG,
)
case("linalg.eigh", None, *bad("linalg.eigh", "linalg_eigh_cpu", alone=True, called="linalg_eigh(): argument 'input'"))
case(
    "linalg.eigh of a hermitian matrix",
    lambda x: (np.linalg.eigvalsh(x + x.conj().T), np.abs(np.linalg.eigh(x + x.conj().T)[1])),
    Input(A),
    f=lambda x: (lambda w, v: (w, v.abs()))(*cg.linalg.eigh(x + x.mH)),
    complex=True,
    grad=1,
    **LINALG,
)
case(
    "linalg.eigvalsh",
    lambda x, UPLO="L": np.linalg.eigvalsh(symmetric(x)),
    *(Input(A), Input(B, UPLO="U")),
    Error(RuntimeError, "Expected UPLO argument to be 'L' or 'U', but got Z", (3, 3), "Z"),
    f=lambda x, UPLO="L": cg.linalg.eigvalsh((x + x.mT) / 2, UPLO),
    **LINALG,
)
APART = np.diag([1.0, 3.0, 7.0]) + 0.3 * random(3, 3)


def in_order(w, v):
    order = np.argsort(w.real)
    return w.real[order], np.abs(v[:, order])


def our_in_order(x):
    w, v = cg.linalg.eig(x)
    order = w.real.argsort()
    return w.real[order], v[:, order].abs()


case(
    "linalg.eig",
    lambda x: in_order(*np.linalg.eig(x)),
    Input(APART),
    *bad("linalg.eig")[:3:2],
    Error(RuntimeError, "torch.linalg.eig: input tensor should not contain infs or NaNs.", np.full((2, 2), math.nan)),
    f=our_in_order,
    complex=True,
    **LINALG,
)
case(
    "linalg.eigvals",
    lambda x: np.sort(np.abs(np.linalg.eigvals(x))),
    *(Input(APART), Input(random(3, 3, seed=9))),
    f=lambda x: cg.linalg.eigvals(x).abs().sort().values,
    complex=True,
    **LINALG,
)
