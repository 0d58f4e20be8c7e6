"""Window functions of ``torch.signal.windows``, computed in float64 and rounded once.

All are curves of k = 0, ..., M - 1; of a window that is not ``sym`` (periodic) the M + 1-th value is left out.
"""

import numpy as np

from .. import dtypes
from ..backend import to_device
from ..core.shape import strided
from .factory import finish, target_of, wanted

__all__ = ()
SIGNAL_WINDOWS = ("bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming")
SIGNAL_WINDOWS += ("hamming", "hann", "kaiser", "nuttall")


def _window(name, count, sym, curve, dtype, layout, device, requires_grad):
    """``curve(k, last)`` over the M places k; ``last`` is the number of the one at the right end."""
    if count < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={count}")
    if layout is not strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    d = wanted(name, dtype, None)
    if d not in (dtypes.float32, dtypes.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {d}")
    last = count - 1 if sym else count
    values = curve(np.arange(count), last) if count > 1 else np.ones(count)
    return finish(to_device(np.asarray(values).astype(d.numpy), target_of(device)), requires_grad)


def exponential(M, *, center=None, tau=1.0, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """e^(-|k - center| / tau); center is the middle, and may be given where the window is not ``sym``."""
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")

    def curve(k, last):
        return np.exp(-np.abs(k - (last / 2 if center is None else center)) / tau)

    return _window("exponential", M, sym, curve, dtype, layout, device, requires_grad)


def cosine(M, *, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """sin(pi (k + 1/2) / (last + 1))."""

    def curve(k, last):
        return np.sin(np.pi * (k + 0.5) / (last + 1))

    return _window("cosine", M, sym, curve, dtype, layout, device, requires_grad)


def gaussian(M, *, std=1.0, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """e^(-((k - middle) / std)^2 / 2)."""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")

    def curve(k, last):
        return np.exp(-0.5 * ((k - last / 2) / std) ** 2)

    return _window("gaussian", M, sym, curve, dtype, layout, device, requires_grad)


def kaiser(M, *, beta=12.0, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """I0(beta sqrt(1 - (2 k / last - 1)^2)) / I0(beta), I0 the modified Bessel function of order 0."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")

    def curve(k, last):
        return np.i0(beta * np.sqrt(np.maximum(1 - (2 * k / last - 1) ** 2, 0))) / np.i0(float(beta))

    return _window("kaiser", M, sym, curve, dtype, layout, device, requires_grad)


def general_cosine(M, *, a, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """The sum over i of (-1)^i a[i] cos(2 pi i k / last)."""
    if not isinstance(a, (list, tuple)):
        raise TypeError("Coefficients must be a list/tuple")
    if not a:
        raise ValueError("Coefficients cannot be empty")

    def curve(k, last):
        return sum((-1) ** i * weight * np.cos(2 * np.pi * i * k / last) for i, weight in enumerate(a))

    return _window("general_cosine", M, sym, curve, dtype, layout, device, requires_grad)


def general_hamming(M, *, alpha=0.54, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """alpha - (1 - alpha) cos(2 pi k / last)."""
    a = [alpha, 1.0 - alpha]
    return general_cosine(M, a=a, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hamming(M, *, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """0.54 - 0.46 cos(2 pi k / last)."""
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hann(M, *, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """0.5 - 0.5 cos(2 pi k / last)."""
    return general_hamming(
        M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def blackman(M, *, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """0.42 - 0.5 cos(2 pi k / last) + 0.08 cos(4 pi k / last)."""
    a = [0.42, 0.5, 0.08]
    return general_cosine(M, a=a, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def bartlett(M, *, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """1 - |2 k / last - 1|."""

    def curve(k, last):
        return 1 - np.abs(2 * k / last - 1)

    return _window("bartlett", M, sym, curve, dtype, layout, device, requires_grad)


def nuttall(M, *, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """The sum of four cosines of the smallest side lobes that fall off at once.

    Source      Nuttall 1981, "Some windows with very good sidelobe behavior", IEEE ASSP 29(1), equation 37
    """
    a = [0.3635819, 0.4891775, 0.1365995, 0.0106411]
    return general_cosine(M, a=a, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)
