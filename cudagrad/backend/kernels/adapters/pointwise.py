"""Functions of elements: each op's formula in C++, run by kernels/elementwise.cu; pointwise.cuh has what they name."""

import numpy as np

from ..elementwise import compute
from ..launch import Rather
from .common import is_float

BOOL = np.dtype(bool)


def _forward(formula, *options, out=None):
    """The adapter of an op that is ``formula`` of its tensors x0, x1, ... and of the ``options`` n0, n1, ...

    What comes out has the dtype of the last tensor, or that of ``out``.
    """

    formula = f"y0 = {formula}"

    def serve(run, xp, *arrays, **given):
        last = arrays[-1]
        _only_floats(last)
        numbers = _numbers([given[name] for name in options]) if options else ()
        return compute(run, xp, formula, arrays, (out or last.dtype,), numbers)[0]

    return serve


def _only_floats(a):
    if not is_float(a):
        raise Rather(f"no kernel is meant for {a.dtype}")


def _numbers(values):
    """Options as numbers a kernel takes; what else the op may be given, its own text judges."""
    if any(v.__class__ is not float and (v.__class__ is not int or abs(v) > 2**53) for v in values):
        raise Rather(f"{values} are not all float, or int that a float can be")
    return values


# ---- forward

_SAME = {
    "neg": "-x0",
    "abs": "fabs(x0)",
    "exp": "exp(x0)",
    "expm1": "expm1(x0)",
    "log": "log(x0)",
    "log1p": "log1p(x0)",
    "sin": "sin(x0)",
    "cos": "cos(x0)",
    "tanh": "tanh(x0)",
    "erf": "erf(x0)",
    "sqrt": "sqrt(x0)",
    "rsqrt": "1 / sqrt(x0)",
    "reciprocal": "1 / x0",
    "square": "x0 * x0",
    "sigmoid": "sigmoid(x0)",
    "relu": "largest(x0, 0)",
    "silu": "silu(x0)",
    "mish": "mish(x0)",
    "softplus_of": "softplus(x0)",
    "logsigmoid": "-softplus(-x0)",
    "gelu_exact": "gelu(x0)",
    "gelu_tanh": "gelu_tanh(x0)",
    "mul": "x0 * x1",
    "true_divide": "x0 / x1",
    "maximum": "largest(x0, x1)",
    "minimum": "smallest(x0, x1)",
    "where": "x0 != 0 ? x1 : x2",
}
_COMPARED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_POWERS = {
    1: "x0",
    2: "x0 * x0",
    3: "x0 * x0 * x0",
    4: "(x0 * x0) * (x0 * x0)",
    0.5: "sqrt(x0)",
    -0.5: "1 / sqrt(x0)",
    -1: "1 / x0",
    -2: "1 / (x0 * x0)",
}


def _power_number(run, xp, x, *, exponent):
    formula = _POWERS.get(exponent)
    if formula is None:
        raise Rather(f"no kernel is meant for the power {exponent}")
    return _forward(formula)(run, xp, x)


def _clamp_number(run, xp, x, *, low, high):
    return _bounded(run, xp, x, ["n0", "n1"], low, high, ())


def _clamp_tensor(run, xp, x, low=None, high=None):
    given = [a for a in (low, high) if a is not None]
    return _bounded(run, xp, x, ["x1", f"x{len(given)}"], low, high, given)


def _bounded(run, xp, x, names, low, high, arrays):
    formula = "x0" if low is None else f"largest(x0, {names[0]})"
    formula = formula if high is None else f"smallest({formula}, {names[1]})"
    numbers = () if arrays else _numbers([0 if v is None else v for v in (low, high)])
    _only_floats(x)
    return compute(run, xp, f"y0 = {formula}", (x, *arrays), (x.dtype,), numbers)[0]


def _to(run, xp, x, *, dtype, source=None):
    if dtype.kind == "c":
        raise Rather(f"no kernel is meant for {dtype}")
    return compute(run, xp, "y0 = x0", (x,), (dtype,))[0]


def _only(run, xp, x, mask):
    _only_floats(x)
    return compute(run, xp, "y0 = x1 != 0 ? x0 : 0", (x, mask), (x.dtype,))[0]


FORWARD = {op: _forward(formula) for op, formula in _SAME.items()}
FORWARD |= {op: _forward(f"x0 {sign} x1", out=BOOL) for op, sign in _COMPARED.items()}
FORWARD |= {
    "add": _forward("x0 + x1 * n0", "alpha"),
    "sub": _forward("x0 - x1 * n0", "alpha"),
    "addcmul": _forward("x0 + x1 * x2 * n0", "value"),
    "addcdiv": _forward("x0 + x1 / x2 * n0", "value"),
    "leaky_relu": _forward("x0 > 0 ? x0 : x0 * n0", "negative_slope"),
    "elu": _forward("elu(x0, n0, n1, n2)", "alpha", "scale", "input_scale"),
    "softplus": _forward("softplus(x0, n0, n1)", "beta", "threshold"),
    "power_number": _power_number,
    "clamp_number": _clamp_number,
    "clamp_tensor": _clamp_tensor,
    "to": _to,
    "only": _only,
}


# ---- in place


def _write(formula):
    """The adapter that writes ``formula`` of arrays into the first of them, which has their dtype and shape."""

    def serve(run, xp, *arrays):
        _only_floats(arrays[0])
        compute(run, xp, f"y0 = {formula}", arrays, (arrays[0],))

    return serve


WRITES = {
    "add": _write("x0 + x1"),
    "sub": _write("x0 - x1"),
    "mul": _write("x0 * x1"),
    "true_divide": _write("x0 / x1"),
}


# ---- first-order rules


def _rule(formula):
    """The adapter of a rule that is ``formula`` of its arrays x0 = g, x1, ... and of its options n0, n1, ...

    What comes out has the dtype of the last array: the op's input or output.
    """

    def serve(run, xp, *given):
        arrays = [v for v in given if isinstance(v, xp.ndarray)]
        numbers = _numbers([v for v in given if v.__class__ in (bool, int, float, complex)])
        _only_floats(arrays[-1])
        return compute(run, xp, f"y0 = {formula}", arrays, (arrays[-1].dtype,), numbers)

    return serve


FIRST_ORDER = {
    "relu": _rule("x1 != 0 ? x0 : 0"),
    "tanh": _rule("x0 * (1 - x1 * x1)"),
    "sigmoid": _rule("x0 * (1 - x1) * x1"),
    "leaky_relu": _rule("x1 > 0 ? x0 : x0 * n0"),
    "elu": _rule("x0 * elu_slope(x1, n0, n1, n2)"),
    "silu": _rule("x0 * silu_slope(x1)"),
    "mish": _rule("x0 * mish_slope(x1)"),
    "softplus": _rule("x0 * softplus_slope(x1, n0, n1)"),
    "logsigmoid": _rule("x0 * sigmoid(-x1)"),
    "gelu_exact": _rule("x0 * gelu_slope(x1)"),
    "gelu_tanh": _rule("x0 * gelu_tanh_slope(x1)"),
}
