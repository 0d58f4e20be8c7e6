"""Images on another grid: interpolation, sampling at given places, and pixels moved between space and channels."""

import math
import warnings

from .. import dtypes, errors
from ..core.op import TABLE
from ..core.promote import not_tensor
from ..core.tensor import Tensor
from . import taps
from .adaptive_pooling import adaptive_avg_pool
from .checks import not_implemented
from .taps import apply_taps

FUNCTIONAL = ("interpolate", "upsample", "upsample_bilinear", "upsample_nearest")

KINDS = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2, "lanczos": 2}  # modes of one number of axes
MODES = "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact"


def interpolate(
    input,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    """``input`` with its axes after the first two brought to ``size``, or to ``scale_factor`` times their length.

    ``mode``: nearest (rounds down), nearest-exact, linear, bilinear, trilinear, bicubic (a = -0.75), lanczos, or area
    (means). ``align_corners``: the corner elements of both grids meet, not the corners of their outer elements.
    ``recompute_scale_factor``: the step is that of the rounded size. ``antialias``: the kernel widens as axes shrink.

    Shapes      [N,C,T], [N,C,H,W] or [N,C,D,H,W]
    Dtypes      floating; uint8 for nearest, bilinear and bicubic (rounded)
    Derivative  the transposed map of g
    Raises      ValueError and NotImplementedError for options that do not go together

    >>> interpolate(tensor([[[0.0, 2.0]]]), size=5, mode="linear")
    tensor([[[0.0000, 0.2000, 1.0000, 1.8000, 2.0000]]])
    """
    if not isinstance(input, Tensor):
        raise not_tensor(TABLE["apply_taps"], input)
    _check_mode(input, mode, align_corners, antialias)
    size, scales = _sizes(input, size, scale_factor, recompute_scale_factor)
    if mode == "area":
        return adaptive_avg_pool(f"adaptive_avg_pool{len(size)}d", input, size)
    _check_sizes(input, size)
    maps = [
        _taps(mode, n, count, scale, bool(align_corners), antialias)
        for n, count, scale in zip(input.shape[2:], size, scales)
    ]
    if input.dtype.category == 1:
        return _of_bytes(input, maps, mode)
    if input.dtype.category != 2:
        raise not_implemented(f"upsample_{mode}{len(size)}d", input.array)
    return _apply(input, maps)


def _apply(x, maps):
    """The axes in turn, those that shrink most first, so that the others have less to do."""
    same = all(t.index.shape[1] == 1 and t.size == t.count and (t.index[:, 0] == range(t.size)).all() for t in maps)
    if same:
        return x.clone()
    for axis, t in sorted(enumerate(maps, 2), key=lambda pair: pair[1].count / pair[1].size):
        x = apply_taps(x, axis=axis, taps=t)
    return x


def _of_bytes(input, maps, mode):
    if input.dtype is not dtypes.uint8 or mode in ("linear", "trilinear"):
        raise not_implemented(f"upsample_{mode}{len(maps)}d", input.array)
    if mode.startswith("nearest"):
        return _apply(input, maps)
    return _apply(input.float(), maps).round().clamp(0, 255).to(dtypes.uint8)


def _taps(mode, n, count, scale, align_corners, antialias):
    if mode in ("nearest", "nearest-exact"):
        return taps.nearest_taps(n, count, scale, mode == "nearest-exact")
    kind = {"bicubic": "cubic", "lanczos": "lanczos"}.get(mode, "linear")
    if antialias:
        return taps.antialiased_taps(n, count, scale, align_corners, kind)
    return getattr(taps, kind + "_taps")(n, count, scale, align_corners)


def _check_mode(input, mode, align_corners, antialias):
    if mode in ("nearest", "area", "nearest-exact", "lanczos") and align_corners is not None and mode != "lanczos":
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    if mode == "lanczos" and align_corners:
        raise ValueError("Lanczos mode does not support align_corners=True")
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and input.ndim == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    known = mode in ("nearest", "nearest-exact", "area") or mode in KINDS
    if input.ndim not in (3, 4, 5) or not known or (mode in ("bicubic", "lanczos") and input.ndim != 4):
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.ndim}D) for the modes: {MODES} "
            f"(got {mode})"
        )
    if mode in KINDS and input.ndim != KINDS[mode] + 2:
        raise NotImplementedError(f"Got {input.ndim}D input, but {mode} mode needs {KINDS[mode] + 2}D input")
    if mode == "lanczos" and not antialias:
        raise ValueError("Lanczos mode requires antialias=True")


def _sizes(input, size, scale_factor, recompute):
    """The new length of each axis, and the factor that its step is made of (None: the ratio of lengths)."""
    axes = input.ndim - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        return _one_an_axis(input, size), (None,) * axes
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if isinstance(scale_factor, (list, tuple)):
        if len(scale_factor) != axes:
            raise ValueError(
                "Input and scale_factor must have the same number of spatial dimensions, but got input with spatial "
                f"dimensions of {list(input.shape[2:])} and scale_factor of shape {scale_factor}. Please provide input "
                "tensor in (N, C, d1, d2, ...,dK) format and scale_factor in (s1, s2, ...,sK) format."
            )
        scales = tuple(float(s) for s in scale_factor)
    else:
        scales = (float(scale_factor),) * axes
    size = tuple(math.floor(n * s) for n, s in zip(input.shape[2:], scales))
    return size, (None,) * axes if recompute else tuple(s if s > 0 else None for s in scales)


def _one_an_axis(input, size):
    axes = input.ndim - 2
    if not isinstance(size, (list, tuple)):
        size = (size,) * axes
    elif len(size) != axes:
        raise ValueError(
            "Input and output must have the same number of spatial dimensions, but got input with spatial dimensions "
            f"of {list(input.shape[2:])} and output size of {size}. Please provide input tensor in (N, C, d1, d2, "
            "...,dK) format and output size in (o1, o2, ...,oK) format."
        )
    if any(isinstance(n, bool) or not hasattr(n, "__index__") for n in size):
        raise TypeError(
            "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but got size "
            f"with types {[type(n) for n in size]}"
        )
    return tuple(n.__index__() for n in size)


def _check_sizes(input, size):
    names, sizes = "DHW"[5 - input.ndim :], input.shape[2:]
    if min(*sizes, *size) <= 0:
        comma = ", " if len(size) > 1 else ""
        came, made = (comma.join(f"{n}: {v}" for n, v in zip(names, values)) for values in (sizes, size))
        both = "and output" if len(size) == 1 else "output"
        raise RuntimeError(f"Input and output sizes should be greater than 0, but got input ({came}) {both} ({made})")
    if not input.shape[1]:
        first = f"Non-empty {input.ndim}D data tensor expected but got a tensor with sizes {list(input.shape)}"
        raise RuntimeError(errors.text(first))


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """``interpolate`` by its older name."""
    _deprecated("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    """``interpolate`` with mode nearest, by its older name."""
    _deprecated("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    """``interpolate`` with mode bilinear and align_corners, by its older name."""
    _deprecated("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def _deprecated(name):
    text = f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead."
    warnings.warn(text, UserWarning, stacklevel=3)
