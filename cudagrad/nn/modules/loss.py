"""The path ``torch.nn.modules.loss``."""

from ..loss import *
from ..loss import _Loss, _WeightedLoss
