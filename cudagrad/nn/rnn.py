"""Recurrent networks: RNN, LSTM and GRU of several layers and directions."""

import math
import numbers
import warnings

from ..backend import empty
from ..core.modes import MODE
from ..core.tensor import wrap
from ..ops import recurrent
from . import init
from .linear import uninitialised
from .module import Module
from .utils.rnn import PackedSequence

__all__ = ("RNNBase", "RNN", "LSTM", "GRU")

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class RNNBase(Module):
    """What RNN, LSTM and GRU share: weights, checks and the way of the states through packing.

    Shapes      input [T,B,I], [B,T,I] if ``batch_first``, [T,I], or a PackedSequence; states [L*D,B,H] or [L*D,H];
                weight_ih_l{k} [G*H, I or D*P], weight_hh_l{k} [G*H,P], biases [G*H], weight_hr_l{k} [P,H]
    Init        uniform(-k, k), k = 1 / sqrt(hidden_size)
    """

    def __init__(
        self,
        mode,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        proj_size=0,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.mode, self.input_size, self.hidden_size = mode, input_size, hidden_size
        self.num_layers, self.bias, self.batch_first = num_layers, bias, batch_first
        _check_dropout(dropout, num_layers)
        self.dropout, self.bidirectional, self.proj_size = float(dropout), bidirectional, proj_size
        self._check_settings()
        self._all_weights = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[: 2 if bidirectional else 1]:
                self._add_weights(layer, suffix, device, dtype)
        self.reset_parameters()

    def _check_settings(self):
        for name, kind in (("bias", bool), ("batch_first", bool), ("input_size", int), ("hidden_size", int)):
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")
        for name in ("input_size", "hidden_size", "num_layers"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if self.proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if self.mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + self.mode)

    def _add_weights(self, layer, suffix, device, dtype):
        state, gates = self.proj_size or self.hidden_size, _GATES[self.mode] * self.hidden_size
        width = self.input_size if layer == 0 else state * (2 if self.bidirectional else 1)
        shapes = {"weight_ih": (gates, width), "weight_hh": (gates, state)}
        if self.bias:
            shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        names = [f"{name}_l{layer}{suffix}" for name in shapes]
        for name, shape in zip(names, shapes.values()):
            setattr(self, name, uninitialised(shape, device, dtype))
        self._all_weights.append(names)

    def reset_parameters(self):
        """Draw all weights and biases anew."""
        k = 1 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -k, k)

    def flatten_parameters(self):
        """Nothing: weights need not lie in one piece here."""

    @property
    def all_weights(self):
        """The weights of each layer and direction, a list of lists."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights(self):
        return [getattr(self, name) for names in self._all_weights for name in names]

    # ---- checks

    def check_input(self, input, batch_sizes):
        weight = getattr(self, self._all_weights[0][0])
        if input.dtype is not weight.dtype and not autocasting():
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). Convert input: "
                f"input.to({weight.dtype}), or convert model: model.to({input.dtype})"
            )
        expected = 3 if batch_sizes is None else 2
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )

    def get_expected_hidden_size(self, input, batch_sizes):
        """The shape of the state [L*D,B,P] that belongs to an input."""
        return self._state_shape(input, batch_sizes, self.proj_size or self.hidden_size)

    def _state_shape(self, input, batch_sizes, width):
        batch = input.size(0 if self.batch_first else 1) if batch_sizes is None else int(batch_sizes[0])
        return self.num_layers * (2 if self.bidirectional else 1), batch, width

    def check_hidden_size(self, hx, expected_hidden_size, msg="Expected hidden size {}, got {}"):
        if tuple(hx.shape) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(tuple(expected_hidden_size), list(hx.shape)))

    def check_forward_args(self, input, hidden, batch_sizes):
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx, permutation):
        """The states with their batch in another order."""
        return hx if permutation is None else hx.index_select(1, permutation)

    # ---- forward, in terms of what LSTM does differently

    def _initial(self, input, batch_sizes):
        return zeros(self.get_expected_hidden_size(input, batch_sizes), input)

    def _check_dims(self, hx, batched):
        if hx.dim() != (3 if batched else 2):
            kind, need = ("batched 3-D", "3-D") if batched else ("unbatched 2-D", "2-D")
            raise RuntimeError(f"For {kind} input, hx should also be {need} but got {hx.dim()}-D tensor")

    def _each(self, hx, change):
        return change(hx)

    def _result(self, last):
        return last[0]

    def _run(self, input, hx, batch_sizes):
        if autocasting():  # what comes from other layers may be in a half dtype
            dtype = self._flat_weights[0].dtype
            input, hx = input.to(dtype), self._each(hx, lambda t: t.to(dtype))
        rest = self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional
        function = getattr(recurrent, self.mode.lower())
        if batch_sizes is None:
            return function(input, hx, *rest, self.batch_first)
        return function(input, batch_sizes, hx, *rest)

    def forward(self, input, hx=None):
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        name = self.mode.split("_")[0]
        if input.dim() not in (2, 3):
            tail = " tensor" if name == "RNN" else ""
            raise ValueError(f"{name}: Expected input to be 2D or 3D, got {input.dim()}D{tail} instead")
        batched, batch_dim = input.dim() == 3, 0 if self.batch_first else 1
        if hx is not None:
            self._check_dims(hx, batched)
        if not batched:
            input = input.unsqueeze(batch_dim)
            hx = None if hx is None else self._each(hx, lambda t: t.unsqueeze(1))
        hx = self._initial(input, None) if hx is None else hx
        self.check_forward_args(input, hx, None)
        out, *last = self._run(input, hx, None)
        last = self._result(last)
        if not batched:
            return out.squeeze(batch_dim), self._each(last, lambda t: t.squeeze(1))
        return out, last

    def _forward_packed(self, packed, hx):
        data, batch_sizes, order, back = packed
        hx = self._initial(data, batch_sizes) if hx is None else self.permute_hidden(hx, order)
        self.check_forward_args(data, hx, batch_sizes)
        out, *last = self._run(data, hx, batch_sizes)
        return PackedSequence(out, batch_sizes, order, back), self.permute_hidden(self._result(last), back)

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        usual = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0}
        for name, value in {**usual, "bidirectional": False}.items():
            if getattr(self, name) != value:
                text += f", {name}={getattr(self, name)}"
        return text


def zeros(shape, like):
    """Zeros of the dtype and device of ``like``."""
    return wrap(empty(shape, like.dtype, like.device)).zero_()


def autocasting():
    """Whether autocast is on, so that the dtypes of input and weights may differ."""
    return any(mode._enabled for mode in MODE.autocast.values())


def _check_dropout(dropout, num_layers):
    if not isinstance(dropout, numbers.Number) or isinstance(dropout, bool) or not 0 <= dropout <= 1:
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
        )
    if dropout > 0 and num_layers == 1:
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers "
            f"greater than 1, but got dropout={dropout} and num_layers={num_layers}",
            stacklevel=4,
        )


def _no_projection(kwargs):
    if "proj_size" in kwargs:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


class RNN(RNNBase):
    """h' = tanh (or relu) of x w_ih^T + b_ih + h w_hh^T + b_hh over all steps, in layers and one or two directions.

    ``RNN(input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=True, batch_first=False, dropout=0.0,
    bidirectional=False)``. Returns ``(output, h_n)``.
    """

    def __init__(self, *args, **kwargs):
        _no_projection(kwargs)
        nonlinearity = args[3] if len(args) > 3 else kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__("RNN_" + nonlinearity.upper(), *args[:3], *args[4:], **kwargs)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory, in layers and one or two directions; with ``proj_size`` the state is projected.

    ``LSTM(input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False,
    proj_size=0)``. Takes ``(input, (h_0, c_0))`` and returns ``(output, (h_n, c_n))``.
    """

    def __init__(self, *args, **kwargs):
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input, batch_sizes):
        """The shape of the cells [L*D,B,H] that belong to an input."""
        return self._state_shape(input, batch_sizes, self.hidden_size)

    def check_forward_args(self, input, hidden, batch_sizes):
        self.check_input(input, batch_sizes)
        h_size, c_size = (f(input, batch_sizes) for f in (self.get_expected_hidden_size, self.get_expected_cell_size))
        self.check_hidden_size(hidden[0], h_size, "Expected hidden[0] size {}, got {}")
        self.check_hidden_size(hidden[1], c_size, "Expected hidden[1] size {}, got {}")

    def permute_hidden(self, hx, permutation):
        return hx if permutation is None else tuple(t.index_select(1, permutation) for t in hx)

    def _initial(self, input, batch_sizes):
        sizes = (f(input, batch_sizes) for f in (self.get_expected_hidden_size, self.get_expected_cell_size))
        return tuple(zeros(size, input) for size in sizes)

    def _check_dims(self, hx, batched):
        dims = tuple(t.dim() for t in hx)
        if dims != ((3, 3) if batched else (2, 2)):
            kind, need = ("batched 3-D", "3-D") if batched else ("unbatched 2-D", "2-D")
            raise RuntimeError(
                f"For {kind} input, hx and cx should also be {need} but got ({dims[0]}-D, {dims[1]}-D) tensors"
            )

    def _each(self, hx, change):
        return tuple(map(change, hx))

    def _result(self, last):
        return tuple(last)


class GRU(RNNBase):
    """Gated recurrent units, in layers and one or two directions.

    ``GRU(input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False)``.
    Returns ``(output, h_n)``.
    """

    def __init__(self, *args, **kwargs):
        _no_projection(kwargs)
        super().__init__("GRU", *args, **kwargs)
