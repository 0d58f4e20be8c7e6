"""Adadelta: steps in the units of the weights, from running means of squared gradients and squared steps."""

from .elementwise import Elementwise, descent
from .options import check, check_lr


class Adadelta(Elementwise):
    """
    g = g + weight_decay w
    v = rho v + (1 - rho) g^2
    d = sqrt(u + eps) / sqrt(v + eps) g
    u = rho u + (1 - rho) d^2
    w = w - lr d

    State       step: float32; square_avg v, acc_delta u: dtype of the parameter
    Source      Zeiler 2012, arXiv:1212.5701, algorithm 1
    """

    _since = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}

    def __init__(
        self,
        params,
        lr=1.0,
        rho=0.9,
        eps=1e-6,
        weight_decay=0,
        foreach=None,
        *,
        capturable=False,
        maximize=False,
        differentiable=False,
    ):
        check_lr(lr)
        check(0.0 <= rho <= 1.0, f"Invalid rho value: {rho}")
        check(eps >= 0.0, f"Invalid epsilon value: {eps}")
        check(weight_decay >= 0.0, f"Invalid weight_decay value: {weight_decay}")
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def slots(self, group):
        return "square_avg", "acc_delta"

    def numbers(self, group, t):
        return {name: group[name] for name in ("lr", "rho", "eps", "weight_decay", "maximize")}

    @staticmethod
    def rule(xp, p, g, v, u, *, lr, rho, eps, weight_decay, maximize):
        g = descent(p, g, maximize, weight_decay)
        v *= rho
        v += g * g * (1 - rho)
        step = xp.sqrt(u + eps) / xp.sqrt(v + eps) * g
        u *= rho
        u += step * step * (1 - rho)
        p -= step * lr
