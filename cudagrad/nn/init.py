"""Fills tensors with their first values, in place and outside any graph."""

import functools
import math
import warnings

from ..backend import xp_of
from ..core.modes import no_grad
from ..core.tensor import wrap
from ..dtypes import float64

_LINEAR = ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
_GAINS = {**dict.fromkeys(_LINEAR, 1), "sigmoid": 1, "tanh": 5 / 3, "relu": math.sqrt(2), "selu": 3 / 4}


def calculate_gain(nonlinearity, param=None):
    """The factor by which a layer before this nonlinearity keeps the variance; ``param``: the slope of leaky_relu.

    Raises      ValueError for an unknown nonlinearity or a slope that is no number
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return _GAINS[nonlinearity]


@no_grad()
def uniform_(tensor, a=0.0, b=1.0, generator=None):
    """Numbers uniform between a and b."""
    return tensor.uniform_(a, b, generator=generator)


@no_grad()
def normal_(tensor, mean=0.0, std=1.0, generator=None):
    """Normal numbers."""
    return tensor.normal_(mean, std, generator=generator)


@no_grad()
def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """Normal numbers that lie between a and b.

    Differs     Made by inverting the distribution function: one uniform number an element, never a second try
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be "
            "incorrect.",
            stacklevel=3,
        )
    # Invert in the lower tail, where the distribution function has the finer steps.
    flip = a + b > 2 * mean
    low, high = (2 * mean - b, 2 * mean - a) if flip else (a, b)
    below, above = (0.5 * math.erfc((mean - edge) / (std * math.sqrt(2))) for edge in (low, high))
    u = tensor.detach().to(float64).uniform_(below, above, generator=generator)
    x = (u * 2 - 1).erfinv() * (std * math.sqrt(2)) + mean
    return tensor.copy_((2 * mean - x if flip else x).clamp(a, b))


@no_grad()
def constant_(tensor, val):
    """``val`` everywhere."""
    return tensor.fill_(val)


def ones_(tensor):
    """1 everywhere."""
    return constant_(tensor, 1.0)


@no_grad()
def zeros_(tensor):
    """0 everywhere."""
    return tensor.zero_()


@no_grad()
def eye_(tensor):
    """The identity matrix, or as much of it as fits."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    xp = xp_of(tensor.array)
    return tensor.copy_(wrap(xp.eye(*tensor.shape, dtype=tensor.array.dtype)))


@no_grad()
def dirac_(tensor, groups=1):
    """The weight of a convolution that hands its input channels on, as many as fit; per group."""
    if tensor.ndimension() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.size(0) % groups:
        raise ValueError("dim 0 must be divisible by groups")
    each = tensor.size(0) // groups
    middle = tuple(n // 2 for n in tensor.shape[2:])
    tensor.zero_()
    for group in range(groups):
        for channel in range(min(each, tensor.size(1))):
            tensor[(group * each + channel, channel, *middle)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor):
    """How many inputs an output sees and how many outputs an input feeds, for a weight [out, in, *window]."""
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    window = math.prod(tensor.shape[2:])
    return tensor.size(1) * window, tensor.size(0) * window


def _calculate_correct_fan(tensor, mode):
    modes = ["fan_in", "fan_out"]
    mode = mode.lower()
    if mode not in modes:
        raise ValueError(f"Mode {mode} not supported, please use one of {modes}")
    return _calculate_fan_in_and_fan_out(tensor)[modes.index(mode)]


def xavier_uniform_(tensor, gain=1.0, generator=None):
    """Uniform numbers of standard deviation gain * sqrt(2 / (fan_in + fan_out)).

    Source      Glorot & Bengio 2010, Understanding the difficulty of training deep feedforward neural networks
    """
    bound = math.sqrt(3) * gain * math.sqrt(2 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor, gain=1.0, generator=None):
    """Normal numbers of standard deviation gain * sqrt(2 / (fan_in + fan_out)).

    Source      Glorot & Bengio 2010
    """
    return normal_(tensor, 0.0, gain * math.sqrt(2 / sum(_calculate_fan_in_and_fan_out(tensor))), generator)


def _kaiming_std(tensor, a, mode, nonlinearity):
    """gain / sqrt(fan); None, with a warning, for a tensor without elements."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return None
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Uniform numbers of standard deviation gain / sqrt(fan); ``a``: the slope of leaky_relu.

    Source      He, Zhang, Ren, Sun 2015, arXiv:1502.01852
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else uniform_(tensor, -math.sqrt(3) * std, math.sqrt(3) * std, generator)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Normal numbers of standard deviation gain / sqrt(fan); ``a``: the slope of leaky_relu.

    Source      He, Zhang, Ren, Sun 2015, arXiv:1502.01852
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0.0, std, generator)


@no_grad()
def orthogonal_(tensor, gain=1, generator=None):
    """A (semi-)orthogonal matrix times ``gain``; dimensions after the first are taken as one.

    Source      Saxe, McClelland, Ganguli 2013, arXiv:1312.6120; made uniform as in Mezzadri 2006, arXiv:math-ph/0609050
    """
    if tensor.ndimension() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    xp = xp_of(tensor.array)
    rows = tensor.size(0)
    drawn = tensor.detach().to(float64).normal_(0, 1, generator=generator).array.reshape(rows, -1)
    wide = drawn.shape[0] < drawn.shape[1]
    q, r = xp.linalg.qr(drawn.T if wide else drawn)
    q = q * xp.sign(xp.diagonal(r))
    q = (q.T if wide else q) * gain
    return tensor.copy_(wrap(xp.ascontiguousarray(q.reshape(tensor.shape))))


@no_grad()
def sparse_(tensor, sparsity, std=0.01, generator=None):
    """Normal numbers, with the share ``sparsity`` of each column set to zero.

    Source      Martens 2010, Deep learning via Hessian-free optimization
    """
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    zeros = math.ceil(sparsity * tensor.size(0))
    tensor.normal_(0, std, generator=generator)
    if zeros:
        order = tensor.detach().to(float64, copy=True).uniform_(generator=generator).argsort(dim=0)  # [N,M]
        tensor.scatter_(0, order[:zeros], 0)
    return tensor


def _deprecated(function):
    """The old name, without the underscore, of a function of this file."""
    new = function.__name__
    old = new[:-1]

    @functools.wraps(function)
    def renamed(*args, **kwargs):
        warnings.warn(f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.", FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    renamed.__name__ = renamed.__qualname__ = old
    renamed.__doc__ = f"The old name of :func:`{new}`."
    return renamed


uniform, normal, constant, eye, dirac = map(_deprecated, (uniform_, normal_, constant_, eye_, dirac_))
xavier_uniform, xavier_normal = map(_deprecated, (xavier_uniform_, xavier_normal_))
kaiming_uniform, kaiming_normal = map(_deprecated, (kaiming_uniform_, kaiming_normal_))
orthogonal, sparse = map(_deprecated, (orthogonal_, sparse_))
