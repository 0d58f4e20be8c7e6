"""The state of a module: what goes into a state_dict, and how one is loaded."""

import collections
import itertools
import warnings
from collections.abc import Mapping

from ..core.modes import no_grad
from ..core.tensor import Tensor
from .module_hooks import WrappedHook, add_hook
from .parameter import Parameter, is_lazy

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


class _IncompatibleKeys(collections.namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What ``load_state_dict`` returns: the names that were missing and those nobody asked for."""

    __slots__ = ()

    def __repr__(self):
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


_REPORT = (
    "Please file an issue at https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml to report this bug."
)


class State:
    """The part of Module that saves and loads."""

    def get_extra_state(self):
        """More to put into the state_dict, under ``_extra_state``; to be overridden together with set_extra_state."""
        raise RuntimeError(f"Reached a code path in Module.get_extra_state() that should never be called. {_REPORT}")

    def set_extra_state(self, state):
        """Take what ``get_extra_state`` of the saved module returned."""
        raise RuntimeError(f"Reached a code path in Module.set_extra_state() that should never be called. {_REPORT}")

    # ---- saving

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
        """An ordered dict of all parameters and persistent buffers by their full names; it shares their memory.

        ``keep_vars``: the tensors themselves instead of detached ones. ``_metadata`` of the dict holds the version of
        each module.
        """
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead. Refer to "
                "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict for details.",
                FutureWarning,
                stacklevel=2,
            )
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        if destination is None:
            destination = collections.OrderedDict()
            destination._metadata = collections.OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars)
        return self._run_state_dict_hooks(destination, prefix, metadata)

    def _run_state_dict_hooks(self, destination, prefix, metadata):
        for hook in self._state_dict_hooks.values():
            got = hook(self, destination, prefix, metadata)
            if got is None:
                continue
            if getattr(hook, "_from_public_api", False):
                raise RuntimeError("state_dict post-hook must return None")
            destination = got
        return destination

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        """Put this module's own parameters and buffers, not its submodules', into ``destination``."""
        for name, tensor in self._own_state().items():
            destination[prefix + name] = tensor if keep_vars else tensor.detach()
        if getattr(type(self), "get_extra_state", State.get_extra_state) is not State.get_extra_state:
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def _own_state(self):
        """This module's own parameters and persistent buffers that are not None."""
        buffers = ((k, v) for k, v in self._buffers.items() if k not in self._non_persistent_buffers_set)
        return {k: v for k, v in itertools.chain(self._parameters.items(), buffers) if v is not None}

    def register_state_dict_pre_hook(self, hook):
        """Call ``hook(module, prefix, keep_vars)`` before the module is saved; returns a handle."""
        return add_hook(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook):
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after the module is saved; it returns None."""
        hook._from_public_api = True
        return add_hook(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook):
        """As ``register_state_dict_post_hook``, and a dict that the hook returns takes the result's place."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously registered via "
                "register_state_dict_post_hook"
            )
        return add_hook(self._state_dict_hooks, hook)

    # ---- loading

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Copy a state_dict's tensors into this module's; returns the missing and the unexpected names.

        ``strict``: names that are missing or unexpected are an error. ``assign``: the tensors of the dict become the
        module's parameters and buffers (with the module's requires_grad) instead of being copied into them.

        Raises      RuntimeError that lists every missing or unexpected name and every size that differs
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        load = _Load(getattr(state_dict, "_metadata", None), assign)
        state = collections.OrderedDict(state_dict)  # _load_from_state_dict may change it
        if load.metadata is not None:
            state._metadata = load.metadata
        load.into(self, state, "")
        if strict:
            load.report_names()
        if load.errors:
            raise RuntimeError(
                "Error(s) in loading state_dict for {}:\n\t{}".format(type(self).__name__, "\n\t".join(load.errors))
            )
        return _IncompatibleKeys(load.missing, load.unexpected)

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        """Load this module's own parameters and buffers, not its submodules'; a subclass may override it.

        ``local_metadata`` is what the saved module noted (its ``version``); the three lists are added to.
        """
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        assign = local_metadata.get("assign_to_params_buffers", False)
        own = self._own_state()
        for name, param in own.items():
            key = prefix + name
            if key in state_dict:
                problem = self._load_one(name, key, param, state_dict[key], assign)
                error_msgs += [problem] if problem else []
            elif strict:
                missing_keys.append(key)
        self._load_extra_state(state_dict, prefix + _EXTRA_STATE_KEY_SUFFIX, strict, missing_keys, unexpected_keys)
        if strict:
            unexpected_keys += self._unexpected(state_dict, prefix, own)

    def _load_one(self, name, key, param, value, assign):
        """Load one tensor; returns the text of what is wrong, or None."""
        if not isinstance(value, Tensor):
            return (
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from '
                f"checkpoint but received {type(value)}"
            )
        if is_lazy(param) and is_lazy(value):
            return None
        if not is_lazy(param):
            if param.ndim == 0 and tuple(value.shape) == (1,):
                value = value[0]
            if value.shape != param.shape:
                return (
                    f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, the shape in "
                    f"current model is {param.shape}."
                )
        try:
            with no_grad():
                if assign:
                    setattr(self, name, _as_kind_of(param, value))
                else:
                    param.copy_(value)
        except Exception as error:
            return (
                f'While copying the parameter named "{key}", whose dimensions in the model are {param.size()} and '
                f"whose dimensions in the checkpoint are {value.size()}, an exception occurred : {error.args}."
            )
        return None

    def _load_extra_state(self, state_dict, key, strict, missing_keys, unexpected_keys):
        if getattr(type(self), "set_extra_state", State.set_extra_state) is not State.set_extra_state:
            if key in state_dict:
                self.set_extra_state(state_dict[key])
            elif strict:
                missing_keys.append(key)
        elif strict and key in state_dict:
            unexpected_keys.append(key)

    def _unexpected(self, state_dict, prefix, own):
        """The keys under ``prefix`` that belong neither to this module's own state nor to a submodule."""
        found = []
        for key in state_dict:
            if not key.startswith(prefix) or key == prefix + _EXTRA_STATE_KEY_SUFFIX:
                continue
            name, dot, _ = key[len(prefix) :].partition(".")
            if name not in (self._modules if dot else own):
                found.append(key)
        return found

    def register_load_state_dict_pre_hook(self, hook):
        """Call ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)``
        before the module is loaded."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        """As ``register_load_state_dict_pre_hook``; the hook is given the module only ``with_module``."""
        return add_hook(self._load_state_dict_pre_hooks, WrappedHook(hook, self if with_module else None))

    def register_load_state_dict_post_hook(self, hook):
        """Call ``hook(module, incompatible_keys)`` after the module is loaded; it may change the two lists in place."""
        return add_hook(self._load_state_dict_post_hooks, hook)


class _Load:
    """One run of ``load_state_dict``: what is missing, unexpected and wrong so far."""

    def __init__(self, metadata, assign):
        self.metadata, self.assign = metadata, assign
        self.missing, self.unexpected, self.errors = [], [], []

    def into(self, module, state, prefix):
        noted = {} if self.metadata is None else self.metadata.get(prefix[:-1], {})
        if self.assign:
            noted["assign_to_params_buffers"] = True
        module._load_from_state_dict(state, prefix, noted, True, self.missing, self.unexpected, self.errors)
        for name, child in module._modules.items():
            if child is not None:
                below = prefix + name + "."
                self.into(child, {k: v for k, v in state.items() if k.startswith(below)}, below)
        for hook in module._load_state_dict_post_hooks.values():
            if hook(module, _IncompatibleKeys(self.missing, self.unexpected)) is not None:
                raise AssertionError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new "
                    "values, if incompatible_keys need to be modified, it should be done inplace."
                )

    def report_names(self):
        for what, names in (("Unexpected", self.unexpected), ("Missing", self.missing)):
            if names:
                listed = ", ".join(f'"{name}"' for name in names)
                self.errors.insert(0, f"{what} key(s) in state_dict: {listed}. ")


def _as_kind_of(param, value):
    """``value`` as a Parameter with ``param``'s requires_grad, where ``param`` is one."""
    if not isinstance(param, Parameter):
        return value
    if isinstance(value, Parameter):
        return value.requires_grad_(param.requires_grad)
    return Parameter(value, requires_grad=param.requires_grad)
