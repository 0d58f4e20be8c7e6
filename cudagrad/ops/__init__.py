"""The ops, one file a family; this file hangs them on Tensor and gathers their public names."""

import importlib
import pkgutil

from ..core.inplace import inplace
from ..core.modes import SPACE
from ..core.tensor import Tensor

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


def _names():
    """Every file of this folder; the operators last, since they are made of the others."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return sorted(names, key=lambda name: name == "operators")


def listed(kind):
    """Name -> function of all that the families list under ``kind``: FUNCTIONAL, LINALG, SPECIAL."""
    found = {}
    for module in FAMILIES:
        names = getattr(module, kind, ())
        found |= names if isinstance(names, dict) else {name: getattr(module, name) for name in names}
    return found


FAMILIES = []
for _name in _names():
    FAMILIES.append(importlib.import_module("." + _name, __name__))
    _wire(FAMILIES[-1])
