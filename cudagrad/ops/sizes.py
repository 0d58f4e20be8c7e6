"""Shapes, dims and memory layouts as arguments: what the shape ops share before any array is touched."""

import operator

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..backend import data_ptr, memory_of
from ..core.shape import check_dim


def sizes_of(args, named, function, name):
    """The ints of ``f(2, 3)``, ``f((2, 3))`` or ``f(name=(2, 3))`` as a tuple.

    Raises      TypeError, in PyTorch's words, where they are no ints or are missing
    """
    if named is not None:
        args = (named,)
    elif len(args) == 1 and isinstance(args[0], tuple):
        args = args[0]
        if not args:
            return args
    for n in args:
        if n.__class__ is not int:
            break
    else:
        if args:
            return args
    if not args:
        raise TypeError(f'{function}() missing 1 required positional arguments: "{name}"')
    if len(args) == 1 and args[0].__class__ is not int and not hasattr(args[0], "__index__"):
        args = args[0]
    elif len(args) == 1 and getattr(args[0], "ndim", 0):
        args = args[0].tolist()
    try:
        return tuple([n if n.__class__ is int else operator.index(n) for n in args])
    except TypeError:
        raise _no_ints(args, function, name) from None


def _no_ints(args, function, name):
    start = f"{function}(): argument '{name}' (position 1) must be tuple of ints, "
    if not isinstance(args, (tuple, list)):
        return TypeError(f"{start}not {type(args).__name__}")
    at = next(i for i, n in enumerate(args) if not hasattr(n, "__index__"))
    return TypeError(f"{start}but found element of type {type(args[at]).__name__} at pos {at}")


def distinct(dims, ndim):
    """``dims`` counted from the front, in their order.

    Raises      IndexError for a dim out of range, RuntimeError for one given twice
    """
    dims = tuple(check_dim(d, ndim) for d in dims)
    for d in dims:
        if dims.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return dims


def resolved(shape, size):
    """``shape`` with its -1, if any, replaced by what ``size`` elements leave for it.

    Raises      RuntimeError where ``size`` elements do not fit
    """
    known, hole = 1, None
    for i, n in enumerate(shape):
        if n >= 0:
            known *= n
        elif n < -1:
            raise RuntimeError(f"invalid shape dimension {n} at index {i} of shape {list(shape)}")
        elif hole is not None:
            raise RuntimeError("only one dimension can be inferred")
        else:
            hole = i
    if hole is None:
        if known != size:
            raise _misfit(shape, size)
        return shape
    if known == 0 and size == 0:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension size -1 "
            "can be any value and is ambiguous"
        )
    if known == 0 or size % known:
        raise _misfit(shape, size)
    return (*shape[:hole], size // known, *shape[hole + 1 :])


def _misfit(shape, size):
    return RuntimeError(f"shape '{list(shape)}' is invalid for input of size {size}")


def viewable(array, shape):
    """Whether ``shape`` can be laid over the memory of ``array`` without a copy.

    Neighbouring dims that step evenly through memory form a run; each run must be cut up by dims of its own.
    """
    if array.flags.c_contiguous:
        return True
    runs, before = [], None
    for n, step in zip(array.shape, array.strides):
        if n == 1:
            continue
        if before == n * step:
            runs[-1] *= n
        else:
            runs.append(n)
        before = step
    part, run = 1, 0
    for n in shape:
        if n == 1:
            continue
        part *= n
        if run == len(runs) or part > runs[run]:
            return False
        if part == runs[run]:
            part, run = 1, run + 1
    return True


def laid_over(xp, array, shape, strides, offset_bytes=None):
    """A writable array of ``shape`` and ``strides`` (bytes) over the memory of ``array``.

    It begins at the first element of ``array``, or ``offset_bytes`` from the first byte of the memory under it.
    """
    array = array if array.ndim else xp.asarray(array)
    memory = memory_of(array)
    start = data_ptr(array) - data_ptr(memory) if offset_bytes is None else offset_bytes
    if xp is not np:
        return _laid_over(array if offset_bytes is None else _from_byte(memory, start, array.dtype), shape, strides)
    if 0 in shape:
        return as_strided(array, shape, strides)  # no element lies anywhere, and the first byte may be past the end
    if not (memory.flags.c_contiguous or memory.flags.f_contiguous):
        memory = memory.ravel(order="K")  # dense memory whose axes are permuted: a view, which has a buffer
        if memory.base is None:
            return as_strided(array, shape, strides)
    return np.ndarray(shape, array.dtype, memory, start, strides)


def _laid_over(array, shape, strides):
    """``laid_over`` of CuPy's: its public ways to such a view forget whose memory it is (``base``)."""
    view = array.view()
    view._set_shape_and_strides(tuple(shape), tuple(strides), True, True)
    return view


def _from_byte(memory, start, dtype):
    """The elements of the memory of a CuPy array from the byte ``start`` on."""
    flat = memory.ravel(order="K").view(np.uint8)[start:]
    return flat[: flat.size // dtype.itemsize * dtype.itemsize].view(dtype)


def format_name(memory_format):
    """``channels_last`` and its like as a plain string; ``preserve_format`` for None."""
    return "preserve_format" if memory_format is None else str(memory_format).removeprefix("torch.")


_RANK = {"channels_last": 4, "channels_last_3d": 5}


def in_format(xp, array, memory_format):
    """A copy of ``array`` whose axes lie in memory as ``memory_format`` says; by default as those of ``array``."""
    name = format_name(memory_format)
    if name == "preserve_format":
        return array.copy(order="K")
    if name == "contiguous_format":
        return array.copy(order="C")
    check_format(array, name)
    last = array.ndim - 1  # [N,C,...] -> [N,...,C], and back
    return xp.moveaxis(xp.moveaxis(array, 1, last).copy(order="C"), last, 1)


def lies_in_format(array, memory_format):
    """Whether the axes of ``array`` lie in memory as ``memory_format`` says."""
    name = format_name(memory_format)
    if name not in _RANK:
        return array.flags.c_contiguous
    if array.ndim != _RANK[name]:
        return False
    expected = array.itemsize
    for d in (1, *range(array.ndim - 1, 1, -1), 0):
        if array.shape[d] != 1 and array.strides[d] != expected:
            return False
        expected *= array.shape[d]
    return True


def check_format(array, name):
    """RuntimeError in PyTorch's words where ``array`` has not the rank of a channels-last format."""
    if array.ndim != _RANK.get(name):
        raise RuntimeError(f"required rank {_RANK.get(name)} tensor to use {name} format")
