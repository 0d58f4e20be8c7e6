"""Dropout, its mask drawn in registers; alone, and between a bias and a residual."""

import math

from .common import added_up, fits, flat, parts


def _drawing(p, seed, offset, scale):
    """The arguments of the kernels that say what is dropped."""
    return dict(limit=round(p * 65536), scale=scale, seed=seed, offset=offset)


def dropped(run, xp, x, *, p, seed, offset, scale, dims):
    fits("dropout", x)
    given = flat(xp, x)
    y = xp.empty(given.shape, x.dtype)
    per = 1 if dims is None else math.prod(x.shape[dims:])
    run("dropout.cu", "dropped", x=given, y=y, per=per, **_drawing(p, seed, offset, scale))
    return y.reshape(x.shape)


def bias_dropped_added(run, xp, x, b=None, residual=None, *, p, seed, offset, scale):
    fits("bias_dropout_add", x, b, residual)
    given = dict(x=flat(xp, x), b=flat(xp, b), residual=flat(xp, residual))
    y = xp.empty(x.size, x.dtype)
    run(
        "dropout.cu",
        "bias_dropped_added",
        **given,
        y=y,
        C=1 if b is None else b.size,
        **_drawing(p, seed, offset, scale),
    )
    return y.reshape(x.shape)


def bias_dropped_added_back(run, xp, m, g, x_shape, needs, p, seed, offset, scale):
    fits("bias_dropout_add", g)
    dx = db = None
    if needs[1]:
        rows = xp.ascontiguousarray(g).reshape(-1, x_shape[-1])
        dx = xp.empty(rows.shape, g.dtype) if p and needs[0] else None
        drawing = _drawing(p, seed, offset, scale)
        given = dict(g=rows, dx=dx, partial=parts(xp, g, rows.shape[1]))
        partial = run("dropout.cu", "dropped_backward", **given, **drawing)["partial"]
        dx, db = None if dx is None else dx.reshape(x_shape), added_up(run, xp, partial[None], g.dtype)[0]
    elif p and needs[0]:
        dx = dropped(run, xp, g, p=p, seed=seed, offset=offset, scale=scale, dims=None)
    return dx if p else g, db, g


FORWARD = {"dropped": dropped, "bias_dropped_added": bias_dropped_added}
FIRST_ORDER = {"bias_dropped_added": bias_dropped_added_back}
