"""PyTorch's table of optimizers with its settings: parameters and state of both engines agree after every step."""

import re
import warnings

import pytest

torch = pytest.importorskip("torch", reason="needs the extra peer")
pytest.importorskip("expecttest", reason="PyTorch's tables need it")

import cudagrad as cg  # noqa: E402

from . import both, gaps  # noqa: E402
from .translate import found, rewritten, to_ours  # noqa: E402

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]

OPTIMIZERS = both.tables().optimizers
STEPS = 6


def _name(info):
    return info.optim_cls.__name__


def _shapes(info):
    return ((4, 3), (3, 2)) if _name(info) == "Muon" else ((4, 3), (3,), ())


def _parameters(info, dtype):
    generator = torch.Generator().manual_seed(0)
    made = [torch.randn(s, generator=generator, dtype=dtype).requires_grad_() for s in _shapes(info)]
    return made, to_ours(made)


def agree(info, given, dtype):
    """Raise where a run of a few steps with given gradients differs in a parameter, the loss or the state."""
    theirs_at, mine_at = _parameters(info, dtype)
    theirs = info.optim_cls(theirs_at, **given.kwargs)
    mine = found(f"torch.optim.{_name(info)}")(mine_at, **to_ours(given.kwargs))
    step_of = _closed_step if info.step_requires_closure else _step
    # one step of LBFGS in float32: from then on its line of descent is a matter of rounding
    for step in range(1 if info.step_requires_closure and dtype is torch.float32 else STEPS):
        grads = [both.random_like(p, 10 * step + i) for i, p in enumerate(theirs_at)]
        got, want = step_of(cg, mine, mine_at, to_ours(grads)), step_of(torch, theirs, theirs_at, grads)
        both.all_close(None, got, want, f"{given.desc}: loss of step {step}")
        for i, (p, q) in enumerate(zip(mine_at, theirs_at)):
            both.close(None, p, q, f"{given.desc}: parameter {i} after step {step}")
        if not info.step_requires_closure or (step == 0 and dtype is torch.float64):
            # LBFGS remembers differences of gradients, which near the minimum are all rounding
            _same_state(mine.state_dict(), theirs.state_dict(), given.desc)


def _closed_step(engine, optimizer, parameters, targets):
    return optimizer.step(_closure(engine, parameters, targets))


def _step(engine, optimizer, parameters, grads):
    for p, g in zip(parameters, grads):
        p.grad = g
    return optimizer.step()


def _closure(engine, parameters, targets):
    """The loss of a bowl around the targets, with its gradients: what LBFGS asks for again and again."""

    def closure():
        for p in parameters:
            p.grad = None
        loss = sum(((p - t) ** 2).sum() * (1 + i) for i, (p, t) in enumerate(zip(parameters, targets)))
        loss.backward()
        return loss

    return closure


def _same_state(mine, theirs, what):
    assert mine.keys() == theirs.keys() and mine["state"].keys() == theirs["state"].keys(), what
    for i, want in theirs["state"].items():
        want = {key: value for key, value in want.items() if key != "al"}  # scratch memory of PyTorch's LBFGS
        both.all_keys(sorted(mine["state"][i]), sorted(want), f"{what}: state {i}")
        for key, value in want.items():
            got = mine["state"][i][key]
            if isinstance(got, float) or (isinstance(got, list) and got and isinstance(got[0], float)):
                value = (
                    [float(v) for v in value] if isinstance(value, list) else float(value)
                )  # LBFGS keeps numbers where PyTorch's keeps tensors of one
            both.all_close(None, got, value, f"{what}: state {i} {key}")
    for got, want in zip(mine["param_groups"], theirs["param_groups"], strict=True):
        both.all_keys(got, want, f"{what}: group")
        for key, value in want.items():
            both.all_close(None, got[key], value, f"{what}: group {key}")


@pytest.mark.parametrize("info", OPTIMIZERS, ids=_name)
def test_an_optimizer_agrees_with_pytorch(info):
    if _name(info) in gaps.OPTIMIZERS_MISSING:
        assert found(f"torch.optim.{_name(info)}") is None, f"{_name(info)} is there now: take it off the list"
        return
    if _name(info) in gaps.OPTIMIZERS_DIFFER:
        with pytest.raises(both.Disagreement):
            for given in info.optim_inputs_func(device="cpu"):
                agree(info, given, torch.float64)
        return
    for given in info.optim_inputs_func(device="cpu"):
        for dtype in (torch.float64, torch.float32):
            agree(info, given, dtype)
        for flag in info.supported_impls:
            if flag in ("foreach", "fused") and not any(isinstance(v, torch.Tensor) for v in given.kwargs.values()):
                agree(info, _with(given, flag), torch.float64)


def _with(given, flag):
    made = type(given)(given.params, {**given.kwargs, flag: True}, f"{given.desc}, {flag}")
    return made


@pytest.mark.parametrize("info", OPTIMIZERS, ids=_name)
def test_an_optimizer_refuses_what_pytorchs_refuses(info):
    if _name(info) in gaps.OPTIMIZERS_MISSING or info.optim_error_inputs_func is None:
        return
    for case in info.optim_error_inputs_func(device="cpu", dtype=torch.float32):
        given = case.optimizer_error_input
        params = [torch.ones(3, requires_grad=True)] if given.params is None else given.params
        if str(case.error_on).endswith("STEP_ERROR"):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # some of these are warnings
                found(f"torch.optim.{_name(info)}")(to_ours(params), **to_ours(given.kwargs))
        except case.error_type as error:
            assert re.search(case.error_regex, str(error)), f"{given.desc}: says {error}, PyTorch {case.error_regex!r}"
        else:
            raise both.Disagreement(f"{given.desc}: accepted, PyTorch raises {case.error_regex!r}")


@pytest.mark.parametrize("info", OPTIMIZERS, ids=_name)
def test_a_schedule_gives_the_rates_of_pytorchs(info):
    if _name(info) in gaps.OPTIMIZERS_MISSING:
        return
    for schedulers in info.scheduler_inputs:
        theirs_at, mine_at = _parameters(info, torch.float64)
        theirs, mine = info.optim_cls(theirs_at, lr=0.1), found(f"torch.optim.{_name(info)}")(mine_at, lr=0.1)
        pairs = [(make(theirs), _ours(make)(mine)) for make in schedulers]
        for step in range(12):
            for a, b in pairs:
                for scheduler in (a, b):
                    plateau = type(scheduler).__name__ == "ReduceLROnPlateau"
                    scheduler.step(1.0) if plateau else scheduler.step()
            rates = [[float(g["lr"]) for g in o.param_groups] for o in (mine, theirs)]
            assert rates[0] == pytest.approx(rates[1], rel=1e-12), f"{[type(a).__name__ for a, _ in pairs]} step {step}"


def _ours(make):
    """A maker of a schedule as the table has it, with our classes under the names that it uses."""
    made = rewritten(make, cg)
    for name in make.__code__.co_names:
        ours = getattr(cg.optim.lr_scheduler, name, None)
        if ours is not None:
            made.__globals__[name] = ours
    return made
