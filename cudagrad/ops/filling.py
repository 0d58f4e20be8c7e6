"""Python numbers that are written into tensors."""

import math

import ml_dtypes
import numpy as np

_C_TYPES = {"bool": "bool", "int32": "int", "float32": "float", "float64": "double", "float16": "c10::Half"}
_C_TYPES |= {"bfloat16": "c10::BFloat16", "complex64": "c10::complex<float>", "complex128": "c10::complex<double>"}


def fill_number(value, dtype):
    """``value`` as the Python number that an element of ``dtype`` becomes.

    Raises      RuntimeError, in PyTorch's words, where it does not fit; negative ones wrap in unsigned dtypes
    """
    if isinstance(value, complex) and dtype.category < 3:
        if value.imag:
            raise _overflow(dtype)
        value = value.real
    if dtype.category == 0:
        return bool(value)
    if dtype.category == 1:
        return _whole(value, dtype)
    if dtype.category == 2 and math.isfinite(value) and abs(value) > _largest(dtype):
        raise _overflow(dtype)
    return value


def _whole(value, dtype):
    info = np.iinfo(dtype.numpy)
    if not math.isfinite(value):
        raise _overflow(dtype)
    value = int(value)
    if not (info.min if info.min else -info.max) <= value <= info.max:
        raise _overflow(dtype)
    return value % (info.max + 1) if value < 0 == info.min else value


def _largest(dtype):
    return math.inf if dtype.itemsize == 8 else float(ml_dtypes.finfo(dtype.numpy).max)


def _overflow(dtype):
    c_type = _C_TYPES.get(dtype.name, dtype.name + "_t")
    return RuntimeError(f"value cannot be converted to type {c_type} without overflow")
