"""The largest element of each window, and its inverse that puts elements back where they came from."""

import math

import numpy as np

from ..core.op import TABLE, op
from ..core.promote import not_tensor
from ..core.tensor import Tensor
from .checks import looks, refuse
from .places import flat_index, put_places
from .pool_windows import check_kind, check_padding, check_sizes, one_an_axis, pool_windows
from .windows import cut, offsets, padded, several

__all__ = ("max_pool1d", "max_pool1d_with_indices", "max_pool2d", "max_pool3d")
FUNCTIONAL = (
    *("max_pool1d", "max_pool2d", "max_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d"),
    *("max_pool1d_with_indices", "max_pool2d_with_indices", "max_pool3d_with_indices"),
)


# ---- on arrays: which place of its window was the largest, as one small integer


def _lowest(dtype):
    return -np.inf if dtype.kind == "f" or dtype.itemsize == 2 and dtype.kind == "V" else np.iinfo(dtype).min


def _first_inside(xp, where, kind):
    """The first place of each window that is no padding, [*count]."""
    first = xp.zeros((), kind)
    for k, s, p, d, n in zip(where.kernel, where.stride, where.before, where.dilation, where.count):
        places = [max(-(-(p - i * s) // d), 0) for i in range(n)]
        first = first[..., None] * k + xp.asarray(places, kind)
    return first


def _largest(xp, x, where):
    """``(out, place)``: the largest of each window and its place; of equal ones the first, of nans the last."""
    x = padded(xp, x, where, _lowest(x.dtype))
    whole = x.dtype.kind in "iu"
    out, place = _compared(xp, x, where, False)
    # maximum passes nan on, but nothing is greater than nan: its place is looked for only where there is one
    if not whole and (xp is not np or np.isnan(out).any()):
        return _compared(xp, x, where, True)
    return out, place


def _compared(xp, x, where, nans):
    kind = xp.uint8 if math.prod(where.kernel) <= 256 else xp.int32
    (_, window), *rest = offsets(where)
    out = x[(..., *window)].copy()
    place = xp.zeros(out.shape, kind)
    if any(where.before):
        place[...] = _first_inside(xp, where, kind)
    for k, (_, window) in enumerate(rest, 1):
        value = x[(..., *window)]
        better = value > out
        if nans:
            better |= value != value
        place = xp.maximum(place, better * kind(k), out=place)
        out = xp.maximum(out, value, out=out)
    return out, place


def _put(xp, g, place, where, size):
    """g at the chosen place of each window, added up in [..., *size]."""
    total = xp.zeros((*g.shape[: g.ndim - where.ndim], *where.reach), g.dtype)
    only = TABLE["only"].forward
    apart = all(s >= r for s, r in zip(where.stride, where._replace(count=(1,) * where.ndim).reach))
    for k, (_, window) in enumerate(offsets(where)):
        here = only(xp, g, place == k)
        if apart:
            total[(..., *window)] = here
        else:
            total[(..., *window)] += here
    return cut(xp, total, size, where)


def _take(xp, x, place, where):
    """x at the chosen place of each window."""
    x = padded(xp, x, where)
    out = xp.zeros(place.shape, x.dtype)
    only = TABLE["only"].forward
    for k, (_, window) in enumerate(offsets(where)):
        out += only(xp, xp.ascontiguousarray(x[(..., *window)]), place == k)
    return out


def _last(shape, where):
    return tuple(shape[len(shape) - len(where.count) :])


# ---- ops


@op()
def max_pool_place(xp, x, *, where):
    """The place of the largest element in each window of the last axes of x, an integer counted in row-major order."""
    return _largest(xp, x, where)[1]


@op()
def max_pool_index(xp, x, *, where, size):
    """Places in windows as row-major indices into the axes of length ``size``, int64."""
    lengths = [d * xp.arange(k) for k, d in zip(where.kernel, where.dilation)]
    steps = xp.unravel_index(x.astype(xp.int64), where.kernel)
    places = []
    for a, (step, length) in enumerate(zip(steps, lengths)):
        start = xp.arange(where.count[a]) * where.stride[a] - where.before[a]
        places.append(length[step] + start.reshape(-1, *(1,) * (where.ndim - 1 - a)))
    return flat_index(xp, places, size)


@op(x=lambda m, g, place, where: m.max_pool_take(g, place, where=where))
def max_pool_put(xp, x, place, *, where, size):
    """x added at the place ``place`` of its window, in axes of length ``size``. The adjoint of ``max_pool_take``."""
    return _put(xp, x, place, where, size)


@op(x=lambda m, g, place, x_shape, where: m.max_pool_put(g, place, where=where, size=_last(x_shape, where)))
def max_pool_take(xp, x, place, *, where):
    """The element of x at the place ``place`` of each window."""
    return _take(xp, x, place, where)


def _gradient(m, g, x, where):
    return m.max_pool_put(m.tied(g, x), m.max_pool_place(x, where=where), where=where, size=_last(x.shape, where))


def _fused(xp, g, x_shape, where, place):
    return (_put(xp, g, place, where, _last(x_shape, where)),)


@op(x=_gradient, fused=_fused, extras=("place",), node="MaxPoolWithIndices")
def max_pool(xp, x, *, where):
    """The largest element of each window of the last axes; padding counts as -inf.

    Shapes      x [...,*S] -> [...,*where.count]
    Derivative  g at the first of the largest elements, at the last nan where there is one
    """
    refuse(f"max_pool{where.ndim}d", x, "bc")
    return _largest(xp, x, where)


# ---- public functions


def _check_1d(kernel, stride, padding, dilation):
    for name, (v,) in (("kernel_size", kernel), ("stride", stride), ("dilation", dilation)):
        if v <= 0:
            raise RuntimeError(f"max_pool1d() {name} must be greater than zero, but got {v}")
    if padding[0] < 0:
        raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {padding[0]}")
    if padding[0] > kernel[0] // 2:
        raise RuntimeError(
            f"max_pool1d() padding should be at most half of kernel size, but got padding={padding[0]} and "
            f"kernel_size={kernel[0]}"
        )


def _pool(ndim, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices):
    name = f"max_pool{ndim}d"
    if not isinstance(input, Tensor):
        raise not_tensor(TABLE["max_pool"], input)
    kernel = one_an_axis(name, "kernel_size", kernel_size, ndim)
    stride = kernel if stride is None or stride == () or stride == [] else one_an_axis(name, "stride", stride, ndim)
    padding = one_an_axis(name, "padding", padding, ndim)
    dilation = one_an_axis(name, "dilation", dilation, ndim)
    if ndim == 1:
        check_sizes(name, input, ndim)
        if return_indices:
            check_padding(kernel, padding, dilation)
        _check_1d(kernel, stride, padding, dilation)
    else:
        check_kind(kernel, stride, dilation)
        check_padding(kernel, padding, dilation)
        check_sizes(name, input, ndim)
    try:
        where = pool_windows(input, kernel, stride, padding, dilation, ceil_mode)
    except RuntimeError as error:
        if ndim > 1:
            raise
        reach = dilation[0] * (kernel[0] - 1) + 1
        length = (input.shape[-1] + 2 * padding[0] - reach) // stride[0] + 1
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {length}") from error
    out = max_pool(input, where=where)
    if not return_indices:
        return out
    place = max_pool_place(input.detach(), where=where)
    return out, max_pool_index(place, where=where, size=tuple(input.shape[input.ndim - ndim :]))


def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The largest of each window of ``kernel_size`` elements that lie ``dilation`` apart.

    ``stride`` is ``kernel_size`` by default. Padding counts as -inf; with ``ceil_mode`` a last window may reach past
    the end. ``return_indices``: ``(out, indices)``, with the place of each in the flattened axes of the input.

    Shapes      [N,C,T] or [C,T]
    Derivative  g at the first of the largest elements
    Raises      RuntimeError where sizes do not fit
    """
    return _pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """As ``max_pool1d`` over two axes.

    Shapes      [N,C,H,W] or [C,H,W]

    >>> max_pool2d(tensor([[[1.0, 2.0], [3.0, 4.0]]]), 2)
    tensor([[[4.]]])
    """
    return _pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool3d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """As ``max_pool1d`` over three axes.

    Shapes      [N,C,D,H,W] or [C,D,H,W]
    """
    return _pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def _with_indices(ndim, pool):
    def function(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        return pool(input, kernel_size, stride, padding, dilation, ceil_mode, True)

    function.__name__ = function.__qualname__ = f"max_pool{ndim}d_with_indices"
    function.__doc__ = f"``(out, indices)`` of ``max_pool{ndim}d``."
    return function


max_pool1d_with_indices = _with_indices(1, max_pool1d)
max_pool2d_with_indices = _with_indices(2, max_pool2d)
max_pool3d_with_indices = _with_indices(3, max_pool3d)


# ---- the inverse


def _unpooled_size(input, kernel, stride, padding, output_size):
    ndim = len(kernel)
    sizes = tuple(input.shape[input.ndim - ndim :])
    default = tuple((n - 1) * s + k - 2 * p for n, s, k, p in zip(sizes, stride, kernel, padding))
    if output_size is None:
        return default
    given = tuple(output_size)
    if len(given) == ndim + 2:
        given = given[2:]
    if len(given) != ndim:
        raise ValueError(
            f"output_size should be a sequence containing {ndim} or {ndim + 2} elements, but it has a length of "
            f"'{len(given)}'"
        )
    for d, (n, plain, s) in enumerate(zip(given, default, stride)):
        if not plain - s < n < plain + s:
            raise ValueError(f'invalid output_size "{given}" (dim {d} must be between {plain - s} and {plain + s})')
    return given


def _unpool(ndim, input, indices, kernel_size, stride, padding, output_size):
    kernel = several(kernel_size, ndim)
    stride = kernel if stride is None else several(stride, ndim)
    if indices.dtype.category != 1 or indices.dtype.itemsize != 8:
        raise RuntimeError(f"elements in indices should be type int64 but got: {indices.dtype.legacy}")
    if input.ndim not in (ndim + 1, ndim + 2):
        shown = max(ndim, 2)
        raise RuntimeError(
            f"Input to max_unpooling{shown}d should be a {ndim + 1}d or {ndim + 2}d Tensor, but got a tensor with "
            f"{input.ndim} dimensions."
        )
    size = _unpooled_size(input, kernel, stride, several(padding, ndim), output_size)
    if input.shape != indices.shape:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(input.shape)}) but got indices "
            f"tensor with shape: {list(indices.shape)}"
        )
    lead = input.shape[: input.ndim - ndim]
    flat, length = (lead if len(lead) == 2 else (1, *lead)), math.prod(size)
    array = indices.array
    if array.size and looks(array) and not (0 <= array.min() and array.max() < length):
        wrong = array[(array < 0) | (array >= length)].ravel()[-1]
        raise RuntimeError(
            f"Found an invalid max index: {wrong} (output volumes are of size {'x'.join(map(str, size))})"
        )
    places = (*flat, math.prod(input.shape[input.ndim - ndim :]))
    out = put_places(input.reshape(places), indices.reshape(places), size=length)
    return out.reshape(*lead, *size)


def max_unpool1d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Zeros with ``input`` at ``indices``, as ``max_pool1d`` returned both; of several at one place the last stays.

    Shapes      input, indices [N,C,T] or [C,T]
    Derivative  g at the indices
    Raises      ValueError for an output size that no pooling gives, RuntimeError where indices do not fit
    """
    return _unpool(1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """As ``max_unpool1d`` over two axes.

    Shapes      input, indices [N,C,H,W] or [C,H,W]
    """
    return _unpool(2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """As ``max_unpool1d`` over three axes.

    Shapes      input, indices [N,C,D,H,W] or [C,D,H,W]
    """
    return _unpool(3, input, indices, kernel_size, stride, padding, output_size)
