"""The path ``torch.nn.modules.sparse``."""

from ..sparse import *
