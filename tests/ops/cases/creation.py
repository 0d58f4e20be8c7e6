"""Rows of the functions that make tensors of known values."""

import numpy as np

import cudagrad

from . import Error, Input, case

DOUBLE = {"dtype": cudagrad.float64}
MADE = {"out": "float64", "grad": 0, "low": False}  # the row fixes the dtype, nothing is differentiable

NEGATIVE = "Trying to create tensor with negative dimension -1: [-1]"


def without_options(function):
    return lambda *args, **options: function(*args)


def sized(function):
    return lambda *size, **options: function(size[0] if size and isinstance(size[0], list) else size)


case(
    "zeros",
    sized(np.zeros),
    Input(2, 3, **DOUBLE),
    Input([4], **DOUBLE),
    Input(0, 2, **DOUBLE),
    Input([], **DOUBLE),
    Error(RuntimeError, "zeros: Dimension size must be non-negative.", 2, -1),
    Error(TypeError, "zeros(): argument 'size' (position 1) must be tuple of ints, not float", 2.5),
    Error(TypeError, 'zeros() missing 1 required positional arguments: "size"'),
    Error(TypeError, "zeros(): argument 'dtype' must be torch.dtype, not str", 2, dtype="float32"),
    Error(
        RuntimeError, "Only Tensors of floating point and complex dtype", 2, dtype=cudagrad.int64, requires_grad=True
    ),
    **MADE,
)
case(
    "ones",
    sized(np.ones),
    Input(3, **DOUBLE),
    Input(2, 0, 3, **DOUBLE),
    Error(RuntimeError, NEGATIVE, -1),
    Error(TypeError, "argument 'size' failed to unpack the object at pos 2 with error \"type must be tuple", 2, 2.5),
    **MADE,
)
case(
    "full",
    without_options(lambda size, value: np.full(size, value)),
    Input([2, 3], 7.25, **DOUBLE),
    Input([2], True),
    Input([2], 3),
    Input([0], -1, dtype=cudagrad.uint8),
    Error(RuntimeError, "value cannot be converted to type uint8_t without overflow", [2], 300, dtype=cudagrad.uint8),
    Error(RuntimeError, "value cannot be converted to type float without overflow", [2], 1j, dtype=cudagrad.float32),
    Error(RuntimeError, "type int64_t without overflow", [2], float("nan"), dtype=cudagrad.int64),
    Error(TypeError, "full(): argument 'fill_value' (position 2) must be Number, not str", [2], "a"),
    Error(TypeError, "full(): argument 'size' (position 1) must be tuple of ints, not int", 2, 1),
    **MADE,
)
case(
    "eye",
    without_options(np.eye),
    Input(3, **DOUBLE),
    Input(2, 4, **DOUBLE),
    Input(3, 1, dtype=cudagrad.float64),
    Input(0, **DOUBLE),
    Error(RuntimeError, "n must be greater or equal to 0, got -1", -1),
    Error(RuntimeError, "m must be greater or equal to 0, got -1", 2, -1),
    Error(TypeError, "eye(): argument 'n' (position 1) must be int, not float", 2.5),
    **MADE,
)


def arange(*bounds, dtype=None):
    found = np.arange(*bounds)
    return found if dtype is None else found.astype(dtype.numpy)


case(
    "arange",
    arange,
    Input(5),
    Input(2, 9, 3),
    Input(5, -4, -2),
    Input(3, 3),
    Input(0.0, 2.0, 0.3, **DOUBLE),
    Input(1.0, -1.0, -0.25, **DOUBLE),
    Input(4, **DOUBLE),
    Error(RuntimeError, "step must be nonzero", 0, 3, 0),
    Error(RuntimeError, "upper bound and lower bound inconsistent with step sign", 3, 0, 1),
    Error(RuntimeError, "unsupported range: 0 -> inf", 0, float("inf")),
    Error(TypeError, "arange(): argument 'end' (position 1) must be Number, not str", "a"),
    Error(NotImplementedError, "\"arange_cpu\" not implemented for 'Bool'", 3, dtype=cudagrad.bool),
    **MADE,
)
case(
    "linspace",
    without_options(np.linspace),
    Input(0, 1, 5, **DOUBLE),
    Input(-3.0, 10.0, 8, **DOUBLE),
    Input(2, 2, 1, **DOUBLE),
    Input(0, 1, 0, **DOUBLE),
    Error(RuntimeError, "number of steps must be non-negative", 0, 1, -1),
    Error(RuntimeError, "can't be safely cast to passed dtype Float", 0, 1j, 3, dtype=cudagrad.float32),
    Error(RuntimeError, "linspace only supports 0-dimensional start and end tensors", np.zeros(1), 1, 3),
    **MADE,
)
case(
    "linspace",
    without_options(np.linspace),
    Input(0, 1j, 4, dtype=cudagrad.complex128),
    grad=0,
    low=False,
    out="complex128",
)
case(
    "logspace",
    without_options(np.logspace),
    Input(0, 2, 3, **DOUBLE),
    Input(-1.5, 1.0, 6, **DOUBLE),
    Error(RuntimeError, "number of steps must be non-negative", 0, 1, -2),
    **MADE,
)
case("logspace", lambda a, b, n, base, **_: np.logspace(a, b, n, base=base), Input(0, 5, 6, 2.0, **DOUBLE), **MADE)

case("zeros_like", np.zeros_like, Input((2, 3)), Input(np.array(2.0)), Input((0, 2)), grad=0)
case("ones_like", np.ones_like, Input((2, 3)), Input(np.array([1, 2])), grad=0)
case(
    "full_like",
    np.full_like,
    Input((2, 3), 2.5),
    Input(np.array([1, 2]), 7),
    Error(RuntimeError, "value cannot be converted to type float without overflow", np.ones(2), 1j),
    grad=0,
)
case(
    "vander",
    lambda x, N=None, increasing=False: np.vander(x, N, increasing),
    Input(np.array([1.0, -2.0, 0.5])),
    Input(np.array([1.0, -2.0, 0.5]), 5, True),
    Input(np.array([3.0, 0.0]), N=1),
    Input(np.array([3.0, 0.0]), N=0),
    Error(RuntimeError, "x must be a one-dimensional tensor.", (1, 2)),
    Error(RuntimeError, "N must be non-negative.", (2,), -1),
    ints=True,
    complex=True,
)


def window(curve):
    def whole(n, periodic=True, *rest, dtype=None):
        return np.ones(n) if n < 2 else curve(n + bool(periodic), *rest)[:n]

    return whole


def hamming(n, alpha=0.54, beta=0.46):
    return alpha - beta * np.cos(2 * np.pi * np.arange(n) / (n - 1))


WINDOWS = {"hann": np.hanning, "blackman": np.blackman, "bartlett": np.bartlett}
WINDOWS |= {"hamming": hamming, "kaiser": lambda n, beta=12.0: np.kaiser(n, beta)}
for _name, _curve in WINDOWS.items():
    case(
        f"{_name}_window",
        window(_curve),
        Input(6, **DOUBLE),
        Input(5, False, **DOUBLE),
        Input(1, **DOUBLE),
        Input(0, **DOUBLE),
        Error(RuntimeError, f"{_name}_window requires non-negative window_length, got window_length=-1", -1),
        Error(
            RuntimeError,
            f"{_name}_window expects floating point dtypes, got: TensorOptions(",
            5,
            dtype=cudagrad.int64,
        ),
        **MADE,
    )
case("hamming_window", window(hamming), Input(7, False, 0.6, 0.4, **DOUBLE), **MADE)
case("kaiser_window", window(WINDOWS["kaiser"]), Input(7, False, 3.0, **DOUBLE), **MADE)
