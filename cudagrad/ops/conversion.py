"""Tensors that hold copies of Python data."""

import builtins
import itertools
import math
import warnings

import numpy as np

from .. import dtypes, errors
from ..backend import to_device
from ..backend.device import device as Device
from ..core.tensor import Tensor, canonical, wrap
from .factory import build, dtype_of, finish, fits, target_of

__all__ = ("tensor",)

_KINDS = {builtins.bool: dtypes.bool, builtins.int: dtypes.int64}
_warned = set()


def warn_once(text):
    """A warning that the rest of the program does not repeat, as PyTorch's own."""
    if text not in _warned:
        _warned.add(text)
        warnings.warn(text, UserWarning, stacklevel=4)


def tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False):
    """A new leaf tensor that holds a copy of ``data``: a number, nested lists, an array.

    Dtypes      of Python numbers bool, int64, the default floating or its complex dtype, the highest of those that
                occur; NumPy scalars, arrays and tensors keep theirs
    Raises      ValueError for ragged lists and integers past 64 bits, TypeError and RuntimeError for what is no number,
                RuntimeError where a value does not fit in ``dtype``

    >>> tensor([[1, 2], [3, 4]]).dtype
    torch.int64
    """
    if isinstance(data, Tensor):
        _warn_copy("torch.tensor")
    return made(data, dtype_of("tensor", dtype), device, requires_grad, pin_memory)


def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
    """A new leaf tensor that holds a copy of ``data``, by default in the dtype and on the device of this one."""
    if isinstance(data, Tensor):
        _warn_copy("tensor.new_tensor")
    dtype = dtype_of("new_tensor", dtype) or (data.dtype if isinstance(data, Tensor) else self.dtype)
    return made(data, dtype, self.device if device is None else device, requires_grad, pin_memory)


def _warn_copy(name):
    warnings.warn(
        "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
        f"sourceTensor.detach().clone().requires_grad_(True), rather than {name}(sourceTensor).",
        UserWarning,
        stacklevel=3,
    )


def made(data, d, device, requires_grad=False, pin_memory=False):
    if isinstance(data, Tensor):
        t = data.detach()
        t = t.to(device=t.device if device is None else device, dtype=d or t.dtype, copy=True)
        return finish(t.array, requires_grad, pin_memory)
    target = target_of(device)
    if hasattr(data, "__cuda_array_interface__"):
        t = wrap(build(target if target.type == "cuda" else Device("cuda"), lambda xp: xp.array(data)))
        return finish(t.to(t.device if device is None else target, d or t.dtype).array, requires_grad, pin_memory)
    array = array_of(data, d)
    return finish(to_device(array, target), requires_grad, pin_memory)


def array_of(data, d=None):
    """``data`` (anything but a tensor) as a new NumPy array of dtype ``d``, or of the dtype that it has by itself."""
    found = _as_ndarray(data)
    if found is not None:
        array = canonical(checked(found))
        return _converted(array, d or dtypes.of_array(array))
    leaves, shape = _flat(data)
    inferred = _inferred(leaves)
    if d is None:
        d = inferred
    leaves = [v.item() if isinstance(v, Tensor) else v for v in leaves]
    return _numbers(leaves, d, inferred).reshape(shape)


def _as_ndarray(data):
    """The array that ``data`` is or stands for by NumPy's protocols; None where it is plain Python data."""
    if isinstance(data, (np.ndarray, np.generic)):
        return np.asarray(data)
    kind = type(data)
    if hasattr(kind, "__array__") or hasattr(data, "__array_interface__"):
        return np.asarray(data)
    return None


def _converted(array, d):
    """A copy in dtype ``d`` with the same strides."""
    if array.dtype.kind == "c" and d.category < 3 and d.category > 0:
        warnings.warn("Casting complex values to real discards the imaginary part", UserWarning, stacklevel=5)
        array = array.real
    with np.errstate(invalid="ignore", over="ignore"):
        return array.astype(d.numpy, order="K")


def _is_sequence(value):
    """Whether nested data goes on inside: lists, tuples, ranges, bytearrays, arrays with dimensions."""
    if isinstance(value, (list, tuple)):
        return True
    if isinstance(value, (str, bytes, dict, Tensor, np.generic)) or not hasattr(type(value), "__getitem__"):
        return False
    return getattr(value, "ndim", 1) > 0 and hasattr(value, "__len__")


def _flat(data):
    """(the numbers of nested sequences in row-major order, their shape)."""
    if not _is_sequence(data):
        return [data], ()
    shape, probe = [], data
    while _is_sequence(probe):
        shape.append(len(probe))
        if not len(probe):
            break
        probe = probe[0]
    if isinstance(probe, str) and shape:
        raise ValueError("too many dimensions 'str'")
    if any(isinstance(v, np.ndarray) for v in itertools.islice(data, 1)):
        warn_once(
            "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting the list to "
            "a single numpy.ndarray with numpy.array() before converting to a tensor."
        )
    rows = [data]
    for dim, n in enumerate(shape):
        for row in rows:
            if not _is_sequence(row):
                raise TypeError("not a sequence")
            if len(row) != n:
                raise ValueError(
                    errors.text(
                        f"expected sequence of length {n} at dim {dim} (got {len(row)})",
                        f"the first entries give the shape {tuple(shape)}; every list of a level needs one length",
                    )
                )
        rows = list(itertools.chain.from_iterable(rows))
    return rows, tuple(shape)


def _inferred(leaves):
    """The dtype in which all these numbers meet."""
    met = None
    for kind in dict.fromkeys(map(type, leaves)):
        if issubclass(kind, (Tensor, np.generic)) or _sequence_type(kind):
            for leaf in leaves:
                if type(leaf) is kind:
                    met = _meet(met, _dtype_of_leaf(leaf))
        else:
            met = _meet(met, _dtype_of_kind(kind))
    return met or dtypes.get_default_dtype()


def _meet(a, b):
    return b if a is None else dtypes.promote_types(a, b)


def _sequence_type(kind):
    return issubclass(kind, (list, tuple))


def _dtype_of_leaf(leaf):
    if isinstance(leaf, Tensor):
        if leaf.array.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return leaf.dtype
    if isinstance(leaf, np.generic):
        checked(np.asarray(leaf))
        return dtypes.OF_NUMPY[leaf.dtype]
    return _inferred(_flat(leaf)[0])


def _dtype_of_kind(kind):
    for python, d in _KINDS.items():
        if issubclass(kind, python):
            return d
    if issubclass(kind, builtins.float):
        return dtypes.get_default_dtype()
    if issubclass(kind, builtins.complex):
        return dtypes.get_default_dtype().to_complex()
    if issubclass(kind, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{kind.__name__}'")
    if hasattr(kind, "__index__"):
        return dtypes.int64
    raise RuntimeError(f"Could not infer dtype of {kind.__name__}")


def _numbers(leaves, d, inferred):
    """A flat list of Python and NumPy numbers as an array of ``d``, each checked to fit."""
    for leaf in leaves:
        if isinstance(leaf, (list, tuple)):
            what = f"'{type(leaf).__name__}' object cannot be interpreted as an integer"
            raise TypeError(f"must be real number, not {type(leaf).__name__}" if d.category >= 2 else what)
    if inferred.category == 3 and d.category in (1, 2):
        raise TypeError(
            "must be real number, not complex"
            if d.category == 2
            else "'complex' object cannot be interpreted as an integer"
        )
    if d.category == 0:
        return np.array([builtins.bool(v) for v in leaves], bool)
    if d.category >= 2:
        with np.errstate(over="ignore"):
            return np.array(leaves, np.complex128 if d.category == 3 else np.float64).astype(d.numpy)
    return _integers(leaves, d, inferred)


def _integers(leaves, d, inferred):
    if inferred.category == 2:
        for v in leaves:
            if not math.isfinite(v) or not fits(builtins.float(v), d):
                raise _overflow(d)
        leaves = [int(v) for v in leaves]
    if d is dtypes.uint64:
        return np.array([_unsigned(v) for v in leaves], np.uint64)
    try:
        wide = np.array(leaves, np.int64)
    except OverflowError:
        raise ValueError("Overflow when unpacking long long") from None
    if d is not dtypes.int64 and wide.size and not (fits(int(wide.min()), d) and fits(int(wide.max()), d)):
        raise _overflow(d)
    return wide.astype(d.numpy)


def _unsigned(v):
    v = v.__index__()
    if v < 0:
        raise OverflowError("can't convert negative int to unsigned")
    if v >= 2**64:
        raise OverflowError("int too big to convert")
    return v


def _overflow(d):
    return RuntimeError(f"value cannot be converted to type {d.name} without overflow")


def checked(array):
    """``array`` where a tensor can lie over its memory.

    Raises      TypeError for other element types, ValueError for negative or odd strides and foreign byte order
    """
    if array.dtype not in dtypes.OF_NUMPY:
        if not array.dtype.isnative and array.dtype.newbyteorder("=") in dtypes.OF_NUMPY:
            raise ValueError(
                "given numpy array has byte order different from the native byte order. Conversion between byte orders "
                "is currently not supported."
            )
        raise TypeError(
            f"can't convert np.ndarray of type numpy.{array.dtype.type.__name__}. The only supported types are: "
            "float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, "
            "uint8, and bool."
        )
    if array.size:
        for s in array.strides:
            if s < 0:
                raise ValueError(
                    "At least one stride in the given numpy array is negative, and tensors with negative strides are "
                    "not currently supported. (You can probably work around this by making a copy of your array  with "
                    "array.copy().) "
                )
            if s % array.itemsize:
                raise ValueError(
                    "given numpy array strides not a multiple of the element byte size. Copy the numpy array to "
                    "reallocate the memory."
                )
    return array


METHODS = ("new_tensor",)
