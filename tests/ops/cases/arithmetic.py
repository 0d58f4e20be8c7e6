"""Sums, products, quotients, remainders and their compounds."""

import numpy as np

from . import Error, HostError, Input, case

PAIR = np.array([1.3, -2.4, 0.6, 7.7]), np.array([2.2, 1.1, -0.7, 3.1])
MISFIT = "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0"


def add_ref(x, y, alpha=1):
    return x + y if alpha == 1 else x + y * np.asarray(y).dtype.type(alpha)


case(
    "add",
    add_ref,
    Input((3, 4), (4,)),
    Input((2, 1), (1, 5), alpha=2),
    Input((2, 3), 1.5),
    Input((2, 3), ()),
    Input((0, 3), (1, 3)),
    Error(RuntimeError, MISFIT, (2,), (3,)),
    Error(TypeError, "add(): argument 'other' (position 2) must be Tensor, not str", (2,), "a"),
    Error(
        RuntimeError,
        "For integral input tensors, argument alpha must not be a floating point number.",
        np.array([1]),
        np.array([1]),
        alpha=1.5,
    ),
    Error(
        RuntimeError,
        "For non-complex input tensors, argument alpha must not be a complex number.",
        (2,),
        (2,),
        alpha=1j,
    ),
    Error(RuntimeError, "Boolean alpha only supported for Boolean results.", np.array([1]), np.array([1]), alpha=True),
    ints=True,
    complex=True,
    pointwise=True,
)
TWO_BOOLS = (
    "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator "
    "instead."
)
ONE_BOOL = (
    "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use "
    "the `~` "
    "or `logical_not()` operator instead."
)
case(
    "sub",
    lambda x, y, alpha=1: add_ref(x, -y, alpha),
    Input((3, 4), (4,)),
    Input((2, 1), (1, 5), alpha=0.5),
    Input((2, 3), 1.5),
    Error(RuntimeError, MISFIT, (2,), (3,)),
    Error(RuntimeError, TWO_BOOLS, np.array([True]), np.array([True])),
    Error(RuntimeError, ONE_BOOL, (1,), np.array([True])),
    Error(RuntimeError, ONE_BOOL, np.array([True]), 1),
    complex=True,
    pointwise=True,
)
case("sub", lambda x, y: x - y, Input((3, 4), (3, 1)), Input((2,), 3), ints=True)
case("rsub", lambda x, y, alpha=1: y - alpha * x, Input((3, 4), (4,)), Input((2, 3), 1.5, alpha=2), complex=True)
case(
    "mul",
    lambda x, y: x * y,
    Input((3, 4), (4,)),
    Input((2, 1), (1, 5)),
    Input((2, 3), -1.5),
    Error(RuntimeError, MISFIT, (2,), (3,)),
    ints=True,
    complex=True,
    pointwise=True,
)
case(
    "true_divide",
    lambda x, y: x / y,
    Input((3, 4), PAIR[1]),
    Input(*PAIR),
    Input((2, 3), -1.5),
    Error(RuntimeError, MISFIT, (2,), (3,)),
    ints=True,
    complex=True,
    pointwise=True,
)


def div_ref(x, y, rounding_mode=None):
    quotient = x / y
    if rounding_mode is None:
        return quotient
    rounded = np.floor(quotient) if rounding_mode == "floor" else np.trunc(quotient)
    return rounded.astype(np.result_type(x, y))


case(
    "div",
    div_ref,
    Input(*PAIR),
    Input(*PAIR, rounding_mode="floor"),
    Input(*PAIR, rounding_mode="trunc"),
    Error(
        RuntimeError,
        "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found 'up'",
        (2,),
        (2,),
        rounding_mode="up",
    ),
    HostError(RuntimeError, "ZeroDivisionError", np.array([1]), np.array([0]), rounding_mode="floor"),
    HostError(RuntimeError, "ZeroDivisionError", np.array([1]), np.array([0]), rounding_mode="trunc"),
    ints=True,
    pointwise=True,
)
case(
    "floor_divide",
    lambda x, y: np.floor(x / y).astype(np.result_type(x, y)),
    Input(*PAIR),
    Input(PAIR[0], -1.5),
    HostError(RuntimeError, "ZeroDivisionError", np.array([1]), np.array([0])),
    grad=0,
    pointwise=True,
)
case("floor_divide", lambda x, y: np.floor(x / y).astype(x.dtype), Input(*PAIR), Input(PAIR[0], 2), ints=True, grad=0)
case(
    "remainder",
    lambda x, y: x - y * np.floor(x / y).astype(x.dtype),
    Input(*PAIR),
    Input(PAIR[0], -2),
    HostError(RuntimeError, "ZeroDivisionError", np.array([1]), np.array([0])),
    ints=True,
    pointwise=True,
)
case(
    "fmod",
    lambda x, y: x - y * np.trunc(x / y).astype(x.dtype),
    Input(*PAIR),
    Input(PAIR[0], -2),
    HostError(RuntimeError, "ZeroDivisionError", np.array([1]), np.array([0])),
    ints=True,
    pointwise=True,
)
case(
    "neg",
    lambda x: -x,
    Input((2, 3)),
    Error(RuntimeError, "Negation, the `-` operator, on a bool tensor is not supported.", np.array([True])),
    ints=True,
    complex=True,
    pointwise=True,
)
case(
    "positive",
    lambda x: x,
    Input((2, 3)),
    Error(RuntimeError, "The `+` operator, on a bool tensor is not supported.", np.array([True])),
    ints=True,
)
case("reciprocal", lambda x: 1 / x, Input(PAIR[0]), complex=True, pointwise=True)
case(
    "hypot",
    lambda x, y: np.sqrt(x * x + y * y),
    Input(*PAIR),
    Error(NotImplementedError, "\"hypot_cpu\" not implemented for 'Long'", np.array([3]), np.array([4])),
    Error(TypeError, "hypot(): argument 'other' (position 2) must be Tensor, not int", (2,), 1),
    pointwise=True,
)

# ---- compounds

case(
    "addcmul",
    lambda x, a, b, value=1: x + a * b * a.dtype.type(value),
    Input((3, 4), (4,), (3, 1)),
    Input((2,), (2,), (2,), value=0.5),
    complex=True,
    pointwise=True,
)
case("addcmul", lambda x, a, b, value=1: x + value * a * b, Input((2,), (2,), (2,), value=3), ints=True)
INTEGER_DIVISION = "Integer division with addcdiv is no longer supported"
case(
    "addcdiv",
    lambda x, a, b, value=1: x + a / b * a.dtype.type(value),
    Input((3, 4), (4,), PAIR[1]),
    Input((4,), (4,), PAIR[1], value=0.5),
    Error(RuntimeError, INTEGER_DIVISION, (1,), np.array([1]), np.array([2])),
    complex=True,
    pointwise=True,
)
case(
    "lerp",
    lambda x, end, w: x + w * (end - x),
    Input((3, 4), (4,), np.array([0.2, 0.5, 0.9, 1.3])),
    Input((2, 3), (2, 3), 0.25),
    Input((2, 3), (2, 3), 0.75),
    Error(RuntimeError, "expected dtype float for `end` but got dtype long int", (1,), np.array([2]), 0.5),
    Error(NotImplementedError, "\"lerp_kernel_scalar\" not implemented for 'Long'", np.array([1]), np.array([2]), 0.5),
    complex=True,
)

# ---- the bits of a float

case("ldexp", lambda x, y: x * np.exp2(y), Input((2, 3), (3,)), Input((4,), np.array([1, -2, 3, 0])))
case(
    "frexp",
    lambda x: tuple(np.frexp(x.astype(np.float32) if x.dtype.itemsize < 4 else x)),
    Input(np.array([5.0, 0.0, -0.3, 1e-3])),
    Error(RuntimeError, "torch.frexp() only supports floating-point dtypes", np.array([5])),
    grad=0,
    pointwise=True,
)
case("frexp", lambda x: tuple(np.frexp(x)), Input(np.array([5.0, -0.3, 1.4])), low=False)
case(
    "nextafter",
    np.nextafter,
    Input(np.array([1.0, -1.0]), np.array([2.0, 2.0])),
    Error(NotImplementedError, "\"nextafter_cpu\" not implemented for 'Long'", np.array([3]), np.array([4])),
    grad=2,
    low=False,
)
