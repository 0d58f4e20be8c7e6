"""The path ``torch.nn.modules.linear``."""

from ..attention import NonDynamicallyQuantizableLinear  # noqa: F401
from ..lazy import LazyLinear  # noqa: F401
from ..linear import Bilinear, Identity, Linear  # noqa: F401
