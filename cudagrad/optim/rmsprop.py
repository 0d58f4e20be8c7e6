"""RMSprop: gradients over the root of their running mean square."""

from .elementwise import Elementwise, descent
from .options import check, check_lr


class RMSprop(Elementwise):
    """
    g = g + weight_decay w
    v = alpha v + (1 - alpha) g^2
    centered: a = alpha a + (1 - alpha) g and sqrt(v - a^2) in the place of sqrt(v)
    b = momentum b + g / (sqrt(v) + eps)
    w = w - lr b

    State       step: float32; square_avg v, momentum_buffer b (momentum), grad_avg a (centered): dtype of the parameter
    Source      Tieleman & Hinton 2012, lecture 6.5; centered: Graves 2013, arXiv:1308.0850, equations 38 to 45
    """

    _since = {
        "momentum": 0,
        "centered": False,
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
    }

    def __init__(
        self,
        params,
        lr=1e-2,
        alpha=0.99,
        eps=1e-8,
        weight_decay=0,
        momentum=0,
        centered=False,
        capturable=False,
        foreach=None,
        maximize=False,
        differentiable=False,
    ):
        check_lr(lr)
        check(eps >= 0.0, f"Invalid epsilon value: {eps}")
        check(momentum >= 0.0, f"Invalid momentum value: {momentum}")
        check(weight_decay >= 0.0, f"Invalid weight_decay value: {weight_decay}")
        check(alpha >= 0.0, f"Invalid alpha value: {alpha}")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def slots(self, group):
        names = ("square_avg",)
        if group["momentum"] > 0:
            names += ("momentum_buffer",)
        return names + (("grad_avg",) if group["centered"] else ())

    def numbers(self, group, t):
        names = ("lr", "alpha", "eps", "weight_decay", "momentum", "centered", "maximize")
        return {name: group[name] for name in names}

    @staticmethod
    def rule(xp, p, g, v, *others, lr, alpha, eps, weight_decay, momentum, centered, maximize):
        g = descent(p, g, maximize, weight_decay)
        v *= alpha
        v += g * g * (1 - alpha)
        if centered:
            a = others[-1]
            a += (g - a) * (1 - alpha)
            v = v - a * a
        update = g / (xp.sqrt(v) + eps)
        if momentum > 0:
            b = others[0]
            b *= momentum
            b += update
            update = b
        p -= update * lr
