"""The path ``torch.nn.modules.padding``."""

from ..padding import *
