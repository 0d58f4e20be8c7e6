"""The path ``torch.nn.modules.linear``."""

from ..attention import NonDynamicallyQuantizableLinear
from ..lazy import LazyLinear
from ..linear import *
