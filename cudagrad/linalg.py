"""The names of ``torch.linalg``: what the files of ``ops`` list under LINALG."""

from .ops import listed

globals().update(listed("LINALG"))
__all__ = list(listed("LINALG"))
