"""Dropout in all its forms: one op, whose mask is never stored but made again from the seed and offset of the call."""

import math
import warnings

from .. import errors
from ..backend import philox
from ..core.generator import generator_of
from ..core.op import TABLE, op
from ..core.promote import not_tensor
from ..core.tensor import Tensor
from .checks import number
from .outputs import takes_inplace

__all__ = ("alpha_dropout", "alpha_dropout_", "dropout", "dropout_", "feature_alpha_dropout", "feature_dropout")
FUNCTIONAL = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")

ALPHA = -1.7580993408473766  # minus scale times alpha of selu: where selu goes for large negative inputs


@op(x=lambda m, g, p, seed, offset, scale, dims: m.dropped(g, p=p, seed=seed, offset=offset, scale=scale, dims=dims))
def dropped(xp, x, *, p, seed, offset, scale, dims):
    """x * scale, or 0 with probability p; number i of the call (seed, offset) decides on element i.

    One decision a part of the first ``dims`` axes; None: one an element.

    Shapes      x, out: any
    Derivative  the same for g: the mask is made again from seed and offset
    """
    count = x.size if dims is None else math.prod(x.shape[:dims])
    out = xp.empty(x.shape, x.dtype)
    if dims is None:
        _drop(xp, xp.ascontiguousarray(x).reshape(-1), out.reshape(-1), p, seed, offset, scale)
    else:
        keep = philox.kept(xp, seed, offset, count, p).reshape(*x.shape[:dims], *(1,) * (x.ndim - dims))
        out[...] = x * (keep * _factor(xp, scale, x))
    return out


def _factor(xp, scale, x):
    """``scale`` in the dtype that a product with x is made in: float32 for half types."""
    return xp.float32(scale) if x.dtype.itemsize == 2 else number(scale, x)


def _drop(xp, x, out, p, seed, offset, scale):
    """Write x * scale or 0 into ``out``, both flat, a piece at a time while its decisions are in the cache."""
    factor, work = _factor(xp, scale, x), None
    for start, keep in philox.decided(xp, seed, offset, x.size, p):
        piece = slice(start, start + keep.size)
        if x.dtype.itemsize == 2:
            out[piece] = x[piece] * (keep * factor)
            continue
        # Three passes, no fresh temporary: 0.5 ns an element; a product with bools takes 0.6, np.where 2.5 (Zen 4)
        work = xp.empty(keep.size, x.dtype) if work is None else work
        times = work[: keep.size]
        times[...] = keep
        times *= factor
        xp.multiply(x[piece], times, out=out[piece])


def drawn(input):
    """Seed and offset of the next random numbers of the default generator of ``input``'s device."""
    if input.dtype.category < 2:
        first = f"result type Float can't be cast to the desired output type {input.dtype.legacy}"
        raise RuntimeError(
            errors.text(first, f"dropout got {input.dtype} {tuple(input.shape)}", "need a floating dtype")
        )
    return generator_of(input.device).draw()


def _call(input, p, scale, dims=None):
    """``dropped`` with the next random numbers of the device's default generator."""
    seed, offset = drawn(input)
    return dropped(input, p=float(p), seed=seed, offset=offset, scale=scale, dims=dims)


def scale_of(p):
    """What makes up for the share ``p`` that is dropped."""
    return 1 / (1 - p) if p != 1 else 0.0


def check_probability(input, p, error=ValueError):
    """Raise where ``input`` is no tensor or ``p`` not in [0, 1]."""
    if not isinstance(input, Tensor):
        raise not_tensor(TABLE["dropped"], input)
    if not 0 <= p <= 1:
        kind = error if p == p else RuntimeError
        raise kind(f"dropout probability has to be between 0 and 1, but got {p}")


@takes_inplace
def dropout(input, p=0.5, training=True):
    """Each element times 1 / (1 - p), or 0 with probability p; ``input`` itself where not ``training``.

    Shapes      any
    Dtypes      floating and complex
    Derivative  g times the same mask and factor
    Raises      ValueError where p is not in [0, 1], RuntimeError for integers
    Differs     p counts to the nearest multiple of 2^-16
    Source      Srivastava et al. 2014, Dropout, JMLR 15

    >>> dropout(ones(3), 1.0)
    tensor([0., 0., 0.])
    """
    check_probability(input, p)
    return _call(input, p, scale_of(p)) if training and p != 0 else input


def _features(input, p, training):
    """Whole channels, the parts of the first two axes, kept or dropped together."""
    if not training or p == 0:
        return input
    if input.ndim < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return _call(input, p, scale_of(p), 2)


@takes_inplace
def dropout1d(input, p=0.5, training=True):
    """Whole channels times 1 / (1 - p), or 0 with probability p.

    Shapes      [N,C,T] or [C,T]
    Raises      RuntimeError for another number of axes, ValueError where p is not in [0, 1]
    """
    check_probability(input, p)
    if input.ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D input. Note that dropout1d exists to "
            "provide channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional "
            "batch dimension (i.e. 2D or 3D inputs)."
        )
    return _call(input, p, scale_of(p), 2 if input.ndim == 3 else 1) if training and p != 0 else input


def _warn_ndim(name, input, spatial):
    warnings.warn(
        f"{name}: Received a {input.ndim}-D input to {name}, which is deprecated and will result in an error in a "
        "future release. To retain the behavior and silence this warning, please use dropout instead. Note that "
        f"{name} exists to provide channel-wise dropout on inputs with {spatial} spatial dimensions, a channel "
        f"dimension, and an optional batch dimension (i.e. {spatial + 1}D or {spatial + 2}D inputs).",
        stacklevel=4,
    )


@takes_inplace
def dropout2d(input, p=0.5, training=True):
    """Whole channels times 1 / (1 - p), or 0 with probability p.

    Shapes      [N,C,H,W]; [N,C,T] with a warning
    Raises      ValueError where p is not in [0, 1]
    """
    check_probability(input, p)
    if input.ndim not in (3, 4):
        _warn_ndim("dropout2d", input, 2)
    if input.ndim == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired "
            "- input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a "
            "future release to interpret the input as one without a batch dimension, i.e. shape (C, H, W). To maintain "
            "the 1D channel-wise dropout behavior, please switch to using dropout1d instead.",
            stacklevel=3,
        )
    return _features(input, p, training)


@takes_inplace
def dropout3d(input, p=0.5, training=True):
    """Whole channels times 1 / (1 - p), or 0 with probability p.

    Shapes      [N,C,D,H,W] or [C,D,H,W]
    Raises      ValueError where p is not in [0, 1]
    """
    check_probability(input, p)
    if input.ndim not in (4, 5):
        _warn_ndim("dropout3d", input, 3)
    if input.ndim != 4:
        return _features(input, p, training)
    return _call(input, p, scale_of(p), 1) if training and p != 0 else input


def _alpha(input, p, training, dims):
    """Dropped elements become ALPHA; then a * x + b, which gives mean 0 and variance 1 back."""
    if not training or p == 0:
        return input
    if p == 1:
        return _call(input, p, 0.0, dims)
    a = ((1 - p) * (1 + p * ALPHA**2)) ** -0.5
    # a * (keep * x + (1 - keep) * ALPHA) + b with b = -a * p * ALPHA
    return _call(input - ALPHA, p, a, dims) + a * ALPHA * (1 - p)


@takes_inplace
def alpha_dropout(input, p=0.5, training=False):
    """Dropout that keeps mean 0 and variance 1: with probability p selu's lower limit takes the element's place.

    Shapes      any
    Derivative  g times a where the element was kept, a the factor that restores the variance
    Raises      ValueError where p is not in [0, 1]
    Source      Klambauer et al. 2017, arXiv:1706.02515, section 3
    """
    check_probability(input, p)
    return _alpha(input, p, training, None)


@takes_inplace
def feature_alpha_dropout(input, p=0.5, training=False):
    """``alpha_dropout`` of whole channels, the parts of the first two axes.

    Shapes      [N,C,...]
    Raises      ValueError where p is not in [0, 1], RuntimeError for fewer than two axes
    """
    check_probability(input, p)
    if training and p != 0 and input.ndim < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return _alpha(input, p, training, 2)


@takes_inplace
def feature_dropout(input, p, train):
    """Whole channels, the parts of the first two axes, times 1 / (1 - p), or 0 with probability p.

    Raises      RuntimeError where p is not in [0, 1], or for fewer than two axes
    """
    check_probability(input, p, RuntimeError)
    return _features(input, p, train)


def dropout_(input, p=0.5, training=True):
    """``dropout`` in place."""
    return dropout(input, p, training, inplace=True)


def alpha_dropout_(input, p=0.5, training=False):
    """``alpha_dropout`` in place."""
    return alpha_dropout(input, p, training, inplace=True)
