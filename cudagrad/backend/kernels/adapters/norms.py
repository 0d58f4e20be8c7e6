"""The norms of a layer."""

import math

from ..launch import Unfit
from .common import fits, flat, like, sums


def _matrix(xp, a, shape):
    return xp.ascontiguousarray(a).reshape(-1, math.prod(shape))


def _normalised(run, xp, x, w, b, shape, eps, centre):
    fits("layer_norm", x, w, b)
    if w is not None and b is not None and w.dtype != b.dtype:
        raise Unfit(f"layer_norm: weight is {w.dtype} and bias {b.dtype}")
    rows = _matrix(xp, x, shape)
    y, rstd = xp.empty(rows.shape, x.dtype), xp.empty(len(rows), sums(x))
    mean = xp.empty(len(rows), sums(x)) if centre else None
    given = dict(w=flat(xp, w), b=flat(xp, b), mean=mean, rstd=rstd, eps=eps, centre=centre)
    run("layer_norm.cu", "layer_norm_forward", x=rows, y=y, **given)
    return y.reshape(x.shape), None if mean is None else mean[:, None], rstd[:, None]  # as the op's own text has them


def layer_norm(run, xp, x, w=None, b=None, *, shape, eps):
    return _normalised(run, xp, x, w, b, shape, eps, 1)


def rms_norm(run, xp, x, w=None, *, shape, eps):
    y, _, rstd = _normalised(run, xp, x, w, None, shape, eps, 0)
    return y, rstd


def _norm_gradients(run, xp, g, x, w, needs, shape, mean, rstd):
    """Gradients by x, w and b; None where ``needs`` says so."""
    fits("layer_norm", g, x, w)
    rows, grad, wide = _matrix(xp, x, shape), _matrix(xp, like(g, x), shape), sums(x)
    n, c = rows.shape
    dx = xp.empty(rows.shape, x.dtype) if needs[0] else None
    given = dict(g=grad, x=rows, w=flat(xp, w), mean=flat(xp, mean), rstd=flat(xp, rstd), dx=dx)
    stored = (lambda letters: xp.empty((2, letters["Q"], c), wide)) if needs[1] or needs[2] else None
    partial = run("layer_norm.cu", "layer_norm_backward", **given, partial=stored)["partial"]
    dw, db = (xp.empty(c, wide) if need else None for need in needs[1:])
    if partial is not None:
        run("layer_norm.cu", "layer_norm_columns", partial=partial, dw=dw, db=db)
    weight = x if w is None else w
    made = (None if d is None else d.reshape(shape).astype(weight.dtype, copy=False) for d in (dw, db))
    return None if dx is None else dx.reshape(x.shape), *made


def layer_norm_back(run, xp, g, x, w, needs, shape, mean, rstd):
    return _norm_gradients(run, xp, g, x, w, needs, shape, mean, rstd)


def rms_norm_back(run, xp, g, x, w, needs, shape, rstd):
    return _norm_gradients(run, xp, g, x, w, (*needs, False), shape, None, rstd)[:2]


FORWARD = {"layer_norm": layer_norm, "rms_norm": rms_norm}
FIRST_ORDER = {"layer_norm": layer_norm_back, "rms_norm": rms_norm_back}
