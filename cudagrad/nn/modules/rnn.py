"""The path ``torch.nn.modules.rnn``."""

from ..rnn import *
from ..rnn_cells import *
