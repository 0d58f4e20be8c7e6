"""Arrays and devices: the only folder that may import CuPy, and does so when a CUDA device is first asked for."""

import functools
import importlib

import numpy as np

from .. import dtypes
from .device import device, resolve

# Array class -> the module that computes with it, and the file of this folder that is its device. A device adds its own
# when it is first used; such a file has make, from_host, to_host, from_device and device_of for arrays; text_module,
# forward, first_order, writing and adds_up_in_float32 for ops; launch for a user's kernel.
ARRAYS = {np.ndarray: np}
_OWNERS = {}
_DEVICES = ("cuda", "emulated")

LOW = {dtypes.float16.numpy, dtypes.bfloat16.numpy}


def xp_of(array):
    """The array module (numpy or cupy) that computes with ``array``."""
    return ARRAYS.get(array.__class__, np)


def adopt(array_class, xp, owner):
    """Make an array class known: ``xp`` computes with it, the module ``owner`` is its device."""
    ARRAYS[array_class], _OWNERS[array_class] = xp, owner


def has_kernels(array):
    """Whether an array lies on a device that puts kernels before the ops' texts."""
    return array.__class__ in _OWNERS


def adds_up_in_float32(array):
    """Whether products of half-precision matrices that lie where ``array`` does are added up in float32 as they are."""
    owner = _OWNERS.get(array.__class__)
    return owner is not None and owner.adds_up_in_float32(array)


def _device(target):
    """The file of this folder that is the device of ``target``; RuntimeError where there is none."""
    if target.type not in _DEVICES:
        raise RuntimeError(f"device '{target}' holds no tensors here: there are cpu, {', '.join(_DEVICES)}")
    return importlib.import_module("." + target.type, __name__)


def device_of(array):
    """The ``device`` an array lives on."""
    return device.CPU if array.__class__ is np.ndarray else _OWNERS[array.__class__].device_of(array)


def make(target, build):
    """The array that ``build(xp)`` makes with the array module of a device, while that device is the current one."""
    return build(np) if target.type == "cpu" else _device(target).make(target, build)


def implementation(op, array_class):
    """The function that runs ``op`` on arrays of a class: its ``xp`` text, in float32 for a wide op's half types.

    A device of ``_OWNERS`` puts its kernel before the text.
    """
    owner = _OWNERS.get(array_class)
    run = functools.partial(op.forward, ARRAYS.get(array_class, np) if owner is None else owner.text_module())
    text = _widened(run) if op.wide else run
    return text if owner is None else owner.forward(op, text)


def first_order(op, rule, array_class):
    """The function that runs a fused or adding rule of ``op`` on arrays of a class."""
    owner = _OWNERS.get(array_class)
    return rule if owner is None else owner.first_order(op, rule)


def writing(op, array_class):
    """The function that writes what ``op`` makes of arrays into the first, by its ufunc or by a device's kernel.

    It raises TypeError or ValueError where it cannot, before anything is written.
    """
    owner = _OWNERS.get(array_class)
    if owner is not None:
        return owner.writing(op)
    ufunc = getattr(np, op.ufunc)
    return lambda *arrays: ufunc(*arrays, out=arrays[0])


def _widened(run):
    """Compute float16 and bfloat16 in float32 and round the outputs once."""

    def wide(*arrays, **options):
        for a in arrays:
            if a is not None and a.dtype in LOW:
                break
        else:
            return run(*arrays, **options)
        low = a.dtype
        result = run(*(a if a is None or a.dtype not in LOW else a.astype(np.float32) for a in arrays), **options)
        return tuple(_narrow(r, low) for r in result) if isinstance(result, tuple) else _narrow(result, low)

    return wide


def _narrow(result, low):
    return result.astype(low) if getattr(result, "dtype", None) == np.float32 else result


def launch(entry, like, /, **given):
    """Run a kernel on the device of ``like``; of the CPU's arrays, on the same memory, by its emulated build.

    ``given`` are its arguments by name, as arrays, numbers and None; a function makes an array from the letters of the
    others' shapes. They come back as a dict.
    """
    owner = _OWNERS.get(like.__class__) or _device(device("emulated"))
    return owner.launch(entry, **given)


def to_device(array, target, non_blocking=False):
    """``array`` on another device; the same object where it is there already.

    With ``non_blocking`` copies between pinned memory and a GPU may still be under way.
    """
    here = device_of(array)
    if here == target:
        return array
    if here.type == target.type:
        return _OWNERS[array.__class__].from_device(array, target)
    away = non_blocking and target.type == "cpu"
    host = array if here.type == "cpu" else _OWNERS[array.__class__].to_host(array, away)
    return host if target.type == "cpu" else _device(target).from_host(host, target, non_blocking)


def current_gpu():
    """The index of the GPU that ``cuda`` without an index means."""
    return _device(device("cuda")).current_device()


def data_ptr(array):
    """The address of an array's first element."""
    interface = getattr(array, "__array_interface__", None)  # bfloat16 arrays have no buffer, and so no .data
    return interface["data"][0] if interface is not None else array.data.ptr


def memory_of(array):
    """The array at the root of a chain of NumPy or CuPy views."""
    while getattr(array, "base", None) is not None and hasattr(array.base, "strides"):
        array = array.base
    return array


def copy_of(array):
    """A copy whose axes lie in memory in the same order."""
    return array.copy(order="K")


def empty(shape, d, target=None):
    """An uninitialised array of dtype ``d`` (ours) on ``target``."""
    return make(resolve(target), lambda xp: xp.empty(shape, d.numpy))


def array_of_number(value, d, like):
    """A 0-d array of a Python number in dtype ``d``, wrapped round where it does not fit, on ``like``'s device."""
    if d.category == 1 and not -(2**63) <= value < 2**64:
        raise RuntimeError("value cannot be converted to type int64_t without overflow")
    return place(np.asarray(value).astype(d.numpy), like)


def place(value, like):
    """A NumPy scalar or array as an array on ``like``'s device."""
    if like.__class__ is np.ndarray or like.__class__ not in ARRAYS:
        return np.asarray(value)
    return ARRAYS[like.__class__].asarray(value)
