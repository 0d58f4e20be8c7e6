"""The names of ``torch.backends``: switches of libraries that are not used here, kept so that programs may set them."""

import sys
import types


class _Switches(types.ModuleType):
    """Attributes that a program may set and read back, in a module: ``import torch.backends.cudnn as cudnn``."""

    def __init__(self, name, available, **values):
        super().__init__(f"{__name__}.{name}")
        self._available = available
        self.__dict__.update(values)
        sys.modules[self.__name__] = self

    def is_available(self):
        """Whether the library is used here."""
        return self._available

    def is_built(self):
        """Whether the library is used here."""
        return self._available


cudnn = _Switches(
    "cudnn", False, enabled=True, deterministic=True, benchmark=False, allow_tf32=True, benchmark_limit=10
)
cudnn.version = lambda: None
cuda = _Switches(
    "cuda", False, matmul=_Switches("cuda.matmul", False, allow_tf32=False, allow_fp16_reduced_precision_reduction=True)
)
mps = _Switches("mps", False)
mkl = _Switches("mkl", False)
mkldnn = _Switches("mkldnn", False, enabled=False)
openmp = _Switches("openmp", False)
