"""Pooling layers."""

from ..ops import adaptive_pooling, average_pooling, fractional_pooling, max_pooling
from .conv import ntuple
from .module import Module

__all__ = (
    *("MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d", "AvgPool1d"),
    *("AvgPool2d", "AvgPool3d", "LPPool1d", "LPPool2d", "LPPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d"),
    *("AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d"),
    "AdaptiveMaxPool3d",
)


class _MaxPool(Module):
    """The largest element of each window; ``stride`` is ``kernel_size`` by default."""

    __constants__ = ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"]

    def __init__(self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False):
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.dilation = padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, input):
        options = (self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices)
        return self._function(input, *options)

    def extra_repr(self):
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """The largest of each window; see ``nn.functional.max_pool1d``.

    Shapes      [N,C,T] or [C,T]
    """

    _function = staticmethod(max_pooling.max_pool1d)


class MaxPool2d(_MaxPool):
    """The largest of each window; see ``nn.functional.max_pool2d``.

    Shapes      [N,C,H,W] or [C,H,W]
    """

    _function = staticmethod(max_pooling.max_pool2d)


class MaxPool3d(_MaxPool):
    """The largest of each window; see ``nn.functional.max_pool3d``.

    Shapes      [N,C,D,H,W] or [C,D,H,W]
    """

    _function = staticmethod(max_pooling.max_pool3d)


class _MaxUnpool(Module):
    """Zeros with the input at the indices that a max pooling returned."""

    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        n = self._axes
        self.kernel_size, self.padding = ntuple(kernel_size, n), ntuple(padding, n)
        self.stride = ntuple(kernel_size if stride is None else stride, n)

    def forward(self, input, indices, output_size=None):
        return self._function(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """The inverse of ``MaxPool1d``; see ``nn.functional.max_unpool1d``."""

    _axes, _function = 1, staticmethod(max_pooling.max_unpool1d)


class MaxUnpool2d(_MaxUnpool):
    """The inverse of ``MaxPool2d``; see ``nn.functional.max_unpool2d``."""

    _axes, _function = 2, staticmethod(max_pooling.max_unpool2d)


class MaxUnpool3d(_MaxUnpool):
    """The inverse of ``MaxPool3d``; see ``nn.functional.max_unpool3d``."""

    _axes, _function = 3, staticmethod(max_pooling.max_unpool3d)


class AvgPool1d(Module):
    """The mean of each window; see ``nn.functional.avg_pool1d``.

    Shapes      [N,C,T] or [C,T]
    """

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
        super().__init__()
        self.kernel_size, self.padding = ntuple(kernel_size, 1), ntuple(padding, 1)
        self.stride = ntuple(kernel_size if stride is None else stride, 1)
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, input):
        options = (self.stride, self.padding, self.ceil_mode, self.count_include_pad)
        return average_pooling.avg_pool1d(input, self.kernel_size, *options)

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AvgPool(Module):
    """The mean of each window over two or three axes."""

    def __init__(
        self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
    ):
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, kernel_size if stride is None else stride, padding
        self.ceil_mode, self.count_include_pad, self.divisor_override = ceil_mode, count_include_pad, divisor_override

    def forward(self, input):
        options = (self.stride, self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override)
        return self._function(input, self.kernel_size, *options)

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(_AvgPool):
    """The mean of each window; see ``nn.functional.avg_pool2d``.

    Shapes      [N,C,H,W] or [C,H,W]
    """

    _function = staticmethod(average_pooling.avg_pool2d)


class AvgPool3d(_AvgPool):
    """The mean of each window; see ``nn.functional.avg_pool3d``.

    Shapes      [N,C,D,H,W] or [C,D,H,W]
    """

    _function = staticmethod(average_pooling.avg_pool3d)


class _LPPool(Module):
    """(sum of x^p over each window)^(1/p)."""

    def __init__(self, norm_type, kernel_size, stride=None, ceil_mode=False):
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def forward(self, input):
        return self._function(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self):
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPool):
    """Power means of windows; see ``nn.functional.lp_pool1d``."""

    _function = staticmethod(average_pooling.lp_pool1d)


class LPPool2d(_LPPool):
    """Power means of windows; see ``nn.functional.lp_pool2d``."""

    _function = staticmethod(average_pooling.lp_pool2d)


class LPPool3d(_LPPool):
    """Power means of windows; see ``nn.functional.lp_pool3d``."""

    _function = staticmethod(average_pooling.lp_pool3d)


class _FractionalMaxPool(Module):
    """The largest of windows at random distances."""

    def __init__(self, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        super().__init__()
        n, name = self._axes, type(self).__name__
        self.kernel_size, self.return_indices = ntuple(kernel_size, n), return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else ntuple(output_size, n)
        self.output_ratio = None if output_ratio is None else ntuple(output_ratio, n)
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input):
        options = (self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples)
        return self._function(input, *options)


class FractionalMaxPool2d(_FractionalMaxPool):
    """See ``nn.functional.fractional_max_pool2d``.

    Shapes      [N,C,H,W] or [C,H,W]
    """

    _axes, _function = 2, staticmethod(fractional_pooling.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPool):
    """See ``nn.functional.fractional_max_pool3d``.

    Shapes      [N,C,D,H,W] or [C,D,H,W]
    """

    _axes, _function = 3, staticmethod(fractional_pooling.fractional_max_pool3d)


class _Adaptive(Module):
    """Pooling to a given count of parts."""

    __constants__ = ["output_size"]

    def __init__(self, output_size):
        super().__init__()
        self.output_size = output_size

    def forward(self, input):
        return self._function(input, self.output_size)

    def extra_repr(self):
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_Adaptive):
    """The mean of each of ``output_size`` parts; see ``nn.functional.adaptive_avg_pool1d``."""

    _function = staticmethod(adaptive_pooling.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_Adaptive):
    """The mean of each of ``output_size`` parts; see ``nn.functional.adaptive_avg_pool2d``."""

    _function = staticmethod(adaptive_pooling.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_Adaptive):
    """The mean of each of ``output_size`` parts; see ``nn.functional.adaptive_avg_pool3d``."""

    _function = staticmethod(adaptive_pooling.adaptive_avg_pool3d)


class _AdaptiveMax(_Adaptive):
    def __init__(self, output_size, return_indices=False):
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input):
        return self._function(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMax):
    """The largest of each of ``output_size`` parts; see ``nn.functional.adaptive_max_pool1d``."""

    _function = staticmethod(adaptive_pooling.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMax):
    """The largest of each of ``output_size`` parts; see ``nn.functional.adaptive_max_pool2d``."""

    _function = staticmethod(adaptive_pooling.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMax):
    """The largest of each of ``output_size`` parts; see ``nn.functional.adaptive_max_pool3d``."""

    _function = staticmethod(adaptive_pooling.adaptive_max_pool3d)
