"""The path ``torch.nn.modules.dropout``."""

from ..dropout import *
