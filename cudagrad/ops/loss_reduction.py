"""What all losses share: the reduction, its deprecated spellings, and the warning about sizes that differ."""

from ..core.node import warn

REDUCTIONS = ("none", "mean", "sum")


def reduction_of(size_average, reduce, reduction):
    """The reduction by name; PyTorch's deprecated pair of flags is translated with its warning.

    Raises      ValueError for an unknown name
    """
    if size_average is not None or reduce is not None:
        averaged = size_average is None or size_average
        reduction = "none" if reduce is not None and not reduce else "mean" if averaged else "sum"
        warn(f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.")
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def reduced(loss, reduction):
    """The losses of all elements, their mean, or their sum."""
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def same_size(input, target):
    """Both in one shape; a warning where that takes broadcasting."""
    if input.array.shape == target.array.shape:
        return input, target
    warn(
        f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will likely "
        "lead to incorrect results due to broadcasting. Please ensure they have the same size."
    )
    from .broadcasting import broadcast_tensors

    return broadcast_tensors(input, target)
