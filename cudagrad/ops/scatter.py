"""Writing single elements at places along one dim: replaced, added up, or reduced in other ways."""

import warnings

import numpy as np

from .. import errors
from ..core.inplace import write
from ..core.op import SAME, TABLE, op
from ..core.shape import check_dim
from ..core.tensor import Tensor
from ..core.views import alias
from ..core.writable import check_apart, check_writable
from .broadcasting import expand
from .gathering import check_places, fill_number, target_of_write, write_elements, written
from .outputs import placed
from .segments import add_rows, combine_rows, put_rows
from .shape import reshape

__all__ = ("index_reduce", "scatter", "scatter_add", "scatter_reduce")

# ---- the ops


def _part_of(shape):
    """The basic index of the first elements that an index of ``shape`` stands for."""
    return tuple([slice(0, n) for n in shape])


def _to_source(m, g, index, y_shape, dim):
    """The gradient at the places that y was written to; 0 for the rest of y."""
    shape = tuple(index.shape)
    if shape == tuple(y_shape):
        return m.gather(g, index, dim=dim)
    if 0 in shape:
        shape = (0,) * len(y_shape)
    return m.whole(m.reshape(m.gather(g, index, dim=dim), shape=shape), index=_part_of(shape), shape=y_shape)


@op(
    x=lambda m, g, index, dim: m.scatter_value(g, index, dim=dim, value=0),
    y=_to_source,
    node="Scatter",
)
def scatter_source(xp, x, index, y, *, dim, inplace=False):
    """x with y[i, j, ...] written at ``index[i, j, ...]`` along ``dim``; of equal places the last wins.

    Derivative  that of y at a place written several times is the gradient for each of them, as in PyTorch
    """
    out = target_of_write(xp, x, inplace)
    write_elements(xp, out, index, y, dim, put_rows)
    return out


@op(x=lambda m, g, index, dim: m.scatter_value(g, index, dim=dim, value=0), node="Scatter")
def scatter_value(xp, x, index, *, dim, value, inplace=False):
    """x with a number written at ``index`` along ``dim``."""
    out = target_of_write(xp, x, inplace)
    write_elements(xp, out, index, value, dim, put_rows)
    return out


def _beside(index, src):
    """``src`` with a dim for each of ``index``'s: one element may come without."""
    return reshape(src, (1,)) if src.array.ndim < index.array.ndim else src


def _scatter_add(input, dim, index, src):
    if not isinstance(src, Tensor):
        raise TypeError(f"scatter_add(): argument 'src' (position 4) must be Tensor, not {type(src).__name__}")
    dim = check_places("scatter", input, dim, index, src)
    _check_dtypes(input, src)
    return input, index, _beside(index, src), dim, False


@op(prepare=_scatter_add, x=SAME, y=_to_source)
def scatter_add(xp, x, index, y, *, dim, inplace=False):
    """x with y[i, j, ...] added at ``index[i, j, ...]`` along ``dim``, in a fixed order.

    Shapes      index no larger than y, nor than x in the other dims; nothing broadcasts
    Dtypes      x and y equal; half types are added up in float32
    Raises      RuntimeError for a place out of range or negative, or shapes or dtypes that do not fit
    """
    out = target_of_write(xp, x, inplace)
    write_elements(xp, out, index, y, dim, add_rows)
    return out


def _prod_back(m, g, x, index, y, dim):
    """The product of the others: zeros are taken out of the product and counted."""
    part = _part_of(index.shape)
    taken = m.part(y, index=part)
    x_zero, y_zero = x == 0, taken == 0
    product = m.scatter_product(x + x_zero, index, taken + y_zero, dim=dim)
    zeros = m.scatter_add(x_zero + m.null(g), index, y_zero + m.null(taken), dim=dim)
    alone, single = m.only(g * product, zeros == 0), m.only(g * product, zeros == 1)
    dx = m.only(alone / (x + x_zero), x != 0) + m.only(single, x_zero)
    dy = m.only(m.gather(alone, index, dim=dim) / (taken + y_zero), taken != 0)
    return dx, None, _whole_source(m, dy + m.only(m.gather(single, index, dim=dim), y_zero), part, y.shape)


def _whole_source(m, d, part, shape):
    return d if tuple(d.shape) == tuple(shape) else m.whole(d, index=part, shape=tuple(shape))


@op(joint=_prod_back, wide=True, node="ScatterReduce")
def scatter_product(xp, x, index, y, *, dim):
    """x multiplied by y[i, j, ...] at ``index[i, j, ...]`` along ``dim``."""
    out = xp.array(x)  # an array, also where x came as a NumPy scalar
    write_elements(xp, out, index, y, dim, _combining(xp.multiply))
    return out


def _combining(ufunc):
    return lambda xp, total, index, rows: combine_rows(xp, total, index, rows, ufunc)


def _extreme_back(m, g, out, x, index, y, dim):
    """In equal parts to all that have the extreme value."""
    part = _part_of(index.shape)
    taken = m.part(y, index=part)
    x_hit, y_hit = x == out, taken == m.gather(out, index, dim=dim)
    share = g / m.scatter_add(x_hit + m.null(g), index, y_hit + m.null(taken), dim=dim)
    return m.only(share, x_hit), None, _whole_source(m, m.only(m.gather(share, index, dim=dim), y_hit), part, y.shape)


@op(joint=_extreme_back, node="ScatterReduce")
def scatter_extreme(xp, x, index, y, *, dim, largest):
    """The largest (or smallest) of x and all y[i, j, ...] at ``index[i, j, ...]`` along ``dim``; nan where one is nan.

    Derivative  in equal parts to all that have the extreme value
    """
    out = xp.array(x)  # an array, also where x came as a NumPy scalar
    write_elements(xp, out, index, y, dim, _combining(xp.maximum if largest else xp.minimum))
    return out


# ---- scatter


def _check_dtypes(input, src):
    if src.array.dtype is not input.array.dtype:
        first = "scatter(): Expected self.dtype to be equal to src.dtype"
        raise RuntimeError(errors.text(first, f"got {input.dtype} and {src.dtype}", "fix: src.to(self.dtype)"))


def _source(input, dim, index, src, value, reduce):
    """``(dim, src or None, number or None)`` of scatter's arguments."""
    if isinstance(src, Tensor) and value is None:
        dim = check_places("scatter", input, dim, index, src)
        _check_dtypes(input, src)
        src = _beside(index, src)
        if reduce is not None:
            warnings.warn(
                "The reduce argument of torch.scatter with Tensor src is deprecated and will be removed in a future "
                "PyTorch release. Use torch.scatter_reduce instead for more reduction options.",
                UserWarning,
                stacklevel=4,
            )
    else:
        value = src if value is None else value
        if isinstance(value, Tensor):
            value = value.item()
        if not isinstance(value, (bool, int, float, complex, np.generic)):
            raise TypeError(f"scatter(): argument 'value' (position 3) must be Number, not {type(value).__name__}")
        dim, src = check_places("scatter", input, dim, index), None
        value = fill_number(value, input.dtype)
    if reduce not in (None, "add", "multiply"):
        raise RuntimeError(errors.text("reduce argument must be either add or multiply.", f"got {reduce!r}"))
    if reduce is not None and src is None:
        src = expand(input.new_full((1,) * index.array.ndim, value), index.array.shape)
    return dim, src, value


def scatter(input, dim, index, src=None, *, value=None, reduce=None, out=None):
    """``input`` with ``src[i, j, ...]``, or a number, written at ``index[i, j, ...]`` along ``dim``.

    Of equal places the last wins. ``reduce``: "add" or "multiply" with what is there instead.

    Shapes      index no larger than src, nor than input in the other dims; nothing broadcasts
    Raises      RuntimeError for a place out of range or negative, or shapes or dtypes that do not fit
    """
    dim, src, value = _source(input, dim, index, src, value, reduce)
    if src is None:
        return scatter_value(input, index, dim=dim, value=value, out=out)
    return _SCATTERS[reduce](input, index, src, dim=dim, out=out)


_SCATTERS = {None: scatter_source, "add": TABLE["scatter_add"].raw, "multiply": scatter_product}


def scatter_(self, dim, index, src=None, *, value=None, reduce=None):
    """In-place form of :func:`scatter`."""
    dim, src, value = _source(self, dim, index, src, value, reduce)
    if src is None:
        return written(self, lambda x: scatter_value(x, index, dim=dim, value=value, inplace=True))
    if reduce == "multiply":
        check_writable(self)
        return write(self, scatter_product(alias(self), index, src, dim=dim))
    return written(self, lambda x: _SCATTERS[reduce](x, index, src, dim=dim, inplace=True), src)


def scatter_add_(self, dim, index, src):
    """In-place form of :func:`scatter_add`."""
    _, _, src, dim, _ = _scatter_add(self, dim, index, src)
    return written(self, lambda x: _SCATTERS["add"](x, index, src, dim=dim, inplace=True), src)


# ---- reductions

_NAMES = {"sum": "sum", "prod": "prod", "mean": "mean", "amax": "amax", "amin": "amin", "max": "amax", "min": "amin"}


def _identity(reduce, d):
    """What a reduction in dtype ``d`` leaves as it is."""
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if d.category == 0:
        return reduce == "amin"
    if d.category == 1:
        info = np.iinfo(d.numpy)
        return int(info.min if reduce == "amax" else info.max)
    return -np.inf if reduce == "amax" else np.inf


def _mean(x, index, src, dim, include_self):
    """Sums divided by counts; integers round down."""
    ones, add = TABLE["null"].raw(x.detach()) + 1, TABLE["scatter_add"].raw
    ones = ones.to(x.dtype)
    if not include_self:
        ones = scatter_value(ones, index, dim=dim, value=0)
    count = add(ones, index, expand(x.new_ones((1,) * index.array.ndim), index.array.shape), dim=dim).clamp(min=1)
    total = add(x, index, src, dim=dim)
    return total / count if x.dtype.category >= 2 else TABLE["floor_divide"].raw(total, count)


def _reduced(input, dim, index, src, reduce, include_self):
    kind = _NAMES.get(reduce)
    if kind is None:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    dim = check_places("scatter", input, dim, index, src)
    _check_dtypes(input, src)
    src = _beside(index, src)
    if index.array.size == 0:
        return TABLE["clone"].raw(input)
    if not include_self:
        input = scatter_value(input, index, dim=dim, value=_identity(kind, input.dtype))
    if kind == "sum":
        return TABLE["scatter_add"].raw(input, index, src, dim=dim)
    if kind == "mean":
        return _mean(input, index, src, dim, include_self)
    if kind == "prod":
        return scatter_product(input, index, src, dim=dim)
    return scatter_extreme(input, index, src, dim=dim, largest=kind == "amax")


def scatter_reduce(input, dim, index, src, reduce, *, include_self=True, out=None):
    """``input`` reduced with ``src[i, j, ...]`` at ``index[i, j, ...]`` along ``dim``, in a fixed order.

    ``reduce``: "sum", "prod", "mean", "amax" or "amin". Without ``include_self`` what ``input`` holds at a place that
    is written does not count.

    Shapes      index no larger than src, nor than input in the other dims; nothing broadcasts
    Derivative  amax and amin in equal parts to all that have the extreme value; prod is exact at zeros
    Raises      RuntimeError for a place out of range or negative, or shapes or dtypes that do not fit
    """
    return placed("scatter_reduce", _reduced(input, dim, index, src, reduce, include_self), out)


def _inplace_reduce(self, source, result):
    check_writable(self)
    check_apart(self, (source,), entirely=True)
    return write(self, result(alias(self)))


def scatter_reduce_(self, dim, index, src, reduce, *, include_self=True):
    """In-place form of :func:`scatter_reduce`."""
    return _inplace_reduce(self, src, lambda x: _reduced(x, dim, index, src, reduce, include_self))


def _index_reduced(input, dim, index, source, reduce, include_self):
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    dim = check_dim(dim, input.array.ndim)
    if index.array.ndim > 1:
        raise IndexError(
            f"index_reduce_(): Index is supposed to be a vector, but got dim: {index.array.ndim} with type: "
            f"{index.dtype.legacy} and size: {list(index.shape)}"
        )
    if index.array.size != (source.array.shape[dim] if source.array.ndim else 1):
        raise IndexError("index_reduce(): Number of indices should be equal to self.size(dim)")
    after = source.array.ndim - 1 - dim
    if not source.array.ndim:
        index = reshape(index, ())
    else:
        index = expand(reshape(index, (1,) * dim + (index.array.size,) + (1,) * after), source.array.shape)
    return _reduced(input, dim, index, source, reduce, include_self)


def index_reduce(input, dim, index, source, reduce, *, include_self=True, out=None):
    """``input`` with its slices at ``index`` of dim ``dim`` reduced with those of ``source``.

    ``reduce``: "prod", "mean", "amax" or "amin"; ``include_self`` as in ``scatter_reduce``.
    """
    return placed("index_reduce", _index_reduced(input, dim, index, source, reduce, include_self), out)


def index_reduce_(self, dim, index, source, reduce, *, include_self=True):
    """In-place form of :func:`index_reduce`."""
    return _inplace_reduce(self, source, lambda x: _index_reduced(x, dim, index, source, reduce, include_self))


METHODS = {n: globals()[n] for n in __all__}
METHODS |= {n + "_": globals()[n + "_"] for n in __all__}
