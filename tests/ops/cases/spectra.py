"""Short-time Fourier transforms, against sums written out."""

import numpy as np

from . import Error, Input, case

HANN = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(6) / 6)
RISING = np.array([0.4, 1.0, 0.7, 0.2])


def stft(x, n, hop_length=None, win_length=None, window=None, center=True, **options):
    hop, width = hop_length or n // 4, win_length or n
    window = np.ones(width) if window is None else window
    before = (n - width) // 2
    window = np.pad(window, (before, n - width - before))
    if center:
        half = [(0, 0)] * (x.ndim - 1) + [(n // 2, n // 2)]
        x = np.pad(x, half, options.get("pad_mode", "reflect"))
    elif options.get("align_to_window"):
        x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(before, n - width - before)])
    turns = np.exp(-2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n)
    out = [turns @ np.moveaxis(x[..., i : i + n] * window, -1, 0) for i in range(0, x.shape[-1] - n + 1, hop)]
    out = np.moveaxis(np.stack(out, -1), 0, -2) / (n**0.5 if options.get("normalized") else 1)
    one = options.get("onesided")
    out = out[..., : n // 2 + 1, :] if one or (one is None and np.isrealobj(x)) else out
    return out if options.get("return_complex", True) else np.stack([out.real, out.imag], -1)


def istft(x, n, hop_length=None, win_length=None, window=None, center=True, **options):
    hop, width = hop_length or n // 4, win_length or n
    window = np.ones(width) if window is None else window
    before = (n - width) // 2
    window = np.pad(window, (before, n - width - before))
    x = np.array(x)
    if not options.get("return_complex"):
        x = x[..., : n // 2 + 1, :]
        x.imag[..., 0, :] = 0
        if n % 2 == 0:
            x.imag[..., n // 2, :] = 0
        x = np.concatenate([x, np.conj(x[..., 1 : (n + 1) // 2, :][..., ::-1, :])], -2)
    turns = np.exp(2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n) / n
    turns = turns * n**0.5 if options.get("normalized") else turns
    frames = np.moveaxis(turns @ x, -1, 0) * window
    total = np.zeros((*x.shape[:-2], n + hop * (len(frames) - 1)), complex)
    squares = np.zeros(total.shape[-1])
    for i, frame in enumerate(frames):
        total[..., i * hop : i * hop + n] += frame
        squares[i * hop : i * hop + n] += window**2
    start = n // 2 if center else 0
    length = options.get("length") or total.shape[-1] - 2 * start
    total = total[..., start : start + length] / squares[start : start + length]
    total = np.pad(total, [(0, 0)] * (total.ndim - 1) + [(0, length - total.shape[-1])])
    return total if options.get("return_complex") else total.real


C = {"return_complex": True}
case(
    "stft",
    stft,
    Input((20,), 6, window=HANN, **C),
    Input((2, 17), 6, hop_length=2, window=HANN, normalized=True, **C),
    Input((20,), 6, window=RISING, win_length=4, center=False, **C),
    Input((20,), 6, window=RISING, win_length=4, center=False, align_to_window=True, hop_length=3, **C),
    Input((20,), 6, window=HANN, onesided=False, **C),
    Input((20,), 6, window=HANN, return_complex=False),
    Input((20,), 6, window=HANN, pad_mode="constant", **C),
    Input(np.exp(0.7j * np.arange(15)), 6, window=HANN, **C),
    Error(RuntimeError, "stft requires the return_complex parameter be given for real inputs", (9,), 6),
    Error(RuntimeError, "stft align_to_window should only be set when", (9,), 6, align_to_window=True, **C),
    Error(RuntimeError, "Cannot have onesided output", np.array([1j] * 9), 6, onesided=True, **C),
    low=False,
)
_SPECTRUM = np.random.default_rng(0).standard_normal((2, 4, 5)) * np.exp(1j * np.arange(5))
_BOTH = np.random.default_rng(1).standard_normal((6, 5)) * np.exp(1j * np.arange(5))
_REAL = "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
case(
    "istft",
    istft,
    Input(_SPECTRUM, 6, window=HANN),
    Input(_SPECTRUM[0], 6, hop_length=2, window=HANN, normalized=True),
    Input(_SPECTRUM, 6, window=HANN, length=3),
    Input(_SPECTRUM, 6, window=HANN + 0.5, center=False),
    Input(_BOTH, 6, window=HANN),
    Input(_BOTH, 6, window=HANN, return_complex=True),
    Error(RuntimeError, _REAL, (4, 5), 6),
    Error(RuntimeError, "Cannot have onesided output", _SPECTRUM, 6, return_complex=True),
    Error(RuntimeError, "Complex windows are incompatible", _SPECTRUM, 6, window=HANN + 0j),
    Error(RuntimeError, "ComplexFloatType[2, 4, 5], n_fft=6, hop_length=7,", _SPECTRUM, 6, hop_length=7),
    low=False,
)
