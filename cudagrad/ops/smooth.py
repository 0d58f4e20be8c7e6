"""Smooth activations: gelu, silu, mish, softplus and their kin."""

import math

from ..core.op import TABLE, op
from .blocks import blocked, in_blocks, in_pieces, numbers
from .checks import refuse
from .outputs import takes_inplace

__all__ = ()
FUNCTIONAL = ("gelu", "silu", "mish", "softplus", "logsigmoid", "softsign", "tanhshrink")
SQRT_HALF = math.sqrt(0.5)
INV_SQRT_2PI = 1 / math.sqrt(2 * math.pi)
SQRT_2_OVER_PI = math.sqrt(2 / math.pi)
CUBIC = 0.044715


# atanh(erf(x / sqrt(2))) / x in powers of x^2, least largest error of erf: 5.8e-8. A degree less leaves 1.6e-6, and a
# rational function that is as exact takes as many passes.
_NORMAL = (
    *(0.7978849414899043, 0.03633308440866926, -3.2594744621497755e-05, -5.5306316685222386e-05),
    *(3.964773125435509e-06, -1.3226627577268833e-07, 1.7562773255982406e-09),
)


def _gelu_back(m, g, x):
    return g * (0.5 * (1 + m.erf(x * SQRT_HALF)) + x * (INV_SQRT_2PI * m.exp(-0.5 * x * x)))


def _normal(xp, out, square, x):
    """Write Phi(x) into ``out``, x^2 into ``square``."""
    xp.multiply(x, x, out=square)
    half, *coefficients = numbers(xp, x, 0.5, *_NORMAL)
    if x.dtype == xp.float64:
        out[...] = TABLE["erf"].forward(xp, x * SQRT_HALF)
    else:
        xp.multiply(square, coefficients[-1], out=out)
        for c in coefficients[-2:0:-1]:
            out += c
            out *= square
        out += coefficients[0]
        out *= x
        xp.tanh(out, out=out)
    out *= half
    out += half


def _gelu(xp, out, square, x):
    _normal(xp, out, square, x)
    out *= x


def _gelu_slope(xp, out, bell, g, x):
    """``_gelu_back`` without temporaries."""
    _normal(xp, out, bell, x)
    half, factor = numbers(xp, x, -0.5, INV_SQRT_2PI)
    bell *= half
    xp.exp(bell, out=bell)
    bell *= factor
    bell *= x
    out += bell
    out *= g


@op(x=_gelu_back, fused=lambda xp, g, x: (in_pieces(xp, _gelu_slope, 1, g, x),), wide=True, node="Gelu")
def gelu_exact(xp, x):
    """x * Phi(x), Phi the normal distribution function."""
    refuse("GeluKernelImpl", x, "biuc")
    return in_pieces(xp, _gelu, 1, x)


def _gelu_tanh_back(m, g, x):
    t = m.tanh(x * (SQRT_2_OVER_PI + (SQRT_2_OVER_PI * CUBIC) * (x * x)))
    slope = SQRT_2_OVER_PI + (3 * SQRT_2_OVER_PI * CUBIC) * (x * x)
    return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope)


def _tanh_of(xp, out, square, x):
    """Write tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)) into ``out``, x^2 into ``square``."""
    linear, cubic = numbers(xp, x, SQRT_2_OVER_PI, SQRT_2_OVER_PI * CUBIC)
    xp.multiply(x, x, out=square)
    xp.multiply(square, cubic, out=out)
    out += linear
    out *= x
    xp.tanh(out, out=out)


def _gelu_tanh(xp, out, square, x):
    one, half = numbers(xp, x, 1, 0.5)
    _tanh_of(xp, out, square, x)
    out += one
    out *= half
    out *= x


def _gelu_tanh_slope(xp, out, slope, t, g, x):
    """``_gelu_tanh_back`` without temporaries: with s = x * slope, g * (1 + t) / 2 * (1 + (1 - t) * s)."""
    one, half, linear, cubic = numbers(xp, x, 1, 0.5, SQRT_2_OVER_PI, 3 * SQRT_2_OVER_PI * CUBIC)
    _tanh_of(xp, t, slope, x)
    slope *= cubic
    slope += linear
    slope *= x
    xp.subtract(one, t, out=out)
    out *= slope
    out += one
    t += one
    out *= t
    out *= half
    out *= g


@op(x=_gelu_tanh_back, fused=lambda xp, g, x: (in_pieces(xp, _gelu_tanh_slope, 2, g, x),), wide=True, node="Gelu")
def gelu_tanh(xp, x):
    """0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))."""
    refuse("GeluKernelImpl", x, "biuc")
    return in_pieces(xp, _gelu_tanh, 1, x)


def gelu(input, approximate="none", *, out=None):
    """x * Phi(x), Phi the normal distribution function; "tanh" approximates Phi by a hyperbolic tangent.

    Shapes      any
    Dtypes      floating
    Derivative  Phi(x) + x * phi(x), phi the normal density
    Raises      RuntimeError for another ``approximate``
    Source      Hendrycks & Gimpel 2016, arXiv:1606.08415, section 2

    >>> cudagrad.nn.functional.gelu(cudagrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8413])
    """
    if approximate == "none":
        return gelu_exact(input, out=out)
    if approximate == "tanh":
        return gelu_tanh(input, out=out)
    raise RuntimeError("approximate argument must be either none or tanh.")


def _silu_back(m, g, x):
    s = m.sigmoid(x)
    return g * (s * (1 + x * (1 - s)))


@takes_inplace
@op(x=_silu_back, fused=blocked(_silu_back), wide=True)
def silu(xp, x):
    """x * sigmoid(x), also called swish.

    Source      Elfwing, Uchibe, Doya 2017, arXiv:1702.03118, equation 6
    """
    refuse("silu_cpu", x, "biu")
    return in_blocks(xp, lambda x: x / (xp.exp(-x) + 1), x)


def _softplus_of(xp, x):
    """log(1 + e^x) without overflow."""
    return xp.log1p(xp.exp(-xp.abs(x))) + xp.maximum(x, 0)


def _mish_back(m, g, x):
    t = m.tanh(m.softplus_of(x))
    return g * (t + x * m.sigmoid(x) * (1 - t * t))


@op(x=lambda m, g, x: g * m.sigmoid(x), wide=True)
def softplus_of(xp, x):
    """log(1 + e^x)."""
    return _softplus_of(xp, x)


@takes_inplace
@op(x=_mish_back, fused=blocked(_mish_back), wide=True)
def mish(xp, x):
    """x * tanh(softplus(x)).

    Source      Misra 2019, arXiv:1908.08681, equation 1
    """
    refuse("mish_cpu", x, "biuc")
    return in_blocks(xp, lambda x: x * xp.tanh(_softplus_of(xp, x)), x)


def _softplus_back(m, g, x, beta, threshold):
    return m.only(g, x * beta > threshold) + m.only(g * m.sigmoid(x * beta), ~(x * beta > threshold))


@op(x=_softplus_back, fused=blocked(_softplus_back), wide=True)
def softplus(xp, x, *, beta=1.0, threshold=20.0):
    """log(1 + e^(beta * x)) / beta, and x itself where beta * x > threshold.

    Derivative  sigmoid(beta * x); 1 above the threshold
    """
    refuse("softplus_cpu", x, "biuc")
    return in_blocks(xp, lambda x: xp.where(x * beta > threshold, x, _softplus_of(xp, x * beta) / beta), x)


@op(x=lambda m, g, x: g * m.sigmoid(-x), fused=blocked(lambda m, g, x: g * m.sigmoid(-x)), wide=True, node="LogSigmoid")
def logsigmoid(xp, x):
    """log(sigmoid(x)), exact also for very negative x."""
    refuse("log_sigmoid_cpu", x, "biuc")
    return in_blocks(xp, lambda x: -_softplus_of(xp, -x), x)


def softsign(input):
    """x / (1 + |x|)."""
    return input / (input.abs() + 1)


def tanhshrink(input):
    """x - tanh(x)."""
    return input - input.tanh()
