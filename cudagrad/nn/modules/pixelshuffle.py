"""The path ``torch.nn.modules.pixelshuffle``."""

from ..pixelshuffle import PixelShuffle, PixelUnshuffle
