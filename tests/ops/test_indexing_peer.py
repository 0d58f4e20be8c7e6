"""Index expressions on PyTorch, where it is installed: the same values, gradients and error lines."""

import numpy as np
import pytest

import cudagrad as cg

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.peer

EXPRESSIONS = """
x[5] | x[-1] | x[0, 0, 0] | x[..., 0, 0, 0, 0] | z[0] | z[...] | z[None] | z[True] | z[False] | z[()] | z[:]
x[True] | x[False] | x[0, True] | x[True, 0] | x[:, True] | x[::-1] | x[0:5:2] | x[2:1] | x[1.0] | x[[0.5]]
x[[0, 5]] | x[:, [0, 5]] | x[[0, -3]] | x[[0, 1], [0, 1]] | x[[0, 1], [0, 1, 2]] | x[[0, 1], :, [0, 1]]
x[:, [0, 1], [0, 1]] | x[[0, 1], 0, [0, 1]] | x[0, :, [0, 1]] | x[[0, 1], None, [0, 1]] | x[None, [0, 1], [0, 1]]
x[torch.tensor(5)] | x[:, torch.tensor(1), [0, 1]] | x[b] | x[:, b] | x[:, b, [0, 1]] | x[x.detach() > 5]
x[torch.ones(2, 3, 4, 1).bool()] | x[torch.tensor(True)] | x[[]] | x[:, []] | x[range(2)] | x[{0}] | x[i, i, i, i]
x[..., 1, ...] | x[i.unsqueeze(1), torch.tensor([[0, 1, 2]])] | x[torch.zeros(2, 0, dtype=torch.long)]
torch.zeros(0, 3)[[0]] | q[i, :, j] | q[:, i, :, j] | q[i, :, :, j] | q[None, i, :, None, j] | q[i, :, 0, j]
q[0, i, :, j] | q[i, ..., j] | q[:, :, j, [9]] | q[i, :, [9]] | q[[9], :, i] | q[True, i, :, j]
q[torch.zeros(2, 3).bool()] | q[..., [True, False, True, True, False]] | q[[True, False], i]
q.transpose(0, 2)[i, j] | q.transpose(0, 2)[:, i, :, j] | q.permute(3, 1, 0, 2)[1:, :, i] | x[i][j] | x[1:, :2, 1:3]
x[:, None, None]
"""
WRITES = """
y[0] = 1 | y[0] = w[0, :4] | y[0] = torch.ones(5) | y[0] = torch.ones(2, 3, 4) | y[[0, 1]] = torch.ones(5).double()
y[[0, 1]] = 5 | y[[0, 1]] = w.float()[0, :4] | y[y > 5] = 0.0 | y[y > 5] = w.reshape(-1)[:18]
y[y > 5] = w.reshape(-1)[:17] | y[b] = 1.0 | y[:, b] = 2.0 | y[True] = 3.0 | y[False] = 3.0 | y[None, 0] = 1.0
y[:, [0, 5]] = 1.0 | y[0, [0, 1], None] = 1.0 | y[:0] = torch.ones(3) | y[0, 0, 0] = w[0, :1]
y[[0, 1], :, 0] = w[:2, :3] | y[i, j] = w[0, :4] | y[:, i, j] = w[:2, :2] | y[0][1] = w[1, :4] | y[1:, 1] = 5.0
y[..., i] = w[0, :2] | y.transpose(0, 1)[[0, 1]] = w[0, :4] | y.transpose(0, 1)[i, j] = w[0, :4]
y.transpose(0, 2)[i, :, j] = w[:2, :3] | y[:, 1:] += w[:2, :4].unsqueeze(1) | y[i, j] += w[0, :4] | y[0] = y[1]
y[[0, 1]] = y[[1, 0]] | y.index_put_((i, j), w[0, :4], accumulate=True) | y.index_put_((i,), w[0, :4])
"""


def pieces(text):
    return [p.strip() for line in text.strip().splitlines() for p in line.split("|")]


def _outcome(lib, expression, write):
    """What an expression gives on one library: its value and gradients, or the type and first line of its error."""

    def grid(*shape):
        return lib.arange(float(np.prod(shape)), dtype=lib.float64).reshape(shape)

    leaves = {"x": grid(2, 3, 4), "q": grid(2, 3, 4, 5), "w": grid(5, 8) / 7, "z": lib.tensor(1.0, dtype=lib.float64)}
    leaves = {name: t.clone().requires_grad_() for name, t in leaves.items()}
    names = {
        **leaves,
        "torch": lib,
        "i": lib.tensor([0, 1]),
        "j": lib.tensor([1, 0]),
        "b": lib.tensor([True, False, True]),
    }
    try:
        if write:
            names["y"] = leaves["x"] * 1
            exec(expression, names)
            result = names["y"]
        else:
            result = eval(expression, names)
    except Exception as error:
        return type(error).__name__, str(error).split("\n")[0]
    if result.requires_grad:
        (result * (grid(*result.shape) + 1).cos()).sum().backward()
    grads = [None if t.grad is None else t.grad.tolist() for t in leaves.values()]
    return tuple(result.shape), result.tolist(), grads


@pytest.mark.parametrize("expression", pieces(EXPRESSIONS))
def test_reading_is_pytorchs(expression):
    _compare(_outcome(cg, expression, False), _outcome(torch, expression, False))


@pytest.mark.parametrize("expression", pieces(WRITES))
def test_writing_is_pytorchs(expression):
    _compare(_outcome(cg, expression, True), _outcome(torch, expression, True))


def _compare(ours, theirs):
    assert ours[0] == theirs[0], (ours, theirs)
    if isinstance(ours[0], str):
        assert ours == theirs
        return
    assert ours[1] == theirs[1]
    for g, e in zip(ours[2], theirs[2]):
        assert (g is None) == (e is None)
        if g is not None:
            np.testing.assert_allclose(g, e, rtol=1e-12, atol=1e-12)
