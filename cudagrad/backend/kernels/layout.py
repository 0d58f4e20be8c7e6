"""How arrays that broadcast lie beside each other: the fewest dims that tell it, and packs where all have them."""

import math

import numpy as np

MOST_DIMS, MOST_IN, MOST_OUT, MOST_NUMBERS = 8, 8, 4, 8  # as in kernels/elementwise.cuh
MOST_UNITS = 2**31 - 1  # the kernel counts units, and the elements of a stride, in 32 bits

# struct Layout of kernels/elementwise.cuh
LAYOUT = np.dtype(
    [
        ("number", "f8", MOST_NUMBERS),
        ("dims", "i4"),
        ("packed", "i4"),
        ("single", "u4"),
        ("apart", "i4"),
        ("size", "u4", MOST_DIMS),
        ("multiplier", "u4", MOST_DIMS),
        ("shift", "u4", MOST_DIMS),
        ("stride", "i4", (MOST_DIMS, MOST_IN + MOST_OUT)),
    ]
)


def laid(shape, strides, inputs, width):
    """``(layout, units)`` of a launch over the elements of ``shape``; layout is None where it has to be cut in two.

    ``layout`` is the bytes of struct Layout, its numbers 0; ``strides`` are each array's in elements, 0 where
    it broadcasts, the ``inputs`` inputs first; ``width`` the elements a pack.
    """
    dims = _merged(shape, strides)
    packed = width > 1 and _in_packs(dims, inputs, width)
    single = 0
    if packed:
        size, steps = dims[0]
        single = sum(1 << a for a, step in enumerate(steps[:inputs]) if not step)
        dims[0] = -(-size // width), tuple(step * width for step in steps)
    units = math.prod(size for size, _ in dims)
    if len(dims) > MOST_DIMS or units > MOST_UNITS or any(step > MOST_UNITS for _, steps in dims for step in steps):
        return None, units
    return _struct(dims, inputs, packed, single), units


def _merged(shape, strides):
    """[(size, steps of the arrays)], innermost first, of as few dims as tell the same; at least one."""
    dims = []
    for d in reversed(range(len(shape))):
        size, steps = shape[d], tuple(array[d] for array in strides)
        if size == 1:
            continue
        if dims and all(step == inner * dims[-1][0] for step, inner in zip(steps, dims[-1][1])):
            dims[-1] = dims[-1][0] * size, dims[-1][1]
        else:
            dims.append((size, steps))
    return dims or [(1, (1,) * len(strides))]


def _in_packs(dims, inputs, width):
    """Whether packs of ``width`` elements follow one another in every array; the very last one may be cut short."""
    size, steps = dims[0]
    rows = all(step in (0, 1) for step in steps[:inputs]) and all(step == 1 for step in steps[inputs:])
    even = all(step % width == 0 for _, outer in dims[1:] for step in outer)
    return rows and even and (len(dims) == 1 or size % width == 0)


def _struct(dims, inputs, packed, single):
    layout = np.zeros((), LAYOUT)
    layout["dims"], layout["packed"], layout["single"] = len(dims), packed, single
    for d, (size, steps) in enumerate(dims):
        layout["size"][d], (layout["multiplier"][d], layout["shift"][d]) = size, _divisor(size)
        layout["stride"][d, :inputs] = steps[:inputs]
        layout["stride"][d, MOST_IN : MOST_IN + len(steps) - inputs] = steps[inputs:]
    return layout.tobytes()


def _divisor(size):
    """(multiplier, shift): number // size is (high half of number * multiplier + number) >> shift below 2^31."""
    shift = max(size - 1, 0).bit_length()
    return (2**32 * (2**shift - size)) // size + 1, shift
