"""Indexing by brackets, as PyTorch does it: reading and writing."""

import numpy as np

from .. import dtypes, errors
from ..core.inplace import bump, write
from ..core.tensor import Tensor
from ..core.views import INFERENCE, alias
from ..core.writable import check_writable
from .broadcasting import expand, fits
from .gathering import SAFE, fill_number, rows, rows_add, rows_fill, rows_put, written
from .index_parts import Choice, basic_view, parse, tensor_item
from .masking import masked_fill_
from .shape import reshape
from .sizes import viewable
from .splitting import element

__all__ = ("index_put", "index_put_")

_NUMBERS = (bool, int, float, complex, np.generic)

# ---- reading


def getitem(input, index):
    """``input[index]`` as PyTorch reads it.

    Ints, slices, None, Ellipsis and 0-d integer tensors give a view. Masks (bool; uint8 with a warning), integer
    tensors, arrays and lists give a copy: they broadcast, and their dims stand where the first of them stood, or in
    front where others stand between them.

    Derivative  the gradient at the index, 0 elsewhere; an element read several times gets the sum, in a fixed order
    Raises      IndexError for what is out of range or no index, ValueError for steps that are not forward
    """
    kind = index.__class__
    if kind is int:
        return element(input, index=(index, ...))
    if kind is Tensor and input.array.ndim and index.array.ndim and index.array.dtype.char in "lq":
        if index.array.__class__ is input.array.__class__:
            return rows(input, index, dim=0)
    view = basic_view(input, index if kind is tuple else (index,))
    if view is not None:
        return view
    if kind is Tensor and index.array.dtype.char == "?" and 0 < index.array.ndim <= input.array.ndim:
        view, chosen = (
            input,
            ((0, index if index.array.__class__ is input.array.__class__ else index.to(input.device)),),
        )
    else:
        view, chosen = parse(input, index)
    if not chosen:
        return view
    choice = Choice(view, chosen)
    return choice.ordered(rows(choice.over(view), choice.places, dim=choice.first))


# ---- writing


def setitem(self, index, value):
    """``self[index] = value``: in place, the value (a Tensor or number) broadcast; ``value``'s gradient flows.

    Raises      TypeError for another value, RuntimeError where it does not broadcast or may not be written,
                IndexError as in reading
    """
    if not isinstance(value, (Tensor, *_NUMBERS)):
        raise TypeError(f"can't assign a {_type_name(value)} to a torch.{self.dtype.legacy}Tensor")
    if _written_plainly(self, index, value):
        return
    items = index if index.__class__ is tuple else (index,)
    view, chosen = basic_view(self, items), ()
    if view is None:
        view, chosen = parse(self, index)
    if all([i is Ellipsis for i in items]):
        view = self
    if chosen:
        _put(view, Choice(view, chosen), value, False)
    elif isinstance(value, Tensor):
        view.copy_(expand(_without_leading_ones(value), view.array.shape))
    else:
        view.fill_(fill_number(value, view.dtype))


def _written_plainly(self, index, value):
    """Write where no history and no view is concerned, and NumPy's rules are PyTorch's; whether that was possible.

    What NumPy refuses is left to the long way, which has PyTorch's words: 2 us against 20 for ``x[0] = 1.0``.
    """
    array = self.array
    if self.node is not None or self.link is not None or self.version is INFERENCE or array.__class__ is not np.ndarray:
        return False
    if value.__class__ is float or value.__class__ is int:
        if array.dtype.char not in "efd" or not -SAFE <= value <= SAFE:
            return False
    elif value.__class__ is Tensor and value.node is None and value.array.dtype is array.dtype:
        value = value.array
        if value.__class__ is not np.ndarray or _of_one_memory(array, value):
            return False
    else:
        return False
    key = _plain_key(index)
    if key is None or 0 in array.strides:
        return False
    try:
        array[key] = value
    except (IndexError, TypeError, ValueError):
        return False
    bump(self)
    return True


def _of_one_memory(a, b):
    return b is a or (b.base is not None and (b.base is a or b.base is a.base))


def _plain_key(index):
    """The index for NumPy, where it means the same there; else None."""
    for i in index if index.__class__ is tuple else (index,):
        kind = i.__class__
        if kind is slice:
            if i.step is not None and not i.step > 0:
                return None
        elif kind is Tensor:
            a = i.array
            if index is not i or not a.ndim or a.dtype.char not in "?lq" or a.__class__ is not np.ndarray:
                return None
            return a
        elif kind is not int and i is not Ellipsis:
            return None
    return index


def _type_name(value):
    kind = type(value)
    return f"numpy.{kind.__name__}" if kind.__module__ == "numpy" else kind.__name__


def _without_leading_ones(value):
    """``value`` without the leading dims of length 1 that a slice of it would not have either."""
    shape = value.array.shape
    start = 0
    while start < len(shape) and shape[start] == 1:
        start += 1
    return value if not start else reshape(value, shape[start:])


def _put(view, choice, value, accumulate):
    """Write ``value`` (or add it) into ``view`` where ``choice`` says, in place."""
    if not isinstance(value, Tensor):
        value = fill_number(value, view.dtype)
        if choice.mask is not None and not accumulate:
            masked_fill_(view, _over(view, choice), value)
            return
    else:
        value = _fitting(view, choice, value, cast_one=not accumulate)
    check_writable(view)
    if viewable(view.array, choice.merged):
        target = choice.over(view)
        written(target, lambda x: _replaced(x, choice, value, accumulate, True), value)
    else:  # the dims are apart in memory: write into a copy, and that back
        copy = _replaced(choice.over(alias(view)), choice, value, accumulate, False)
        write(view, reshape(copy, view.array.shape))


def _over(view, choice):
    """The mask with dims of length 1 where it says nothing, so that it broadcasts to the view."""
    mask = choice.mask
    after = view.array.ndim - choice.end
    return reshape(mask, (1,) * choice.first + mask.array.shape + (1,) * after)


def _replaced(x, choice, value, accumulate, inplace):
    if not isinstance(value, Tensor):
        return rows_fill(x, choice.places, dim=choice.first, value=value, inplace=inplace)
    replace = rows_add if accumulate else rows_put
    return replace(x, choice.places, value, dim=choice.first, inplace=inplace)


def _fitting(view, choice, value, cast_one=False):
    """``value`` broadcast to what the index reads, with its dims in the order in which they are written."""
    if value.array.__class__ is not view.array.__class__ and not value.array.ndim:
        value = value.to(view.device)
    given = value.array.shape
    if not fits(given, choice.shape):
        value = _without_leading_ones(value)
    if not fits(value.array.shape, choice.shape):
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(given)} cannot be broadcast to indexing result of shape "
            f"{list(choice.shape)}"
        )
    if cast_one and choice.mask is not None and value.array.size == 1:  # PyTorch fills by a mask then
        if 3 not in (value.dtype.category, view.dtype.category) or value.dtype is view.dtype:
            value = value.to(view.dtype, copy=True)
    if value.array.dtype is not view.array.dtype:
        raise RuntimeError(
            errors.text(
                "Index put requires the source and destination dtypes match, got "
                f"{view.dtype.legacy} for the destination and {value.dtype.legacy} for the source.",
                "fix: value.to(x.dtype)",
            )
        )
    return choice.unorder(expand(value, choice.shape))


def _choice_of(name, input, indices, values):
    first = 1 if name.endswith("_") else 2
    if not isinstance(indices, (tuple, list)):
        what = type(indices).__name__
        raise TypeError(f"{name}(): argument 'indices' (position {first}) must be tuple of Tensors, not {what}")
    for i, index in enumerate(indices):
        if not isinstance(index, Tensor):
            what = type(index).__name__
            raise TypeError(f"expected Tensor as element {i} in argument {first - 1}, but got {what}")
    if not isinstance(values, Tensor):
        raise TypeError(
            f"{name}(): argument 'values' (position {first + 1}) must be Tensor, not {type(values).__name__}"
        )
    tensors = [_with_dims(i, input) for i in indices]
    count, ndim = sum(t.array.ndim if t.dtype is dtypes.bool else 1 for t in tensors), input.array.ndim
    if count > ndim:
        raise IndexError(f"too many indices for tensor of dimension {ndim} (got {count})")
    chosen, dim = [], 0
    for t in tensors:
        chosen.append((dim, t))
        dim += t.array.ndim if t.dtype is dtypes.bool else 1
    return Choice(input, chosen)


def _with_dims(index, like):
    """An index tensor, checked; a 0-d one as one of one element."""
    return tensor_item(index if index.array.ndim else reshape(index, (1,)), like)


def index_put(input, indices, values, accumulate=False):
    """``input`` with ``values`` written at ``input[indices]``, a tuple of tensors; or added there, in a fixed order.

    Dtypes      values as input
    Raises      IndexError for a place out of range, RuntimeError where values do not broadcast
    """
    choice = _choice_of("index_put", input, indices, values)
    value = _fitting(input, choice, values)
    result = _replaced(choice.over(input), choice, value, accumulate, False)
    return result if result.array.shape == input.array.shape else reshape(result, input.array.shape)


def index_put_(self, indices, values, accumulate=False):
    """In-place form of :func:`index_put`."""
    _put(self, _choice_of("index_put_", self, indices, values), values, accumulate)
    return self


METHODS = __all__
