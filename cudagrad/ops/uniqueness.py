"""The distinct elements, rows or runs of a tensor."""

import math

import numpy as np

from ..backend import xp_of
from ..core.shape import check_dim
from ..core.tensor import wrap
from .sorting import _comparable

__all__ = ("unique", "unique_consecutive")


def _results(values, inverse, counts, return_inverse, return_counts, shape):
    """The tensors that were asked for: one, or a tuple."""
    found = [wrap(values)]
    if return_inverse:
        found.append(wrap(inverse.reshape(shape).astype(np.int64, copy=False)))
    if return_counts:
        found.append(wrap(counts.astype(np.int64, copy=False)))
    return found[0] if len(found) == 1 else tuple(found)


def _lines(xp, array, dim):
    """``array`` with dim ``dim`` in front and the others as one: [N, S]."""
    moved = xp.moveaxis(array, dim, 0)
    return moved.reshape(moved.shape[0], math.prod(moved.shape[1:])), moved.shape[1:]


def _unlines(xp, lines, rest, dim):
    return xp.ascontiguousarray(xp.moveaxis(lines.reshape(lines.shape[0], *rest), 0, dim))


def _order_of_lines(xp, lines):
    """The stable order that sorts the rows of ``lines``, first elements first."""
    if not lines.shape[1]:
        return xp.arange(lines.shape[0])
    return xp.lexsort(xp.stack([column for column in lines.T[::-1]]))


def _starts(xp, lines):
    """Where a row differs from the one before it; True at the first. Nan differs from nan."""
    first = xp.ones(lines.shape[0], bool)
    first[1:] = (lines[1:] != lines[:-1]).any(1)
    return first


def _grouped(xp, first):
    """The group that each place belongs to, and how many places each group has."""
    group = xp.cumsum(first) - 1
    starts = xp.flatnonzero(first)
    return group, xp.diff(xp.append(starts, first.size))


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The distinct elements in order; with ``dim`` the distinct slices along it. No gradient passes.

    With ``return_inverse`` also where each element went, with ``return_counts`` how often each was there; then a tuple.
    Each nan is distinct. The result is in order with and without ``sorted``.

    Shapes      [K], and the inverse as input; with ``dim`` K in its place, and the inverse [N]
    Differs     the values have no grad_fn; PyTorch's have one that raises
    """
    xp, array = xp_of(input.array), input.array
    shape = array.shape
    if dim is None:
        lines, rest, dim = array.reshape(-1, 1), (), 0
    else:
        dim = _checked_dim(input, dim, "unique")
        lines, rest = _lines(xp, array, dim)
        shape = (lines.shape[0],)
    compared = _comparable(lines)
    order = xp.argsort(compared[:, 0], kind="stable") if not rest else _order_of_lines(xp, compared)
    first = _starts(xp, compared[order])
    group, counts = _grouped(xp, first)
    inverse = xp.empty(order.size, np.int64)
    inverse[order] = group
    values = lines[order][first]
    values = _unlines(xp, values, rest, dim) if rest else values.reshape(-1)
    return _results(values, inverse, counts, return_inverse, return_counts, shape)


def _checked_dim(input, dim, name):
    dim = check_dim(dim, input.array.ndim)
    if input.array.size == 0 and any(n == 0 for d, n in enumerate(input.array.shape) if d != dim):
        raise RuntimeError(f"There are 0 sized dimensions, and they aren't selected, so {name} cannot be applied")
    return dim


def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """The elements without those that equal the one before; with ``dim`` slices along it. No gradient passes.

    Shapes, ``return_inverse`` and ``return_counts`` as in ``unique``.
    """
    xp, array = xp_of(input.array), input.array
    shape = array.shape
    if dim is None:
        lines, rest, dim = array.reshape(-1, 1), (), 0
    else:
        dim = _checked_dim(input, dim, "unique_consecutive")
        lines, rest = _lines(xp, array, dim)
        shape = (lines.shape[0],)
    first = _starts(xp, lines)
    group, counts = _grouped(xp, first)
    values = _unlines(xp, lines[first], rest, dim) if rest else lines[first].reshape(-1)
    return _results(values, group, counts, return_inverse, return_counts, shape)


METHODS = __all__
