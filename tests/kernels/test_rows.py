"""layer_norm, rms_norm, softmax and log_softmax on the emulated device, against float64 NumPy from the definition."""

import numpy as np
import pytest

import cudagrad
from cudagrad.backend import emulator

from .common import DTYPES, EPS, askew, every_second, made, needs_compiler, no_fallback, on_device, worst

pytestmark = [needs_compiler, no_fallback]

F = cudagrad.nn.functional

# 1 row, 1 column, ragged, powers of two and their neighbours; warps and blocks a row; one that registers do not hold.
SHAPES = [
    (1, 1),
    (1, 100),
    (7, 1),
    (5, 31),
    (4, 32),
    (3, 33),
    (2, 127),
    (3, 128),
    (2, 129),
    (37, 1000),
    (9, 1024),
    (3, 1025),
]
LONG = [(2, 4096), (2, 20000), (1, 20001)]


def layer_norm64(x, w, b, eps=1e-5):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + eps) * w + b


def layer_norm_back64(g, x, w, eps=1e-5):
    centred = x - x.mean(-1, keepdims=True)
    r = 1 / np.sqrt((centred**2).mean(-1, keepdims=True) + eps)
    h, d = centred * r, g * w
    dx = r * (d - d.mean(-1, keepdims=True) - h * (d * h).mean(-1, keepdims=True))
    return dx, (g * h).sum(0), g.sum(0)


def rms_norm64(x, w, eps):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * w


def rms_norm_back64(g, x, w, eps):
    r = 1 / np.sqrt((x**2).mean(-1, keepdims=True) + eps)
    h, d = x * r, g * w
    return r * (d - h * (d * h).mean(-1, keepdims=True)), (g * h).sum(0)


def softmax64(x, dim):
    e = np.exp(x - x.max(dim, keepdims=True))
    return e / e.sum(dim, keepdims=True)


def log_softmax64(x, dim):
    away = x - x.max(dim, keepdims=True)
    return away - np.log(np.exp(away).sum(dim, keepdims=True))


def gradients_of(y, g, *leaves):
    y.backward(on_device(g).detach())
    return [t.grad.cpu().array for t in leaves]


def check_layer_norm(shape, dtype, layout=None, wide_weights=False):
    x, g = made(1, shape, dtype, 2.0, 0.5), made(2, shape, dtype)
    w, b = (made(s, shape[-1], np.float32 if wide_weights else dtype) for s in (3, 4))
    tx, tw, tb = on_device(x, layout), on_device(w), on_device(b)
    y = F.layer_norm(tx, shape[-1:], tw, tb)
    wide = [a.astype(np.float64) for a in (g, x, w, b)]
    eps = EPS[dtype.name]
    assert worst(y.detach().cpu().array, layer_norm64(*wide[1:])) < 4 * eps, "out"
    for what, got, expected in zip(("dx", "dw", "db"), gradients_of(y, g, tx, tw, tb), layer_norm_back64(*wide[:3])):
        # one column: h is 0, dx is a difference of equals
        room = 1.0 if shape[-1] == 1 and what != "db" else 0.0
        assert worst(got, expected) < 8 * eps or np.abs(got.astype(np.float64) - expected).max() <= room * 100 * eps, (
            what
        )


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_layer_norm_and_its_gradients_are_the_definition(shape, name):
    check_layer_norm(shape, DTYPES[name])


@pytest.mark.parametrize("shape", LONG, ids=str)
def test_layer_norm_of_long_rows(shape):
    check_layer_norm(shape, np.dtype("f4"))


def test_layer_norm_in_float64():
    check_layer_norm((5, 130), np.dtype("f8"))


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_layer_norm_of_half_types_with_float32_weights(name):
    check_layer_norm((5, 64), DTYPES[name], wide_weights=True)


@pytest.mark.parametrize("layout", [askew, every_second, np.asfortranarray])
def test_layer_norm_of_any_layout(layout):
    check_layer_norm((6, 64), np.dtype("f4"), layout)


def test_layer_norm_loses_nothing_where_the_mean_is_a_thousand_spreads():
    x = made(5, (4, 256), np.float32, 1.0, 1000.0)
    y = F.layer_norm(on_device(x), (256,)).detach().cpu().array
    assert worst(y, layer_norm64(x.astype(np.float64), 1, 0)) < 1e-4  # the rounding of float32 at 1000 is 3e-5


def test_layer_norm_without_weight_and_bias_and_with_one_of_them():
    x, w = made(6, (3, 40), np.float32), made(7, 40, np.float32)
    y = F.layer_norm(on_device(x), (40,)).detach().cpu().array
    assert worst(y, layer_norm64(x.astype(np.float64), 1, 0)) < 1e-6
    tx, tw = on_device(x), on_device(w)
    y = F.layer_norm(tx, (40,), tw)
    dx, dw = gradients_of(y, np.ones_like(x), tx, tw)
    expected = layer_norm_back64(np.ones((3, 40)), x.astype(np.float64), w.astype(np.float64))
    assert worst(dx, expected[0]) < 1e-6 and worst(dw, expected[1]) < 1e-6


@pytest.mark.parametrize("schedule", emulator.SCHEDULES)
@pytest.mark.parametrize("shape", [(9, 200), (3, 1000)], ids=str)
def test_no_order_of_threads_changes_a_bit(schedule, shape):
    def run():
        x, g, w = made(1, shape, np.float32), made(2, shape, np.float32), on_device(made(3, shape[1], np.float32))
        tx = on_device(x)
        y = F.layer_norm(tx, shape[1:], w)
        return [y.detach().cpu().array, *gradients_of(y, g, tx, w), *softmax_run(x, g, 1)]

    ordered = run()
    with emulator.settings(schedule=schedule, seed=7):
        assert all(np.array_equal(a, b) for a, b in zip(ordered, run()))


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (7, 1), (5, 31), (3, 129), (9, 1000), (2, 4096)], ids=str)
def test_rms_norm_and_its_gradients_are_the_definition(shape, name):
    x, g, w = made(1, shape, DTYPES[name], 2.0, 0.5), made(2, shape, DTYPES[name]), made(3, shape[-1], DTYPES[name])
    tx, tw = on_device(x), on_device(w)
    y = F.rms_norm(tx, shape[-1:], tw, eps=1e-6)
    wide = [a.astype(np.float64) for a in (g, x, w)]
    eps = EPS[name]
    assert worst(y.detach().cpu().array, rms_norm64(*wide[1:], 1e-6)) < 4 * eps
    for got, expected in zip(gradients_of(y, g, tx, tw), rms_norm_back64(*wide, 1e-6)):
        scale = np.abs(wide[0] * wide[2]).max() / np.abs(wide[1]).min() if shape[-1] == 1 else 0
        assert worst(got, expected) < 8 * eps or np.abs(got.astype(np.float64) - expected).max() < 8 * eps * scale


def softmax_run(x, g, dim, layout=None, log=False):
    t = on_device(x, layout)
    y = (F.log_softmax if log else F.softmax)(t, dim)
    return y.detach().cpu().array, *gradients_of(y, g, t)


def check_softmax(x, g, dim, eps, layout=None):
    x64, g64 = x.astype(np.float64), g.astype(np.float64)
    y, dx = softmax_run(x, g, dim, layout)
    p = softmax64(x64, dim)
    assert worst(y, p) < 4 * eps
    rounded = y.astype(np.float64)  # the gradient is taken from the rounded output
    expected = (g64 - (g64 * rounded).sum(dim, keepdims=True)) * rounded
    scale = (np.abs(g64).max() * rounded).max()
    assert np.abs(dx.astype(np.float64) - expected).max() <= 8 * eps * scale
    y, dx = softmax_run(x, g, dim, layout, log=True)
    assert worst(y, log_softmax64(x64, dim)) < 4 * eps or x.shape[dim] == 1 and not y.any()
    total = g64.sum(dim, keepdims=True)
    expected = g64 - np.exp(y.astype(np.float64)) * total
    scale = max(np.abs(g64).max(), np.abs(g64).sum(dim).max() * p.max())
    assert np.abs(dx.astype(np.float64) - expected).max() <= 8 * eps * scale


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_softmax_and_its_logarithm_and_gradients_are_the_definition(shape, name):
    check_softmax(made(1, shape, DTYPES[name], 3.0), made(2, shape, DTYPES[name]), 1, EPS[name])


@pytest.mark.parametrize("shape", LONG, ids=str)
def test_softmax_of_long_rows(shape):
    check_softmax(made(1, shape, np.float32, 3.0), made(2, shape, np.float32), 1, EPS["float32"])


def test_softmax_in_float64():
    check_softmax(made(1, (5, 130), np.float64), made(2, (5, 130), np.float64), 1, EPS["float64"])


@pytest.mark.parametrize("layout", [askew, every_second, np.asfortranarray])
def test_softmax_of_any_layout(layout):
    check_softmax(made(1, (6, 64), np.float32), made(2, (6, 64), np.float32), 1, EPS["float32"], layout)


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("shape", [(3, 5, 4), (2, 33, 40), (1, 700, 9), (130, 1, 17)], ids=str)
def test_softmax_along_any_dim(shape, dim):
    check_softmax(made(1, shape, np.float32), made(2, shape, np.float32), dim, EPS["float32"])


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(2, 33, 40), (1, 700, 17), (3, 1001)], ids=str)
def test_softmax_of_half_types_in_columns_and_in_rows_off_16_bytes(shape, name):
    check_softmax(made(1, shape, DTYPES[name], 3.0), made(2, shape, DTYPES[name]), 1, EPS[name])


def test_softmax_of_columns_is_read_and_written_where_it_lies():
    """Neighbours in a warp have neighbouring columns: no sector is read for a few of its bytes."""
    x = made(1, (2, 50, 64), np.float32)
    with emulator.traffic() as traffic:
        softmax_run(x, x, 1)
    assert {entry for entry, _, _ in traffic.lines} == {"softmax_forward", "softmax_backward"}
    assert all(moved == ideal for (_, _, kind), (_, moved, ideal) in traffic.lines.items() if "shared" not in kind)


def test_softmax_of_infinities_and_nans():
    inf, nan = np.inf, np.nan
    x = np.array([[0, inf, 1], [-inf, 0, -inf], [-inf, -inf, -inf], [0, nan, 1], [1e30, -1e30, 0]], np.float32)
    with np.errstate(all="ignore"):
        expected = softmax64(x.astype(np.float64), 1)
    got = F.softmax(on_device(x), 1).detach().cpu().array
    assert np.array_equal(np.isnan(got), np.isnan(expected))
    assert np.nanmax(np.abs(got - expected)) < 1e-6


def test_of_no_elements_there_is_nothing_to_launch():
    for shape in ((0, 5), (3, 0)):
        x = on_device(np.empty(shape, np.float32))
        y = F.softmax(x, 1)
        y.sum().backward()
        assert tuple(y.shape) == shape and tuple(x.grad.shape) == shape
    x = on_device(np.empty((0, 5), np.float32))
    w = on_device(np.ones(5, np.float32))
    F.layer_norm(x, (5,), w).sum().backward()
    assert not w.grad.cpu().array.any()


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_a_gradient_of_another_precision_is_brought_to_the_inputs(name):
    """Of a product with a Python number, which NumPy makes float32 of for bfloat16."""
    for function in (lambda x: F.layer_norm(x, (8,)), lambda x: F.softmax(x, 1), lambda x: F.dropout(x, 0.5)):
        x = on_device(made(1, (3, 8), DTYPES[name]))
        (function(x) * 3.0).mean().backward()
        assert x.grad.array.dtype == DTYPES[name]


def test_a_second_derivative_comes_from_the_definition():
    """create_graph leaves the kernels' rules aside: the formula of ops is differentiable, a kernel is not."""
    x = on_device(made(1, (3, 8), np.float64))
    y = F.layer_norm(x, (8,))
    (g,) = cudagrad.autograd.grad((y**3).sum(), x, create_graph=True)
    (second,) = cudagrad.autograd.grad((g * g).sum(), x)
    host = cudagrad.tensor(x.detach().cpu().numpy(), requires_grad=True)
    (g,) = cudagrad.autograd.grad((F.layer_norm(host, (8,)) ** 3).sum(), host, create_graph=True)
    (expected,) = cudagrad.autograd.grad((g * g).sum(), host)
    assert second.device.type == "emulated" and worst(second.cpu().array, expected.array) < 1e-10
