"""Activation layers: bends, in-place forms, guessed dims, and what they print."""

import math
import warnings

import numpy as np
import pytest

import cudagrad as cg
from cudagrad import nn
from cudagrad.nn import functional as F


def gradient(function, at):
    x = cg.tensor([float(at)], dtype=cg.float64, requires_grad=True)
    function(x).sum().backward()
    return x.grad.item()


BENDS = [
    ("relu", F.relu, 0, 0),
    ("relu6 at 0", F.relu6, 0, 0),
    ("relu6 at 6", F.relu6, 6, 0),
    ("hardtanh below", F.hardtanh, -1, 0),
    ("hardtanh above", F.hardtanh, 1, 0),
    ("hardsigmoid below", F.hardsigmoid, -3, 0),
    ("hardsigmoid above", F.hardsigmoid, 3, 0),
    ("hardswish below", F.hardswish, -3, 0),
    ("hardswish above", F.hardswish, 3, 1),
    ("leaky_relu", F.leaky_relu, 0, 0.01),
    ("elu", F.elu, 0, 1),
    ("elu of alpha 2", lambda x: F.elu(x, 2.0), 0, 2),
    ("celu", F.celu, 0, 1),
    ("selu", F.selu, 0, 1.0507009873554805 * 1.6732632423543772),
    ("gelu", F.gelu, 0, 0.5),
    ("silu", F.silu, 0, 0.5),
    ("softplus at its threshold", F.softplus, 20, 1 / (1 + math.exp(-20))),
    ("softplus above its threshold", F.softplus, 20.5, 1),
    ("logsigmoid far below", F.logsigmoid, -200, 1),
    ("softshrink", F.softshrink, 0.5, 0),
    ("hardshrink", F.hardshrink, -0.5, 0),
    ("threshold", lambda x: F.threshold(x, 0.5, 3.0), 0.5, 0),
    ("prelu", lambda x: F.prelu(x, cg.tensor([0.25], dtype=cg.float64)), 0, 0.25),
]


@pytest.mark.parametrize("name, function, at, slope", BENDS, ids=[row[0] for row in BENDS])
def test_the_slope_at_a_bend_is_pytorchs(name, function, at, slope):
    assert gradient(function, at) == pytest.approx(slope, rel=1e-12)


def test_relu_stops_a_gradient_that_is_infinite():
    x = cg.tensor([-1.0, 2.0], requires_grad=True)
    F.relu(x).backward(cg.tensor([math.inf, math.inf]))
    assert x.grad.tolist() == [0.0, math.inf]


def test_nan_passes_relu():
    assert math.isnan(F.relu(cg.tensor(math.nan)).item())


IN_PLACE = [
    *((F.relu, {}), (F.relu6, {}), (F.leaky_relu, {"negative_slope": 0.2}), (F.elu, {"alpha": 2.0}), (F.selu, {})),
    *((F.celu, {"alpha": 2.0}), (F.silu, {}), (F.mish, {}), (F.hardtanh, {}), (F.hardsigmoid, {}), (F.hardswish, {})),
    *((F.threshold, {"threshold": 0.5, "value": 9.0}), (F.rrelu, {})),
]


@pytest.mark.parametrize("function, options", IN_PLACE, ids=[f.__name__ for f, _ in IN_PLACE])
def test_inplace_writes_into_the_input_and_differentiates_as_ever(function, options):
    values = [-2.0, -0.3, 0.4, 3.5, 7.0]
    x, y = (cg.tensor(values, dtype=cg.float64, requires_grad=True) for _ in range(2))
    expected = function(x, **options)
    expected.sum().backward()
    z = y * 1
    result = function(z, **options, inplace=True)
    result.sum().backward()
    assert result is z and z._version == 1
    assert z.tolist() == expected.tolist() and y.grad.tolist() == x.grad.tolist()


@pytest.mark.parametrize(
    "name", ["relu_", "elu_", "celu_", "selu_", "leaky_relu_", "hardtanh_", "threshold_", "rrelu_"]
)
def test_the_underscored_forms_write_into_their_tensor(name):
    x = cg.tensor([-2.0, 3.0])
    extra = (0.0, 7.0) if name == "threshold_" else ()
    expected = getattr(F, name[:-1])(x, *extra).tolist()
    assert getattr(F, name)(x, *extra) is x and x.tolist() == expected


def test_inplace_is_the_last_positional_argument():
    x = cg.tensor([-2.0, 3.0])
    assert F.leaky_relu(x, 0.5, True) is x and x.tolist() == [-1.0, 3.0]
    with pytest.raises(TypeError, match=r"leaky_relu\(\) takes from 1 to 3 positional arguments but 4 were given"):
        F.leaky_relu(x, 0.5, True, 1)


def test_inplace_on_a_leaf_that_wants_a_gradient_is_refused():
    x = cg.ones(2, requires_grad=True)
    with pytest.raises(
        RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation."
    ):
        F.relu(x, inplace=True)
    assert x.tolist() == [1.0, 1.0]


def test_rrelu_draws_slopes_within_its_bounds_in_training():
    cg.manual_seed(0)
    x = -cg.ones(1000, dtype=cg.float64)
    x.requires_grad_()
    y = F.rrelu(x, 0.2, 0.4, training=True)
    y.sum().backward()
    slopes = -y.detach().numpy()
    assert 0.2 <= slopes.min() < 0.21 and 0.39 < slopes.max() < 0.4
    np.testing.assert_array_equal(x.grad.numpy(), slopes)
    assert F.rrelu(cg.ones(5), training=True).tolist() == [1.0] * 5


# ---- softmax


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
@pytest.mark.parametrize("shape, dim", [((3,), 0), ((2, 3), 1), ((2, 3, 4), 0), ((2, 3, 4, 5), 1)])
def test_without_a_dim_it_is_guessed_with_a_warning(name, shape, dim):
    x = cg.tensor(np.random.default_rng(0).standard_normal(shape))
    with pytest.warns(UserWarning, match=f"Implicit dimension choice for {name} has been deprecated") as caught:
        guessed = getattr(F, name)(x)
    assert caught[0].filename == __file__
    assert guessed.tolist() == getattr(F, name)(x, dim).tolist()


def test_softmax_casts_first_to_the_dtype_asked_for():
    x = cg.tensor([1000.0, 1001.0], dtype=cg.float16)
    assert F.softmax(x, 0, dtype=cg.float32).dtype is cg.float32
    assert cg.softmax(cg.tensor([1, 2]), 0, cg.float64).dtype is cg.float64


def test_a_line_of_minus_infinity_gives_nan():
    x = cg.full((2,), -math.inf, requires_grad=True)
    F.softmax(x, 0).sum().backward()
    assert all(map(math.isnan, x.grad.tolist()))


def test_gumbel_softmax_is_a_distribution_and_one_hot_when_hard():
    cg.manual_seed(0)
    logits = cg.tensor(np.log([0.1, 0.2, 0.7])).expand(4000, 3).clone().requires_grad_()
    soft = F.gumbel_softmax(logits, tau=0.5)
    np.testing.assert_allclose(soft.sum(1).detach().numpy(), np.ones(4000), rtol=1e-12)
    hard = F.gumbel_softmax(logits, hard=True)
    rows = hard.detach().numpy()
    assert np.isin(rows.round(12), (0, 1)).all() and (rows.sum(1).round(12) == 1).all()
    np.testing.assert_allclose(rows.mean(0), [0.1, 0.2, 0.7], atol=0.03)  # 4 standard deviations
    (hard * cg.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert logits.grad.abs().sum() > 0
    with pytest.warns(UserWarning, match="`eps` parameter is deprecated and has no effect."):
        F.gumbel_softmax(logits, eps=1e-9)


def test_softmax2d_is_over_channels():
    x = cg.tensor(np.random.default_rng(0).standard_normal((2, 3, 4, 5)))
    np.testing.assert_allclose(nn.Softmax2d()(x).sum(1).numpy(), np.ones((2, 4, 5)), rtol=1e-12)
    with pytest.raises(ValueError, match="Softmax2d: expected input to be 3D or 4D, got 2D instead"):
        nn.Softmax2d()(x[0, 0])


# ---- layers

LAYERS = [
    *("ReLU()", "ReLU(True)", "ReLU6()", "ReLU6(True)", "LeakyReLU()", "LeakyReLU(0.2, True)", "ELU()", "ELU(2.0)"),
    *("CELU()", "CELU(0.5)", "SELU()", "GELU()", "GELU('tanh')", "SiLU()", "SiLU(True)", "Mish()", "Softplus()"),
    *("Softplus(2.0, 5)", "Softsign()", "Softshrink()", "Softshrink(1)", "Hardshrink()", "Tanhshrink()", "Hardtanh()"),
    *("Hardtanh(-2, 2.5)", "Hardsigmoid()", "Hardswish()", "LogSigmoid()", "Threshold(0.5, 9.0)", "Sigmoid()"),
    *(
        "Tanh()",
        "PReLU()",
        "PReLU(4)",
        "GLU()",
        "GLU(0)",
        "Softmax(1)",
        "LogSoftmax(0)",
        "Softmin(1)",
        "RReLU().eval()",
    ),
]
RNG = np.random.default_rng(1)
VALUES = RNG.standard_normal((6, 4)) * 3


@pytest.mark.parametrize("text", LAYERS)
def test_a_layer_is_deterministic_and_differentiable(text):
    layer = eval("nn." + text).double()
    x = cg.tensor(VALUES, requires_grad=True)
    y = layer(x * 1)
    y.sum().backward()
    assert x.grad.shape == x.shape and layer(cg.tensor(VALUES)).tolist() == y.tolist()


def test_hardtanhs_old_keywords_warn():
    with pytest.warns(FutureWarning, match="keyword argument `min_value` is deprecated and renamed to `min_val`"):
        layer = nn.Hardtanh(min_value=-2)
    assert layer.min_val == -2
    with pytest.raises(AssertionError, match=r"max_val \(1\) must be greater than min_val \(2\)"):
        nn.Hardtanh(2, 1)


def test_a_layer_without_dim_warns_at_the_users_line():
    with pytest.warns(UserWarning, match="Implicit dimension choice for softmax") as caught:
        nn.Softmax()(cg.ones(2, 3))
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nn.Softmax(1)(cg.ones(2, 3))


@pytest.mark.peer
@pytest.mark.parametrize("text", LAYERS)
def test_values_gradients_and_repr_are_those_of_pytorch(text):
    torch = pytest.importorskip("torch")
    results = []
    for module, tensor in ((torch.nn, torch.tensor), (nn, cg.tensor)):
        layer = eval("module." + text, {"module": module}).double()
        x = tensor(VALUES).requires_grad_()
        y = layer(x * 1)
        (y * y).sum().backward()
        results.append((y.detach().numpy(), x.grad.numpy(), repr(layer)))
    (y, grad, printed), (our_y, our_grad, our_printed) = results
    assert our_printed == printed
    np.testing.assert_allclose(our_y, y, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(our_grad, grad, rtol=1e-7, atol=1e-12)  # PyTorch's 1/6 of hardsigmoid is a float
