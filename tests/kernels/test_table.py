"""The table of ops on the CUDA device, over the double of CuPy: the CPU's values and gradients, and results that stay.

``CUDAGRAD_TEST_DEVICES=cuda pytest tests/ops/test_ops.py`` puts all of the table's checks there, with a GPU or without.
"""

import warnings

import numpy as np
import pytest

import cudagrad as cg
from cudagrad.core.tensor import Tensor

from ..double import installed
from ..ops import running as run
from ..ops.cases import load

ROWS = [(name, c) for name, rows in load().items() for c in rows if c.inputs]


@pytest.fixture(scope="module")
def double():
    with installed() as made:
        yield made


def slopes(result):
    """A gradient for a result: numbers between 1 and 2 that differ."""
    values = 1 + np.arange(result.numel()) * 0.618 % 1
    return cg.from_numpy(values.reshape(result.shape)).to(result.device, result.dtype)


def results(case, given, device):
    """The results of a call and its gradients, as arrays; each result must lie on the device that it was asked of."""
    cg.manual_seed(1)
    places = run.differentiable(case, given) if case.grad else []
    given, made = run.tensors(given, device, places)
    leaves = [made[p] for p in places]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = run.flat(run.call(case, given))
    tensors = [r for r in found if isinstance(r, Tensor)]
    outs = [r for r in tensors if r.requires_grad]
    asked = bool(made) and not case.name.endswith((".cpu", "numpy"))
    assert not asked or all(r.is_cuda == (device == "cuda") for r in tensors), case.name
    if outs and leaves:
        found += cg.autograd.grad(outs, leaves, [slopes(r) for r in outs], allow_unused=True)
    return [None if r is None else run.numpy_of(r) for r in found]


@pytest.mark.parametrize("place", range(0, len(ROWS), 200))
def test_a_part_of_the_table_is_as_on_the_cpu(double, place):
    for name, case in ROWS[place : place + 200]:
        given = case.inputs[0].given(0, np.dtype("f4"))
        for got, expected in zip(results(case, given, "cuda"), results(case, given, "cpu"), strict=True):
            assert (got is None) == (expected is None), name
            if got is not None:
                run.assert_close(got, expected, 2e-5, name)
