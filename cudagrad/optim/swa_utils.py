"""Averages of a model's weights along training: SWA and EMA."""

import itertools
import math
from copy import deepcopy

import numpy as np

from ..core.inplace import bump
from ..core.modes import no_grad
from ..core.tensor import wrap
from ..nn.module import Module
from .elementwise import sweep
from .lr_scheduler.base import LRScheduler, one_a_group
from .options import check, number

__all__ = [
    "AveragedModel",
    "SWALR",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def get_ema_multi_avg_fn(decay=0.999):
    """``f(averages, values, n)`` that makes each average ``decay average + (1 - decay) value``, in place.

    Raises      ValueError for a decay outside [0, 1]
    """
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param_list, current_param_list, num_averaged):
        _move_towards(ema_param_list, current_param_list, 1 - decay)

    return ema_update


def get_swa_multi_avg_fn():
    """``f(averages, values, n)`` that makes averages of n values into those of n + 1, in place."""

    @no_grad()
    def swa_update(averaged_param_list, current_param_list, num_averaged):
        _move_towards(averaged_param_list, current_param_list, 1 / (number(num_averaged) + 1))

    return swa_update


def get_ema_avg_fn(decay=0.999):
    """``f(average, value, n)`` that returns ``decay average + (1 - decay) value``.

    Raises      ValueError for a decay outside [0, 1]
    """
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param, current_param, num_averaged):
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn():
    """``f(average, value, n)`` that returns the average of n + 1 values."""

    @no_grad()
    def swa_update(averaged_param, current_param, num_averaged):
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


def _check_decay(decay):
    check(0.0 <= decay <= 1.0, f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def _towards(xp, average, value, *, weight):
    average += (value - average) * weight


def _move_towards(averages, values, weight):
    for average, value in zip(averages, values):
        if average.dtype.category < 2:  # integers: in float32, then cut off as a cast does
            start = average.array.astype(np.float32)
            average.array[...] = start + (value.array - start) * np.float32(weight)
        else:
            sweep(_towards, [[average.array, value.array]], {"weight": weight})
        bump(average)


class AveragedModel(Module):
    """A copy of ``model`` whose parameters are averages over the calls of ``update_parameters``.

    ``avg_fn(average, value, n)`` returns, ``multi_avg_fn(averages, values, n)`` writes the new average; by default the
    equal-weighted one (SWA). ``use_buffers`` averages buffers too, else they are copied.

    Raises      AssertionError where both functions are given
    Source      Izmailov et al. 2018, arXiv:1803.05407
    """

    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        count = wrap(np.zeros((), np.int64))
        if device is not None:
            self.module = self.module.to(device)
            count = count.to(device)
        self.register_buffer("n_averaged", count)
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    @no_grad()
    def update_parameters(self, model):
        """Take the present weights of ``model`` into the averages; the first time they are copied."""
        pairs = [(own.detach(), other.detach().to(own.device)) for own, other in self._pairs(model)]
        if number(self.n_averaged) == 0:
            for own, other in pairs:
                _copy(own, other)
        elif self.avg_fn is not None:
            for own, other in pairs:
                _copy(own, self.avg_fn(own, other, self.n_averaged.to(own.device)))
        else:
            update = self.multi_avg_fn or get_swa_multi_avg_fn()
            for (device, _), group in _by_kind(pairs).items():
                owns, others = zip(*group)
                update(list(owns), list(others), self.n_averaged.to(device))
        if not self.use_buffers:
            for own, other in zip(self.module.buffers(), model.buffers()):
                _copy(own, other)
        self.n_averaged.array[...] += 1
        bump(self.n_averaged)

    def _pairs(self, model):
        if not self.use_buffers:
            return zip(self.module.parameters(), model.parameters())
        own = itertools.chain(self.module.parameters(), self.module.buffers())
        return zip(own, itertools.chain(model.parameters(), model.buffers()))


def _copy(own, other):
    own.array[...] = other.to(own.device).array
    bump(own)


def _by_kind(pairs):
    groups = {}
    for own, other in pairs:
        groups.setdefault((own.device, own.dtype), []).append((own, other))
    return groups


@no_grad()
def update_bn(loader, model, device=None):
    """Compute anew the running statistics of the BatchNorm layers of ``model`` by one pass over ``loader``.

    A batch that is a list or tuple is fed by its first entry. The model's mode and the layers' momentum are kept.
    """
    from ..nn.batchnorm import _BatchNorm

    layers = {m: m.momentum for m in model.modules() if isinstance(m, _BatchNorm)}
    if not layers:
        return
    was_training = model.training
    model.train()
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None  # the plain average over all batches
    for batch in loader:
        batch = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(batch if device is None else batch.to(device))
    for layer, momentum in layers.items():
        layer.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Goes in ``anneal_epochs`` steps from the rate that a group has to ``swa_lr``, by a cosine or a line, and stays.

    Raises      ValueError for an unknown strategy, a negative or fractional number of epochs
    """

    def __init__(self, optimizer, swa_lr, anneal_epochs=10, anneal_strategy="cos", last_epoch=-1):
        for group, lr in zip(optimizer.param_groups, one_a_group("swa_lr", optimizer, swa_lr)):
            group["swa_lr"] = lr
        known = anneal_strategy in ("cos", "linear")
        check(known, f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        valid = isinstance(anneal_epochs, int) and anneal_epochs >= 0
        check(valid, f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy, self.anneal_epochs = anneal_strategy, anneal_epochs
        super().__init__(optimizer, last_epoch)

    def anneal_func(self, t):
        """The share of the way to swa_lr after a share ``t`` of the steps."""
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def _share(self, step):
        return self.anneal_func(max(0, min(1, step / max(1, self.anneal_epochs))))

    def get_lr(self):
        self._warn_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        share, before = self._share(step), self._share(step - 1)
        rates = []
        for group in self.optimizer.param_groups:
            lr, target = group["lr"], group["swa_lr"]
            start = target if before == 1 else (lr - before * target) / (1 - before)
            rates.append(target * share + start * (1 - share))
        return rates
