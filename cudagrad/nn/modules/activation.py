"""The path ``torch.nn.modules.activation``."""

from ..activation import *
from ..attention import MultiheadAttention, NonDynamicallyQuantizableLinear
