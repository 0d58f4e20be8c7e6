"""Optimizers, schedules and mixed precision: section G by line, the values of one or two steps by hand."""

import math

import numpy as np
import pytest

import cudagrad as cg
import cudagrad.nn.functional as F
from cudagrad import nn, optim


def param(*values, grad=None, dtype=None):
    p = nn.Parameter(cg.tensor(list(values), dtype=dtype or cg.float64))
    if grad is not None:
        p.grad = cg.tensor(list(grad), dtype=p.dtype)
    return p


def step(make, value=1.0, grad=1.0, steps=1):
    """The values of one parameter after each step with a constant gradient."""
    p, seen = param(value, grad=[grad]), []
    o = make([p])
    for _ in range(steps):
        o.step()
        seen.append(p.item())
    return seen


# ---- 66, 67


def test_66_gradients_are_dropped_and_parameters_without_one_left_alone():
    p, q = param(1.0, grad=[1.0]), param(1.0)
    o = optim.SGD([p, q], lr=0.1, weight_decay=0.1, momentum=0.9)
    o.step()
    assert q.item() == 1.0
    o.zero_grad()
    assert p.grad is None
    before = p.item()
    o.step()
    assert p.item() == before
    p.grad = cg.ones(1, dtype=cg.float64)
    o.zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0.0]


def test_66_a_zero_gradient_still_decays():
    assert step(lambda p: optim.SGD(p, lr=0.1, weight_decay=0.1), grad=0.0) == pytest.approx([0.99])


def test_67_the_first_momentum_is_the_gradient_itself():
    assert step(lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.5), steps=2) == pytest.approx([0.9, 0.76])


def test_67_nesterov():
    assert step(lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True)) == pytest.approx([0.81])
    with pytest.raises(ValueError, match="^Nesterov momentum requires a momentum and zero dampening"):
        optim.SGD([param(1.0)], lr=0.1, momentum=0.9, dampening=0.5, nesterov=True)


def test_67_weight_decay_is_part_of_the_momentum():
    # g = 1 + .1 * 1, buffer = g; then g = 1 + .1 * .89
    assert step(lambda p: optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.1), steps=2) == pytest.approx(
        [1 - 0.11, 0.89 - 0.1 * (0.9 * 1.1 + 1.089)]
    )


# ---- 68


def test_68_adam_adds_eps_after_the_bias_correction():
    assert step(lambda p: optim.Adam(p, lr=0.1), value=0.0, grad=1e-8) == pytest.approx([-0.05])
    p = param(1.0, grad=[1.0])
    o = optim.Adam([p])
    o.step()
    assert o.state[p]["step"].dtype is cg.float32
    assert o.state[p]["step"].tolist() == 1.0


def test_68_amsgrad_keeps_the_largest_uncorrected_square():
    p = param(0.0, grad=[1.0])
    o = optim.Adam([p], lr=0.1, amsgrad=True)
    o.step()
    assert o.state[p]["max_exp_avg_sq"].item() == pytest.approx(0.001)
    p.grad.zero_()
    o.step()
    assert o.state[p]["max_exp_avg_sq"].item() == pytest.approx(0.001)
    assert o.state[p]["exp_avg_sq"].item() == pytest.approx(0.000999)


def test_68_adam_adds_the_decay_to_the_gradient_and_adamw_shrinks_the_weight():
    assert step(lambda p: optim.Adam(p, lr=0.1, weight_decay=0.1), grad=0.0) == pytest.approx([0.9])
    assert step(lambda p: optim.AdamW(p, lr=0.1, weight_decay=0.1)) == pytest.approx([0.89])
    assert optim.AdamW([param(1.0)]).defaults["weight_decay"] == 0.01


# ---- 69


def test_69_the_other_optimizers():
    expected = 1 - 0.1 / (math.sqrt(0.01) + 1e-8)
    assert step(lambda p: optim.RMSprop(p, lr=0.1)) == pytest.approx([expected])
    tiny = -0.1 * 1e-8 / (math.sqrt(0.01) * 1e-8 + 1e-8)
    assert step(lambda p: optim.RMSprop(p, lr=0.1), value=0.0, grad=1e-8) == pytest.approx([tiny])
    assert optim.RMSprop([param(1.0)]).defaults["alpha"] == 0.99
    assert optim.Adagrad([param(1.0)]).defaults["eps"] == 1e-10
    first = 1 - 0.1
    second = first - 0.1 / (1 + 0.5) / math.sqrt(2)
    assert step(lambda p: optim.Adagrad(p, lr=0.1, lr_decay=0.5), steps=2) == pytest.approx([first, second])
    assert optim.NAdam([param(1.0)]).defaults["momentum_decay"] == 4e-3


def test_69_rprop_stands_still_where_the_gradient_turns():
    p = param(1.0, grad=[1.0])
    o = optim.Rprop([p], lr=0.1)
    o.step()
    assert p.item() == pytest.approx(0.9)
    p.grad = cg.tensor([-1.0], dtype=cg.float64)
    o.step()
    assert p.item() == pytest.approx(0.9)
    o.step()
    assert p.item() == pytest.approx(0.95)


# ---- 70, 71


def test_70_what_an_optimizer_refuses():
    p = param(1.0)
    with pytest.raises(ValueError, match="^optimizer got an empty parameter list"):
        optim.SGD([], lr=0.1)
    with pytest.raises(ValueError, match="^can't optimize a non-leaf Tensor"):
        optim.SGD([p * 2], lr=0.1)
    with pytest.raises(ValueError, match="^some parameters appear in more than one parameter group"):
        optim.SGD([{"params": [p]}, {"params": [p]}], lr=0.1)
    with pytest.raises(
        TypeError, match="^params argument given to the optimizer should be an iterable of Tensors or dicts"
    ):
        optim.SGD(p, lr=0.1)
    with pytest.warns(UserWarning, match="^optimizer contains a parameter group with duplicate parameters"):
        optim.SGD([p, p], lr=0.1)
    assert len(optim.SGD({p}, lr=0.1).param_groups[0]["params"]) == 1


def test_71_state_dicts_number_the_parameters_and_loading_casts_all_but_the_step():
    p, q = param(1.0, grad=[1.0]), param(2.0, grad=[1.0])
    o = optim.Adam([{"params": [p]}, {"params": [q], "lr": 0.5}])
    o.step()
    saved = o.state_dict()
    assert list(saved["state"]) == [0, 1]
    assert [g["params"] for g in saved["param_groups"]] == [[0], [1]]
    halves = [param(1.0, dtype=cg.float16), param(2.0, dtype=cg.float16)]
    other = optim.Adam([{"params": [halves[0]]}, {"params": [halves[1]]}])
    other.load_state_dict(saved)
    state = other.state[halves[0]]
    assert state["exp_avg"].dtype is cg.float16
    assert state["step"].dtype is cg.float32
    assert other.param_groups[1]["lr"] == 0.5


# ---- 72, 73


def rates(make, count, lr=1.0):
    o = optim.SGD([param(1.0, grad=[0.0])], lr=lr)
    s = make(o)
    seen = [o.param_groups[0]["lr"]]
    for _ in range(count):
        o.step()
        s.step()
        seen.append(o.param_groups[0]["lr"])
    return seen


def test_72_a_schedule_takes_its_first_step_when_it_is_made():
    schedulers = optim.lr_scheduler
    assert rates(lambda o: schedulers.LinearLR(o), 0) == pytest.approx([1 / 3])
    o = optim.SGD([param(1.0)], lr=1.0)
    s = schedulers.StepLR(o, 1, gamma=0.5)
    assert s.last_epoch == 0
    assert s.get_last_lr() == [1.0]


def test_72_a_schedule_ahead_of_its_optimizer_warns_and_an_epoch_is_deprecated():
    o = optim.SGD([param(1.0)], lr=1.0)
    s = optim.lr_scheduler.StepLR(o, 1, gamma=0.5)
    with pytest.warns(UserWarning, match=r"^Detected call of `lr_scheduler.step\(\)` before `optimizer.step\(\)`"):
        s.step()
    assert s.get_last_lr() == [0.5]
    o.step()
    with pytest.warns(UserWarning, match="^The epoch parameter in `scheduler.step"):
        s.step(3)
    assert s.get_last_lr() == [0.125]


def test_73_the_shapes_of_schedules():
    schedulers = optim.lr_scheduler
    cosine = rates(lambda o: schedulers.CosineAnnealingLR(o, 2), 4)
    assert cosine == pytest.approx([1.0, 0.5, 0.0, 0.5, 1.0])
    cycle = rates(lambda o: schedulers.OneCycleLR(o, 2.5, total_steps=10), 9)
    assert cycle[0] == pytest.approx(0.1)
    assert max(cycle) == pytest.approx(2.5)
    assert cycle[-1] == pytest.approx(0.1 / 1e4)
    linear = rates(lambda o: schedulers.LinearLR(o), 5)
    assert linear == pytest.approx([1 / 3 + (2 / 3) * i / 5 for i in range(6)])


def test_73_a_sequence_begins_each_schedule_at_its_own_start():
    schedulers = optim.lr_scheduler

    def make(o):
        parts = [schedulers.ConstantLR(o, factor=0.1, total_iters=5), schedulers.ExponentialLR(o, gamma=0.5)]
        return schedulers.SequentialLR(o, parts, milestones=[2])

    assert rates(make, 4) == pytest.approx([0.1, 0.1, 1.0, 0.5, 0.25])


def test_73_a_plateau_is_noticed_at_the_third_call_with_patience_one():
    o = optim.SGD([param(1.0)], lr=1.0)
    s = optim.lr_scheduler.ReduceLROnPlateau(o, patience=1)
    seen = []
    for value in (1.0, 1.0, 1.0, 1.0):
        s.step(value)
        seen.append(o.param_groups[0]["lr"])
    assert seen == pytest.approx([1.0, 1.0, 0.1, 0.1])
    assert s.threshold == 1e-4
    assert s.threshold_mode == "rel"


# ---- 74


def test_74_the_scale_of_a_grad_scaler():
    s = cg.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    p = param(1.0)
    o = optim.SGD([p], lr=1.0)
    s.scale((p * math.inf).sum()).backward()
    s.step(o)
    s.update()
    assert p.item() == 1.0
    assert s.get_scale() == 4.0
    for expected in (4.0, 8.0):
        p.grad = cg.zeros(1, dtype=cg.float64)
        s.step(o)
        s.update()
        assert s.get_scale() == expected
    s.unscale_(o)
    with pytest.raises(
        RuntimeError, match=r"^unscale_\(\) has already been called on this optimizer since the last update"
    ):
        s.unscale_(o)
    s.update()
    with pytest.raises(AssertionError, match="^No inf checks were recorded prior to update."):
        s.update()


# ---- 75


def test_75_clipping_returns_the_norm_from_before():
    p = param(0.0, 0.0, grad=[3.0, 4.0])
    norm = nn.utils.clip_grad_norm_([p], 1.0)
    assert norm.item() == 5.0
    np.testing.assert_allclose(p.grad.numpy(), np.array([3.0, 4.0]) / (5 + 1e-6), rtol=1e-12)
    p = param(0.0, grad=[0.5])
    assert nn.utils.clip_grad_norm_([p], 1.0).item() == 0.5
    assert p.grad.item() == 0.5


def test_75_clipping_what_is_nan_and_what_is_nothing():
    p = param(0.0, 0.0, grad=[math.nan, 1.0])
    with pytest.raises(
        RuntimeError, match="^The total norm of order 2.0 for gradients from `parameters` is non-finite"
    ):
        nn.utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True)
    assert p.grad[1].item() == 1.0
    assert math.isnan(nn.utils.clip_grad_norm_([p], 1.0).item())
    assert p.grad.isnan().all()
    assert nn.utils.clip_grad_norm_([param(1.0)], 1.0).item() == 0.0


# ---- 76


@pytest.mark.parametrize(
    "call, dtype",
    [
        (lambda x: x @ x, "bfloat16"),
        (lambda x: F.linear(x, x), "bfloat16"),
        (lambda x: (x @ x).softmax(-1), "bfloat16"),
        (lambda x: F.layer_norm(x @ x, (2,)), "bfloat16"),
        (lambda x: x.softmax(-1), "float32"),
        (lambda x: F.layer_norm(x, (2,)), "float32"),
        (lambda x: F.mse_loss(x.bfloat16(), x.bfloat16()), "float32"),
        (lambda x: x.bfloat16() + x, "float32"),
        (lambda x: x.sum(), "float32"),
        (lambda x: x.double() @ x.double(), "float64"),
        (lambda x: x.relu(), "float32"),
        (lambda x: F.conv1d(x[None], x[None]), "bfloat16"),
        (lambda x: cg.bmm(x[None], x[None]), "bfloat16"),
        (lambda x: cg.cat([x.bfloat16(), x]), "float32"),
    ],
    ids=[
        "matmul",
        "linear",
        "softmax",
        "layer_norm",
        "softmax of f32",
        "layer_norm of f32",
        "mse",
        "add",
        "sum",
        "double",
        "relu",
        "conv",
        "bmm",
        "cat",
    ],
)
def test_76_autocast_on_the_cpu(call, dtype):
    x = cg.ones(2, 2)
    with cg.autocast("cpu", dtype=cg.bfloat16):
        assert call(x).dtype is getattr(cg, dtype)
    assert (x @ x).dtype is cg.float32
