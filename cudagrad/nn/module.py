"""The base class of all modules."""

import inspect
import itertools
from collections import OrderedDict

from ..core.tensor import Tensor
from . import module_hooks as hooks
from .module_hooks import EVER_GLOBAL, add_hook, call_with_hooks
from .module_state import State
from .module_tree import Tree
from .parameter import Buffer, Parameter
from .registry import Registry

__all__ = ("Module",)

_REGISTRIES = ("_parameters", "_buffers", "_modules")
_HOOKS = (
    *("_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_hooks_with_kwargs"),
    *("_forward_hooks_always_called", "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_state_dict_hooks"),
    *("_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks"),
)


def typename(value):
    """What errors call a value: ``torch.FloatTensor``, ``int``, ``package.module.Class``."""
    if isinstance(value, Tensor):
        return value.type()
    kind = value if hasattr(value, "__qualname__") else type(value)
    module = "" if kind is value else kind.__module__
    return kind.__qualname__ if module in ("", "builtins") else f"{module}.{kind.__qualname__}"


def _unimplemented(self, *inputs):
    """The computation of the module; every subclass defines it."""
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


class Module(Tree, State):
    """Base class of all neural network modules, as ``torch.nn.Module``.

    Assigning a Parameter, Buffer or Module to an attribute registers it; ``forward`` is what a call runs.

    Differs     Registered tensors and modules are entries of ``__dict__`` as well, which makes reading them fast.

    >>> class Scale(Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.weight = Parameter(cudagrad.ones(2))
    ...     def forward(self, x):
    ...         return x * self.weight
    >>> [name for name, _ in Scale().named_parameters()]
    ['weight']
    """

    dump_patches = False
    _version = 1
    call_super_init = False
    forward = _unimplemented

    def __init__(self, *args, **kwargs):
        if not self.call_super_init:
            kind = type(self).__name__
            if kwargs:
                raise TypeError(f"{kind}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'")
            if args:
                raise TypeError(f"{kind}.__init__() takes 1 positional argument but {len(args) + 1} were given")
        state = self.__dict__
        state["training"] = True
        for name in _REGISTRIES:
            state[name] = Registry(self)
        for name in _HOOKS:
            state[name] = OrderedDict()
        state["_non_persistent_buffers_set"] = set()
        state["_is_full_backward_hook"] = None
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def __call__(self, *args, **kwargs):
        if (
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or EVER_GLOBAL[0]
        ):
            return call_with_hooks(self, args, kwargs)
        return self.forward(*args, **kwargs)

    _call_impl = __call__

    def compile(self, *args, **kwargs):
        """Nothing yet: the module runs as it is, which a compiled one equals bit for bit."""

    # ---- registration

    def register_buffer(self, name, tensor, persistent=True):
        """Add a tensor that is state but no parameter; a ``persistent`` one is part of the state_dict."""
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name(name, "buffer", self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        tensor = _passed(hooks._global_buffer_registration_hooks, self, name, tensor)
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name, param):
        """Add a parameter, or None for one that is absent."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name(name, "parameter", self._parameters)
        if param is None:
            self._parameters[name] = None
            return
        if not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{typename(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)"
            )
        if param.grad_fn:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To "
                f"express '{name}' as a function of another Tensor, compute the value in the forward() method."
            )
        self._parameters[name] = _passed(hooks._global_parameter_registration_hooks, self, name, param)

    def add_module(self, name, module):
        """Add a module below this one under a name."""
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._check_name(name, "module", self._modules)
        self._modules[name] = _passed(hooks._global_module_registration_hooks, self, name, module)

    def register_module(self, name, module):
        """The same as ``add_module``."""
        self.add_module(name, module)

    def _check_name(self, name, what, registry):
        if not isinstance(name, str):
            raise TypeError(f"{what} name should be a string. Got {typename(name)}")
        taken = hasattr(self, name) and name not in registry
        if what == "module" and taken:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'{what} name can\'t contain "."' + (f", got: {name}" if what == "module" else ""))
        if name == "":
            raise KeyError(f'{what} name can\'t be empty string ""')
        if taken:
            raise KeyError(f"attribute '{name}' already exists")

    # ---- attributes

    def __getattr__(self, name):
        state = self.__dict__
        for registry in _REGISTRIES:
            if registry in state and name in state[registry]:
                return state[registry][name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name, value):
        state = self.__dict__
        parameters, modules, buffers = map(state.get, _REGISTRIES_BY_RANK)
        if isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, modules, buffers)
            self.register_parameter(name, value)
        elif parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, parameters, buffers)
            modules[name] = _passed(hooks._global_module_registration_hooks, self, name, value)
        elif modules is not None and name in modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as child module '{name}' (torch.nn.Module or None expected)"
                )
            modules[name] = _passed(hooks._global_module_registration_hooks, self, name, value)
        elif isinstance(value, Buffer) or (buffers is not None and name in buffers):
            self._set_buffer(name, value)
        elif name in _REGISTRIES and isinstance(value, dict):
            self._set_registry(name, value)
        else:
            object.__setattr__(self, name, value)

    def _forget(self, name, *registries):
        """Take what is called ``name`` out of ``__dict__`` and the other registries."""
        for registry in registries:
            if name in registry:
                del registry[name]
        self.__dict__.pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def _set_buffer(self, name, value):
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(
                f"cannot assign '{typename(value)}' as buffer '{name}' (torch.nn.Buffer, torch.Tensor or None expected)"
            )
        persistent = value.persistent if isinstance(value, Buffer) else name not in self._non_persistent_buffers_set
        register = self.register_buffer
        # A subclass may have a register_buffer of its own, from before there was ``persistent``.
        if getattr(register, "__func__", None) is Module.register_buffer:
            register(name, value, persistent)
        elif "persistent" in inspect.signature(register).parameters:
            register(name, value, persistent)
        elif persistent:
            register(name, value)
        else:
            raise RuntimeError(
                "Registering a non-persistent buffer on a Module subclass that implements register_buffer() without "
                "the persistent argument is not allowed."
            )

    def _set_registry(self, name, entries):
        """Put a dict in the place of a whole registry, as code that knows PyTorch's inside does."""
        for old in list(self.__dict__.get(name, ())):
            self.__dict__.pop(old, None)
        self.__dict__[name] = Registry(self, entries)

    def __delattr__(self, name):
        for registry in _REGISTRIES:
            if name in self.__dict__[registry]:
                del self.__dict__[registry][name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self):
        return sorted(n for n in {*dir(type(self)), *self.__dict__} if not n[0].isdigit())

    def __setstate__(self, state):
        self.__dict__.update(state)
        for name in _HOOKS:
            self.__dict__.setdefault(name, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)
        for name in _REGISTRIES:
            registry = self.__dict__.get(name)
            if not isinstance(registry, Registry) or registry.owner() is not self:
                self.__dict__[name] = Registry(self, registry or ())

    def _replicate_for_data_parallel(self):
        replica = self.__new__(type(self))
        replica.__dict__.update({k: v for k, v in self.__dict__.items() if k not in self._parameters})
        replica.__dict__["_parameters"] = Registry(replica)
        for name in ("_buffers", "_modules"):
            replica.__dict__[name] = Registry(replica, self.__dict__[name])
        replica._is_replica = True
        return replica

    # ---- hooks around forward and backward

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """Call ``hook(module, args)`` before forward; it may return other arguments. Returns a handle.

        ``prepend``: before the hooks there are. ``with_kwargs``: ``hook(module, args, kwargs)``, which may return both.
        """
        noted = [self._forward_pre_hooks_with_kwargs] * bool(with_kwargs)
        return add_hook(self._forward_pre_hooks, hook, prepend, noted)

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        """Call ``hook(module, args, output)`` after forward; it may return another output. Returns a handle.

        ``with_kwargs``: ``hook(module, args, kwargs, output)``. ``always_call``: also where forward raised.
        """
        noted = [self._forward_hooks_with_kwargs] * bool(with_kwargs)
        noted += [self._forward_hooks_always_called] * bool(always_call)
        return add_hook(self._forward_hooks, hook, prepend, noted)

    def register_full_backward_hook(self, hook, prepend=False):
        """Call ``hook(module, grad_input, grad_output)`` once the gradients of the module's inputs are known.

        It may return other gradients of the inputs. Without an input that requires a gradient it is called with None
        for each, and a warning. Returns a handle.
        """
        self._one_kind_of_backward_hook(full=True)
        return add_hook(self._backward_hooks, hook, prepend)

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """Call ``hook(module, grad_output)`` before the module's backward; it may return other gradients."""
        return add_hook(self._backward_pre_hooks, hook, prepend)

    def register_backward_hook(self, hook):
        """Call ``hook(module, grad_input, grad_output)`` on the output's node alone; deprecated."""
        self._one_kind_of_backward_hook(full=False)
        return add_hook(self._backward_hooks, hook)

    def _one_kind_of_backward_hook(self, full):
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(hooks.MIXED_ON_ONE)
        self._is_full_backward_hook = full

    # ---- text

    def _get_name(self):
        return type(self).__name__

    def extra_repr(self):
        """What ``repr`` shows of the module's own settings; to be overridden."""
        return ""

    def __repr__(self):
        extra = self.extra_repr()
        extra = extra.split("\n") if extra else []
        children = [f"({name}): " + repr(module).replace("\n", "\n  ") for name, module in self._modules.items()]
        if len(extra) == 1 and not children:
            return f"{self._get_name()}({extra[0]})"
        body = "".join(f"\n  {line}" for line in itertools.chain(extra, children))
        return f"{self._get_name()}({body}\n)" if body else f"{self._get_name()}()"


_REGISTRIES_BY_RANK = ("_parameters", "_modules", "_buffers")  # the order in which an assignment looks at them


def _passed(registration_hooks, module, name, value):
    """``value``, or what the last registration hook that returned something put in its place."""
    for hook in registration_hooks.values():
        got = hook(module, name, value)
        if got is not None:
            value = got
    return value
