"""Distances and similarities between rows."""

import numpy as np

from .. import errors
from ..backend import xp_of
from ..core.modes import autocasts
from ..core.op import op
from ..core.promote import result_type_of
from ..core.tensor import wrap
from .norms import vector_norm

__all__ = ("cdist", "pairwise_distance", "cosine_similarity", "pdist")
FUNCTIONAL = ("pairwise_distance", "cosine_similarity", "pdist")

_BLOCK_BYTES = 1 << 20  # of differences held at a time: the L2 of one core
_DIRECT_ROWS = 25  # up to this many rows PyTorch takes differences, above it one matrix product
_CLOSE = 1e-2  # squared distances below this part of the squared norms are taken again, from differences

_MODES = {
    "use_mm_for_euclid_dist_if_necessary": None,
    "use_mm_for_euclid_dist": True,
    "donot_use_mm_for_euclid_dist": False,
}


def _prepare_cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    if compute_mode is not None and compute_mode not in _MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    for name, x in (("X1", x1), ("X2", x2)):
        if x.dtype.category < 2:
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {x.dtype.legacy}")
        if x.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x.ndim}D")
    if x1.shape[-1] != x2.shape[-1]:
        first = f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}"
        raise RuntimeError(errors.text(first, f"got x1 {tuple(x1.shape)}, x2 {tuple(x2.shape)}"))
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    if x1.dtype is not x2.dtype:
        raise RuntimeError(f"expected scalar type {x1.dtype.legacy} but found {x2.dtype.legacy}")
    mm = _MODES.get(compute_mode)
    if mm is None:
        mm = x1.shape[-2] > _DIRECT_ROWS or x2.shape[-2] > _DIRECT_ROWS
    return x1, x2, float(p), mm and p == 2


def _slope(diff, out, g, p, sign):
    """g times the derivative of out by diff, element by element; 0 where the points are equal."""
    if p == 0:
        return diff * 0
    if p == 1:
        return sign(diff) * g
    if p == float("inf"):
        return sign(diff) * (abs(diff) == out) * g
    scale = g * (out != 0) / (out + (out == 0)) ** (p - 1)
    if p == 2:
        return diff * scale
    if p < 2:
        return sign(diff) * (abs(diff) + (diff == 0)) ** (p - 1) * scale
    return diff * abs(diff) ** (p - 2) * scale


def _cdist_joint(m, g, x1, x2, out, p, needs, x1_shape, x2_shape):
    pairs, columns = tuple(out.shape), x1_shape[-1:]
    a = m.reshape(x1, shape=(*x1_shape[:-1], 1, *columns))
    b = m.reshape(x2, shape=(*x2_shape[:-2], 1, *x2_shape[-2:]))
    slope = _slope(a - b, m.reshape(out, shape=(*pairs, 1)), m.reshape(g, shape=(*pairs, 1)), p, m.sign)
    n = len(pairs)
    first = m.sum_to(m.sum(slope, dim=(n - 1,), keepdim=False), shape=x1_shape) if needs[0] else None
    second = m.sum_to(-m.sum(slope, dim=(n - 2,), keepdim=False), shape=x2_shape) if needs[1] else None
    return first, second


def _cdist_fused(xp, m, g, x1, x2, out, p, needs):
    """As the joint formula, a block of rows at a time: the differences are never all in memory."""
    batch = out.shape[:-2]
    a, b = xp.broadcast_to(x1, batch + x1.shape[-2:]), xp.broadcast_to(x2, batch + x2.shape[-2:])
    first = xp.empty(a.shape, g.dtype) if needs[0] else None
    second = xp.zeros(b.shape, g.dtype) if needs[1] else None
    for i, j in _blocks(b, a.shape[-2]):
        diff = a[..., i:j, None, :] - b[..., None, :, :]
        slope = _slope(diff, out[..., i:j, :, None], g[..., i:j, :, None], p, xp.sign)
        if needs[0]:
            first[..., i:j, :] = slope.sum(-2)
        if needs[1]:
            second -= slope.sum(-3)
    return (
        m.sum_to(first, shape=x1.shape) if needs[0] else None,
        m.sum_to(second, shape=x2.shape) if needs[1] else None,
    )


def _blocks(b, rows):
    """Ranges of rows whose differences to all of ``b`` take about a block."""
    step = max(1, _BLOCK_BYTES // max(1, b.size * b.itemsize))
    return [(i, min(i + step, rows)) for i in range(0, rows, step)]


@op(joint=_cdist_joint, fused=_cdist_fused, prepare=_prepare_cdist, wide=True)
def cdist(xp, x1, x2, *, p, mm):
    """The p-norm distances of every row of x1 to every row of x2; p = 0 counts the columns that differ.

    Shapes      x1 [...,P,M], x2 [...,R,M] -> [...,P,R]; batch axes broadcast
    Dtypes      floating, both the same
    Derivative  0 at equal points
    Raises      RuntimeError, ValueError for arguments that do not fit
    Differs     distances from a matrix product are taken again from differences where they would lose digits

    >>> cudagrad.cdist(cudagrad.tensor([[0.0, 0.0]]), cudagrad.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[5., 1.]])
    """
    batch = np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    a, b = xp.broadcast_to(x1, batch + x1.shape[-2:]), xp.broadcast_to(x2, batch + x2.shape[-2:])
    if mm:
        return _euclid(xp, a, b)
    out = xp.empty((*a.shape[:-1], b.shape[-2]), x1.dtype)
    for i, j in _blocks(b, a.shape[-2]):
        out[..., i:j, :] = _length(xp, a[..., i:j, None, :] - b[..., None, :, :], p)
    return out


def _length(xp, diff, p):
    """The p-norms over the last axis; ``diff`` is written over."""
    if p == 2:
        return xp.sqrt((diff * diff).sum(-1))
    if p == 0:
        return (diff != 0).sum(-1, dtype=diff.dtype)
    diff = xp.abs(diff, out=diff)
    if p == 1:
        return diff.sum(-1)
    if p == float("inf"):
        return diff.max(-1) if diff.shape[-1] else diff.sum(-1)
    return (diff**p).sum(-1) ** (1 / p)


def _euclid(xp, a, b):
    """Euclidean distances by one product, the points moved to the mean of b first so that fewer digits cancel."""
    if not b.shape[-2] or not a.shape[-2]:
        return xp.empty((*a.shape[:-1], b.shape[-2]), a.dtype)
    centre = b.mean(-2, keepdims=True)
    a, b = a - centre, b - centre
    norms = (a * a).sum(-1)[..., :, None] + (b * b).sum(-1)[..., None, :]
    square = xp.matmul(a, b.swapaxes(-1, -2))
    square *= -2
    square += norms
    close = xp.nonzero(square < _CLOSE * norms)
    if close[0].size:
        diff = a[close[:-1]] - b[(*close[:-2], close[-1])]
        square[close] = (diff * diff).sum(-1)
    return xp.sqrt(square, out=square)


@autocasts
def pdist(input, p=2):
    """The p-norm distances of every pair of rows i < j: [N,M] -> [N(N-1)/2].

    Raises      RuntimeError where ``input`` is no matrix or ``p`` is negative
    """
    if input.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.ndim}D")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    rows, columns = map(wrap, xp_of(input.array).triu_indices(input.shape[0], 1))
    return vector_norm(input[rows] - input[columns], p, dim=-1)


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    """The p-norm of x1 - x2 + eps over the last axis, row by row.

    Shapes      x1, x2 [...,D], broadcast -> [...], or [...,1] with keepdim
    """
    return vector_norm(x1 - x2 + eps, p, dim=max(x1.ndim, x2.ndim) - 1, keepdim=keepdim)


@autocasts
def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """sum(x1 * x2) / (max(|x1|, eps) * max(|x2|, eps)) over ``dim``.

    Shapes      x1, x2 broadcast; the result lacks ``dim``
    Raises      RuntimeError where neither is floating, IndexError for ``dim`` out of range
    """
    common = result_type_of((x1, x2))
    if common.category < 2:
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {common.legacy}")
    if x1.shape != x2.shape:
        from .broadcasting import broadcast_tensors

        x1, x2 = broadcast_tensors(x1, x2)
    a, b = (_unit(x.to(common), dim, eps) for x in (x1, x2))
    return (a * b).sum(dim)


def _unit(x, dim, eps):
    """x with its norm over ``dim`` brought to 1, or lower where it is below eps."""
    return x / vector_norm(x, 2, dim=dim, keepdim=True).clamp(min=eps)
