"""PyTorch's table of modules with its inputs: outputs, gradients, buffers and errors of both engines agree."""

import re

import pytest

torch = pytest.importorskip("torch", reason="needs the extra peer")
pytest.importorskip("expecttest", reason="PyTorch's tables need it")

import cudagrad as cg  # noqa: E402

from . import both, gaps  # noqa: E402
from .translate import found, tensors_in, to_ours  # noqa: E402

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]

MODULES = both.tables().modules


def agree(info, training):
    """Raise where a module, made and called as PyTorch's table says, differs."""
    ours = found(f"torch.{info.name}")
    inputs = info.module_inputs_func(info, device="cpu", dtype=torch.float64, requires_grad=True, training=training)
    for given in inputs:
        if given.forward_input is None:
            continue
        _agree(info, ours, given, training)


def _agree(info, ours, given, training):
    told = f"{given.desc or given.constructor_input.args} {given.constructor_input.kwargs}"[:200]
    make = given.constructor_input
    kwargs = dict(make.kwargs)
    theirs = info.module_cls(*make.args, **kwargs).double().train(training)
    args, options = to_ours((make.args, kwargs))
    mine = ours(*args, **options).double().train(training)
    call = given.forward_input
    inputs, mine_inputs = (call.args, call.kwargs), to_ours((call.args, call.kwargs))
    if info.is_lazy:
        with torch.no_grad(), cg.no_grad():
            theirs(*inputs[0], **inputs[1])
            mine(*mine_inputs[0], **mine_inputs[1])
    both.all_keys(mine.state_dict(), theirs.state_dict(), told)
    mine.load_state_dict(to_ours(dict(theirs.state_dict())))
    assert repr(mine) == repr(theirs), f"{told}: repr\n{mine!r}\n{theirs!r}"
    torch.manual_seed(0)
    cg.manual_seed(0)
    want, got = theirs(*inputs[0], **inputs[1]), mine(*mine_inputs[0], **mine_inputs[1])
    if info.name in gaps.RANDOM_MODULES and training:
        return both.facts_agree(got, want)
    wants, gots = tensors_in(want), tensors_in(got)
    both.all_close(None, gots, wants, f"{told}: output")
    leaves = both.unique([t for t in tensors_in(inputs) if t.requires_grad] + list(theirs.parameters()))
    mine_leaves = both.unique([t for t in tensors_in(mine_inputs) if t.requires_grad] + list(mine.parameters()))
    seeds = [both.random_like(w, i) for i, w in enumerate(wants) if w.requires_grad]
    if not seeds or not leaves:
        return
    gs = torch.autograd.grad([w for w in wants if w.requires_grad], leaves, seeds, allow_unused=True)
    hs = cg.autograd.grad([g for g in gots if g.requires_grad], mine_leaves, to_ours(seeds), allow_unused=True)
    both.matched(None, hs, gs, leaves, f"{told}: gradient")
    after = {k: v for k, v in theirs.state_dict().items()}
    for name, value in mine.state_dict().items():
        both.close(None, value, after[name], f"{told}: {name} after the call")


def refuses(info, training):
    """Raise where an input that PyTorch's module refuses is taken, or refused in other words."""
    for case in info.module_error_inputs_func(
        info, device="cpu", dtype=torch.float32, requires_grad=False, training=training
    ):
        given = case.module_error_input
        make, call = given.constructor_input, given.forward_input
        told = f"{make.args} {make.kwargs}"[:200]
        args, kwargs = to_ours((make.args, make.kwargs))
        try:
            mine = found(f"torch.{info.name}")(*args, **kwargs)
            if call is not None:
                args, kwargs = to_ours((call.args, call.kwargs))
                mine(*args, **kwargs)
        except case.error_type as error:
            if not re.search(case.error_regex, str(error)):
                raise both.Disagreement(f"{told}: says {error}, PyTorch {case.error_regex!r}") from None
        else:
            raise both.Disagreement(f"{told}: accepted, PyTorch raises {case.error_regex!r}")


@pytest.mark.parametrize("training", (True, False), ids=("train", "eval"))
@pytest.mark.parametrize("info", MODULES, ids=lambda info: info.name)
def test_a_module_agrees_with_pytorch(info, training):
    if info.name in gaps.MODULES_MISSING:
        assert found(f"torch.{info.name}") is None, f"{info.name} is there now: take it off the list"
        return
    agree(info, training)
    if training and info.module_error_inputs_func is not None:
        refuses(info, training)
