"""Recurrent networks and cells: loops over the definition, sequence by sequence."""

import numpy as np

import cudagrad as cg

from . import Error, Input, case


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def lstm_step(x, state, w_ih, w_hh, b_ih=0, b_hh=0, w_hr=None):
    h, c = state
    i, f, g, o = np.split(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh, 4, -1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    h = sigmoid(o) * np.tanh(c)
    return (h if w_hr is None else h @ w_hr.T, c)


def gru_step(x, state, w_ih, w_hh, b_ih=0, b_hh=0):
    (h,) = state
    (rx, ux, nx), (rh, uh, nh) = np.split(x @ w_ih.T + b_ih, 3, -1), np.split(h @ w_hh.T + b_hh, 3, -1)
    r, u = sigmoid(rx + rh), sigmoid(ux + uh)
    return ((1 - u) * np.tanh(nx + r * nh) + u * h,)


def tanh_step(x, state, w_ih, w_hh, b_ih=0, b_hh=0):
    return (np.tanh(x @ w_ih.T + b_ih + state[0] @ w_hh.T + b_hh),)


def relu_step(x, state, w_ih, w_hh, b_ih=0, b_hh=0):
    return (np.maximum(x @ w_ih.T + b_ih + state[0] @ w_hh.T + b_hh, 0),)


def both_directions(step, x, states, weights):
    """One layer, forwards and backwards: output [T,B,2P] and the last states [2,B,...]."""
    each, outs, lasts = len(weights) // 2, [], []
    for d in range(2):
        state, out = tuple(s[d] for s in states), [None] * len(x)
        for t in reversed(range(len(x))) if d else range(len(x)):
            state = step(x[t], state, *weights[d * each : (d + 1) * each])
            out[t] = state[0]
        outs.append(np.stack(out))
        lasts.append(state)
    return (np.concatenate(outs, -1), *(np.stack(s) for s in zip(*lasts)))


T, B, I, H, P = 3, 2, 3, 4, 2


def network(name, step, gates, states):
    def weights(g, width, biases=True, projection=False):
        one = [(g * H, I), (g * H, width), *([(g * H,)] * 2 if biases else []), *([(P, H)] if projection else [])]
        return one * 2

    def ref(x, *rest):
        return both_directions(step, x, rest[:states], rest[states:])

    def run(biases):
        def call(x, *rest):
            hx = rest[0] if states == 1 else tuple(rest[:states])
            return getattr(cg, name)(x, hx, list(rest[states:]), biases, 1, 0.0, False, True, False)

        return call

    for biases in (True, False):
        start = [(2, B, H)] * states
        case(name, ref, Input((T, B, I), *start, *weights(gates, H, biases)), f=run(biases), roundings=16)
    if name == "lstm":
        start = [(2, B, P), (2, B, H)]
        case(name, ref, Input((T, B, I), *start, *weights(gates, P, True, True)), f=run(True), roundings=16)


network("lstm", lstm_step, 4, 2)
network("gru", gru_step, 3, 1)
network("rnn_tanh", tanh_step, 1, 1)
network("rnn_relu", relu_step, 1, 1)

case(
    "lstm_cell",
    lambda x, h, c, *w: lstm_step(x, (h, c), *w),
    Input((2, 3), (2, 4), (2, 4), (16, 3), (16, 4), (16,), (16,)),
    Input((1, 31), (1, 33), (1, 33), (132, 31), (132, 33)),
    Error(
        RuntimeError, "input has inconsistent input_size: got 5 expected 3", (2, 5), (2, 4), (2, 4), (16, 3), (16, 4)
    ),
    f=lambda x, h, c, *w: cg.lstm_cell(x, (h, c), *w),
    roundings=16,
)

for _name, _step, _gates in (
    ("gru_cell", gru_step, 3),
    ("rnn_tanh_cell", tanh_step, 1),
    ("rnn_relu_cell", relu_step, 1),
):
    case(
        _name,
        lambda x, h, *w, step=_step: step(x, (h,), *w)[0],
        Input((2, 3), (2, 4), (_gates * 4, 3), (_gates * 4, 4), (_gates * 4,), (_gates * 4,)),
        Input((1, 31), (1, 33), (_gates * 33, 31), (_gates * 33, 33)),
        Error(RuntimeError, "Input batch size 2 doesn't match hidden0 batch size 3", (2, 3), (3, 4), (12, 3), (12, 4))
        if _gates == 3
        else Error(
            RuntimeError, "hidden0 has inconsistent hidden_size: got 5, expected 4", (2, 3), (2, 5), (4, 3), (4, 4)
        ),
        roundings=16,
    )
