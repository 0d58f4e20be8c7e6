"""Activations: pointwise functions with one bend or more."""

from ..core.op import TABLE, op
from .blocks import at_once, blocked, in_blocks
from .checks import refuse
from .outputs import inplace_form, takes_inplace

__all__ = (
    *("relu", "relu_", "prelu", "selu", "selu_", "celu", "celu_", "rrelu", "rrelu_", "threshold", "threshold_"),
    "hardshrink",
)
METHODS = ("relu", "relu_", "prelu", "hardshrink")
FUNCTIONAL = (
    *("relu", "relu_", "relu6", "leaky_relu", "leaky_relu_", "elu", "elu_", "celu", "celu_", "selu", "selu_"),
    *("softshrink", "hardshrink", "hardtanh", "hardtanh_", "hardsigmoid", "hardswish", "threshold", "threshold_"),
    *("prelu", "rrelu", "rrelu_", "glu"),
)


# ---- one bend


def _relu_back(m, g, out):
    return m.only(m.tied(g, out), out != 0)


@takes_inplace
@op(x=_relu_back, fused=blocked(_relu_back), wide=True)  # NumPy 2.0 makes bfloat16 beside 0 a float32
def relu(xp, x):
    """max(x, 0).

    Dtypes      any but bool and complex
    Derivative  0 at 0
    """
    if x.dtype.kind == "b":
        raise RuntimeError("Boolean inputs not supported for relu")
    refuse("clamp_min_scalar_cpu", x, "c")
    return xp.maximum(x, 0)


relu_ = inplace_form(TABLE["relu"].call)


def _leaky_relu_back(m, g, x, negative_slope):
    positive, g = x > 0, m.tied(g, x)
    return m.only(g, positive) + m.only(g, ~positive) * negative_slope


@takes_inplace
@op(x=_leaky_relu_back, fused=at_once(_leaky_relu_back), wide=True)
def leaky_relu(xp, x, *, negative_slope=0.01):
    """x where x > 0, else negative_slope * x.

    Derivative  negative_slope at 0
    """
    refuse("leaky_relu_cpu", x, "biuc")
    if 0 <= negative_slope <= 1:
        return xp.maximum(x, x * negative_slope)  # 4 times as fast as where, whose branches are mispredicted
    return xp.where(x > 0, x, x * negative_slope)


leaky_relu_ = inplace_form(TABLE["leaky_relu"].call)


def _elu_back(m, g, x, alpha, scale, input_scale):
    curved = m.only(g, x <= 0) * (alpha * scale * input_scale) * m.exp(m.only(x, x < 0) * input_scale)
    return m.only(g, ~(x <= 0)) * scale + curved


def _elu(xp, x, alpha, scale, input_scale):
    bend = xp.expm1(xp.minimum(x, 0) * input_scale) * (alpha * scale)
    return xp.where(x <= 0, bend, x * scale)


def _plain_elu(input, alpha=1.0):
    return input, alpha, 1, 1


@takes_inplace
@op(x=_elu_back, fused=blocked(_elu_back), prepare=_plain_elu, wide=True)
def elu(xp, x, *, alpha, scale, input_scale):
    """x where x > 0, else alpha * (e^x - 1).

    Derivative  alpha at 0
    Source      Clevert, Unterthiner, Hochreiter 2016, arXiv:1511.07289, equation 15
    """
    refuse("elu_cpu", x, "biuc")
    return in_blocks(xp, lambda x: _elu(xp, x, alpha, scale, input_scale), x)


elu_ = inplace_form(TABLE["elu"].call)

SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


@takes_inplace
def selu(input):
    """scale * x where x > 0, else scale * alpha * (e^x - 1), with the two constants that keep mean 0 and variance 1.

    Source      Klambauer et al. 2017, arXiv:1706.02515, equation 2
    """
    return TABLE["elu"].raw(input, alpha=SELU_ALPHA, scale=SELU_SCALE, input_scale=1)


selu_ = inplace_form(selu)


@takes_inplace
def celu(input, alpha=1.0):
    """x where x > 0, else alpha * (e^(x / alpha) - 1).

    Raises      RuntimeError for alpha = 0
    Source      Barron 2017, arXiv:1704.07483
    """
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return TABLE["elu"].raw(input, alpha=alpha, scale=1, input_scale=1 / alpha)


celu_ = inplace_form(celu)


@takes_inplace
@op(x=lambda m, g, x, threshold: m.only(m.tied(g, x), ~(x <= threshold)))
def threshold(xp, x, *, threshold, value):
    """x where x > threshold, else value.

    Derivative  0 at the threshold
    """
    refuse("threshold_cpu", x, "bc")
    return xp.where(x <= threshold, xp.asarray(value).astype(x.dtype), x)


threshold_ = inplace_form(TABLE["threshold"].call)


def _per_channel(input, weight):
    """The weight in a shape that broadcasts along axis 1 of the input."""
    if weight.ndim > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}")
    if input.dtype is not weight.dtype:
        raise RuntimeError(f"prelu: Type promoting not supported. Got {input.dtype.legacy} and {weight.dtype.legacy}")
    count = weight.array.size
    if count != 1:
        if input.ndim == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = input.shape[1] if input.ndim > 1 else 1
        if count != channels:
            raise RuntimeError(
                f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {count} and channel "
                f"size = {channels}."
            )
    if input.ndim == 0:
        return input, weight.reshape(())
    return input, weight.reshape([1, count] + [1] * (input.ndim - 2) if input.ndim > 1 else [count])


@op(
    x=lambda m, g, x, w: m.only(m.tied(g, x), x > 0) + m.only(g, ~(x > 0)) * w,
    w=lambda m, g, x: m.only(g * x, ~(x > 0)),
    prepare=_per_channel,
    broadcast=True,
    node="PreluKernel",
)
def prelu(xp, x, w):
    """x where x > 0, else weight * x, one weight for all or one a channel (axis 1).

    Shapes      input any, weight [C], [1] or []
    Derivative  by input: weight at 0
    Raises      RuntimeError where count of weights or dtypes do not fit
    """
    return xp.where(x > 0, x, x * w)


@takes_inplace
def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False):
    """x where x > 0, else slope * x: a slope drawn evenly from [lower, upper) a element, or in evaluation their mean.

    Raises      RuntimeError for lower above upper
    """
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not training:
        return TABLE["leaky_relu"].raw(input, negative_slope=(lower + upper) / 2)
    from .random import rand_like

    refuse("rrelu_with_noise_out_cpu", input.array, "biuc")
    slope = rand_like(input) * (upper - lower) + lower
    return input * slope.masked_fill(input.detach() > 0, 1)


rrelu_ = inplace_form(rrelu)


# ---- two bends


def _within(m, g, x, low, high):
    return m.only(m.tied(g, x), ~((x <= low) | (x >= high)))


def _limits(input, min_val=-1.0, max_val=1.0):
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return input, min_val, max_val


@takes_inplace
@op(x=lambda m, g, x, min_val, max_val: _within(m, g, x, min_val, max_val), prepare=_limits, wide=True)
def hardtanh(xp, x, *, min_val, max_val):
    """x clamped to [min_val, max_val].

    Derivative  0 at both bounds
    Raises      ValueError for min_val above max_val, RuntimeError for bool, for unsigned with negative bounds

    >>> cudagrad.nn.functional.hardtanh(cudagrad.tensor([-2.0, 0.5, 2.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    kind = x.dtype.kind
    if kind == "b":
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if kind == "u" and min_val < 0:
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    refuse("hardtanh_cpu", x, "c")
    if kind in "iu":
        min_val, max_val = int(min_val), int(max_val)
    return xp.minimum(xp.maximum(x, min_val), max_val)


hardtanh_ = inplace_form(TABLE["hardtanh"].call)


@takes_inplace
def relu6(input):
    """min(max(x, 0), 6), with derivative 0 at 0 and 6."""
    return TABLE["hardtanh"].raw(input, min_val=0, max_val=6)


@takes_inplace
@op(x=lambda m, g, x: _within(m, g, x, -3, 3) * (1 / 6), wide=True)
def hardsigmoid(xp, x):
    """min(max(x + 3, 0), 6) / 6.

    Derivative  0 at -3 and 3
    """
    refuse("hardsigmoid_cpu", x, "biuc")
    return in_blocks(xp, lambda x: xp.minimum(xp.maximum(x + 3, 0), 6) / 6, x)


def _hardswish_back(m, g, x):
    return m.only(g * (x * (1 / 3) + 0.5), ~((x <= -3) | (x >= 3))) + m.only(g, x >= 3)


@takes_inplace
@op(x=_hardswish_back, wide=True)
def hardswish(xp, x):
    """x * min(max(x + 3, 0), 6) / 6.

    Derivative  0 at -3, 1 at 3
    Source      Howard et al. 2019, arXiv:1905.02244, section 5.2
    """
    refuse("hardswish_cpu", x, "biuc")
    return in_blocks(xp, lambda x: x * xp.minimum(xp.maximum(x + 3, 0), 6) / 6, x)


def _softshrink_limit(input, lambd=0.5):
    from ..dtypes import finfo

    refuse("softshrink_check", input.array, "biuc")
    largest = finfo(input.dtype).max
    if not 0 <= lambd <= largest:
        raise RuntimeError(
            f"lambda must be in range [0, {largest:g}] for input dtype {input.dtype.legacy}, but found {lambd:g}"
        )
    return input, lambd


@op(
    x=lambda m, g, x, lambd: m.only(m.tied(g, x), ~((x >= -lambd) & (x <= lambd))), prepare=_softshrink_limit, wide=True
)
def softshrink(xp, x, *, lambd):
    """x - lambd where x > lambd, x + lambd where x < -lambd, else 0.

    Derivative  0 at the bounds
    Raises      RuntimeError for a negative lambd
    """
    return in_blocks(xp, lambda x: x - xp.minimum(xp.maximum(x, -lambd), lambd), x)


@op(x=lambda m, g, x, lambd: m.only(m.tied(g, x), ~((x >= -lambd) & (x <= lambd))))
def hardshrink(xp, x, *, lambd=0.5):
    """x where |x| > lambd, else 0.

    Derivative  0 at the bounds
    """
    refuse("hardshrink_cpu", x, "biuc")
    return xp.where((x >= -lambd) & (x <= lambd), xp.zeros((), x.dtype), x)


# ---- halves


def glu(input, dim=-1):
    """a * sigmoid(b), with a and b the two halves of input along ``dim``.

    Raises      RuntimeError where that axis is odd
    Source      Dauphin et al. 2017, arXiv:1612.08083
    """
    if input.ndim == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    size = input.size(dim)
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim % input.ndim} is size {size}")
    refuse("glu_cpu", input.array, "biu")
    half = size // 2
    return input.narrow(dim, 0, half) * input.narrow(dim, half, half).sigmoid()
