"""The path ``torch.nn.modules.normalization``."""

from ..normalization import *
