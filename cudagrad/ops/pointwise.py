"""Functions of one tensor, element by element: exponentials, logarithms, circles, hyperbolas, magnitude and sign."""

import math

from ..backend import xp_of
from ..core.op import op
from .blocks import at_once, numbers
from .checks import not_implemented
from .masks import complex_valued

__all__ = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sigmoid", "sin", "cos", "tan", "asin", "acos", "atan"),
    *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "arcsin", "arccos", "arctan", "arcsinh", "arccosh"),
    *("arctanh", "atan2", "arctan2", "abs", "absolute", "sign", "sgn", "deg2rad", "rad2deg", "logaddexp", "logaddexp2"),
)
METHODS = __all__
INPLACE = tuple(n for n in __all__ if not n.startswith("logadd"))
INPLACE_PUBLIC = tuple(n for n in INPLACE if n not in ("atan2", "arctan2", "sign", "sgn", "absolute"))

LN2, LN10 = math.log(2), math.log(10)
RADIANS = math.pi / 180  # in a degree


# ---- exponentials and logarithms


@op(x=lambda g, out: g * out, floating=True)
def exp(xp, x):
    """e^x."""
    return xp.exp(x)


@op(x=lambda g, out: g * out * LN2, floating=True)
def exp2(xp, x):
    """2^x."""
    if x.dtype.kind == "c":
        return xp.exp(x * LN2)
    return xp.exp2(x)


@op(x=lambda g, out: g * (out + 1), floating=True)
def expm1(xp, x):
    """e^x - 1, exact also for small x."""
    return xp.expm1(x)


@op(x=lambda g, x: g / x, floating=True)
def log(xp, x):
    """The natural logarithm; -inf at 0, nan below.

    >>> cudagrad.log(cudagrad.tensor([1.0, 0.0]))
    tensor([0., -inf])
    """
    return xp.log(x)


@op(x=lambda g, x: g / (x * LN2), floating=True)
def log2(xp, x):
    """The logarithm to base 2."""
    return xp.log2(x)


@op(x=lambda g, x: g / (x * LN10), floating=True)
def log10(xp, x):
    """The logarithm to base 10."""
    return xp.log10(x)


@op(x=lambda g, x: g / (x + 1), floating=True)
def log1p(xp, x):
    """log(1 + x), exact also for small x."""
    return xp.log1p(x)


def _sigmoid_back(g, out):
    return (g - g * out) * out  # no Python number, as in tanh


@op(x=_sigmoid_back, fused=at_once(_sigmoid_back), floating=True, wide=True)
def sigmoid(xp, x):
    """1 / (1 + e^-x)."""
    d = xp.exp(-x)  # infinite for very negative x, which gives the 0 it should
    (one,) = numbers(xp, x, 1)
    d += one
    return xp.reciprocal(d)


@op(
    x=lambda m, g, x, y: g * m.sigmoid(x - y),
    y=lambda m, g, x, y: g * m.sigmoid(y - x),
    promote=("x", "y"),
    numbers=(),
    wide=True,
)
def logaddexp(xp, x, y):
    """log(e^x + e^y) without overflow.

    Dtypes      floating and complex, promoted
    """
    return _logaddexp(log_of_sum(x), "logaddexp_cpu", x, y)


@op(
    x=lambda m, g, x, y: g * m.sigmoid((x - y) * LN2),
    y=lambda m, g, x, y: g * m.sigmoid((y - x) * LN2),
    promote=("x", "y"),
    numbers=(),
    wide=True,
)
def logaddexp2(xp, x, y):
    """log2(2^x + 2^y) without overflow.

    Dtypes      floating, promoted
    """
    return _logaddexp(xp.logaddexp2, "logaddexp2_cpu", x, y)


def _logaddexp(function, kernel, x, y):
    if x.dtype.kind in "biu" or (x.dtype.kind == "c" and function is not _complex_logaddexp):
        raise not_implemented(kernel, x)
    return function(x, y)


def log_of_sum(x):
    """The function log(e^a + e^b) of arrays of the dtype of x."""
    return _complex_logaddexp if x.dtype.kind == "c" else xp_of(x).logaddexp


def _complex_logaddexp(x, y):
    xp = xp_of(x)
    larger = x.real >= y.real
    high, low = xp.where(larger, x, y), xp.where(larger, y, x)
    return high + xp.log1p(xp.exp(low - high))


# ---- circles


@op(x=lambda m, g, x: g * m.cos(x), floating=True)
def sin(xp, x):
    """The sine."""
    return xp.sin(x)


@op(x=lambda m, g, x: -g * m.sin(x), floating=True)
def cos(xp, x):
    """The cosine."""
    return xp.cos(x)


@op(x=lambda g, out: g * (1 + out * out), floating=True)
def tan(xp, x):
    """The tangent."""
    return xp.tan(x)


@op(x=lambda m, g, x: g * m.rsqrt(1 - x * x), floating=True)
def asin(xp, x):
    """The angle in [-pi/2, pi/2] whose sine is x; nan outside [-1, 1]."""
    return xp.arcsin(x)


@op(x=lambda m, g, x: -g * m.rsqrt(1 - x * x), floating=True)
def acos(xp, x):
    """The angle in [0, pi] whose cosine is x; nan outside [-1, 1]."""
    return xp.arccos(x)


@op(x=lambda g, x: g / (1 + x * x), floating=True)
def atan(xp, x):
    """The angle in (-pi/2, pi/2) whose tangent is x."""
    return xp.arctan(x)


def _atan2_back(m, g, x, y, needs):
    """(y, -x) / (x^2 + y^2), and 0 at the origin, where there is no direction."""
    squares = x * x + y * y
    origin = squares == 0
    g = m.only(g / (squares + origin), ~origin)
    return (g * y if needs[0] else None), (-g * x if needs[1] else None)


@op(joint=_atan2_back, promote=("x", "y"), numbers=(), floating=True)
def atan2(xp, x, y):
    """The angle in [-pi, pi] of the point (y, x): that whose tangent is x / y, in the quadrant of the signs.

    Derivative  0 at the origin
    """
    return xp.arctan2(x, y)


@op(x=lambda g: g * RADIANS, floating=True, wide=True)
def deg2rad(xp, x):
    """Degrees as radians."""
    return x * RADIANS


@op(x=lambda g: g / RADIANS, floating=True, wide=True)
def rad2deg(xp, x):
    """Radians as degrees."""
    return x / RADIANS


# ---- hyperbolas


@op(x=lambda m, g, x: g * m.cosh(x), floating=True)
def sinh(xp, x):
    """The hyperbolic sine."""
    return xp.sinh(x)


@op(x=lambda m, g, x: g * m.sinh(x), floating=True)
def cosh(xp, x):
    """The hyperbolic cosine."""
    return xp.cosh(x)


def _tanh_back(g, out):
    return g - g * out * out  # without a Python number the arrays of a small tensor cost half (core.md 4.7)


@op(x=_tanh_back, fused=at_once(_tanh_back), floating=True)
def tanh(xp, x):
    """The hyperbolic tangent."""
    return xp.tanh(x)


@op(x=lambda m, g, x: g * m.rsqrt(x * x + 1), floating=True)
def asinh(xp, x):
    """The inverse of sinh."""
    return xp.arcsinh(x)


@op(x=lambda m, g, x: g * m.rsqrt(x - 1) * m.rsqrt(x + 1), floating=True)
def acosh(xp, x):
    """The inverse of cosh; nan below 1."""
    return xp.arccosh(x)


@op(x=lambda g, x: g / (1 - x * x), floating=True)
def atanh(xp, x):
    """The inverse of tanh; nan outside [-1, 1]."""
    return xp.arctanh(x)


# ---- magnitude and sign


@op(x=lambda m, g, x: g * m.sgn(x), holomorphic=False)
def abs(xp, x):
    """|x|; of complex x the length, which is real.

    Dtypes      any but bool
    Derivative  the sign of x, 0 at 0
    """
    if x.dtype.kind == "b":
        raise not_implemented("abs_cpu", x)
    return xp.absolute(x)


@op(x=lambda m, g: m.null(g))
def sign(xp, x):
    """1, 0 or -1: the sign of x; of nan 0.

    Dtypes      any but complex; out as x
    Derivative  0
    """
    if x.dtype.kind == "c":
        raise NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."
        )
    return _sign(x)


def _sign(x):
    if x.dtype.kind in "bu":
        return (x > 0).astype(x.dtype)
    return (x > 0).astype(x.dtype) - (x < 0)


def _sgn_back(m, g, x, out):
    """What of g turns out, which stays on the unit circle: g less its part along out, over the length of x."""
    if not complex_valued(x):
        return m.null(g)
    length = m.abs(x)
    return m.only(g - out * m.copy_real(g * m.conj(out)), length != 0) / (length + (length == 0))


@op(x=_sgn_back, holomorphic=False)
def sgn(xp, x):
    """x / |x| for complex x, 0 at 0; sign(x) for others.

    Derivative  0 for real x; for complex x what is orthogonal to it, over its length
    """
    if x.dtype.kind != "c":
        return _sign(x)
    length = xp.absolute(x)
    return x / (length + (length == 0))


absolute = abs
arcsin, arccos, arctan, arctan2 = asin, acos, atan, atan2
arcsinh, arccosh, arctanh = asinh, acosh, atanh
