"""Padding at the ends of axes: with a value, or with the input's own elements."""

from .. import errors
from ..core.op import TABLE, op
from ..core.promote import not_tensor
from ..core.tensor import Tensor
from .checks import number

__all__ = ("constant_pad_nd",)
FUNCTIONAL = ("pad",)


# ---- with a value; negative widths cut


def _windows(shape, widths):
    """The slices of the padded array and of the array that hold the same elements; ``widths`` as (before, after)."""
    into, taken = [], []
    for n, (before, after) in zip(shape, widths):
        into.append(slice(max(before, 0), max(before, 0) + max(n + min(before, 0) + min(after, 0), 0)))
        taken.append(slice(max(-before, 0), n - max(-after, 0)))
    return tuple(into), tuple(taken)


def _minus(widths):
    return tuple((-before, -after) for before, after in widths)


@op(x=lambda m, g, widths: m.pad_constant(g, widths=_minus(widths), value=0), node="ConstantPadNd")
def pad_constant(xp, x, *, widths, value):
    """x with ``value`` before and after: ``widths`` is a pair an axis, negative where elements are cut away.

    Derivative  g with the padding cut away, and 0 where x was cut
    """
    shape = tuple(n + before + after for n, (before, after) in zip(x.shape, widths))
    into, taken = _windows(x.shape, widths)
    if all(n == s.stop - s.start for n, s in zip(shape, into)):
        return x[taken].copy()
    out = xp.full(shape, number(value, x), x.dtype)
    out[into] = x[taken]
    return out


# ---- with the input's own elements


def _sources(mode, n, before, after):
    """Where padding of an axis of length n comes from: pairs (slice of the padded axis, slice of the axis).

    A slice of the axis of length 1 stands for all places of its padding.
    """
    pairs, end = [], before + n
    if mode == "circular":
        pairs += [(slice(before), slice(n - before, n))] if before > 0 else []
        pairs += [(slice(end, end + after), slice(after))] if after > 0 else []
    elif mode == "replicate":
        pairs += [(slice(before), slice(1))] if before > 0 else []
        pairs += [(slice(end, end + after), slice(n - 1, n))] if after > 0 else []
    else:
        pairs += [(slice(before), slice(before, 0, -1))] if before > 0 else []
        stop = n - 2 - after
        pairs += [(slice(end, end + after), slice(n - 2, None if stop < 0 else stop, -1))] if after > 0 else []
    return pairs


def _on(axis, s):
    return (slice(None),) * axis + (s,)


def _axes(x, widths):
    return [(axis, *pair) for axis, pair in enumerate(widths, x.ndim - len(widths)) if pair != (0, 0)]


@op(
    x=lambda m, g, x_shape, widths, mode: m.pad_edges_backward(g, widths=widths, mode=mode),
    node="ReflectionPad",
)
def pad_edges(xp, x, *, widths, mode):
    """x with its last axes padded by ``mode`` reflect, replicate or circular; negative widths cut.

    Derivative  g within, plus g of the padding at the elements it came from
    """
    for axis, before, after in _axes(x, widths):
        n, wide = x.shape[axis], (max(before, 0), max(after, 0))
        out = xp.empty((*x.shape[:axis], n + sum(wide), *x.shape[axis + 1 :]), x.dtype)
        out[_on(axis, slice(wide[0], wide[0] + n))] = x
        for into, taken in _sources(mode, n, *wide):
            out[_on(axis, into)] = x[_on(axis, taken)]
        cut = slice(max(-before, 0), out.shape[axis] - max(-after, 0))
        x = out if min(before, after) >= 0 else out[_on(axis, cut)].copy()
    return x if any(map(any, widths)) else x.copy()


@op(x=lambda m, g, widths, mode: m.pad_edges(g, widths=widths, mode=mode))
def pad_edges_backward(xp, x, *, widths, mode):
    """The adjoint of ``pad_edges``: padding is added to the elements that it came from."""
    for axis, before, after in reversed(_axes(x, widths)):
        cut = max(-before, 0), max(-after, 0)
        if any(cut):
            whole = xp.zeros((*x.shape[:axis], x.shape[axis] + sum(cut), *x.shape[axis + 1 :]), x.dtype)
            whole[_on(axis, slice(cut[0], cut[0] + x.shape[axis]))] = x
            x = whole
        wide = max(before, 0), max(after, 0)
        n = x.shape[axis] - sum(wide)
        total = x[_on(axis, slice(wide[0], wide[0] + n))].copy()
        for into, taken in _sources(mode, n, *wide):
            part = x[_on(axis, into)]
            total[_on(axis, taken)] += part.sum(axis, dtype=x.dtype, keepdims=True) if mode == "replicate" else part
        x = total
    return x


# ---- the public function


def _pairs(widths):
    """PyTorch's flat list, which starts with the last axis, as pairs that start with the first."""
    return tuple(zip(widths[-2::-2], widths[::-2]))


def pad(input, pad, mode="constant", value=None):
    """``input`` padded at the ends of its last axes.

    ``pad``: widths (before, after) of the last axis, then of the one before it, and so on; negative ones cut.
    ``mode``: constant (``value``, 0 by default), reflect (without the edge itself), replicate (the edge), circular.

    Shapes      constant: any; else [N,C,...] or [C,...] with one, two or three axes padded
    Derivative  g of what was kept, plus g of the padding at the elements that it came from
    Raises      RuntimeError where widths do not fit, NotImplementedError for an unknown mode or number of axes

    >>> pad(tensor([1, 2, 3]), (1, 2))
    tensor([0, 1, 2, 3, 0, 0])
    """
    return _pad(input, pad, mode, value)


def constant_pad_nd(input, pad, value=0):
    """``nn.functional.pad`` with mode constant."""
    return _pad(input, pad, "constant", value)


def _pad(input, widths, mode, value):
    if not isinstance(input, Tensor):
        raise not_tensor(TABLE["pad_constant"], input)
    widths = tuple(int(w) for w in widths)
    if len(widths) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(widths) > 2 * input.ndim:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(widths)} and input of dimension {input.ndim}"
        )
    pairs = _pairs(widths)
    if mode == "constant":
        return _constant(input, pairs, 0 if value is None else value)
    if value not in (None, 0):
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    _check(input, pairs, mode)
    if mode == "circular" and any(w < 0 for pair in pairs for w in pair):  # what is cut is not repeated
        input = _constant(input, tuple((min(before, 0), min(after, 0)) for before, after in pairs), 0)
        pairs = tuple((max(before, 0), max(after, 0)) for before, after in pairs)
        _check_wrapping(input.shape, pairs)
    return pad_edges(input, widths=pairs, mode=mode)


def _constant(input, pairs, value):
    pairs = ((0, 0),) * (input.ndim - len(pairs)) + pairs
    if any(n + before + after < 0 for n, (before, after) in zip(input.shape, pairs)):
        came = f"got {tuple(input.shape)} and widths {pairs}, which cut more than there is"
        raise RuntimeError(errors.text("narrow(): length must be non-negative.", came))
    if input.dtype.category == 1 and isinstance(value, float):
        value = int(value)
    return pad_constant(input, widths=pairs, value=value)


def _check(input, pairs, mode):
    axes, ndim = len(pairs), input.ndim
    if not (1 <= axes <= 3 and ndim in (axes + 1, axes + 2)):
        raise NotImplementedError(
            f"Padding size {2 * axes} is not supported for {ndim}D input tensor.\n"
            "Supported combinations for non-constant padding:\n"
            "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
            "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
            "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"
        )
    shape = list(input.shape)
    if 0 in shape[1 if ndim == axes + 2 else 0 :]:
        raise RuntimeError(
            f"Expected {axes + 1}D or {axes + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {shape}"
        )
    for back, (before, after) in enumerate(reversed(pairs)):
        axis = ndim - 1 - back
        n = shape[axis]
        if mode == "reflect" and max(before, after) >= n:
            raise RuntimeError(
                f"Argument #{4 + 2 * back}: Padding size should be less than the corresponding input dimension, but "
                f"got: padding ({before}, {after}) at dimension {axis} of input {shape}"
            )
        if mode == "circular" and n + before + after < 0:
            raise RuntimeError("Negative padding value is resulting in an empty dimension")
    if mode == "circular":
        _check_wrapping(shape, pairs)
    else:
        _check_sizes(shape, pairs)


def _check_wrapping(shape, pairs):
    if any(max(pair) > n for n, pair in zip(shape[len(shape) - len(pairs) :], pairs)):
        raise RuntimeError("Padding value causes wrapping around more than once.")


def _check_sizes(shape, pairs):
    first, sizes = shape[: len(shape) - len(pairs)], shape[len(shape) - len(pairs) :]
    out = [n + sum(pair) for n, pair in zip(sizes, pairs)]
    if max(out) < 1:
        names = "DHW"[3 - len(sizes) :]
        came = " ".join(f"{name}: {n}" for name, n in zip(names, sizes))
        made = " ".join(f"{name}: {n}" for name, n in zip(names, out))
        raise RuntimeError(f"input ({came}) is too small. Calculated output {made}")
    if min(out) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(out)}: {first + out}")
