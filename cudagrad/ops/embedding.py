"""Rows of a table by number: single rows, bags of rows, and the rows of the unit matrix."""

import warnings

import numpy as np

from ..backend import xp_of
from ..core.inplace import bump
from ..core.op import TABLE, op
from ..core.promote import not_tensor
from ..core.tensor import Tensor, wrap
from .checks import looks
from .segments import add_rows, combine_rows

FUNCTIONAL = ("embedding", "embedding_bag", "one_hot")

# ---- single rows


def _factors(xp, index, padding_idx, scale_grad_by_freq):
    """What the gradient of each row taken is multiplied by, [...,1]: 0 for padding, 1 / count by frequency."""
    factor = xp.ones(index.shape)
    if scale_grad_by_freq and index.size:
        factor /= xp.bincount(index.reshape(-1))[index]
    if padding_idx is not None:
        factor[index == padding_idx] = 0
    return factor[..., None]


def _is_plain(padding_idx, scale_grad_by_freq):
    return padding_idx is None and not scale_grad_by_freq


def _add(xp, total, g, index, padding_idx, scale_grad_by_freq):
    if not _is_plain(padding_idx, scale_grad_by_freq):
        g = g * _factors(xp, index, padding_idx, scale_grad_by_freq).astype(g.dtype)
    add_rows(xp, total, index.reshape(-1), g.reshape(index.size, total.shape[1]))


def _gradient(m, g, index, w_shape, padding_idx, scale_grad_by_freq):
    if not _is_plain(padding_idx, scale_grad_by_freq):
        g = g * m.embedding_factors(index, padding_idx=padding_idx, scale_grad_by_freq=scale_grad_by_freq)
    return m.rows_sum(g, index, shape=w_shape, dim=0)


@op()
def embedding_factors(xp, x, *, padding_idx, scale_grad_by_freq):
    """What ``embedding_rows`` multiplies the gradient of each of the rows x by, float64 [...,1]."""
    return _factors(xp, x, padding_idx, scale_grad_by_freq)


@op(w=_gradient, adds=_add, node="Embedding")
def embedding_rows(xp, w, index, *, padding_idx=None, scale_grad_by_freq=False):
    """The rows of w [V,D] at ``index``, [*index,D].

    Derivative  g added up by rows, in a fixed order; nothing for row ``padding_idx``; with ``scale_grad_by_freq`` over
                how often the row was taken
    """
    if index.size and looks(index) and not (index.min() >= 0 and index.max() < w.shape[0]):
        raise IndexError("index out of range in self")
    return w.take(index, 0)


def _check_index(index, name):
    if not isinstance(index, Tensor):
        raise not_tensor(TABLE["embedding_rows"], index)
    if index.dtype.category != 1 or index.dtype.itemsize < 4 or not index.dtype.is_signed:
        kind = f"torch.{index.dtype.legacy}Tensor"
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"{kind} instead (while checking arguments for {name})"
        )


def _padding(padding_idx, weight):
    """``padding_idx`` counted from the front."""
    if padding_idx is None:
        return None
    if not -weight.shape[0] <= padding_idx < weight.shape[0]:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return padding_idx % weight.shape[0]


def _renormalise(weight, index, max_norm, norm_type):
    """Scale the rows at ``index`` in place to a norm of at most ``max_norm``."""
    xp, rows = xp_of(weight.array), xp_of(index.array).unique(index.array)
    if rows.size and not (rows[0] >= 0 and rows[-1] < weight.shape[0]):
        raise IndexError("index out of range in self")
    taken = weight.array.take(rows, 0)
    norm = (
        (xp.abs(taken) ** norm_type).sum(1, keepdims=True) ** (1 / norm_type)
        if norm_type != float("inf")
        else (xp.abs(taken).max(1, keepdims=True))
    )
    scale = xp.where(norm > max_norm, max_norm / (norm + 1e-7), 1)
    weight.array[rows] = (taken * scale).astype(taken.dtype)
    bump(weight)


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    """The rows of ``weight`` at the numbers ``input``.

    ``padding_idx``: a row that gets no gradient. ``max_norm``: rows taken whose ``norm_type``-norm is larger are scaled
    to it first, in place. ``scale_grad_by_freq``: gradients over how often a row was taken. ``sparse``: accepted;
    gradients are dense.

    Shapes      input any, weight [V,D] -> [*input,D]
    Dtypes      input int64 or int32
    Derivative  by weight: g added up by rows, in a fixed order
    Raises      IndexError for a number out of range, RuntimeError where dtypes or shapes do not fit

    >>> embedding(tensor([1, 0]), tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[3., 4.],
            [1., 2.]])
    """
    if not isinstance(weight, Tensor):
        raise not_tensor(TABLE["embedding_rows"], weight)
    padding_idx = _padding(padding_idx, weight)
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    _check_index(input, "embedding")
    if max_norm is not None:
        _renormalise(weight, input, max_norm, norm_type)
    return embedding_rows(weight, input, padding_idx=padding_idx, scale_grad_by_freq=scale_grad_by_freq)


# ---- bags of rows


def _bags(input, offsets, include_last_offset):
    """``(flat input, number of its bag for each element, count of bags)``, the last two as arrays."""
    xp = xp_of(input.array)
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                f"sequences. However, found offsets of type {type(offsets)}"
            )
        count, length = input.shape
        return input.reshape(-1), xp.repeat(xp.arange(count), length), count
    if input.ndim != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}")
    if not isinstance(offsets, Tensor):
        raise ValueError(f"offsets has to be a 1D Tensor but got {type(offsets)}" if offsets else _NO_OFFSETS)
    if offsets.ndim != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    starts, length = offsets.array.astype(xp.int64), input.shape[0]
    _check_offsets(starts, length, offsets)
    if include_last_offset:
        starts, length = starts[:-1], int(starts[-1]) if starts.size else 0
        input = input[:length]
    return input, xp.searchsorted(starts, xp.arange(length), side="right") - 1, starts.size


_NO_OFFSETS = "offsets has to be a 1D Tensor but got None"


def _check_offsets(starts, length, offsets):
    if starts.size and int(starts[0]) != 0:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, "
            f"got {int(starts[0])}"
        )
    if starts.size and int(starts[-1]) > length:
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {length} but got offsets[-1] of {int(starts[-1])}"
        )


def embedding_bag(
    input,
    weight,
    offsets=None,
    max_norm=None,
    norm_type=2,
    scale_grad_by_freq=False,
    mode="mean",
    sparse=False,
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=None,
):
    """The sum, mean or largest, by ``mode``, of each bag of rows of ``weight``; 0 for an empty bag.

    A row of a 2-d ``input`` is a bag; of a 1-d one bags start at ``offsets``, whose last is the end of all with
    ``include_last_offset``. Numbers equal to ``padding_idx`` count for nothing. ``per_sample_weights``: factors of the
    rows, for mode sum. The other options are those of ``embedding``.

    Shapes      input [B,N], or [N] with offsets [B]; weight [V,D]; per_sample_weights as input; out [B,D]
    Derivative  by weight: g, over the count for the mean, at the largest for max; by the factors: g times the row
    Raises      ValueError, RuntimeError where shapes, dtypes or options do not fit
    """
    if isinstance(weight, Tensor) and weight.dtype.category == 1 and input.is_floating_point():
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is "
            "deprecated, and should now be `embedding_bag(input, weight, ...)`.",
            stacklevel=2,
        )
        input, weight = weight, input
    _check_bag(input, mode, per_sample_weights, scale_grad_by_freq)
    flat, bag, count = _bags(input, offsets, include_last_offset)
    _check_index(flat, "embedding_bag")
    factors = None if per_sample_weights is None else per_sample_weights.reshape(-1)[: flat.shape[0]]
    if factors is not None and factors.dtype is not weight.dtype:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 "
            f"'per_sample_weights'; but type torch.{weight.dtype.legacy}Tensor does not equal "
            f"torch.{factors.dtype.legacy}Tensor (while checking arguments for embedding_bag)"
        )
    padding_idx = _padding(padding_idx, weight)
    if padding_idx is not None:
        kept = xp_of(flat.array).flatnonzero(flat.array != padding_idx)
        bag, kept = bag[kept], wrap(kept)
        flat = flat[kept]
        factors = None if factors is None else factors[kept]
    rows = embedding(flat, weight, None, max_norm, norm_type, scale_grad_by_freq)
    if factors is not None:
        rows = rows * factors.unsqueeze(1)
    return _reduced(rows, bag, count, mode)


def _check_bag(input, mode, weights, scale_grad_by_freq):
    if weights is not None and weights.shape != input.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({weights.shape}) is not None, then it must have the same shape as "
            f"the input ({input.shape})"
        )
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got "
            f"mode='{mode}'). Please open a feature request on GitHub."
        )


def _reduced(rows, bag, count, mode):
    """Rows [N,D] put into [count,D] by the numbers of their bags, an array."""
    xp = xp_of(rows.array)
    if mode == "max" and rows.shape[0]:
        return _largest(rows, bag, count)
    total = TABLE["rows_sum"].raw(rows, wrap(bag), shape=(count, rows.shape[1]), dim=0)
    if mode != "mean":
        return total
    lengths = xp.maximum(_lengths(xp, bag, count), 1)
    return total / wrap(lengths.astype(rows.array.dtype)).unsqueeze(1)


def _lengths(xp, bag, count):
    """How many of the ascending numbers ``bag`` are 0, 1, ... count - 1; CuPy's bincount would wait for the GPU."""
    if xp is np:
        return np.bincount(bag, minlength=count)
    bags = xp.arange(count)
    return xp.searchsorted(bag, bags, side="right") - xp.searchsorted(bag, bags, side="left")


@op()
def largest_of_bags(xp, x, bag, *, count):
    """For each bag and column the place of the first of the largest rows of x, or of a nan; -1 for an empty bag.

    Shapes      x [N,D]; bag [N], the number of each row's bag; out [count,D], int64
    """
    top = xp.full((count, x.shape[1]), -np.inf, x.dtype)
    combine_rows(xp, top, bag, x, xp.maximum)
    n = x.shape[0]
    here = xp.where((x == top[bag]) | (x != x), xp.arange(n)[:, None], n)
    place = xp.full(top.shape, n, xp.int64)
    combine_rows(xp, place, bag, here, xp.minimum)
    return xp.where(place == n, -1, place)


def _largest(rows, bag, count):
    """The largest of each bag and column; its place is found first, so that the gradient goes there."""
    place = largest_of_bags(rows.detach(), wrap(bag), count=count)
    return TABLE["only"].raw(TABLE["gather"].raw(rows, index=place.clamp(min=0), dim=0), place >= 0)


# ---- rows of the unit matrix


def _prepare_one_hot(tensor, num_classes=-1):
    if not isinstance(tensor, Tensor):
        raise not_tensor(TABLE["one_hot"], tensor)
    if tensor.dtype.category != 1 or tensor.dtype.itemsize != 8:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    array = tensor.array
    if not array.size:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return tensor, num_classes
    if num_classes != -1 and not looks(array):
        return tensor, num_classes
    if int(array.min()) < 0:
        raise RuntimeError("Class values must be non-negative.")
    largest = int(array.max())
    if num_classes == -1:
        return tensor, largest + 1
    if num_classes <= largest:
        raise RuntimeError("Class values must be smaller than num_classes.")
    return tensor, num_classes


@op(prepare=_prepare_one_hot)
def one_hot(xp, x, *, num_classes):
    """1 at the place x of a new last axis, 0 elsewhere, int64.

    ``num_classes``: the length of that axis, one more than the largest of x by default.

    Shapes      x any -> [*x,num_classes]
    Raises      RuntimeError for another dtype than int64, or numbers out of range

    >>> one_hot(tensor([1, 0]), 3)
    tensor([[0, 1, 0],
            [1, 0, 0]])
    """
    return (x[..., None] == xp.arange(num_classes)).astype(xp.int64)
