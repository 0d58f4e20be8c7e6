"""Dropout: what is dropped is what the bits of the call say, forward and backward, on every shape and dtype."""

import numpy as np
import pytest

import cudagrad as cg
from cudagrad.backend import philox
from cudagrad.nn import functional as F

ALPHA = -1.7580993408473766  # -scale * alpha of selu, Klambauer et al. 2017


def kept(shape, p, seed=3, offset=0):
    return philox.kept(np, seed, offset, int(np.prod(shape)), p).reshape(shape)


@pytest.fixture(autouse=True)
def seeded():
    cg.manual_seed(3)


@pytest.mark.parametrize("shape", [(7,), (300, 500), (), (0, 3), (2, 3, 4)])
@pytest.mark.parametrize("dtype", [cg.float32, cg.float64, cg.bfloat16, cg.complex64])
def test_each_element_is_scaled_or_dropped_by_its_own_bit(shape, dtype):
    x = cg.ones(shape, dtype=dtype, requires_grad=True)
    out = F.dropout(x, 0.3)
    expected = kept(shape, 0.3) / 0.7
    assert out.dtype is dtype
    assert np.allclose(
        out.detach().numpy().astype(np.complex128), expected, rtol=8e-3 if dtype is cg.bfloat16 else 1e-6
    )


def test_the_gradient_passes_where_the_element_was_kept():
    x = cg.full((4, 5), 2.0, dtype=cg.float64, requires_grad=True)
    out = F.dropout(x, 0.5)
    (g,) = cg.autograd.grad(out.sum(), x, create_graph=True)
    assert np.array_equal(g.detach().numpy(), kept((4, 5), 0.5) * 2.0)
    assert np.array_equal(out.detach().numpy(), 2 * g.detach().numpy())


def test_the_second_derivative_by_the_incoming_gradient_has_the_same_mask():
    x = cg.ones((4, 5), dtype=cg.float64, requires_grad=True)
    weight = cg.ones((4, 5), dtype=cg.float64, requires_grad=True)
    (g,) = cg.autograd.grad(F.dropout(x, 0.5), x, weight, create_graph=True)
    (h,) = cg.autograd.grad(g.sum(), weight)
    assert np.array_equal(h.numpy(), kept((4, 5), 0.5) * 2.0)


def test_calls_differ_and_a_seed_brings_them_back():
    x = cg.ones(1000)
    first, second = F.dropout(x), F.dropout(x)
    cg.manual_seed(3)
    assert not cg.equal(first, second) and cg.equal(first, F.dropout(x))


def test_a_transposed_input_drops_by_its_logical_order():
    x = cg.ones(6, 4).t()
    assert np.array_equal(F.dropout(x, 0.5).numpy(), kept((4, 6), 0.5) * 2.0)


def test_evaluation_hands_the_input_on():
    x = cg.ones(3)
    for f in (F.dropout, F.alpha_dropout, F.dropout1d, F.feature_alpha_dropout):
        given = x.reshape(1, 3)
        assert f(given, 0.5, False) is given


def test_in_place_writes_into_the_input():
    x = cg.ones(50)
    out = F.dropout(x, 0.5, inplace=True)
    assert out is x and np.array_equal(x.numpy(), kept((50,), 0.5) * 2.0)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        F.dropout(cg.ones(3, requires_grad=True), 0.5, inplace=True)


@pytest.mark.parametrize(
    "name, shape, axes", [("dropout1d", (5, 7, 3), 2), ("dropout2d", (5, 7, 3, 2), 2), ("dropout3d", (7, 2, 3, 2), 1)]
)
def test_whole_channels_are_dropped_together(name, shape, axes):
    out = getattr(F, name)(cg.ones(shape), 0.4).numpy()
    expected = kept(shape[:axes], 0.4) / 0.6
    expected = expected.reshape(shape[:axes] + (1,) * (len(shape) - axes))
    assert np.allclose(out, np.broadcast_to(expected, shape))


def test_alpha_dropout_puts_the_limit_of_selu_and_keeps_mean_and_variance():
    p, n = 0.2, 200_000
    x = cg.randn(n, dtype=cg.float64)
    out = F.alpha_dropout(x, p, training=True)
    a = ((1 - p) * (1 + p * ALPHA**2)) ** -0.5
    b = -a * p * ALPHA
    mask = kept((n,), p, offset=1)
    assert np.allclose(out.numpy(), np.where(mask, a * x.numpy() + b, a * ALPHA + b))
    # three standard errors of the mean of n numbers of variance 1, and of their variance
    assert abs(out.mean().item()) < 3 / n**0.5 and abs(out.var().item() - 1) < 3 * (3 / n) ** 0.5


def test_the_share_of_what_is_dropped_is_p():
    n = 100_000
    for p in (0.1, 0.5, 0.9):
        share = (F.dropout(cg.ones(n), p) == 0).sum().item() / n
        assert abs(share - p) < 4 * (p * (1 - p) / n) ** 0.5


def test_dropout2d_warns_of_three_axes():
    with pytest.warns(
        UserWarning, match="dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D"
    ):
        F.dropout2d(cg.ones(2, 3, 4))
    with pytest.warns(UserWarning, match="dropout3d: Received a 3-D input to dropout3d, which is deprecated"):
        F.dropout3d(cg.ones(2, 3, 4))


def test_attention_drops_the_weights_that_the_bits_say():
    q, k, v = (cg.randn(2, 3, 4, dtype=cg.float64, requires_grad=True) for _ in range(3))
    cg.manual_seed(3)
    out = F.scaled_dot_product_attention(q, k, v, dropout_p=0.5)
    weights = cg.softmax(q @ k.transpose(-2, -1) / 2.0, -1) * cg.tensor(kept((2, 3, 3), 0.5) * 2.0)
    expected = weights @ v
    assert cg.allclose(out, expected)
    leaves = (q, k, v)
    plain = cg.autograd.grad(expected.sum(), leaves)
    for create_graph in (False, True):
        found = cg.autograd.grad(out.sum(), leaves, create_graph=create_graph, retain_graph=True)
        assert all(cg.allclose(a, b) for a, b in zip(found, plain))
