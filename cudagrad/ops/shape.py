"""The same elements in another shape: views wherever the memory allows it, and the copies that make it allow."""

import math
import weakref

from .. import dtypes, errors
from ..core.inplace import bump
from ..core.op import SAME, op
from ..core.shape import check_dim
from ..core.tensor import Tensor
from ..core.views import alias
from ..core.writable import check_history
from .checks import ndim_of
from .sizes import distinct, format_name, in_format, lies_in_format, resolved, sizes_of, viewable

__all__ = (
    *("atleast_1d", "atleast_2d", "atleast_3d", "clone", "flatten", "ravel", "reshape", "squeeze", "unflatten"),
    "unsqueeze",
)

# ---- view and reshape


@op(x=lambda m, g, x_shape: m.reshape(g, shape=x_shape), view=True, node="View")
def reshape(xp, x, *, shape):
    """x's elements, row by row, in ``shape``, over the same memory: for shapes that it allows.

    Shapes      out as many elements as x
    """
    return x.reshape(shape)


@op(x=lambda m, g, x_shape: m.reshape(g, shape=x_shape), node="UnsafeView")
def reshape_copy(xp, x, *, shape):
    """A copy of x's elements, row by row, in ``shape``."""
    return x.copy(order="C").reshape(shape)


def _view_or_copy(input, *sizes, shape=None):
    """The elements, row by row, in ``shape``; one dim may be -1. A view where the memory allows it, else a copy.

    Raises      RuntimeError where the elements do not fit
    """
    ndim_of(input, "reshape")
    return _in_shape(input, resolved(sizes_of(sizes, shape, "reshape", "shape"), input.array.size))


def _in_shape(input, shape):
    return (_over if viewable(input.array, shape) else reshape_copy)(input, shape=shape)


_over = reshape
reshape = _view_or_copy  # which of the two ops it is depends on the strides
reshape.__name__ = reshape.__qualname__ = "reshape"


def view(input, *shape, dtype=None, size=None):
    """The elements, row by row, in ``shape``, over the same memory; or the same bytes as another dtype.

    Raises      RuntimeError where the elements do not fit, or the strides do not allow it without a copy
    """
    if len(shape) == 1 and isinstance(shape[0], dtypes.dtype):
        dtype = shape[0]
    if dtype is not None:
        return view_as_dtype(input, dtype=dtype)
    try:
        shape = resolved(sizes_of(shape, size, "view", "size"), input.array.size)
    except TypeError:
        given = ", ".join(type(n).__name__ for n in shape)
        first = f"view() received an invalid combination of arguments - got ({given}), but expected one of:"
        raise TypeError(errors.text(first, " * (torch.dtype dtype)", " * (tuple of ints size)")) from None
    if not viewable(input.array, shape):
        raise RuntimeError(
            errors.text(
                "view size is not compatible with input tensor's size and stride (at least one dimension spans across "
                "two contiguous subspaces). Use .reshape(...) instead.",
                f"got {input.dtype} {tuple(input.shape)} of strides {input.stride()}, to be {tuple(shape)}",
            )
        )
    return _over(input, shape=shape)


def _view_as_dtype(input, dtype):
    array, new = input.array, dtype.numpy
    if array.itemsize != new.itemsize:
        _check_bytes(array, dtype)
    return input, new


def _check_bytes(array, dtype):
    """RuntimeError where the last dim of ``array`` cannot be read in elements of another size."""
    what = f"view {dtypes.of_array(array).legacy} as {dtype.legacy} (different element sizes)"
    if array.ndim == 0:
        raise RuntimeError(f"self.dim() cannot be 0 to {what}")
    if array.shape[-1] != 1 and array.strides[-1] != array.itemsize:
        raise RuntimeError(f"self.stride(-1) must be 1 to {what}, but got {array.strides[-1] // array.itemsize}")
    ratio = dtype.itemsize // array.itemsize
    if ratio < 2:
        return
    for name, value in (("size(-1)", array.shape[-1]), ("storage_offset()", Tensor.storage_offset(_bare(array)))):
        if value % ratio:
            raise RuntimeError(f"self.{name} must be divisible by {ratio} to {what}, but got {value}")
    for d in range(array.ndim - 1):
        step = array.strides[d] // array.itemsize
        if step % ratio:
            raise RuntimeError(f"self.stride({d}) must be divisible by {ratio} to {what}, but got {step}")


def _bare(array):
    t = object.__new__(Tensor)
    t.array = array
    return t


@op(prepare=_view_as_dtype, view=True, node="View")
def view_as_dtype(xp, x, *, dtype):
    """x's bytes read as elements of another dtype (a NumPy dtype); no gradient passes.

    Shapes      the last dim shrinks or grows with the size of an element
    """
    return x.view(dtype)


def view_as(input, other):
    """``input.view(other.shape)``."""
    return view(input, other.array.shape)


def reshape_as(input, other):
    """``input.reshape(other.shape)``."""
    return reshape(input, other.array.shape)


def flatten(input, start_dim=0, end_dim=-1):
    """The dims from ``start_dim`` to ``end_dim`` as one; ``input`` itself where that changes nothing.

    Raises      RuntimeError where ``start_dim`` comes after ``end_dim``
    """
    ndim = ndim_of(input, "reshape")
    start, end = check_dim(start_dim, ndim), check_dim(end_dim, ndim) if ndim else 0
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    shape = input.array.shape
    if ndim == 0:
        return _in_shape(input, (1,))
    if start == end:
        return input
    return _in_shape(input, (*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :]))


def unflatten(input, dim, sizes):
    """Dim ``dim`` cut up into dims of ``sizes``, of which one may be -1.

    Raises      RuntimeError where the sizes do not multiply up to the dim
    """
    dim = check_dim(dim, input.array.ndim)
    sizes = sizes_of((sizes,), None, "unflatten", "sizes")
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    shape = input.array.shape
    try:
        whole = resolved(sizes, shape[dim])
    except RuntimeError as error:
        if "only one" in str(error):
            raise
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} ({shape[dim]}) in the "
            "input tensor"
        ) from None
    return view(input, (*shape[:dim], *whole, *shape[dim + 1 :]))


def ravel(input):
    """``input`` as one row-major dim, a view where it is contiguous."""
    return _in_shape(input, (input.array.size,))


# ---- dims of length 1


def _squeeze(input, dim=None):
    ndim = ndim_of(input, "squeeze")
    if dim is None:
        dims = range(ndim)
    elif dim.__class__ is int:
        dims = (check_dim(dim, ndim),)
    else:
        dims = distinct(sizes_of((dim,), None, "squeeze", "dim"), ndim)
    shape = input.array.shape
    return input, tuple([d for d in dims if ndim and shape[d] == 1])


@op(prepare=_squeeze, x=lambda m, g, x_shape: m.reshape(g, shape=x_shape), view=True)
def squeeze(xp, x, *, dim):
    """x without its dims of length 1: all of them, or those among ``dim`` (an int or several)."""
    return x.squeeze(dim)


def _unsqueeze(input, dim):
    return input, check_dim(dim, ndim_of(input, "unsqueeze") + 1)


@op(prepare=_unsqueeze, x=lambda m, g, dim: m.squeeze(g, dim=(dim,)), view=True)
def unsqueeze(xp, x, *, dim):
    """x with a new dim of length 1 at place ``dim``."""
    return x[(slice(None),) * dim + (None,)]


def _at_least(ndim, name):
    """The function that gives tensors at least ``ndim`` dims, as NumPy's of that name does."""

    def grown(*tensors):
        if len(tensors) == 1 and isinstance(tensors[0], Tensor):
            return _grow(tensors[0], ndim)
        if len(tensors) == 1:
            tensors = tuple(tensors[0])
        return tuple(_grow(t, ndim) for t in tensors)

    grown.__name__ = grown.__qualname__ = name
    grown.__doc__ = f"The tensor, or a tuple of those given, with dims of length 1 added up to {ndim}."
    return grown


def _grow(t, ndim):
    have = t.array.ndim
    if have >= ndim:
        return t
    if have == 0:
        return reshape(t, (1,) * ndim)
    if ndim == 2 or have == 1:
        t = unsqueeze(t, 0)
    return t if ndim == 2 else unsqueeze(t, -1)


atleast_1d = _at_least(1, "atleast_1d")
atleast_2d = _at_least(2, "atleast_2d")
atleast_3d = _at_least(3, "atleast_3d")


# ---- copies


@op(x=SAME)
def clone(xp, x, *, memory_format=None):
    """A copy of x, with its axes in memory as they are or as ``memory_format`` says."""
    return in_format(xp, x, memory_format)


def contiguous(input, memory_format="contiguous_format"):
    """``input`` itself where it lies in memory row by row (or as ``memory_format`` says), else a copy that does."""
    name = format_name(memory_format)
    if memory_format is not None and name == "preserve_format":
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    if memory_format is None:
        memory_format = "contiguous_format"
    if lies_in_format(input.array, memory_format):
        return input
    return clone(input, memory_format=memory_format)


# ---- in place: the tensor itself takes another shape over its memory


def reshaping(function, name):
    """The in-place form ``name`` of a view function: the tensor becomes the view, its live views stay what they are."""

    def method(self, *args, **kwargs):
        check_history(self)
        before = alias(self)
        before.link = self.link
        live = self.version[2] if self.version is not None else None
        children = [v for v in (r() for r in live or ()) if v is not None and v.link is not None and v.link[0] is self]
        t = function(before, *args, **kwargs)
        for child in children:
            child.link = (before, *child.link[1:])
        self.array, self.node, self.version = t.array, t.node, t.version
        if before.link is not None or children:
            self.link = t.link
            # from now on a view of what it was, and what it was perhaps a view of something else, in this order
            self.version[2] += [weakref.ref(t) for t in (before, self)]
        bump(self)
        return self

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"In-place form of :func:`{function.__name__}`: this tensor takes the new shape over its memory."
    return method


METHODS = {n: globals()[n] for n in ("view", "reshape", "view_as", "reshape_as", "flatten", "unflatten", "ravel")}
METHODS |= {n: globals()[n] for n in ("squeeze", "unsqueeze", "clone", "contiguous")}
METHODS |= {"squeeze_": reshaping(squeeze, "squeeze_"), "unsqueeze_": reshaping(unsqueeze, "unsqueeze_")}
