"""The path ``torch.nn.modules.rnn``."""

from ..rnn import GRU, LSTM, RNN, RNNBase  # noqa: F401
from ..rnn_cells import GRUCell, LSTMCell, RNNCell, RNNCellBase  # noqa: F401
