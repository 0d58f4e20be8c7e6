"""Convolution layers."""

import math

from ..ops.convolution import conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d
from ..ops.padding import pad
from . import init
from .linear import uninitialised
from .module import Module

__all__ = ("Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d")

PADDING_MODES = {"zeros", "reflect", "replicate", "circular"}


def ntuple(value, n):
    """``value`` as a tuple: an iterable as it is, a number ``n`` times."""
    return tuple(value) if hasattr(value, "__iter__") else (value,) * n


def _check(in_channels, out_channels, stride, padding, groups, padding_mode):
    if groups <= 0:
        raise ValueError("groups must be a positive integer")
    if in_channels % groups:
        raise ValueError("in_channels must be divisible by groups")
    if out_channels % groups:
        raise ValueError("out_channels must be divisible by groups")
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'valid', 'same'}}")
        if padding == "same" and any(s != 1 for s in stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
    if padding_mode not in PADDING_MODES:
        modes = "{'replicate', 'reflect', 'zeros', 'circular'}"
        raise ValueError(f"padding_mode must be one of {modes}, but got padding_mode='{padding_mode}'")


class _ConvNd(Module):
    """What all convolution layers share: options, parameters and their initial values."""

    __constants__ = [
        *("stride", "padding", "dilation", "groups", "padding_mode", "output_padding", "in_channels", "out_channels"),
        "kernel_size",
    ]

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        dilation,
        transposed,
        output_padding,
        groups,
        bias,
        padding_mode,
        device=None,
        dtype=None,
    ):
        super().__init__()
        _check(in_channels, out_channels, stride, padding, groups, padding_mode)
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride, self.padding, self.dilation = kernel_size, stride, padding, dilation
        self.transposed, self.output_padding, self.padding_mode = transposed, output_padding, padding_mode
        self._reversed_padding_repeated_twice = self._widths()
        first, second = (in_channels, out_channels) if transposed else (out_channels, in_channels)
        self.weight = uninitialised((first, second // groups, *kernel_size), device, dtype)
        if bias:
            self.bias = uninitialised((out_channels,), device, dtype)
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _widths(self):
        """Padding as ``nn.functional.pad`` takes it."""
        if self.padding == "valid":
            return [0] * (2 * len(self.kernel_size))
        if self.padding == "same":
            totals = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size)]
            return [w for t in reversed(totals) for w in (t // 2, t - t // 2)]
        return tuple(p for p in reversed(self.padding) for _ in range(2))

    def reset_parameters(self):
        """Draw weight and bias anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in = self.weight.shape[1] * math.prod(self.weight.shape[2:])
            if fan_in:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self):
        axes = len(self.kernel_size)
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        if self.padding != (0,) * axes:
            parts.append(f"padding={self.padding}")
        if self.dilation != (1,) * axes:
            parts.append(f"dilation={self.dilation}")
        if self.output_padding != (0,) * axes:
            parts.append(f"output_padding={self.output_padding}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)

    def __setstate__(self, state):
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")


class _Conv(_ConvNd):
    """A convolution over ``_axes`` axes by the function ``_function``."""

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        n = self._axes
        kernel_size, stride, dilation = (ntuple(v, n) for v in (kernel_size, stride, dilation))
        padding = padding if isinstance(padding, str) else ntuple(padding, n)
        options = (kernel_size, stride, padding, dilation, False, (0,) * n, groups, bias, padding_mode)
        super().__init__(in_channels, out_channels, *options, device=device, dtype=dtype)

    def _conv_forward(self, input, weight, bias):
        padding = self.padding
        if self.padding_mode != "zeros":
            input = pad(input, self._reversed_padding_repeated_twice, self.padding_mode)
            padding = 0
        return self._function(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input):
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Conv):
    """Correlation with a learned kernel, plus a bias a channel.

    ``padding``: numbers, "valid" or "same"; ``padding_mode``: zeros, reflect, replicate or circular.

    Shapes      input [N,C,T] or [C,T] -> [N,O,T']; weight [O,C/groups,K], bias [O];
                T' = floor((T + 2*padding - dilation*(K-1) - 1) / stride) + 1
    Init        uniform(-k, k), k = 1 / sqrt(C/groups * K)
    Raises      ValueError for options that do not go together
    """

    _axes, _function = 1, staticmethod(conv1d)


class Conv2d(_Conv):
    """As ``Conv1d`` over two axes.

    Shapes      input [N,C,H,W] or [C,H,W]; weight [O,C/groups,K,L], bias [O]
    Init        uniform(-k, k), k = 1 / sqrt(C/groups * K * L)
    """

    _axes, _function = 2, staticmethod(conv2d)


class Conv3d(_Conv):
    """As ``Conv1d`` over three axes.

    Shapes      input [N,C,D,H,W] or [C,D,H,W]; weight [O,C/groups,J,K,L], bias [O]
    Init        uniform(-k, k), k = 1 / sqrt(C/groups * J * K * L)
    """

    _axes, _function = 3, staticmethod(conv3d)


class _ConvTransposeNd(_ConvNd):
    """A transposed convolution over ``_axes`` axes by the function ``_function``."""

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups=1,
        bias=True,
        dilation=1,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        values = (ntuple(v, self._axes) for v in (kernel_size, stride, padding, dilation, output_padding))
        kernel_size, stride, padding, dilation, output_padding = values
        options = (kernel_size, stride, padding, dilation, True, output_padding, groups, bias, padding_mode)
        super().__init__(in_channels, out_channels, *options, device=device, dtype=dtype)

    def _output_padding(self, input, output_size):
        """The output padding that gives ``output_size``; ValueError where none does."""
        if output_size is None:
            return self.output_padding
        n = self._axes
        batched = input.ndim == n + 2
        given = tuple(output_size)
        if len(given) == input.ndim:
            given = given[input.ndim - n :]
        if len(given) != n:
            raise ValueError(
                f"ConvTranspose{n}D: for {input.ndim}D input, output_size must have {n} or {n + 1 + batched} elements "
                f"(got {len(output_size)})"
            )
        sizes = input.shape[input.ndim - n :]
        shortest = [
            (length - 1) * s - 2 * p + d * (k - 1) + 1
            for length, s, p, d, k in zip(sizes, self.stride, self.padding, self.dilation, self.kernel_size)
        ]
        longest = [low + s - 1 for low, s in zip(shortest, self.stride)]
        if any(not low <= wanted <= high for low, wanted, high in zip(shortest, given, longest)):
            raise ValueError(
                f"requested an output size of {given}, but valid sizes range from {shortest} to {longest} (for an "
                f"input of {sizes})"
            )
        return tuple(wanted - low for wanted, low in zip(given, shortest))

    def forward(self, input, output_size=None):
        extra = self._output_padding(input, output_size)
        options = (self.stride, self.padding, extra, self.groups, self.dilation)
        return self._function(input, self.weight, self.bias, *options)


class ConvTranspose1d(_ConvTransposeNd):
    """The adjoint of ``Conv1d`` with the same options, plus a bias a channel.

    Called with ``output_size`` it chooses the output padding that gives that length.

    Shapes      input [N,C,T] or [C,T] -> [N,O,T']; weight [C,O/groups,K], bias [O];
                T' = (T-1)*stride - 2*padding + dilation*(K-1) + output_padding + 1
    Init        uniform(-k, k), k = 1 / sqrt(O/groups * K)
    Raises      ValueError for options that do not go together
    """

    _axes, _function = 1, staticmethod(conv_transpose1d)


class ConvTranspose2d(_ConvTransposeNd):
    """As ``ConvTranspose1d`` over two axes.

    Shapes      input [N,C,H,W] or [C,H,W]; weight [C,O/groups,K,L], bias [O]
    Init        uniform(-k, k), k = 1 / sqrt(O/groups * K * L)
    """

    _axes, _function = 2, staticmethod(conv_transpose2d)


class ConvTranspose3d(_ConvTransposeNd):
    """As ``ConvTranspose1d`` over three axes.

    Shapes      input [N,C,D,H,W] or [C,D,H,W]; weight [C,O/groups,J,K,L], bias [O]
    Init        uniform(-k, k), k = 1 / sqrt(O/groups * J * K * L)
    """

    _axes, _function = 3, staticmethod(conv_transpose3d)
