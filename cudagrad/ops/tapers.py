"""Window functions for signals, computed in float64 and rounded once.

All are curves of t = i / (N - 1) for i = 0, ..., window_length - 1, where N is window_length, or one more if periodic.
"""

import numpy as np

from ..backend import to_device
from ..core.shape import strided
from .factory import finish, index_of, target_of, wanted

__all__ = ("bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window")


def _window(name, length, periodic, curve, dtype, place):
    length = index_of(name, "window_length", 1, length)
    layout, device, pin_memory, requires_grad = place
    d = wanted(name, dtype, None)
    if d.is_complex:
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{d.legacy}'")
    if not d.is_floating_point:
        options = f"dtype={d.cpp}, device={target_of(device, layout)}, layout=Strided (default), "
        options += "requires_grad=false (default), pinned_memory=false, memory_format=(nullopt)"
        raise RuntimeError(f"{name} expects floating point dtypes, got: TensorOptions({options})")
    if length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={length}")
    steps = length if periodic else length - 1
    values = curve(np.arange(length) / steps) if length > 1 else np.ones(length)
    return finish(to_device(values.astype(d.numpy), target_of(device, layout)), requires_grad, pin_memory)


def hann_window(
    window_length, periodic=True, *, dtype=None, layout=strided, device=None, pin_memory=False, requires_grad=False
):
    """0.5 - 0.5 cos(2 pi t).

    Raises      RuntimeError where ``dtype`` is not floating or the length is negative
    """
    place = layout, device, pin_memory, requires_grad
    return _window("hann_window", window_length, periodic, _hann, dtype, place)


def _hann(t):
    return 0.5 - 0.5 * np.cos(2 * np.pi * t)


def hamming_window(
    window_length,
    periodic=True,
    alpha=0.54,
    beta=0.46,
    *,
    dtype=None,
    layout=strided,
    device=None,
    pin_memory=False,
    requires_grad=False,
):
    """alpha - beta cos(2 pi t)."""
    place = layout, device, pin_memory, requires_grad

    def curve(t):
        return alpha - beta * np.cos(2 * np.pi * t)

    return _window("hamming_window", window_length, periodic, curve, dtype, place)


def blackman_window(
    window_length, periodic=True, *, dtype=None, layout=strided, device=None, pin_memory=False, requires_grad=False
):
    """0.42 - 0.5 cos(2 pi t) + 0.08 cos(4 pi t)."""
    place = layout, device, pin_memory, requires_grad

    def curve(t):
        return 0.42 - 0.5 * np.cos(2 * np.pi * t) + 0.08 * np.cos(4 * np.pi * t)

    return _window("blackman_window", window_length, periodic, curve, dtype, place)


def bartlett_window(
    window_length, periodic=True, *, dtype=None, layout=strided, device=None, pin_memory=False, requires_grad=False
):
    """1 - |2 t - 1|."""
    place = layout, device, pin_memory, requires_grad
    return _window("bartlett_window", window_length, periodic, lambda t: 1 - np.abs(2 * t - 1), dtype, place)


def kaiser_window(
    window_length,
    periodic=True,
    beta=12.0,
    *,
    dtype=None,
    layout=strided,
    device=None,
    pin_memory=False,
    requires_grad=False,
):
    """I0(beta sqrt(1 - (2 t - 1)^2)) / I0(beta), I0 the modified Bessel function of order 0."""
    place = layout, device, pin_memory, requires_grad

    def curve(t):
        return np.i0(beta * np.sqrt(1 - (2 * t - 1) ** 2)) / np.i0(beta)

    return _window("kaiser_window", window_length, periodic, curve, dtype, place)
