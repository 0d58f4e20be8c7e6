"""The path ``torch.nn.modules.distance``."""

from ..distance import *
