"""Orthogonal polynomials of torch.special, against NumPy's and closed forms."""

import numpy as np
from numpy.polynomial import chebyshev, hermite, hermite_e, laguerre, legendre

from . import Error, Input, case

X = np.array([-0.9, -0.3, 0.2, 0.7])


def _by(values):
    """A NumPy family's polynomial of one degree, as the last of its basis."""

    def polynomial(x, n, **options):
        n = int(n)
        return values(x, [0] * n + [1]) if n >= 0 else np.zeros_like(x)

    return polynomial


def _angle(of):
    """A Chebyshev polynomial as a quotient of functions of the angle t = acos x."""
    return lambda x, n, **options: of(np.arccos(x), int(n)) if int(n) >= 0 else np.zeros_like(x)


REFERENCES = {
    "chebyshev_polynomial_t": _by(chebyshev.chebval),
    "chebyshev_polynomial_u": _angle(lambda t, n: np.sin((n + 1) * t) / np.sin(t)),
    "chebyshev_polynomial_v": _angle(lambda t, n: np.cos((n + 0.5) * t) / np.cos(t / 2)),
    "chebyshev_polynomial_w": _angle(lambda t, n: np.sin((n + 0.5) * t) / np.sin(t / 2)),
    "hermite_polynomial_h": _by(hermite.hermval),
    "hermite_polynomial_he": _by(hermite_e.hermeval),
    "laguerre_polynomial_l": _by(laguerre.lagval),
    "legendre_polynomial_p": _by(legendre.legval),
}


def _shifted(reference):
    return lambda x, n, **options: reference(2 * x - 1, n)


CALLS = [Input(X, n) for n in (0, 1, 2, 7, -1)]
for _name, _reference in REFERENCES.items():
    _refused = Error(NotImplementedError, "not implemented for 'ComplexFloat'", np.array([1j]), 2)
    case(f"special.{_name}", _reference, *CALLS, _refused, grad=0, low=False)
    if _name.startswith("chebyshev"):
        _inside = [Input(np.array([0.1, 0.4, 0.9]), n) for n in (0, 1, 5)]
        case(f"special.shifted_{_name}", _shifted(_reference), *_inside, grad=0, low=False)
