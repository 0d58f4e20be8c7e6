"""Modules called with other parameters and buffers than their own."""

import pytest

import cudagrad as cg
from cudagrad import nn


class Linear(nn.Module):
    def __init__(self, n=3, m=2, dtype=cg.float64):
        super().__init__()
        cg.manual_seed(1)
        self.weight = nn.Parameter(cg.randn(m, n, dtype=dtype))
        self.bias = nn.Parameter(cg.zeros(m, dtype=dtype))

    def forward(self, x):
        return x @ self.weight.T + self.bias


# ---- functional calls


def test_a_functional_call_uses_the_given_tensors_and_their_gradients():
    m, x = Linear(), cg.ones(1, 3, dtype=cg.float64)
    w = cg.ones(2, 3, dtype=cg.float64, requires_grad=True)
    kept = m.weight
    y = cg.func.functional_call(m, {"weight": w}, (x,))
    assert y.tolist() == [[3.0, 3.0]] and m.weight is kept
    y.sum().backward()
    assert w.grad.tolist() == [[1.0] * 3] * 2 and kept.grad is None
    assert cg.func.functional_call(m, [{"weight": w}, {"bias": w[:, 0]}], x).tolist() == [[4.0, 4.0]]


def test_functional_calls_hand_buffers_back():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("n", cg.zeros(()))

        def forward(self):
            self.n = self.n + 1
            return self.n

    m, given = Counter(), {"n": cg.tensor(5.0)}
    assert cg.func.functional_call(m, given).item() == 6.0
    assert m.n.item() == 0.0 and given["n"].item() == 6.0


def test_functional_calls_of_tied_weights():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Parameter(cg.ones(1))
            self.b = self.a

        def forward(self, x):
            return x * self.a + self.b

    m, x = Tied(), cg.tensor([2.0])
    assert cg.func.functional_call(m, {"a": cg.tensor([5.0])}, x).item() == 15.0
    assert cg.func.functional_call(m, {"a": cg.tensor([5.0])}, x, tie_weights=False).item() == 11.0
    with pytest.raises(ValueError, match=r"^functional_call got multiple values for keys \['a', 'b'\], which are tied"):
        cg.func.functional_call(m, {"a": cg.tensor([5.0]), "b": cg.tensor([6.0])}, x)


def test_functional_calls_check_names():
    m, x = Linear(), cg.ones(1, 3, dtype=cg.float64)
    with pytest.raises(
        RuntimeError, match=r"^Error\(s\) in reparametrizing for Linear:\n\tUnexpected key\(s\): 'w'.\n\tMi"
    ):
        cg.func.functional_call(m, {"w": m.weight}, x, strict=True)
    with pytest.raises(
        ValueError, match=r"^\['bias'\] appeared in multiple dictionaries; behavior of functional call is"
    ):
        cg.func.functional_call(m, [{"bias": m.bias}, {"bias": m.bias}], x)
    with pytest.raises(
        ValueError, match="^Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but"
    ):
        cg.func.functional_call(m, 3, x)
    kept = m.weight
    with pytest.raises(TypeError):
        cg.func.functional_call(m, {"weight": cg.ones(2, 3, dtype=cg.float64), "bias": 3}, x)
    assert m.weight is kept


def test_module_states_are_stacked():
    models = [Linear(), Linear()]
    params, buffers = cg.func.stack_module_state(models)
    assert params["weight"].shape == (2, 2, 3) and params["weight"].is_leaf and params["weight"].requires_grad
    assert buffers == {} and params["weight"][1].tolist() == models[1].weight.tolist()
    with pytest.raises(RuntimeError, match="^stack_module_state: Expected at least one model, got 0.$"):
        cg.func.stack_module_state([])
    with pytest.raises(RuntimeError, match="^stack_module_state: Expected all models to be of the same class.$"):
        cg.func.stack_module_state([Linear(), nn.Module()])
