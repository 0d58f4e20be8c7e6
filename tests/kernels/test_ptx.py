"""The instructions of `ptx.cuh` on the emulated device: what each does, what a wrong use is told; NVRTC builds all."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from cudagrad.backend import emulator
from cudagrad.backend.emulator import KernelError, build
from cudagrad.backend.kernels import nvrtc
from cudagrad.backend.kernels.launch import plan

from .common import DTYPES, launch, line_of, needs_compiler, needs_lines, needs_nvrtc, probe

pytestmark = needs_compiler

HALVES = ("float16", "bfloat16")
WAYS = [(schedule, check) for schedule in emulator.SCHEDULES for check in (False, True)]
LANE = np.arange(32)


def told(file, check=True, schedule="ordered", **given):
    """The message of the error that a launch raises."""
    with emulator.settings(check=check, schedule=schedule), pytest.raises(KernelError) as caught:
        launch(file, **given)
    return str(caught.value)


def words(a):
    """16-bit numbers as the registers that hold pairs of them."""
    return np.ascontiguousarray(a).view(np.uint32)


# ---- the probes: one kernel an instruction


def mma_probe(folder):
    """A warp's fragments as arrays of registers: d += a b."""
    body = """static_assert(!has_mma<float>);
unsigned fa[4], fb[2];
float fd[4];
for (int i = 0; i < 4; ++i) fa[i] = a[threadIdx.x * 4 + i], fd[i] = d[threadIdx.x * 4 + i];
for (int i = 0; i < 2; ++i) fb[i] = b[threadIdx.x * 2 + i];
if constexpr (has_mma<T>) mma_m16n8k16<T>(fd, fa, fb);
for (int i = 0; i < 4; ++i) d[threadIdx.x * 4 + i] = fd[i];"""
    parameters = "const unsigned* a, const unsigned* b, const T* t, float* d, int N"
    shapes = "a: unsigned[32,N]  b: unsigned[32,M]  t: T[1]  d: float[32,N] in place"
    return probe(folder, body, shapes, parameters, block="32")


def ldmatrix_probe(folder, name):
    """Register i of each lane as the instruction fills it from the rows of x that `row` names, 16 halves apart."""
    n = int(name[10])
    body = f"""__shared__ __align__(16) T kept[32 * 16];
for (int i = 0; i < 16; ++i) kept[threadIdx.x * 16 + i] = x[threadIdx.x * 16 + i];
__syncthreads();
unsigned r[{n}];
{name}(r, kept + row[threadIdx.x] * 16);
for (int i = 0; i < {n}; ++i) y[threadIdx.x * {n} + i] = r[i];"""
    parameters = "const T* x, const int* row, unsigned* y, int N"
    return probe(folder, body, "x: T[N,16]  row: int[N]  y: unsigned[N,M]", parameters, block="32")


COPIES = "__shared__ __align__(16) float kept[4 * 32];\n"


def copy_probe(folder, body, x="const float* x", **launch):
    """A thread block of N with 16 bytes a thread to copy into `kept`."""
    return probe(folder, COPIES + body, "x: float[N]  y: float[M]", f"{x}, float* y, int N", block="32", **launch)


READ = "for (int i = 0; i < 4; ++i) y[4 * t + i] = kept[4 * t + i];"
COPY = f"""const int t = threadIdx.x;
cp_async16(kept + 4 * t, x + 4 * t, t % 3 != 1);
cp_async_commit();
cp_async_wait<0>();
{READ}"""
COPY_4 = f"""const int t = threadIdx.x;
for (int i = 0; i < 4; ++i) cp_async4(kept + 4 * t + i, x + 4 * t + i, i != 2);
cp_async_commit();
cp_async_wait<0>();
{READ}"""
GROUPS = """const int t = threadIdx.x;
for (int i = 0; i < 4; ++i) {
  if (i != 2) cp_async4(kept + 4 * t + i, x + 4 * t + i);  // group 2 is empty
  cp_async_commit();
}
cp_async_wait<WAITS>();
for (int i = 0; i < 4; ++i) y[4 * t + i] = i < LANDED && i != 2 ? kept[4 * t + i] : 0;
cp_async_wait<0>();"""


def floats():
    return np.arange(128, dtype=np.float32), np.empty(128, np.float32)


# ---- mma


def fragments(a, b, d):
    """The lanes' registers of a product, from the tables of the PTX ISA for mma.m16n8k16."""
    g, t = LANE[:, None] // 4, LANE[:, None] % 4
    i = np.arange(8)
    in_a = a[np.where((i < 2) | ((i >= 4) & (i < 6)), g, g + 8), t * 2 + (i & 1) + np.where(i < 4, 0, 8)]
    i = np.arange(4)
    in_b = b[t * 2 + (i & 1) + np.where(i < 2, 0, 8), np.broadcast_to(g, (32, 4))]
    in_d = d[np.where(i < 2, g, g + 8), t * 2 + (i & 1)]
    return words(in_a), words(in_b), in_d.copy()


def product(file, a, b, d, extra=()):
    """The lanes' registers after d += a b, and as they should be."""
    a_words, b_words, got = fragments(a, b, d)
    launch(file, a=a_words, b=b_words, t=np.zeros(1, a.dtype), d=got, extra=extra)
    with np.errstate(invalid="ignore"):
        expected = d + a.astype(np.float32) @ b.astype(np.float32)
    return got, fragments(a, b, expected)[2]


@pytest.mark.parametrize("name", HALVES)
def test_mma_holds_its_operands_where_the_isa_says(tmp_path, name):
    """Integers that are all different, so that each number's place shows: a by half the identity, and it by b."""
    dtype, file = DTYPES[name], mma_probe(tmp_path)
    one, d = np.eye(16, dtype=dtype), np.arange(128, dtype=np.float32).reshape(16, 8) * 1000
    a = np.arange(256).reshape(16, 16).astype(dtype)
    b = np.arange(128, 256).reshape(16, 8).astype(dtype)
    for left, right in ((a, one[:, :8]), (a, one[:, 8:]), (one, b)):
        assert np.array_equal(*product(file, left, right, d))


@pytest.mark.parametrize("schedule,check", WAYS)
def test_mma_in_every_order_of_threads(tmp_path, schedule, check):
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-9, 9, shape).astype(np.float16) for shape in ((16, 16), (16, 8)))
    with emulator.settings(schedule=schedule, check=check):
        assert np.array_equal(*product(mma_probe(tmp_path), a, b, np.ones((16, 8), np.float32)))


@pytest.mark.parametrize("name", HALVES)
def test_mma_takes_all_kinds_of_16_bit_numbers(tmp_path, name):
    """As float32 takes them: subnormals, infinities and nans too; every fifth number there is, times one."""
    file, every = mma_probe(tmp_path), np.arange(0, 65536, 5, dtype=np.uint16).view(DTYPES[name])
    one, zero = np.eye(16, 8, dtype=every.dtype), np.zeros((16, 8), np.float32)
    for part in np.array_split(every, every.size // 128 + 1):
        a = np.zeros((16, 16), every.dtype)
        a[np.arange(part.size) % 16, np.arange(part.size) // 16] = part
        finite = np.isfinite(a.astype(np.float32)).all(axis=1)
        got, expected = product(file, a, one, zero)
        rows = fragments(a, one, np.repeat(finite[:, None], 8, axis=1))[2]  # elsewhere infinity times zero is a nan
        assert np.array_equal(np.where(rows, got, 0), np.where(rows, expected, 0))
        assert np.array_equal(np.isnan(got), np.isnan(expected))


def test_mma_on_sm_75_is_two_halves_of_float16_and_none_of_bfloat16(tmp_path):
    rng = np.random.default_rng(0)
    file, old = mma_probe(tmp_path), ("-DCG_ARCH=750",)
    for name in HALVES:
        a, b = (rng.integers(-9, 9, shape).astype(DTYPES[name]) for shape in ((16, 16), (16, 8)))
        got, expected = product(file, a, b, np.zeros((16, 8), np.float32), old)
        assert np.array_equal(got, expected if name == "float16" else np.zeros_like(expected))


# ---- ldmatrix


def loaded(x, row, n, transposed):
    """Register m of a lane: two neighbours of row lane / 4 of the matrix whose rows lanes 8 m to 8 m + 7 name."""
    out = np.empty((32, n, 2), np.uint16)
    for m in range(n):
        matrix = x[row[8 * m : 8 * m + 8], :8]
        out[:, m] = (matrix.T if transposed else matrix).reshape(32, 2)
    return words(out)[..., 0]


@pytest.mark.parametrize("schedule,check", WAYS)
@pytest.mark.parametrize("name", ["ldmatrix_x2", "ldmatrix_x2_trans", "ldmatrix_x4", "ldmatrix_x4_trans"])
def test_ldmatrix_deals_out_the_rows_that_lanes_name(tmp_path, name, schedule, check):
    n, rng = int(name[10]), np.random.default_rng(0)
    x, row = np.arange(512, dtype=np.uint16).reshape(32, 16), rng.permutation(32).astype(np.int32)
    y = np.empty((32, n), np.uint32)
    with emulator.settings(schedule=schedule, check=check):
        launch(ldmatrix_probe(tmp_path, name), x=x.view(np.float16), row=row, y=y)
    assert np.array_equal(y, loaded(x, row, n, name.endswith("trans")))


# ---- cp.async


@pytest.mark.parametrize("extra", [(), ("-DCG_ARCH=750",)], ids=["sm_90", "sm_75"])
@pytest.mark.parametrize("schedule,check", WAYS)
def test_copies_arrive_and_are_zero_where_not_valid(tmp_path, schedule, check, extra):
    x, y = floats()
    i = np.arange(128)
    with emulator.settings(schedule=schedule, check=check):
        launch(copy_probe(tmp_path, COPY), x=x, y=y, extra=extra)
        assert np.array_equal(y, np.where(i // 4 % 3 == 1, 0, x))
        launch(copy_probe(tmp_path, COPY_4), x=x, y=y, extra=extra)
        assert np.array_equal(y, np.where(i % 4 == 2, 0, x))


def test_a_copy_that_is_not_valid_reads_nothing(tmp_path):
    x, y = floats()
    file = copy_probe(tmp_path, COPY.replace("x + 4 * t, t % 3 != 1", "x + 4 * t + (t % 3 == 1) * 4096, t % 3 != 1"))
    for check in (False, True):
        with emulator.settings(check=check):
            launch(file, x=x, y=y)
        assert np.array_equal(y[:12], [0, 1, 2, 3, 0, 0, 0, 0, 8, 9, 10, 11])


@pytest.mark.parametrize("waits", range(5))
def test_a_wait_covers_all_groups_but_the_latest(tmp_path, waits):
    """Of four groups; what it does not cover is still poison, and an error in check mode."""
    x, y = floats()
    for landed in (4 - waits, 4):
        body = GROUPS.replace("WAITS", str(waits)).replace("LANDED", str(landed))
        file = copy_probe(tmp_path, body)
        launch(file, x=x, y=y)
        poison = np.isnan(y.reshape(-1, 4)).all(axis=0)
        assert poison.tolist() == [4 - waits <= i < landed and i != 2 for i in range(4)]
        if poison.any():
            assert "while the cp.async at" in told(file, x=x, y=y)
        else:
            with emulator.settings(check=True):
                launch(file, x=x, y=y)


# ---- wrong uses


@needs_lines
def test_a_missing_wait_shows_in_every_order(tmp_path):
    file = copy_probe(tmp_path, COPY.replace("cp_async_wait<0>();\n", "") + "\ncp_async_wait<0>();")
    x, y = floats()
    for schedule in emulator.SCHEDULES:
        with emulator.settings(schedule=schedule):
            launch(file, x=x, y=y)
        assert np.isnan(y).all()
    message = told(file, x=x, y=y)
    assert re.search(r"byte 0 is read while the cp.async at probe.cu:\d+ of thread 0 is under way", message)
    assert f"probe.cu:{line_of(file, 'y[4 * t + i]')}" in message


@needs_lines
@pytest.mark.parametrize("missing", ["cp_async_commit();\n", "cp_async_wait<0>();\n"])
def test_a_thread_that_returns_before_its_copies_landed(tmp_path, missing):
    file = copy_probe(tmp_path, COPY.replace(missing, "").replace(READ, ""))
    x, y = floats()
    message = told(file, check=False, x=x, y=y)
    assert "a thread returns without having waited for 1 of its cp.async" in message
    assert f"probe.cu:{line_of(file, 'cp_async16')}" in message


def test_a_wait_shows_nothing_to_other_threads_before_a_barrier(tmp_path):
    other = COPY.replace("kept[4 * t + i]", "kept[t / 2 * 4 + i]")
    x, y = floats()
    assert "race on static shared memory" in told(copy_probe(tmp_path, other), x=x, y=y)
    with emulator.settings(check=True):
        launch(copy_probe(tmp_path, other.replace("wait<0>();", "wait<0>();\n__syncthreads();")), x=x, y=y)


def test_a_stage_that_is_overwritten_while_others_read_it(tmp_path):
    """In a warp's own order all is well for a copy that lands late; it may land at once."""
    body = COPY.replace(READ, "__syncthreads();\n" + READ.replace("kept[4 * t", "kept[124 - 4 * t"))
    body += "\nBARRIERcp_async16(kept + 4 * t, x + 4 * t);\ncp_async_commit();\ncp_async_wait<0>();"
    x, y = floats()
    assert "race on static shared memory" in told(copy_probe(tmp_path, body.replace("BARRIER", "")), x=x, y=y)
    with emulator.settings(check=True):
        launch(copy_probe(tmp_path, body.replace("BARRIER", "__syncthreads();\n")), x=x, y=y)


def test_a_store_to_where_a_copy_is_under_way(tmp_path):
    body = COPY.replace("cp_async_wait", "kept[4 * t] = 1;\ncp_async_wait")
    x, y = floats()
    assert re.search(
        r"byte 0 is written while the cp.async at .* of thread 0 is under way",
        told(copy_probe(tmp_path, body), x=x, y=y),
    )


@needs_lines
def test_a_copy_past_the_end_of_either_side(tmp_path):
    x, y = floats()
    file = copy_probe(tmp_path, COPY.replace("x + 4 * t, t % 3 != 1", "x + 4 * t + 4"))
    for check, words in (
        (False, "illegal access: byte 512 of x, which has 512 bytes"),
        (True, "out of bounds: 16 bytes at byte 512 of x"),
    ):
        message = told(file, check, x=x, y=y)
        assert words in message and "thread (31, 0, 0)" in message
        assert f"probe.cu:{line_of(file, 'cp_async16')}" in message
    for check in (False, True):
        past = COPY.replace("cp_async16(kept + 4 * t", "cp_async16(kept + 4 * t + 4").replace(READ, "")
        message = told(copy_probe(tmp_path, past), check, schedule="reversed", x=x, y=y)
        assert "cp.async to" in message and "does not lie in shared memory" in message
        file = copy_probe(tmp_path, COPY.replace("cp_async16(kept", "cp_async16(y"))
        assert "cp.async to byte 0 of y, which has 512 bytes: that does not lie in shared memory" in told(
            file, check, x=x, y=y
        )


@pytest.mark.parametrize("side", ["kept + 4 * t", "x + 4 * t"])
def test_a_copy_askew(tmp_path, side):
    x, y = floats()
    file = copy_probe(tmp_path, COPY.replace(side, side + " - (t == 2)", 1))
    assert "cp.async of 16 bytes, of which an address is 12 past a multiple of 16" in told(file, False, x=x, y=y)


def test_a_copy_of_what_nothing_has_written(tmp_path):
    x, y = floats()
    assert "read of uninitialised y, byte 0" in told(
        copy_probe(tmp_path, COPY.replace("x + 4 * t,", "y + 4 * t,")), x=x, y=y
    )


def matrices():
    return {
        "x": np.zeros((32, 16), np.float16),
        "row": np.arange(32, dtype=np.int32),
        "y": np.empty((32, 4), np.uint32),
    }


def changed(folder, old, new, name="ldmatrix_x4"):
    """The probe of ldmatrix with a fault put in."""
    file = ldmatrix_probe(folder, name)
    text = Path(file).read_text(encoding="utf-8")
    assert old in text
    Path(file).write_text(text.replace(old, new), encoding="utf-8")
    return file


@needs_lines
def test_ldmatrix_of_a_row_askew_or_outside_shared_memory(tmp_path):
    file = changed(tmp_path, "row[threadIdx.x] * 16", "row[threadIdx.x] * 16 + (threadIdx.x == 9)")
    message = told(file, False, **matrices())
    assert "ldmatrix of a row at an address that is 2 past a multiple of 16" in message
    assert "thread (9, 0, 0)" in message and f"probe.cu:{line_of(file, 'ldmatrix_x4(')}" in message
    file = changed(tmp_path, "kept + row", "x + row")
    message = told(file, False, **matrices())
    assert re.search(
        "ldmatrix of byte .* of x, which has 1024 bytes and is const: that does not lie in shared memory", message
    )


def test_ldmatrix_of_what_nothing_has_written_and_before_a_barrier(tmp_path):
    file = changed(tmp_path, "i < 16; ++i) kept", "i < 7; ++i) kept")
    assert "read of uninitialised static shared memory, byte 1006" in told(file, **matrices())  # of row 31
    file = changed(tmp_path, "__syncthreads();", "")
    given = matrices()
    given["row"] //= 2
    assert "race on static shared memory" in told(file, **given)


@pytest.mark.parametrize("call", ["ldmatrix_x4(r", "mma_m16n8k16<__half>(d, r, b"])
def test_a_lane_that_is_missing_is_named(tmp_path, call):
    given = "unsigned r[4] = {};\nfloat d[4] = {};\nconst unsigned b[2] = {};\n"
    arguments = "" if "ldmatrix" in call else ", kept + row[threadIdx.x] * 16"
    file = changed(tmp_path, "unsigned r[4];\nldmatrix_x4(r" + arguments, f"{given}if (threadIdx.x != 7) {call}")
    message = told(file, False, **matrices())
    what = call.split("(")[0].split("<")[0]
    assert "deadlock" in message and f"threads 0 to 6 wait in {what} at" in message
    assert "threads 7 to 7 have returned" in message


def test_lanes_in_two_different_calls_of_one_instruction(tmp_path):
    call = "ldmatrix_x4(r, kept + row[threadIdx.x] * 16);"
    file = changed(tmp_path, call, f"if (threadIdx.x < 8)\n{call}\nelse\n{call}")
    message = told(file, False, **matrices())
    first = line_of(file, call)
    assert re.search(rf"ldmatrix_x4 at .*:{first + 2} .*, while lane 0 waits in ldmatrix_x4 at .*:{first} ", message)


def test_a_block_of_half_a_warp_has_no_matrix_instructions(tmp_path):
    file = changed(tmp_path, "block = 32", "block = 16")
    assert "lanes that the block does not have" in told(file, False, **matrices())


@needs_lines
def test_bank_conflicts_of_ldmatrix_are_counted_by_eight_lanes(tmp_path):
    """Rows 32 bytes apart: rows 0 and 4 of a matrix lie in the same banks; 48 bytes apart none do."""
    for apart, ratio in ((16, 2), (24, 1), (64, 8)):
        body = f"""__shared__ __align__(16) unsigned short kept[32 * {apart}];
for (int i = 0; i < {apart}; ++i) kept[threadIdx.x * {apart} + i] = 0;
__syncthreads();
unsigned r[4];
ldmatrix_x4(r, kept + threadIdx.x * {apart});
y[threadIdx.x] = r[0] + r[1] + r[2] + r[3];"""
        file = probe(tmp_path, body, "y: unsigned[N]", "unsigned* y, int N")
        with emulator.traffic() as found:
            launch(file, y=np.empty(32, np.uint32))
        place = f"probe.cu:{line_of(file, 'ldmatrix_x4(')}"
        assert found.lines["probe", place, "shared load"][0] == 1
        assert found.ratio("probe", place, "shared load") == ratio


@needs_lines
def test_copies_are_counted_as_loads_and_shared_stores(tmp_path):
    x, y = floats()
    for step, sectors in ((4, 1), (12, 2)):
        file = copy_probe(tmp_path, COPY.replace("x + 4 * t, t % 3 != 1", f"x + {step} * t"))
        with emulator.traffic() as found:
            launch(file, x=np.ones(32 * step, np.float32), y=y)
        place = f"probe.cu:{line_of(file, 'cp_async16')}"
        assert found.ratio("probe", place, "load") == sectors
        assert found.ratio("probe", place, "shared store") == 1


# ---- small ones


@pytest.mark.skipif(not shutil.which("clang++"), reason="clang++ is not installed")
def test_clang_builds_the_same(tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", "clang++")
    build.compiler.cache_clear()
    try:
        a, b = np.arange(256).reshape(16, 16).astype(np.float16), np.eye(16, 8, dtype=np.float16)
        x, y = floats()
        for check in (False, True):
            with emulator.settings(check=check):
                assert np.array_equal(*product(mma_probe(tmp_path), a, b, np.ones((16, 8), np.float32)))
                launch(copy_probe(tmp_path, COPY), x=x, y=y)
        assert np.array_equal(y[:8], [0, 1, 2, 3, 0, 0, 0, 0])
        missing = COPY.replace("cp_async_wait<0>();\n", "") + "\ncp_async_wait<0>();"
        assert "while the cp.async at" in told(copy_probe(tmp_path, missing), x=x, y=y)
    finally:
        build.compiler.cache_clear()


@pytest.mark.parametrize("name", HALVES)
def test_two_numbers_in_a_register(tmp_path, name):
    x = np.arange(64).astype(DTYPES[name])
    body = "y[threadIdx.x] = pack_two(x[2 * threadIdx.x], x[2 * threadIdx.x + 1]);"
    y = np.empty(32, np.uint32)
    launch(probe(tmp_path, body, "x: T[M]  y: unsigned[N]", "const T* x, unsigned* y, int N"), x=x, y=y)
    assert np.array_equal(y, words(x))


def test_eight_bytes_at_once(tmp_path):
    x, y = floats()
    file = probe(tmp_path, "st8(y + 2 * threadIdx.x, ld8(x + 2 * threadIdx.x));", block="N // 2")
    launch(file, x=x, y=y)
    assert np.array_equal(x, y)
    file = probe(tmp_path, "st8(y, ld8(x + threadIdx.x));", block="2")
    assert "a load of 8 bytes from an address that is 4 past a multiple of 8" in told(file, False, x=x, y=y)


@needs_nvrtc
@pytest.mark.parametrize("architecture", ["75", "80", "90", "120"])
def test_nvrtc_builds_them(tmp_path, architecture):
    def built(file, **given):
        made = plan(file, "probe", given, emulator.address, emulator.PROCESSORS)
        return nvrtc.resources(file, made.macros, architecture)["probe"]["spills"]

    x, y = floats()
    for name in HALVES:
        a, b, d = fragments(*(np.zeros(s, DTYPES[name]) for s in ((16, 16), (16, 8), (16, 8))))
        assert not built(mma_probe(tmp_path), a=a, b=b, t=np.zeros(1, DTYPES[name]), d=d.astype(np.float32))
        body = "y[threadIdx.x] = pack_two(x[2 * threadIdx.x], x[2 * threadIdx.x + 1]);"
        file = probe(tmp_path, body, "x: T[M]  y: unsigned[N]", "const T* x, unsigned* y, int N")
        assert not built(file, x=np.zeros(64, DTYPES[name]), y=np.zeros(32, np.uint32))
    for name in ("ldmatrix_x2", "ldmatrix_x2_trans", "ldmatrix_x4", "ldmatrix_x4_trans"):
        assert not built(
            ldmatrix_probe(tmp_path, name), **(matrices() | {"y": np.empty((32, int(name[10])), np.uint32)})
        )
    for body in (COPY, COPY_4, GROUPS.replace("WAITS", "1").replace("LANDED", "3")):
        assert not built(copy_probe(tmp_path, body), x=x, y=y)
    assert not built(probe(tmp_path, "st8(y + 2 * threadIdx.x, ld8(x + 2 * threadIdx.x));"), x=x, y=y)


def test_the_larger_is_a_nan_where_one_is(tmp_path):
    values = np.array([0, -1, 2, np.inf, -np.inf, np.nan, 1e-40], np.float32)
    a, b = (np.ascontiguousarray(m.ravel()) for m in np.meshgrid(values, values))
    y = np.empty_like(a)
    body = "y[threadIdx.x] = larger(a[threadIdx.x], b[threadIdx.x]);"
    file = probe(tmp_path, body, "a, b, y: float[N]", "const float* a, const float* b, float* y, int N")
    launch(file, a=a, b=b, y=y)
    assert np.array_equal(y, np.maximum(a, b), equal_nan=True)


def test_the_fast_exponential_is_0_below_the_normal_numbers(tmp_path):
    x = np.array([0, 1, -1, -87.3, -87.4, -100, -np.inf, np.inf, np.nan], np.float32)
    y = np.empty_like(x)
    launch(probe(tmp_path, "y[threadIdx.x] = fast_exp(x[threadIdx.x]);"), x=x, y=y)
    expected = np.exp(x.astype(float))
    assert np.allclose(y, np.where(expected < 2.0**-126, 0, expected), rtol=1e-5, atol=0, equal_nan=True)


SIXTEEN = """__shared__ __align__(16) float kept[4 * 32];
const int t = threadIdx.x;
st16(kept + 4 * t, ld16(x + 4 * t));
__syncthreads();
st16(y + 4 * t, ld16(kept + 4 * (31 - t)));"""


def test_sixteen_bytes_at_once_from_and_to_both_memories(tmp_path):
    x, y = floats()
    launch(probe(tmp_path, SIXTEEN, "x: float[N]  y: float[M]", block="32"), x=x, y=y)
    assert np.array_equal(y.reshape(-1, 4), x[:128].reshape(-1, 4)[::-1])


@needs_nvrtc
@pytest.mark.parametrize("architecture", nvrtc.ARCHITECTURES)
def test_nvrtc_stores_sixteen_bytes_to_the_memory_that_is_meant(tmp_path, architecture):
    """st.global with an address in shared memory is an illegal access, of which the emulator knows nothing."""
    x, y = floats()
    file = probe(tmp_path, SIXTEEN, "x: float[N]  y: float[M]", block="32")
    made = plan(file, "probe", {"x": x, "y": y}, emulator.address, emulator.PROCESSORS)
    try:
        found = nvrtc.instructions(file, made.macros, architecture)["probe"]
    except RuntimeError as reason:
        pytest.skip(str(reason))
    stores = {re.sub(r"\.(E|SYS)", "", name): n for name, n in found.items() if name.startswith("ST")}
    assert stores == {"STS.128": 1, "STG.128": 1}
