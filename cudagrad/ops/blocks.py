"""Compound pointwise maths on big NumPy arrays, in pieces that stay in the cache; and rows by the block."""

import functools
import math

import numpy as np

from ..backend import LOW
from ..core.op import asks
from .rowwise import row_sums, short_buffers

# glibc gives arrays above a threshold back to the system when they are freed, and takes them anew page by page: 8600
# page faults a step of a small GPT, a fifth of its time. It raises the threshold, at most to 32 MiB, to the size of the
# largest such array freed so far; so one that nobody touched, which costs nothing, is freed here. Elsewhere no effect.
np.empty((32 << 20) - (64 << 10), "u1")

BLOCK_BYTES = 1 << 19  # an input and an output fit in an L2 of 1 MiB; 128 KiB cost 5 to 20 % more in calls (EPYC 4)


def in_blocks(xp, function, *arrays):
    """``function(*arrays)``, element by element, over blocks where that pays.

    gelu of 16 MiB takes 10 ms in blocks and 24 ms at once (EPYC 4, 1 core): its temporaries stay in the L2.
    Half types are computed in float32 and rounded once. Arrays of other shapes (numbers, rows) go in whole.
    """
    x = arrays[0]
    if x.ndim == 0:  # an array for ``function``, which a scalar would not be
        return in_blocks(xp, function, *(a.reshape(1) for a in arrays)).reshape(())
    low = x.dtype in LOW
    if xp is not np or x.nbytes < 2 * BLOCK_BYTES:
        return _rounded(function, arrays, x.dtype) if low else function(*arrays)
    out = np.empty(x.shape, x.dtype)
    if all(a.flags.c_contiguous and a.shape == x.shape for a in arrays):
        parts, rows = [a.reshape(-1) for a in arrays], out.reshape(-1)
    else:
        parts, rows = [np.broadcast_to(a, x.shape) for a in arrays], out
    step = max(1, BLOCK_BYTES // max(1, rows[:1].nbytes))
    for i in range(0, len(rows), step):
        block = [a[i : i + step] for a in parts]
        rows[i : i + step] = _rounded(function, block, np.float32) if low else function(*block)
    return out


def _rounded(function, arrays, dtype):
    wide = [a.astype(np.float32) if a.dtype in LOW else a for a in arrays]
    return function(*wide).astype(dtype)


PIECE_BYTES = 1 << 17  # an input, the output and two scratch arrays in an L2 of 1 MiB: within 5 % of the best for gelu


def in_pieces(xp, function, scratch, *arrays):
    """``function(xp, out, *work, *arrays)`` writes ``out``, element by element, with ``scratch`` arrays to work in.

    As ``in_blocks``, for what is worth writing without temporaries: gelu 16 MiB forward and backward takes 5.3 ns an
    element so, and 7.7 as a formula in blocks (EPYC 4, 1 core). On a GPU all is one piece.
    """
    x = arrays[0]
    low = x.dtype in LOW
    kind = np.dtype(np.float32) if low else x.dtype
    out = xp.empty(x.shape, x.dtype)
    if x.ndim and all(a.flags.c_contiguous and a.shape == x.shape for a in arrays):
        parts, rows = [a.reshape(-1) for a in arrays], out.reshape(-1)
    else:
        parts, rows = [xp.broadcast_to(a, x.shape).reshape(x.shape or 1) for a in arrays], out.reshape(x.shape or 1)
    count = len(rows)
    width = rows.size // max(1, count) * kind.itemsize
    step = min(count, max(1, PIECE_BYTES // max(1, width))) if xp is np else count
    work = [xp.empty((step, *rows.shape[1:]), kind) for _ in range(scratch + low)]
    for i in range(0, count, max(1, step)):
        block, target = [a[i : i + step] for a in parts], rows[i : i + step]
        held = work if len(target) == step else [w[: len(target)] for w in work]
        if low:
            function(xp, *held, *(a.astype(kind) for a in block))
            target[...] = held[0]
        else:
            function(xp, target, *held, *block)
    return out


@functools.lru_cache(maxsize=64)
def constants(dtype, *values):
    """0-d arrays of ``values``: as an operand one costs 0.34 us, a Python number 0.62."""
    return tuple(np.array(v, dtype) for v in values)


def numbers(xp, x, *values):
    """``values`` as the cheapest operands beside x: 0-d arrays on the CPU, numbers elsewhere."""
    return constants(x.dtype, *values) if xp is np else values


def at_once(formula):
    """The first-order rule that is a pointwise formula, for an op whose rule is a kernel on devices that have one."""
    asked = ", ".join(asks(formula))
    return eval(f"lambda {asked}: (formula({asked}),)", {"formula": formula})


def blocked(formula):
    """The first-order rule that runs a pointwise formula over blocks; the formula itself stays the only text."""
    names = asks(formula)
    arrays = ", ".join(n for n in names if n in ("g", "x", "out"))
    given = ", ".join(n for n in names)
    asked = given if "m" in names else "m, " + given
    text = f"lambda xp, {asked}: (in_blocks(xp, lambda {arrays}: formula({given}), {arrays}),)"
    return eval(text, {"in_blocks": in_blocks, "formula": formula})


# ---- the rows of a matrix, or the columns of a batch of matrices


def in_lines(xp, function, dim, *arrays):
    """``function(xp, out, *arrays)`` writes ``out``, line by line along ``dim``, over blocks where xp is NumPy.

    A block is [N,C], or [B,C,N] where ``dim`` is not the last: lines lie along axis 1. Half types come as float32.
    """
    x = arrays[0]
    out = xp.empty(x.shape, x.dtype)
    if x.ndim == 2 and dim == 1 and x.nbytes <= BLOCK_BYTES and x.itemsize > 2 and x.size:
        function(xp, out, *arrays)
        return out
    count = x.shape[dim] if x.ndim else 1
    before, after = math.prod(x.shape[:dim]), math.prod(x.shape[dim + 1 :])
    lines = (before, count) if after == 1 else (before, count, after)
    parts, target = [a.reshape(lines) for a in arrays], out.reshape(lines)
    if not out.size:
        return out
    step = before if xp is not np else max(1, BLOCK_BYTES // (count * after * max(4, x.itemsize)))
    low = x.dtype in LOW
    with short_buffers(xp, x.size):
        for i in range(0, before, step):
            block = [a[i : i + step] for a in parts]
            if low:
                block = [a.astype(np.float32) for a in block]
                wide = xp.empty(block[0].shape, np.float32)
                function(xp, wide, *block)
                target[i : i + step] = wide
            else:
                function(xp, target[i : i + step], *block)
    return out


@functools.lru_cache(maxsize=64)
def _starts(rows, columns):
    return np.arange(0, rows * columns, columns)


def line_max(xp, x):
    """The largest of each line, axis 1 kept. Short rows are what NumPy is slow at (2 MiB, EPYC 4, 1 core):
    rows of 10 take 2.3 ms by max, 0.37 by way of the transposed copy; rows of 64 0.52, and 0.33 by reduceat.
    """
    if xp is not np or x.ndim != 2 or x.shape[0] < 64 or x.shape[1] > 4096 or not x.flags.c_contiguous:
        return x.max(1, keepdims=True)
    if x.shape[1] <= 32:
        return np.ascontiguousarray(x.T).max(0)[:, None]
    return np.maximum.reduceat(x.reshape(-1), _starts(*x.shape))[:, None]


@functools.lru_cache(maxsize=64)
def _ones(count, dtype):
    return np.ones(count, dtype)


def line_sum(xp, x):
    """The sum of each line, axis 1 kept; of rows as a product with ones, 42 us where sum takes 250 (rows of 64)."""
    if xp is not np or x.ndim != 2:
        return x.sum(1, keepdims=True)
    return x.dot(_ones(x.shape[1], x.dtype))[:, None]


def plain_exponentials(xp, x, out, least=1.0, most=1e30):
    """Write e^x into ``out``; comes back as the sums of its lines, or as None where e^(x - largest) is needed.

    That is where a sum passes ``most``, or is less than ``least``, or no number; what e^x lost to underflow is less
    than 1e-38 / ``least`` of its line. For rows of 1024 the largest costs 0.11 ns an element and the difference 0.16,
    of rows of 64 0.5 and 0.25; e^x 0.5 (EPYC 4, 1 core).
    """
    if xp is not np or x.size < 4096:  # below, the checks cost what they save
        return None
    with np.errstate(over="ignore"):
        np.exp(x, out=out)
        sums = line_sum(np, out) if x.ndim <= 3 else row_sums(np, out)
        return sums if sums.min() >= least and sums.max() <= most else None


def line_dot(xp, x, y):
    """The sum of products of each line, axis 1 kept, without the products in memory where they are rows."""
    if x.ndim != 2:
        return (x * y).sum(1, keepdims=True)
    if xp is np and x.shape[1] >= 64:
        return np.vecdot(x, y)[:, None]
    return xp.einsum("ij,ij->i", x, y)[:, None]
