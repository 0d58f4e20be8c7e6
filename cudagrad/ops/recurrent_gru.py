"""One direction of one GRU layer as one node."""

from ..core.op import op
from .recurrent_steps import by_ones, columns, gradients, half, joined, narrowed, spans, start_of, turned, widened


class _Cell:
    """The GRU cell in formulas that run on arrays and on Tensors."""

    @staticmethod
    def step(m, zx, zh, h, c):
        """r, u = sigmoid(zx + zh); n = tanh(zx + r zh); h' = (1 - u) n + u h."""
        (rx, ux, nx), (rh, uh, nh) = columns(m, zx, 3), columns(m, zh, 3)
        r, u = m.sigmoid(rx + rh), m.sigmoid(ux + uh)
        n = m.tanh(nx + r * nh)
        return n + u * (h - n), None, (h, nh, r, u, n)

    @staticmethod
    def back(m, d, dc, h, nh, r, u, n):
        dn = d * (1 - u) * (1 - n * n)
        du = d * (h - n) * u * (1 - u)
        dr = dn * nh * r * (1 - r)
        return joined(m, [dr, du, dn], 1), joined(m, [dr, du, dn * r], 1), d * u, None


def _joint(m, g, x, h, w_ih, w_hh, b_ih, b_hh, sizes, reverse):
    found = gradients(m, g, _Cell, x, h, None, w_ih, w_hh, b_ih, b_hh, None, sizes, reverse)
    return found[:2] + found[3:7]


def _forward(xp, x, h, w_ih, w_hh, b_ih, b_hh, sizes, reverse):
    """The outputs, and by row: the gates r, u, n, the state before the step, and its part of the new gate."""
    n, width = x.shape[0], h.shape[1]
    w_hh = turned(xp, w_hh, sizes)
    gates = x.dot(w_ih.T)
    if b_ih is not None:
        gates += b_ih
    out, before, new_h = (xp.empty((n, width), x.dtype) for _ in range(3))
    h = h.copy()
    for start, count in spans(sizes, reverse):
        at, top = slice(start, start + count), slice(count)
        before[at] = h[top]
        z, zh = gates[at], h[top].dot(w_hh)
        if b_hh is not None:
            zh += b_hh
        ru = z[:, : 2 * width]
        ru += zh[:, : 2 * width]
        ru *= 0.5  # sigmoid(z) = (1 + tanh(z / 2)) / 2
        xp.tanh(ru, out=ru)
        ru *= 0.5
        ru += 0.5
        new_h[at] = zh[:, 2 * width :]
        new = z[:, 2 * width :]
        new += ru[:, :width] * zh[:, 2 * width :]
        xp.tanh(new, out=new)
        hidden = h[top]
        hidden -= new
        hidden *= ru[:, width:]
        hidden += new
        out[at] = hidden
    return (out, h), gates, before, new_h


def _fused(xp, g, x, h, w_ih, w_hh, b_ih, b_hh, needs, sizes, reverse, gates, before, new_h):
    dtype, width = x.dtype, before.shape[1]
    x, h, w_ih, w_hh, *g = widened(x, h, w_ih, w_hh, *g)
    g_out, g_h = g
    r, u, n = (gates[:, k * width : (k + 1) * width] for k in range(3))
    by_n, by_u, by_r = (1 - u) * (1 - n * n), (before - n) * (u * (1 - u)), new_h * (r * (1 - r))
    dh = start_of(xp, g_h, h)
    dzx, dzh = xp.empty_like(gates), xp.empty_like(gates)
    for start, count in reversed(spans(sizes, reverse)):
        at, top = slice(start, start + count), slice(count)
        d = dh[top]
        if g_out is not None:
            d += g_out[at]
        z = dzx[at]
        dn = xp.multiply(d, by_n[at], out=z[:, 2 * width :])
        xp.multiply(d, by_u[at], out=z[:, width : 2 * width])
        xp.multiply(dn, by_r[at], out=z[:, :width])
        zh = dzh[at]
        zh[:, : 2 * width] = z[:, : 2 * width]
        xp.multiply(dn, r[at], out=zh[:, 2 * width :])
        d *= u[at]
        d += zh.dot(w_hh)
    return narrowed(
        dtype,
        (
            dzx.dot(w_ih) if needs[0] else None,
            dh,
            dzx.T.dot(x) if needs[2] else None,
            dzh.T.dot(before) if needs[3] else None,
            None if b_ih is None else by_ones(xp, dzx),
            None if b_hh is None else by_ones(xp, dzh),
        ),
    )


@op(joint=_joint, fused=_fused, outputs=2, extras=("gates", "before", "new_h"), node="Gru")
def gru_layer(xp, x, h, w_ih, w_hh, b_ih=None, b_hh=None, *, sizes, reverse=False):
    """``(out, h_n)``: the outputs of all steps and the last state of one direction of a GRU layer.

    r, u = sigmoid of x w_ih^T + b_ih + h w_hh^T + b_hh; n = tanh(x w_ih^T + b_ih + r (h w_hh^T + b_hh));
    h' = (1 - u) n + u h; the gates stand in the order r, u, n.

    Shapes      x [N,I], N = sum of sizes; h [B,H]; w_ih [3H,I]; w_hh [3H,H]; b_ih, b_hh [3H]
    Dtypes      all the same; float16 and bfloat16 are computed in float32
    Source      Cho et al. 2014, arXiv:1406.1078, with the reset after the product, as cuDNN has it
    """
    dtype = x.dtype
    if half(x):
        x, h, w_ih, w_hh, b_ih, b_hh = widened(x, h, w_ih, w_hh, b_ih, b_hh)
    outputs, *kept = _forward(xp, x, h, w_ih, w_hh, b_ih, b_hh, sizes, reverse)
    return narrowed(dtype, outputs), *kept
