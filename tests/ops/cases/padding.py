"""Padding: each mode by its map of places."""

import math

import numpy as np

from . import Error, Input, case


def source(mode, place, n):
    """The element of an axis of length n that padding at ``place`` repeats."""
    if mode == "replicate":
        return min(max(place, 0), n - 1)
    if mode == "circular":
        return place % n
    period = 2 * (n - 1)
    place %= period
    return min(place, period - place)


def padded(x, pad, mode="constant", value=0):
    for back in range(len(pad) // 2):
        axis, (before, after) = x.ndim - 1 - back, pad[2 * back : 2 * back + 2]
        n = x.shape[axis]
        rows = []
        for place in range(-before, n + after):
            if mode == "constant" and not 0 <= place < n:
                rows.append(np.full(x.shape[:axis] + x.shape[axis + 1 :], value, x.dtype))
            else:
                rows.append(x.take(place if mode == "constant" else source(mode, place, n), axis))
        x = np.stack(rows, axis)
    return x


case(
    "nn.functional.pad",
    padded,
    Input((3, 4), pad=(1, 2)),
    Input((3, 4), pad=(1, -1, -2, 3), value=1.5),
    Input((2, 3, 4), pad=(-1, -2)),
    Input((2, 3), pad=()),
    Input((2, 3), pad=(0, 0, 0, 0)),
    Input((2, 0, 3), pad=(1, 1, 2, 0)),
    Input((2, 2, 2, 2), pad=(1, 0, 0, 1, 1, 1, 2, 0), value=7),
    complex=True,
    ints=True,
)
case("nn.functional.pad", padded, Input((2, 2), pad=(1, 0), value=-math.inf), grad=0)
for mode, most in (("reflect", 3), ("replicate", 6), ("circular", 4)):
    case(
        "nn.functional.pad",
        padded,
        Input((2, 4), pad=(1, most), mode=mode),
        Input((2, 3, 4, 5), pad=(2, 1, most, 0), mode=mode),
        Input((2, 3, 4, 5), pad=(0, 0, 0, 0), mode=mode),
        Input((2, 4, 3, 4), pad=(1, 2, 0, 1, most, 2), mode=mode),
        complex=True,
        ints=True,
    )
for mode in ("reflect", "replicate"):
    case("nn.functional.pad", padded, Input((2, 6), pad=(-2, 1), mode=mode), Input((2, 6), pad=(2, -3), mode=mode))
# What is cut is not repeated.
case(
    "nn.functional.pad",
    lambda x, pad, mode: np.concatenate([x[..., 2:], x[..., 2:4]], -1),
    Input((2, 6), pad=(-2, 2), mode="circular"),
)
case(
    "constant_pad_nd",
    padded,
    Input((3, 4), pad=(1, 2, 0, 1)),
    Input((3, 4), pad=(1, 2), value=3.0),
)
case(
    "nn.functional.pad",
    padded,
    Error(RuntimeError, "Padding length must be divisible by 2", (2, 3), pad=(1,)),
    Error(
        RuntimeError,
        "Padding length should be less than or equal to two times the input dimension but got "
        "padding length 6 and input of dimension 2",
        (2, 3),
        pad=(1,) * 6,
    ),
    Error(RuntimeError, "narrow(): length must be non-negative.", (2, 3), pad=(-2, -2)),
    Error(NotImplementedError, "Unrecognised padding mode foo", (2, 3), pad=(1, 1), mode="foo"),
    Error(
        RuntimeError,
        "Argument #4: Padding size should be less than the corresponding input dimension, but got: "
        "padding (3, 3) at dimension 1 of input [2, 3]",
        (2, 3),
        pad=(3, 3),
        mode="reflect",
    ),
    Error(
        NotImplementedError,
        "Padding size 4 is not supported for 2D input tensor.",
        (2, 3),
        pad=(1, 1, 1, 1),
        mode="reflect",
    ),
    Error(
        RuntimeError,
        "Padding value causes wrapping around more than once.",
        (2, 3, 4, 4),
        pad=(5, 1, 1, 1),
        mode="circular",
    ),
    Error(
        RuntimeError,
        'Padding mode "reflect" doesn\'t take in value argument',
        (2, 3),
        pad=(1, 1),
        mode="reflect",
        value=1,
    ),
    Error(RuntimeError, "input (W: 3) is too small. Calculated output W: 0", (2, 3), pad=(-3, 0), mode="replicate"),
    Error(
        RuntimeError, "Negative padding value is resulting in an empty dimension", (2, 3), pad=(-2, -2), mode="circular"
    ),
    Error(
        RuntimeError,
        "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
        "dimensions for input, but got: [2, 0, 4, 4]",
        (2, 0, 4, 4),
        pad=(1, 1, 1, 1),
        mode="reflect",
    ),
)
