"""The norms of a layer."""

import math

from ..launch import Unfit
from .common import added_up, fits, flat, like, parts, sums


def _matrix(xp, a, shape):
    return xp.ascontiguousarray(a).reshape(-1, math.prod(shape))


def _normalised(run, xp, x, residual, w, b, shape, eps, centre):
    """y, mean and rstd as the texts of the ops have them, and the sum that was normalised, if there is one."""
    fits("layer_norm", x, residual, w, b)
    if w is not None and b is not None and w.dtype != b.dtype:
        raise Unfit(f"layer_norm: weight is {w.dtype} and bias {b.dtype}")
    rows = _matrix(xp, x, shape)
    y, rstd = xp.empty(rows.shape, x.dtype), xp.empty(len(rows), sums(x))
    mean = xp.empty(len(rows), sums(x)) if centre else None
    given = dict(w=flat(xp, w), b=flat(xp, b), mean=mean, rstd=rstd, eps=eps, centre=centre)
    if residual is not None:
        given.update(residual=_matrix(xp, residual, shape), s=xp.empty(rows.shape, x.dtype))
    run("layer_norm.cu", "layer_norm_forward", x=rows, y=y, **given)
    s = None if residual is None else given["s"].reshape(x.shape)
    return y.reshape(x.shape), None if mean is None else mean[:, None], rstd[:, None], s


def layer_norm(run, xp, x, w=None, b=None, *, shape, eps):
    return _normalised(run, xp, x, None, w, b, shape, eps, 1)[:3]


def rms_norm(run, xp, x, w=None, *, shape, eps):
    y, _, rstd, _ = _normalised(run, xp, x, None, w, None, shape, eps, 0)
    return y, rstd


def add_layer_norm(run, xp, x, residual, w=None, b=None, *, shape, eps):
    y, mean, rstd, s = _normalised(run, xp, x, residual, w, b, shape, eps, 1)
    return (y, s), mean, rstd


def add_rms_norm(run, xp, x, residual, w=None, *, shape, eps):
    y, _, rstd, s = _normalised(run, xp, x, residual, w, None, shape, eps, 0)
    return (y, s), rstd


def _norm_gradients(run, xp, g, x, w, needs, shape, mean, rstd, direct=None):
    """Gradients by x, w and b; None where ``needs`` says so. ``direct`` is what came to x itself, and is added."""
    fits("layer_norm", g, x, w, direct)
    rows, affine = _matrix(xp, x, shape), needs[1] or needs[2]
    stored = parts(xp, x, rows.shape[1], 2)
    given = dict(g=_matrix(xp, like(g, x), shape), x=rows, mean=flat(xp, mean), rstd=flat(xp, rstd))
    more = None if direct is None else _matrix(xp, like(direct, x), shape)
    dx = xp.empty(rows.shape, x.dtype) if needs[0] else None
    here = (lambda letters: stored(letters) if letters["K"] else None) if affine else None
    apart = dict(w=flat(xp, w), direct=more, dx=dx, partial=here)
    partial = run("layer_norm.cu", "layer_norm_backward", **given, **apart)["partial"]
    dx = None if dx is None else dx.reshape(x.shape)
    if not affine:
        return dx, None, None
    if partial is None:  # rows too long for registers
        partial = run("layer_norm.cu", "layer_norm_sums", **given, partial=stored)["partial"]
    partial = partial[slice(0 if needs[1] else 1, 2 if needs[2] else 1)]
    out = added_up(run, xp, partial, (x if w is None else w).dtype)
    return dx, out[0].reshape(shape) if needs[1] else None, out[-1].reshape(shape) if needs[2] else None


def layer_norm_back(run, xp, g, x, w, needs, shape, mean, rstd):
    return _norm_gradients(run, xp, g, x, w, needs, shape, mean, rstd)


def rms_norm_back(run, xp, g, x, w, needs, shape, rstd):
    return _norm_gradients(run, xp, g, x, w, (*needs, False), shape, None, rstd)[:2]


def add_layer_norm_back(run, xp, g, summed, w, needs, shape, mean, rstd):
    """Gradients by x, residual, w and b; ``g`` holds those of the norm and of the sum, one of which may be None."""
    dy, direct = g
    if dy is None:
        return direct, direct, None, None
    dx, dw, db = _norm_gradients(run, xp, dy, summed, w, (needs[0] or needs[1], *needs[2:]), shape, mean, rstd, direct)
    return dx, dx, dw, db


def add_rms_norm_back(run, xp, g, summed, w, needs, shape, rstd):
    return add_layer_norm_back(run, xp, g, summed, w, (*needs, False), shape, None, rstd)[:3]


FORWARD = {
    "layer_norm": layer_norm,
    "rms_norm": rms_norm,
    "add_layer_norm": add_layer_norm,
    "add_rms_norm": add_rms_norm,
}
FIRST_ORDER = {
    "layer_norm": layer_norm_back,
    "rms_norm": rms_norm_back,
    "add_layer_norm": add_layer_norm_back,
    "add_rms_norm": add_rms_norm_back,
}
