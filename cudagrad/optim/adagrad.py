"""Adagrad: each element's rate falls with the sum of its squared gradients."""

from .elementwise import Elementwise, descent
from .options import check, check_fused, check_lr, filled_state, scalar_state


class Adagrad(Elementwise):
    """
    g = g + weight_decay w
    s = s + g^2                                  (s = initial_accumulator_value before the first step)
    w = w - lr / (1 + (t - 1) lr_decay) g / (sqrt(s) + eps)

    State       step: float32; sum s: dtype of the parameter; made at construction
    Source      Duchi, Hazan, Singer 2011, "Adaptive subgradient methods", JMLR 12
    """

    _since = {"foreach": None, "maximize": False, "differentiable": False, "fused": None}

    def __init__(
        self,
        params,
        lr=1e-2,
        lr_decay=0,
        weight_decay=0,
        initial_accumulator_value=0,
        eps=1e-10,
        foreach=None,
        *,
        maximize=False,
        differentiable=False,
        fused=None,
    ):
        check_lr(lr)
        check(lr_decay >= 0.0, f"Invalid lr_decay value: {lr_decay}")
        check(weight_decay >= 0.0, f"Invalid weight_decay value: {weight_decay}")
        first = f"Invalid initial_accumulator_value value: {initial_accumulator_value}"
        check(initial_accumulator_value >= 0.0, first)
        check(eps >= 0.0, f"Invalid epsilon value: {eps}")
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        check_fused(self, fused, foreach, differentiable)
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p].update(self.init(group, p))

    def slots(self, group):
        return ("sum",)

    def init(self, group, p):
        return {"step": scalar_state(0.0), "sum": filled_state(p, group["initial_accumulator_value"])}

    def share_memory(self):
        """Put the sums into shared memory, so that processes that were forked add into the same ones."""
        for p in self._params():
            self.state[p]["sum"].share_memory_()

    def numbers(self, group, t):
        return {
            "rate": group["lr"] / (1 + (t - 1) * group["lr_decay"]),
            "eps": group["eps"],
            "weight_decay": group["weight_decay"],
            "maximize": group["maximize"],
        }

    @staticmethod
    def rule(xp, p, g, s, *, rate, eps, weight_decay, maximize):
        g = descent(p, g, maximize, weight_decay)
        s += g * g
        p -= g * rate / (xp.sqrt(s) + eps)
