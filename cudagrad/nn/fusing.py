"""Modules that stand beside each other as one op, where nobody could tell but by the time it takes."""

from ..backend import has_kernels
from ..core.modes import MODE
from ..dtypes import float32
from ..ops.linear_act import linear_act
from ..ops.residual import add_layer_norm, bias_dropout_add
from .activation import GELU, ReLU, SiLU
from .dropout import Dropout
from .linear import Linear
from .module_hooks import on_all_modules
from .normalization import LayerNorm

_GELUS = {"none": "gelu", "tanh": "gelu_tanh"}
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def fusible(input):
    """Whether ops may stand for modules around a tensor.

    That is on a device with kernels, with no hook on all modules, nor on saved tensors, which would see each.
    """
    return has_kernels(getattr(input, "array", None)) and not on_all_modules() and not MODE.saved_hooks


def in_a_row(modules, input):
    """``input`` through every module, with ``linear_act`` for a Linear and an activation on a device with kernels."""
    modules = list(modules)
    i = 0
    while i < len(modules):
        pair = modules[i : i + 2]
        act = _act_of(*pair) if len(pair) == 2 and fusible(input) else None
        if act is None:
            input = pair[0](input)
            i += 1
        else:
            input = linear_act(input, pair[0].weight, pair[0].bias, act)
            i += 2
    return input


def _act_of(linear, activation):
    """What ``linear_act`` calls the activation; None where the two modules are to be called themselves.

    That is where one has hooks or a forward of its own, or is of a subclass (a parametrized one, too), and for other
    activations. One in place changes only what Linear made.
    """
    if not _plain(linear, Linear) or _special(activation):
        return None
    kind = type(activation)
    if kind is GELU:
        return _GELUS.get(activation.approximate)
    return "relu" if kind is ReLU else "silu" if kind is SiLU else None


def _special(module):
    state = module.__dict__
    return "forward" in state or any(state.get(name) for name in _HOOKS)


# ---- residual sums


def plus(dropout, x, residual):
    """residual + dropout(x), in one op where ``dropout`` is a plain one that draws."""
    if _plain(dropout, Dropout) and dropout.training and dropout.p and _alike(x, residual):
        return bias_dropout_add(x, None, residual, dropout.p)
    return residual + dropout(x)


def plus_and_norm(norm, dropout, x, residual):
    """``(norm(s), s)`` of s = residual + dropout(x): one op for a plain LayerNorm, where nothing is dropped.

    Under autocast the sum has the dtype of its summands, and the norm float32: an op for both has to be in float32.
    """
    idle = _plain(dropout, Dropout) and not (dropout.training and dropout.p)
    if idle and _plain(norm, LayerNorm) and x.shape == residual.shape:
        if float32 in (x.dtype, residual.dtype) or (x.dtype is residual.dtype and not MODE.autocast):
            return add_layer_norm(x, residual, norm.normalized_shape, norm.weight, norm.bias, norm.eps)
    s = plus(dropout, x, residual)
    return norm(s), s


def _plain(module, kind):
    return type(module) is kind and not _special(module)


def _alike(x, residual):
    return x.shape == residual.shape and x.dtype is residual.dtype
