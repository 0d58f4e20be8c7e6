"""The path ``torch.nn.modules.transformer``."""

from ..transformer import *
