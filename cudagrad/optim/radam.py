"""RAdam: Adam whose adaptive rate is held back until its variance is known."""

from .elementwise import Elementwise, descent
from .options import check, check_betas, check_lr


class RAdam(Elementwise):
    """
    g = g + weight_decay w                      (decoupled: w = w - lr weight_decay w)
    m = b1 m + (1 - b1) g,  v = b2 v + (1 - b2) g^2
    rho_max = 2 / (1 - b2) - 1,  rho = rho_max - 2 t b2^t / (1 - b2^t)
    r = sqrt((rho - 4) (rho - 2) rho_max / ((rho_max - 4) (rho_max - 2) rho))
    w = w - lr m / (1 - b1^t) (r sqrt(1 - b2^t) / (sqrt(v) + eps) where rho > 5, else 1)

    State       step: float32; exp_avg m, exp_avg_sq v: dtype of the parameter
    Source      Liu et al. 2020, arXiv:1908.03265, algorithm 2 (with the threshold 5 of its authors' code)
    """

    _since = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
        "capturable": False,
    }

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        decoupled_weight_decay=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
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
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def slots(self, group):
        return "exp_avg", "exp_avg_sq"

    def numbers(self, group, t):
        b1, b2 = group["betas"]
        bias2 = 1 - b2**t
        rho_max = 2 / (1 - b2) - 1
        rho = rho_max - 2 * t * b2**t / bias2
        adaptive = rho > 5.0
        rate = 1.0
        if adaptive:
            square = (rho - 4) * (rho - 2) * rho_max / ((rho_max - 4) * (rho_max - 2) * rho)
            rate = (square * bias2) ** 0.5
        return {
            "lr": group["lr"],
            "b1": b1,
            "b2": b2,
            "rate": rate / (1 - b1**t),
            "adaptive": adaptive,
            "eps": group["eps"],
            "weight_decay": group["weight_decay"],
            "decoupled": group["decoupled_weight_decay"],
            "maximize": group["maximize"],
        }

    @staticmethod
    def rule(xp, p, g, m, v, *, lr, b1, b2, rate, adaptive, eps, weight_decay, decoupled, maximize):
        g = descent(p, g, maximize, weight_decay, lr if decoupled else None)
        m += (g - m) * (1 - b1)
        v *= b2
        v += g * g * (1 - b2)
        update = m * (lr * rate)
        p -= update / (xp.sqrt(v) + eps) if adaptive else update
