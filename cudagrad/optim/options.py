"""The options and the state of optimizers: checks in PyTorch's words, Tensors as numbers, new state."""

import contextlib

import numpy as np

from .. import dtypes, errors
from ..backend import xp_of
from ..core.tensor import Tensor, wrap


def number(value):
    """A Python number of an option that may be a one-element Tensor or a NumPy scalar (which would not be weak)."""
    if isinstance(value, Tensor):
        return value.array.item()
    return value.item() if isinstance(value, np.generic) else value


def numbers_of(group):
    """The options of a group with every Tensor among them, also within a tuple, as a Python number."""
    plain = {}
    for name, value in group.items():
        if name == "params":
            continue
        plain[name] = tuple(map(number, value)) if value.__class__ in (tuple, list) else number(value)
    return plain


def scalar_state(value):
    """A 0-d CPU tensor for a counter or coefficient in the state: float32, float64 where that is the default dtype."""
    wide = dtypes.get_default_dtype() is dtypes.float64
    return wrap(np.asarray(value, np.float64 if wide else np.float32))


def zeros_state(p):
    """A tensor of zeros of the shape, dtype, memory order and device of parameter ``p``."""
    with current(p.device):
        return wrap(xp_of(p.array).zeros_like(p.array))


def filled_state(p, value):
    """A tensor of ``value`` like parameter ``p``; of ``value + value i`` where p is complex."""
    with current(p.device):
        return wrap(xp_of(p.array).full_like(p.array, complex(value, value) if p.is_complex() else value))


def current(device):
    """A context in which ``device`` is the one that array arithmetic runs on."""
    if device.type != "cuda":
        return contextlib.nullcontext()
    from ..backend import cuda

    return cuda.on(device)


def check(valid, first, *lines):
    """ValueError with PyTorch's first line where an option is not valid."""
    if not valid:
        raise ValueError(errors.text(first, *lines))


def check_lr(lr, foreach=None, capturable=True, label="Invalid learning rate: "):
    """ValueError where ``lr`` is negative, a Tensor of several elements, or a Tensor where a number is needed."""
    if isinstance(lr, Tensor):
        first = "lr as a Tensor is not supported for capturable=False and foreach=True"
        check(not foreach or capturable, first)
        check(lr.numel() == 1, "Tensor lr must be 1-element")
    check(number(lr) >= 0.0, f"{label}{lr}")


def check_betas(betas):
    """ValueError where a beta is outside [0, 1)."""
    for i in range(2):
        check(0.0 <= number(betas[i]) < 1.0, f"Invalid beta parameter at index {i}: {betas[i]}")


def check_fused(optimizer, fused, foreach, differentiable):
    """RuntimeError where ``fused`` meets an option or a parameter that it excludes."""
    if not fused:
        return
    if differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
    for p in optimizer._params():
        if not p.dtype.is_floating_point:
            raise RuntimeError(
                "`fused=True` requires all the params to be floating point Tensors of supported devices: "
                f"['cpu', 'cuda', 'emulated'] but {p.dtype} and {p.device.type}"
            )


def type_name(value):
    """PyTorch's name of a value's type: ``torch.FloatTensor``, ``int``, ``module.Class``."""
    if isinstance(value, Tensor):
        return f"torch.{'cuda.' if value.is_cuda else ''}{value.dtype.legacy}Tensor"
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
