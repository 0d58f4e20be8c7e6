"""Special functions: the gamma family, Bessel functions of order 0 and 1, entropies and logits."""

import functools
import math

from ..core.inplace import inplace
from ..core.op import TABLE, op
from .checks import number
from .error_function import in_double, polynomial

__all__ = ("lgamma", "digamma", "polygamma", "mvlgamma", "i0", "sinc", "logit", "xlogy")
INPLACE = ("lgamma", "digamma", "i0", "sinc", "logit", "xlogy", "mvlgamma")
INPLACE_PUBLIC = ("i0", "sinc", "logit", "xlogy")

# Bernoulli's numbers B2, B4, ... B20
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)
EULER = 0.5772156649015329  # Euler's constant
_SHIFT = 10  # from here on Stirling's and Euler's series with these numbers are exact in float64


# ---- the gamma family


@functools.cache
def _lgamma_series():
    """log(gamma(2 + z)) in powers of z: 1 - Euler's constant, then (-1)^k (zeta(k) - 1) / k."""
    return [0.0, 1 - EULER, *((-1) ** k * _zeta_above(None, float(k), 2.0) / k for k in range(2, 30))]


def _lgamma_near(xp, x):
    """log(gamma(x)) for x in [0.5, 2.5], to all digits at its zeros 1 and 2."""
    low = x < 1.5
    series = polynomial(_lgamma_series(), xp.where(low, x - 1, x - 2))
    return series - xp.where(low, xp.log1p(xp.where(low, x - 1, 0)), 0)


def _lgamma_above(xp, x):
    """log(gamma(x)) for x >= 0.5: Stirling's series at x + 10, less the factors in between."""
    near = x < 2.5
    return xp.where(near, _lgamma_near(xp, xp.where(near, x, 1)), _stirling(xp, xp.where(near, 3, x)))


def _stirling(xp, x):
    product = x
    for k in range(1, _SHIFT):
        product = product * (x + k)
    large = x > 1e8  # there the factors would overflow, and Stirling's series needs no shift
    y = xp.where(large, x, x + _SHIFT)
    r = 1 / y
    series = polynomial([0.0] + [b / (2 * k * (2 * k - 1)) for k, b in enumerate(_BERNOULLI, 1)], r * r) * y
    stirling = (y - 0.5) * xp.log(y) - y + 0.5 * math.log(2 * math.pi) + series
    return xp.where(large, stirling, stirling - xp.log(product))


def _lgamma(xp, x):
    """By reflection below 0.5: gamma(x) gamma(1 - x) = pi / sin(pi x)."""
    low = x < 0.5
    above = _lgamma_above(xp, xp.where(low, 1 - x, x))
    reflected = math.log(math.pi) - xp.log(abs(xp.sin(math.pi * (x - xp.rint(x))))) - above
    return xp.where(xp.isinf(x), math.inf, xp.where(low, reflected, above))


@op(x=lambda m, g, x: g * m.digamma(x), floating=True, wide=True)
def lgamma(xp, x):
    """log |gamma(x)|; infinite at 0, -1, -2, ...

    Dtypes      floating; integers as the default floating dtype
    """
    return in_double(xp, _lgamma, x)


def _digamma_above(xp, x):
    total = 0.0
    for k in range(_SHIFT):
        total = total - 1 / (x + k)
    y = x + _SHIFT
    r = 1 / y
    series = polynomial([0.0] + [b / (2 * k) for k, b in enumerate(_BERNOULLI, 1)], r * r)
    return total + xp.log(y) - 0.5 * r - series


def _digamma(xp, x):
    low = x < 0.5
    above = _digamma_above(xp, xp.where(low, 1 - x, x))
    r = x - xp.floor(x)
    reflected = above - math.pi / xp.tan(math.pi * r)
    whole = (x <= 0) & (r == 0)
    poles = xp.where(x == 0, xp.copysign(math.inf, -x), math.nan)
    return xp.where(whole, poles, xp.where(low, reflected, above))


@op(x=lambda m, g, x: g * m.polygamma_of(x, n=1), floating=True, wide=True)
def digamma(xp, x):
    """The derivative of lgamma; infinite at 0, nan at -1, -2, ..."""
    return in_double(xp, _digamma, x)


def _zeta(xp, s, x):
    poles = (s == 1) | ((s > 1) & (x <= 0) & (x == xp.floor(x)))
    return xp.where(poles, math.inf, xp.where((s < 1) | (x <= 0), math.nan, _zeta_above(xp, s, x)))


def _zeta_above(xp, s, x):
    """sum over k >= 0 of (x + k)^-s for x > 0, by Euler and Maclaurin."""
    total = 0.0
    for k in range(_SHIFT):
        total = total + (x + k) ** -s
    y = x + _SHIFT
    total = total + y ** (1 - s) / (s - 1) + 0.5 * y**-s
    factor = s * y ** (-s - 1) / 2
    for k, b in enumerate(_BERNOULLI, 1):
        total = total + b * factor
        factor = factor * ((s + 2 * k - 1) * (s + 2 * k)) / ((2 * k + 1) * (2 * k + 2)) / (y * y)
    return total


@functools.cache
def _cotangent_slopes(n):
    """The n-th derivative of cot as a polynomial in cot: each step is p -> -(1 + c^2) p'."""
    p = [0, 1]
    for _ in range(n):
        slope = [k * a for k, a in enumerate(p)][1:]
        p = [-(a + b) for a, b in zip(slope + [0, 0], [0, 0] + slope)]
    return [float(a) for a in p]


def _polygamma(xp, x, n):
    """(-1)^(n+1) n! zeta(n + 1, x), by reflection below 0.5."""
    scale = (-1.0) ** (n + 1) * math.factorial(n)
    low = x < 0.5
    above = scale * _zeta_above(xp, float(n + 1), xp.where(low, 1 - x, x))
    r = x - xp.floor(x)
    turned = polynomial(_cotangent_slopes(n), 1 / xp.tan(math.pi * r)) * math.pi ** (n + 1)
    reflected = (-1.0) ** n * above - turned
    if n % 2:
        reflected = xp.where(r == 0, math.inf, reflected)
    else:
        reflected = xp.where(r == 0, xp.where(x == 0, -math.inf, math.nan), reflected)
    return xp.where(low, reflected, above)


@op(x=lambda m, g, x, n: g * m.polygamma_of(x, n=n + 1), floating=True, wide=True, node="Polygamma")
def polygamma_of(xp, x, *, n):
    """The n-th derivative of digamma, n >= 1."""
    return in_double(xp, lambda xp, x: _polygamma(xp, x, n), x)


def polygamma(n, input, *, out=None):
    """The n-th derivative of digamma at ``input``.

    Raises      RuntimeError for a negative n
    """
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    if n == 0:
        return digamma(input, out=out)
    return TABLE["polygamma_of"].raw(input, n=n, out=out)


def _method_polygamma(self, n):
    """The n-th derivative of digamma at this tensor."""
    return polygamma(n, self)


def mvlgamma(input, p, *, out=None):
    """log of the multivariate gamma function of dimension p: the sum of lgamma(x - j/2), j < p, and a constant.

    Raises      RuntimeError for p below 1
    """
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    total = lgamma(input)
    for j in range(1, p):
        total = total + lgamma(input - j / 2)
    total = total + p * (p - 1) / 4 * math.log(math.pi)
    if out is None:
        return total
    from .outputs import placed

    return placed("mvlgamma", total, out)


@op(y=lambda m, g, x, y: -g * x * m.zeta(x + 1, y), promote=("x", "y"), numbers=("x", "y"), floating=True, wide=True)
def zeta(xp, x, y):
    """Hurwitz' zeta function: the sum over k >= 0 of (y + k)^-x; infinite at x = 1 and at y = 0, -1, -2, ...

    Derivative  by y; by x none
    Differs     nan for other y below 0, where PyTorch sums the series for whole x
    """
    return in_double(xp, _zeta, *xp.broadcast_arrays(x, y))


# ---- Bessel functions


_CIRCLE = [(math.cos(math.pi * k / 32), 1 / 32 if 0 < k < 32 else 1 / 64) for k in range(33)]


def _bessel_scaled(xp, order, x):
    """exp(-|x|) I(x) of order 0 or 1.

    The mean of exp(|x| (cos t - 1)), times x sin(t)^2 for order 1, over 64 points of the circle, which is exact in
    float64 to |x| = 30; beyond, the series in 1 / x.
    Source      Abramowitz & Stegun 1964, 9.6.18 and 9.7.1
    """
    size = abs(x)
    inner = xp.minimum(size, 30)
    total = 0 * inner
    for cosine, weight in _CIRCLE:
        total = total + (weight * (1 - cosine * cosine if order else 1)) * xp.exp(inner * (cosine - 1))
    outer = xp.maximum(size, 30)
    term = series = xp.ones_like(outer)
    for k in range(1, 25):
        term = term * ((2 * k - 1) ** 2 - 4 * order) / (8 * k * outer)
        series = series + term
    tail = series / xp.sqrt(2 * math.pi * outer)
    if order:
        return xp.where(size <= 30, total * x, xp.copysign(tail, x))
    return xp.where(size <= 30, total, tail)


def _bessel(order, scaled):
    def run(xp, x):
        value = _bessel_scaled(xp, order, x)
        if scaled:
            return value
        return xp.where(xp.isinf(x), x if order else abs(x), value * xp.exp(abs(x)))

    return run


@op(x=lambda m, g, x: g * m.i1(x), floating=True, wide=True)
def i0(xp, x):
    """The modified Bessel function of the first kind, order 0."""
    return in_double(xp, _bessel(0, False), x)


@op(x=lambda m, g, x, out: g * (m.i1e(x) - m.sgn(x) * out), floating=True, wide=True, node="SpecialI0E")
def i0e(xp, x):
    """exp(-|x|) * i0(x)."""
    return in_double(xp, _bessel(0, True), x)


def _over(m, out, x):
    """out / x, and its limit 1/2 at 0."""
    zero = x == 0
    return m.only(out / (x + zero), ~zero) + zero * 0.5


@op(x=lambda m, g, x, out: g * (m.i0(x) - _over(m, out, x)), floating=True, wide=True, node="SpecialI1")
def i1(xp, x):
    """The modified Bessel function of the first kind, order 1."""
    return in_double(xp, _bessel(1, False), x)


@op(
    x=lambda m, g, x, out: g * (m.i0e(x) - m.sgn(x) * out - _over(m, out, x)),
    floating=True,
    wide=True,
    node="SpecialI1E",
)
def i1e(xp, x):
    """exp(-|x|) * i1(x)."""
    return in_double(xp, _bessel(1, True), x)


# ---- logarithms and their products


def _sinc_back(m, g, x):
    zero = x == 0
    turn = x * math.pi
    slope = (turn * m.cos(turn) - m.sin(turn)) / (turn * x + zero)
    return m.only(g * slope, ~zero)


@op(x=_sinc_back, floating=True, wide=True)
def sinc(xp, x):
    """sin(pi x) / (pi x), 1 at 0."""
    zero = x == 0
    turn = x * math.pi
    return (xp.sin(turn) + zero) / (turn + zero)


def _logit_back(m, g, x, eps):
    if eps is not None:
        slope = x * (1 - x)
        return m.only(g / (slope + (slope == 0)), (x >= eps) & (x <= 1 - eps))
    inside = (x >= 0) & (x <= 1)
    return m.only(g, inside) / m.only(x * (1 - x), inside)  # 0 / 0, which is nan, outside


@op(x=_logit_back, floating=True, wide=True)
def logit(xp, x, *, eps=None):
    """log(x / (1 - x)), with x kept within [eps, 1 - eps] where eps is given.

    Derivative  0 where x was beyond those bounds; nan outside [0, 1] without eps
    """
    if eps is not None:
        x = xp.clip(x, number(eps, x), number(1 - eps, x))
    return xp.log(x / (1 - x))


def _xlogy_first(m, g, x, y):
    return m.only(m.xlogy(g, y), ~((x == 0) & (y <= 0)))


@op(x=_xlogy_first, y=lambda g, x, y: g * (x / y), promote=("x", "y"), numbers=("x", "y"), floating=True, wide=True)
def xlogy(xp, x, y):
    """x * log(y); 0 where x is 0 and y is not nan.

    Shapes      broadcast; x or y may be a number
    """
    known = (x == 0) & ~xp.isnan(y)
    return x * xp.log(xp.where(known, xp.ones((), y.dtype), y))


def _xlog1py_first(m, g, x, y):
    return m.only(m.xlog1py(g, y), ~((x == 0) & (y <= -1)))


@op(
    x=_xlog1py_first,
    y=lambda g, x, y: g * (x / (y + 1)),
    promote=("x", "y"),
    numbers=("x", "y"),
    floating=True,
    wide=True,
    node="SpecialXlog1Py",
)
def xlog1py(xp, x, y):
    """x * log(1 + y); 0 where x is 0 and y is not nan."""
    return xp.where((x == 0) & ~xp.isnan(y), xp.zeros((), x.dtype), x * xp.log1p(y))


@op(x=lambda m, g, x: g * (-1 - m.log(x)), floating=True, wide=True, node="SpecialEntr")
def entr(xp, x):
    """-x * log(x): 0 at 0, -inf below."""
    inner = -x * xp.log(xp.where(x > 0, x, 1))
    return xp.where(x < 0, xp.full((), -math.inf, x.dtype), inner)


METHODS = {name: globals()[name] for name in __all__}
METHODS |= {"polygamma": _method_polygamma, "polygamma_": inplace(_method_polygamma, "polygamma_")}
