"""The path ``torch.nn.modules.adaptive``."""

from ..adaptive import AdaptiveLogSoftmaxWithLoss  # noqa: F401
