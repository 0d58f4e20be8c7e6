"""The path ``torch.nn.modules.batchnorm``."""

from ..batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d, _BatchNorm, _NormBase  # noqa: F401
from ..lazy import LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d  # noqa: F401
from ..syncbatchnorm import SyncBatchNorm  # noqa: F401
