"""Tensors of numbers in order: ranges, the identity, powers."""

import builtins
import math
import warnings

import numpy as np

from .. import dtypes
from ..backend import to_device
from ..core.op import TABLE
from ..core.promote import not_tensor
from ..core.shape import strided
from ..core.tensor import Tensor
from .creation import ones
from .factory import build, finish, index_of, number_of, target_of, wanted

__all__ = ("arange", "eye", "linspace", "logspace", "range", "vander")

_ARANGE = "arange() received an invalid combination of arguments - got "


def arange(
    *bounds,
    start=0,
    end=None,
    step=1,
    out=None,
    dtype=None,
    layout=strided,
    device=None,
    pin_memory=False,
    requires_grad=False,
):
    """start, start + step, ... up to but not including end: ``arange(end)``, ``arange(start, end)``, ``(..., step)``.

    Shapes      [ceil((end - start) / step)]
    Dtypes      int64 where all three are integers, else the default floating dtype
    Raises      RuntimeError where step is 0 or leads away from end, or a bound is not finite
    """
    if len(bounds) > 3 or (not bounds and end is None and start == 0):
        raise TypeError(_ARANGE + f"({', '.join(type(b).__name__ for b in bounds)})")
    if len(bounds) == 1:
        start, end = (start, bounds[0]) if end is None else (bounds[0], end)
    elif bounds:
        start, end, step = (*bounds, step)[:3]
    if end is None:
        raise TypeError('arange() missing 1 required positional arguments: "end"')
    names = (("end", end),) if len(bounds) == 1 else (("start", start), ("end", end), ("step", step))
    given = {n: number_of("arange", n, i, v) for i, (n, v) in enumerate(names, 1)}
    start, end, step = given.get("start", start), given["end"], given.get("step", step)
    start = number_of("arange", "start", 1, start)
    whole = all(isinstance(v, builtins.int) for v in (start, end, step))
    d = wanted("arange", dtype, out, dtypes.int64 if whole else None)
    if d.category in (0, 3):
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{d.legacy}'")
    start, count, step = _steps(start, end, step, d)
    target = out.device if out is not None else target_of(device, layout)
    array = build(target, lambda xp: _progression(xp, start, step, count, d))
    return finish(array, requires_grad, pin_memory, out, "arange")


def _steps(start, end, step, d):
    """(start, count, step), checked; in int64 all three are cut to integers before they are counted."""
    for v in (start, end, step):
        if isinstance(v, builtins.complex):
            raise RuntimeError("value cannot be converted to type double without overflow")
        if isinstance(v, builtins.int) and not -(2**63) <= v < 2**63:
            raise RuntimeError("value cannot be converted to type int64_t without overflow")
    if not math.isfinite(start) or not math.isfinite(end):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if d is dtypes.int64:
        start, end, step = int(start), int(end), int(step)
        if step == 0:
            raise ValueError("step must be nonzero")
    if (end - start) * (1 if step > 0 else -1) < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    whole = all(isinstance(v, builtins.int) for v in (start, end, step))
    return start, -((start - end) // step) if whole else math.ceil((end - start) / step), step


def _progression(xp, start, step, count, d):
    """start + step * i for i < count, computed in int64 or float64 and rounded once."""
    if isinstance(start, builtins.int) and isinstance(step, builtins.int):
        wide = xp.arange(count, dtype=np.int64)
        if step != 1:
            wide *= step
        if start != 0:
            wide += start
    else:
        wide = xp.arange(count, dtype=np.float64) * step + start
    return wide.astype(d.numpy, copy=False)


def range(start=0, end=None, step=1, *, out=None, dtype=None, layout=strided, device=None, requires_grad=False):
    """start, start + step, ..., end included; the default floating dtype. Deprecated: use ``arange``."""
    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. Instead, use torch.arange, which produces values in [start, end).",
        UserWarning,
        stacklevel=2,
    )
    if end is None:
        start, end = 0, start
    start, end, step = (number_of("range", n, i, v) for i, (n, v) in enumerate(zip("ses", (start, end, step)), 1))
    d = wanted("range", dtype, out)
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) * (1 if step > 0 else -1) < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    count = int((end - start) / step) + 1
    target = out.device if out is not None else target_of(device, layout)
    array = build(target, lambda xp: _progression(xp, start, step, count, d))
    return finish(array, requires_grad, False, out, "range")


def _spaced(name, start, end, steps, dtype, out, extra=()):
    """(points in float64 or complex128 as a NumPy array, dtype) of linspace and logspace."""
    numbers = []
    for which, v in (("start", start), ("end", end)):
        if isinstance(v, Tensor) and v.array.ndim:
            raise RuntimeError(
                f"{name} only supports 0-dimensional start and end tensors, but got {which} with {v.array.ndim} "
                "dimension(s)."
            )
        numbers.append(number_of(name, which, len(numbers) + 1, v))
    start, end = numbers
    if not hasattr(steps, "__index__"):
        got = ", ".join(type(v).__name__ for v in (start, end, steps))
        raise TypeError(f"{name}() received an invalid combination of arguments - got ({got})")
    steps = steps.__index__()
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    mixed = any(isinstance(v, builtins.complex) for v in (start, end, *extra))
    inferred = dtypes.get_default_dtype().to_complex() if mixed else None
    d = wanted(name, dtype, out, inferred)
    if mixed and d.category < 3:
        raise RuntimeError(
            f"torch.{name}(): inferred dtype {inferred_name(inferred)} can't be safely cast to passed dtype {d.legacy}"
        )
    if d.category == 0:
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for 'Bool'")
    if d.category == 1:  # PyTorch takes both ends in the dtype of the result
        start, end = builtins.int(start), builtins.int(end)
    return _points(start, end, steps, np.complex128 if mixed else np.float64), d


def inferred_name(d):
    """The name of a complex dtype in PyTorch's message."""
    return f"c10::complex<{'double' if d is dtypes.complex128 else 'float'}>"


def _points(start, end, steps, kind):
    """``steps`` evenly spaced numbers, each counted from the nearer end, so that both ends are met exactly."""
    if steps < 2:
        return np.full(steps, start, kind)
    step = (end - start) / (steps - 1)
    i = np.arange(steps)
    return np.where(i < steps // 2, start + step * i, end - step * (steps - 1 - i)).astype(kind)


def _landed(points, d, out, layout, device, pin_memory, requires_grad, name):
    """The points, rounded once to dtype ``d``, as a tensor."""
    with np.errstate(over="ignore"):
        array = (np.trunc(points).astype(np.int64) if d.category == 1 else points).astype(d.numpy)
    target = out.device if out is not None else target_of(device, layout)
    return finish(to_device(array, target), requires_grad, pin_memory, out, name)


def linspace(
    start,
    end,
    steps,
    *,
    out=None,
    dtype=None,
    layout=strided,
    device=None,
    pin_memory=False,
    requires_grad=False,
):
    """``steps`` evenly spaced numbers from start to end, both included.

    Dtypes      the default floating dtype, complex where a bound is
    Raises      RuntimeError for a negative count or bounds with dimensions
    """
    points, d = _spaced("linspace", start, end, steps, dtype, out)
    return _landed(points, d, out, layout, device, pin_memory, requires_grad, "linspace")


def logspace(
    start,
    end,
    steps,
    base=10.0,
    *,
    out=None,
    dtype=None,
    layout=strided,
    device=None,
    pin_memory=False,
    requires_grad=False,
):
    """base to the power of ``steps`` evenly spaced numbers from start to end."""
    points, d = _spaced("logspace", start, end, steps, dtype, out)
    powers = np.power(np.asarray(base, points.dtype), points)
    return _landed(powers, d, out, layout, device, pin_memory, requires_grad, "logspace")


def eye(n, m=None, *, out=None, dtype=None, layout=strided, device=None, pin_memory=False, requires_grad=False):
    """The n by m matrix (n by n) with ones on the diagonal.

    Raises      RuntimeError for a negative size
    """
    n = index_of("eye", "n", 1, n)
    m = n if m is None else index_of("eye", "m", 2, m)
    for letter, count in (("n", n), ("m", m)):
        if count < 0:
            raise RuntimeError(f"{letter} must be greater or equal to 0, got {count}")
    d = wanted("eye", dtype, out)
    target = out.device if out is not None else target_of(device, layout)
    return finish(build(target, lambda xp: xp.eye(n, m, dtype=d.numpy)), requires_grad, pin_memory, out, "eye")


def vander(x, N=None, increasing=False):
    """The Vandermonde matrix: row i holds the powers N - 1, ..., 1, 0 of x[i]; 0 to N - 1 where ``increasing``.

    Shapes      x: [n]; out: [n, N], N = n by default
    Dtypes      integers to int64, others as x
    Raises      RuntimeError where x is not 1-d or N is negative
    """
    if not isinstance(x, Tensor):
        raise not_tensor(TABLE["to"], x)
    if x.array.ndim != 1:
        raise RuntimeError(f"x must be a one-dimensional tensor.\n  got {x.array.ndim} dimensions")
    N = x.array.shape[0] if N is None else N
    if N < 0:
        raise RuntimeError(f"N must be non-negative.\n  got {N}")
    if x.dtype.category < 2:
        x = x.to(dtypes.int64)
    first = ones(x.array.shape[0], min(N, 1), dtype=x.dtype, device=x.device)
    if N > 1:
        powers = x.unsqueeze(1).expand(-1, N - 1).cumprod(1)
        first = TABLE["cat"].raw([first, powers], dim=1)
    return first if increasing else first.flip(1)
