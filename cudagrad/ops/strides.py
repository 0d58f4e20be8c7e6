"""Views by strides: sliding windows of one dim, and any grid of places in the memory of a tensor."""

import numpy as np

from .. import errors
from ..backend import memory_of
from ..core.op import op
from ..core.shape import check_dim
from ..core.tensor import Tensor
from .checks import ndim_of
from .segments import add_rows
from .shape import reshaping
from .sizes import laid_over, sizes_of

__all__ = ("as_strided", "as_strided_scatter")

# ---- windows


def _unfold(input, dimension=None, size=None, step=None, *, dim=None):
    ndim, dim = ndim_of(input, "sliding"), check_dim(dimension if dim is None else dim, input.array.ndim)
    most = input.array.shape[dim] if ndim else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > most:
        raise RuntimeError(f"maximum size for tensor at dimension {dim} is {most} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    return input, dim, size, step


@op(
    prepare=_unfold,
    x=lambda m, g, x_shape, dim, size, step: m.sliding_sum(g, shape=x_shape, dim=dim, size=size, step=step),
    view=True,
    node="Unfold",
)
def sliding(xp, x, *, dim, size, step):
    """The windows of ``size`` of x along ``dim``, ``step`` apart, with the places in a window as the last dim; a view.

    Shapes      out.shape[dim] = (x.shape[dim] - size) // step + 1; one dim more than x
    """
    if not x.ndim:
        return laid_over(xp, x, (size,), (x.itemsize,))
    count = (x.shape[dim] - size) // step + 1
    shape = (*x.shape[:dim], count, *x.shape[dim + 1 :], size)
    strides = (*x.strides[:dim], step * x.strides[dim], *x.strides[dim + 1 :], x.strides[dim])
    return laid_over(xp, x, shape, strides)


@op(x=lambda m, g, dim, size, step: m.sliding(g, dim=dim, size=size, step=step))
def sliding_sum(xp, x, *, shape, dim, size, step):
    """The windows x added up where they overlap, in an array of ``shape``: the adjoint of sliding."""
    out = xp.zeros(shape, x.dtype)
    if not shape:
        return out + x.sum(dtype=x.dtype)
    along = xp.moveaxis(out, dim, 0)  # [shape[dim], ...]
    windows = xp.moveaxis(x, dim, 0)  # [count, ..., size]
    for k in range(size):  # one place in all windows at once: these never overlap
        along[k : k + step * (windows.shape[0] - 1) + 1 : step] += windows[..., k]
    return out


# ---- any strides


def _as_strided(input, size, stride, storage_offset=None):
    shape, steps = sizes_of((size,), None, "as_strided", "size"), sizes_of((stride,), None, "as_strided", "stride")
    if len(shape) != len(steps):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(s < 0 for s in steps):
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(steps)}")
    own = Tensor.storage_offset(input)
    offset = own if storage_offset is None else storage_offset
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    itemsize, memory = input.array.itemsize, memory_of(input.array)
    needed = (offset + 1 + sum((n - 1) * s for n, s in zip(shape, steps))) * itemsize if 0 not in shape else 0
    if needed > memory.size * memory.itemsize:
        raise RuntimeError(
            errors.text(
                f"setStorage: sizes {list(shape)}, strides {list(steps)}, storage offset {offset}, and itemsize "
                f"{itemsize} requiring a storage size of {needed} are out of bounds for storage of size "
                f"{memory.size * memory.itemsize}"
            )
        )
    return input, shape, steps, offset, (input.stride(), own)


def _as_strided_back(m, g, x_shape, shape, strides, offset, layout):
    strides_x, own = layout
    return m.strided_move(g, source=(shape, strides, offset), target=(x_shape, strides_x, own))


@op(prepare=_as_strided, x=_as_strided_back, view=True)
def as_strided(xp, x, *, shape, strides, offset, layout):
    """The elements of the memory under x at ``offset + sum(i * stride)``, all in elements; a view.

    Derivative  the sum over the places that read an element, for the elements of x
    Raises      RuntimeError for a place outside of the memory
    """
    return laid_over(xp, x, shape, tuple([s * x.itemsize for s in strides]), offset * x.itemsize)


def _places(xp, grid):
    """The place in memory, from the first of the grid on, of every element of a ``(shape, strides, offset)``."""
    shape, strides, _ = grid
    places = xp.zeros((1,) * len(shape), np.int64)
    for d, (n, s) in enumerate(zip(shape, strides)):
        places = places + xp.arange(n, dtype=np.int64).reshape((n,) + (1,) * (len(shape) - 1 - d)) * s
    return places


@op(x=lambda m, g, source, target: m.strided_read(g, source=target, target=source))
def strided_move(xp, x, *, source, target):
    """x, laid over the grid ``source``, added up at each place and read back over the grid ``target``.

    A place that the target reads several times counts its share in each.
    """
    memory, wanted = _memory(xp, x, source, target)
    reads = xp.bincount(wanted.reshape(-1), minlength=memory.size).astype(x.real.dtype)
    return memory[wanted] / reads[wanted]


@op(x=lambda m, g, source, target: m.strided_move(g, source=target, target=source))
def strided_read(xp, x, *, source, target):
    """As ``strided_move`` without sharing: each place of ``target`` reads the sum; places that overlap in ``source``
    give their mean."""
    places = _places(xp, source)
    count = xp.bincount(places.reshape(-1)).astype(x.real.dtype)
    memory, wanted = _memory(xp, x / count[places], source, target)
    return memory[wanted]


def _memory(xp, x, source, target):
    """The memory that x writes over its grid, and the places in it that the target grid reads."""
    low = min(source[2], target[2])
    wrote, wanted = _places(xp, source) + (source[2] - low), _places(xp, target) + (target[2] - low)
    size = 1 + max(int(places.max()) if places.size else 0 for places in (wrote, wanted))
    memory = xp.zeros((size, 1), x.dtype)
    add_rows(xp, memory, wrote.reshape(-1), x.reshape(-1, 1))
    return memory.reshape(-1), wanted


def as_strided_scatter(input, src, size, stride, storage_offset=None):
    """A copy of ``input`` with ``src`` in the places that ``as_strided`` of the same arguments reads."""
    from .splitting import _replaced

    return _replaced(input, src, as_strided, size, stride, storage_offset)


METHODS = {"unfold": sliding, "as_strided": as_strided, "as_strided_scatter": as_strided_scatter}
METHODS |= {"as_strided_": reshaping(as_strided, "as_strided_")}
