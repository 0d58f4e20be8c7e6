"""Tensors from nothing: filled or empty, by size or like another tensor."""

from .. import errors
from ..core.shape import strided
from ..core.tensor import Tensor
from .factory import (
    build,
    contiguous_format,
    dtype_of,
    empty_array,
    empty_like_array,
    filling,
    finish,
    floating_default,
    number_of,
    preserve_format,
    size_of,
    target_of,
    wanted,
)


def _filled(name, shape, value, d, out, layout, device, pin_memory, requires_grad):
    target = out.device if out is not None else target_of(device, layout)
    value = filling(value, d)
    array = build(target, lambda xp: xp.zeros(shape, d.numpy) if not value.any() else xp.full(shape, value, d.numpy))
    return finish(array, requires_grad, pin_memory, out, name)


def zeros(
    *shape,
    size=None,
    out=None,
    dtype=None,
    layout=strided,
    device=None,
    pin_memory=False,
    requires_grad=False,
):
    """A tensor of zeros: ``zeros(2, 3)`` or ``zeros((2, 3))``.

    Dtypes      the default floating dtype unless ``dtype`` says otherwise
    Raises      TypeError where the size is none, RuntimeError where a length is negative
    """
    shape, d = size_of("zeros", shape, size), wanted("zeros", dtype, out)
    return _filled("zeros", shape, 0, d, out, layout, device, pin_memory, requires_grad)


def ones(
    *shape,
    size=None,
    out=None,
    dtype=None,
    layout=strided,
    device=None,
    pin_memory=False,
    requires_grad=False,
):
    """A tensor of ones: ``ones(2, 3)`` or ``ones((2, 3))``.

    Dtypes      the default floating dtype unless ``dtype`` says otherwise
    """
    shape, d = size_of("ones", shape, size), wanted("ones", dtype, out)
    return _filled("ones", shape, 1, d, out, layout, device, pin_memory, requires_grad)


def full(
    size,
    fill_value,
    *,
    out=None,
    dtype=None,
    layout=strided,
    device=None,
    pin_memory=False,
    requires_grad=False,
):
    """A tensor of ``fill_value`` everywhere.

    Dtypes      that of the number: bool, int64, the default floating or its complex dtype
    Raises      RuntimeError where the value does not fit in ``dtype``
    """
    if not isinstance(size, (tuple, list)):
        raise TypeError(f"full(): argument 'size' (position 1) must be tuple of ints, not {type(size).__name__}")
    value = number_of("full", "fill_value", 2, fill_value)
    d = wanted("full", dtype, out, floating_default(value))
    return _filled("full", size_of("full", (size,)), value, d, out, layout, device, pin_memory, requires_grad)


def empty(
    *shape,
    size=None,
    out=None,
    dtype=None,
    layout=strided,
    device=None,
    pin_memory=False,
    requires_grad=False,
    memory_format=contiguous_format,
):
    """An uninitialised tensor: its values are whatever was in that memory."""
    shape, d = size_of("empty", shape, size), wanted("empty", dtype, out)
    if out is not None:
        return finish(empty_array(shape, d, out.device), requires_grad, False, out, "empty")
    array = empty_array(shape, d, target_of(device, layout), memory_format or contiguous_format)
    return finish(array, requires_grad, pin_memory)


def empty_strided(size, stride, *, dtype=None, layout=strided, device=None, requires_grad=False, pin_memory=False):
    """An uninitialised tensor with the given strides, counted in elements.

    Raises      RuntimeError where ``size`` and ``stride`` differ in length or a stride is negative
    """
    size, stride, d = size_of("empty_strided", (size,)), tuple(stride), wanted("empty_strided", dtype, None)
    if len(size) != len(stride):
        raise RuntimeError(
            f"dimensionality of sizes ({len(size)}) must match dimensionality of strides ({len(stride)})"
        )
    if any(s < 0 for s in stride):
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(size)} and strides={list(stride)}")
    count = 1 + sum((n - 1) * s for n, s in zip(size, stride)) if all(size) else 0
    steps = tuple(s * d.itemsize for s in stride)

    def make(xp):
        return xp.lib.stride_tricks.as_strided(xp.empty(count, d.numpy), size, steps)

    return finish(build(target_of(device, layout), make), requires_grad, pin_memory)


def empty_permuted(
    size, physical_layout, *, dtype=None, layout=strided, device=None, requires_grad=False, pin_memory=False
):
    """An uninitialised dense tensor whose dims lie in memory in the order ``physical_layout``, slowest first.

    Raises      RuntimeError where ``physical_layout`` is no permutation of the dims
    """
    size, order, d = size_of("empty_permuted", (size,)), tuple(physical_layout), wanted("empty_permuted", dtype, None)
    if len(order) != len(size):
        raise RuntimeError(
            f"Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = "
            f"{len(size)} is not equal to len(physical_layout) = {len(order)}"
        )
    for i, dim in enumerate(order):
        if not 0 <= dim < len(size):
            between = f"(expected to be between 0 and {len(size) - 1}, but got {dim} at index {i})"
            raise RuntimeError(f"Dimension out of range {between}.  NB: negative dims not currently supported")
    if len(set(order)) < len(order):
        raise RuntimeError(errors.text("Duplicate dim not allowed", f"got {order}"))
    array = build(target_of(device, layout), lambda xp: xp.empty(tuple(size[i] for i in order), d.numpy))
    return finish(array.transpose([order.index(i) for i in range(len(order))]), requires_grad, pin_memory)


# ---- as another tensor


def _like(name, input, value, dtype, layout, device, requires_grad, memory_format):
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    d = dtype_of(name, dtype) or input.dtype
    target = input.device if device is None else target_of(device, layout)
    if value is not None:
        value = filling(value, d)
    array = empty_like_array(input, d, target, memory_format)
    if value is not None:
        array[...] = value if target.type == "cpu" else value.item()
    return finish(array, requires_grad)


def zeros_like(
    input, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=preserve_format, pin_memory=False
):
    """Zeros of the shape, dtype, device and strides of ``input``."""
    return _like("zeros_like", input, 0, dtype, layout, device, requires_grad, memory_format)


def ones_like(
    input, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=preserve_format, pin_memory=False
):
    """Ones of the shape, dtype, device and strides of ``input``."""
    return _like("ones_like", input, 1, dtype, layout, device, requires_grad, memory_format)


def full_like(
    input,
    fill_value,
    *,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    memory_format=preserve_format,
    pin_memory=False,
):
    """``fill_value`` everywhere, in the shape, dtype, device and strides of ``input``."""
    value = number_of("full_like", "fill_value", 2, fill_value)
    return _like("full_like", input, value, dtype, layout, device, requires_grad, memory_format)


def empty_like(
    input, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=preserve_format, pin_memory=False
):
    """An uninitialised tensor of the shape, dtype, device and strides of ``input``."""
    return _like("empty_like", input, None, dtype, layout, device, requires_grad, memory_format)


def _new(name, function):
    """The method ``new_...``: the function, with the dtype and device of the tensor it is called on by default."""

    def method(self, *args, dtype=None, device=None, layout=strided, pin_memory=False, requires_grad=False, **size):
        if not args and not size:
            raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
        dtype = dtype_of(name, dtype) or self.dtype
        device = self.device if device is None else device
        options = {"layout": layout, "pin_memory": pin_memory, "requires_grad": requires_grad}
        return function(*args, dtype=dtype, device=device, **options, **size)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"As :func:`{function.__name__}`, in the dtype and on the device of this tensor by default."
    return method


def scalar_tensor(s, *, dtype=None, layout=strided, device=None, pin_memory=False, requires_grad=False):
    """The number ``s`` as a 0-d tensor of the default floating dtype."""
    d = wanted("scalar_tensor", dtype, None)
    value = number_of("scalar_tensor", "s", 1, s)
    return _filled("scalar_tensor", (), value, d, None, layout, device, pin_memory, requires_grad)


__all__ = ("zeros", "ones", "full", "empty", "empty_strided", "empty_permuted", "scalar_tensor")
__all__ += ("zeros_like", "ones_like", "full_like", "empty_like")

METHODS = {f"new_{f.__name__}": _new(f"new_{f.__name__}", f) for f in (zeros, ones, full, empty, empty_strided)}
