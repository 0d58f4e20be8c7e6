"""Values between the elements of an image, at places that a grid names; and the grid of an affine map."""

import itertools
import warnings

from ..backend import xp_of
from ..core.modes import autocasts
from ..core.op import TABLE
from ..core.promote import not_tensor
from ..core.tensor import Tensor, wrap
from .checks import refuse
from .places import area, flat_index, take_places
from .taps import cubic_weight

FUNCTIONAL = ("affine_grid", "grid_sample")

MODES = ("bilinear", "nearest", "bicubic")
PADDINGS = ("zeros", "border", "reflection")


@autocasts
def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """``input`` at the places of ``grid``, whose last axis holds (x, y) or (x, y, z) in [-1, 1], x along the last axis.

    ``padding_mode``: what lies outside is 0, the border, or the mirror image. ``align_corners``: -1 and 1 are the
    centres of the corner elements, not their outer corners.

    Shapes      input [N,C,H,W], grid [N,I,J,2] -> [N,C,I,J]; input [N,C,D,H,W], grid [N,I,J,K,3] -> [N,C,I,J,K]
    Derivative  by input: g times the weights, added up; by grid: the slope between the neighbours
    Raises      RuntimeError where shapes or dtypes do not fit, ValueError for an unknown mode
    Source      Jaderberg et al. 2015, arXiv:1506.02025, section 3.3
    """
    _check(input, grid, mode, padding_mode)
    if align_corners is None:
        _warn()
        align_corners = False
    if input.dtype.itemsize == 2:  # half types have no digits for a place among more than some hundred elements
        return grid_sample(input.float(), grid.float(), mode, padding_mode, align_corners).to(input.dtype)
    sizes = tuple(input.shape[2:])
    out_shape = (*input.shape[:2], *grid.shape[1:-1])
    x = input.reshape(*input.shape[:2], area(sizes))  # [N,C,S]
    places = grid.reshape(grid.shape[0], area(grid.shape[1:-1]), len(sizes)).unbind(-1)[::-1]  # an axis each: [N,P]
    places = [_to_elements(p, n, align_corners) for p, n in zip(places, sizes)]
    if mode == "bicubic":
        return _bicubic(x, places, sizes, padding_mode, align_corners).reshape(out_shape)
    places = [_into(p, n, padding_mode, align_corners) for p, n in zip(places, sizes)]
    return (_nearest if mode == "nearest" else _linear)(x, places, sizes).reshape(out_shape)


def _to_elements(place, size, align_corners):
    """From [-1, 1] to element numbers."""
    return (place + 1) * ((size - 1) / 2) if align_corners else ((place + 1) * size - 1) * 0.5


# ---- places outside


def _into(place, size, padding_mode, align_corners):
    """The place brought into [0, size - 1] by border or reflection; as it is for zeros."""
    if padding_mode == "zeros":
        return place
    if padding_mode == "reflection":
        place = _reflected(place, *((0, size - 1) if align_corners else (-0.5, size - 0.5)))
    return _clipped(place, size - 1)


def _clipped(place, last):
    """Within (0, last) itself; elsewhere the border, without slope, as PyTorch has it also on the border itself."""
    xp = xp_of(place.array)
    inside = (place.array > 0) & (place.array < last)
    border = xp.where(place.array >= last, xp.array(last, place.array.dtype), xp.zeros((), place.array.dtype))
    return TABLE["only"].raw(place, wrap(inside)) + wrap(xp.where(inside, xp.zeros((), border.dtype), border))


def _reflected(place, low, high):
    """The place mirrored at low and high until it lies between them."""
    span = high - low
    if span == 0:
        return place * 0
    xp, p = xp_of(place.array), place.array - low
    away = xp.abs(p)
    flips = xp.floor(away / span)
    back = flips % 2 == 1
    sign = xp.where(back, -1, 1).astype(p.dtype) * xp.where(p < 0, -1, 1).astype(p.dtype)
    # away - flips * span, or span minus that, and low: a line of slope sign through the place
    mirrored = xp.where(back, span - (away - flips * span), away - flips * span) + low
    rest = (mirrored - sign * place.array).astype(p.dtype)
    return place * wrap(sign) + wrap(rest)


def _held(xp, places, sizes):
    """``(flat index, whether it lies inside)`` of whole places, those outside brought to the border."""
    inside = True
    kept = []
    for p, n in zip(places, sizes):
        inside = inside & (p >= 0) & (p <= n - 1)
        kept.append(xp.clip(xp.nan_to_num(p), 0, n - 1).astype(xp.int64))
    return flat_index(xp, kept, sizes), inside


def _taken(x, places, sizes):
    """x at whole places (arrays [N,P]), 0 outside."""
    xp = xp_of(x.array)
    index, inside = _held(xp, places, sizes)
    out = take_places(x, wrap(index[:, None]))
    return out if inside.all() else TABLE["only"].raw(out, wrap(inside[:, None]))


# ---- modes


def _nearest(x, places, sizes):
    xp = xp_of(x.array)
    out = _taken(x, [xp.rint(p.array) for p in places], sizes)
    for p in places:
        if p.node is not None:  # a gradient of zeros, not none
            out = out + TABLE["only"].raw(p, wrap(xp.zeros((), bool))).unsqueeze(1)
    return out


def _linear(x, places, sizes):
    xp = xp_of(x.array)
    low = [xp.floor(p.array) for p in places]
    part = [p - wrap(w) for p, w in zip(places, low)]
    total = None
    for corner in itertools.product((0, 1), repeat=len(sizes)):
        weight = None
        for up, f in zip(corner, part):
            f = f if up else 1 - f
            weight = f if weight is None else weight * f
        term = _taken(x, [w + up for w, up in zip(low, corner)], sizes) * weight.unsqueeze(1)
        total = term if total is None else total + term
    return total


def _bicubic(x, places, sizes, padding_mode, align_corners):
    xp = xp_of(x.array)
    low = [xp.floor(p.array) for p in places]
    part = [p - wrap(w) for p, w in zip(places, low)]
    weights = [[_cubic(f - k) for k in range(-1, 3)] for f in part]
    total = None
    for i, j in itertools.product(range(4), repeat=2):
        near = [w + (k - 1) for w, k in zip(low, (i, j))]
        if padding_mode != "zeros":
            near = [_into(wrap(p), n, padding_mode, align_corners).array for p, n in zip(near, sizes)]
        term = _taken(x, near, sizes) * (weights[0][i] * weights[1][j]).unsqueeze(1)
        total = term if total is None else total + term
    return total


def _cubic(distance, a=-0.75):
    """``taps.cubic_weight`` of a Tensor; which piece it is, is constant."""
    d = distance.abs()
    if distance.node is None:
        return wrap(cubic_weight(d.array, a).astype(d.array.dtype))
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((d - 5) * d + 8) * d * a - 4 * a
    only = TABLE["only"].raw
    array = d.array
    return only(near, wrap(array <= 1)) + only(far, wrap((array > 1) & (array < 2)))


# ---- checks


def _warn():
    warnings.warn(
        "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
        "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details.",
        stacklevel=3,
    )


def _check(input, grid, mode, padding_mode):
    if mode not in MODES:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in PADDINGS:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', "
            f"but got: '{padding_mode}'"
        )
    for t in (input, grid):
        if not isinstance(t, Tensor):
            raise not_tensor(TABLE["take_places"], input, grid)
    came = f"but got input with sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
    if input.shape[0] != grid.shape[0]:
        raise RuntimeError(f"grid_sampler(): expected grid and input to have same batch size, {came}")
    axes = input.ndim - 2
    if grid.shape[-1] != axes:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {axes} in last dimension, but got grid with sizes "
            f"{list(grid.shape)}"
        )
    if grid.ndim != input.ndim or axes not in (2, 3):
        kind = 4 if axes == 2 else 5
        raise RuntimeError(f"grid_sampler(): expected {kind}D input and grid with same number of dimensions, {came}")
    for axis, n in enumerate(input.shape[2:], 2):
        if n == 0:
            raise RuntimeError(
                "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
                f"{list(input.shape)} with dimension {axis} being empty"
            )
    if mode == "bicubic" and axes != 2:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    refuse(f"grid_sampler_{axes}d_cpu_kernel_impl", input.array, "biuc")
    if input.dtype is not grid.dtype:
        raise RuntimeError(f"expected scalar type {input.dtype.legacy} but found {grid.dtype.legacy}")


# ---- affine maps


def affine_grid(theta, size, align_corners=None):
    """The grid for ``grid_sample`` whose places are theta @ (x, y, 1), or theta @ (x, y, z, 1).

    Shapes      theta [N,2,3], size (N,C,H,W) -> [N,H,W,2]; theta [N,3,4], size (N,C,D,H,W) -> [N,D,H,W,3]
    Derivative  by theta: g times the places of the plain grid, added up
    Raises      ValueError, NotImplementedError where theta or size do not fit
    """
    size = tuple(int(n) for n in size)
    axes = _check_affine(theta, size)
    if align_corners is None:
        _warn()
        align_corners = False
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    xp, kind = xp_of(theta.array), theta.array.dtype
    lines = [_line(xp, n, align_corners).astype(kind) for n in size[2:]]
    planes = xp.meshgrid(*lines, indexing="ij")[::-1]
    base = xp.stack([*planes, xp.ones(size[2:], kind)], -1).reshape(1, -1, axes + 1)  # [1,P,axes+1]
    if theta.shape[0] != size[0]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{size[0]}, {axes + 1}] but got: "
            f"[{theta.shape[0]}, {axes + 1}]."
        )
    base = wrap(xp.ascontiguousarray(xp.broadcast_to(base, (size[0], *base.shape[1:]))))
    return (base @ theta.transpose(1, 2)).reshape(size[0], *size[2:], axes)


def _line(xp, n, align_corners):
    """The centres of n elements between -1 and 1, or with the outer two on -1 and 1."""
    if n == 1:
        return xp.zeros(1)
    line = xp.linspace(-1, 1, n)
    return line if align_corners else line * ((n - 1) / n)


def _check_affine(theta, size):
    if not isinstance(theta, Tensor):
        raise not_tensor(TABLE["take_places"], theta)
    if theta.dtype.category != 2:
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    axes = len(size) - 2
    if axes not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. "
            f"Got size {size}."
        )
    if theta.ndim != 3 or tuple(theta.shape[-2:]) != (axes, axes + 1):
        raise ValueError(
            f"Expected a batch of {axes}D affine matrices of shape Nx{axes}x{axes + 1} for size {size}. "
            f"Got {theta.shape}."
        )
    return axes
