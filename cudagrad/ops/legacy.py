"""PyTorch's first constructors: ``Tensor(2, 3)``, ``Tensor([1.0])``, ``FloatTensor(...)`` and their like."""

import numpy as np

from .. import dtypes, errors
from ..backend import to_device
from ..backend.device import device as Device
from ..backend.device import resolve, set_default_device
from ..core.modes import SPACE
from ..core.shape import Size
from ..core.tensor import Tensor, wrap
from .conversion import array_of, warn_once
from .factory import empty_array, is_index, size_of


def legacy_tensor(*args, device=None, dtype=None, **named):
    """``Tensor(...)``: an uninitialised tensor of a size given by ints, a copy of a sequence, or an alias of a tensor.

    ``Tensor()`` is empty; the dtype is the default floating one.

    Raises      TypeError for a number, which is neither a size nor data
    """
    args = _arguments(args, named)
    if len(args) == 1 and isinstance(args[0], Tensor):
        return args[0].detach()
    return _constructed(args, dtype or dtypes.get_default_dtype(), resolve(device))


def _arguments(args, named):
    """The arguments without their names. ``requires_grad`` is none of them: the wish would be lost in silence."""
    if not named:
        return args
    if set(named) == {"data"} and not args:
        return (named["data"],)
    given = [type(a).__name__ for a in args] + [f"{name}={type(a).__name__}" for name, a in named.items()]
    raise TypeError(
        errors.text(
            f"new() received an invalid combination of arguments - got ({', '.join(given)}), but expected one of:",
            "(*size, device=None) or (data, device=None)",
            "fix: tensor(data, requires_grad=..., dtype=...)",
        )
    )


def _constructed(args, d, target):
    if not args:
        return wrap(empty_array((0,), d, target))
    first = args[0]
    if len(args) == 1 and not isinstance(first, Size) and not is_index(first):
        if isinstance(first, (str, bytes)):
            raise TypeError(f"new(): invalid data type '{type(first).__name__}'")
        if isinstance(first, np.ndarray) or hasattr(first, "__len__"):
            return wrap(to_device(array_of(first, d), target))
        raise TypeError(f"new(): data must be a sequence (got {type(first).__name__})")
    return wrap(empty_array(size_of("new", args), d, target))


def new(self, *args, device=None):
    """A tensor of the dtype and device of this one, by the rules of ``Tensor(...)``."""
    if len(args) == 1 and isinstance(args[0], Tensor):
        _same_type(self.dtype, self.device.type, args[0])
        return args[0].detach()
    return _constructed(args, self.dtype, self.device if device is None else resolve(device))


def _same_type(d, place, t):
    if t.dtype is not d or t.device.type != place:
        raise TypeError(
            f"expected {d.legacy}Tensor on {place} (got {t.dtype.legacy}Tensor on {t.device.type})\n"
            f"  fix: convert it with .to({d})"
        )


class tensortype(type):
    """The class of ``FloatTensor`` and its like: types that tensors are instances of by their dtype and device."""

    def __instancecheck__(cls, t):
        return isinstance(t, Tensor) and t.dtype is cls.dtype and t.device.type == cls._place

    def __call__(cls, *args, device=None, **named):
        target = cls._target(device)
        args = _arguments(args, named)
        if len(args) == 1 and isinstance(args[0], Tensor):
            _same_type(cls.dtype, cls._place, args[0])
            return args[0].detach()
        return _constructed(args, cls.dtype, target)

    def _target(cls, device):
        target = Device(cls._place) if device is None else resolve(device)
        if target.type != cls._place:
            raise RuntimeError(
                f"legacy constructor expects device type: {cls._place} but device type: {target.type} was passed"
            )
        return target

    is_cuda = property(lambda cls: cls._place == "cuda")
    is_sparse = property(lambda cls: False)


tensortype.__module__ = "torch"


def _types(place):
    module = "torch.cuda" if place == "cuda" else "torch"
    made = {}
    for d in dtypes.ALL:
        name = d.legacy + "Tensor"
        made[name] = tensortype(name, (), {"dtype": d, "_place": place, "__module__": module, "__slots__": ()})
    return made


CPU_TYPES, CUDA_TYPES = _types("cpu"), _types("cuda")  # CUDA's are named by cudagrad.cuda
globals().update(CPU_TYPES)


def set_default_tensor_type(t):
    """Make the dtype and device of a legacy tensor type (or its name) the default. Deprecated: two calls do it.

    Raises      TypeError where ``t`` is none or its dtype is not floating
    """
    warn_once(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
        "torch.set_default_device() as alternatives."
    )
    if isinstance(t, str):
        *place, name = t.split(".")
        found = (CUDA_TYPES if "cuda" in place else CPU_TYPES).get(name)
        if found is None:
            raise TypeError(f"invalid type: '{t}'")
        t = found
    if not isinstance(t, tensortype):
        raise TypeError("invalid type object: only floating-point types are supported as the default type")
    if not t.dtype.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    dtypes.set_default_dtype(t.dtype)
    set_default_device(t._place)


SPACE["legacy_tensor"] = legacy_tensor

__all__ = (*CPU_TYPES, "set_default_tensor_type")
METHODS = ("new",)
