"""Orders: sorting, the largest and the k-th, and searching in what is sorted."""

import math

import numpy as np

from .. import dtypes, errors
from ..backend import xp_of
from ..core.op import TABLE, op
from ..core.promote import lift
from ..core.shape import check_dim
from ..core.tensor import Tensor, wrap
from .checks import ndim_of, refuse
from .gathering import gather
from .outputs import placed, return_type

__all__ = ("argsort", "bucketize", "kthvalue", "msort", "searchsorted", "sort", "topk")

_Sort = return_type("sort", ("values", "indices"))
_TopK = return_type("topk", ("values", "indices"))
_KthValue = return_type("kthvalue", ("values", "indices"))

# ---- the order of elements: an index, which has no gradient; values are gathered by it


def _comparable(x):
    """x as an array whose dtype NumPy and CuPy put in order, nans last: bfloat16 as float32."""
    return x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind not in "iuf" else x


@op()
def sort_places(xp, x, *, dim, descending):
    """The places of x's elements in stable order along ``dim``; nan is the largest."""
    if not x.ndim:
        return xp.zeros((), np.int64)
    x = _comparable(x)
    if not descending:
        return xp.argsort(x, axis=dim, kind="stable").astype(np.int64, copy=False)
    # the order of the reversed dim, read backwards: equal elements keep their order, and no element need be negated
    places = xp.argsort(xp.flip(x, dim), axis=dim, kind="stable").astype(np.int64, copy=False)
    return x.shape[dim] - 1 - xp.flip(places, dim)


_PARTITION_FROM = 128  # lengths below which a full sort costs no more


@op()
def top_places(xp, x, *, k, dim, largest):
    """The places of the ``k`` largest (or smallest) elements along ``dim``, best first; of equal ones the first."""
    n = x.shape[dim] if x.ndim else 1
    if not x.ndim or xp is not np or n < _PARTITION_FROM or 4 * k > n:
        places = TABLE["sort_places"].forward(xp, x, dim=dim, descending=largest)
        return places[tuple([slice(k) if d == dim else slice(None) for d in range(x.ndim)])] if x.ndim else places
    x = np.moveaxis(_comparable(x), dim, -1)  # [..., N]
    picked = _partition(x, k, largest)  # [..., k], in the order of places
    values = np.take_along_axis(x, picked, -1)
    order = TABLE["sort_places"].forward(np, values, dim=x.ndim - 1, descending=largest)
    return np.moveaxis(np.take_along_axis(picked, order, -1), -1, dim)


def _partition(x, k, largest):
    """The places of the k best along the last dim, in order of place; of those equal to the worst of them the first."""
    if k == 0 or not x.size:
        return np.zeros((*x.shape[:-1], k), np.int64)
    n = x.shape[-1]
    at = n - k if largest else k - 1
    worst = np.partition(x, at, -1)[..., at : at + 1]
    chosen = x >= worst if largest else x <= worst
    if x.dtype.kind == "f" and np.isnan(x.max()):  # nan is larger than all
        chosen |= (x != x) if largest else (worst != worst)
    places = np.nonzero(chosen.reshape(-1, n))[1]
    if places.size != k * (x.size // n):  # several are equal to the worst
        equal = chosen & ((x == worst) | ((x != x) & (worst != worst)))
        spare = chosen.sum(-1, keepdims=True) - k
        last = np.cumsum(equal[..., ::-1], -1)[..., ::-1]  # how many equal ones from here to the end
        places = np.nonzero((chosen & ~(equal & (last <= spare))).reshape(-1, n))[1]
    return places.reshape(*x.shape[:-1], k)


def _sortable(input, name):
    if input.array.dtype.kind == "c":
        raise RuntimeError(f" {name} does not support complex dtypes on CPU")


def sort(input, dim=-1, descending=False, stable=False, *, axis=None, out=None):
    """(values, indices) of ``input`` in order along ``dim``; nan counts as the largest.

    Equal elements always keep their order, with and without ``stable``: the result is the same on every device.

    Derivative  to the elements at ``indices``
    Raises      RuntimeError for complex dtypes
    """
    dim = check_dim(dim if axis is None else axis, ndim_of(input, "sort_places"))
    _sortable(input, "Sort")
    index = TABLE["sort_places"].raw(input, dim=dim, descending=descending)
    return placed("sort", _Sort(_gathered(input, index, dim), index), out)


def _gathered(input, index, dim):
    """The elements at ``index``; a copy of a 0-d tensor."""
    return TABLE["gather"].raw(input, index, dim=dim) if input.array.ndim else TABLE["clone"].raw(input)


def argsort(input, dim=-1, descending=False, stable=False, *, axis=None):
    """The places of the elements in order along ``dim``; equal ones keep their order, nan counts as the largest."""
    dim = check_dim(dim if axis is None else axis, ndim_of(input, "sort_places"))
    _sortable(input, "Sort")
    return TABLE["sort_places"].raw(input, dim=dim, descending=descending)


def msort(input, *, out=None):
    """``input`` sorted along its first dim."""
    return placed("msort", sort(input, 0).values, out)


def topk(input, k, dim=-1, largest=True, sorted=True, *, axis=None, out=None):
    """(values, indices) of the ``k`` largest (or smallest) elements along ``dim``, best first; nan is the largest.

    Of equal elements the first ones are taken. The result is in order with and without ``sorted``.

    Derivative  to the elements at ``indices``
    Raises      RuntimeError where there are fewer than k
    """
    dim = check_dim(dim if axis is None else axis, ndim_of(input, "top_places"))
    k = k.__index__()
    if input.dtype is dtypes.bool:
        raise RuntimeError("topk does not support bool dtypes on CPU")
    _sortable(input, "topk")
    if not 0 <= k <= (input.array.shape[dim] if input.array.ndim else 1):
        shape = tuple(input.shape)
        raise RuntimeError(errors.text("selected index k out of range", f"got k = {k} for dim {dim} of {shape}"))
    index = TABLE["top_places"].raw(input, k=k, dim=dim, largest=largest)
    return placed("topk", _TopK(_gathered(input, index, dim), index), out)


def kthvalue(input, k, dim=-1, keepdim=False, *, axis=None, out=None):
    """(values, indices) of the ``k``-th smallest element along ``dim``, counted from 1.

    Derivative  to the element that was picked
    Raises      RuntimeError where there is no k-th, IndexError where dim is empty
    """
    dim = check_dim(dim if axis is None else axis, ndim_of(input, "sort_places"))
    refuse("kthvalue_cpu", input.array, "bc")
    length = input.array.shape[dim] if input.array.ndim else 1
    if length == 0:
        raise IndexError(f"kthvalue(): Expected reduction dim {dim} to have non-zero size.")
    if not 1 <= k <= length:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {dim}")
    index = TABLE["sort_places"].raw(input, dim=dim, descending=False)
    if not input.array.ndim:
        return placed("kthvalue", _KthValue(TABLE["clone"].raw(input), index), out)
    index = index.narrow(dim, k - 1, 1).clone()
    values = gather(input, dim, index)
    if not keepdim:
        values, index = values.squeeze(dim), index.squeeze(dim)
    return placed("kthvalue", _KthValue(values, index), out)


# ---- searching in sorted tensors


@op()
def search(xp, x, y, *, right):
    """For each element of y the place in x's sorted rows before which (after equal ones, if ``right``) it belongs."""
    side = "right" if right else "left"
    x, y = _comparable(x), _comparable(y)
    if x.ndim == 1:
        return xp.searchsorted(x, y, side=side).astype(np.int64, copy=False)
    if not y.size:
        return xp.zeros(y.shape, np.int64)
    rows, wanted = x.reshape(math.prod(x.shape[:-1]), -1), y.reshape(-1, y.shape[-1])
    found = [xp.searchsorted(row, w, side=side) for row, w in zip(rows, wanted)]
    return xp.stack(found).reshape(y.shape).astype(np.int64, copy=False)


def _right_of(right, side):
    if side not in (None, "left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if right and side == "left":
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )
    return right or side == "right"


def _check_search(boundaries, values, number, sorter):
    have, wanted = boundaries.array.shape, values.array.shape
    if number or not wanted:
        if len(have) != 1:
            raise RuntimeError(
                "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we "
                f"got boundaries tensor dim({len(have)}) and input value's dim({len(wanted)}) "
                f"numel({values.array.size})"
            )
    elif not have or (len(have) != 1 and have[:-1] != wanted[:-1]):
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
            f"tensor and input value tensor must match, but we got boundaries tensor {list(have)} and input value "
            f"tensor {list(wanted)}"
        )
    if sorter is not None:
        _check_sorter(boundaries, sorter)


def _check_sorter(boundaries, sorter):
    if sorter.array.shape != boundaries.array.shape:
        raise RuntimeError(
            "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor "
            f"{list(boundaries.shape)}and got sorter tensor {list(sorter.shape)}"
        )
    if sorter.dtype is not dtypes.int64:
        raise RuntimeError(
            f"torch.searchsorted(): sorter must be a tensor of long dtype but got dtype {sorter.dtype.legacy}"
        )
    if sorter.array.size and (int(sorter.array.min()) < 0 or int(sorter.array.max()) >= boundaries.array.shape[-1]):
        raise RuntimeError("torch.searchsorted(): sorter index out of range")


def searchsorted(sorted_sequence, input, *, out_int32=False, right=False, side=None, sorter=None, out=None):
    """The places in ``sorted_sequence`` before which the elements of ``input`` belong; after equal ones if ``right``.

    Shapes      sorted_sequence [N], or [..., N] with input [..., M]; out as input, which may be a number
    Dtypes      out int64, or int32 with ``out_int32``
    Raises      RuntimeError where shapes, or ``side`` and ``right``, do not fit
    """
    right, number = _right_of(right, side), not isinstance(input, Tensor)
    values = lift(input, sorted_sequence, TABLE["search"]) if number else input
    _check_search(sorted_sequence, values, number, sorter)
    boundaries = sorted_sequence
    if sorter is not None:
        array = boundaries.array
        boundaries = wrap(xp_of(array).take_along_axis(array, sorter.array, -1))
    index = TABLE["search"].raw(boundaries, values, right=right)
    return placed("searchsorted", index.int() if out_int32 else index, out)


def bucketize(input, boundaries, *, out_int32=False, right=False, out=None):
    """The places in the 1-d sorted ``boundaries`` before which the elements of ``input`` belong.

    Shapes      out as input, which may be a number
    Dtypes      out int64, or int32 with ``out_int32``
    """
    if boundaries.array.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.array.ndim})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right, out=out)


METHODS = ("argsort", "kthvalue", "msort", "sort", "topk")
