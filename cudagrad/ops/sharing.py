"""Tensors over memory that NumPy, CuPy, buffers and DLPack hold: shared, not copied, wherever that is possible."""

import builtins
import ctypes

import numpy as np

from .. import dtypes
from ..backend.device import device as Device
from ..core.tensor import Tensor, canonical, wrap
from .conversion import checked, made, warn_once
from .factory import build, dtype_of, finish, target_of

__all__ = ("as_tensor", "asarray", "from_numpy", "frombuffer", "from_dlpack", "to_dlpack")


def from_numpy(ndarray):
    """A tensor over the memory of a NumPy array: what is written to one shows in the other.

    Raises      TypeError for what is no array or has another element type; ValueError for negative strides
    """
    if not isinstance(ndarray, np.ndarray):
        kind = type(ndarray)
        name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
        raise TypeError(f"expected np.ndarray (got {name})")
    array = checked(ndarray)
    if not array.flags.writeable:
        warn_once(
            "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This means "
            "writing to this tensor will result in undefined behavior. You may want to copy the array to protect its "
            "data or make it writable before converting it to a tensor. This type of warning will be suppressed for "
            "the rest of this program."
        )
    return wrap(canonical(array.view(np.ndarray)))


def as_tensor(data, dtype=None, device=None):
    """``data`` as a tensor: itself, or over the same memory, where it is a tensor or array of that dtype and device.

    The history of a tensor is kept.
    """
    d = dtype_of("as_tensor", dtype)
    if isinstance(data, Tensor):
        return data.to(device=data.device if device is None else device, dtype=d or data.dtype)
    target = target_of(device)
    if isinstance(data, np.ndarray):
        t = from_numpy(data)
        return t.to(target, d or t.dtype)
    if hasattr(data, "__cuda_array_interface__"):
        t = wrap(build(target if target.type == "cuda" else Device("cuda"), lambda xp: xp.asarray(data)))
        return t.to(t.device if device is None else target, d or t.dtype)
    return made(data, d, device)


def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False):
    """``obj`` as a tensor, which shares its memory where that is possible and ``copy`` does not forbid it.

    Tensors, arrays, DLPack and buffer objects can share; ``copy=False`` makes it an error not to. With
    ``requires_grad=False`` the result has no history.

    Raises      ValueError where ``copy=False`` and a copy is needed
    """
    d = dtype_of("asarray", dtype)
    source = _shareable(obj, d)
    if source is None:
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        return finish(made(obj, d, device).array, requires_grad)
    target = source.device if device is None else target_of(device)
    if copy is False:
        if target != source.device:
            raise ValueError(f"can't alias tensor from device '{source.device}' to '{target}'.")
        if d is not None and d is not source.dtype:
            raise ValueError(f"can't alias tensor with dtype '{source.dtype.legacy}' into dtype '{d.legacy}'.")
    if not requires_grad:
        source = source.detach()
    t = source.to(target, d or source.dtype, copy=builtins.bool(copy))
    if requires_grad and t.node is None:
        t.requires_grad = True
    return t


def _shareable(obj, d):
    """A tensor over the memory of ``obj``, or None where it has none that could be shared."""
    if isinstance(obj, Tensor):
        return obj
    if isinstance(obj, np.ndarray):
        return from_numpy(obj)
    if isinstance(obj, np.generic):
        return None
    if hasattr(obj, "__dlpack__"):
        return from_dlpack(obj)
    try:
        memoryview(obj)
    except TypeError:
        return None
    return frombuffer(obj, dtype=d or dtypes.get_default_dtype())


def frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False):
    """A 1-d tensor over the memory of a buffer object: ``count`` elements (all) from byte ``offset`` on.

    Raises      ValueError where the buffer does not hold so many
    """
    d = dtype_of("frombuffer", dtype)
    try:
        view = memoryview(buffer).cast("B")
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    length = view.nbytes
    if length == 0 or count == 0:
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if not 0 <= offset < length:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({length} bytes) minus 1"
        )
    if count < 0 and (length - offset) % d.itemsize:
        raise ValueError(
            f"buffer length ({length - offset} bytes) after offset ({offset} bytes) must be a multiple of element size "
            f"({d.itemsize})"
        )
    if count > 0 and offset + count * d.itemsize > length:
        raise ValueError(
            f"requested buffer length ({count} * {d.itemsize} bytes) after offset ({offset} bytes) must not be greater "
            f"than actual buffer length ({length} bytes)"
        )
    if view.readonly:
        warn_once(
            "The given buffer is not writable, and PyTorch does not support non-writable tensors. This means you can "
            "write to the underlying (supposedly non-writable) buffer using the tensor. You may want to copy the "
            "buffer to protect its data or make it writable before converting it to a tensor. This type of warning "
            "will be suppressed for the rest of this program."
        )
    return finish(canonical(np.frombuffer(view, d.numpy, count, offset)), requires_grad)


class _Capsule:
    """A bare DLPack capsule, as the object that NumPy and CuPy want to see."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **options):
        return self.capsule

    def __dlpack_device__(self):
        return 1, 0


def from_dlpack(ext_tensor, *, device=None, copy=None):
    """A tensor over the memory of any object with ``__dlpack__``, or of a DLPack capsule of CPU memory.

    Raises      RuntimeError for anything else
    """
    if type(ext_tensor).__name__ == "PyCapsule":
        ext_tensor = _Capsule(ext_tensor)
    if not hasattr(ext_tensor, "__dlpack__"):
        raise RuntimeError(
            "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you "
            "might have already constructed a tensor from it once."
        )
    where = ext_tensor.__dlpack_device__()[0]
    if where == 2:
        array = build(Device("cuda", ext_tensor.__dlpack_device__()[1]), lambda xp: xp.from_dlpack(ext_tensor))
    elif isinstance(ext_tensor, np.ndarray):
        array = checked(ext_tensor.view(np.ndarray))
    else:
        array = checked(np.from_dlpack(ext_tensor))
        array = array if array.flags.writeable else _writable(array)
    t = wrap(canonical(array))
    return t.to(device=t.device if device is None else device, dtype=t.dtype, copy=builtins.bool(copy))


def _writable(array):
    """The same memory, writable: NumPy forbids writing to all that comes by the older protocol, which cannot say."""
    if array.size == 0:
        return array.copy()
    length = array.itemsize + sum((n - 1) * s for n, s in zip(array.shape, array.strides))
    memory = (ctypes.c_char * length).from_address(array.__array_interface__["data"][0])
    memory.owner = array
    return np.ndarray(array.shape, array.dtype, memory, 0, array.strides)


def to_dlpack(tensor):
    """The DLPack capsule of a tensor, which another library may consume once."""
    return tensor.__dlpack__()
