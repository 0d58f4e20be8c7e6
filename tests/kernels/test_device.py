"""Tensors on the emulated device: their class, copies to and from it, what may not be mixed, and kernels chosen."""

import inspect
import pickle

import numpy as np
import pytest

import cudagrad
import cudagrad.config
from cudagrad.backend.emulated import EmulatedArray
from cudagrad.backend.kernels import adapters
from cudagrad.core.op import TABLE, asks

from .common import needs_compiler


def emulated(*args, **kwargs):
    return cudagrad.tensor(*args, device="emulated", **kwargs)


def lies_there(t):
    return t.device == cudagrad.device("emulated") and t.array.__class__ is EmulatedArray


MADE = {
    "tensor": lambda: emulated([1.0, 2.0]),
    "zeros": lambda: cudagrad.zeros(2, 3, device="emulated"),
    "arange": lambda: cudagrad.arange(5, device="emulated"),
    "randn": lambda: cudagrad.randn(3, device="emulated"),
    "to": lambda: cudagrad.ones(2).to("emulated"),
    "like": lambda: cudagrad.zeros_like(emulated([1.0])),
    "infix": lambda: emulated([1.0]) * 2 + 1,
    "two": lambda: emulated([1.0]) / emulated(3.0),
    "number on the left": lambda: 2 - emulated([1.0]),
    "comparison": lambda: emulated([1.0]) > 0,
    "sum": lambda: emulated([1.0, 2.0]).sum(),
    "0-d": lambda: emulated([1.0, 2.0])[0] * 2,
    "matmul": lambda: emulated([[1.0]]) @ emulated([[1.0]]),
    "cat": lambda: cudagrad.cat([emulated([1.0]), emulated([2.0])]),
    "where": lambda: cudagrad.where(emulated([True]), emulated([1.0]), emulated([2.0])),
    "einsum": lambda: cudagrad.einsum("ij,j", emulated([[1.0]]), emulated([1.0])),
    "view": lambda: emulated([1.0, 2.0]).view(2, 1).T.expand(3, 2),
    "max": lambda: emulated([[1.0, 2.0]]).max(1).values,
    "sort": lambda: emulated([2.0, 1.0]).sort().indices,
    "in place": lambda: emulated([1.0, 2.0]).mul_(2).add_(1),
    "fill": lambda: cudagrad.empty(3, device="emulated").normal_(),
    "mask": lambda: emulated([1.0, 2.0])[emulated([True, False])],
    "cast": lambda: emulated([1.0]).to(cudagrad.bfloat16),
    "copy": lambda: emulated([1.0]).clone(),
}


@pytest.mark.parametrize("name", MADE)
def test_what_is_made_there_stays_there(name):
    assert lies_there(MADE[name]())


def test_both_ways_copy():
    host = cudagrad.tensor([1.0, 2.0])
    there = host.to("emulated")
    there.mul_(10)
    back = there.cpu()
    back.add_(1)
    assert host.tolist() == [1, 2] and there.tolist() == [10, 20] and back.tolist() == [11, 21]
    assert back.device.type == "cpu" and back.array.__class__ is np.ndarray


def test_a_gradient_comes_back_over_the_device():
    x = cudagrad.tensor([1.0, 2.0], requires_grad=True)
    (x.to("emulated") ** 2).sum().backward()
    assert x.grad.tolist() == [2, 4] and x.grad.array.__class__ is np.ndarray


def test_gradients_lie_where_their_tensors_do():
    x = cudagrad.randn(4, 3, device="emulated", requires_grad=True)
    layer = cudagrad.nn.Linear(3, 2, device="emulated")
    (cudagrad.relu(layer(x)[1:]) ** 2).mean().backward()
    assert all(lies_there(t.grad) for t in (x, layer.weight, layer.bias))
    optimizer = cudagrad.optim.Adam(layer.parameters())
    optimizer.step()
    assert all(lies_there(p) and lies_there(optimizer.state[p]["exp_avg"]) for p in layer.parameters())


@pytest.mark.parametrize("act", [lambda a, b: a + b, lambda a, b: cudagrad.cat([a, b]), lambda a, b: a @ b])
def test_devices_do_not_mix(act):
    with pytest.raises(
        RuntimeError, match="Expected all tensors to be on the same device, but found at least two devices"
    ):
        act(cudagrad.ones(2), cudagrad.ones(2, device="emulated"))


def test_a_0_d_tensor_of_the_cpu_follows():
    assert lies_there(cudagrad.ones(2, device="emulated") * cudagrad.tensor(2.0))


def test_what_a_forward_leaves_for_its_rule_is_used_once():
    """cross_entropy makes its gradient in the forward; a second backward of the graph must not meet a used one."""
    x = cudagrad.randn(3, 4, device="emulated", requires_grad=True)
    loss = cudagrad.nn.functional.cross_entropy(x, emulated([0, 3, 1]))
    gradients = [cudagrad.autograd.grad(loss, x, emulated(w), retain_graph=True)[0] for w in (2.0, 2.0, 1.0)]
    assert all(lies_there(g) for g in gradients)
    assert np.allclose(gradients[0].cpu().array, gradients[1].cpu().array, rtol=1e-5)
    assert np.allclose(gradients[0].cpu().array, 2 * gradients[2].cpu().array, rtol=1e-5)


def test_there_is_one_emulated_device():
    assert cudagrad.ones(2, device="emulated:0").device.type == "emulated"
    with pytest.raises(RuntimeError, match="there is one emulated device, index 0"):
        cudagrad.ones(2, device="emulated:1")


def test_random_numbers_are_the_cpus_to_the_last_bit():
    for make in (cudagrad.rand, cudagrad.randn):
        cudagrad.manual_seed(3)
        host = make(1000)
        cudagrad.manual_seed(3)
        assert make(1000, device="emulated").tolist() == host.tolist()


def test_pickles_keep_the_device():
    assert lies_there(pickle.loads(pickle.dumps(emulated([1.0]))))


def test_a_kernels_rule_takes_what_the_ops_own_takes():
    """They stand in for one another, argument for argument, but for those that take any."""
    for name, rule in adapters.FIRST_ORDER.items():
        own = asks(TABLE[name].fused)
        assert takes_any(rule) or asks(rule) == ("run", "xp", *(a for a in own if a != "xp")), name
    for name, forward in adapters.FORWARD.items():
        assert takes_any(forward) or asks(forward) == ("run", *asks(TABLE[name].forward)), name


def takes_any(function):
    return bool(function.__code__.co_flags & inspect.CO_VARARGS)


@needs_compiler
def test_kernels_serve_the_ops_they_are_made_for(monkeypatch):
    from cudagrad.backend import emulator

    ran = []
    run = emulator.run
    monkeypatch.setattr(emulator, "run", lambda plan, extra=(): (ran.append(plan.entry.name), run(plan, extra)))
    x = cudagrad.randn(3, 4, device="emulated", requires_grad=True)
    w = cudagrad.ones(4, device="emulated", requires_grad=True)
    cudagrad.softmax(cudagrad.nn.functional.layer_norm(x, (4,), w), 1).sum().backward()
    backward = ["softmax_backward", "layer_norm_backward", "column_sums"]
    assert ran == ["layer_norm_forward", "softmax_forward", *backward]


@needs_compiler
def test_strict_makes_a_fallback_an_error_that_says_why(monkeypatch):
    x = cudagrad.randn(2, 3, device="emulated")
    w, b = cudagrad.ones(3, device="emulated"), cudagrad.ones(3, dtype=cudagrad.float32, device="emulated")
    mixed = (x.half(), (3,), w.half(), b)
    assert lies_there(cudagrad.nn.functional.layer_norm(*mixed))
    monkeypatch.setattr(cudagrad.config, "STRICT", True)
    with pytest.raises(
        RuntimeError, match="CUDAGRAD_STRICT: layer_norm ran without its kernel: .* weight is float16 and"
    ):
        cudagrad.nn.functional.layer_norm(*mixed)
