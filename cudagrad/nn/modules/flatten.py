"""The path ``torch.nn.modules.flatten``."""

from ..flatten import *
