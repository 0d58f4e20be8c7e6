"""Adamax: Adam by the largest gradient instead of the mean square."""

from .elementwise import Elementwise, descent
from .options import check, check_betas, check_lr


class Adamax(Elementwise):
    """
    g = g + weight_decay w
    m = b1 m + (1 - b1) g
    u = max(b2 u, |g| + eps)
    w = w - lr / (1 - b1^t) m / u

    State       step: float32; exp_avg m, exp_inf u: dtype of the parameter
    Source      Kingma & Ba 2015, arXiv:1412.6980, algorithm 2
    """

    _since = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}

    def __init__(
        self,
        params,
        lr=2e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        foreach=None,
        *,
        maximize=False,
        differentiable=False,
        capturable=False,
    ):
        check_lr(lr)
        check(eps >= 0.0, f"Invalid epsilon value: {eps}")
        check_betas(betas)
        check(weight_decay >= 0.0, f"Invalid weight_decay value: {weight_decay}")
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def slots(self, group):
        return "exp_avg", "exp_inf"

    def numbers(self, group, t):
        b1, b2 = group["betas"]
        return {
            "rate": group["lr"] / (1 - b1**t),
            "b1": b1,
            "b2": b2,
            "eps": group["eps"],
            "weight_decay": group["weight_decay"],
            "maximize": group["maximize"],
        }

    @staticmethod
    def rule(xp, p, g, m, u, *, rate, b1, b2, eps, weight_decay, maximize):
        g = descent(p, g, maximize, weight_decay)
        m += (g - m) * (1 - b1)
        u[...] = xp.maximum(u * b2, xp.abs(g) + eps)
        p -= m * rate / u
