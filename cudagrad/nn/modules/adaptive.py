"""The path ``torch.nn.modules.adaptive``."""

from ..adaptive import *
