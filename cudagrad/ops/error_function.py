"""The error function and its relatives, and the distribution function of the normal distribution."""

import math

from ..core.op import op

__all__ = ("erf", "erfc", "erfinv")
METHODS = __all__
INPLACE = __all__
INPLACE_PUBLIC = ("erf", "erfc", "erfinv")

# Polynomials in powers of u, from interpolation at Chebyshev's nodes of u in [-1, 1] in 50 digits.
_ERF = (  # erf(x) / x on |x| <= 1, u = 2 x^2 - 1
    *(0.9654687386698673, -0.1405360890227171, 0.019852496688983708, -0.0022854855611441132),
    *(0.00021751715604159932, -1.7537169441124866e-05, 1.223382738359897e-06, -7.511569286591727e-08),
    *(4.115800583208149e-09, -2.035228405815769e-10, 9.167619596865806e-12, -3.8078824063194953e-13),
    1.4543887079465116e-14,
)
_ERFCX = (  # erfcx(x) / t on x >= 0, t = 4 / (4 + x), u = 2 t - 1
    *(0.27399891525012277, 0.2441371822702205, 0.19330217556630927, 0.1352134578283091, 0.08271289696950168),
    *(0.043502734309968705, 0.019095378727383535, 0.006592513335381588, 0.001528013912901666),
    *(7.023971312423144e-05, -0.00011376316104766845, -4.420318369307799e-05, -9.088513306033724e-07),
    *(4.715136834814802e-06, 1.1738252948460484e-06, -3.5582661870726297e-07, -2.1210386092120262e-07),
    *(1.851146914310849e-08, 3.1934446531826117e-08, 1.5876681265458114e-10, -4.7451874746133694e-09),
    *(-2.3525528216564967e-10, 7.02573976105915e-10, 4.2364601637314935e-11, -9.07018499353407e-11),
    *(-4.5908749511275754e-12, 7.0637556709840916e-12, 2.4891876656663866e-13),
)
_ERFINV_NEAR = (  # erfinv(x) / x on w <= 5, w = -log(1 - x^2), u = w / 2.5 - 1
    *(1.501409360450329, 0.6166006976365915, -0.02610870547001968, -0.019573849871456703, 0.008529272899990876),
    *(-0.00048558786029831555, -0.0008456995282308036, 0.00028572469974080887, 3.560786010087296e-05),
    -3.407259357545556e-05,
)
_ERFINV_FAR = (  # the same beyond, u = sqrt(w) / 2 - 2.1
    *(4.041726369018339, 2.0198172014018376, 0.00321526063404461, -0.005457050718086226, 0.003933276312471871),
    *(-0.0010792779362586821, 0.00022832351917234067, -0.003769650293608295, 0.0048760379256488256),
    *(-0.0013224351831573847, -0.0003535819895153901),
)
# atanh(erf(x)) / x in powers of x^2, least largest error of erf relative to it: 9.5e-8
_ERF_SINGLE = (
    *(1.128379225730896, 0.10276905447244644, -0.0001918304042192176, -0.0006197849870659411),
    *(8.763743244344369e-05, -5.668491667165654e-06, 1.4185307861680485e-07),
)

TWO_OVER_SQRT_PI = 2 / math.sqrt(math.pi)
SQRT_HALF = math.sqrt(0.5)
SQRT_2_PI = math.sqrt(2 * math.pi)


def polynomial(coefficients, u):
    """The sum of ``coefficients[k] * u^k``."""
    total = coefficients[-1] * u
    for c in coefficients[-2:0:-1]:
        total += c
        total *= u
    total += coefficients[0]
    return total


def in_double(xp, function, *arrays):
    """``function`` of float32 arrays by way of float64: its formula would lose more digits than float32 can spare."""
    d = arrays[0].dtype
    if d == xp.float64:
        return function(xp, *arrays)
    return function(xp, *(a.astype(xp.float64) for a in arrays)).astype(d)


def _bell(xp, x):
    """exp(-x^2), with the rounding of x^2 taken back: the square of a multiple of 1/16 is exact."""
    near = xp.rint(x * 16) / 16
    return xp.exp(-near * near) * xp.exp((near - x) * (near + x))


def _scaled_tail(x):
    """exp(x^2) * erfc(x) for x >= 0."""
    t = 4 / (4 + x)
    return t * polynomial(_ERFCX, 2 * t - 1)


def _erfc(xp, x):
    magnitude = xp.minimum(abs(x), 40)  # beyond it erfc is 0, and exp(-x^2) of an infinite x nan
    tail = _bell(xp, magnitude) * _scaled_tail(magnitude)
    return xp.where(x < 0, 2 - tail, tail) + 0 * xp.where(xp.isnan(x), x, 0)


def _erf(xp, x):
    inner = xp.clip(x, -1, 1)
    near = inner * polynomial(_ERF, 2 * inner * inner - 1)
    return xp.where(abs(x) <= 1, near, xp.sign(x) * (1 - _erfc(xp, abs(x))))


@op(x=lambda m, g, x: g * (TWO_OVER_SQRT_PI * m.exp(-x * x)), floating=True, wide=True)
def erf(xp, x):
    """2 / sqrt(pi) * integral of exp(-t^2) from 0 to x.

    Dtypes      floating; integers as the default floating dtype
    """
    if x.dtype == xp.float64:
        return _erf(xp, x)
    return xp.tanh(x * polynomial(_ERF_SINGLE, x * x))


@op(x=lambda m, g, x: g * (-TWO_OVER_SQRT_PI * m.exp(-x * x)), floating=True, wide=True)
def erfc(xp, x):
    """1 - erf(x), exact also where erf is near 1.

    Dtypes      floating; integers as the default floating dtype
    """
    return in_double(xp, _erfc, x)


def _erfcx(xp, x):
    tail = _scaled_tail(abs(x))
    return xp.where(x < 0, 2 * xp.exp(x * x) - tail, tail)


@op(x=lambda m, g, x, out: g * (2 * x * out - TWO_OVER_SQRT_PI), floating=True, wide=True, node="SpecialErfcx")
def erfcx(xp, x):
    """exp(x^2) * erfc(x), which falls only as 1 / x."""
    return in_double(xp, _erfcx, x)


def _erfinv(xp, x):
    """A polynomial to about 1e-7, then one step of Halley's method on erfc, which triples the digits."""
    size = abs(x)
    w = -xp.log1p(-size) - xp.log1p(size)
    near = polynomial(_ERFINV_NEAR, xp.minimum(w, 5) / 2.5 - 1)
    far = polynomial(_ERFINV_FAR, xp.sqrt(xp.clip(w, 5, 40)) / 2 - 2.1)
    y = size * xp.where(w <= 5, near, far)
    step = (_erfc(xp, y) - (1 - size)) / (TWO_OVER_SQRT_PI * _bell(xp, y))
    step = xp.where(size < 0.5, (size - _erf(xp, y)) / (TWO_OVER_SQRT_PI * _bell(xp, y)), step)
    y = y + step / (1 - y * step)
    return xp.sign(x) * xp.where(size < 1, y, xp.where(size == 1, math.inf, math.nan))


@op(x=lambda m, g, out: g * (m.exp(out * out) / TWO_OVER_SQRT_PI), floating=True, wide=True)
def erfinv(xp, x):
    """The y whose erf is x; infinite at 1 and -1, nan beyond.

    Dtypes      floating; integers as the default floating dtype
    Source      Halley's method from a polynomial in log(1 - x^2); the variable is that of Giles 2010, "Approximating
                the erfinv function"
    """
    return in_double(xp, _erfinv, x)


# ---- the normal distribution


@op(x=lambda m, g, x: g * (m.exp(-0.5 * (x * x)) / SQRT_2_PI), floating=True, wide=True, node="SpecialNdtr")
def ndtr(xp, x):
    """The share of a standard normal distribution below x."""
    return in_double(xp, lambda xp, x: 0.5 * _erfc(xp, -SQRT_HALF * x), x)


def _ndtri(xp, p):
    # By the smaller tail: 1 - 2p keeps no digit of a p below 1e-17.
    low = xp.minimum(p, 1 - p)
    small = low < 0.02
    y = _tail_quantile(xp, xp.where(small, low, 0.25))
    size = xp.where(small, y, _erfinv(xp, 1 - 2 * xp.where(small, 0.25, low)) / SQRT_HALF)
    return xp.where(p < 0.5, -size, size)


def _tail_quantile(xp, q):
    """The z > 0 beyond which lies the share q < 0.02 of a standard normal: Newton's method on the logarithm."""
    z = xp.sqrt(-2 * xp.log(xp.maximum(q, 1e-310)))
    for _ in range(5):
        scaled = 0.5 * _scaled_tail(z * SQRT_HALF)  # of the tail: times exp(-z^2 / 2)
        z = z + (xp.log(scaled) - 0.5 * z * z - xp.log(xp.maximum(q, 1e-310))) * scaled * SQRT_2_PI
    return xp.where(q > 0, z, xp.where(q == 0, math.inf, math.nan))


@op(x=lambda m, g, out: g * (m.exp(0.5 * (out * out)) * SQRT_2_PI), floating=True, wide=True, node="SpecialNdtri")
def ndtri(xp, x):
    """The value below which lies the share x of a standard normal distribution."""
    return in_double(xp, _ndtri, x)


def _log_ndtr(xp, x):
    z = xp.minimum(x, 0) * -SQRT_HALF
    below = xp.log(0.5 * _scaled_tail(z)) - z * z
    return xp.where(x < -1, below, xp.log1p(-0.5 * _erfc(xp, xp.maximum(x, -1) * SQRT_HALF)))


def _log_ndtr_back(m, g, x, out):
    return g * (m.exp(-0.5 * (x * x) - out) / SQRT_2_PI)


@op(x=_log_ndtr_back, floating=True, wide=True, node="SpecialLogNdtr")
def log_ndtr(xp, x):
    """log(ndtr(x)), also where ndtr(x) is too small to be told from 0."""
    return in_double(xp, _log_ndtr, x)
