"""Elements taken from places of flattened axes, and put there: what poolings that keep indices and sampling share."""

import math

from ..core.op import op
from .segments import add_rows


@op(
    x=lambda m, g, x_shape, index: m.add_places(g, index, size=x_shape[2]),
    node="Gather",
)
def take_places(xp, x, index):
    """out[n,c,i] = x[n, c, index[n,c,i]].

    Shapes      x [N,C,S]; index [N,C,I] or [N,1,I], int64 in [0, S); out [N,C,I]
    Derivative  g added at the places, however often one was taken
    """
    return xp.take_along_axis(x, xp.broadcast_to(index, (*x.shape[:2], index.shape[2])), 2)


@op(x=lambda m, g, index: m.take_places(g, index))
def add_places(xp, x, index, *, size):
    """Zeros [N,C,size] with x[n,c,i] added at index[n,c,i], in a fixed order. The adjoint of ``take_places``."""
    n, c = x.shape[:2]
    flat = index + xp.arange(n * c, dtype=xp.int64).reshape(n, c, 1) * size
    out = xp.zeros((n * c * size, 1), x.dtype)
    add_rows(xp, out, xp.broadcast_to(flat, x.shape).reshape(-1), x.reshape(-1, 1))
    return out.reshape(n, c, size)


@op(x=lambda m, g, index: m.take_places(g, index), node="MaxUnpool2D")
def put_places(xp, x, index, *, size):
    """Zeros [N,C,size] with x[n,c,i] written at index[n,c,i]; of several the last stays.

    Derivative  g at the places, also for what was overwritten, as PyTorch has it
    """
    out = xp.zeros((*x.shape[:2], size), x.dtype)
    xp.put_along_axis(out, index, x, 2)
    return out


def flat_index(xp, places, sizes):
    """Row-major index of places, one array an axis of ``sizes``."""
    index = places[0]
    for place, size in zip(places[1:], sizes[1:]):
        index = index * size + place
    return index


def area(shape):
    """How many places axes have together."""
    return math.prod(shape)
