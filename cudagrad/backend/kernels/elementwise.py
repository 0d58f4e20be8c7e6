"""Formulas over arrays, element by element: one launch of kernels/elementwise.cu for a whole chain of operations."""

import dataclasses
import math
import struct

import numpy as np

from .header import ctype
from .launch import Rather
from .layout import MOST_IN, MOST_NUMBERS, MOST_OUT, laid

NAMES = [f"x{i}" for i in range(MOST_IN)], [f"y{i}" for i in range(MOST_OUT)]
NUMBERS, ZEROS = struct.Struct(f"{MOST_NUMBERS}d"), (0.0,) * MOST_NUMBERS  # with these the kernel's layout begins


def compute(run, xp, formula, inputs, outputs, numbers=()):
    """The arrays y0, y1, ... that ``formula``, statements in C++, makes of the arrays x0, x1, ... and numbers n0, ...

    The inputs broadcast; they are floating or bool, of any strides, and computed with in float32, beside float64 in
    float64. ``outputs`` says of each output its dtype, or is the array to be written, which may be one of the inputs
    but not share memory with one otherwise.

        compute(run, xp, "y0 = gelu(x0 + x1) + x2", (x, bias, residual), (x.dtype,))

    Raises      Rather where arrays are too many, of other dtypes or shapes
    """
    key = [len(inputs)]
    for a in inputs:
        key += a.shape, a.strides, a.dtype
    for o in outputs:
        key += (o,) if isinstance(o, np.dtype) else (o.shape, o.strides, o.dtype)
    key = tuple(key)
    call = _CALLS.get(key)
    if call is None:
        if len(_CALLS) >= 4096:
            _CALLS.clear()
        call = _CALLS[key] = _call(inputs, outputs)
    outputs = [o if made is None else _empty(xp, *made) for o, made in zip(outputs, call.made)]
    if call.layout is not None:
        layout = call.layout
        if numbers:
            layout = NUMBERS.pack(*numbers, *ZEROS[len(numbers) :]) + layout[NUMBERS.size :]
        given = dict(zip(call.names, (*inputs, *outputs)))
        run("elementwise.cu", "elementwise", **given, formula=formula, layout=layout, **call.counts)
    elif call.counts:
        _in_halves(run, xp, formula, call.shape, [_forward(xp, a) for a in inputs], outputs, numbers)
    return outputs


@dataclasses.dataclass(frozen=True)
class _Call:
    """What is the same for all calls with arrays of the same shapes, strides and dtypes."""

    shape: tuple
    made: tuple  # for each output the order of its axes, its shape and dtype; None where it is given
    names: tuple  # of the arrays as the kernel's arguments
    layout: bytes  # None where there is more to do, or nothing
    counts: dict  # empty where there are no elements


_CALLS = {}


def _call(inputs, outputs):
    if len(inputs) > MOST_IN or len(outputs) > MOST_OUT:
        raise Rather(f"a formula has at most {MOST_IN} inputs and {MOST_OUT} outputs")
    dtypes = [getattr(a, "dtype", a) for a in (*inputs, *outputs)]
    for d in dtypes:
        if d.kind in "iuc" or ctype(d) is None:
            raise Rather(f"elementwise: no kernel computes with {d}")
    shape = _met(inputs)
    made, strides = [], [_steps(a, shape) for a in inputs]
    for o in outputs:
        if not isinstance(o, np.dtype) and o.shape != shape:
            raise Rather(f"elementwise: an output of shape {o.shape} is not of the shape {shape} of its inputs")
        order = _order(shape, inputs)
        made.append((order, shape, o) if isinstance(o, np.dtype) else None)
        strides.append(_dense(shape, order) if isinstance(o, np.dtype) else _steps(o, shape))
    names = (*NAMES[0][: len(inputs)], *NAMES[1][: len(outputs)])
    count = math.prod(shape)
    if not count:
        return _Call(shape, tuple(made), names, None, {})
    layout, units = None, 0
    if all(steps is not None for steps in strides):
        layout, units = laid(shape, tuple(strides), len(inputs), 16 // max(d.itemsize for d in dtypes))
    return _Call(shape, tuple(made), names, layout, {"n": count, "units": units})


def _met(inputs):
    """The shape to which the inputs broadcast."""
    try:
        return np.broadcast_shapes(*(a.shape for a in inputs))
    except ValueError as error:  # the op's own text has the words for it
        raise Rather(str(error)) from None


def _steps(a, shape):
    """The strides of ``a`` beside ``shape`` in elements, 0 where it broadcasts; None where no kernel walks them."""
    size, new = a.dtype.itemsize, len(shape) - a.ndim
    if any(s < 0 or s % size for s in a.strides):
        return None
    return (0,) * new + tuple(0 if n == 1 else s // size for n, s in zip(a.shape, a.strides))


def _order(shape, inputs):
    """The order in which the axes of a new output lie in memory: that of the first input of its shape."""
    like = next((a for a in inputs if a.shape == shape), None)
    if like is None or like.flags.c_contiguous:
        return tuple(range(len(shape)))
    return tuple(sorted(range(len(shape)), key=lambda d: -like.strides[d]))


def _dense(shape, order):
    """The strides, in elements, of an array without gaps whose axes lie in memory in ``order``."""
    strides, step = [0] * len(shape), 1
    for d in reversed(order):
        strides[d], step = step, step * shape[d]
    return tuple(0 if n == 1 else s for n, s in zip(shape, strides))


def _empty(xp, order, shape, dtype):
    if order == tuple(range(len(shape))):
        return xp.empty(shape, dtype)
    return xp.empty([shape[d] for d in order], dtype).transpose([order.index(d) for d in range(len(shape))])


def _forward(xp, a):
    """``a``, or a copy where the kernel cannot walk it."""
    return a if _steps(a, a.shape) is not None else xp.ascontiguousarray(a)


def _in_halves(run, xp, formula, shape, inputs, outputs, numbers):
    """A launch for each half, cut along the axis of the longest stride, of what has too many elements or dims."""
    inputs = [xp.broadcast_to(a, shape) for a in inputs]
    axis = max((d for d, n in enumerate(shape) if n > 1), key=lambda d: max(a.strides[d] for a in (*inputs, *outputs)))
    half = shape[axis] // 2
    for part in (slice(half), slice(half, None)):
        index = (slice(None),) * axis + (part,)
        compute(run, xp, formula, [a[index] for a in inputs], [y[index] for y in outputs], numbers)
