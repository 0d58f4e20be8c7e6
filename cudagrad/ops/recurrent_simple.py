"""One direction of one simple recurrent layer as one node."""

from ..core.op import op
from .recurrent_steps import by_ones, gradients, half, narrowed, spans, start_of, turned, widened


class _Tanh:
    """The cell h' = tanh(z) in formulas that run on arrays and on Tensors."""

    @staticmethod
    def step(m, zx, zh, h, c):
        new = m.tanh(zx + zh)
        return new, None, (new,)

    @staticmethod
    def back(m, d, dc, new):
        dz = d - d * new * new
        return dz, dz, None, None


class _Relu:
    """The cell h' = max(z, 0)."""

    @staticmethod
    def step(m, zx, zh, h, c):
        z = zx + zh
        new = z * (z > 0)
        return new, None, (new,)

    @staticmethod
    def back(m, d, dc, new):
        dz = d * (new > 0)
        return dz, dz, None, None


def _joint(m, g, x, h, w_ih, w_hh, b_ih, b_hh, sizes, reverse, relu):
    cell = _Relu if relu else _Tanh
    found = gradients(m, g, cell, x, h, None, w_ih, w_hh, b_ih, b_hh, None, sizes, reverse)
    return found[:2] + found[3:7]


def _forward(xp, x, h, w_ih, w_hh, b_ih, b_hh, sizes, reverse, relu):
    """The outputs, and by row the state before the step and after it."""
    out = x.dot(w_ih.T)
    if b_ih is not None:
        out += b_ih + b_hh
    before = xp.empty_like(out)
    h, w_hh = h.copy(), turned(xp, w_hh, sizes)
    for start, count in spans(sizes, reverse):
        at, top = slice(start, start + count), slice(count)
        before[at] = h[top]
        z = out[at]
        z += h[top].dot(w_hh)
        if relu:
            xp.maximum(z, 0, out=z)
        else:
            xp.tanh(z, out=z)
        h[top] = z
    return (out, h), before, out.copy()  # a user may write into the output


def _fused(xp, g, x, h, w_ih, w_hh, b_ih, b_hh, needs, sizes, reverse, relu, before, after):
    dtype = x.dtype
    x, h, w_ih, w_hh, *g = widened(x, h, w_ih, w_hh, *g)
    g_out, g_h = g
    dz = (after > 0).astype(after.dtype) if relu else 1 - after * after
    dh = start_of(xp, g_h, h)
    for start, count in reversed(spans(sizes, reverse)):
        at, top = slice(start, start + count), slice(count)
        d = dh[top]
        if g_out is not None:
            d += g_out[at]
        z = dz[at]
        z *= d
        dh[top] = z.dot(w_hh)
    bias = by_ones(xp, dz) if b_ih is not None else None
    return narrowed(
        dtype,
        (
            dz.dot(w_ih) if needs[0] else None,
            dh,
            dz.T.dot(x) if needs[2] else None,
            dz.T.dot(before) if needs[3] else None,
            bias,
            bias,
        ),
    )


@op(joint=_joint, fused=_fused, outputs=2, extras=("before", "after"), node="Rnn")
def rnn_layer(xp, x, h, w_ih, w_hh, b_ih=None, b_hh=None, *, sizes, reverse=False, relu=False):
    """``(out, h_n)``: the outputs of all steps and the last state of one direction of a recurrent layer.

    h' = tanh(x w_ih^T + b_ih + h w_hh^T + b_hh), or with ``relu`` the positive part of it.

    Shapes      x [N,I], N = sum of sizes; h [B,H]; w_ih [H,I]; w_hh [H,H]; b_ih, b_hh [H]
    Dtypes      all the same; float16 and bfloat16 are computed in float32
    Source      Elman 1990, Finding structure in time
    """
    dtype = x.dtype
    if half(x):
        x, h, w_ih, w_hh, b_ih, b_hh = widened(x, h, w_ih, w_hh, b_ih, b_hh)
    outputs, *kept = _forward(xp, x, h, w_ih, w_hh, b_ih, b_hh, sizes, reverse, relu)
    return narrowed(dtype, outputs), *kept
