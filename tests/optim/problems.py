"""What the tests of optimizers share: parameters of all kinds, and the same gradients for us and for others."""

import functools
import itertools

import numpy as np

from cudagrad.core.tensor import wrap

# Small ones that are gathered, one of a block and one that spans two, and a 0-d one.
SHAPES = [(3, 4), (5,), (), (1, 9000), (137, 300)]


def leaf(array):
    """A tensor that requires grad over a copy of ``array``, in its memory order."""
    return wrap(np.array(array, order="K")).requires_grad_()


def start(seed=0, shapes=SHAPES, dtype=np.float64):
    """Arrays to begin with."""
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.standard_normal(shape)).astype(dtype) for shape in shapes]


def gradients(step, arrays):
    """Gradients of a step: of both signs, with zeros, and for the second parameter none in every third step."""
    grads = [_gradient(step, i, a.shape, a.dtype) for i, a in enumerate(arrays)]
    if step % 3 == 2 and len(grads) > 1:
        grads[1] = None
    return grads


@functools.lru_cache(1000)
def _gradient(step, i, shape, dtype):
    rng = np.random.default_rng([100, step, i])
    g = rng.standard_normal(shape) + 0.2
    if dtype.kind == "c":
        g = g + 1j * rng.standard_normal(shape)
    return np.asarray(g * (rng.random(shape) > 0.1)).astype(dtype)


def descend(optimizer, params, arrays, steps):
    """Run ``steps`` steps on the gradients of ``arrays``."""
    for step in range(steps):
        for p, g in zip(params, gradients(step, arrays)):
            p.grad = None if g is None else wrap(g)
        optimizer.step()


def combinations(**choices):
    """All dicts that take one value of each keyword's list."""
    return [dict(zip(choices, values)) for values in itertools.product(*choices.values())]


def name_of(options):
    """A test's name for a dict of options."""
    return "-".join(f"{k}={v}" for k, v in options.items()) or "defaults"
