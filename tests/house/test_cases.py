"""Every op there is runs while the table of cases runs: by a row of its own, or in the derivative of another's."""

import warnings

import cudagrad
from cudagrad.core.modes import watching
from cudagrad.core.op import TABLE
from cudagrad.core.tensor import Tensor

from ..ops import running as run
from ..ops.cases import load

# Moved between devices by other tests: one device has nothing to move to.
ELSEWHERE = {"to_device"}


def test_every_op_runs_in_the_table_of_cases():
    seen = set()

    def note(op, tensors, options, call):
        seen.add(op.name)
        return call(tensors, options)

    with watching(note), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for rows in load().values():
            for case in rows:
                for given_input in case.inputs:
                    given = given_input.given()
                    _differentiate_twice(case, given)
                    if case.complex:
                        _differentiate_twice(case, run.complexified(given, run.differentiable(case, given), 1))
    missing = sorted(set(TABLE) - seen - ELSEWHERE)
    assert not missing, f"no row of tests/ops/cases runs {', '.join(missing)}"


def _differentiate_twice(case, given):
    places = run.differentiable(case, given) if case.grad else []
    given, made = run.tensors(given, "cpu", places)
    leaves = [made[p] for p in places]
    outs = [r for r in run.flat(run.call(case, given)) if isinstance(r, Tensor) and r.requires_grad]
    for _ in range(case.grad):
        weights = [cudagrad.ones_like(r).requires_grad_() for r in outs]
        if not outs:
            return
        found = cudagrad.autograd.grad(outs, leaves, weights, create_graph=True, allow_unused=True)
        leaves += weights
        outs = [g for g in found if g is not None and g.requires_grad]


def test_a_row_is_of_a_name_that_exists():
    unknown = [name for name, rows in load().items() if not all(callable(c.f) for c in rows)]
    assert not unknown


def test_references_are_of_numpy():
    """No number of a reference comes out of the program that it judges."""
    wrong = []
    for name, rows in load().items():
        for c in rows:
            globals_of = getattr(c.ref, "__globals__", {})
            names = getattr(getattr(c.ref, "__code__", None), "co_names", ())
            wrong += [name for n in names if globals_of.get(n) is cudagrad or isinstance(globals_of.get(n), Tensor)]
    assert not wrong
