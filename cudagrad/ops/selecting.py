"""The public functions that read and write whole slices, or elements, at places given by an integer tensor."""

from .. import errors
from ..backend import xp_of
from ..core.op import TABLE, op
from ..core.promote import cast
from ..core.shape import check_dim
from ..core.tensor import Tensor, wrap
from .broadcasting import broadcast_shapes, expand
from .checks import looks, ndim_of
from .gathering import (
    _add_rows,
    _take,
    fill_number,
    gather,
    in_range,
    largest_unsigned,
    rows,
    rows_add,
    rows_fill,
    rows_put,
    written,
)
from .shape import reshape

__all__ = ("gather", "index_add", "index_copy", "index_fill", "index_select", "put", "take", "take_along_dim")

# ---- reading


def _index_select(input, dim, index):
    dim = check_dim(dim, ndim_of(input, "index_select"))
    _check_index("index_select", index, "Expected dtype int32 or int64 for index", ("int32", "int64"), RuntimeError)
    if index.array.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if input.array.ndim == 0 and index.array.size != 1:
        count = index.array.size
        raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {count} value(s)")
    return input, index, dim


def _check_index(name, index, first, allowed, kind):
    """TypeError where ``index`` is no Tensor, an error of ``kind`` where it is of another dtype than those allowed."""
    if not isinstance(index, Tensor):
        raise TypeError(f"{name}(): argument 'index' (position 3) must be Tensor, not {type(index).__name__}")
    if index.dtype.name not in allowed:
        raise kind(errors.text(f"{name}(): {first}", f"got {index.dtype}", "fix: index.long()"))


@op(
    prepare=_index_select,
    x=lambda m, g, index, x_shape, dim: m.rows_sum(g, index, shape=x_shape, dim=dim),
    adds=_add_rows,
)
def index_select(xp, x, index, *, dim):
    """The slices of x along ``dim`` at the places ``index``; a copy.

    Shapes      index [K] or []; out as x with K at ``dim``
    Derivative  the gradients of a slice that was taken several times add up, in a fixed order
    Raises      IndexError for a place out of range; negative ones are
    """
    size = x.shape[dim] if x.ndim else 1
    if index.size and looks(index) and largest_unsigned(index) >= size:
        raise IndexError("index out of range in self")
    return _take(xp, x, index.reshape(-1), dim) if x.ndim else x.copy()


def take(input, index, *, out=None):
    """The elements of ``input``, counted row by row, at the places ``index``, negative ones from the end.

    Shapes      out as index
    Raises      IndexError for a place out of range
    """
    _check_long("take", index)
    if input.array.size == 0 and index.array.size:
        raise IndexError("take(): tried to take from an empty tensor")
    try:
        return rows(reshape(input, (-1,)), index, dim=0, out=out)
    except IndexError as error:
        raise _out_of_elements(error, input) from None


def _check_long(name, index):
    _check_index(name, index, f"Expected a long tensor for index, but got {_legacy(index)}", ("int64",), RuntimeError)


def _legacy(index):
    return index.dtype.legacy if isinstance(index, Tensor) else None


def _out_of_elements(error, input):
    place = str(error).split(" ")[1]
    return IndexError(f"out of range: tried to access index {place} on a tensor of {input.array.size} elements.")


def take_along_dim(input, indices, dim=None, *, out=None):
    """``gather`` with ``input`` and ``indices`` broadcast in the other dims; without ``dim`` over all elements.

    Raises      RuntimeError where the numbers of dims differ, or for a place out of range
    """
    if indices.dtype.name != "int64":
        raise RuntimeError(f"torch.take_along_dim(): dtype of indices should be Long but got {indices.dtype.legacy}")
    if dim is None:
        return rows(reshape(input, (-1,)), reshape(indices, (-1,)), dim=0, out=out)
    ndim = input.array.ndim
    if indices.array.ndim != ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{ndim} dimensions for input, and {indices.array.ndim} dimensions for indices"
        )
    dim = check_dim(dim, ndim)
    here, there = list(input.array.shape), list(indices.array.shape)
    size, count = here[dim], there[dim]
    here[dim] = there[dim] = 1
    shape = list(broadcast_shapes(here, there))
    wanted = indices.array
    if wanted.size and int(wanted.min()) < 0:  # counted from the end
        indices = wrap(wanted + size * (wanted < 0))
    grown = [expand(t, (*shape[:dim], n, *shape[dim + 1 :])) for t, n in ((input, size), (indices, count))]
    return gather(grown[0], dim, grown[1], out=out)


# ---- writing


def _same_dtype(input, source, text):
    if source.array.dtype is not input.array.dtype:
        raise RuntimeError(
            errors.text(text.format(input.dtype.legacy, source.dtype.legacy), "fix: source.to(input.dtype)")
        )


def _index_add(input, dim, index, source, alpha):
    dim = check_dim(dim, ndim_of(input, "rows_add"))
    if not isinstance(index, Tensor) or index.dtype.name not in ("int32", "int64"):
        text = f"Expected dtype int32/int64 for index but got: {_legacy(index)}"
        _check_index("index_add_", index, text, ("int32", "int64"), RuntimeError)
    if index.array.ndim > 1:
        raise IndexError(
            f"index_add_(): Index is supposed to be a vector, but got dim: {index.array.ndim} with type: "
            f"{index.dtype.legacy} and size: {list(index.shape)}"
        )
    _same_dtype(input, source, "index_add_(): self ({}) and source ({}) must have the same scalar type")
    have, wanted = source.array.shape, list(input.array.shape)
    count = have[dim] if have else 1
    if index.array.size != count:
        raise RuntimeError(
            f"index_add_(): Number of indices ({index.array.size}) should be equal to source.size(dim): ({count}), for "
            f"dim: {dim}"
        )
    wanted[dim : dim + 1] = [count] * len(wanted[dim : dim + 1])
    if list(have) != wanted:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
            f"{list(input.shape)} source.shape = {list(have)}"
        )
    if alpha != 1:
        source = source * fill_number(alpha, source.dtype)
    return dim, _checked_places(input, dim, index, RuntimeError), source


def _checked_places(input, dim, index, kind, name=""):
    """``index``, all of which must be in range and not negative."""
    places, size = index.array, input.array.shape[dim] if input.array.ndim else 1
    if places.size and looks(places) and largest_unsigned(places) >= size:
        bad = int(places[(places < 0) | (places >= size)].reshape(-1)[0])
        raise kind(f"{name}index {bad} is out of bounds for dimension {dim} with size {size}")
    return index


def index_add(input, dim, index, source, *, alpha=1, out=None):
    """``input`` with ``alpha * source`` added to its slices at ``index`` of dim ``dim``, in a fixed order.

    Raises      RuntimeError where shapes, dtypes or places do not fit
    """
    dim, index, source = _index_add(input, dim, index, source, alpha)
    return rows_add(input, index, source, dim=dim, out=out)


def index_add_(self, dim, index, source, *, alpha=1):
    """In-place form of :func:`index_add`."""
    dim, index, source = _index_add(self, dim, index, source, alpha)
    return written(self, lambda x: rows_add(x, index, source, dim=dim, inplace=True), source)


def _index_copy(input, dim, index, source):
    dim, ndim = check_dim(dim, ndim_of(input, "rows_put")), input.array.ndim
    _check_long("index_copy_", index)
    if index.array.ndim > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {index.array.ndim})")
    _same_dtype(
        input,
        source,
        "index_copy_(): self and source expected to have the same dtype, but got (self) {} and (source) {}",
    )
    if source.array.ndim != ndim and ndim and source.array.ndim:
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
            f"dimensionality ({source.array.ndim}), destination dimensionality ({ndim})"
        )
    have = source.array.shape or (1,)
    here, there = (list(s[:dim]) + list(s[dim + 1 :]) for s in (input.array.shape or (1,), have))
    if here != there:
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
            f"{' '.join(map(str, here))} at dimension {dim} and source slice shape: {' '.join(map(str, there))} at "
            "dimension 0."
        )
    if index.array.size != have[dim]:
        raise IndexError(
            f"index_copy_(): Number of indices ({index.array.size}) should be equal to source.size(dim) ({have[dim]})"
        )
    return dim, _checked_places(input, dim, index, IndexError, "index_copy_(): ")


def index_copy(input, dim, index, source, *, out=None):
    """``input`` with its slices at ``index`` of dim ``dim`` replaced by ``source``; of equal places the last wins."""
    dim, index = _index_copy(input, dim, index, source)
    return rows_put(input, index, source, dim=dim, out=out)


def index_copy_(self, dim, index, source):
    """In-place form of :func:`index_copy`."""
    dim, index = _index_copy(self, dim, index, source)
    return written(self, lambda x: rows_put(x, index, source, dim=dim, inplace=True), source)


def _index_fill(input, dim, index, value):
    dim = check_dim(dim, ndim_of(input, "rows_fill"))
    _check_index("index_fill_", index, "Expected dtype int64 for index.", ("int64",), IndexError)
    if index.array.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    if isinstance(value, Tensor):
        if value.array.ndim:
            raise RuntimeError(
                "index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                f"{value.array.ndim} dimension(s)."
            )
        return dim, value if value.array.dtype is input.array.dtype else cast(value, input.array.dtype)
    if isinstance(value, complex) and input.dtype.category < 3:
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    return dim, fill_number(value, input.dtype)


def _at_index(input, dim, index):
    """The bool tensor, of a shape that broadcasts to ``input``, that is True at ``index`` of ``dim``."""
    xp = xp_of(input.array)
    mask = xp.zeros(input.array.shape[dim] if input.array.ndim else 1, bool)
    mask[in_range(xp, index.array, mask.size, dim)] = True
    return wrap(mask.reshape((-1,) + (1,) * (input.array.ndim - 1 - dim)) if input.array.ndim else mask.reshape(()))


def index_fill(input, dim, index, value, *, out=None):
    """``input`` with its slices at ``index`` of dim ``dim`` filled with ``value``, a number or a 0-d tensor."""
    dim, value = _index_fill(input, dim, index, value)
    if isinstance(value, Tensor):
        return TABLE["fill_where"].raw(input, _at_index(input, dim, index), value, out=out)
    return rows_fill(input, index, dim=dim, value=value, out=out)


def index_fill_(self, dim, index, value):
    """In-place form of :func:`index_fill`."""
    dim, value = _index_fill(self, dim, index, value)
    if isinstance(value, Tensor):
        mask = _at_index(self, dim, index)
        return written(self, lambda x: TABLE["fill_where"].raw(x, mask, value, inplace=True))
    return written(self, lambda x: rows_fill(x, index, dim=dim, value=value, inplace=True))


def put(input, index, source, accumulate=False):
    """``input`` with ``source`` written (or added) at the places ``index``, elements counted row by row.

    Raises      IndexError for a place out of range, or where the counts differ
    """
    _check_long("put_", index)
    if index.array.size != source.array.size:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source.array.size}, index.numel() = {index.array.size}"
        )
    text = "put_(): self and source expected to have the same dtype, but got self.dtype = {} and source.dtype = {}"
    _same_dtype(input, source, text)
    write = rows_add if accumulate else rows_put
    try:
        flat = write(reshape(input, (-1,)), reshape(index, (-1,)), reshape(source, (-1,)), dim=0)
    except IndexError as error:
        raise _out_of_elements(error, input) from None
    return reshape(flat, input.array.shape)


INPLACE = ("put",)
METHODS = {n: globals()[n] for n in __all__}
METHODS |= {n: globals()[n] for n in ("index_add_", "index_copy_", "index_fill_")}
