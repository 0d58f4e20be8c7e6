"""What the normalisations share: their derivative in terms of ops, and checks in PyTorch's words."""

from .. import dtypes, errors
from .checks import count_of


def standardised_gradients(m, g, x, w, over, eps, centre=True):
    """``(dx, h)`` for out = h * w, h = x standardised over the dims ``over``; in ops, so that any order exists."""

    def mean_of(a):
        return m.mean(a, dim=over, keepdim=True)

    away = x - mean_of(x) if centre else x
    r = m.rsqrt(mean_of(away * away) + eps)
    h = away * r
    g = g if w is None else g * w
    dx = g - h * mean_of(g * h)
    return r * (dx - mean_of(g) if centre else dx), h


def reshaped(d, shape, like):
    """A gradient array in its tensor's shape and dtype; None stays None."""
    if d is None:
        return None
    return d.reshape(shape) if like is None else d.reshape(shape).astype(like.dtype, copy=False)


def check_dtypes(input, *others):
    """Parameters and statistics have the input's dtype, or float32 beside a half type."""
    fine = (input.dtype, dtypes.float32) if input.dtype.itemsize == 2 else (input.dtype,)
    for t in others:
        if t is not None and t.dtype not in fine and input.dtype.category >= 2:
            first = f"mixed dtype (CPU): expect parameter to have scalar type of {fine[-1].legacy}"
            raise RuntimeError(errors.text(first, f"got input {input.dtype}, parameter {t.dtype}"))


def check_values(first, shape):
    """ValueError where [N,C,...] has exactly one value a channel."""
    if count_of([shape[0], *shape[2:]], None) == 1:
        raise ValueError(f"{first}, got input size {shape}")
