"""Special functions against their definitions: series, integrals and the functions of the math module."""

import math

import numpy as np

from . import Error, Input, case

NAN, INF = math.nan, math.inf
ANY = np.array([-2.3, -0.7, 0.2, 1.9])
POSITIVE = np.array([0.15, 0.8, 1.7, 6.2])
SHARES = np.array([0.05, 0.2, 0.55, 0.9])


def scalar(function):
    """A function of numbers over arrays, in float64, whatever the dtype."""

    def over(x, *rest):
        x = np.asarray(x).astype(np.float64)
        return np.array([function(float(v), *rest) for v in x.ravel()]).reshape(x.shape)

    return over


def special(name, ref, values, *calls, **facts):
    case(name, ref, Input(values), Input(values.reshape(2, -1)), *calls, **{"pointwise": True, **facts})


# ---- the error function

special("erf", scalar(math.erf), ANY)
case("erf", scalar(math.erf), Input(np.linspace(-7, 7, 57)), Input(np.array([1e-20, 1e-5, INF, -INF, NAN])), grad=0)
special("erfc", scalar(math.erfc), ANY)
case("erfc", scalar(math.erfc), Input(np.linspace(-7, 7, 57)), Input(np.array([INF, -INF, NAN])), grad=0)
special("special.erfcx", lambda x: scalar(math.erfc)(x) * np.exp(x.astype(np.float64) ** 2), ANY)


def inverse(function, low, high):
    """The place where an increasing function has a value, by bisection."""

    def at(y):
        a, b = low, high
        for _ in range(200):
            middle = (a + b) / 2
            a, b = (middle, b) if function(middle) < y else (a, middle)
        return (a + b) / 2

    return at


special("erfinv", scalar(inverse(math.erf, -6.0, 6.0)), np.array([-0.9, -0.6, 0.1, 0.8]))
case("erfinv", lambda x: np.array([INF, -INF, NAN, 0.0]), Input(np.array([1.0, -1.0, 2.0, 0.0])), grad=0)


def ndtr(x):
    return 0.5 * math.erfc(-x / math.sqrt(2))


special("special.ndtr", scalar(ndtr), ANY)
special("special.ndtri", scalar(inverse(ndtr, -9.0, 9.0)), SHARES)
case("special.ndtri", scalar(inverse(ndtr, -38.0, 9.0)), Input(np.array([1e-35, 1e-30, 1e-5, 0.5])), grad=0, low=False)
special("special.log_ndtr", scalar(lambda x: math.log(ndtr(x))), ANY)
case("special.log_ndtr", scalar(lambda x: math.log(ndtr(x))), Input(np.array([-30.0, -1.5, -0.5, 5.0])), grad=0)

# ---- the gamma family


def zeta(x, s):
    """sum over k of (x + k)^-s: 40 terms, and Euler-Maclaurin's first corrections."""
    n, y = 40, x + 40
    head = math.fsum((x + k) ** -s for k in range(n))
    return (
        head
        + y ** (1 - s) / (s - 1)
        + 0.5 * y**-s
        + s * y ** (-s - 1) / 12
        - s * (s + 1) * (s + 2) * y ** (-s - 3) / 720
        + s * (s + 1) * (s + 2) * (s + 3) * (s + 4) * y ** (-s - 5) / 30240
    )


def digamma(x):
    """By the recurrence up to 40, then Stirling's series."""
    y = x + 40
    tail = math.log(y) - 1 / (2 * y) - 1 / (12 * y**2) + 1 / (120 * y**4) - 1 / (252 * y**6)
    return tail - math.fsum(1 / (x + k) for k in range(40))


def polygamma(x, n):
    return (-1) ** (n + 1) * math.factorial(n) * zeta(x, n + 1)


GAMMA = np.array([-2.4, -0.6, 0.3, 1.0, 1.7, 2.0, 6.2, 31.0])
special("lgamma", scalar(math.lgamma), GAMMA)
case("lgamma", scalar(math.lgamma), Input(np.array([1e-8, 1e6, 1e12, 170.3, INF])), grad=0, low=False)
case("lgamma", lambda x: np.full(x.shape, INF), Input(np.array([0.0, -1.0, -7.0, -INF])), grad=0)
special("digamma", scalar(digamma), GAMMA)
case("digamma", lambda x: np.array([-INF, INF, NAN, INF]), Input(np.array([0.0, -0.0, -3.0, INF])), grad=0)
for n in (1, 2, 4):
    case("polygamma", lambda n, x: scalar(polygamma)(x, n), Input(n, GAMMA), low=n < 4)
case("polygamma", lambda n, x: scalar(digamma)(x), Input(0, GAMMA))
case("polygamma", lambda n, x: np.array([INF]), Input(1, np.array([0.0])), grad=0)
case("polygamma", None, Error(RuntimeError, "polygamma(n, x) does not support negative n.", -1, (1,)))


def mvlgamma(x, p):
    constant = p * (p - 1) / 4 * math.log(math.pi)
    return constant + math.fsum(math.lgamma(x - j / 2) for j in range(p))


case("mvlgamma", lambda x, p: scalar(mvlgamma)(x, p), Input(POSITIVE + 2, 3), Input(POSITIVE + 2, p=1))
case("mvlgamma", None, Error(RuntimeError, "p has to be greater than or equal to 1", (1,), 0))
case(
    "special.zeta",
    lambda s, x: np.array([zeta(float(b), float(a)) for a, b in zip(s, x)]),
    Input(np.array([1.5, 2.0, 3.3, 7.0]), POSITIVE),
    wrt=(1,),
)
case(
    "special.zeta",
    lambda s, x: np.array([INF, NAN, INF]),
    Input(np.array([1.0, 0.5, 2.0]), np.array([2.0, 2, -1])),
    grad=0,
)

# ---- Bessel functions


def bessel(order):
    def series(x):
        return math.fsum((x / 2) ** (2 * k + order) / math.factorial(k) / math.factorial(k + order) for k in range(90))

    return series


def scaled(order):
    return lambda x: bessel(order)(x) * math.exp(-abs(x))


BESSEL = np.array([-3.1, -0.4, 0.7, 8.5])
FAR = np.array([-32.5, -29.0, 29.0, 32.5])
special("i0", scalar(bessel(0)), BESSEL)
special("special.i1", scalar(bessel(1)), BESSEL)
special("special.i0e", scalar(scaled(0)), BESSEL)
special("special.i1e", scalar(scaled(1)), BESSEL)
for name, ref in (("i0e", scaled(0)), ("i1e", scaled(1))):
    case(f"special.{name}", scalar(ref), Input(FAR), Input(np.array([0.0, 30.0, -30.0])), grad=0)
for name, order in (("i0", 0), ("i1", 1)):
    case(f"special.{name}", scalar(bessel(order)), Input(FAR), Input(np.array([0.0])), grad=0, low=False)

# ---- logarithms and their products

special("sinc", lambda x: np.sin(math.pi * x) / (math.pi * x), ANY)
case("sinc", np.sinc, Input(np.array([0.0, 1.0, 0.5])), grad=0)
special("logit", lambda x: np.log(x / (1 - x)), SHARES)
case("logit", lambda x, eps: np.log(np.clip(x, eps, 1 - eps) / (1 - np.clip(x, eps, 1 - eps))), Input(SHARES, eps=0.07))
case("special.logit", lambda x: np.array([-INF, INF, NAN]), Input(np.array([0.0, 1.0, 2.0])), grad=0)


def xlogy_ref(x, y):
    return np.where((x == 0) & ~np.isnan(y), 0, x * np.log(y))


case("xlogy", xlogy_ref, Input(ANY, POSITIVE), Input(ANY, 2.0), Input(0.5, POSITIVE), pointwise=True)
case("xlogy", xlogy_ref, Input(np.array([0.0, 0.0, 0.0]), np.array([NAN, INF, 0.0])), grad=0)
case(
    "special.xlog1py",
    lambda x, y: x * np.log1p(y),
    Input(ANY, POSITIVE),
    Input(ANY, 2.0),
    Input(0.5, POSITIVE),
    pointwise=True,
)
case("special.xlog1py", lambda x, y: np.array([NAN, 0.0]), Input(np.array([0.0, 0.0]), np.array([NAN, -1.0])), grad=0)
special("special.entr", lambda x: -x * np.log(x), POSITIVE)
case("special.entr", lambda x: np.array([0.0, -INF]), Input(np.array([0.0, -1.0])), grad=0)
for name, ref, values in (
    ("expit", lambda x: 1 / (1 + np.exp(-x)), ANY),
    ("gammaln", scalar(math.lgamma), GAMMA),
    ("psi", scalar(digamma), GAMMA),
    ("exp2", np.exp2, ANY),
    ("expm1", np.expm1, ANY),
    ("log1p", np.log1p, POSITIVE),
    ("round", np.round, ANY),
):
    case(f"special.{name}", ref, Input(values))
case("special.multigammaln", lambda x, p: scalar(mvlgamma)(x, p), Input(POSITIVE + 2, 2))
