"""Rprop: steps by the sign of the gradient alone, each element with a step size of its own."""

from .elementwise import Elementwise
from .options import check, check_lr, filled_state


class Rprop(Elementwise):
    """
    f = etaplus where g h > 0, etaminus where g h < 0, else 1      (h: the gradient of the step before)
    s = clamp(f s, step_min, step_max)                             (s = lr before the first step)
    h = 0 where g h < 0, else g
    w = w - sign(h) s

    State       step: float32; prev h, step_size s: dtype of the parameter
    Source      Riedmiller & Braun 1993, "A direct adaptive method for faster backpropagation learning"
    """

    _since = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}

    def __init__(
        self,
        params,
        lr=1e-2,
        etas=(0.5, 1.2),
        step_sizes=(1e-6, 50),
        *,
        capturable=False,
        foreach=None,
        maximize=False,
        differentiable=False,
    ):
        check_lr(lr)
        check(0.0 < etas[0] < 1.0 < etas[1], f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def slots(self, group):
        return "prev", "step_size"

    def init(self, group, p):
        state = super().init(group, p)
        return {**state, "step_size": filled_state(p, float(group["lr"]))}

    def numbers(self, group, t):
        names = ("etaminus", "etaplus", "step_min", "step_max")
        return {"maximize": group["maximize"], **dict(zip(names, (*group["etas"], *group["step_sizes"])))}

    @staticmethod
    def rule(xp, p, g, h, s, *, etaminus, etaplus, step_min, step_max, maximize):
        if maximize:
            g = -g
        same, turned = g * h > 0, g * h < 0
        s[...] = xp.clip(xp.where(same, s * etaplus, xp.where(turned, s * etaminus, s)), step_min, step_max)
        h[...] = xp.where(turned, 0.0, g)
        p -= xp.sign(h) * s
