"""The paths ``torch.nn.modules.*``: they name what the files of ``nn`` define."""

from . import module
from .module import Module
