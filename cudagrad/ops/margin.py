"""Losses that ask for a margin: between scores, between labels, between distances."""

from ..backend import xp_of
from ..core.modes import autocasts
from ..core.op import TABLE
from ..core.tensor import wrap
from .checks import looks
from .distance import pairwise_distance
from .loss_reduction import reduced, reduction_of
from .masking import where
from .smooth import logsigmoid

FUNCTIONAL = (
    *("hinge_embedding_loss", "cosine_embedding_loss", "margin_ranking_loss", "triplet_margin_loss"),
    *("multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss", "soft_margin_loss"),
    "triplet_margin_with_distance_loss",
)


@autocasts
def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    """input where target is 1, max(0, margin - input) where it is -1; both added where it is neither.

    Derivative  -1 at the margin
    """
    reduction = reduction_of(size_average, reduce, reduction)
    apart = where(target == 1, 0.0, (margin - input).clamp(min=0))
    return reduced(apart + where(target == -1, 0.0, input), reduction)


@autocasts
def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """log(1 + e^(-target * input)).

    Differs     no overflow: PyTorch's is inf below about -88
    """
    reduction = reduction_of(size_average, reduce, reduction)
    return reduced(TABLE["softplus_of"].raw(input * -target), reduction)


@autocasts
def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """max(0, margin - target * (input1 - input2)): target 1 says that input1 should rank higher.

    Raises      RuntimeError where the numbers of dimensions differ
    """
    reduction = reduction_of(size_average, reduce, reduction)
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    return reduced(ranking_losses(input1, input2, target, margin), reduction)


def ranking_losses(input1, input2, target, margin):
    """``margin_ranking_loss`` of every element."""
    return (margin - target * (input1 - input2)).clamp(min=0)


_TINY = 1e-12  # PyTorch adds it to both squared lengths


@autocasts
def cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """1 - cos where target is 1, max(0, cos - margin) where it is -1, 0 elsewhere; cos of the angle between the rows.

    Shapes      inputs (N,D) and target (N), or (D) and ()
    Raises      RuntimeError for other numbers of dimensions
    """
    reduction = reduction_of(size_average, reduce, reduction)
    if target.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if input1.ndim != target.ndim + 1 or input2.ndim != target.ndim + 1:
        raise RuntimeError(
            f"{target.ndim}D target tensor expects {target.ndim + 1}D input tensors, but found inputs with sizes "
            f"{list(input1.shape)} and {list(input2.shape)}."
        )
    lengths = ((input1 * input1).sum(-1) + _TINY) * ((input2 * input2).sum(-1) + _TINY)
    cosine = (input1 * input2).sum(-1) / lengths.sqrt()
    together = where(target == 1, 1 - cosine, 0.0)
    return reduced(together + where(target == -1, (cosine - margin).clamp(min=0), 0.0), reduction)


# ---- classes


def _classes(scores):
    """The numbers of the classes, [C], to compare with labels."""
    return wrap(xp_of(scores.array).arange(scores.shape[-1]))


def _check_scores(input):
    """(N,C) or (C), C not 0; a scalar counts as (1)."""
    if input.ndim > 2 or (input.ndim and input.shape[-1] == 0):
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}"
        )


def _check_multi_margin(input, target, p, weight):
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.ndim != 1:
        raise ValueError("weight must be one-dimensional")
    _check_scores(input)
    count, classes = (input.shape[0] if input.ndim == 2 else 1), input.shape[-1] if input.ndim else 1
    if weight is not None and weight.array.size != classes:
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got {list(weight.shape)}")
    if target.ndim > 1 or target.array.size != count:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch "
            f"size). Expected target size [{count}], but got {list(target.shape)}. Input has shape {list(input.shape)}."
        )
    if target.dtype.name != "int64":
        raise RuntimeError(f"expected scalar type Long but found {target.dtype.legacy}")
    if count and looks(target.array) and bool(((target < 0) | (target >= classes)).any()):
        raise RuntimeError("target out of range")


@autocasts
def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
    """sum over the other classes c of max(0, margin - input[target] + input[c])^p / C, times weight[target].

    Shapes      input (N,C), target (N); or (C) and () or (1)
    Derivative  0 at the margin
    Raises      ValueError, RuntimeError, in PyTorch's words, for what does not fit
    """
    reduction = reduction_of(size_average, reduce, reduction)
    _check_multi_margin(input, target, p, weight)
    scores = input.reshape(-1, input.shape[-1] if input.ndim else 1)
    scores = scores.float() if scores.dtype.itemsize == 2 else scores  # differences of scores lose digits
    index = target.reshape(-1, 1)
    over = (margin - scores.gather(1, index) + scores).relu()
    over = over.masked_fill(_classes(scores) == index, 0)
    if p == 2:
        over = over * over
    if weight is not None:
        over = over * weight[index]
    losses = (over.sum(1) / scores.shape[1]).to(input.dtype)
    return reduced(losses.reshape(target.shape) if reduction == "none" else losses, reduction)


@autocasts
def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """sum over labels y and classes c that are no label of max(0, 1 - (input[y] - input[c])) / C.

    The labels of a row are its targets up to the first -1.

    Shapes      input, target (N,C) or (C)
    Derivative  0 at the margin
    Raises      RuntimeError where sizes differ or a label is out of range
    """
    reduction = reduction_of(size_average, reduce, reduction)
    _check_scores(input)
    if target.shape != input.shape:
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}")
    classes = input.shape[-1] if input.ndim else 1
    if looks(target.array) and bool(((target < -1) | (target >= classes)).any()):
        raise RuntimeError("argument #2 'target' is out of range")
    scores, labels = input.reshape(-1, classes), target.reshape(-1, classes).long()
    valid = (labels >= 0).long().cumprod(1)  # up to the first -1
    index = labels * valid
    is_label = ((index.unsqueeze(2) == _classes(scores)) & (valid.unsqueeze(2) > 0)).any(1)  # [N,C]
    over = (1 - scores.gather(1, index).unsqueeze(2) + scores.unsqueeze(1)).relu()  # [N, label, class]
    over = over.masked_fill((valid.unsqueeze(2) == 0) | is_label.unsqueeze(1), 0)
    losses = over.sum((1, 2)) / classes
    return reduced(losses.reshape(target.shape[:-1]) if reduction == "none" else losses, reduction)


def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """The mean over the last axis of -weight * (target * log(sigmoid(x)) + (1 - target) * log(sigmoid(-x))).

    Shapes      input, target (N,C) or (C); the losses lack the last axis
    """
    if size_average is not None or reduce is not None:
        reduction = reduction_of(size_average, reduce, reduction)
    losses = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        losses = losses * weight
    losses = losses.sum(-1) / input.shape[-1]
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    return reduced(losses, reduction)


# ---- triplets


def _above_zero(margin):
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")


def _check_triplet(anchor, positive, negative):
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs"
        )


def _triplet(distance, anchor, positive, negative, margin, swap):
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return (margin + near - far).clamp(min=0)


@autocasts
def triplet_margin_loss(
    anchor,
    positive,
    negative,
    margin=1.0,
    p=2,
    eps=1e-6,
    swap=False,
    size_average=None,
    reduce=None,
    reduction="mean",
):
    """max(0, margin + d(anchor, positive) - d(anchor, negative)), d the p-norm distance of rows.

    ``swap`` takes the smaller of the negative's distances to anchor and positive.

    Raises      ValueError for margin <= 0, RuntimeError where numbers of dimensions differ
    Source      Balntas, Riba, Ponsa, Mikolajczyk 2016, BMVC, for the swap
    """
    reduction = reduction_of(size_average, reduce, reduction)
    _above_zero(margin)
    return reduced(triplet_losses(anchor, positive, negative, margin, p, eps, swap), reduction)


def triplet_losses(anchor, positive, negative, margin, p, eps, swap):
    """``triplet_margin_loss`` of every row."""
    _check_triplet(anchor, positive, negative)

    def distance(x, y):
        return pairwise_distance(x, y, p, eps)

    return _triplet(distance, anchor, positive, negative, margin, swap)


def triplet_margin_with_distance_loss(
    anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction="mean"
):
    """As ``triplet_margin_loss``, with a distance function of one's own; pairwise_distance by default."""
    reduction = reduction_of(None, None, reduction)
    _above_zero(margin)
    _check_triplet(anchor, positive, negative)
    return reduced(
        _triplet(distance_function or pairwise_distance, anchor, positive, negative, margin, swap), reduction
    )
