"""Standardising rows on arrays: means, spreads and their gradients, a cacheful of rows at a time."""

import contextlib

import numpy as np

PIECE = 1 << 17  # elements of a piece, 512 KiB of float32; 2^15 is slower by 25 % ([4096,1024], one core of a Zen 4)
LONG = 4096  # rows from here on are added pairwise, shorter ones by BLAS, whose vector lanes are as exact


@contextlib.contextmanager
def short_buffers(xp, size):
    """Within, NumPy works on rows where they lie.

    With its default of 8192 elements it first copies broadcast operands and rows shorter than that into a buffer: (64,
    1024) - (64, 1) takes 8 us instead of 19, NumPy 2.4, one core of a Zen 4. A number of 16-element units, at least one
    row long, turns that off.
    """
    if xp is not np or size < PIECE // 4:
        yield
        return
    before = np.setbufsize(1024)
    try:
        yield
    finally:
        np.setbufsize(before)


def pieces(xp, rows, length):
    """Slices of the rows, a piece each on the CPU, all at once on a GPU."""
    step = rows if xp is not np else max(PIECE // max(length, 1), 1)
    return [slice(i, min(i + step, rows)) for i in range(0, rows, max(step, 1))]


def computed(xp, x):
    """x in the dtype that sums are made in: float32 for the half types."""
    return x.astype(xp.float32) if x.dtype.itemsize == 2 else x


def row_sums(xp, a):
    """[...,1]: the sum of each row of a [...,L]."""
    if xp is np and 0 < a.shape[-1] < LONG:
        return a.dot(_ones(a.shape[-1], a.dtype))[..., None]
    return a.sum(-1, keepdims=True)


def row_products(xp, a, b):
    """[...,1]: the sum of a * b over each row."""
    if xp is np and a.shape[-1] < LONG:
        return np.vecdot(a, b)[..., None]
    return (a * b).sum(-1, keepdims=True)


def column_sums(xp, a):
    """[L]: the sum of each column of a [N,L]."""
    return _ones(a.shape[0], a.dtype).dot(a) if xp is np else a.sum(0)


_kept = {}


def _ones(n, dtype):
    """Ones that are made once: np.ones costs more than the product it is for."""
    ones = _kept.get((n, dtype))
    if ones is None:
        if len(_kept) > 64:
            _kept.clear()
        ones = _kept[n, dtype] = np.ones(n, dtype)
    return ones


def spread_of(xp, x, eps, centre=True, out=None):
    """``(x - mean, mean, rstd)`` of rows x [N,L], the first in ``out``; without ``centre`` (x, None, rstd).

    The variance is that of the centred rows: E[x^2] - mean^2 would lose every digit where |mean| >> std.
    """
    length = x.shape[1]
    mean = row_sums(xp, x) / length if centre else None
    centred = xp.subtract(x, mean, out=out) if centre else x
    return centred, mean, 1 / xp.sqrt(row_products(xp, centred, centred) / length + eps)


def layer_forward(xp, x, w, b, eps, centre=True):
    """``(out, mean, rstd)``: rows x [N,L] standardised, then times w [L], plus b [L]."""
    rows, length = x.shape
    kind = xp.dtype("f4") if x.dtype.itemsize == 2 else x.dtype
    if x.size <= PIECE // 16:  # one piece: half of the time at 8x16
        h, mean, rstd = spread_of(xp, computed(xp, x), eps, centre)
        return _scaled(h * rstd, w, b).astype(x.dtype, copy=False), mean, rstd
    out, mean, rstd = xp.empty(x.shape, x.dtype), *(xp.empty((rows, 1), kind) for _ in range(2))
    with short_buffers(xp, x.size):
        for part in pieces(xp, rows, length):
            # what is computed in x's own dtype is computed where it goes
            y = out[part] if kind == x.dtype else xp.empty(out[part].shape, kind)
            h, mu, rstd[part] = spread_of(xp, computed(xp, x[part]), eps, centre, y)
            if centre:
                mean[part] = mu
            _scaled(xp.multiply(h, rstd[part], out=y), w, b)
            if kind != x.dtype:
                out[part] = y
    return out, mean, rstd


def _scaled(y, w, b):
    """y * w + b, in place."""
    if w is not None:
        y *= w
    if b is not None:
        y += b
    return y


def layer_backward(xp, g, x, w, mean, rstd, needs, centre=True):
    """The gradients by x, w and b of ``layer_forward``; None where ``needs`` says so.

    With r = rstd, c = x - mean, h = c * r and d = g * w: dw = sum of g*h and db = sum of g over the rows, and
    dx = r * (d - mean of d - h * mean of d*h). All sums are matrix products with g and g*c, so seven passes are left:
    [4096,1024] takes 1.5 ns an element, 3.0 with h in memory (one core of a Zen 4).
    """
    rows, length = x.shape
    kind = rstd.dtype
    dx = xp.empty(x.shape, x.dtype) if needs[0] else None
    dw, db = (xp.zeros(length, kind) if need else None for need in needs[1:])
    w = None if w is None else computed(xp, w)
    parts = pieces(xp, rows, length)
    count = parts[0].stop if parts else 0
    product = xp.empty((count, length), kind)
    wide = xp.empty((count, length), kind) if not needs[0] or kind != x.dtype else None
    with short_buffers(xp, x.size):
        for part in parts:
            d, r = computed(xp, g[part]), rstd[part]
            c, p = dx[part] if wide is None else wide[: len(d)], product[: len(d)]
            if needs[2]:
                db += column_sums(xp, d)
            centred = computed(xp, x[part])
            if centre:
                centred = xp.subtract(centred, mean[part], out=c)
            xp.multiply(d, centred, out=p)
            if needs[1]:
                dw += r[:, 0].dot(p)
            if needs[0]:
                xp.multiply(centred, weighted_sums(xp, p, w) * (r * r / -length), out=c)
                _add_direct(xp, c, d, w, p, centre)
                c *= r
                if wide is not None:
                    dx[part] = c
    return dx, dw, db


def _add_direct(xp, c, d, w, scratch, centre):
    """c += d * w less, with ``centre``, its mean over each row."""
    if not centre and w is None:
        c += d
        return
    direct = d if w is None else xp.multiply(d, w, out=scratch)
    if centre:
        direct = xp.subtract(direct, weighted_sums(xp, d, w) / d.shape[1], out=scratch)
    c += direct


def weighted_sums(xp, a, w):
    """[...,1]: the sum of a * w over each row of a [N,L]; of a where w is None."""
    if w is None:
        return row_sums(xp, a)
    if xp is np and 0 < a.shape[1] < LONG:
        return a.dot(w)[:, None]
    return (a * w).sum(-1, keepdims=True)


def standardised(xp, x, mean, r, out=None):
    """(x - mean) * r; without a mean x * r."""
    if mean is None:
        return xp.multiply(x, r, out=out)
    out = xp.subtract(x, mean, out=out)
    return xp.multiply(out, r, out=out)


def row_gradient(xp, d, h, r, centre=True):
    """The gradient by rows x of h = (x - mean) * r, r = 1 / std of x, d being that by h; h is overwritten."""
    length = d.shape[1]
    h *= row_products(xp, d, h) / -length
    h += d
    if centre:
        h -= row_sums(xp, d) / length
    h *= r
    return h
