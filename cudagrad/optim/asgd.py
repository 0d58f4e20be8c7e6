"""ASGD: gradient descent that also keeps the average of the weights."""

from .elementwise import Elementwise, descent
from .options import check, check_lr, scalar_state


class ASGD(Elementwise):
    """
    g = g + weight_decay w
    w = w - lambd eta w - eta g
    a = a + mu (w - a)
    eta = lr / (1 + lambd lr t)^alpha,  mu = 1 / max(1, t - t0)      (lr and 1 before the first step)

    State       step, eta, mu: float32; ax a: dtype of the parameter
    Source      Polyak & Juditsky 1992, "Acceleration of stochastic approximation by averaging"
    """

    _since = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}

    def __init__(
        self,
        params,
        lr=1e-2,
        lambd=1e-4,
        alpha=0.75,
        t0=1e6,
        weight_decay=0,
        foreach=None,
        maximize=False,
        differentiable=False,
        capturable=False,
    ):
        check_lr(lr)
        check(weight_decay >= 0.0, f"Invalid weight_decay value: {weight_decay}")
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def slots(self, group):
        return ("ax",)

    def init(self, group, p):
        state = super().init(group, p)
        scalars = {"step": state.pop("step"), "eta": scalar_state(float(group["lr"])), "mu": scalar_state(1.0)}
        return {**scalars, **state}

    def advance(self, group, p, state):
        (t,) = super().advance(group, p, state)
        eta, mu = state["eta"].array, state["mu"].array
        now = float(eta), float(mu)
        lr = float(group["lr"])
        eta[...] = lr / (1 + group["lambd"] * lr * t) ** group["alpha"]
        mu[...] = 1 / max(1.0, t - group["t0"])
        return now

    def numbers(self, group, eta, mu):
        names = ("lambd", "weight_decay", "maximize")
        return {"eta": eta, "mu": mu, **{name: group[name] for name in names}}

    @staticmethod
    def rule(xp, p, g, a, *, eta, mu, lambd, weight_decay, maximize):
        g = descent(p, g, maximize, weight_decay)
        p *= 1 - lambd * eta
        p -= g * eta
        a[...] = p if mu == 1 else a + (p - a) * mu
