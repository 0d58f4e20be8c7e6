"""A Linear and the activation behind it as one op, where nobody could tell but by the time it takes."""

from ..backend import has_kernels
from ..core.modes import MODE
from ..ops.linear_act import linear_act
from .activation import GELU, ReLU, SiLU
from .linear import Linear
from .module_hooks import EVER_GLOBAL

_GELUS = {"none": "gelu", "tanh": "gelu_tanh"}
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def in_a_row(modules, input):
    """``input`` through every module, with ``linear_act`` for a Linear and an activation on a device with kernels."""
    modules = list(modules)
    i = 0
    while i < len(modules):
        pair = modules[i : i + 2]
        act = act_of(*pair) if len(pair) == 2 and has_kernels(getattr(input, "array", None)) else None
        if act is None:
            input = pair[0](input)
            i += 1
        else:
            input = linear_act(input, pair[0].weight, pair[0].bias, act)
            i += 2
    return input


def act_of(linear, activation):
    """What ``linear_act`` calls the activation; None where the two modules are to be called themselves.

    That is where one has hooks or a forward of its own, or is of a subclass (a parametrized one, too), where saved
    tensors go through hooks, which see each, and for other activations. One in place changes only what Linear made.
    """
    if type(linear) is not Linear or EVER_GLOBAL[0] or MODE.saved_hooks or _special(linear) or _special(activation):
        return None
    kind = type(activation)
    if kind is GELU:
        return _GELUS.get(activation.approximate)
    return "relu" if kind is ReLU else "silu" if kind is SiLU else None


def _special(module):
    state = module.__dict__
    return "forward" in state or any(state.get(name) for name in _HOOKS)
