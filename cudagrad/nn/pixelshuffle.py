"""Layers that move pixels between space and channels."""

from ..ops.pixels import channel_shuffle, pixel_shuffle, pixel_unshuffle
from .module import Module

__all__ = ("PixelShuffle", "PixelUnshuffle", "ChannelShuffle")


class PixelShuffle(Module):
    """[*,C*r*r,H,W] -> [*,C,H*r,W*r], r = ``upscale_factor``; see ``nn.functional.pixel_shuffle``."""

    __constants__ = ["upscale_factor"]

    def __init__(self, upscale_factor):
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input):
        return pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self):
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """[*,C,H*r,W*r] -> [*,C*r*r,H,W], r = ``downscale_factor``; see ``nn.functional.pixel_unshuffle``."""

    __constants__ = ["downscale_factor"]

    def __init__(self, downscale_factor):
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input):
        return pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self):
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """The channels of [N,C,...] dealt out by ``groups``; see ``nn.functional.channel_shuffle``."""

    __constants__ = ["groups"]

    def __init__(self, groups):
        super().__init__()
        self.groups = groups

    def forward(self, input):
        return channel_shuffle(input, self.groups)

    def extra_repr(self):
        return f"groups={self.groups}"
