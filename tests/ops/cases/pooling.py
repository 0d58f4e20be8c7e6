"""Pooling against loops over windows."""

import itertools
import math

import numpy as np

from . import Error, Input, case


def axes_of(value, n):
    return (value,) * n if isinstance(value, int) else tuple(value)


def window_count(n, k, s, p, d, ceil_mode):
    room = n + 2 * p - d * (k - 1) - 1
    count = (math.ceil(room / s) if ceil_mode else room // s) + 1
    return count - 1 if ceil_mode and (count - 1) * s >= n + p else count


def windows(x, n, kernel_size, stride, padding, dilation, ceil_mode):
    """For each output place: its index, and the places of the input in its window that exist."""
    kernel = axes_of(kernel_size, n)
    stride = kernel if stride is None else axes_of(stride, n)
    padding, dilation = axes_of(padding, n), axes_of(dilation, n)
    sizes = x.shape[x.ndim - n :]
    count = [window_count(*options, ceil_mode) for options in zip(sizes, kernel, stride, padding, dilation)]
    for i in itertools.product(*map(range, count)):
        axes = [
            [a * s - p + b * d for b in range(k) if 0 <= a * s - p + b * d < size]
            for a, s, p, d, k, size in zip(i, stride, padding, dilation, kernel, sizes)
        ]
        yield i, count, axes


def largest(x, n, found):
    """``(out, indices)``: of each list of places the first of the largest elements, or the last " "nan."""
    sizes = x.shape[x.ndim - n :]
    out = indices = None
    for i, count, axes in found:
        if out is None:
            out, indices = (np.zeros((*x.shape[: x.ndim - n], *count), kind) for kind in (x.dtype, np.int64))
        places = list(itertools.product(*axes))
        values = np.stack([x[(..., *p)] for p in places], -1)
        flat = np.array([np.ravel_multi_index(p, sizes) for p in places])
        nans = np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, bool)
        last = values.shape[-1] - 1 - np.argmax(nans[..., ::-1], -1)
        best = np.where(nans.any(-1), last, np.argmax(values, -1))
        out[(..., *i)] = np.take_along_axis(values, best[..., None], -1)[..., 0]
        indices[(..., *i)] = flat[best]
    return out, indices


def max_pool(n):
    def ref(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        both = largest(x, n, windows(x, n, kernel_size, stride, padding, dilation, ceil_mode))
        return both if return_indices else both[0]

    return ref


def avg_pool(n):
    def ref(x, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
        kernel, pads = axes_of(kernel_size, n), axes_of(padding, n)
        steps = kernel if stride is None else axes_of(stride, n)
        out = None
        for i, count, axes in windows(x, n, kernel_size, stride, padding, 1, ceil_mode):
            if out is None:
                out = np.zeros((*x.shape[: x.ndim - n], *count), x.dtype)
            values = np.stack([x[(..., *p)] for p in itertools.product(*axes)], -1)
            divisor = values.shape[-1]
            if count_include_pad:
                sizes = x.shape[x.ndim - n :]
                divisor = math.prod(
                    min(a * s - p + k, m + p) - (a * s - p) for a, s, p, k, m in zip(i, steps, pads, kernel, sizes)
                )
            out[(..., *i)] = values.sum(-1) / (divisor_override or divisor)
        return out

    return ref


NAN = np.array([[1.0, np.nan, 3.0, 2.0, np.nan, 0.5]])
TIES = np.array([[[1.0, 2.0, 2.0], [2.0, 0.0, 1.0], [1.0, 1.0, 1.0]]])
LOW = np.full((1, 3, 3), -np.inf)

for name in ("max_pool1d", "nn.functional.max_pool1d"):
    case(
        name,
        max_pool(1),
        Input((2, 3, 7), kernel_size=2),
        Input((3, 8), kernel_size=3, stride=2, padding=1),
        Input((2, 7), kernel_size=2, stride=2, dilation=3, ceil_mode=True),
        ints=True,
    )
for name in ("max_pool2d", "nn.functional.max_pool2d"):
    case(
        name,
        max_pool(2),
        Input((2, 3, 4, 6), kernel_size=2),
        Input((2, 1, 7, 5), kernel_size=(3, 2), stride=(2, 1), padding=(1, 0)),
        Input((1, 5, 6), kernel_size=3, stride=2, padding=1, ceil_mode=True),
        Input((2, 2, 7, 7), kernel_size=2, dilation=(2, 3)),
        Input((0, 2, 4, 4), kernel_size=2),
        ints=True,
    )
case(
    "nn.functional.max_pool3d",
    max_pool(3),
    Input((1, 2, 4, 4, 3), kernel_size=2, stride=1),
    Input((2, 4, 5, 4), kernel_size=(2, 3, 2), padding=(1, 1, 0), ceil_mode=True),
)
case("max_pool3d", max_pool(3), Input((1, 4, 4, 4), kernel_size=2))
for n, shape in ((1, (2, 2, 7)), (2, (2, 2, 6, 5)), (3, (1, 2, 4, 5, 4))):
    case(
        f"nn.functional.max_pool{n}d",
        max_pool(n),
        Input(shape, kernel_size=2, return_indices=True),
        Input(shape, kernel_size=3, stride=2, padding=1, ceil_mode=True, return_indices=True),
    )
    case(
        f"nn.functional.max_pool{n}d_with_indices",
        lambda x, n=n, **options: max_pool(n)(x, **options, return_indices=True),
        Input(shape, kernel_size=2, stride=1),
    )
case("max_pool1d_with_indices", lambda x, **o: max_pool(1)(x, **o, return_indices=True), Input((2, 5), kernel_size=2))
case(
    "nn.functional.max_pool2d",
    max_pool(2),
    Input(TIES, kernel_size=2, stride=1, return_indices=True),
    Input(LOW, kernel_size=2, padding=1, return_indices=True),
    grad=0,
)
case("nn.functional.max_pool1d", max_pool(1), Input(NAN, kernel_size=3, stride=1, return_indices=True), grad=0)
case(
    "nn.functional.max_pool2d",
    None,
    Error(
        RuntimeError,
        "Given input size: (3x5x5). Calculated output size: (3x0x0). Output size is too small",
        (2, 3, 5, 5),
        kernel_size=7,
    ),
    Error(
        RuntimeError,
        "pad should be at most half of effective kernel size, but got pad=2, kernel_size=3 and dilation=1",
        (2, 3, 5, 5),
        kernel_size=3,
        padding=2,
    ),
    Error(RuntimeError, "non-empty 3D or 4D (batch mode) tensor expected for input", (2, 3), kernel_size=3),
    Error(
        RuntimeError,
        "max_pool2d: kernel_size must either be a single int, or a tuple of two ints",
        (2, 3, 5, 5),
        kernel_size=(2, 2, 2),
    ),
    Error(
        RuntimeError,
        "max_pool2d: stride must either be omitted, a single int, or a tuple of two ints",
        (2, 3, 5, 5),
        kernel_size=2,
        stride=(1, 2, 3),
    ),
    Error(
        RuntimeError,
        "max_pool2d: dilation must be either a single int, or a tuple of two ints",
        (2, 3, 5, 5),
        kernel_size=2,
        dilation=(1, 2, 3),
    ),
    Error(RuntimeError, "stride should not be zero", (2, 3, 5, 5), kernel_size=2, stride=0),
    Error(
        RuntimeError,
        "dilation should be greater than zero, but got dilationH: 0 dilationW: 0",
        (2, 3, 5, 5),
        kernel_size=2,
        dilation=0,
    ),
    Error(RuntimeError, "pad must be non-negative, but got pad: -1", (2, 3, 5, 5), kernel_size=2, padding=-1),
    Error(
        RuntimeError,
        "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:[2, 0, 5, 5]",
        (2, 0, 5, 5),
        kernel_size=2,
    ),
    Error(NotImplementedError, "\"max_pool2d\" not implemented for 'Bool'", np.ones((1, 3, 3), bool), kernel_size=2),
)
case(
    "nn.functional.max_pool1d",
    None,
    Error(
        RuntimeError,
        "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, "
        "but got:[2, 3, 5, 5]",
        (2, 3, 5, 5),
        kernel_size=2,
    ),
    Error(RuntimeError, "max_pool1d() Invalid computed output size: 0", (3, 5), kernel_size=7),
    Error(
        RuntimeError,
        "max_pool1d() padding should be at most half of kernel size, but got padding=2 and kernel_size=2",
        (3, 5),
        kernel_size=2,
        padding=2,
    ),
    Error(RuntimeError, "max_pool1d() padding must be non-negative, but got -1", (3, 5), kernel_size=2, padding=-1),
    Error(RuntimeError, "max_pool1d() kernel_size must be greater than zero, but got 0", (3, 5), kernel_size=0),
    Error(
        RuntimeError,
        "max_pool1d() kernel_size must be an int, list of ints or tuple of ints of size 1 but got size 2",
        (3, 5),
        kernel_size=(2, 2),
    ),
)

FACTS = {"roundings": 8}
for name in ("avg_pool1d", "nn.functional.avg_pool1d"):
    case(
        name,
        avg_pool(1),
        Input((2, 3, 7), kernel_size=2),
        Input((3, 8), kernel_size=3, stride=2, padding=1, count_include_pad=False),
        Input((2, 8), kernel_size=3, stride=3, ceil_mode=True),
        **FACTS,
    )
case(
    "nn.functional.avg_pool2d",
    avg_pool(2),
    Input((2, 3, 4, 6), kernel_size=2),
    Input((2, 1, 6, 5), kernel_size=(3, 2), stride=(2, 1), padding=(1, 0)),
    Input((1, 5, 6), kernel_size=3, stride=2, padding=1, ceil_mode=True),
    Input((1, 5, 6), kernel_size=3, stride=2, padding=1, ceil_mode=True, count_include_pad=False),
    Input((2, 2, 5, 5), kernel_size=2, padding=1, divisor_override=3),
    Error(RuntimeError, "divisor must be not zero", (2, 3, 5, 5), kernel_size=3, divisor_override=0),
    Error(
        RuntimeError,
        "avg_pool2d: padding must either be a single int, or a tuple of two ints",
        (2, 5, 5),
        kernel_size=3,
        padding=(1, 1, 1),
    ),
    Error(IndexError, "Dimension out of range (expected to be in range of [-2, 1], but got -3)", (2, 3), kernel_size=3),
    **FACTS,
)
case(
    "nn.functional.avg_pool3d",
    avg_pool(3),
    Input((1, 2, 4, 4, 3), kernel_size=2, stride=1),
    Input((2, 4, 5, 4), kernel_size=(2, 3, 2), padding=(1, 1, 0), ceil_mode=True, count_include_pad=False),
    Error(
        RuntimeError,
        "input image (T: 2 H: 3 W: 7) smaller than kernel size (kT: 3 kH: 3 kW: 1)",
        (2, 2, 3, 7),
        kernel_size=(3, 3, 1),
        padding=(1, 0, 0),
    ),
    **FACTS,
)
case(
    "nn.functional.avg_pool1d",
    None,
    Error(
        RuntimeError,
        "Expected 2 to 3 dimensions, but got 4-dimensional tensor for argument #1 'self' (while "
        "checking arguments for avg_pool1d)",
        (2, 3, 4, 5),
        kernel_size=3,
    ),
    Error(
        RuntimeError,
        "Given input size: (3x1x5). Calculated output size: (3x1x0). Output size is too small",
        (3, 5),
        kernel_size=7,
    ),
    Error(
        RuntimeError, "avg_pool1d() argument 'kernel_size' should contain one int (got 2)", (3, 5), kernel_size=(2, 2)
    ),
)
# Sums of integers are divided towards zero.
INTS = np.array([[[-7, 2, 3], [-4, 4, 9], [5, -5, -1]]])
case(
    "nn.functional.avg_pool2d",
    lambda x, **options: np.trunc(avg_pool(2)(x.astype(float), **options)).astype(np.int64),
    Input(INTS, kernel_size=2, stride=1),
)


def lp_pool(n):
    def ref(x, norm_type, kernel_size, stride=None, ceil_mode=False):
        kernel = axes_of(kernel_size, n)
        mean = avg_pool(n)(x**norm_type, kernel, stride, 0, ceil_mode)
        return (np.sign(mean) * np.abs(mean) * math.prod(kernel)) ** (1 / norm_type)

    return ref


def positive(*shape):
    return 0.5 + np.random.default_rng(3).random(shape)


for n, shape in ((1, (2, 7)), (2, (2, 5, 6)), (3, (1, 3, 4, 3))):
    case(
        f"nn.functional.lp_pool{n}d",
        lp_pool(n),
        Input(positive(*shape), norm_type=2, kernel_size=2),
        Input(positive(*shape), norm_type=3.0, kernel_size=2, stride=1, ceil_mode=True),
        **FACTS,
    )


# ---- a given count of parts


def parts(n, count):
    return [range(i * n // count, -(-(i + 1) * n // count)) for i in range(count)]


def adaptive(n, x, output_size):
    sizes = x.shape[x.ndim - n :]
    given = output_size if isinstance(output_size, tuple) else (output_size,) * n
    count = [size if c is None else c for size, c in zip(sizes, given)]
    all_parts = [parts(size, c) for size, c in zip(sizes, count)]
    for i in itertools.product(*map(range, count)):
        yield i, count, [list(p[a]) for p, a in zip(all_parts, i)]


def adaptive_avg(n):
    def ref(x, output_size):
        found = list(adaptive(n, x, output_size))
        out = np.zeros((*x.shape[: x.ndim - n], *found[0][1]), x.dtype)
        for i, _, axes in found:
            out[(..., *i)] = np.stack([x[(..., *p)] for p in itertools.product(*axes)], -1).mean(-1)
        return out

    return ref


def adaptive_max(n):
    def ref(x, output_size, return_indices=False):
        both = largest(x, n, adaptive(n, x, output_size))
        return both if return_indices else both[0]

    return ref


for n, shape in ((1, (2, 2, 7)), (2, (2, 2, 6, 5)), (3, (1, 2, 4, 5, 3))):
    mixed = (3,) + (None, 2)[: n - 1]
    case(
        f"nn.functional.adaptive_avg_pool{n}d",
        adaptive_avg(n),
        *(Input(shape, output_size=size) for size in (1, 2, 3, mixed)),
        Input(shape[1:], output_size=2),
        Input(shape[:-1] + (6,), output_size=tuple(shape[2:-1]) + (3,)),
        **FACTS,
    )
    case(
        f"nn.functional.adaptive_max_pool{n}d",
        adaptive_max(n),
        *(Input(shape, output_size=size) for size in (1, 2, mixed)),
        Input(shape[1:], output_size=3, return_indices=True),
    )
case("adaptive_avg_pool1d", adaptive_avg(1), Input((2, 5), output_size=2), **FACTS)
case("adaptive_max_pool1d", adaptive_max(1), Input((2, 5), output_size=2, return_indices=True))
case(
    "nn.functional.adaptive_avg_pool2d",
    None,
    Error(RuntimeError, "adaptive_avg_pool2d(): Expected 3D or 4D tensor, but got [2, 3]", (2, 3), output_size=2),
    Error(
        RuntimeError,
        "adaptive_avg_pool2d: elements of output_size must be greater than or equal to 0 but received {-1, -1}",
        (2, 3, 5, 5),
        output_size=-1,
    ),
    Error(RuntimeError, "adaptive_avg_pool2d: output_size must be 2", (2, 3, 5, 5), output_size=(1, 2, 3)),
    Error(
        RuntimeError,
        "adaptive_avg_pool2d(): Expected input to have non-zero size for non-batch dimensions, but "
        "input has sizes [2, 3, 0, 5] with dimension 2 being empty",
        (2, 3, 0, 5),
        output_size=2,
    ),
    Error(
        NotImplementedError,
        "\"adaptive_avg_pool2d\" not implemented for 'Long'",
        np.ones((1, 3, 3), int),
        output_size=2,
    ),
)
case(
    "nn.functional.adaptive_max_pool2d",
    None,
    Error(RuntimeError, "adaptive_max_pool2d(): Expected 3D or 4D tensor, but got: [2, 3]", (2, 3), output_size=2),
    Error(
        RuntimeError,
        "adaptive_max_pool2d(): internal error: output_size.size() must be 2",
        (2, 3, 5, 5),
        output_size=(1, 2, 3),
    ),
)


# ---- windows at random distances


def fractional(n):
    def ref(x, kernel_size, output_size, _random_samples, return_indices=False):
        kernel, count = axes_of(kernel_size, n), axes_of(output_size, n)
        samples = _random_samples[..., ::-1] if n == 2 else _random_samples  # of the width first
        out = np.zeros((*x.shape[:2], *count), x.dtype)
        indices = np.zeros(out.shape, np.int64)
        for b, c in itertools.product(range(x.shape[0]), range(x.shape[1])):
            starts = []
            for size, k, m, u in zip(x.shape[2:], kernel, count, samples[b, c].astype(np.float64)):
                step = (size - k) / (m - 1) if m > 1 else 0
                starts.append([int((i + u) * step) - int(u * step) for i in range(m - 1)] + [size - k])
            found = (
                (i, count, [range(s[a], s[a] + k) for s, a, k in zip(starts, i, kernel)])
                for i in itertools.product(*map(range, count))
            )
            out[b, c], indices[b, c] = largest(x[b, c], n, found)
        return (out, indices) if return_indices else out

    return ref


def samples(*shape):
    return np.random.default_rng(5).integers(0, 64, shape) / 64  # exact in half precision too


for n, shape in ((2, (2, 2, 7, 6)), (3, (1, 2, 6, 5, 7))):
    u = samples(*shape[:2], n)
    case(
        f"nn.functional.fractional_max_pool{n}d",
        fractional(n),
        Input(shape, kernel_size=2, output_size=3, _random_samples=u),
        Input(shape, kernel_size=(1, 2, 3)[:n], output_size=(2, 1, 3)[:n], _random_samples=u, return_indices=True),
        wrt=(0,),
    )
case(
    "nn.functional.fractional_max_pool2d",
    None,
    Error(
        ValueError,
        "fractional_max_pool2d requires specifying either an output_size or an output_ratio",
        (1, 1, 5, 5),
        kernel_size=2,
    ),
    Error(
        RuntimeError,
        "fractional_max_pool2d(): pool height 2 too large relative to input height 5",
        (1, 1, 5, 5),
        kernel_size=2,
        output_size=9,
    ),
    Error(
        RuntimeError,
        "fractional_max_pool2d(): Expected 3D or 4D tensor, but got: [1, 1, 1, 5, 5]",
        (1, 1, 1, 5, 5),
        kernel_size=2,
        output_size=3,
    ),
    Error(
        IndexError,
        "Dimension out of range (expected to be in range of [-2, 1], but got -3)",
        (5, 5),
        kernel_size=2,
        output_size=3,
    ),
)


# ---- the inverse of max_pool


def unpool(n):
    def ref(x, indices, kernel_size, stride=None, padding=0, output_size=None):
        kernel, pads = axes_of(kernel_size, n), axes_of(padding, n)
        stride = kernel if stride is None else axes_of(stride, n)
        size = [(m - 1) * s - 2 * p + k for m, s, p, k in zip(x.shape[x.ndim - n :], stride, pads, kernel)]
        size = size if output_size is None else list(output_size)[-n:]
        lead = x.shape[: x.ndim - n]
        out = np.zeros((math.prod(lead), math.prod(size)), x.dtype)
        for row, values, places in zip(out, x.reshape(len(out), -1), indices.reshape(len(out), -1)):
            for value, place in zip(values, places):
                row[place] = value
        return out.reshape(*lead, *size)

    return ref


def indices_of(n, shape, **options):
    x = np.random.default_rng(7).standard_normal(shape)
    return max_pool(n)(x, 2, return_indices=True, **options)[1]


for n, shape in ((1, (2, 2, 6)), (2, (2, 2, 4, 6)), (3, (2, 4, 4, 4))):
    i = indices_of(n, shape)
    case(
        f"nn.functional.max_unpool{n}d",
        unpool(n),
        Input(i.shape, i, kernel_size=2),
        Input(i.shape, i, kernel_size=2, output_size=[m + 1 for m in shape[len(shape) - n :]]),
        Input(i.shape, i, kernel_size=2, output_size=list(shape))
        if len(shape) == n + 2
        else Input(i.shape, i, kernel_size=2, stride=2),
    )
I = indices_of(2, (1, 1, 4, 4))
case(
    "nn.functional.max_unpool2d",
    None,
    Error(
        RuntimeError,
        "elements in indices should be type int64 but got: Int",
        (1, 1, 2, 2),
        I.astype(np.int32),
        kernel_size=2,
    ),
    Error(RuntimeError, "(output volumes are of size 4x4)", (1, 1, 2, 2), I + 20, kernel_size=2),
    Error(
        ValueError,
        'invalid output_size "(9, 9)" (dim 0 must be between 2 and 6)',
        (1, 1, 2, 2),
        I,
        kernel_size=2,
        output_size=(9, 9),
    ),
    Error(
        RuntimeError,
        "Expected shape of indices to be same as that of the input tensor ([1, 1, 2, 2]) but got "
        "indices tensor with shape: [1, 1, 1, 2]",
        (1, 1, 2, 2),
        I[:, :, :1],
        kernel_size=2,
    ),
    Error(
        ValueError,
        "output_size should be a sequence containing 2 or 4 elements, but it has a length of '5'",
        (1, 1, 2, 2),
        I,
        kernel_size=2,
        output_size=(1, 2, 3, 4, 5),
    ),
    Error(
        RuntimeError,
        "Input to max_unpooling2d should be a 3d or 4d Tensor, but got a tensor with 2 dimensions.",
        (2, 2),
        I[0, 0],
        kernel_size=2,
    ),
)
