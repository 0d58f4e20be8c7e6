"""Images made larger or smaller."""

from ..ops.resample import interpolate
from .module import Module

__all__ = ("Upsample", "UpsamplingNearest2d", "UpsamplingBilinear2d")


class Upsample(Module):
    """``nn.functional.interpolate`` as a layer.

    Shapes      [N,C,T], [N,C,H,W] or [N,C,D,H,W]
    """

    __constants__ = ["size", "scale_factor", "mode", "align_corners", "name", "recompute_scale_factor"]

    def __init__(self, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None):
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        if isinstance(scale_factor, tuple):
            self.scale_factor = tuple(float(s) for s in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode, self.align_corners = mode, align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input):
        options = (self.mode, self.align_corners, self.recompute_scale_factor)
        return interpolate(input, self.size, self.scale_factor, *options)

    def extra_repr(self):
        if self.scale_factor is not None:
            return f"scale_factor={self.scale_factor!r}, mode={self.mode!r}"
        return f"size={self.size!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """``Upsample`` with mode nearest, of [N,C,H,W]."""

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """``Upsample`` with mode bilinear and align_corners, of [N,C,H,W]."""

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
