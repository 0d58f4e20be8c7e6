"""Schedules that multiply the rate by a factor at each step."""

import bisect
import collections
import math

from .base import LRScheduler, function_state, group_values


class _Factors(LRScheduler):
    """A schedule given twice: ``_factor()`` from the rate before (None: as it is), ``_closed(base)`` from the start."""

    def _factor(self):
        raise NotImplementedError

    def _closed(self, base):
        raise NotImplementedError

    def get_lr(self):
        self._warn_outside_step()
        factor = self._factor()
        if factor is None:
            return group_values(self.optimizer, "lr")
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def _get_closed_form_lr(self):
        return [self._closed(base) for base in self.base_lrs]


class _Lambdas(LRScheduler):
    """A schedule by functions of the epoch, one a group."""

    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        count = len(optimizer.param_groups)
        if not isinstance(lr_lambda, (list, tuple)):
            lr_lambda = [lr_lambda] * count
        elif len(lr_lambda) != count:
            raise ValueError(f"Expected {count} lr_lambdas, but got {len(lr_lambda)}")
        self.optimizer, self.lr_lambdas = optimizer, list(lr_lambda)
        self._check_lambdas()
        super().__init__(optimizer, last_epoch)

    def _check_lambdas(self):
        pass

    def state_dict(self):
        """All that the schedule keeps; of its functions only the attributes of callable objects."""
        return {**super().state_dict(), "lr_lambdas": [function_state(f) for f in self.lr_lambdas]}

    def load_state_dict(self, state_dict):
        """Take over what ``state_dict`` returned; plain functions have to be the same already."""
        self.__dict__.update({name: value for name, value in state_dict.items() if name != "lr_lambdas"})
        for function, saved in zip(self.lr_lambdas, state_dict["lr_lambdas"]):
            if saved is not None:
                function.__dict__.update(saved)


class LambdaLR(_Lambdas):
    """lr = base lr_lambda(epoch)"""

    def get_lr(self):
        self._warn_outside_step()
        return [base * f(self.last_epoch) for base, f in zip(self.base_lrs, self.lr_lambdas)]


class MultiplicativeLR(_Lambdas):
    """lr = lr lr_lambda(epoch), from the first epoch on"""

    def _check_lambdas(self):
        for f in self.lr_lambdas:
            if not callable(f):
                raise TypeError(f"lr_lambda should be a function, but got {type(f).__name__}")

    def get_lr(self):
        self._warn_outside_step()
        if self._is_initial:
            return group_values(self.optimizer, "lr")
        return [group["lr"] * f(self.last_epoch) for group, f in zip(self.optimizer.param_groups, self.lr_lambdas)]


class StepLR(_Factors):
    """lr = base gamma^floor(epoch / step_size)"""

    def __init__(self, optimizer, step_size, gamma=0.1, last_epoch=-1):
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self):
        return self.gamma if self.last_epoch != 0 and self.last_epoch % self.step_size == 0 else None

    def _closed(self, base):
        return base * self.gamma ** (self.last_epoch // self.step_size)


class MultiStepLR(_Factors):
    """lr = base gamma^(count of milestones <= epoch)"""

    def __init__(self, optimizer, milestones, gamma=0.1, last_epoch=-1):
        self.milestones, self.gamma = collections.Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self):
        return self.gamma ** self.milestones[self.last_epoch] if self.last_epoch in self.milestones else None

    def _closed(self, base):
        return base * self.gamma ** bisect.bisect_right(sorted(self.milestones.elements()), self.last_epoch)


class ConstantLR(_Factors):
    """lr = base factor while epoch < total_iters, then base"""

    def __init__(self, optimizer, factor=1.0 / 3, total_iters=5, last_epoch=-1):
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self):
        if self.last_epoch == 0:
            return self.factor
        return 1.0 / self.factor if self.last_epoch == self.total_iters else None

    def _closed(self, base):
        return base * (1.0 if self.last_epoch >= self.total_iters else self.factor)


class LinearLR(_Factors):
    """lr = base (start_factor + (end_factor - start_factor) min(epoch, total_iters) / total_iters)"""

    def __init__(self, optimizer, start_factor=1.0 / 3, end_factor=1.0, total_iters=5, last_epoch=-1):
        if start_factor > 1.0 or start_factor <= 0:
            first = "Starting multiplicative factor expected to be greater than 0 and less or equal to 1."
            raise ValueError(first)
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self):
        if self.last_epoch == 0:
            return self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return None
        rise = self.end_factor - self.start_factor
        return 1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise)

    def _closed(self, base):
        rise = self.end_factor - self.start_factor
        return base * (self.start_factor + rise * min(self.total_iters, self.last_epoch) / self.total_iters)


class ExponentialLR(_Factors):
    """lr = base gamma^epoch"""

    def __init__(self, optimizer, gamma, last_epoch=-1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self):
        return None if self._is_initial else self.gamma

    def _closed(self, base):
        return base * self.gamma**self.last_epoch


class PolynomialLR(_Factors):
    """lr = base (1 - min(epoch, total_iters) / total_iters)^power"""

    def __init__(self, optimizer, total_iters=5, power=1.0, last_epoch=-1):
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def _factor(self):
        if self._is_initial or self.last_epoch > self.total_iters:
            return None
        left, before = 1.0 - self.last_epoch / self.total_iters, 1.0 - (self.last_epoch - 1) / self.total_iters
        return (left / before) ** self.power

    def _closed(self, base):
        return base * (1.0 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power


class CosineAnnealingLR(LRScheduler):
    """lr = eta_min + (base - eta_min) (1 + cos(pi epoch / T_max)) / 2, which rises again after T_max

    Step by step it goes on from the rate that the group has, so that it can be chained with others.

    Source      Loshchilov & Hutter 2017, arXiv:1608.03983, equation 5
    """

    def __init__(self, optimizer, T_max, eta_min=0.0, last_epoch=-1):
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def _share(self, epoch):
        return (1 + math.cos(math.pi * epoch / self.T_max)) / 2

    def get_lr(self):
        self._warn_outside_step()
        groups, low = self.optimizer.param_groups, self.eta_min
        if self._is_initial:
            return group_values(self.optimizer, "lr")
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        share, before = self._share(self.last_epoch), self._share(self.last_epoch - 1)
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # the share before is 0: nothing to go on from
            return [
                group["lr"] + (base - low) * self._share(self.T_max - 1) for base, group in zip(self.base_lrs, groups)
            ]
        return [(group["lr"] - low) * (share / before) + low for group in groups]

    def _get_closed_form_lr(self):
        return [self.eta_min + (base - self.eta_min) * self._share(self.last_epoch) for base in self.base_lrs]
