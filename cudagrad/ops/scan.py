"""Running sums and products along a dim, differences, and integrals by trapezoids."""

import math

from .. import errors
from ..core.op import TABLE, op
from ..core.promote import promote_all
from ..core.shape import check_dim
from ..core.tensor import Tensor
from .casting import to_dtype
from .checks import ndim_of, no_overload, not_implemented, types_of
from .extremum import running
from .outputs import placed
from .pointwise import log_of_sum
from .sizes import distinct

__all__ = (*("cumsum", "cumprod", "logcumsumexp", "diff", "trapezoid", "trapz", "cumulative_trapezoid", "gradient"),)
METHODS = ("cumsum", "cumprod", "logcumsumexp", "diff")
INPLACE = ("cumsum", "cumprod")


def _along(name):
    def prepare(input, dim=None, *, dtype=None, axis=None):
        ndim = ndim_of(input, name)
        dim = dim if axis is None else axis
        if dim is None:
            raise TypeError(f'{name}() missing 1 required positional arguments: "dim"')
        dim = check_dim(dim, ndim)
        return (input if dtype is None else to_dtype(input, dtype)), dim, False

    return prepare


def _turned(xp, function, x, dim, reverse):
    """``function(x, dim, dtype)`` from the front, or from the back by ``reverse``."""
    dtype = xp.int64 if x.dtype.kind in "biu" else None
    if x.ndim == 0:
        return x.astype(dtype or x.dtype)
    if not reverse:
        return function(x, dim, dtype)
    return xp.ascontiguousarray(xp.flip(function(xp.flip(x, dim), dim, dtype), dim))


@op(
    prepare=_along("cumsum"),
    x=lambda m, g, dim, reverse: m.cumsum(g, dim=dim, reverse=not reverse),
    wide=True,
)
def cumsum(xp, x, *, dim, reverse):
    """The sum of each element and all before it along ``dim``.

    Dtypes      any; bool and integers as int64, half types are added in float32
    """
    return _turned(xp, xp.cumsum, x, dim, reverse)


def _cumprod_back(m, g, x, out, dim, reverse):
    """The product before each element, times what of g it scales: no division, so zeros are exact."""
    step = -1 if reverse else 1
    before = m.shifted(out, dim=dim, by=step, fill=1)
    after = m.shifted(x, dim=dim, by=-step, fill=0)
    return before * m.recurrence(after, g, dim=dim, reverse=not reverse)


@op(prepare=_along("cumprod"), x=_cumprod_back, wide=True)
def cumprod(xp, x, *, dim, reverse):
    """The product of each element and all before it along ``dim``.

    Dtypes      any; bool and integers as int64
    Derivative  exact where elements are 0
    """
    return _turned(xp, xp.cumprod, x, dim, reverse)


# ---- what the formulas of scans are made of


@op(x=lambda m, g, dim, by: m.shifted(g, dim=dim, by=-by, fill=0))
def shifted(xp, x, *, dim, by, fill):
    """x moved along ``dim`` by one place, up or down by the sign of ``by``; ``fill`` comes into the empty one."""
    if x.ndim == 0:
        return xp.full_like(x, fill)
    out = xp.empty(x.shape, x.dtype)
    to, source = xp.moveaxis(out, dim, 0), xp.moveaxis(x, dim, 0)
    if by > 0:
        to[1:], to[:1] = source[:-1], fill
    else:
        to[:-1], to[-1:] = source[1:], fill
    return out


def _recurrence_back(m, g, x, out, dim, reverse):
    """The scan of g the other way round; by x that times the result one step before."""
    step = -1 if reverse else 1
    by_y = m.recurrence(m.shifted(x, dim=dim, by=-step, fill=0), g, dim=dim, reverse=not reverse)
    return by_y * m.shifted(out, dim=dim, by=step, fill=0), by_y


@op(joint=_recurrence_back)
def recurrence(xp, x, y, *, dim, reverse):
    """h[k] = y[k] + x[k] * h[k-1] along ``dim``, from the back by ``reverse``; h before the first is 0.

    Source      Hillis & Steele 1986, "Data parallel algorithms": in step k each element takes in the one 2^k before
    """
    if x.ndim == 0:
        return y.copy()
    a, h = xp.moveaxis(x, dim, 0).copy(), xp.moveaxis(y, dim, 0).copy()
    if reverse:
        a, h = a[::-1], h[::-1]
    step = 1
    while step < len(h):
        h[step:] += a[step:] * h[:-step]
        a[step:] *= a[:-step].copy()
        step *= 2
    return xp.ascontiguousarray(xp.moveaxis(h[::-1] if reverse else h, 0, dim))


def _logcumsumexp(input, dim=None, *, axis=None):
    ndim = ndim_of(input, "logcumsumexp")
    return input, check_dim(dim if axis is None else axis, ndim)


def _logcumsumexp_back(m, g, x, out, dim):
    """d out[i] / d x[j] = e^(x[j] - out[i]) = e^(x[j] - out[j]) * the product of e^(out[k] - out[k+1]) between."""
    after = m.shifted(out, dim=dim, by=-1, fill=math.inf)
    return m.exp(x - out) * m.recurrence(m.exp(out - after), g, dim=dim, reverse=True)


@op(prepare=_logcumsumexp, x=_logcumsumexp_back, wide=True)
def logcumsumexp(xp, x, *, dim):
    """log of the sum of e^x over each element and all before it along ``dim``, without overflow.

    Dtypes      floating and complex
    """
    if x.dtype.kind in "biu":
        raise not_implemented("logcumsumexp_out_cpu", x)
    return running(xp, log_of_sum(x), x, dim) if x.ndim else x.copy()


# ---- differences and integrals


def _part(input, dim, start, length):
    return TABLE["narrow"].raw(input, dim=dim, start=start, length=length)


def _step(input, dim):
    """Each element less the one before it."""
    n = input.shape[dim]
    after, before = _part(input, dim, 1, max(n - 1, 0)), _part(input, dim, 0, max(n - 1, 0))
    if input.array.dtype.kind == "b":
        return TABLE["logical_xor"].call(after, before)
    return after - before


def diff(input, n=1, dim=-1, prepend=None, append=None, *, out=None):
    """The n-th differences along ``dim``, of ``input`` with ``prepend`` before and ``append`` after it.

    Shapes      dim is n shorter, not below 0; prepend, append: as input but for dim
    Dtypes      any; bool gives "xor"
    Raises      RuntimeError for a 0-d input, a negative n, or other dims of prepend or append
    """
    if input.ndim == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    dim = check_dim(dim, input.ndim)
    parts = [t for t in (prepend, input, append) if t is not None]
    if any(t.ndim != input.ndim for t in parts):
        first = "diff expects prepend or append to be the same dimension as input"
        raise RuntimeError(errors.text(first, f"got {', '.join(str(tuple(t.shape)) for t in parts)}"))
    if len(parts) > 1 and n:
        input = TABLE["cat"].raw(parts, dim=dim)
    for _ in range(min(n, input.shape[dim])):
        input = _step(input, dim)
    return placed("diff", input, out)


def _widths(name, y, x, dx, dim):
    """The trapezoids' mean heights, and their widths: a number, or a tensor that broadcasts to them."""
    if x is not None and dx is not None:
        given = f"Tensor, Tensor, dx={types_of(dx)}"
        raise no_overload(name, given, "Tensor y, Tensor x, *, int dim", "Tensor y, *, Number dx, int dim")
    n = y.shape[dim]
    count = max(n - 1, 0)
    heights = _part(y, dim, 0, count) + _part(y, dim, 1 if n else 0, count)
    if x is None:
        return heights, (1 if dx is None else dx)
    if x.ndim == 1:
        if x.shape[0] != n:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        shape = [1] * y.ndim
        shape[dim] = n
        x = TABLE["reshape"].raw(x, shape=tuple(shape))
    along = dim - y.ndim + x.ndim
    return heights, _step(x, along)


def trapezoid(y, x=None, *, dx=None, dim=-1):
    """The integral of y along ``dim`` by the rule of trapezoids, at places ``x`` or ``dx`` apart (1 by default).

    Shapes      y without dim; x: as long as dim, or broadcast to y
    Raises      TypeError for both x and dx
    """
    dim = check_dim(dim, y.ndim)
    if y.shape[dim] == 0:
        return TABLE["sum"].call(y, dim) / 2
    heights, widths = _widths("trapezoid", y, x, dx, dim)
    if isinstance(widths, Tensor):
        return TABLE["sum"].call(heights * widths, dim) / 2
    ends = _part(y, dim, 0, 1) + _part(y, dim, y.shape[dim] - 1, 1)  # not the heights: those of uint8 would wrap round
    return (TABLE["sum"].call(y, dim) - TABLE["sum"].call(ends, dim) * 0.5) * widths


def trapz(y, x=None, *, dx=None, dim=-1):
    """``trapezoid(y, x)``."""
    return trapezoid(y, x, dx=dx, dim=dim)


def cumulative_trapezoid(y, x=None, *, dx=None, dim=-1):
    """The running integral of y along ``dim`` by the rule of trapezoids; as ``trapezoid`` has it.

    Shapes      dim is one shorter
    """
    dim = check_dim(dim, y.ndim)
    heights, widths = _widths("cumulative_trapezoid", y, x, dx, dim)
    if isinstance(widths, Tensor):
        return cumsum(heights * widths, dim) / 2
    return cumsum(heights, dim) * (widths / 2)


# ---- estimated derivatives


def gradient(input, *, spacing=1, dim=None, edge_order=1):
    """The derivative of sampled values along each of ``dim`` (all by default): a tuple of tensors.

    Second-order differences inside, also where the places are not evenly apart; at the edges of ``edge_order`` 1 or 2.

    Shapes      spacing: a number, a number a dim, or a tensor of places a dim
    Raises      RuntimeError for a wrong edge_order, count of spacings, or too few elements
    """
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    dims = tuple(range(input.ndim)) if dim is None else tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
    dims = distinct(dims, input.ndim)
    spacing = 1 if spacing is None else spacing
    if isinstance(spacing, (tuple, list)):
        steps = list(spacing)
        if len(steps) != len(dims):
            raise RuntimeError(_uneven(len(steps), len(dims), dim is None))
    else:
        steps = [spacing] * len(dims)
    for d in dims:
        if input.shape[d] < edge_order + 1:
            first = "torch.gradient expected each dimension size to be at least edge_order+1"
            raise RuntimeError(errors.text(first, f"got {tuple(input.shape)}, edge_order {edge_order}"))
    return tuple(_slope(input, d, h, edge_order) for d, h in zip(dims, steps))


def _uneven(steps, dims, all_dims):
    first = "torch.gradient expected spacing to be unspecified, a scalar"
    if all_dims:
        first += (
            f", or a list of length equal to 'self.dim() = {dims}', since dim argument was not given, but got a list"
        )
        return f"{first} of length {steps}"
    first += " or it's spacing and dim arguments to have the same length, but got a spacing argument of length "
    return f"{first}{steps} and a dim argument of length {dims}."


def _slope(f, dim, spacing, edge_order):
    n = f.shape[dim]
    if isinstance(spacing, Tensor) and spacing.ndim:
        shape = [1] * f.ndim
        shape[dim] = n
        gaps = _step(TABLE["reshape"].raw(spacing, shape=tuple(shape)), dim)
        f, gaps = promote_all(TABLE["cat"], (f, gaps))
    else:
        gaps = None
        f = f if f.dtype.category > 1 else f * 1.0

    def value(k, length=1):
        return _part(f, dim, k % n, length)

    def gap(k, length=1):
        return spacing if gaps is None else _part(gaps, dim, k % (n - 1), length)

    def edge(k, sign):
        """The slope at place 0 or n - 1, of the elements from there inwards."""
        at = 0 if k == 0 else -1
        first = (value(k + sign) - value(k)) * sign / gap(at)
        if edge_order == 1:
            return first
        h, h2 = gap(at), gap(at + sign)
        second = (value(k + 2 * sign) - value(k + sign)) * sign / h2
        return first + (first - second) * (h / (h + h2))

    inner = []
    if n > 2:
        before, after = gap(0, n - 2), gap(1, n - 2)
        rise_before = (value(1, n - 2) - value(0, n - 2)) / before
        rise_after = (value(2, n - 2) - value(1, n - 2)) / after
        inner = [(rise_before * after + rise_after * before) / (before + after)]
    return TABLE["cat"].raw([edge(0, 1), *inner, edge(n - 1, -1)], dim=dim)
