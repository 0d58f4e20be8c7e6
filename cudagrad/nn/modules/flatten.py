"""The path ``torch.nn.modules.flatten``."""

from ..flatten import Flatten, Unflatten  # noqa: F401
