"""One direction of one LSTM layer as one node."""

from ..core.op import op
from .recurrent_steps import by_ones, columns, gradients, half, joined, narrowed, spans, start_of, turned, widened


class _Cell:
    """The LSTM cell in formulas that run on arrays and on Tensors."""

    @staticmethod
    def step(m, zx, zh, h, c):
        """i, f, o = sigmoid, u = tanh of z; c' = f c + i u; h' = o tanh(c')."""
        i, f, u, o = columns(m, zx + zh, 4)
        i, f, u, o = m.sigmoid(i), m.sigmoid(f), m.tanh(u), m.sigmoid(o)
        new = f * c + i * u
        t = m.tanh(new)
        return o * t, new, (c, i, f, u, o, t)

    @staticmethod
    def back(m, d, dc, c, i, f, u, o, t):
        dc = dc + d * o * (1 - t * t)
        by_gate = [dc * u * i * (1 - i), dc * c * f * (1 - f), dc * i * (1 - u * u), d * t * o * (1 - o)]
        dz = joined(m, by_gate, 1)
        return dz, dz, None, dc * f


def _joint(m, g, x, h, c, w_ih, w_hh, b_ih, b_hh, w_hr, sizes, reverse):
    return gradients(m, g, _Cell, x, h, c, w_ih, w_hh, b_ih, b_hh, w_hr, sizes, reverse)


def _forward(xp, x, h, c, w_ih, w_hh, b_ih, b_hh, w_hr, sizes, reverse):
    """The outputs, and by row: the gates, the state and the cell before the step, tanh of the cell after it."""
    n, width = x.shape[0], c.shape[1]
    # sigmoid(z) = (1 + tanh(z / 2)) / 2: one tanh serves all four gates. Whole arrays of factors take 4 us a step
    # (32 x 512), where two numbers on two slices take 18.
    factor = xp.full((c.shape[0], 4 * width), 0.5, x.dtype)
    factor[:, 2 * width : 3 * width] = 1
    shift = 1 - factor
    w_hh = turned(xp, w_hh, sizes)
    gates = x.dot(w_ih.T)
    if b_ih is not None:
        gates += b_ih + b_hh
    before, cells, tanh_c = (xp.empty((n, k), x.dtype) for k in (h.shape[1], width, width))
    out = xp.empty((n, h.shape[1]), x.dtype)
    h, c = h.copy(), c.copy()
    for start, count in spans(sizes, reverse):
        at, top = slice(start, start + count), slice(count)
        before[at], cells[at] = h[top], c[top]
        z = gates[at]
        z += h[top].dot(w_hh)
        z *= factor[top]
        xp.tanh(z, out=z)
        z *= factor[top]
        z += shift[top]
        new = z[:, width : 2 * width] * c[top]
        new += z[:, :width] * z[:, 2 * width : 3 * width]
        c[top] = new
        t = xp.tanh(new, out=tanh_c[at])
        hidden = z[:, 3 * width :] * t
        out[at] = hidden if w_hr is None else hidden.dot(w_hr.T)
        h[top] = out[at]
    return (out, h, c), gates, before, cells, tanh_c


def _fused(xp, g, x, c, w_ih, w_hh, b_ih, b_hh, w_hr, needs, sizes, reverse, gates, before, cells, tanh_c):
    """The gradients from what the forward kept. What does not depend on the incoming gradient is made for all steps
    at once: d gates / d cell (of the last gate: d gate / d output), which then lies where dz comes."""
    dtype, width = x.dtype, cells.shape[1]
    x, c, w_ih, w_hh, w_hr, *g = widened(x, c, w_ih, w_hh, w_hr, *g)
    g_out, g_h, g_c = g
    i, f, u, o = (gates[:, k * width : (k + 1) * width] for k in range(4))
    dz = xp.empty_like(gates)
    xp.multiply(u, i * (1 - i), out=dz[:, :width])
    xp.multiply(cells, f * (1 - f), out=dz[:, width : 2 * width])
    xp.multiply(i, 1 - u * u, out=dz[:, 2 * width : 3 * width])
    xp.multiply(tanh_c, o * (1 - o), out=dz[:, 3 * width :])
    through_c = o * (1 - tanh_c * tanh_c)
    dh, dc = start_of(xp, g_h, before[: c.shape[0]]), start_of(xp, g_c, c)
    incoming = xp.empty((c.shape[0], 4, width), dz.dtype)  # beside each gate: one product, 8 us for 15 of two
    d_out = None if w_hr is None else xp.empty_like(before)
    for start, count in reversed(spans(sizes, reverse)):
        at, top = slice(start, start + count), slice(count)
        d, dc_top, by_gate = dh[top], dc[top], incoming[top]
        if g_out is not None:
            d += g_out[at]
        if w_hr is not None:
            d_out[at] = d
            d = d.dot(w_hr)
        dc_top += d * through_c[at]
        by_gate[:, :3] = dc_top[:, None]
        by_gate[:, 3] = d
        z = dz[at]
        z *= by_gate.reshape(count, 4 * width)
        xp.dot(z, w_hh, out=dh[top])
        dc_top *= f[at]
    bias = by_ones(xp, dz) if b_ih is not None else None
    return narrowed(
        dtype,
        (
            dz.dot(w_ih) if needs[0] else None,
            dh,
            dc,
            dz.T.dot(x) if needs[3] else None,
            dz.T.dot(before) if needs[4] else None,
            bias,
            bias,
            None if w_hr is None else d_out.T.dot(o * tanh_c),
        ),
    )


@op(joint=_joint, fused=_fused, outputs=3, extras=("gates", "before", "cells", "tanh_c"), node="Lstm")
def lstm_layer(xp, x, h, c, w_ih, w_hh, b_ih=None, b_hh=None, w_hr=None, *, sizes, reverse=False):
    """``(out, h_n, c_n)``: the outputs of all steps and the last state of one direction of an LSTM layer.

    i, f, o = sigmoid, u = tanh of x w_ih^T + b_ih + h w_hh^T + b_hh (in the order i, f, u, o); c' = f c + i u;
    h' = o tanh(c'), times w_hr^T where there is one.

    Shapes      x [N,I], N = sum of sizes; h [B,P]; c [B,H]; w_ih [4H,I]; w_hh [4H,P]; b_ih, b_hh [4H]; w_hr [P,H]
    Dtypes      all the same; float16 and bfloat16 are computed in float32
    Source      Hochreiter & Schmidhuber 1997; Gers et al. 2000; projection: Sak et al. 2014, arXiv:1402.1128
    """
    dtype = x.dtype
    if half(x):
        x, h, c, w_ih, w_hh, b_ih, b_hh, w_hr = widened(x, h, c, w_ih, w_hh, b_ih, b_hh, w_hr)
    outputs, *kept = _forward(xp, x, h, c, w_ih, w_hh, b_ih, b_hh, w_hr, sizes, reverse)
    return narrowed(dtype, outputs), *kept
