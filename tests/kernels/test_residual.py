"""Residual sums with the norm after or the dropout before them, on the emulated device."""

import math

import numpy as np
import pytest

import cudagrad
from cudagrad.backend import emulator
from cudagrad.backend.kernels import nvrtc
from cudagrad.tools.kernels import variant

from .common import (
    DTYPES,
    EPS,
    REGISTERS,
    askew,
    every_second,
    made,
    needs_compiler,
    needs_nvrtc,
    no_fallback,
    on_device,
    worst,
)
from .test_rows import SHAPES, layer_norm64, layer_norm_back64, rms_norm64, rms_norm_back64

pytestmark = [needs_compiler, no_fallback]

F = cudagrad.nn.functional


# ---- norms

# Rows of the backward that lie in a warp's registers, in a block's, and in neither.
LONGER = [(3, 2048), (2, 9000), (17, 8200), (1, 4099)]


def norm_run(shape, dtype, rms=False, layout=None, used=("y", "s")):
    """Results and gradients of the op, and the same from the definition in float64 at the sum as it was rounded."""
    x, residual, gy, gs = (made(s, shape, dtype, 2.0 if s < 3 else 1.0, 0.25 if s < 3 else 0.0) for s in range(1, 5))
    w, b = (made(s, shape[-1], dtype) for s in (5, 6))
    tx, tr, tw, tb = on_device(x, layout), on_device(residual, layout), on_device(w), on_device(b)
    leaves = [tx, tr, tw] if rms else [tx, tr, tw, tb]
    y, s = F.add_rms_norm(tx, tr, shape[-1:], tw, 1e-6) if rms else F.add_layer_norm(tx, tr, shape[-1:], tw, tb)
    outs = {"y": (y, gy), "s": (s, gs)}
    cudagrad.autograd.backward([outs[u][0] for u in used], [on_device(outs[u][1]).detach() for u in used])
    got = [
        y.detach().cpu().array,
        s.detach().cpu().array,
        *(None if t.grad is None else t.grad.cpu().array for t in leaves),
    ]

    s64 = got[1].astype(np.float64)
    assert worst(s64, x.astype(np.float64) + residual) <= EPS[dtype.name]
    g64 = gy.astype(np.float64) * ("y" in used)
    if rms:
        dx, dw = rms_norm_back64(g64, s64, w.astype(np.float64), 1e-6)
        expected = [rms_norm64(s64, w.astype(np.float64), 1e-6), s64, dx, dx, dw]
    else:
        dx, *affine = layer_norm_back64(g64, s64, w.astype(np.float64))
        expected = [layer_norm64(s64, w.astype(np.float64), b.astype(np.float64)), s64, dx, dx, *affine]
    direct = gs.astype(np.float64) * ("s" in used)
    expected[2:4] = [dx + direct] * 2
    return got, expected


def check_norm(*args, **options):
    got, expected = norm_run(*args, **options)
    shape, eps = args[0], EPS[args[1].name]
    for what, a, e in zip(("y", "s", "dx", "dresidual", "dw", "db"), got, expected):
        # one column: a gradient is a difference of equals, each times rstd, which is 316
        alone = shape[-1] == 1 and what in ("dx", "dresidual", "dw")
        assert worst(a, e) < 8 * eps or (alone and np.abs(a - e).max() < 400 * eps), what


@pytest.mark.parametrize("rms", [False, True], ids=["layer", "rms"])
@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_norm_of_a_sum_and_its_gradients_are_the_definition(shape, name, rms):
    check_norm(shape, DTYPES[name], rms)


@pytest.mark.parametrize("shape", LONGER, ids=str)
def test_longer_rows(shape):
    check_norm(shape, np.dtype("f4"))


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_rows_that_registers_do_not_hold_read_the_sum_again(name):
    check_norm((2, 33001), DTYPES[name])


def test_long_rows_of_halves():
    check_norm((3, 8200), DTYPES["bfloat16"])
    check_norm((2, 4096), DTYPES["float16"])


def test_float64():
    check_norm((5, 130), np.dtype("f8"))
    check_norm((2, 4099), np.dtype("f8"))


@pytest.mark.parametrize("layout", [askew, every_second, np.asfortranarray])
def test_any_layout(layout):
    check_norm((6, 64), np.dtype("f4"), layout=layout)


@pytest.mark.parametrize("used", ["y", "s"])
def test_a_gradient_may_come_to_one_output_alone(used):
    got, expected = norm_run((6, 64), np.dtype("f4"), used=(used,))
    assert all(worst(a, e) < 1e-6 for a, e in zip(got[:4], expected))
    assert (got[4] is None) == (used == "s"), "as of two ops, the norm's weight has no gradient where y has none"


def test_sum_and_norm_are_bit_for_bit_those_of_two_ops():
    for dtype in (*DTYPES.values(), np.dtype("f8")):
        x, residual, w = made(1, (5, 96), dtype), made(2, (5, 96), dtype), on_device(made(3, 96, dtype))
        fused = F.add_layer_norm(on_device(x), on_device(residual), (96,), w)
        s = on_device(x) + on_device(residual)
        for a, b in zip(fused, (F.layer_norm(s, (96,), w), s)):
            assert np.array_equal(a.detach().cpu().array, b.detach().cpu().array)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_half_types_with_float32_weights(name):
    x, residual, w = made(1, (5, 64), DTYPES[name]), made(2, (5, 64), DTYPES[name]), made(3, 64, np.float32)
    tx, tw = on_device(x), on_device(w)
    y, s = F.add_layer_norm(tx, on_device(residual), (64,), tw)
    y.backward(on_device(x).detach())
    s64 = s.detach().cpu().array.astype(np.float64)
    dx, dw, _ = layer_norm_back64(x.astype(np.float64), s64, w.astype(np.float64))
    assert tw.grad.array.dtype == np.float32 and worst(tw.grad.cpu().array, dw) < 1e-5
    assert worst(tx.grad.cpu().array, dx) < 4 * EPS[name]
    assert y.array.dtype == DTYPES[name] and worst(y.detach().cpu().array, layer_norm64(s64, w, 0)) < 4 * EPS[name]


def test_no_gradient_but_by_the_weight():
    x, residual, g = (on_device(made(s, (9, 40), np.float32)).detach() for s in (1, 2, 3))
    w = on_device(made(4, 40, np.float32))
    y, s = F.add_rms_norm(x, residual, (40,), w, 1e-6)
    y.backward(g)
    wide = [t.detach().cpu().array.astype(np.float64) for t in (g, s, w)]
    assert worst(w.grad.cpu().array, rms_norm_back64(*wide, 1e-6)[1]) < 1e-6


# ---- dropout

WIDE = [*SHAPES, (2, 3, 40), (33000,), (300, 24)]


def dropout_run(device, fused, shape, dtype, p, bias=True, residual=True, layout=lambda a: a):
    x, r, g = (made(s, shape, dtype) for s in (1, 2, 3))
    b = made(4, shape[-1:], dtype)
    tensors = [on_device(layout(a)) if device == "emulated" else cudagrad.core.tensor.wrap(a) for a in (x, b, r, g)]
    tx, tb, tr, g = (t.detach().requires_grad_() for t in tensors)
    cudagrad.manual_seed(11)
    if fused:
        y = F.bias_dropout_add(tx, tb if bias else None, tr if residual else None, p)
    else:
        y = F.dropout(tx + tb if bias else tx, p)
        y = tr + y if residual else y
    y.backward(g.detach())
    leaves = [tx] + [tb] * bias + [tr] * residual
    return [y.detach().cpu().array, *(t.grad.cpu().array for t in leaves)]


def summed(g):
    return g.astype(np.float64).reshape(-1, g.shape[-1]).sum(0)


@pytest.mark.parametrize("shape", WIDE, ids=str)
def test_the_fused_dropout_is_bit_for_bit_that_of_three_ops(shape):
    """But for the sum over the rows, whose order is another."""
    for p in (0.4, 0.0):
        y, dx, db, dr = dropout_run("emulated", True, shape, np.float32, p)
        apart = dropout_run("cpu", False, shape, np.float32, p)
        assert all(np.array_equal(a, b) for a, b in zip((y, dx, dr), (*apart[:2], apart[3])))
        assert worst(db, summed(dx)) < 4 * EPS["float32"]


@pytest.mark.parametrize(("bias", "residual"), [(True, False), (False, True)])
def test_bias_or_residual_alone(bias, residual):
    fused = dropout_run("emulated", True, (5, 33), np.float32, 0.3, bias, residual)
    apart = dropout_run("cpu", False, (5, 33), np.float32, 0.3, bias, residual)
    assert all(worst(a, b.astype(np.float64)) < 1e-6 for a, b in zip(fused, apart))


@pytest.mark.parametrize("name", [*DTYPES, "float64"])
@pytest.mark.parametrize("layout", [np.array, askew, every_second], ids=lambda f: f.__name__)
def test_fused_dropout_of_any_dtype_and_layout(name, layout):
    """Rounded once, where three ops round three times; the decisions are the same."""
    dtype, eps = DTYPES.get(name, np.dtype("f8")), EPS[name]
    fused = dropout_run("emulated", True, (9, 40), dtype, 0.4, layout=lambda a: layout(a) if a.ndim > 1 else a)
    apart = dropout_run("cpu", False, (9, 40), np.float64, 0.4)
    x, b, r, g = (made(s, (40,) if s == 4 else (9, 40), dtype).astype(np.float64) for s in (1, 4, 2, 3))
    factor = np.where(apart[1] != 0, 1 / 0.6, 0)
    expected = [r + (x + b) * factor, g * factor, (g * factor).sum(0), g]
    assert all(worst(a, e) < 2 * eps for a, e in zip(fused, expected))


def test_the_fused_dropout_keeps_no_mask():
    x, residual = on_device(made(1, (8, 16), np.float32)), on_device(made(2, (8, 16), np.float32))
    y = F.bias_dropout_add(x, None, residual, 0.5)
    assert not y.node.saved


@pytest.mark.parametrize("check", [False, True], ids=["", "check"])
@pytest.mark.parametrize("schedule", emulator.SCHEDULES)
def test_no_order_of_threads_changes_a_bit(schedule, check):
    def run():
        found = [norm_run(shape, np.dtype("f4"))[0] for shape in ((9, 200), (2, 1100))]
        return [*found[0], *found[1], *dropout_run("emulated", True, (21, 40), np.float32, 0.3)]

    ordered = run()
    with emulator.settings(schedule=schedule, seed=7, check=check):
        assert all(np.array_equal(a, b) for a, b in zip(ordered, run(), strict=True))


def test_second_derivatives_come_from_the_definitions():
    for function in (
        lambda x, r: F.add_layer_norm(x, r, (8,)),
        lambda x, r: F.add_rms_norm(x, r, (8,), eps=1e-6),
        lambda x, r: [F.bias_dropout_add(x * x, None, r, 0.3)],
    ):
        seconds = []
        for device in ("cpu", "emulated"):
            x, r = (cudagrad.tensor(made(s, (3, 8), np.float64)).to(device).requires_grad_() for s in (1, 2))
            cudagrad.manual_seed(3)
            loss = sum((out**3).sum() for out in function(x, r))
            (g,) = cudagrad.autograd.grad(loss, x, create_graph=True)
            seconds.append(cudagrad.autograd.grad((g * g).sum(), (x, r)))
        assert all(worst(b.cpu().array, a.array) < 1e-10 for a, b in zip(*seconds))


def test_of_no_elements_there_is_nothing_to_launch():
    x, residual, w = (on_device(np.empty(s, np.float32)) for s in ((0, 5), (0, 5), 5))
    y, s = F.add_layer_norm(x, residual, (5,), w)
    (y + s + F.bias_dropout_add(x, w, residual)).sum().backward()
    assert not w.grad.cpu().array.any() and tuple(x.grad.shape) == (0, 5)


@needs_nvrtc
@pytest.mark.parametrize("architecture", ["75", "90", "120"])
@pytest.mark.parametrize("name", ["float32", "bfloat16"])
@pytest.mark.parametrize("columns", [1000, 4096, 8192, 4099])
def test_the_norm_alone_spills_no_register(architecture, name, columns):
    """The budget's rows are of all arrays; whether there is a residual is the kernels' to know when they are built."""
    for entry in ("layer_norm_forward", "layer_norm_backward"):
        made = variant("layer_norm.cu", entry, DTYPES[name], columns, without=("residual", "s", "direct"))
        told = nvrtc.resources("layer_norm.cu", made.macros, architecture)[entry]
        assert not told["spills"] and told["registers"] * math.prod(made.block) <= REGISTERS
