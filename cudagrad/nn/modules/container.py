"""The path ``torch.nn.modules.container``."""

from ..container import Container, ModuleDict, ModuleList, Sequential
from ..parameter_container import ParameterDict, ParameterList

__all__ = ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]
