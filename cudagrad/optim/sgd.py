"""Stochastic gradient descent, with momentum and Nesterov's variant."""

from .elementwise import Elementwise, descent
from .options import check, check_fused, check_lr, number, zeros_state


class SGD(Elementwise):
    """
    g = g + weight_decay w
    b = momentum b + (1 - dampening) g        (b = g at the first step)
    g = g + momentum b where nesterov, else b
    w = w - lr g

    State       momentum_buffer, dtype of the parameter, only with momentum
    Differs     foreach and fused choose among PyTorch's kernels; here they are accepted and one path serves all
    Source      Sutskever et al. 2013, "On the importance of initialization and momentum in deep learning"
    """

    _since = {"nesterov": False, "maximize": False, "foreach": None, "differentiable": False, "fused": None}

    def __init__(
        self,
        params,
        lr=1e-3,
        momentum=0,
        dampening=0,
        weight_decay=0,
        nesterov=False,
        *,
        maximize=False,
        foreach=None,
        differentiable=False,
        fused=None,
    ):
        check_lr(lr)
        check(momentum >= 0.0, f"Invalid momentum value: {momentum}")
        check(number(weight_decay) >= 0.0, f"Invalid weight_decay value: {weight_decay}")
        check(
            not nesterov or (momentum > 0 and dampening == 0),
            "Nesterov momentum requires a momentum and zero dampening",
            f"got momentum={momentum}, dampening={dampening}",
        )
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        check_fused(self, fused, foreach, differentiable)

    def slots(self, group):
        return ("momentum_buffer",) if group["momentum"] else ()

    def init(self, group, p):
        return {}

    def advance(self, group, p, state):
        if not group["momentum"] or state.get("momentum_buffer") is not None:
            return (False,)
        state["momentum_buffer"] = zeros_state(p)
        return (True,)

    def numbers(self, group, first):
        # With a buffer of zeros and no dampening the first b is g.
        return {
            "lr": group["lr"],
            "momentum": group["momentum"],
            "dampening": 0 if first else group["dampening"],
            "weight_decay": group["weight_decay"],
            "nesterov": group["nesterov"],
            "maximize": group["maximize"],
        }

    @staticmethod
    def rule(xp, p, g, b=None, *, lr, momentum, dampening, weight_decay, nesterov, maximize):
        g = descent(p, g, maximize, weight_decay)
        if b is not None:
            b *= momentum
            b += g if dampening == 0 else g * (1 - dampening)
            g = g + b * momentum if nesterov else b
        p -= g * lr
