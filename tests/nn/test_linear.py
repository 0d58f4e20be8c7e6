"""Linear, bilinear and distance layers."""

import math

import numpy as np
import pytest

import cudagrad as cg
from cudagrad import nn

RNG = np.random.default_rng(2)


def test_linear_is_an_affine_map_of_the_last_axis():
    layer = nn.Linear(3, 4).double()
    x = RNG.standard_normal((2, 5, 3))
    w, b = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    np.testing.assert_allclose(layer(cg.tensor(x)).detach().numpy(), x @ w.T + b, rtol=1e-12)


def test_the_first_values_are_even_between_the_bounds():
    cg.manual_seed(0)
    layer = nn.Linear(100, 200)
    bound = 1 / math.sqrt(100)
    for values in (layer.weight.detach().numpy(), layer.bias.detach().numpy()):
        assert -bound <= values.min() < -0.95 * bound and 0.95 * bound < values.max() <= bound
    assert layer.weight.shape == (200, 100) and layer.bias.shape == (200,)


def test_a_layer_without_bias_has_none():
    layer = nn.Linear(3, 4, bias=False)
    assert layer.bias is None and list(layer.state_dict()) == ["weight"]
    assert list(nn.Bilinear(2, 3, 4, False).state_dict()) == ["weight"]


def test_dtype_and_device_are_those_asked_for():
    layer = nn.Linear(3, 4, dtype=cg.float64, device="cpu")
    assert layer.weight.dtype is cg.float64 and layer.bias.dtype is cg.float64


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 5, 3), (0, 3), (2, 0, 3)])
def test_the_bias_gradient_adds_up_all_rows(shape):
    layer = nn.Linear(3, 4).double()
    x = cg.tensor(RNG.standard_normal(shape))
    y = layer(x)
    g = RNG.standard_normal(y.shape)
    y.backward(cg.tensor(g))
    np.testing.assert_allclose(layer.bias.grad.numpy(), g.reshape(-1, 4).sum(0), rtol=1e-12, atol=1e-14)
    rows = x.numpy().reshape(-1, 3)
    np.testing.assert_allclose(layer.weight.grad.numpy(), g.reshape(-1, 4).T @ rows, rtol=1e-12, atol=1e-14)


def test_an_input_without_gradient_may_change_its_weight_before_backward():
    """As in PyTorch: the weight is kept only for the gradient of the input."""
    layer = nn.Linear(3, 4)
    loss = layer(cg.ones(2, 3)).sum()
    with cg.no_grad():
        layer.weight += 1
    loss.backward()
    assert layer.weight.grad.tolist() == [[2.0] * 3] * 4


def test_linear_in_half_precision_adds_up_in_float32():
    x, w = cg.ones(1, 4096, dtype=cg.bfloat16), cg.ones(1, 4096, dtype=cg.bfloat16)
    assert nn.functional.linear(x, w).item() == 4096  # in bfloat16 the sum stays at 256


def test_bilinear_is_a_form_of_both_inputs():
    layer = nn.Bilinear(3, 4, 2).double()
    x, y = RNG.standard_normal((5, 3)), RNG.standard_normal((5, 4))
    w, b = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    expected = np.einsum("bi,kij,bj->bk", x, w, y) + b
    np.testing.assert_allclose(layer(cg.tensor(x), cg.tensor(y)).detach().numpy(), expected, rtol=1e-12)
    with pytest.raises(ValueError, match=r"in1_features must be > 0, but got \(in1_features=0\)"):
        nn.Bilinear(0, 1, 2)


def test_identity_hands_on():
    x = cg.ones(2)
    assert nn.Identity(54, unused=1)(x) is x


def test_distances():
    x, y = cg.tensor([[3.0, 4.0]]), cg.tensor([[0.0, 0.0]])
    assert nn.PairwiseDistance(eps=0)(x, y).tolist() == [5.0]
    assert nn.PairwiseDistance(p=1, eps=0, keepdim=True)(x, y).tolist() == [[7.0]]
    assert nn.CosineSimilarity()(x, 2 * x).tolist() == [pytest.approx(1.0)]


@pytest.mark.peer
@pytest.mark.parametrize(
    "text",
    [
        *("Linear(3, 4)", "Linear(3, 4, False)", "Bilinear(2, 3, 4)", "Identity()", "PairwiseDistance()"),
        *("CosineSimilarity()", "AdaptiveLogSoftmaxWithLoss(8, 12, [3, 6], 2.0, True)"),
    ],
)
def test_layers_print_and_keep_what_pytorchs_do(text):
    peer = pytest.importorskip("torch").nn
    theirs, ours = eval("peer." + text, {"peer": peer}), eval("nn." + text)
    assert repr(ours) == repr(theirs)
    assert [(k, tuple(v.shape)) for k, v in ours.state_dict().items()] == [
        (k, tuple(v.shape)) for k, v in theirs.state_dict().items()
    ]
