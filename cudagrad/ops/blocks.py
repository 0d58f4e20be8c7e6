"""Compound pointwise maths on big NumPy arrays, in pieces that stay in the cache; and rows by the block."""

import numpy as np

from ..backend import LOW
from ..core.op import asks

BLOCK_BYTES = 1 << 17  # half of an L2, so that an input, an output and two temporaries fit


def in_blocks(xp, function, *arrays):
    """``function(*arrays)``, element by element, over blocks where that pays.

    gelu of 2 MiB takes 1.0 ms in blocks and 1.5 ms at once (EPYC 4, 1 core): its temporaries stay in the L2.
    Half types are computed in float32 and rounded once. Arrays of other shapes (numbers, rows) go in whole.
    """
    x = arrays[0]
    low = x.dtype in LOW
    if xp is not np or x.nbytes < 2 * BLOCK_BYTES or x.ndim == 0:
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


def blocked(formula):
    """The first-order rule that runs a pointwise formula over blocks; the formula itself stays the only text."""
    names = asks(formula)
    arrays = ", ".join(n for n in names if n in ("g", "x", "out"))
    given = ", ".join(n for n in names)
    asked = given if "m" in names else "m, " + given
    text = f"lambda xp, {asked}: (in_blocks(xp, lambda {arrays}: formula({given}), {arrays}),)"
    return eval(text, {"in_blocks": in_blocks, "formula": formula})


def row_blocks(rows, columns, itemsize):
    """Slices over ``rows`` rows of ``columns`` elements, each of about a block."""
    step = max(1, BLOCK_BYTES // max(1, columns * itemsize))
    return [slice(i, min(i + step, rows)) for i in range(0, rows, step)]
