"""Attention from its definition: a softmax of scores for each query."""

import math

import numpy as np

from . import Error, Input, case


def attended(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    if enable_gqa:
        times = query.shape[-3] // key.shape[-3]
        key, value = np.repeat(key, times, -3), np.repeat(value, times, -3)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = query @ np.swapaxes(key, -1, -2) * query.dtype.type(scale)
    seen = np.ones(scores.shape[-2:], bool)
    if is_causal:
        seen = np.tril(seen)
    if attn_mask is not None and attn_mask.dtype == bool:
        seen = attn_mask
    elif attn_mask is not None:
        scores = scores + attn_mask
    scores = np.where(seen, scores, -np.inf)
    if not scores.size:
        return np.zeros((*scores.shape[:-1], value.shape[-1]), query.dtype)
    top = scores.max(-1, keepdims=True)
    e = np.exp(scores - np.where(np.isfinite(top), top, 0))
    total = e.sum(-1, keepdims=True)
    return (e / np.where(total == 0, 1, total) @ value).astype(query.dtype)


SEEN = np.random.default_rng(1).random((4, 5)) < 0.6
SEEN[1] = False  # a query that sees nothing
KEYS = np.array([[[[True, True, False, True, False]]], [[[False, True, True, True, True]]]])  # [B,1,1,S]
HIDDEN = np.where(SEEN, 0.0, -np.inf)
FACTS = {"roundings": 16}
NAME = "nn.functional.scaled_dot_product_attention"

case(
    NAME,
    attended,
    Input((2, 4, 3), (2, 5, 3), (2, 5, 6)),
    Input((4, 3), (4, 3), (4, 2), is_causal=True),
    Input((2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 4), is_causal=True),
    Input((2, 2, 5, 4), (2, 2, 3, 4), (2, 2, 3, 4), is_causal=True, scale=0.3),
    Input((2, 4, 3), (2, 5, 3), (2, 5, 3), attn_mask=SEEN),
    Input((2, 2, 4, 3), (2, 2, 5, 3), (2, 2, 5, 3), attn_mask=KEYS),
    Input((2, 4, 3), (2, 5, 3), (2, 5, 3), attn_mask=np.random.default_rng(2).standard_normal((4, 5))),
    Input((2, 2, 4, 3), (2, 2, 5, 3), (2, 2, 5, 3), attn_mask=np.random.default_rng(2).standard_normal((2, 1, 1, 5))),
    Input((1, 4, 2, 3), (1, 2, 3, 3), (1, 2, 3, 3), enable_gqa=True),
    Input((2, 1, 2, 3, 4), (2, 1, 2, 3, 4), (2, 1, 2, 3, 2), is_causal=True),
    Input((3, 4), (2, 3, 4), (2, 3, 4)),
    Input((2, 3, 4), (2, 0, 4), (2, 0, 4)),
    Input((0, 3, 4), (0, 3, 4), (0, 3, 4)),
    low=False,
    **FACTS,
)
case(
    NAME,
    attended,
    Input((1, 2, 300, 4), (1, 2, 300, 4), (1, 2, 300, 4), is_causal=True),  # over many blocks
    grad=1,
    low=False,
    **FACTS,
)
case(NAME, attended, Input((2, 4, 3), (2, 5, 3), (2, 5, 3), attn_mask=HIDDEN), wrt=(0, 1, 2), low=False, **FACTS)
case(NAME, attended, Input((2, 4, 8), (2, 4, 8), (2, 4, 8)), grad=0, roundings=8)
case(
    NAME,
    attended,
    Error(
        RuntimeError,
        "Expected size for first two dimensions of batch2 tensor to be: [2, 4] but got: [2, 5].",
        (2, 3, 4),
        (2, 5, 5),
        (2, 5, 6),
    ),
    Error(
        RuntimeError,
        "Expected size for first two dimensions of batch2 tensor to be: [2, 5] but got: [2, 6].",
        (2, 3, 4),
        (2, 5, 4),
        (2, 6, 6),
    ),
    Error(
        RuntimeError,
        "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: 1 "
        "key.dim: 1 and value.dim: 1 instead.",
        (3,),
        (3,),
        (3,),
    ),
    Error(
        RuntimeError,
        "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True",
        (2, 3, 4),
        (2, 3, 4),
        (2, 3, 4),
        attn_mask=np.ones((3, 3), bool),
        is_causal=True,
    ),
    Error(
        RuntimeError,
        "Expected attn_mask dtype to be bool or float or to match query dtype, but got "
        "attn_mask.dtype: long int and  query.dtype: float instead.",
        (2, 3, 4),
        (2, 3, 4),
        (2, 3, 4),
        attn_mask=np.ones((3, 3), int),
    ),
    Error(
        RuntimeError,
        "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 2",
        (2, 3, 4),
        (2, 3, 4),
        (2, 3, 4),
        attn_mask=np.ones((3, 4), bool),
    ),
    Error(
        RuntimeError,
        "The size of tensor a (4) must match the size of tensor b (2) at non-singleton dimension 1",
        (2, 4, 3, 4),
        (2, 2, 3, 4),
        (2, 2, 3, 4),
    ),
    Error(
        RuntimeError,
        "Number of heads in key and value must divide the number of heads in",
        (2, 4, 3, 4),
        (2, 3, 3, 4),
        (2, 3, 3, 4),
        enable_gqa=True,
    ),
    Error(
        RuntimeError,
        "dropout probability has to be between 0 and 1, but got 1.5",
        (2, 3, 4),
        (2, 3, 4),
        (2, 3, 4),
        dropout_p=1.5,
    ),
    Error(
        RuntimeError,
        "expected m1 and m2 to have the same dtype, but got: float != long int",
        *[np.ones((2, 3), int)] * 3,
    ),
    Error(RuntimeError, "expected scalar type Float but found Long", *[np.ones((1, 2, 3), int)] * 3),
    Error(
        IndexError,
        "Dimension out of range (expected to be in range of [-2, 1], but got -3)",
        (3, 4),
        (3, 4),
        (3, 4),
        enable_gqa=True,
    ),
)


# ---- in several heads between projections

HEADS = 2


def linear(x, w, b):
    return x @ w.T + b


def multi_head(x, in_weight, in_bias, out_weight, out_bias, **options):
    t, b, c = x.shape
    q, k, v = (
        part.reshape(t, b * HEADS, c // HEADS).swapaxes(0, 1) for part in np.split(linear(x, in_weight, in_bias), 3, -1)
    )
    mask, hidden = options.get("attn_mask"), options.get("key_padding_mask")
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(c // HEADS)
    if mask is not None:
        scores = scores + np.where(mask, -np.inf, 0)
    if hidden is not None:
        scores = scores + np.repeat(np.where(hidden, -np.inf, 0), HEADS, 0)[:, None]
    e = np.exp(scores - scores.max(-1, keepdims=True))
    w = e / e.sum(-1, keepdims=True)
    out = linear((w @ v).swapaxes(0, 1).reshape(t, b, c), out_weight, out_bias)
    if not options.get("need_weights", True):
        return out
    w = w.reshape(b, HEADS, t, t)
    return out, w.mean(1) if options.get("average_attn_weights", True) else w


def called(x, in_weight, in_bias, out_weight, out_bias, **options):
    import cudagrad

    f = cudagrad.nn.functional.multi_head_attention_forward
    c = x.shape[-1]
    results = f(x, x, x, c, HEADS, in_weight, in_bias, None, None, False, 0.0, out_weight, out_bias, **options)
    return results if results[1] is not None else results[0]


WEIGHTS = ((12, 4), (12,), (4, 4), (4,))
CAUSAL = np.triu(np.ones((3, 3), bool), 1)
PADDING = np.array([[False, False, True], [False, True, False]])
case(
    "nn.functional.multi_head_attention_forward",
    multi_head,
    Input((3, 2, 4), *WEIGHTS),
    Input((3, 2, 4), *WEIGHTS, need_weights=False, attn_mask=CAUSAL),
    Input((3, 2, 4), *WEIGHTS, average_attn_weights=False, key_padding_mask=PADDING),
    Input((3, 2, 4), *WEIGHTS, need_weights=False, attn_mask=CAUSAL, key_padding_mask=PADDING),
    Input((3, 2, 4), *WEIGHTS, need_weights=False, attn_mask=CAUSAL, is_causal=True),
    f=called,
    low=False,
    roundings=64,
)
