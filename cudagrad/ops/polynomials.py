"""Orthogonal polynomials of ``torch.special``, by their recurrences."""

import numpy as np

from ..core.op import TABLE, op
from ..core.promote import lift
from ..core.tensor import Tensor
from .checks import not_implemented

__all__ = ()


def _chebyshev(x, k):
    return 2 * x, 0, 1


def _hermite(x, k):
    return 2 * x, 0, 2 * k


def _hermite_e(x, k):
    return x, 0, k


def _laguerre(x, k):
    return -x / (k + 1), (2 * k + 1) / (k + 1), k / (k + 1)


def _legendre(x, k):
    return (2 * k + 1) * x / (k + 1), 0, k / (k + 1)


# name -> the polynomial of degree 1 as (slope, constant), and (a, b, c) of p[k+1] = (a + b) p[k] - c p[k-1]
_KINDS = {
    "chebyshev_polynomial_t": ((1, 0), _chebyshev),
    "chebyshev_polynomial_u": ((2, 0), _chebyshev),
    "chebyshev_polynomial_v": ((2, -1), _chebyshev),
    "chebyshev_polynomial_w": ((2, 1), _chebyshev),
    "hermite_polynomial_h": ((2, 0), _hermite),
    "hermite_polynomial_he": ((1, 0), _hermite_e),
    "laguerre_polynomial_l": ((-1, 1), _laguerre),
    "legendre_polynomial_p": ((1, 0), _legendre),
}


@op(promote=("x", "y"), numbers=("x", "y"), floating=True)
def polynomial(xp, x, y, *, name):
    """The polynomial of the kind ``name`` and of degree y, rounded towards 0, at x; 0 for a negative degree.

    Dtypes      float32 and float64, computed in float64
    Derivative  none, as in PyTorch
    """
    kind = name.removeprefix("shifted_")
    if x.dtype.kind == "c" or x.dtype.itemsize == 2:
        raise not_implemented(name + "_cpu", x)
    at = x.astype(np.float64)
    at = 2 * at - 1 if kind != name else at
    degree = xp.trunc(y).astype(np.float64)
    (slope, constant), step = _KINDS[kind]
    before, now = xp.ones(at.shape), slope * at + constant
    out = xp.where(degree == 0, before, 0.0)
    for k in range(1, (int(degree.max()) if degree.size else 0) + 1):
        out = xp.where(degree == k, now, out)
        a, b, c = step(at, k)
        before, now = now, (a + b) * now - c * before
    return out.astype(x.dtype)


def _public(name, text):
    def function(input, n, *, out=None):
        if not isinstance(input, Tensor):
            input = lift(input, n, TABLE["polynomial"])
        return TABLE["polynomial"].raw(input, n, name=name, out=out)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{text} of degree ``n`` at ``input``; both broadcast, and one may be a number."
    return function


_TEXTS = {
    "chebyshev_polynomial_t": "Chebyshev's polynomial of the first kind",
    "chebyshev_polynomial_u": "Chebyshev's polynomial of the second kind",
    "chebyshev_polynomial_v": "Chebyshev's polynomial of the third kind",
    "chebyshev_polynomial_w": "Chebyshev's polynomial of the fourth kind",
    "hermite_polynomial_h": "Hermite's polynomial, of the weight e^(-x^2)",
    "hermite_polynomial_he": "Hermite's polynomial, of the weight e^(-x^2 / 2)",
    "laguerre_polynomial_l": "Laguerre's polynomial",
    "legendre_polynomial_p": "Legendre's polynomial",
}
SPECIAL = {name: _public(name, text) for name, text in _TEXTS.items()}
SPECIAL |= {
    f"shifted_{name}": _public(f"shifted_{name}", text.replace("polynomial", "polynomial on [0, 1]"))
    for name, text in _TEXTS.items()
    if name.startswith("cheb")
}
