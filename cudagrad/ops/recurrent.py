"""Recurrent networks of several layers and directions, and single cells, as functions of their weights."""

from ..backend import empty
from ..core.tensor import Tensor, wrap
from .dropout import dropout
from .joining import cat, stack
from .recurrent_gru import gru_layer
from .recurrent_lstm import lstm_layer
from .recurrent_simple import rnn_layer

__all__ = ("lstm", "gru", "rnn_tanh", "rnn_relu", "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell")


def lstm(input, *args, **kwargs):
    """``(output, h_n, c_n)`` of an LSTM, padded or packed.

    ``lstm(input, (h, c), params, has_biases, num_layers, dropout, train, bidirectional, batch_first)``, or packed
    ``lstm(data, batch_sizes, (h, c), params, has_biases, num_layers, dropout, train, bidirectional)``. ``params``: for
    each layer and direction w_ih, w_hh, then b_ih, b_hh where there are biases, then w_hr where it projects.

    Shapes      input [T,B,I] or [B,T,I] or packed [N,I]; h [L*D,B,P], c [L*D,B,H]; output as input with D*P
    """
    packed = bool(args) and isinstance(args[0], Tensor)
    return _run_packed(_lstm, input, *args, **kwargs) if packed else _run_padded(_lstm, input, *args, **kwargs)


def _of_one_state(layer, name, text):
    def function(input, *args, **kwargs):
        packed = len(args) > 1 and isinstance(args[1], Tensor)
        return _run_packed(layer, input, *args, **kwargs) if packed else _run_padded(layer, input, *args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"``(output, h_n)`` of a {text}, padded or packed.\n\n    Arguments as of :func:`lstm`, with one state ``h`` "
        "in the place of ``(h, c)``.\n    "
    )
    return function


def _lstm(x, state, weights, has_biases, sizes, reverse):
    w_ih, w_hh, *rest = weights
    biases, projection = (rest[:2], rest[2:]) if has_biases else ((None, None), rest)
    return lstm_layer(x, *state, w_ih, w_hh, *biases, *projection, sizes=sizes, reverse=reverse)


def _gru(x, state, weights, has_biases, sizes, reverse):
    return gru_layer(x, *state, *weights, sizes=sizes, reverse=reverse)


def _rnn_tanh(x, state, weights, has_biases, sizes, reverse):
    return rnn_layer(x, *state, *weights, sizes=sizes, reverse=reverse)


def _rnn_relu(x, state, weights, has_biases, sizes, reverse):
    return rnn_layer(x, *state, *weights, sizes=sizes, reverse=reverse, relu=True)


gru = _of_one_state(_gru, "gru", "GRU")
rnn_tanh = _of_one_state(_rnn_tanh, "rnn_tanh", "recurrent network with tanh")
rnn_relu = _of_one_state(_rnn_relu, "rnn_relu", "recurrent network with relu")


def _run_padded(layer, input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first=False):
    if input.ndim != 3:
        raise RuntimeError(f"input must have 3 dimensions, got {input.ndim}")
    x = input.transpose(0, 1) if batch_first else input  # [T,B,I]
    steps, batch, _ = x.shape
    if steps == 0:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    rows = x.reshape(steps * batch, x.shape[2])
    out, *last = _layers(
        layer, rows, (batch,) * steps, hx, params, has_biases, num_layers, dropout, train, bidirectional
    )
    out = out.reshape(steps, batch, out.shape[1])
    return out.transpose(0, 1) if batch_first else out, *last


def _run_packed(layer, data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional):
    sizes = tuple(batch_sizes.tolist())
    return _layers(layer, data, sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)


def _layers(layer, x, sizes, hx, params, has_biases, num_layers, p, train, bidirectional):
    """The rows of the last layer, and the last states of all layers and directions stacked."""
    states = list(zip(*((t.unbind(0) for t in hx) if isinstance(hx, (tuple, list)) else [hx.unbind(0)])))
    directions = 2 if bidirectional else 1
    each = len(params) // (num_layers * directions)
    last = []
    for i in range(num_layers):
        outs = []
        for d in range(directions):
            k = i * directions + d
            out, *state = layer(x, states[k], params[k * each : (k + 1) * each], has_biases, sizes, d == 1)
            outs.append(out)
            last.append(state)
        x = outs[0] if directions == 1 else cat(outs, 1)
        if p and train and i < num_layers - 1:
            x = dropout(x, p, True)
    return x, *(t[0].unsqueeze(0) if len(t) == 1 else stack(t) for t in zip(*last))


# ---- cells


def _check_cell(input, state, w_hh, gates, number, w_ih):
    if input.shape[1] != w_ih.shape[1]:
        raise RuntimeError(f"input has inconsistent input_size: got {input.shape[1]} expected {w_ih.shape[1]}")
    hidden = w_hh.shape[0] // gates
    if state.shape[1] != hidden:
        raise RuntimeError(f"hidden{number} has inconsistent hidden_size: got {state.shape[1]}, expected {hidden}")
    if input.shape[0] != state.shape[0]:
        raise RuntimeError(
            f"Input batch size {input.shape[0]} doesn't match hidden{number} batch size {state.shape[0]}"
        )
    if input.dtype is not w_ih.dtype:
        raise RuntimeError(
            f"mat1 and mat2 must have the same dtype, but got {input.dtype.legacy} and {w_ih.dtype.legacy}"
        )


def _biases(b_ih, b_hh, w_ih):
    """Both biases or neither: a missing one is zero where the other is there."""
    if (b_ih is None) == (b_hh is None):
        return b_ih, b_hh
    zero = wrap(empty((w_ih.shape[0],), w_ih.dtype, w_ih.device)).zero_()
    return (zero, b_hh) if b_ih is None else (b_ih, zero)


def lstm_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """``(h', c')`` of one step of an LSTM.

    Shapes      input [B,I]; hx = (h [B,H], c [B,H]); w_ih [4H,I]; w_hh [4H,H]; b_ih, b_hh [4H]
    """
    h, c = hx
    _check_cell(input, h, w_hh, 4, 0, w_ih)
    _check_cell(input, c, w_hh, 4, 1, w_ih)
    _, h, c = lstm_layer(input, h, c, w_ih, w_hh, *_biases(b_ih, b_hh, w_ih), sizes=(input.shape[0],))
    return h, c


def gru_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """h' of one step of a GRU.

    Shapes      input [B,I]; hx [B,H]; w_ih [3H,I]; w_hh [3H,H]; b_ih, b_hh [3H]
    """
    _check_cell(input, hx, w_hh, 3, 0, w_ih)
    return gru_layer(input, hx, w_ih, w_hh, *_biases(b_ih, b_hh, w_ih), sizes=(input.shape[0],))[1]


def rnn_tanh_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """tanh(input w_ih^T + b_ih + hx w_hh^T + b_hh)."""
    _check_cell(input, hx, w_hh, 1, 0, w_ih)
    return rnn_layer(input, hx, w_ih, w_hh, *_biases(b_ih, b_hh, w_ih), sizes=(input.shape[0],))[1]


def rnn_relu_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """max(input w_ih^T + b_ih + hx w_hh^T + b_hh, 0)."""
    _check_cell(input, hx, w_hh, 1, 0, w_ih)
    return rnn_layer(input, hx, w_ih, w_hh, *_biases(b_ih, b_hh, w_ih), sizes=(input.shape[0],), relu=True)[1]
