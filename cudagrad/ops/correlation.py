"""The arithmetic of convolution on arrays: windows copied side by side, a cacheful at a time, and matrix products."""

import math

import numpy as np

from .windows import cut, offsets, padded, view

# Windows are copied into matrices of at most so many bytes, which the product reads while they lie in the L2 cache.
# 2^18 and 2^21 are slower by 5 to 20 % (Zen 4, 1 core). A GPU has no such cache to fill and pays for each launch.
PIECE = {True: 1 << 20, False: 1 << 28}


def correlate(xp, x, w, where, groups):
    """[N,O,*count]: sum over c, k of x[n, c, place k of window i] * w[o,c,k]; x [N,C,*S], w [O,C/groups,*K].

    The windows are the columns of a matrix, whose rows are runs of an output row, as x lies in memory; where those runs
    are short and the batch is not, the batch is put last and becomes the run (6 to 16 channels, 5x5, 14x14, batch 64:
    0.60 ms against 0.79, one core of a Zen 4).
    """
    n, c = x.shape[:2]
    x = padded(xp, x, where)
    last = _batch_last(xp, n, c, x.itemsize, where, groups)
    x = _turned(xp, x)[None] if last else x[..., None]
    out = xp.empty((x.shape[0], w.shape[0], *where.count, x.shape[-1]), x.dtype)
    w = w.reshape(groups, w.shape[0] // groups, -1)
    for part, columns in _pieces(xp, x, where, groups):
        target = out[part]
        if target.flags.c_contiguous:
            shape = target.shape[0], groups, w.shape[1], columns.shape[-1]
            xp.matmul(w, columns, out=target.reshape(shape))
        else:
            target[...] = xp.matmul(w, columns).reshape(target.shape)
    return _turned_back(xp, out[0], n) if last else out[..., 0]


def spread(xp, y, w, where, groups, size):
    """[N,C,*size]: each element of y [N,O,*count] times the kernel, added up at the places of its window."""
    n, c = y.shape[0], w.shape[1] * groups
    if groups > 1 and w.shape[1] < 8:
        return cut(xp, _spread_of_few(xp, y, w, where, groups), size, where)
    last = _batch_last(xp, n, c, y.itemsize, where, groups)
    y = _turned(xp, y)[None] if last else y[..., None]
    out = xp.zeros((y.shape[0], c, *where.reach, y.shape[-1]), y.dtype)
    w = xp.ascontiguousarray(w.reshape(groups, w.shape[0] // groups, -1).swapaxes(1, 2))
    for images, lines in _parts(xp, (y.shape[0], c, y.shape[-1]), y.itemsize, where):
        part = y[images, :, lines]
        columns = xp.matmul(w, part.reshape(part.shape[0], groups, w.shape[2], -1))
        columns = columns.reshape(part.shape[0], c, *where.kernel, *part.shape[2:])
        here = out[images, :, lines.start * where.stride[0] :]
        for place, window in offsets(where._replace(count=part.shape[2:-1])):
            here[(slice(None), slice(None), *window)] += columns[(slice(None), slice(None), *place)]
    out = _turned_back(xp, out[0], n) if last else out[..., 0]
    return cut(xp, out, size, where)


def products(xp, x, y, where, groups):
    """[O,C/groups,*K]: sum over n, i of y[n,o,i] * x[n, c, place k of window i]; x [N,C,*S], y [N,O,*count]."""
    c = x.shape[1] // groups
    if not x.size or not y.size:
        return xp.zeros((y.shape[1], c, *where.kernel), x.dtype)
    x = padded(xp, x, where)
    if groups > 1 or where.is_whole or where.kernel[-1] * c < 16:
        return _products_of_rows(xp, x, y, where, groups)
    return _products_of_pixels(xp, x, y, where)


def _spread_of_few(xp, y, w, where, groups):
    """``spread`` where a group has few channels: y, its steps filled with zeros, correlated with the turned kernel.

    The matrix products of ``spread`` would have an inner dimension of few or one. Depthwise, 64 channels, 3x3, 28x28,
    batch 16: 4 ms against 15 (one core of a Zen 4).
    """
    c = w.shape[1]
    w = w[(..., *(slice(None, None, -1),) * where.ndim)].reshape(groups, -1, c, *where.kernel).swapaxes(1, 2)
    w = w.reshape(groups * c, -1, *where.kernel)
    if set(where.stride) != {1}:
        apart = xp.zeros((*y.shape[:2], *((n - 1) * s + 1 for n, s in zip(where.count, where.stride))), y.dtype)
        apart[(..., *(slice(None, None, s) for s in where.stride))] = y
        y = apart
    ones = (1,) * where.ndim
    margin = tuple(d * (k - 1) for d, k in zip(where.dilation, where.kernel))
    return correlate(xp, y, w, where._replace(stride=ones, before=margin, count=where.reach), groups)


# ---- pieces


def _pieces(xp, x, where, groups):
    """Pairs (slices of [N,O,*count,B], the windows that belong to them as matrices [N,G,C/G*K,i]) of x [N,C,*S,B]."""
    windows, memory = view(xp, x, 2, where), None  # [N,C,*K,*count,B]
    rows = x.shape[1] // groups * math.prod(where.kernel)
    for images, lines in _parts(xp, (x.shape[0], x.shape[1], x.shape[-1]), x.itemsize, where):
        part = windows[(images, slice(None), *(slice(None),) * where.ndim, lines)]
        if not where.is_whole:
            memory = xp.empty(part.size, x.dtype) if memory is None else memory
            part = _copied(part, memory)
        yield (images, slice(None), lines), part.reshape(part.shape[0], groups, rows, -1)


def _copied(part, memory):
    """``part`` in row-major order in ``memory``: fresh memory for each piece costs up to a third of the time."""
    columns = memory[: part.size].reshape(part.shape)
    columns[...] = part
    return columns


def _parts(xp, shape, itemsize, where):
    """Slices of the batch and of the first axis of windows, such that a part's windows fit into ``PIECE`` bytes."""
    n, c, b = shape
    line = max(c * math.prod(where.kernel) * math.prod(where.count[1:]) * b * itemsize, 1)
    lines = where.count[0] if where.is_whole else min(max(PIECE[xp is np] // line, 1), where.count[0])
    images = max(PIECE[xp is np] // (line * lines), 1) if lines == where.count[0] else 1
    for i in range(0, n, images):
        for j in range(0, where.count[0], lines):
            yield slice(i, i + images), slice(j, j + lines)


def _batch_last(xp, n, c, itemsize, where, groups):
    """Whether to put the batch last: rows shorter than it, few channels, and a line's windows fit into a piece."""
    line = c * math.prod(where.kernel) * math.prod(where.count[1:]) * n * itemsize
    return xp is np and groups == 1 and c > 1 and where.count[-1] <= 12 and n >= 32 and line <= PIECE[True]


def _turned(xp, x):
    """[N,...] as [...,N], both in row-major order."""
    return xp.ascontiguousarray(x.reshape(x.shape[0], -1).T).reshape(*x.shape[1:], x.shape[0])


def _turned_back(xp, x, n):
    return xp.ascontiguousarray(x.reshape(-1, n).T).reshape(n, *x.shape[:-1])


# ---- by weight


def _products_of_rows(xp, x, y, where, groups):
    """A product y [O,i] @ windows [C*K,i]^T an image."""
    o = y.shape[1]
    y = y[..., None]
    total = xp.zeros((groups, o // groups, x.shape[1] // groups * math.prod(where.kernel)), x.dtype)
    for part, columns in _pieces(xp, x[..., None], where, groups):
        rows = y[part]
        rows = rows.reshape(rows.shape[0], groups, o // groups, -1)
        total += xp.matmul(rows, columns.swapaxes(-1, -2)).sum(0)
    return total.reshape(o, -1, *where.kernel)


def _products_of_pixels(xp, x, y, where):
    """A product y [N*i,O]^T @ windows [N*i,K*C] a piece of the batch.

    The channels are put last, so that what is copied are runs of K*C. 64 to 64 channels, 3x3, 28x28, batch 16: 12.4 ms
    against 14.3 for a product an image; 6 to 16, 5x5, 14x14, batch 64: 0.75 against 1.3 (one core of a Zen 4).
    """
    o, c, d = y.shape[1], x.shape[1], where.ndim
    x, y = (xp.ascontiguousarray(xp.moveaxis(a, 1, -1)) for a in (x, y))
    windows = view(xp, x, 1, where)  # [N,*K,*count,C]
    windows = windows.transpose(0, *range(1 + d, 1 + 2 * d), *range(1, 1 + d), 1 + 2 * d)
    total, memory = xp.zeros((o, math.prod(where.kernel) * c), x.dtype), None
    for images, lines in _parts(xp, (x.shape[0], c, 1), x.itemsize, where):
        part = windows[images, lines]
        memory = xp.empty(part.size, x.dtype) if memory is None else memory
        rows = _copied(part, memory).reshape(-1, total.shape[1])
        total += y[images, lines].reshape(-1, o).T.dot(rows)
    return xp.ascontiguousarray(xp.moveaxis(total.reshape(o, *where.kernel, c), -1, 1))
