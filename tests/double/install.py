"""The double in the place of CuPy, for a test or for a whole run."""

import contextlib

from cudagrad.backend import _OWNERS, ARRAYS, cuda
from cudagrad.backend.kernels import nvrtc

from .module import Double


@contextlib.contextmanager
def installed(count=1):
    """Within, ``cudagrad.backend.cuda`` finds the double, with ``count`` GPUs, where it looks for CuPy."""
    double = Double(count)
    before = cuda.TEXTS, cuda.cupyx, cuda.cupy, cuda.libcuda, nvrtc.cubin, cuda.WATCH, cuda.GPUS
    cuda.cupy, cuda.libcuda, nvrtc.cubin = (lambda: double), (lambda: double.libcuda), double.libcuda.cubin
    cuda.cupyx = lambda: double.cupyx
    forget()
    cuda._begin(double)
    try:
        yield double
    finally:
        cuda.TEXTS, cuda.cupyx, cuda.cupy, cuda.libcuda, nvrtc.cubin, cuda.WATCH, cuda.GPUS = before
        forget()
        for array_class in [c for c in ARRAYS if issubclass(c, double.ndarray)]:
            ARRAYS.pop(array_class), _OWNERS.pop(array_class)


def forget():
    """What the backend keeps of the CuPy it saw first."""
    for cached in (cuda.is_available, cuda._loaded, cuda._module, cuda._processors, cuda._driver):
        cached.cache_clear()
    cuda._LAUNCHERS.clear()
