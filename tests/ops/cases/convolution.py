"""Convolutions, unfold and fold against loops over windows, as they are defined."""

import itertools

import numpy as np

from . import Error, Input, case


def axes_of(value, n):
    return (value,) * n if isinstance(value, int) else tuple(value)


def places(count, kernel, stride, padding, dilation):
    """For each window and place in it: their indices and the element of the input, outside ones " "too."""
    for i in itertools.product(*map(range, count)):
        for k in itertools.product(*map(range, kernel)):
            yield i, k, tuple(a * s - p + b * d for a, b, s, p, d in zip(i, k, stride, padding, dilation))


def inside(place, sizes):
    return all(0 <= p < n for p, n in zip(place, sizes))


def correlate(x, w, bias=None, stride=1, padding=0, dilation=1, groups=1):
    n = w.ndim - 2
    if x.ndim == n + 1:
        return correlate(x[None], w, bias, stride, padding, dilation, groups)[0]
    kernel, stride, dilation = w.shape[2:], axes_of(stride, n), axes_of(dilation, n)
    if padding == "same":
        totals = [d * (k - 1) for d, k in zip(dilation, kernel)]
        before, after = [t // 2 for t in totals], [t - t // 2 for t in totals]
    else:
        before = after = (0,) * n if padding == "valid" else axes_of(padding, n)
    count = [
        (m + a + b - d * (k - 1) - 1) // s + 1
        for m, a, b, d, k, s in zip(x.shape[2:], before, after, dilation, kernel, stride)
    ]
    out = np.zeros((x.shape[0], w.shape[0], *count), x.dtype)
    of_group, per_group = w.shape[0] // groups, w.shape[1]
    for i, k, place in places(count, kernel, stride, before, dilation):
        if inside(place, x.shape[2:]):
            for o in range(w.shape[0]):
                c = o // of_group * per_group
                part = x[(slice(None), slice(c, c + per_group), *place)]
                out[(slice(None), o, *i)] += (part * w[(o, slice(None), *k)]).sum(1)
    return out if bias is None else out + bias.reshape(-1, *(1,) * n)


def transposed(x, w, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    n = w.ndim - 2
    if x.ndim == n + 1:
        return transposed(x[None], w, bias, stride, padding, output_padding, groups, dilation)[0]
    options = (axes_of(v, n) for v in (stride, padding, output_padding, dilation))
    stride, padding, extra, dilation = options
    count, kernel = x.shape[2:], w.shape[2:]
    size = [
        (m - 1) * s - 2 * p + d * (k - 1) + e + 1
        for m, s, p, d, k, e in zip(count, stride, padding, dilation, kernel, extra)
    ]
    of_group, per_group = w.shape[1], w.shape[0] // groups
    out = np.zeros((x.shape[0], of_group * groups, *size), x.dtype)
    for i, k, place in places(count, kernel, stride, padding, dilation):
        if inside(place, size):
            for c in range(w.shape[0]):
                o = c // per_group * of_group
                term = x[(slice(None), c, *i)][:, None] * w[(c, slice(None), *k)]
                out[(slice(None), slice(o, o + of_group), *place)] += term
    return out if bias is None else out + bias.reshape(-1, *(1,) * n)


# sums of some dozen products: the order of adding up is ours to choose
FACTS = {"roundings": 16}

case(
    "conv1d",
    correlate,
    Input((2, 3, 7), (4, 3, 3)),
    Input((2, 3, 7), (4, 3, 2), (4,), stride=2, padding=1),
    Input((3, 8), (2, 3, 3), (2,), dilation=3, padding=(2,)),
    Input((2, 4, 6), (6, 2, 3), padding="same", groups=2),
    Input((2, 3, 6), (3, 1, 4), padding="same", groups=3, dilation=2),
    Input((0, 3, 7), (4, 3, 3), (4,)),
    Input((40, 2, 5), (3, 2, 3), (3,)),  # the batch is put last
    Error(
        RuntimeError, "Expected 2D (unbatched) or 3D (batched) input to conv1d, but got input", (2, 3, 5, 5), (4, 3, 3)
    ),
    **FACTS,
)
case(
    "nn.functional.conv2d",
    correlate,
    Input((2, 3, 5, 6), (4, 3, 3, 2), (4,)),
    Input((2, 1, 6, 5), (3, 1, 3, 3), (3,), stride=(2, 1), padding=(1, 2)),
    Input((2, 3, 5, 5), (4, 3, 1, 1), (4,)),
    Input((2, 3, 5, 5), (4, 3, 1, 1), stride=2),
    Input((3, 5, 5), (2, 3, 3, 3), padding="valid"),
    Input((1, 4, 7, 7), (4, 2, 3, 3), (4,), stride=3, padding=1, dilation=2, groups=2),
    Input((2, 4, 5, 5), (8, 1, 3, 3), (8,), padding=1, groups=4, stride=2),
    Input((1, 16, 3, 3), (4, 8, 2, 2), groups=2, padding=1, stride=2),
    Input((1, 2, 3, 3), (2, 2, 3, 3), padding=4),
    complex=True,
    **FACTS,
)
case(
    "conv2d",
    correlate,
    Error(
        RuntimeError,
        "weight of size [4, 2, 3, 3], expected input[2, 3, 5, 5] to have 2 channels, but got 3 channels",
        (2, 3, 5, 5),
        (4, 2, 3, 3),
    ),
    Error(
        RuntimeError,
        "Calculated padded input size per channel: (5 x 5). Kernel size: (7 x 7). Kernel size can't "
        "be greater than actual input size",
        (2, 3, 5, 5),
        (4, 3, 7, 7),
    ),
    Error(
        RuntimeError,
        "expected stride to be a single integer value or a list of 1 values to match the convolution "
        "dimensions, but got stride=[1, 1]",
        (2, 3, 5),
        (4, 3, 3),
    ),
    Error(
        RuntimeError,
        "Given groups=2, expected weight to be divisible by 2 at dimension 0, but got weight of size "
        "[[3, 2, 3, 3]] instead",
        (2, 4, 5, 5),
        (3, 2, 3, 3),
        groups=2,
    ),
    Error(
        RuntimeError,
        "expected bias to be 1-dimensional with 4 elements, but got bias of size [3] instead",
        (2, 3, 5, 5),
        (4, 3, 3, 3),
        (3,),
    ),
    Error(RuntimeError, "non-positive stride is not supported", (2, 3, 5, 5), (4, 3, 3, 3), stride=0),
    Error(RuntimeError, "negative padding is not supported", (2, 3, 5, 5), (4, 3, 3, 3), padding=-1),
    Error(RuntimeError, "dilation should be greater than zero, but got [0, 0]", (2, 3, 5, 5), (4, 3, 3, 3), dilation=0),
    Error(RuntimeError, "dilation should be greater than zero", (2, 3, 5, 5), (4, 3, 3, 3), dilation=-1),
    Error(RuntimeError, "non-positive groups is not supported", (2, 3, 5, 5), (4, 3, 3, 3), groups=0),
    Error(
        RuntimeError,
        "padding='same' is not supported for strided convolutions",
        (2, 3, 5, 5),
        (4, 3, 3, 3),
        padding="same",
        stride=2,
    ),
    Error(RuntimeError, "Invalid padding string: 'foo'", (2, 3, 5, 5), (4, 3, 3, 3), padding="foo"),
    Error(
        RuntimeError,
        "expected padding to be a single integer value or a list of 2 values to match the "
        "convolution dimensions, but got padding=[1, 2, 3]",
        (2, 3, 5, 5),
        (4, 3, 3, 3),
        padding=(1, 2, 3),
    ),
    Error(
        RuntimeError,
        "Only zero batch or zero channel inputs are supported, but got input shape: [2, 3, 0, 5]",
        (2, 3, 0, 5),
        (4, 3, 3, 3),
        padding=2,
    ),
    Error(
        RuntimeError,
        "Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [2]",
        (2,),
        (4, 3, 3, 3),
    ),
)
case(
    "conv3d",
    correlate,
    Input((1, 2, 4, 5, 3), (3, 2, 2, 3, 2), (3,)),
    Input((2, 2, 3, 4, 3), (2, 1, 3, 2, 1), stride=(1, 2, 1), padding=(1, 0, 1), groups=2),
    Input((2, 4, 3, 4), (2, 2, 2, 2, 2), dilation=(2, 1, 1), groups=1),
    **FACTS,
)
case(
    "conv_transpose1d",
    transposed,
    Input((2, 3, 4), (3, 2, 3), (2,)),
    Input((2, 4, 4), (4, 3, 3), (6,), stride=2, padding=1, output_padding=1, groups=2),
    Input((3, 4), (3, 2, 2), stride=2, dilation=3, output_padding=2),
    **FACTS,
)
case(
    "nn.functional.conv_transpose2d",
    transposed,
    Input((2, 3, 3, 4), (3, 2, 3, 2), (2,)),
    Input((1, 2, 3, 3), (2, 3, 3, 3), stride=(2, 3), padding=(1, 2), output_padding=(1, 0)),
    Input((2, 4, 3, 3), (4, 1, 2, 2), (4,), stride=2, groups=4),
    Input((2, 3, 3), (2, 2, 3, 3), padding=1),
    complex=True,
    **FACTS,
)
case(
    "conv_transpose2d",
    transposed,
    Error(
        RuntimeError,
        "Given transposed=1, weight of size [4, 3, 3, 3], expected input[2, 3, 5, 5] to have 4 "
        "channels, but got 3 channels instead",
        (2, 3, 5, 5),
        (4, 3, 3, 3),
    ),
    Error(
        RuntimeError,
        "output padding must be smaller than either stride or dilation, but got "
        "output_padding_height: 1 output_padding_width: 1 stride_height: 1 stride_width: 1 "
        "dilation_height: 1 dilation_width: 1",
        (2, 3, 5, 5),
        (3, 4, 3, 3),
        output_padding=1,
    ),
    Error(RuntimeError, "negative output_padding is not supported", (2, 3, 5, 5), (3, 4, 3, 3), output_padding=-1),
    Error(
        RuntimeError,
        "Given transposed=1, weight of size [3, 4, 3, 3], expected bias to be 1-dimensional with 4 "
        "elements, but got bias of size [3] instead",
        (2, 3, 5, 5),
        (3, 4, 3, 3),
        (3,),
    ),
    Error(
        TypeError,
        "conv_transpose2d(): argument 'padding' must be tuple of ints, not str",
        (2, 3, 5, 5),
        (3, 4, 3, 3),
        padding="same",
    ),
)
case(
    "conv_transpose3d",
    transposed,
    Input((1, 2, 2, 3, 2), (2, 2, 2, 2, 3), (2,)),
    Input((1, 2, 2, 2, 3), (2, 1, 3, 2, 1), stride=(2, 1, 2), padding=(1, 0, 0), output_padding=(1, 0, 1), groups=2),
    **FACTS,
)


# ---- windows as columns


def unfolded(x, kernel_size, dilation=1, padding=0, stride=1):
    if x.ndim == 3:
        return unfolded(x[None], kernel_size, dilation, padding, stride)[0]
    kernel, dilation, padding, stride = (axes_of(v, 2) for v in (kernel_size, dilation, padding, stride))
    count = counts(x.shape[2:], kernel, dilation, padding, stride)
    out = np.zeros((*x.shape[:2], *kernel, *count), x.dtype)
    for i, k, place in places(count, kernel, stride, padding, dilation):
        if inside(place, x.shape[2:]):
            out[(slice(None), slice(None), *k, *i)] = x[(slice(None), slice(None), *place)]
    return out.reshape(x.shape[0], x.shape[1] * kernel[0] * kernel[1], count[0] * count[1])


def folded(x, output_size, kernel_size, dilation=1, padding=0, stride=1):
    if x.ndim == 2:
        return folded(x[None], output_size, kernel_size, dilation, padding, stride)[0]
    size, kernel, dilation, padding, stride = (
        axes_of(v, 2) for v in (output_size, kernel_size, dilation, padding, stride)
    )
    count = counts(size, kernel, dilation, padding, stride)
    columns = x.reshape(x.shape[0], -1, *kernel, *count)
    out = np.zeros((*columns.shape[:2], *size), x.dtype)
    for i, k, place in places(count, kernel, stride, padding, dilation):
        if inside(place, size):
            out[(slice(None), slice(None), *place)] += columns[(slice(None), slice(None), *k, *i)]
    return out


def counts(sizes, kernel, dilation, padding, stride):
    return [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in zip(sizes, kernel, dilation, padding, stride)]


case(
    "nn.functional.unfold",
    unfolded,
    Input((2, 2, 4, 5), kernel_size=(2, 3)),
    Input((2, 5, 4), kernel_size=2, dilation=(2, 1), padding=(1, 2), stride=(1, 2)),
    Error(
        RuntimeError,
        "Given input with spatial size (5, 5), kernel_size=(7, 7), dilation=(1, 1), padding=(0, 0), "
        "calculated shape of the array of sliding blocks as (-1, -1), but its components must be at "
        "least one.",
        (2, 3, 5, 5),
        kernel_size=7,
    ),
    Error(RuntimeError, "It is expected kernel_size equals to 2, but got size 3", (2, 3, 5, 5), kernel_size=(2, 2, 2)),
    Error(
        RuntimeError,
        "kernel size should be greater than zero, but got kernel_height: 0 kernel_width: 0",
        (2, 3, 5, 5),
        kernel_size=0,
    ),
    Error(
        RuntimeError,
        "stride should be greater than zero, but got stride_height: 0 stride_width: 0",
        (2, 3, 5, 5),
        kernel_size=2,
        stride=0,
    ),
    Error(
        RuntimeError,
        "dilation should be greater than zero, but got dilation_height: 0 dilation_width: 0",
        (2, 3, 5, 5),
        kernel_size=2,
        dilation=0,
    ),
    Error(
        RuntimeError,
        "padding should be non-negative, but got pad_height: -1 pad_width: -1",
        (2, 3, 5, 5),
        kernel_size=2,
        padding=-1,
    ),
    complex=True,
)
case(
    "nn.functional.fold",
    folded,
    Input((2, 12, 12), output_size=(4, 5), kernel_size=(2, 2)),
    Input((4, 20), output_size=(5, 4), kernel_size=2, dilation=(2, 1), padding=(1, 2), stride=(1, 2)),
    Error(
        RuntimeError,
        "Given output_size=(5, 5), kernel_size=(2, 2), dilation=(1, 1), padding=(0, 0), stride=(1, "
        "1), expected size of input's dimension 2 to match the calculated number of sliding blocks 4 "
        "* 4 = 16, but got input.size(2)=15.",
        (2, 12, 15),
        output_size=(5, 5),
        kernel_size=2,
    ),
    Error(
        RuntimeError,
        "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
        "input.size(1)=13 and kernel_size=(2, 2).",
        (2, 13, 16),
        output_size=(5, 5),
        kernel_size=2,
    ),
    Error(
        RuntimeError,
        "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero "
        "dimensions for input, but got: [2, 12, 16, 2]",
        (2, 12, 16, 2),
        output_size=(5, 5),
        kernel_size=2,
    ),
)
