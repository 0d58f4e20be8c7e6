"""The path ``torch.nn.modules.channelshuffle``."""

from ..pixelshuffle import ChannelShuffle
