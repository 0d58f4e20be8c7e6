"""Discrete Fourier transforms along dims: complex, of real signals, and to real signals."""

import numpy as np

from .. import dtypes, errors
from ..backend import to_device
from ..core.modes import SPACE
from ..core.op import TABLE, op
from ..core.shape import check_dim, strided
from ..core.tensor import Tensor
from .casting import to_dtype
from .factory import finish, target_of, wanted
from .outputs import placed

__all__ = ()
_NAMES = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
FFT = (*(n + ndim for n in _NAMES for ndim in ("", "2", "n")), "fftfreq", "rfftfreq", "fftshift", "ifftshift")

# A transform and its adjoint run in opposite directions; the one's scale is the other's in the other direction.
_OTHER = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


# ---- the ops


@op(
    x=lambda m, g, dim, norm, forward: m.fft_c2c(g, dim=dim, norm=norm, forward=forward),
    node="FftC2C",
)
def fft_c2c(xp, x, *, dim, norm, forward):
    """The sum over j of x[j] e^(-+2 pi i j k / n) along every one of ``dim``; the sign is - for ``forward``.

    Dtypes      complex
    Derivative  the matrix of the transform is symmetric
    """
    return _in_dtype((xp.fft.fftn if forward else xp.fft.ifftn)(x, axes=dim, norm=norm), x.dtype)


def _in_dtype(values, dtype):
    return values if values.dtype == dtype else values.astype(dtype)


@op(
    x=lambda m, g, x_shape, dim, norm: m.fft_c2r(
        m.hermitian_scaled(g, dim=dim, length=x_shape[dim], by=0.5), dim=dim, length=x_shape[dim], norm=_OTHER[norm]
    ),
    holomorphic=False,
    node="FftR2C",
)
def fft_r2c(xp, x, *, dim, norm):
    """The first n // 2 + 1 terms of the transform of real x along ``dim``; the others are their conjugates."""
    return _in_dtype(xp.fft.rfft(x, axis=dim, norm=norm), xp.complex64 if x.dtype.itemsize == 4 else xp.complex128)


@op(
    x=lambda m, g, dim, length, norm: m.hermitian_scaled(
        m.fft_r2c(g, dim=dim, norm=_OTHER[norm]), dim=dim, length=length, by=2.0
    ),
    holomorphic=False,
    node="FftC2R",
)
def fft_c2r(xp, x, *, dim, length, norm):
    """The real signal of ``length`` whose inverse transform along ``dim`` has x as its first length // 2 + 1 terms."""
    return _in_dtype(xp.fft.irfft(x, length, axis=dim, norm=norm), x.real.dtype)


@op(
    x=lambda m, g, dim, length, by: m.hermitian_scaled(g, dim=dim, length=length, by=by),
    holomorphic=False,
)
def hermitian_scaled(xp, x, *, dim, length, by):
    """x times ``by``, but for the terms that are their own conjugates: the first, and of even length the last."""
    out = x.copy()
    part = xp.moveaxis(out, dim, 0)[1 : (length + 1) // 2]
    part *= x.real.dtype.type(by)
    return out


# ---- arguments


def _checked(name, input, norm, valued):
    """The checks that all transforms share; RARE, since real tensors may come with complex results."""
    if not isinstance(input, Tensor):
        raise TypeError(f"fft_{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    if norm is not None and norm not in _OTHER:
        raise RuntimeError(errors.text(f'Invalid normalization mode: "{norm}"', "need backward, ortho or forward"))
    d = input.dtype
    if d in (dtypes.float16, dtypes.bfloat16):
        raise RuntimeError(
            errors.text(f"Unsupported dtype {d.legacy}", f"{name} takes torch.float32 and torch.float64")
        )
    if valued == "real" and d.is_complex:
        kind = "real-valued" if name.endswith(("n", "2")) else "real"
        raise RuntimeError(f"{name.replace('2', 'n')} expects a {kind} input tensor, but got {d.legacy}")
    SPACE["RARE"] = True
    d = d if d.category >= 2 else dtypes.get_default_dtype()
    return to_dtype(input, d if valued == "real" else d.to_complex()), norm or "backward"


def _one_dim(input, dim):
    if input.ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return check_dim(dim, input.ndim)


def _some_dims(input, s, dim):
    """The dims to transform, counted from the front, and the length of each (None: as it is)."""
    if dim is None:
        count = input.ndim if s is None else len(s)
        if s is not None and count > input.ndim:
            raise RuntimeError(f"Got shape with {count} values but input tensor only has {input.ndim} dimensions.")
        dims = list(range(input.ndim - count, input.ndim))
    else:
        dims = [_one_dim(input, d) for d in ((dim,) if isinstance(dim, int) else dim)]
        if len(set(dims)) < len(dims):
            raise RuntimeError(errors.text("FFT dims must be unique", f"got {tuple(dim)}"))
    s = [-1] * len(dims) if s is None else list(s)
    if len(s) != len(dims):
        raise RuntimeError("When given, dim and shape arguments must have the same length")
    return dims, [None if n == -1 else n for n in s]


def _resized(input, dims, lengths):
    """``input`` with ``dims`` cut or filled up with zeros at the end to ``lengths``."""
    widths = [(0, 0)] * input.ndim
    for d, n in zip(dims, lengths):
        n = input.shape[d] if n is None else n
        if n < 1:
            raise RuntimeError(errors.text(f"Invalid number of data points ({n}) specified", f"dim {d} of input"))
        widths[d] = (0, n - input.shape[d])
    if any(after for _, after in widths):
        return TABLE["pad_constant"].raw(input, widths=tuple(widths), value=0)
    return input


def _to_complex(input, dims, lengths, norm, forward):
    input = _resized(input, dims, lengths)
    if not dims:
        return TABLE["clone"].raw(input)
    return TABLE["fft_c2c"].raw(input, dim=tuple(dims), norm=norm, forward=forward)


def _of_real(name, input, dims, lengths, norm, conjugate):
    """A transform of a real signal: half of the last dim, then all of the others."""
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    input = _resized(input, dims, lengths)
    out = TABLE["fft_r2c"].raw(input, dim=dims[-1], norm=_OTHER[norm] if conjugate else norm)
    out = TABLE["conj"].raw(out) if conjugate else out
    return _to_complex(out, dims[:-1], [None] * (len(dims) - 1), norm, not conjugate) if dims[1:] else out


def _to_real(name, input, dims, lengths, norm, conjugate):
    """A transform to a real signal: all dims but the last, then that one from its half."""
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    last = 2 * (input.shape[dims[-1]] - 1) if lengths[-1] is None else lengths[-1]
    if last < 1:
        raise RuntimeError(errors.text(f"Invalid number of data points ({last}) specified", f"dim {dims[-1]}"))
    input = _resized(input, dims, [*lengths[:-1], last // 2 + 1])
    if dims[1:]:
        input = _to_complex(input, dims[:-1], [None] * (len(dims) - 1), norm, conjugate)
    input = TABLE["conj"].raw(input) if conjugate else input
    return TABLE["fft_c2r"].raw(input, dim=dims[-1], length=last, norm=_OTHER[norm] if conjugate else norm)


# ---- the public functions: each kind along one dim, the last two, or any

# name -> what it does to (name, input, dims, lengths, norm), and as what it takes the input
_KINDS = {
    "fft": (lambda _, *given: _to_complex(*given, True), "complex"),
    "ifft": (lambda _, *given: _to_complex(*given, False), "complex"),
    "rfft": (lambda *given: _of_real(*given, False), "real"),
    "irfft": (lambda *given: _to_real(*given, False), "complex"),
    "hfft": (lambda *given: _to_real(*given, True), "complex"),
    "ihfft": (lambda *given: _of_real(*given, True), "real"),
}


def _along(name, input, n, dim, norm, out):
    transform, valued = _KINDS[name]
    input, norm = _checked(name, input, norm, valued)
    return placed("fft_" + name, transform(name, input, [_one_dim(input, dim)], [n], norm), out)


def _along_dims(name, input, s, dim, norm, out):
    transform, valued = _KINDS[name[:-1]]
    input, norm = _checked(name, input, norm, valued)
    dims, lengths = _some_dims(input, s, dim)
    return placed("fft_" + name, transform(name, input, dims, lengths, norm), out)


def fft(input, n=None, dim=-1, norm=None, *, out=None):
    """The sum over j of input[j] e^(-2 pi i j k / n), for every k.

    Shapes      dim is cut, or filled up with zeros, to length n; so in all transforms
    Dtypes      integers as the default floating dtype; out complex
    Raises      RuntimeError for float16, bfloat16, a length below 1, or an unknown ``norm``
    """
    return _along("fft", input, n, dim, norm, out)


def ifft(input, n=None, dim=-1, norm=None, *, out=None):
    """1/n times the sum over k of input[k] e^(2 pi i j k / n), for every j: the inverse of ``fft``."""
    return _along("ifft", input, n, dim, norm, out)


def rfft(input, n=None, dim=-1, norm=None, *, out=None):
    """The first n // 2 + 1 terms of ``fft`` of a real signal; the others are their conjugates.

    Raises      RuntimeError for complex input
    """
    return _along("rfft", input, n, dim, norm, out)


def irfft(input, n=None, dim=-1, norm=None, *, out=None):
    """The real signal of which ``input`` is the ``rfft``.

    Shapes      dim of length m becomes n, by default 2 (m - 1)
    """
    return _along("irfft", input, n, dim, norm, out)


def hfft(input, n=None, dim=-1, norm=None, *, out=None):
    """The real ``fft`` of a signal that backwards is its own conjugate, of which ``input`` is the first half.

    Shapes      dim of length m becomes n, by default 2 (m - 1)
    """
    return _along("hfft", input, n, dim, norm, out)


def ihfft(input, n=None, dim=-1, norm=None, *, out=None):
    """The first n // 2 + 1 terms of ``ifft`` of a real signal: the inverse of ``hfft``.

    Raises      RuntimeError for complex input
    """
    return _along("ihfft", input, n, dim, norm, out)


def fft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    """``fft`` along two dims, the last by default."""
    return _along_dims("fft2", input, s, dim, norm, out)


def ifft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    """``ifft`` along two dims, the last by default."""
    return _along_dims("ifft2", input, s, dim, norm, out)


def rfft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    """``rfft`` along two dims, the last by default."""
    return _along_dims("rfft2", input, s, dim, norm, out)


def irfft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    """``irfft`` along two dims, the last by default."""
    return _along_dims("irfft2", input, s, dim, norm, out)


def hfft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    """``hfft`` along two dims, the last by default."""
    return _along_dims("hfft2", input, s, dim, norm, out)


def ihfft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    """``ihfft`` along two dims, the last by default."""
    return _along_dims("ihfft2", input, s, dim, norm, out)


def fftn(input, s=None, dim=None, norm=None, *, out=None):
    """``fft`` along any dims, all by default, or the last ones that ``s`` has lengths for."""
    return _along_dims("fftn", input, s, dim, norm, out)


def ifftn(input, s=None, dim=None, norm=None, *, out=None):
    """``ifft`` along any dims, all by default, or the last ones that ``s`` has lengths for."""
    return _along_dims("ifftn", input, s, dim, norm, out)


def rfftn(input, s=None, dim=None, norm=None, *, out=None):
    """``rfft`` along any dims, all by default, or the last ones that ``s`` has lengths for."""
    return _along_dims("rfftn", input, s, dim, norm, out)


def irfftn(input, s=None, dim=None, norm=None, *, out=None):
    """``irfft`` along any dims, all by default, or the last ones that ``s`` has lengths for."""
    return _along_dims("irfftn", input, s, dim, norm, out)


def hfftn(input, s=None, dim=None, norm=None, *, out=None):
    """``hfft`` along any dims, all by default, or the last ones that ``s`` has lengths for."""
    return _along_dims("hfftn", input, s, dim, norm, out)


def ihfftn(input, s=None, dim=None, norm=None, *, out=None):
    """``ihfft`` along any dims, all by default, or the last ones that ``s`` has lengths for."""
    return _along_dims("ihfftn", input, s, dim, norm, out)


# ---- frequencies and their order


def _frequencies(name, steps, d, out, dtype, device, requires_grad, layout):
    wants = wanted(name, dtype, out)
    if wants.category < 2:
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    values = to_device(steps.astype(wants.numpy), target_of(device, layout))
    return finish(values, requires_grad, out=out, name=name)


def fftfreq(n, d=1.0, *, out=None, dtype=None, layout=strided, device=None, requires_grad=False):
    """The frequencies of the terms of a transform of length n of places d apart: 0, 1, ..., -2, -1 by n d."""
    steps = np.concatenate([np.arange((n + 1) // 2), np.arange(-(n // 2), 0)]) / (n * d or 1)
    return _frequencies("fftfreq", steps, d, out, dtype, device, requires_grad, layout)


def rfftfreq(n, d=1.0, *, out=None, dtype=None, layout=strided, device=None, requires_grad=False):
    """The frequencies of the terms of a transform of a real signal: 0, 1, ..., n // 2 by n d."""
    steps = np.arange(n // 2 + 1) / (n * d or 1)
    return _frequencies("rfftfreq", steps, d, out, dtype, device, requires_grad, layout)


def _shifted(input, dim, shift_of):
    dims = tuple(range(input.ndim)) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    return TABLE["roll"].call(input, [shift_of(input.shape[check_dim(d, input.ndim)]) for d in dims], dims)


def fftshift(input, dim=None):
    """The terms of a transform with frequency 0 moved into the middle of ``dim`` (all by default)."""
    return _shifted(input, dim, lambda n: n // 2)


def ifftshift(input, dim=None):
    """The inverse of ``fftshift``: frequency 0 moved to the front."""
    return _shifted(input, dim, lambda n: (n + 1) // 2)
