"""Tensors of random numbers, and random contents put into tensors.

Every call takes one offset of a generator; element i in row-major order of a result depends on (seed, offset, i) alone,
not on strides, device or threads (see ``backend.philox`` and ``backend.variates``).

Differs     the numbers are Philox's, not those of PyTorch's mt19937: the same seed gives other values of the same
            distribution
"""

import math
import warnings

import numpy as np

from .. import dtypes
from ..backend import variates
from ..core.generator import generator_of
from ..core.shape import strided
from ..core.tensor import Tensor
from .factory import (
    C_NAMES,
    build,
    checked_size,
    dtype_of,
    empty_like_array,
    finish,
    index_of,
    is_size,
    preserve_format,
    size_of,
    target_of,
    wanted,
)

SPOKEN = {dtypes.uint8: "unsigned char", dtypes.int8: "signed char", dtypes.int16: "short", dtypes.int64: "long"}
SPOKEN |= {dtypes.uint16: "unsigned short", dtypes.uint32: "unsigned int", dtypes.uint64: "unsigned long"}
MANTISSA = {dtypes.float16: 11, dtypes.bfloat16: 8, dtypes.float32: 24, dtypes.float64: 53}

__all__ = ("rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like")


def drawn(function, shape, d, target, generator, *parameters):
    """An array of ``function`` of ``variates`` in a floating or complex dtype, with the next numbers of a generator."""
    seed, offset = generator_of(target, generator).draw()
    count, real = math.prod(shape), d.to_real().numpy

    def make(xp):
        if d.is_complex:
            return function(xp, seed, offset, 2 * count, real, *parameters).view(d.numpy).reshape(shape)
        return function(xp, seed, offset, count, real, *parameters).reshape(shape)

    return build(target, make)


def floating(kernel, d):
    """``d`` where it is floating or complex; PyTorch's NotImplementedError otherwise."""
    if d.category < 2:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{d.legacy}'")
    return d


def unit(d):
    """The standard deviation of each part of a standard normal number: a complex one has variance 1 as a whole."""
    return math.sqrt(0.5) if d.is_complex else 1.0


# ---- by size


def rand(
    *shape,
    size=None,
    generator=None,
    out=None,
    dtype=None,
    layout=strided,
    device=None,
    pin_memory=False,
    requires_grad=False,
):
    """Uniform numbers of [0, 1): ``rand(2, 3)`` or ``rand((2, 3))``.

    Dtypes      floating, or complex with both parts uniform; the default floating dtype by default
    Raises      NotImplementedError for other dtypes
    """
    shape, d = size_of("rand", shape, size), floating("check_uniform_bounds", wanted("rand", dtype, out))
    target = out.device if out is not None else target_of(device, layout)
    return finish(drawn(variates.uniform, shape, d, target, generator), requires_grad, pin_memory, out, "rand")


def randn(
    *shape,
    size=None,
    generator=None,
    out=None,
    dtype=None,
    layout=strided,
    device=None,
    pin_memory=False,
    requires_grad=False,
):
    """Standard normal numbers: ``randn(2, 3)`` or ``randn((2, 3))``.

    Dtypes      floating, or complex of variance 1 (1/2 each part); the default floating dtype by default
    Raises      NotImplementedError for other dtypes
    """
    shape, d = size_of("randn", shape, size), floating("normal_kernel_cpu", wanted("randn", dtype, out))
    target = out.device if out is not None else target_of(device, layout)
    array = drawn(variates.normal, shape, d, target, generator, 0.0, unit(d))
    return finish(array, requires_grad, pin_memory, out, "randn")


def randint(
    *bounds,
    low=0,
    high=None,
    size=None,
    generator=None,
    out=None,
    dtype=None,
    layout=strided,
    device=None,
    pin_memory=False,
    requires_grad=False,
):
    """Integers of [low, high), all equally likely: ``randint(high, size)`` or ``randint(low, high, size)``.

    Dtypes      int64 by default; any but complex
    Raises      RuntimeError where low >= high or the dtype cannot hold them
    """
    if size is None:
        if not bounds or not (is_size(bounds[-1]) or len(bounds) + (high is not None) > 1):
            got = ", ".join(type(b).__name__ for b in bounds)
            raise TypeError(f"randint() received an invalid combination of arguments - got ({got})")
        *bounds, size = bounds
        if not is_size(size):
            what = f"argument 'size' (position {len(bounds) + 1}) must be tuple of ints, not {type(size).__name__}"
            raise TypeError(f"randint(): {what}")
    low, high = _low_high("randint", bounds, low, high)
    shape, d = size_of("randint", (size,)), wanted("randint", dtype, out, dtypes.int64)
    target = out.device if out is not None else target_of(device, layout)
    array = integers(shape, d, target, generator, low, high)
    return finish(array, requires_grad, pin_memory, out, "randint")


def _low_high(name, bounds, low, high):
    if len(bounds) == 2:
        low, high = bounds
    elif len(bounds) == 1:
        low, high = (low, bounds[0]) if high is None else (bounds[0], high)
    if high is None:
        raise TypeError(f'{name}() missing 1 required positional arguments: "high"')
    low, high = index_of(name, "low", 1, low), index_of(name, "high", 1 + (len(bounds) == 2), high)
    if not (-(2**63) <= low < 2**63 and -(2**63) <= high < 2**63):
        raise ValueError("Overflow when unpacking long long")
    return low, high


def _check_range(low, high, d):
    """RuntimeError where dtype ``d`` cannot hold the integers of [low, high), or there are none."""
    if d.is_complex:
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    least, most = limits(d)
    name = SPOKEN.get(d, C_NAMES[d])
    for what, value in (("from", low), ("to - 1", high - 1)):
        if not least <= value <= most:
            raise RuntimeError(f"{what} is out of bounds for {name}")
        exact = 2 ** MANTISSA.get(d, 64)
        if abs(value) > exact:
            bits = MANTISSA[d]
            warnings.warn(
                f"{what} is out of bounds [-(2^{bits}), 2^{bits}]. Due to precision limitations {name} can support "
                "discrete uniform distribution only within this range. This warning will become an error in version "
                "1.7 release, please fix the code in advance",
                UserWarning,
                stacklevel=4,
            )


def limits(d):
    """The least and the largest integer of a dtype."""
    if d.category == 0:
        return 0, 1
    if d.category == 1:
        info = np.iinfo(d.numpy)
        return info.min, info.max
    largest = int(dtypes.finfo(d).max)
    return -largest, largest


def integers(shape, d, target, generator, low, high):
    """Random integers of [low, high) as an array of dtype ``d``."""
    _check_range(low, high, d)
    seed, offset = generator_of(target, generator).draw()

    def make(xp):
        u = variates.below(xp, seed, offset, math.prod(shape), high - low)
        if low < 0 or high > 2**63:
            u = u + np.uint64(low % 2**64)  # wraps round to the right integer in two's complement
            u = u.view(np.int64) if low < 0 else u
        elif low:
            u += np.uint64(low)
        if d.category != 1:
            u = u.view(np.int64) if high <= 2**63 else u
        return u.astype(d.numpy).reshape(shape)

    return build(target, make)


def randperm(
    n,
    *,
    generator=None,
    out=None,
    dtype=None,
    layout=strided,
    device=None,
    pin_memory=False,
    requires_grad=False,
):
    """The integers 0 to n - 1 in random order.

    Dtypes      int64 by default; any but bool and complex
    Raises      RuntimeError where n is negative or does not fit in the dtype
    """
    n = index_of("randperm", "n", 1, n)
    d = wanted("randperm", dtype, out, dtypes.int64)
    checked_size((n,))
    if d.category in (0, 3):
        raise NotImplementedError(f"\"randperm\" not implemented for '{d.legacy}'")
    if n > limits(d)[1]:
        raise RuntimeError(f"value cannot be converted to type {C_NAMES[d]} without overflow")
    target = out.device if out is not None else target_of(device, layout)
    seed, offset = generator_of(target, generator).draw()
    array = build(target, lambda xp: variates.permutation(xp, seed, offset, n).astype(d.numpy, copy=False))
    return finish(array, requires_grad, pin_memory, out, "randperm")


# ---- as another tensor


def _like(name, input, dtype, device, layout, memory_format):
    """(empty array like ``input``, its dtype, its device)."""
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    d = dtype_of(name, dtype) or input.dtype
    target = input.device if device is None else target_of(device, layout)
    return empty_like_array(input, d, target, memory_format), d, target


def rand_like(
    input,
    *,
    generator=None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    memory_format=preserve_format,
    pin_memory=False,
):
    """Uniform numbers of [0, 1) in the shape, dtype, device and strides of ``input``."""
    array, d, target = _like("rand_like", input, dtype, device, layout, memory_format)
    array[...] = drawn(variates.uniform, array.shape, floating("check_uniform_bounds", d), target, generator)
    return finish(array, requires_grad)


def randn_like(
    input,
    *,
    generator=None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    memory_format=preserve_format,
    pin_memory=False,
):
    """Standard normal numbers in the shape, dtype, device and strides of ``input``."""
    array, d, target = _like("randn_like", input, dtype, device, layout, memory_format)
    floating("normal_kernel_cpu", d)
    array[...] = drawn(variates.normal, array.shape, d, target, generator, 0.0, unit(d))
    return finish(array, requires_grad)


def randint_like(
    input,
    *bounds,
    low=0,
    high=None,
    generator=None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    memory_format=preserve_format,
    pin_memory=False,
):
    """Integers of [low, high) in the shape, dtype, device and strides of ``input``."""
    array, d, target = _like("randint_like", input, dtype, device, layout, memory_format)
    bounds = [b.item() if isinstance(b, Tensor) else b for b in bounds]
    low, high = _low_high("randint_like", bounds, low, high)
    array[...] = integers(array.shape, d, target, generator, low, high)
    return finish(array, requires_grad)
