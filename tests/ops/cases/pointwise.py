"""Functions of one or two tensors, element by element: exponentials, circles, powers, rounding, bounds, signs."""

import math

import numpy as np

from . import Error, Input, case

NAN, INF = math.nan, math.inf
ANY = np.array([-2.3, -0.7, 0.2, 1.9])
POSITIVE = np.array([0.15, 0.8, 1.7, 6.2])
INNER = np.array([-0.93, -0.3, 0.1, 0.77])
ABOVE = np.array([1.2, 2.3, 5.0, 9.1])
PAIR = np.array([1.3, -2.4, 0.6, 7.7]), np.array([2.2, 1.1, -0.7, 3.1])


def each(name, ref, values, *calls, **facts):
    """A row of a function of one tensor that any shape goes through."""
    facts = {"complex": True, "pointwise": True, **facts}
    case(name, ref, Input(values), Input(values.reshape(2, 2)), *calls, **facts)


def also(alias, ref, values):
    case(alias, ref, Input(values), pointwise=True)


# ---- exponentials and logarithms

each("exp", np.exp, ANY)
each("exp2", lambda x: 2**x, ANY)
each("expm1", np.expm1, ANY)
each("log", np.log, POSITIVE)
each("log2", np.log2, POSITIVE)
each("log10", np.log10, POSITIVE)
each("log1p", np.log1p, POSITIVE - 0.9)
each("sigmoid", lambda x: 1 / (1 + np.exp(-x)), ANY)
case("sigmoid", lambda x: 1 / (1 + np.exp(-x)), Input(np.array([-800.0, -80.0, 80.0, 800.0])), grad=0)
for name, ref in (
    ("logaddexp", lambda x, y: np.maximum(x, y) + np.log1p(np.exp(-np.abs(x - y)))),
    ("logaddexp2", lambda x, y: np.maximum(x, y) + np.log2(1 + np.exp2(-np.abs(x - y)))),
):
    text = f"\"{name}_cpu\" not implemented for 'Long'"
    case(name, ref, Input(*PAIR), Input((3, 1), (4,)), Error(NotImplementedError, text, np.array([1]), np.array([2])))
    case(name, ref, Input(PAIR[0] * 300, PAIR[1] * 300), low=False)
case("exp", lambda x: np.exp(x.astype(np.float64)), Input(ANY), Input(np.array([-3.0, 0.0])), ints=True)

# ---- circles and hyperbolas

each("sin", np.sin, ANY)
each("cos", np.cos, ANY)
each("tan", np.tan, ANY)
each("asin", np.arcsin, INNER)
each("acos", np.arccos, INNER)
each("atan", np.arctan, ANY)
each("sinh", np.sinh, ANY)
each("cosh", np.cosh, ANY)
each("tanh", np.tanh, ANY)
each("asinh", np.arcsinh, ANY)
each("acosh", np.arccosh, ABOVE)
each("atanh", np.arctanh, INNER)
for alias, ref, values in (
    *(("arcsin", np.arcsin, INNER), ("arccos", np.arccos, INNER), ("arctan", np.arctan, ANY)),
    *(("arcsinh", np.arcsinh, ANY), ("arccosh", np.arccosh, ABOVE), ("arctanh", np.arctanh, INNER)),
):
    also(alias, ref, values)
for name in ("atan2", "arctan2"):
    case(name, np.arctan2, Input(*PAIR), Input((3, 1), (4,)), pointwise=True)
case("atan2", None, Error(TypeError, "atan2(): argument 'other' (position 2) must be Tensor, not int", (2,), 1))
each("deg2rad", np.deg2rad, ANY * 60, complex=False)
each("rad2deg", np.rad2deg, ANY, complex=False)

# ---- powers

each("square", lambda x: x * x, ANY, ints=True)
each("sqrt", np.sqrt, POSITIVE)
each("rsqrt", lambda x: 1 / np.sqrt(x), POSITIVE)
for exponent in (0, 1, 2, 3, 4, 5, -1, -2, 0.5, -0.5, 2.5):
    ref = lambda x, p: x ** np.asarray(p, x.dtype)  # noqa: E731
    case("pow", ref, Input(POSITIVE, exponent), complex=True, pointwise=True)
case(
    "pow",
    lambda x, y: x**y,
    Input(POSITIVE, PAIR[0]),
    Input((np.array([[0.3], [2.0]])), PAIR[1]),
    Input(np.array([-2.0, -0.5]), 3),
    complex=True,
)
case("pow", lambda x, y: x**y, Input(2, ANY), Input(0.5, ANY))
case(
    "pow",
    lambda x, y: x**y,
    Input(np.array([2, 3, -2]), np.array([3, 0, 5])),
    Input(np.array([2, 3, -2]), 2),
    Input(np.array([2, 3, 5]), 2.5),
    Error(RuntimeError, "Integers to negative integer powers are not allowed.", np.array([2]), -1),
    Error(NotImplementedError, "\"pow\" not implemented for 'Bool'", np.array([True]), np.array([True])),
    Error(TypeError, "pow() received an invalid combination of arguments - got (int, int), but expected one of:", 2, 2),
    grad=0,
    out="float32",
)
case("pow", lambda x, y: np.array([0, 1, -1, 0, 1]), Input(np.array([2, 1, -1, 0, -1]), np.array([-1, -1, -3, -2, -4])))
case(
    "float_power",
    lambda x, y: np.float_power(x, y),
    Input(POSITIVE, PAIR[0]),
    Input(POSITIVE, 2),
    Input(2, ANY),
    Input(np.array([2, 3]), 2),
    low=False,
    out="float64",
)

# ---- rounding


def no_bool(kernel):
    return Error(NotImplementedError, f"\"{kernel}\" not implemented for 'Bool'", np.array([True]))


def no_complex(name):
    text = f"{name} is not supported for complex inputs"
    return Error(NotImplementedError, text, np.array([1j], np.complex64))


for name, ref in (("floor", np.floor), ("ceil", np.ceil), ("trunc", np.trunc)):
    errors = no_bool(f"{name}_vml_cpu"), no_complex(name)
    each(name, ref, ANY, *errors, complex=False)
    case(name, lambda x: x, Input(np.array([-2, 0, 3])), grad=0)
also("fix", np.trunc, ANY)
each("round", np.round, ANY, complex=False)
case(
    "round",
    np.round,
    Input(np.array([0.5, 1.5, 2.5, -0.5, 3.2])),
    Input(np.array([1.25, -1234.567]), decimals=1),
    Input(np.array([1251.0, -1234.5]), decimals=-2),
    Input(np.array([-2, 0, 3])),
    Error(NotImplementedError, "\"round_cpu\" not implemented for 'Long'", np.array([155]), decimals=-1),
    grad=0,
)
each("frac", lambda x: x - np.trunc(x), ANY, complex=False)
case("frac", None, Error(NotImplementedError, "\"frac_cpu\" not implemented for 'Long'", np.array([1])))

# ---- bounds


def clamp_ref(x, min=None, max=None):
    x = x if min is None else np.maximum(x, np.asarray(min).astype(np.result_type(x, min)))
    return x if max is None else np.minimum(x, np.asarray(max).astype(np.result_type(x, max)))


NO_COMPLEX = "clamp is not supported for complex types"
case(
    "clamp",
    clamp_ref,
    Input(ANY, -1, 1),
    Input(ANY, -0.5),
    Input(ANY, max=0.5),
    Input(ANY, 2, -1),
    Error(RuntimeError, "torch.clamp: At least one of 'min' or 'max' must not be None", (2,)),
    Error(
        TypeError, "clamp() received an invalid combination of arguments - got (Tensor, str), but expected", (2,), "a"
    ),
    Error(TypeError, "clamp() received an invalid combination of arguments - got (Tensor, Tensor, int)", (2,), (2,), 1),
    Error(NotImplementedError, NO_COMPLEX, np.array([1j], np.complex64), 0, 1),
    Error(RuntimeError, "value cannot be converted to type uint8_t without overflow", np.array([1], np.uint8), 300),
    pointwise=True,
)
LOW, HIGH = np.array([-1.0, -1.0, 0.5, 3.0]), np.array([1.0, 0.5, 0.7, -1.0])
case(
    "clamp",
    lambda x, low=None, high=None: clamp_ref(x, low, high),
    Input(ANY, LOW, HIGH),
    Input(ANY, LOW),
    Input(ANY, None, HIGH),
    Input((3, 1), LOW, HIGH),
    pointwise=True,
)
case("clamp", clamp_ref, Input(ANY, -1, 1), Input(ANY, 0), ints=True)
case("clamp", clamp_ref, Input(ANY, NAN), Input(np.array([NAN, 1.0]), 0, 2), grad=0)
case("clip", clamp_ref, Input(ANY, -1, 1))
case("clamp_min", lambda x, min: clamp_ref(x, min), Input(ANY, -1), Input(ANY, min=LOW), pointwise=True)
case("clamp_max", lambda x, max: clamp_ref(x, None, max), Input(ANY, 1), Input(ANY, max=HIGH), pointwise=True)

for name, ref in (("maximum", np.maximum), ("minimum", np.minimum), ("fmax", np.fmax), ("fmin", np.fmin)):
    number = Error(TypeError, f"{name}(): argument 'other' (position 2) must be Tensor, not int", (1,), 1)
    one = np.array([1j], np.complex64)
    refused = Error(RuntimeError, f"{name} not implemented for complex tensors.", one, one)
    case(name, ref, Input(*PAIR), Input((3, 1), (4,)), number, refused, ints=True, pointwise=True)
    case(name, ref, Input(np.array([1.0, NAN, NAN]), np.array([NAN, 2.0, NAN])), grad=0)


case(
    "nan_to_num",
    lambda x, nan=0.0, posinf=None, neginf=None: np.where(
        np.isnan(x), nan, np.where(x == INF, posinf, np.where(x == -INF, neginf, x))
    ),
    Input(np.array([NAN, INF, -INF, 1.5]), nan=2.0, posinf=3.0, neginf=-4.0),
    Input(np.array([0.5, -1.5]), nan=2.0, posinf=3.0, neginf=-4.0),
    pointwise=True,
)
case("nan_to_num", lambda x: np.nan_to_num(x), Input(ANY), ints=True)
case("copysign", np.copysign, Input(*PAIR), Input(ANY, -1.0), pointwise=True)
case("copysign", np.copysign, Input(ANY, np.array([0.0, -0.0, 0.0, -0.0])), grad=0)
MIXED = "heaviside is not yet implemented for tensors with different dtypes."
case(
    "heaviside",
    np.heaviside,
    Input(np.array([-1.0, 0.0, 2.0]), np.array([0.5])),
    Error(RuntimeError, MIXED, (1,), np.array([1])),
    grad=0,
    pointwise=True,
)

# ---- magnitude and sign

each("abs", np.abs, ANY, no_bool("abs_cpu"), ints=True)
also("absolute", np.abs, ANY)
also("negative", np.negative, ANY)
for alias, ref in (("subtract", np.subtract), ("multiply", np.multiply), ("divide", np.divide)):
    case(alias, ref, Input(*PAIR))
each("sign", np.sign, ANY, complex=False, ints=True)
UNLIKE = "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."
case("sign", None, Error(NotImplementedError, UNLIKE, np.array([1j], np.complex64)))
each("sgn", lambda x: x / np.abs(x), ANY)
case("sgn", np.sign, Input(np.array([-2, 0, 3])), Input(np.array([0.0, -1.0])), grad=0)
