"""Batch normalisation folded into the layer before it, for evaluation."""

import copy

from ...core.modes import no_grad
from ..parameter import Parameter


@no_grad()
def fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, transpose=False):
    """``(weight, bias)`` of a convolution that does what convolution and normalisation do one after the other.

    With s = bn_w / sqrt(bn_rv + bn_eps): weight * s along the output channels, (bias - bn_rm) * s + bn_b.
    """
    scale = (bn_rv + bn_eps).rsqrt()
    scale = scale if bn_w is None else bn_w * scale
    shape = [1] * conv_w.dim()
    shape[1 if transpose else 0] = -1
    bias = -bn_rm * scale if conv_b is None else (conv_b - bn_rm) * scale
    bias = bias if bn_b is None else bias + bn_b
    weight = (conv_w * scale.reshape(shape)).to(conv_w.dtype)
    wants = conv_w.requires_grad, conv_w.requires_grad if conv_b is None else conv_b.requires_grad
    return Parameter(weight, wants[0]), Parameter(bias.to(conv_w.dtype), wants[1])


def fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b):
    """``(weight, bias)`` of a linear layer that does what the layer and the normalisation after it do."""
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


def _fused(layer, bn, transpose):
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
    fused = copy.deepcopy(layer)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        layer.weight, layer.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_conv_bn_eval(conv, bn, transpose=False):
    """A convolution that does what ``conv`` and ``bn``, both in evaluation mode, do one after the other."""
    return _fused(conv, bn, transpose)


def fuse_linear_bn_eval(linear, bn):
    """A linear layer that does what ``linear`` and ``bn``, both in evaluation mode, do one after the other."""
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got "
            f"linear.out_features={linear.out_features} and bn.num_features={bn.num_features}"
        )
    return _fused(linear, bn, False)
