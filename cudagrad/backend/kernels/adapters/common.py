"""What the adapters share."""

import numpy as np

from ..launch import Unfit

FLOATS = {np.dtype(name) for name in ("f2", "f4", "f8")}


def _is_float(a):
    return a.dtype in FLOATS or a.dtype.name == "bfloat16"


def fits(name, *arrays):
    """Unfit where there is nothing to compute or a dtype no kernel is made for."""
    for a in arrays:
        if a is not None and not _is_float(a):
            raise Unfit(f"{name}: no kernel computes with {a.dtype}")
        if a is not None and not a.size:
            raise Unfit(f"{name}: there are no elements")


def like(g, x):
    """A gradient in the dtype of ``x``: NumPy makes float32 of a half type times a number."""
    return g.astype(x.dtype, copy=False)


def sums(x):
    """The dtype that sums of ``x`` are made in."""
    return np.dtype("f8") if x.dtype == np.dtype("f8") else np.dtype("f4")


def flat(xp, a):
    """``a`` in one dimension, its elements one after another; None stays."""
    return None if a is None else xp.ascontiguousarray(a).reshape(-1)
