"""The path ``torch.nn.modules.lazy``."""

from ..lazy import LazyModuleMixin
