"""Which kernel serves an op: the op's arguments made the kernel's, and the op's own text where no kernel can serve."""

import contextlib
import functools
import math
import threading

import numpy as np

from .. import config
from .kernels_launch import Unfit

# Op -> the function that runs its forward, or its first-order rule, by kernels. They take what the op's own functions
# take, behind ``run(file, entry, **arguments)``, which launches on the device of the arrays. At the end of this file.
FORWARD, FIRST_ORDER = {}, {}


def with_kernel(table, op, text, xp, run):
    """``text`` with the kernel of ``table`` for ``op`` before it; ``text`` itself where there is none."""
    kernel = table.get(op.name)
    if kernel is None:
        return text

    @functools.wraps(kernel)
    def served(*arrays, **options):
        try:
            return kernel(_noted(op, run), xp, *arrays, **options)
        except Unfit as reason:
            if _notes.list is not None:
                _notes.list.append((op.name, None, str(reason)))
            if config.STRICT and not _nothing(arrays):
                raise RuntimeError(f"CUDAGRAD_STRICT: {op.name} ran without its kernel: {reason}") from None
            return text(*arrays, **options)

    return served


class _Notes(threading.local):
    list = None


_notes = _Notes()


@contextlib.contextmanager
def noting():
    """Within, a list of what serves the ops that have kernels: (op, "file entry", None), or (op, None, why not)."""
    before, _notes.list = _notes.list, []
    try:
        yield _notes.list
    finally:
        _notes.list = before


def _noted(op, run):
    notes = _notes.list
    if notes is None:
        return run

    def noted(file, entry, **given):
        notes.append((op.name, f"{file} {entry}", None))
        return run(file, entry, **given)

    return noted


def _nothing(arrays):
    """Whether a call has no elements: there is nothing to launch, and the text is not slower."""
    return any(hasattr(a, "size") and a.size == 0 for a in arrays)


FLOATS = {np.dtype(name) for name in ("f2", "f4", "f8")}


def _is_float(a):
    return a.dtype in FLOATS or a.dtype.name == "bfloat16"


def _fits(name, *arrays):
    """Unfit where there is nothing to compute or a dtype no kernel is made for."""
    for a in arrays:
        if a is not None and not _is_float(a):
            raise Unfit(f"{name}: no kernel computes with {a.dtype}")
        if a is not None and not a.size:
            raise Unfit(f"{name}: there are no elements")


def _like(g, x):
    """A gradient in the dtype of ``x``: NumPy makes float32 of a half type times a number."""
    return g.astype(x.dtype, copy=False)


def _sums(x):
    """The dtype that sums of ``x`` are made in."""
    return np.dtype("f8") if x.dtype == np.dtype("f8") else np.dtype("f4")


# ---- rows along one dim


def _lines(xp, a, dim):
    """``a`` as a matrix whose rows lie along ``dim``."""
    a = xp.moveaxis(a, dim, -1) if a.ndim else a.reshape(1, 1)
    return xp.ascontiguousarray(a).reshape(-1, a.shape[-1])


def _unlined(xp, rows, shape, dim):
    """The array of ``shape`` whose rows along ``dim`` are ``rows``."""
    if not shape:
        return rows.reshape(shape)
    moved = (*shape[:dim], *shape[dim + 1 :], shape[dim])
    return xp.ascontiguousarray(xp.moveaxis(rows.reshape(moved), -1, dim))


def _softmax(log):
    def softmax(run, xp, x, *, dim):
        _fits("softmax", x)
        rows = _lines(xp, x, dim)
        y = xp.empty(rows.shape, x.dtype)
        run("softmax.cu", "softmax_forward", x=rows, y=y, log=log)
        return _unlined(xp, y, x.shape, dim)

    return softmax


def _softmax_back(log):
    def softmax_back(run, xp, g, out, dim):
        _fits("softmax", g)
        y = _lines(xp, out, dim)
        dx = xp.empty(y.shape, y.dtype)
        run("softmax.cu", "softmax_backward", g=_lines(xp, _like(g, y), dim), y=y, dx=dx, log=log)
        return (_unlined(xp, dx, out.shape, dim),)

    return softmax_back


# ---- dropout


def dropped(run, xp, x, *, p, seed, offset, scale, dims):
    _fits("dropout", x)
    flat = xp.ascontiguousarray(x).reshape(-1)
    y = xp.empty(flat.shape, x.dtype)
    per = 1 if dims is None else math.prod(x.shape[dims:])
    given = dict(per=per, limit=round(p * 65536), scale=scale, seed=seed, offset=offset)
    run("dropout.cu", "dropped", x=flat, y=y, **given)
    return y.reshape(x.shape)


# ---- norms of a layer


def _flat(xp, a):
    return None if a is None else xp.ascontiguousarray(a).reshape(-1)


def _matrix(xp, a, shape):
    return xp.ascontiguousarray(a).reshape(-1, math.prod(shape))


def _normalised(run, xp, x, w, b, shape, eps, centre):
    _fits("layer_norm", x, w, b)
    if w is not None and b is not None and w.dtype != b.dtype:
        raise Unfit(f"layer_norm: weight is {w.dtype} and bias {b.dtype}")
    rows = _matrix(xp, x, shape)
    y, rstd = xp.empty(rows.shape, x.dtype), xp.empty(len(rows), _sums(x))
    mean = xp.empty(len(rows), _sums(x)) if centre else None
    given = dict(w=_flat(xp, w), b=_flat(xp, b), mean=mean, rstd=rstd, eps=eps, centre=centre)
    run("layer_norm.cu", "layer_norm_forward", x=rows, y=y, **given)
    return y.reshape(x.shape), None if mean is None else mean[:, None], rstd[:, None]  # as the op's own text has them


def layer_norm(run, xp, x, w=None, b=None, *, shape, eps):
    return _normalised(run, xp, x, w, b, shape, eps, 1)


def rms_norm(run, xp, x, w=None, *, shape, eps):
    y, _, rstd = _normalised(run, xp, x, w, None, shape, eps, 0)
    return y, rstd


def _norm_gradients(run, xp, g, x, w, needs, shape, mean, rstd):
    """Gradients by x, w and b; None where ``needs`` says so."""
    _fits("layer_norm", g, x, w)
    rows, grad, sums = _matrix(xp, x, shape), _matrix(xp, _like(g, x), shape), _sums(x)
    n, c = rows.shape
    dx = xp.empty(rows.shape, x.dtype) if needs[0] else None
    given = dict(g=grad, x=rows, w=_flat(xp, w), mean=_flat(xp, mean), rstd=_flat(xp, rstd), dx=dx)
    stored = (lambda letters: xp.empty((2, letters["Q"], c), sums)) if needs[1] or needs[2] else None
    partial = run("layer_norm.cu", "layer_norm_backward", **given, partial=stored)["partial"]
    dw, db = (xp.empty(c, sums) if need else None for need in needs[1:])
    if partial is not None:
        run("layer_norm.cu", "layer_norm_columns", partial=partial, dw=dw, db=db)
    like = x if w is None else w
    made = (None if d is None else d.reshape(shape).astype(like.dtype, copy=False) for d in (dw, db))
    return None if dx is None else dx.reshape(x.shape), *made


def layer_norm_back(run, xp, g, x, w, needs, shape, mean, rstd):
    return _norm_gradients(run, xp, g, x, w, needs, shape, mean, rstd)


def rms_norm_back(run, xp, g, x, w, needs, shape, rstd):
    return _norm_gradients(run, xp, g, x, w, (*needs, False), shape, None, rstd)[:2]


FORWARD.update(softmax=_softmax(0), log_softmax=_softmax(1), layer_norm=layer_norm, rms_norm=rms_norm)
FORWARD.update(dropped=dropped)
FIRST_ORDER.update(softmax=_softmax_back(0), log_softmax=_softmax_back(1))
FIRST_ORDER.update(layer_norm=layer_norm_back, rms_norm=rms_norm_back)
