"""Complex tensors: their parts, how they are made of them, and conjugates."""

import math

from .. import dtypes, errors
from ..core.modes import SPACE
from ..core.op import TABLE, op
from ..core.promote import wrong_type
from ..core.tensor import Tensor
from .masks import complex_valued

__all__ = (
    *("real", "imag", "conj", "conj_physical", "resolve_conj", "resolve_neg", "angle", "polar", "complex"),
    *("view_as_real", "view_as_complex", "isreal", "is_conj", "is_neg"),
)
INPLACE = ("conj_physical",)
INPLACE_PUBLIC = ("conj_physical",)


def real(input):
    """The real part, a view of ``input``; ``input`` itself where it is not complex."""
    return TABLE["real_part"].call(input) if input.dtype.is_complex else input


@op(x=lambda m, g: m.joined(g, m.null(g)), view=True, holomorphic=False, node="Real")
def real_part(xp, x):
    """The real part of complex x, a view."""
    return x.real


def imag(input):
    """The imaginary part, a view of ``input``.

    Raises      RuntimeError where it is not complex
    """
    if not input.dtype.is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return TABLE["imag_part"].call(input)


@op(x=lambda m, g: m.joined(m.null(g), g), view=True, holomorphic=False, node="Imag")
def imag_part(xp, x):
    """The imaginary part of complex x, a view."""
    return x.imag


@op(x=lambda m, g: m.conj(g), holomorphic=False)
def conj(xp, x):
    """The conjugate of x, always a copy."""
    return xp.conjugate(x) if x.dtype.kind == "c" else x.copy()


conj_physical = conj


def resolve_conj(input):
    """``input`` itself: conjugates are computed at once here."""
    return input


def resolve_neg(input):
    """``input`` itself: negatives are computed at once here."""
    return input


def is_conj(input):
    """Whether a conjugate waits to be computed: never here."""
    return False


def is_neg(input):
    """Whether a negative waits to be computed: never here."""
    return False


def isreal(input):
    """Whether each element has no imaginary part."""
    if not input.dtype.is_complex:
        return TABLE["eq"].call(input, input) | True
    return imag(input) == 0


# ---- made of two real ones


def _two_floats(name, a, b):
    for i, t in enumerate((a, b)):
        if not isinstance(t, Tensor):
            raise wrong_type(name, {"polar": ("abs", "angle"), "complex": ("real", "imag")}[name][i], i, t)
        if t.dtype not in (dtypes.float16, dtypes.float32, dtypes.float64):
            raise RuntimeError(
                f"Expected both inputs to be Half, Float or Double tensors but got {a.dtype.legacy} and "
                f"{b.dtype.legacy}"
            )
    if a.dtype is not b.dtype:
        first = (
            f"Expected object of scalar type {a.dtype.legacy} but got scalar type {b.dtype.legacy} for second argument"
        )
        raise RuntimeError(errors.text(first, f"{name} got {a.dtype} and {b.dtype}"))
    SPACE["RARE"] = True
    return a, b


def complex(real, imag, *, out=None):
    """real + i * imag.

    Shapes      broadcast
    Dtypes      float32 or float64, the same for both; out complex64 or complex128
    """
    real, imag = _two_floats("complex", real, imag)
    made = real.dtype.to_complex()
    if out is not None and out.dtype is not made:
        given = f"{made.legacy} but got scalar type {out.dtype.legacy} for argument 'out'"
        raise RuntimeError(f"Expected object of scalar type {given}")
    return TABLE["joined"].raw(real, imag, out=out)


@op(
    x=lambda m, g: m.copy_real(g),
    y=lambda m, g: m.copy_imag(g),
    broadcast=True,
    holomorphic=False,
    node="Complex",
)
def joined(xp, x, y):
    """x + i * y."""
    shape = x.shape if x.shape == y.shape else xp.broadcast_shapes(x.shape, y.shape)
    both = xp.empty(shape, xp.complex128 if x.dtype == xp.float64 else xp.complex64)
    both.real, both.imag = x, y
    return both


@op(x=lambda m, g: m.joined(g, m.null(g)), holomorphic=False, node="Real")
def copy_real(xp, x):
    """The real part of complex x, a copy."""
    return x.real.copy()


@op(x=lambda m, g: m.joined(m.null(g), g), holomorphic=False, node="Imag")
def copy_imag(xp, x):
    """The imaginary part of complex x, a copy."""
    return x.imag.copy()


def _polar_back(m, g, length, angle, needs):
    turn = m.joined(m.cos(angle), m.sin(angle))
    along = m.conj(turn) * g
    by_angle = length * m.copy_imag(along) if needs[1] else None
    return (m.copy_real(along) if needs[0] else None), by_angle


@op(joint=_polar_back, broadcast=True, holomorphic=False, node="Polar")
def from_polar(xp, length, angle):
    """length * e^(i * angle)."""
    return TABLE["joined"].forward(xp, length * xp.cos(angle), length * xp.sin(angle))


def polar(abs, angle, *, out=None):
    """abs * e^(i * angle).

    Shapes      broadcast
    Dtypes      float32 or float64, the same for both; out complex64 or complex128
    """
    return TABLE["from_polar"].raw(*_two_floats("polar", abs, angle), out=out)


def angle(input, *, out=None):
    """The angle of each number in the complex plane, in [-pi, pi]; of a real number 0 or pi.

    Dtypes      integers as the default floating dtype
    Derivative  0 for real input and at 0
    """
    return TABLE["angle_of"].raw(input, out=out)


def _angle_back(m, g, x):
    if not complex_valued(x):
        return m.null(g)
    squares = m.copy_real(x * m.conj(x))
    zero = squares == 0
    return m.only(g / (squares + zero), ~zero) * (x * 1j)


@op(x=_angle_back, floating=True, wide=True, holomorphic=False, node="Angle")
def angle_of(xp, x):
    """The angle of x."""
    if x.dtype.kind == "c":
        return xp.arctan2(x.imag, x.real)
    return xp.where(xp.isnan(x), x, xp.where(x < 0, x.dtype.type(math.pi), x.dtype.type(0)))


# ---- the same memory as pairs


def view_as_real(input):
    """The real and imaginary parts along a new last dim of 2, a view.

    Raises      RuntimeError where ``input`` is not complex
    """
    if not input.dtype.is_complex:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return TABLE["as_pairs"].call(input)


@op(x=lambda m, g: m.of_pairs(g), view=True, holomorphic=False, node="ViewAsReal")
def as_pairs(xp, x):
    """x [...] complex as [..., 2] real, a view."""
    part = x.real
    strided = xp.lib.stride_tricks.as_strided
    return strided(part, (*x.shape, 2), (*x.strides, part.itemsize))  # [...] -> [..., 2]


def view_as_complex(input):
    """A last dim of 2 as the real and imaginary parts of complex numbers, a view.

    Shapes      input [..., 2]; out [...]
    Dtypes      float32, float64
    Raises      RuntimeError where the last dim or the strides do not fit
    """
    if input.ndim == 0:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if input.shape[-1] != 2:
        raise RuntimeError(errors.text("Tensor must have a last dimension of size 2", f"got {tuple(input.shape)}"))
    if input.dtype not in (dtypes.float32, dtypes.float64):
        raise RuntimeError(
            f"view_as_complex is only supported for half, float and double tensors, but got {input.dtype}"
        )
    strides = input.stride()
    if strides[-1] != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(s % 2 for s in strides[:-1]):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    SPACE["RARE"] = True
    return TABLE["of_pairs"].call(input)


@op(x=lambda m, g: m.as_pairs(g), view=True, holomorphic=False, node="ViewAsComplex")
def of_pairs(xp, x):
    """x [..., 2] real as [...] complex, a view where the pairs lie together."""
    d = xp.complex128 if x.dtype == xp.float64 else xp.complex64
    if x.strides[-1] != x.itemsize:
        x = xp.ascontiguousarray(x)
    return x.view(d)[..., 0]  # [..., 2] -> [...]


def _assign(part):
    def assign(self, value):
        target = part(self)
        target.copy_(value) if isinstance(value, Tensor) else target.fill_(value)

    return assign


METHODS = {
    name: globals()[name] for name in ("conj", "conj_physical", "resolve_conj", "resolve_neg", "angle", "isreal")
}
METHODS |= {"is_conj": is_conj, "is_neg": is_neg}
METHODS |= {"real": property(real, _assign(real)), "imag": property(imag, _assign(imag))}
