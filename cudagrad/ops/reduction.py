"""Sums, means, products, variances and tests over some or all dims."""

import math
import warnings

from .. import errors
from ..core.op import TABLE, op
from .casting import to_dtype
from .checks import count_of, dims_of, kept, ndim_of, no_overload, types_of, with_numpy_names
from .outputs import placed

__all__ = (
    *("sum", "mean", "prod", "var", "std", "var_mean", "std_mean", "nansum", "nanmean", "logsumexp", "all", "any"),
    "count_nonzero",
)
METHODS = tuple(name for name in __all__ if name not in ("var_mean", "std_mean"))


def spread(m, g, x_shape, dim, keepdim):
    """The gradient of a reduction in the shape of its input."""
    if dim is not None and not keepdim and g.ndim:
        g = m.reshape(g, shape=kept(x_shape, dim))
    return m.expand(g, shape=x_shape)


def back_in_place(m, g, x_shape, dim, keepdim):
    """The gradient or output of a reduction with its dims back, at length 1."""
    return g if keepdim or (dim is not None and not dim) else m.reshape(g, shape=kept(x_shape, dim))


def _ints(x, xp):
    """The dtype that sums and products of x's elements are made in: int64 for bool and integers."""
    return xp.int64 if x.dtype.kind in "biu" else None


def _sum(input, dim=None, keepdim=False, *, dtype=None, axis=None, keepdims=None):
    if axis is not None or keepdims is not None:
        dim, keepdim = with_numpy_names(dim, keepdim, axis, keepdims)
    if dim is not None:
        dim = dims_of(dim, ndim_of(input, "sum"))
    return (input if dtype is None else to_dtype(input, dtype)), dim, keepdim


@op(prepare=_sum, x=spread, wide=True)
def sum(xp, x, *, dim, keepdim):
    """The sum over ``dim``, all dims by default; 0 of nothing.

    Shapes      x without dim, or with 1 there
    Dtypes      any; bool and integers as int64, half types are added in float32
    Raises      IndexError for a dim out of range, RuntimeError for one given twice

    >>> cudagrad.tensor([[1, 2], [3, 4]]).sum(dim=0)
    tensor([4, 6])
    """
    return xp.add.reduce(x, dim, _ints(x, xp), None, keepdim)  # the method of the same takes 0.3 us longer


def _floating_only(input, dtype):
    d = dtype or input.dtype
    if d.category < 2:
        what = "Input dtype" if dtype is None else "Optional dtype"
        raise RuntimeError(
            errors.text(
                f"mean(): could not infer output dtype. {what} must be either a floating point or complex dtype. "
                f"Got: {d.legacy}",
                "fix: mean(dtype=torch.float32), or input.float() first" if dtype is None else "",
            )
        )
    return input if dtype is None else to_dtype(input, dtype)


def _mean(input, dim=None, keepdim=False, *, dtype=None, axis=None, keepdims=None):
    if axis is not None or keepdims is not None:
        dim, keepdim = with_numpy_names(dim, keepdim, axis, keepdims)
    ndim = ndim_of(input, "mean")
    return _floating_only(input, dtype), None if dim is None else dims_of(dim, ndim), keepdim


def _mean_back(m, g, x_shape, dim, keepdim):
    count = count_of(x_shape, dim)
    return spread(m, g / count if count else g, x_shape, dim, keepdim)


@op(prepare=_mean, x=_mean_back, wide=True)
def mean(xp, x, *, dim, keepdim):
    """The mean over ``dim``, all dims by default; nan of nothing.

    Shapes      x without dim, or with 1 there
    Dtypes      floating or complex, by ``dtype`` where given
    Raises      RuntimeError for integers
    """
    total = x.sum(dim, keepdims=keepdim)
    count = x.size if dim is None else count_of(x.shape, dim)
    return total / (count or math.nan)


# ---- variances


def _spread_of(name):
    def prepare(input, dim=None, unbiased=None, keepdim=False, *, correction=None, axis=None, keepdims=None):
        dim, keepdim = with_numpy_names(dim, keepdim, axis, keepdims)
        ndim = ndim_of(input, name)
        if isinstance(dim, bool):  # the old form var(input, unbiased)
            dim, unbiased = None, dim
        if input.dtype.category < 2:
            raise RuntimeError("std and var only support floating point and complex dtypes")
        if correction is None:
            correction = 1 if unbiased is None else int(unbiased)
        dim = dims_of(dim, ndim)
        if count_of(input.array.shape, dim) - correction <= 0:
            warnings.warn(
                f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
                "(input numel divided by output numel).",
                UserWarning,
                stacklevel=3,
            )
        return input, dim, correction, keepdim

    return prepare


def _freedom(shape, dim, correction):
    return count_of(shape, dim) - correction


def _over(a, freedom):
    """a / freedom, infinite or nan where nothing is free."""
    return a / freedom if freedom > 0 else a * math.inf


def _variance(xp, x, dim, correction, keepdim):
    count = count_of(x.shape, dim)
    away = x - x.sum(dim, keepdims=True) / (count or math.nan)
    squares = away.real * away.real + away.imag * away.imag if x.dtype.kind == "c" else away * away
    total = squares.sum(dim, keepdims=keepdim)
    if count > correction:
        return total / (count - correction)
    return xp.where(total > 0, math.inf, math.nan).astype(total.dtype)


def _from_mean(m, x, dim):
    return x - m.mean(x, dim=dim, keepdim=True)


def _var_back(m, g, x, x_shape, dim, correction, keepdim):
    g = back_in_place(m, _over(g + g, _freedom(x_shape, dim, correction)), x_shape, dim, keepdim)
    return g * _from_mean(m, x, dim)


@op(prepare=_spread_of("var"), x=_var_back, wide=True, holomorphic=False)
def var(xp, x, *, dim, correction, keepdim):
    """sum of |x - mean|^2 over ``dim``, divided by its count less ``correction``.

    Shapes      x without dim, or with 1 there
    Dtypes      floating or complex; out real
    Raises      RuntimeError for integers; UserWarning where the divisor is not positive
    """
    return _variance(xp, x, dim, correction, keepdim)


def _std_back(m, g, x, out, x_shape, dim, correction, keepdim):
    constant = out == 0
    g = m.only(g / (out + constant), ~constant)  # 0 where all are equal, as in PyTorch
    g = back_in_place(m, _over(g, _freedom(x_shape, dim, correction)), x_shape, dim, keepdim)
    return g * _from_mean(m, x, dim)


@op(prepare=_spread_of("std"), x=_std_back, wide=True, holomorphic=False)
def std(xp, x, *, dim, correction, keepdim):
    """The square root of the variance over ``dim``, as ``var`` has it.

    Derivative  0 where all elements are equal
    """
    return xp.sqrt(_variance(xp, x, dim, correction, keepdim))


def var_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None, axis=None, keepdims=None, out=None):
    """(var, mean) over ``dim``."""
    dim, keepdim = with_numpy_names(dim, keepdim, axis, keepdims)
    over = None if isinstance(dim, bool) else dim
    result = var(input, dim, unbiased, keepdim, correction=correction), mean(input, over, keepdim)
    return result if out is None else _both("var_mean", result, out)


def std_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None, axis=None, keepdims=None, out=None):
    """(std, mean) over ``dim``."""
    dim, keepdim = with_numpy_names(dim, keepdim, axis, keepdims)
    over = None if isinstance(dim, bool) else dim
    result = std(input, dim, unbiased, keepdim, correction=correction), mean(input, over, keepdim)
    return result if out is None else _both("std_mean", result, out)


def _both(name, result, out):
    return tuple(placed(name, r, o) for r, o in zip(result, out, strict=True))


# ---- products


def _prod(input, dim=None, keepdim=False, *, dtype=None, axis=None, keepdims=None):
    dim, keepdim = with_numpy_names(dim, keepdim, axis, keepdims)
    ndim = ndim_of(input, "prod")
    if dim is not None and not hasattr(dim, "__index__"):
        expected = "Tensor input, *, torch.dtype dtype", "Tensor input, int dim, bool keepdim, *, torch.dtype dtype"
        raise no_overload("prod", f"Tensor, dim={types_of(dim)}", *expected)
    if dtype is not None:
        input = to_dtype(input, dtype)
    return input, None if dim is None else dims_of(dim, ndim), keepdim


def _prod_back(m, g, x, x_shape, dim, keepdim):
    """g times the product of the others: of those before and of those after, so that a zero needs no division."""
    if dim == () or not x_shape:
        return m.expand(g, shape=x_shape)
    if dim is None:
        line = m.reshape(x, shape=(count_of(x_shape, None),))
        return m.expand(g, shape=x_shape) * m.reshape(_of_others(m, line, 0), shape=x_shape)
    return back_in_place(m, g, x_shape, dim, keepdim) * _of_others(m, x, dim[0])


def _of_others(m, x, dim):
    before = m.shifted(m.cumprod(x, dim=dim, reverse=False), dim=dim, by=1, fill=1)
    after = m.shifted(m.cumprod(x, dim=dim, reverse=True), dim=dim, by=-1, fill=1)
    return before * after


@op(prepare=_prod, x=_prod_back, wide=True)
def prod(xp, x, *, dim, keepdim):
    """The product over ``dim``, all dims by default; 1 of nothing.

    Shapes      x without dim, or with 1 there
    Dtypes      any; bool and integers as int64
    Derivative  the product of the others, exact where elements are 0
    """
    return x.prod(dim, _ints(x, xp), keepdims=keepdim)


# ---- without nan


def _nansum(input, dim=None, keepdim=False, *, dtype=None, axis=None, keepdims=None):
    dim, keepdim = with_numpy_names(dim, keepdim, axis, keepdims)
    ndim = ndim_of(input, "nansum")
    if input.dtype.is_complex:
        raise RuntimeError("nansum on CPU does not support complex inputs")
    if dtype is not None:
        input = to_dtype(input, dtype)
    return input, dims_of(dim, ndim), keepdim


def _nansum_back(m, g, x, x_shape, dim, keepdim):
    return m.only(spread(m, g, x_shape, dim, keepdim), x == x)


@op(prepare=_nansum, x=_nansum_back, wide=True)
def nansum(xp, x, *, dim, keepdim):
    """The sum over ``dim`` of what is not nan.

    Derivative  0 at nan
    """
    if x.dtype.kind not in "biu":
        x = xp.where(x == x, x, xp.zeros((), x.dtype))
    return x.sum(dim, _ints(x, xp), keepdims=keepdim)


def nanmean(input, dim=None, keepdim=False, *, dtype=None, out=None):
    """The mean over ``dim`` of what is not nan; nan where nothing is left.

    Raises      RuntimeError for integers
    """
    if input.dtype.category < 2:
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got {input.dtype.legacy}"
        )
    present = TABLE["sum"].call(input == input, dim, keepdim)
    return placed("nanmean", nansum(input, dim, keepdim, dtype=dtype) / present, out)


# ---- sums of exponentials


def _logsumexp(input, dim=None, keepdim=False, *, axis=None, keepdims=None):
    dim, keepdim = with_numpy_names(dim, keepdim, axis, keepdims)
    if dim is None:
        raise TypeError('logsumexp() missing 1 required positional arguments: "dim"')
    return input, dims_of(dim, ndim_of(input, "logsumexp")), keepdim


def _logsumexp_back(m, g, x, out, x_shape, dim, keepdim):
    g, out = (back_in_place(m, t, x_shape, dim, keepdim) for t in (g, out))
    return g * m.exp(x - out)


def _logsumexp_first(m, g, x, out, x_shape, dim, keepdim):
    return (_logsumexp_back(m, g, x, out, x_shape, dim, keepdim),)  # a rule of its own, for kernels to stand before


@op(prepare=_logsumexp, x=_logsumexp_back, fused=_logsumexp_first, floating=True, wide=True)
def logsumexp(xp, x, *, dim, keepdim=False):
    """log of the sum of e^x over ``dim``, without overflow; -inf of nothing.

    Shapes      x without dim, or with 1 there
    Derivative  softmax(x); nan where all are -inf
    """
    if not x.size:
        return xp.log(xp.exp(x).sum(dim, keepdims=keepdim))
    top = x.real.max(dim, keepdims=True)
    top = xp.where(xp.isfinite(top), top, top.dtype.type(0))
    total = xp.log(xp.exp(x - top).sum(dim, keepdims=keepdim))
    return total + (top if keepdim else top.reshape(total.shape))


# ---- tests


def _test(name):
    def prepare(input, dim=None, keepdim=False, *, axis=None, keepdims=None):
        dim, keepdim = with_numpy_names(dim, keepdim, axis, keepdims)
        ndim = ndim_of(input, name)
        if dim.__class__ in (tuple, list) and not dim:
            return input, (), keepdim  # PyTorch reduces nothing here, where sum reduces all
        return input, dims_of(dim, ndim), keepdim

    return prepare


def _truth(xp, x, found):
    return found.astype(x.dtype) if x.dtype == xp.uint8 else found  # PyTorch keeps uint8, its old bool


@op(prepare=_test("all"))
def all(xp, x, *, dim, keepdim):
    """Whether all elements over ``dim`` are other than 0; True of nothing.

    Dtypes      any; out bool, uint8 for uint8
    """
    return _truth(xp, x, (x != 0).all(dim, keepdims=keepdim))


@op(prepare=_test("any"))
def any(xp, x, *, dim, keepdim):
    """Whether an element over ``dim`` is other than 0; False of nothing.

    Dtypes      any; out bool, uint8 for uint8
    """
    return _truth(xp, x, (x != 0).any(dim, keepdims=keepdim))


def count_nonzero(input, dim=None):
    """How many elements over ``dim`` are other than 0."""
    return TABLE["sum"].call(input != 0, dim)
