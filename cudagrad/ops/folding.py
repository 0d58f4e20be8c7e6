"""Windows laid out as columns, and columns added up where the windows lay."""

import math

from .. import errors
from ..core.op import TABLE, op
from ..core.promote import not_tensor
from ..core.tensor import Tensor
from .windows import Windows, cut, offsets, padded, several, view

FUNCTIONAL = ("fold", "unfold")


@op(x=lambda m, g, x_shape, where: m.col2im(g, where=where, size=tuple(x_shape[2:])), node="Im2Col")
def im2col(xp, x, *, where):
    """[N,C*K,L]: column i holds the elements of window i, those of a channel together.

    Shapes      x [N,C,*S]; K = product of where.kernel, L = product of where.count
    Derivative  columns added up where the windows lay
    """
    windows = view(xp, padded(xp, x, where), 2, where)  # [N,C,*K,*count]
    return windows.reshape(x.shape[0], x.shape[1] * math.prod(where.kernel), math.prod(where.count)).copy()


@op(x=lambda m, g, where: m.im2col(g, where=where), wide=True, node="Col2Im")
def col2im(xp, x, *, where, size):
    """[N,C,*size]: the adjoint of ``im2col``.

    Shapes      x [N,C*K,L]
    """
    n, c = x.shape[0], x.shape[1] // math.prod(where.kernel)
    columns = x.reshape(n, c, *where.kernel, *where.count)
    total = xp.zeros((n, c, *where.reach), x.dtype)
    for place, window in offsets(where):
        total[(..., *window)] += columns[(slice(None), slice(None), *place)]
    return cut(xp, total, size, where)


def _options(**options):
    """Kernel, dilation, padding and stride as pairs, after PyTorch's checks."""
    values = {name: several(v, 2) for name, v in options.items()}
    for name, v in values.items():
        if len(v) != 2:
            raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(v)}")
    for name, word in (("kernel_size", "kernel"), ("stride", "stride"), ("dilation", "dilation")):
        if min(values[name]) <= 0:
            h, w = values[name]
            first = name.replace("_", " ")
            raise RuntimeError(f"{first} should be greater than zero, but got {word}_height: {h} {word}_width: {w}")
    if min(values["padding"]) < 0:
        h, w = values["padding"]
        raise RuntimeError(f"padding should be non-negative, but got pad_height: {h} pad_width: {w}")
    return values["kernel_size"], values["dilation"], values["padding"], values["stride"]


def _counts(sizes, kernel, dilation, padding, stride):
    return tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in zip(sizes, kernel, dilation, padding, stride)
    )


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """[N,C*K,L]: the windows of [N,C,H,W] as columns, K elements a channel, L windows in row-major order.

    Shapes      input [N,C,H,W] or [C,H,W]
    Derivative  the columns of g added up where the windows lay, ``fold``
    Raises      RuntimeError where sizes do not fit
    """
    if not isinstance(input, Tensor):
        raise not_tensor(TABLE["im2col"], input)
    kernel, dilation, padding, stride = _options(
        kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride
    )
    shape = list(input.shape)
    if input.ndim not in (3, 4) or 0 in shape[input.ndim - 3 :]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, "
            f"but got: {shape}"
        )
    sizes = tuple(shape[-2:])
    count = _counts(sizes, kernel, dilation, padding, stride)
    if min(count) < 1:
        raise RuntimeError(
            f"Given input with spatial size {sizes}, kernel_size={kernel}, dilation={dilation}, padding={padding}, "
            f"calculated shape of the array of sliding blocks as {count}, but its components must be at least one."
        )
    x = input if input.ndim == 4 else input.unsqueeze(0)
    out = im2col(x, where=Windows(kernel, stride, padding, dilation, count))
    return out if input.ndim == 4 else out.squeeze(0)


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """[N,C,H,W]: columns [N,C*K,L] added up where ``unfold`` took them from, H, W = ``output_size``.

    Shapes      input [N,C*K,L] or [C*K,L]
    Derivative  ``unfold`` of g
    Raises      RuntimeError where sizes do not fit
    """
    if not isinstance(input, Tensor):
        raise not_tensor(TABLE["col2im"], input)
    size = several(output_size, 2)
    if len(size) != 2:
        raise RuntimeError(f"It is expected output_size equals to 2, but got size {len(size)}")
    kernel, dilation, padding, stride = _options(
        kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride
    )
    count = _check_columns(input, size, kernel, dilation, padding, stride)
    x = input if input.ndim == 3 else input.unsqueeze(0)
    out = col2im(x, where=Windows(kernel, stride, padding, dilation, count), size=size)
    return out if input.ndim == 3 else out.squeeze(0)


def _check_columns(input, size, kernel, dilation, padding, stride):
    """The count of windows, after checks that the columns are of such windows."""
    shape = list(input.shape)
    if input.ndim not in (2, 3) or 0 in shape[-2:]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for "
            f"input, but got: {shape}"
        )
    if shape[-2] % math.prod(kernel):
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={shape[-2]} and kernel_size={kernel}."
        )
    count = _counts(size, kernel, dilation, padding, stride)
    given = f"Given output_size={size}, kernel_size={kernel}, dilation={dilation}, padding={padding}, stride={stride}, "
    if shape[-1] != count[0] * count[1]:
        raise RuntimeError(
            f"{given}expected size of input's dimension 2 to match the calculated number of sliding blocks {count[0]} "
            f"* {count[1]} = {count[0] * count[1]}, but got input.size(2)={shape[-1]}."
        )
    if min(count) < 1:
        first = f"{given}calculated shape of the array of sliding blocks as {count}, which is too small (non-positive)"
        raise RuntimeError(errors.text(first))
    return count
