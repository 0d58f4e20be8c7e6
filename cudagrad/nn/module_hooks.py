"""Hooks of modules: what is called around forward and backward, on one module or on all."""

import collections
import functools
import warnings
import weakref

from ..core import node as nodes
from ..core.hooks import RemovableHandle
from ..core.tensor import Tensor
from .backward_hook import BackwardHook

_global_backward_pre_hooks = collections.OrderedDict()
_global_backward_hooks = collections.OrderedDict()
_global_forward_pre_hooks = collections.OrderedDict()
_global_forward_hooks = collections.OrderedDict()
_global_forward_hooks_always_called = collections.OrderedDict()
_global_forward_hooks_with_kwargs = collections.OrderedDict()
_global_buffer_registration_hooks = collections.OrderedDict()
_global_module_registration_hooks = collections.OrderedDict()
_global_parameter_registration_hooks = collections.OrderedDict()
_global_is_full_backward_hook = None

# One truth value for Module.__call__ to look at: whether any global hook around forward was ever registered.
EVER_GLOBAL = [False]


def on_all_modules():
    """Whether there is a hook now that is called around the forward or backward of every module."""
    return EVER_GLOBAL[0] and any(
        (_global_forward_hooks, _global_forward_pre_hooks, _global_backward_hooks, _global_backward_pre_hooks)
    )


_MIXED = (
    "Cannot use both regular backward hooks and full backward hooks as a global Module hook. "
    "Please use only one of them."
)
MIXED_ON_ONE = (
    "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only one of them."
)


class ModuleHookHandle(RemovableHandle):
    """The handle of a module's hook; removes what is noted about the hook elsewhere, too."""

    def __init__(self, hooks, *, extra_dict=()):
        super().__init__(hooks)
        self._extra = tuple(weakref.ref(d) for d in extra_dict)

    def remove(self):
        super().remove()
        for ref in self._extra:
            noted = ref()
            if noted is not None:
                noted.pop(self.id, None)

    def __getstate__(self):
        return self._hooks(), self.id, tuple(ref() for ref in self._extra)

    def __setstate__(self, state):
        hooks, self.id, extra = state
        self._hooks = weakref.ref(collections.OrderedDict() if hooks is None else hooks)
        self._extra = tuple(weakref.ref(d) for d in extra if d is not None)


def add_hook(hooks, hook, prepend=False, noted=()):
    """Put ``hook`` into an ordered dict, first or last; ``noted`` are dicts that mark it with True."""
    handle = ModuleHookHandle(hooks, extra_dict=noted)
    while handle.id in hooks:  # by a hook that was unpickled
        handle = ModuleHookHandle(hooks, extra_dict=noted)
    hooks[handle.id] = hook
    for marks in noted:
        marks[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


class WrappedHook:
    """A hook that is handed its module first, without keeping the module alive."""

    def __init__(self, hook, module=None):
        self.hook = hook
        functools.update_wrapper(self, hook)
        self.with_module = module is not None
        if self.with_module:
            self.module = weakref.ref(module)

    def __call__(self, *args, **kwargs):
        if not self.with_module:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self):
        return {"hook": self.hook, "module": self.module() if self.with_module else None}

    def __setstate__(self, state):
        self.__init__(state["hook"], state["module"])


# ---- global hooks


def _global_hook(hooks, hook, noted=(), around_forward=True):
    EVER_GLOBAL[0] = EVER_GLOBAL[0] or around_forward
    return add_hook(hooks, hook, noted=noted)


def register_module_buffer_registration_hook(hook):
    """Call ``hook(module, name, buffer)`` at every ``register_buffer``; what it returns takes the buffer's place."""
    return _global_hook(_global_buffer_registration_hooks, hook, around_forward=False)


def register_module_module_registration_hook(hook):
    """Call ``hook(module, name, submodule)`` when a submodule is registered; it may return another one."""
    return _global_hook(_global_module_registration_hooks, hook, around_forward=False)


def register_module_parameter_registration_hook(hook):
    """Call ``hook(module, name, param)`` at every ``register_parameter``; it may return another one."""
    return _global_hook(_global_parameter_registration_hooks, hook, around_forward=False)


def register_module_forward_pre_hook(hook):
    """Call ``hook(module, args)`` before every module's forward, ahead of the module's own hooks."""
    return _global_hook(_global_forward_pre_hooks, hook)


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """Call ``hook(module, args, output)`` after every module's forward, ahead of the module's own hooks."""
    noted = [_global_forward_hooks_with_kwargs] * bool(with_kwargs)
    noted += [_global_forward_hooks_always_called] * bool(always_call)
    return _global_hook(_global_forward_hooks, hook, noted)


def register_module_backward_hook(hook):
    """Call ``hook(module, grad_input, grad_output)`` for every module, on the node of its output only.

    Differs     Deprecated, as in PyTorch: ``grad_input`` is that of the last op. Use the full backward hook.
    """
    return _global_backward_hook(hook, full=False)


def register_module_full_backward_hook(hook):
    """Call ``hook(module, grad_input, grad_output)`` when the gradients of any module's inputs have been computed."""
    return _global_backward_hook(hook, full=True)


def _global_backward_hook(hook, full):
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is (not full) and _global_backward_hooks:
        raise RuntimeError(_MIXED)
    _global_is_full_backward_hook = full
    return _global_hook(_global_backward_hooks, hook)


def register_module_full_backward_pre_hook(hook):
    """Call ``hook(module, grad_output)`` for every module before the gradients of its inputs are computed."""
    return _global_hook(_global_backward_pre_hooks, hook)


# ---- the call of a module that has hooks


def call_with_hooks(module, args, kwargs):
    """Run the hooks of ``module`` and the global ones round its forward."""
    call = _HookedCall(module, args, kwargs)
    try:
        return call.run()
    except Exception:
        call.run_those_always_called()
        raise


class _HookedCall:
    """One call of a module with hooks: the arguments and the result as the hooks have left them so far."""

    def __init__(self, module, args, kwargs):
        self.module, self.args, self.kwargs = module, args, kwargs
        self.result, self.called = None, set()

    def run(self):
        module = self.module
        pre = [*_global_backward_pre_hooks.values(), *module._backward_pre_hooks.values()]
        full, partial = _backward_hooks(module)
        self._before()
        backward = BackwardHook(module, full, pre) if full or pre else None
        if backward is not None:
            self.args = backward.setup_input_hook(self.args)
        self.result = module.forward(*self.args, **self.kwargs)
        self._after()
        if backward is not None:
            if not isinstance(self.result, (Tensor, tuple)):
                warnings.warn(
                    "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but "
                    f"received {type(self.result)}",
                    stacklevel=5,
                )
            self.result = backward.setup_output_hook(self.result)
        if partial:
            _hook_last_node(module, partial, self.args, self.result)
        return self.result

    def _before(self):
        with_kwargs = self.module._forward_pre_hooks_with_kwargs
        for key, hook in (*_global_forward_pre_hooks.items(), *self.module._forward_pre_hooks.items()):
            if key in with_kwargs:
                got = hook(self.module, self.args, self.kwargs)
                if got is None:
                    continue
                if not isinstance(got, tuple) or len(got) != 2:
                    raise RuntimeError(
                        f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {got}."
                    )
                self.args, self.kwargs = got
            else:
                got = hook(self.module, self.args)
                if got is not None:
                    self.args = got if isinstance(got, tuple) else (got,)

    def _after(self):
        for key, hook in self._forward_hooks():
            if self._always(key):
                self.called.add(key)
            self._call(key, hook)

    def _forward_hooks(self):
        return (*_global_forward_hooks.items(), *self.module._forward_hooks.items())

    def _always(self, key):
        return key in self.module._forward_hooks_always_called or key in _global_forward_hooks_always_called

    def _call(self, key, hook):
        if key in self.module._forward_hooks_with_kwargs or key in _global_forward_hooks_with_kwargs:
            got = hook(self.module, self.args, self.kwargs, self.result)
        else:
            got = hook(self.module, self.args, self.result)
        if got is not None:
            self.result = got

    def run_those_always_called(self):
        """After an exception: the hooks with ``always_call`` that have not run; what they raise is only warned of."""
        for key, hook in self._forward_hooks():
            if not self._always(key) or key in self.called:
                continue
            try:
                self._call(key, hook)
            except Exception as error:
                which = "global module" if key in _global_forward_hooks else "module"
                warnings.warn(
                    f"{which} forward hook with ``always_call=True`` raised an exception that was silenced as another "
                    f"error was raised in forward: {error}",
                    stacklevel=4,
                )


def _backward_hooks(module):
    """The full backward hooks and the old ones that see one node only."""
    full, partial = [], []
    if _global_backward_hooks:
        (full if _global_is_full_backward_hook else partial).extend(_global_backward_hooks.values())
    if module._backward_hooks:
        (full if module._is_full_backward_hook else partial).extend(module._backward_hooks.values())
    return full, partial


def _hook_last_node(module, hooks, args, result):
    """Put the old, non-full backward hooks on the node of the first tensor in ``result``."""
    tensor = result
    while not isinstance(tensor, Tensor):
        if isinstance(tensor, dict):
            tensor = next(v for v in tensor.values() if isinstance(v, Tensor))
        else:
            tensor = tensor[0]
    if tensor.grad_fn is None:
        return
    for hook in hooks:
        tensor.grad_fn.register_hook(WrappedHook(hook, module))
    _warn_of_partial_gradients(args, result, tensor.grad_fn)


def _warn_of_partial_gradients(args, result, grad_fn):
    results = (result,) if isinstance(result, Tensor) else result
    full = "Please use register_full_backward_hook to get the documented behavior."
    old = "is deprecated and will be removed in future versions. This hook will be missing "
    text = None
    if not (isinstance(results, tuple) and all(isinstance(r, Tensor) for r in results)):
        text = "Using non-full backward hooks on a Module that does not return a single Tensor or a tuple of Tensors "
        text += f"{old}some of the grad_output. {full}"
    elif not all(isinstance(a, Tensor) for a in args):
        text = "Using non-full backward hooks on a Module that does not take as input a single Tensor or a tuple of "
        text += f"Tensors {old}some of the grad_input. {full}"
    elif len({r.grad_fn for r in results if r.grad_fn is not None}) > 1:
        text = f"Using a non-full backward hook when outputs are generated by different autograd Nodes {old}"
        text += f"some grad_output. {full}"
    else:
        inputs = {nodes.visible(a.node)[0] for a in args if a.node is not None}
        nexts = {n for n, _ in grad_fn.next_functions if n is not None}
        if inputs != nexts:
            text = f"Using a non-full backward hook when the forward contains multiple autograd Nodes {old}"
            text += f"some grad_input. {full}"
    if text:
        warnings.warn(text, FutureWarning, stacklevel=6)
