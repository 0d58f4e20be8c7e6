"""Affine and bilinear maps of the last axis, and sums with matrix products."""

import functools

from .. import dtypes, errors
from ..backend import xp_of
from ..core.modes import autocasts
from ..core.op import TABLE, op
from ..core.tensor import wrap
from .matmul import Unfit, bmm, cannot_multiply, is_low, legacy, mv, rows_of, through_float32, two_dtypes, vector
from .outputs import placed

_ADDED = ("addmm", "addmv", "addbmm", "baddbmm", "addr")
__all__ = ("bilinear", *_ADDED)
FUNCTIONAL = ("linear", "bilinear")
METHODS = INPLACE = _ADDED
INPLACE_PUBLIC = ("addmv",)

_ones = {}
_KEPT, _LONGEST = 64, 65536


def _ones_of(xp, x):
    """A vector of ones as long as ``x`` has rows, kept: making it takes longer than multiplying by it."""
    key = x.shape[0], x.dtype, x.__class__
    ones = _ones.get(key)
    if ones is None:
        ones = xp.ones(x.shape[0], x.dtype)
        if len(_ones) < _KEPT and x.shape[0] <= _LONGEST:
            _ones[key] = ones
    return ones


@op(x=lambda m, g, x_shape: m.expand(g, shape=x_shape), wide=True, node="Sum")
def column_sum(xp, x):
    """The sum of the rows of a matrix: [N,C] -> [C].

    A product with ones: 28 us where add.reduce takes 52 at 2 MiB, 0.3 against 0.9 at 8x8.
    """
    return _ones_of(xp, x).dot(x) if xp.__name__ == "numpy" else x.sum(0)


def _by_x(m, g, w, x_shape):
    if w.ndim == 1:
        return m.reshape(g, shape=(*g.shape, 1)) * w
    return m.mm(g, w) if len(x_shape) == 2 else m.matmul(g, w)


def _by_w(m, g, x, w_shape):
    if len(w_shape) == 1:
        rows = rows_of(m, x) if x.ndim > 1 else m.reshape(x, shape=(1, x.shape[0]))
        return m.matmul(m.reshape(g, shape=(rows.shape[0],)), rows)
    if x.ndim == 2:
        return m.mm_tn(g, x)
    return m.mm_tn(_matrix(m, g), _matrix(m, x))


def _matrix(m, x):
    return rows_of(m, x) if x.ndim > 1 else m.reshape(x, shape=(1, x.shape[0]))


def _by_b(m, g, b_shape):
    if len(b_shape) == 1 and len(g.shape) > 1 and b_shape[0] == g.shape[-1]:
        return m.column_sum(rows_of(m, g))
    return m.sum_to(g, shape=b_shape)


def linear_back(m, g, x, w, b_shape, needs):
    """The gradients of ``linear`` by x, w and b; None where ``needs`` says so."""
    return (
        _by_x(m, g, w, x.shape) if needs[0] else None,
        _by_w(m, g, x, w.shape) if needs[1] else None,
        _by_b(m, g, b_shape) if needs[2] else None,
    )


def explain_linear(error, x, w, b=None):
    if w.ndim > 2:
        return RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {w.ndim}D")
    if x.ndim == 0:
        return RuntimeError(f"both arguments to linear need to be at least 1D, but they are 0D and {w.ndim}D")
    k = x.shape[-1]
    n = w.shape[0] if w.ndim == 2 else 1
    if k != w.shape[-1]:
        rows = functools.reduce(lambda a, c: a * c, x.shape[:-1], 1)
        first = cannot_multiply((rows, k), (w.shape[-1], n))
        came = f"linear: input {tuple(x.shape)}, weight (out, in) = {tuple(w.shape)}"
        return RuntimeError(errors.text(first, came, f"fix: the last axis of input must be in = {w.shape[-1]}"))
    if x.dtype != w.dtype:
        both = f"mat1 and mat2 must have the same dtype, but got {legacy(x)} and {legacy(w)}"
        return RuntimeError(two_dtypes(x, w, both if b is not None and w.ndim == 2 else None))
    if b is not None and b.dtype != x.dtype:
        return RuntimeError(f"self and mat2 must have the same dtype, but got {legacy(b)} and {legacy(x)}")
    shape = (functools.reduce(lambda a, c: a * c, x.shape[:-1], 1), n)
    return None if b is None else _cannot_expand(b.shape, shape)


@op(x=_by_x, w=_by_w, b=_by_b, uniform=True, explain=explain_linear, node="Addmm")
def linear(xp, x, w, b=None):
    """x @ w^T + b over the last axis.

    Shapes      x [...,K], w [N,K] or [K], b broadcastable to the result -> [...,N], or [...] for w [K]
    Dtypes      all the same; float16 and bfloat16 are added up in float32
    Derivative  by x: g @ w; by w: g^T @ x; by b: g added up over the rows
    Raises      RuntimeError where shapes or dtypes do not fit

    >>> cudagrad.nn.functional.linear(cudagrad.ones(2, 3), cudagrad.ones(4, 3), cudagrad.ones(4)).shape
    torch.Size([2, 4])
    """
    if x.dtype is not w.dtype or (b is not None and b.dtype is not x.dtype):
        raise Unfit
    if is_low(x):
        return through_float32(_linear, x, w) if b is None else through_float32(_linear, x, w, b)
    if x.ndim != 2 or w.ndim != 2:
        return _linear(x, w, b)
    out = x.dot(w.T)
    if b is not None:
        out += b
    return out


def _linear(x, w, b=None):
    if w.ndim > 2 or x.ndim == 0:
        raise Unfit
    if x.ndim > 2 and w.ndim == 2 and x.size:  # one product of all rows
        out = x.reshape(-1, x.shape[-1]).dot(w.T).reshape(*x.shape[:-1], w.shape[0])
    else:
        out = x.dot(w.T)
    if b is None:
        return out
    return out + b if out.ndim < 1 else _add_to(out, b)


def _add_to(out, b):
    out += b
    return out


def bilinear(input1, input2, weight, bias=None):
    """sum_ij input1[..., i] * weight[k, i, j] * input2[..., j] + bias[k].

    Shapes      input1 [...,I], input2 [...,J], weight [K,I,J], bias [K] -> [...,K]
    Raises      RuntimeError where shapes do not fit
    """
    _check_bilinear(input1, input2, weight, bias)
    k, i, j = weight.shape
    rows = input1.reshape(-1, i) @ weight.permute(1, 0, 2).reshape(i, k * j)  # [B, K*J]
    out = (rows.reshape(-1, k, j) @ input2.reshape(-1, j, 1)).reshape(*input1.shape[:-1], k)
    return out if bias is None else out + bias


def _check_bilinear(input1, input2, weight, bias):
    if input1.ndim != input2.ndim:
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {input1.ndim} and {input2.ndim}")
    for d in range(input1.ndim - 1):
        a, b = input1.shape[d], input2.shape[d]
        if a != b:
            raise RuntimeError(f"bilinear(): input batch dimensions do not match at dim {d}: got {a} and {b}")
    for n, got, need in ((1, input1.shape[-1], weight.shape[1]), (2, input2.shape[-1], weight.shape[2])):
        if got != need:
            first = f"bilinear(): input{n} size does not match weight size: got {got} but expected {need}"
            raise RuntimeError(first)
    if bias is not None and bias.shape[0] != weight.shape[0]:
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {bias.shape[0]} but expected {weight.shape[0]}"
        )


# ---- sums with products


def _explain_addmm(error, x, mat1, mat2, beta, alpha):
    for name, mat in (("mat1", mat1), ("mat2", mat2)):
        if mat.ndim != 2:
            return RuntimeError(f"{name} must be a matrix, got {mat.ndim}-D tensor")
    if mat1.shape[1] != mat2.shape[0]:
        return RuntimeError(cannot_multiply(mat1.shape, mat2.shape))
    if mat1.dtype != mat2.dtype:
        first = f"mat1 and mat2 must have the same dtype, but got {legacy(mat1)} and {legacy(mat2)}"
        return RuntimeError(errors.text(first, "fix: bring one to the other's dtype with .to(dtype)"))
    return _explain_added(x, mat2, (mat1.shape[0], mat2.shape[1]))


def _explain_added(x, mat2, shape):
    """Why ``x`` cannot be added to a product of this shape."""
    if x.dtype != mat2.dtype:
        return RuntimeError(f"self and mat2 must have the same dtype, but got {legacy(x)} and {legacy(mat2)}")
    if x.ndim > len(shape):
        kind = f"torch.{legacy(x)}Tensor{{{list(x.shape)}}}"
        return RuntimeError(
            f"expand({kind}, size={list(shape)}): the number of sizes provided ({len(shape)}) must be greater or "
            f"equal to the number of dimensions in the tensor ({x.ndim})"
        )
    return _cannot_expand(x.shape, shape)


def _cannot_expand(x_shape, shape):
    for back in range(1, len(x_shape) + 1):
        if x_shape[-back] not in (1, shape[-back]):
            return RuntimeError(
                f"The expanded size of the tensor ({shape[-back]}) must match the existing size ({x_shape[-back]}) at "
                f"non-singleton dimension {len(shape) - back}.  Target sizes: {list(shape)}.  "
                f"Tensor sizes: {list(x_shape)}"
            )
    return None


def _times(value, scale):
    return value if scale == 1 else value * scale


@op(
    x=lambda m, g, x_shape, beta: m.sum_to(_times(g, beta), shape=x_shape),
    mat1=lambda m, g, mat2, alpha: _times(m.mm_nt(g, mat2), alpha),
    mat2=lambda m, g, mat1, alpha: _times(m.mm_tn(mat1, g), alpha),
    uniform=True,
    explain=_explain_addmm,
)
def addmm(xp, x, mat1, mat2, *, beta=1, alpha=1):
    """beta * x + alpha * (mat1 @ mat2); with beta = 0 the values of x do not matter, NaN or not.

    Shapes      mat1 [M,K], mat2 [K,N], x broadcastable to [M,N] -> [M,N]
    Dtypes      all the same
    Raises      RuntimeError where shapes or dtypes do not fit
    """
    if mat1.dtype is not mat2.dtype or x.dtype is not mat2.dtype or mat1.ndim != 2 or mat2.ndim != 2:
        raise Unfit
    if is_low(x):
        return through_float32(functools.partial(addmm_forward, xp, beta=beta, alpha=alpha), x, mat1, mat2)
    return addmm_forward(xp, x, mat1, mat2, beta, alpha)


def addmm_forward(xp, x, mat1, mat2, beta, alpha):
    if x.dtype.kind in "iu":
        beta, alpha = int(beta), int(alpha)
    out = mat1.dot(mat2)
    if alpha != 1:
        out *= alpha
    if beta != 0:
        out += _times(x, beta)
    elif _cannot_expand(x.shape, out.shape):
        raise Unfit
    return out


def _added(name, input, product, beta, alpha, out):
    """beta * input + alpha * product, in the product's shape."""
    error = _cannot_expand(input.shape, product.shape)
    if error is not None:
        raise error
    if not product.is_floating_point() and not product.is_complex():
        beta, alpha = int(beta), int(alpha)
    scaled = _nothing_of(input) if beta == 0 else _times(input, beta)
    return placed(name, scaled + _times(product, alpha), out)


def _nothing_of(input):
    """Zeros with input's place in the graph: nan times 0 would be nan."""
    return TABLE["only"].raw(input, wrap(xp_of(input.array).zeros((), bool)))


def addmv(input, mat, vec, *, beta=1, alpha=1, out=None):
    """beta * input + alpha * (mat @ vec): mat [M,K], vec [K], input broadcastable to [M]."""
    if input.ndim > 1 or mat.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {input.ndim}, {mat.ndim}, {vec.ndim}")
    m, k = mat.shape
    if vec.shape[0] != k or (input.ndim and input.shape[0] not in (1, m)):
        got = input.shape[0] if input.ndim else m
        raise RuntimeError(f"size mismatch, got input ({got}), mat ({m}x{k}), vec ({vec.shape[0]})")
    return _added("addmv", input, mv(mat, vec), beta, alpha, out)


@autocasts
def addbmm(input, batch1, batch2, *, beta=1, alpha=1, out=None):
    """beta * input + alpha * sum_b batch1[b] @ batch2[b]: [B,M,K],[B,K,N], input broadcastable to [M,N]."""
    (_, m, k), (_, rows, n) = _batches(batch1, batch2)
    if k != rows:
        raise RuntimeError(f"Incompatible matrix sizes for bmm ({m}x{k} and {rows}x{n})")
    return _added("addbmm", input, bmm(batch1, batch2).sum(0), beta, alpha, out)


def _batches(batch1, batch2):
    for name, batch in (("batch1", batch1), ("batch2", batch2)):
        if batch.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    return batch1.shape, batch2.shape


@autocasts
def baddbmm(input, batch1, batch2, *, beta=1, alpha=1, out=None, out_dtype=None):
    """beta * input + alpha * (batch1[b] @ batch2[b]): [B,M,K],[B,K,N], input broadcastable to [B,M,N]."""
    return _added("baddbmm", input, bmm(batch1, batch2, out_dtype=out_dtype), beta, alpha, out)


def addr(input, vec1, vec2, *, beta=1, alpha=1, out=None):
    """beta * input + alpha * outer(vec1, vec2): vec1 [M], vec2 [N], input broadcastable to [M,N]."""
    product = vector("addr", "vec1", vec1).reshape(-1, 1) * vector("addr", "vec2", vec2)
    result = _added("addr", input, product, beta, alpha, None)
    both_bool = input.dtype is product.dtype is dtypes.bool
    return placed("addr", result.bool() if both_bool else result, out)
