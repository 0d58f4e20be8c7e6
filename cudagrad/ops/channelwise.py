"""Standardising over the batch or over groups of channels, on arrays [N,C,S]: a cacheful of samples at a time."""

import numpy as np

from .rowwise import column_sums, computed, pieces, row_gradient, row_sums, short_buffers, spread_of, standardised


def channels(x):
    """x [N,C,*S] as [N,C,S], or as [N,C] where there is one place only: rows of one element would be slow."""
    n, c = x.shape[:2]
    s = x.size // (n * c) if n * c else 1
    return x.reshape(n, c) if s == 1 else x.reshape(n, c, s)


def along(v, x):
    """One value a channel, [C], so that it broadcasts over ``channels(x)``; None stays None."""
    return v if v is None or x.ndim == 2 else v[:, None]


def channel_sums(xp, x):
    """[C]: the sum over samples and places."""
    if x.ndim == 2:
        return column_sums(xp, x)
    return row_sums(xp, x.reshape(-1, x.shape[2])).reshape(x.shape[:2]).sum(0)


def _parts(xp, x):
    return pieces(xp, x.shape[0], x[:1].size)


def _kind(xp, x):
    return xp.dtype("f4") if x.dtype.itemsize == 2 else x.dtype


# ---- over the batch


def batch_moments(xp, x):
    """``(mean, var)`` [C] of each channel over samples and places; var is divided by their count and not one less."""
    x = channels(x)
    count = x.size // max(x.shape[1], 1)
    with short_buffers(xp, x.size):
        mean, var = (xp.zeros(x.shape[1], _kind(xp, x)) for _ in range(2))
        for part in _parts(xp, x):
            mean += channel_sums(xp, computed(xp, x[part]))
        mean /= count
        for part in _parts(xp, x):
            away = computed(xp, x[part]) - along(mean, x)
            var += channel_sums(xp, xp.multiply(away, away, out=away))
        var /= count
    return mean, var


def batch_forward(xp, x, w, b, mean, var, eps):
    """(x - mean) / sqrt(var + eps) * w + b, one value of each a channel."""
    shape, x = x.shape, channels(x)
    scale = 1 / xp.sqrt(var + eps)
    scale = scale if w is None else scale * w
    out = xp.empty(x.shape, x.dtype)
    with short_buffers(xp, x.size):
        for part in _parts(xp, x):
            y = xp.subtract(computed(xp, x[part]), along(mean, x))
            y *= along(scale, x)
            if b is not None:
                y += along(b, x)
            out[part] = y
    return out.reshape(shape)


def batch_backward(xp, g, x, w, mean, var, eps, needs, training):
    """The gradients of ``batch_forward`` by x, w and b; with ``training`` mean and var are functions of x.

    With h = (x - mean) * r, r = 1 / sqrt(var + eps), over the M values of a channel: db = sum of g, dw = sum of g * h,
    dx = w * r * (g - db / M - h * dw / M), or w * r * g.
    """
    shape, x, g = x.shape, channels(x), channels(g)
    count, r = x.size // max(x.shape[1], 1), 1 / xp.sqrt(var + eps)
    scale = r if w is None else r * w
    with short_buffers(xp, x.size):
        db, dw = _batch_sums(xp, g, x, mean, r, training or needs[1])
        if not needs[0]:
            return None, dw, db
        dx = xp.empty(x.shape, x.dtype)
        for part in _parts(xp, x):
            d = computed(xp, g[part]) * along(scale, x)
            if training and count:
                d -= along(scale * db / count, x)
                away = computed(xp, x[part]) - along(mean, x)
                away *= along(scale * r * dw / count, x)
                d -= away
            dx[part] = d
    return dx.reshape(shape), dw, db


def _batch_sums(xp, g, x, mean, r, products):
    """Sums over a channel of g and, with ``products``, of g * (x - mean) * r."""
    db, dw = (xp.zeros(x.shape[1], _kind(xp, x)) for _ in range(2))
    for part in _parts(xp, x):
        d = computed(xp, g[part])
        db += channel_sums(xp, d)
        if products:
            h = xp.subtract(computed(xp, x[part]), along(mean, x))
            dw += channel_sums(xp, xp.multiply(h, d, out=h))
    return db, dw * r


# ---- over groups of channels of a sample


def group_forward(xp, x, w, b, groups, eps):
    """``(out, mean, rstd)``: each group of channels of a sample standardised, then times w, plus b, one a channel."""
    shape, x = x.shape, channels(x)
    n, rows = x.shape[0], (-1, x[:1].size // groups)
    out = xp.empty(x.shape, x.dtype)
    mean, rstd = (xp.empty((n * groups, 1), _kind(xp, x)) for _ in range(2))
    if not x.size:
        mean[...], rstd[...] = 0, np.nan
        return out.reshape(shape), mean, rstd
    with short_buffers(xp, x.size):
        for part in _parts(xp, x):
            of = slice(part.start * groups, part.stop * groups)
            h, mean[of], rstd[of] = spread_of(xp, computed(xp, x[part]).reshape(rows), eps)
            h *= rstd[of]
            h = h.reshape(-1, *x.shape[1:])
            if w is not None:
                h *= along(w, x)
            if b is not None:
                h += along(b, x)
            out[part] = h
    return out.reshape(shape), mean, rstd


def group_backward(xp, g, x, w, groups, mean, rstd, needs):
    """The gradients of ``group_forward`` by x, w and b."""
    shape, x, g = x.shape, channels(x), channels(g)
    rows = (-1, x[:1].size // groups)
    dx = xp.zeros(x.shape, x.dtype)
    dw, db = (xp.zeros(x.shape[1], rstd.dtype) for _ in range(2))
    if not x.size:
        return dx.reshape(shape), dw, db
    with short_buffers(xp, x.size):
        for part in _parts(xp, x):
            of = slice(part.start * groups, part.stop * groups)
            d = computed(xp, g[part])
            h = standardised(xp, computed(xp, x[part]).reshape(rows), mean[of], rstd[of])
            if needs[2]:
                db += channel_sums(xp, d)
            if needs[1]:
                dw += channel_sums(xp, d * h.reshape(d.shape))
            if needs[0]:
                d = d if w is None else d * along(w, x)
                dx[part] = row_gradient(xp, d.reshape(rows), h, rstd[of]).reshape(d.shape)
    return dx.reshape(shape), dw, db
