"""Convolution in any number of dimensions, and the two ops that are its derivatives, as each is of the others."""

from .. import dtypes, errors
from ..core.op import TABLE, op
from ..core.promote import not_tensor
from ..core.tensor import Tensor
from .correlation import correlate, products, spread
from .rowwise import computed
from .windows import Windows, several

__all__ = ("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
FUNCTIONAL = __all__

# x [N,C,*S], w [O,C/groups,*K] and y [N,O,*count] meet in one trilinear form, sum of x w y over all windows. Each op is
# the derivative of that form by one of the three, hence bilinear in the two others, and its derivatives are the other
# two ops: every order of derivative exists.


def _two_dtypes(x, w, b):
    """PyTorch's error for tensors of several dtypes; None where they are one."""
    names = [dtypes.of_array(a).legacy for a in (x, w) if a is not None]
    if x.dtype != w.dtype:
        if x.dtype.itemsize > 4:
            return RuntimeError(errors.text(f"expected scalar type {names[0]} but found {names[1]}", _came(x, w)))
        return RuntimeError(
            errors.text(
                f"Input type (torch.{names[0]}Tensor) and weight type (torch.{names[1]}Tensor) should be the same or "
                "input should be a MKLDNN tensor and weight is a dense tensor",
                _came(x, w),
            )
        )
    if b is not None and b.dtype != x.dtype:
        kinds = [dtypes.of_array(a).legacy.lower() for a in (x, b)]
        return RuntimeError(errors.text("Input type ({}) and bias type ({}) should be the same".format(*kinds)))
    return None


def _came(x, w):
    return f"got input {x.dtype} {x.shape}, weight {w.dtype} {w.shape}"


def _explain(error, x, w, b=None, **_):
    return _two_dtypes(x, w, b)


class _Unfit(Exception):
    """Raised by a forward whose arrays are of several dtypes; ``_explain`` words it."""


def _wide(xp, *arrays):
    """The arrays, checked to be of one dtype, in the dtype that sums are made in: float32 for the half types."""
    if any(a is not None and a.dtype != arrays[0].dtype for a in arrays):
        raise _Unfit
    return [None if a is None else computed(xp, a) for a in arrays]


@op(
    x=lambda m, g, w, x_shape, where, groups: m.convolution_transpose(
        g, w, where=where, groups=groups, size=tuple(x_shape[2:])
    ),
    w=lambda m, g, x, where, groups: m.convolution_weight(x, g, where=where, groups=groups),
    b=lambda m, g: m.sum(g, dim=(0, *range(2, len(g.shape))), keepdim=False),
    uniform=True,
    explain=_explain,
)
def convolution(xp, x, w, b=None, *, where, groups):
    """b[o] + the sum over c and k of x[n, c, place k of window i] * w[o,c,k], c running over the group of o.

    Shapes      x [N,C,*S]; w [O,C/groups,*K]; b [O] or None; out [N,O,*where.count]
    Dtypes      all the same; float16 and bfloat16 are added up in float32
    """
    kind = x.dtype
    x, w, b = _wide(xp, x, w, b)
    out = correlate(xp, x, w, where, groups)
    if b is not None:
        out += b.reshape(-1, *(1,) * where.ndim)
    return out.astype(kind, copy=False)


@op(
    x=lambda m, g, w, where, groups: m.convolution(g, w, None, where=where, groups=groups),
    w=lambda m, g, x, where, groups: m.convolution_weight(g, x, where=where, groups=groups),
    uniform=True,
    explain=_explain,
    node="Convolution",
)
def convolution_transpose(xp, x, w, *, where, groups, size):
    """The gradient of ``convolution`` by its input, which is the transposed convolution of x.

    Shapes      x [N,O,*where.count]; w [O,C/groups,*K]; out [N,C,*size]
    """
    return spread(xp, *_wide(xp, x, w), where, groups, size).astype(x.dtype, copy=False)


@op(
    x=lambda m, g, y, x_shape, where, groups: m.convolution_transpose(
        y, g, where=where, groups=groups, size=tuple(x_shape[2:])
    ),
    y=lambda m, g, x, where, groups: m.convolution(x, g, None, where=where, groups=groups),
    uniform=True,
    node="ConvolutionBackward",
)
def convolution_weight(xp, x, y, *, where, groups):
    """The gradient of ``convolution`` by its weight: x within the windows times y, added up over windows and batch.

    Shapes      x [N,C,*S]; y [N,O,*where.count]; out [O,C/groups,*where.kernel]
    """
    return products(xp, computed(xp, x), computed(xp, y), where, groups).astype(x.dtype, copy=False)


# ---- what PyTorch checks, in its order and words


def _check_arguments(stride, padding, dilation, groups, shown, output_padding=(0,)):
    if min(padding) < 0:
        raise RuntimeError("negative padding is not supported")
    if min(output_padding) < 0:
        raise RuntimeError("negative output_padding is not supported")
    if min(stride) <= 0:
        raise RuntimeError("non-positive stride is not supported")
    if min(dilation) < 0:
        raise RuntimeError("dilation should be greater than zero")
    if min(dilation) == 0:
        raise RuntimeError(f"dilation should be greater than zero, but got {shown}")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")


def _spatial(value, name, ndim):
    """The option as one number an axis; RuntimeError, in PyTorch's words, for another count."""
    values = several(value, ndim)
    if len(values) != ndim:
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {ndim} values to match the convolution "
            f"dimensions, but got {name}={list(values)}"
        )
    return values


def _check_tensors(name, input, weight, bias):
    for t in (input, weight):
        if not isinstance(t, Tensor):
            raise not_tensor(TABLE["convolution"], input, weight)
    if bias is not None and not isinstance(bias, Tensor):
        raise TypeError(f"{name}(): argument 'bias' (position 3) must be Tensor, not {type(bias).__name__}")
    if weight.ndim < 3:
        raise RuntimeError(errors.text("weight should have at least three dimensions", f"got {tuple(weight.shape)}"))


def _batched(name, input, ndim):
    """``input`` with a batch axis, and whether it came without."""
    if input.ndim not in (ndim + 1, ndim + 2):
        raise RuntimeError(
            f"Expected {ndim + 1}D (unbatched) or {ndim + 2}D (batched) input to {name}, "
            f"but got input of size: {list(input.shape)}"
        )
    if input.ndim == ndim + 2:
        return input, False
    return input.unsqueeze(0), True


def _check_weight(x, weight, bias, groups, transposed):
    shape, channels = list(weight.shape), x.shape[1]
    given = f"Given transposed=1, weight of size {shape}, " if transposed else f"Given groups={groups}, "
    if weight.shape[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, "
            f"but got weight of size {shape} instead"
        )
    if weight.shape[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, "
            f"but got weight of size [{shape}] instead"
        )
    wanted = weight.shape[0] if transposed else weight.shape[1] * groups
    if channels != wanted:
        given = given if transposed else f"{given}weight of size {shape}, "
        raise RuntimeError(
            f"{given}expected input{list(x.shape)} to have {wanted} channels, but got {channels} channels instead"
        )
    outputs = weight.shape[1] * groups if transposed else weight.shape[0]
    if bias is not None and tuple(bias.shape) != (outputs,):
        given = given if transposed else f"Given weight of size {shape}, "
        raise RuntimeError(
            f"{given}expected bias to be 1-dimensional with {outputs} elements, "
            f"but got bias of size {list(bias.shape)} instead"
        )


# ---- the public functions


def _windows(x, weight, stride, padding, dilation):
    """Where the windows of a convolution lie; ``padding`` as pairs (before, after)."""
    kernel, sizes = tuple(weight.shape[2:]), x.shape[2:]
    whole = [n + before + after for n, (before, after) in zip(sizes, padding)]
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation)]
    if any(w < r for w, r in zip(whole, reach)):
        first = f"Calculated padded input size per channel: ({_by(whole)}). Kernel size: ({_by(reach)}). "
        first += "Kernel size can't be greater than actual input size"
        raise RuntimeError(errors.text(first, _shapes(x, weight)))
    if 0 in sizes and x.shape[0] and x.shape[1]:
        raise RuntimeError(
            f"Only zero batch or zero channel inputs are supported, but got input shape: {list(x.shape)}"
        )
    count = tuple((w - r) // s + 1 for w, r, s in zip(whole, reach, stride))
    return Windows(kernel, stride, tuple(before for before, _ in padding), dilation, count)


def _by(sizes):
    return " x ".join(map(str, sizes))


def _shapes(x, weight):
    return f"got input {tuple(x.shape)}, weight {tuple(weight.shape)}"


def _pairs(padding, kernel, stride, dilation):
    """Padding as PyTorch takes it (numbers, "same", "valid") as a pair (before, after) an axis."""
    if not isinstance(padding, str):
        padding = _spatial(padding, "padding", len(kernel))
        return tuple((p, p) for p in padding)
    if padding == "valid":
        return ((0, 0),) * len(kernel)
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    total = [d * (k - 1) for k, d in zip(kernel, dilation)]
    return tuple((t // 2, t - t // 2) for t in total)


def _convolve(name, ndim, input, weight, bias, stride, padding, dilation, groups):
    _check_tensors(name, input, weight, bias)
    x, unbatched = _batched(name, input, ndim)
    stride, dilation = several(stride, ndim), several(dilation, ndim)
    axes = weight.ndim - 2
    if isinstance(padding, str) and axes != ndim:
        need = f"Expected {weight.ndim}-dimensional input for {weight.ndim}-dimensional weight{list(weight.shape)}"
        raise RuntimeError(f"{need}, but got {x.ndim}-dimensional input of size {list(x.shape)} instead")
    stride, dilation = _spatial(stride, "stride", axes), _spatial(dilation, "dilation", axes)
    pairs = _pairs(padding, tuple(weight.shape[2:]), stride, dilation)
    _check_arguments(stride, [p for pair in pairs for p in pair], dilation, groups, [1] * (axes == 1) + list(dilation))
    _check_weight(x, weight, bias, groups, False)
    out = convolution(x, weight, bias, where=_windows(x, weight, stride, pairs, dilation), groups=groups)
    return out.squeeze(0) if unbatched else out


def _by_axis(values, neutral):
    """(name of an axis, value), where a single axis has the ``neutral`` height that PyTorch gives it."""
    values = (neutral,) * (len(values) == 1) + tuple(values)
    return tuple(zip(("depth", "height", "width")[3 - len(values) :], values))


def _check_output_padding(extra, stride, dilation):
    if any(e >= s and e >= d for e, s, d in zip(extra, stride, dilation)):
        shown = {"output_padding": _by_axis(extra, 0), "stride": _by_axis(stride, 1), "dilation": _by_axis(dilation, 1)}
        got = " ".join(f"{name}_{axis}: {v}" for name, values in shown.items() for axis, v in values)
        raise RuntimeError(f"output padding must be smaller than either stride or dilation, but got {got}")


def _transposed(name, ndim, input, weight, bias, stride, padding, output_padding, groups, dilation):
    _check_tensors(name, input, weight, bias)
    x, unbatched = _batched(name, input, ndim)
    if isinstance(padding, str):
        raise TypeError(f"{name}(): argument 'padding' must be tuple of ints, not str")
    axes = weight.ndim - 2
    named = {"stride": stride, "padding": padding, "output_padding": output_padding, "dilation": dilation}
    stride, padding, extra, dilation = (_spatial(several(v, ndim), k, axes) for k, v in named.items())
    shown = ", ".join(f"dilation_{axis}: {d}" for axis, d in _by_axis(dilation, 1))
    _check_arguments(stride, padding, dilation, groups, shown, extra)
    _check_weight(x, weight, bias, groups, True)
    _check_output_padding(extra, stride, dilation)
    kernel, count = tuple(weight.shape[2:]), tuple(x.shape[2:])
    where = Windows(kernel, stride, padding, dilation, count)
    size = tuple(r - 2 * p + e for r, p, e in zip(where.reach, padding, extra))
    if min(size) <= 0:
        first = f"Given input size per channel: ({_by(count)}). Calculated output size per channel: ({_by(size)}). "
        raise RuntimeError(errors.text(f"{first}Output size is too small", _shapes(x, weight)))
    out = convolution_transpose(x, weight, where=where, groups=groups, size=size)
    if bias is not None:
        out = out + bias.reshape(-1, *(1,) * axes)
    return out.squeeze(0) if unbatched else out


def conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """The correlation with ``weight``: out[n,o,i] = bias[o] + the sum of input[n, c, s*i + d*k - p] * weight[o,c,k].

    s, p, d are stride, padding and dilation; c runs over the group of o. ``padding``: numbers, "valid" (none) or "same"
    (as long as the input; for stride 1).

    Shapes      input [N,C,T] or [C,T]; weight [O,C/groups,K]; bias [O]
    Derivative  by input: ``conv_transpose1d`` of g with weight; by weight: the correlation of input with g
    Raises      RuntimeError where sizes, channels, groups or dtypes do not fit
    """
    return _convolve("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """As ``conv1d`` over two axes.

    Shapes      input [N,C,H,W] or [C,H,W]; weight [O,C/groups,K,L]; bias [O]

    >>> x = tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    >>> conv2d(x, ones(1, 1, 2, 2))
    tensor([[[[10.]]]])
    """
    return _convolve("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """As ``conv1d`` over three axes.

    Shapes      input [N,C,D,H,W] or [C,D,H,W]; weight [O,C/groups,J,K,L]; bias [O]
    """
    return _convolve("conv3d", 3, input, weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """The adjoint of ``conv1d`` with the same weight and options, plus bias.

    ``output_padding`` chooses among the lengths that ``conv1d`` maps to this input's: (T-1)*stride - 2*padding +
    dilation*(K-1) + output_padding + 1.

    Shapes      input [N,C,T] or [C,T]; weight [C,O/groups,K]; bias [O]
    Derivative  by input: ``conv1d`` of g with weight; by weight: the correlation of g with input
    Raises      RuntimeError where sizes, channels, groups or dtypes do not fit
    """
    options = (stride, padding, output_padding, groups, dilation)
    return _transposed("conv_transpose1d", 1, input, weight, bias, *options)


def conv_transpose2d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """As ``conv_transpose1d`` over two axes.

    Shapes      input [N,C,H,W] or [C,H,W]; weight [C,O/groups,K,L]; bias [O]
    """
    options = (stride, padding, output_padding, groups, dilation)
    return _transposed("conv_transpose2d", 2, input, weight, bias, *options)


def conv_transpose3d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """As ``conv_transpose1d`` over three axes.

    Shapes      input [N,C,D,H,W] or [C,D,H,W]; weight [C,O/groups,J,K,L]; bias [O]
    """
    options = (stride, padding, output_padding, groups, dilation)
    return _transposed("conv_transpose3d", 3, input, weight, bias, *options)
