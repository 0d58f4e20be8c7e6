"""Each schedule against its closed form, the warnings and errors, saving and loading, and PyTorch."""

import math

import numpy as np
import pytest

from cudagrad.core.tensor import wrap
from cudagrad.optim import SGD, Adam, lr_scheduler
from cudagrad.optim.swa_utils import SWALR

from .problems import combinations, leaf, name_of

BASE = 0.05


def optimizer_of(kind=SGD, lr=BASE, **options):
    """An optimizer of two groups, the second at twice the rate."""
    groups = [{"params": [leaf(np.ones(2))]}, {"params": [leaf(np.ones(2))], "lr": 2 * lr}]
    return kind(groups, lr=lr, **options)


def rates(scheduler, steps, key="lr"):
    """The first group's value at construction and after each of ``steps`` steps."""
    optimizer = scheduler.optimizer
    seen = [optimizer.param_groups[0][key]]
    for _ in range(steps):
        optimizer.step()
        scheduler.step()
        seen.append(optimizer.param_groups[0][key])
    return seen


def cosine(share):
    return (1 + math.cos(math.pi * share)) / 2


def warm_restarts(epoch, first=4, factor=2, low=0.001):
    length = first
    while epoch >= length:
        epoch, length = epoch - length, length * factor
    return low + (BASE - low) * cosine(epoch / length)


def triangle(epoch, up=3, down=5):
    epoch %= up + down
    return epoch / up if epoch <= up else 1 - (epoch - up) / down


def cyclic(epoch, scale):
    return 0.01 + 0.09 * triangle(epoch) * scale(1 + epoch // 8)


def one_cycle(epoch, total=31, up=0.3):
    top, first = 0.5, 0.5 / 25
    peak = up * total - 1
    if epoch <= peak:
        return top + (first - top) * cosine(epoch / peak)
    return first / 1e4 + (top - first / 1e4) * cosine((epoch - peak) / (total - 1 - peak))


CLOSED = [
    ("LambdaLR", {"lr_lambda": lambda e: 0.9**e}, lambda e: BASE * 0.9**e),
    ("MultiplicativeLR", {"lr_lambda": lambda e: 1 - 1 / (e + 2)}, lambda e: BASE * 2 / (e + 2)),
    ("StepLR", {"step_size": 7, "gamma": 0.5}, lambda e: BASE * 0.5 ** (e // 7)),
    ("MultiStepLR", {"milestones": [20, 5, 20]}, lambda e: BASE * 0.1 ** ((e >= 5) + 2 * (e >= 20))),
    ("ConstantLR", {"factor": 0.25, "total_iters": 6}, lambda e: BASE * (1 if e >= 6 else 0.25)),
    ("LinearLR", {}, lambda e: BASE * (1 / 3 + 2 / 3 * min(e, 5) / 5)),
    ("LinearLR", {"start_factor": 1.0, "end_factor": 0.1, "total_iters": 9}, lambda e: BASE * (1 - 0.1 * min(e, 9))),
    ("ExponentialLR", {"gamma": 0.9}, lambda e: BASE * 0.9**e),
    ("PolynomialLR", {"total_iters": 12, "power": 2.0}, lambda e: BASE * (1 - min(e, 12) / 12) ** 2),
    ("CosineAnnealingLR", {"T_max": 8, "eta_min": 0.001}, lambda e: 0.001 + (BASE - 0.001) * cosine(e / 8)),
    ("CosineAnnealingLR", {"T_max": 1}, lambda e: BASE * cosine(e)),
    ("CosineAnnealingWarmRestarts", {"T_0": 4, "T_mult": 2, "eta_min": 0.001}, warm_restarts),
    (
        "CyclicLR",
        {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 3, "step_size_down": 5},
        lambda e: cyclic(e, lambda c: 1),
    ),
    (
        "CyclicLR",
        {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 3, "step_size_down": 5, "mode": "triangular2"},
        lambda e: cyclic(e, lambda c: 0.5 ** (c - 1)),
    ),
    (
        "CyclicLR",
        {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 3, "step_size_down": 5, "mode": "exp_range", "gamma": 0.9},
        lambda e: 0.01 + 0.09 * triangle(e) * 0.9**e,
    ),
    ("OneCycleLR", {"max_lr": 0.5, "total_steps": 31}, one_cycle),
]


@pytest.mark.parametrize("name,options,closed", CLOSED, ids=[f"{i}-{row[0]}" for i, row in enumerate(CLOSED)])
def test_thirty_steps_follow_the_closed_form(name, options, closed):
    scheduler = getattr(lr_scheduler, name)(optimizer_of(momentum=0.9), **options)
    assert rates(scheduler, 30) == pytest.approx([closed(e) for e in range(31)], rel=1e-9, abs=1e-15)


def test_every_group_has_its_own_rate():
    scheduler = lr_scheduler.ExponentialLR(optimizer_of(), 0.5)
    rates(scheduler, 2)
    assert scheduler.get_last_lr() == pytest.approx([BASE / 4, BASE / 2]) and scheduler.base_lrs == [BASE, 2 * BASE]


def test_cosine_annealing_rises_again_after_t_max():
    seen = rates(lr_scheduler.CosineAnnealingLR(optimizer_of(), T_max=5), 10)
    assert seen[5] == pytest.approx(0, abs=1e-12) and seen[10] == pytest.approx(BASE)


def test_one_cycle_begins_at_a_25th_and_ends_at_a_10000th_of_that():
    seen = rates(lr_scheduler.OneCycleLR(optimizer_of(momentum=0.9), max_lr=0.25, total_steps=10), 9)
    assert seen[0] == pytest.approx(0.01) and max(seen) == pytest.approx(0.25, rel=0.02)
    assert seen[-1] == pytest.approx(1e-6)


def test_one_cycle_of_three_phases_comes_down_to_where_it_began():
    options = {"max_lr": 1.0, "total_steps": 21, "pct_start": 0.4, "anneal_strategy": "linear", "three_phase": True}
    seen = rates(lr_scheduler.OneCycleLR(optimizer_of(momentum=0.9), **options), 20)
    up, down = 0.4 * 21 - 1, 2 * 0.4 * 21 - 2
    expected = np.interp(np.arange(21), [0, up, down, 20], [1 / 25, 1.0, 1 / 25, 1 / 25 / 1e4])
    assert seen == pytest.approx(expected)


@pytest.mark.parametrize("kind", [SGD, Adam])
def test_cycles_move_momentum_against_the_rate(kind):
    options = {"momentum": 0.5} if kind is SGD else {}
    optimizer = optimizer_of(kind, **options)
    scheduler = lr_scheduler.CyclicLR(optimizer, 0.01, 0.1, step_size_up=3, step_size_down=5)
    key = "momentum" if kind is SGD else "betas"
    seen = [v if kind is SGD else v[0] for v in rates(scheduler, 12, key)]
    assert seen == pytest.approx([0.9 - 0.1 * triangle(e) for e in range(13)])


def test_plateau_reduces_at_the_third_call_that_does_not_improve_with_patience_one():
    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer_of(), patience=1, factor=0.5)
    seen = []
    for metric in [1.0, 1.0, 1.0, 1.0, 1.0, 0.5]:
        scheduler.step(metric)
        seen.append(scheduler.get_last_lr()[0] / BASE)
    assert seen == pytest.approx([1, 1, 0.5, 0.5, 0.25, 0.25])


def test_plateau_wants_a_relative_improvement_of_the_threshold():
    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer_of(), patience=0, factor=0.5, threshold=1e-4)
    scheduler.step(1.0)
    scheduler.step(0.9999)  # not below 1 - 1e-4
    assert scheduler.get_last_lr()[0] == pytest.approx(BASE / 2)
    scheduler.step(0.99)
    assert scheduler.get_last_lr()[0] == pytest.approx(BASE / 2)


def test_plateau_counts_nothing_while_it_cools_down_and_stops_at_the_lowest_rate():
    options = {"patience": 0, "factor": 0.1, "cooldown": 2, "min_lr": 0.001, "mode": "max", "threshold_mode": "abs"}
    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer_of(), **options)
    seen = []
    for _ in range(8):
        scheduler.step(1.0)
        seen.append(round(scheduler.get_last_lr()[0], 6))
    assert seen == [0.05, 0.005, 0.005, 0.005, 0.001, 0.001, 0.001, 0.001]


def test_sequential_begins_each_schedule_at_its_own_start():
    optimizer = optimizer_of()
    parts = [lr_scheduler.ConstantLR(optimizer, 0.1, total_iters=100), lr_scheduler.ExponentialLR(optimizer, 0.9)]
    seen = rates(lr_scheduler.SequentialLR(optimizer, parts, milestones=[3]), 6)
    assert seen == pytest.approx([BASE * f for f in (0.1, 0.1, 0.1, 1, 0.9, 0.81, 0.729)])


def test_chained_schedules_multiply():
    optimizer = optimizer_of()
    parts = [lr_scheduler.ConstantLR(optimizer, 0.1, total_iters=2), lr_scheduler.ExponentialLR(optimizer, 0.9)]
    seen = rates(lr_scheduler.ChainedScheduler(parts, optimizer), 3)
    assert seen == pytest.approx([BASE * f for f in (0.1, 0.09, 0.81, 0.729)])


def test_swa_rates_go_from_the_present_one_to_swa_lr_by_a_cosine():
    seen = rates(SWALR(optimizer_of(), swa_lr=0.5, anneal_epochs=4), 6)
    assert seen == pytest.approx([BASE + (0.5 - BASE) * (1 - cosine(min(e, 4) / 4)) for e in range(7)])


def test_a_rate_that_is_a_tensor_is_filled_and_the_last_rates_are_copies():
    lr = wrap(np.array(0.5, np.float32))
    optimizer = SGD([leaf(np.ones(1))], lr=lr)
    scheduler = lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] is lr and float(lr.array) == 0.25
    (last,) = scheduler.get_last_lr()
    assert last is not lr and float(last.array) == 0.25


# ---- warnings and errors


def test_stepping_the_schedule_before_the_optimizer_warns_once_and_changes_nothing():
    scheduler = lr_scheduler.StepLR(optimizer_of(), 1)
    with pytest.warns(UserWarning, match=r"Detected call of `lr_scheduler.step\(\)` before `optimizer.step\(\)`"):
        scheduler.step()
    scheduler.step()
    assert scheduler.get_last_lr()[0] == pytest.approx(BASE / 100)


def test_an_optimizer_step_that_was_replaced_is_noticed():
    optimizer = optimizer_of()
    scheduler = lr_scheduler.StepLR(optimizer, 1)
    optimizer.step = lambda: None
    with pytest.warns(UserWarning, match=r"Seems like `optimizer.step\(\)` has been overridden"):
        scheduler.step()


def test_an_epoch_is_deprecated_and_uses_the_closed_form():
    optimizer = optimizer_of()
    scheduler = lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
    optimizer.step()
    with pytest.warns(UserWarning, match=r"The epoch parameter in `scheduler.step\(\)` was not necessary"):
        scheduler.step(5)
    assert scheduler.get_last_lr()[0] == pytest.approx(BASE / 4)


def test_get_lr_outside_a_step_warns():
    scheduler = lr_scheduler.ExponentialLR(optimizer_of(), 0.9)
    with pytest.warns(UserWarning, match=r"please use `get_last_lr\(\)`"):
        scheduler.get_lr()


ERRORS = [
    (lambda o: lr_scheduler.StepLR(3, 1), TypeError, "int is not an Optimizer"),
    (
        lambda o: lr_scheduler.StepLR(o, 1, last_epoch=3),
        KeyError,
        "param 'initial_lr' is not specified in param_groups",
    ),
    (lambda o: lr_scheduler.LambdaLR(o, [abs]), ValueError, "Expected 2 lr_lambdas, but got 1"),
    (lambda o: lr_scheduler.MultiplicativeLR(o, 3), TypeError, "lr_lambda should be a function, but got int"),
    (lambda o: lr_scheduler.ConstantLR(o, 2.0), ValueError, "Constant multiplicative factor expected to be between"),
    (lambda o: lr_scheduler.LinearLR(o, 0.0), ValueError, "Starting multiplicative factor expected to be greater"),
    (lambda o: lr_scheduler.LinearLR(o, end_factor=2), ValueError, "Ending multiplicative factor expected to be"),
    (lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 0), ValueError, "Expected positive integer T_0, but got 0"),
    (lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 1, 0), ValueError, "Expected integer T_mult >= 1, but got"),
    (lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 2).step(-1), ValueError, "Expected non-negative epoch"),
    (lambda o: lr_scheduler.CyclicLR(o, 0.1, [0.2]), ValueError, "max_lr must have the same length as optimizer.par"),
    (lambda o: lr_scheduler.CyclicLR(o, 0.1, 0.2, mode="x"), ValueError, "mode is invalid and scale_fn is None"),
    (lambda o: lr_scheduler.OneCycleLR(o, 0.1), ValueError, "You must define either total_steps OR"),
    (lambda o: lr_scheduler.OneCycleLR(o, 0.1, 0), ValueError, "Expected positive integer total_steps, but got 0"),
    (lambda o: lr_scheduler.OneCycleLR(o, 0.1, 9, pct_start=2), ValueError, "Expected float between 0 and 1 pct_start"),
    (lambda o: lr_scheduler.OneCycleLR(o, 0.1, 9, anneal_strategy="x"), ValueError, "anneal_strategy must be one of"),
    (lambda o: lr_scheduler.ReduceLROnPlateau(o, factor=1.0), ValueError, "Factor should be < 1.0."),
    (lambda o: lr_scheduler.ReduceLROnPlateau(o, "x"), ValueError, "mode x is unknown!"),
    (lambda o: lr_scheduler.ReduceLROnPlateau(o, threshold_mode="x"), ValueError, "threshold mode x is unknown!"),
    (lambda o: lr_scheduler.ReduceLROnPlateau(o, min_lr=[1]), ValueError, "expected 2 min_lrs, got 1"),
    (lambda o: lr_scheduler.SequentialLR(o, [], []), ValueError, "SequentialLR expects at least one scheduler, but"),
    (lambda o: lr_scheduler.SequentialLR(o, [3], []), TypeError, "SequentialLR at index 0 should have `optimizer` as"),
    (lambda o: lr_scheduler.ChainedScheduler([]), ValueError, "ChainedScheduler expects at least one scheduler to be"),
    (lambda o: SWALR(o, 0.1, anneal_epochs=-1), ValueError, "anneal_epochs must be equal or greater than 0, got -1"),
]


@pytest.mark.parametrize("make,kind,first", ERRORS, ids=[row[2][:40] for row in ERRORS])
def test_wrong_options_are_refused_in_pytorchs_words(make, kind, first):
    with pytest.raises(kind) as caught:
        make(optimizer_of(momentum=0.9))
    assert first in str(caught.value)


@pytest.mark.peer
@pytest.mark.parametrize("row", range(len(ERRORS)), ids=[row[2][:40] for row in ERRORS])
def test_the_words_are_pytorchs(row, monkeypatch):
    torch = pytest.importorskip("torch")
    make, kind, _ = ERRORS[row]
    with pytest.raises(kind) as mine:
        make(optimizer_of(momentum=0.9))
    monkeypatch.setitem(make.__globals__, "lr_scheduler", torch.optim.lr_scheduler)
    monkeypatch.setitem(make.__globals__, "SWALR", torch.optim.swa_utils.SWALR)
    with pytest.raises(kind) as theirs:
        make(their_optimizer(torch))
    assert str(mine.value) == str(theirs.value)


def test_momentum_cannot_be_cycled_where_there_is_none():
    from cudagrad.optim import Adagrad

    for name, options in (("CyclicLR", {"base_lr": 0.1, "max_lr": 1}), ("OneCycleLR", {"max_lr": 1, "total_steps": 3})):
        with pytest.raises(ValueError, match="optimizer must support momentum or beta1 with `cycle_momentum` option"):
            getattr(lr_scheduler, name)(optimizer_of(Adagrad), **options)
        getattr(lr_scheduler, name)(optimizer_of(Adagrad), **options, cycle_momentum=False)


def test_one_cycle_refuses_a_step_too_many():
    optimizer = optimizer_of(momentum=0.9)
    scheduler = lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=2)
    rates(scheduler, 2)
    with pytest.raises(ValueError, match="Tried to step 3 times. The specified number of total steps is 2"):
        scheduler.step()


def test_the_parts_of_a_schedule_belong_to_one_optimizer():
    a, b = optimizer_of(), optimizer_of()
    parts = [lr_scheduler.StepLR(a, 1), lr_scheduler.StepLR(b, 1)]
    with pytest.raises(
        ValueError, match="expects all schedulers to belong to the same optimizer, but got scheduler StepLR"
    ):
        lr_scheduler.SequentialLR(a, parts, [1])
    with pytest.raises(ValueError, match="number of milestone points, but got number of schedulers 1"):
        lr_scheduler.SequentialLR(a, parts[:1], [1])
    plateau = lr_scheduler.ReduceLROnPlateau(a)
    with pytest.raises(ValueError, match="does not support `ReduceLROnPlateau` scheduler"):
        lr_scheduler.ChainedScheduler([plateau])


def test_a_group_added_later_needs_min_rates_of_its_own():
    optimizer = optimizer_of()
    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, min_lr=[0.0, 0.0])
    optimizer.add_param_group({"params": [leaf(np.ones(1))]})
    scheduler.step(1.0)
    with pytest.raises(RuntimeError, match=r"The number of param groups in the `optimizer` \(3\) differs from when"):
        scheduler.step(1.0)


def test_a_schedule_of_the_users_own_runs_by_its_get_lr():
    class Halving(lr_scheduler._LRScheduler):
        def get_lr(self):
            return [base / 2**self.last_epoch for base in self.base_lrs]

    assert rates(Halving(optimizer_of()), 2) == pytest.approx([BASE, BASE / 2, BASE / 4])


# ---- saving and loading

SAVED = CLOSED + [
    ("ReduceLROnPlateau", {"patience": 1}, None),
]


@pytest.mark.parametrize("name,options,_", SAVED, ids=[f"{i}-{row[0]}" for i, row in enumerate(SAVED)])
def test_a_loaded_schedule_goes_on_where_the_saved_one_was(name, options, _):
    def run(scheduler, steps):
        for _ in range(steps):
            scheduler.optimizer.step()
            scheduler.step(*([1.0] if name == "ReduceLROnPlateau" else []))
        return scheduler.get_last_lr()

    first = getattr(lr_scheduler, name)(optimizer_of(momentum=0.9), **options)
    run(first, 4)
    saved, saved_optimizer = first.state_dict(), first.optimizer.state_dict()
    second = getattr(lr_scheduler, name)(optimizer_of(momentum=0.9), **options)
    second.load_state_dict(saved)
    second.optimizer.load_state_dict(saved_optimizer)
    assert "optimizer" not in saved and second.last_epoch == 4
    assert run(second, 6) == pytest.approx(run(first, 6))


def test_attributes_of_a_callable_object_are_saved_with_the_schedule():
    class Factor:
        def __init__(self, value):
            self.value = value

        def __call__(self, epoch):
            return self.value

    scheduler = lr_scheduler.LambdaLR(optimizer_of(), [Factor(0.5), lambda e: 1.0])
    saved = scheduler.state_dict()
    assert saved["lr_lambdas"] == [{"value": 0.5}, None]
    other = lr_scheduler.LambdaLR(optimizer_of(), [Factor(0.9), lambda e: 1.0])
    other.load_state_dict(saved)
    assert other.lr_lambdas[0].value == 0.5 and saved["lr_lambdas"]


def test_composed_schedules_save_their_parts():
    def make(optimizer):
        parts = [lr_scheduler.LinearLR(optimizer), lr_scheduler.ExponentialLR(optimizer, 0.9)]
        return lr_scheduler.SequentialLR(optimizer, parts, [3])

    first, second = make(optimizer_of()), make(optimizer_of())
    rates(first, 5)
    saved = first.state_dict()
    second.load_state_dict(saved)
    second.optimizer.load_state_dict(first.optimizer.state_dict())
    assert len(saved["_schedulers"]) == 2
    assert rates(second, 3) == pytest.approx(rates(first, 3))


# ---- PyTorch

PEER = (
    [(name, options) for name, options, _ in CLOSED]
    + [
        ("OneCycleLR", {"max_lr": [0.5, 0.2], **more})
        for more in combinations(
            epochs=[4], steps_per_epoch=[8], three_phase=[False, True], anneal_strategy=["cos", "linear"]
        )
    ]
    + [
        ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.1, "scale_fn": lambda x: 1 / x, "step_size_up": 4}),
        ("CosineAnnealingWarmRestarts", {"T_0": 5}),
        ("CosineAnnealingLR", {"T_max": 3, "eta_min": 0.01}),
    ]
)


@pytest.mark.peer
@pytest.mark.parametrize("name,options", PEER, ids=[f"{i}-{row[0]}" for i, row in enumerate(PEER)])
def test_thirty_steps_and_the_state_are_those_of_pytorch(name, options):
    torch = pytest.importorskip("torch")
    optimizer, other = optimizer_of(momentum=0.9), their_optimizer(torch)
    mine = getattr(lr_scheduler, name)(optimizer, **options)
    theirs = getattr(torch.optim.lr_scheduler, name)(other, **options)
    for _ in range(30):
        for group, their_group in zip(optimizer.param_groups, other.param_groups):
            assert group["lr"] == pytest.approx(their_group["lr"], rel=1e-9, abs=1e-15)
            assert group["momentum"] == pytest.approx(their_group["momentum"], rel=1e-9)
        optimizer.step(), other.step()
        mine.step(), theirs.step()
    saved, their_saved = mine.state_dict(), theirs.state_dict()
    assert set(their_saved) <= set(saved)
    for key in ("last_epoch", "_step_count"):
        assert saved[key] == their_saved[key]


@pytest.mark.peer
@pytest.mark.parametrize(
    "options", combinations(mode=["min", "max"], threshold_mode=["rel", "abs"], cooldown=[0, 2]), ids=name_of
)
def test_plateaus_follow_pytorch(options):
    torch = pytest.importorskip("torch")
    optimizer, other = optimizer_of(), their_optimizer(torch)
    more = {"patience": 1, "factor": 0.3, "threshold": 0.1, "min_lr": 1e-3}
    mine = lr_scheduler.ReduceLROnPlateau(optimizer, **options, **more)
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(other, **options, **more)
    for metric in np.random.default_rng(0).standard_normal(30) + 3:
        mine.step(metric), theirs.step(metric)
        assert mine.get_last_lr() == pytest.approx(theirs.get_last_lr())
    saved, their_saved = mine.state_dict(), theirs.state_dict()
    assert saved.pop("_last_lr") == pytest.approx(their_saved.pop("_last_lr"))
    assert saved == their_saved


@pytest.mark.peer
def test_composed_schedules_and_epochs_follow_pytorch():
    torch = pytest.importorskip("torch")

    def make(space, optimizer):
        inner = space.SequentialLR(optimizer, [space.LinearLR(optimizer), space.ExponentialLR(optimizer, 0.9)], [4])
        outer = [inner, space.CosineAnnealingLR(optimizer, 7), space.CosineAnnealingWarmRestarts(optimizer, 3, 2)]
        return space.SequentialLR(optimizer, outer, [9, 16])

    optimizer, other = optimizer_of(), their_optimizer(torch)
    with pytest.warns(UserWarning, match="Detected call of"):  # the outer one steps the inner one at construction
        mine = make(lr_scheduler, optimizer)
    with pytest.warns(UserWarning, match="Detected call of"):
        theirs = make(torch.optim.lr_scheduler, other)
    for _ in range(30):
        assert mine.get_last_lr() == pytest.approx(theirs.get_last_lr())
        optimizer.step(), other.step()
        mine.step(), theirs.step()
    restarts = [
        space.CosineAnnealingWarmRestarts(o, 3, 2)
        for space, o in ((lr_scheduler, optimizer), (torch.optim.lr_scheduler, other))
    ]
    for epoch in np.linspace(0, 25, 60):
        for scheduler in restarts:
            scheduler.step(epoch)
        assert restarts[0].get_last_lr() == pytest.approx(restarts[1].get_last_lr())


@pytest.mark.peer
@pytest.mark.parametrize(
    "options", combinations(anneal_epochs=[0, 1, 10], anneal_strategy=["cos", "linear"]), ids=name_of
)
def test_swa_rates_follow_pytorch(options):
    torch = pytest.importorskip("torch")
    optimizer, other = optimizer_of(), their_optimizer(torch)
    mine, theirs = SWALR(optimizer, 0.3, **options), torch.optim.swa_utils.SWALR(other, 0.3, **options)
    for _ in range(30):
        assert mine.get_last_lr() == pytest.approx(theirs.get_last_lr())
        optimizer.step(), other.step()
        mine.step(), theirs.step()


@pytest.mark.peer
def test_the_texts_of_the_warnings_are_pytorchs():
    torch = pytest.importorskip("torch")
    assert lr_scheduler.EPOCH_DEPRECATION_WARNING == torch.optim.lr_scheduler.EPOCH_DEPRECATION_WARNING
    seen = []
    for space, optimizer in ((lr_scheduler, optimizer_of()), (torch.optim.lr_scheduler, their_optimizer(torch))):
        scheduler = space.StepLR(optimizer, 1)
        with pytest.warns(UserWarning) as early:
            scheduler.step()
        with pytest.warns(UserWarning) as outside:
            scheduler.get_lr()
        replaced = space.StepLR(optimizer, 1)
        optimizer.step = lambda: None
        with pytest.warns(UserWarning) as overridden:
            replaced.step()
        seen.append([str(w[0].message) for w in (early, outside, overridden)])
    assert seen[0] == seen[1]


def their_optimizer(torch):
    params = [torch.ones(2, requires_grad=True) for _ in range(2)]
    return torch.optim.SGD([{"params": params[:1]}, {"params": params[1:], "lr": 2 * BASE}], lr=BASE, momentum=0.9)
