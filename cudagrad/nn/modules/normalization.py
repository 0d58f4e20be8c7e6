"""The path ``torch.nn.modules.normalization``."""

from ..normalization import CrossMapLRN2d, GroupNorm, LayerNorm, LocalResponseNorm, RMSNorm  # noqa: F401
