"""softmax and log_softmax along any dim."""

from .common import fits, like


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
        fits("softmax", x)
        rows = _lines(xp, x, dim)
        y = xp.empty(rows.shape, x.dtype)
        run("softmax.cu", "softmax_forward", x=rows, y=y, log=log)
        return _unlined(xp, y, x.shape, dim)

    return softmax


def _softmax_back(log):
    def softmax_back(run, xp, g, out, dim):
        fits("softmax", g)
        y = _lines(xp, out, dim)
        dx = xp.empty(y.shape, y.dtype)
        run("softmax.cu", "softmax_backward", g=_lines(xp, like(g, y), dim), y=y, dx=dx, log=log)
        return (_unlined(xp, dx, out.shape, dim),)

    return softmax_back


FORWARD = {"softmax": _softmax(0), "log_softmax": _softmax(1)}
FIRST_ORDER = {"softmax": _softmax_back(0), "log_softmax": _softmax_back(1)}
