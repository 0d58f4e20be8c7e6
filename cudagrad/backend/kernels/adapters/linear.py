"""Products of matrices: linear maps with their bias and activation, and gradients."""

import math

from .... import config
from ... import adds_up_in_float32
from ..launch import Rather, Unfit
from .common import added_up, fits, is_float, like, parts, sums

ACTS = {"none": 0, "relu": 1, "gelu": 2, "gelu_tanh": 3, "silu": 4}  # as linear.cuh numbers them
FEW = 16  # rows that linear_rows takes


def ours(m, n, c, itemsize, ending, few):
    """Whether a kernel of ours is to make a product of [m,c] by [c,n], and not the library.

    ``config.MATMUL`` says "own" or "library", or "auto", which is ours where it is made of ``few`` rows, so that all is
    in reading the other matrix once; or where an ``ending`` (bias, activation) spares a pass over the result that costs
    more than a tuned library gains: up to 10^9 operations, which launches outweigh, or short sums, of 1 KiB a row.
    Those two figures are an estimate from an H200's data sheet.
    """
    if config.MATMUL != "auto":
        return config.MATMUL == "own"
    return few or (ending and (2 * m * n * c <= 1e9 or c * itemsize <= 1024))


def _stored(xp, a, prefer=False):
    """A batch of matrices as it lies in memory, and whether it lies there with rows and columns exchanged.

    Vectors lie both ways, and then as ``prefer`` says.
    """
    turned = a.swapaxes(-1, -2)
    if turned.flags.c_contiguous and (prefer or not a.flags.c_contiguous):
        return turned, True
    return xp.ascontiguousarray(a), False


def _product(run, xp, a, b, bias=None, act="none", keep=False):
    """f(a @ b + bias) of [Z,M,C] by [Z,C,N]; beside it what f takes where ``keep``, else None."""
    (z, m, c), n = a.shape, b.shape[2]
    a, a_turned = _stored(xp, a)
    b, b_turned = _stored(xp, b, prefer=True)
    few = z == 1 and m <= FEW and b_turned and not a_turned
    ending = bias is not None or act != "none"
    if not ours(z * m, n, c, a.dtype.itemsize, ending, few):
        if not ending:
            raise Rather(f"a product of [{m},{c}] by [{c},{n}] is the library's (CUDAGRAD_MATMUL={config.MATMUL})")
        return _ended(run, xp, _of_library(a, a_turned, b, b_turned), bias, act, keep)
    if a_turned and b_turned:
        a, a_turned = xp.ascontiguousarray(a.swapaxes(1, 2)), False
    y = xp.empty((z, m, n), a.dtype)
    given = dict(bias=bias, act=ACTS[act])
    if few:
        given.update(x=a[0], w=b[0], y=y[0], pre=xp.empty((m, n), a.dtype) if keep else None)
        made = run("linear_rows.cu", "linear_rows", **given, partial=_parts(xp, a, m, n))
    else:
        entry = "linear_float" if a.dtype.itemsize > 2 else "linear_tensor"
        given.update(a=a, b=b, y=y, pre=xp.empty(y.shape, a.dtype) if keep else None)
        given.update(layout=2 if a_turned else 0 if b_turned else 1)
        made = run(f"{entry}.cu", entry, **given, partial=_parts(xp, a, m, n, z))
    pre, partial = made["pre"], made["partial"]
    if partial is not None:
        ends = dict(bias=bias, y=y, pre=None if pre is None else pre.reshape(y.shape), act=ACTS[act])
        run("linear_total.cu", "linear_total", partial=partial.reshape(z, -1, m, n), **ends)
    return y, pre


def _of_library(a, a_turned, b, b_turned):
    """a @ b of one batch by the library; of half types, where it does not add up in float32, by way of that."""
    a, b = a[0].T if a_turned else a[0], b[0].T if b_turned else b[0]
    if a.dtype.itemsize == 2 and not adds_up_in_float32(a):
        return a.astype("f4").dot(b.astype("f4")).astype(a.dtype)
    return a.dot(b)


def _ended(run, xp, y, bias, act, keep):
    """What ``_product`` gives, of the product ``y``."""
    pre = xp.empty(y.shape, y.dtype) if keep else None
    run("linear_total.cu", "linear_ending", y=y, bias=bias, pre=pre, act=ACTS[act])
    return y[None], pre


def _parts(xp, a, m, n, *batch):
    """What makes the array of a product's partial sums: None where the kernel's letters say that there is one part."""
    return lambda letters: xp.empty((*batch, letters["X"], m, n), sums(a)) if letters["X"] > 1 else None


# ---- forwards


def _linear(run, xp, x, w, b, act="none", keep=False):
    """(out, what the activation takes) of a linear map."""
    if not x.ndim or w.ndim not in (1, 2) or x.shape[-1] != w.shape[-1]:
        raise Rather("shapes do not fit")
    _check_operands(x, w)
    matrix = w if w.ndim == 2 else w[None]
    n, k = matrix.shape
    shape = (*x.shape[:-1], n) if w.ndim == 2 else x.shape[:-1]
    bias = None if b is None else _bias(xp, b, n, x.dtype)
    y, pre = _product(run, xp, x.reshape(1, -1, k), matrix.T[None], bias, act, keep)
    return y.reshape(shape), None if pre is None else pre.reshape(shape)


def _bias(xp, b, n, dtype):
    """A bias as [N]."""
    if b.dtype != dtype or math.prod(b.shape[:-1]) != 1 or b.size not in (1, n):
        raise Rather(f"linear: a bias {b.shape} of {b.dtype} is not one of {n} columns")
    return xp.ascontiguousarray(b if b.shape == (n,) else xp.broadcast_to(b.reshape(-1), (n,)))


def linear(run, xp, x, w, b=None):
    return _linear(run, xp, x, w, b)[0]


def linear_relu(run, xp, x, w, b=None):
    return _linear(run, xp, x, w, b, "relu")[0]


def linear_smooth(run, xp, x, w, b=None, *, act, keep):
    return _linear(run, xp, x, w, b, act, keep)


def _check_operands(x, y):
    if x.dtype != y.dtype or not is_float(x):
        raise Rather(f"no kernel multiplies {x.dtype} by {y.dtype}")
    if not (x.size and y.size):
        raise Rather("there are no elements")


def _matrices(x, y, ndim):
    if x.ndim != ndim or y.ndim != ndim or x.shape[:-2] != y.shape[:-2] or x.shape[-1] != y.shape[-2]:
        raise Rather("shapes do not fit")
    _check_operands(x, y)


def _mm(x_turned, y_turned):
    def mm(run, xp, x, y):
        x, y = x.T if x_turned else x, y.T if y_turned else y
        _matrices(x, y, 2)
        return _product(run, xp, x[None], y[None])[0][0]

    return mm


def mm(run, xp, x, mat2):
    return _mm(False, False)(run, xp, x, mat2)


def bmm(run, xp, x, mat2):
    _matrices(x, mat2, 3)
    return _product(run, xp, x, mat2)[0]


def matmul(run, xp, x, y):
    if x.ndim < 2 or y.ndim < 2 or x.shape[-1] != y.shape[-2] or y.shape[:-2] not in ((), x.shape[:-2]):
        raise Rather("a vector, batches that are spread, or shapes that do not fit")
    _check_operands(x, y)
    (m, k), n = x.shape[-2:], y.shape[-1]
    x3 = x if y.ndim == 3 else x.reshape((-1, m, k) if y.ndim > 3 else (1, -1, k))
    y3 = y if y.ndim == 3 else y.reshape(-1, k, n)
    return _product(run, xp, x3, y3)[0].reshape(*x.shape[:-1], n)


# ---- gradients


def _columns(run, xp, g, s, dz, act="none"):
    """Write g times the activation's slope into ``dz`` where it is given; the sums of its columns, by two kernels."""
    given = dict(g=g, s=s, dz=dz, partial=parts(xp, g, g.shape[1]), act=ACTS[act])
    partial = run("linear_backward.cu", "linear_backward", **given)["partial"]
    return added_up(run, xp, partial[None], g.dtype)[0]


def column_sum(run, xp, x):
    fits("column_sum", x)
    return _columns(run, xp, xp.ascontiguousarray(x), None, None)


def _back(run, xp, m, g, s, x, w, b_shape, needs, act):
    """The gradients by x, w and b behind an activation ``act`` with ``s`` its result (relu) or argument."""
    fits("linear", g, x, w)
    matrix = w if w.ndim == 2 else w[None]
    n, k = matrix.shape
    if needs[2] and math.prod(b_shape) != n:
        raise Rather(f"linear: a bias {b_shape} was spread over {n} columns")
    g, s = (xp.ascontiguousarray(a).reshape(-1, n) for a in (like(g, s), s))
    dz, db = xp.empty(g.shape, g.dtype), None
    if needs[2]:
        db = _columns(run, xp, g, s, dz, act).reshape(b_shape)
    else:
        run("linear_backward.cu", "linear_backward", g=g, s=s, dz=dz, partial=None, act=ACTS[act])
    dx = m.mm(dz, matrix).reshape(x.shape) if needs[0] else None
    return dx, m.mm_tn(dz, x.reshape(-1, k)).reshape(w.shape) if needs[1] else None, db


def linear_relu_back(run, xp, m, g, x, w, out, b_shape, needs):
    return _back(run, xp, m, g, out, x, w, b_shape, needs, "relu")


def linear_smooth_back(run, xp, m, g, x, w, b, b_shape, needs, act, pre):
    if pre is None:
        raise Unfit("linear: the argument of the activation was not kept")
    return _back(run, xp, m, g, pre, x, w, b_shape, needs, act)


FORWARD = {"linear": linear, "linear_relu": linear_relu, "linear_smooth": linear_smooth, "column_sum": column_sum}
FORWARD |= {"mm": mm, "mm_nt": _mm(False, True), "mm_tn": _mm(True, False), "bmm": bmm, "matmul": matmul}
FIRST_ORDER = {"linear_relu": linear_relu_back, "linear_smooth": linear_smooth_back}
