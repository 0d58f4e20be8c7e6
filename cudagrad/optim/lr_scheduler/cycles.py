"""Schedules in cycles: warm restarts, triangles, and one cycle for a whole run."""

import math

from .base import LRScheduler, checked_optimizer, function_state, one_a_group, put


class CosineAnnealingWarmRestarts(LRScheduler):
    """lr = eta_min + (base - eta_min) (1 + cos(pi T_cur / T_i)) / 2, T_cur from 0 again after each T_i

    ``step(epoch)`` takes fractions of an epoch; ``T_i`` is T_0, then T_mult times the one before.

    Source      Loshchilov & Hutter 2017, arXiv:1608.03983, equation 5
    """

    def __init__(self, optimizer, T_0, T_mult=1, eta_min=0.0, last_epoch=-1):
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0, self.T_i, self.T_mult, self.eta_min, self.T_cur = T_0, T_0, T_mult, eta_min, last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        self._warn_outside_step()
        share = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]

    def step(self, epoch=None):
        """Go on by one epoch, or to ``epoch``, which may lie between two."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            self._seek(epoch)
        self.last_epoch = math.floor(epoch)
        self._apply(self.get_lr)

    def _seek(self, epoch):
        if epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            done = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_i = self.T_0 * self.T_mult**done
            self.T_cur = epoch - self.T_0 * (self.T_mult**done - 1) / (self.T_mult - 1)


class _WithMomentum(LRScheduler):
    """A schedule that moves momentum (or beta1) against the rate."""

    def _init_momentum(self, base_momentum, max_momentum, last_epoch):
        optimizer = self.optimizer
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in optimizer.defaults
        self.base_momentums = one_a_group("base_momentum", optimizer, base_momentum)
        self.max_momentums = one_a_group("max_momentum", optimizer, max_momentum)
        if last_epoch == -1:
            for group, low, high in zip(optimizer.param_groups, self.base_momentums, self.max_momentums):
                self._put_momentum(group, high)
                group["max_momentum"], group["base_momentum"] = high, low

    def _put_momentum(self, group, momentum):
        if self.use_beta1:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            group["momentum"] = momentum


# The height of the triangle that a cycle or, by "iterations", a step has: mode -> (function of gamma and x, scale_mode)
_SCALES = {
    "triangular": (lambda gamma, x: 1.0, "cycle"),
    "triangular2": (lambda gamma, x: 1 / 2.0 ** (x - 1), "cycle"),
    "exp_range": (lambda gamma, x: gamma**x, "iterations"),
}


class CyclicLR(_WithMomentum):
    """lr = base_lr + (max_lr - base_lr) triangle(epoch) scale, momentum the other way round

    ``mode``: "triangular" scale 1, "triangular2" half as high each cycle, "exp_range" gamma^epoch; ``scale_fn`` of the
    cycle's or (``scale_mode="iterations"``) step's number takes its place.

    Source      Smith 2017, arXiv:1506.01186
    """

    def __init__(
        self,
        optimizer,
        base_lr,
        max_lr,
        step_size_up=2000,
        step_size_down=None,
        mode="triangular",
        gamma=1.0,
        scale_fn=None,
        scale_mode="cycle",
        cycle_momentum=True,
        base_momentum=0.8,
        max_momentum=0.9,
        last_epoch=-1,
    ):
        self.optimizer = checked_optimizer(optimizer)
        base_lrs = one_a_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for group, lr in zip(optimizer.param_groups, base_lrs):
                put(group, "lr", lr)
        self.max_lrs = one_a_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in _SCALES and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode, self.gamma, self._scale_fn_custom = mode, gamma, scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else _SCALES[mode][1]
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._init_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x):
        """The height of cycle (or step) ``x``, 1 for the whole of max_lr - base_lr."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        return _SCALES[self.mode][0](self.gamma, x)

    def get_lr(self):
        self._warn_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums):
                self._put_momentum(group, high - (high - low) * height)
        return [low + (high - low) * height for low, high in zip(self.base_lrs, self.max_lrs)]

    def state_dict(self):
        """All that the schedule keeps; of ``scale_fn`` only the attributes of a callable object."""
        custom = self._scale_fn_custom
        return {**super().state_dict(), "_scale_fn_custom": None if custom is None else function_state(custom)}

    def load_state_dict(self, state_dict):
        """Take over what ``state_dict`` returned; a plain ``scale_fn`` has to be the same already."""
        super().load_state_dict({name: v for name, v in state_dict.items() if name != "_scale_fn_custom"})
        if state_dict["_scale_fn_custom"] is not None:
            self._scale_fn_custom.__dict__.update(state_dict["_scale_fn_custom"])


# How far between start and end a phase is, of its share of steps done.
_ANNEAL = {"cos": lambda share: (1 - math.cos(math.pi * share)) / 2, "linear": lambda share: share}


class OneCycleLR(_WithMomentum):
    """One cycle: up from max_lr / div_factor to max_lr, and down to 1 / (div_factor final_div_factor) of it

    ``pct_start`` is the share of steps that go up; ``three_phase`` comes down to the first rate as long as it went up,
    and then to the last one. Momentum goes the other way round.

    Source      Smith & Topin 2018, arXiv:1708.07120
    """

    def __init__(
        self,
        optimizer,
        max_lr,
        total_steps=None,
        epochs=None,
        steps_per_epoch=None,
        pct_start=0.3,
        anneal_strategy="cos",
        cycle_momentum=True,
        base_momentum=0.85,
        max_momentum=0.95,
        div_factor=25.0,
        final_div_factor=1e4,
        three_phase=False,
        last_epoch=-1,
    ):
        self.optimizer = checked_optimizer(optimizer)
        self.total_steps = _total_steps(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in _ANNEAL:
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        self._anneal_func_type = anneal_strategy
        max_lrs = one_a_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for group, high in zip(optimizer.param_groups, max_lrs):
                first = high / div_factor
                group.update(initial_lr=first, max_lr=high, min_lr=first / final_div_factor)
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._init_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        self._warn_outside_step()
        step = self.last_epoch
        if step > self.total_steps:
            first = f"Tried to step {step} times. The specified number of total steps is {self.total_steps}"
            raise ValueError(first)
        phase, share = self._place(step)
        share = _ANNEAL[self._anneal_func_type](share)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(_between(group, phase["start_lr"], phase["end_lr"], share))
            if self.cycle_momentum:
                momentum = _between(group, phase["start_momentum"], phase["end_momentum"], share)
                self._put_momentum(group, momentum)
        return rates

    def _place(self, step):
        """The phase of a step and the share of it that is done."""
        start = 0.0
        for phase in self._schedule_phases:
            end = phase["end_step"]
            if step <= end or phase is self._schedule_phases[-1]:
                return phase, (step - start) / (end - start)
            start = end


def _between(group, start, end, share):
    return group[end] + (group[start] - group[end]) * (1 - share)


def _total_steps(total_steps, epochs, steps_per_epoch):
    given = {"total_steps": total_steps}
    if total_steps is None:
        given = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
        if None in given.values():
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    for name, value in given.items():
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {value}")
    return math.prod(given.values())


def _phases(total_steps, pct_start, three_phase):
    """Phases as dicts of the last step and the group's options to go between, as PyTorch's state has them."""

    def phase(end, start_lr, end_lr, start_momentum, end_momentum):
        momenta = {"start_momentum": start_momentum + "_momentum", "end_momentum": end_momentum + "_momentum"}
        return {"end_step": end, "start_lr": start_lr + "_lr", "end_lr": end_lr + "_lr", **momenta}

    up = phase(float(pct_start * total_steps) - 1, "initial", "max", "max", "base")
    if not three_phase:
        return [up, phase(total_steps - 1, "max", "min", "base", "max")]
    down = phase(float(2 * pct_start * total_steps) - 2, "max", "initial", "base", "max")
    return [up, down, phase(total_steps - 1, "initial", "min", "max", "max")]
