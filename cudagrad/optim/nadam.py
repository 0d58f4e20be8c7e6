"""NAdam: Adam with Nesterov momentum."""

from .elementwise import Elementwise, descent
from .options import check, check_betas, check_lr, scalar_state


class NAdam(Elementwise):
    """
    g = g + weight_decay w                      (decoupled: w = w - lr weight_decay w)
    mu_t = b1 (1 - 0.96^(t momentum_decay) / 2)
    m = b1 m + (1 - b1) g,  v = b2 v + (1 - b2) g^2
    w = w - lr (g (1 - mu_t) / (1 - mu_1 .. mu_t) + m mu_(t+1) / (1 - mu_1 .. mu_(t+1))) / (sqrt(v / (1 - b2^t)) + eps)

    State       step, mu_product: float32; exp_avg m, exp_avg_sq v: dtype of the parameter
    Source      Dozat 2016, "Incorporating Nesterov momentum into Adam"
    """

    _since = {
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
    }

    def __init__(
        self,
        params,
        lr=2e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        momentum_decay=4e-3,
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
        check(momentum_decay >= 0.0, f"Invalid momentum_decay value: {momentum_decay}")
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def slots(self, group):
        return "exp_avg", "exp_avg_sq"

    def init(self, group, p):
        state = super().init(group, p)
        return {"step": state.pop("step"), "mu_product": scalar_state(1.0), **state}

    def advance(self, group, p, state):
        (t,) = super().advance(group, p, state)
        product = state["mu_product"].array
        product *= _mu(group, t)
        return t, float(product)

    def numbers(self, group, t, product):
        mu, mu_next = _mu(group, t), _mu(group, t + 1)
        return {
            "lr": group["lr"],
            "b1": group["betas"][0],
            "b2": group["betas"][1],
            "of_g": (1 - mu) / (1 - product),
            "of_m": mu_next / (1 - product * mu_next),
            "bias2": 1 - group["betas"][1] ** t,
            "eps": group["eps"],
            "weight_decay": group["weight_decay"],
            "decoupled": group["decoupled_weight_decay"],
            "maximize": group["maximize"],
        }

    @staticmethod
    def rule(xp, p, g, m, v, *, lr, b1, b2, of_g, of_m, bias2, eps, weight_decay, decoupled, maximize):
        g = descent(p, g, maximize, weight_decay, lr if decoupled else None)
        m += (g - m) * (1 - b1)
        v *= b2
        v += g * g * (1 - b2)
        root = bias2**0.5  # over the whole fraction: one pass less than under sqrt(v)
        p -= (g * (lr * root * of_g) + m * (lr * root * of_m)) / (xp.sqrt(v) + eps * root)


def _mu(group, t):
    return group["betas"][0] * (1 - 0.5 * 0.96 ** (t * group["momentum_decay"]))
