"""What an index means: its basic part as a view, and masks and integer tensors as one flat index over some dims."""

import math
import warnings

import numpy as np

from .. import dtypes, errors
from ..backend import ARRAYS
from ..core.op import TABLE, op
from ..core.promote import cast
from ..core.tensor import Tensor, canonical, wrap
from .axes import permute
from .gathering import in_range
from .masking import true_places
from .shape import reshape
from .splitting import element, part

unsqueeze_at = TABLE["unsqueeze"].raw

_NEITHER = "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got {})"

# ---- what an index means


def basic_view(input, items):
    """The view of ``input`` at a tuple of ints, slices that step forward, None and at most one Ellipsis.

    None where the tuple holds anything else. The op is the one that PyTorch would name last.
    """
    dots = ints = False
    last, chosen = slice, 0
    for i in items:
        kind = i.__class__
        if kind is int:
            ints, last = True, int
            chosen += 1
        elif kind is slice:
            if i.step is not None and not i.step > 0:
                raise ValueError("slice step cannot be zero" if i.step == 0 else "step must be greater than zero")
            if i.start is not None or i.stop is not None or i.step is not None:
                last = slice
                chosen += 1
        elif i is None:
            last = None
            chosen += 1
        elif i is Ellipsis and not dots:
            dots = True
        else:
            return None
    if last is None and chosen == 1 and not dots:
        return unsqueeze_at(input, dim=items.index(None))
    if ints and not dots:
        items = (*items, ...)  # without it NumPy gives a scalar where all are ints
    return element(input, index=items) if last is int else part(input, index=items)


def _items(index):
    """The index as a tuple; a short list that holds more than numbers counts as one, as it once did in NumPy."""
    if isinstance(index, tuple):
        return tuple(index)
    if isinstance(index, list) and len(index) < 32:
        if any(i is None or i is Ellipsis or isinstance(i, (Tensor, list, tuple, range, slice, str)) for i in index):
            warnings.warn(
                "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in pytorch "
                "2.9; use x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as tensor index, "
                "x[torch.tensor(seq)], which will result either in an error or a different result",
                UserWarning,
                stacklevel=4,
            )
            return tuple(index)
    return (index,)


def _item(i, like):
    """One item of an index as an int, a slice, None, Ellipsis, a bool, or an integer or bool Tensor with dims."""
    if i is None or i is Ellipsis or isinstance(i, (slice, bool)):
        return i
    if isinstance(i, int):
        return int(i)
    if isinstance(i, (list, range, tuple, bytearray, np.ndarray)):
        i = _tensor_of(i)
    if isinstance(i, str):
        raise TypeError("new(): invalid data type 'str'")
    if not isinstance(i, Tensor):
        if i.__class__ in ARRAYS:
            i = wrap(canonical(i))
        elif hasattr(i, "__index__") and not isinstance(i, np.bool_):
            return i.__index__()
        else:
            kind = type(i)
            name = f"numpy.{kind.__name__}" if kind.__module__ == "numpy" else kind.__name__
            raise IndexError(errors.text(_NEITHER.format(name), "fix: int(i), or a tensor of dtype int64 or bool"))
    return tensor_item(i, like)


def tensor_item(i, like):
    d = i.dtype
    if d.name not in ("bool", "uint8", "int32", "int64"):
        first = "tensors used as indices must be long, int, byte or bool tensors"
        raise IndexError(errors.text(first, f"got {d} {tuple(i.shape)}", "fix: index.long()"))
    if d.name == "uint8":
        if i.array.ndim:
            warnings.warn(
                "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.",
                UserWarning,
                stacklevel=5,
            )
        i = cast(i, dtypes.bool.numpy)
    if not i.array.ndim:
        return i.item()
    return i if i.array.__class__ is like.array.__class__ else i.to(like.device)


def _tensor_of(values):
    """A sequence of numbers, bools or 0-d tensors as an index tensor: bool and uint8 stay, others become int64."""
    array = values if isinstance(values, np.ndarray) else np.array(_numbers_of(values))
    if array.dtype != np.uint8 and array.dtype != bool:
        array = array.astype(np.int64)
    return wrap(canonical(array))


def _numbers_of(values):
    if isinstance(values, Tensor):
        return values.tolist()
    return [_numbers_of(v) for v in values] if isinstance(values, (list, tuple, range)) else values


def parse(input, index):
    """The view at the basic part of an index, and ``[(dim of the view, tensor or bool)]`` for the rest."""
    items = [_item(i, input) for i in _items(index)]
    used = 0
    for i in items:
        if isinstance(i, Tensor):
            used += i.array.ndim if i.dtype is dtypes.bool else 1
        elif i is not None and i is not Ellipsis and not isinstance(i, bool):
            used += 1
    ndim = input.array.ndim
    if used > ndim:
        if ndim == 0 and items[0].__class__ in (int, slice) and len(items) == 1:
            return basic_view(input, tuple(items)), []  # which has its own words
        raise IndexError(errors.text(f"too many indices for tensor of dimension {ndim}", f"got {tuple(input.shape)}"))
    basic, chosen, dim = [], [], 0
    for i in items:
        if i is Ellipsis:
            basic += [slice(None)] * (ndim - used)
            dim, used = dim + ndim - used, ndim  # a second one stands for nothing
        elif isinstance(i, Tensor):
            chosen.append((dim, i))
            width = i.array.ndim if i.dtype is dtypes.bool else 1
            basic += [slice(None)] * width
            dim += width
        else:
            if isinstance(i, bool):
                chosen.append((dim, i))
                i = None
            basic.append(i)
            dim += i.__class__ is not int
    untouched = chosen and all(i == slice(None) for i in basic)
    return input if untouched else basic_view(input, tuple(basic)), chosen


# ---- masks and integer tensors: one flat index over the dims they stand for


@op()
def merged_places(xp, *xs, spans, sizes):
    """The places in the dims ``sizes``, taken as one, that several broadcast index tensors choose together.

    ``spans`` gives ``(first, end)`` of the dims that each tensor indexes; dims between them are taken whole.

    Shapes      out: what the tensors broadcast to, then the dims between
    Raises      IndexError for a place out of range, or tensors that do not broadcast
    """
    try:
        shape = xs[0].shape
        if any([x.shape != shape for x in xs]):
            shape = np.broadcast_shapes(*[x.shape for x in xs])
    except ValueError:
        given = ", ".join(str(list(x.shape)) for x in xs)
        first = "shape mismatch: indexing tensors could not be broadcast together with shapes"
        raise IndexError(f"{first} {given}") from None
    steps = [1] * (len(sizes) + 1)
    for d in reversed(range(len(sizes))):
        steps[d] = steps[d + 1] * sizes[d]
    between = [d for d in range(len(sizes)) if not any(first <= d < end for first, end in spans)]
    places = xp.zeros(shape + (1,) * len(between), np.int64)
    for ordinal, (x, (first, end)) in enumerate(zip(xs, spans)):
        x = in_range(xp, x, math.prod(sizes[first:end]), ordinal)
        places = places + x.reshape(x.shape + (1,) * len(between)) * steps[end]
    for i, d in enumerate(between):
        along = xp.arange(sizes[d], dtype=np.int64) * steps[d + 1]
        places = places + along.reshape((-1,) + (1,) * (len(between) - 1 - i))
    return places


class Choice:
    """Index tensors applied to a view: dims ``first`` to ``end`` of it as one, at ``places`` (an integer Tensor).

    ``leads``: the dims that the tensors broadcast to come first in the result, for they stand apart in the index.
    ``mask``: the one mask there is. ``shape``: the result's.
    """

    def __init__(self, view, chosen):
        whole = view.array.shape
        entries = [_entry(whole, dim, i, view) for dim, i in chosen]
        self.mask = entries[0][2] if len(entries) == 1 else None
        self.first, self.end = entries[0][0], entries[-1][1]
        self.merged = (*whole[: self.first], math.prod(whole[self.first : self.end]), *whole[self.end :])
        self.leads = any(a[1] != b[0] for a, b in zip(entries, entries[1:]))
        self.places = entries[0][3]
        self.chosen_ndim = self.places.array.ndim
        if len(entries) > 1:
            self._merge(entries, whole)
        here = self.places.array.shape
        self.unordered = (*whole[: self.first], *here, *whole[self.end :])
        order = self.order()
        self.shape = self.unordered if order is None else tuple([self.unordered[d] for d in order])

    def _merge(self, entries, whole):
        spans = tuple((a - self.first, b - self.first) for a, b, _, _ in entries)
        tensors = [t if t.array.itemsize == 8 else cast(t, dtypes.int64.numpy) for _, _, _, t in entries]
        self.chosen_ndim = max(t.array.ndim for t in tensors)
        self.places = TABLE["merged_places"].raw(tensors, spans=spans, sizes=whole[self.first : self.end])

    def over(self, view):
        """The view with the dims that are indexed as one."""
        return view if view.array.shape == self.merged else reshape(view, self.merged)

    def order(self):
        """The order of dims that brings the chosen ones to the front, or None."""
        if not self.leads or not self.first:
            return None
        chosen = range(self.first, self.first + self.chosen_ndim)
        return (*chosen, *(d for d in range(len(self.unordered)) if d not in chosen))

    def ordered(self, t):
        """A tensor of shape ``unordered`` with its dims as the result has them."""
        order = self.order()
        return t if order is None else TABLE["clone"].raw(permute(t, order), memory_format="contiguous_format")

    def unorder(self, t):
        """A tensor of the result's shape with its dims as in ``unordered``."""
        order = self.order()
        return t if order is None else permute(t, tuple([order.index(d) for d in range(len(order))]))


def _entry(whole, dim, i, view):
    """``(first dim, end dim, mask or None, places)`` of one tensor or bool of an index."""
    if isinstance(i, bool):
        return dim, dim + 1, None, _tensor_of([0] if i else []).to(view.device)
    if i.dtype is not dtypes.bool:
        return dim, dim + 1, None, i
    for d, n in enumerate(i.array.shape):
        if whole[dim + d] != n:
            raise IndexError(
                f"The shape of the mask {list(i.shape)} at index {d} does not match the shape of the indexed tensor "
                f"{list(whole)} at index {dim + d}"
            )
    return dim, dim + i.array.ndim, i, true_places(i.array)
