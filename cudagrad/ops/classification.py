"""Cross-entropy and negative log-likelihood of classes."""

import math

import numpy as np

from .. import dtypes, errors
from ..backend import LOW, xp_of
from ..backend.classes import check_classes
from ..core.modes import MODE
from ..core.op import TABLE, op
from .affine import linear
from .blocks import line_max, line_sum
from .checks import refuse
from .loss_reduction import reduction_of
from .reduction import logsumexp
from .softmax import log_softmax

__all__ = ()
FUNCTIONAL = ("cross_entropy", "nll_loss", "linear_cross_entropy")

_BLOCK_BYTES = 1 << 20  # 16 rows of a vocabulary of 16k: the gradient is made while they are in the cache


# ---- the weights of the targets, shared by both losses


def _matrix_shape(shape):
    """(N, C, ...) as (N, C, S); S is left out where it is 1."""
    rest = math.prod(shape[2:])
    return (*shape[:2], rest) if len(shape) > 2 else tuple(shape)


def _row_weights(xp, target, w, ignore_index, dtype):
    """The weight of every target: w of its class, 0 where it is to be ignored; and the classes, 0 for ignored ones."""
    target = target.astype(np.int64, copy=False)  # NumPy 2.0 crashes where strided uint8 meets a number beyond it
    kept = target != ignore_index
    classes = xp.where(kept, target, 0)
    return (kept.astype(dtype) if w is None else w.astype(dtype)[classes] * kept), classes, kept


def _scale(reduction, weights):
    """What a row's loss is multiplied by: 1, or 1 over the sum of the weights; where that is 0 it makes the loss nan.

    A number, or an array where the weights are a GPU's, for which nobody waits.
    """
    if reduction != "mean":
        return 1.0
    if xp_of(weights) is not np:
        return 1 / weights.sum()
    total = float(weights.sum())
    return 1 / total if total else math.nan


def _finite(scale):
    """The scale of the gradient: 0, as in PyTorch, where no row counts and the loss is nan."""
    if isinstance(scale, float):
        return scale if scale == scale else 0.0
    xp = xp_of(scale)
    return xp.where(xp.isfinite(scale), scale, xp.zeros((), scale.dtype))


def _in(dtype, scale):
    """A scale in a dtype: the weights of one that is an array had that dtype."""
    return dtype.type(scale) if isinstance(scale, float) else scale


@op()
def target_weights(xp, g, target, w=None, *, shape, ignore_index, label_smoothing, reduction):
    """What multiplies each log-probability in the loss: w[target] / sum, spread by smoothing. No derivative.

    Shapes      target (N,...), shape (N,C,...) -> shape; dtype of g
    """
    n, c = shape[:2]
    dtype = np.float32 if g.dtype in LOW else g.dtype
    flat = target.reshape(n, math.prod(shape[2:]))
    weights, classes, kept = _row_weights(xp, flat, w, ignore_index, dtype)
    scale = _finite(_scale(reduction, weights))
    out = xp.zeros((n, c, flat.shape[1]), dtype)
    if label_smoothing:
        each = xp.ones(c, dtype) if w is None else w.astype(dtype)
        out += (each * (label_smoothing / c))[:, None] * kept[:, None, :]
    rows, columns = xp.arange(n)[:, None], xp.arange(flat.shape[1])
    out[rows, classes, columns] += weights * (1 - label_smoothing)
    out *= scale
    return out.reshape(shape).astype(g.dtype)


def _spread(m, g, x_shape, reduction):
    """The gradient of the loss, one value a row, along the classes."""
    return g if reduction != "none" else m.reshape(g, shape=(x_shape[0], 1, *x_shape[2:]))


def _nll_back(m, g, target, w, x_shape, ignore_index, reduction):
    share = m.target_weights(
        g, target, w, shape=x_shape, ignore_index=ignore_index, label_smoothing=0.0, reduction=reduction
    )
    return -share * _spread(m, g, x_shape, reduction)


@op(x=_nll_back, wide=True, node="NllLoss")
def negative_log_likelihood(xp, x, target, w=None, *, ignore_index, reduction):
    """-w[target] * x[target] row by row, summed, or averaged by the weights."""
    check_classes(xp, target, x.shape[1], ignore_index)
    flat = x.reshape(_matrix_shape(x.shape))
    columns = math.prod(x.shape[2:])
    weights, classes, _ = _row_weights(xp, target.reshape(x.shape[0], columns), w, ignore_index, x.dtype)
    picked = xp.take_along_axis(flat.reshape(*flat.shape[:2], columns), classes[:, None, :], 1)[:, 0]
    losses = xp.where(weights == 0, xp.zeros((), x.dtype), -picked * weights)
    if reduction == "none":
        return losses.reshape(target.shape)
    return losses.sum() * _in(x.dtype, _scale(reduction, weights))


# ---- cross-entropy: the gradient is made where the exponentials are, in the forward, if it will be asked for


def _cross_entropy_back(m, g, x, target, w, x_shape, ignore_index, label_smoothing, z_loss, reduction):
    options = dict(shape=x_shape, ignore_index=ignore_index, reduction=reduction)
    share = m.target_weights(g, target, w, **options, label_smoothing=label_smoothing)
    pull = m.sum(share, dim=(1,), keepdim=True)
    if z_loss:
        weights = m.target_weights(g, target, w, **options, label_smoothing=0.0)
        pull = pull + 2 * z_loss * m.logsumexp(x, dim=(1,), keepdim=True) * m.sum(weights, dim=(1,), keepdim=True)
    return (m.softmax(x, dim=1) * pull - share) * _spread(m, g, x_shape, reduction)


def _cross_entropy_fused(xp, m, g, x, target, w, x_shape, ignore_index, label_smoothing, z_loss, reduction, made):
    """The gradient that the forward made; it is taken out, so a second backward of the same graph works it out anew."""
    if not made:
        again = _cross_entropy_back(m, g, x, target, w, x_shape, ignore_index, label_smoothing, z_loss, reduction)
        return again, None, None
    gradient = made.pop()
    if reduction == "none":
        gradient *= g.reshape(x_shape[0], 1, *x_shape[2:])
    elif xp is not np or g != 1:
        gradient *= g
    return gradient, None, None


@op(x=_cross_entropy_back, fused=_cross_entropy_fused, extras=("made",), node="NllLoss")
def cross_entropy_of_classes(xp, x, target, w=None, *, ignore_index, label_smoothing, z_loss, reduction, wanted):
    """-log softmax(x)[target] + z_loss * logsumexp(x)^2, by blocks of rows; ``wanted``: the gradient is made too."""
    refuse("log_softmax_lastdim_kernel_impl", x, "biuc")
    n, c = x.shape[:2]
    flat = x.reshape(_matrix_shape(x.shape))
    dtype = np.dtype(np.float32) if x.dtype in LOW else x.dtype
    rows = _Rows(xp, target.reshape(n, *flat.shape[2:]), w, c, ignore_index, label_smoothing, z_loss, reduction, dtype)
    losses = xp.zeros(flat.shape[:1] + flat.shape[2:], dtype)
    gradient = xp.empty(x.shape, x.dtype) if wanted else None
    flat_gradient = gradient.reshape(flat.shape) if wanted else None
    step = max(1, n if xp is not np else _BLOCK_BYTES // max(1, flat[:1].size * dtype.itemsize))
    for i in range(0, n if c else 0, step):  # of no classes all targets are ignored
        some = slice(i, i + step)
        in_place = wanted and x.dtype == dtype
        block = flat_gradient[some] if in_place else xp.empty(flat[some].shape, dtype)
        losses[some], sums, normal = rows.losses(flat[some], block, some)
        if wanted:
            rows.gradient(block, sums, normal, some)
            if not in_place:
                flat_gradient[some] = block
    total = losses.reshape(target.shape) if reduction == "none" else losses.sum() * _in(dtype, rows.scale)
    return total.astype(x.dtype, copy=False), [gradient] if wanted else []


class _Rows:
    """The targets of all rows, and what the loss and its gradient are for some of them.

    ``weights`` is None where every row counts 1; ``kept`` None where no row is ignored.
    """

    def __init__(self, xp, target, w, classes, ignore_index, label_smoothing, z_loss, reduction, dtype):
        self.xp = xp
        self.weights = self.kept = None
        if _all_kept(xp, target, classes, ignore_index):
            self.classes = target.astype(np.int64, copy=False)
            if w is not None:
                self.weights = w.astype(dtype)[self.classes]
            self.scale = 1.0 if reduction != "mean" else 1 / target.size if w is None else _scale("mean", self.weights)
        else:
            check_classes(xp, target, classes, ignore_index)
            self.weights, self.classes, self.kept = _row_weights(xp, target, w, ignore_index, dtype)
            self.scale = _scale(reduction, self.weights)
        self.sharp, self.smooth, self.z = 1 - label_smoothing, None, z_loss
        if label_smoothing:
            self.smooth = (xp.ones(classes, dtype) if w is None else w.astype(dtype)) * (
                label_smoothing / max(classes, 1)
            )

    def _at(self, block, some):
        """The index of every row's class in a block [N,C] or [N,C,S]."""
        rows = self.xp.arange(block.shape[0])
        if block.ndim == 2:
            return rows, self.classes[some]
        return rows[:, None], self.classes[some], self.xp.arange(block.shape[2])

    def losses(self, x, block, some):
        """The losses of some rows, the sums of exponentials, and their log-sum-exp where z_loss needs it.

        ``block`` is left with the exponentials.
        """
        xp, top = self.xp, line_max(self.xp, x)
        xp.subtract(x, top, out=block)
        picked = block[self._at(block, some)]
        spread = None if self.smooth is None else self._along_classes(block)
        xp.exp(block, out=block)
        sums = line_sum(xp, block)[:, 0]
        log_sums = xp.log(sums)
        normal = log_sums + top[:, 0] if self.z else None
        losses = log_sums - picked
        if self.smooth is not None:
            losses *= self.sharp
        if self.z:
            losses += self.z * normal * normal
        if self.weights is not None:
            weights = self.weights[some]
            losses = xp.where(weights == 0, xp.zeros((), block.dtype), losses * weights)
        if self.smooth is not None:
            spread = log_sums * self.smooth.sum() - spread
            losses += spread if self.kept is None else xp.where(self.kept[some], spread, xp.zeros((), block.dtype))
        return losses, sums, normal

    def _along_classes(self, block):
        """sum_c smooth[c] * block[n,c]; a class of weight 0 does not count, were it -inf."""
        smooth = self.smooth
        if self.xp is not np:
            counts = smooth != 0 if block.ndim == 2 else (smooth != 0)[:, None]
            block = self.xp.where(counts, block, self.xp.zeros((), block.dtype))
        elif not smooth.all():
            block, smooth = block[:, smooth != 0], smooth[smooth != 0]
        return block.dot(smooth) if block.ndim == 2 else smooth.dot(block)

    def gradient(self, block, sums, normal, some):
        """The exponentials in ``block`` become the gradient of the loss."""
        scale = _in(block.dtype, _finite(self.scale))
        weights = 1 if self.weights is None else self.weights[some]
        share = weights * (self.sharp * scale)
        kept = None if self.kept is None else self.kept[some]
        total = share
        if self.z:
            total = total + normal * weights * (2 * self.z * scale)
        if self.smooth is not None:
            total = total + self.smooth.sum() * scale * (1 if kept is None else kept)
        block *= (total / sums)[:, None]
        block[self._at(block, some)] -= share
        if self.smooth is not None:
            block -= self.smooth * scale if block.ndim == 2 else (self.smooth * scale)[:, None]
        if kept is not None and (self.xp is not np or not kept.all()):
            block *= kept[:, None]


def _all_kept(xp, target, classes, ignore_index):
    """Whether every target is a class that counts, by one look at the smallest and the largest; not on a GPU."""
    if xp is not np or not target.size:
        return False
    low, high = target.min(), target.max()
    return bool(low >= 0 and high < classes and not low <= ignore_index <= high)


# ---- the public functions


def _check_target(input, target, weight):
    """The checks that PyTorch makes, in its order and words."""
    if weight is not None and (weight.ndim != 1 or weight.shape[0] != input.shape[1]):
        raise RuntimeError(
            f"weight tensor should be defined either for all {input.shape[1]} classes or no classes but got weight "
            f"tensor of shape: {list(weight.shape)}"
        )
    if weight is not None and weight.dtype is not input.dtype:
        raise RuntimeError(f"expected scalar type {input.dtype.legacy} but found {weight.dtype.legacy}")
    need, got = [input.shape[0], *input.shape[2:]], list(target.shape)
    if need[:1] != got[:1]:
        first = f"Expected input batch_size ({input.shape[0]}) to match target batch_size ({(got + [1])[0]})."
        raise ValueError(errors.text(first, f"got input {tuple(input.shape)}, target {tuple(target.shape)}"))
    if need != got:
        raise RuntimeError(_sizes_text(input, target, need, got))
    if target.dtype not in (dtypes.int64, dtypes.uint8):
        first = f"expected target dtype to be Long or Byte, but got {target.dtype.legacy}"
        raise RuntimeError(errors.text(first, "fix: target.long() for classes"))


def _sizes_text(input, target, need, got):
    if input.ndim == 2:
        return "0D or 1D target tensor expected, multi-target not supported"
    if input.ndim == 4 and len(got) == 3:
        return f"size mismatch (got input: {list(input.shape)} , target: {got}"
    return f"Expected target size {need}, got {got}"


def _batched(input, target):
    """One sample as a batch of one; and whether it was that."""
    if input.ndim != 1:
        return input, target, False
    return input.unsqueeze(0), target.reshape(1) if target.array.size == 1 else target.unsqueeze(0), True


def _unbatched(loss, single, reduction):
    return loss.reshape(()) if single and reduction == "none" else loss


def cross_entropy(
    input,
    target,
    weight=None,
    size_average=None,
    ignore_index=-100,
    reduce=None,
    reduction="mean",
    label_smoothing=0.0,
    *,
    z_loss=0.0,
):
    """-log softmax(input)[target] over axis 1; for targets of probabilities -sum_c target[c] * log softmax(input)[c].

    The mean is over the targets that are not ignored, weighted; over N for probabilities. Smoothing mixes the target
    with label_smoothing / C of every class. ``z_loss``, which PyTorch does not have, adds z_loss * logsumexp(input)^2
    to every target's loss, weighted as it is: it keeps the logits near 0.

    Shapes      input (C), (N,C) or (N,C,...); target (), (N), (N,...) of classes or as input of probabilities
    Dtypes      input floating; classes int64 or uint8
    Derivative  by input, weighted: softmax(input) - target; 0 where all targets are ignored and the loss is nan
    Source      for z_loss Chowdhery et al. 2022, arXiv:2204.02311, section 5: 1e-4
    Raises      IndexError for a class out of range, ValueError and RuntimeError for what does not fit
    Differs     on a GPU a class out of range makes the loss and the gradient nan, where PyTorch ends the process's use
                of the GPU: to raise, the step would have to wait

    >>> cudagrad.nn.functional.cross_entropy(cudagrad.tensor([[2.0, 0.0]]), cudagrad.tensor([0]))
    tensor(0.1269)
    """
    reduction = reduction_of(size_average, reduce, reduction)
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    if input.array.shape == target.array.shape:
        return _of_probabilities(input, target, weight, ignore_index, reduction, label_smoothing, z_loss)
    input, target, single = _batched(input, target)
    _check_target(input, target, weight)
    loss = TABLE["cross_entropy_of_classes"].raw(
        input,
        target,
        weight,
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
        z_loss=z_loss,
        reduction=reduction,
        wanted=input.node is not None and MODE.grad,
    )
    return _unbatched(loss, single, reduction)


def _of_probabilities(input, target, weight, ignore_index, reduction, label_smoothing, z_loss):
    if target.dtype.category < 2:
        first = f"Expected floating point type for target with class probabilities, got {target.dtype.legacy}"
        raise RuntimeError(first)
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    axis = 0 if input.ndim == 1 else 1
    count = input.shape[axis] if input.ndim else 1
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / max(count, 1)
    log_p = log_softmax(input, axis)
    if weight is not None:
        log_p = log_p * weight.reshape([-1 if d == axis else 1 for d in range(input.ndim)])
    losses = -(log_p * target).sum(axis) if reduction == "none" or z_loss else -(log_p * target)
    if z_loss:
        losses = losses + z_loss * logsumexp(input, axis) ** 2
    if reduction == "none":
        return losses
    total = losses.sum()
    return (
        total if reduction == "sum" else total / (input.array.size // max(1, count) if input.array.size else math.nan)
    )


def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """-weight[target] * input[target] over axis 1: of log-probabilities the negative log-likelihood.

    Shapes      input (C), (N,C) or (N,C,...); target (), (N) or (N,...)
    Dtypes      target int64 or uint8
    Raises      IndexError for a class out of range, ValueError and RuntimeError for what does not fit
    """
    reduction = reduction_of(size_average, reduce, reduction)
    if input.ndim < 1:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    input, target, single = _batched(input, target)
    _check_target(input, target, weight)
    loss = TABLE["negative_log_likelihood"].raw(input, target, weight, ignore_index=ignore_index, reduction=reduction)
    return _unbatched(loss, single, reduction)


def _check_linear(input, weight, bias, target, ignore_index):
    """PyTorch's checks of the map before the loss, in its order and words."""
    shape = tuple(weight.shape)
    if weight.ndim < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {weight.ndim}")
    if input.shape[-1] != shape[-1]:
        sizes = f"got {input.shape[-1]} and {shape[-1]}, respectively"
        raise RuntimeError(f"expected equal input and linear_weight last dimensions (in_features), {sizes}")
    if bias is not None and tuple(bias.shape) != shape[:-1]:
        raise RuntimeError(f"expected linear_bias shape {shape[:-1]}, got {tuple(bias.shape)}")
    if weight.ndim > 2 and input.ndim == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {shape} requires batched input, (N, {shape[-1]}), got "
            f"unbatched input with shape {tuple(input.shape)}"
        )
    if ignore_index is not None and target.dtype.category == 2:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")


def linear_cross_entropy(
    input,
    linear_weight,
    target,
    *,
    linear_bias=None,
    weight=None,
    reduction="mean",
    ignore_index=None,
    label_smoothing=0.0,
    options=None,
):
    """cross_entropy of linear(input, linear_weight, linear_bias): the loss of a model's last layer.

    Shapes      input (N,K) or (K), linear_weight (C,...,K), linear_bias (C,...); target as for logits (N,C,...)
    Raises      RuntimeError where shapes do not fit, or for an ``ignore_index`` beside probabilities
    Differs     ``options``, which pick PyTorch's chunking, change nothing
    """
    if input.ndim not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.ndim}")
    lengths = linear_weight.shape[:-1]
    _check_linear(input, linear_weight, linear_bias, target, ignore_index)
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = linear(input, linear_weight.reshape(-1, linear_weight.shape[-1]), bias)
    return cross_entropy(
        logits.reshape(*input.shape[:-1], *lengths),
        target,
        weight,
        ignore_index=-100 if ignore_index is None else ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )
