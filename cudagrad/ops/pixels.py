"""Pixels moved between space and channels."""

from ..core.op import TABLE
from ..core.promote import not_tensor
from ..core.tensor import Tensor

__all__ = ("channel_shuffle", "native_channel_shuffle", "pixel_shuffle", "pixel_unshuffle")
FUNCTIONAL = __all__


def _check(name, input, factor, word):
    if not isinstance(input, Tensor):
        raise not_tensor(TABLE["reshape"], input)
    if input.ndim < 3:
        raise RuntimeError(
            f"{name} expects input to have at least 3 dimensions, but got input with {input.ndim} dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(f"{name} expects a positive {word}, but got {factor}")


def pixel_shuffle(input, upscale_factor):
    """Channels spread out in space: [*,C*r*r,H,W] becomes [*,C,H*r,W*r], r = ``upscale_factor``.

    Raises      RuntimeError where the channels cannot be divided so
    Source      Shi et al. 2016, arXiv:1609.05158, equation 4
    """
    r = upscale_factor
    _check("pixel_shuffle", input, r, "upscale_factor")
    *first, c, h, w = input.shape
    if c % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={c} is not divisible by {r * r}"
        )
    n = len(first)
    x = input.reshape(*first, c // (r * r), r, r, h, w)
    x = x.permute(*range(n + 1), n + 3, n + 1, n + 4, n + 2)  # [*,C,H,r,W,r]
    return x.reshape(*first, c // (r * r), h * r, w * r)


def pixel_unshuffle(input, downscale_factor):
    """The inverse of ``pixel_shuffle``: [*,C,H*r,W*r] becomes [*,C*r*r,H,W], r = ``downscale_factor``.

    Raises      RuntimeError where height or width cannot be divided so
    """
    r = downscale_factor
    _check("pixel_unshuffle", input, r, "downscale_factor")
    *first, c, h, w = input.shape
    for name, place, length in (("height", -2, h), ("width", -1, w)):
        if length % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({place})={length} "
                f"is not divisible by {r}"
            )
    n = len(first)
    x = input.reshape(*first, c, h // r, r, w // r, r)
    x = x.permute(*range(n + 1), n + 2, n + 4, n + 1, n + 3)  # [*,C,r,r,H,W]
    return x.reshape(*first, c * r * r, h // r, w // r)


def channel_shuffle(input, groups):
    """The channels of [N,C,*S] dealt out: those of ``groups`` equal groups take turns.

    Raises      RuntimeError where the channels cannot be divided so
    Source      Zhang et al. 2018, arXiv:1707.01083, section 3.1
    """
    if not isinstance(input, Tensor):
        raise not_tensor(TABLE["reshape"], input)
    if input.ndim < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(input.shape)}")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    n, c, *s = input.shape
    if c % groups:
        raise RuntimeError(f"Number of channels must be divisible by groups. Got {c} channels and {groups} groups.")
    return input.reshape(n, groups, c // groups, *s).transpose(1, 2).reshape(n, c, *s)


def native_channel_shuffle(input, groups):
    """``channel_shuffle``."""
    return channel_shuffle(input, groups)
