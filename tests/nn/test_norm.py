"""Normalisation layers: statistics, modes, and the corners that PyTorch users rely on."""

import math

import numpy as np
import pytest

import cudagrad as cg
from cudagrad import nn
from cudagrad.nn import functional as F


def test_running_variance_is_unbiased_and_the_batch_is_normalised_by_the_biased_one():
    layer = nn.BatchNorm1d(1)
    out = layer(cg.tensor([[1.0], [3.0]]))
    assert cg.allclose(layer.running_mean, cg.tensor([0.2])) and cg.allclose(layer.running_var, cg.tensor([1.1]))
    assert layer.num_batches_tracked.item() == 1 and layer.num_batches_tracked.dtype is cg.int64
    assert np.allclose(out.detach().numpy().ravel(), [-1 / math.sqrt(1 + 1e-5), 1 / math.sqrt(1 + 1e-5)])


def test_without_momentum_running_statistics_are_the_mean_over_all_batches():
    layer = nn.BatchNorm1d(1, momentum=None)
    for batch in ([[1.0], [3.0]], [[5.0], [5.0]], [[0.0], [4.0]]):
        layer(cg.tensor(batch))
    assert cg.allclose(layer.running_mean, cg.tensor([(2.0 + 5.0 + 2.0) / 3]))
    assert cg.allclose(layer.running_var, cg.tensor([(2.0 + 0.0 + 8.0) / 3]))


def test_evaluation_uses_running_statistics_and_leaves_them():
    layer = nn.BatchNorm2d(2).eval()
    layer.running_mean.fill_(1.0)
    layer.running_var.fill_(4.0)
    x = cg.randn(3, 2, 2, 2)
    assert cg.allclose(layer(x), (x - 1) / math.sqrt(4 + 1e-5), atol=1e-6)
    assert layer.num_batches_tracked.item() == 0 and layer.running_mean.tolist() == [1.0, 1.0]


def test_without_tracking_the_batch_counts_in_evaluation_too():
    layer = nn.BatchNorm1d(2, track_running_stats=False).eval()
    assert layer.running_mean is None and list(layer.state_dict()) == ["weight", "bias"]
    out = layer(cg.tensor([[1.0, 2.0], [3.0, 2.0]])).detach()
    assert np.allclose(out.numpy(), [[-1, 0], [1, 0]], atol=1e-5)


def test_one_value_a_channel_cannot_train():
    with pytest.raises(ValueError, match=r"Expected more than 1 value per channel when training, got input size"):
        nn.BatchNorm1d(3)(cg.randn(1, 3))
    assert nn.BatchNorm1d(3).eval()(cg.randn(1, 3)).shape == (1, 3)


def test_an_empty_batch_is_allowed():
    for layer, shape in ((nn.BatchNorm1d(3), (0, 3)), (nn.GroupNorm(1, 3), (0, 3, 2)), (nn.LayerNorm(3), (0, 3))):
        assert layer(cg.zeros(shape)).shape == shape


def test_running_statistics_are_written_in_place():
    layer = nn.BatchNorm1d(2)
    mean, version = layer.running_mean, layer.running_mean._version
    layer(cg.randn(4, 2))
    assert layer.running_mean is mean and mean._version > version and not mean.requires_grad


def test_frozen_statistics_pass_gradients_through_the_affine_map():
    layer = nn.BatchNorm1d(2).eval()
    layer.running_var.fill_(3.0)
    x = cg.randn(4, 2, requires_grad=True)
    layer(x).sum().backward()
    assert cg.allclose(x.grad, cg.full((4, 2), 1 / math.sqrt(3 + 1e-5)))
    assert cg.allclose(layer.bias.grad, cg.full((2,), 4.0))


def test_a_large_mean_costs_no_digits_of_the_variance():
    """E[x^2] - mean^2 would give a variance of 0 or noise: 1e4^2 has no digit left for 1."""
    x = np.random.default_rng(0).standard_normal((64, 8)) + 1e4
    expected = (x - x.mean(0)) / x.std(0)
    exact = x.astype(np.float32).astype(np.float64)
    rounded = (exact - exact.mean(0)) / exact.std(0)
    got = nn.BatchNorm1d(8)(cg.tensor(x.astype(np.float32))).detach().numpy()
    assert np.abs(got - rounded).max() < 2e-3 and np.abs(expected - rounded).max() < 2e-2
    rows = nn.LayerNorm(64, elementwise_affine=False)(cg.tensor(x.T.astype(np.float32).copy())).numpy()
    assert np.abs(rows - rounded.T).max() < 2e-3


def test_layer_norm_has_eps_within_the_root():
    out = nn.LayerNorm(2)(cg.tensor([0.0, 1e-3])).detach()
    assert np.allclose(out.numpy(), [-0.1562, 0.1562], atol=1e-4)
    assert nn.LayerNorm(1)(cg.tensor([[3.0], [5.0]])).tolist() == [[0.0], [0.0]]


def test_rms_norm_takes_the_eps_of_the_dtype():
    for dtype in (cg.float32, cg.float64, cg.float16):
        eps = cg.finfo(dtype).eps
        x = cg.full((2,), math.sqrt(eps), dtype=dtype)
        out = nn.RMSNorm(2, dtype=dtype)(x).detach()
        assert np.allclose(out.double().numpy(), 1 / math.sqrt(2), rtol=2e-3)


def test_group_norm_of_one_group_and_of_each_channel():
    x = cg.randn(2, 4, 3)
    assert cg.allclose(F.group_norm(x, 1), F.layer_norm(x, (4, 3)), atol=1e-5)
    assert cg.allclose(F.group_norm(x, 4), F.instance_norm(x), atol=1e-5)
    with pytest.raises(ValueError, match=r"num_channels \(3\) must be divisible by num_groups \(2\)"):
        nn.GroupNorm(2, 3)


def test_instance_norm_follows_the_mean_over_the_batch():
    layer = nn.InstanceNorm1d(1, track_running_stats=True)
    layer(cg.tensor([[[1.0, 3.0]], [[5.0, 9.0]]]))
    assert cg.allclose(layer.running_mean, cg.tensor([0.1 * (2 + 7) / 2]))
    assert cg.allclose(layer.running_var, cg.tensor([0.9 + 0.1 * (2 + 8) / 2]))
    layer.eval()
    x = cg.randn(2, 1, 3)
    expected = (x - layer.running_mean) / (layer.running_var + 1e-5).sqrt()
    assert cg.allclose(layer(x), expected, atol=1e-6)


def test_instance_norm_takes_an_input_without_batch():
    x = cg.randn(3, 5)
    assert cg.allclose(nn.InstanceNorm1d(3)(x), F.instance_norm(x.unsqueeze(0)).squeeze(0))
    with pytest.warns(UserWarning, match="input's size at dim=0 does not match num_features"):
        nn.InstanceNorm1d(4)(x)
    with pytest.raises(ValueError, match=r"expected input's size at dim=0 to match num_features \(4\), but got: 3"):
        nn.InstanceNorm1d(4, affine=True)(x)


def test_the_number_of_axes_is_checked():
    for layer, shape, text in (
        (nn.BatchNorm1d(3), (2, 3, 4, 5), r"expected 2D or 3D input \(got 4D input\)"),
        (nn.BatchNorm2d(3), (2, 3), r"expected 4D input \(got 2D input\)"),
        (nn.BatchNorm3d(3), (2, 3, 4, 5), r"expected 5D input \(got 4D input\)"),
        (nn.InstanceNorm2d(3), (2, 3), r"expected 3D or 4D input \(got 2D input\)"),
        (nn.CrossMapLRN2d(2), (2, 3), r"CrossMapLRN2d: Expected input to be 4D, got 2D instead"),
    ):
        with pytest.raises(ValueError, match=text):
            layer(cg.randn(shape))


def test_half_types_are_computed_in_float32_beside_float32_parameters():
    x = cg.randn(4, 64).to(cg.bfloat16)
    out = F.layer_norm(x, (64,), cg.ones(64), cg.zeros(64))
    exact = F.layer_norm(x.double(), (64,))
    assert out.dtype is cg.bfloat16 and (out.double() - exact).abs().max().item() < 2**-7
    weight = cg.ones(64, requires_grad=True)
    F.layer_norm(x, (64,), weight).float().sum().backward()
    assert weight.grad.dtype is cg.float32
    with pytest.raises(RuntimeError, match=r"mixed dtype \(CPU\): expect parameter to have scalar type of Float"):
        F.layer_norm(cg.randn(2, 3), (3,), cg.ones(3, dtype=cg.float64))


def test_an_old_checkpoint_has_no_count_of_batches():
    layer = nn.BatchNorm1d(2)
    state = layer.state_dict()
    del state["num_batches_tracked"]
    state._metadata[""]["version"] = 1
    assert nn.BatchNorm1d(2).load_state_dict(state).missing_keys == []


def test_cross_map_normalisation_counts_as_many_channels_before_as_after():
    x = cg.arange(1.0, 7.0).reshape(1, 6, 1, 1)
    squares = np.arange(1.0, 7.0) ** 2
    for size, half in ((1, 0), (2, 0), (3, 1), (4, 1), (5, 2)):
        sums = [squares[max(c - half, 0) : c + half + 1].sum() for c in range(6)]
        expected = np.arange(1.0, 7.0) / (2 + 0.5 / size * np.array(sums)) ** 0.75
        got = nn.CrossMapLRN2d(size, alpha=0.5, beta=0.75, k=2)(x).numpy().ravel()
        assert np.allclose(got, expected, rtol=1e-6)


@pytest.mark.peer
def test_statistics_after_some_steps_are_those_of_pytorch():
    torch = pytest.importorskip("torch", reason="needs the extra peer")
    rng = np.random.default_rng(0)
    for name, shape in (("BatchNorm1d", (5, 3)), ("BatchNorm2d", (2, 3, 4, 5)), ("InstanceNorm1d", (4, 3, 6))):
        options = {"affine": True, "track_running_stats": True}
        mine, theirs = getattr(nn, name)(3, **options), getattr(torch.nn, name)(3, **options)
        for _ in range(3):
            x = rng.standard_normal(shape).astype("f")
            a, b = mine(cg.tensor(x)), theirs(torch.tensor(x))
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-4, atol=1e-5)
        for k, v in theirs.state_dict().items():
            np.testing.assert_allclose(mine.state_dict()[k].numpy(), v.numpy(), rtol=1e-5, atol=1e-6)
