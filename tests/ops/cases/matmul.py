"""Products of matrices, contractions, affine maps and distances."""

import math

import numpy as np

import cudagrad as cg

from . import Error, Input, case

INF = math.inf
FIT = "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"
DTYPES = "expected m1 and m2 to have the same dtype, but got: double != float"
F32 = np.ones((3, 2), np.float32)
F64 = np.ones((2, 3))


def both(*tensors):
    """Tensors as they are: for a dtype that the table would change."""
    return [cg.tensor(t) for t in tensors]


PRODUCTS = [
    *(Input((2, 3), (3, 4)), Input((1, 31), (31, 33)), Input((0, 3), (3, 2)), Input((2, 0), (0, 3))),
    Input((33, 5), (5, 1)),
]
case(
    "mm",
    np.matmul,
    *PRODUCTS,
    Error(RuntimeError, FIT, (2, 3), (2, 3)),
    Error(RuntimeError, "self must be a matrix", (3,), (3, 2)),
    Error(RuntimeError, "mat2 must be a matrix", (2, 3), (3,)),
    Error(TypeError, "mm(): argument 'mat2' (position 2) must be Tensor, not int", (2, 3), 1),
    complex=True,
)
case(
    "mm of two dtypes",
    None,
    Error(RuntimeError, DTYPES),
    f=lambda: cg.mm(*both(F64, F32)),
)
case(
    "matmul",
    np.matmul,
    *PRODUCTS,
    *(Input((3,), (3,)), Input((2, 3), (3,)), Input((3,), (3, 4)), Input((5, 2, 3), (3,)), Input((5, 2, 3), (3, 4))),
    *(Input((3,), (5, 3, 4)), Input((2, 3), (5, 3, 4)), Input((5, 2, 3), (5, 3, 4)), Input((5, 2, 3), (1, 3, 4))),
    *(Input((2, 1, 2, 3), (5, 3, 4)), Input((5, 2, 3), (2, 5, 3, 4)), Input((0, 2, 3), (3, 4)), Input((3,), (0, 3, 4))),
    Error(RuntimeError, FIT, (2, 3), (2, 3)),
    Error(RuntimeError, "mat1 and mat2 shapes cannot be multiplied (6x4 and 5x6)", (2, 3, 4), (5, 6)),
    Error(
        RuntimeError, "inconsistent tensor size, expected tensor [3] and src [4] to have the same number", (3,), (4,)
    ),
    Error(RuntimeError, "size mismatch, got input (2), mat (2x3), vec (4)", (2, 3), (4,)),
    Error(RuntimeError, "both arguments to matmul need to be at least 1D, but they are 0D and 1D", (), (3,)),
    Error(RuntimeError, "batch2 tensor to be: [2, 4] but got: [2, 5].", (2, 3, 4), (2, 5, 6)),
    Error(
        RuntimeError,
        "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0",
        (2, 3, 4),
        (3, 4, 6),
    ),
    complex=True,
)
case("linalg.matmul", np.matmul, Input((2, 3), (3, 4)))
case(
    "bmm",
    np.matmul,
    *(Input((2, 3, 4), (2, 4, 5)), Input((0, 3, 4), (0, 4, 5)), Input((3, 1, 33), (3, 33, 1))),
    Error(RuntimeError, "batch1 must be a 3D tensor", (3, 4), (4, 5)),
    Error(RuntimeError, "batch2 must be a 3D tensor", (2, 3, 4), (4, 5)),
    Error(RuntimeError, "batch2 tensor to be: [2, 4] but got: [3, 4].", (2, 3, 4), (3, 4, 5)),
    complex=True,
)
case(
    "mv",
    np.matmul,
    *(Input((2, 3), (3,)), Input((0, 3), (3,)), Input((31, 33), (33,))),
    Error(RuntimeError, "size mismatch, got input (2), mat (2x3), vec (4)", (2, 3), (4,)),
    Error(RuntimeError, "vector + matrix @ vector expected, got 1, 2, 2", (2, 3), (4, 1)),
    complex=True,
)
case(
    "dot",
    np.dot,
    *(Input((3,), (3,)), Input((0,), (0,)), Input((1000,), (1000,))),
    Error(RuntimeError, "1D tensors expected, but got 2D and 1D tensors", (2, 2), (3,)),
    Error(RuntimeError, "inconsistent tensor size, expected tensor [2] and src [3]", (2,), (3,)),
    complex=True,
)
case("vdot", np.vdot, Input((3,), (3,)), complex=True)
case(
    "linalg.vecdot",
    lambda x, y, dim=-1: (x.conj() * y).sum(dim),
    *(Input((2, 3), (3,)), Input((2, 3), (2, 3), dim=0)),
    low=False,
    complex=True,
)
case(
    "inner",
    np.inner,
    *(Input((2, 3), (4, 3)), Input((3,), (3,)), Input((2, 3), ()), Input((2, 5, 3), (3,))),
    Error(RuntimeError, "inner() the last dimension must match on both input tensors", (2, 3), (4, 2)),
)
for name in ("outer", "ger"):
    case(
        name,
        np.outer,
        *(Input((2,), (3,)), Input((0,), (3,))),
        Error(RuntimeError, "outer: Expected 1-D argument self, but got 2-D", (2, 2), (3,)),
        Error(RuntimeError, "outer: Expected 1-D argument vec2, but got 2-D", (2,), (3, 2)),
    )

# ---- sums with products


def added(product):
    def ref(x, a, b, beta=1, alpha=1):
        return (0 if beta == 0 else beta * x) + alpha * product(a, b)

    return ref


SCALES = [{}, {"beta": 0.5, "alpha": 2.0}, {"beta": 0}]
EXPAND = "must match the existing size"
case(
    "addmm",
    added(np.matmul),
    *(Input(s, (2, 3), (3, 4), **o) for s in ((4,), (2, 4), (2, 1), ()) for o in SCALES),
    Input(np.full((2, 2), math.nan), (2, 3), (3, 2), beta=0),
    Error(RuntimeError, f"The expanded size of the tensor (4) {EXPAND} (2)", (2,), (2, 3), (3, 4)),
    Error(RuntimeError, "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x4)", (4,), (2, 3), (4, 4)),
    Error(RuntimeError, "mat1 must be a matrix, got 1-D tensor", (4,), (3,), (3, 4)),
    Error(
        RuntimeError,
        "the number of sizes provided (2) must be greater or equal to the number",
        (1, 2, 4),
        (2, 3),
        (3, 4),
    ),
)
case(
    "addmv",
    added(np.matmul),
    *(Input((2,), (2, 3), (3,), **o) for o in SCALES),
    Error(RuntimeError, "size mismatch, got input (2), mat (2x3), vec (4)", (2,), (2, 3), (4,)),
)
case(
    "addbmm",
    added(lambda a, b: np.matmul(a, b).sum(0)),
    *(Input((2, 4), (5, 2, 3), (5, 3, 4), **o) for o in SCALES),
    Error(RuntimeError, "Incompatible matrix sizes for bmm (2x4 and 5x2)", (2, 2), (3, 2, 4), (3, 5, 2)),
)
case(
    "baddbmm",
    added(np.matmul),
    *(Input((2, 4), (5, 2, 3), (5, 3, 4), **o) for o in SCALES),
    Input((5, 2, 4), (5, 2, 3), (5, 3, 4)),
    Error(RuntimeError, EXPAND, (5, 2), (3, 2, 4), (3, 4, 2)),
)
case(
    "addr",
    added(np.outer),
    *(Input((2, 4), (2,), (4,), **o) for o in SCALES),
    Error(RuntimeError, "addr: Expected 1-D argument vec1, but got 2-D", (2, 2), (2, 1), (2,)),
)

# ---- affine maps


def affine(x, w, b=None):
    return x @ w.T if b is None else x @ w.T + b


case(
    "nn.functional.linear",
    affine,
    *(Input(s, (4, 3), (4,)) for s in ((3,), (2, 3), (5, 2, 3), (0, 3), (2, 0, 3), (1, 3))),
    *(Input((2, 3), (4, 3)), Input((5, 2, 3), (4, 3)), Input((2, 3), (3,)), Input((3,), (3,)), Input((5, 2, 3), (3,))),
    *(Input((5, 2, 3), (4, 3), (1, 4)), Input((5, 3), (4, 3), (1,)), Input((31, 33), (65, 33), (65,))),
    Error(RuntimeError, "mat1 and mat2 shapes cannot be multiplied (10x3 and 2x4)", (2, 5, 3), (4, 2)),
    Error(RuntimeError, f"The expanded size of the tensor (4) {EXPAND} (5)", (2, 3), (4, 3), (5,)),
    Error(RuntimeError, "t() expects a tensor with <= 2 dimensions, but self is 3D", (2, 3), (4, 3, 1)),
    Error(RuntimeError, "both arguments to linear need to be at least 1D, but they are 0D and 2D", (), (4, 3)),
    complex=True,
)
for name in ("bilinear", "nn.functional.bilinear"):
    case(
        name,
        lambda x, y, w, b=None: np.einsum("...i,kij,...j->...k", x, w, y) + (0 if b is None else b),
        *(Input((5, 3), (5, 4), (2, 3, 4), (2,)), Input((3,), (4,), (2, 3, 4)), Input((2, 5, 3), (2, 5, 4), (2, 3, 4))),
        Error(
            RuntimeError,
            "bilinear(): input batch dimensions do not match at dim 0: got 5 and 6",
            (5, 3),
            (6, 4),
            (2, 3, 4),
        ),
        Error(
            RuntimeError,
            "bilinear(): input1 size does not match weight size: got 2 but expected 3",
            (5, 2),
            (5, 4),
            (2, 3, 4),
        ),
        Error(RuntimeError, "bilinear(): bias size does not match", (5, 3), (5, 4), (2, 3, 4), (3,)),
        roundings=8,
    )

# ---- contractions

case(
    "tensordot",
    lambda a, b, dims=2: np.tensordot(a, b, dims if isinstance(dims, int) else tuple(map(list, dims))),
    *(Input((2, 3), (4, 5), dims=0), Input((2, 3, 4), (4, 5), dims=1), Input((2, 3, 4), (3, 4, 5))),
    *(Input((2, 3, 4), (4, 3, 5), dims=[[2, 1], [0, 1]]), Input((2, 3), (4, 3), dims=[[-1], [1]])),
    Error(RuntimeError, "tensordot expects dims < ndim_a or ndim_b, but got dims=3", (2, 3), (3, 4), dims=3),
    Error(RuntimeError, "tensordot expects dims >= 0, but got dims=-1", (2, 3), (3, 4), dims=-1),
    Error(RuntimeError, "contracted dimensions need to match, but first has size 3 in dim -1", (2, 3), (4, 3), dims=1),
    Error(RuntimeError, "both dimension lists should have same length", (2, 3), (4, 3), dims=[[0, 1], [0]]),
)
case(
    "tensordot",
    lambda a, b: np.tensordot(a.sum(0), b[0], 0),
    Input((2, 3), (1, 4)),
    f=lambda a, b: cg.tensordot(a, b, dims=([0], [0])),
)
case("kron", np.kron, Input((2, 3), (4, 5)), Input((2,), (2, 3)), Input((), (2, 3)), Input((0, 2), (3, 2)))


def chain(matrices):
    product = matrices[0]
    for matrix in matrices[1:]:
        product = product @ matrix
    return product


case(
    "linalg.multi_dot",
    chain,
    *(Input([(2, 3), (3, 4), (4, 1), (1, 5)]), Input([(3,), (3, 4), (4,)]), Input([(2, 3), (3,)])),
    Error(RuntimeError, "multi_dot(): expected at least 2 tensors but got 1", [(2, 3)]),
    Error(
        RuntimeError,
        "multi_dot(): tensors 0 and 1 with shapes [2, 3] and [4, 3] cannot be multiplied",
        [(2, 3), (4, 3)],
    ),
    Error(RuntimeError, "multi_dot(): tensor 1 must be 2D but got 3D", [(3,), (3, 4, 1), (4,)]),
    Error(RuntimeError, "multi_dot(): the last tensor must be 1D or 2D but got 3D", [(3, 4), (4, 4, 4)]),
    roundings=8,
)
case("chain_matmul", lambda *m: chain(m), Input((2, 3), (3, 4), (4, 2)), Input((2, 3)), roundings=8)

EQUATIONS = [
    *(("ij,jk", (2, 3), (3, 4)), ("ij,jk->ki", (2, 3), (3, 4)), ("ii", (3, 3)), ("ii->i", (3, 3))),
    *(("iij->ij", (3, 3, 2)), ("...ij,...jk", (5, 2, 3), (1, 3, 4)), ("i...->...", (5, 2, 3)), ("...", (5, 2, 3))),
    *(("i,j->", (2,), (3,)), ("ij,->ij", (2, 3), ()), ("ij,j->i", (2, 3), (3,))),
    *(("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)), ("bi,kij,bj->bk", (5, 3), (2, 3, 4), (5, 4)), ("ij->", (2, 3))),
    *(
        ("ij...->ji...", (2, 3, 4)),
        ("...ij->ji...", (4, 2, 3)),
        ("ij,ij->", (2, 1), (2, 3)),
        ("i,i,i->i", (3,), (3,), (3,)),
    ),
    *(("bhqd,bhkd->bhqk", (2, 2, 3, 4), (2, 2, 5, 4)), ("abc,cd,de,ea->b", (2, 3, 4), (4, 5), (5, 2), (2, 2))),
    *(("ij,jk", (2, 0), (0, 3)), ("i j , j k -> k i", (2, 3), (3, 4)), ("Ab,bA->Ab", (2, 3), (3, 2))),
]
BAD_EQUATIONS = [
    (
        "subscript j has size 4 for operand 1 which does not broadcast with previously seen size 3",
        "ij,jk",
        (2, 3),
        (4, 4),
    ),
    ("subscript i is repeated for operand 0 but the sizes don't match, 4 != 3", "ii", (3, 4)),
    ("output subscript k does not appear in the equation for any input operand", "ij->ijk", (2, 3)),
    ("output subscript i appears more than once in the output", "ij->ii", (2, 3)),
    ("fewer operands were provided than specified in the equation", "ij,jk", (2, 3)),
    ("more operands were provided than specified in the equation", "ij", (2, 3), (2, 3)),
    ("(3) does not match the number of dimensions (2) for operand 0 and no ellipsis was given", "ijk", (2, 3)),
    ("(4) is more than the number of dimensions (2) for operand 0", "...ijkl", (2, 3)),
    ("invalid subscript given at index 1 in the equation string, subscripts must be in [a-zA-Z]", "i1", (2, 3)),
    ("invalid subscript given at index 4 in the equation string, subscripts must be in [a-zA-Z]", "ij->1", (2, 3)),
    ("found '.' for operand 0 that is not part of any ellipsis", "i.j", (2, 3)),
    ("found '.' for operand 0 for which an ellipsis was already found", "...i...", (2, 3)),
    ("found '.' for output but an ellipsis (...) was already found", "ij->...i...", (2, 3)),
    ("found '.' for output that is not part of any ellipsis (...)", "ij->.", (2, 3)),
]
case(
    "einsum",
    lambda *a: np.einsum(a[0].replace(" ", ""), *a[1:]) if isinstance(a[0], str) else np.einsum(*a),
    *(Input(*e) for e in EQUATIONS),
    *(Input((2, 3), [0, 1], (3, 4), [1, 2]), Input((2, 3), [0, 1], (3, 4), [1, 2], [2, 0])),
    Input((2, 5, 3), [..., 1], (3, 4), [1, 2], [..., 2]),
    *(Error(RuntimeError, "einsum(): ", *e[1:]) for e in BAD_EQUATIONS),
    *(Error(RuntimeError, text, *e) for text, *e in BAD_EQUATIONS),
    Error(ValueError, "subscript in subscript list is not within the valid range [0, 52)", (2, 3), [0, 52]),
    Error(ValueError, "must specify the equation string and at least one operand", "ij"),
    Error(TypeError, "expected Tensor as element 0 in argument 1, but got int", "i", 3),
    Error(TypeError, "expected Tensor as element 1 in argument 1, but got NoneType", "i,j", (2,), None),
    complex=True,
    roundings=8,
)
# NumPy cannot sum the ellipsis itself.
case("einsum", lambda e, x, y: (x * y).sum(), Input("...,...->", (2, 3), (3,)))
case("einsum", lambda e, x: x.sum(2).T, Input("ij...->ji", (2, 3, 4)))

# ---- distances


def norm(d, p):
    size = np.abs(d)
    if p == 0:
        return (d != 0).sum(-1).astype(d.dtype)
    return size.max(-1) if p == INF else (size**p).sum(-1) ** (1 / p)


def all_distances(a, b, p=2.0, compute_mode=None):
    d = a[..., :, None, :] - b[..., None, :, :]
    return norm(d, p) if d.shape[-1] else d.sum(-1)


case(
    "cdist",
    all_distances,
    *(Input((3, 4), (5, 4), p=p) for p in (0.0, 1.0, 1.5, 2.0, 3.0, INF)),
    *(Input((2, 3, 4), (1, 5, 4)), Input((3, 0), (2, 0)), Input((0, 4), (2, 4)), Input((30, 4), (28, 4))),
    Input((30, 4), (28, 4), compute_mode="donot_use_mm_for_euclid_dist"),
    Input((3, 4), (5, 4), compute_mode="use_mm_for_euclid_dist"),
    Error(RuntimeError, "X1 and X2 must have the same number of columns. X1: 3 X2: 2", (2, 3), (4, 2)),
    Error(RuntimeError, "cdist only supports at least 2D tensors, X1 got: 1D", (3,), (4, 3)),
    Error(RuntimeError, "cdist only supports non-negative p values", (2, 3), (4, 3), p=-1),
    Error(ValueError, "x is not a valid value for compute_mode", (2, 3), (4, 3), compute_mode="x"),
    low=False,
    roundings=16,
)
case("cdist", all_distances, Input(np.ones((3, 2)) * 1000, np.ones((2, 2)) * 1000), grad=0, low=False)
ROWS_ABOVE = np.triu_indices(5, 1)
for name in ("pdist", "nn.functional.pdist"):
    case(
        name,
        lambda x, p=2: norm(x[ROWS_ABOVE[0]] - x[ROWS_ABOVE[1]], p),
        *(Input((5, 3)), Input((5, 3), p=1), Input((5, 3), p=3)),
        Error(RuntimeError, "pdist only supports 2D tensors, got: 1D", (3,)),
        Error(RuntimeError, "pdist only supports non-negative p values", (5, 3), p=-1),
    )
for name in ("pairwise_distance", "nn.functional.pairwise_distance"):
    case(
        name,
        lambda a, b, p=2.0, eps=1e-6, keepdim=False: norm(a - b + eps, p)[(..., None) if keepdim else ...],
        *(Input((5, 3), (5, 3)), Input((5, 3), (3,), p=1.0), Input((3,), (3,)), Input((5, 3), (5, 3), keepdim=True)),
        Input((5, 3), (5, 3), p=3.0, eps=0.1),
    )


def cosine(a, b, dim=1, eps=1e-8):
    lengths = (np.maximum(np.sqrt((x * x).sum(dim, keepdims=True)), eps) for x in np.broadcast_arrays(a, b))
    u, v = (x / n for x, n in zip(np.broadcast_arrays(a, b), lengths))
    return (u * v).sum(dim)


for name in ("cosine_similarity", "nn.functional.cosine_similarity"):
    case(
        name,
        cosine,
        *(Input((5, 3), (5, 3)), Input((5, 3), (3,)), Input((5, 3), (5, 3), dim=0), Input((5, 1, 3), (4, 3), dim=-1)),
        Error(
            IndexError, "Dimension out of range (expected to be in range of [-2, 1], but got 4)", (5, 3), (5, 3), dim=4
        ),
    )
