"""The names of ``torch.cuda.amp``: mixed precision with the device given."""

import functools

from .. import dtypes
from ..amp import autocast as _autocast
from ..amp import custom_bwd, custom_fwd
from ..amp.grad_scaler import CudaGradScaler as GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(_autocast):
    """``cudagrad.amp.autocast`` of CUDA."""

    def __init__(self, enabled=True, dtype=dtypes.float16, cache_enabled=True):
        super().__init__("cuda", dtype, enabled, cache_enabled)

    def __call__(self, function):
        @functools.wraps(function)
        def within(*args, **kwargs):
            with _autocast("cuda", self.fast_dtype, self._enabled, self.cache is not None):
                return function(*args, **kwargs)

        return within
