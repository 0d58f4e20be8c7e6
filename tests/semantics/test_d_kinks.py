"""Gradients at kinks and ties: what tests/ops/test_kinks.py leaves open of section D, by line."""
# ruff: noqa: E501  a row stands on its line, whole texts of PyTorch too

import math

import numpy as np
import pytest

import cudagrad as cg
import cudagrad.nn.functional as F

INF, NAN = math.inf, math.nan

# the line, what is computed, at which values, the gradient of its sum
POINTS = [
    ("table relu", F.relu, [0.0, -1.0, 1.0], [0.0, 0.0, 1.0]),
    ("table maximum", lambda x: cg.maximum(x, cg.zeros(1, dtype=cg.float64)), [0.0], [0.5]),
    ("table clamp", lambda x: cg.clamp(x, 0, 1), [0.0, 1.0], [1.0, 1.0]),
    ("table norm", lambda x: cg.linalg.norm(x), [0.0, 0.0], [0.0, 0.0]),
    ("table where", lambda x: cg.where(x > 0, x.log(), 0.0), [0.0], [NAN]),
    ("table prod dim", lambda x: x.prod(0), [0.0, 2.0, 3.0], [6.0, 0.0, 0.0]),
    ("table std dim", lambda x: x.std(0), [1.0, 1.0], [0.0, 0.0]),
    ("table var", lambda x: x.var(), [1.0, 1.0], [0.0, 0.0]),
    ("table max dim", lambda x: x.max(0).values, [1.0, 1.0, 0.0], [1.0, 0.0, 0.0]),
    ("42 hardtanh", F.hardtanh, [-1.0, 1.0, 0.0], [0.0, 0.0, 1.0]),
    ("42 relu6", F.relu6, [0.0, 6.0, 3.0], [0.0, 0.0, 1.0]),
    ("42 hardsigmoid", F.hardsigmoid, [-3.0, 3.0, 0.0], [0.0, 0.0, 1 / 6]),
    ("42 hardswish", F.hardswish, [-3.0, 3.0, 0.0], [0.0, 1.0, 0.5]),
    ("42 leaky_relu", lambda x: F.leaky_relu(x, 0.2), [0.0, -1.0, 1.0], [0.2, 0.2, 1.0]),
    ("42 elu", F.elu, [0.0, 1.0], [1.0, 1.0]),
    ("42 gelu", F.gelu, [0.0], [0.5]),
    ("42 gelu tanh", lambda x: F.gelu(x, approximate="tanh"), [0.0], [0.5]),
    ("42 softplus", F.softplus, [20.0, 20.0 + 1e-9, 0.0], [1 / (1 + math.exp(-20.0)), 1.0, 0.5]),
    ("42 logsigmoid", F.logsigmoid, [-200.0, 200.0, 0.0], [1.0, math.exp(-200.0), 0.5]),
    ("42 hardshrink", F.hardshrink, [0.5, -0.5, 1.0], [0.0, 0.0, 1.0]),
    ("42 softshrink", F.softshrink, [0.5, -0.5, 1.0], [0.0, 0.0, 1.0]),
    ("42 threshold", lambda x: F.threshold(x, 1.0, 5.0), [1.0, 2.0], [0.0, 1.0]),
    ("43 amin", lambda x: x.amin(0), [0.0, 0.0, 1.0], [0.5, 0.5, 0.0]),
    ("43 amax of all", lambda x: x.amax(), [2.0, 2.0, 2.0], [1 / 3, 1 / 3, 1 / 3]),
    ("43 min", lambda x: x.min(), [0.0, 0.0, 1.0], [0.5, 0.5, 0.0]),
    ("43 median dim", lambda x: x.median(0).values, [3.0, 1.0, 2.0], [0.0, 0.0, 1.0]),
    ("43 topk", lambda x: x.topk(1).values, [1.0, 3.0, 2.0], [0.0, 1.0, 0.0]),
    ("43 sort", lambda x: x.sort().values * cg.tensor([1.0, 10.0, 100.0]), [3.0, 1.0, 2.0], [100.0, 1.0, 10.0]),
    ("43 kthvalue", lambda x: x.kthvalue(2).values, [3.0, 1.0, 2.0], [0.0, 0.0, 1.0]),
    ("43 norm inf", lambda x: cg.linalg.vector_norm(x, INF), [2.0, 2.0, -2.0], [1 / 3, 1 / 3, -1 / 3]),
    ("43 old norm inf", lambda x: cg.norm(x, INF), [2.0, 2.0, -2.0], [1 / 3, 1 / 3, -1 / 3]),
    ("44 max with nan", lambda x: x.max(), [1.0, NAN, 2.0], [0.0, 1.0, 0.0]),
    ("44 max dim with nan", lambda x: x.max(0).values, [1.0, NAN, 2.0], [0.0, 1.0, 0.0]),
    ("44 sign", lambda x: x.sign(), [-1.0, 0.0], [0.0, 0.0]),
    ("44 floor", lambda x: x.floor(), [1.5], [0.0]),
    ("44 ceil", lambda x: x.ceil(), [1.5], [0.0]),
    ("44 trunc", lambda x: x.trunc(), [1.5], [0.0]),
    ("44 round", lambda x: x.round(), [1.5], [0.0]),
    ("44 fmod", lambda x: cg.fmod(x, 2), [3.0, -3.0], [1.0, 1.0]),
    ("44 remainder", lambda x: x % 2, [3.0, -3.0], [1.0, 1.0]),
    ("45 norm p=1", lambda x: x.norm(1), [0.0, 0.0], [0.0, 0.0]),
    ("45 norm p=3", lambda x: x.norm(3), [0.0, 0.0], [0.0, 0.0]),
    ("45 norm p=.5", lambda x: x.norm(0.5), [0.0, 0.0], [0.0, 0.0]),
    ("45 x**.5", lambda x: x**0.5, [0.0], [INF]),
    ("45 x**x", lambda x: x**x, [0.0], [0.0]),
    ("45 xlogy", lambda x: cg.xlogy(x, x), [0.0], [NAN]),
    ("45 log", lambda x: x.log(), [0.0], [INF]),
    ("45 rsqrt", lambda x: x.rsqrt(), [0.0], [-INF]),
    ("45 asin", lambda x: x.asin(), [1.0], [INF]),
    ("45 sinc", lambda x: x.sinc(), [0.0], [0.0]),
    ("45 atan2", lambda x: cg.atan2(x, cg.zeros(1, dtype=cg.float64)), [0.0], [0.0]),
    ("45 cdist", lambda x: cg.cdist(x[None, None], cg.ones(1, 1, 2, dtype=cg.float64)), [1.0, 1.0], [0.0, 0.0]),
    ("45 cdist p=1", lambda x: cg.cdist(x[None, None], cg.ones(1, 1, 2, dtype=cg.float64), 1.0), [1.0, 1.0], [0.0, 0.0]),
    ("45 pairwise", lambda x: cg.pdist(x.view(2, 1)), [1.0, 1.0], [0.0, 0.0]),
    ("46 normalize", lambda x: F.normalize(x, dim=0), [0.0, 0.0], [1e12, 1e12]),
    ("46 cosine", lambda x: F.cosine_similarity(x, cg.tensor([1.0, 0.0], dtype=cg.float64), dim=0), [0.0, 0.0], [1e8, 0.0]),
    ("47 logsumexp", lambda x: x.logsumexp(0), [-INF, -INF], [NAN, NAN]),
    ("47 softmax", lambda x: x.softmax(0), [-INF, -INF], [NAN, NAN]),
    ("47 log_softmax", lambda x: x.log_softmax(0), [-INF, -INF], [NAN, NAN]),
    ("47 cumprod", lambda x: x.cumprod(0), [1.0, 0.0, 3.0], [1.0, 4.0, 0.0]),
    ("47 nan_to_num", lambda x: x.nan_to_num(), [NAN, INF, -INF, 1.0], [0.0, 0.0, 0.0, 1.0]),
    ("48 smooth_l1", lambda x: F.smooth_l1_loss(x, cg.zeros_like(x), reduction="sum"), [1.0, -1.0, 0.0], [1.0, -1.0, 0.0]),
    ("48 smooth_l1 beta", lambda x: F.smooth_l1_loss(x, cg.zeros_like(x), reduction="sum", beta=0.5), [0.5], [1.0]),
    ("48 huber", lambda x: F.huber_loss(x, cg.zeros_like(x), reduction="sum"), [1.0, -1.0], [1.0, -1.0]),
    ("48 huber delta", lambda x: F.huber_loss(x, cg.zeros_like(x), reduction="sum", delta=2.0), [2.0], [2.0]),
    ("48 l1", lambda x: F.l1_loss(x, cg.zeros_like(x), reduction="sum"), [0.0, 1.0], [0.0, 1.0]),
    ("48 hinge", lambda x: F.hinge_embedding_loss(x, -cg.ones_like(x), reduction="sum"), [1.0, 0.5, 2.0], [-1.0, -1.0, 0.0]),
]  # fmt: skip


@pytest.mark.parametrize("function, values, expected", [p[1:] for p in POINTS], ids=[p[0] for p in POINTS])
def test_the_gradient_at(function, values, expected):
    x = cg.tensor(values, dtype=cg.float64, requires_grad=True)
    function(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-9, equal_nan=True)


def test_49_complex_numbers():
    z = cg.tensor(1 + 2j, requires_grad=True)
    (z * z.conj()).real.backward()
    assert z.grad.item() == 2 + 4j
    z = cg.tensor(1 + 2j, requires_grad=True)
    (z.abs() ** 2).backward()
    assert z.grad.item() == pytest.approx(2 + 4j)
    z = cg.tensor(0j, requires_grad=True)
    z.abs().backward()
    assert z.grad.item() == 0
