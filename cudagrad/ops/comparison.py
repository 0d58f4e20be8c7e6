"""Comparisons, logic and bits: ops whose results carry no gradient."""

import math

from .. import dtypes, errors
from ..core.op import TABLE, op
from ..core.promote import lift
from ..core.tensor import Tensor
from .checks import no_overload, not_implemented, types_of

__all__ = (
    *("eq", "ne", "not_equal", "lt", "less", "le", "less_equal", "gt", "greater", "ge", "greater_equal"),
    *("logical_and", "logical_or", "logical_xor", "logical_not", "bitwise_and", "bitwise_or", "bitwise_xor"),
    *("bitwise_not", "bitwise_left_shift", "bitwise_right_shift", "isnan", "isinf", "isfinite", "isposinf", "isneginf"),
    *("signbit", "isclose", "allclose", "equal", "isin", "is_nonzero", "gcd", "lcm"),
)
METHODS = tuple(name for name in __all__ if name != "isin")
INPLACE = (*__all__[: __all__.index("isnan")], "gcd", "lcm")
INPLACE_PUBLIC = ("gcd", "lcm")

_BOTH = ("x", "y")


def _ordered(name, x):
    if x.dtype.kind == "c":
        raise not_implemented(name + "_cpu", x)


@op(promote=_BOTH, inline="x == y")
def eq(xp, x, y):
    """Whether x == y; False where either is nan.

    Shapes      broadcast; y may be a number
    """
    return x == y


@op(promote=_BOTH, inline="x != y")
def ne(xp, x, y):
    """Whether x != y; True where either is nan."""
    return x != y


@op(promote=_BOTH)
def lt(xp, x, y):
    """Whether x < y.

    Raises      NotImplementedError for complex tensors, which have no order
    """
    _ordered("lt", x)
    return x < y


@op(promote=_BOTH)
def le(xp, x, y):
    """Whether x <= y."""
    _ordered("le", x)
    return x <= y


@op(promote=_BOTH)
def gt(xp, x, y):
    """Whether x > y."""
    _ordered("gt", x)
    return x > y


@op(promote=_BOTH)
def ge(xp, x, y):
    """Whether x >= y."""
    _ordered("ge", x)
    return x >= y


# ---- logic


@op(promote=_BOTH, numbers=())
def logical_and(xp, x, y):
    """Whether both are other than 0."""
    return xp.logical_and(x, y)


@op(promote=_BOTH, numbers=())
def logical_or(xp, x, y):
    """Whether one is other than 0."""
    return xp.logical_or(x, y)


@op(promote=_BOTH, numbers=())
def logical_xor(xp, x, y):
    """Whether exactly one is other than 0."""
    return xp.logical_xor(x, y)


@op()
def logical_not(xp, x):
    """Whether x is 0."""
    return xp.logical_not(x)


# ---- bits


def _whole(kernel, x):
    if x.dtype.kind not in "biu":
        raise not_implemented(kernel, x)


@op(promote=_BOTH, numbers=_BOTH)
def bitwise_and(xp, x, y):
    """The bits that both have; "and" for bool.

    Dtypes      bool or integers, promoted
    """
    _whole("bitwise_and_cpu", x)
    return x & y


@op(promote=_BOTH, numbers=_BOTH)
def bitwise_or(xp, x, y):
    """The bits that one has; "or" for bool."""
    _whole("bitwise_or_cpu", x)
    return x | y


@op(promote=_BOTH, numbers=_BOTH)
def bitwise_xor(xp, x, y):
    """The bits that exactly one has; "xor" for bool."""
    _whole("bitwise_xor_cpu", x)
    return x ^ y


@op()
def bitwise_not(xp, x):
    """The bits that x has not; "not" for bool."""
    _whole("bitwise_not_cpu", x)
    return ~x


def invert(input):
    """``~input``."""
    if input.dtype.category > 1:
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return bitwise_not(input)


def _shifts(kernel, x, y):
    """Where the shift is within the width of x's dtype; outside, C leaves the result open and PyTorch does not."""
    if x.dtype.kind not in "iu":
        raise not_implemented(kernel, x)
    return (y >= 0) & (y < 8 * x.dtype.itemsize)


@op(promote=_BOTH, numbers=_BOTH)
def bitwise_left_shift(xp, x, y):
    """x * 2^y in x's bits; 0 where y is negative or not less than their count.

    Dtypes      integers, promoted
    """
    fits = _shifts("lshift_cpu", x, y)
    return xp.where(fits, x << (y * fits), xp.zeros((), x.dtype))


@op(promote=_BOTH, numbers=_BOTH)
def bitwise_right_shift(xp, x, y):
    """x / 2^y rounded down; 0 or -1, by the sign of x, where y is negative or not less than the count of bits.

    Dtypes      integers, promoted
    """
    fits = _shifts("rshift_cpu", x, y)
    return xp.where(fits, x >> (y * fits), -(x < 0).astype(x.dtype))


def _integers(kernel, x):
    if x.dtype.kind not in "iu":
        raise not_implemented(kernel, x)


@op(promote=_BOTH, numbers=())
def gcd(xp, x, y):
    """The greatest common divisor of x and y, not negative; of 0 and 0 it is 0."""
    _integers("gcd_cpu", x)
    return xp.gcd(x, y)


@op(promote=_BOTH, numbers=())
def lcm(xp, x, y):
    """The least common multiple of x and y, not negative; 0 where one is 0."""
    _integers("lcm_cpu", x)
    return xp.lcm(x, y)


# ---- kinds of numbers


@op()
def isnan(xp, x):
    """Whether x is nan; False for integers."""
    return xp.isnan(x)


@op()
def isinf(xp, x):
    """Whether x is infinite; False for integers."""
    return xp.isinf(x)


@op()
def isfinite(xp, x):
    """Whether x is neither nan nor infinite; True for integers."""
    return xp.isfinite(x)


@op()
def isposinf(xp, x):
    """Whether x is inf."""
    return x == math.inf


@op()
def isneginf(xp, x):
    """Whether x is -inf."""
    return x == -math.inf


@op()
def signbit(xp, x):
    """Whether x is negative, -0.0 included."""
    return x < 0 if x.dtype.kind in "biu" else xp.signbit(x)


def is_nonzero(input):
    """Whether the only element of ``input`` is other than 0.

    Raises      RuntimeError where there is not exactly one
    """
    if input.numel() != 1:
        kind = "no values" if input.numel() == 0 else "more than one value"
        raise RuntimeError(f"Boolean value of Tensor with {kind} is ambiguous")
    return input.item() != 0


# ---- near and equal


@op(broadcast=True)
def near(xp, x, y, *, rtol, atol, equal_nan):
    """|x - y| <= atol + rtol * |y|, or equal."""
    if x.dtype.kind == "b":
        return x == y
    if x.dtype.kind in "iu" or x.dtype.itemsize == 2:  # the products of integers below are PyTorch's, in float
        wide = xp.float64 if x.dtype.kind in "iu" else xp.float32
        a, b = x.astype(wide), y.astype(wide)
    else:
        a, b = x, y
    close = (a == b) | (xp.isfinite(b) & (abs(a - b) <= atol + abs(rtol * b)))
    return close | ((a != a) & (b != b)) if equal_nan else close


def isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether |input - other| <= atol + rtol * |other|; infinities only to themselves, nan to nan by ``equal_nan``.

    Shapes      broadcast
    Raises      RuntimeError where the dtypes differ or a tolerance is negative
    """
    if input.dtype is not other.dtype:
        raise RuntimeError(
            errors.text(
                f"{input.dtype.legacy} did not match {other.dtype.legacy}", "isclose compares tensors of one dtype"
            )
        )
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if not tolerance >= 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {tolerance}")
    return TABLE["near"].call(input, other, rtol=rtol, atol=atol, equal_nan=equal_nan)


def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether all elements are close, as ``isclose`` has it: a Python bool."""
    return bool(isclose(input, other, rtol, atol, equal_nan).array.all())


def equal(input, other):
    """Whether both have the same shape and elements: a Python bool.

    Raises      RuntimeError where they are on different devices
    """
    if not isinstance(other, Tensor):
        raise TypeError(f"equal(): argument 'other' (position 2) must be Tensor, not {type(other).__name__}")
    if input.shape != other.shape:
        return False
    return bool(eq(input, other).array.all())


@op()
def contained(xp, x, y, *, invert):
    """Whether x is among the elements of y."""
    return xp.isin(x, y, invert=invert)


def isin(elements, test_elements, *, assume_unique=False, invert=False, out=None):
    """Whether each of ``elements`` is among ``test_elements``; the contrary by ``invert``.

    Shapes      out as elements; one of the two may be a number
    """
    me = TABLE["contained"]
    if not isinstance(elements, Tensor) and not isinstance(test_elements, Tensor):
        expected = ("Tensor elements, Tensor test_elements", "Tensor elements, Number test_element")
        raise no_overload("isin", types_of(elements, test_elements), *expected, "Number element, Tensor test_elements")
    if not isinstance(elements, Tensor):
        elements = lift(elements, test_elements, me)
    if not isinstance(test_elements, Tensor):
        test_elements = lift(test_elements, elements, me)
    d = dtypes.promote_types(elements.dtype, test_elements.dtype)
    return me.raw(elements.to(d), test_elements.to(d), invert=invert, out=out)


not_equal, less, less_equal, greater, greater_equal = ne, lt, le, gt, ge
