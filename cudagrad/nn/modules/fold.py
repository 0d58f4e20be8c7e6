"""The path ``torch.nn.modules.fold``."""

from ..fold import *
