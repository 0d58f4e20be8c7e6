"""Window functions of signal.windows."""

import numpy as np

from . import Error, Input, case

NEGATIVE = "requires non-negative window length, got M=-1"


def _cosines(*weights):
    def window(count, sym=True, **options):
        if count == 1:
            return np.ones(1)
        t = np.arange(count) / (count - 1 if sym else count)
        return sum(w * (-1) ** i * np.cos(2 * np.pi * i * t) for i, w in enumerate(weights))

    return window


def _rows(name, ref, *more):
    calls = [Input(7), Input(6, sym=False), Input(1), Input(0), *more]
    case(f"signal.windows.{name}", ref, *calls, grad=0, low=False)


for _name, _weights in {
    "hann": (0.5, 0.5),
    "hamming": (0.54, 0.46),
    "general_hamming": (0.54, 0.46),
    "blackman": (0.42, 0.5, 0.08),
    "nuttall": (0.3635819, 0.4891775, 0.1365995, 0.0106411),
}.items():
    _rows(_name, _cosines(*_weights))


def _last(count, sym):
    return count - 1 if sym else count


def _bartlett(count, sym=True):
    return 1 - np.abs(2 * np.arange(count) / _last(count, sym) - 1) if count > 1 else np.ones(count)


def _cosine(count, sym=True):
    return np.sin(np.pi * (np.arange(count) + 0.5) / (_last(count, sym) + 1)) if count > 1 else np.ones(count)


def _exponential(count, sym=True, center=None, tau=1.0):
    middle = _last(count, sym) / 2 if center is None else center
    return np.exp(-np.abs(np.arange(count) - middle) / tau) if count > 1 else np.ones(count)


def _gaussian(count, sym=True, std=1.0):
    return np.exp(-0.5 * ((np.arange(count) - _last(count, sym) / 2) / std) ** 2) if count > 1 else np.ones(count)


def _kaiser(count, sym=True, beta=12.0):
    if count < 2:
        return np.ones(count)
    t = 2 * np.arange(count) / _last(count, sym) - 1
    return np.i0(beta * np.sqrt(np.maximum(1 - t**2, 0))) / np.i0(beta)


_rows("bartlett", _bartlett)
_rows("cosine", _cosine)
_rows("exponential", _exponential, Input(5, tau=2.0), Input(5, sym=False, center=1.0))
_rows("gaussian", _gaussian, Input(5, std=0.7))
_rows("kaiser", _kaiser, Input(5, beta=3.0))
case(
    "signal.windows.general_cosine",
    lambda count, a, sym=True: _cosines(*a)(count, sym),
    Input(6, a=[0.3, 0.7, 0.1]),
    Error(TypeError, "Coefficients must be a list/tuple", 5, a=3),
    Error(ValueError, "Coefficients cannot be empty", 5, a=[]),
    Error(ValueError, f"general_cosine {NEGATIVE}", -1, a=[1]),
    grad=0,
    low=False,
)
case("signal.windows.kaiser", None, Error(ValueError, "beta must be non-negative, got: -1 instead.", 5, beta=-1))
case("signal.windows.gaussian", None, Error(ValueError, "Standard deviation must be positive, got: 0 ", 5, std=0))
case("signal.windows.exponential", None, Error(ValueError, "Tau must be positive, got: 0 instead.", 5, tau=0))
case(
    "signal.windows.exponential",
    None,
    Error(ValueError, "Center must be None for symmetric windows", 5, center=1.0),
)
