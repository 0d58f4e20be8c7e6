"""Adafactor: second moments of a matrix kept as a row and a column."""

import numpy as np

from .. import dtypes
from ..backend import xp_of
from ..core.inplace import bump
from ..core.tensor import wrap
from .optimizer import GroupOptimizer
from .options import check, check_lr, current, numbers_of, scalar_state, zeros_state


class Adafactor(GroupOptimizer):
    """
    rate = max(eps2, rms(w)) min(lr, 1 / sqrt(t)),   b = 1 - t^beta2_decay
    w = w - lr weight_decay w
    r = b r + (1 - b) mean of g^2 along each row,    c = b c + (1 - b) mean of g^2 along each column
    v = r c / mean(r)                                (fewer than two axes: v = b v + (1 - b) g^2)
    u = g / sqrt(max(v, eps1^2))
    w = w - rate u / max(1, rms(u) / d)

    State       step: float32; row_var r [..., M, 1] and col_var c [..., 1, N], or variance v: dtype of the parameter
    Raises      RuntimeError for complex parameters
    Source      Shazeer & Stern 2018, arXiv:1804.04235, algorithms 4 and 5; ``lr`` bounds its rho of section 8
    """

    _since = {"foreach": None}

    def __init__(
        self,
        params,
        lr=1e-2,
        beta2_decay=-0.8,
        eps=(None, 1e-3),
        d=1.0,
        weight_decay=0.0,
        *,
        foreach=None,
        maximize=False,
    ):
        check_lr(lr, label="Learning rate should be >= 0 but is: ")
        check(beta2_decay <= 0.0, f"beta2_decay should be <= 0 but is: {beta2_decay}")
        check(eps[0] is None or eps[0] >= 0.0, f"epsilon1 should be >= 0 but is: {eps[0]}")
        check(eps[1] >= 0.0, f"epsilon2 should be >= 0 but is: {eps[1]}")
        check(d >= 1.0, f"Clipping threshold d should be >= 1 but is: {d}")
        check(weight_decay >= 0.0, f"weight_decay should be >= 0 but is: {weight_decay}")
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _update(self, group):
        options = numbers_of(group)
        for p in group["params"]:
            if p.grad is None:
                continue
            if p.is_complex():
                raise RuntimeError("Adafactor does not support complex parameters")
            state = self.state[p]
            if not state:
                state.update(_initial_state(p))
            bump(p)
            with current(p.device):
                _adafactor(p.array, p.grad.array, state, options)


def _initial_state(p):
    step = scalar_state(0.0)
    if p.ndim < 2:
        return {"step": step, "variance": zeros_state(p)}
    xp, shape, dtype = xp_of(p.array), p.array.shape, p.array.dtype
    row = wrap(xp.zeros((*shape[:-1], 1), dtype))
    return {"step": step, "row_var": row, "col_var": wrap(xp.zeros((*shape[:-2], 1, shape[-1]), dtype))}


def _adafactor(w, grad, state, options):
    xp = xp_of(w)
    work = np.float32 if w.dtype.itemsize == 2 else w.dtype
    step = state["step"].array
    step += 1
    t = float(step)
    eps1, eps2 = options["eps"]
    eps1 = dtypes.finfo(dtypes.of_array(w)).eps if eps1 is None else eps1
    g, new = grad.astype(work), w.astype(work)
    if options["maximize"]:
        g *= -1
    rate = max(eps2, _rms(xp, new)) * min(options["lr"], t**-0.5)
    u = _second_moment(xp, g, state, t ** options["beta2_decay"], eps1, work)
    xp.maximum(u, eps1 * eps1, out=u)
    xp.sqrt(u, out=u)
    xp.divide(g, u, out=u)
    u *= rate / max(1.0, _rms(xp, u) / options["d"])
    new *= 1 - options["lr"] * options["weight_decay"]
    new -= u
    w[...] = new


def _second_moment(xp, g, state, weight, eps1, work):
    """The estimate v for gradient ``g`` after its new value went into the state with ``weight``."""
    squares = g * g
    if g.ndim < 2:
        return _mix(state["variance"].array, squares, weight, work)
    row = _mix(state["row_var"].array, squares.mean(-1, keepdims=True), weight, work)
    col = _mix(state["col_var"].array, squares.mean(-2, keepdims=True), weight, work)
    return xp.multiply(row / xp.maximum(row.mean(-2, keepdims=True), eps1), col, out=squares)


def _mix(kept, new, weight, work):
    """``kept + weight (new - kept)``, also written to ``kept``; comes back in the working dtype."""
    mixed = kept.astype(work)
    mixed += weight * (new - mixed)
    kept[...] = mixed
    return mixed


def _rms(xp, a):
    a = a.reshape(-1)
    return (float(xp.dot(a, a)) / a.size) ** 0.5 if a.size else 0.0
