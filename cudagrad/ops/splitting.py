"""Parts of a tensor as views: slices, pieces, diagonals, windows; and the adjoints that put parts into zeros."""

import operator

from .. import errors
from ..core.op import TABLE, op
from ..core.shape import check_dim
from ..core.tensor import Tensor
from ..core.views import multi_view
from .checks import ndim_of, no_overload
from .outputs import placed
from .sizes import laid_over, sizes_of

__all__ = (
    *("chunk", "diagonal", "diagonal_scatter", "dsplit", "hsplit", "narrow", "narrow_copy", "select", "select_scatter"),
    *("slice_scatter", "split", "split_with_sizes", "tensor_split", "unbind", "unsafe_chunk", "unsafe_split"),
    *("unsafe_split_with_sizes", "vsplit"),
)

# ---- a part given by a basic index, and the whole around it


def _add_part(total, g, index):
    total[index] += g


def _at(dim, what):
    """The basic index that takes ``what`` (an int or slice) of dim ``dim``."""
    return (*(slice(None),) * dim, what, ...)


def _index_text(error, x, **options):
    """NumPy's words for an index out of range in PyTorch's."""
    if not isinstance(error, IndexError):
        return None
    said = str(error).split("\n")[0]
    if "too many indices" not in said:
        return IndexError(errors.text(said.replace("axis", "dimension"), f"got {x.dtype} {x.shape}"))
    if x.ndim == 0 and options["index"][0].__class__ is slice:
        return IndexError("slice() cannot be applied to a 0-dim tensor.")
    if x.ndim == 0:
        return IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
            "0-dim tensor to a number"
        )
    return IndexError(errors.text(f"too many indices for tensor of dimension {x.ndim}", f"got {x.dtype} {x.shape}"))


@op(
    x=lambda m, g, x_shape, index: m.whole(g, index=index, shape=x_shape),
    adds=lambda total, g, index: _add_part(total, g, index),
    view=True,
    inline="x[index]",
    explain=_index_text,
    node="Slice",
)
def part(xp, x, *, index):
    """x[index], a view; ``index`` a tuple of ints, slices with positive steps, None and one Ellipsis.

    Derivative  the gradient at ``index``, 0 elsewhere
    Raises      IndexError for an int out of range
    """
    return x[index]


@op(
    x=lambda m, g, x_shape, index: m.whole(g, index=index, shape=x_shape),
    adds=lambda total, g, index: _add_part(total, g, index),
    view=True,
    inline="x[index]",
    explain=_index_text,
    node="Select",
)
def element(xp, x, *, index):
    """x[index], a view: as ``part``, for an index that ends in an int; it must hold an Ellipsis."""
    return x[index]


@op(x=lambda m, g, index: m.part(g, index=index))
def whole(xp, x, *, index, shape):
    """Zeros of ``shape`` with x at the basic ``index``: the adjoint of part."""
    out = xp.zeros(shape, x.dtype)
    out[index] = x
    return out


# ---- slices along one dim


def _select(input, dim, index):
    ndim = ndim_of(input, "select")
    if ndim == 0:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim, index = check_dim(dim, ndim), operator.index(index)
    n = input.array.shape[dim]
    if not -n <= index < n:
        shape = list(input.array.shape)
        raise IndexError(f"select(): index {index} out of range for tensor of size {shape} at dimension {dim}")
    return input, dim, index


@op(
    prepare=_select,
    x=lambda m, g, x_shape, dim, index: m.whole(g, index=_at(dim, index), shape=x_shape),
    adds=lambda total, g, dim, index: _add_part(total, g, _at(dim, index)),
    view=True,
)
def select(xp, x, *, dim, index):
    """The slice of x at place ``index`` of dim ``dim``, without that dim; a view."""
    return x[_at(dim, index)]


def _narrow(input, dim, start, length):
    ndim = ndim_of(input, "narrow")
    if ndim == 0:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if isinstance(start, Tensor) and (start.array.ndim or start.dtype.category != 1):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    dim, start, length = check_dim(dim, ndim), operator.index(start), operator.index(length)
    n = input.array.shape[dim]
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if not -n <= start <= n:
        raise IndexError(f"start out of range (expected to be in range of [-{n}, {n}], but got {start})")
    start = start + n if start < 0 else start
    if start + length > n:
        raise RuntimeError(
            errors.text(
                f"start ({start}) + length ({length}) exceeds dimension size ({n}).", f"got {input.array.shape}"
            )
        )
    return input, dim, start, length


def _span(dim, start, length):
    return (*(slice(None),) * dim, slice(start, start + length))


@op(
    prepare=_narrow,
    x=lambda m, g, x_shape, dim, start, length: m.whole(g, index=_span(dim, start, length), shape=x_shape),
    adds=lambda total, g, dim, start, length: _add_part(total, g, _span(dim, start, length)),
    view=True,
    node="Slice",
)
def narrow(xp, x, *, dim, start, length):
    """The ``length`` slices of x from place ``start`` of dim ``dim`` on, a view."""
    return x[_span(dim, start, length)]


def narrow_copy(input, dim, start, length, *, out=None):
    """A copy of ``input.narrow(dim, start, length)``."""
    return placed("narrow_copy", TABLE["clone"].raw(narrow(input, dim, start, length)), out)


# ---- all pieces of a tensor


def _pieces(input, dim, lengths, maker):
    """The pieces of ``lengths`` one after the other along ``dim``, marked as views of one ``maker``."""
    cut, pieces, start = TABLE["part"].raw, [], 0
    for length in lengths:
        piece = cut(input, index=_span(dim, start, length))
        pieces.append(multi_view(piece, maker, len(pieces)) if maker else piece)
        start += length
    return tuple(pieces)


def _dim_of_pieces(function, input, dim):
    if ndim_of(input, "narrow") == 0:
        raise RuntimeError(f"{function} expects at least a 1-dimensional tensor")
    return check_dim(dim, input.array.ndim)


def split(tensor, split_size_or_sections=None, dim=0, *, split_size=None):
    """``tensor`` in pieces along ``dim``: of one size, the last perhaps smaller, or of the sizes given; views.

    The pieces are not for writing into.

    Raises      RuntimeError for sizes that are negative or do not add up
    """
    size = split_size_or_sections if split_size is None else split_size
    if not hasattr(size, "__index__") or isinstance(size, (list, tuple)):
        return split_with_sizes(tensor, size, dim)
    dim, size = _dim_of_pieces("split", tensor, dim), operator.index(size)
    n = tensor.array.shape[dim]
    if size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={size}")
    if size == 0 and n:
        raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {n}")
    return _pieces(tensor, dim, _even(n, size), "SplitBackward0")


def _even(n, size):
    """The lengths of pieces of ``size``, of which the last may be smaller."""
    whole, rest = divmod(n, size) if size else (0, 0)
    return [size] * whole + ([rest] if rest or not whole else [])


def split_with_sizes(input, split_sizes, dim=0):
    """``input`` in pieces of ``split_sizes`` along ``dim``; views that are not for writing into."""
    dim = _dim_of_pieces("split", input, dim)
    sizes, n = sizes_of((split_sizes,), None, "split_with_sizes", "split_sizes"), input.array.shape[dim]
    if any(size < 0 for size in sizes):
        raise RuntimeError(
            f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={list(sizes)}"
        )
    if sum(sizes) != n:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {n} (input tensor's size at dimension {dim}), but "
            f"got split_sizes={list(sizes)}"
        )
    return _pieces(input, dim, sizes, "SplitWithSizesBackward0")


def chunk(input, chunks, dim=0, *, axis=None):
    """``input`` in at most ``chunks`` pieces of one size along ``dim``, the last perhaps smaller; views.

    Five slices in four chunks make pieces of 2, 2 and 1; ``tensor_split`` makes exactly as many as asked.
    """
    dim = _dim_of_pieces("chunk", input, dim if axis is None else axis)
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    n = input.array.shape[dim]
    if n == 0:
        return _pieces(input, dim, [0] * chunks, "SplitBackward0")
    return _pieces(input, dim, _even(n, -(-n // chunks)), "SplitBackward0")


def unsafe_split(tensor, split_size, dim=0):
    """``split``, with pieces that may be written into: their gradients are then right only if nothing overlaps."""
    return _writable(split(tensor, split_size, dim))


def unsafe_split_with_sizes(input, split_sizes, dim=0):
    """``split_with_sizes``, with pieces that may be written into."""
    return _writable(split_with_sizes(input, split_sizes, dim))


def unsafe_chunk(input, chunks, dim=0):
    """``chunk``, with pieces that may be written into."""
    return _writable(chunk(input, chunks, dim))


def _writable(pieces):
    return tuple(multi_view(piece, None) for piece in pieces)


def tensor_split(input, indices_or_sections=None, dim=0, *, indices=None, sections=None):
    """``input`` in so many pieces along ``dim``, whose sizes differ by at most one, or cut at places given; views."""
    ndim = ndim_of(input, "narrow")
    if ndim == 0:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    given = next((v for v in (indices_or_sections, indices, sections) if v is not None), None)
    dim = check_dim(dim, ndim)
    if isinstance(given, Tensor):
        given = _indices_of(given)
    n = input.array.shape[dim]
    if hasattr(given, "__index__"):
        count = operator.index(given)
        if count <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {count}")
        return _pieces(input, dim, [n // count + (i < n % count) for i in range(count)], None)
    cuts = [min(max(c + n if c < 0 else c, 0), n) for c in sizes_of((given,), None, "tensor_split", "indices")]
    return tuple(
        TABLE["narrow"].raw(input, dim=dim, start=start, length=max(stop - start, 0))
        for start, stop in zip([0, *cuts], [*cuts, n])
    )


def _indices_of(given):
    name = "tensor_split expected tensor_indices_or_sections to"
    if given.dtype.name != "int64":
        raise RuntimeError(f"{name} have dtype of long, but got {given.dtype.legacy}")
    if given.array.ndim > 1:
        raise RuntimeError(
            f"{name} be a zero-dimensional or one-dimensional tensor, but got a tensor with {given.array.ndim} dims"
        )
    return given.tolist()


_CUTS = "Tensor input, tuple of ints indices"


def _splitter(name, least, dim_of):
    """``hsplit``, ``vsplit`` or ``dsplit``: ``tensor_split`` into equal pieces along the dim that it is named for."""

    def splitter(input, indices_or_sections=None, *, indices=None, sections=None):
        ndim = ndim_of(input, "narrow")
        if ndim < least:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with {ndim} "
                "dimensions!"
            )
        given = next((v for v in (indices_or_sections, indices, sections) if v is not None), None)
        dim = dim_of(ndim)
        if isinstance(given, str):
            raise no_overload(name, f"Tensor, {type(given).__name__}", "Tensor input, int sections", _CUTS)
        n = input.array.shape[dim]
        if hasattr(given, "__index__") and (given <= 0 or n % given):
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension {n} is not "
                f"divisible by the split_size {given}!"
            )
        return tensor_split(input, given, dim)

    splitter.__name__ = splitter.__qualname__ = name
    splitter.__doc__ = f"``input`` in equal pieces, or cut at the places given, as NumPy's {name} does; views."
    return splitter


hsplit = _splitter("hsplit", 1, lambda ndim: 0 if ndim == 1 else 1)
vsplit = _splitter("vsplit", 2, lambda ndim: 0)
dsplit = _splitter("dsplit", 3, lambda ndim: 2)


def unbind(input, dim=0, *, axis=None):
    """The slices of ``input`` along ``dim``, without that dim; a tuple of views that are not for writing into."""
    ndim, dim = ndim_of(input, "select"), dim if axis is None else axis
    if ndim == 0:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    dim = check_dim(dim, ndim)
    take = TABLE["select"].raw
    count = input.array.shape[dim]
    return tuple([multi_view(take(input, dim=dim, index=i), "UnbindBackward0", i) for i in range(count)])


# ---- diagonals and windows


def _diagonal(input, offset=0, dim1=0, dim2=1):
    ndim = ndim_of(input, "diagonal")
    first, second = check_dim(dim1, ndim), check_dim(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return input, offset, first, second


def diagonal_of(xp, x, offset, dim1, dim2):
    """The writable view of a diagonal of the array ``x``, as its last dim."""
    rows, columns = x.shape[dim1] - max(-offset, 0), x.shape[dim2] - max(offset, 0)
    length = max(min(rows, columns), 0)
    if length:
        x = x[_at(dim1, slice(max(-offset, 0), None))][_at(dim2, slice(max(offset, 0), None))]
    rest = [d for d in range(x.ndim) if d not in (dim1, dim2)]
    shape = (*(x.shape[d] for d in rest), length)
    return laid_over(xp, x, shape, (*(x.strides[d] for d in rest), x.strides[dim1] + x.strides[dim2]))


@op(
    prepare=_diagonal,
    x=lambda m, g, x_shape, offset, dim1, dim2: m.on_diagonal(g, shape=x_shape, offset=offset, dim1=dim1, dim2=dim2),
    view=True,
)
def diagonal(xp, x, *, offset, dim1, dim2):
    """The diagonal of x in the plane of two dims, ``offset`` places to the right, as the last dim; a view."""
    return diagonal_of(xp, x, offset, dim1, dim2)


@op(x=lambda m, g, offset, dim1, dim2: m.diagonal(g, offset=offset, dim1=dim1, dim2=dim2))
def on_diagonal(xp, x, *, shape, offset, dim1, dim2):
    """Zeros of ``shape`` with x on a diagonal: the adjoint of diagonal."""
    out = xp.zeros(shape, x.dtype)
    diagonal_of(xp, out, offset, dim1, dim2)[...] = x
    return out


# ---- a part replaced, out of place


def _replaced(input, src, function, *args):
    """A copy of ``input`` with the view that ``function`` takes of it replaced by ``src``."""
    out = TABLE["clone"].raw(input)
    place = function(out, *args)
    if place.array.shape != src.array.shape:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, slice size = "
            f"{list(place.shape)}"
        )
    place.copy_(src)
    return out


def select_scatter(input, src, dim, index):
    """A copy of ``input`` with ``src`` at place ``index`` of dim ``dim``."""
    return _replaced(input, src, select, dim, index)


def slice_scatter(input, src, dim=0, start=None, end=None, step=1, *, out=None):
    """A copy of ``input`` with ``src`` in the slice ``start:end:step`` of dim ``dim``."""
    index = _at(check_dim(dim, input.array.ndim), slice(start, end, step))
    return placed("slice_scatter", _replaced(input, src, lambda x: TABLE["part"].raw(x, index=index)), out)


def diagonal_scatter(input, src, offset=0, dim1=0, dim2=1):
    """A copy of ``input`` with ``src`` on its diagonal."""
    return _replaced(input, src, diagonal, offset, dim1, dim2)


METHODS = {n: globals()[n] for n in __all__}
