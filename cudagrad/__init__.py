"""A GPU-backed dynamic-graph engine with PyTorch's names: ``import cudagrad as torch``."""

import importlib as _importlib
import warnings as _warnings
from math import e, inf, nan, pi

from . import dtypes as _dtypes
from .backend.device import device, get_default_device, set_default_device
from .config import *  # noqa: F403
from .core.generator import (
    Generator,
    default_generator,
    fork_rng,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from .core.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .core.shape import Size, strided
from .core.tensor import Tensor
from .dtypes import *  # noqa: F403
from .ops import *  # noqa: F403

# The PyTorch release whose names and semantics these are, since programs compare it; then our own.
__version__ = "2.13.0+cudagrad.0.1.0"

newaxis = None

# Parts that are imported when they are first asked for, so that `import cudagrad` stays fast.
_PARTS = {
    "amp",
    "autograd",
    "backends",
    "cuda",
    "fft",
    "func",
    "linalg",
    "nn",
    "optim",
    "random",
    "serialization",
    "signal",
    "special",
    "utils",
}
_NAMES = {"save": "serialization", "load": "serialization", "autocast": "amp", "GradScaler": "amp"}
_NAMES |= {"kernel": "autograd.kernel", "compile": "core.compiling", "is_autocast_enabled": "amp"}
_NAMES |= {"OutOfMemoryError": "errors"}


def __getattr__(name):
    if name in _PARTS:
        return _importlib.import_module("." + name, __name__)
    if name in _NAMES:
        found = getattr(_importlib.import_module("." + _NAMES[name], __name__), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_PARTS, *_NAMES})


# NumPy tells of log(0) or inf - inf by warnings; tensors tell by their values, as in PyTorch.
_warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"cudagrad\.")
