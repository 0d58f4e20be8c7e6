"""nn.init: exact fills, and the moments and bounds of random ones."""

import math

import numpy as np
import pytest

import cudagrad as cg
from cudagrad import nn
from cudagrad.nn import init

N = 300  # a 300 x 300 weight: the standard error of its standard deviation is 1/424 of it


def filled(function, *args, shape=(N, N), **kwargs):
    cg.manual_seed(5)
    t = nn.Parameter(cg.empty(*shape))
    assert function(t, *args, **kwargs) is t and t.requires_grad and t.is_leaf
    return t.detach().numpy()


@pytest.mark.parametrize(
    ("args", "gain"),
    [
        (("linear",), 1),
        (("conv_transpose3d",), 1),
        (("sigmoid",), 1),
        (("tanh",), 5 / 3),
        (("relu",), math.sqrt(2)),
        (("leaky_relu",), math.sqrt(2 / (1 + 1e-4))),
        (("leaky_relu", 0.2), math.sqrt(2 / 1.04)),
        (("selu",), 0.75),
    ],
)
def test_gains(args, gain):
    assert init.calculate_gain(*args) == pytest.approx(gain)


def test_bad_gains_are_refused():
    with pytest.raises(ValueError, match="^Unsupported nonlinearity gelu$"):
        init.calculate_gain("gelu")
    with pytest.raises(ValueError, match="^negative_slope True not a valid number$"):
        init.calculate_gain("leaky_relu", True)


def test_constant_fills():
    assert (filled(init.constant_, 3.5) == 3.5).all()
    assert (filled(init.ones_) == 1).all() and (filled(init.zeros_) == 0).all()
    assert np.array_equal(filled(init.eye_, shape=(3, 5)), np.eye(3, 5))
    with pytest.raises(ValueError, match="^Only tensors with 2 dimensions are supported$"):
        init.eye_(cg.empty(3))


def test_uniform_and_normal_have_their_bounds_and_moments():
    x = filled(init.uniform_, -1.0, 3.0)
    assert x.min() >= -1 and x.max() < 3 and x.mean() == pytest.approx(1, abs=0.02)
    x = filled(init.normal_, 2.0, 0.5)
    assert x.mean() == pytest.approx(2, abs=0.01) and x.std() == pytest.approx(0.5, rel=0.01)


def density_moments(mean, std, a, b):
    """Mean and standard deviation of the truncated normal, by a sum over its density."""
    x = np.linspace(a, b, 200001)
    p = np.exp(-0.5 * ((x - mean) / std) ** 2)
    p /= p.sum()
    m = (p * x).sum()
    return m, math.sqrt((p * (x - m) ** 2).sum())


@pytest.mark.parametrize(
    ("mean", "std", "a", "b"), [(0, 1, -2, 2), (0, 1, -0.5, 2), (1, 2, 0, 1.5), (0, 1, 1.5, 3), (0, 0.02, -0.04, 0.04)]
)
def test_truncated_normal_has_the_bounds_and_moments_of_its_density(mean, std, a, b):
    x = filled(init.trunc_normal_, mean, std, a, b)
    m, s = density_moments(mean, std, a, b)
    assert x.min() >= np.float32(a) and x.max() <= np.float32(b)
    assert x.mean() == pytest.approx(m, abs=5 * s / N) and x.std() == pytest.approx(s, rel=0.015)


def test_truncated_normal_warns_far_from_its_bounds():
    with pytest.warns(UserWarning, match="^mean is more than 2 std from .a, b. in nn.init.trunc_normal_"):
        x = filled(init.trunc_normal_, 0.0, 1.0, 3.0, 4.0)
    assert x.min() >= 3 and x.max() <= 4


def test_fans_count_inputs_and_outputs_with_the_window():
    assert init._calculate_fan_in_and_fan_out(cg.empty(4, 3)) == (3, 4)
    assert init._calculate_fan_in_and_fan_out(cg.empty(4, 3, 5, 2)) == (30, 40)
    with pytest.raises(ValueError, match="^Fan in and fan out can not be computed for tensor with fewer than 2 dimen"):
        init.xavier_uniform_(cg.empty(3))
    with pytest.raises(ValueError, match=r"^Mode sideways not supported, please use one of \['fan_in', 'fan_out'\]$"):
        init.kaiming_normal_(cg.empty(3, 3), mode="sideways")


def test_xavier_and_kaiming_have_the_right_spread():
    shape = (200, 20, 3, 3)  # fan in 180, fan out 1800
    x = filled(init.xavier_uniform_, 2.0, shape=shape)
    assert abs(x).max() <= 2 * math.sqrt(6 / 1980) and x.std() == pytest.approx(2 * math.sqrt(2 / 1980), rel=0.02)
    x = filled(init.xavier_normal_, shape=shape)
    assert x.std() == pytest.approx(math.sqrt(2 / 1980), rel=0.02)
    x = filled(init.kaiming_uniform_, math.sqrt(5), shape=shape)
    assert abs(x).max() <= 1 / math.sqrt(180) and x.std() == pytest.approx(1 / math.sqrt(3 * 180), rel=0.02)
    x = filled(init.kaiming_normal_, mode="fan_out", nonlinearity="relu", shape=shape)
    assert x.std() == pytest.approx(math.sqrt(2 / 1800), rel=0.02)


def test_kaiming_of_no_elements_warns():
    with pytest.warns(UserWarning, match="^Initializing zero-element tensors is a no-op$"):
        init.kaiming_uniform_(cg.empty(0, 3))


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (3, 2, 2)])
def test_orthogonal_has_orthonormal_rows_or_columns(shape):
    x = filled(init.orthogonal_, 2.0, shape=shape).reshape(shape[0], -1) / 2
    product = x @ x.T if x.shape[0] <= x.shape[1] else x.T @ x
    assert np.allclose(product, np.eye(len(product)), atol=1e-5)


def test_orthogonal_needs_two_dimensions():
    with pytest.raises(ValueError, match="^Only tensors with 2 or more dimensions are supported$"):
        init.orthogonal_(cg.empty(3))


def test_dirac_hands_channels_on():
    w = filled(init.dirac_, shape=(4, 2, 3), groups=2)
    expected = np.zeros((4, 2, 3))
    for out, channel in ((0, 0), (1, 1), (2, 0), (3, 1)):
        expected[out, channel, 1] = 1
    assert np.array_equal(w, expected)
    assert filled(init.dirac_, shape=(2, 3, 3, 5))[1, 1, 1, 2] == 1
    assert filled(init.dirac_, shape=(2, 2, 1, 1, 4)).sum() == 2
    with pytest.raises(ValueError, match="^Only tensors with 3, 4, or 5 dimensions are supported$"):
        init.dirac_(cg.empty(3, 3))
    with pytest.raises(ValueError, match="^dim 0 must be divisible by groups$"):
        init.dirac_(cg.empty(3, 3, 3), groups=2)


def test_sparse_zeroes_a_share_of_every_column():
    x = filled(init.sparse_, 0.3, std=2.0, shape=(10, N))
    assert ((x == 0).sum(0) == 3).all() and x[x != 0].std() == pytest.approx(2, rel=0.05)
    with pytest.raises(ValueError, match="^Only tensors with 2 dimensions are supported$"):
        init.sparse_(cg.empty(3), 0.1)


def test_a_generator_decides_the_numbers():
    def draw(function, **kwargs):
        return function(cg.empty(4, 4), generator=cg.Generator().manual_seed(7), **kwargs).tolist()

    for function, kwargs in (
        (init.uniform_, {}),
        (init.normal_, {}),
        (init.trunc_normal_, {}),
        (init.xavier_uniform_, {}),
        (init.xavier_normal_, {}),
        (init.kaiming_uniform_, {}),
        (init.kaiming_normal_, {}),
        (init.orthogonal_, {}),
        (init.sparse_, {"sparsity": 0.5}),
    ):
        assert draw(function, **kwargs) == draw(function, **kwargs), function.__name__


def test_old_names_warn_and_do_the_same():
    with pytest.warns(FutureWarning, match="^`nn.init.constant` is now deprecated in favor of `nn.init.constant_`.$"):
        assert init.constant(cg.empty(2), 3.0).tolist() == [3.0, 3.0]
    assert init.xavier_uniform.__name__ == "xavier_uniform"
