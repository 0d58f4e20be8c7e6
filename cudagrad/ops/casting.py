"""Moving a tensor to another dtype or device."""

import builtins

from .. import dtypes
from ..backend import current_gpu
from ..backend import to_device as move_array
from ..backend.device import device as place
from ..backend.device import resolve
from ..core.op import TABLE, op
from ..core.promote import cast, lift, result_type_of
from ..core.tensor import Tensor
from .factory import dtype_of

__all__ = ("result_type",)


def _cast(array, dtype):
    """``array`` in another dtype; complex to real takes the real part, out-of-range integers wrap round."""
    if array.dtype.kind == "c" and dtype.kind != "c":
        array = array.real if dtype.kind != "b" else array != 0
    return array.astype(dtype)


@op(x=lambda m, g, dtype, source: m.to(g, dtype=source, source=dtype), holomorphic=False, node="ToCopy")
def to(xp, x, *, dtype, source=None):
    """x in another floating or complex dtype (a NumPy dtype), always a copy.

    Derivative  the gradient in the dtype of x
    """
    return _cast(x, dtype)


@op()
def to_integer(xp, x, *, dtype):
    """x in an integer or bool dtype (a NumPy dtype), rounded towards zero; no gradient passes."""
    return _cast(x, dtype)


@op(x=lambda m, g, device, source: m.to_device(g, device=source, source=device), holomorphic=False, node="ToCopy")
def to_device(xp, x, *, device, source=None, non_blocking=False):
    """x on another device."""
    return move_array(x, device, non_blocking)


def to_dtype(input, d):
    """``input`` in dtype ``d`` (ours, or a Python type): itself where it has that dtype."""
    if d.__class__ is not dtypes.dtype:
        d = dtype_of("to", d)
    return input if input.array.dtype is d.numpy else cast(input, d.numpy)


def result_type(tensor1, tensor2):
    """The dtype in which two tensors meet, or a tensor and a number, or two numbers.

    >>> cudagrad.result_type(cudagrad.tensor([1, 2]), 1.0)
    torch.float32
    """
    if not isinstance(tensor1, Tensor) and not isinstance(tensor2, Tensor):
        return dtypes.number_dtype(builtins.max(dtypes.category_of_number(v) for v in (tensor1, tensor2)))
    if not isinstance(tensor1, Tensor):
        tensor1 = lift(tensor1, tensor2, None)
    elif not isinstance(tensor2, Tensor):
        tensor2 = lift(tensor2, tensor1, None)
    return result_type_of((tensor1, tensor2))


def convert(input, *args, dtype=None, device=None, non_blocking=False, copy=False, memory_format=None, other=None):
    """``input`` in a dtype and on a device, given as ``to(dtype)``, ``to(device, dtype)`` or ``to(other)``.

    Itself where nothing changes and ``copy`` is False. The gradient comes back in the dtype and on the device of
    ``input``.

    Raises      TypeError for arguments that are neither
    """
    flags = []
    for a in args:
        if isinstance(a, (dtypes.dtype, builtins.type)):
            dtype = a
        elif isinstance(a, Tensor):
            other = a
        elif a is True or a is False:
            flags.append(a)
        elif isinstance(a, (str, builtins.int, place)):
            device = a
        elif a is not None:
            raise TypeError(f"to() received an invalid combination of arguments - got ({a.__class__.__name__})")
    non_blocking, copy = flags[0] if flags else non_blocking, flags[1] if len(flags) > 1 else copy
    if other is not None:
        dtype, device = dtype or other.dtype, device or other.device
    result = input if device is None else _moved(input, resolve(device), non_blocking)
    if dtype is not None:
        result = to_dtype(result, dtype)
    return TABLE["clone"].raw(result) if copy and result is input else result


def _moved(input, target, non_blocking):
    here = input.device
    if target.type == "cuda" and target.index is None:
        target = place("cuda", current_gpu())
    if here == target or (target.index is None and target.type == here.type):
        return input
    return TABLE["to_device"].raw(input, device=target, source=here, non_blocking=non_blocking)


def _caster(d):
    def caster(input, memory_format=None):
        return to_dtype(input, d)

    caster.__doc__ = f"``input`` as {d}; itself where it is that already."
    return caster


float, double, half, bfloat16 = map(_caster, (dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16))
long, short, char, byte = map(_caster, (dtypes.int64, dtypes.int16, dtypes.int8, dtypes.uint8))
cfloat, cdouble = map(_caster, (dtypes.complex64, dtypes.complex128))
int, bool = map(_caster, (dtypes.int32, dtypes.bool))


def type(input, dtype=None, non_blocking=False):
    """The legacy name of the tensor's type (``torch.FloatTensor``), or ``input`` in the type given."""
    if dtype is None:
        prefix = "torch.cuda." if input.device.type == "cuda" else "torch."
        return f"{prefix}{input.dtype.legacy}Tensor"
    if isinstance(dtype, str):
        *place, name = dtype.removesuffix("Tensor").split(".")
        if name not in dtypes.OF_LEGACY:
            raise ValueError(f"invalid type: '{dtype}'")
        return convert(input, dtypes.OF_LEGACY[name], device="cuda" if "cuda" in place else None)
    if not isinstance(dtype, dtypes.dtype):
        dtype = dtype.dtype
    return convert(input, dtype)


def type_as(input, other):
    """``input`` in the dtype and on the device of ``other``."""
    return convert(input, other)


def cpu(input, memory_format=None):
    """``input`` on the CPU; itself where it is there."""
    return convert(input, device="cpu")


def cuda(input, device=None, non_blocking=False, memory_format=None):
    """``input`` on a CUDA device, the current one by default."""
    if isinstance(device, builtins.int):
        device = f"cuda:{device}"
    return convert(input, device=device or "cuda", non_blocking=non_blocking)


METHODS = {"to": convert, "type": type, "type_as": type_as, "cpu": cpu, "cuda": cuda}
METHODS |= {"float": float, "double": double, "half": half, "bfloat16": bfloat16, "long": long, "int": int}
METHODS |= {"short": short, "char": char, "byte": byte, "bool": bool, "cfloat": cfloat, "cdouble": cdouble}
