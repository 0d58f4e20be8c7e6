"""What the tests of optimizers share: parameters of all kinds, and the same gradients for us and for others."""

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


def gradients(step, arrays, seed=100):
    """Gradients of a step: of both signs, with zeros, and for the second parameter none in every third step."""
    rng = np.random.default_rng([seed, step])
    grads = []
    for i, a in enumerate(arrays):
        g = rng.standard_normal(a.shape) + 0.3 * np.sin(a.real)
        if a.dtype.kind == "c":
            g = g + 1j * rng.standard_normal(a.shape)
        g = np.asarray(g * (rng.random(a.shape) > 0.1)).astype(a.dtype)
        grads.append(None if i == 1 and step % 3 == 2 else g)
    return grads


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
