"""Layers: section E by line, as far as the tests of nn and the cases of ops leave it open."""

import math

import numpy as np
import pytest

import cudagrad as cg
import cudagrad.nn.functional as F
from cudagrad import nn


def close(t, expected, tolerance=1e-6):
    np.testing.assert_allclose(t.detach().numpy(), expected, rtol=tolerance, atol=tolerance)


# ---- 50


def test_50_batch_norm_normalises_by_the_biased_and_keeps_the_unbiased_variance():
    m = nn.BatchNorm1d(1)
    y = m(cg.tensor([[1.0], [3.0]]))
    close(y, [[-1.0], [1.0]], 1e-4)
    close(m.running_mean, [0.2])
    close(m.running_var, [1.1])
    assert m.num_batches_tracked.dtype is cg.int64
    assert m.num_batches_tracked.item() == 1
    m.eval()
    close(m(cg.tensor([[0.2]])), [[0.0]])


def test_50_no_momentum_is_the_cumulative_average():
    m = nn.BatchNorm1d(1, momentum=None)
    m(cg.tensor([[1.0], [3.0]]))
    close(m.running_mean, [2.0])
    close(m.running_var, [2.0])
    m(cg.tensor([[5.0], [5.0]]))
    close(m.running_mean, [3.5])
    close(m.running_var, [1.0])


def test_50_without_running_statistics_evaluation_uses_the_batch():
    m = nn.BatchNorm1d(1, track_running_stats=False).eval()
    assert m.running_mean is None
    assert m.num_batches_tracked is None
    close(m(cg.tensor([[1.0], [3.0]])), [[-1.0], [1.0]], 1e-4)


def test_50_one_value_for_a_channel_in_training_is_an_error():
    with pytest.raises(ValueError) as raised:
        nn.BatchNorm1d(2)(cg.ones(1, 2))
    assert str(raised.value).split("\n")[0] == (
        "Expected more than 1 value per channel when training, got input size torch.Size([1, 2])"
    )
    assert nn.BatchNorm1d(2).eval()(cg.ones(1, 2)).shape == (1, 2)
    assert nn.BatchNorm1d(2)(cg.ones(0, 2)).shape == (0, 2)


# ---- 51


def test_51_layer_norm_adds_eps_inside_the_root():
    close(F.layer_norm(cg.tensor([0.0, 1e-3]), (2,)), [-0.1562, 0.1562], 1e-4)
    exact = 5e-4 / math.sqrt(2.5e-7 + 1e-5)
    close(F.layer_norm(cg.tensor([0.0, 1e-3], dtype=cg.float64), (2,)), [-exact, exact], 1e-12)


def test_51_layer_norm_of_one_is_zero():
    assert nn.LayerNorm(1)(cg.tensor([[5.0], [7.0]])).tolist() == [[0.0], [0.0]]


def test_51_groups_must_divide_the_channels():
    with pytest.raises(ValueError, match=r"^num_channels \(3\) must be divisible by num_groups \(2\)"):
        nn.GroupNorm(2, 3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_51_rms_norm_without_eps_takes_that_of_the_dtype(dtype):
    eps = float(np.finfo(dtype).eps)
    x = cg.tensor([3e-4, -1e-4], dtype=getattr(cg, dtype))
    rms = math.sqrt((9e-8 + 1e-8) / 2 + eps)
    close(nn.RMSNorm(2, dtype=getattr(cg, dtype))(x), [3e-4 / rms, -1e-4 / rms], 1e-5 if dtype == "float32" else 1e-12)


# ---- 52


def test_52_the_padding_row_is_zero_at_first_has_no_gradient_and_is_used():
    m = nn.Embedding(3, 2, padding_idx=1)
    assert m.weight[1].tolist() == [0.0, 0.0]
    with cg.no_grad():
        m.weight[1] = 7
    assert m(cg.tensor([1])).tolist() == [[7.0, 7.0]]
    m(cg.tensor([1, 2, 2])).sum().backward()
    assert m.weight.grad.tolist() == [[0.0, 0.0], [0.0, 0.0], [2.0, 2.0]]
    assert nn.Embedding(3, 2, padding_idx=-1).padding_idx == 2


def test_52_max_norm_changes_the_weight_itself():
    m = nn.Embedding(2, 2, max_norm=1.0)
    with cg.no_grad():
        m.weight.copy_(cg.tensor([[3.0, 4.0], [6.0, 8.0]]))
    before = m.weight._version
    out = m(cg.tensor([0]))
    close(out, [[0.6, 0.8]])
    close(m.weight, [[0.6, 0.8], [6.0, 8.0]])
    assert m.weight._version > before


# ---- 53


def test_53_a_row_with_everything_masked_is_zero():
    q = cg.ones(1, 2, 4)
    mask = cg.tensor([[True, False], [False, False]])
    out = F.scaled_dot_product_attention(q, q, q, attn_mask=mask)
    assert out[0, 1].tolist() == [0.0] * 4
    assert out[0, 0].tolist() == [1.0] * 4
    assert not out.isnan().any()


def test_53_causal_masks_of_unequal_lengths_start_at_the_top_left():
    q, k = cg.zeros(1, 2, 1), cg.zeros(1, 3, 1)
    v = cg.tensor([[[1.0], [3.0], [100.0]]])
    assert F.scaled_dot_product_attention(q, k, v, is_causal=True).tolist() == [[[1.0], [2.0]]]


# ---- 54


def test_54_attention_takes_the_sequence_first_and_averages_its_weights():
    m = nn.MultiheadAttention(4, 2)
    x = cg.randn(5, 3, 4)
    out, weights = m(x, x, x)
    assert out.shape == (5, 3, 4)
    assert weights.shape == (3, 5, 5)
    close(weights.sum(-1), np.ones((3, 5)), 1e-5)
    assert m(x, x, x, average_attn_weights=False)[1].shape == (3, 2, 5, 5)
    assert m(x, x, x, need_weights=False)[1] is None


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_54_the_gates_of_an_lstm_are_i_f_g_o():
    m = nn.LSTM(2, 1, dtype=cg.float64)
    assert m.weight_ih_l0.shape == (4, 2)
    assert m.weight_hh_l0.shape == (4, 1)
    w, u, b, c = (getattr(m, n).detach().numpy() for n in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"))
    x, h0, c0 = np.array([0.3, -0.7]), np.array([0.2]), np.array([-0.5])
    i, f, g, o = w @ x + b + u @ h0 + c
    cell = sigmoid(f) * c0 + sigmoid(i) * np.tanh(g)
    state = cg.tensor([[0.2]], dtype=cg.float64), cg.tensor([[-0.5]], dtype=cg.float64)
    out, (_, c1) = m(cg.tensor([[0.3, -0.7]], dtype=cg.float64), state)
    close(c1, [cell], 1e-12)
    close(out, [sigmoid(o) * np.tanh(cell)], 1e-12)


def test_54_the_gates_of_a_gru_are_r_z_n_with_a_bias_inside_the_reset():
    m = nn.GRU(2, 1, dtype=cg.float64)
    w, u, b, c = (getattr(m, n).detach().numpy() for n in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"))
    x, h0 = np.array([0.3, -0.7]), np.array([0.2])
    (ir, iz, i_n), (hr, hz, hn) = w @ x + b, u @ h0 + c
    r, z = sigmoid(ir + hr), sigmoid(iz + hz)
    n = np.tanh(i_n + r * hn)
    out, _ = m(cg.tensor([[0.3, -0.7]], dtype=cg.float64), cg.tensor([[0.2]], dtype=cg.float64))
    close(out, [(1 - z) * n + z * h0], 1e-12)


# ---- 55


def test_55_a_linear_layer_starts_uniform_within_one_over_the_root_of_its_inputs():
    cg.manual_seed(0)
    m = nn.Linear(400, 300)
    assert m.weight.shape == (300, 400)
    for p in (m.weight, m.bias):
        assert p.abs().max().item() <= 0.05
        assert p.std().item() == pytest.approx(0.05 / math.sqrt(3), rel=0.1)
    assert m.weight.abs().max().item() > 0.0499


def test_55_xavier_needs_two_dimensions():
    for fill in (nn.init.xavier_uniform_, nn.init.xavier_normal_, nn.init.kaiming_uniform_):
        with pytest.raises(
            ValueError, match="^Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        ):
            fill(cg.empty(3))


# ---- 56


def test_56_dropout_scales_in_training_and_is_the_identity_otherwise():
    cg.manual_seed(0)
    x = cg.ones(1000)
    y = F.dropout(x, 0.25)
    assert set(np.unique(y.numpy()).round(5)) == {0.0, np.float32(1.33333)}
    assert (y != 0).float().mean().item() == pytest.approx(0.75, abs=0.05)
    assert F.dropout(x, 0.25, training=False).tolist() == x.tolist()
    assert nn.Dropout(0.25).eval()(x).tolist() == x.tolist()
    assert F.dropout(x, 1.0).tolist() == [0.0] * 1000


@pytest.mark.parametrize("make", [nn.Dropout, nn.Dropout2d, nn.AlphaDropout, lambda p: F.dropout(cg.ones(1), p)])
def test_56_a_chance_above_one_is_an_error(make):
    with pytest.raises(ValueError, match="^dropout probability has to be between 0 and 1, but got 1.5"):
        make(1.5)


# ---- 57


def test_57_average_pooling_counts_the_padding_unless_told():
    x = cg.ones(1, 1, 3)
    close(F.avg_pool1d(x, 3, stride=1, padding=1), [[[2 / 3, 1.0, 2 / 3]]])
    close(F.avg_pool1d(x, 3, stride=1, padding=1, count_include_pad=False), [[[1.0, 1.0, 1.0]]])
    close(F.avg_pool1d(cg.ones(1, 1, 4), 3, stride=3, ceil_mode=True), [[[1.0, 1.0]]])


def test_57_adaptive_windows_overlap():
    x = cg.arange(5.0).view(1, 1, 5)
    close(F.adaptive_avg_pool1d(x, 3), [[[0.5, 2.0, 3.5]]])
    close(F.adaptive_max_pool1d(x, 3), [[[1.0, 3.0, 4.0]]])


def test_57_interpolation():
    x = cg.tensor([[[0.0, 1.0, 2.0]]])
    close(F.interpolate(x, size=5, mode="linear"), [[[0.0, 0.4, 1.0, 1.6, 2.0]]])
    close(F.interpolate(x, size=5, mode="linear", align_corners=True), [[[0.0, 0.5, 1.0, 1.5, 2.0]]])
    close(F.interpolate(x, size=5, mode="nearest"), [[[0.0, 0.0, 1.0, 1.0, 2.0]]])


# ---- 58


def test_58_pads_are_listed_from_the_last_dim():
    x = cg.zeros(1, 2, 3)
    assert F.pad(x, (1, 2)).shape == (1, 2, 6)
    assert F.pad(x, (0, 0, 3, 4)).shape == (1, 9, 3)
    assert F.pad(cg.ones(1), (1, 0), value=5).tolist() == [5.0, 1.0]


def test_58_padding_same_forbids_strides():
    with pytest.raises(RuntimeError, match="^padding='same' is not supported for strided convolutions"):
        F.conv1d(cg.ones(1, 1, 4), cg.ones(1, 1, 3), padding="same", stride=2)
    with pytest.raises(ValueError, match="^padding='same' is not supported for strided convolutions"):
        nn.Conv1d(1, 1, 3, padding="same", stride=2)
    assert F.conv1d(cg.ones(1, 1, 4), cg.ones(1, 1, 3), padding="same").tolist() == [[[2.0, 3.0, 3.0, 2.0]]]


def test_58_gelu_is_exact_by_default():
    x = 1.3
    exact = x * 0.5 * (1 + math.erf(x / math.sqrt(2)))
    close(F.gelu(cg.tensor(x, dtype=cg.float64)), exact, 1e-14)
    assert abs(F.gelu(cg.tensor(x, dtype=cg.float64), approximate="tanh").item() - exact) > 1e-5


# ---- 59


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
@pytest.mark.parametrize("shape, dim", [((2,), 0), ((2, 3), 1), ((2, 3, 4), 0), ((2, 3, 4, 5), 1)])
def test_59_softmax_without_a_dim_warns_and_guesses(name, shape, dim):
    x = cg.randn(shape)
    with pytest.warns(UserWarning, match=f"^Implicit dimension choice for {name} has been deprecated"):
        y = getattr(F, name)(x)
    assert y.tolist() == getattr(F, name)(x, dim=dim).tolist()


def test_59_a_mask_of_bytes_warns_and_floats_are_no_indices():
    x = cg.arange(3)
    with pytest.warns(
        UserWarning, match="^indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool"
    ):
        assert x[cg.tensor([1, 0, 1], dtype=cg.uint8)].tolist() == [0, 2]
    with pytest.raises(IndexError, match="^tensors used as indices must be long, int, byte or bool tensors"):
        x[cg.tensor([1.0])]


# ---- 60


def test_60_the_rules_of_modules():
    class Early(nn.Module):
        def __init__(self):
            self.child = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match=r"^cannot assign module before Module.__init__\(\) call"):
        Early()
    m = nn.Linear(2, 2)
    with pytest.raises(TypeError) as raised:
        m.weight = cg.zeros(2, 2)
    assert str(raised.value).split("\n")[0] == (
        "cannot assign 'torch.FloatTensor' as parameter 'weight' (torch.nn.Parameter or None expected)"
    )
    m.register_buffer("kept", cg.zeros(1))
    m.register_buffer("dropped", cg.zeros(1), persistent=False)
    assert list(m.state_dict()) == ["weight", "bias", "kept"]
    assert [n for n, _ in m.named_buffers()] == ["kept", "dropped"]
