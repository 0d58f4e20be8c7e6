"""One step of a recurrent network: RNNCell, LSTMCell and GRUCell."""

import math

from ..core.tensor import Tensor
from ..ops import recurrent
from . import init
from .linear import uninitialised
from .module import Module
from .rnn import autocasting, zeros

__all__ = ("RNNCellBase", "RNNCell", "LSTMCell", "GRUCell")


class RNNCellBase(Module):
    """What the cells share: weight_ih [G*H,I], weight_hh [G*H,H], bias_ih and bias_hh [G*H] or None."""

    def __init__(self, input_size, hidden_size, bias, num_chunks, device=None, dtype=None):
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        gates = num_chunks * hidden_size
        self.weight_ih = uninitialised((gates, input_size), device, dtype)
        self.weight_hh = uninitialised((gates, hidden_size), device, dtype)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, uninitialised((gates,), device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw all weights and biases anew."""
        k = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -k, k)

    def _check(self, value, what):
        if value.dim() not in (1, 2):
            raise ValueError(f"{self._get_name()}: Expected {what} to be 1D or 2D, got {value.dim()}D instead")

    def _states(self, input, hx):
        """The states as a tuple of [B,H]."""
        self._check(input, "input")
        hidden = (input.shape[0] if input.dim() == 2 else 1, self.hidden_size)
        if hx is None:
            return (zeros(hidden, input),)
        self._check(hx, "hidden")
        return (hx if input.dim() == 2 else hx.unsqueeze(0),)

    def _step(self, function, input, states):
        batched = input.dim() == 2
        x = input if batched else input.unsqueeze(0)
        if autocasting():
            dtype = self.weight_ih.dtype
            x = x.to(dtype)
            states = states.to(dtype) if isinstance(states, Tensor) else tuple(t.to(dtype) for t in states)
        got = function(x, states, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        if batched:
            return got
        return got.squeeze(0) if isinstance(got, Tensor) else tuple(t.squeeze(0) for t in got)

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text


class RNNCell(RNNCellBase):
    """One step: h' = tanh (or relu) of x w_ih^T + b_ih + h w_hh^T + b_hh.

    Shapes      input [B,I] or [I]; hx [B,H], [H] or None
    """

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None):
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        cell = recurrent.rnn_tanh_cell if self.nonlinearity == "tanh" else recurrent.rnn_relu_cell
        return self._step(cell, input, *self._states(input, hx))


class LSTMCell(RNNCellBase):
    """One step of an LSTM: takes ``(input, (h, c))`` and returns ``(h', c')``.

    Shapes      input [B,I] or [I]; h, c [B,H] or [H]
    """

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input, hx=None):
        if hx is None:
            zeros = self._states(input, None)[0]
            return self._step(recurrent.lstm_cell, input, (zeros, zeros))
        self._check(input, "input")
        for i, state in enumerate(hx):
            self._check(state, f"hx[{i}]")
        states = hx if input.dim() == 2 else tuple(t.unsqueeze(0) for t in hx)
        return self._step(recurrent.lstm_cell, input, states)


class GRUCell(RNNCellBase):
    """One step of a GRU.

    Shapes      input [B,I] or [I]; hx [B,H], [H] or None
    """

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input, hx=None):
        return self._step(recurrent.gru_cell, input, *self._states(input, hx))
