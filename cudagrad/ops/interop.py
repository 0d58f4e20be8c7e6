"""A tensor as NumPy, CuPy, DLPack and plain Python see it."""

import builtins
import math
import sys

import numpy as np

from .. import dtypes
from ..backend import data_ptr, memory_of, to_device, xp_of
from ..backend.device import device as Device
from ..core.inplace import bump, copy_history, overwrite, rebase
from ..core.modes import MODE
from ..core.op import TABLE
from ..core.promote import lift, wrong_type
from ..core.tensor import Tensor, canonical, wrap
from ..core.writable import check_apart, check_writable
from .gathering import fill_number
from .sizes import laid_over

__all__ = ("is_complex", "is_floating_point", "is_tensor", "numel", "fill", "fill_", "zero_", "resize_as_")


def is_tensor(obj):
    """Whether ``obj`` is a Tensor."""
    return isinstance(obj, Tensor)


def is_floating_point(input):
    """Whether the dtype of ``input`` is floating."""
    return input.is_floating_point()


def is_complex(input):
    """Whether the dtype of ``input`` is complex."""
    return input.is_complex()


def numel(input):
    """The count of elements of ``input``."""
    return input.numel()


def host(t):
    """The NumPy array of a tensor's values, from whatever device."""
    return to_device(t.array, Device.CPU)


def numpy(input, *, force=False):
    """The NumPy array over the same memory; with ``force`` a detached copy from any device.

    Raises      RuntimeError where a gradient is wanted; TypeError where the tensor is not on the CPU
    """
    if force:
        return host(input)
    if input.node is not None:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    if input.device.type == "cuda":
        raise TypeError(
            f"can't convert {input.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
            "memory first."
        )
    return host(input)


def __array__(input, dtype=None, copy=None):
    array = numpy(input)
    if dtype is not None and array.dtype != dtype:
        return array.astype(dtype)
    return array.copy() if copy else array


def item(input):
    """The only element, as a Python number.

    Raises      RuntimeError where there is not exactly one
    """
    if input.array.size != 1:
        raise RuntimeError(f"a Tensor with {input.array.size} elements cannot be converted to Scalar")
    value = host(input).item()
    return builtins.float(value) if input.dtype is dtypes.bfloat16 else value


def tolist(input):
    """The elements as nested lists of Python numbers; a number for a 0-d tensor."""
    array = host(input)
    return array.astype(np.float64).tolist() if input.dtype is dtypes.bfloat16 else array.tolist()


def __bool__(input):
    if input.array.size == 0:
        raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
    if input.array.size > 1:
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
    return builtins.bool(host(input).item())


def __float__(input):
    return builtins.float(_scalar(input, "double"))


def __int__(input):
    return builtins.int(_scalar(input, "int64_t"))


def __complex__(input):
    return builtins.complex(_scalar(input))


def _scalar(input, kind=None):
    """The one element, for Python's conversions to ``kind``, which has no complex numbers where it is given."""
    if input.array.size != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    value = item(input)
    if kind is not None and isinstance(value, builtins.complex):
        if value.imag:
            raise RuntimeError(f"value cannot be converted to type {kind} without overflow")
        value = value.real
    return value


def __index__(input):
    if input.dtype.category > 1 or input.array.size != 1:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return builtins.int(item(input))


def __len__(input):
    if input.array.ndim == 0:
        raise TypeError("len() of a 0-d tensor")
    return input.array.shape[0]


def __iter__(input):
    if input.array.ndim == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(input.unbind(0))


def __reversed__(input):
    return input if input.array.ndim == 0 else input.flip(0)


def __contains__(input, element):
    if isinstance(element, (Tensor, builtins.int, builtins.float, builtins.complex)):
        return builtins.bool((input == element).any())
    raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")


def __format__(input, spec):
    if input.array.ndim == 0:
        return format(item(input), spec)
    return object.__format__(input, spec)


def __dlpack__(input, *, stream=None, max_version=None, dl_device=None, copy=None):
    """The DLPack capsule of the array, without copying."""
    if input.node is not None:
        raise RuntimeError("Can't export tensors that require gradient, use tensor.detach()")
    given = dict(stream=stream)
    if input.device.type == "cuda":
        given |= dict(max_version=max_version, dl_device=dl_device, copy=copy)
    return input.array.__dlpack__(**{k: v for k, v in given.items() if v is not None})


def __dlpack_device__(input):
    return input.array.__dlpack_device__()


def __array_ufunc__(input, ufunc, method, *inputs, **kwargs):
    """NumPy's ufuncs on tensors run the op of that name, and stay differentiable.

    ``t * array`` and ``np.float64(2) * t`` are Tensors; ``array * t`` is a TypeError as in PyTorch.
    """
    function = getattr(sys.modules[__package__], _FUNCTIONS.get(ufunc.__name__, ufunc.__name__), None)
    if method != "__call__" or kwargs or function is None:
        return NotImplemented
    if isinstance(inputs[0], np.ndarray) and inputs[0].ndim:
        sign = _SIGNS.get(ufunc.__name__, ufunc.__name__)
        raise TypeError(f"unsupported operand type(s) for {sign}: 'numpy.ndarray' and 'Tensor'")
    inputs = [_operand(v, input) for v in inputs]
    if not isinstance(inputs[0], Tensor):
        inputs[0] = lift(inputs[0], input, None)
    return function(*inputs)


_FUNCTIONS = {"multiply": "mul", "subtract": "sub", "divide": "div", "true_divide": "div", "power": "pow"}
_FUNCTIONS |= {"negative": "neg", "absolute": "abs", "equal": "eq", "not_equal": "ne", "greater": "gt", "less": "lt"}
_FUNCTIONS |= {"greater_equal": "ge", "less_equal": "le"}
_SIGNS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "true_divide": "/", "matmul": "@", "power": "**"}


def _operand(value, t):
    """A NumPy scalar as the number it holds, an array as a tensor beside ``t``."""
    if isinstance(value, np.ndarray) and value.ndim:
        return wrap(canonical(value)).to(t.device)
    return value.item() if isinstance(value, (np.generic, np.ndarray)) else value


def __cuda_array_interface__(input):
    if input.device.type != "cuda":
        raise AttributeError(
            f"Can't get __cuda_array_interface__ on non-CUDA tensor type: {input.type()} If CUDA data is required use "
            "tensor.cuda() to copy tensor to device memory."
        )
    if input.node is not None:
        raise RuntimeError(
            "Can't get __cuda_array_interface__ on Variable that requires grad. If gradients aren't required, use "
            "var.detach() to get Variable that doesn't require grad."
        )
    return input.array.__cuda_array_interface__


def is_pinned(input, device=None):
    """Whether the memory is page-locked."""
    from ..backend import cuda

    return cuda.is_pinned(input.array)


def record_stream(input, stream):
    """Let the memory of ``input`` be used again only when ``stream`` has done what it has to do when ``input`` dies."""
    from ..backend import cuda

    if input.device.type == "cuda":
        cuda.outlive(input.array, stream.cupy)


def share_memory_(input):
    """The tensor itself: processes started by the loader get arrays through shared memory by themselves."""
    return input


def is_shared(input):
    return False


def is_set_to(input, tensor):
    """Whether both tensors are the same view of the same memory."""
    return (
        input.array.shape == tensor.array.shape
        and input.array.strides == tensor.array.strides
        and data_ptr(input.array) == data_ptr(tensor.array)
    )


def set_(input, source=None):
    """Make ``input`` a view of the memory of ``source``, in place.

    Raises      RuntimeError where the dtypes differ
    """
    if source is not None and source.array.dtype is not input.array.dtype:
        raise RuntimeError(f"Could not set tensor of type {source.dtype.cpp} to a tensor of type {input.dtype.cpp}")
    input.array = wrap(xp_of(input.array).empty((0,), input.array.dtype)).array if source is None else source.array
    bump(input)
    return input


def resize_(input, *sizes, memory_format=None):
    """Change the shape in place; new elements are uninitialised.

    Where the memory suffices it stays the same, and is still shared with the views of it.

    Raises      RuntimeError where a gradient is wanted
    """
    shape = tuple(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], builtins.int) else sizes
    if input.node is not None:
        raise RuntimeError("cannot resize variables that require grad")
    if shape != input.array.shape:
        input.array = _resized(input.array, shape)
    bump(input)
    return input


def _resized(array, shape):
    xp, memory = xp_of(array), memory_of(array)
    begin, needed = data_ptr(array) - data_ptr(memory), math.prod(shape) * array.itemsize
    if begin + needed <= memory.size * memory.itemsize:
        strides = [math.prod(shape[d + 1 :]) * array.itemsize for d in range(len(shape))]
        return laid_over(xp, array, shape, tuple(strides))
    new = xp.empty(shape, array.dtype)
    new.reshape(-1)[: array.size] = array.reshape(-1)
    return new


def resize_as_(input, other, memory_format=None):
    """Change the shape to that of ``other``, in place."""
    return resize_(input, *other.shape)


def copy_(input, src, non_blocking=False):
    """Copy the values of ``src``, broadcast, cast and moved, into ``input``, and its history with them."""
    if isinstance(src, (builtins.bool, builtins.int, builtins.float, builtins.complex)):
        src = wrap(np.asarray(src))
    if not isinstance(src, Tensor):
        raise wrong_type("copy_", "other", 0, src)
    check_writable(input)
    check_apart(input, (src,))
    values = src
    if values.device != input.device:
        values = values.to(input.device)
    if values.array.dtype is not input.array.dtype:
        values = values.to(input.dtype)
    if values.array.shape != input.array.shape:
        values = TABLE["expand"].raw(values, shape=_shape_for(values, input))
    input.array[...] = values.array
    bump(input)
    if MODE.grad:
        rebase(input, copy_history(input, values))
    return input


def _shape_for(values, input):
    try:
        np.broadcast_shapes(values.array.shape, input.array.shape)
        fits = len(values.array.shape) <= input.array.ndim or values.array.size == input.array.size
    except ValueError:
        fits = False
    if not fits or np.broadcast_shapes(values.array.shape, input.array.shape) != input.array.shape:
        for back, (m, n) in enumerate(zip(reversed(input.array.shape), reversed(values.array.shape))):
            if m != n and n != 1:
                dim = input.array.ndim - 1 - back
                raise RuntimeError(
                    f"The size of tensor a ({m}) must match the size of tensor b ({n}) at non-singleton dimension {dim}"
                )
        raise RuntimeError(
            f"output with shape {list(input.array.shape)} doesn't match the broadcast shape {list(values.array.shape)}"
        )
    return input.array.shape


def fill_(input, value):
    """Fill ``input`` with a number or a 0-d tensor, in place."""
    if isinstance(value, Tensor):
        if value.array.ndim:
            raise RuntimeError(
                f"fill_ only supports 0-dimension value tensor but got tensor with {value.array.ndim} dimensions."
            )
        return copy_(input, value)
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, (builtins.bool, builtins.int, builtins.float, builtins.complex)):
        raise TypeError(
            f"fill_() received an invalid combination of arguments - got ({type(value).__name__}), but expected one "
            "of:\n"
            "* (Number value)\n* (Tensor value)"
        )
    return overwrite(input, fill_number(value, input.dtype), "fill_")


def fill(input, value):
    """A tensor like ``input`` of nothing but ``value``, a number or a 0-d tensor."""
    return fill_(TABLE["clone"].raw(input), value)


def zero_(input):
    """Fill ``input`` with zeros, in place."""
    return fill_(input, 0)


def pin_memory(input, device=None):
    """A copy in page-locked memory, from which copies to a CUDA device need not be waited for.

    Raises      RuntimeError where there is no CUDA device
    """
    from ..backend import cuda

    if input.array.__class__ is not np.ndarray:
        raise RuntimeError(f"cannot pin '{input.type()}' only dense CPU tensors can be pinned")
    there = cuda.pinned(input.array)
    return input if there is input.array else wrap(there)


def untyped_storage(input):
    """The memory under this tensor and its views."""
    return Storage(memory_of(input.array))


class Storage:
    """The memory that a tensor and its views share."""

    def __init__(self, memory):
        self._memory = memory

    def data_ptr(self):
        return data_ptr(self._memory)

    def nbytes(self):
        return self._memory.size * self._memory.itemsize

    def size(self):
        return self._memory.size

    __len__ = size


METHODS = {
    **{n: globals()[n] for n in ("numpy", "item", "tolist", "is_pinned", "share_memory_", "is_shared", "is_set_to")},
    **{
        n: globals()[n]
        for n in ("set_", "resize_", "resize_as_", "copy_", "fill_", "zero_", "pin_memory", "record_stream")
    },
    **{n: globals()[n] for n in ("untyped_storage", "__array__", "__bool__", "__float__", "__int__", "__complex__")},
    **{n: globals()[n] for n in ("__index__", "__len__", "__iter__", "__reversed__", "__contains__", "__format__")},
    **{n: globals()[n] for n in ("__dlpack__", "__dlpack_device__", "__array_ufunc__")},
    "storage": untyped_storage,
    "__cuda_array_interface__": property(__cuda_array_interface__),
}
