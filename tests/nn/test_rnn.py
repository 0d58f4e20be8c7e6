"""RNN, LSTM and GRU: NumPy loops over the definition in float64, layers, directions, packing, errors."""

import copy
import itertools

import numpy as np
import pytest

import cudagrad as cg
from cudagrad import nn
from cudagrad.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

MODULES = {"RNN": {}, "RELU": {"nonlinearity": "relu"}, "LSTM": {}, "GRU": {}, "PROJ": {"proj_size": 2}}


def make(kind, *args, **kwargs):
    cg.manual_seed(3)
    cls = {"RELU": nn.RNN, "PROJ": nn.LSTM}.get(kind) or getattr(nn, kind)
    return cls(*args, dtype=cg.float64, **MODULES[kind], **kwargs)


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def step(kind, x, state, w_ih, w_hh, b_ih, b_hh, w_hr=None):
    """One step from the definitions on PyTorch's pages; the state is (h,) or (h, c)."""
    h = state[0]
    zx, zh = x @ w_ih.T + b_ih, h @ w_hh.T + b_hh
    if kind == "RNN":
        return (np.tanh(zx + zh),)
    if kind == "RELU":
        return (np.maximum(zx + zh, 0),)
    if kind == "GRU":
        (rx, ux, nx), (rh, uh, nh) = np.split(zx, 3, -1), np.split(zh, 3, -1)
        r, u = sigmoid(rx + rh), sigmoid(ux + uh)
        return ((1 - u) * np.tanh(nx + r * nh) + u * h,)
    i, f, g, o = np.split(zx + zh, 4, -1)
    c = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
    h = sigmoid(o) * np.tanh(c)
    return (h if w_hr is None else h @ w_hr.T, c)


def by_loops(module, kind, x, state=None, lengths=None):
    """Output [T,B,D*H] and last states, sequence by sequence, step by step."""
    steps, batch, _ = x.shape
    lengths = lengths or [steps] * batch
    weights = {n: p.detach().numpy() for n, p in module.named_parameters()}
    width = module.proj_size or module.hidden_size
    sizes = (width, module.hidden_size) if kind in ("LSTM", "PROJ") else (width,)
    directions = 2 if module.bidirectional else 1
    count = module.num_layers * directions
    state = [np.zeros((count, batch, n)) for n in sizes] if state is None else state
    last = [np.zeros((count, batch, n)) for n in sizes]
    for layer in range(module.num_layers):
        out = np.zeros((steps, batch, directions * width))
        for d in range(directions):
            end = f"_l{layer}" + ("_reverse" if d else "")
            zero = np.zeros(weights["weight_ih" + end].shape[0])
            w = [weights["weight_ih" + end], weights["weight_hh" + end]]
            w += [weights.get("bias_ih" + end, zero), weights.get("bias_hh" + end, zero)]
            w += [weights["weight_hr" + end]] if kind == "PROJ" else []
            for b in range(batch):
                s = tuple(part[layer * directions + d, b] for part in state)
                order = range(lengths[b])
                for t in reversed(order) if d else order:
                    s = step(kind, x[t, b], s, *w)
                    out[t, b, d * width : (d + 1) * width] = s[0]
                for part, value in zip(last, s):
                    part[layer * directions + d, b] = value
        x = out
    return x, last


def states_of(result):
    return result if isinstance(result, tuple) else (result,)


SHAPES = list(itertools.product([1, 2], [False, True], [True, False]))


@pytest.mark.parametrize(("layers", "both", "bias"), SHAPES)
@pytest.mark.parametrize("kind", MODULES)
def test_every_step_is_the_definition(kind, layers, both, bias):
    m = make(kind, 3, 4, num_layers=layers, bidirectional=both, bias=bias)
    x = np.random.default_rng(0).standard_normal((5, 2, 3))
    expected, last = by_loops(m, kind, x)
    out, state = m(cg.tensor(x))
    assert np.allclose(out.detach().numpy(), expected, atol=1e-12)
    for ours, theirs in zip(states_of(state), last):
        assert np.allclose(ours.detach().numpy(), theirs, atol=1e-12)


@pytest.mark.parametrize("kind", MODULES)
def test_a_given_state_batch_first_and_unbatched_input(kind):
    m = make(kind, 3, 4, num_layers=2, bidirectional=True, batch_first=True)
    rng = np.random.default_rng(1)
    x = rng.standard_normal((2, 5, 3))
    sizes = ([2, 4] if kind == "PROJ" else [4, 4])[: 2 if kind in ("LSTM", "PROJ") else 1]
    state = [rng.standard_normal((4, 2, n)) for n in sizes]
    expected, last = by_loops(m, kind, x.transpose(1, 0, 2), state)
    given = tuple(cg.tensor(s) for s in state)
    out, new = m(cg.tensor(x), given if len(given) > 1 else given[0])
    assert np.allclose(out.detach().numpy(), expected.transpose(1, 0, 2), atol=1e-12)
    assert np.allclose(states_of(new)[-1].detach().numpy(), last[-1], atol=1e-12)
    one = tuple(s[:, 1] for s in given)
    alone, new = m(cg.tensor(x[1]), one if len(one) > 1 else one[0])
    assert alone.shape == (5, expected.shape[2]) and states_of(new)[0].shape == (4, sizes[0])
    assert np.allclose(alone.detach().numpy(), expected[:, 1], atol=1e-12)


@pytest.mark.parametrize("kind", MODULES)
def test_packed_sequences_stop_at_their_lengths(kind):
    m = make(kind, 3, 4, num_layers=2, bidirectional=True)
    rng = np.random.default_rng(2)
    x, lengths = rng.standard_normal((5, 3, 3)), [3, 5, 1]
    sizes = ([2, 4] if kind == "PROJ" else [4, 4])[: 2 if kind in ("LSTM", "PROJ") else 1]
    state = [rng.standard_normal((4, 3, n)) for n in sizes]
    given = tuple(cg.tensor(s) for s in state)
    for start, hx in ((None, None), (state, given if len(given) > 1 else given[0])):
        expected, last = by_loops(m, kind, x, start, lengths)
        out, new = m(pack_padded_sequence(cg.tensor(x), lengths, enforce_sorted=False), hx)
        assert isinstance(out, PackedSequence)
        padded, n = pad_packed_sequence(out)
        assert np.allclose(padded.detach().numpy(), expected, atol=1e-12) and n.tolist() == lengths
        for ours, theirs in zip(states_of(new), last):
            assert np.allclose(ours.detach().numpy(), theirs, atol=1e-12)


@pytest.mark.parametrize("lengths", [None, [4, 2, 1]])
@pytest.mark.parametrize("kind", MODULES)
def test_gradients_are_the_slopes_of_the_definition(kind, lengths):
    m = make(kind, 2, 3, num_layers=2, bidirectional=True)
    rng = np.random.default_rng(3)
    x = rng.standard_normal((4, 3, 2))
    tensor = cg.tensor(x, requires_grad=True)
    out, state = m(tensor if lengths is None else pack_padded_sequence(tensor, lengths))
    out = out if lengths is None else pad_packed_sequence(out)[0]
    a, b = rng.standard_normal(out.shape), [rng.standard_normal(s.shape) for s in states_of(state)]
    loss = (out * cg.tensor(a)).sum()
    for s, weight in zip(states_of(state), b):
        loss = loss + (s * cg.tensor(weight)).sum()
    loss.backward()

    def value():
        out, last = by_loops(m, kind, x, None, lengths)
        return (out * a).sum() + sum((s * w).sum() for s, w in zip(last, b))

    for array, grad in [(x, tensor.grad), *((p.detach().numpy(), p.grad) for p in m.parameters())]:
        direction = rng.standard_normal(array.shape)
        kept, h = array.copy(), 1e-6
        array[...] = kept + h * direction
        up = value()
        array[...] = kept - h * direction
        slope = (up - value()) / (2 * h)
        array[...] = kept
        assert (grad.numpy() * direction).sum() == pytest.approx(slope, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("kind", MODULES)
def test_second_derivatives_are_the_slopes_of_first_ones(kind):
    m = make(kind, 2, 3, bidirectional=True)
    rng = np.random.default_rng(4)
    x, direction = rng.standard_normal((2, 3, 2)), rng.standard_normal((2, 3, 2))
    weight = next(m.parameters())
    by_weight = cg.tensor(rng.standard_normal(weight.shape))

    def first(array, create_graph):
        t = cg.tensor(array, requires_grad=True)
        packed = pack_padded_sequence(t, [2, 2, 1])
        out, state = m(packed)
        loss = (out.data**2).sum() + states_of(state)[-1].sum()
        gx, gw = cg.autograd.grad(loss, [t, weight], create_graph=create_graph)
        return t, gx, gw

    t, gx, gw = first(x, True)
    (h,) = cg.autograd.grad((gw * by_weight).sum() + (gx * cg.tensor(direction)).sum(), t)
    e = 1e-5
    up, down = (first(x + s * e * direction, False) for s in (1, -1))
    slope = sum(
        ((u - d) * w).sum().item() for u, d, w in ((up[2], down[2], by_weight), (up[1], down[1], cg.tensor(direction)))
    ) / (2 * e)
    assert (h.numpy() * direction).sum() == pytest.approx(slope, rel=1e-5)


@pytest.mark.parametrize("kind", MODULES)
def test_float32_and_half_types_round_the_float64_result(kind):
    m = make(kind, 3, 4)
    x = np.random.default_rng(5).standard_normal((3, 2, 3))
    expected = m(cg.tensor(x))[0].detach().numpy()
    for dtype, tolerance in ((cg.float32, 1e-6), (cg.float16, 2e-3), (cg.bfloat16, 2e-2)):
        low = copy.deepcopy(m).to(dtype)
        t = cg.tensor(x).to(dtype).requires_grad_()
        out, _ = low(t)
        assert out.dtype is dtype and np.allclose(out.detach().double().numpy(), expected, atol=tolerance)
        out.sum().backward()
        assert t.grad.dtype is dtype and low.weight_ih_l0.grad.dtype is dtype


def test_changing_the_output_in_place_does_not_change_the_gradient():
    for kind in ("RNN", "LSTM", "GRU"):
        m = make(kind, 2, 3)
        x = cg.ones(3, 1, 2, dtype=cg.float64)
        m(x)[0].sum().backward()
        expected = m.weight_hh_l0.grad.clone()
        m.zero_grad()
        out = m(x)[0]
        total = out.sum()
        with cg.no_grad():
            out.mul_(5.0)
        total.backward()
        assert np.allclose(m.weight_hh_l0.grad.numpy(), expected.numpy())


@pytest.mark.parametrize("kind", ["RNN", "RELU", "LSTM", "GRU"])
def test_cells_are_one_step_of_the_definition(kind):
    cls = {"RELU": nn.RNNCell}.get(kind) or getattr(nn, kind + "Cell")
    for bias in (True, False):
        m = cls(3, 4, bias=bias, dtype=cg.float64, **MODULES[kind])
        rng = np.random.default_rng(6)
        x, state = rng.standard_normal((2, 3)), [rng.standard_normal((2, 4)) for _ in range(1 + (kind == "LSTM"))]
        w = [p.detach().numpy() for p in (m.weight_ih, m.weight_hh)]
        w += [p.detach().numpy() if bias else 0.0 for p in (m.bias_ih, m.bias_hh)]
        expected = step(kind, x, state, *w)
        given = tuple(cg.tensor(s) for s in state)
        got = states_of(m(cg.tensor(x), given if kind == "LSTM" else given[0]))
        assert all(np.allclose(a.detach().numpy(), b) for a, b in zip(got, expected))
        zeros = step(kind, x[0], [np.zeros(4)] * len(state), *w)
        alone = states_of(m(cg.tensor(x[0])))
        assert alone[0].shape == (4,) and all(np.allclose(a.detach().numpy(), b) for a, b in zip(alone, zeros))


def test_a_loop_of_cells_equals_the_layer():
    layer = make("LSTM", 3, 4)
    cell = nn.LSTMCell(3, 4, dtype=cg.float64)
    cell.load_state_dict({k: layer.state_dict()[k + "_l0"] for k in cell.state_dict()})
    x = cg.tensor(np.random.default_rng(7).standard_normal((5, 2, 3)))
    state, outs = None, []
    for t in range(5):
        state = cell(x[t], state)
        outs.append(state[0])
    expected, _ = layer(x)
    assert np.allclose(cg.stack(outs).detach().numpy(), expected.detach().numpy())
    cg.stack(outs).sum().backward()
    expected.sum().backward()
    assert np.allclose(cell.weight_hh.grad.numpy(), layer.weight_hh_l0.grad.numpy())


def test_dropout_acts_between_layers_in_training_only():
    m = make("LSTM", 3, 4, num_layers=2, dropout=1.0)
    x = cg.ones(2, 1, 3, dtype=cg.float64)
    without = copy.deepcopy(m)
    without.dropout = 0.0
    assert m.eval()(x)[0].tolist() == without(x)[0].tolist()
    out, _ = m.train()(x)
    single = make("LSTM", 4, 4)
    single.load_state_dict({k.replace("l1", "l0"): v for k, v in m.state_dict().items() if "l1" in k})
    assert np.allclose(out.detach().numpy(), single(cg.zeros(2, 1, 4, dtype=cg.float64))[0].detach().numpy())


def test_autocast_takes_half_input_and_gives_full_gradients():
    m, cell = nn.LSTM(3, 4), nn.GRUCell(4, 4)
    with cg.autocast("cpu"):
        out, _ = m(cg.ones(2, 1, 3, dtype=cg.bfloat16))
        h = cell(out[0].bfloat16())
    h.sum().backward()
    assert m.weight_ih_l0.grad.dtype is cg.float32 and m.weight_ih_l0.grad.any()
    with pytest.raises(ValueError, match="^RNN input dtype"):
        m(cg.ones(2, 1, 3, dtype=cg.bfloat16))


def test_weights_have_pytorchs_names_shapes_and_range():
    m = nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2)
    shapes = {n: tuple(p.shape) for n, p in m.named_parameters()}
    assert shapes["weight_ih_l0"] == (16, 3) and shapes["weight_hh_l0_reverse"] == (16, 2)
    assert shapes["weight_ih_l1"] == (16, 4) and shapes["weight_hr_l1_reverse"] == (2, 4)
    assert len(shapes) == 20 and all(abs(p).max().item() <= 0.5 for p in m.parameters())
    assert [len(w) for w in m.all_weights] == [5] * 4 and m.flatten_parameters() is None
    assert len(list(nn.GRU(3, 4, bias=False).parameters())) == 2


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: nn.LSTM(3, 0), ValueError, "hidden_size must be greater than zero"),
        (lambda: nn.LSTM(0, 4), ValueError, "input_size must be greater than zero"),
        (lambda: nn.LSTM(3, 4, 0), ValueError, "num_layers must be greater than zero"),
        (lambda: nn.LSTM(3.0, 4), TypeError, "input_size should be of type int, got: float"),
        (lambda: nn.LSTM(3, 4, bias=1), TypeError, "bias should be of type bool, got: int"),
        (lambda: nn.LSTM(3, 4, proj_size=4), ValueError, "proj_size has to be smaller than hidden_size"),
        (lambda: nn.LSTM(3, 4, proj_size=-1), ValueError, "proj_size should be a positive integer or zero to disable"),
        (
            lambda: nn.GRU(3, 4, proj_size=2),
            ValueError,
            "proj_size argument is only supported for LSTM, not RNN or GRU",
        ),
        (lambda: nn.RNN(3, 4, dropout=2.0), ValueError, "dropout should be a number in range [0, 1] representing"),
        (lambda: nn.RNN(3, 4, 1, "gelu"), ValueError, "Unknown nonlinearity 'gelu'. Select from 'tanh' or 'relu'."),
        (lambda: nn.RNN(3, 4)(cg.zeros(3)), ValueError, "RNN: Expected input to be 2D or 3D, got 1D tensor instead"),
        (lambda: nn.LSTM(3, 4)(cg.zeros(3)), ValueError, "LSTM: Expected input to be 2D or 3D, got 1D instead"),
        (
            lambda: nn.LSTM(3, 4)(cg.zeros(2, 2, 5)),
            RuntimeError,
            "input.size(-1) must be equal to input_size. Expected 3, got 5",
        ),
        (
            lambda: nn.GRU(3, 4)(cg.zeros(2, 2, 3), cg.zeros(1, 3, 4)),
            RuntimeError,
            "Expected hidden size (1, 2, 4), got [1, 3, 4]",
        ),
        (
            lambda: nn.LSTM(3, 4)(cg.zeros(2, 2, 3), (cg.zeros(1, 2, 4), cg.zeros(1, 3, 4))),
            RuntimeError,
            "Expected hidden[1] size (1, 2, 4), got [1, 3, 4]",
        ),
        (
            lambda: nn.GRU(3, 4)(cg.zeros(2, 2, 3), cg.zeros(1, 4)),
            RuntimeError,
            "For batched 3-D input, hx should also be 3-D but got 2-D tensor",
        ),
        (
            lambda: nn.LSTM(3, 4)(cg.zeros(2, 3), (cg.zeros(1, 1, 4), cg.zeros(1, 1, 4))),
            RuntimeError,
            "For unbatched 2-D input, hx and cx should also be 2-D but got (3-D, 3-D) tensors",
        ),
        (
            lambda: nn.LSTM(3, 4)(cg.zeros(2, 2, 3, dtype=cg.float64)),
            ValueError,
            "RNN input dtype (torch.float64) does not match weight dtype (torch.float32). Convert input: input.to("
            "torch.float32), or convert model: model.to(torch.float64)",
        ),
        (
            lambda: nn.LSTM(3, 4)(cg.zeros(0, 2, 3)),
            RuntimeError,
            "Expected sequence length to be larger than 0 in RNN",
        ),
        (
            lambda: nn.GRUCell(3, 4)(cg.zeros(1, 2, 3)),
            ValueError,
            "GRUCell: Expected input to be 1D or 2D, got 3D inst",
        ),
        (
            lambda: nn.RNNCell(3, 4)(cg.zeros(2, 3), cg.zeros(1, 2, 4)),
            ValueError,
            "RNNCell: Expected hidden to be 1D or 2D, got 3D instead",
        ),
        (
            lambda: nn.LSTMCell(3, 4)(cg.zeros(2, 3), (cg.zeros(1, 2, 4), cg.zeros(2, 4))),
            ValueError,
            "LSTMCell: Expected hx[0] to be 1D or 2D, got 3D instead",
        ),
        (
            lambda: nn.GRUCell(3, 4)(cg.zeros(2, 5)),
            RuntimeError,
            "input has inconsistent input_size: got 5 expected 3",
        ),
        (
            lambda: nn.GRUCell(3, 4)(cg.zeros(2, 3), cg.zeros(2, 5)),
            RuntimeError,
            "hidden0 has inconsistent hidden_size: got 5, expected 4",
        ),
        (
            lambda: nn.GRUCell(3, 4)(cg.zeros(2, 3), cg.zeros(3, 4)),
            RuntimeError,
            "Input batch size 2 doesn't match hidden0 batch size 3",
        ),
        (lambda: nn.RNNCell(3, 4, nonlinearity="x")(cg.zeros(1, 3)), RuntimeError, "Unknown nonlinearity: x"),
    ],
)
def test_errors_have_pytorchs_words(call, error, text):
    with pytest.raises(error) as e:
        call()
    assert str(e.value).startswith(text)


def test_dropout_of_one_layer_warns():
    with pytest.warns(
        UserWarning, match="^dropout option adds dropout after all but last recurrent layer, so non-zero"
    ):
        nn.LSTM(3, 4, dropout=0.5)


def test_reprs():
    assert repr(nn.LSTM(3, 4, 2, dropout=0.5, bidirectional=True)) == (
        "LSTM(3, 4, num_layers=2, dropout=0.5, bidirectional=True)"
    )
    assert repr(nn.RNNCell(3, 4, False, "relu")) == "RNNCell(3, 4, bias=False, nonlinearity=relu)"


@pytest.mark.peer
@pytest.mark.parametrize("kind", MODULES)
def test_functions_of_weights_equal_pytorchs(kind):
    torch = pytest.importorskip("torch")
    m = make(kind, 3, 4, num_layers=2, bidirectional=True)
    x = np.random.default_rng(8).standard_normal((5, 3, 3))
    name = {"PROJ": "lstm", "RNN": "rnn_tanh", "RELU": "rnn_relu"}.get(kind, kind.lower())
    results = []
    for lib in (cg, torch):
        weights = [lib.tensor(p.detach().numpy()) for p in m.parameters()]
        h = lib.zeros(4, 3, m.proj_size or 4, dtype=lib.float64)
        h = (h, lib.zeros(4, 3, 4, dtype=lib.float64)) if name == "lstm" else h
        function, packed = getattr(lib, name), lib.tensor([3, 3, 2, 1])
        results.append(function(lib.tensor(x), h, weights, True, 2, 0.0, False, True, False))
        results.append(function(lib.tensor(x[:3].reshape(9, 3)), packed, h, weights, True, 2, 0.0, False, True))
    for ours, theirs in zip(results[:2], results[2:]):
        for a, b in zip(ours, theirs):
            assert np.allclose(a.numpy(), b.numpy(), atol=1e-12)
