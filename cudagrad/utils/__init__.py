"""The names of ``torch.utils``."""

import importlib

_LAZY = ("checkpoint", "data", "tensorboard")

__all__ = list(_LAZY)


def __getattr__(name):
    if name in _LAZY:
        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
