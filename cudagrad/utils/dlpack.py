"""PyTorch's module of DLPack: names of ``ops.sharing``."""

from ..ops.sharing import from_dlpack, to_dlpack

__all__ = ("from_dlpack", "to_dlpack")
