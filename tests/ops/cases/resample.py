"""Interpolation, sampling on a grid, and pixels moved, element by element from their " "definitions."""

import itertools
import math

import numpy as np

from . import Error, Input, case

# ---- interpolation: the weights that each output of an axis gives to the inputs


def cubic(d, a=-0.75):
    d = abs(d)
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0.0


def sinc(d):
    return 1.0 if d == 0 else math.sin(math.pi * d) / (math.pi * d)


def lanczos(d):
    return sinc(d) * sinc(d / 3) if abs(d) < 3 else 0.0


def spread(kernel, reach, n, centre, wide):
    """Weights of a kernel as wide as an output, over the inputs that exist, with sum 1."""
    first, stop = max(int(centre - reach * wide + 0.5), 0), min(int(centre + reach * wide + 0.5), n)
    row = [kernel((j + 0.5 - centre) / wide) if first <= j < stop else 0.0 for j in range(n)]
    return [w / sum(row) for w in row]


def weights(mode, n, count, scale, align_corners, antialias):
    step = 1 / scale if scale else n / count
    if align_corners:
        step = (n - 1) / (count - 1) if count > 1 else 0.0
    rows = np.zeros((count, n))
    for i in range(count):
        place = i * step if align_corners else (i + 0.5) * step - 0.5
        if mode == "nearest":
            rows[i, min(int(i * step), n - 1)] = 1
        elif mode == "nearest-exact":
            rows[i, min(int((i + 0.5) * step), n - 1)] = 1
        elif mode == "area":
            first, stop = i * n // count, -(-(i + 1) * n // count)
            rows[i, first:stop] = 1 / (stop - first)
        elif antialias:
            kernel, reach = {
                "bilinear": (lambda d: max(1 - abs(d), 0), 1),
                "bicubic": (lambda d: cubic(d, -0.5), 2),
                "lanczos": (lanczos, 3),
            }[mode]
            rows[i] = spread(kernel, reach, n, (i + 0.5) * step, max(step, 1.0))
        elif mode == "bicubic":
            low = math.floor(place)
            for j in range(low - 1, low + 3):
                rows[i, min(max(j, 0), n - 1)] += cubic(place - j)
        else:
            place = max(place, 0)
            low = min(int(place), n - 1)
            part = min(place - low, 1)
            rows[i, low] += 1 - part
            rows[i, min(low + 1, n - 1)] += part
    return rows


def resized(
    x, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None, antialias=False
):
    n = x.ndim - 2
    scales = [None] * n
    if size is None:
        factors = scale_factor if isinstance(scale_factor, tuple) else (scale_factor,) * n
        size = [math.floor(m * f) for m, f in zip(x.shape[2:], factors)]
        scales = scales if recompute_scale_factor else list(factors)
    size = size if isinstance(size, (list, tuple)) else (size,) * n
    out = x
    for axis, (count, scale) in enumerate(zip(size, scales), 2):
        w = weights(mode, x.shape[axis], count, scale, align_corners, antialias)
        out = np.moveaxis(np.tensordot(w.astype(x.dtype), out, (1, axis)), 0, axis)
    return out


FACTS = {"roundings": 64}  # places are computed in the dtype by the definition, in float64 by us
SHAPES = {1: (2, 2, 5), 2: (2, 1, 4, 5), 3: (1, 2, 3, 4, 2)}
MODES = (
    ("nearest", 123),
    ("nearest-exact", 123),
    ("area", 123),
    ("linear", 1),
    ("bilinear", 2),
    ("trilinear", 3),
    ("bicubic", 2),
)
for mode, axes in MODES:
    for n in map(int, str(axes)):
        shape, sizes = SHAPES[n], (7, 3, 5)[:n]
        calls = [
            Input(shape, size=sizes, mode=mode),
            Input(shape, size=shape[2:], mode=mode),
            Input(shape, size=1, mode=mode),
        ]
        calls += [Input(shape, scale_factor=f, mode=mode) for f in (2, 0.6)]
        calls += [Input(shape, scale_factor=(1.5, 0.75, 2.3)[:n], mode=mode, recompute_scale_factor=True)]
        if mode not in ("nearest", "nearest-exact", "area"):
            calls += [Input(shape, size=s, mode=mode, align_corners=True) for s in (sizes, 1)]
        case("nn.functional.interpolate", resized, *calls, **FACTS)
case(
    "nn.functional.interpolate",
    resized,
    *(
        Input((1, 2, 7, 6), size=size, mode=mode, antialias=True)
        for mode in ("bilinear", "bicubic", "lanczos")
        for size in ((3, 2), (9, 4))
    ),
    **FACTS,
)
BYTES = np.random.default_rng(2).integers(0, 256, (1, 2, 4, 5)).astype(np.uint8)
case(
    "nn.functional.interpolate",
    lambda x, **options: np.clip(np.rint(resized(x.astype(np.float64), **options)), 0, 255).astype(np.uint8),
    Input(BYTES, size=(7, 3)),
    Input(BYTES, size=(7, 3), mode="bilinear"),
    Input(BYTES, size=(3, 4), mode="bicubic"),
)
MODES_TEXT = "for the modes: nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact"
case(
    "nn.functional.interpolate",
    resized,
    Error(ValueError, "either size or scale_factor should be defined", (1, 1, 4, 4)),
    Error(ValueError, "only one of size or scale_factor should be defined", (1, 1, 4, 4), size=3, scale_factor=2),
    Error(
        NotImplementedError, "Got 4D input, but linear mode needs 3D input", (1, 1, 4, 4), scale_factor=2, mode="linear"
    ),
    Error(
        NotImplementedError,
        f"Input Error: Only 3D, 4D and 5D input Tensors supported (got 4D) {MODES_TEXT} (got foo)",
        (1, 1, 4, 4),
        scale_factor=2,
        mode="foo",
    ),
    Error(
        ValueError,
        "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear",
        (1, 1, 4, 4),
        scale_factor=2,
        align_corners=True,
    ),
    Error(
        ValueError,
        "Input and scale_factor must have the same number of spatial dimensions, but got input with "
        "spatial dimensions of [4, 4] and scale_factor of shape (2, 2, 2).",
        (1, 1, 4, 4),
        scale_factor=(2, 2, 2),
    ),
    Error(
        ValueError,
        "Input and output must have the same number of spatial dimensions, but got input with "
        "spatial dimensions of [4, 4] and output size of (2, 2, 2).",
        (1, 1, 4, 4),
        size=(2, 2, 2),
    ),
    Error(
        ValueError,
        "recompute_scale_factor is not meaningful with an explicit size.",
        (1, 1, 4, 4),
        size=2,
        recompute_scale_factor=True,
    ),
    Error(
        ValueError,
        "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input",
        (1, 1, 4, 4),
        scale_factor=2,
        antialias=True,
    ),
    Error(
        RuntimeError,
        "Input and output sizes should be greater than 0, but got input (H: 4, W: 4) output (H: 0, W: 0)",
        (1, 1, 4, 4),
        size=0,
    ),
    Error(
        RuntimeError, "Non-empty 4D data tensor expected but got a tensor with sizes [1, 0, 4, 4]", (1, 0, 4, 4), size=3
    ),
    Error(ValueError, "Lanczos mode requires antialias=True", (1, 1, 4, 4), size=3, mode="lanczos"),
)
# The older names only warn.
case("nn.functional.upsample", resized, Input((1, 1, 3, 3), scale_factor=2))
case("nn.functional.upsample_nearest", resized, Input((1, 1, 3, 3), size=5))
case(
    "nn.functional.upsample_bilinear",
    lambda x, **options: resized(x, mode="bilinear", align_corners=True, **options),
    Input((1, 1, 3, 3), size=5),
    **FACTS,
)


# ---- a grid of places


def reflected(p, low, high):
    if high == low:
        return 0.0
    while not low <= p <= high:
        p = 2 * low - p if p < low else 2 * high - p
    return p


def element(p, n, padding_mode, align_corners):
    """A place in [-1, 1] as an element number, brought into the axis by the padding mode."""
    p = (p + 1) / 2 * (n - 1) if align_corners else ((p + 1) * n - 1) / 2
    return brought(p, n, padding_mode, align_corners)


def brought(p, n, padding_mode, align_corners):
    if padding_mode == "reflection":
        p = reflected(p, 0 if align_corners else -0.5, n - 1 if align_corners else n - 0.5)
    return p if padding_mode == "zeros" else min(max(p, 0), n - 1)


def at(image, place):
    """[C]: the elements at a place, 0 outside."""
    inside = all(0 <= p < n for p, n in zip(place, image.shape[1:]))
    return image[(slice(None), *map(int, place))] if inside else np.zeros(image.shape[0], image.dtype)


def sampled(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False):
    out = np.zeros((*x.shape[:2], *grid.shape[1:-1]), x.dtype)
    for b in range(x.shape[0]):
        for i in np.ndindex(grid.shape[1:-1]):
            raw = [float(v) for v in grid[(b, *i)][::-1]]
            out[(b, slice(None), *i)] = one(x[b], raw, mode, padding_mode, align_corners)
    return out


def one(image, raw, mode, padding_mode, align_corners):
    sizes = image.shape[1:]
    if mode == "bicubic":
        places = [element(p, n, "zeros", align_corners) for p, n in zip(raw, sizes)]
        total = 0.0
        for near in itertools.product(range(-1, 3), repeat=2):
            tap = [math.floor(p) + k for p, k in zip(places, near)]
            w = math.prod(cubic(p - t) for p, t in zip(places, tap))
            total = total + w * at(image, [brought(t, n, padding_mode, align_corners) for t, n in zip(tap, sizes)])
        return total
    places = [element(p, n, padding_mode, align_corners) for p, n in zip(raw, sizes)]
    if mode == "nearest":
        return at(image, [round(p) for p in places])
    total = 0.0
    for up in itertools.product((0, 1), repeat=len(sizes)):
        tap = [math.floor(p) + u for p, u in zip(places, up)]
        total = total + math.prod(1 - abs(p - t) for p, t in zip(places, tap)) * at(image, tap)
    return total


def grid(*shape):
    """Places within and outside, none near an element or a border, where slopes jump; exact in " "half precision."""
    n = shape[-1]
    rng = np.random.default_rng(11)
    return (rng.integers(-24, 24, (*shape[:-1], n)) + 0.37) / 16


for mode in ("bilinear", "nearest", "bicubic"):
    for padding_mode in ("zeros", "border", "reflection"):
        options = {"mode": mode, "padding_mode": padding_mode}
        calls = [Input((2, 2, 4, 5), grid(2, 2, 3, 2), **options, align_corners=a) for a in (False, True)]
        calls += [Input((1, 2, 1, 3), grid(1, 2, 2, 2), **options, align_corners=True)]
        if mode != "bicubic":
            calls += [Input((1, 2, 3, 4, 3), grid(1, 2, 1, 2, 3), **options, align_corners=False)]
        case("nn.functional.grid_sample", sampled, *calls, low=False, **FACTS)
case(
    "nn.functional.grid_sample",
    sampled,
    Input((0, 2, 3, 3), np.zeros((0, 2, 2, 2)), align_corners=False),
    Error(
        RuntimeError,
        "grid_sampler(): expected grid to have size 2 in last dimension, but got grid with sizes [1, 2, 2, 3]",
        (1, 1, 4, 4),
        (1, 2, 2, 3),
    ),
    Error(
        RuntimeError,
        "grid_sampler(): expected grid and input to have same batch size, but got input with sizes "
        "[1, 1, 4, 4] and grid with sizes [2, 2, 2, 2]",
        (1, 1, 4, 4),
        (2, 2, 2, 2),
    ),
    Error(
        RuntimeError,
        "grid_sampler(): expected 4D input and grid with same number of dimensions, but got input "
        "with sizes [1, 1, 4, 4] and grid with sizes [1, 2, 2, 2, 2]",
        (1, 1, 4, 4),
        (1, 2, 2, 2, 2),
    ),
    Error(
        ValueError,
        "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: 'foo'",
        (1, 1, 4, 4),
        (1, 2, 2, 2),
        mode="foo",
    ),
    Error(
        ValueError,
        "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: 'foo'",
        (1, 1, 4, 4),
        (1, 2, 2, 2),
        padding_mode="foo",
    ),
    Error(
        RuntimeError,
        "grid_sampler(): bicubic interpolation only supports 4D input",
        (1, 1, 4, 4, 4),
        (1, 2, 2, 2, 3),
        mode="bicubic",
    ),
    Error(
        RuntimeError,
        "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
        "[1, 1, 0, 4] with dimension 2 being empty",
        (1, 1, 0, 4),
        (1, 2, 2, 2),
    ),
    Error(
        NotImplementedError,
        "\"grid_sampler_2d_cpu_kernel_impl\" not implemented for 'Long'",
        np.ones((1, 1, 4, 4), int),
        (1, 2, 2, 2),
    ),
    low=False,
)


def affine(theta, size, align_corners=False):
    lines = []
    for n in size[2:]:
        line = np.linspace(-1, 1, n) if n > 1 else np.zeros(1)
        lines.append(line if align_corners or n == 1 else line * (n - 1) / n)
    out = np.zeros((size[0], *size[2:], len(lines)), theta.dtype)
    for i in np.ndindex(*size[2:]):
        place = np.array([*(line[k] for line, k in zip(lines, i)), 1.0])
        place = np.concatenate([place[:-1][::-1], place[-1:]]).astype(theta.dtype)
        out[(slice(None), *i)] = (theta * place).sum(-1)
    return out


case(
    "nn.functional.affine_grid",
    affine,
    Input((2, 2, 3), size=(2, 1, 3, 4), align_corners=False),
    Input((2, 2, 3), size=(2, 1, 1, 2), align_corners=True),
    Input((1, 3, 4), size=(1, 2, 2, 3, 2), align_corners=True),
    Error(
        ValueError,
        "Expected a batch of 2D affine matrices of shape Nx2x3 for size (1, 1, 4, 4). Got torch.Size([1, 2, 2]).",
        (1, 2, 2),
        size=(1, 1, 4, 4),
    ),
    Error(
        NotImplementedError,
        "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size (1, 1, 4).",
        (1, 2, 3),
        size=(1, 1, 4),
    ),
    Error(
        RuntimeError,
        "Expected size for first two dimensions of batch2 tensor to be: [2, 3] but got: [1, 3].",
        (1, 2, 3),
        size=(2, 1, 4, 4),
    ),
    Error(
        ValueError,
        "Expected theta to have floating point type, but got torch.int64",
        np.ones((1, 2, 3), int),
        size=(1, 1, 4, 4),
    ),
    Error(ValueError, "Expected non-zero, positive output size. Got (1, 1, 0, 4)", (1, 2, 3), size=(1, 1, 0, 4)),
    **FACTS,
)


# ---- pixels moved


def shuffled(x, upscale_factor):
    r = upscale_factor
    *lead, c, h, w = x.shape
    out = np.zeros((*lead, c // (r * r), h * r, w * r), x.dtype)
    for k, i, j in np.ndindex(*out.shape[-3:]):
        out[..., k, i, j] = x[..., k * r * r + i % r * r + j % r, i // r, j // r]
    return out


def unshuffled(x, downscale_factor):
    r = downscale_factor
    *lead, c, h, w = x.shape
    out = np.zeros((*lead, c * r * r, h // r, w // r), x.dtype)
    for k, i, j in np.ndindex(c, h, w):
        out[..., k * r * r + i % r * r + j % r, i // r, j // r] = x[..., k, i, j]
    return out


def dealt(x, groups):
    size = x.shape[1] // groups
    return x[:, [k % groups * size + k // groups for k in range(x.shape[1])]]


for prefix in ("", "nn.functional."):
    case(
        prefix + "pixel_shuffle",
        shuffled,
        Input((2, 8, 2, 3), upscale_factor=2),
        Input((9, 1, 2), upscale_factor=3),
        Input((2, 1, 4, 2, 2), upscale_factor=2),
        ints=True,
        complex=True,
    )
    case(
        prefix + "pixel_unshuffle",
        unshuffled,
        Input((2, 2, 4, 6), downscale_factor=2),
        Input((1, 3, 6), downscale_factor=3),
        ints=True,
        complex=True,
    )
    case(prefix + "channel_shuffle", dealt, Input((2, 6, 3), groups=2), Input((1, 6, 2, 2), groups=3), ints=True)
    case(prefix + "native_channel_shuffle", dealt, Input((1, 4, 2), groups=2))
case(
    "pixel_shuffle",
    shuffled,
    Error(
        RuntimeError,
        "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
        "upscale_factor, but input.size(-3)=3 is not divisible by 4",
        (1, 3, 2, 2),
        upscale_factor=2,
    ),
    Error(
        RuntimeError,
        "pixel_shuffle expects input to have at least 3 dimensions, but got input with 2 dimension(s)",
        (3, 2),
        upscale_factor=2,
    ),
    Error(RuntimeError, "pixel_shuffle expects a positive upscale_factor, but got 0", (1, 4, 2, 2), upscale_factor=0),
)
case(
    "pixel_unshuffle",
    unshuffled,
    Error(
        RuntimeError,
        "pixel_unshuffle expects height to be divisible by downscale_factor, but input.size(-2)=5 is "
        "not divisible by 2",
        (1, 3, 5, 5),
        downscale_factor=2,
    ),
    Error(
        RuntimeError,
        "pixel_unshuffle expects width to be divisible by downscale_factor, but input.size(-1)=5 is not divisible by 2",
        (1, 3, 4, 5),
        downscale_factor=2,
    ),
)
case(
    "channel_shuffle",
    dealt,
    Error(
        RuntimeError,
        "Number of channels must be divisible by groups. Got 3 channels and 2 groups.",
        (1, 3, 4, 5),
        groups=2,
    ),
    Error(
        RuntimeError, "channel_shuffle expects input with > 2 dims, but got input with sizes [1, 3]", (1, 3), groups=3
    ),
    Error(
        RuntimeError, "Number of groups to divide channels in must be positive. Value of groups:0", (1, 3, 4), groups=0
    ),
)
