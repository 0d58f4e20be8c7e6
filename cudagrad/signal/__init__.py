"""Names of ``torch.signal``."""

from . import windows
