"""The largest and the smallest: their values, their places, and running ones."""

from ..core.op import TABLE, op
from ..core.shape import check_dim
from ..core.tensor import Tensor
from .checks import dims_of, kept, ndim_of, no_overload, not_implemented, reduced, types_of, with_numpy_names
from .outputs import placed, return_type
from .reduction import back_in_place
from .rounding import maximum, minimum

__all__ = ("max", "min", "amax", "amin", "aminmax", "argmax", "argmin", "cummax", "cummin")
METHODS = __all__

_Max = return_type("max", ("values", "indices"))
_Min = return_type("min", ("values", "indices"))
_MinMax = return_type("aminmax", ("min", "max"))
_CumMax = return_type("cummax", ("values", "indices"))
_CumMin = return_type("cummin", ("values", "indices"))


# ---- values


def nonempty(name, shape, dim, of_all=RuntimeError):
    """RuntimeError or IndexError, in PyTorch's words, where there is nothing to choose from."""
    if 0 not in shape:
        return
    if dim is None:
        hint = "" if of_all is IndexError else " Specify the reduction dim with the 'dim' argument."
        raise of_all(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.{hint}")
    for d in dim:
        if shape[d] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")


def _extreme(name):
    def prepare(input, dim=None, keepdim=False, *, axis=None, keepdims=None):
        dim, keepdim = with_numpy_names(dim, keepdim, axis, keepdims)
        dim = dims_of(dim, ndim_of(input, name))
        nonempty(name, input.array.shape, dim)
        return input, dim, keepdim

    return prepare


def _evenly(m, g, x, out, x_shape, dim, keepdim):
    """g in equal parts to all that equal the extreme, to the nans where it is nan."""
    g, out = (back_in_place(m, t, x_shape, dim, keepdim) for t in (g, out))
    hits = ((x == out) | ((x != x) & (out != out))) + m.null(x)
    return hits * (g / m.sum(hits, dim=dim, keepdim=True))


def _no_complex(name, x):
    if x.dtype.kind == "c":
        raise not_implemented(name, x)


@op(prepare=_extreme("amax"), x=_evenly, wide=True)
def amax(xp, x, *, dim, keepdim):
    """The largest over ``dim``, all dims by default; nan where one is nan.

    Shapes      x without dim, or with 1 there
    Dtypes      any but complex
    Derivative  in equal parts to all that are the largest
    Raises      RuntimeError or IndexError where there is none
    """
    _no_complex("amax", x)
    return x.max(dim, keepdims=keepdim)


@op(prepare=_extreme("amin"), x=_evenly, wide=True)
def amin(xp, x, *, dim, keepdim):
    """The smallest over ``dim``, all dims by default; nan where one is nan.

    Shapes      x without dim, or with 1 there
    Dtypes      any but complex
    Derivative  in equal parts to all that are the smallest
    Raises      RuntimeError or IndexError where there is none
    """
    _no_complex("amin", x)
    return x.min(dim, keepdims=keepdim)


def aminmax(input, *, dim=None, keepdim=False, out=None):
    """The named tuple (min, max) over ``dim``, all dims by default.

    Derivative  in equal parts to all that are the extreme
    Raises      RuntimeError or IndexError where there is none
    """
    if input.numel() == 0:
        if dim is None:
            first = "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
            raise RuntimeError(first)
        d = check_dim(dim, input.ndim)
        if input.shape[d] == 0:
            raise IndexError(f"aminmax: Expected reduction dim {d} to have non-zero size.")
    return placed("aminmax", _MinMax(amin(input, dim, keepdim), amax(input, dim, keepdim)), out)


# ---- places


def _place(name):
    def prepare(input, dim=None, keepdim=False, *, axis=None, keepdims=None):
        dim, keepdim = with_numpy_names(dim, keepdim, axis, keepdims)
        ndim = ndim_of(input, name)
        kind = input.array.dtype.kind
        if kind in "bc":
            raise RuntimeError(f"{name}(): does not support {'bool' if kind == 'b' else 'complex'} input")
        if dim is not None:
            dim = check_dim(dim, ndim)
        nonempty(name, input.array.shape, None if dim is None else (dim,), IndexError)
        return input, dim, keepdim

    return prepare


def _index(xp, found, x, dim, keepdim):
    found = xp.asarray(found, xp.int64)
    if not keepdim:
        return found
    return found.reshape(kept(x.shape, None if dim is None else (dim,)))


@op(prepare=_place("argmax"), wide=True)
def argmax(xp, x, *, dim, keepdim):
    """The place of the largest along ``dim``, or in all of x as if flat: the first one of equals, of nans if any.

    Shapes      x without dim, or with 1 there
    Dtypes      any but bool and complex; out int64
    Raises      IndexError where there is none
    """
    return _index(xp, x.argmax(dim if x.ndim else None), x, dim, keepdim)


@op(prepare=_place("argmin"), wide=True)
def argmin(xp, x, *, dim, keepdim):
    """The place of the smallest along ``dim``, or in all of x as if flat: the first one of equals, of nans if any.

    Shapes      x without dim, or with 1 there
    Dtypes      any but bool and complex; out int64
    Raises      IndexError where there is none
    """
    return _index(xp, x.argmin(dim if x.ndim else None), x, dim, keepdim)


def taken(input, index, dim, keepdim):
    """The elements of ``input`` at ``index``, which has ``dim`` at length 1, and the index, in the shape asked for."""
    if input.ndim == 0:
        return TABLE["clone"].raw(input), index
    values = TABLE["gather"].raw(input, index, dim=dim)
    if keepdim:
        return values, index
    shape = reduced(input.array.shape, (dim,), False)
    return TABLE["reshape"].raw(values, shape=shape), TABLE["reshape"].raw(index, shape=shape)


_PARTS = {"max": ("argmax", "amax", maximum, _Max), "min": ("argmin", "amin", minimum, _Min)}


def _choose(name, input, dim, keepdim, other, out):
    """``max`` or ``min``: of all, along ``dim``, or of two tensors."""
    places, of_all, of_two, pair = _PARTS[name]
    if isinstance(dim, Tensor):
        dim, other = None, dim
    if other is not None:
        return of_two(input, other, out=out)
    ndim = ndim_of(input, of_all)
    shape = input.array.shape
    if dim is None:
        nonempty(name, shape, None)
        _no_complex(name + "_all", input.array)
        return placed(name, TABLE[of_all].raw(input, dim=None, keepdim=False), out)
    if not hasattr(dim, "__index__"):
        expected = "Tensor input", "Tensor input, Tensor other", "Tensor input, int dim, bool keepdim"
        raise no_overload(name, types_of(input, dim), *expected)
    d = check_dim(dim, ndim)
    nonempty(name, shape, (d,) if ndim else ())
    if input.array.dtype.kind == "c":
        raise RuntimeError(f"{name}(): does not support complex input")
    index = TABLE[places].raw(input, dim=d, keepdim=False)
    result = pair(_picked(input, index, dim=d), index)
    if keepdim and ndim:
        result = pair(*(TABLE["unsqueeze"].raw(t, dim=d) for t in result))
    return result if out is None else placed(name, result, out)


def _grid(xp, index, shape, dim):
    """What indexes, in an array of ``shape``, the elements at ``index`` along ``dim``, which index has not."""
    if not shape:
        return ()
    others = shape[:dim] + shape[dim + 1 :]
    rows = [xp.arange(n).reshape((1,) * k + (n,) + (1,) * (len(others) - 1 - k)) for k, n in enumerate(others)]
    return (*rows[:dim], index, *rows[dim:])


@op(x=lambda m, g, index, x_shape, dim: m.put_picked(g, index, shape=x_shape, dim=dim), node="Max")
def picked(xp, x, index, *, dim):
    """The element of x at ``index`` along ``dim``, for each place of the others: x without that dim."""
    return x[_grid(xp, index, x.shape, dim)]


@op(x=lambda m, g, index, dim: m.picked(g, index, dim=dim))
def put_picked(xp, x, index, *, shape, dim):
    """Zeros of ``shape`` with x at ``index`` along ``dim``."""
    out = xp.zeros(shape, x.dtype)
    out[_grid(xp, index, shape, dim)] = x
    return out


_picked = TABLE["picked"].raw


def max(input, dim=None, keepdim=False, *, other=None, out=None, axis=None, keepdims=None):
    """The largest of all, or (values, indices) along ``dim``, or the larger of two tensors: ``max(input, other)``.

    Derivative  over all in equal parts to the largest; along dim to the element that was picked; of two tensors as
                ``maximum``
    Raises      RuntimeError or IndexError where there is none

    >>> cudagrad.tensor([[1.0, 3.0], [2.0, 0.0]]).max(dim=1).indices
    tensor([1, 0])
    """
    dim, keepdim = with_numpy_names(dim, keepdim, axis, keepdims)
    return _choose("max", input, dim, keepdim, other, out)


def min(input, dim=None, keepdim=False, *, other=None, out=None, axis=None, keepdims=None):
    """The smallest of all, or (values, indices) along ``dim``, or the smaller of two tensors: ``min(input, other)``.

    Derivative  over all in equal parts to the smallest; along dim to the element that was picked; of two tensors as
                ``minimum``
    Raises      RuntimeError or IndexError where there is none
    """
    dim, keepdim = with_numpy_names(dim, keepdim, axis, keepdims)
    return _choose("min", input, dim, keepdim, other, out)


# ---- running extremes


def running(xp, combine, x, dim):
    """``combine`` of each element and all before it along ``dim``."""
    if xp.__name__ == "numpy" and isinstance(combine, xp.ufunc):
        return combine.accumulate(x, dim)
    out, step = xp.moveaxis(x, dim, 0).copy(), 1
    if xp.__name__ == "numpy":
        for k in range(1, len(out)):
            out[k] = combine(out[k - 1], out[k])
        return xp.moveaxis(out, 0, dim)
    # CuPy's ufuncs have no accumulate: in step k each element takes in the one 2^k before it (Hillis & Steele 1986).
    while step < len(out):
        out[step:] = combine(out[step:], out[:-step].copy())
        step *= 2
    return xp.moveaxis(out, 0, dim)


def _last_best(xp, combine, x, dim):
    """The last place, up to each, of the best so far; once a nan has come, of the last nan."""
    if x.ndim == 0:
        return xp.zeros((), xp.int64)
    best = running(xp, combine, x, dim)
    here = (x == best) | (x != x)
    shape = [1] * x.ndim
    shape[dim] = x.shape[dim]
    places = xp.arange(x.shape[dim]).reshape(shape)
    return running(xp, xp.maximum, xp.where(here, places, 0), dim)


@op(wide=True)
def argcummax(xp, x, *, dim):
    """The places of the running largest along ``dim``."""
    _no_complex("cummax_cpu", x)
    return _last_best(xp, xp.maximum, x, dim)


@op(wide=True)
def argcummin(xp, x, *, dim):
    """The places of the running smallest along ``dim``."""
    _no_complex("cummin_cpu", x)
    return _last_best(xp, xp.minimum, x, dim)


def _cumulative(input, dim, name, axis):
    dim = check_dim(dim if axis is None else axis, ndim_of(input, name))
    index = TABLE[name].raw(input, dim=dim)
    return taken(input, index, dim, True)


def cummax(input, dim=None, *, out=None, axis=None):
    """The named tuple (values, indices) of the running largest along ``dim``; of equals the last.

    Derivative  to the elements that were picked
    """
    return placed("cummax", _CumMax(*_cumulative(input, dim, "argcummax", axis)), out)


def cummin(input, dim=None, *, out=None, axis=None):
    """The named tuple (values, indices) of the running smallest along ``dim``; of equals the last.

    Derivative  to the elements that were picked
    """
    return placed("cummin", _CumMin(*_cumulative(input, dim, "argcummin", axis)), out)
