"""The names of ``torch.signal.windows``: what the files of ``ops`` list under SIGNAL_WINDOWS."""

from ..ops import listed

globals().update(listed("SIGNAL_WINDOWS"))
__all__ = list(listed("SIGNAL_WINDOWS"))
