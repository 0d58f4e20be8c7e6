"""Normalisation: over the batch, a layer, groups of channels or an instance; by the root mean square or a norm."""

from .. import dtypes
from ..core.modes import autocasts
from ..core.op import TABLE, op
from ..core.promote import not_tensor
from ..core.tensor import Tensor
from . import channelwise, rowwise
from .average_pooling import avg_pool2d
from .checks import count_of, refuse
from .normalizing import check_dtypes, check_values, reshaped, standardised_gradients
from .outputs import placed
from .padding import pad

__all__ = ("group_norm", "layer_norm", "rms_norm")


# ---- a layer


def _rows(x, shape):
    """x as a matrix whose rows are the parts of ``shape``."""
    length = count_of(shape, None)
    return x.reshape(x.size // length if length else 0, length)


def check_layer(name, input, normalized_shape, **affine):
    """``normalized_shape`` as a tuple, after PyTorch's checks."""
    if not isinstance(input, Tensor):
        raise not_tensor(TABLE[name], input)
    if isinstance(normalized_shape, int):
        raise TypeError(f"{name}(): argument 'normalized_shape' (position 2) must be tuple of ints, not int")
    shape = tuple(n.__index__() for n in normalized_shape)
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    for what, t in affine.items():
        if t is not None and t.array.shape != shape:
            raise RuntimeError(
                f"Expected {what} to be of same shape as normalized_shape, but got {what} of shape {list(t.shape)} and "
                f"normalized_shape = {list(shape)}"
            )
    if input.array.shape[-len(shape) :] != shape:
        inner = ", ".join(map(str, shape))
        star = "[*, " if name == "layer_norm" else "[*"
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape {star}{inner}], but got input of "
            f"size{list(input.shape)}"
        )
    check_dtypes(input, *affine.values())
    return shape


def _prepare_layer(input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    shape = check_layer("layer_norm", input, normalized_shape, weight=weight, bias=bias)
    return input, weight, bias, shape, eps


def layer_gradients(m, g, x, w, needs, shape, eps):
    """The gradients by x, weight and bias in terms of ops; of the latter two where ``needs`` says so."""
    last = tuple(range(len(x.shape) - len(shape), len(x.shape)))
    first = tuple(range(len(x.shape) - len(shape)))
    dx, h = standardised_gradients(m, g, x, w, last, eps)
    dw = m.sum(g * h, dim=first, keepdim=False) if needs[1] else None
    return dx, dw, m.sum(g, dim=first, keepdim=False) if needs[2] else None


def layer_fused(xp, g, x, w, needs, shape, mean, rstd):
    """The same on arrays, from the means and spreads of the forward."""
    flat = None if w is None else w.reshape(-1)
    dx, dw, db = rowwise.layer_backward(xp, _rows(g, shape), _rows(x, shape), flat, mean, rstd, needs)
    return reshaped(dx, x.shape, x), reshaped(dw, shape, w), reshaped(db, shape, w)


@op(prepare=_prepare_layer, joint=layer_gradients, fused=layer_fused, extras=("mean", "rstd"), node="NativeLayerNorm")
def layer_norm(xp, x, w=None, b=None, *, shape, eps):
    """(x - mean) / sqrt(var + eps) * w + b, mean and var over the last axes, those of ``normalized_shape``.

    Shapes      x, out [...,*normalized_shape]; weight, bias as normalized_shape
    Dtypes      floating; half types are computed in float32, weight and bias may be float32 beside them
    Derivative  by x: rstd * (g*w - mean(g*w) - h * mean(g*w*h)), h = (x - mean) * rstd; by w: sum of g*h; by b: of g
    Raises      RuntimeError where shapes or dtypes do not fit
    Source      Ba, Kiros, Hinton 2016, arXiv:1607.06450, equations 3 and 4

    >>> layer_norm(tensor([[1.0, 2.0, 3.0]]), (3,))
    tensor([[-1.2247,  0.0000,  1.2247]])
    """
    refuse("LayerNormKernelImpl", x, "biuc")
    w, b = (None if a is None else a.reshape(-1) for a in (w, b))
    out, mean, rstd = rowwise.layer_forward(xp, _rows(x, shape), w, b, eps)
    return out.reshape(x.shape), mean, rstd


def _prepare_rms(input, normalized_shape, weight=None, eps=None):
    shape = check_layer("rms_norm", input, normalized_shape, weight=weight)
    if eps is None and input.dtype.category == 2:
        eps = dtypes.finfo(input.dtype).eps
    return input, weight, shape, eps


def rms_gradients(m, g, x, w, needs, shape, eps):
    """The gradients by x and weight in terms of ops."""
    last = tuple(range(len(x.shape) - len(shape), len(x.shape)))
    dx, h = standardised_gradients(m, g, x, w, last, eps, centre=False)
    first = tuple(range(len(x.shape) - len(shape)))
    return dx, m.sum(g * h, dim=first, keepdim=False) if needs[1] else None


def rms_fused(xp, g, x, w, needs, shape, rstd):
    """The same on arrays, from the spreads of the forward."""
    flat = None if w is None else w.reshape(-1)
    g, rows = _rows(g, shape), _rows(x, shape)
    dx, dw, _ = rowwise.layer_backward(xp, g, rows, flat, None, rstd, (*needs, False), centre=False)
    return reshaped(dx, x.shape, x), reshaped(dw, shape, w)


@op(prepare=_prepare_rms, joint=rms_gradients, fused=rms_fused, extras=("rstd",), node="FusedRmsNorm")
def rms_norm(xp, x, w=None, *, shape, eps):
    """x / sqrt(mean of x^2 + eps) * w, the mean over the last axes, those of ``normalized_shape``.

    ``eps``: the dtype's own by default.

    Shapes      x, out [...,*normalized_shape]; weight as normalized_shape
    Dtypes      floating; half types are computed in float32
    Derivative  by x: r * (g*w - h * mean(g*w*h)), h = x * r; by w: sum of g*h
    Raises      RuntimeError where shapes or dtypes do not fit
    Source      Zhang, Sennrich 2019, arXiv:1910.07467, equation 4
    """
    refuse("rms_norm", x, "biuc")
    w = None if w is None else w.reshape(-1)
    out, _, rstd = rowwise.layer_forward(xp, _rows(x, shape), w, None, eps, centre=False)
    return out.reshape(x.shape), rstd


# ---- groups of channels


def _check_groups(input, groups, weight, bias):
    if not isinstance(input, Tensor):
        raise not_tensor(TABLE["group_norm"], input)
    channels, shape = input.size(1), list(input.shape)
    if groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {groups}")
    if channels % groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{shape} and num_groups={groups}"
        )
    for what, t in (("weight", weight), ("bias", bias)):
        if t is not None and tuple(t.shape) != (shape[1],):
            raise RuntimeError(
                f"Expected {what} to be a vector of size equal to the number of channels in input, but got {what} of "
                f"shape {list(t.shape)} and input of shape {shape}"
            )
    check_dtypes(input, weight, bias)


def _prepare_group(input, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True):
    _check_groups(input, num_groups, weight, bias)
    return input, weight, bias, num_groups, eps


def _group_gradients(m, g, x, w, needs, groups, eps):
    n, c = x.shape[:2]
    split = (n, groups, c // groups, count_of(x.shape[2:], None))
    by_group, d = m.reshape(x, shape=split), m.reshape(g, shape=split)
    factor = None if w is None else m.reshape(w, shape=(1, groups, c // groups, 1))
    dx, h = standardised_gradients(m, d, by_group, factor, (2, 3), eps)
    dw = m.reshape(m.sum(d * h, dim=(0, 3), keepdim=False), shape=(c,)) if needs[1] else None
    db = m.reshape(m.sum(d, dim=(0, 3), keepdim=False), shape=(c,)) if needs[2] else None
    return m.reshape(dx, shape=tuple(x.shape)), dw, db


def _group_fused(xp, g, x, w, needs, groups, mean, rstd):
    dx, dw, db = channelwise.group_backward(xp, g, x, w, groups, mean, rstd, needs)
    return dx, *(reshaped(d, (-1,), w) for d in (dw, db))


@op(prepare=_prepare_group, joint=_group_gradients, fused=_group_fused, extras=("mean", "rstd"), node="NativeGroupNorm")
def group_norm(xp, x, w=None, b=None, *, groups, eps):
    """(x - mean) / sqrt(var + eps) * weight + bias, mean and var over each of ``num_groups`` groups of channels.

    Shapes      x, out [N,C,*S]; weight, bias [C]
    Dtypes      floating; half types are computed in float32, weight and bias may be float32 beside them
    Derivative  as of ``layer_norm`` within a group
    Raises      RuntimeError where shapes or dtypes do not fit
    Source      Wu, He 2018, arXiv:1803.08494, equations 1, 2 and 7
    """
    refuse("GroupNormKernelImpl", x, "biuc")
    return channelwise.group_forward(xp, x, w, b, groups, eps)


def checked_group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """``nn.functional.group_norm``: ``group_norm`` of more than one value a group.

    Raises      ValueError for one value a group, RuntimeError where shapes or dtypes do not fit
    """
    if input.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.ndim}")
    shape = input.shape
    if num_groups == 0:
        raise ZeroDivisionError("integer division or modulo by zero")
    first = "Expected more than 1 value per channel when training"
    check_values(first, [shape[0] * shape[1] // num_groups, num_groups, *shape[2:]])
    return group_norm(input, num_groups, weight, bias, eps)


# ---- by a norm


@autocasts
def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    """input / max(norm, eps), the ``p``-norm over ``dim``.

    Shapes      any
    Derivative  at 0 that of input / eps
    """
    return placed("normalize", input / input.norm(p, dim, keepdim=True).clamp_min(eps), out)


def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """input / (k + alpha * mean of input^2 over ``size`` channels around) ** beta, channels outside counting as 0.

    Shapes      [N,C,*S], at least 3 dims
    Raises      ValueError for fewer dims
    Source      Krizhevsky, Sutskever, Hinton 2012, section 3.3
    """
    if input.ndim < 3:
        blanks = " " * 25
        raise ValueError(f"Expected 3D or higher dimensionality {blanks}input (got {input.ndim} dimensions)")
    if not input.numel():
        return input
    squares = (input * input).reshape(input.shape[0], 1, input.shape[1], -1)  # [N,1,C,S]
    squares = pad(squares, (0, 0, size // 2, (size - 1) // 2))
    mean = avg_pool2d(squares, (size, 1), stride=1).reshape(input.shape)
    return input / (mean * alpha + k) ** beta


FUNCTIONAL = {f.__name__: f for f in (layer_norm, rms_norm, local_response_norm, normalize)}
FUNCTIONAL["group_norm"] = checked_group_norm
