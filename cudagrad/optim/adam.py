"""Adam, with coupled or decoupled weight decay and the AMSGrad variant."""

from ..core.tensor import Tensor
from .elementwise import Elementwise, descent
from .options import check, check_betas, check_fused, check_lr


class Adam(Elementwise):
    """
    g = g + weight_decay w                      (decoupled: w = w - lr weight_decay w)
    m = b1 m + (1 - b1) g
    v = b2 v + (1 - b2) g^2                     (amsgrad: v below is the largest v so far)
    w = w - lr / (1 - b1^t) m / (sqrt(v) / sqrt(1 - b2^t) + eps)

    State       step: float32; exp_avg m, exp_avg_sq v, max_exp_avg_sq (amsgrad): dtype of the parameter
    Differs     foreach, fused and capturable choose among PyTorch's kernels; here they are accepted and one path
                serves all
    Source      Kingma & Ba 2015, arXiv:1412.6980, algorithm 1; Reddi et al. 2018, arXiv:1904.09237, algorithm 2
    """

    _since = {
        "amsgrad": False,
        "maximize": False,
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "fused": None,
        "decoupled_weight_decay": False,
    }

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        amsgrad=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
        fused=None,
        decoupled_weight_decay=False,
    ):
        check_lr(lr, foreach, capturable)
        check(eps >= 0.0, f"Invalid epsilon value: {eps}")
        check_betas(betas)
        check(weight_decay >= 0.0, f"Invalid weight_decay value: {weight_decay}")
        _check_tensor_betas(betas, foreach and not capturable)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)
        check_fused(self, fused, foreach, differentiable)

    def slots(self, group):
        return ("exp_avg", "exp_avg_sq") + (("max_exp_avg_sq",) if group["amsgrad"] else ())

    def numbers(self, group, t):
        b1, b2 = group["betas"]
        return {
            "lr": group["lr"],
            "b1": b1,
            "b2": b2,
            "bias1": 1 - b1**t,
            "bias2": 1 - b2**t,
            "eps": group["eps"],
            "weight_decay": group["weight_decay"],
            "decoupled": group["decoupled_weight_decay"],
            "maximize": group["maximize"],
        }

    @staticmethod
    def rule(xp, p, g, m, v, largest=None, *, lr, b1, b2, bias1, bias2, eps, weight_decay, decoupled, maximize):
        g = descent(p, g, maximize, weight_decay, lr if decoupled else None)
        m += (g - m) * (1 - b1)
        v *= b2
        v += g * g * (1 - b2)
        if largest is not None:
            largest[...] = xp.maximum(largest, v)
            v = largest
        root = bias2**0.5  # over the whole fraction: one pass less than under sqrt(v)
        p -= m * (lr * root / bias1) / (xp.sqrt(v) + eps * root)


def _check_tensor_betas(betas, needs_floats):
    kinds = [isinstance(beta, Tensor) for beta in betas]
    floats = all(isinstance(beta, float) for beta in betas)
    check(floats or all(kinds), "betas must be either both floats or both Tensors")
    for i, beta in enumerate(betas):
        if kinds[i]:
            first = f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True"
            check(not needs_floats, first)
            check(beta.numel() == 1, f"Tensor betas[{i}] must be 1-element")
