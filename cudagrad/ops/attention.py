"""Multi-head attention as a function of its weights."""

import math
import warnings

from ..backend import xp_of
from ..core.tensor import wrap
from .affine import linear
from .dropout import dropout
from .joining import cat
from .scaled_attention import scaled_dot_product_attention
from .softmax import softmax

FUNCTIONAL = ("multi_head_attention_forward",)


def _shape_text(query, key, value, key_padding_mask, attn_mask, num_heads):
    """What is wrong with the number of axes; None where all is well."""
    if query.ndim not in (2, 3):
        return f"query should be unbatched 2D or batched 3D tensor but received {query.ndim}-D query tensor"
    n = query.ndim
    kind = f"For {'batched (3-D)' if n == 3 else 'unbatched (2-D)'} `query`, expected "
    if key.ndim != n or value.ndim != n:
        return f"{kind}`key` and `value` to be {n}-D but found {key.ndim}-D and {value.ndim}-D tensors respectively"
    if key_padding_mask is not None and key_padding_mask.ndim != n - 1:
        return f"{kind}`key_padding_mask` to be `None` or {n - 1}-D but found {key_padding_mask.ndim}-D tensor instead"
    if attn_mask is not None and attn_mask.ndim not in (2, 3):
        return f"{kind}`attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.ndim}-D tensor instead"
    if n == 2 and attn_mask is not None and attn_mask.ndim == 3:
        wanted = (num_heads, query.shape[0], key.shape[0])
        if tuple(attn_mask.shape) != wanted:
            return f"Expected `attn_mask` shape to be {wanted} but got {attn_mask.shape}"
    return None


def _added(mask, name, like):
    """A mask as numbers to add: a bool one is -inf where it is True."""
    if mask is None or mask.is_floating_point():
        return mask
    if mask.dtype.category:
        raise AssertionError(f"only bool and floating types of {name} are supported")
    xp, kind = xp_of(mask.array), like.array.dtype
    return wrap(xp.where(mask.array, xp.asarray(-math.inf, kind), xp.zeros((), kind)))


def _masks(query, key_padding_mask, attn_mask, is_causal, need_weights):
    """Both masks as numbers to add, and whether attention itself is to hide later keys."""
    if key_padding_mask is not None and attn_mask is not None and key_padding_mask.dtype is not attn_mask.dtype:
        warnings.warn(
            "Support for mismatched key_padding_mask and attn_mask is deprecated. Use same type for both instead.",
            stacklevel=3,
        )
    key_padding_mask = _added(key_padding_mask, "key_padding_mask", query)
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and key_padding_mask is None and not need_weights:
        return None, None, True
    return key_padding_mask, _added(attn_mask, "attn_mask", query), False


def _projected(query, key, value, weights, biases):
    """Query, key and value through their projections; one product for those that are the same tensor."""
    if weights[0] is not None and len(weights) == 1:
        (w,), (b,) = weights, biases
        width = query.shape[-1]
        if query is key is value:
            return linear(query, w, b).split(width, -1)
        weights, biases = w.split(width), (None,) * 3 if b is None else b.split(width)
    return tuple(linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases))


def _check_widths(query, key, value, embed_dim, num_heads, separate):
    if query.shape[-1] != embed_dim:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim}, but got {query.shape[-1]}")
    if embed_dim % num_heads:
        raise AssertionError(f"embed_dim {embed_dim} not divisible by num_heads {num_heads}")
    if separate and key.shape[:2] != value.shape[:2]:
        raise AssertionError(f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}")
    if not separate and key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")


def _check_mask(mask, wanted):
    if mask is None:
        return None
    axes = mask.ndim
    if tuple(mask.shape) != wanted[axes]:
        raise RuntimeError(f"The shape of the {axes}D attn_mask is {mask.shape}, but should be {wanted[axes]}.")
    return mask.unsqueeze(0) if axes == 2 else mask


def _longer(x, extra, dim):
    """x with one more along ``dim``: ``extra``, or zeros."""
    if x is None:
        return None
    if extra is None:
        extra = x.new_zeros(tuple(1 if d == dim % x.ndim else n for d, n in enumerate(x.shape)))
    return cat([x, extra], dim)


def _heads(x, heads):
    """[S,B,H*D] as [B*H,S,D]."""
    s, b, width = x.shape
    return x.reshape(s, b * heads, width // heads).transpose(0, 1)


def _static(x, given, name, heads, width):
    if given is None:
        return x
    for axis, wanted in ((0, heads), (2, width)):
        if given.shape[axis] != wanted:
            raise AssertionError(f"expecting {name}.size({axis}) of {wanted}, but got {given.shape[axis]}")
    return given


def _all_heads_mask(attn_mask, padding, batch, heads, length):
    """Both masks added up, [B*H or 1,T,S]."""
    if padding is None:
        return attn_mask
    if tuple(padding.shape) != (batch, length):
        raise AssertionError(f"expecting key_padding_mask shape of {(batch, length)}, but got {padding.shape}")
    padding = padding.reshape(batch, 1, 1, length).expand(batch, heads, 1, length).reshape(batch * heads, 1, length)
    return padding if attn_mask is None else attn_mask + padding


def multi_head_attention_forward(
    query,
    key,
    value,
    embed_dim_to_check,
    num_heads,
    in_proj_weight,
    in_proj_bias,
    bias_k,
    bias_v,
    add_zero_attn,
    dropout_p,
    out_proj_weight,
    out_proj_bias,
    training=True,
    key_padding_mask=None,
    need_weights=True,
    attn_mask=None,
    use_separate_proj_weight=False,
    q_proj_weight=None,
    k_proj_weight=None,
    v_proj_weight=None,
    static_k=None,
    static_v=None,
    average_attn_weights=True,
    is_causal=False,
):
    """``(output, weights)`` of attention in ``num_heads`` heads between projections; see ``nn.MultiheadAttention``.

    Masks: True (bool) or -inf (floating) where attention may not look. ``is_causal`` is a hint that ``attn_mask`` hides
    later keys, so that it need not be read.

    Shapes      query [T,B,C], key [S,B,K], value [S,B,V], or all without B; attn_mask [T,S] or [B*H,T,S];
                key_padding_mask [B,S]; output [T,B,C]; weights [B,T,S], [B,H,T,S] where not averaged, None without
                ``need_weights``
    Raises      AssertionError, RuntimeError where shapes or dtypes do not fit
    Source      Vaswani et al. 2017, arXiv:1706.03762, section 3.2.2
    """
    wrong = _shape_text(query, key, value, key_padding_mask, attn_mask, num_heads)
    if wrong:
        raise AssertionError(wrong)
    batched = query.ndim == 3
    if not batched:
        query, key, value, key_padding_mask = _batch_of_one(query, key, value, key_padding_mask)
    padding, mask, causal = _masks(query, key_padding_mask, attn_mask, is_causal, need_weights)
    _check_widths(query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight)
    separate = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None
    weights, biases = _projections(in_proj_weight, in_proj_bias, separate)
    (t, batch, width), s = query.shape, key.shape[0]
    q, k, v = _projected(query, key, value, weights, biases)
    mask = _check_mask(mask, {2: (t, s), 3: (batch * num_heads, t, s)})
    if bias_k is not None and bias_v is not None:
        k, v = (_longer(x, b.expand(1, batch, b.shape[-1]), 0) for x, b in ((k, bias_k), (v, bias_v)))
        mask, padding = _longer(mask, None, -1), _longer(padding, None, -1)
    q, k, v = _heads(q, num_heads), _heads(k, num_heads), _heads(v, num_heads)
    k = _static(k, static_k, "static_k", batch * num_heads, width // num_heads)
    v = _static(v, static_v, "static_v", batch * num_heads, width // num_heads)
    if add_zero_attn:
        k, v = _longer(k, None, 1), _longer(v, None, 1)
        mask, padding = _longer(mask, None, -1), _longer(padding, None, -1)
    mask = _all_heads_mask(mask, padding, batch, num_heads, k.shape[1])
    out, weights = _attend(q, k, v, mask, dropout_p if training else 0.0, causal, batch, need_weights)
    out = linear(out.transpose(0, 1).reshape(t, batch, width), out_proj_weight, out_proj_bias)
    if need_weights:
        weights = weights.reshape(batch, num_heads, t, k.shape[1])
        weights = weights.mean(1) if average_attn_weights else weights
    if batched:
        return out, weights
    return out.squeeze(1), weights.squeeze(0) if need_weights else None


def _batch_of_one(query, key, value, padding):
    """The operands with the dim of a batch; those that are one tensor stay one."""
    same = query is key, key is value
    query = query.unsqueeze(1)
    key = query if same[0] else key.unsqueeze(1)
    value = key if same[1] else value.unsqueeze(1)
    return query, key, value, None if padding is None else padding.unsqueeze(0)


def _projections(joint, bias, separate):
    """Weights and biases of the projections: one of each for all three, or three of each where ``separate``."""
    if separate is None:
        if joint is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        return (joint,), (bias,)
    for name, w in zip("qkv", separate):
        if w is None:
            raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
    return separate, (None,) * 3 if bias is None else bias.chunk(3)


def _attend(q, k, v, mask, p, causal, batch, need_weights):
    """``(out [B*H,T,D], weights [B*H,T,S] or None)``."""
    if not need_weights:
        heads = q.shape[0] // max(batch, 1)
        q, k, v = (x.reshape(batch, heads, *x.shape[1:]) for x in (q, k, v))
        if mask is not None:
            mask = mask.unsqueeze(0) if mask.shape[0] == 1 else mask.reshape(batch, heads, *mask.shape[1:])
        out = scaled_dot_product_attention(q, k, v, mask, p, causal)
        return out.reshape(batch * heads, *out.shape[2:]), None
    scores = (q * (1 / math.sqrt(q.shape[-1]))) @ k.transpose(-2, -1)
    weights = softmax(scores if mask is None else scores + mask, -1)
    if p > 0:
        weights = dropout(weights, p)
    return weights @ v, weights
