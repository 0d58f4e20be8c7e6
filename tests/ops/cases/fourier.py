"""Fourier transforms, against sums of exponentials written out."""

import numpy as np

from . import Error, Input, case

COMPLEX = np.array([[1 + 2j, -0.5j, 0.3, 2 - 1j], [0.7, 1j, -1.2 + 0.4j, 0.1]])


def _fit(x, n, dim):
    """x cut or filled up with zeros to length n along dim."""
    x = np.moveaxis(np.asarray(x, complex), dim, -1)
    out = np.zeros((*x.shape[:-1], n), complex)
    out[..., : min(n, x.shape[-1])] = x[..., :n]
    return np.moveaxis(out, -1, dim)


def _sum(x, n, dim, sign, norm):
    """The sum over j of x[j] e^(sign 2 pi i j k / n) along dim, scaled for a transform in the direction of sign."""
    n = x.shape[dim] if n is None else n
    j = np.arange(n)
    matrix = np.exp(sign * 2j * np.pi * np.outer(j, j) / n)
    inverse = sign > 0
    scale = {"ortho": n**-0.5, None: 1 / n if inverse else 1, "forward": 1 if inverse else 1 / n}
    return np.moveaxis(np.moveaxis(_fit(x, n, dim), dim, -1) @ matrix, -1, dim) * scale[norm]


def _half(x, dim):
    return np.moveaxis(np.moveaxis(x, dim, 0)[: x.shape[dim] // 2 + 1], 0, dim)


def _whole(x, n, dim):
    """All n terms, of which x is the first half: the others are conjugates in reverse."""
    x = np.moveaxis(_fit(x, n // 2 + 1, dim), dim, 0).copy()
    x[0] = x[0].real
    if n % 2 == 0:
        x[-1] = x[-1].real
    return np.moveaxis(np.concatenate([x, np.conj(x[1 : (n + 1) // 2][::-1])]), 0, dim)


def fft(x, n=None, dim=-1, norm=None):
    return _sum(x, n, dim, -1, norm)


def ifft(x, n=None, dim=-1, norm=None):
    return _sum(x, n, dim, 1, norm)


def rfft(x, n=None, dim=-1, norm=None):
    return _half(_sum(x, n, dim, -1, norm), dim)


def irfft(x, n=None, dim=-1, norm=None):
    n = 2 * (x.shape[dim] - 1) if n is None else n
    return _sum(_whole(x, n, dim), n, dim, 1, norm).real


def hfft(x, n=None, dim=-1, norm=None):
    n = 2 * (x.shape[dim] - 1) if n is None else n
    return _sum(_whole(x, n, dim), n, dim, -1, norm).real


def ihfft(x, n=None, dim=-1, norm=None):
    return _half(_sum(x, n, dim, 1, norm), dim)


def _several(one, last, last_first):
    """``last`` along the last of the dims, first or at the end, and ``one`` along the others."""

    def transform(x, s=None, dim=None, norm=None):
        dim = tuple(range(x.ndim - len(s or x.shape), x.ndim)) if dim is None else dim
        lengths = dict(zip(dim, s or [None] * len(dim)))
        order = list(dim[:-1])
        order = [dim[-1], *order] if last_first else [*order, dim[-1]]
        for d in order:
            x = (last if d == dim[-1] else one)(x, lengths[d], d, norm)
        return x

    return transform


fftn, ifftn = _several(fft, fft, False), _several(ifft, ifft, False)
rfftn, irfftn = _several(fft, rfft, True), _several(ifft, irfft, False)
hfftn, ihfftn = _several(fft, hfft, False), _several(ifft, ihfft, True)

ONE_DIM = [
    lambda *x: Input(*x, norm="ortho"),
    lambda *x: Input(*x, n=7),
    lambda *x: Input(*x, n=2, norm="forward"),
    lambda *x: Input(*x, dim=0, n=3),
]
SCALAR = Error(IndexError, "Dimension specified as -1 but tensor has no dimensions", ())
LENGTH = Error(RuntimeError, "Invalid number of data points (0) specified", (3,), n=0)
NORM = Error(RuntimeError, 'Invalid normalization mode: "both"', (3,), norm="both")

for _ref in (fft, ifft, irfft, hfft):
    _name = f"fft.{_ref.__name__}"
    _calls = [Input(COMPLEX), *(of(COMPLEX) for of in ONE_DIM)]
    case(_name, _ref, *_calls, Input((2, 5)), Input((2, 1), n=3), SCALAR, LENGTH, NORM, low=False)
for _ref in (rfft, ihfft):
    _name = f"fft.{_ref.__name__}"
    _wrong = Error(RuntimeError, f"{_ref.__name__} expects a real input tensor, but got ComplexFloat", COMPLEX)
    _calls = [Input((2, 4)), Input((5,)), Input((1,)), *(of((2, 5)) for of in ONE_DIM)]
    case(_name, _ref, *_calls, SCALAR, LENGTH, NORM, _wrong, low=False)

THREE = (2, 3, 4)
UNIQUE = Error(RuntimeError, "FFT dims must be unique", (2, 3), dim=(0, 0))
COUNT = Error(RuntimeError, "Got shape with 3 values but input tensor only has 2 dimensions.", (2, 3), s=(1, 2, 3))
LENGTHS = Error(
    RuntimeError, "When given, dim and shape arguments must have the same length", (2, 3), s=(1, 2), dim=(0,)
)
for _ref in (fftn, ifftn, rfftn, irfftn, hfftn, ihfftn):
    _name = next(name for name, value in globals().items() if value is _ref and name[0] != "_")
    _calls = [Input(THREE, norm="ortho"), Input(THREE, s=(4, 3)), Input(THREE, dim=(0, 2)), Input((5,))]
    case(f"fft.{_name}", _ref, *_calls, UNIQUE, COUNT, LENGTHS, low=False)
    _calls = [Input((2, 3, 4)), Input((3, 4), s=(2, 5), norm="forward")]
    _ref2 = (lambda ref: lambda x, s=None, norm=None: ref(x, s, (x.ndim - 2, x.ndim - 1), norm))(_ref)
    case(f"fft.{_name[:-1]}2", _ref2, *_calls, low=False)
case("fft.rfftn", None, Error(RuntimeError, "rfftn must transform at least one axis", ()))


def _frequencies(n, d=1.0):
    k = np.arange(n)
    return np.where(k > (n - 1) // 2, k - n, k) / (n * d)


case("fft.fftfreq", _frequencies, Input(5), Input(4, d=0.5), Input(1), grad=0, low=False)
case("fft.rfftfreq", lambda n, d=1.0: np.arange(n // 2 + 1) / (n * d), Input(5), Input(4, d=0.5), grad=0, low=False)
case("fft.fftshift", lambda x, dim=None: np.roll(x, [n // 2 for n in x.shape], range(x.ndim)), Input((4, 3)))
case("fft.fftshift", lambda x, dim: np.roll(x, x.shape[dim] // 2, dim), Input((4, 3), dim=1))
case("fft.ifftshift", lambda x, dim=None: np.roll(x, [-(n // 2) for n in x.shape], range(x.ndim)), Input((4, 3)))
