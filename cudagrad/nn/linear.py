"""Affine and bilinear layers."""

import math

from ..backend import empty
from ..core.tensor import wrap
from ..dtypes import get_default_dtype
from ..ops.affine import bilinear, linear
from ..ops.factory import checked_size
from . import init
from .module import Module
from .parameter import Parameter

__all__ = ("Identity", "Linear", "Bilinear")


def uninitialised(shape, device=None, dtype=None):
    """A parameter of this shape whose values are still to come."""
    return Parameter(wrap(empty(checked_size(shape), dtype or get_default_dtype(), device)))


class Identity(Module):
    """Hands its input on; takes any arguments."""

    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, input):
        return input


class Linear(Module):
    """x @ weight^T + bias over the last axis.

    Shapes      input [..., in_features] -> [..., out_features]; weight [out, in], bias [out]
    Init        uniform(-k, k), k = 1 / sqrt(in_features)
    """

    __constants__ = ["in_features", "out_features"]

    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = uninitialised((out_features, in_features), device, dtype)
        if bias:
            self.bias = uninitialised((out_features,), device, dtype)
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw weight and bias anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input):
        return linear(input, self.weight, self.bias)

    def extra_repr(self):
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    """input1^T weight[k] input2 + bias[k].

    Shapes      input1 [..., in1_features], input2 [..., in2_features] -> [..., out_features]; weight [out, in1, in2]
    Init        uniform(-k, k), k = 1 / sqrt(in1_features)
    Raises      ValueError for in1_features <= 0
    """

    __constants__ = ["in1_features", "in2_features", "out_features"]

    def __init__(self, in1_features, in2_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got (in1_features={in1_features})")
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = uninitialised((out_features, in1_features, in2_features), device, dtype)
        if bias:
            self.bias = uninitialised((out_features,), device, dtype)
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw weight and bias anew."""
        bound = 1 / math.sqrt(self.weight.shape[1])
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1, input2):
        return bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self):
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )
