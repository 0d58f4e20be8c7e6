"""Samples of distributions whose parameters are tensors: ops that are pure functions of their (seed, offset)."""

import math

import numpy as np

from .. import dtypes
from ..backend import variates, xp_of
from ..core.generator import generator_of
from ..core.inplace import overwrite
from ..core.op import TABLE, op
from ..core.promote import not_tensor
from ..core.shape import strided
from ..core.tensor import Tensor
from ..core.writable import check_writable
from .casting import to_dtype
from .factory import finish, number_of, size_of, target_of, wanted
from .outputs import placed
from .random import drawn

__all__ = ("bernoulli", "binomial", "multinomial", "normal", "poisson")

TRIES = 64  # attempts of a rejection method, each with an offset of its own; one in ten fails, so 10^-64 are left over


def _nothing(g):
    """A sample does not follow its parameters smoothly: no gradient, as zeros, also where g is infinite."""
    return (g != g) * 0.0


def _next(input, generator, calls=1):
    return generator_of(input.device, generator).draw(calls)


def _floating(kernel, input, name="normal"):
    if not isinstance(input, Tensor):
        raise not_tensor(TABLE[name], input)
    if input.dtype.category != 2:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{input.dtype.legacy}'")


# ---- bernoulli


def _bernoulli(input, p=None, *, generator=None):
    if not isinstance(input, Tensor):
        raise not_tensor(TABLE["bernoulli"], input)
    if p is None:
        _floating("bernoulli_tensor_cpu_" + ("self_" if input.dtype.is_complex else "p_"), input, "bernoulli")
        _check_chances(input.array)
    else:
        _check_chance(p)
    return input, p, *_next(input, generator)


def _check_chance(p):
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")


def _check_chances(array):
    if not ((array >= 0) & (array <= 1)).all():
        raise RuntimeError(
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message be improved?  If "
            "so, please report an enhancement request to PyTorch.)"
        )


@op(prepare=_bernoulli, x=lambda m, g: _nothing(g))
def bernoulli(xp, x, *, p, seed, offset):
    """1 with probability x (or ``p``), else 0: uniform < x.

    Dtypes      floating, x in [0, 1]; with ``p`` any, x gives shape and dtype alone
    Derivative  0
    Raises      RuntimeError where a probability is outside [0, 1]
    """
    if p is not None:
        return variates.happens(xp, seed, offset, x.size, p).reshape(x.shape).astype(x.dtype)
    kind = x.dtype if x.dtype == np.float64 else np.float32
    return (variates.uniform(xp, seed, offset, x.size, kind).reshape(x.shape) < x).astype(x.dtype)


def bernoulli_(input, p=0.5, *, generator=None):
    """Fill with 1 with probability ``p`` (a number, or a tensor that broadcasts), else 0, in place."""
    check_writable(input)
    if not isinstance(p, Tensor):
        _check_chance(p)
        seed, offset = _next(input, generator)
        chosen = variates.happens(xp_of(input.array), seed, offset, input.array.size, p)
        return overwrite(input, chosen.reshape(input.array.shape), "bernoulli_")
    _floating("bernoulli_tensor_cpu_p_", p)
    chances = p.detach().expand(*input.shape)
    return overwrite(input, bernoulli(chances, generator=generator).array, "bernoulli_")


# ---- normal


def _normal_of(mean, std, generator):
    if std.dtype.is_complex:
        raise RuntimeError("normal expects standard deviation to be non-complex")
    if std.array.size and not (std.array >= 0).all():
        raise RuntimeError("normal expects all elements of std >= 0.0")
    return sample_normal(mean, std, *_next(mean, generator))


@op(x=lambda m, g: _nothing(g), y=lambda m, g: _nothing(g), broadcast=True, node="Normal")
def sample_normal(xp, x, y, *, seed, offset):
    """Normal numbers of mean x and standard deviation y, in the dtype of x.

    Derivative  0
    """
    shape = np.broadcast_shapes(x.shape, y.shape)
    count, real = math.prod(shape), x.dtype
    if x.dtype.kind == "c":
        real = np.dtype(f"f{x.dtype.itemsize // 2}")
        z = variates.normal(xp, seed, offset, 2 * count, real, 0.0, math.sqrt(0.5)).view(x.dtype)
    else:
        z = variates.normal(xp, seed, offset, count, real)
    return z.reshape(shape) * y.astype(real) + x


def normal(
    mean,
    std=None,
    size=None,
    *,
    generator=None,
    out=None,
    dtype=None,
    layout=strided,
    device=None,
    pin_memory=False,
    requires_grad=False,
):
    """Normal numbers: of tensors ``mean`` and ``std`` (either may be a number), or of two numbers and a ``size``.

    Shapes      mean and std broadcast against each other, or ``size``
    Dtypes      that of mean, else of std; the default floating dtype for numbers
    Derivative  0 by both
    Raises      RuntimeError for a negative or complex std

    >>> normal(0.0, 1.0, (2, 3)).shape
    torch.Size([2, 3])
    """
    tensors = isinstance(mean, Tensor), isinstance(std, Tensor)
    if not any(tensors):
        if size is None or std is None:
            got = ", ".join(type(v).__name__ for v in (mean, std) if v is not None)
            raise TypeError(f"normal() received an invalid combination of arguments - got ({got})")
        place = layout, device, pin_memory, requires_grad
        return _normal_by_size(mean, std, size, generator, out, dtype, place)
    std = 1.0 if std is None else std
    if not tensors[1]:
        std = _number(std, mean, "std")
        if std.array < 0:
            raise RuntimeError(f"normal expects std >= 0.0, but found std {std.item():g}")
    if not tensors[0]:
        mean = _number(mean, std, "mean")
    if mean.dtype.category < 2:
        raise NotImplementedError(f"\"normal_kernel_cpu\" not implemented for '{mean.dtype.legacy}'")
    if std.dtype.category < 2:
        std = to_dtype(std, mean.dtype.to_real())
    return placed("normal", _normal_of(mean, std, generator), out)


def _number(value, like, name):
    """A number beside a tensor, as a 0-d tensor of its real dtype on its device."""
    value = number_of("normal", name, 1 + (name == "std"), value)
    d = like.dtype.to_real() if like.dtype.category >= 2 else dtypes.get_default_dtype()
    if isinstance(value, complex):
        if name == "std":
            raise RuntimeError("normal expects standard deviation to be non-complex")
        d = d.to_complex()
    return like.new_tensor(value, dtype=d)


def _normal_by_size(mean, std, size, generator, out, dtype, place):
    layout, device, pin_memory, requires_grad = place
    mean, std = number_of("normal", "mean", 1, mean), number_of("normal", "std", 2, std)
    shape, d = size_of("normal", (size,)), wanted("normal", dtype, out)
    if d.category < 2:
        raise NotImplementedError(f"\"normal_kernel_cpu\" not implemented for '{d.legacy}'")
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    target = out.device if out is not None else target_of(device, layout)
    spread = std * (math.sqrt(0.5) if d.is_complex else 1.0)
    array = drawn(variates.normal, shape, d, target, generator, 0.0 if d.is_complex else float(mean), spread)
    if d.is_complex:
        array += mean
    return finish(array, requires_grad, pin_memory, out, "normal")


# ---- multinomial


def multinomial(input, num_samples, replacement=False, *, generator=None, out=None):
    """Indices drawn with probabilities in proportion to ``input``, row by row.

    Shapes      input: [V] or [N, V]; out: [num_samples] or [N, num_samples]
    Dtypes      floating; out int64
    Raises      RuntimeError for other shapes and dtypes, for probabilities that are negative, not finite or all 0, and
                for more samples than categories without replacement
    Source      without replacement: Efraimidis and Spirakis 2006, the largest of input / exponential
    """
    _check_multinomial(input, num_samples, replacement, out)
    p, xp = input.array.astype(np.float64), xp_of(input.array)
    rows, categories = p.shape if p.ndim == 2 else (1, p.shape[0])
    p = p.reshape(rows, categories)
    seed, offset = _next(input, generator)
    if replacement and num_samples > 1:
        u = variates.uniform(xp, seed, offset, rows * num_samples, np.float64).reshape(rows, num_samples)
        index = _inverse(xp, p, u)
    else:
        waits = variates.exponential(xp, seed, offset, p.size, np.float64).reshape(p.shape)
        keys = xp.divide(p, waits, out=waits)
        if num_samples == 1:
            index = xp.argmax(keys, axis=1)[:, None]
        else:
            index = xp.argsort(-keys, axis=1, kind="stable")[:, :num_samples]
    index = xp.ascontiguousarray(index, dtype=np.int64)
    return finish(index[0] if input.array.ndim == 1 else index, out=out, name="multinomial")


def _check_multinomial(input, num_samples, replacement, out):
    if not isinstance(input, Tensor):
        raise not_tensor(TABLE["bernoulli"], input)
    if out is not None and out.dtype is not dtypes.int64:
        raise RuntimeError(f"multinomial expects Long tensor out, got: {out.dtype.legacy}")
    if input.array.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if input.dtype.category != 2:
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {input.dtype.legacy}")
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if input.array.shape[-1] > 1 << 24:
        raise RuntimeError("number of categories cannot exceed 2^24")
    if not replacement and num_samples > input.array.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    p = input.array
    if not ((p >= 0) & (p < np.inf)).all():
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if p.size and not (p > 0).any(axis=-1).all():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")


def _inverse(xp, p, u):
    """For each row, the categories at which the running sum of p passes u times its total.

    All rows are searched as one: row r lies in [r, r + 1) of a single sorted array.
    """
    running = xp.cumsum(p, axis=1)
    running /= running[:, -1:]
    last = (running < 1).sum(axis=1)[:, None]  # rounding of r + u may lead past the last category that has a chance
    row = xp.arange(p.shape[0])[:, None]
    found = xp.searchsorted((running + row).ravel(), (u + row).ravel(), side="right").reshape(u.shape)
    return xp.minimum(found - row * p.shape[1], last)


# ---- counts


def _poisson(input, generator=None):
    _floating("poisson_cpu", input, "poisson")
    if not (input.array >= 0).all():
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    return input, *_next(input, generator, TRIES)


@op(prepare=_poisson, x=lambda m, g: _nothing(g))
def poisson(xp, x, *, seed, offset):
    """Poisson numbers of rate x, in the dtype of x.

    Derivative  0
    Raises      RuntimeError for a negative rate, NotImplementedError where x is not floating
    Source      rates from 10 on: Hoermann 1993, the transformed rejection method for Poisson, algorithm PTRS
    """
    rate = x.astype(np.float64).ravel()
    small = xp.minimum(rate, 10)
    ratios = (small / k for k in range(1, 128))
    out = _by_inversion(xp, xp.exp(-small), ratios, variates.uniform(xp, seed, offset, rate.size, np.float64))
    large = xp.flatnonzero(rate >= 10)
    if large.size:
        rate = rate[large]
        b = 0.931 + 2.53 * xp.sqrt(rate)
        a = -0.059 + 0.02483 * b
        log_rate = xp.log(rate)
        curve = a, b, rate + 0.43, 0.9277 - 3.6224 / (b - 2), 1.1239 + 1.1328 / (b - 3.4)

        def log_density(k):
            return k * log_rate - rate - _log_factorial(xp, k)

        out[large] = _by_rejection(xp, curve, log_density, out.size, large, seed, offset)
    return out.reshape(x.shape).astype(x.dtype)


def _binomial(count, prob, generator=None):
    for name, t in (("count", count), ("prob", prob)):
        if not isinstance(t, Tensor):
            raise not_tensor(TABLE["binomial"], count, prob)
        if t.dtype.category != 2:
            raise ValueError(f"binomial only supports floating-point dtypes for {name}, got: {t.dtype.legacy}")
    if prob.dtype is not count.dtype:
        raise RuntimeError(f"Found dtype {prob.dtype.legacy} but expected {count.dtype.legacy}")
    return count, prob, *_next(count, generator, TRIES)


@op(prepare=_binomial, x=lambda m, g: _nothing(g), y=lambda m, g: _nothing(g), broadcast=True)
def binomial(xp, x, y, *, seed, offset):
    """How many of x trials succeed, each with probability y; in the dtype of both.

    A count below 0 counts as 0, a probability outside [0, 1] as the nearer of the two.

    Derivative  0
    Raises      ValueError for dtypes that are not floating, RuntimeError where they differ
    Source      means from 10 on: Hoermann 1993, the generation of binomial random variates, algorithm BTRS
    """
    shape = np.broadcast_shapes(x.shape, y.shape)
    n, p = (xp.broadcast_to(v, shape).astype(np.float64).ravel() for v in (x, y))
    n, p = xp.maximum(xp.floor(n), 0), xp.clip(p, 0, 1)
    flipped = p > 0.5
    p = xp.where(flipped, 1 - p, p)
    large = xp.flatnonzero(n * p >= 10)
    odds = p / (1 - p)
    small = xp.where(n * p >= 10, 0, n)
    ratios = ((small - k + 1) * odds / k for k in range(1, 128))
    out = _by_inversion(xp, (1 - p) ** small, ratios, variates.uniform(xp, seed, offset, n.size, np.float64))
    out = xp.minimum(out, n)
    if large.size:
        out[large] = _binomial_by_rejection(xp, n[large], p[large], out.size, large, seed, offset)
    return xp.where(flipped, n - out, out).reshape(shape).astype(x.dtype)


def _binomial_by_rejection(xp, n, p, count, where, seed, offset):
    log_odds = xp.log(p / (1 - p))
    spread = xp.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    curve = a, b, n * p + 0.5, 0.92 - 4.2 / b, (2.83 + 5.1 / b) * spread
    mode = xp.floor((n + 1) * p)
    at_mode = _log_factorial(xp, mode) + _log_factorial(xp, n - mode)

    def log_density(k):
        density = at_mode - _log_factorial(xp, k) - _log_factorial(xp, xp.maximum(n - k, 0)) + (k - mode) * log_odds
        return xp.where(k > n, -np.inf, density)

    return _by_rejection(xp, curve, log_density, count, where, seed, offset)


def _log_factorial(xp, k):
    return TABLE["lgamma"].forward(xp, k + 1)


def _by_inversion(xp, first, ratios, u):
    """The smallest k whose distribution function passes u: P(0) = first, P(k) = P(k - 1) * ratio."""
    term, total, out = first, first.copy(), xp.zeros_like(u)
    for ratio in ratios:
        more = u >= total
        if not more.any():
            break
        out += more
        term = term * ratio
        total += term
    return out


def _by_rejection(xp, curve, log_density, count, where, seed, offset):
    """Hoermann's transformed rejection, for the elements ``where`` of ``count``.

    Attempt t takes the 64-bit numbers 2i and 2i + 1 of call offset + t, t = 1, 2, ...; the first that is taken counts.
    """
    a, b, center, quick, scale = curve
    out, left = xp.floor(center), xp.ones(center.shape, bool)
    for t in range(1, TRIES):
        pair = variates.uniform(xp, seed, (offset + t) % 2**64, 2 * count, np.float64).reshape(count, 2)[where]
        u, v = pair[:, 0] - 0.5, pair[:, 1]
        edge = xp.maximum(0.5 - xp.abs(u), 1e-100)
        k = xp.floor((2 * a / edge + b) * u + center)
        height = xp.log(xp.maximum(v, 1e-300) * scale / (a / edge**2 + b))
        taken = (edge >= 0.07) & (v <= quick) | (k >= 0) & (height <= log_density(xp.maximum(k, 0)))
        taken &= left
        out[taken] = k[taken]
        left &= ~taken
        if not left.any():
            break
    return out


METHODS = {"bernoulli": bernoulli, "bernoulli_": bernoulli_, "multinomial": multinomial}
