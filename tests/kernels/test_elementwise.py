"""elementwise.cu on the emulated device: ops, rules and fused chains, against float64 NumPy from the definition."""

import math

import ml_dtypes
import numpy as np
import pytest

import cudagrad
from cudagrad.backend import emulated, emulator
from cudagrad.backend.kernels import elementwise, layout, nvrtc
from cudagrad.backend.kernels.adapters import pointwise
from cudagrad.backend.kernels.launch import Rather, plan
from cudagrad.core.tensor import wrap
from cudagrad.tools import where

from ..double import installed
from .common import DTYPES, EPS, askew, every_second, host, made, needs_compiler, needs_nvrtc, no_fallback, worst

pytestmark = no_fallback

F = cudagrad.nn.functional
BOOL, DOUBLE = np.dtype(bool), np.dtype("f8")
ALL = {**DTYPES, "float64": DOUBLE}


def on_device(a):
    return wrap(a.view(emulated.EmulatedArray))


def wide(a):
    return a.astype(np.float64)


def computed(formula, inputs, *outputs, numbers=()):
    return elementwise.compute(emulated.run, np, formula, inputs, outputs, numbers)


# ---- every op

erf = np.vectorize(math.erf, otypes=[float])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)


def elu(x, alpha):
    return np.where(x <= 0, alpha * np.expm1(np.minimum(x, 0)), x)


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


# op -> (what is called on tensors, the definition); the counts of arguments are those of the definition
OPS = {
    "neg": (lambda x: -x, np.negative),
    "abs": (cudagrad.abs, np.abs),
    "exp": (cudagrad.exp, np.exp),
    "expm1": (cudagrad.expm1, np.expm1),
    "log": (lambda x: cudagrad.log(x.abs()), lambda x: np.log(np.abs(x))),
    "log1p": (lambda x: cudagrad.log1p(x.abs()), lambda x: np.log1p(np.abs(x))),
    "sin": (cudagrad.sin, np.sin),
    "cos": (cudagrad.cos, np.cos),
    "tanh": (cudagrad.tanh, np.tanh),
    "erf": (cudagrad.erf, erf),
    "sqrt": (lambda x: cudagrad.sqrt(x.abs()), lambda x: np.sqrt(np.abs(x))),
    "rsqrt": (lambda x: cudagrad.rsqrt(x.abs()), lambda x: 1 / np.sqrt(np.abs(x))),
    "reciprocal": (cudagrad.reciprocal, lambda x: 1 / x),
    "square": (cudagrad.square, np.square),
    "sigmoid": (cudagrad.sigmoid, sigmoid),
    "relu": (F.relu, lambda x: np.maximum(x, 0)),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.1), lambda x: np.where(x > 0, x, 0.1 * x)),
    "elu": (lambda x: F.elu(x, 1.5), lambda x: elu(x, 1.5)),
    "silu": (F.silu, lambda x: x * sigmoid(x)),
    "mish": (F.mish, lambda x: x * np.tanh(softplus(x))),
    "softplus": (lambda x: F.softplus(x, 2, 3), lambda x: np.where(2 * x > 3, x, softplus(2 * x) / 2)),
    "softplus_of": (cudagrad.ops.smooth.TABLE["softplus_of"].raw, softplus),
    "logsigmoid": (F.logsigmoid, lambda x: -softplus(-x)),
    "gelu_exact": (F.gelu, lambda x: x * 0.5 * (1 + erf(x / math.sqrt(2)))),
    "gelu_tanh": (lambda x: F.gelu(x, "tanh"), gelu_tanh),
    "add": (lambda x, y: cudagrad.add(x, y, alpha=2), lambda x, y: x + 2 * y),
    "sub": (lambda x, y: x - y, np.subtract),
    "mul": (lambda x, y: x * y, np.multiply),
    "true_divide": (lambda x, y: x / y, np.divide),
    "maximum": (cudagrad.maximum, np.maximum),
    "minimum": (cudagrad.minimum, np.minimum),
    "where": (lambda x, y: cudagrad.where(x > 0, x, y), lambda x, y: np.where(x > 0, x, y)),
    "only": (lambda x, y: cudagrad.ops.masks.only(x, y < 0), lambda x, y: np.where(y < 0, x, 0)),
    "addcmul": (lambda x, y: cudagrad.addcmul(x, x, y, value=0.5), lambda x, y: x + 0.5 * x * y),
    "addcdiv": (lambda x, y: cudagrad.addcdiv(x, x, y, value=0.5), lambda x, y: x + 0.5 * x / y),
    "clamp_number": (lambda x: x.clamp(-0.5, 0.25), lambda x: np.clip(x, -0.5, 0.25)),
    "clamp_tensor": (lambda x, y: x.clamp(min=y), np.maximum),
    "power_number": (lambda x: x**3, lambda x: x**3),
    "to": (lambda x: x.double(), lambda x: x),
    "eq": (lambda x, y: x == x.clone(), lambda x, y: x == x),
    "ne": (lambda x, y: x != y, np.not_equal),
    "lt": (lambda x, y: x < y, np.less),
    "le": (lambda x, y: x <= y, np.less_equal),
    "gt": (lambda x, y: x > y, np.greater),
    "ge": (lambda x, y: x >= y, np.greater_equal),
}


def test_every_op_that_has_a_formula_is_tested():
    assert set(OPS) == set(pointwise.FORWARD)


def arity(definition):
    return definition.__code__.co_argcount if hasattr(definition, "__code__") else getattr(definition, "nin", 1)


def served(name, call, *given):
    """Whether the kernel served op ``name`` of the call."""
    return {r.op: r.code for r in where(call, *given)}[name] == "kernels/elementwise.cu elementwise"


def check_op(name, *inputs):
    """The op on the device, of its inputs' very dtype or bool, is the definition of the same numbers in float64."""
    call, definition = OPS[name]
    tensors = [on_device(a) for a in inputs]
    dtype, size = inputs[0].dtype, max(a.size for a in inputs)
    assert served(name, call, *tensors) or not size
    with np.errstate(all="ignore"):
        expected = np.asarray(definition(*(a.astype(np.float64) for a in inputs)))
    got = call(*tensors)
    assert got.array.dtype == (BOOL if expected.dtype == BOOL else DOUBLE if name == "to" else dtype)
    assert got.shape == expected.shape
    room = 0 if expected.dtype == BOOL else 4 * EPS[dtype.name]
    off = np.abs(host(got).astype(np.float64) - expected.astype(np.float64))
    assert (off <= room * np.maximum(1, np.abs(expected))).all()


@needs_compiler
@pytest.mark.parametrize("name", OPS)
def test_ops_are_their_definition(name):
    check_op(name, *(made(seed, (3, 7)) for seed in range(arity(OPS[name][1]))))


@needs_compiler
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
@pytest.mark.parametrize("name", ["mul", "gelu_exact", "where", "lt"])
def test_ops_of_other_floating_dtypes(name, dtype):
    check_op(name, *(made(seed, (5, 33), ALL[dtype]) for seed in range(arity(OPS[name][1]))))


@needs_compiler
def test_casts_round_once_to_the_nearest():
    x = made(1, (3, 37)) * 1000
    pairs = [("float16", "float64"), ("float64", "float16"), ("bfloat16", "float32"), ("float64", "bfloat16")]
    for before, after in pairs:
        a = x.astype(ALL[before])
        assert np.array_equal(host(wrap_to(a, after)), a.astype(ALL[after])), (before, after)
    assert np.array_equal(host(wrap_to(x > 0, "float32")), (x > 0).astype(np.float32))


def wrap_to(a, name):
    t = on_device(a)
    assert served("to", t.to, getattr(cudagrad, name))
    return t.to(getattr(cudagrad, name))


# 1 element, 1 row, 1 column, ragged, packs cut short, powers of two and their neighbours, more than a grid, empty, 0-d.
SHAPES = [(), (1,), (1, 9), (9, 1), (3, 5), (127,), (128,), (129,), (4, 1024), (1023,), (70000,), (5, 7, 3), (3, 0, 2)]


@needs_compiler
@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_shapes(shape, dtype):
    x, y = made(1, shape, ALL[dtype]), made(2, shape, ALL[dtype])
    (z,) = computed("y0 = x0 * x1", (x, y), x.dtype)
    assert z.shape == shape and np.array_equal(z, x * y)


LAYOUTS = {
    "askew": askew,
    "every second": every_second,
    "Fortran": np.asfortranarray,
    "turned": lambda a: np.ascontiguousarray(a.transpose(2, 0, 1)).transpose(1, 2, 0),
    "a window": lambda a: np.pad(a, 2)[2:-2, 2:-2, 2:-2],
    "backwards": lambda a: np.ascontiguousarray(a[:, ::-1])[:, ::-1],
    "one row": lambda a: np.broadcast_to(a[:1, :1], a.shape),
    "one column": lambda a: np.broadcast_to(a[..., :1], a.shape),
    "one number": lambda a: np.broadcast_to(a[0, 0, 0], a.shape),
}


@needs_compiler
@pytest.mark.parametrize("first", LAYOUTS)
@pytest.mark.parametrize("shape", [(5, 6, 8), (3, 2, 7)], ids=str)
def test_any_layout_beside_any_other(first, shape):
    """Packs where rows are contiguous and even, single elements elsewhere, checked for every access."""
    x = LAYOUTS[first](made(1, shape))
    for second, laid_out in LAYOUTS.items():
        y = laid_out(made(2, shape))
        with emulator.settings(check=second in ("askew", "one row")):
            (z,) = computed("y0 = x0 * x1", (x, y), x.dtype)
        assert np.array_equal(z, x * y), second


@needs_compiler
def test_the_result_lies_in_memory_as_its_input_does():
    x = made(1, (4, 5, 6)).transpose(2, 0, 1)
    for y in (x + 1, made(2, (5,)), np.ones((), np.float32)):
        assert computed("y0 = x0 * x1", (x, y), x.dtype)[0].strides == (x * y).strides == x.strides


@needs_compiler
@pytest.mark.parametrize(
    "shapes", [((5, 1), (1, 7)), ((3, 1, 4), (2, 1)), ((), (6,)), ((8, 16), (16,)), ((0, 4), (1,))], ids=str
)
def test_inputs_broadcast(shapes):
    x, y = (made(i, shape) for i, shape in enumerate(shapes))
    assert np.array_equal(computed("y0 = x0 + x1", (x, y), x.dtype)[0], x + y)


@needs_compiler
def test_more_dims_than_the_kernel_has_and_more_elements_than_it_counts(monkeypatch):
    x = made(1, (2,) * 20)[(slice(None), slice(1)) * 10]  # nothing merges in ten dims of two
    assert np.array_equal(computed("y0 = -x0", (x,), x.dtype)[0], -x)
    monkeypatch.setattr(layout, "MOST_UNITS", 100)
    monkeypatch.setattr(elementwise, "_CALLS", {})
    x, row = made(1, (37, 5, 24)), made(2, 24)
    assert np.array_equal(computed("y0 = x0 + x1", (x, row), x.dtype)[0], x + row)


def test_division_by_multiplication_is_exact():
    rng = np.random.default_rng(0)
    near = [2**k + d for k in range(7, 31) for d in (-1, 0, 1)]
    for size in [*range(1, 70), *near, 2**31 - 1, *rng.integers(1, 2**31, 200).tolist()]:
        multiplier, shift = layout._divisor(size)
        assert 0 < multiplier < 2**32 and shift < 32
        numbers = [0, 1, size - 1, size, 2**31 - 1, *(k * size + d for k in (2, (2**31 - 1) // size) for d in (-1, 0))]
        for number in [n for n in numbers if 0 <= n < 2**31] + rng.integers(0, 2**31, 20).tolist():
            assert (number * multiplier // 2**32 + number) >> shift == number // size, (number, size)


# ---- what floating numbers are besides numbers

SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, -3e38, 88.0, -104.0], np.float32)


@needs_compiler
@pytest.mark.parametrize("name", sorted(set(OPS) - {"addcdiv"}))
def test_nans_infinities_and_zeros_are_those_of_the_ops_text(name):
    """Signs of zeros too, but where NumPy itself leaves them open: the larger of 0 and -0."""
    call, definition = OPS[name]
    x, y = (a.reshape(-1) for a in np.meshgrid(SPECIAL, SPECIAL))
    inputs = (x, y)[: arity(definition)]
    got = host(call(*map(on_device, inputs)))
    with np.errstate(all="ignore"):
        expected = call(*map(wrap, inputs)).array
    assert np.allclose(got, expected, rtol=1e-5, atol=1e-37, equal_nan=True)
    if name not in ("maximum", "minimum", "clamp_tensor", "relu", "elu", "only"):
        numbers = ~np.isnan(expected)
        assert np.array_equal(np.signbit(got)[numbers], np.signbit(expected)[numbers])


@needs_compiler
def test_what_no_kernel_is_meant_for_is_the_texts_affair_in_strict_mode_too():
    whole = np.arange(6).reshape(2, 3)
    complexes = whole + 1j
    for call in (lambda x: x + 2, lambda x: x * x, lambda x: -x, lambda x: x == 3, cudagrad.square):
        for a in (whole, complexes):
            assert np.array_equal(host(call(on_device(a))), call(wrap(a)).array)
    x = on_device(np.abs(made(1, (2, 3))))
    assert np.allclose(host(x**2.5), host(x) ** 2.5)
    with pytest.raises(RuntimeError, match="The size of tensor a"):
        x + on_device(made(1, (2, 4)))
    with pytest.raises(RuntimeError, match="Boolean alpha"):
        cudagrad.add(x, x, alpha=True)
    with pytest.raises(RuntimeError, match="Subtraction"):
        (x > 0) - (x < 0)


@needs_compiler
def test_a_number_keeps_the_tensors_dtype_and_a_wider_tensor_does_not():
    x, y = on_device(made(1, (4, 5), np.float16)), on_device(made(2, (4, 5)))
    for got, dtype in ((x * 0.1, "float16"), (2 - x, "float16"), (x + y, "float32"), (x > 1, "bool")):
        assert got.array.dtype.name == dtype


# ---- in place


@needs_compiler
def test_in_place_forms_are_one_launch(monkeypatch):
    launches = []
    monkeypatch.setattr(emulated.emulator, "run", lambda *given, run=emulator.run: (launches.append(1), run(*given)))
    whole, row = made(1, (4, 10)), made(2, 5)
    x = on_device(whole.copy())
    part = x[:, ::2]
    part.add_(on_device(row)), part.mul_(2.0), part.sub_(on_device(row)), part.div_(on_device(row))
    assert len(launches) == 4
    whole[:, ::2] = ((whole[:, ::2] + row) * 2 - row) / row
    assert np.array_equal(host(x), whole)  # what lies between is as it was
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        on_device(row.copy()).add_(part)


@needs_compiler
def test_in_place_on_parts_of_one_memory_reads_before_it_writes():
    x = made(1, (5, 8))
    t = on_device(x.copy())
    t[:, 1:].add_(t[:, :-1])
    x[:, 1:] += x[:, :-1].copy()
    assert np.array_equal(host(t), x)


@needs_compiler
@pytest.mark.parametrize("device", ["cpu", "emulated"])
def test_views_made_one_by_one_are_still_of_one_memory(device):
    x = cudagrad.arange(10.0).to(device)
    x[::2][1:].add_(x[::2][:-1])
    assert x[::2].tolist() == [0, 2, 6, 10, 14]  # 0 2 4 6 8, each with the one before it
    for write in (lambda: x[1:].mul_(x[:-1]), lambda: x[1:].copy_(x[:-1]), lambda: x.detach()[1:].add_(x[:-1])):
        with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor refer"):
            write()


# ---- first-order rules


def step(f):
    """The derivative of an analytic function by a step off the real axis."""
    return lambda x: np.imag(f(x + 1e-30j)) / 1e-30


SLOPES = {
    "relu": lambda x: (x > 0) * 1.0,
    "leaky_relu": lambda x: np.where(x > 0, 1, 0.1),
    "elu": lambda x: np.where(x <= 0, 1.5 * np.exp(x), 1),
    "tanh": step(np.tanh),
    "sigmoid": step(sigmoid),
    "silu": step(lambda x: x * sigmoid(x)),
    "mish": step(lambda x: x * np.tanh(np.log(1 + np.exp(x)))),
    "softplus": lambda x: np.where(2 * x > 3, 1, sigmoid(2 * x)),
    "logsigmoid": lambda x: sigmoid(-x),
    "gelu_exact": lambda x: 0.5 * (1 + erf(x / math.sqrt(2))) + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi),
    "gelu_tanh": step(gelu_tanh),
}


def test_every_rule_is_tested():
    assert set(SLOPES) == set(pointwise.FIRST_ORDER)


def check_rule(name, dtype, shape):
    x, g = made(1, shape, dtype), made(2, shape, dtype)
    t = on_device(x).requires_grad_()
    y = OPS[name][0](t)
    launches = []
    real = emulator.run
    emulated.emulator.run = lambda *given: (launches.append(1), real(*given))
    try:
        y.backward(on_device(g))
    finally:
        emulated.emulator.run = real
    assert len(launches) == 1, "a rule is one launch"
    expected = g.astype(np.float64) * SLOPES[name](x.astype(np.float64))
    assert t.grad.array.dtype == dtype and worst(host(t.grad), expected) < 8 * EPS[dtype.name]


@needs_compiler
@pytest.mark.parametrize("name", SLOPES)
def test_rules_are_the_derivative(name):
    check_rule(name, np.dtype("f4"), (6, 37))


@needs_compiler
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
@pytest.mark.parametrize("name", ["gelu_exact", "silu"])
def test_rules_of_other_floating_dtypes(name, dtype):
    check_rule(name, ALL[dtype], (3, 64))


@needs_compiler
def test_a_rule_reads_a_gradient_of_another_precision():
    x, g = made(1, (4, 9), np.float16), made(2, (4, 9))
    rule = pointwise.FIRST_ORDER["silu"]
    (dx,) = rule(emulated.run, np, g, x)
    assert dx.dtype == np.float16 and worst(dx, g * SLOPES["silu"](x.astype(np.float64))) < 4 * EPS["float16"]


@needs_compiler
def test_higher_derivatives_come_from_the_formula():
    x = on_device(made(1, (3, 5), np.float64)).requires_grad_()
    (g,) = cudagrad.autograd.grad(F.gelu(x).sum(), x, create_graph=True)
    (second,) = cudagrad.autograd.grad(g.sum(), x)
    value = host(x)
    density = np.exp(-value * value / 2) / math.sqrt(2 * math.pi)
    assert worst(host(second), (2 - value * value) * density) < 1e-12


# ---- chains

ADAMW = (
    "y1 = n0 * x2 + (1 - n0) * x1, y2 = n1 * x3 + (1 - n1) * x1 * x1, "
    "y0 = x0 - n2 * (y1 / n5 / (sqrt(y2 / n6) + n3) + n4 * x0)"
)


def adamw64(p, g, m, v, b1, b2, lr, eps, decay, c1, c2):
    m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
    return p - lr * (m / c1 / (np.sqrt(v / c2) + eps) + decay * p), m, v


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("shape", [(1, 1), (7, 33), (4, 64), (0, 5), (1001, 3)], ids=str)
def test_bias_gelu_and_residual_are_one_launch(shape, dtype):
    x, bias, residual = made(1, shape, ALL[dtype]), made(2, shape[1], ALL[dtype]), made(3, shape, ALL[dtype])
    for lies in (np.ascontiguousarray, np.asfortranarray):
        (y,) = computed("y0 = gelu(x0 + x1) + x2", (lies(x), bias, residual), x.dtype)
        sums = wide(x) + wide(bias)
        assert worst(y, sums * 0.5 * (1 + erf(sums / math.sqrt(2))) + wide(residual)) < 4 * EPS[dtype]


@needs_compiler
@pytest.mark.parametrize("shape", [(1, 1), (5, 31), (8, 128), (3, 0)], ids=str)
def test_swiglu_of_two_halves_of_one_array(shape):
    both = made(1, (shape[0], 2 * shape[1]))
    a, b = both[:, : shape[1]], both[:, shape[1] :]
    (y,) = computed("y0 = silu(x0) * x1", (a, b), a.dtype)
    assert worst(y, wide(a) * sigmoid(wide(a)) * wide(b)) < 4 * EPS["float32"]


@needs_compiler
@pytest.mark.parametrize("size", [1, 7, 1024, 4099])
def test_an_optimizers_step_writes_its_parameter_and_state_in_place(size):
    p, g, m = (made(i, size) for i in range(3))
    v = np.abs(made(3, size))
    numbers = (0.9, 0.999, 1e-2, 1e-8, 0.1, 0.271, 0.003)
    expected = adamw64(*map(wide, (p, g, m, v)), *numbers)
    elementwise.compute(emulated.run, np, ADAMW, (p, g, m, v), (p, m, v), numbers)
    for got, wanted in zip((p, m, v), expected):
        assert worst(got, wanted) < 8 * EPS["float32"]


@needs_compiler
@pytest.mark.parametrize("schedule", emulator.SCHEDULES)
def test_no_order_of_threads_changes_a_bit(schedule):
    x, row = made(1, (70, 1031)), made(2, 1031)
    ordered = computed("y0 = gelu(x0 + x1) + x2", (x, row, x), x.dtype)[0]
    with emulator.settings(schedule=schedule, seed=3):
        assert np.array_equal(ordered, computed("y0 = gelu(x0 + x1) + x2", (x, row, x), x.dtype)[0])


def test_what_a_formula_may_have():
    x = made(1, 3)
    for inputs, outputs in (((x,) * 9, (x.dtype,)), ((x,), (x.dtype,) * 5), ((x, np.arange(3)), (x.dtype,))):
        with pytest.raises(Rather):
            computed("y0 = x0", inputs, *outputs)
    with pytest.raises(Rather, match="not of the shape"):
        computed("y0 = x0 + x1", (x, x), made(2, 4))


# ---- what moves


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_contiguous_arrays_and_rows_move_each_sector_once(dtype):
    x, row = made(1, (64, 256), ALL[dtype]), made(2, 256, ALL[dtype])
    for second in (x, row):
        with emulator.traffic() as traffic:
            computed("y0 = x0 * x1", (x, second), x.dtype)
        for (_, place, kind), (_, moved, ideal) in traffic.lines.items():
            assert moved == ideal, (place, kind)


# ---- on GPUs

BUDGET = [  # formula, inputs, outputs, registers
    ("y0 = x0 * x1", "ff", "f", 26),
    ("y0 = x0 * x1", "bb", "b", 34),
    ("y0 = x0 * gelu_slope(x1)", "bb", "b", 64),
    ("y0 = x0 != 0 ? x1 : x2", "?ff", "f", 28),
    ("y0 = x0 < x1", "bb", "?", 40),
    ("y0 = x0", "d", "e", 24),
    (ADAMW, "ffff", "fff", 48),
]
LETTERS = {"f": np.dtype("f4"), "b": np.dtype(ml_dtypes.bfloat16), "e": np.dtype("f2"), "d": DOUBLE, "?": BOOL}


@needs_nvrtc
@pytest.mark.parametrize("architecture", nvrtc.ARCHITECTURES)
def test_formulas_keep_their_budget_of_registers(architecture):
    for formula, inputs, outputs, budget in BUDGET:
        given = {f"x{i}": np.empty(4096, LETTERS[c]) for i, c in enumerate(inputs)}
        given |= {f"y{i}": np.empty(4096, LETTERS[c]) for i, c in enumerate(outputs)}
        given |= {"formula": formula, "layout": bytes(layout.LAYOUT.itemsize), "n": 4096, "units": 1024}
        macros = plan("elementwise.cu", "elementwise", given, lambda array: 0, 132).macros
        told = nvrtc.resources("elementwise.cu", macros, architecture)["elementwise"]
        assert told["registers"] <= budget and not told["spills"], (formula, inputs, told)


@needs_nvrtc
def test_every_formula_of_an_op_compiles(tmp_path):
    """All in one source: what names a function that is not there fails."""
    texts = [f"y0 = {f};" for f in (*pointwise._SAME.values(), *pointwise._POWERS.values())]
    given = {f"x{i}": np.empty(8, np.float32) for i in range(3)} | {"y0": np.empty(8, np.float32)}
    given |= {"formula": " ".join(texts), "layout": bytes(layout.LAYOUT.itemsize), "n": 8, "units": 2}
    macros = plan("elementwise.cu", "elementwise", given, lambda array: 0, 132).macros
    assert nvrtc.resources("elementwise.cu", macros, "90")["elementwise"]["spills"] == 0


@needs_compiler
def test_the_cuda_device_packs_the_layout_and_the_numbers():
    """By the double of CuPy: arrays of any strides, numbers, a formula each, in place, and several launches a plan."""
    with installed() as double:
        x, y = made(1, (6, 10)), made(2, 10)
        there = [cudagrad.from_numpy(a.copy()).to("cuda") for a in (x, y)]
        for factor in (0.5, 0.25):
            got = F.leaky_relu(there[0].t(), factor) - there[1].reshape(10, 1)
            assert np.array_equal(host(got), np.where(x > 0, x, x * np.float32(factor)).T - y[:, None])
        there[0][:, ::2].mul_(there[1][::2])
        x[:, ::2] *= y[::2]
        assert np.array_equal(host(there[0]), x)
        assert [name for name, *_ in double.launched] == ["elementwise"] * 5
        assert len(double.built) == 3
