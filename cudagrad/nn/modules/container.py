"""The path ``torch.nn.modules.container``."""

from ..container import Container, ModuleDict, ModuleList, Sequential  # noqa: F401
from ..parameter_container import ParameterDict, ParameterList  # noqa: F401
