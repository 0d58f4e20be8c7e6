"""Whole numbers near a tensor's, and values kept within bounds."""

import math

from .. import dtypes, errors
from ..core.op import SAME, TABLE, UNKNOWN, op, unknown
from ..core.promote import cast, promote_all
from ..core.tensor import Tensor
from .checks import no_overload, not_implemented, number, plain, refuse, types_of

__all__ = (
    *("floor", "ceil", "trunc", "fix", "round", "frac", "clamp", "clip", "clamp_min", "clamp_max", "maximum"),
    *("minimum", "fmax", "fmin", "nan_to_num", "copysign", "heaviside"),
)
METHODS = __all__
INPLACE = tuple(n for n in __all__ if n not in ("maximum", "minimum", "fmax", "fmin"))
INPLACE_PUBLIC = (
    *("floor", "ceil", "trunc", "fix", "round", "frac", "clamp", "clip", "clamp_min", "clamp_max", "nan_to_num"),
)

# Whether a value exactly at a bound of clamp hands its gradient on. So in PyTorch up to 2.13; pytorch#191142 changes it
# to the minimum-norm rule, which is False here.
GRADIENT_AT_BOUND = True


def _zero(m, g):
    return m.null(g)


def _whole(name, x, kernel):
    """Whether x is of whole numbers already; NotImplementedError where it cannot be rounded."""
    if x.dtype.kind == "c":
        raise NotImplementedError(f"{name} is not supported for complex inputs")
    if x.dtype.kind == "b":
        raise not_implemented(kernel, x)
    return x.dtype.kind in "iu"


@op(x=_zero)
def floor(xp, x):
    """The largest whole number not above x; integers as they are.

    Derivative  0
    """
    return x.copy() if _whole("floor", x, "floor_vml_cpu") else xp.floor(x)


@op(x=_zero)
def ceil(xp, x):
    """The smallest whole number not below x; integers as they are.

    Derivative  0
    """
    return x.copy() if _whole("ceil", x, "ceil_vml_cpu") else xp.ceil(x)


@op(x=_zero)
def trunc(xp, x):
    """x without its fraction; integers as they are.

    Derivative  0
    """
    return x.copy() if _whole("trunc", x, "trunc_vml_cpu") else xp.trunc(x)


@op(x=_zero, wide=True)
def round(xp, x, *, decimals=0):
    """The nearest whole number, half to even; to ``decimals`` places after the point, before it where negative.

    Derivative  0

    >>> cudagrad.round(cudagrad.tensor([0.5, 1.5, 2.5]))
    tensor([0., 2., 2.])
    """
    if _whole("round", x, "round_cpu"):
        if decimals:
            raise not_implemented("round_cpu", x)
        return x.copy()
    if not decimals:
        return xp.rint(x)
    scale = number(10.0 ** abs(decimals), x)
    return xp.rint(x * scale) / scale if decimals > 0 else xp.rint(x / scale) * scale


@op(x=SAME)
def frac(xp, x):
    """x - trunc(x): the fraction, with the sign of x.

    Dtypes      floating
    """
    refuse("frac_cpu", x, "biuc")
    return x - xp.trunc(x)


# ---- bounds

_SIMPLE = {int, float, type(None)}
_CLAMP = ("Tensor input, Tensor min, Tensor max, *, Tensor out", "Tensor input, Number min, Number max, *, Tensor out")


def clamp(input, min=None, max=None, *, out=None):
    """``input`` kept within [min, max]; max where min is above it.

    Shapes      min, max: numbers, or tensors that broadcast; one of them may be None
    Dtypes      any but complex, promoted
    Derivative  1 within and at the bounds, 0 outside; by a bound 1 where it is the result
    Raises      RuntimeError where both bounds are None; TypeError for a number and a tensor

    >>> cudagrad.clamp(cudagrad.tensor([-1.0, 0.5, 2.0]), 0, 1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    if min.__class__ in _SIMPLE and max.__class__ in _SIMPLE and min is not max and isinstance(input, Tensor):
        if input.array.dtype.kind == "f":  # the common case: nothing to promote
            return _clamp_number(input, low=min, high=max, out=out)
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    tensors = [isinstance(bound, Tensor) for bound in (min, max) if bound is not None]
    if not any(tensors):
        min, max = plain(min), plain(max)
        return _clamp_number(_beside(input, min, max), low=min, high=max, out=out)
    if not all(tensors):
        raise no_overload("clamp", types_of(input, min, max), *_CLAMP)
    given = [t for t in (input, min, max) if t is not None]
    brought = iter(promote_all(TABLE["clamp_tensor"], given))
    low, high = None, None
    x = next(brought)
    if min is not None:
        low = next(brought)
    if max is not None:
        high = next(brought)
    return TABLE["clamp_tensor"].raw(x, low, high, out=out)


def _beside(input, *numbers):
    """``input`` in the dtype in which it meets these numbers."""
    try:
        category = input.dtype.category
        wanted = max([dtypes.category_of_number(v) for v in numbers if v is not None])
    except (AttributeError, StopIteration):
        raise no_overload("clamp", types_of(input, *numbers), *_CLAMP) from None
    return input if category >= wanted else cast(input, dtypes.number_dtype(wanted).numpy)


def clip(input, min=None, max=None, *, out=None):
    """``clamp(input, min, max)``."""
    return clamp(input, min, max, out=out)


def clamp_min(input, min, *, out=None):
    """``input`` where it is above ``min``, else ``min``."""
    return clamp(input, min, out=out)


def clamp_max(input, max, *, out=None):
    """``input`` where it is below ``max``, else ``max``."""
    return clamp(input, max=max, out=out)


def _inside(x, low, high):
    """Where x lies within its bounds; at them as ``GRADIENT_AT_BOUND`` says."""
    if GRADIENT_AT_BOUND:
        above, below = low is None or x >= low, high is None or x <= high
    else:
        above, below = low is None or x > low, high is None or x < high
    return above if below is True else below if above is True else above & below


def _bounded(xp, x, low, high):
    if x.dtype.kind == "c":
        raise NotImplementedError("clamp is not supported for complex types")
    if low is not None:
        x = xp.maximum(x, low)
    return x if high is None else xp.minimum(x, high)


@op(x=lambda m, g, x, low, high: m.only(g, _inside(x, low, high)), node="Clamp")
def clamp_number(xp, x, *, low, high):
    """x within two numbers, either of which may be None."""
    if x.dtype.kind != "f":
        low, high = (None if v is None else number(v, x) for v in (low, high))
    return _bounded(xp, x, low, high)


_clamp_number = TABLE["clamp_number"].raw


@op(
    x=lambda m, g, x, low, high: m.only(g, _inside(x, low, high)),
    low=lambda m, g, x, low, high: m.only(g, x < low if high is None else (x < low) & (low < high)),
    high=lambda m, g, x, low, high: m.only(g, x > high if low is None else (x > high) | (high < low)),
    broadcast=True,
    node="Clamp",
)
def clamp_tensor(xp, x, low=None, high=None):
    """x within two tensors, either of which may be None."""
    return _bounded(xp, x, low, high)


# ---- the larger and the smaller


def _real(name, x):
    if x.dtype.kind == "c":
        raise RuntimeError(f"{name} not implemented for complex tensors.")


def _ahead(m, g, loses, ties):
    g = m.only(g, ~loses)
    return g - m.only(g * 0.5, ties)


@op(
    x=lambda m, g, x, y: _ahead(m, g, x < y, x == y),
    y=lambda m, g, x, y: _ahead(m, g, y < x, x == y),
    promote=("x", "y"),
    numbers=(),
)
def maximum(xp, x, y):
    """The larger of x and y; nan where either is.

    Derivative  1 for the larger, a half for each where they are equal
    """
    _real("maximum", x)
    return xp.maximum(x, y)


@op(
    x=lambda m, g, x, y: _ahead(m, g, x > y, x == y),
    y=lambda m, g, x, y: _ahead(m, g, y > x, x == y),
    promote=("x", "y"),
    numbers=(),
)
def minimum(xp, x, y):
    """The smaller of x and y; nan where either is.

    Derivative  1 for the smaller, a half for each where they are equal
    """
    _real("minimum", x)
    return xp.minimum(x, y)


@op(
    x=lambda m, g, x, y: m.only(g, (x >= y) | (y != y)),
    y=lambda m, g, x, y: m.only(g, ~((x >= y) | (y != y))),
    promote=("x", "y"),
    numbers=(),
)
def fmax(xp, x, y):
    """The larger of x and y; the other one where one is nan.

    Derivative  1 for the one taken, x where they are equal
    """
    _real("fmax", x)
    return xp.fmax(x, y)


@op(
    x=lambda m, g, x, y: m.only(g, (x <= y) | (y != y)),
    y=lambda m, g, x, y: m.only(g, ~((x <= y) | (y != y))),
    promote=("x", "y"),
    numbers=(),
)
def fmin(xp, x, y):
    """The smaller of x and y; the other one where one is nan.

    Derivative  1 for the one taken, x where they are equal
    """
    _real("fmin", x)
    return xp.fmin(x, y)


# ---- values put in the place of others


@op(x=lambda m, g, x: m.only(g, m.isfinite(x)))
def nan_to_num(xp, x, *, nan=0.0, posinf=None, neginf=None):
    """x with numbers for nan and the infinities: 0 and the largest and smallest of the dtype unless given.

    Derivative  1 where x is finite, 0 elsewhere
    """
    if x.dtype.kind in "biu":
        return x.copy()
    if x.dtype.kind == "c":
        real, imag = (nan_to_num_part(xp, part, nan, posinf, neginf) for part in (x.real, x.imag))
        return (real + 1j * imag).astype(x.dtype)
    return nan_to_num_part(xp, x, nan, posinf, neginf)


def nan_to_num_part(xp, x, nan, posinf, neginf):
    limits = dtypes.finfo(dtypes.of_array(x))
    for value, found in (
        (0.0 if nan is None else nan, xp.isnan(x)),
        (limits.max if posinf is None else posinf, x == math.inf),
        (limits.min if neginf is None else neginf, x == -math.inf),
    ):
        x = xp.where(found, number(value, x), x)
    return x


@op(
    x=lambda m, g, x, out: m.only(g * (out / (x + (x == 0))), x != 0),
    y=_zero,
    promote=("x", "y"),
    floating=True,
)
def copysign(xp, x, y):
    """|x| with the sign of y, also of a zero y.

    Derivative  by x 1 or -1, 0 at 0; by y 0
    """
    return xp.copysign(x, y)


def _steps(input, values):
    if input.dtype is not values.dtype:
        raise RuntimeError(
            errors.text(
                "heaviside is not yet implemented for tensors with different dtypes.",
                f"got {input.dtype} and {values.dtype}",
            )
        )
    return input, values


@op(x=unknown("heaviside"), values=unknown("heaviside"), prepare=_steps, broadcast=True, node=UNKNOWN)
def heaviside(xp, x, values):
    """0 below 0, 1 above, and ``values`` at 0; of nan 0.

    Derivative  none: backward raises, as PyTorch's
    Raises      RuntimeError where the dtypes differ
    """
    if x.dtype.kind == "c":
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    return xp.where(x == 0, values, (x > 0).astype(x.dtype))


fix = trunc
