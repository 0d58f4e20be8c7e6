"""Losses: bends, reductions, warnings, layers, and the gradient that cross-entropy makes in its forward."""

import math
import warnings

import numpy as np
import pytest

import cudagrad as cg
from cudagrad import nn
from cudagrad.nn import functional as F

INF = math.inf


def gradient(function, *values):
    """The gradient of the sum of ``function`` of one tensor."""
    x = cg.tensor(values, dtype=cg.float64, requires_grad=True)
    function(x).sum().backward()
    return x.grad.tolist()


def zeros_like(x):
    return cg.zeros_like(x.detach())


# ---- bends


@pytest.mark.parametrize(
    "name, function, at, slope",
    [
        ("smooth_l1 at beta", lambda x: F.smooth_l1_loss(x, zeros_like(x), reduction="sum"), 1.0, 1.0),
        ("smooth_l1 at -beta", lambda x: F.smooth_l1_loss(x, zeros_like(x), reduction="sum"), -1.0, -1.0),
        ("huber at delta", lambda x: F.huber_loss(x, zeros_like(x), reduction="sum"), 1.0, 1.0),
        ("huber at delta 0.5", lambda x: F.huber_loss(x, zeros_like(x), reduction="sum", delta=0.5), 0.5, 0.5),
        ("l1 at 0", lambda x: F.l1_loss(x, zeros_like(x), reduction="sum"), 0.0, 0.0),
        ("hinge at margin", lambda x: F.hinge_embedding_loss(x, -cg.ones_like(x.detach())), 1.0, -1.0),
        ("bce of 0 for 1", lambda x: F.binary_cross_entropy(x, cg.ones_like(x.detach())), 0.0, -1e12),
        ("bce of 1 for 0", lambda x: F.binary_cross_entropy(x, zeros_like(x)), 1.0, 1e12),
        ("logits far off", lambda x: F.binary_cross_entropy_with_logits(x, zeros_like(x)), 1000.0, 1.0),
        ("variance below eps", lambda v: F.gaussian_nll_loss(zeros_like(v), zeros_like(v), v), 0.0, 0.5e6),
    ],
)
def test_the_slope_at_a_bend_is_pytorchs(name, function, at, slope):
    assert gradient(function, at) == [pytest.approx(slope, rel=1e-9)]


def test_a_multi_margin_met_exactly_has_no_slope():
    assert gradient(lambda x: F.multi_margin_loss(x.reshape(1, 2), cg.tensor([0])), 1.0, 0.0) == [0.0, 0.0]


def test_clamped_logarithms_cost_100():
    assert F.binary_cross_entropy(cg.tensor([0.0]), cg.tensor([1.0])).item() == 100


def test_equal_points_have_distance_0_and_no_gradient():
    x = cg.ones(2, 3, dtype=cg.float64, requires_grad=True)
    d = cg.cdist(x, x.detach())
    d.sum().backward()
    assert d.tolist() == [[0.0, 0.0]] * 2 and x.grad.tolist() == [[0.0] * 3] * 2


def test_cosine_similarity_of_zeros_divides_by_eps():
    x = cg.zeros(1, 2, dtype=cg.float64, requires_grad=True)
    F.cosine_similarity(x, cg.tensor([[1.0, 0.0]], dtype=cg.float64)).sum().backward()
    assert x.grad.tolist() == [[pytest.approx(1e8), 0.0]]


# ---- cross-entropy


def test_mean_with_weights_is_over_the_weights_of_the_targets():
    x = cg.tensor([[1.0, 2.0, 3.0], [0.5, 0.5, 0.5]], dtype=cg.float64)
    w = np.array([0.2, 1.0, 3.0])
    log_p = x.numpy() - np.log(np.exp(x.numpy()).sum(1, keepdims=True))
    expected = -(w[2] * log_p[0, 2] + w[0] * log_p[1, 0]) / (w[2] + w[0])
    assert F.cross_entropy(x, cg.tensor([2, 0]), cg.tensor(w)).item() == pytest.approx(expected, rel=1e-12)


def test_all_targets_ignored_give_nan_and_a_gradient_of_0():
    x = cg.ones(2, 3, requires_grad=True)
    loss = F.cross_entropy(x, cg.tensor([-100, -100]))
    loss.backward()
    assert math.isnan(loss.item()) and not x.grad.any()
    assert F.cross_entropy(x, cg.tensor([-100, -100]), reduction="sum").item() == 0


def test_an_empty_batch_gives_nan():
    assert math.isnan(F.cross_entropy(cg.ones(0, 3), cg.ones(0, dtype=cg.int64)).item())


def test_smoothing_spreads_onto_an_impossible_class():
    x = cg.tensor([[0.0, -INF]])
    assert F.cross_entropy(x, cg.tensor([0])).item() == 0
    assert F.cross_entropy(x, cg.tensor([0]), label_smoothing=0.1).item() == INF


def logits_and_targets():
    rng = np.random.default_rng(0)
    return cg.tensor(rng.standard_normal((6, 5)), requires_grad=True), cg.tensor(rng.integers(0, 5, 6))


def by_hand(x, t):
    p = np.exp(x.detach().numpy())
    p /= p.sum(1, keepdims=True)
    p[np.arange(6), t.numpy()] -= 1
    return p / 6


def test_the_gradient_is_softmax_less_target():
    x, t = logits_and_targets()
    F.cross_entropy(x, t).backward()
    np.testing.assert_allclose(x.grad.numpy(), by_hand(x, t), rtol=1e-12)


def test_a_second_backward_of_a_kept_graph_gives_the_same_again():
    x, t = logits_and_targets()
    loss = F.cross_entropy(x, t) * 3
    loss.backward(retain_graph=True)
    once = x.grad.clone()
    loss.backward()
    np.testing.assert_allclose(once.numpy(), 3 * by_hand(x, t), rtol=1e-12)
    np.testing.assert_allclose(x.grad.numpy(), 6 * by_hand(x, t), rtol=1e-12)


def test_a_backward_of_a_freed_graph_raises():
    x, t = logits_and_targets()
    loss = F.cross_entropy(x, t)
    loss.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        loss.backward()


def test_gradients_of_separate_calls_do_not_share_memory():
    x, t = logits_and_targets()
    (F.cross_entropy(x, t) + F.cross_entropy(x, t)).backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * by_hand(x, t), rtol=1e-12)


def test_logits_changed_after_the_forward_are_noticed():
    x, t = logits_and_targets()
    y = x * 1
    loss = F.cross_entropy(y, t)
    with cg.no_grad():
        y += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("dtype", [cg.float16, cg.bfloat16])
def test_half_precision_logits_are_added_up_in_float32(dtype):
    x = cg.zeros(1, 5000, dtype=dtype, requires_grad=True)
    loss = F.cross_entropy(x, cg.tensor([7]))
    loss.backward()
    assert loss.dtype is dtype and x.grad.dtype is dtype
    assert loss.item() == pytest.approx(math.log(5000), rel=2**-8)
    assert x.grad[0, 7].item() == pytest.approx(-1, rel=2**-8)


def test_nothing_is_made_for_a_gradient_that_nobody_wants():
    x, t = logits_and_targets()
    with cg.no_grad():
        assert F.cross_entropy(x, t).grad_fn is None
    assert F.cross_entropy(x.detach(), t).grad_fn is None


# ---- warnings and deprecated spellings


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
def test_sizes_that_differ_warn_and_broadcast(name):
    with pytest.warns(UserWarning, match=r"Using a target size \(torch.Size\(\[4\]\)\) that is different to the input"):
        loss = getattr(F, name)(cg.ones(3, 4), cg.zeros(4))
    assert loss.shape == ()


@pytest.mark.parametrize(
    "flags, reduction",
    [
        ({"size_average": False}, "sum"),
        ({"size_average": True}, "mean"),
        ({"reduce": False}, "none"),
        ({"reduce": False, "size_average": True}, "none"),
        ({"reduce": True}, "mean"),
    ],
)
def test_the_old_flags_warn_and_mean_a_reduction(flags, reduction):
    x, t = cg.tensor([[1.0, 2.0], [0.0, 1.0]]), cg.tensor([0, 1])
    text = f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead."
    with pytest.warns(UserWarning, match=text) as caught:
        old = F.cross_entropy(x, t, **flags)
    assert caught[0].filename == __file__
    assert old.tolist() == F.cross_entropy(x, t, reduction=reduction).tolist()
    with pytest.warns(UserWarning, match=text) as caught:
        layer = nn.CrossEntropyLoss(**flags)
    assert caught[0].filename == __file__ and layer.reduction == reduction


def test_the_mean_of_kl_div_warns():
    with pytest.warns(UserWarning, match="'batchmean' divides only by the batch size"):
        F.kl_div(cg.zeros(2, 3), cg.ones(2, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        F.kl_div(cg.zeros(2, 3), cg.ones(2, 3), reduction="batchmean")


def test_nll_loss2d_is_nll_loss_under_an_old_name():
    with pytest.warns(FutureWarning, match="`NLLLoss2d` has been deprecated"):
        layer = nn.NLLLoss2d()
    x, t = cg.zeros(2, 3, 4, 4), cg.zeros(2, 4, 4, dtype=cg.int64)
    assert layer(x, t).item() == 0


# ---- layers

RNG = np.random.default_rng(5)
X, Y, Z = (RNG.standard_normal((4, 5)) for _ in range(3))
P, Q = 0.1 + 0.8 * RNG.random((4, 5)), 0.1 + 0.8 * RNG.random((4, 5))
CLASSES = RNG.integers(0, 5, 4)
SIGNS = np.sign(RNG.standard_normal((4, 5)))
LABELS = np.array([[1, 0, -1, 2, 2], [3, -1, 0, 0, 0], [-1] * 5, [4, 3, 2, 1, 0]])
W = np.array([0.5, 1.0, 2.0, 0.3, 1.5])

LAYERS = [
    ("L1Loss", {}, (X, Y), lambda x, y: F.l1_loss(x, y)),
    ("MSELoss", {"reduction": "sum"}, (X, Y), lambda x, y: F.mse_loss(x, y, reduction="sum")),
    ("SmoothL1Loss", {"beta": 0.5}, (X, Y), lambda x, y: F.smooth_l1_loss(x, y, beta=0.5)),
    ("HuberLoss", {"delta": 0.5}, (X, Y), lambda x, y: F.huber_loss(x, y, delta=0.5)),
    ("PoissonNLLLoss", {"full": True}, (X, P), lambda x, y: F.poisson_nll_loss(x, y, full=True)),
    ("GaussianNLLLoss", {"full": True}, (X, Y, P), lambda x, y, v: F.gaussian_nll_loss(x, y, v, full=True)),
    ("KLDivLoss", {"reduction": "batchmean"}, (X, P), lambda x, y: F.kl_div(x, y, reduction="batchmean")),
    ("BCELoss", {"weight": W}, (P, Q), lambda x, y: F.binary_cross_entropy(x, y, cg.tensor(W))),
    (
        "BCEWithLogitsLoss",
        {"pos_weight": W},
        (X, Q),
        lambda x, y: F.binary_cross_entropy_with_logits(x, y, pos_weight=cg.tensor(W)),
    ),
    (
        "NLLLoss",
        {"weight": W, "ignore_index": 1},
        (X, CLASSES),
        lambda x, y: F.nll_loss(x, y, cg.tensor(W), ignore_index=1),
    ),
    (
        "CrossEntropyLoss",
        {"weight": W, "label_smoothing": 0.1},
        (X, CLASSES),
        lambda x, y: F.cross_entropy(x, y, cg.tensor(W), label_smoothing=0.1),
    ),
    ("HingeEmbeddingLoss", {"margin": 0.5}, (X, SIGNS), lambda x, y: F.hinge_embedding_loss(x, y, 0.5)),
    ("SoftMarginLoss", {}, (X, SIGNS), lambda x, y: F.soft_margin_loss(x, y)),
    (
        "CosineEmbeddingLoss",
        {"margin": 0.1},
        (X, Y, SIGNS[:, 0]),
        lambda x, y, t: F.cosine_embedding_loss(x, y, t, margin=0.1),
    ),
    ("MarginRankingLoss", {"margin": 0.1}, (X, Y, SIGNS), lambda x, y, t: F.margin_ranking_loss(x, y, t, margin=0.1)),
    (
        "MultiMarginLoss",
        {"p": 2, "weight": W},
        (X, CLASSES),
        lambda x, y: F.multi_margin_loss(x, y, 2, 1.0, cg.tensor(W)),
    ),
    ("MultiLabelMarginLoss", {}, (X, LABELS), lambda x, y: F.multilabel_margin_loss(x, y)),
    ("MultiLabelSoftMarginLoss", {}, (X, P), lambda x, y: F.multilabel_soft_margin_loss(x, y)),
    ("TripletMarginLoss", {"swap": True}, (X, Y, Z), lambda x, y, z: F.triplet_margin_loss(x, y, z, swap=True)),
    ("TripletMarginWithDistanceLoss", {}, (X, Y, Z), lambda x, y, z: F.triplet_margin_loss(x, y, z)),
    (
        "CTCLoss",
        {"blank": 1, "reduction": "sum"},
        (X[:, None], np.array([[0, 2]]), np.array([4]), np.array([2])),
        lambda x, t, i, j: F.ctc_loss(x, t, i, j, blank=1, reduction="sum"),
    ),
]


def made(module, name, options, tensor):
    return getattr(module, name)(**{k: tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()})


@pytest.mark.parametrize("name, options, given, function", LAYERS, ids=[row[0] for row in LAYERS])
def test_a_layer_hands_its_settings_to_the_function(name, options, given, function):
    given = [cg.tensor(a) for a in given]
    assert made(nn, name, options, cg.tensor)(*given).item() == function(*given).item()


def test_weights_are_buffers():
    assert list(nn.CrossEntropyLoss(cg.ones(3)).state_dict()) == ["weight"]
    assert list(nn.BCEWithLogitsLoss(pos_weight=cg.ones(3)).state_dict()) == ["pos_weight"]
    assert list(nn.NLLLoss().state_dict()) == []


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda: nn.MultiMarginLoss(p=3), "only p == 1 and p == 2 supported"),
        (
            lambda: nn.MultiMarginLoss(weight=cg.ones(2, 2)),
            "MultiMarginLoss: expected weight to be None or 1D tensor, got 2D instead",
        ),
        (
            lambda: nn.TripletMarginLoss(margin=0),
            "TripletMarginLoss: expected margin to be greater than 0, got 0 instead",
        ),
        (lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 10, []), "cutoffs should be a sequence of length larger than 0"),
        (lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 10, [5, 3]), "cutoffs should be a sequence of unique, positive"),
    ],
)
def test_settings_that_make_no_sense_are_refused(make, text):
    with pytest.raises(ValueError, match="^" + text):
        make()


# ---- the adaptive softmax


def test_the_adaptive_softmax_is_a_distribution():
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 6], div_value=2.0).double()
    x = cg.tensor(np.random.default_rng(0).standard_normal((5, 8)))
    log_p = layer.log_prob(x)
    np.testing.assert_allclose(log_p.exp().sum(1).detach().numpy(), np.ones(5), rtol=1e-12)
    target = cg.tensor([0, 4, 7, 11, 2])
    output, loss = layer(x, target)
    picked = log_p.detach().numpy()[np.arange(5), target.numpy()]
    np.testing.assert_allclose(output.detach().numpy(), picked, rtol=1e-12)
    assert loss.item() == pytest.approx(-picked.mean(), rel=1e-12)
    assert layer.predict(x).tolist() == log_p.argmax(1).tolist()
    loss.backward()
    assert all(p.grad is not None for p in layer.parameters())


@pytest.mark.parametrize(
    "x, target, text",
    [
        ((4, 8), [0, 1, 2, 12], r"Target values should be in \[0, 11\], but values in range \[0, 12\] were found."),
        ((4, 8), [0, 1], "Input and target should have the same size in the batch dimension."),
        ((4, 8), [[0], [1], [2], [3]], "0D or 1D target tensor expected, multi-target not supported"),
    ],
)
def test_the_adaptive_softmax_refuses_targets_that_do_not_fit(x, target, text):
    with pytest.raises(RuntimeError, match=text):
        nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 6], div_value=2.0)(cg.ones(*x), cg.tensor(target))


# ---- beside PyTorch


@pytest.mark.peer
@pytest.mark.parametrize("name, options, given, function", LAYERS, ids=[row[0] for row in LAYERS])
def test_values_gradients_and_repr_are_those_of_pytorch(name, options, given, function):
    torch = pytest.importorskip("torch")
    results = []
    for module, tensor in ((torch.nn, torch.tensor), (nn, cg.tensor)):
        layer = made(module, name, options, tensor)
        x = tensor(given[0]).requires_grad_()
        loss = layer(x, *map(tensor, given[1:]))
        loss.backward()
        results.append((loss.item(), x.grad.numpy(), repr(layer)))
    (loss, grad, text), (our_loss, our_grad, our_text) = results
    assert our_loss == pytest.approx(loss, rel=1e-10) and our_text == text
    np.testing.assert_allclose(our_grad, grad, rtol=1e-9, atol=1e-12)
