"""PyTorch's table of operators with its sample inputs: values and gradients of both engines agree."""

import numpy as np
import pytest

import cudagrad as cg

from .gaps import DIFFERS, MISSING
from .translate import array_of, tensors_in, to_ours

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]
torch = pytest.importorskip("torch", reason="needs the extra peer")
db = pytest.importorskip("torch.testing._internal.common_methods_invocations", reason="needs torch and expecttest")

SAMPLES = 12  # of an operator, spread over its list


def ours(op):
    """Our function of an operator's name: a path below cudagrad, or a method."""
    names = op.name.removeprefix("special.").split(".") if not hasattr(cg, "special") else op.name.split(".")
    found = cg
    for part in names:
        found = getattr(found, part, None)
        if found is None:
            return getattr(cg.Tensor, op.name, None)
    return found


def samples(op):
    dtype = torch.float32 if torch.float32 in op.dtypes else next(iter(sorted(op.dtypes, key=str)))
    wants = op.supports_autograd and dtype.is_floating_point
    all_of_them = list(op.sample_inputs("cpu", dtype, requires_grad=wants))
    return all_of_them[:: max(1, len(all_of_them) // SAMPLES)]


def close(got, want, name):
    got, want = array_of(got), array_of(want)
    assert got.shape == want.shape, f"{name}: shape {got.shape}, PyTorch {want.shape}"
    assert got.dtype == want.dtype, f"{name}: dtype {got.dtype}, PyTorch {want.dtype}"
    scale = max(1.0, float(np.abs(want[np.isfinite(want)]).max(initial=0))) if want.dtype.kind in "fc" else 1
    np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5 * scale, err_msg=name)


def run_both(op, f, sample):
    """Outputs and gradients of one sample by both engines."""
    theirs = (sample.input, *sample.args), sample.kwargs
    mine = to_ours(theirs, torch)
    want = op.op(*theirs[0], **theirs[1])
    got = f(*mine[0], **mine[1])
    wants, gots = tensors_in(want), tensors_in(got)
    assert len(wants) == len(gots)
    for i, (a, b) in enumerate(zip(gots, wants)):
        close(a, b, f"output {i}")
    leaves = [(a, b) for a, b in zip(tensors_in(mine), tensors_in(theirs)) if b.requires_grad]
    outs = [(a, b) for a, b in zip(gots, wants) if b.requires_grad]
    if not leaves or not outs:
        return
    seeds = [np.random.default_rng(i).standard_normal(b.shape).astype("f") for i, (_, b) in enumerate(outs)]
    gs = torch.autograd.grad([b for _, b in outs], [b for _, b in leaves], [torch.tensor(s) for s in seeds], allow_unused=True)
    hs = cg.autograd.grad([a for a, _ in outs], [a for a, _ in leaves], [cg.tensor(s) for s in seeds], allow_unused=True)
    for i, (g, h) in enumerate(zip(gs, hs)):
        if g is not None and h is not None:
            close(h, g, f"gradient {i}")


def label(op):
    return op.name + ("." + op.variant_test_name if op.variant_test_name else "")


@pytest.mark.parametrize("op", db.op_db, ids=label)
def test_an_operator_agrees_with_pytorch(op):
    f = ours(op)
    if label(op) in MISSING or op.name in MISSING:
        assert f is None or label(op) in MISSING, f"{label(op)} is there now: take it off the list"
        return
    if label(op) in DIFFERS:
        pytest.skip(DIFFERS[label(op)])
    assert f is not None, f"{label(op)} is missing"
    for sample in samples(op):
        run_both(op, f, sample)
