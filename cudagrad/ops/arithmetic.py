"""Arithmetic of two or more tensors: sums, products, quotients, remainders and their compounds."""

from .. import dtypes, errors
from ..core.modes import SPACE
from ..core.op import SAME, TABLE, UNKNOWN, op, unknown
from ..core.promote import lift, promote_all
from ..core.tensor import Tensor
from .casting import to_dtype
from .checks import no_overload, not_implemented, number, refuse
from .outputs import placed, return_type

__all__ = (
    *("add", "sub", "subtract", "rsub", "mul", "multiply", "div", "divide", "true_divide", "floor_divide"),
    *("remainder", "fmod", "neg", "negative", "positive", "reciprocal", "addcmul", "addcdiv", "lerp", "hypot"),
    *("ldexp", "frexp", "nextafter"),
)
METHODS = tuple(name for name in __all__ if name != "rsub")
INPLACE = tuple(n for n in METHODS if n not in ("positive", "frexp"))
INPLACE_PUBLIC = ("neg", "negative", "reciprocal", "ldexp")

_BOTH = ("x", "y")
SPACE["ONE"] = 1  # the alpha of nearly every sum; 1.0 and True are other objects, and refused for integers


def _scaled(y, alpha):
    """``y * alpha`` in y's dtype."""
    kind = y.dtype.kind
    if isinstance(alpha, bool) and kind != "b":
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, complex) and kind != "c":
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")
    if isinstance(alpha, float) and kind in "biu":
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    return y * number(alpha, y)


@op(
    x=SAME,
    y=lambda g, alpha: g if alpha == 1 else g * alpha,
    promote=_BOTH,
    numbers=_BOTH,
    inline="x + y if alpha is ONE else impl_add[x.__class__](x, y, alpha=alpha)",
    ufunc="add",
)
def add(xp, x, y, *, alpha=1):
    """x + alpha * y.

    Shapes      x, y: broadcast; y or x may be a number
    Dtypes      any, promoted; bool + bool is "or"
    Raises      RuntimeError for a fractional alpha on integers

    >>> cudagrad.tensor([1, 2]) + 1.5
    tensor([2.5000, 3.5000])
    """
    return x + y if alpha is SPACE["ONE"] else x + _scaled(y, alpha)


def _bool_minus(error, x, y, alpha):
    if x.dtype.kind == "b":
        return RuntimeError(
            errors.text(
                "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
                "operator instead.",
                f"got bool {x.shape} and bool {y.shape}",
            )
        )
    return None


def _one_bool(x, y):
    if "b" in (x.array.dtype.kind, y.array.dtype.kind):
        raise RuntimeError(
            errors.text(
                "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert "
                "a mask, "
                "use the `~` or `logical_not()` operator instead.",
                f"got {x.dtype} {tuple(x.shape)} and {y.dtype} {tuple(y.shape)}",
            )
        )


@op(
    x=SAME,
    y=lambda g, alpha: -g if alpha == 1 else g * -alpha,
    promote=_BOTH,
    numbers=_BOTH,
    inline="x - y if alpha is ONE else impl_sub[x.__class__](x, y, alpha=alpha)",
    ufunc="subtract",
    mixed=_one_bool,
    explain=_bool_minus,
)
def sub(xp, x, y, *, alpha=1):
    """x - alpha * y.

    Shapes      x, y: broadcast; y or x may be a number
    Dtypes      any but bool, promoted; integers wrap round
    Raises      RuntimeError where one is bool
    """
    return x - y if alpha is SPACE["ONE"] else x - _scaled(y, alpha)


def rsub(input, other, *, alpha=1):
    """other - alpha * input."""
    if not isinstance(input, Tensor):
        given = f"{type(input).__name__}, {type(other).__name__}"
        expected = "Tensor input, Tensor other, *, Number alpha = 1", "Tensor input, Number other, Number alpha = 1"
        raise no_overload("rsub", given, *expected)
    return sub(other, input, alpha=alpha)


@op(x=lambda g, y: g * y, y=lambda g, x: g * x, promote=_BOTH, numbers=_BOTH, inline="x * y", ufunc="multiply")
def mul(xp, x, y):
    """x * y.

    Shapes      x, y: broadcast; y or x may be a number
    Dtypes      any, promoted; bool * bool is "and", integers wrap round
    """
    return x * y


_ROUNDING = {"trunc": "div_trunc", "floor": "div_floor"}


def div(input, other, *, rounding_mode=None, out=None):
    """input / other, rounded towards zero (``"trunc"``) or down (``"floor"``) where ``rounding_mode`` says so.

    Shapes      input, other: broadcast; either may be a number
    Dtypes      any; without rounding integers divide as the default floating dtype, with it they stay integers
    Derivative  0 where rounded
    Raises      RuntimeError for an integer division by zero on the CPU, or another rounding mode

    >>> cudagrad.div(cudagrad.tensor([-7, 7]), 2, rounding_mode="trunc")
    tensor([-3,  3])
    """
    if rounding_mode is None:
        return true_divide(input, other, out=out)
    if rounding_mode not in _ROUNDING:
        raise RuntimeError(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found " + repr(rounding_mode)
        )
    return TABLE[_ROUNDING[rounding_mode]].call(input, other, out=out)


divide = div


@op(
    x=lambda g, y: g / y,
    y=lambda g, x, y: -g * ((x / y) / y),
    promote=_BOTH,
    numbers=_BOTH,
    floating=True,
    inline="x / y",
    ufunc="true_divide",
    node="Div",
)
def true_divide(xp, x, y):
    """x / y; integers divide as the default floating dtype.

    Shapes      x, y: broadcast; y or x may be a number
    """
    return x / y


def _nonzero_divisor(xp, x, y):
    # A device would have to be waited for; there, as with PyTorch, the quotient by zero is some number.
    if xp.__name__ == "numpy" and y.dtype.kind in "iu" and x.size and not y.all():
        raise RuntimeError("ZeroDivisionError")


_NO_FLOOR = unknown("floor_divide")


@op(x=_NO_FLOOR, y=_NO_FLOOR, promote=_BOTH, numbers=_BOTH, node=UNKNOWN)
def floor_divide(xp, x, y):
    """The largest whole number not above x / y, in their dtype.

    Dtypes      any but bool and complex, promoted
    Derivative  none: backward raises, as PyTorch's; that of ``div(rounding_mode="floor")`` is zero
    Raises      RuntimeError for an integer division by zero on the CPU
    """
    refuse("floor_divide", x, "bc")
    _nonzero_divisor(xp, x, y)
    return xp.floor_divide(x, y)


def _zeros(m, g):
    return m.null(g)


@op(x=_zeros, y=_zeros, promote=_BOTH, numbers=_BOTH, node="Div")
def div_floor(xp, x, y):
    """x / y rounded down, in their dtype; its derivative is zero."""
    return floor_divide_arrays(xp, x, y)


def floor_divide_arrays(xp, x, y):
    return TABLE["floor_divide"].forward(xp, x, y)


@op(x=_zeros, y=_zeros, promote=_BOTH, numbers=_BOTH, node="Div")
def div_trunc(xp, x, y):
    """x / y rounded towards zero, in their dtype; its derivative is zero."""
    refuse("div_trunc", x, "bc")
    _nonzero_divisor(xp, x, y)
    if x.dtype.kind in "iu":
        quotient = xp.floor_divide(x, y)
        return quotient + ((quotient < 0) & (quotient * y != x)).astype(x.dtype)
    return xp.trunc(x / y)


@op(x=SAME, y=lambda m, g, x, y: -g * m.div_floor(x, y), promote=_BOTH, numbers=_BOTH)
def remainder(xp, x, y):
    """x - y * floor(x / y): what is left has the sign of y; a floating zero that of x.

    Dtypes      any but bool and complex, promoted
    Raises      RuntimeError for an integer remainder by zero on the CPU
    """
    refuse("remainder", x, "bc")
    _nonzero_divisor(xp, x, y)
    if x.dtype.kind in "iu":
        return xp.remainder(x, y)
    left = xp.fmod(x, y)  # with the sign of x, which a zero keeps
    return xp.where((left != 0) & ((left < 0) != (y < 0)), left + y, left)


@op(x=SAME, y=lambda m, g, x, y: -g * m.trunc(x / y), promote=_BOTH)
def fmod(xp, x, y):
    """x - y * trunc(x / y): what is left has the sign of x.

    Dtypes      any but bool and complex, promoted
    Raises      RuntimeError for an integer remainder by zero on the CPU
    """
    refuse("fmod", x, "bc")
    _nonzero_divisor(xp, x, y)
    return xp.fmod(x, y)


def _no_negation(error, x):
    if x.dtype.kind == "b":
        return RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use "
            "the `~` or `logical_not()` operator instead."
        )
    return None


@op(x=lambda g: -g, inline="-x", explain=_no_negation)
def neg(xp, x):
    """-x.

    Dtypes      any but bool; unsigned integers wrap round
    """
    return -x


def positive(input):
    """``input`` itself.

    Raises      RuntimeError for bool
    """
    if input.dtype is dtypes.bool:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


@op(x=lambda g, out: -g * (out * out), floating=True)
def reciprocal(xp, x):
    """1 / x.

    Dtypes      any; integers as the default floating dtype
    """
    return xp.reciprocal(x)


@op(x=lambda g, x, out: g * (x / out), y=lambda g, y, out: g * (y / out), promote=_BOTH, numbers=())
def hypot(xp, x, y):
    """sqrt(x^2 + y^2) without overflow on the way.

    Dtypes      floating, promoted
    """
    refuse("hypot_cpu", x, "biuc")
    return xp.hypot(x, y)


# ---- compounds


def _product(input, tensor1, tensor2, value=1):
    return *promote_all(TABLE["addcmul"], (input, tensor1, tensor2)), value


def _times(g, factor, value):
    return g * factor if value == 1 else g * (factor * value)


@op(
    prepare=lambda input, tensor1, tensor2, *, value=1: _product(input, tensor1, tensor2, value),
    x=SAME,
    tensor1=lambda g, tensor2, value: _times(g, tensor2, value),
    tensor2=lambda g, tensor1, value: _times(g, tensor1, value),
    broadcast=True,
)
def addcmul(xp, x, tensor1, tensor2, *, value):
    """input + value * tensor1 * tensor2.

    Shapes      broadcast
    Dtypes      any, promoted
    """
    product = tensor1 * tensor2
    return x + (product if value == 1 else product * number(value, x))


def _quotient(input, tensor1, tensor2, *, value=1):
    if tensor1.dtype.category < 2 and tensor2.dtype.category < 2:
        raise RuntimeError(
            errors.text(
                "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a "
                "true division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + "
                "value * torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + value * "
                "tensor1 / tensor2) for float inputs. The future addcdiv behavior is just the latter implementation: "
                "(input + value * tensor1 / tensor2), for all dtypes."
            )
        )
    return *promote_all(TABLE["addcdiv"], (input, tensor1, tensor2)), value


@op(
    prepare=_quotient,
    x=SAME,
    tensor1=lambda g, tensor2, value: _times(g, 1 / tensor2, value),
    tensor2=lambda g, tensor1, tensor2, value: _times(-g, tensor1 / (tensor2 * tensor2), value),
    broadcast=True,
)
def addcdiv(xp, x, tensor1, tensor2, *, value):
    """input + value * tensor1 / tensor2.

    Shapes      broadcast
    Dtypes      floating or complex, promoted
    Raises      RuntimeError where tensor1 and tensor2 are both integers
    """
    quotient = tensor1 / tensor2
    return x + (quotient if value == 1 else quotient * x.dtype.type(value))


def _between(input, end, weight):
    me = TABLE["lerp"]
    refuse("lerp_kernel_scalar", input.array, "biu")
    if weight.__class__ in (int, float, bool, complex):
        weight = lift(weight, input, me)
    for name, t in (("end", end), ("weight", weight)):
        if t.dtype is not input.dtype:
            want, got = input.dtype.cpp, t.dtype.cpp
            raise RuntimeError(errors.text(f"expected dtype {want} for `{name}` but got dtype {got}"))
    return input, end, weight


@op(
    prepare=_between,
    x=lambda g, w: g * (1 - w),
    end=lambda g, w: g * w,
    w=lambda g, x, end: g * (end - x),
    broadcast=True,
    wide=True,
)
def lerp(xp, x, end, w):
    """x + weight * (end - x).

    Shapes      broadcast; weight may be a number
    Dtypes      floating or complex, the same for all
    Raises      RuntimeError where the dtypes differ
    """
    # The nearer end is the one to start from: at w = 1 the result is then exactly `end`.
    return xp.where(abs(w) < 0.5, x + w * (end - x), end - (end - x) * (1 - w))


# ---- the bits of a float


def ldexp(input, other, *, out=None):
    """input * 2^other.

    Dtypes      any; integers as the default floating dtype, integer exponents in the dtype of a floating input
    Differs     by input the derivative is 2^other also for negative integer exponents, where PyTorch has 0
    """
    if other.dtype.category < 2:
        other = to_dtype(other, input.dtype if input.dtype.category > 1 else dtypes.get_default_dtype())
    return mul(input, TABLE["exp2"].call(other), out=out)


_Frexp = return_type("frexp", ("mantissa", "exponent"))


@op(x=lambda m, g, x: g[0] * m.scale_back(x), outputs=2, node="Frexp")
def frexp_parts(xp, x):
    """(mantissa, exponent) with x = mantissa * 2^exponent and 0.5 <= |mantissa| < 1."""
    if x.dtype.kind in "biuc":
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    narrow = x.dtype if x.dtype.itemsize == 2 else None
    mantissa, exponent = xp.frexp(x.astype(xp.float32) if narrow else x)
    return mantissa.astype(narrow) if narrow else mantissa, exponent.astype(xp.int32)


@op()
def scale_back(xp, x):
    """2^-exponent of each x: what it is multiplied by to give its mantissa."""
    one = xp.ones((), xp.float32 if x.dtype.itemsize == 2 else x.dtype)
    return xp.ldexp(one, -xp.frexp(x.astype(one.dtype))[1]).astype(x.dtype)


def frexp(input, *, out=None):
    """The named tuple (mantissa, exponent): input = mantissa * 2^exponent, 0.5 <= |mantissa| < 1.

    Derivative  of the mantissa: g / 2^exponent
    Raises      RuntimeError for dtypes that are not floating
    """
    return placed("frexp", _Frexp(*frexp_parts(input)), out)


@op(x=lambda m, g, x, y: m.only(g, x != y), y=lambda m, g: m.null(g), promote=_BOTH, numbers=())
def nextafter(xp, x, y):
    """The floating number next to x on the way to y.

    Dtypes      floating, promoted
    Derivative  by x g, or 0 where y is x; by y 0
    """
    if x.dtype.kind in "biuc":
        raise not_implemented("nextafter_cpu", x)
    return xp.nextafter(x, y)


subtract, multiply, negative = sub, mul, neg
