"""Comparisons, logic, bits and kinds of numbers: no row has a derivative."""

import math

import numpy as np

from . import Error, Input, case

NAN, INF = math.nan, math.inf
X = np.array([1.0, -2.0, 0.0, 3.5, NAN, INF])
Y = np.array([1.0, 2.0, -0.0, -3.5, NAN, -INF])
MISFIT = "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0"


def kinds(name, ref, *calls, **facts):
    case(name, ref, *calls, grad=0, pointwise=True, **facts)


for name, alias, ref in (
    ("eq", None, np.equal),
    ("ne", "not_equal", np.not_equal),
    ("lt", "less", np.less),
    ("le", "less_equal", np.less_equal),
    ("gt", "greater", np.greater),
    ("ge", "greater_equal", np.greater_equal),
):
    errors = [Error(RuntimeError, MISFIT, (2,), (3,))]
    if name not in ("eq", "ne"):
        text = f"\"{name}_cpu\" not implemented for 'ComplexFloat'"
        errors.append(Error(NotImplementedError, text, np.array([1j], np.complex64), np.array([1j], np.complex64)))
    kinds(name, ref, Input(X, Y), Input(X, X), Input(X, 1.0), *errors)
    kinds(name, ref, Input(X[:4], Y[:4]), Input(X[:4], 1), Input(X[:4], 1.5), ints=True)
    if alias:
        kinds(alias, ref, Input(X, Y))

for name, ref in (("logical_and", np.logical_and), ("logical_or", np.logical_or), ("logical_xor", np.logical_xor)):
    text = f"{name}(): argument 'other' (position 2) must be Tensor, not int"
    kinds(name, ref, Input(X, Y), Error(TypeError, text, (2,), 1))
    kinds(name, ref, Input(X[:4], Y[:4]), ints=True)
kinds("logical_not", np.logical_not, Input(X))
kinds("logical_not", np.logical_not, Input(X[:4]), ints=True)

# ---- bits

A, B = np.array([5, -3, 12, 0]), np.array([3, 6, -8, 1])
BOOLS = np.array([True, True, False]), np.array([True, False, False])

for name, ref in (("bitwise_and", np.bitwise_and), ("bitwise_or", np.bitwise_or), ("bitwise_xor", np.bitwise_xor)):
    text = f"\"{name}_cpu\" not implemented for 'Float'"
    case(name, ref, Input(A, B), Input(*BOOLS), Input(A, 3), Error(NotImplementedError, text, (2,), (2,)), grad=0)
case(
    "bitwise_not",
    np.bitwise_not,
    Input(A),
    Input(BOOLS[0]),
    Error(NotImplementedError, "\"bitwise_not_cpu\" not implemented for 'Float'", (2,)),
    grad=0,
)
SHIFTS = np.array([1, 2, 0, 5])
case(
    "bitwise_left_shift",
    lambda x, y: np.array([(int(a) << int(b)) if 0 <= b < 64 else 0 for a, b in zip(x, np.broadcast_to(y, x.shape))]),
    Input(A, SHIFTS),
    Input(A, np.array([70, -1, 64, 3])),
    Input(A, 2),
    Error(NotImplementedError, "\"lshift_cpu\" not implemented for 'Float'", (2,), 2),
    grad=0,
)
case(
    "bitwise_right_shift",
    lambda x, y: np.array([int(a) >> (int(b) if 0 <= b < 64 else 64) for a, b in zip(x, np.broadcast_to(y, x.shape))]),
    Input(A, SHIFTS),
    Input(A, np.array([70, -1, 64, 3])),
    Input(A, 2),
    Error(NotImplementedError, "\"rshift_cpu\" not implemented for 'Float'", (2,), 2),
    grad=0,
)
for name, ref in (("gcd", np.gcd), ("lcm", np.lcm)):
    text = f"\"{name}_cpu\" not implemented for 'Float'"
    case(name, ref, Input(A, B), Input(A, np.array([0])), Error(NotImplementedError, text, (2,), (2,)), grad=0)

# ---- kinds of numbers

for name, ref in (
    ("isnan", np.isnan),
    ("isinf", np.isinf),
    ("isfinite", np.isfinite),
    ("isposinf", lambda x: x == INF),
    ("isneginf", lambda x: x == -INF),
):
    kinds(name, ref, Input(X), Input(Y))
    kinds(name, ref, Input(X[:4]), ints=True)
kinds("signbit", np.signbit, Input(Y))
kinds("signbit", lambda x: x < 0, Input(Y[3:4]), ints=True)
kinds("isreal", np.isreal, Input(X[:4]), complex=True)

case("is_nonzero", lambda x: bool(x != 0), Input(np.array([2.0])), Input(np.array(0.0)), grad=0)
case(
    "is_nonzero",
    None,
    Error(RuntimeError, "Boolean value of Tensor with more than one value is ambiguous", (2,)),
    Error(RuntimeError, "Boolean value of Tensor with no values is ambiguous", (0,)),
)

# ---- near and equal


def close_ref(x, y, rtol=1e-5, atol=1e-8, equal_nan=False):
    with np.errstate(invalid="ignore"):
        near = (x == y) | (np.isfinite(y) & (np.abs(x - y) <= atol + rtol * np.abs(y)))
    return near | (np.isnan(x) & np.isnan(y)) if equal_nan else near


NEAR = np.array([1.0 + 9e-6, 2.1, 0.0, -3.5, NAN, -INF])
TOLERANT = {"rtol": 0.5, "atol": 0.25}
case(
    "isclose",
    close_ref,
    Input(X, Y),
    Input(X, NEAR),
    Input(NEAR, Y, equal_nan=True),
    Input(X, Y, **TOLERANT),
    Error(RuntimeError, "Long did not match Float", np.array([1]), (1,)),
    Error(RuntimeError, "rtol must be greater than or equal to zero, but got -1", (1,), (1,), rtol=-1),
    Error(RuntimeError, "atol must be greater than or equal to zero, but got -1", (1,), (1,), atol=-1),
    grad=0,
    low=False,
)
case("isclose", close_ref, Input(A, B), Input(A, A), grad=0)
case("allclose", lambda x, y, **k: bool(close_ref(x, y, **k).all()), Input(X, Y), Input(X[:4], X[:4]), grad=0)
case("allclose", lambda x, y, **k: bool(close_ref(x, y, **k).all()), Input(X, X, equal_nan=True), grad=0)
case(
    "equal",
    np.array_equal,
    Input(X[:4], X[:4]),
    Input(X, X),
    Input(X[:4], Y[:4]),
    Input((2,), (3,)),
    Error(TypeError, "equal(): argument 'other' (position 2) must be Tensor, not int", (2,), 1),
    grad=0,
)
case(
    "isin",
    lambda x, y, invert=False: np.isin(x, y, invert=invert),
    Input(A, B),
    Input(A, 12),
    Input(12, A),
    Input(X[:4], Y[:4], invert=True),
    Error(
        TypeError, "isin() received an invalid combination of arguments - got (int, int), but expected one of:", 1, 2
    ),
    grad=0,
)
