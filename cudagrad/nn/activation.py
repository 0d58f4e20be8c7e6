"""Activation layers: each calls the function of its name."""

from ..core.node import warn
from ..ops import activation, pointwise, smooth
from ..ops.softmax import log_softmax, softmax, softmin
from . import init
from .linear import uninitialised
from .module import Module

__all__ = (
    *("ReLU", "SELU", "SiLU", "Mish", "Hardsigmoid", "Hardswish", "Sigmoid", "Tanh", "LogSigmoid", "Softsign"),
    *("Tanhshrink", "LeakyReLU", "ELU", "CELU", "Threshold", "RReLU", "Hardtanh", "ReLU6", "GELU", "Softplus"),
    *("Softshrink", "Hardshrink", "PReLU", "GLU", "Softmax", "LogSoftmax", "Softmin", "Softmax2d"),
)


class _Plain(Module):
    """An activation without settings."""

    function = None

    def forward(self, input):
        return type(self).function(input)


class _InPlace(Module):
    """An activation whose one setting is ``inplace``."""

    __constants__ = ["inplace"]
    function = None

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace

    def forward(self, input):
        return type(self).function(input, self.inplace)

    def extra_repr(self):
        return "inplace=True" if self.inplace else ""


class ReLU(_InPlace):
    """max(x, 0)."""

    function = activation.relu


class SELU(_InPlace):
    """elu with the scale and alpha that keep mean 0 and variance 1."""

    function = activation.selu


class SiLU(_InPlace):
    """x * sigmoid(x)."""

    function = smooth.silu


class Mish(_InPlace):
    """x * tanh(softplus(x))."""

    function = smooth.mish


class Hardsigmoid(_InPlace):
    """min(max(x + 3, 0), 6) / 6."""

    function = activation.hardsigmoid

    def extra_repr(self):
        return ""


class Hardswish(_InPlace):
    """x * min(max(x + 3, 0), 6) / 6."""

    function = activation.hardswish

    def extra_repr(self):
        return ""


class Sigmoid(_Plain):
    """1 / (1 + e^-x)."""

    function = pointwise.sigmoid


class Tanh(_Plain):
    """The hyperbolic tangent."""

    function = pointwise.tanh


class LogSigmoid(_Plain):
    """log(sigmoid(x))."""

    function = smooth.logsigmoid


class Softsign(_Plain):
    """x / (1 + |x|)."""

    function = smooth.softsign


class Tanhshrink(_Plain):
    """x - tanh(x)."""

    function = smooth.tanhshrink


def _with_inplace(text, inplace):
    return text + (", inplace=True" if inplace else "")


class LeakyReLU(Module):
    """x where x > 0, else negative_slope * x."""

    __constants__ = ["inplace", "negative_slope"]

    def __init__(self, negative_slope=1e-2, inplace=False):
        super().__init__()
        self.negative_slope, self.inplace = negative_slope, inplace

    def forward(self, input):
        return activation.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self):
        return _with_inplace(f"negative_slope={self.negative_slope}", self.inplace)


class ELU(Module):
    """x where x > 0, else alpha * (e^x - 1)."""

    __constants__ = ["alpha", "inplace"]

    def __init__(self, alpha=1.0, inplace=False):
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def forward(self, input):
        return activation.elu(input, self.alpha, self.inplace)

    def extra_repr(self):
        return _with_inplace(f"alpha={self.alpha}", self.inplace)


class CELU(Module):
    """x where x > 0, else alpha * (e^(x / alpha) - 1)."""

    __constants__ = ["alpha", "inplace"]

    def __init__(self, alpha=1.0, inplace=False):
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def forward(self, input):
        return activation.celu(input, self.alpha, self.inplace)

    def extra_repr(self):
        return _with_inplace(f"alpha={self.alpha}", self.inplace)


class Threshold(Module):
    """x where x > threshold, else value."""

    __constants__ = ["threshold", "value", "inplace"]

    def __init__(self, threshold, value, inplace=False):
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def forward(self, input):
        return activation.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self):
        return _with_inplace(f"threshold={self.threshold}, value={self.value}", self.inplace)


class RReLU(Module):
    """leaky_relu with a slope drawn from [lower, upper) a element; in evaluation their mean."""

    __constants__ = ["lower", "upper", "inplace"]

    def __init__(self, lower=1.0 / 8, upper=1.0 / 3, inplace=False):
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input):
        return activation.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self):
        return _with_inplace(f"lower={self.lower}, upper={self.upper}", self.inplace)


class Hardtanh(Module):
    """x clamped to [min_val, max_val].

    Raises      AssertionError for max_val <= min_val
    """

    __constants__ = ["min_val", "max_val", "inplace"]

    def __init__(self, min_val=-1.0, max_val=1.0, inplace=False, min_value=None, max_value=None):
        super().__init__()
        if min_value is not None:
            _renamed("min_value", "min_val")
            min_val = min_value
        if max_value is not None:
            _renamed("max_value", "max_val")
            max_val = max_value
        self.min_val, self.max_val, self.inplace = min_val, max_val, inplace
        if not max_val > min_val:
            raise AssertionError(f"max_val ({max_val}) must be greater than min_val ({min_val})")

    def forward(self, input):
        return activation.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self):
        return _with_inplace(f"min_val={self.min_val}, max_val={self.max_val}", self.inplace)


def _renamed(old, new):
    warn(f"keyword argument `{old}` is deprecated and renamed to `{new}`", FutureWarning)


class ReLU6(Hardtanh):
    """min(max(x, 0), 6)."""

    def __init__(self, inplace=False):
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self):
        return "inplace=True" if self.inplace else ""


class GELU(Module):
    """x * Phi(x), Phi the normal distribution function; "tanh" approximates it."""

    __constants__ = ["approximate"]

    def __init__(self, approximate="none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, input):
        return smooth.gelu(input, approximate=self.approximate)

    def extra_repr(self):
        return f"approximate={self.approximate!r}"


class Softplus(Module):
    """log(1 + e^(beta * x)) / beta, and x where beta * x > threshold."""

    __constants__ = ["beta", "threshold"]

    def __init__(self, beta=1.0, threshold=20.0):
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input):
        return smooth.softplus(input, self.beta, self.threshold)

    def extra_repr(self):
        return f"beta={self.beta}, threshold={self.threshold}"


class Softshrink(Module):
    """x moved by lambd towards 0, and 0 where |x| <= lambd."""

    __constants__ = ["lambd"]

    def __init__(self, lambd=0.5):
        super().__init__()
        self.lambd = lambd

    def forward(self, input):
        return activation.softshrink(input, self.lambd)

    def extra_repr(self):
        return str(self.lambd)


class Hardshrink(Module):
    """x where |x| > lambd, else 0."""

    __constants__ = ["lambd"]

    def __init__(self, lambd=0.5):
        super().__init__()
        self.lambd = lambd

    def forward(self, input):
        return activation.hardshrink(input, self.lambd)

    def extra_repr(self):
        return f"{self.lambd}"


class PReLU(Module):
    """x where x > 0, else weight * x: one learnt weight, or one a channel (axis 1).

    Init        weight = init
    """

    __constants__ = ["num_parameters"]

    def __init__(self, num_parameters=1, init=0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = uninitialised((num_parameters,), device, dtype)
        self.reset_parameters()

    def reset_parameters(self):
        """Set every weight to ``init``."""
        init.constant_(self.weight, self.init)

    def forward(self, input):
        return activation.prelu(input, self.weight)

    def extra_repr(self):
        return f"num_parameters={self.num_parameters}"


class GLU(Module):
    """a * sigmoid(b), a and b the halves of the input along ``dim``."""

    __constants__ = ["dim"]

    def __init__(self, dim=-1):
        super().__init__()
        self.dim = dim

    def forward(self, input):
        return activation.glu(input, self.dim)

    def extra_repr(self):
        return f"dim={self.dim}"


class _Along(Module):
    """A function along ``dim``; without one it is guessed, with PyTorch's warning."""

    __constants__ = ["dim"]
    function = None

    def __init__(self, dim=None):
        super().__init__()
        self.dim = dim

    def forward(self, input):
        return type(self).function(input, self.dim)

    def extra_repr(self):
        return f"dim={self.dim}"


class Softmax(_Along):
    """e^x[i] / sum_j e^x[j] along ``dim``."""

    function = softmax


class LogSoftmax(_Along):
    """The logarithm of the softmax along ``dim``."""

    function = log_softmax


class Softmin(_Along):
    """The softmax of -x along ``dim``."""

    function = softmin


class Softmax2d(Module):
    """The softmax over the channels of [N,C,H,W] or [C,H,W].

    Raises      ValueError for other numbers of dimensions
    """

    def forward(self, input):
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return softmax(input, -3)
