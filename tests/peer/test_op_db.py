"""PyTorch's table of operators: values, derivatives, forms and errors of both engines agree, or gaps.py says why."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra peer")
pytest.importorskip("expecttest", reason="PyTorch's tables need it")

from . import both, gaps  # noqa: E402

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]

OPS = both.tables().ops
LABELS = [both.label(op) for op in OPS]


@pytest.mark.parametrize("op", OPS, ids=both.label)
def test_an_operator_agrees_with_pytorch(op):
    label = both.label(op)
    with np.errstate(all="ignore"):
        found = both.failures(op)
    if found is None:
        assert label in gaps.missing(), f"{label} is missing"
        return
    assert label not in gaps.missing(), f"{label} is there now: take it off the list"
    known = gaps.DIFFERS.get(label, {})
    new = {name: what for name, what in found.items() if name not in known}
    assert not new, f"{label}:\n" + "\n".join(f"{name}: {what}" for name, what in new.items())
    assert not set(known) - set(found), f"{label} agrees now in {set(known) - set(found)}: take it off the list"


def test_the_lists_name_operators_of_the_table():
    listed = [*gaps.missing(), *gaps.DIFFERS, *gaps.RANDOM, *gaps.UNDEFINED, *gaps.INVARIANT]
    assert not set(listed) - set(LABELS)
