"""Traced rules: the text they become, and that a step makes no large temporaries."""

import tracemalloc

import numpy as np
import pytest

from cudagrad import optim
from cudagrad.core.tensor import wrap
from cudagrad.optim.elementwise import BLOCK_BYTES, sweep
from cudagrad.optim.program import Program

from .problems import leaf


def test_a_rule_becomes_calls_that_write_into_given_arrays():
    def rule(xp, p, g, m, *, rate):
        m *= 0.5
        m += g * 2.0
        p -= rate * m / (xp.sqrt(g * g) + 1.0)

    program = Program(rule, 3, np.dtype(np.float32), {"rate": 0.1})
    assert program.source.splitlines() == [
        "def run(a0, a1, a2, c0, c1, c2, c3, s0, s1):",
        "    multiply(a2, c0, out=a2)",
        "    multiply(a1, c1, out=s0)",
        "    add(a2, s0, out=a2)",
        "    multiply(c2, a2, out=s0)",
        "    multiply(a1, a1, out=s1)",
        "    sqrt(s1, out=s1)",
        "    add(s1, c3, out=s1)",
        "    divide(s0, s1, out=s1)",
        "    subtract(a0, s1, out=a0)",
    ]
    assert [c.dtype for c in program.constants] == [np.float32] * 4


def test_a_value_made_for_a_slot_alone_is_made_in_it():
    def alone(xp, p, g):
        p[...] = xp.maximum(p, -g)

    def used_again(xp, p, g):
        v = p * g
        p[...] = v
        p += v

    assert "maximum(a0, s0, out=a0)" in Program(alone, 2, np.dtype(np.float64), {}).source
    p, g = np.array([3.0, 4.0]), np.array([2.0, 5.0])
    sweep(used_again, [[p, g]], {})
    assert p.tolist() == [12.0, 40.0]


def test_functions_without_out_keep_what_they_return():
    def rule(xp, p, g):
        up = g > 0
        p[...] = xp.where(up, p + 1.0, xp.where(g < 0, p - 1.0, p))
        g *= 2.0  # is not written back from copies, but may be used as a workplace

    p = np.zeros(3)
    sweep(rule, [[p, np.array([2.0, -3.0, 0.0])]], {})
    assert p.tolist() == [1.0, -1.0, 0.0]


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adagrad", "RMSprop", "ASGD"])
def test_a_step_makes_no_temporary_of_the_size_of_a_block(name):
    options = {"momentum": 0.9} if name in ("SGD", "RMSprop") else {}
    p = leaf(np.ones(300_000, np.float32))
    p.grad = wrap(np.ones(300_000, np.float32))
    optimizer = getattr(optim, name)([p], **options)
    optimizer.step()
    tracemalloc.start()
    optimizer.step()
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < BLOCK_BYTES / 4


def test_two_threads_step_at_the_same_time_on_scratch_of_their_own():
    import threading

    params = [leaf(np.zeros(200_000)) for _ in range(2)]
    optimizers = [optim.Adam([p], lr=0.1) for p in params]

    def run(p, optimizer, sign):
        for _ in range(10):
            p.grad = wrap(np.full(200_000, sign))
            optimizer.step()

    threads = [threading.Thread(target=run, args=row) for row in zip(params, optimizers, (1.0, -1.0))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for p, expected in zip(params, (-1.0, 1.0)):
        np.testing.assert_allclose(p.array, expected, rtol=1e-6)
