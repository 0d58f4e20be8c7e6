"""Cross-entropy and negative log-likelihood of classes, by their definitions."""

import numpy as np

from . import Error, HostError, Input, case
from .loss import INF, NO_REDUCTION, F, classes, in_all, part


def squared_normal(x):
    """logsumexp(x)^2 along axis 1."""
    top = x.max(1, initial=-INF)
    return (top + np.log(np.exp(x - top[:, None]).sum(1))) ** 2


def log_softmax(x):
    d = x - x.max(1, keepdims=True, initial=-INF)
    return d - np.log(np.exp(d).sum(1, keepdims=True))


def picked(log_p, target, weight, ignore_index):
    """-weight[target] * log_p[target] of every target, and its weight; 0 where it is ignored."""
    kept = target != ignore_index
    index = np.where(kept, target, 0).astype(int)
    w = (weight if weight is not None else np.ones(log_p.shape[1]))[index] * kept
    return -np.take_along_axis(log_p, index[:, None], 1)[:, 0] * w, w


def averaged(losses, weights, reduction):
    return losses.sum() / weights.sum() if reduction == "mean" else losses.sum() if reduction == "sum" else losses


def batched(x, target):
    return (x[None], target.reshape(1)) if x.ndim == 1 else (x, target)


def nll(x, target, weight=None, ignore_index=-100, reduction="mean"):
    rows, labels = batched(x, target)
    result = averaged(*picked(rows, labels, weight, ignore_index), reduction)
    return result.reshape(()) if x.ndim == 1 else result


def cross_entropy(x, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0, z_loss=0.0):
    if target.dtype.kind not in "iu":
        return of_probabilities(x, target, weight, reduction, label_smoothing, z_loss)
    rows, labels = batched(x, target)
    log_p = log_softmax(rows)
    losses, weights = picked(log_p, labels, weight, ignore_index)
    if label_smoothing:
        w = np.ones(rows.shape[1]) if weight is None else weight
        spread = -(log_p * w.reshape([1, -1] + [1] * (rows.ndim - 2))).sum(1) * (labels != ignore_index)
        losses = (1 - label_smoothing) * losses + label_smoothing / rows.shape[1] * spread
    if z_loss:
        losses = losses + z_loss * weights * squared_normal(rows)
    result = averaged(losses, weights, reduction)
    return result.reshape(()) if x.ndim == 1 else result


def of_probabilities(x, target, weight, reduction, label_smoothing, z_loss):
    rows = x[None] if x.ndim == 1 else x
    p = target[None] if x.ndim == 1 else target
    p = p * (1 - label_smoothing) + label_smoothing / rows.shape[1]
    w = 1.0 if weight is None else weight.reshape([1, -1] + [1] * (rows.ndim - 2))
    losses = -(p * w * log_softmax(rows)).sum(1) + z_loss * squared_normal(rows)
    losses = losses.mean() if reduction == "mean" else losses.sum() if reduction == "sum" else losses
    return losses.reshape(()) if x.ndim == 1 else losses


IGNORED = np.array([1, -100, 3, 0, -100])
WEIGHT = part(4, seed=5) * 2
TARGETS = [
    *(((5, 4), classes(5)), ((5, 4), IGNORED), ((5, 4), classes(5).astype(np.uint8)), ((5, 4, 3), classes(5, 3))),
    *(((2, 4, 3, 2), classes(2, 3, 2)), ((2, 4, 3, 2, 2), classes(2, 3, 2, 2)), ((4,), classes()), ((4,), classes(1))),
]
for name, ref in (("nll_loss", nll), ("cross_entropy", cross_entropy)):
    case(F + name, ref, *(c for x, t in TARGETS for c in in_all(x, t)), wrt=(0,))
    case(F + name, ref, *(c for x, t in TARGETS[:4] for c in in_all(x, t, weight=WEIGHT)), wrt=(0,))
    case(F + name, ref, *in_all((5, 4), classes(5), ignore_index=2), wrt=(0,))
    case(F + name, ref, Input((2, 4), np.array([-100, -100])), Input((0, 4), classes(0)), grad=0)
    case(
        F + name, ref, Input((0, 4), classes(0), reduction="sum"), Input((0, 4), classes(0), reduction="none"), wrt=(0,)
    )
    case(
        F + name,
        None,
        HostError(IndexError, "Target 4 is out of bounds.", (3, 4), np.array([1, 0, 4])),
        HostError(IndexError, "Target -1 is out of bounds.", (3, 4), np.array([1, 0, -1])),
        Error(ValueError, "Expected input batch_size (3) to match target batch_size (2).", (3, 4), np.array([1, 0])),
        Error(
            RuntimeError, "expected target dtype to be Long or Byte, but got Int", (3, 4), classes(3).astype(np.int32)
        ),
        Error(RuntimeError, "expected target dtype to be Long or Byte, but got Float", (3, 4), (3,)),
        Error(RuntimeError, "Expected target size [3, 5], got [3, 4]", (3, 4, 5), np.ones((3, 4), int)),
        Error(
            RuntimeError,
            "size mismatch (got input: [3, 4, 5, 6] , target: [3, 5, 5]",
            (3, 4, 5, 6),
            np.ones((3, 5, 5), int),
        ),
        Error(
            RuntimeError,
            "weight tensor should be defined either for all 4 classes",
            (3, 4),
            classes(3),
            weight=np.ones(3),
        ),
        Error(ValueError, NO_REDUCTION, (3, 4), classes(3), reduction="x"),
    )
SMOOTH = [c for s in (0.1, 1.0) for x, t in TARGETS[:5] for c in in_all(x, t, label_smoothing=s)]
case(F + "cross_entropy", cross_entropy, *SMOOTH, wrt=(0,), roundings=8)
case(
    F + "cross_entropy",
    cross_entropy,
    *(c for t in (classes(5), IGNORED) for c in in_all((5, 4), t, weight=WEIGHT, label_smoothing=0.2)),
    *in_all((5, 4), classes(5), weight=np.array([0.0, 1.0, 2.0, 0.5]), label_smoothing=0.2),
    wrt=(0,),
)
case(
    F + "cross_entropy",
    cross_entropy,
    *(*in_all((5, 4), part(5, 4)), *in_all((4,), part(4)), *in_all((5, 4, 2), part(5, 4, 2), label_smoothing=0.1)),
)
case(F + "cross_entropy", cross_entropy, *in_all((5, 4), part(5, 4), weight=WEIGHT))
Z = [
    *(c for x, t in TARGETS[:5] for c in in_all(x, t, z_loss=0.1)),
    *in_all((5, 4), IGNORED, weight=WEIGHT, label_smoothing=0.2, z_loss=0.1),
    Input((4,), classes(), z_loss=1e-2),
]
case(F + "cross_entropy", cross_entropy, *Z, wrt=(0,), roundings=8)
case(
    F + "cross_entropy", cross_entropy, *in_all((5, 4, 2), part(5, 4, 2), z_loss=0.1), Input((4,), part(4), z_loss=0.1)
)
# Over many blocks of rows, over short and long rows, and far from 0.
case(
    F + "cross_entropy",
    cross_entropy,
    Input((40, 3000), classes(40, below=3000)),
    Input((300, 10), classes(300, below=10)),
    Input((300, 40), classes(300, below=40)),
    Input(np.array([[1000.0, -1000.0, 0.0], [-1e4, 0.0, -1e4]]), np.array([0, 1])),
    wrt=(0,),
    grad=1,
    low=False,
)
case(
    F + "cross_entropy",
    cross_entropy,
    Input(np.array([[1.0, -INF, 2.0]]), np.array([0])),
    Input(np.array([[1.0, -INF, 2.0]]), np.array([1])),
    Input(np.array([[1.0, -INF, 2.0]]), np.array([0]), label_smoothing=0.1),
    grad=0,
    low=False,
)
case(
    F + "cross_entropy",
    None,
    Error(RuntimeError, "0D or 1D target tensor expected, multi-target not supported", (3, 4), (3, 5)),
    Error(RuntimeError, "ignore_index is not supported for floating point target", (3, 4), (3, 4), ignore_index=2),
    Error(
        RuntimeError, "label_smoothing must be between 0.0 and 1.0. Got: 1.5", (3, 4), classes(3), label_smoothing=1.5
    ),
    Error(RuntimeError, "Expected floating point type for target with class probabilities, got Long", (), np.array(1)),
    Error(
        NotImplementedError,
        "\"log_softmax_lastdim_kernel_impl\" not implemented for 'Long'",
        np.ones((3, 4), int),
        classes(3),
    ),
)
case(F + "nll_loss", None, Error(ValueError, "Expected 1 or more dimensions (got 0)", (), np.array(0)))
case(
    F + "linear_cross_entropy",
    lambda x, w, t, linear_bias=0.0, **o: cross_entropy(np.tensordot(x, w, (-1, -1)) + linear_bias, t, **o),
    Input((3, 4), (5, 2, 4), classes(3, 2), linear_bias=np.ones((5, 2)), reduction="none"),
    *(
        Input((3, 4), (5, 4), classes(3)),
        Input((3, 4), (5, 4), classes(3), linear_bias=np.ones(5), label_smoothing=0.1),
    ),
    roundings=16,
)
