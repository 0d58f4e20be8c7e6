"""Products of matrices and vectors."""

import functools

from .. import dtypes, errors
from ..backend import LOW, adds_up_in_float32
from ..core.op import op
from .outputs import placed

__all__ = ("mm", "bmm", "matmul", "mv", "dot", "vdot", "inner", "outer", "ger")
METHODS = __all__
LINALG = ("matmul",)


class Unfit(Exception):
    """Raised in a forward whose operands do not fit; the op's ``explain`` words it."""


def legacy(array):
    return dtypes.of_array(array).legacy


def _came(**arrays):
    return "got " + ", ".join(f"{name} {a.dtype} {tuple(a.shape)}" for name, a in arrays.items())


def through_float32(function, *arrays):
    """``function`` of half-precision matrices, added up in float32; cuBLAS does so by itself, on tensor cores."""
    if adds_up_in_float32(arrays[0]):
        return function(*arrays)
    return function(*(a.astype("float32") for a in arrays)).astype(arrays[0].dtype)


def _dot(x, y):
    return x.dot(y)  # 0.36 us at 8x8, where x @ y takes 0.92


def is_low(x):
    return x.itemsize == 2 and x.dtype in LOW


# ---- two matrices: three ops that are each other's derivatives, so that no transposed copy is ever made


def _explain_mm(error, x, y):
    if x.ndim != 2 or y.ndim != 2:
        return RuntimeError("self must be a matrix" if x.ndim != 2 else "mat2 must be a matrix")
    if x.shape[1] != y.shape[0]:
        return RuntimeError(cannot_multiply(x.shape, y.shape))
    if x.dtype != y.dtype:
        return RuntimeError(two_dtypes(x, y))
    return None


def cannot_multiply(x_shape, y_shape):
    (m, k), (rows, n) = x_shape, y_shape
    first = f"mat1 and mat2 shapes cannot be multiplied ({m}x{k} and {rows}x{n})"
    return errors.text(first, f"need columns of mat1 = rows of mat2: {k} != {rows}")


def two_dtypes(x, y, first=None):
    if first is None:
        names = f"{dtypes.of_array(x).cpp} != {dtypes.of_array(y).cpp}"
        first = f"expected m1 and m2 to have the same dtype, but got: {names}"
    return errors.text(first, "matrix products do not promote", "fix: bring one to the other's dtype with .to(dtype)")


@op(
    x=lambda m, g, mat2: m.mm_nt(g, mat2),
    mat2=lambda m, g, x: m.mm_tn(x, g),
    uniform=True,
    explain=_explain_mm,
)
def mm(xp, x, mat2):
    """The product of two matrices, x @ mat2.

    Shapes      x [M,K], mat2 [K,N] -> [M,N]
    Dtypes      both the same; float16 and bfloat16 are added up in float32
    Derivative  by x: g @ mat2^T; by mat2: x^T @ g
    Raises      RuntimeError where shapes or dtypes do not fit

    >>> cudagrad.mm(cudagrad.tensor([[1.0, 2.0]]), cudagrad.tensor([[3.0], [4.0]]))
    tensor([[11.]])
    """
    if x.dtype is not mat2.dtype or x.ndim != 2 or mat2.ndim != 2:
        raise Unfit
    return through_float32(_dot, x, mat2) if is_low(x) else x.dot(mat2)


@op(x=lambda m, g, y: m.mm(g, y), y=lambda m, g, x: m.mm_tn(g, x), uniform=True, node="Mm")
def mm_nt(xp, x, y):
    """x @ y^T of two matrices: x [M,K], y [N,K] -> [M,N]."""
    return through_float32(_dot, x, y.T) if is_low(x) else x.dot(y.T)


@op(x=lambda m, g, y: m.mm_nt(y, g), y=lambda m, g, x: m.mm(x, g), uniform=True, node="Mm")
def mm_tn(xp, x, y):
    """x^T @ y of two matrices: x [K,M], y [K,N] -> [M,N]."""
    return through_float32(_dot, x.T, y) if is_low(x) else x.T.dot(y)


# ---- any number of axes


def _mT(m, x):
    return m.transpose(x, dim0=x.ndim - 2, dim1=x.ndim - 1)


def rows_of(m, x):
    """[..., K] as a matrix [N,K]."""
    if x.ndim == 2:
        return x
    shape = tuple(x.shape)
    count = functools.reduce(lambda a, b: a * b, shape[:-1], 1)  # not -1: a length may be 0
    return m.reshape(x, shape=(count, shape[-1]))


def _matmul_by_x(m, g, y, x_shape):
    if len(x_shape) == 2 and y.ndim == 2:
        return m.mm_nt(g, y)
    if len(x_shape) == 1:
        if y.ndim == 1:
            return g * y
        column = m.reshape(g, shape=(*g.shape, 1))
        dx = m.matmul(y, column)  # [..., K, 1]
        return m.sum_to(m.reshape(dx, shape=tuple(dx.shape[:-1])), shape=x_shape)
    if y.ndim == 1:
        return m.reshape(g, shape=(*g.shape, 1)) * y
    return m.sum_to(m.matmul(g, _mT(m, y)), shape=x_shape)


def _matmul_by_y(m, g, x, y_shape):
    if len(y_shape) == 2 and x.ndim > 1:
        return m.mm_tn(rows_of(m, x), rows_of(m, g))
    if x.ndim == 1:
        if len(y_shape) == 1:
            return g * x
        outer = m.reshape(x, shape=(*x.shape, 1)) * m.reshape(g, shape=(*g.shape[:-1], 1, g.shape[-1]))
        return m.sum_to(outer, shape=y_shape)
    if len(y_shape) == 1:
        rows = rows_of(m, x)
        return m.matmul(m.reshape(g, shape=(rows.shape[0],)), rows)
    return m.sum_to(m.matmul(_mT(m, x), g), shape=y_shape)


def _explain_matmul(error, x, y):
    if x.ndim == 0 or y.ndim == 0:
        return RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {x.ndim}D and {y.ndim}D")
    inner = y.shape[-2] if y.ndim > 1 else y.shape[0]
    if x.shape[-1] != inner:
        return RuntimeError(errors.text(_matmul_unfit(x, y, inner), _came(input=x, other=y)))
    if x.dtype != y.dtype:
        return RuntimeError(_matmul_two_dtypes(x, y))
    return _unequal_batches(x, y)


def _unequal_batches(x, y):
    longest = max(x.ndim, y.ndim) - 2
    for back in range(3, min(x.ndim, y.ndim) + 1):
        a, b = x.shape[-back], y.shape[-back]
        if a != b and 1 not in (a, b):
            first = f"The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton dimension "
            return RuntimeError(errors.text(f"{first}{longest + 2 - back}", _came(input=x, other=y)))
    return None


def _matmul_unfit(x, y, inner):
    k = x.shape[-1]
    rows = x.size // k if k else 0
    if y.ndim == 1:
        if x.ndim == 1:
            return _unequal_lengths(x, y)
        return f"size mismatch, got input ({rows}), mat ({rows}x{k}), vec ({inner})"
    if y.ndim == 2:
        return f"mat1 and mat2 shapes cannot be multiplied ({rows}x{k} and {inner}x{y.shape[1]})"
    batch = functools.reduce(lambda a, b: a * b, y.shape[:-2], 1)
    return f"Expected size for first two dimensions of batch2 tensor to be: [{batch}, {k}] but got: [{batch}, {inner}]."


def _matmul_two_dtypes(x, y):
    a, b = legacy(x), legacy(y)
    if x.ndim == y.ndim == 1:
        return f"dot : expected both vectors to have same dtype, but found {a} and {b}"
    if y.ndim == 1:
        return f"addmv input tensors must have the same dtype, but got {b}, {a}, and {b}"
    return two_dtypes(x, y) if y.ndim == 2 else f"expected scalar type {a} but found {b}"


def _unequal_lengths(x, y):
    n, k = x.shape[0], y.shape[0]
    return (
        f"inconsistent tensor size, expected tensor [{n}] and src [{k}] to have the same number of elements, "
        f"but got {n} and {k} elements respectively"
    )


@op(x=_matmul_by_x, y=_matmul_by_y, uniform=True, explain=_explain_matmul, node="Mm")
def matmul(xp, x, y):
    """x @ y: of vectors, matrices, or batches of matrices whose batch axes broadcast.

    Shapes      [K],[K] -> [];  [M,K],[K] -> [M];  [K],[K,N] -> [N];  [...,M,K],[...,K,N] -> [...,M,N]
    Dtypes      both the same; float16 and bfloat16 are added up in float32
    Derivative  by x: g @ y^T; by y: x^T @ g; both added up over the batch axes that were broadcast
    Raises      RuntimeError where shapes or dtypes do not fit

    >>> cudagrad.matmul(cudagrad.ones(2, 3, 4), cudagrad.ones(4)).shape
    torch.Size([2, 3])
    """
    if x.dtype is not y.dtype:
        raise Unfit
    if is_low(x):
        return through_float32(functools.partial(_matmul, xp), x, y)
    return x.dot(y) if x.ndim == 2 and y.ndim == 2 else _matmul(xp, x, y)


def _matmul(xp, x, y):
    """A batch times one matrix is one product of [N,K] by [K,N], not a product for each of the batch."""
    if x.ndim > 2 and y.ndim == 2 and x.size and y.shape[0] == x.shape[-1]:
        return x.reshape(-1, x.shape[-1]).dot(y).reshape(*x.shape[:-1], y.shape[1])
    return xp.matmul(x, y)


def _explain_bmm(error, x, mat2):
    if x.ndim != 3 or mat2.ndim != 3:
        return RuntimeError(f"batch{1 if x.ndim != 3 else 2} must be a 3D tensor")
    need, got = [x.shape[0], x.shape[2]], list(mat2.shape[:2])
    if need != got:
        first = f"Expected size for first two dimensions of batch2 tensor to be: {need} but got: {got}."
        return RuntimeError(errors.text(first, _came(input=x, mat2=mat2)))
    if x.dtype != mat2.dtype:
        return RuntimeError(f"expected scalar type {legacy(x)} but found {legacy(mat2)}")
    return None


def _bmm_prepare(input, mat2, out_dtype=None):
    if out_dtype is not None and out_dtype is not input.dtype:
        input, mat2 = input.to(out_dtype), mat2.to(out_dtype)
    return input, mat2


@op(
    x=lambda m, g, mat2: m.bmm(g, _mT(m, mat2)),
    mat2=lambda m, g, x: m.bmm(_mT(m, x), g),
    uniform=True,
    explain=_explain_bmm,
    prepare=_bmm_prepare,
)
def bmm(xp, x, mat2):
    """The products of two batches of matrices, x[b] @ mat2[b].

    Shapes      x [B,M,K], mat2 [B,K,N] -> [B,M,N]; no broadcasting
    Dtypes      both the same; float16 and bfloat16 are added up in float32
    Raises      RuntimeError where shapes or dtypes do not fit
    """
    if x.dtype is not mat2.dtype or x.ndim != 3 or mat2.ndim != 3 or x.shape[0] != mat2.shape[0]:
        raise Unfit
    return through_float32(xp.matmul, x, mat2) if is_low(x) else xp.matmul(x, mat2)


def _explain_dot(error, x, tensor):
    if x.ndim != 1 or tensor.ndim != 1:
        return RuntimeError(f"1D tensors expected, but got {x.ndim}D and {tensor.ndim}D tensors")
    if x.dtype != tensor.dtype:
        return RuntimeError(_matmul_two_dtypes(x, tensor))
    return RuntimeError(_unequal_lengths(x, tensor)) if x.shape != tensor.shape else None


@op(x=lambda m, g, tensor: g * tensor, tensor=lambda m, g, x: g * x, uniform=True, explain=_explain_dot)
def dot(xp, x, tensor):
    """sum_i x[i] * tensor[i] of two vectors; complex ones are not conjugated.

    Raises      RuntimeError where they are no vectors, or lengths or dtypes differ
    """
    if x.dtype is not tensor.dtype or x.ndim != 1 or tensor.ndim != 1:
        raise Unfit
    return through_float32(_dot, x, tensor) if is_low(x) else x.dot(tensor)


def _explain_mv(error, x, vec):
    if x.ndim != 2 or vec.ndim != 1:
        return RuntimeError(f"vector + matrix @ vector expected, got 1, {x.ndim}, {vec.ndim}")
    if x.shape[1] != vec.shape[0]:
        m, k = x.shape
        return RuntimeError(f"size mismatch, got input ({m}), mat ({m}x{k}), vec ({vec.shape[0]})")
    return RuntimeError(_matmul_two_dtypes(x, vec)) if x.dtype != vec.dtype else None


@op(
    x=lambda m, g, vec: m.reshape(g, shape=(*g.shape, 1)) * vec,
    vec=lambda m, g, x: m.matmul(g, x),
    uniform=True,
    explain=_explain_mv,
)
def mv(xp, x, vec):
    """The product of a matrix and a vector: x [M,K], vec [K] -> [M].

    Raises      RuntimeError where shapes or dtypes do not fit
    """
    if x.dtype is not vec.dtype or x.ndim != 2 or vec.ndim != 1:
        raise Unfit
    return through_float32(_dot, x, vec) if is_low(x) else x.dot(vec)


def vdot(input, other, *, out=None):
    """sum_i conj(input[i]) * other[i] of two vectors."""
    return placed("vdot", dot(input.conj() if input.is_complex() else input, other), out)


def inner(input, other, *, out=None):
    """Sums of products over the last axes: [...,K],[***,K] -> [...,***]; a 0-d operand scales the other.

    Raises      RuntimeError where the last axes differ
    """
    if input.ndim == 0 or other.ndim == 0:
        return placed("inner", input * other, out)
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(input.shape)} and {list(other.shape)}"
        )
    from .contraction import tensordot

    return placed("inner", tensordot(input, other, dims=([-1], [-1])), out)


def vector(name, argument, tensor):
    if tensor.ndim != 1:
        raise RuntimeError(f"{name}: Expected 1-D argument {argument}, but got {tensor.ndim}-D")
    return tensor


def outer(input, vec2, *, out=None):
    """input[i] * vec2[j] of two vectors: [M],[N] -> [M,N]; dtypes are promoted.

    Raises      RuntimeError where one is no vector
    """
    return placed("outer", vector("outer", "self", input).reshape(-1, 1) * vector("outer", "vec2", vec2), out)


def ger(input, vec2, *, out=None):
    """As ``outer``."""
    return outer(input, vec2, out=out)
