"""The ops, one file a family; this file hangs them on Tensor and gathers their public names."""

import importlib

from ..core.inplace import inplace
from ..core.modes import SPACE
from ..core.tensor import Tensor

FAMILIES = (
    *("casting", "arithmetic", "pointwise", "comparison", "reduction", "shape", "indexing", "scatter", "sorting"),
    *("powers", "rounding", "error_function", "special", "complexes", "extremum", "scan", "statistics"),
    *("matmul", "linalg", "activation", "softmax", "loss", "convolution", "pooling", "resample", "padding"),
    *(
        "normalization",
        "embedding",
        "attention",
        "dropout",
        "recurrent",
        "creation",
        "random",
        "interop",
        "printing",
        "legacy",
        "operators",
    ),
)

__all__ = []


def _wire(module):
    """Make a family's functions public, methods of Tensor, and in-place methods, as its lists say."""
    own = module.__dict__
    for name in getattr(module, "__all__", ()):
        globals()[name] = own[name]
        __all__.append(name)
    methods = getattr(module, "METHODS", ())
    for name in methods:
        setattr(Tensor, name, methods[name] if isinstance(methods, dict) else own[name])
    for name in getattr(module, "INPLACE", ()):
        form = inplace(own[name], name + "_")
        setattr(Tensor, name + "_", form)
        if name in getattr(module, "INPLACE_PUBLIC", ()):
            globals()[name + "_"] = form
            __all__.append(name + "_")


def _families():
    for family in FAMILIES:
        try:
            yield importlib.import_module("." + family, __name__)
        except ImportError as e:
            if family != "operators" and e.name != __name__ + "." + family:
                raise


for _module in _families():
    _wire(_module)
