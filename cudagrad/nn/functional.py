"""The functions of neural networks by PyTorch's names; each is defined in the file of ``ops`` that its family has."""

import sys

from .. import ops

_INPLACE = ("celu_", "elu_", "hardtanh_", "leaky_relu_", "relu_", "rrelu_", "selu_", "threshold_")

__all__ = []


def _gather():
    """Take what the families list as FUNCTIONAL, and the in-place forms of the activations."""
    prefix = ops.__name__ + "."
    for file, module in sorted(sys.modules.items()):
        if file.startswith(prefix):
            for name in getattr(module, "FUNCTIONAL", ()):
                globals()[name] = getattr(module, name)
                __all__.append(name)
    for name in _INPLACE:
        if name not in globals() and hasattr(ops, name):
            globals()[name] = getattr(ops, name)
            __all__.append(name)


_gather()
