"""Pooling, padding, resampling and shape layers."""

import numpy as np
import pytest

import cudagrad as cg
from cudagrad import nn
from cudagrad.nn import functional as F


def test_padding_counts_in_a_mean_unless_told_otherwise():
    x = cg.ones(1, 1, 3)
    assert np.allclose(nn.AvgPool1d(3, stride=1, padding=1)(x).numpy(), [[[2 / 3, 1, 2 / 3]]])
    assert nn.AvgPool1d(3, stride=1, padding=1, count_include_pad=False)(x).tolist() == [[[1, 1, 1]]]


def test_a_last_window_past_the_end_counts_what_is_there():
    assert nn.AvgPool1d(2, ceil_mode=True)(cg.ones(1, 1, 3)).tolist() == [[[1, 1]]]
    assert nn.MaxPool1d(2, ceil_mode=True)(cg.tensor([[[1.0, 2.0, 3.0]]])).tolist() == [[[2, 3]]]


def test_max_pooling_sends_the_gradient_to_the_first_of_equal_elements():
    x = cg.tensor([[[1.0, 1.0, 0.0, 2.0, 2.0, 2.0]]], requires_grad=True)
    F.max_pool1d(x, 3).sum().backward()
    assert x.grad.tolist() == [[[1, 0, 0, 1, 0, 0]]]


def test_an_infinite_gradient_stays_where_it_belongs():
    """0 * inf would be nan at the elements that were not the largest."""
    x = cg.tensor([[[1.0, 2.0, 3.0, 0.0]]], requires_grad=True)
    (g,) = cg.autograd.grad(F.max_pool1d(x, 2), x, cg.tensor([[[np.inf, 1.0]]]))
    assert g.tolist() == [[[0, np.inf, 1, 0]]]


def test_windows_that_overlap_add_up():
    x = cg.tensor([[[0.0, 3.0, 1.0, 2.0]]], requires_grad=True)
    F.max_pool1d(x, 3, stride=1).sum().backward()
    assert x.grad.tolist() == [[[0, 2, 0, 0]]]


def test_unpooling_puts_elements_back():
    x = cg.arange(16.0).reshape(1, 1, 4, 4)
    out, indices = nn.MaxPool2d(2, return_indices=True)(x)
    assert indices.dtype is cg.int64
    back = nn.MaxUnpool2d(2)(out, indices)
    assert cg.equal(back, cg.where((x == 5) | (x == 7) | (x == 13) | (x == 15), x, cg.zeros(())))
    assert nn.MaxUnpool2d(2)(out, indices, output_size=(5, 4)).shape == (1, 1, 5, 4)


def test_adaptive_parts_overlap_where_they_must():
    x = cg.arange(5.0).reshape(1, 1, 5)
    assert nn.AdaptiveAvgPool1d(2)(x).tolist() == [[[1.0, 3.0]]]  # elements 0 1 2 and 2 3 4
    assert nn.AdaptiveMaxPool1d(2)(x).tolist() == [[[2.0, 4.0]]]
    assert nn.AdaptiveAvgPool2d((None, 1))(cg.randn(2, 3, 4, 5)).shape == (2, 3, 4, 1)


def test_interpolation_without_aligned_corners():
    x = cg.tensor([[[0.0, 2.0]]])
    assert np.allclose(F.interpolate(x, 5, mode="linear").numpy(), [[[0, 0.2, 1, 1.8, 2]]])
    assert F.interpolate(cg.tensor([[[0.0, 1.0, 2.0]]]), 5).tolist() == [[[0, 0, 1, 1, 2]]]


@pytest.mark.parametrize(
    "layer, shape, size",
    [
        (nn.Upsample(scale_factor=2), (1, 2, 3, 3), (1, 2, 6, 6)),
        (nn.Upsample(size=(4, 5), mode="bilinear", align_corners=True), (1, 2, 3, 3), (1, 2, 4, 5)),
        (nn.UpsamplingNearest2d(scale_factor=3), (1, 1, 2, 2), (1, 1, 6, 6)),
        (nn.UpsamplingBilinear2d(size=4), (1, 1, 2, 2), (1, 1, 4, 4)),
        (nn.PixelShuffle(2), (1, 4, 2, 3), (1, 1, 4, 6)),
        (nn.PixelUnshuffle(2), (1, 1, 4, 6), (1, 4, 2, 3)),
        (nn.ChannelShuffle(2), (1, 4, 3), (1, 4, 3)),
        (nn.Unfold(2), (1, 2, 3, 3), (1, 8, 4)),
        (nn.Fold((3, 3), 2), (1, 8, 4), (1, 2, 3, 3)),
        (nn.Flatten(), (2, 3, 4), (2, 12)),
        (nn.Unflatten(1, (3, -1)), (2, 12), (2, 3, 4)),
        (nn.ZeroPad1d((1, 2)), (1, 2, 3), (1, 2, 6)),
        (nn.ConstantPad3d(1, 2.0), (1, 1, 1, 1, 1), (1, 1, 3, 3, 3)),
        (nn.ReflectionPad2d((1, 0, 0, 1)), (1, 1, 3, 3), (1, 1, 4, 4)),
        (nn.ReplicationPad1d(2), (1, 3), (1, 7)),
        (nn.CircularPad2d(1), (1, 2, 2), (1, 4, 4)),
        (nn.LPPool2d(2, 2), (1, 1, 4, 4), (1, 1, 2, 2)),
        (nn.FractionalMaxPool2d(2, output_ratio=0.5), (1, 2, 6, 8), (1, 2, 3, 4)),
        (nn.AvgPool3d(2, divisor_override=1), (1, 4, 4, 4), (1, 2, 2, 2)),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else None,
)
def test_layers_give_the_shapes_that_they_promise(layer, shape, size):
    assert layer(cg.randn(shape)).shape == size


def test_pad_lists_start_from_the_last_axis():
    assert F.pad(cg.ones(2, 3), (1, 0, 0, 2)).shape == (4, 4)
    assert nn.ConstantPad1d((1, 0), 7.0)(cg.ones(1, 2)).tolist() == [[7, 1, 1]]


def test_padding_by_nothing_is_a_copy():
    x = cg.ones(2, 3)
    for mode in ("constant", "reflect", "replicate", "circular"):
        out = F.pad(x, (0, 0), mode)
        out.zero_()
        assert x.sum().item() == 6


def test_windows_at_random_distances_repeat_with_the_seed():
    x = cg.randn(2, 3, 9, 9)
    layer = nn.FractionalMaxPool2d(2, output_size=4)
    cg.manual_seed(1)
    first, second = layer(x), layer(x)
    cg.manual_seed(1)
    assert cg.equal(first, layer(x)) and not cg.equal(first, second)


def test_older_names_warn():
    with pytest.warns(UserWarning, match="`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate`"):
        F.upsample(cg.ones(1, 1, 2), scale_factor=2)
    with pytest.warns(UserWarning, match="Default grid_sample and affine_grid behavior has changed"):
        F.affine_grid(cg.ones(1, 2, 3), (1, 1, 2, 2))


def test_sampling_on_the_plain_grid_gives_the_image():
    x = cg.randn(2, 3, 4, 5, dtype=cg.float64)
    theta = cg.tensor([[[1.0, 0, 0], [0, 1, 0]]] * 2, dtype=cg.float64)
    for align_corners in (False, True):
        grid = F.affine_grid(theta, x.shape, align_corners)
        for mode in ("bilinear", "nearest", "bicubic"):
            assert cg.allclose(F.grid_sample(x, grid, mode, align_corners=align_corners), x)


def test_a_grid_of_nearest_places_gets_zeros():
    x, grid = cg.randn(1, 1, 3, 3, requires_grad=True), cg.zeros(1, 1, 1, 2, requires_grad=True)
    F.grid_sample(x, grid, "nearest", align_corners=True).sum().backward()
    assert grid.grad.tolist() == [[[[0, 0]]]] and x.grad.sum().item() == 1


@pytest.mark.parametrize("kind", [nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool2d])
def test_a_batch_of_none_is_pooled_to_none(kind):
    assert kind(2)(cg.zeros(0, 2, 4, 4)).shape == (0, 2, 2, 2)
