"""Padding layers, which pad the last one, two or three axes."""

from ..ops.padding import pad
from .conv import ntuple
from .module import Module

__all__ = (
    *("ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d"),
    *("ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d"),
    *("ReplicationPad3d", "CircularPad1d", "CircularPad2d", "CircularPad3d"),
)


class _Pad(Module):
    """Pads the last ``_axes`` axes by ``_mode``; ``padding``: widths as for ``nn.functional.pad``, or one for all."""

    __constants__ = ["padding"]

    def __init__(self, padding):
        super().__init__()
        self.padding = ntuple(padding, 2 * self._axes)

    def forward(self, input):
        return pad(input, self.padding, self._mode)

    def extra_repr(self):
        return f"{self.padding}"


class _ConstantPad(_Pad):
    __constants__ = ["padding", "value"]
    _mode = "constant"

    def __init__(self, padding, value):
        super().__init__(padding)
        self.value = value

    def forward(self, input):
        return pad(input, self.padding, "constant", self.value)

    def extra_repr(self):
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPad):
    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"


class ConstantPad1d(_ConstantPad):
    """Pads with ``value``: [N,C,T] or [C,T]."""

    _axes = 1


class ConstantPad2d(_ConstantPad):
    """Pads with ``value``: [N,C,H,W] or [C,H,W]."""

    _axes = 2


class ConstantPad3d(_ConstantPad):
    """Pads with ``value``: [N,C,D,H,W] or [C,D,H,W]."""

    _axes = 3


class ZeroPad1d(_ZeroPad):
    """Pads with zeros: [N,C,T] or [C,T]."""

    _axes = 1


class ZeroPad2d(_ZeroPad):
    """Pads with zeros: [N,C,H,W] or [C,H,W]."""

    _axes = 2


class ZeroPad3d(_ZeroPad):
    """Pads with zeros: [N,C,D,H,W] or [C,D,H,W]."""

    _axes = 3


class ReflectionPad1d(_Pad):
    """Pads with the mirror image, without the edge itself: [N,C,T] or [C,T]."""

    _axes, _mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    """Pads with the mirror image, without the edge itself: [N,C,H,W] or [C,H,W]."""

    _axes, _mode = 2, "reflect"


class ReflectionPad3d(_Pad):
    """Pads with the mirror image, without the edge itself: [N,C,D,H,W] or [C,D,H,W]."""

    _axes, _mode = 3, "reflect"


class ReplicationPad1d(_Pad):
    """Pads with the element at the edge: [N,C,T] or [C,T]."""

    _axes, _mode = 1, "replicate"


class ReplicationPad2d(_Pad):
    """Pads with the element at the edge: [N,C,H,W] or [C,H,W]."""

    _axes, _mode = 2, "replicate"


class ReplicationPad3d(_Pad):
    """Pads with the element at the edge: [N,C,D,H,W] or [C,D,H,W]."""

    _axes, _mode = 3, "replicate"


class _CircularPad(_Pad):
    _mode = "circular"

    def forward(self, input):
        few = self._axes + 1
        if input.ndim not in (few, few + 1):
            raise ValueError(f"expected {few}D or {few + 1}D input (got {input.ndim}D input)")
        return super().forward(input)


class CircularPad1d(_CircularPad):
    """Pads with the elements of the other end: [N,C,T] or [C,T]."""

    _axes = 1


class CircularPad2d(_CircularPad):
    """Pads with the elements of the other end: [N,C,H,W] or [C,H,W]."""

    _axes = 2


class CircularPad3d(_CircularPad):
    """Pads with the elements of the other end: [N,C,D,H,W] or [C,D,H,W]."""

    _axes = 3
