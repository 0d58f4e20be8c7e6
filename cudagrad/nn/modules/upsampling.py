"""The path ``torch.nn.modules.upsampling``."""

from ..upsampling import *
