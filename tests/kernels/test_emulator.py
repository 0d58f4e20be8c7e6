"""The emulated device itself: what a faulty kernel is told, in which order threads run, and its number types."""

import re

import numpy as np
import pytest

from cudagrad.backend import emulator
from cudagrad.backend.emulator import build

from .common import DTYPES, launch, line_of, needs_compiler, numbers, probe, told

pytestmark = needs_compiler


def test_a_kernel_reads_and_writes(tmp_path):
    file = probe(
        tmp_path, "int i = blockIdx.x * blockDim.x + threadIdx.x;\nif (i < N) y[i] = 2 * x[i];", grid="4", block="32"
    )
    x, y = numbers(100)
    launch(file, x=x, y=y)
    assert np.array_equal(y, 2 * x)


def test_three_dims_of_blocks_and_threads(tmp_path):
    body = """int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
y[block * 24 + thread] += x[block * 24 + thread] + 1000 * block + thread;"""
    file = probe(tmp_path, body, "x: float[N]  y: float[N] in place", grid="(2, 1, 3)", block="(4, 2, 3)")
    x, y = numbers(144)
    y[:] = 0
    launch(file, x=x, y=y)
    i = np.arange(144)
    assert np.array_equal(y, x + 1000 * (i // 24) + i % 24)


def test_one_past_the_end_is_an_access_that_names_array_block_and_thread(tmp_path):
    file = probe(tmp_path, "y[threadIdx.x + (threadIdx.x == 7)] = x[threadIdx.x];", block="8")
    x, y = numbers(8)
    message = told(file, x=x, y=y)
    assert "illegal access: byte 32 of y, which has 32 bytes" in message
    assert "block (0, 0, 0), thread (7, 0, 0)" in message
    assert f"probe.cu:{line_of(file, 'threadIdx.x == 7')}" in message


def test_a_const_array_cannot_be_written(tmp_path):
    file = probe(tmp_path, "((float*)x)[threadIdx.x] = 1;")
    x, y = numbers(4)
    assert "byte 0 of x, which has 16 bytes and is const" in told(file, x=x, y=y)


def test_an_output_that_is_not_written_is_nan(tmp_path):
    file = probe(tmp_path, "if (threadIdx.x) y[threadIdx.x] = 1;")
    x, y = numbers(4)
    y[:] = 5
    launch(file, x=x, y=y)
    assert np.isnan(y[0]) and (y[1:] == 1).all()


def test_shared_memory_starts_as_nan_in_every_block(tmp_path):
    body = "__shared__ float kept[4];\ny[blockIdx.x * 4 + threadIdx.x] = kept[threadIdx.x];\nkept[threadIdx.x] = 1;"
    file = probe(tmp_path, body, grid="2", block="4")
    x, y = numbers(8)
    launch(file, x=x, y=y)
    assert np.isnan(y).all()


def test_dynamic_shared_memory_has_the_launchs_size_and_ends_at_a_guard(tmp_path):
    body = "CG_DYNAMIC_SHARED(float, kept);\nkept[threadIdx.x + {}] = x[threadIdx.x];\n__syncthreads();\n"
    body += "y[threadIdx.x] = kept[N - 1 - threadIdx.x];"
    x, y = numbers(8)
    launch(probe(tmp_path, body.format(0), shared="4 * N"), x=x, y=y)
    assert np.array_equal(y, x[::-1])
    message = told(probe(tmp_path, body.format("(threadIdx.x == 7)"), shared="4 * N"), x=x, y=y)
    assert "byte 32 of dynamic shared memory, which has 32 bytes" in message


def test_barriers_in_divergent_code_name_both_lines(tmp_path):
    body = (
        "if (threadIdx.x < 3) {\n__syncthreads();  // one\n} else {\n__syncthreads();  // other\n}\ny[threadIdx.x] = 0;"
    )
    file = probe(tmp_path, body)
    x, y = numbers(8)
    message = told(file, x=x, y=y)
    for place in ("// one", "// other"):
        assert f"probe.cu:{line_of(file, place)}" in message
    assert "must meet at the same one" in message


def test_a_deadlock_says_who_waits_where(tmp_path):
    body = "if (threadIdx.x == 5) return;\n__syncthreads();\ny[threadIdx.x] = 0;"
    file = probe(tmp_path, body)
    x, y = numbers(8)
    lines = told(file, x=x, y=y).splitlines()
    at = f"probe.cu:{line_of(file, '__syncthreads')}"
    assert "deadlock in block (0, 0, 0)" in lines[0]
    assert lines[1:] == [
        f"  threads 0 to 4 wait in __syncthreads at {at}",
        "  threads 5 to 5 have returned",
        f"  threads 6 to 7 wait in __syncthreads at {at}",
    ]


def test_a_shuffle_that_not_all_lanes_reach_is_a_deadlock(tmp_path):
    body = (
        "float v = x[threadIdx.x];\nif (threadIdx.x < 16) v = __shfl_xor_sync(0xffffffff, v, 1);\ny[threadIdx.x] = v;"
    )
    x, y = numbers(32)
    message = told(probe(tmp_path, body), x=x, y=y)
    assert "threads 0 to 15 wait in __shfl_xor_sync" in message and "mask ffffffff" in message


def test_lanes_that_meet_in_different_collectives_are_told_apart(tmp_path):
    body = "float v = x[threadIdx.x];\nif (threadIdx.x < 16) v = __shfl_xor_sync(0xffffffff, v, 1);\n"
    body += "else v = __ballot_sync(0xffffffff, v > 3);\ny[threadIdx.x] = v;"
    x, y = numbers(32)
    assert re.search(
        r"__ballot_sync at .* while lane 0 waits in __shfl_xor_sync at", told(probe(tmp_path, body), x=x, y=y)
    )


def test_a_mask_must_name_the_caller_and_lanes_that_exist(tmp_path):
    x, y = numbers(32)
    body = "y[threadIdx.x] = __shfl_xor_sync({}, x[threadIdx.x], 1);"
    assert "which does not name it" in told(probe(tmp_path, body.format("0x0000ffff")), x=x, y=y)
    x, y = numbers(20)
    assert "lanes that the block does not have" in told(probe(tmp_path, body.format("0xffffffff")), x=x, y=y)


def test_a_lane_outside_the_mask_has_no_value_to_give(tmp_path):
    body = "if (threadIdx.x < 16) y[threadIdx.x] = __shfl_xor_sync(0x0000ffff, x[threadIdx.x], 16);"
    x, y = numbers(32)
    assert "lane 0 shuffles from lane 16, which is not in the mask 0000ffff" in told(probe(tmp_path, body), x=x, y=y)


@pytest.mark.parametrize("schedule", emulator.SCHEDULES)
def test_shuffles_and_votes_are_those_of_the_programming_guide(tmp_path, schedule):
    body = """const unsigned all = 0xffffffff;
float v = x[threadIdx.x];
y[threadIdx.x] = __shfl_sync(all, v, 5);
y[N + threadIdx.x] = __shfl_up_sync(all, v, 3);
y[2 * N + threadIdx.x] = __shfl_down_sync(all, v, 3, 16);
y[3 * N + threadIdx.x] = __shfl_xor_sync(all, v, 6);
y[4 * N + threadIdx.x] = __ballot_sync(all, threadIdx.x % 3 == 0) % 65536;
y[5 * N + threadIdx.x] = 2 * __any_sync(all, threadIdx.x == 40) + __all_sync(all, threadIdx.x < 32);"""
    file = probe(tmp_path, body, "x: float[N]  y: float[6,N]")
    x, y = np.arange(64, dtype=np.float32), np.empty((6, 64), np.float32)
    with emulator.settings(schedule=schedule, seed=3):
        launch(file, x=x, y=y)
    lane, i = np.arange(64) % 32, np.arange(64)
    assert np.array_equal(y[0], i - lane + 5)
    assert np.array_equal(y[1], np.where(lane < 3, i, i - 3))
    assert np.array_equal(y[2], np.where(lane % 16 > 12, i, i + 3))
    assert np.array_equal(y[3], i ^ 6)
    votes = [sum(1 << k for k in range(16) if (k + start) % 3 == 0) for start in (0, 32)]
    assert np.array_equal(y[4], np.repeat(votes, 32))
    assert np.array_equal(y[5], np.repeat([1, 2], 32))


def test_schedules_run_threads_in_different_orders(tmp_path):
    """Thread i writes down how many went before it; atomics are taken in the order in which threads run."""
    body = "y[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd(counter, 1);"
    shapes, parameters = "counter: int[N] in place  y: float[M]", "int* counter, float* y, int N"
    file = probe(tmp_path, body, shapes, parameters, grid="2", block="64")
    orders = {}
    for schedule in emulator.SCHEDULES:
        counter, y = np.zeros(1, np.int32), np.empty(128, np.float32)
        with emulator.settings(schedule=schedule, seed=1):
            launch(file, counter=counter, y=y)
        assert counter[0] == 128 and sorted(y) == list(range(128))
        orders[schedule] = y
    assert np.array_equal(orders["ordered"], np.arange(128))
    assert np.array_equal(orders["reversed"], np.arange(128)[::-1])
    assert not np.array_equal(orders["random"], np.arange(128))
    assert not np.array_equal(orders["random"], orders["eager"])


def test_a_seed_repeats_a_random_order(tmp_path):
    shapes, parameters = "counter: int[N] in place  y: float[M]", "int* counter, float* y, int N"
    file = probe(tmp_path, "y[threadIdx.x] = atomicAdd(counter, 1);", shapes, parameters, block="64")

    def order(seed):
        y = np.empty(64, np.float32)
        with emulator.settings(schedule="random", seed=seed):
            launch(file, counter=np.zeros(1, np.int32), y=y)
        return y.tolist()

    assert order(5) == order(5) != order(6)


def test_a_missing_barrier_shows_in_some_order(tmp_path):
    body = "__shared__ float kept[64];\nkept[threadIdx.x] = x[threadIdx.x];\ny[threadIdx.x] = kept[63 - threadIdx.x];"
    file = probe(tmp_path, body)
    x, y = numbers(64)
    for schedule in emulator.SCHEDULES:
        with emulator.settings(schedule=schedule):
            launch(file, x=x, y=y)
        assert np.isnan(y).any(), schedule


def test_a_16_byte_load_must_lie_on_16_bytes(tmp_path):
    file = probe(tmp_path, "st16(y, ld16(x + threadIdx.x));", block="2")
    x, y = numbers(8)
    message = told(file, x=x, y=y)
    assert (
        "a load of 16 bytes from an address that is 4 past a multiple of 16" in message
        and "thread (1, 0, 0)" in message
    )


def test_a_stack_that_runs_over_is_named(tmp_path):
    body = (
        "volatile char much[80 << 10];\nfor (int i = sizeof much - 1; i >= 0; i -= 512) much[i] = 1;\ny[0] = much[0];"
    )
    x, y = numbers(1)
    assert "a thread's stack" in told(probe(tmp_path, body), x=x, y=y)


def test_division_by_zero_and_the_next_launch_after_an_error(tmp_path):
    file = probe(tmp_path, "y[threadIdx.x] = N / (int)x[threadIdx.x];")
    x, y = numbers(4)
    assert "integer division by zero" in told(file, x=x, y=y)
    launch(file, x=x + 1, y=y)
    assert np.array_equal(y, 4 // np.arange(1, 5))


@pytest.mark.parametrize(
    "body, words",
    [
        ("y[threadIdx.x] = threadIdx.x / (N - N);", "a trap"),  # the compiler sees that it divides by 0
        ("if (threadIdx.x == 1) __trap();", "a trap: __trap()"),
        ("assert(x[threadIdx.x] < 1);", "assertion x[threadIdx.x] < 1 failed"),
        ("y[threadIdx.x + 100000] = 1;", "illegal access: byte 400000 of y"),
        ("y[(int)threadIdx.x - 100000] = 1;", "illegal access: byte -400000 of y"),
        ("volatile char much[300000]; much[threadIdx.x] = 0;", "a thread's stack"),
    ],
)
def test_what_would_end_the_process_or_spoil_its_memory_is_an_error_of_the_kernel(tmp_path, body, words):
    file = probe(tmp_path, body)
    x, y = numbers(4)
    assert words in told(file, x=x, y=y)


def test_a_kernel_that_throws_does_not_compile(tmp_path):
    x, y = numbers(4)
    with pytest.raises(RuntimeError, match="exception handling disabled|cannot use 'throw'"):
        launch(probe(tmp_path, "throw 1;"), x=x, y=y)


def test_fibers_by_ucontext_do_the_same(tmp_path):
    """What other processors than x86-64 and aarch64 use."""
    body = "__shared__ float kept[64];\nkept[threadIdx.x] = x[threadIdx.x];\n__syncthreads();\n"
    body += "y[threadIdx.x] = __shfl_xor_sync(0xffffffff, kept[63 - threadIdx.x], 1);"
    x, y = numbers(64)
    launch(probe(tmp_path, body), extra=("-DCG_UCONTEXT",), x=x, y=y)
    assert np.array_equal(y, np.arange(63, -1, -1).reshape(-1, 2)[:, ::-1].ravel())


def test_half_types_round_as_numpy_does(tmp_path):
    """Every float16, and floats at and around the middle between neighbours; bfloat16 likewise."""
    bits = np.arange(65536, dtype=np.uint16)
    for name in ("float16", "bfloat16"):
        dtype = DTYPES[name]
        every = bits.view(dtype).astype(np.float32)
        with np.errstate(all="ignore"):
            between = ((every[1:].astype(np.float64) + every[:-1]) / 2).astype(np.float32)
            near = np.nextafter(between, np.float32(np.inf), dtype=np.float32)
            far = np.nextafter(between, np.float32(-np.inf), dtype=np.float32)
        x = np.concatenate([every, between, near, far, np.float32([65519, 65520, 3.4e38, 1e-10, 2.0**-25])])
        y, back = np.empty(x.size, dtype), np.empty(x.size, np.float32)
        shapes, parameters = "x, back: float[N]  y: T[N]", "const float* x, T* y, float* back, int N"
        body = "int i = blockIdx.x * blockDim.x + threadIdx.x;\nif (i < N) y[i] = (T)x[i], back[i] = (float)y[i];"
        file = probe(tmp_path, body, shapes, parameters, grid="ceil(N, 1024)", block="1024")
        launch(file, x=x, y=y, back=back)
        with np.errstate(all="ignore"):
            expected = x.astype(dtype)
        same = (y.view(np.uint16) == expected.view(np.uint16)) | (np.isnan(x) & np.isnan(back))
        assert same.all(), (name, x[~same][:5], y[~same][:5], expected[~same][:5])
        assert np.array_equal(back, expected.astype(np.float32), equal_nan=True)


def test_a_source_that_does_not_compile_shows_the_compilers_words(tmp_path):
    x, y = numbers(1)
    with pytest.raises(RuntimeError, match=r"probe\.cu does not compile:(.|\n)*nonsense"):
        launch(probe(tmp_path, "nonsense;"), x=x, y=y)


def test_without_a_compiler_one_sentence_says_so(monkeypatch):
    monkeypatch.setattr(build.shutil, "which", lambda name: None)
    build.compiler.cache_clear()
    try:
        with pytest.raises(RuntimeError, match="with a C.. compiler, and there is no g.. or clang.. here: install one"):
            build.compiler()
    finally:
        build.compiler.cache_clear()


def test_a_compiler_that_is_named_and_not_there_is_not_another_one_silently(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    build.compiler.cache_clear()
    try:
        with pytest.raises(RuntimeError, match="there is no no-such-compiler here: .* environment variable CXX"):
            build.compiler()
    finally:
        build.compiler.cache_clear()


def test_an_unknown_schedule_is_refused():
    with pytest.raises(ValueError, match="schedule 'backwards' is none of ordered, reversed, random, eager"):
        with emulator.settings(schedule="backwards"):
            pass
