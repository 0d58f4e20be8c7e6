"""The path ``torch.nn.modules.pooling``."""

from ..pooling import *
