"""Normalisation of layers, of groups of channels, and across channels."""

import numbers

from ..ops.average_pooling import avg_pool2d
from ..ops.normalization import checked_group_norm, layer_norm, local_response_norm, rms_norm
from ..ops.padding import pad
from . import init
from .linear import uninitialised
from .module import Module

__all__ = ("LayerNorm", "RMSNorm", "GroupNorm", "LocalResponseNorm", "CrossMapLRN2d")


def _shape_of(normalized_shape):
    return (normalized_shape,) if isinstance(normalized_shape, numbers.Integral) else tuple(normalized_shape)


class LayerNorm(Module):
    """(x - mean) / sqrt(var + eps) * weight + bias, mean and var over the last axes, those of ``normalized_shape``.

    Shapes      input [...,*normalized_shape]; weight, bias as normalized_shape
    Init        weight 1, bias 0
    Source      Ba, Kiros, Hinton 2016, arXiv:1607.06450, equations 3 and 4
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True, device=None, dtype=None):
        super().__init__()
        self.normalized_shape, self.eps = _shape_of(normalized_shape), eps
        self.elementwise_affine = elementwise_affine
        for name, wanted in (("weight", elementwise_affine), ("bias", elementwise_affine and bias)):
            self.register_parameter(name, uninitialised(self.normalized_shape, device, dtype) if wanted else None)
        self.reset_parameters()

    def reset_parameters(self):
        """Weight 1, bias 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input):
        return layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """x / sqrt(mean of x^2 + eps) * weight, the mean over the last axes, those of ``normalized_shape``.

    ``eps``: the dtype's own by default.

    Shapes      input [...,*normalized_shape]; weight as normalized_shape
    Init        weight 1
    Source      Zhang, Sennrich 2019, arXiv:1910.07467, equation 4
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(self, normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None):
        super().__init__()
        self.normalized_shape, self.eps = _shape_of(normalized_shape), eps
        self.elementwise_affine = elementwise_affine
        weight = uninitialised(self.normalized_shape, device, dtype) if elementwise_affine else None
        self.register_parameter("weight", weight)
        self.reset_parameters()

    def reset_parameters(self):
        """Weight 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input):
        return rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self):
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """(x - mean) / sqrt(var + eps) * weight + bias, mean and var over each of ``num_groups`` groups of channels.

    Shapes      input [N,C,...]; weight, bias [C]
    Init        weight 1, bias 0
    Raises      ValueError where the channels cannot be divided so
    Source      Wu, He 2018, arXiv:1803.08494, equations 1, 2 and 7
    """

    __constants__ = ["num_groups", "num_channels", "eps", "affine"]

    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, device=None, dtype=None, *, bias=True):
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, uninitialised((num_channels,), device, dtype) if wanted else None)
        self.reset_parameters()

    def reset_parameters(self):
        """Weight 1, bias 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input):
        return checked_group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class LocalResponseNorm(Module):
    """x / (k + alpha * mean of x^2 over ``size`` channels around) ** beta.

    Source      Krizhevsky, Sutskever, Hinton 2012, section 3.3
    """

    __constants__ = ["size", "alpha", "beta", "k"]

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1.0):
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input):
        return local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self):
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(LocalResponseNorm):
    """``LocalResponseNorm`` of [N,C,H,W], over as many channels before as after: one fewer where ``size`` is even.

    Raises      ValueError for another number of axes
    """

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1):
        super().__init__(size, alpha, beta, k)

    def forward(self, input):
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        half = (self.size - 1) // 2
        n, c = input.shape[:2]
        squares = pad((input * input).reshape(n, 1, c, -1), (0, 0, half, half))  # [N,1,C+2*half,H*W]
        sums = avg_pool2d(squares, (2 * half + 1, 1), stride=1, divisor_override=1).reshape(input.shape)
        return input * (sums * (self.alpha / self.size) + self.k) ** -self.beta
