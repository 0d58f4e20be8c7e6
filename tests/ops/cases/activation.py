"""Activations: values on both sides of every bend, and the bends themselves without derivatives."""

import math

import numpy as np

from . import Error, Input, case

SIDES = np.array([-30.0, -8.0, -3.5, -2.9, -1.1, -0.6, -0.4, -0.1, 0.1, 0.4, 0.6, 1.1, 2.9, 3.5, 5.9, 6.1, 21.0, 30.0])
BENDS = np.array([-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 6.0])
EXTREMES = np.array([-math.inf, -200.0, 200.0, math.inf, math.nan])
MANY = np.resize(SIDES, (300, 500))  # over many blocks
LONGS = np.array([1, -2])


def kernel(name):
    return Error(NotImplementedError, f"\"{name}\" not implemented for 'Long'", LONGS)


def each(name, ref, *more, error=None, options=({},), extremes=True, **facts):
    """A row of an activation: its options, its sides, its bends, what is far out."""
    name = "nn.functional." + name
    calls = [Input(SIDES, **o) for o in options] + [Input((2, 3), **options[0])]
    case(name, ref, *calls, *more, *([kernel(error)] if error else []), pointwise=True, **facts)
    case(name, ref, *(Input(BENDS, **o) for o in options), grad=0, **facts)
    if extremes:
        case(name, ref, Input(EXTREMES, **options[0]), grad=0, low=False)
    case(name, ref, Input(MANY, **options[0]), grad=1, low=False)


def erf(x):
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus_of(x):
    return np.logaddexp(x, 0)


for name in ("relu", "nn.functional.relu", "Tensor.relu"):
    case(name, lambda x: np.maximum(x, 0), Input(SIDES), pointwise=True, ints=True)
    case(name, lambda x: np.maximum(x, 0), Input(BENDS), Input(EXTREMES), Input(MANY), grad=0)
    case(name, None, Error(RuntimeError, "Boolean inputs not supported for relu", np.array([True])))
each("relu6", lambda x: np.clip(x, 0, 6), ints=True)
each(
    "leaky_relu",
    lambda x, negative_slope=0.01: np.where(x > 0, x, x * negative_slope),
    error="leaky_relu_cpu",
    options=({}, {"negative_slope": 0.3}, {"negative_slope": 2.0}, {"negative_slope": -1.0}),
)
each(
    "elu",
    lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(x)),
    error="elu_cpu",
    options=({}, {"alpha": 2.0}, {"alpha": -0.5}),
)
for name in ("celu", "nn.functional.celu"):
    case(
        name,
        lambda x, alpha=1.0: np.maximum(x, 0) + np.minimum(0, alpha * np.expm1(x / alpha)),
        *(Input(SIDES), Input(SIDES, alpha=0.5)),
        Error(RuntimeError, "ZeroDivisionError: alpha cannot be 0 for CELU", (2,), alpha=0.0),
        kernel("elu_cpu"),
        pointwise=True,
    )
ALPHA, SCALE = 1.6732632423543772, 1.0507009873554805
for name in ("selu", "nn.functional.selu"):
    case(
        name, lambda x: SCALE * np.where(x > 0, x, ALPHA * np.expm1(x)), Input(SIDES), kernel("elu_cpu"), pointwise=True
    )


def gelu(x, approximate="none"):
    if approximate == "none":
        return x * 0.5 * (1 + erf(x / math.sqrt(2)))
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


each(
    "gelu",
    gelu,
    Error(RuntimeError, "approximate argument must be either none or tanh.", (2,), approximate="x"),
    error="GeluKernelImpl",
    options=({}, {"approximate": "tanh"}),
    extremes=False,
)
each("silu", lambda x: x * sigmoid(x), error="silu_cpu", extremes=False)
each("mish", lambda x: x * np.tanh(softplus_of(x)), error="mish_cpu", extremes=False)


def softplus(x, beta=1.0, threshold=20.0):
    return np.where(x * beta > threshold, x, softplus_of(x * beta) / beta)


each("softplus", softplus, error="softplus_cpu", options=({}, {"beta": 2.0, "threshold": 5.0}))
each("logsigmoid", lambda x: -softplus_of(-x), error="log_sigmoid_cpu")
each("softsign", lambda x: x / (1 + np.abs(x)), extremes=False)
each("tanhshrink", lambda x: x - np.tanh(x), extremes=False)
each(
    "softshrink",
    lambda x, lambd=0.5: np.where(x > lambd, x - lambd, np.where(x < -lambd, x + lambd, x * 0)),
    Error(RuntimeError, "lambda must be in range [0, 3.40282e+38] for input dtype Float, but found -1", (2,), lambd=-1),
    error="softshrink_check",
    options=({}, {"lambd": 2.0}),
    extremes=False,
)
for name in ("hardshrink", "nn.functional.hardshrink", "Tensor.hardshrink"):
    case(
        name,
        lambda x, lambd=0.5: np.where(np.abs(x) > lambd, x, 0),
        *(Input(SIDES), Input(SIDES, lambd=2.0)),
        kernel("hardshrink_cpu"),
        pointwise=True,
    )
each(
    "hardtanh",
    lambda x, min_val=-1.0, max_val=1.0: np.clip(x, min_val, max_val),
    Error(ValueError, "min_val cannot be greater than max_val", (2,), 2, 1),
    Error(RuntimeError, "Bool inputs not supported for hardtanh", np.array([True])),
    Error(RuntimeError, "cannot do hardtanh on an unsigned type with negative limits", np.array([1], np.uint8)),
    options=({}, {"min_val": -2, "max_val": 2.5}),
)
each("hardsigmoid", lambda x: np.clip(x + 3, 0, 6) / 6, error="hardsigmoid_cpu")
each("hardswish", lambda x: x * np.clip(x + 3, 0, 6) / 6, error="hardswish_cpu", extremes=False)
for name in ("threshold", "nn.functional.threshold"):
    case(
        name,
        lambda x, threshold, value: np.where(x > threshold, x, value),
        Input(SIDES, 0.5, 9.0),
        Input(BENDS + 0.02, threshold=0.51, value=-1),
        pointwise=True,
    )
for name in ("rrelu", "nn.functional.rrelu"):
    case(
        name,
        lambda x, lower=1 / 8, upper=1 / 3: np.where(x > 0, x, x * (lower + upper) / 2),
        *(Input(SIDES), Input(SIDES, lower=0.1, upper=0.3)),
        Error(RuntimeError, "Lower bound should be less than or equal to the upper bound", (2,), 0.5, 0.1, True),
        kernel("leaky_relu_cpu"),
    )


def prelu(x, w):
    shape = [1] * x.ndim
    if w.size > 1:
        shape[1] = w.size
    return np.where(x > 0, x, x * w.reshape(shape))


for name in ("prelu", "nn.functional.prelu", "Tensor.prelu"):
    case(
        name,
        prelu,
        *(Input((2, 3), (3,)), Input((2, 3), (1,)), Input((3,), (1,)), Input((2, 3, 4), (3,)), Input((2, 3), ())),
        *(Input(np.array(0.7), (1,)), Input(np.array(-0.7), (1,))),
        Error(RuntimeError, "Found parameter numbers = 2 and channel size = 3.", (2, 3), (2,)),
        Error(RuntimeError, "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = 2", (2, 3), (3, 1)),
        Error(RuntimeError, "Not allow zero-dim input tensor.", (), (3,)),
    )
case(
    "nn.functional.glu",
    lambda x, dim=-1: (lambda a, b: a * sigmoid(b))(*np.split(x, 2, dim)),
    *(Input((2, 4)), Input((2, 4), 0), Input((2, 6, 3), dim=1), Input((2, 0))),
    Error(RuntimeError, "Halving dimension must be even, but dimension 1 is size 3", (2, 3)),
    Error(RuntimeError, "glu does not support scalars because halving size must be even", ()),
    Error(IndexError, "Dimension out of range (expected to be in range of [-2, 1], but got 3)", (2, 4), 3),
)
