"""Attention on arrays: scores, softmax and values for a few heads at a time, so that the scores stay in the cache."""

import math

import numpy as np

from ..backend import philox
from .blocks import plain_exponentials
from .rowwise import computed, row_products, row_sums

PLAIN = 1e-8, 1e10  # sums of plain exponentials that lose no digit of a weight, nor of a gradient that they divide
BLOCK = 1 << 16  # scores of a block on the CPU: 256 KiB of float32. Twice that is slower by half (Zen 4, 1 core)
KEPT = 1 << 22  # scores up to which a call keeps its exponentials for backward; beyond, they are computed again


def hidden_part(xp, mask, causal, rows, columns, kind):
    """What is added to scores of queries ``rows`` and keys ``columns`` (slices): 0, -inf or a float mask; or None."""
    bias = None
    if mask is not None:
        bias = _sliced(mask, rows, columns)
        if bias.dtype == bool:
            bias = xp.where(bias, xp.zeros((), kind), xp.asarray(-np.inf, kind))
    if causal and columns.stop > rows.start + 1:
        late = xp.arange(columns.start, columns.stop) > xp.arange(rows.start, rows.stop)[:, None]
        late = xp.where(late, xp.asarray(-np.inf, kind), xp.zeros((), kind))
        bias = late if bias is None else bias + late
    return bias


def _sliced(mask, rows, columns):
    """A part of mask [...,T or 1,S or 1]."""
    return mask[..., rows if mask.shape[-2] > 1 else slice(None), columns if mask.shape[-1] > 1 else slice(None)]


class Plan:
    """The blocks of one call over [A,H,T,D] queries and [A,H,S,D] keys, mask broadcast to [A,H,T,S]."""

    def __init__(self, xp, shape, keys, mask, causal, p, seed, offset):
        self.xp, self.keys, self.causal = xp, keys, causal
        self.a, self.h, self.t = shape[:3]
        self.mask, self._biases = mask, {}
        self.p, self.dropped = p, None
        if p:
            self.dropped = philox.kept(xp, seed, offset, self.a * self.h * self.t * keys, p)
            self.dropped = self.dropped.reshape(self.a, self.h, self.t, keys)

    def _rows(self):
        """``(scores, queries)`` of a block."""
        size = BLOCK if self.xp is np else self.a * self.h * self.t * self.keys
        return size, min(max(size // max(self.keys, 1), 1), self.t)

    def once(self):
        """Whether every key is in one block, and in whole."""
        return self.t > 0 and self._rows()[1] == self.t and (not self.causal or self.t >= self.keys)

    def blocks(self):
        """Index pairs: queries (slices of A, H, T) and the slice of keys that any of them sees."""
        size, rows = self._rows()
        heads = min(max(size // max(rows * self.keys, 1), 1), self.h) if rows == self.t else 1
        batch = max(size // max(rows * self.keys * heads, 1), 1) if heads == self.h else 1
        for a in range(0, self.a, batch):
            for h in range(0, self.h, max(heads, 1)):
                for t in range(0, self.t, max(rows, 1)):
                    last = min(t + rows, self.t)
                    seen = min(last, self.keys) if self.causal else self.keys
                    yield (slice(a, a + batch), slice(h, h + heads), slice(t, last)), slice(0, seen)

    def bias(self, queries, keys, kind):
        """What is added to the scores of a block, or None; without a mask made once for all heads."""
        mask = self.mask
        if mask is None:
            at = queries[2].start, keys.stop
            if at not in self._biases:
                self._biases[at] = hidden_part(self.xp, None, self.causal, queries[2], keys, kind)
            return self._biases[at]
        for axis, part in zip((-4, -3), queries):
            if mask is not None and mask.ndim >= -axis and mask.shape[axis] > 1:
                mask = mask[(slice(None),) * (mask.ndim + axis) + (part,)]
        return hidden_part(self.xp, mask, self.causal, queries[2], keys, kind)

    def scores(self, query, key, queries, keys, scale, out=None):
        """query @ key^T * scale, plus the mask."""
        scaled, turned = query[queries] * query.dtype.type(scale), key[queries[:2]][:, :, keys].swapaxes(-1, -2)
        s = self.xp.matmul(scaled, turned, out=out)
        bias = self.bias(queries, keys, s.dtype)
        if bias is not None:
            s += bias
        return s

    def keep(self, queries, keys):
        """What dropout lets through of a block, with its factor."""
        factor = 1 / (1 - self.p) if self.p < 1 else 0.0
        return self.dropped[queries][..., keys] * self.xp.float32(factor)


def forward(xp, query, key, value, mask, causal, scale, p, seed, offset):
    """``(out, exponentials or None, norm)``; out [A,H,T,E] = softmax(query key^T scale + mask) value, dropped out.

    norm [A,H,T,1] is the sum of the exponentials, or, where those are not kept, the log of the sum of all.
    """
    plan = Plan(xp, query.shape, key.shape[2], mask, causal, p, seed, offset)
    out = xp.empty((*query.shape[:3], value.shape[3]), query.dtype)
    norm = xp.empty((*query.shape[:3], 1), query.dtype)
    kept = math.prod(query.shape[:3]) * key.shape[2] <= KEPT
    exponentials = xp.zeros((*query.shape[:3], key.shape[2]), query.dtype) if kept else None
    if not key.shape[2]:
        out[...], norm[...] = 0, 1
        return out, exponentials, norm
    plain = True  # until the scores of a block are too large for it
    for queries, keys in plan.blocks():
        asked = query, key, queries, keys, scale, exponentials[queries][..., keys] if kept else None
        e = plan.scores(*asked)
        total, top = plain_exponentials(xp, e, e, *PLAIN) if plain else None, None
        if total is None:
            e, plain = plan.scores(*asked) if plain else e, False
            total, top = _exponentials(xp, e)
        norm[queries] = total if kept else xp.log(total) if top is None else top + xp.log(total)
        through = e * plan.keep(queries, keys) if p else e
        o = xp.matmul(through, value[queries[:2]][:, :, keys], out=out[queries])
        xp.divide(o, total, out=o)
    return out, exponentials, norm


def _exponentials(xp, e):
    """``(sums, largest)`` of each row of scores e, which become e^(score - largest)."""
    top = e.max(-1, keepdims=True)
    top[top == -np.inf] = 0  # a row that sees nothing: its exponentials are 0, and so is the result
    e -= top
    xp.exp(e, out=e)
    total = row_sums(xp, e)
    total[total == 0] = 1
    return total, top


def backward(xp, g, query, key, value, mask, out, exponentials, norm, causal, scale, p, seed, offset, mask_too):
    """The gradients by query, key, value and, with ``mask_too``, by the float mask in the shape [A,H,T,S].

    With w = softmax(scores) and its gradient dw = g value^T: the gradient of the scores is w * (dw - sum of g * out).
    """
    plan = Plan(xp, query.shape, key.shape[2], mask, causal, p, seed, offset)
    dq, dk, dv = (xp.empty(a.shape, a.dtype) for a in (query, key, value))
    once = plan.once()
    if not once:
        dk[...], dv[...] = 0, 0
    dmask = xp.zeros((*query.shape[:3], key.shape[2]), query.dtype) if mask_too else None
    if not key.shape[2]:
        dq[...] = 0
    for queries, keys in plan.blocks():
        heads = queries[:2]
        if exponentials is not None:
            e, d = exponentials[queries][..., keys], g[queries] / norm[queries]  # the sum divides g, not each weight
        else:
            e, d = xp.exp(plan.scores(query, key, queries, keys, scale) - norm[queries]), g[queries]
        lost = row_products(xp, d, out[queries])
        ds = xp.matmul(d, value[heads][:, :, keys].swapaxes(-1, -2))
        through = e
        if p:
            keep = plan.keep(queries, keys)
            ds *= keep
            through = e * keep
        _product_into(xp, dv[heads][:, :, keys], once, through.swapaxes(-1, -2), d)
        ds -= lost
        ds *= e
        if mask_too:
            dmask[queries][..., keys] = ds
        ds *= ds.dtype.type(scale)
        xp.matmul(ds, key[heads][:, :, keys], out=dq[queries])
        _product_into(xp, dk[heads][:, :, keys], once, ds.swapaxes(-1, -2), query[queries])
    return dq, dk, dv, dmask


def _product_into(xp, out, once, x, y):
    """out = x @ y, or, where not ``once``, out += x @ y."""
    if once:
        xp.matmul(x, y, out=out)
    else:
        out += xp.matmul(x, y)


def folded(xp, x):
    """x [...,T,D] as [A,H,T,D] in the dtype that is computed in."""
    lead = x.shape[:-2]
    a, h = math.prod(lead[:-1]), (lead[-1] if lead else 1)
    return computed(xp, x).reshape(a, h, *x.shape[-2:])


def folded_mask(xp, mask, lead):
    """A mask that broadcasts to [*lead,T,S] as one that broadcasts to [A,H,T,S]; None stays None."""
    if mask is None or mask.ndim <= 2 or len(lead) == 2:
        return mask
    if math.prod(mask.shape[:-2]) == 1:
        return mask.reshape(mask.shape[-2:])
    whole = xp.broadcast_to(mask, (*lead, *mask.shape[-2:]))
    return whole.reshape(math.prod(lead[:-1]), lead[-1] if lead else 1, *mask.shape[-2:])
