"""softmax, log_softmax and logsumexp along any dim."""

import math

from ..launch import Unfit
from .common import Lines, fits, like


def _softmax(log):
    def softmax(run, xp, x, *, dim):
        fits("softmax", x)
        lines = Lines(xp, x, dim)
        rows = lines.of(x)
        y = xp.empty(rows.shape, x.dtype)
        run("softmax.cu", "softmax_forward", x=rows, g=None, y=y, log=log)
        return xp.ascontiguousarray(lines.back(y, x.shape)).reshape(x.shape)

    return softmax


def _softmax_back(log):
    def softmax_back(run, xp, g, out, dim):
        fits("softmax", g)
        lines = Lines(xp, out, dim)
        y = lines.of(out)
        dx = xp.empty(y.shape, y.dtype)
        run("softmax.cu", "softmax_backward", g=lines.of(like(g, out)), y=y, dx=dx, log=log)
        return (lines.back(dx, out.shape),)

    return softmax_back


def _over(xp, x, dim):
    """``(dims, lines, x)`` of a reduction: the dims it is over, which must be neighbours, and x with those made one."""
    fits("logsumexp", x)
    dims = tuple(range(x.ndim)) if dim is None or not x.ndim else dim
    first, last = (dims[0], dims[-1] + 1) if dims else (0, 0)
    if dims != tuple(range(first, last)):
        raise Unfit(f"logsumexp: dims {dims} are no neighbours")
    x = x.reshape(*x.shape[:first], math.prod(x.shape[first:last]), *x.shape[last:])
    return dims, Lines(xp, x, first), x


def logsumexp(run, xp, x, *, dim, keepdim):
    dims, lines, joined = _over(xp, x, dim)
    rows = lines.of(joined)
    y = xp.empty((rows.shape[0], rows.shape[2]), x.dtype)
    run("softmax.cu", "logsumexp_forward", x=rows, y=y)
    return y.reshape([1 if d in dims else n for d, n in enumerate(x.shape) if keepdim or d not in dims])


def logsumexp_back(run, xp, m, g, x, out, x_shape, dim, keepdim):
    """g * softmax(x): not from ``out``, which a half type has rounded."""
    _, lines, joined = _over(xp, x, dim)
    rows = lines.of(joined)
    dx = xp.empty(rows.shape, x.dtype)
    upper = xp.ascontiguousarray(like(g, x)).reshape(rows.shape[0], rows.shape[2])
    run("softmax.cu", "softmax_forward", x=rows, g=upper, y=dx, log=0)
    return (lines.back(dx, joined.shape).reshape(x.shape),)


FORWARD = {"softmax": _softmax(0), "log_softmax": _softmax(1), "logsumexp": logsumexp}
FIRST_ORDER = {"softmax": _softmax_back(0), "log_softmax": _softmax_back(1), "logsumexp": logsumexp_back}
