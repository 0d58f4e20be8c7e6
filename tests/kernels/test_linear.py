"""Linear maps, activations behind them, products of matrices and their gradients, emulated, against float64 NumPy."""

import math
from pathlib import Path

import numpy as np
import pytest

import cudagrad
import cudagrad.config
from cudagrad.backend import emulator
from cudagrad.backend.kernels import nvrtc
from cudagrad.backend.kernels.adapters.linear import ours
from cudagrad.backend.kernels.header import entries
from cudagrad.backend.kernels.path import kernels_path
from cudagrad.core.tensor import wrap
from cudagrad.tools import where

from ..double import installed
from .common import (
    DTYPES,
    EPS,
    REGISTERS,
    askew,
    every_second,
    host,
    launch,
    made,
    needs_compiler,
    needs_nvrtc,
    on_device,
    worst,
)

F = cudagrad.nn.functional

# Rows, columns in, columns out. 1 of each, ragged, 2^k and its neighbours, columns that lie on 16 and on 4 bytes and on
# none, one tile and several, sums in parts; rows few enough for linear_rows.
SHAPES = [
    *((1, 1, 1), (1, 100, 50), (7, 1, 5), (16, 512, 40), (17, 33, 65), (64, 64, 64), (63, 62, 66)),
    *((70, 40, 72), (65, 128, 127), (130, 129, 131), (256, 24, 256), (24, 2048, 40)),
]
ACTS = ("none", "relu", "gelu", "gelu_tanh", "silu")


@pytest.fixture(autouse=True)
def own_kernels(monkeypatch, strict):
    """Where a kernel of ours does not run, the test is of nothing."""
    monkeypatch.setattr(cudagrad.config, "MATMUL", "own")


def erf64(z):
    return np.vectorize(math.erf, otypes=[np.float64])(z)


def act64(act, z):
    """An activation and its derivative."""
    if act == "relu":
        return np.maximum(z, 0), (z > 0) * 1.0
    if act == "gelu":
        phi = 0.5 * (1 + erf64(z / math.sqrt(2)))
        return z * phi, phi + z * np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    if act == "gelu_tanh":
        t = np.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3))
        return 0.5 * z * (1 + t), 0.5 * (1 + t) + 0.5 * z * (1 - t * t) * math.sqrt(2 / math.pi) * (
            1 + 0.134145 * z * z
        )
    if act == "silu":
        s = 1 / (1 + np.exp(-z))
        return z * s, s * (1 + z * (1 - s))
    return z, np.ones_like(z)


def ran(function, *args):
    """The kernels of a call, as "file entry"."""
    return [w.code.removeprefix("kernels/") for w in where(function, *args)]


def check(shape, dtype, act, layout=None, bias=True):
    m, k, n = shape
    x, w, g = made(1, (m, k), dtype), made(2, (n, k), dtype), made(4, (m, n), dtype)
    b = made(3, n, dtype) if bias else None
    leaves = [on_device(a, layout) for a in (x, w)] + ([on_device(b)] if bias else [])
    y = F.linear_act(*leaves, act=act)
    y.backward(on_device(g, layout).detach())
    wide = [a.astype(np.float64) for a in (x, w, g)]
    z = wide[0] @ wide[1].T + (b.astype(np.float64) if bias else 0)
    out, slope = act64(act, z)
    dz = wide[2] * slope
    limits = {"float64": 1e-14, "float32": 2e-6, "float16": 1e-3, "bfloat16": 8e-3}
    limit = limits[dtype.name]
    if act == "relu":  # which way a rounded argument goes decides: the masks are compared, not the sums of their errors
        dz = wide[2] * (host(y).astype(np.float64) > 0)
        assert ((dz != 0) == (wide[2] * slope != 0)).mean() > 0.99
    assert worst(host(y), out) < limit, "out"
    expected = [dz @ wide[1], dz.T @ wide[0], dz.sum(0)]
    for what, leaf, right in zip(("dx", "dw", "db"), leaves, expected):
        assert leaf.grad.array.dtype == dtype
        assert worst(host(leaf.grad), right) < 2 * limit, what


@needs_compiler
@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("i", range(len(SHAPES)), ids=[str(s) for s in SHAPES])
def test_linear_act_and_its_gradients_are_the_definition(i, name):
    check(SHAPES[i], DTYPES[name], ACTS[i % len(ACTS)])


@needs_compiler
@pytest.mark.parametrize("act", ACTS)
def test_every_activation_with_and_without_bias(act):
    check((20, 24, 32), np.dtype("f4"), act)
    check((20, 24, 32), np.dtype("f4"), act, bias=False)


@needs_compiler
@pytest.mark.parametrize("act", ACTS)
def test_linear_act_in_float64(act):
    check((66, 34, 130), np.dtype("f8"), act)
    check((3, 130, 33), np.dtype("f8"), act)


@needs_compiler
def test_gradients_of_a_vector_and_of_a_bias_of_another_shape():
    for weight, bias in (((8,), (1,)), ((8,), ()), ((4, 8), (1, 4)), ((4, 8), (1,))):
        found = []
        for device in ("cpu", "emulated"):
            arrays = (made(1, (2, 3, 8), np.float64), made(2, weight, np.float64), made(3, bias, np.float64))
            leaves = [wrap(np.array(a)).to(device).detach().requires_grad_() for a in arrays]
            F.linear_act(*leaves, act="silu").sum().backward()
            found.append([host(leaf.grad) for leaf in leaves])
        for got, expected in zip(*found):
            assert worst(got, expected) < 1e-14


@needs_compiler
@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("layout", [askew, every_second, np.asfortranarray])
def test_any_layout(layout, name):
    check((24, 32, 40), DTYPES[name], "silu", layout)


@needs_compiler
@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_leading_axes_and_vectors(name):
    dtype, eps = DTYPES[name], EPS[name]
    x, w, b = made(1, (2, 3, 8), dtype), made(2, (16, 8), dtype), made(3, (16,), dtype)
    x64, w64, b64 = (a.astype(np.float64) for a in (x, w, b))
    y = F.linear_act(on_device(x), on_device(w), on_device(b), "silu")
    assert worst(host(y), act64("silu", x64 @ w64.T + b64)[0]) < 4 * eps
    assert worst(host(F.linear(on_device(x[0, 0]), on_device(w), on_device(b))), x64[0, 0] @ w64.T + b64) < 4 * eps
    assert worst(host(F.linear(on_device(x), on_device(w[0]))), x64 @ w64[0]) < 4 * eps
    one = made(4, (1,), dtype)
    assert worst(host(F.linear(on_device(x), on_device(w), on_device(one))), x64 @ w64.T + one.astype("f8")) < 4 * eps


@needs_compiler
def test_infinities_and_nans_go_where_they_go():
    inf, nan = np.inf, np.nan
    x = np.array([[1.0, 0], [inf, 0], [nan, 0], [-inf, 0], [1e30, 1e30]], np.float32)
    w = np.array([[1.0, 0], [1, 1]], np.float32)
    with np.errstate(all="ignore"):
        z = x.astype(np.float64) @ w.T.astype(np.float64)
        for act in ACTS:
            y = host(F.linear_act(on_device(np.tile(x, (4, 1))), on_device(w), act=act))
            expected = np.tile(act64(act, z)[0], (4, 1))
            expected[np.isnan(expected) & (np.tile(z, (4, 1)) == -inf)] = nan  # -inf times 0, by the text too
            assert np.array_equal(np.isnan(y), np.isnan(expected)), act
            kept = np.isfinite(expected)
            assert np.allclose(y[kept], expected[kept], rtol=1e-6) and np.array_equal(y[~kept], expected[~kept], True)


# ---- products


@needs_compiler
@pytest.mark.parametrize("name", [*DTYPES, "float64"])
@pytest.mark.parametrize("turned", [(False, False), (False, True), (True, False), (True, True)])
def test_products_of_matrices_as_they_lie(turned, name):
    """A transposed view is read as it lies, none is copied but the second of two."""
    dtype = DTYPES.get(name, np.dtype("f8"))
    a, b = made(1, (40, 72), dtype), made(2, (72, 48), dtype)
    left, right = (np.asfortranarray(m) if t else m for m, t in zip((a, b), turned))
    y = cudagrad.mm(on_device(left), on_device(right))
    assert worst(host(y), a.astype(np.float64) @ b.astype(np.float64)) < 4 * EPS[name]


@needs_compiler
@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", [(3, 20, 24, 32), (2, 65, 17, 9), (1, 8, 8, 8), (5, 1, 3, 1)], ids=str)
def test_batches(shape, name):
    z, m, k, n = shape
    a, b, g = made(1, (z, m, k), DTYPES[name]), made(2, (z, k, n), DTYPES[name]), made(3, (z, m, n), DTYPES[name])
    ta, tb = on_device(a), on_device(b)
    y = cudagrad.bmm(ta, tb)
    y.backward(on_device(g).detach())
    a, b, g = (v.astype(np.float64) for v in (a, b, g))
    for got, expected in ((y, a @ b), (ta.grad, g @ b.swapaxes(1, 2)), (tb.grad, a.swapaxes(1, 2) @ g)):
        assert worst(host(got), expected) < 4 * EPS[name]


@needs_compiler
@pytest.mark.parametrize(
    "x, y", [((9, 8), (8, 7)), ((2, 3, 9, 8), (8, 7)), ((3, 9, 8), (3, 8, 7)), ((2, 3, 9, 8), (2, 3, 8, 7))]
)
def test_matmul_of_any_batch(x, y):
    a, b = made(1, x, np.float32), made(2, y, np.float32)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    assert ran(cudagrad.matmul, on_device(a), on_device(b)) == ["linear_float.cu linear_float"]
    assert worst(host(on_device(a) @ on_device(b)), expected) < 1e-6
    turned = on_device(np.ascontiguousarray(b.swapaxes(-1, -2))).mT
    assert worst(host(on_device(a) @ turned), expected) < 1e-6


@needs_compiler
@pytest.mark.parametrize("name", [*DTYPES, "float64"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 65), (300, 1), (33, 31), (257, 64), (70, 1000)], ids=str)
def test_column_sums(shape, name):
    x = made(1, shape, DTYPES.get(name, np.dtype("f8")))
    b = on_device(np.zeros(shape[1], x.dtype))
    F.linear(on_device(np.zeros((shape[0], 1), x.dtype)), on_device(np.zeros((shape[1], 1), x.dtype)), b).backward(
        on_device(x).detach()
    )
    assert worst(host(b.grad), x.astype(np.float64).sum(0)) < 8 * EPS[name]


@needs_compiler
def test_of_no_elements_there_is_nothing_to_launch():
    for m, k, n in ((0, 3, 4), (2, 0, 4), (2, 3, 0)):
        x, w, b = (on_device(np.ones(s, np.float32)) for s in ((m, k), (n, k), (n,)))
        for act in ACTS:
            y = F.linear_act(x, w, b, act)
            assert tuple(y.shape) == (m, n) and (host(y) == act64(act, np.ones(()))[0].astype(np.float32)).all()
            y.sum().backward()


# ---- who makes the product


@needs_compiler
def test_kernels_serve_by_shape_and_dtype():
    x = {d: on_device(made(1, (40, 512), np.dtype(d))) for d in ("f2", "f4", "f8")}
    w = {d: on_device(made(2, (32, 512), np.dtype(d))) for d in ("f2", "f4", "f8")}
    assert ran(F.linear, x["f2"], w["f2"]) == ["linear_tensor.cu linear_tensor"]
    assert ran(F.linear, x["f4"], w["f4"]) == ["linear_float.cu linear_float", "linear_total.cu linear_total"]
    assert ran(F.linear, x["f8"][:3], w["f8"]) == ["linear_rows.cu linear_rows", "linear_total.cu linear_total"]
    assert ran(F.linear, x["f4"][:8], w["f4"][:1])[0] == "linear_rows.cu linear_rows"
    assert ran(cudagrad.mm, x["f4"][:, :40], w["f4"][:, :40].T) == ["linear_float.cu linear_float"]


@needs_compiler
def test_the_library_is_preferred_by_rule_and_by_setting(monkeypatch):
    w, bias = on_device(made(2, (20, 600), np.float32)), on_device(made(3, 20, np.float32))
    few, many = (on_device(made(1, (m, 600), np.float32)) for m in (2, 20))
    monkeypatch.setattr(cudagrad.config, "MATMUL", "auto")
    assert ran(F.linear, few, w)[0] == "linear_rows.cu linear_rows"
    assert ran(F.linear, many, w, bias)[0] == "linear_float.cu linear_float"  # a bias, and less than 10^9 operations
    (text,) = where(F.linear, many, w)
    assert text.code == "cudagrad/ops/affine.py linear" and "is the library's (CUDAGRAD_MATMUL=auto)" in text.why
    monkeypatch.setattr(cudagrad.config, "MATMUL", "library")
    assert ran(F.linear, few, w) == ["cudagrad/ops/affine.py linear"]
    assert ran(F.linear_act, few, w, bias, "gelu") == ["linear_total.cu linear_ending"]


@needs_compiler
@pytest.mark.parametrize("name", [*DTYPES, "float64"])
@pytest.mark.parametrize("act", ["relu", "gelu"])
def test_a_product_of_the_library_ends_in_one_pass(act, name, monkeypatch):
    monkeypatch.setattr(cudagrad.config, "MATMUL", "library")
    for shape in ((20, 24, 32), (3, 5, 7)):
        check(shape, DTYPES.get(name, np.dtype("f8")), act)
    with emulator.settings(check=True):
        check((20, 24, 32), DTYPES.get(name, np.dtype("f8")), act, askew)


def test_the_rule_weighs_sums_against_passes(monkeypatch):
    monkeypatch.setattr(cudagrad.config, "MATMUL", "auto")
    assert ours(8192, 8192, 512, 2, True, False) and not ours(8192, 8192, 513, 2, True, False)
    assert not ours(8192, 8192, 512, 4, True, False) and not ours(8192, 8192, 64, 4, False, False)
    assert ours(64, 512, 8192, 4, True, False) and ours(8, 50000, 8192, 2, False, True)


@needs_compiler
def test_what_does_not_fit_is_told_as_ever():
    x, w = on_device(made(1, (2, 3), np.float32)), on_device(made(2, (4, 5), np.float32))
    with pytest.raises(RuntimeError, match=r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 5x4\)"):
        F.linear_act(x, w, act="gelu")
    with pytest.raises(RuntimeError, match="to have the same dtype"):
        F.linear_act(x, on_device(made(2, (4, 3), np.float16)), act="relu")


# ---- threads and memory


@needs_compiler
@pytest.mark.parametrize("schedule", emulator.SCHEDULES)
@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_no_order_of_threads_changes_a_bit(name, schedule):
    def run():
        results = []
        for m, k, n in ((70, 72, 40), (5, 1200, 24), (20, 1100, 17)):
            x, w, b = (on_device(made(i, s, DTYPES[name])) for i, s in enumerate(((m, k), (n, k), (n,))))
            y = F.linear_act(x, w, b, "gelu")
            y.backward(on_device(made(3, (m, n), DTYPES[name])).detach())
            results += [host(t).tobytes() for t in (y, x.grad, w.grad, b.grad)]
        return results

    ordered = run()
    with emulator.settings(schedule=schedule, seed=7):
        assert run() == ordered


@needs_compiler
@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(40, 48, 72), (33, 31, 30), (3, 1000, 20)], ids=str)
def test_no_access_is_wrong(shape, name):
    with emulator.settings(check=True):
        check(shape, DTYPES[name], "gelu")


def product(file, layout, m, n, c, dtype, folder="", **more):
    """Launch an entry for a product that lies in a layout: what came out, and what should have."""
    a, b = made(1, (m, c), dtype), made(2, (c, n), dtype)
    given = dict(
        a=np.ascontiguousarray(a.T if layout == 2 else a)[None], b=np.ascontiguousarray(b if layout else b.T)[None]
    )
    y = np.empty((1, m, n), dtype)
    given |= dict(bias=None, y=y, pre=None, partial=None, act=0, layout=layout)
    launch(str(Path(folder, f"{file}.cu")), file, **given, **more)
    return y[0], a.astype(np.float64) @ b.astype(np.float64)


@needs_compiler
@pytest.mark.parametrize("layout", [0, 1, 2])
@pytest.mark.parametrize("size", [64, 256])
@pytest.mark.parametrize(
    "file, name", [("linear_tensor", "bfloat16"), ("linear_float", "float32"), ("linear_float", "float64")]
)
def test_loads_join_and_banks_do_not_conflict(file, name, size, layout):
    """Sectors moved are the fewest that hold the data, and the main loop's shared memory has no conflict."""
    dtype = DTYPES.get(name, np.dtype("f8"))
    with emulator.traffic() as traffic:
        got, expected = product(file, layout, size, size, 64, dtype)
    assert worst(got, expected) < 4 * EPS[name]
    kinds = {}
    for (_, _, kind), (_, moved, ideal) in traffic.lines.items():
        total = kinds.setdefault(kind, [0, 0])
        total[0] += moved
        total[1] += ideal
    assert {kind: round(moved / ideal, 2) for kind, (moved, ideal) in kinds.items()} == dict.fromkeys(kinds, 1.0)


@needs_compiler
@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_the_headers_bytes_are_those_that_are_touched(name):
    d, tiles = DTYPES[name], "linear_float" if name == "float32" else "linear_tensor"
    x, w, b = made(1, (5, 256), d), made(2, (64, 256), d), made(3, 64, d)
    y, pre, parts = (np.empty((5, 64), t) for t in (d, d, np.dtype("f4")))
    wide, thick = made(4, (5, 2048), d), made(5, (64, 2048), d)
    ends = dict(bias=b, y=y, pre=pre, act=2)
    one = dict(bias=b, y=y[None], pre=pre[None], act=2)
    with emulator.traffic() as traffic:
        plans = [
            launch("linear_rows.cu", "linear_rows", x=x, w=w, partial=None, **ends),
            launch("linear_rows.cu", "linear_rows", x=wide, w=thick, partial=np.empty((2, 5, 64), "f4"), **ends),
            launch("linear_total.cu", "linear_total", partial=np.ones((1, 2, 5, 64), "f4"), **one),
            launch("linear_total.cu", "linear_ending", **(ends | {"y": np.zeros_like(y)})),
            launch("linear_backward.cu", "linear_backward", g=x, s=x, dz=np.empty_like(x), partial=None, act=2),
            launch(
                "linear_backward.cu", "linear_backward", g=x, s=None, dz=None, partial=parts[:1].repeat(4, 1), act=0
            ),
            launch(
                f"{tiles}.cu",
                tiles,
                a=x[None, :, :128].copy(),
                b=w[None, :, :128].copy(),
                layout=0,
                partial=None,
                **one,
            ),
        ]
    counted = [n for entry in dict.fromkeys(p.entry.name for p in plans) for n in traffic.touched[entry]]
    assert counted == [p.cost("bytes") for p in plans]


@needs_compiler
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("layout", [0, 1, 2])
def test_the_form_for_sm_75(layout, name):
    """float16 by products of 16 x 8 x 8, bfloat16 without tensor cores."""
    got, expected = product("linear_tensor", layout, 72, 40, 48, DTYPES[name], extra=("-DCG_ARCH=750",))
    assert worst(got, expected) < 4 * EPS[name]


# ---- builds for GPUs

# File, type, elements a pack or a copy, edge of the tile -> the most registers a thread may take, in the layouts.
BUILDS = {
    ("linear_float", "float", 4, 64): (128, (0, 1, 2)),
    ("linear_float", "float", 4, 128): (128, (0, 1, 2)),
    ("linear_float", "float", 1, 64): (128, (1,)),
    ("linear_float", "double", 2, 64): (170, (1,)),
    ("linear_tensor", "__half", 8, 128): (128, (0, 1, 2)),
    ("linear_tensor", "__nv_bfloat16", 8, 64): (124, (0, 1, 2)),
    ("linear_tensor", "__nv_bfloat16", 8, 128): (128, (0,)),
    ("linear_tensor", "__nv_bfloat16", 2, 128): (128, (2,)),
    ("linear_tensor", "__nv_bfloat16", 1, 128): (128, (1,)),
}


@needs_nvrtc
@pytest.mark.parametrize("architecture", ["75", "80", "90", "120"])
def test_every_layout_keeps_its_registers(architecture):
    """128 registers are two blocks of 256 threads a multiprocessor; on sm_75 one block has them all."""
    over = []
    for (file, kind, pack, edge), (most, layouts) in BUILDS.items():
        for layout in layouts:
            macros = {"CG_T": kind, "CG_W": kind, "CG_A": "double" if kind == "double" else "float"}
            macros |= {"CG_K" if file == "linear_tensor" else "CG_V": str(pack), "CG_E": str(edge), "CG_L": str(layout)}
            told = nvrtc.resources(f"{file}.cu", tuple(macros.items()), architecture)[file]
            alone = architecture == "75" and file == "linear_tensor"
            if told["spills"] or told["registers"] > (REGISTERS // (2 * edge) if alone else most):
                over.append((file, kind, pack, edge, layout, told))
    assert not over


def test_the_layouts_of_the_tests_are_those_of_the_headers():
    for file in ("linear_float", "linear_tensor"):
        math_of = entries(f"{file}.cu")[file].fields["math"]
        assert "a[i,c], b[j,c] for layout 0; a[i,c], b[c,j] for layout 1; a[c,i], b[c,j] for layout 2" in math_of


FAULTS = {
    "a group not waited for": ("cp_async_wait<STAGES - 2>();", "cp_async_wait<STAGES - 1>();"),
    "no barrier before the tiles are read": ("__syncthreads();  // this step's", "// this step's"),
    "a stage too few": ("bring(step + STAGES - 1);", "bring(step + STAGES - 1), bring(step + STAGES);"),
    "no barrier between bands": ("__syncthreads();  // the tiles, or the last turn's", "// the last turn's"),
    "a row too many": ("i < I && c < end", "i <= I && c < end"),
}


@needs_compiler
@pytest.mark.parametrize("fault", FAULTS)
def test_an_injected_fault_is_caught(fault, tmp_path):
    text = (kernels_path() / "linear_tensor.cu").read_text(encoding="utf-8")
    right, wrong = FAULTS[fault]
    assert text.count(right) == 1
    (tmp_path / "linear_tensor.cu").write_text(text.replace(right, wrong), encoding="utf-8")
    with emulator.settings(check=True, schedule="eager", seed=3), pytest.raises(emulator.KernelError):
        product("linear_tensor", 0, 60, 64, 256, DTYPES["bfloat16"], folder=tmp_path)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_the_library_multiplies_half_matrices_as_they_are(name, monkeypatch):
    """On CUDA it has tensor cores for them; in float32 it would take many times as long."""
    monkeypatch.setattr(cudagrad.config, "MATMUL", "library")
    a, b, c = made(1, (20, 24), DTYPES[name]), made(2, (24, 16), DTYPES[name]), made(3, (16,), DTYPES[name])
    with installed() as double:
        x, y, bias = (wrap(v.copy()).to("cuda") for v in (a, b, c))
        with monkeypatch.context() as patch:
            patch.setattr(double.ndarray, "astype", lambda *given, **options: pytest.fail("a copy in another dtype"))
            products = [cudagrad.mm(x, y), x @ y, F.linear(x, y.T, bias), cudagrad.bmm(x[None], y[None])[0]]
        wide = a.astype(np.float64) @ b.astype(np.float64)
        for got, expected in zip(products, (wide, wide, wide + c.astype(np.float64), wide)):
            assert worst(host(got), expected) < 2 * EPS[name]
