"""What all optimizers share: parameter groups, state, hooks, saving and loading."""

import collections
import copy
import functools
import itertools
import warnings

import numpy as np

from .. import errors
from ..core.backward import zero_grad
from ..core.hooks import Table
from ..core.modes import enable_grad, set_grad_enabled
from ..core.tensor import Tensor
from .options import check, scalar_state, type_name

ParamsT = "Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]"
StateDict = dict  # names that public programs import to annotate with

_before_any_step, _after_any_step = Table(), Table()


class _Required:
    """The default of an option that every group has to give."""

    def __repr__(self):
        return "<required parameter>"


required = _Required()


def register_optimizer_step_pre_hook(hook):
    """Call ``hook(optimizer, args, kwargs)`` before every step of every optimizer; comes back as a handle."""
    return _before_any_step.add(hook)


def register_optimizer_step_post_hook(hook):
    """Call ``hook(optimizer, args, kwargs)`` after every step of every optimizer; comes back as a handle."""
    return _after_any_step.add(hook)


class Optimizer:
    """The base class of all optimizers.

    ``param_groups`` is a list of dicts, each with ``"params"`` and its own options; ``state`` maps a parameter to a
    dict; ``defaults`` are the options of a group that does not give its own. A subclass defines ``step``.

    Raises      TypeError for a bare Tensor, a group that is no dict, a parameter that is no Tensor; ValueError for no
                parameters, a non-leaf, a parameter in two groups, names given to some parameters only
    """

    _stepping = False  # within step(): the step of a base class that is called from there runs no hooks again

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = _with_hooks(cls.__dict__["step"])

    def __init__(self, params, defaults):
        self.defaults = defaults
        self._make_hook_tables()
        if isinstance(params, Tensor):
            first = "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
            raise TypeError(errors.text(first + type_name(params), "fix: pass [tensor]"))
        self.state = collections.defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def _make_hook_tables(self):
        for name in _HOOK_TABLES:
            self.__dict__.setdefault(name, Table())

    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._make_hook_tables()
        self.__dict__.setdefault("defaults", {}).setdefault("differentiable", False)

    def __repr__(self):
        rows = [type(self).__name__ + " ("]
        for i, group in enumerate(self.param_groups):
            rows += ([""] if i else []) + [f"Parameter Group {i}"]
            rows += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return "\n".join([*rows, ")"])

    def step(self, closure=None):
        """Update the parameters once. Returns what ``closure``, which computes the loss anew, returned."""
        raise NotImplementedError

    def zero_grad(self, set_to_none=True):
        """Forget the gradients of all parameters, or, with ``set_to_none=False``, fill them with zeros."""
        zero_grad(self._params(), set_to_none)

    def _params(self):
        return itertools.chain.from_iterable(group["params"] for group in self.param_groups)

    # ---- groups

    def add_param_group(self, param_group):
        """Optimize more parameters: ``{"params": [...], option: value, ...}``, options as at construction."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        _list_params(param_group)
        for p in param_group["params"]:
            self._check_param(p)
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                first = "parameter group didn't specify a value of required optimization parameter "
                raise ValueError(first + name)
            param_group.setdefault(name, default)
        params = param_group["params"]
        if len(params) != len(set(params)):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; "
                "see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=3,
            )
        self._check_names(param_group)
        if not set(self._params()).isdisjoint(params):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    def _check_param(self, p):
        if not isinstance(p, Tensor):
            first = "optimizer can only optimize Tensors, but one of the params is "
            raise TypeError(first + type_name(p))
        if not (self.defaults.get("differentiable") or p.is_leaf or p.retains_grad):
            raise ValueError(
                errors.text(
                    "can't optimize a non-leaf Tensor",
                    f"got a Tensor of shape {tuple(p.shape)} made by {p.grad_fn.name()}",
                    "fix: optimize the leaf it was made from, call retain_grad() on it, or pass differentiable=True",
                )
            )

    def _check_names(self, param_group):
        named = "param_names" in param_group
        if any(("param_names" in group) != named for group in self.param_groups):
            kind = "with names" if named else "without names"
            first = "all optimizer param groups should be with/without names. "
            raise ValueError(f"{first}cannot add param group {kind} to the optimizer")

    # ---- saving and loading

    def state_dict(self):
        """``{"state": {index: {...}}, "param_groups": [{..., "params": [index, ...]}]}``: parameters by their place.

        The tensors in it are the optimizer's own, not copies.
        """
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        index, groups, start = {}, [], 0
        for group in self.param_groups:
            params = group["params"]
            for i, p in enumerate(params, start):
                index.setdefault(id(p), i)
            start += len(params)
            packed = {name: value for name, value in group.items() if name != "params"}
            groups.append({**packed, "params": [index[id(p)] for p in params]})
        state = {index[id(k)] if isinstance(k, Tensor) else k: value for k, value in self.state.items()}
        saved = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            got = hook(self, saved)
            saved = saved if got is None else got
        return saved

    def load_state_dict(self, state_dict):
        """Take over a saved state: parameters are matched by their place, state is cast to their dtype and device.

        ``"step"`` keeps the dtype and device it has (float32 on the CPU).

        Raises      ValueError where groups or their lengths differ
        Differs     with ``capturable`` or ``fused`` PyTorch moves ``"step"`` to the parameter's device
        """
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            got = hook(self, state_dict)
            state_dict = state_dict if got is None else got
        saved_groups = copy.deepcopy(state_dict["param_groups"])
        _check_same_groups(self.param_groups, saved_groups)
        places = itertools.chain.from_iterable(group["params"] for group in saved_groups)
        param_at = dict(zip(places, self._params()))
        state = collections.defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in param_at:
                state[param_at[key]] = _fitted(param_at[key], value)
            else:
                state[key] = value
        for group, saved in zip(self.param_groups, saved_groups):
            saved["params"] = group["params"]
            if "param_names" in group:
                saved.setdefault("param_names", group["param_names"])
        self.__setstate__({"state": state, "param_groups": saved_groups})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    # ---- hooks

    def register_step_pre_hook(self, hook):
        """Call ``hook(optimizer, args, kwargs)`` before each step; it may return new ``(args, kwargs)``."""
        return self._optimizer_step_pre_hooks.add(hook)

    def register_step_post_hook(self, hook):
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return self._optimizer_step_post_hooks.add(hook)

    def register_state_dict_pre_hook(self, hook, prepend=False):
        """Call ``hook(optimizer)`` before ``state_dict``."""
        return _add(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook, prepend=False):
        """Call ``hook(optimizer, state_dict)`` after ``state_dict``; it may return another one."""
        return _add(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend=False):
        """Call ``hook(optimizer, state_dict)`` before ``load_state_dict``; it may return another one."""
        return _add(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook, prepend=False):
        """Call ``hook(optimizer)`` after ``load_state_dict``."""
        return _add(self._optimizer_load_state_dict_post_hooks, hook, prepend)


_HOOK_TABLES = tuple(
    f"_optimizer_{when}_hooks"
    for when in ("step_pre", "step_post", "state_dict_pre", "state_dict_post", "load_state_dict_pre")
) + ("_optimizer_load_state_dict_post_hooks",)


def _add(table, hook, prepend):
    handle = table.add(hook)
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


def _with_hooks(step):
    """``step`` with the hooks around it; ``_opt_called`` tells a scheduler, if there is one, that it ran."""

    @functools.wraps(step)
    def hooked(*args, **kwargs):
        self = args[0]
        if self._stepping:
            return step(*args, **kwargs)
        self._stepping = True
        try:
            for hook in (*_before_any_step.values(), *self._optimizer_step_pre_hooks.values()):
                args, kwargs = _new_arguments(hook, hook(self, args, kwargs), args, kwargs)
            if "_opt_called" in self.__dict__:
                self._opt_called = True
            result = step(*args, **kwargs)
            for hook in (*self._optimizer_step_post_hooks.values(), *_after_any_step.values()):
                hook(self, args, kwargs)
            return result
        finally:
            self._stepping = False

    hooked.hooked = True
    return hooked


def _new_arguments(hook, got, args, kwargs):
    if got is None:
        return args, kwargs
    if isinstance(got, tuple) and len(got) == 2:
        return got
    raise RuntimeError(f"{hook} must return None or a tuple of (new_args, new_kwargs), but got {got}.")


def _list_params(group):
    """Make ``group["params"]`` a list of tensors, with ``group["param_names"]`` where they came with names."""
    params = group["params"]
    if isinstance(params, set):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
            "will change between runs. Please use a list instead."
        )
    params = [params] if isinstance(params, Tensor) else list(params)
    names = [p[0] for p in params if isinstance(p, tuple)]
    if names:
        first = "all optimizer params should be with/without names. Some param names are missing"
        check(len(names) == len(params), first)
        group["param_names"] = names
    group["params"] = [p[1] if isinstance(p, tuple) else p for p in params]


def _check_same_groups(groups, saved):
    check(
        len(groups) == len(saved),
        "loaded state dict has a different number of parameter groups",
        f"got {len(saved)}, need {len(groups)}",
    )
    need, got = [len(g["params"]) for g in groups], [len(g["params"]) for g in saved]
    first = "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
    check(need == got, first, f"got groups of {got} parameters, need {need}")


def _fitted(p, value, key=None):
    """State of parameter ``p`` with its tensors, at any depth, in the dtype (floating) and on the device of ``p``."""
    if isinstance(value, Tensor):
        if key == "step":
            return value
        return value.to(p.device, p.dtype) if p.is_floating_point() else value.to(p.device)
    if isinstance(value, dict):
        return {k: _fitted(p, v, k) for k, v in value.items()}
    if isinstance(value, (list, tuple, set)):
        return type(value)(_fitted(p, v) for v in value)
    return value


class GroupOptimizer(Optimizer):
    """An optimizer that updates one group after the other: a subclass defines ``_update(group)``."""

    _since = {}  # options of newer versions: a checkpoint that lacks them gets these values

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in self._since.items():
                group.setdefault(name, value)
            for p in group["params"]:
                values = self.state.get(p) or {}
                if "step" in values and not isinstance(values["step"], Tensor):
                    values["step"] = scalar_state(values["step"])

    def step(self, closure=None):
        """Update every parameter that has a gradient. Returns what ``closure``, which computes the loss, returned."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with set_grad_enabled(bool(self.defaults.get("differentiable"))), np.errstate(all="ignore"):
            for group in self.param_groups:
                self._update(group)
        return loss

    def _update(self, group):
        raise NotImplementedError
