"""The element types of tensors and the rules by which two of them meet."""

import ml_dtypes
import numpy as np


class dtype:
    """An element type, one object each: ``cudagrad.float32`` is ``cudagrad.float``.

    ``numpy`` is NumPy's dtype, ``category`` 0 for bool, 1 for integers, 2 for floating, 3 for complex; ``legacy`` and
    ``cpp`` are its names in PyTorch's error messages.
    """

    __slots__ = (
        "name",
        "numpy",
        "category",
        "itemsize",
        "is_floating_point",
        "is_complex",
        "is_signed",
        "legacy",
        "cpp",
    )

    def __init__(self, name, numpy_type, category, legacy, cpp):
        self.name, self.numpy, self.category = name, np.dtype(numpy_type), category
        self.legacy, self.cpp = legacy, cpp
        self.itemsize = self.numpy.itemsize
        self.is_floating_point = category == 2
        self.is_complex = category == 3
        self.is_signed = category >= 2 or self.numpy.kind == "i"

    def __repr__(self):
        return "torch." + self.name

    def __reduce__(self):
        return self.name

    def to_real(self):
        """The floating dtype of the parts of this one; itself where it is not complex."""
        return {complex64: float32, complex128: float64}.get(self, self)

    def to_complex(self):
        """The complex dtype whose parts are of this one."""
        if self.is_complex:
            return self
        if self in (float32, float16, bfloat16):
            return complex64
        if self is float64:
            return complex128
        raise RuntimeError(f"to_complex: no complex dtype has parts of {self}")


uint8 = dtype("uint8", np.uint8, 1, "Byte", "unsigned char")
int8 = dtype("int8", np.int8, 1, "Char", "signed char")
int16 = dtype("int16", np.int16, 1, "Short", "short int")
int32 = dtype("int32", np.int32, 1, "Int", "int")
int64 = dtype("int64", np.int64, 1, "Long", "long int")
uint16 = dtype("uint16", np.uint16, 1, "UInt16", "short unsigned int")
uint32 = dtype("uint32", np.uint32, 1, "UInt32", "unsigned int")
uint64 = dtype("uint64", np.uint64, 1, "UInt64", "long unsigned int")
float16 = dtype("float16", np.float16, 2, "Half", "c10::Half")
bfloat16 = dtype("bfloat16", ml_dtypes.bfloat16, 2, "BFloat16", "c10::BFloat16")
float32 = dtype("float32", np.float32, 2, "Float", "float")
float64 = dtype("float64", np.float64, 2, "Double", "double")
complex64 = dtype("complex64", np.complex64, 3, "ComplexFloat", "c10::complex<float>")
complex128 = dtype("complex128", np.complex128, 3, "ComplexDouble", "c10::complex<double>")
bool = dtype("bool", np.bool_, 0, "Bool", "bool")

half, float, double, cfloat, cdouble = float16, float32, float64, complex64, complex128
short, int, long = int16, int32, int64

ALL = (uint8, int8, int16, int32, int64, uint16, uint32, uint64, float16, bfloat16, float32, float64, complex64)
ALL += (complex128, bool)
__all__ = [d.name for d in ALL]
__all__ += ["half", "float", "double", "cfloat", "cdouble", "short", "int", "long", "dtype", "finfo", "iinfo"]
__all__ += ["get_default_dtype", "set_default_dtype", "promote_types", "can_cast"]

OF_NUMPY = {d.numpy: d for d in ALL}
OF_LEGACY = {d.legacy: d for d in ALL}

_default = float32


def of_array(array):
    """The dtype of a NumPy or CuPy array; TypeError, in PyTorch's words, where there is none."""
    try:
        return OF_NUMPY[array.dtype]
    except KeyError:
        raise TypeError(
            f"can't convert np.ndarray of type {array.dtype}. The only supported types are: float64, float32, "
            "float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool."
        ) from None


def get_default_dtype():
    """The dtype of floating tensors made from Python numbers; float32 unless it was changed."""
    return _default


def set_default_dtype(d):
    """Make ``d`` (floating) the dtype of tensors made from Python floats.

    Raises      TypeError where d is not a floating dtype
    """
    global _default
    if not isinstance(d, dtype) or not d.is_floating_point:
        raise TypeError(f"only floating-point types are supported as the default type\n  got {d}")
    _default = d


def promote_types(a, b):
    """The smallest dtype that both may turn into, by PyTorch's table.

    Source      pytorch.org/docs/stable/tensor_attributes.html, type promotion
    """
    if a is b:
        return a
    if a.category != b.category:
        low, high = (a, b) if a.category < b.category else (b, a)
        if high.category == 3 and low is float64:
            return complex128
        return high
    if a.category == 3:
        return complex128
    if a.category == 2:
        if {a, b} == {float16, bfloat16}:
            return float32
        return a if a.itemsize > b.itemsize else b
    if a.is_signed == b.is_signed:
        return a if a.itemsize > b.itemsize else b
    unsigned, signed = (b, a) if a.is_signed else (a, b)
    if unsigned is not uint8:
        raise RuntimeError(
            f"Promotion for uint16, uint32, uint64 types is not supported, attempted to promote {_cap(a)} and {_cap(b)}"
        )
    return signed if signed.itemsize > 1 else int16


def _cap(d):
    return d.legacy


def can_cast(source, target):
    """Whether in-place arithmetic may turn ``source`` into ``target``: never to a lower category."""
    return source.category <= target.category


def category_of_number(value):
    """0 for bool, 1 for int, 2 for float, 3 for complex: the category of a Python number."""
    kind = value.__class__
    return _NUMBER[kind] if kind in _NUMBER else next(c for k, c in _NUMBER.items() if isinstance(value, k))


def number_dtype(category):
    """The dtype that a Python number of this category becomes alone."""
    return (bool, int64, _default, _default.to_complex())[category]


_NUMBER = {True.__class__: 0, (1).__class__: 1, (1.0).__class__: 2, 1j.__class__: 3}


class finfo:
    """Limits of a floating dtype: eps, max, min, tiny, smallest_normal, resolution, bits."""

    def __init__(self, type=None):
        type = type or _default
        if not type.is_floating_point and not type.is_complex:
            raise TypeError(f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle '{type}'")
        info = ml_dtypes.finfo(type.to_real().numpy)
        self.bits, self.dtype = type.to_real().itemsize * 8, type.to_real().name
        for name in ("eps", "max", "min", "tiny", "smallest_normal", "resolution"):
            setattr(self, name, (1.0).__class__(getattr(info, name)))

    def __repr__(self):
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        return f"finfo({', '.join(f'{n}={getattr(self, n):g}' for n in names)}, dtype={self.dtype})"


class iinfo:
    """Limits of an integer dtype: min, max, bits."""

    def __init__(self, type):
        if type.category != 1:
            raise TypeError(f"torch.iinfo() requires an integer input type. Use torch.finfo to handle '{type}'")
        info = np.iinfo(type.numpy)
        self.bits, self.min, self.max, self.dtype = info.bits, info.min, info.max, type.name

    def __repr__(self):
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
