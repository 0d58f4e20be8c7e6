"""Muon: the momentum of a matrix, made orthogonal."""

import numpy as np

from ..backend import xp_of
from ..core.inplace import bump
from .optimizer import GroupOptimizer
from .options import check, check_lr, current, numbers_of, zeros_state


class Muon(GroupOptimizer):
    """
    B = momentum B + (1 - momentum) g
    u = (1 - momentum) g + momentum B where nesterov, else B
    O = u with singular values near 1: ns_steps of X = a X + (b X X' + c (X X')^2) X from u / |u|
    w = w - lr weight_decay w - lr scale O
    scale = sqrt(max(1, M / N)), or 0.2 sqrt(max(M, N)) with adjust_lr_fn="match_rms_adamw"

    Shapes      every parameter [M,N]
    State       momentum_buffer B, dtype of the parameter
    Raises      ValueError for a parameter that is no matrix
    Differs     the iteration runs in float32 (float64 for double), PyTorch's in bfloat16
    Source      Jordan et al. 2024, "Muon: an optimizer for hidden layers"; Liu et al. 2025, arXiv:2502.16982
    """

    def __init__(
        self,
        params,
        lr=1e-3,
        weight_decay=0.1,
        momentum=0.95,
        nesterov=True,
        ns_coefficients=(3.4445, -4.775, 2.0315),
        eps=1e-7,
        ns_steps=5,
        adjust_lr_fn=None,
    ):
        check_lr(lr, label="Learning rate should be >= 0 but is: ")
        check(momentum >= 0.0, f"momentum should be >= 0 but is: {momentum}")
        check(weight_decay >= 0.0, f"weight decay should be >= 0 but is: {weight_decay}")
        known = adjust_lr_fn in (None, "original", "match_rms_adamw")
        check(known, f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for p in self._params():
            first = "Muon only supports 2D parameters whereas we found a parameter with size: "
            check(p.ndim == 2, f"{first}{p.size()}")

    def _update(self, group):
        options = numbers_of(group)
        few = options["ns_steps"] < 100
        check(few, "Number of steps must be less than 100 for computational efficiency")
        check(len(options["ns_coefficients"]) == 3, "Coefficients must be a tuple of exactly 3 values")
        for p in group["params"]:
            if p.grad is None:
                continue
            if p.is_complex():
                raise RuntimeError("Muon does not support complex parameters")
            state = self.state[p]
            if "momentum_buffer" not in state:
                state["momentum_buffer"] = zeros_state(p)
            bump(p)
            with current(p.device):
                _muon(p.array, p.grad.array, state["momentum_buffer"].array, options)


def _muon(w, g, buffer, options):
    xp = xp_of(w)
    work = np.float32 if w.dtype.itemsize == 2 else w.dtype
    lr, momentum = options["lr"], options["momentum"]
    g, b = g.astype(work, copy=False), buffer.astype(work)
    b += (g - b) * (1 - momentum)
    buffer[...] = b
    if options["nesterov"]:
        b = g + (b - g) * momentum
    update = orthogonal(xp, b, options["ns_coefficients"], options["ns_steps"], options["eps"])
    m, n = w.shape
    adamw = options["adjust_lr_fn"] == "match_rms_adamw"
    scale = 0.2 * max(m, n) ** 0.5 if adamw else max(1.0, m / n) ** 0.5
    w[...] = w.astype(work) * (1 - lr * options["weight_decay"]) - update * (lr * scale)


def orthogonal(xp, x, coefficients, steps, eps):
    """Newton and Schulz's quintic iteration: ``x`` [M,N] with its singular values brought near 1."""
    a, b, c = coefficients
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x  # the Gram matrix is the smaller one
    x = x / xp.maximum(xp.sqrt(xp.sum(x * x)), eps)
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + (b * gram + c * (gram @ gram)) @ x
    return x.T if tall else x
