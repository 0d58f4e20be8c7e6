"""What functions that make tensors share: sizes, dtypes, devices, layouts, `out=` and the fill value."""

import builtins
import math
import types

import numpy as np

from .. import dtypes, errors
from ..backend import make as build
from ..backend.device import resolve
from ..core.inplace import into
from ..core.shape import strided
from ..core.tensor import Tensor, wrap
from .sizes import format_name

__all__ = ("memory_format", "preserve_format", "contiguous_format", "channels_last", "channels_last_3d")


class memory_format:
    """An order of the axes of an image batch in memory, one object each."""

    def __init__(self, name):
        self._name = name

    def __repr__(self):
        return "torch." + self._name

    def __reduce__(self):
        return self._name


preserve_format, contiguous_format = memory_format("preserve_format"), memory_format("contiguous_format")
channels_last, channels_last_3d = memory_format("channels_last"), memory_format("channels_last_3d")
_ORDERS = {"channels_last": (0, 2, 3, 1), "channels_last_3d": (0, 2, 3, 4, 1)}  # axes from the slowest to the fastest

_OF_PYTHON = {builtins.float: dtypes.float64, builtins.int: dtypes.int64, builtins.bool: dtypes.bool}
_OF_PYTHON[builtins.complex] = dtypes.complex128

C_NAMES = {d: f"{d.name}_t" for d in dtypes.ALL if d.category == 1} | {dtypes.int32: "int", dtypes.bool: "bool"}
C_NAMES |= {dtypes.float32: "float", dtypes.float64: "double", dtypes.float16: "c10::Half"}
C_NAMES |= {dtypes.bfloat16: "c10::BFloat16", dtypes.complex64: "c10::complex<float>"}
C_NAMES |= {dtypes.complex128: "c10::complex<double>"}


def dtype_of(name, dtype):
    """``dtype`` (ours, a Python type, or None) as one of ours."""
    if dtype is None or isinstance(dtype, dtypes.dtype):
        return dtype
    if dtype in _OF_PYTHON:
        return _OF_PYTHON[dtype]
    raise TypeError(f"{name}(): argument 'dtype' must be torch.dtype, not {type(dtype).__name__}")


def size_of(name, args, size=None):
    """The shape given as ``name(2, 3)``, ``name((2, 3))`` or ``name(size=(2, 3))``.

    Raises      TypeError where it is none, RuntimeError where a length is negative
    """
    if size is not None:
        args = (size,)
    if not args:
        raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
    first = args[0]
    if len(args) == 1 and isinstance(first, (tuple, list)):
        args = first
    elif not is_index(first):
        raise TypeError(f"{name}(): argument 'size' (position 1) must be tuple of ints, not {type(first).__name__}")
    for position, n in enumerate(args, 1):
        if not is_index(n):
            raise TypeError(
                f"{name}(): argument 'size' failed to unpack the object at pos {position} with error \"type must be "
                f'tuple of ints,but got {type(n).__name__}"'
            )
    return checked_size(tuple([n.__index__() for n in args]), name)


def checked_size(shape, name=""):
    """``shape``; RuntimeError where a length is negative."""
    for n in shape:
        if n < 0:
            if name == "zeros":
                raise RuntimeError(errors.text("zeros: Dimension size must be non-negative.", f"got size {shape}"))
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(shape)}")
    return shape


def is_index(n):
    """Whether ``n`` may stand for a length: an integer of Python, NumPy or a tensor of one element, not a bool."""
    if isinstance(n, np.ndarray) and n.ndim:
        return False
    if isinstance(n, Tensor):
        return n.array.size == 1 and n.dtype.category == 1
    return hasattr(n, "__index__") and not isinstance(n, builtins.bool)


def is_size(value):
    """Whether ``value`` is a list or tuple, as sizes are."""
    return isinstance(value, (tuple, list))


def index_of(name, argument, position, value):
    """An integer argument; TypeError in PyTorch's words for anything else."""
    if not is_index(value):
        what = f"{name}(): argument '{argument}' (position {position}) must be int, not {type(value).__name__}"
        raise TypeError(what)
    return value.__index__()


def number_of(name, argument, position, value):
    """A number argument as a Python number: 0-d tensors and NumPy scalars count."""
    if isinstance(value, Tensor) and value.array.ndim == 0:
        return value.item()
    if isinstance(value, np.generic) and value.dtype.kind in "biufc":
        return value.item()
    if isinstance(value, (builtins.int, builtins.float, builtins.complex)):
        return value
    raise TypeError(f"{name}(): argument '{argument}' (position {position}) must be Number, not {type(value).__name__}")


def fits(value, d):
    """Whether a Python number may become a ``d``; small negative integers may wrap round in unsigned types."""
    if isinstance(value, builtins.complex):
        if d.category in (0, 3):
            return True
        return value.imag == 0 and fits(value.real, d)
    if d.category == 0:
        return True
    if d.category >= 2:
        largest = dtypes.finfo(d).max
        return not math.isfinite(value) or abs(value) <= largest
    if not math.isfinite(value):
        return False
    info = np.iinfo(d.numpy)
    low = -info.max if not d.is_signed and isinstance(value, builtins.int) else info.min
    return low <= value <= info.max


def filling(value, d):
    """The fill value as a 0-d NumPy array of dtype ``d``.

    Raises      RuntimeError where it does not fit
    """
    if not fits(value, d):
        raise RuntimeError(
            errors.text(f"value cannot be converted to type {C_NAMES[d]} without overflow", f"got {value!r} for {d}")
        )
    if isinstance(value, builtins.complex) and d.category < 3:
        value = value.real if d.category else value != 0
    if d.category == 1:
        value = int(value) % (1 << 8 * d.itemsize)
        return np.array(value, f"u{d.itemsize}").view(d.numpy)
    return np.array(value).astype(d.numpy)


def target_of(device, layout=None, pin_memory=False):
    """The device to make a tensor on, from the keywords that say where."""
    if layout is not None and layout is not strided:
        raise NotImplementedError(f"layout {layout} is not supported: tensors here are torch.strided")
    return resolve(device)


def finish(array, requires_grad=False, pin_memory=False, out=None, name=""):
    """The tensor over a new array, as the keywords want it; into ``out`` where one is given."""
    if out is not None:
        t = into(out, types.SimpleNamespace(name="aten::" + name), wrap(array), silent=True)
    else:
        t = wrap(array)
        if pin_memory:
            t = t.pin_memory()
    if requires_grad:
        if t.dtype.category < 2:
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        t.requires_grad = True
    return t


def wanted(name, dtype, out, default=None):
    """The dtype to make: what was asked for, that of ``out``, or the default.

    Raises      RuntimeError where the first two differ
    """
    d = dtype_of(name, dtype)
    if out is not None:
        if d is not None and d is not out.dtype:
            raise RuntimeError(f"dtype {d.legacy} does not match dtype of out parameter ({out.dtype.legacy})")
        return out.dtype
    return d or default or dtypes.get_default_dtype()


def floating_default(value):
    """The dtype that a Python number takes by itself."""
    return dtypes.number_dtype(dtypes.category_of_number(value))


def empty_array(shape, d, target, format=contiguous_format):
    """An uninitialised array whose axes lie in memory as ``format`` says."""
    name = format_name(format)
    if name == "contiguous_format":
        return build(target, lambda xp: xp.empty(shape, d.numpy))
    if name not in _ORDERS:
        raise RuntimeError(f"unsupported memory format {name.removesuffix('_format').capitalize()}")
    order = _ORDERS[name]
    if len(shape) != len(order):
        raise RuntimeError(
            errors.text(f"required rank {len(order)} tensor to use {name} format", f"got size {tuple(shape)}")
        )
    return _in_order(shape, order, d, target)


def empty_like_array(input, d, target, format):
    """An uninitialised array of the shape of ``input``, with its order of axes in memory unless ``format`` says."""
    array = input.array
    if format_name(format) != "preserve_format":
        return empty_array(array.shape, d, target, format)
    if array.flags.c_contiguous:
        return build(target, lambda xp: xp.empty(array.shape, d.numpy))
    return _in_order(array.shape, sorted(range(array.ndim), key=lambda i: -array.strides[i]), d, target)


def _in_order(shape, order, d, target):
    array = build(target, lambda xp: xp.empty(tuple(shape[i] for i in order), d.numpy))
    return array.transpose([order.index(i) for i in range(len(order))])
