"""Convolution layers: options, parameters and their initial values, and what no table of values can show."""

import copy
import math

import numpy as np
import pytest

import cudagrad as cg
from cudagrad import nn
from cudagrad.nn import functional as F

LAYERS = [nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d]


def axes_of(layer):
    return int(layer.__name__[-2])


@pytest.mark.parametrize("layer", LAYERS)
def test_weights_start_uniform_within_the_root_of_fan_in(layer):
    n = axes_of(layer)
    made = layer(8, 12, 3, groups=2)
    first, second = (8, 6) if made.transposed else (12, 4)
    assert tuple(made.weight.shape) == (first, second, *(3,) * n) and tuple(made.bias.shape) == (12,)
    bound = 1 / math.sqrt(second * 3**n)  # kaiming_uniform with a = sqrt 5 of PyTorch's fan_in, weight.shape[1] * K
    for p in (made.weight, made.bias):
        size = p.detach().numpy()
        assert np.abs(size).max() <= bound and np.abs(size).max() > 0.7 * bound


@pytest.mark.parametrize("layer", LAYERS)
def test_without_bias_there_is_no_parameter_and_options_are_tuples(layer):
    n = axes_of(layer)
    made = layer(2, 3, 3, stride=2, padding=1, bias=False)
    assert made.bias is None and list(made.state_dict()) == ["weight"]
    assert made.kernel_size == (3,) * n and made.stride == (2,) * n and made.padding == (1,) * n
    assert made(cg.randn(1, 2, *(5,) * n)).shape[:2] == (1, 3)


@pytest.mark.parametrize("padding_mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize("padding", [(1, 2), "same"])
def test_a_padding_mode_pads_before_the_convolution(padding, padding_mode):
    layer = nn.Conv2d(2, 3, (2, 3), padding=padding, padding_mode=padding_mode).double()
    x = cg.randn(1, 2, 5, 6, dtype=cg.float64)
    widths = (2, 2, 1, 1) if padding == (1, 2) else (1, 1, 0, 1)
    expected = F.conv2d(F.pad(x, widths, padding_mode), layer.weight, layer.bias)
    assert cg.allclose(layer(x), expected)


def test_padding_same_keeps_the_size_and_valid_pads_nothing():
    x = cg.randn(1, 2, 7, 8)
    assert nn.Conv2d(2, 3, (4, 3), padding="same", dilation=2)(x).shape == (1, 3, 7, 8)
    assert nn.Conv2d(2, 3, 3, padding="valid")(x).shape == (1, 3, 5, 6)


def test_options_that_do_not_go_together_are_refused():
    for text, make in (
        ("in_channels must be divisible by groups", lambda: nn.Conv2d(3, 4, 3, groups=2)),
        ("out_channels must be divisible by groups", lambda: nn.Conv2d(4, 3, 3, groups=2)),
        ("groups must be a positive integer", lambda: nn.Conv2d(4, 4, 3, groups=0)),
        ("Invalid padding string 'foo', should be one of {'valid', 'same'}", lambda: nn.Conv2d(4, 4, 3, padding="foo")),
        (
            "padding='same' is not supported for strided convolutions",
            lambda: nn.Conv2d(4, 4, 3, padding="same", stride=2),
        ),
        ("but got padding_mode='foo'", lambda: nn.Conv2d(4, 4, 3, padding_mode="foo")),
        (
            'Only "zeros" padding mode is supported for ConvTranspose2d',
            lambda: nn.ConvTranspose2d(4, 4, 3, padding_mode="reflect"),
        ),
    ):
        with pytest.raises(ValueError) as caught:
            make()
        assert text in str(caught.value)


def test_a_transposed_convolution_reaches_the_output_size_asked_for():
    layer = nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1)
    x = cg.randn(1, 2, 4, 5)
    assert layer(x).shape == (1, 3, 7, 9)
    assert layer(x, output_size=(8, 10)).shape == (1, 3, 8, 10)
    assert layer(x, output_size=(1, 3, 8, 9)).shape == (1, 3, 8, 9)
    with pytest.raises(
        ValueError, match=r"requested an output size of \(9, 9\), but valid sizes range from \[7, 9\] to"
    ):
        layer(x, output_size=(9, 9))
    with pytest.raises(
        ValueError, match=r"ConvTranspose2D: for 4D input, output_size must have 2 or 4 elements \(got 5\)"
    ):
        layer(x, output_size=(1, 2, 3, 4, 5))


def test_a_convolution_and_its_transpose_are_adjoint():
    """<conv(x), y> = <x, conv_transpose(y)> for the same weight and options."""
    x, y = cg.randn(2, 3, 9, dtype=cg.float64), cg.randn(2, 4, 4, dtype=cg.float64)
    w = cg.randn(4, 3, 3, dtype=cg.float64)
    left = (F.conv1d(x, w, stride=2, padding=0) * y).sum()
    right = (x * F.conv_transpose1d(y, w, stride=2, padding=0)).sum()
    assert cg.allclose(left, right)


def test_the_input_gets_no_gradient_where_it_wants_none():
    seen = []
    from cudagrad.core.modes import watching

    layer, x = nn.Conv2d(2, 3, 3), cg.randn(1, 2, 5, 5)
    out = layer(x).sum()
    with watching(lambda op, tensors, options, call: (seen.append(op.name), call(tensors, options))[1]):
        cg.autograd.grad(out, list(layer.parameters()), create_graph=True)
    assert "convolution_weight" in seen and "convolution_transpose" not in seen


def test_dtypes_that_differ_are_named():
    with pytest.raises(RuntimeError, match=r"Input type \(torch.FloatTensor\) and weight type \(torch.DoubleTensor\)"):
        F.conv1d(cg.ones(1, 1, 3), cg.ones(1, 1, 2, dtype=cg.float64))
    with pytest.raises(RuntimeError, match=r"Input type \(float\) and bias type \(double\) should be the same"):
        F.conv1d(cg.ones(1, 1, 3), cg.ones(1, 1, 2), cg.ones(1, dtype=cg.float64))


def test_the_result_can_be_viewed():
    """Contiguous, whatever layout the sums were made in."""
    for shape, weight in (((64, 6, 14, 14), (16, 6, 5, 5)), ((2, 3, 8, 8), (4, 3, 3, 3)), ((2, 4, 5, 5), (4, 1, 2, 2))):
        out = F.conv2d(cg.randn(shape), cg.randn(weight), groups=shape[1] // weight[1])
        assert out.is_contiguous() and out.view(shape[0], -1).shape[0] == shape[0]


@pytest.mark.parametrize("create_graph", (False, True))
@pytest.mark.parametrize(
    "layer",
    (
        nn.Conv1d(4, 2, 3, padding=1),
        nn.Conv1d(4, 4, 3, stride=2, padding=1, groups=4),
        nn.ConvTranspose1d(4, 2, 4, stride=2, padding=1, bias=False),
        nn.MaxPool1d(3, 2, 1),
        nn.AvgPool1d(3, 2, 1),
    ),
)
def test_what_padding_is_cut_from_can_be_viewed(layer, create_graph):
    """A gradient penalty flattens the gradient of an image: ``gradient.view(len(gradient), -1)``."""
    x = cg.randn(2, 4, 8, requires_grad=True)
    out = layer(x)
    (gradient,) = cg.autograd.grad(out, x, cg.ones(out.shape), create_graph=create_graph)
    assert out.view(2, -1).shape == (2, out[0].numel()) and gradient.view(2, -1).shape == (2, 32)


def test_a_copy_is_apart_and_keeps_its_options():
    layer = nn.Conv2d(2, 3, 3, padding=1, padding_mode="circular")
    twin = copy.deepcopy(layer)
    assert repr(twin) == repr(layer) and twin.weight is not layer.weight
    x = cg.randn(1, 2, 4, 4)
    assert cg.equal(layer(x), twin(x))


@pytest.mark.parametrize("pieces", [1, 300, 5000])
def test_the_size_of_the_pieces_changes_nothing(monkeypatch, pieces):
    from cudagrad.ops import correlation

    x, w = cg.randn(3, 2, 6, 7, dtype=cg.float64), cg.randn(4, 2, 3, 2, dtype=cg.float64)
    x.requires_grad_(), w.requires_grad_()
    run = lambda: F.conv2d(x, w, stride=(1, 2), padding=1)  # noqa: E731
    out = run()
    g = cg.randn(out.shape, dtype=cg.float64)
    expected = (out, *cg.autograd.grad(out, (x, w), g))
    monkeypatch.setitem(correlation.PIECE, True, pieces)
    out = run()
    for a, b in zip((out, *cg.autograd.grad(out, (x, w), g)), expected):
        assert cg.allclose(a, b, rtol=1e-12)


@pytest.mark.peer
@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.__name__)
def test_layers_are_those_of_pytorch(layer):
    torch = pytest.importorskip("torch", reason="needs the extra peer")
    n = axes_of(layer)
    for options in ({}, {"stride": 2, "padding": 1, "groups": 2, "dilation": 2, "bias": False}):
        mine, theirs = layer(4, 6, 2, **options), getattr(torch.nn, layer.__name__)(4, 6, 2, **options)
        mine.load_state_dict({k: cg.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
        assert repr(mine) == repr(theirs)
        x = np.random.default_rng(0).standard_normal((2, 4, *(6, 5, 7)[:n])).astype("f")
        np.testing.assert_allclose(
            mine(cg.tensor(x)).detach().numpy(), theirs(torch.tensor(x)).detach().numpy(), rtol=1e-4, atol=1e-5
        )


def test_half_types_do_not_mix_with_float32():
    x, w = cg.ones(1, 1, 3, dtype=cg.bfloat16), cg.ones(1, 1, 2)
    with pytest.raises(
        RuntimeError, match=r"Input type \(torch.BFloat16Tensor\) and weight type \(torch.FloatTensor\)"
    ):
        F.conv1d(x, w)
    assert F.conv1d(x, w.to(cg.bfloat16)).dtype is cg.bfloat16
