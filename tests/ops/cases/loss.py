"""Losses by their definitions, in all reductions."""

import math

import numpy as np

from . import Error, Input, case

F = "nn.functional."
INF, NAN = math.inf, math.nan
NO_REDUCTION = "x is not a valid value for reduction"


def rng(seed):
    return np.random.default_rng(seed)


def classes(*shape, below=4, seed=3):
    return rng(seed).integers(0, below, shape)


def part(*shape, seed=8):
    """Numbers in (0, 1)."""
    return 0.05 + 0.9 * rng(seed).random(shape)


def signs(*shape, seed=2):
    return np.sign(rng(seed).standard_normal(shape))


def reduces(losses):
    """A reference from the losses of all elements."""

    def ref(*args, reduction="mean", **options):
        each = losses(*args, **options)
        return each.mean() if reduction == "mean" else each.sum() if reduction == "sum" else each

    return ref


def in_all(*args, **options):
    return [Input(*args, reduction=r, **options) for r in ("mean", "sum", "none")]


NUMBERS = {0: "none", 1: "mean", 2: "sum", 3: "none"}  # PyTorch's of reductions


def numbered(name, losses, *calls, **facts):
    """A row of a function beside nn.functional whose reduction is a number; no reduction where none is given."""

    def ref(*args, reduction=0, **options):
        return reduces(losses)(*args, reduction=NUMBERS[reduction], **options)

    inputs, errors = ([c for c in calls if isinstance(c, kind)] for kind in (Input, Error))
    inputs = [Input(*c.args, **c.options, **r) for c in inputs for r in ({}, *({"reduction": n} for n in NUMBERS))]
    wrong = f"{name}(): argument 'reduction' must be int, not "
    bad = [
        Error(TypeError, wrong + kind, *inputs[0].args, **inputs[0].options, reduction=value)
        for kind, value in (("str", "mean"), ("float", 1.0), ("bool", True), ("NoneType", None))
    ]
    case(name, ref, *inputs, *bad, *errors, **facts)


def row(name, losses, *calls, **facts):
    bad = Error(ValueError, NO_REDUCTION, *calls[0].args, **{**calls[0].options, "reduction": "x"})
    case(F + name, reduces(losses), *calls, bad, **facts)


# ---- numbers


def bent(d, beta):
    size = np.abs(d)
    return np.where(size < beta, 0.5 * d * d / (beta or 1), size - 0.5 * beta)


ROW, COLUMN = (3, 4), (3, 4)
row("mse_loss", lambda x, t: (x - t) ** 2, *in_all(ROW, COLUMN), Input((31,), (31,)))
row("l1_loss", lambda x, t: np.abs(x - t), *in_all(ROW, COLUMN))
row("smooth_l1_loss", lambda x, t, beta=1.0: bent(x - t, beta), *in_all(ROW, COLUMN), *in_all(ROW, COLUMN, beta=0.3))
case(F + "smooth_l1_loss", reduces(lambda x, t, beta: np.abs(x - t)), Input(ROW, COLUMN, beta=0))
row(
    "huber_loss",
    lambda x, t, delta=1.0: delta * bent(x - t, delta),
    *in_all(ROW, COLUMN),
    Input(ROW, COLUMN, delta=0.4),
)
for name, losses in (("mse_loss", lambda d: d * d), ("l1_loss", np.abs)):

    def weighted(x, t, weight, reduction="mean", losses=losses):
        each = losses(x - t) * weight
        return each.sum() / weight.sum() if reduction == "mean" else each.sum() if reduction == "sum" else each

    case(F + name, weighted, *in_all(ROW, COLUMN, weight=part(3, 4)))
case(F + "huber_loss", reduces(lambda x, t, weight: bent(x - t, 1.0) * weight), *in_all(ROW, COLUMN, weight=part(3, 4)))
for name in ("mse_loss", "l1_loss", "huber_loss"):
    text = "Weights and input must have the same size."
    case(F + name, None, Error(ValueError, text, ROW, COLUMN, weight=np.ones(4)))
for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"):
    text = "The size of tensor a (4) must match the size of tensor b (5) at non-singleton dimension 1"
    case(F + name, None, Error(RuntimeError, text, (3, 4), (3, 5)))
case(
    F + "smooth_l1_loss",
    None,
    Error(RuntimeError, "smooth_l1_loss does not support negative values for beta.", (2,), (2,), beta=-1),
    Error(NotImplementedError, "\"smooth_l1_cpu\" not implemented for 'Long'", np.ones(2, int), np.ones(2, int)),
)
case(
    F + "huber_loss",
    None,
    Error(RuntimeError, "huber_loss does not support non-positive values for delta.", (2,), (2,), delta=0),
)
case(
    F + "mse_loss",
    None,
    Error(NotImplementedError, "\"mse_cpu\" not implemented for 'Long'", np.ones(2, int), np.ones(2, int)),
)


def poisson(x, t, log_input=True, full=False, eps=1e-8):
    loss = np.exp(x) - t * x if log_input else x - t * np.log(x + eps)
    return loss + np.where(t > 1, t * np.log(t) - t + 0.5 * np.log(2 * math.pi * t), 0) if full else loss


case(
    F + "poisson_nll_loss",
    reduces(poisson),
    *(*in_all(ROW, part(3, 4) * 4), *in_all(ROW, part(3, 4) * 4, full=True)),
    *in_all(part(3, 4), part(3, 4, seed=1) * 4, log_input=False, full=True),
)
case(
    "poisson_nll_loss",
    lambda x, t, log_input, full, eps, reduction: reduces(poisson)(
        x, t, log_input, full, eps, reduction=NUMBERS[reduction]
    ),
    *(Input(ROW, part(3, 4) * 4, True, full, 1e-8, n) for full in (False, True) for n in NUMBERS),
    Input(part(3, 4), part(3, 4, seed=1) * 4, False, True, 1e-3, 1),
)


def gaussian(x, t, var, full=False, eps=1e-6):
    var = var[..., None] if var.shape == x.shape[:-1] else var
    var = np.maximum(var, eps)
    return 0.5 * (np.log(var) + (x - t) ** 2 / var) + (0.5 * math.log(2 * math.pi) if full else 0)


SMALL = "var is of incorrect size"
case(
    F + "gaussian_nll_loss",
    reduces(gaussian),
    Error(ValueError, "x is not valid", ROW, COLUMN, part(3, 4), reduction="x"),
    *(*in_all(ROW, COLUMN, part(3, 4)), *in_all(ROW, COLUMN, part(3, 1), full=True), *in_all(ROW, COLUMN, part(3))),
)
case(
    F + "gaussian_nll_loss",
    reduces(gaussian),
    Input(ROW, COLUMN, np.zeros((3, 4))),
    Error(ValueError, SMALL, ROW, COLUMN, np.ones(4)),
    Error(ValueError, "var has negative entry/entries", ROW, COLUMN, -np.ones((3, 4))),
    grad=0,
    low=False,
)

# ---- probabilities


def entropy(x, t, weight=1.0):
    return -weight * (t * np.maximum(np.log(x), -100) + (1 - t) * np.maximum(np.log1p(-x), -100))


row(
    "binary_cross_entropy",
    entropy,
    *in_all(part(3, 4), part(3, 4, seed=1)),
    *in_all(part(3), part(3, seed=1), weight=part(3, seed=2)),
)
DIFFERENT = "Using a target size (torch.Size([4])) that is different to the input size (torch.Size([3])) is deprecated."
case(
    F + "binary_cross_entropy",
    reduces(entropy),
    Input(np.array([0.0, 1.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0, 1.0])),
    Error(RuntimeError, "all elements of input should be between 0 and 1", part(3) + 1, part(3)),
    Error(RuntimeError, "all elements of target should be between 0 and 1", part(3), part(3) + 1),
    Error(ValueError, DIFFERENT, part(3), part(4)),
    Error(RuntimeError, "Attempting to broadcast a dimension of length 4 at -1!", part(3), part(3), weight=part(4)),
    Error(RuntimeError, "Found dtype Long but expected Float", part(3), np.ones(3, int)),
    grad=0,
)


def of_logits(x, t, weight=1.0, pos_weight=1.0):
    return weight * ((1 - t) * x + (1 + (pos_weight - 1) * t) * np.logaddexp(-x, 0))


LOGITS = F + "binary_cross_entropy_with_logits"
INTEGERS = Error(RuntimeError, "result type Float can't be cast to the desired output type Long", (3,), np.ones(3, int))
case(
    LOGITS,
    reduces(of_logits),
    *(
        *in_all(ROW, part(3, 4)),
        *in_all(ROW, part(3, 4), weight=part(4, seed=1)),
        Input((300, 500), part(300, 500)),
    ),
    Error(ValueError, "Target size (torch.Size([4])) must be the same as input size (torch.Size([3]))", (3,), (4,)),
    INTEGERS,
)
case(LOGITS, reduces(of_logits), *in_all(ROW, part(3, 4), pos_weight=part(4, seed=1) * 3), wrt=(0, 1))
case(
    LOGITS,
    reduces(of_logits),
    Input(np.array([1000.0, -1000.0, 0.0]), np.array([0.0, 1.0, 0.0]), reduction="none"),
    grad=0,
    low=False,
)
numbered(
    "binary_cross_entropy_with_logits",
    of_logits,
    Input(ROW, part(3, 4)),
    Input((4,), part(3, 4), weight=part(4, seed=1)),
    Error(RuntimeError, "The size of tensor a (4) must match the size of tensor b (3) at non-singl", (3,), (4,)),
    Error(RuntimeError, "output with shape [4] doesn't match the broadcast shape [3, 4]", (3, 4), part(4)),
    INTEGERS,
)
numbered(
    "binary_cross_entropy_with_logits",
    lambda x, t, weight, pos_weight: of_logits(x, t, pos_weight=pos_weight),
    Input(ROW, part(3, 4), None, part(4, seed=1) * 3),
    wrt=(0, 1),
)


def divergence(x, t, log_target=False, reduction="mean"):
    loss = np.exp(t) * (t - x) if log_target else np.where(t > 0, t * np.log(np.where(t > 0, t, 1)), 0 * t) - t * x
    if reduction == "batchmean":
        return loss.sum() / x.shape[0]
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


case(
    F + "kl_div",
    divergence,
    *(
        *in_all(ROW, part(3, 4)),
        *in_all(ROW, COLUMN, log_target=True),
        Input(ROW, part(3, 4), reduction="batchmean"),
    ),
    Error(ValueError, NO_REDUCTION, ROW, part(3, 4), reduction="x"),
)
numbered(
    "kl_div",
    lambda x, t, log_target=False: divergence(x, t, log_target, "none"),
    *(Input(ROW, part(3, 4)), Input(ROW, COLUMN, log_target=True)),
)
case(F + "kl_div", divergence, Input((3,), np.array([0.0, 0.5, 0.0]), reduction="none"), wrt=(0,))
