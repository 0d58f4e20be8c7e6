"""Losses with a margin, and of sequences, by their definitions."""

import numpy as np

import cudagrad as cg

from . import Error, Input, case
from .classification import WEIGHT
from .loss import INF, F, classes, in_all, numbered, part, reduces, row, signs


def hinge(x, t, margin=1.0):
    return np.where(t == 1, 0, np.maximum(0, margin - x)) + np.where(t == -1, 0, x)


case(
    F + "hinge_embedding_loss",
    reduces(hinge),
    *(*in_all((3, 4), signs(3, 4)), Input((3,), np.array([1.0, 0.0, -1.0]), margin=2.0)),
    wrt=(0,),
)
numbered(
    "hinge_embedding_loss",
    hinge,
    *(Input((3, 4), signs(3, 4)), Input((3,), np.array([1.0, 0.0, -1.0]), margin=2.0)),
    wrt=(0,),
)


def ranking(a, b, t, margin=0):
    return np.maximum(0, margin - t * (a - b))


case(
    F + "margin_ranking_loss",
    reduces(ranking),
    *in_all((5,), (5,), signs(5), margin=0.1),
    Error(RuntimeError, "margin_ranking_loss : All input tensors should have same dimension", (3,), (3,), (3, 1)),
    wrt=(0, 1),
)
numbered(
    "margin_ranking_loss",
    ranking,
    *(Input((5,), (5,), signs(5), margin=0.1), Input((3,), (3,), signs(3, 1))),
    wrt=(0, 1),
)


def cosine_embedding(a, b, t, margin=0):
    cos = (a * b).sum(-1) / np.sqrt(((a * a).sum(-1) + 1e-12) * ((b * b).sum(-1) + 1e-12))
    return np.where(t == 1, 1 - cos, np.where(t == -1, np.maximum(0, cos - margin), 0))


NO_ANGLES = (
    Error(
        RuntimeError,
        "0D or 1D target tensor expected, multi-target not supported",
        (3, 4),
        (3, 4),
        np.ones((1, 3), int),
    ),
    Error(
        RuntimeError,
        "1D target tensor expects 2D input tensors, but found inputs with sizes",
        (4,),
        (4,),
        np.ones(1, int),
    ),
)
case(
    F + "cosine_embedding_loss",
    reduces(cosine_embedding),
    *(*in_all((4, 5), (4, 5), np.array([1, -1, 1, 0]), margin=-0.5), *in_all((4,), (4,), np.array(1))),
    *NO_ANGLES,
    roundings=8,
)
numbered(
    "cosine_embedding_loss",
    cosine_embedding,
    *(Input((4, 5), (4, 5), np.array([1, -1, 1, 0]), margin=-0.5), Input((4,), (4,), np.array(1))),
    *NO_ANGLES,
    roundings=8,
)


def triplet(a, p_, n_, margin=1.0, p=2, eps=1e-6, swap=False):
    def distance(x, y):
        return (np.abs(x - y + eps) ** p).sum(-1) ** (1 / p)

    far = np.minimum(distance(a, n_), distance(p_, n_)) if swap else distance(a, n_)
    return np.maximum(0, margin + distance(a, p_) - far)


UNEQUAL = Error(RuntimeError, "anchor 2D, positive 2D, and negative 1D inputs", (3, 4), (3, 4), (4,))
case(
    F + "triplet_margin_loss",
    reduces(triplet),
    *(c for o in ({}, {"p": 1}, {"swap": True}, {"margin": 3.0}) for c in in_all((5, 4), (5, 4), (5, 4), **o)),
    Input((4,), (4,), (4,)),
    Error(ValueError, "margin must be greater than 0, got -1", (3, 4), (3, 4), (3, 4), margin=-1),
    UNEQUAL,
)
numbered(
    "triplet_margin_loss",
    triplet,
    *(Input((5, 4), (5, 4), (5, 4), **o) for o in ({}, {"p": 1}, {"swap": True}, {"margin": -0.1})),
    UNEQUAL,
)
row("soft_margin_loss", lambda x, t: np.logaddexp(0, -t * x), *in_all((3, 4), signs(3, 4)))
case(
    F + "triplet_margin_with_distance_loss",
    reduces(lambda a, p, n, swap=False: triplet(a, p, n, p=1, eps=0, swap=swap)),
    *(Input((5, 4), (5, 4), (5, 4)), Input((5, 4), (5, 4), (5, 4), swap=True)),
    f=lambda *a, **o: cg.nn.functional.triplet_margin_with_distance_loss(
        *a, distance_function=lambda x, y: (x - y).abs().sum(-1), **o
    ),
)
case(F + "triplet_margin_with_distance_loss", reduces(triplet), Input((5, 4), (5, 4), (5, 4)))


def multi_margin(x, t, p=1, margin=1.0, weight=None):
    rows, labels = (x[None], t.reshape(1)) if x.ndim == 1 else (x, t)
    n = np.arange(len(rows))
    over = np.maximum(0, margin - rows[n, labels][:, None] + rows) ** p
    over[n, labels] = 0
    losses = (over * (1 if weight is None else weight[labels][:, None])).sum(1) / rows.shape[1]
    return losses.reshape(t.shape)


BATCH = "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size)."
row(
    "multi_margin_loss",
    multi_margin,
    *(c for p in (1, 2) for c in in_all((5, 4), classes(5), p=p)),
    *(*in_all((4,), classes(), margin=0.3), *in_all((4,), classes(1)), *in_all((5, 4), classes(5), weight=WEIGHT)),
    Error(RuntimeError, "target out of range", (3, 4), np.array([1, 0, 4])),
    Error(RuntimeError, BATCH, (3, 4), np.array([1, 0])),
    Error(ValueError, "only p == 1 and p == 2 supported", (3, 4), classes(3), p=3),
    Error(ValueError, "weight must be one-dimensional", (3, 4), classes(3), weight=np.ones((4, 1))),
    Error(RuntimeError, "inconsistent weight size, expected 4 but got [3]", (3, 4), classes(3), weight=np.ones(3)),
    Error(RuntimeError, "Expected non-empty vector or matrix with optional 0-dim batch size", (3, 4, 5), classes(3)),
    Error(RuntimeError, "expected scalar type Long but found Float", (3, 4), (3,)),
    wrt=(0,),
)
LABELS = np.array([[1, 0, -1, 2], [3, -1, 0, 0], [-1, 1, 1, 1]])


def multilabel_margin(x, t):
    rows, labels = np.atleast_2d(x), np.atleast_2d(t)
    losses = []
    for scores, own in zip(rows, labels):
        own = own[: list(own).index(-1)] if -1 in own else own
        others = [c for c in range(len(scores)) if c not in own]
        losses.append(
            sum(max(0, 1 - (scores[y] - scores[c])) for y in own for c in others) / len(scores) + 0 * scores[0]
        )
    return np.array(losses).reshape(t.shape[:-1])


row(
    "multilabel_margin_loss",
    multilabel_margin,
    *(*in_all((3, 4), LABELS), *in_all((4,), LABELS[0])),
    Error(RuntimeError, "inconsistent target size: [2, 4] for input of size: [3, 4]", (3, 4), LABELS[:2]),
    Error(RuntimeError, "argument #2 'target' is out of range", (3, 4), LABELS + 3),
    Error(RuntimeError, "Expected non-empty vector or matrix with optional 0-dim batch size", (2, 3, 4), LABELS),
)


def multilabel_soft_margin(x, t, weight=1.0):
    return (weight * (t * np.logaddexp(0, -x) + (1 - t) * np.logaddexp(0, x))).mean(-1)


case(
    F + "multilabel_soft_margin_loss",
    reduces(multilabel_soft_margin),
    *(*in_all((3, 4), part(3, 4)), *in_all((4,), part(4), weight=part(4, seed=1))),
    Error(ValueError, "x is not valid", (3, 4), part(3, 4), reduction="x"),
)

# ---- sequences


def ways(log_p, labels, blank):
    """log of the summed probability of all paths that collapse to ``labels``, path by path."""
    times, count = log_p.shape
    total = 0.0
    for path in np.ndindex(*[count] * times):
        short = [c for i, c in enumerate(path) if i == 0 or c != path[i - 1]]
        if [c for c in short if c != blank] == list(labels):
            total += np.exp(sum(log_p[i, c] for i, c in enumerate(path)))
    return np.log(total) if total else -INF


def ctc(x, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    d = x - x.max(2, keepdims=True)
    log_p = d - np.log(np.exp(d).sum(2, keepdims=True))
    starts = np.concatenate([[0], np.cumsum(target_lengths)])
    losses = []
    for i, (t, n) in enumerate(zip(input_lengths, target_lengths)):
        labels = targets[i, :n] if targets.ndim == 2 else targets[starts[i] : starts[i] + n]
        losses.append(-ways(log_p[:t, i], labels, blank))
    losses = np.array(losses)
    if zero_infinity:
        losses = np.where(np.isinf(losses), 0, losses)
    if reduction == "mean":
        return (losses / np.maximum(target_lengths, 1)).mean()
    return losses.sum() if reduction == "sum" else losses


TEXTS = np.array([[1, 2], [1, 1]])
case(
    F + "ctc_loss",
    ctc,
    *(*in_all((4, 2, 3), TEXTS, [4, 4], [2, 2]), *in_all((4, 2, 3), np.array([1, 2, 1]), [4, 3], [2, 1])),
    *(Input((4, 2, 3), TEXTS, [4, 4], [0, 2]), Input((4, 2, 3), TEXTS - 1, [4, 4], [2, 2], blank=2)),
    Input((4, 2, 3), TEXTS, [4, 2], [2, 2], reduction="none", zero_infinity=True),
    f=lambda x, *a, **o: cg.nn.functional.ctc_loss(x.log_softmax(2), *a, **o),
    low=False,
    roundings=16,
)
case(
    "ctc_loss",
    None,
    Error(
        RuntimeError,
        "Expected input_lengths to have value at most 5, but got value 6",
        (5, 2, 4),
        TEXTS,
        [5, 6],
        [2, 2],
    ),
    Error(
        RuntimeError,
        "Expected tensor to have size at least 3 at dimension 1, but got size 2",
        (5, 2, 4),
        TEXTS,
        [5, 5],
        [2, 3],
    ),
    Error(
        RuntimeError,
        "Expected tensor to have size 4 at dimension 0, but got size 3",
        (5, 2, 4),
        TEXTS[0, [0, 1, 1]],
        [5, 5],
        [2, 2],
    ),
    Error(RuntimeError, "input_lengths must be of size batch_size", (5, 2, 4), TEXTS, [5], [2, 2]),
    Error(RuntimeError, "target_lengths must be of size batch_size", (5, 2, 4), TEXTS, [5, 5], [2]),
    Error(RuntimeError, "blank must be in label range", (5, 2, 4), TEXTS, [5, 5], [2, 2], blank=4),
    Error(RuntimeError, "log_probs tensor must not be empty", (0, 2, 4), TEXTS, [0, 0], [0, 0]),
)
