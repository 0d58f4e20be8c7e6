"""Random contents put into tensors in place."""

import math

from .. import dtypes
from ..backend import variates, xp_of
from ..core.inplace import overwrite
from ..core.writable import check_writable
from .factory import C_NAMES, index_of, number_of
from .random import MANTISSA, SPOKEN, drawn, floating, integers, limits, unit


def _bounds(name, args, named, defaults):
    """The values of the parameters ``defaults`` (name -> default) from positional and keyword arguments.

    PyTorch calls one of them ``from``, which Python's syntax cannot.
    """
    values = dict(defaults)
    if len(args) > len(values):
        raise TypeError(
            f"{name}() takes from 1 to {len(values) + 1} positional arguments but {len(args) + 1} were given"
        )
    values.update(zip(values, args))
    for key, value in named.items():
        if key not in values:
            raise TypeError(f"{name}() got an unexpected keyword argument '{key}'")
        values[key] = value
    return values.values()


def uniform_(input, *bounds, generator=None, **named):
    """Fill with uniform numbers of [from, to): ``uniform_(from=0, to=1)``, in place.

    Raises      RuntimeError where to < from or the dtype cannot hold the span
    """
    d = floating("check_uniform_bounds", input.dtype)
    low, high = _bounds("uniform_", bounds, named, {"from": 0.0, "to": 1.0})
    low, high = float(number_of("uniform_", "from", 1, low)), float(number_of("uniform_", "to", 2, high))
    largest, name = dtypes.finfo(d.to_real()).max, C_NAMES[d.to_real()]
    for what, value in (("from", low), ("to", high)):
        if not abs(value) <= largest:
            raise RuntimeError(f"{what} is out of bounds for {name}")
    if low > high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}")
    if high - low > largest:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{name}>::max(), but found to={high:g} and from={low:g} "
            "which result in to-from to exceed the limit"
        )
    check_writable(input)
    return overwrite(input, drawn(variates.uniform, input.shape, d, input.device, generator, low, high), "uniform_")


def normal_(input, mean=0, std=1, *, generator=None):
    """Fill with normal numbers, in place.

    Raises      RuntimeError for a negative std
    """
    d = floating("normal_kernel_cpu", input.dtype)
    mean, std = number_of("normal_", "mean", 1, mean), number_of("normal_", "std", 2, std)
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    check_writable(input)
    if d.is_complex and mean != 0:
        array = drawn(variates.normal, input.shape, d, input.device, generator, 0.0, std * unit(d)) + mean
    else:
        array = drawn(variates.normal, input.shape, d, input.device, generator, float(mean), std * unit(d))
    return overwrite(input, array, "normal_")


def exponential_(input, lambd=1, *, generator=None):
    """Fill with exponential numbers of mean 1 / lambd, all above 0, in place.

    Raises      RuntimeError where lambd is not above 0 or the dtype is not floating
    """
    if input.dtype.category != 2:
        raise RuntimeError(
            "Exponential distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {input.dtype.legacy}"
        )
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    check_writable(input)
    array = drawn(variates.exponential, input.shape, input.dtype, input.device, generator, float(lambd))
    return overwrite(input, array, "exponential_")


def geometric_(input, p, *, generator=None):
    """Fill with the number of trials up to the first success, each of probability p: 1, 2, ..., in place.

    Raises      RuntimeError where p is not in (0, 1)
    """
    if input.dtype.category in (0, 3):
        raise NotImplementedError(f"\"geometric_cpu\" not implemented for '{input.dtype.legacy}'")
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    check_writable(input)
    waits = drawn(variates.exponential, input.shape, dtypes.float64, input.device, generator, -math.log1p(-p))
    xp = xp_of(waits)
    limit = 2.0**62 if input.dtype.category == 2 else limits(input.dtype)[1]
    return overwrite(input, xp.minimum(xp.ceil(waits), limit).astype(input.dtype.numpy), "geometric_")


def log_normal_(input, mean=1, std=2, *, generator=None):
    """Fill with exp of normal numbers of this mean and std, in place.

    Raises      RuntimeError for a std that is not above 0
    """
    if input.dtype.category != 2:
        raise NotImplementedError(f"\"log_normal_cpu\" not implemented for '{input.dtype.legacy}'")
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    check_writable(input)
    array = drawn(variates.normal, input.shape, input.dtype, input.device, generator, float(mean), float(std))
    return overwrite(input, xp_of(array).exp(array), "log_normal_")


def cauchy_(input, median=0, sigma=1, *, generator=None):
    """Fill with Cauchy numbers median + sigma * tan(angle), in place.

    Raises      RuntimeError for a sigma that is not above 0
    """
    if input.dtype.category != 2:
        raise RuntimeError(
            "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {SPOKEN.get(input.dtype, C_NAMES[input.dtype])}"
            + (" int" if input.dtype is dtypes.int64 else "")
        )
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    check_writable(input)
    array = drawn(variates.cauchy, input.shape, input.dtype, input.device, generator, float(median), float(sigma))
    return overwrite(input, array, "cauchy_")


def random_(input, *bounds, generator=None, **named):
    """Fill with integers of [from, to): ``random_()``, ``random_(to)``, ``random_(from, to)``, in place.

    Without ``to`` up to the largest integer of the dtype, or the largest up to which it holds all of them.

    Raises      RuntimeError where from >= to or the dtype cannot hold them
    """
    d = input.dtype
    if len(bounds) == 1 and not named:
        low, high = 0, bounds[0]
    else:
        low, high = _bounds("random_", bounds, named, {"from": 0, "to": None})
    if high is None:
        high = (2 ** MANTISSA[d] if d in MANTISSA else limits(d)[1]) + 1
    check_writable(input)
    low, high = index_of("random_", "from", 1, low), index_of("random_", "to", 2, high)
    return overwrite(input, integers(input.shape, d, input.device, generator, low, high), "random_")


METHODS = ("uniform_", "normal_", "exponential_", "geometric_", "log_normal_", "cauchy_", "random_")
