"""dropout on the emulated device: the numbers of philox.py to the last bit, and no mask kept."""

import numpy as np
import pytest

import cudagrad
from cudagrad.backend import emulator, philox
from cudagrad.core.tensor import wrap

from .common import DTYPES, askew, launch, needs_compiler, no_fallback

pytestmark = [needs_compiler, no_fallback]

F = cudagrad.nn.functional


def run(x, p, seed, offset, per=1):
    y = np.empty_like(x)
    launch("dropout.cu", "dropped", x=x, y=y, per=per, limit=round(p * 65536), scale=2.0, seed=seed, offset=offset)
    return y


CALLS = [(0, 0), (1, 2), (0xFFFFFFFF, 0xFFFFFFFF), (2**64 - 1, 2**63 + 5), (0x123456789ABCDEF, 2**32)]


@pytest.mark.parametrize(("seed", "offset"), CALLS)
def test_decisions_are_those_of_philox(seed, offset):
    """Past 4096 counters of 8 the row of the counter changes."""
    for n in (1, 7, 8, 255, 257, 33000):
        expected = philox.kept(np, seed, offset, n, 0.3)
        assert np.array_equal(run(np.ones(n, np.float32), 0.3, seed, offset) == 2, expected)


@pytest.mark.parametrize("name", [*DTYPES, "float64"])
@pytest.mark.parametrize("layout", [np.ascontiguousarray, askew])
def test_any_dtype_and_layout_decides_alike(name, layout):
    x = layout(np.ones(1000, DTYPES.get(name, np.dtype("f8"))))
    assert np.array_equal(run(x, 0.5, 7, 3).astype(float) == 2, philox.kept(np, 7, 3, 1000, 0.5))


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("per", [1, 3, 4, 8, 24, 100])
def test_elements_that_share_a_decision_and_a_last_pack_cut_short(name, per):
    x = np.arange(1, 1202).astype(DTYPES[name])
    with emulator.settings(check=True):
        y = run(x, 0.5, 5, 9, per)
    kept = np.repeat(philox.kept(np, 5, 9, -(-x.size // per), 0.5), per)[: x.size]
    assert np.array_equal(y, np.where(kept, x.astype(np.float32) * 2, 0).astype(x.dtype))


@pytest.mark.parametrize("schedule", emulator.SCHEDULES)
def test_tensors_get_what_they_get_on_the_cpu(schedule):
    for function in (F.dropout, F.dropout2d, F.alpha_dropout):
        host = cudagrad.randn(3, 5, 7, 4)
        there = host.to("emulated").requires_grad_()
        host.requires_grad_()
        with emulator.settings(schedule=schedule, check=schedule == "eager"):
            cudagrad.manual_seed(11)
            a = function(host, 0.4)
            cudagrad.manual_seed(11)
            b = function(there, 0.4)
            a.backward(cudagrad.ones_like(a))
            b.backward(cudagrad.ones_like(b))
        assert np.array_equal(a.detach().array, b.detach().cpu().array)
        assert np.array_equal(host.grad.array, there.grad.cpu().array)


def test_probabilities_0_and_1():
    x = np.ones(100, np.float32)
    assert (run(x, 0.0, 1, 1) == 2).all() and not run(x, 1.0, 1, 1).any()


def test_the_gradient_needs_no_mask():
    """Nothing of the input's size is kept: the graph holds numbers only."""
    x = wrap(cudagrad.ones(64, device="emulated").array).requires_grad_()
    y = F.dropout(x, 0.5)
    assert not y.node.saved
    y.backward(cudagrad.ones(64, device="emulated"))
    assert np.array_equal(x.grad.cpu().array, y.detach().cpu().array)
