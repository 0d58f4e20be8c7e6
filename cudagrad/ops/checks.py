"""Checks of arguments that several families share, in PyTorch's words."""

import numpy as np

from .. import config, dtypes, errors
from ..backend import device_of, xp_of
from ..core.op import TABLE
from ..core.promote import not_tensor
from ..core.shape import check_dim
from .sizes import distinct


def looks(array):
    """Whether the values of ``array`` may be looked at to refuse them: those of a GPU, which would have to be waited
    for, only with CUDAGRAD_CHECK=1. CuPy wraps a place that is out of range round."""
    return config.CHECK or xp_of(array) is np or device_of(array).type != "cuda"


def ndim_of(input, name):
    """The number of dimensions of ``input``; TypeError in the name of op ``name`` where it is no Tensor."""
    try:
        return input.array.ndim
    except AttributeError:
        raise not_tensor(TABLE[name], input) from None


def dims_of(dim, ndim):
    """``dim`` (None, an int or several) as a sorted tuple of dims counted from the front; None stands for all.

    Raises      IndexError for a dim out of range, RuntimeError for one given twice
    """
    if dim is None:
        return None
    if dim.__class__ is int:
        return (check_dim(dim, ndim),) if ndim else _of_scalar(dim)
    if isinstance(dim, str):
        raise _no_dim(dim)
    try:
        dims = tuple(dim)
    except TypeError:
        if not hasattr(dim, "__index__"):
            raise _no_dim(dim) from None
        dims = (dim.__index__(),)
    if not dims:
        return None
    dims = distinct(dims, ndim)
    return tuple(sorted(dims)) if ndim else ()


def _no_dim(dim):
    return TypeError(f"dim must be an int, a tuple of ints or None, not {type(dim).__name__}\n  got {dim!r}")


def _of_scalar(dim):
    check_dim(dim, 0)
    return ()


def count_of(shape, dim):
    """How many elements a reduction over ``dim`` (None: all) puts into one."""
    count = 1
    for d in range(len(shape)) if dim is None else dim:
        count *= shape[d]
    return count


def kept(shape, dim):
    """``shape`` with the reduced dims (None: all) at length 1."""
    return tuple(1 if dim is None or d in dim else n for d, n in enumerate(shape))


def reduced(shape, dim, keepdim):
    """The shape after a reduction over ``dim`` (None: all)."""
    if keepdim:
        return kept(shape, dim)
    return () if dim is None else tuple(n for d, n in enumerate(shape) if d not in dim)


def not_implemented(kernel, x):
    """PyTorch's NotImplementedError for arrays of a dtype that op ``kernel`` has no code for."""
    return NotImplementedError(f"\"{kernel}\" not implemented for '{dtypes.of_array(x).legacy}'")


def refuse(kernel, x, kinds):
    """Raise where the kind of ``x``'s dtype (b, i, u, f, c) is one of ``kinds``."""
    if x.dtype.kind in kinds:
        raise not_implemented(kernel, x)


def number(value, like):
    """The Python number ``value`` in exactly the dtype of the array ``like``, so that it can widen nothing."""
    d = like.dtype
    bits = 8 * d.itemsize
    if d.kind == "u" and -(2**bits) < value < 0:
        value %= 2**bits  # C's conversion, which PyTorch lets pass
    try:
        return d.type(value)
    except OverflowError:
        c_type = {"b": "bool", "u": f"uint{bits}_t", "i": f"int{bits}_t"}.get(d.kind, d.name)
        raise RuntimeError(f"value cannot be converted to type {c_type} without overflow") from None


def no_overload(name, given, *expected):
    """PyTorch's TypeError for arguments of types ``given`` that fit none of a function's signatures, with those."""
    first = f"{name}() received an invalid combination of arguments - got ({given}), but expected one of:"
    return TypeError(errors.text(first, *(f"* ({e})" for e in expected)))


def types_of(*values):
    """The names of the types of ``values`` that are given, as PyTorch lists them."""
    return ", ".join(type(v).__name__ for v in values if v is not None)


def plain(value):
    """A NumPy scalar as the Python number that it holds; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def with_numpy_names(dim, keepdim, axis, keepdims):
    """PyTorch takes NumPy's keywords too: ``axis`` for ``dim``, ``keepdims`` for ``keepdim``."""
    return dim if axis is None else axis, keepdim if keepdims is None else keepdims
