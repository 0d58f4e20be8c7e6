"""What the adapters share."""

import math

import numpy as np

from ..launch import Unfit

FLOATS = {np.dtype(name) for name in ("f2", "f4", "f8")}


def is_float(a):
    """Whether an array is of a floating dtype that kernels compute with."""
    return a.dtype in FLOATS or a.dtype.name == "bfloat16"


def fits(name, *arrays):
    """Unfit where there is nothing to compute or a dtype no kernel is made for."""
    for a in arrays:
        if a is not None and not is_float(a):
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


def parts(xp, x, columns, *before):
    """What makes the array of a kernel's sums over rows: [*before,Q,columns] for the Q parts that it works in."""
    return lambda letters: xp.empty((*before, letters["Q"], columns), sums(x))


def added_up(run, xp, partial, dtype):
    """The sums over the parts of [G,Q,C]: [G,C]."""
    out = xp.empty((partial.shape[0], partial.shape[2]), dtype)
    run("columns.cu", "column_sums", partial=partial, out=out)
    return out


SECTOR = 32  # bytes: narrower than this side by side, lines cannot be read without reading others


class Lines:
    """How the elements along ``dim`` of an array are the lines of a kernel's array [N,C,S] (kernels/line.cuh).

    They stay as they lie, with S the size of the dims after ``dim``; they become rows, S = 1, where they lie in memory
    as rows or where S is too narrow.
    """

    def __init__(self, xp, a, dim):
        self.xp, self.dim, self.shape = xp, dim, a.shape or (1,)
        self.after = math.prod(self.shape[dim + 1 :])
        self.moved = self.after > 1 and (self._rows(a).flags.c_contiguous or self.after * a.itemsize < SECTOR)

    def _rows(self, a):
        return self.xp.moveaxis(a, self.dim, -1)

    def of(self, a):
        """An array of that shape as [N,C,S]; a copy where its elements lie otherwise."""
        a = a.reshape(self.shape)
        a = self.xp.ascontiguousarray(self._rows(a) if self.moved else a)
        return a.reshape(-1, self.shape[self.dim], 1 if self.moved else self.after)

    def back(self, lines, shape):
        """The array of the original ``shape`` whose lines are ``lines``; a view."""
        if not self.moved:
            return lines.reshape(shape)
        rows = (*self.shape[: self.dim], *self.shape[self.dim + 1 :], self.shape[self.dim])
        return self.xp.moveaxis(lines.reshape(rows), -1, self.dim)
