"""Residual sums with their norms, from the definitions; with dropout where chance has no say."""

import numpy as np

from . import Error, Input, case
from .normalization import layer, rms


def layer_of_sum(x, residual, shape, w=None, b=None, **options):
    return layer(x + residual, tuple(shape), w, b, **options), x + residual


def rms_of_sum(x, residual, shape, w=None, **options):
    return rms(x + residual, tuple(shape), w, **options), x + residual


def added(x, bias=None, residual=None, p=0.5, training=True):
    x = x if bias is None else x + bias
    x = x * 0 if training and p == 1 else x
    return x if residual is None else x + residual


F = "nn.functional."

case(
    F + "add_layer_norm",
    layer_of_sum,
    Input((4, 3), (4, 3), [3]),
    Input((2, 4, 3), (2, 4, 3), [3], (3,)),
    Input((2, 4, 3), (2, 4, 3), [4, 3], (4, 3), (4, 3), eps=0.1),
    Input((0, 3), (0, 3), [3], (3,), (3,)),
    Input((500, 40), (500, 40), [40], (40,), (40,)),
    Error(RuntimeError, "add_layer_norm: x and residual must have the same shape", (2, 3), (3,), [3]),
    Error(RuntimeError, "Given normalized_shape=[4], expected input with shape [*4], but got", (2, 3), (2, 3), [4]),
    Error(NotImplementedError, "not implemented for 'Long'", np.ones((2, 3), int), np.ones((2, 3), int), [3]),
    Error(TypeError, "add_layer_norm(): argument", (2, 3), 1.0, [3]),
    roundings=32,
)
case(
    F + "add_rms_norm",
    rms_of_sum,
    Input((4, 3), (4, 3), [3], eps=1e-3),
    Input((2, 4, 3), (2, 4, 3), [4, 3], (4, 3), eps=0.1),
    Input((500, 40), (500, 40), [40], (40,)),
    Error(RuntimeError, "add_rms_norm: x and residual must have the same shape", (2, 3), (2, 4), [3]),
    Error(NotImplementedError, "not implemented for 'Long'", np.ones((2, 3), int), np.ones((2, 3), int), [3]),
    roundings=32,
)
case(
    F + "bias_dropout_add",
    added,
    Input((2, 3, 4), (4,), (2, 3, 4), p=1.0),
    Input((3, 4), (4,), (3, 4), p=0.0),
    Input((3, 4), (4,), training=False),
    Input((3, 4), None, (3, 4), p=1.0),
    Input((3, 4), p=0.3, training=False),
    Input((4,), (4,), (4,), p=1.0),
    Input((0, 4), (4,), (0, 4), p=0.5),
    Error(ValueError, "dropout probability has to be between 0 and 1, but got 1.5", (3, 4), None, (3, 4), p=1.5),
    Error(RuntimeError, "bias_dropout_add: bias must have the shape of x's last axis, [4]", (3, 4), (3,)),
    Error(RuntimeError, "bias_dropout_add: x and residual must have the same shape", (3, 4), None, (4,)),
    Error(RuntimeError, "can't be cast to the desired output type Long", np.ones(3, int), None, np.ones(3, int)),
    complex=True,
)
