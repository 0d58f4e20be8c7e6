"""Scaled dot-product attention: one op with a fused rule on the CPU, and its derivative in terms of ops."""

import math

from .. import errors
from ..core.generator import generator_of
from ..core.modes import autocasts
from ..core.op import TABLE, op
from ..core.promote import not_tensor
from ..core.tensor import Tensor
from . import attention_blocks as blocks

FUNCTIONAL = ("scaled_dot_product_attention",)


def _mT(m, x):
    return m.transpose(x, dim0=len(x.shape) - 2, dim1=len(x.shape) - 1)


@op(outputs=2)
def attention_bias(xp, x, mask=None, *, causal):
    """``(bias, seen)`` for scores x [...,T,S]: 0, or -inf where a key is hidden; whether a query sees any key."""
    if mask is not None and mask.dtype != bool:
        mask = mask > -math.inf
    t, s = x.shape[-2:]
    bias = blocks.hidden_part(xp, mask, causal, slice(0, t), slice(0, s), x.dtype)
    if bias is None:
        bias = xp.zeros((1, 1), x.dtype)
    bias = xp.broadcast_to(bias, (*bias.shape[:-1], s))
    return bias, (bias > -math.inf).any(-1, keepdims=True)


def _gradients(m, g, query, key, value, mask, needs, causal, scale, p, seed, offset):
    scores = (query @ _mT(m, key)) * scale
    if needs[3]:
        scores = scores + mask
    elif mask is not None:
        scores = m.attention_scores(scores, mask)
    bias, seen = m.attention_bias(scores, mask, causal=causal)
    w = m.only(m.softmax(m.only(scores + bias, seen), dim=len(scores.shape) - 1), seen)
    dw, through = g @ _mT(m, value), w
    if p:
        drop = {"p": p, "seed": seed, "offset": offset, "scale": 1 / (1 - p) if p < 1 else 0.0, "dims": None}
        dw, through = m.dropped(dw, **drop), m.dropped(w, **drop)
    ds = w * (dw - m.sum(dw * w, dim=(len(scores.shape) - 1,), keepdim=True))
    dq, dk = (ds @ key) * scale, (_mT(m, ds) @ query) * scale
    return dq, dk, _mT(m, through) @ g, m.sum_to(ds, shape=tuple(mask.shape)) if needs[3] else None


@op(x=lambda g: g)
def attention_scores(xp, x, mask):
    """x plus a float mask that wants no gradient; x where the mask is bool.

    Derivative  g
    """
    return x if mask.dtype == bool else x + mask


def _fused(xp, g, query, key, value, mask, out, needs, causal, scale, p, seed, offset, exponentials, norm):
    lead, kind = query.shape[:-2], query.dtype
    folded = [blocks.folded(xp, a) for a in (g, query, key, value)]
    sees = blocks.folded_mask(xp, mask, lead)
    saved = (blocks.folded(xp, out), exponentials, norm)
    *ds, dmask = blocks.backward(xp, *folded, sees, *saved, causal, scale, p, seed, offset, needs[3])
    ds = [d.reshape(a.shape).astype(kind, copy=False) for d, a in zip(ds, (query, key, value))]
    if needs[3]:
        dmask = dmask.reshape(*lead, query.shape[-2], key.shape[-2])
        dmask = TABLE["sum_to"].forward(xp, dmask, shape=mask.shape).astype(mask.dtype, copy=False)
    return *ds, dmask


@op(joint=_gradients, fused=_fused, extras=("exponentials", "norm"), node="ScaledDotProductAttention")
def attention(xp, query, key, value, mask=None, *, causal, scale, p, seed, offset):
    """softmax(query key^T scale + mask) value, each weight dropped with probability p; 0 for a query that sees no key.

    Shapes      query [*L,T,D]; key [*L,S,D]; value [*L,S,E]; mask broadcasts to [*L,T,S]; out [*L,T,E]
    Derivative  with w the weights: dv = w^T g; ds = w * (g v^T - sum of g * out); dq = ds k scale; dk = ds^T q scale
    """
    lead = query.shape[:-2]
    folded = [blocks.folded(xp, a) for a in (query, key, value)]
    sees = blocks.folded_mask(xp, mask, lead)
    out, exponentials, norm = blocks.forward(xp, *folded, sees, causal, scale, p, seed, offset)
    out = out.reshape(*lead, *out.shape[-2:]).astype(query.dtype, copy=False)
    return out, exponentials, norm


# ---- the public function


def _check(query, key, value, mask, p, causal):
    for t in (query, key, value):
        if not isinstance(t, Tensor):
            raise not_tensor(TABLE["attention"], query, key, value)
    if not query.dtype is key.dtype is value.dtype:
        raise RuntimeError(
            f"Expected query, key, and value to have the same dtype, but got query.dtype: {query.dtype.cpp} key.dtype: "
            f"{key.dtype.cpp} and value.dtype: {value.dtype.cpp} instead."
        )
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise RuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
            f"{query.ndim} key.dim: {key.ndim} and value.dim: {value.ndim} instead."
        )
    if mask is not None:
        if mask.dtype.category and mask.dtype is not query.dtype:
            raise RuntimeError(
                "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
                f"{mask.dtype.cpp} and  query.dtype: {query.dtype.cpp} instead."
            )
        if causal:
            first = "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True"
            raise RuntimeError(errors.text(first, "fix: leave one of them out, or put the causal part into the mask"))
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")
    if query.dtype.category != 2:  # what the product of the weights, which are floating, with the values says
        if value.ndim == 2:
            raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: float != {value.dtype.cpp}")
        raise RuntimeError(f"expected scalar type Float but found {query.dtype.legacy}")


def _together(query, key, value, mask):
    """Query, key and value with the same axes before the last two."""
    lead = query.array.shape[:-2]
    if key.array.shape[:-2] != lead or value.array.shape[:-2] != lead:
        lead = _meet(_meet(lead, key.shape[:-2], query.ndim), value.shape[:-2], query.ndim)
        query, key, value = (t.expand(*lead, *t.shape[-2:]) for t in (query, key, value))
    first = "Expected size for first two dimensions of batch2 tensor to be: "
    many = math.prod(lead)
    if query.shape[-1] != key.shape[-1]:
        got = f"[{many}, {query.shape[-1]}] but got: [{many}, {key.shape[-1]}]."
        raise RuntimeError(errors.text(first + got, _came(query, key, value), "need query and key of one width"))
    if key.shape[-2] != value.shape[-2]:
        got = f"[{many}, {key.shape[-2]}] but got: [{many}, {value.shape[-2]}]."
        raise RuntimeError(errors.text(first + got, _came(query, key, value), "need as many values as keys"))
    if mask is not None:
        _meet((*lead, query.shape[-2], key.shape[-2]), mask.shape, 0, grow=False)
    return query, key, value


def _came(query, key, value):
    return f"got query {tuple(query.shape)}, key {tuple(key.shape)}, value {tuple(value.shape)}"


def _meet(a, b, after, grow=True):
    """The shape in which two broadcast, in PyTorch's words where they do not."""
    length = max(len(a), len(b))
    a, b = (1,) * (length - len(a)) + tuple(a), (1,) * (length - len(b)) + tuple(b)
    for d in reversed(range(length)):
        if a[d] != b[d] and (b[d] != 1 and (a[d] != 1 or not grow)):
            raise RuntimeError(
                f"The size of tensor a ({a[d]}) must match the size of tensor b ({b[d]}) at non-singleton dimension {d}"
            )
    return tuple(m if n == 1 else n for m, n in zip(a, b))


def _repeated(query, key, value):
    """Each head of key and value as often as it has heads of the query."""
    heads = query.shape[-3]
    for t in (key, value):
        if heads % t.shape[-3]:
            raise RuntimeError(
                errors.text(
                    "Number of heads in key and value must divide the number of heads in ", _came(query, key, value)
                )
            )
    return tuple(t if t.shape[-3] == heads else t.repeat_interleave(heads // t.shape[-3], dim=-3) for t in (key, value))


@autocasts
def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    """softmax(query key^T * scale + mask) value over the last two axes.

    ``attn_mask``: bool, True where a key may be seen, or numbers that are added. ``is_causal``: query i sees keys up to
    i, also where there are more keys than queries. ``scale``: 1 / sqrt(D) by default. ``dropout_p``: the probability
    with which each weight is dropped. ``enable_gqa``: heads of key and value serve several heads of the query each. A
    query that sees no key gives 0.

    Shapes      query [*,H,T,D]; key [*,H,S,D]; value [*,H,S,E]; attn_mask broadcasts to [*,H,T,S]; out [*,H,T,E]
    Derivative  of every order; by a float mask too
    Raises      RuntimeError where shapes, dtypes or options do not fit
    Source      Vaswani et al. 2017, arXiv:1706.03762, equation 1; Dao et al. 2022, arXiv:2205.14135, appendix B
    """
    _check(query, key, value, attn_mask, dropout_p, is_causal)
    if enable_gqa:
        if min(query.ndim, key.ndim, value.ndim) < 3:
            low, high = -query.ndim, query.ndim - 1
            raise IndexError(f"Dimension out of range (expected to be in range of [{low}, {high}], but got -3)")
        key, value = _repeated(query, key, value)
    query, key, value = _together(query, key, value, attn_mask)
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1]) if query.shape[-1] else 1.0
    seed, offset = generator_of(query.device).draw() if dropout_p else (0, 0)
    options = {"p": float(dropout_p), "seed": seed, "offset": offset}
    return attention(query, key, value, attn_mask, causal=bool(is_causal), scale=float(scale), **options)
