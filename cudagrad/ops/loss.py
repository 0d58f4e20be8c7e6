"""Losses of numbers and of probabilities, element by element."""

import math

from ..core.modes import autocasts
from ..core.node import warn
from ..core.op import TABLE, op
from ..core.tensor import Tensor
from .blocks import blocked, in_blocks
from .checks import looks, refuse
from .loss_reduction import reduced, reduction_of, same_size

FUNCTIONAL = (
    *("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy"),
    *("binary_cross_entropy_with_logits", "kl_div", "poisson_nll_loss", "gaussian_nll_loss"),
)


# ---- distances


def _by_count(g, count):
    return g if count == 1 else g / count


@op(
    x=lambda m, g, x, target, count: (x - target) * _by_count(g + g, count),
    target=lambda m, g, x, target, count: (target - x) * _by_count(g + g, count),
    promote=("x", "target"),
    broadcast=False,
    wide=True,
    node="MseLoss",
)
def squared_error(xp, x, target, *, summed, count):
    """(x - target)^2, each or ``summed`` over ``count``."""
    refuse("mse_cpu", x, "biuc")
    d = x - target
    if not summed:
        d *= d
        return d
    flat = d.reshape(-1)
    total = flat.dot(flat)
    return total if count == 1 else total / d.dtype.type(count or math.nan)


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """(input - target)^2.

    Shapes      both the same; others broadcast, with a warning
    Dtypes      floating, promoted; ``weight`` as input; its mean is over the sum of weights

    >>> cudagrad.nn.functional.mse_loss(cudagrad.tensor([1.0, 3.0]), cudagrad.tensor([0.0, 0.0]))
    tensor(5.)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    _check_weight(input, weight)
    input, target = same_size(input, target)
    if weight is not None:
        return _weighted_mean(_squared(input, target, "none"), weight, reduction)
    return _squared(input, target, reduction)


def _squared(input, target, reduction):
    count = input.array.size if reduction == "mean" else 1
    return TABLE["squared_error"].raw(input, target, summed=reduction != "none", count=count)


def _check_weight(input, weight):
    if weight is not None and weight.array.shape != input.array.shape:
        raise ValueError("Weights and input must have the same size.")


def _weighted_mean(losses, weight, reduction):
    losses = losses * weight
    return losses.sum() / weight.sum() if reduction == "mean" else reduced(losses, reduction)


@autocasts
def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """|input - target|.

    Shapes      both the same; others broadcast, with a warning
    Derivative  0 where they are equal
    """
    reduction = reduction_of(size_average, reduce, reduction)
    _check_weight(input, weight)
    input, target = same_size(input, target)
    losses = (input - target).abs()
    return reduced(losses, reduction) if weight is None else _weighted_mean(losses, weight, reduction)


def _bent_back(m, g, x, beta):
    near = m.abs(x) < beta
    return m.only(g * (x / beta), near) + m.only(g * m.sign(x), ~near)


@op(x=_bent_back, fused=blocked(_bent_back), wide=True, node="SmoothL1Loss")
def bent_distance(xp, x, *, beta):
    """0.5 * x^2 / beta where |x| < beta, else |x| - 0.5 * beta."""
    refuse("smooth_l1_cpu", x, "biuc")

    def bent(x):
        size = xp.abs(x)
        near = xp.minimum(size, beta)
        return near * (0.5 / beta) * near + (size - near)

    return in_blocks(xp, bent, x)


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """0.5 * d^2 / beta where |d| < beta, else |d| - 0.5 * beta, d = input - target.

    Derivative  at |d| = beta: 1
    Raises      RuntimeError for a negative beta
    Source      Girshick 2015, arXiv:1504.08083, equation 3
    """
    reduction = reduction_of(size_average, reduce, reduction)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    input, target = same_size(input, target)
    if beta == 0:
        return reduced((input - target).abs(), reduction)
    return reduced(TABLE["bent_distance"].raw(input - target, beta=beta), reduction)


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """0.5 * d^2 where |d| <= delta, else delta * (|d| - 0.5 * delta), d = input - target.

    Derivative  at |d| = delta: delta
    Raises      RuntimeError for delta <= 0
    Source      Huber 1964, Annals of Mathematical Statistics 35(1), 73
    """
    reduction = reduction_of(None, None, reduction)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    _check_weight(input, weight)
    input, target = same_size(input, target)
    losses = TABLE["bent_distance"].raw(input - target, beta=delta)
    losses = losses if delta == 1 else losses * delta
    return reduced(losses if weight is None else losses * weight, reduction)


# ---- probabilities


def _binary_by_x(m, g, x, target):
    square = x * (1 - x)
    return g * (x - target) / m.maximum(square, m.null(square) + 1e-12)


@op(
    x=_binary_by_x,
    target=lambda m, g, x: g * (m.log(1 - x) - m.log(x)),
    wide=True,
)
def binary_cross_entropy_each(xp, x, target):
    """-(target * log(x) + (1 - target) * log(1 - x)), the logarithms not below -100."""
    for name, array in (("input", x), ("target", target)):
        if looks(array) and not bool(((array >= 0) & (array <= 1)).all()):
            raise RuntimeError(f"all elements of {name} should be between 0 and 1")
    one = xp.maximum(xp.log(x), -100)
    other = xp.maximum(xp.log1p(-x), -100)
    return (target - 1) * other - target * one


def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """-weight * (target * log(input) + (1 - target) * log(1 - input)), the logarithms not below -100.

    Shapes      input, target the same; weight broadcasts
    Derivative  by input 0 and 1 are kept 1e-12 away in the divisor
    Raises      ValueError where sizes differ, RuntimeError for values outside [0, 1] or dtypes that differ
    """
    reduction = reduction_of(size_average, reduce, reduction)
    if input.shape != target.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    if target.dtype is not input.dtype:
        raise RuntimeError(f"Found dtype {target.dtype.legacy} but expected {input.dtype.legacy}")
    losses = TABLE["binary_cross_entropy_each"].raw(input, target)
    return reduced(losses if weight is None else losses * _fitted(weight, input), reduction)


def _fitted(weight, input):
    """``weight``, checked to broadcast to the shape of ``input``."""
    for back in range(1, weight.ndim + 1):
        size = weight.shape[-back]
        if back > input.ndim or size not in (1, input.shape[-back]):
            raise RuntimeError(
                f"Attempting to broadcast a dimension of length {size} at -{back}! Mismatching argument at index 1 had "
                f"{weight.shape}; but expected shape should be broadcastable to {list(input.shape)}"
            )
    return weight


def _logits_by_x(m, g, x, target, pos_weight):
    if pos_weight is None:
        return g * (m.sigmoid(x) - target)
    raised = pos_weight * target
    return g * ((raised + (1 - target)) * m.sigmoid(x) - raised)


def _logits_by_target(m, g, x, pos_weight):
    if pos_weight is None:
        return -g * x
    return g * (pos_weight * m.softplus_of(-x) - m.softplus_of(x))


@op(
    x=_logits_by_x,
    target=_logits_by_target,
    promote=("x", "target"),
    broadcast=False,
    wide=True,
    node="BinaryCrossEntropyWithLogits",
)
def binary_cross_entropy_of_logits(xp, x, target, pos_weight=None):
    """(1 - target) * x + (1 + (pos_weight - 1) * target) * log(1 + e^-x)."""
    if pos_weight is None:
        return in_blocks(xp, lambda x, t: xp.log1p(xp.exp(-xp.abs(x))) + (xp.maximum(x, 0) - x * t), x, target)

    def raised(x, t, p):
        return (1 - t) * x + (1 + (p - 1) * t) * (xp.log1p(xp.exp(-xp.abs(x))) + xp.maximum(-x, 0))

    return in_blocks(xp, raised, x, target, pos_weight)


def binary_cross_entropy_with_logits(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
):
    """binary_cross_entropy(sigmoid(input), target), stable for every input; positives count ``pos_weight`` times.

    Shapes      input, target the same; weight and pos_weight broadcast
    Raises      ValueError where sizes differ, RuntimeError for a target of integers
    """
    reduction = reduction_of(size_average, reduce, reduction)
    if target.shape != input.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    if target.dtype.category < 2:
        raise RuntimeError(
            f"result type {input.dtype.legacy} can't be cast to the desired output type {target.dtype.legacy}"
        )
    if pos_weight is not None:
        pos_weight = _fitted_last(pos_weight, input)
    losses = TABLE["binary_cross_entropy_of_logits"].raw(input, target, pos_weight)
    return reduced(losses if weight is None else losses * weight, reduction)


def _fitted_last(weight, input):
    """``weight``, checked to broadcast to ``input``, in PyTorch's words for a sum of the two."""
    for back in range(1, min(weight.ndim, input.ndim) + 1):
        a, b = weight.shape[-back], input.shape[-back]
        if a not in (1, b):
            first = f"The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton dimension "
            raise RuntimeError(f"{first}{input.ndim - back}")
    return weight


@autocasts
def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """target * (log(target) - input): the divergence of the distribution with logarithms ``input`` from ``target``.

    'batchmean' divides the sum by the first length. 0 where target is 0; with ``log_target`` target is a logarithm.

    Raises      ValueError for another reduction
    """
    if size_average is None and reduce is None and reduction == "batchmean":
        losses = _divergence(input, target, log_target).sum()
        return losses / input.shape[0] if input.ndim else losses
    if reduction == "mean" and size_average is None and reduce is None:
        warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides "
            "only by the batch size, and aligns with the KL div math definition.'mean' will be changed to behave the "
            "same as 'batchmean' in the next major release."
        )
    return reduced(_divergence(input, target, log_target), reduction_of(size_average, reduce, reduction))


def _divergence(input, target, log_target):
    if log_target:
        return target.exp() * (target - input)
    return target.xlogy(target) - target * input


@autocasts
def poisson_nll_loss(
    input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"
):
    """e^input - target * input, or without ``log_input`` input - target * log(input + eps).

    ``full`` adds Stirling's target * log(target) - target + 0.5 * log(2 * pi * target) where target > 1.
    """
    reduction = reduction_of(size_average, reduce, reduction)
    losses = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        losses = losses + stirling.masked_fill(target <= 1, 0)
    return reduced(losses, reduction)


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """0.5 * (log(var) + (input - target)^2 / var), var not below eps; ``full`` adds 0.5 * log(2 * pi).

    Shapes      var a number, as input, as input with one length of 1, or without its last axis
    Derivative  by var as if it were not clamped
    Raises      ValueError for a var of another size or with negative entries
    """
    var = _variance(input, var)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    if bool((var.detach() < 0).any()):
        raise ValueError("var has negative entry/entries")
    floored = var.detach().clamp(min=eps)
    var = var + (floored - var.detach())  # the value is clamped, the gradient is not
    difference = input - target
    losses = 0.5 * (var.log() + difference * difference / var)
    return reduced(losses + 0.5 * math.log(2 * math.pi) if full else losses, reduction)


def _variance(input, var):
    if not isinstance(var, Tensor):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        return input.new_full(input.shape, var)
    if var.shape == input.shape:
        return var
    if input.shape[:-1] == var.shape:
        return var.unsqueeze(-1)
    other = [v for n, v in zip(input.shape, var.shape) if n != v]
    if input.ndim == var.ndim and other == [1]:  # one axis on which var is the same
        return var
    raise ValueError("var is of incorrect size")
