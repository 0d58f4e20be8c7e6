"""Losses whose reduction is one of PyTorch's numbers: ``torch.kl_div``, beside ``torch.nn.functional.kl_div``.

PyTorch calls these from its own functions of the same names. 0 stands for no reduction, which is the default, 1 for the
mean, 2 for the sum; any other number reduces nothing.
"""

from ..core.modes import autocasts
from . import ctc, loss
from .broadcasting import expand, meet
from .loss_reduction import reduced
from .margin import cosine_embedding_loss as cosine
from .margin import hinge_embedding_loss as hinge
from .margin import ranking_losses, triplet_losses

_NAMES = {1: "mean", 2: "sum"}


def _named(name, number):
    if type(number) is not int:
        raise TypeError(f"{name}(): argument 'reduction' must be int, not {type(number).__name__}")
    return _NAMES.get(number, "none")


def _binary_cross_entropy_with_logits(input, target, weight=None, pos_weight=None, reduction=0):
    """-weight * (pos_weight * target * log(sigmoid(x)) + (1 - target) * log(1 - sigmoid(x))); target as wide as all."""
    name = _named("binary_cross_entropy_with_logits", reduction)
    shape = meet(target.shape, input.shape)
    if shape != tuple(target.shape):
        raise RuntimeError(
            f"output with shape {list(target.shape)} doesn't match the broadcast shape {list(shape)}",
        )
    options = {"weight": weight, "pos_weight": pos_weight, "reduction": name}
    return loss.binary_cross_entropy_with_logits(expand(input, shape), target, **options)


def _kl_div(input, target, reduction=0, *, log_target=False):
    """target * (log(target) - input); with ``log_target`` target is a logarithm."""
    losses = loss.kl_div(input, target, reduction="none", log_target=log_target)
    return reduced(losses, _named("kl_div", reduction))


def _poisson_nll_loss(input, target, log_input, full, eps, reduction):
    """e^input - target * input, or without ``log_input`` input - target * log(input + eps)."""
    name = _named("poisson_nll_loss", reduction)
    return loss.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=name)


def _hinge_embedding_loss(input, target, margin=1.0, reduction=0):
    """input where target is 1, max(0, margin - input) where it is -1."""
    return hinge(input, target, margin, reduction=_named("hinge_embedding_loss", reduction))


def _margin_ranking_loss(input1, input2, target, margin=0.0, reduction=0):
    """max(0, margin - target * (input1 - input2)); all broadcast."""
    return reduced(ranking_losses(input1, input2, target, margin), _named("margin_ranking_loss", reduction))


def _cosine_embedding_loss(input1, input2, target, margin=0.0, reduction=0):
    """1 - cos where target is 1, max(0, cos - margin) where it is -1."""
    return cosine(input1, input2, target, margin, reduction=_named("cosine_embedding_loss", reduction))


def _triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction=0):
    """max(0, margin + d(anchor, positive) - d(anchor, negative)), d the p-norm distance; any margin."""
    losses = triplet_losses(anchor, positive, negative, margin, p, eps, swap)
    return reduced(losses, _named("triplet_margin_loss", reduction))


def _ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction=0, zero_infinity=False):
    """-log of the probability that log_probs emit the targets."""
    name = _named("ctc_loss", reduction)
    return ctc.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, name, zero_infinity)


__all__ = []
for _f in (
    *(_binary_cross_entropy_with_logits, _kl_div, _poisson_nll_loss, _hinge_embedding_loss, _margin_ranking_loss),
    *(_cosine_embedding_loss, _triplet_margin_loss, _ctc_loss),
):
    _f.__name__ = _f.__qualname__ = _f.__name__[1:]
    globals()[_f.__name__] = autocasts(_f)
    __all__.append(_f.__name__)
