"""Losses and reductions of nothing: section F by line."""

import math

import numpy as np
import pytest

import cudagrad as cg
import cudagrad.nn.functional as F

INF = math.inf

LOGITS = [[1.0, 2.0, 3.0], [3.0, 1.0, 0.5], [0.1, 0.2, 0.3]]


def logits(dtype=None):
    return cg.tensor(LOGITS, dtype=dtype or cg.float64, requires_grad=True)


def log_softmax(rows):
    a = np.array(rows)
    return a - np.log(np.exp(a).sum(1, keepdims=True))


# ---- 61


def test_61_ignored_targets_do_not_count_in_the_mean():
    target = cg.tensor([2, -100, 0])
    lp = log_softmax(LOGITS)
    assert F.cross_entropy(logits(), target).item() == pytest.approx(-(lp[0, 2] + lp[2, 0]) / 2)
    assert F.cross_entropy(logits(), cg.tensor([2, 1, 0]), ignore_index=1).item() == pytest.approx(
        -(lp[0, 2] + lp[2, 0]) / 2
    )
    x = logits()
    F.cross_entropy(x, target).backward()
    assert x.grad[1].tolist() == [0.0] * 3


def test_61_weighted_means_divide_by_the_weights_of_the_targets():
    w = np.array([1.0, 2.0, 4.0])
    lp, target = log_softmax(LOGITS), [2, 0, 1]
    expected = -sum(w[t] * lp[i, t] for i, t in enumerate(target)) / w[target].sum()
    got = F.cross_entropy(logits(), cg.tensor(target), weight=cg.from_numpy(w))
    assert got.item() == pytest.approx(expected)


def test_61_smoothing_with_weights():
    w, e, n = np.array([1.0, 2.0, 4.0]), 0.1, 3
    lp, target = log_softmax(LOGITS), [2, 0, 1]
    total = w[target].sum()
    hard = -sum(w[t] * lp[i, t] for i, t in enumerate(target)) / total
    smooth = -(lp * w).sum() / total
    got = F.cross_entropy(logits(), cg.tensor(target), weight=cg.from_numpy(w), label_smoothing=e)
    assert got.item() == pytest.approx((1 - e) * hard + e / n * smooth)


def test_61_probabilities_as_targets_divide_by_the_batch_and_weigh_inside():
    w = np.array([1.0, 2.0, 4.0])
    p = np.array([[0.2, 0.3, 0.5], [0.1, 0.8, 0.1], [1.0, 0.0, 0.0]])
    expected = -(log_softmax(LOGITS) * p * w).sum() / 3
    got = F.cross_entropy(logits(), cg.from_numpy(p), weight=cg.from_numpy(w))
    assert got.item() == pytest.approx(expected)
    with pytest.raises(RuntimeError, match="^ignore_index is not supported for floating point target"):
        F.cross_entropy(logits(), cg.from_numpy(p), ignore_index=1)


def test_61_nothing_to_average_is_nan():
    ignored = cg.tensor([-100, -100, -100])
    assert math.isnan(F.cross_entropy(logits(), ignored).item())
    assert F.cross_entropy(logits(), ignored, reduction="sum").item() == 0.0
    assert math.isnan(F.cross_entropy(cg.zeros(0, 3), cg.zeros(0, dtype=cg.int64)).item())


# ---- 62


def test_62_targets_out_of_range():
    for target, named in ((3, 3), (-1, -1)):
        with pytest.raises(IndexError) as raised:
            F.cross_entropy(logits(), cg.tensor([0, target, 0]))
        assert str(raised.value).split("\n")[0] == f"Target {named} is out of bounds."


def test_62_targets_of_another_integer_dtype():
    with pytest.raises(RuntimeError) as raised:
        F.cross_entropy(logits(), cg.tensor([0, 1, 2], dtype=cg.int32))
    assert str(raised.value).split("\n")[0] == "expected target dtype to be Long or Byte, but got Int"


def test_62_one_sample_without_a_batch():
    expected = -log_softmax(LOGITS)[0, 2]
    assert F.cross_entropy(logits()[0], cg.tensor(2)).item() == pytest.approx(expected)


def test_62_smoothing_of_an_impossible_class_is_infinite():
    x = cg.tensor([[0.0, -INF, 1.0]])
    assert F.cross_entropy(x, cg.tensor([0]), label_smoothing=0.1).item() == INF
    assert math.isfinite(F.cross_entropy(x, cg.tensor([0])).item())


# ---- 63


def test_63_logarithms_of_probabilities_stop_at_minus_100():
    x = cg.tensor([0.0], dtype=cg.float64, requires_grad=True)
    loss = F.binary_cross_entropy(x, cg.ones(1, dtype=cg.float64))
    loss.backward()
    assert loss.item() == 100.0
    assert x.grad.item() == pytest.approx(-1e12)


def test_63_no_probability_lies_outside_zero_and_one():
    for bad in (1.5, -0.1):
        with pytest.raises(RuntimeError, match="^all elements of input should be between 0 and 1"):
            F.binary_cross_entropy(cg.tensor([bad]), cg.ones(1))


def test_63_logits_are_stable():
    x = cg.tensor([1000.0, -1000.0], requires_grad=True)
    loss = F.binary_cross_entropy_with_logits(x, cg.tensor([0.0, 1.0]), reduction="none")
    loss.sum().backward()
    assert loss.tolist() == [1000.0, 1000.0]
    assert x.grad.tolist() == [1.0, -1.0]


# ---- 64


def test_64_kl_divergence():
    lp = cg.tensor([[-1.0, -2.0], [-0.5, -3.0]])
    target = cg.tensor([[0.0, 1.0], [0.5, 0.5]])
    parts = np.array([[0.0, 2.0], [0.5 * (math.log(0.5) + 0.5), 0.5 * (math.log(0.5) + 3.0)]])
    with pytest.warns(
        UserWarning, match="^reduction: 'mean' divides the total loss by both the batch size and the supp"
    ):
        got = F.kl_div(lp, target, reduction="mean")
    assert got.item() == pytest.approx(parts.sum() / 4)
    assert F.kl_div(lp, target, reduction="batchmean").item() == pytest.approx(parts.sum() / 2)
    np.testing.assert_allclose(F.kl_div(lp, target, reduction="none").numpy(), parts, rtol=1e-6)


def test_64_gaussian_likelihoods_clamp_the_variance():
    var = cg.tensor([0.0], dtype=cg.float64, requires_grad=True)
    zero = cg.zeros(1, dtype=cg.float64)
    loss = F.gaussian_nll_loss(zero, zero + 1e-3, var)
    assert loss.item() == pytest.approx(0.5 * (math.log(1e-6) + 1e-6 / 1e-6))
    with pytest.raises(ValueError, match="^var has negative entry/entries"):
        F.gaussian_nll_loss(zero, zero, zero - 1)


def test_64_squares_of_unequal_shapes_warn_and_broadcast():
    with pytest.warns(UserWarning) as warned:
        got = F.mse_loss(cg.zeros(2, 1), cg.ones(2))
    assert got.item() == 1.0
    assert str(warned[0].message) == (
        "Using a target size (torch.Size([2])) that is different to the input size (torch.Size([2, 1])). This will "
        "likely lead to incorrect results due to broadcasting. Please ensure they have the same size."
    )


# ---- 65


@pytest.mark.parametrize(
    "call, expected",
    [
        (lambda x: x.sum(), 0.0),
        (lambda x: x.prod(), 1.0),
        (lambda x: x.mean(), math.nan),
        (lambda x: x.logsumexp(0), -INF),
        (lambda x: x.norm(), 0.0),
        (lambda x: x.all(), True),
        (lambda x: x.any(), False),
        (lambda x: x.median(), math.nan),
        (lambda x: x.nansum(), 0.0),
        (lambda x: x.bool().sum(), 0),
    ],
)
def test_65_reductions_of_nothing(call, expected):
    got = call(cg.zeros(0))
    assert got.shape == ()
    np.testing.assert_equal(got.item(), expected)


@pytest.mark.parametrize("name", ["std", "var"])
def test_65_variances_of_nothing_are_nan_and_warn(name):
    with pytest.warns(UserWarning, match=rf"^{name}\(\): degrees of freedom is <= 0"):
        assert math.isnan(getattr(cg.zeros(0), name)().item())


@pytest.mark.parametrize(
    "call, kind, first",
    [
        (lambda x: x.max(), RuntimeError, "max(): Expected reduction dim to be specified for input.numel() == 0."),
        (lambda x: x.min(), RuntimeError, "min(): Expected reduction dim to be specified for input.numel() == 0."),
        (lambda x: x.amax(), RuntimeError, "amax(): Expected reduction dim to be specified for input.numel() == 0."),
        (lambda x: x.amin(), RuntimeError, "amin(): Expected reduction dim to be specified for input.numel() == 0."),
        (lambda x: x.aminmax(), RuntimeError, "aminmax(): cannot compute aminmax over an empty dimension"),
        (lambda x: x.max(0), IndexError, "max(): Expected reduction dim 0 to have non-zero size."),
        (lambda x: x.amax(0), IndexError, "amax(): Expected reduction dim 0 to have non-zero size."),
        (lambda x: x.argmax(), IndexError, "argmax(): Expected reduction dim to be specified for input.numel() == 0."),
        (lambda x: x.argmax(0), IndexError, "argmax(): Expected reduction dim 0 to have non-zero size."),
        (lambda x: x.argmin(0), IndexError, "argmin(): Expected reduction dim 0 to have non-zero size."),
        (lambda x: x.median(0), IndexError, "median(): Expected reduction dim 0 to have non-zero size."),
        (lambda x: x.mode(0), IndexError, "mode(): Expected reduction dim 0 to have non-zero size."),
        (lambda x: x.kthvalue(1), IndexError, "kthvalue(): Expected reduction dim 0 to have non-zero size."),
    ],
)  # fmt: skip
def test_65_extremes_of_nothing(call, kind, first):
    with pytest.raises(kind) as raised:
        call(cg.zeros(0))
    assert str(raised.value).split("\n")[0].startswith(first)


def test_65_products_of_matrices_without_an_inner_dim_are_zero():
    assert (cg.ones(2, 0) @ cg.ones(0, 3)).tolist() == [[0.0] * 3] * 2
    a = cg.ones(2, 0, requires_grad=True)
    (a @ cg.ones(0, 3)).sum().backward()
    assert a.grad.shape == (2, 0)
    assert cg.dot(cg.ones(0), cg.ones(0)).item() == 0.0
