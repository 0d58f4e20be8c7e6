"""Spectra of a signal's windows: the short-time Fourier transform and its inverse."""

import warnings

from .. import dtypes, errors
from ..core.op import TABLE
from ..core.tensor import Tensor
from .fourier import fft, ifft, irfft, rfft
from .padding import pad

__all__ = ("stft", "istft")
METHODS = __all__

_SMALLEST = 1e-11  # an envelope below this cannot be divided by


def _told(name, kind, input, window, **options):
    """PyTorch's words for the call, which stand before each of its complaints."""
    told = "None" if window is None else f"torch.{window.dtype.legacy}Tensor{{{list(window.shape)}}}"
    shown = {k: int(v) if isinstance(v, bool) else v for k, v in options.items()}
    sizes = {k: shown.pop(k) for k in ("n_fft", "hop_length", "win_length")}
    rest = ", ".join(f"{k}={v}" for k, v in sizes.items()) + f", window={told}, "
    return f"{name}({kind}{list(input.shape)}, {rest}{', '.join(f'{k}={v}' for k, v in shown.items())})"


def _whole_window(window, win_length, n_fft, like):
    """The window in the middle of n_fft places; ones where there is none."""
    if window is None:
        window = like.new_ones((win_length,), dtype=like.dtype.to_real())
    before = (n_fft - win_length) // 2
    return pad(window, [before, n_fft - win_length - before]) if win_length < n_fft else window


def _warn_of_no_window(of_inverse):
    middle = "applied.Please provide the same window used by stft to make the inversion lossless."
    if not of_inverse:
        middle = (
            "applied,which is known to cause spectral leakage. Other windows such as torch.hann_window or "
            "torch.hamming_window are recommended to reduce spectral leakage."
        )
    warnings.warn(
        f"A window was not provided. A rectangular window will be {middle}To suppress this warning and use a "
        "rectangular window, explicitly set `window=torch.ones(n_fft, device=<device>)`.",
        UserWarning,
        stacklevel=3,
    )


def _centred(input, n_fft, mode):
    half = n_fft // 2
    batch = input.reshape((1,) * (3 - input.ndim) + tuple(input.shape))
    padded = pad(batch, [half, half], mode)
    return padded.reshape(tuple(padded.shape)[3 - input.ndim :])


def stft(
    input,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    pad_mode="reflect",
    normalized=False,
    onesided=None,
    return_complex=None,
    align_to_window=None,
):
    """The Fourier transforms of the windows of a signal: out[f, t] is that of ``window * input[t * hop_length ...]``.

    With ``center`` the signal is padded by ``pad_mode`` so that window t has place t * hop_length in its middle. The
    defaults are n_fft // 4 for ``hop_length`` and n_fft for ``win_length``; a shorter window stands in the middle of
    n_fft zeros. ``normalized`` divides by the root of n_fft; ``onesided`` (real signals) leaves the conjugates out.

    Shapes      input [T] or [B,T]; window [win_length]; out [F,t] or [B,F,t], without ``return_complex`` [...,2]
    Dtypes      floating or complex; out complex
    Raises      RuntimeError, among others where ``return_complex`` is not given for a real signal
    """
    if window is None:
        _warn_of_no_window(False)
    if center and align_to_window is not None:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    is_complex = input.dtype.is_complex or (window is not None and window.dtype.is_complex)
    if return_complex is None and not is_complex:
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will further require that "
            "return_complex=True in a future PyTorch release."
        )
    input = _centred(input, n_fft, pad_mode) if center else input
    options = {"n_fft": n_fft, "hop_length": hop_length, "win_length": win_length, "normalized": bool(normalized)}
    options |= {"onesided": onesided, "return_complex": return_complex, "align_to_window": align_to_window}
    _check(_told("stft", f"torch.{input.dtype.legacy}Tensor", input, window, **options), input, window, **options)
    if align_to_window:
        before = (n_fft - win_length) // 2
        input = pad(input, [before, n_fft - win_length - before])
    if onesided and is_complex:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    frames = TABLE["sliding"].raw(input, dim=input.ndim - 1, size=n_fft, step=hop_length)  # [...,T] -> [...,t,n_fft]
    frames = frames * _whole_window(window, win_length, n_fft, input)
    transform = fft if is_complex or onesided is False else rfft
    spectra = transform(frames, norm="ortho" if normalized else None).transpose(-1, -2)  # [...,t,F] -> [...,F,t]
    return spectra if return_complex or return_complex is None else TABLE["as_pairs"].raw(spectra)


def _check(told, input, window, n_fft, hop_length, win_length, align_to_window, **_):
    length = input.shape[-1] if input.ndim else 0
    if input.dtype.category < 2:
        wrong = "expected a tensor of floating point or complex values"
    elif input.ndim not in (1, 2):
        wrong = "expected a 1D or 2D tensor"
    elif not 0 < win_length <= n_fft and 0 < n_fft:
        wrong = f"expected 0 < win_length <= n_fft, but got win_length={win_length}"
    elif not 0 < n_fft <= length + (n_fft - win_length if align_to_window else 0):
        wrong = f"expected 0 < n_fft < {length}, but got n_fft={n_fft}"
    elif hop_length <= 0:
        wrong = f"expected hop_length > 0, but got hop_length={hop_length}"
    elif window is not None and tuple(window.shape) != (win_length,):
        size = f"win_length={win_length}, but got window with size {list(window.shape)}"
        wrong = f"expected a 1D window tensor of size equal to {size}"
    else:
        return
    raise RuntimeError(f"{told} : {wrong}")


def istft(
    input,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    normalized=False,
    onesided=None,
    length=None,
    return_complex=False,
):
    """The signal whose ``stft`` of the same arguments is nearest to ``input``.

    The windows' inverse transforms, times the window, are added up and divided by the sum of the window's squares.

    Shapes      input [F,t] or [B,F,t]; out [T] or [B,T], cut or filled up with zeros to ``length``
    Raises      RuntimeError, among others where the windows leave a place out
    Source      Griffin and Lim 1984, IEEE Trans. ASSP 32(2), equation 6
    """
    if window is None:
        _warn_of_no_window(True)
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    options = {"n_fft": n_fft, "hop_length": hop_length, "win_length": win_length, "center": bool(center)}
    options |= {"normalized": bool(normalized), "onesided": onesided, "length": length}
    options |= {"return_complex": bool(return_complex)}
    kind = ("CPU" if input.device.type == "cpu" else "CUDA") + f"{input.dtype.legacy}Type"
    told = _told("istft", kind, input, window, **options)
    _check_inverse(told, input, window, **options)
    whole = _whole_window(window, win_length, n_fft, input)
    spectra = input.reshape((1, *input.shape)) if input.ndim == 2 else input
    spectra = spectra.transpose(1, 2)  # [B,F,t] -> [B,t,F]
    norm = "ortho" if normalized else None
    # of a real signal half of the terms say all, also where there are all: what differs in the others does not count
    frames = ifft(spectra, norm=norm) if return_complex else irfft(spectra[..., : n_fft // 2 + 1], n_fft, norm=norm)
    count = spectra.shape[1]
    signal = _added(frames * whole, n_fft, hop_length)
    envelope = _added((whole * whole).expand(1, count, n_fft), n_fft, hop_length)
    start, end = _part(signal.shape[1], n_fft, center, length)
    signal, envelope = signal[:, start:end], envelope[:, start:end]
    if envelope.numel() and float(envelope.detach().abs().min()) <= _SMALLEST:
        raise RuntimeError(errors.text(f"{told} window overlap add min: 1", "the windows leave places out"))
    signal = signal / envelope
    signal = _filled(signal, start, end)
    return signal.reshape(-1) if input.ndim == 2 else signal


def _added(frames, n_fft, hop):
    """Frames [B,t,n_fft] added up where they lie, ``hop`` apart: [B,T]."""
    shape = frames.shape[0], n_fft + hop * (frames.shape[1] - 1)
    return TABLE["sliding_sum"].raw(frames, shape=shape, dim=1, size=n_fft, step=hop)


def _part(whole, n_fft, center, length):
    """The places from where to where a signal of ``whole`` places is given back."""
    start = n_fft // 2 if center else 0
    if length is not None:
        return start, start + length
    return start, whole - start if center else whole


def _filled(signal, start, end):
    missing = end - start - signal.shape[1]
    if missing <= 0:
        return signal
    warnings.warn(
        "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. "
        "Please check your center and hop_length settings.",
        UserWarning,
        stacklevel=3,
    )
    return pad(signal, [0, missing])


def _check_inverse(told, input, window, n_fft, hop_length, win_length, onesided, return_complex, **_):
    """RuntimeError where arguments do not fit."""
    if not input.dtype.is_complex:
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    terms, wrong = input.shape[-2] if input.ndim > 1 else 0, None
    half = onesided if onesided is not None else terms != n_fft
    if not input.numel():
        wrong = "input tensor cannot be empty."
    elif input.ndim not in (2, 3):
        wrong = f"expected a tensor with 3 or 4 dimensions, but got {input.ndim + 1}"
    elif half and terms != n_fft // 2 + 1:
        wrong = _terms(f"n_fft / 2 + 1 when onesided=True, but got {terms}")
    elif not half and terms != n_fft:
        wrong = _terms(f"n_fft when onesided=False, but got {terms}")
    elif not 0 < hop_length <= win_length:
        wrong = "expected 0 < hop_length <= win_length"
    elif not 0 < win_length <= n_fft:
        wrong = "expected 0 < win_length <= n_fft"
    elif window is not None and tuple(window.shape) != (win_length,):
        wrong = "Invalid window shape. window has to be 1D and length of `win_length`"
    if wrong:
        raise RuntimeError(f"{told} : {wrong}")
    complex_window = isinstance(window, Tensor) and window.dtype.category == dtypes.complex64.category
    if not return_complex and complex_window:
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    if return_complex and half:
        raise RuntimeError("Cannot have onesided output if window or input is complex")


def _terms(expected):
    return f"expected the frequency dimension (3rd to the last) of the input tensor to match {expected}"
