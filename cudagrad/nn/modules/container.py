"""The path ``torch.nn.modules.container``."""

from ..container import *
from ..parameter_container import *
