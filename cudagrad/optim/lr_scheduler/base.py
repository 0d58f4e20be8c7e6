"""What all schedules share: counting, warnings, saving, and how a rate is put into a group."""

import types
import warnings

from ... import errors
from ...core.inplace import bump
from ...core.tensor import Tensor
from ..optimizer import Optimizer
from ..options import number

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed "
    "form is used instead of the new chainable form, where available. Please open an issue if you are unable to "
    "replicate your use case: https://github.com/pytorch/pytorch/issues/new/choose."
)
_SEE = "See more details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"


class LRScheduler:
    """The base class of schedules: at each ``step`` the groups get the rates that ``get_lr`` returns.

    ``base_lrs`` are the rates at the start, ``last_epoch`` counts the steps. A group's rate that is a Tensor is
    filled in place. Constructing a schedule makes its first step.

    Raises      TypeError for what is no Optimizer; KeyError for last_epoch >= 0 where a group lacks "initial_lr"
    """

    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer, last_epoch=-1):
        self.optimizer = checked_optimizer(optimizer)
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with last_epoch "
                    ">= 0.\nThis typically happens when:\n1. You're trying to resume training from a checkpoint but "
                    "haven't properly loaded the optimizer state\n2. You're using last_epoch >= 0 for a fresh training "
                    "run (not recommended)"
                )
        self.base_lrs = group_values(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        optimizer.__dict__.setdefault("_opt_called", False)  # from now on the optimizer notes that it has stepped
        self._initial_step()

    def _initial_step(self):
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self):
        """All that the schedule keeps, without the optimizer."""
        return {name: value for name, value in self.__dict__.items() if name != "optimizer"}

    def load_state_dict(self, state_dict):
        """Take over what ``state_dict`` returned."""
        self.__dict__.update(state_dict)

    def get_last_lr(self):
        """The rates of the last step, one a group."""
        return self._last_lr

    def get_lr(self):
        """The rates for ``last_epoch``, one a group, from those that the groups have now."""
        raise NotImplementedError

    def step(self, epoch=None):
        """Go to the next epoch (or, deprecated, to ``epoch``) and put its rates into the groups."""
        if self._step_count == 1:
            self._warn_of_order()
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _warn_of_order(self):
        if not getattr(self.optimizer.step, "hooked", False):
            text = (
                "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. "
                f"Please, make sure to call `optimizer.step()` before `lr_scheduler.step()`. {_SEE}"
            )
            warnings.warn(text, UserWarning, stacklevel=3)
        elif not getattr(self.optimizer, "_opt_called", False):
            text = (
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you "
                "should call them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure to "
                f"do this will result in PyTorch skipping the first value of the learning rate schedule. {_SEE}"
            )
            warnings.warn(text, UserWarning, stacklevel=3)

    def _update_lr(self, epoch=None):
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed = epoch is not None and hasattr(self, "_get_closed_form_lr")
        self._apply(self._get_closed_form_lr if closed else self.get_lr)

    def _apply(self, get_lr):
        """Put the rates that ``get_lr`` returns into the groups."""
        self._get_lr_called_within_step = True
        try:
            rates = list(get_lr())
        finally:
            self._get_lr_called_within_step = False
        groups = self.optimizer.param_groups
        if len(rates) != len(groups):
            first = f"zip() argument 2 is {'shorter' if len(rates) < len(groups) else 'longer'} than argument 1"
            raise ValueError(errors.text(first, f"get_lr gave {len(rates)} rates for {len(groups)} groups"))
        for group, rate in zip(groups, rates):
            put(group, "lr", rate)
        self._last_lr = group_values(self.optimizer, "lr")

    def _warn_outside_step(self):
        if not self._get_lr_called_within_step:
            text = "To get the last learning rate computed by the scheduler, please use `get_last_lr()`."
            warnings.warn(text, UserWarning, stacklevel=3)


class _LRScheduler(LRScheduler):
    """The name that the base class had before PyTorch 2.0."""


def checked_optimizer(optimizer):
    """``optimizer``; TypeError where it is none."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
    return optimizer


def copied(value):
    """A value that no later in-place change of a Tensor reaches."""
    return value.detach().clone() if isinstance(value, Tensor) else value


def group_values(optimizer, key):
    """``group[key]`` of every group, Tensors copied."""
    return [copied(group[key]) for group in optimizer.param_groups]


def put(group, key, value):
    """Make ``group[key]`` the value; a Tensor there is filled in place."""
    held = group[key]
    if isinstance(held, Tensor):
        held.array[...] = number(value)
        bump(held)
    else:
        group[key] = value


def one_a_group(name, optimizer, value):
    """A list of one value a group, from a list of that length or from one value for all."""
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [copied(value) for _ in range(count)]
    if len(value) != count:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, "
            f"param_groups has {count}."
        )
    return [copied(v) for v in value]


def function_state(function):
    """What is saved of a user's function: the attributes of a callable object, None of a plain function."""
    return None if isinstance(function, types.FunctionType) else function.__dict__.copy()
