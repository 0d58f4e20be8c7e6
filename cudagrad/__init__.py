"""A GPU-backed dynamic-graph engine with PyTorch's names: ``import cudagrad as torch``."""

from . import dtypes as _dtypes
from .backend.device import device, get_default_device, set_default_device
from .core.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .core.tensor import Size, Tensor, strided
from .dtypes import *  # noqa: F403
from .ops import *  # noqa: F403
