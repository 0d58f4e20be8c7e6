"""Check mode: faults put in on purpose, which it finds; what it counts; and that our kernels are clean."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import cudagrad
import cudagrad.config
from cudagrad.backend import emulator
from cudagrad.backend.emulator import KernelError
from cudagrad.backend.kernels.path import kernels_path

from .common import launch, line_of, needs_compiler, needs_lines, numbers, probe, told

pytestmark = needs_compiler


@pytest.fixture(autouse=True)
def checked():
    with emulator.settings(check=True):
        yield


SHARED = "__shared__ float kept[64];\nkept[threadIdx.x] = x[threadIdx.x];\n"


def test_a_clean_kernel_passes(tmp_path):
    x, y = numbers(64)
    launch(probe(tmp_path, SHARED + "__syncthreads();\ny[threadIdx.x] = kept[63 - threadIdx.x];"), x=x, y=y)
    assert np.array_equal(y, x[::-1])


@needs_lines
def test_a_missing_barrier_between_write_and_read(tmp_path):
    """The reader comes after the writer in this order of threads: the values are right, only the check sees it."""
    file = probe(tmp_path, SHARED + "y[threadIdx.x] = kept[threadIdx.x / 2];  // read")
    x, y = numbers(64)
    with emulator.settings(check=False):
        launch(file, x=x, y=y)
        assert np.array_equal(y, np.arange(64) // 2)
    message = told(file, x=x, y=y)
    assert (
        f"probe.cu:{line_of(file, '// read')}" in message
        and f"probe.cu:{line_of(file, 'kept[threadIdx.x] =')}" in message
    )
    assert "race on static shared memory: byte 0 is read, and was written by block 0, thread 0" in message


def test_a_missing_barrier_before_memory_is_used_again(tmp_path):
    body = SHARED + "__syncthreads();\nfloat v = kept[63 - threadIdx.x];\nkept[threadIdx.x] = v;\n__syncthreads();\n"
    file = probe(tmp_path, body + "y[threadIdx.x] = kept[threadIdx.x];")
    x, y = numbers(64)
    assert re.search("race on static shared memory: byte .* is (written|read), and was", told(file, x=x, y=y))


def test_a_missing_syncwarp_within_a_warp_and_one_that_is_there(tmp_path):
    x, y = numbers(32)
    read = "y[threadIdx.x] = kept[threadIdx.x / 2];"
    assert "race on static shared memory" in told(probe(tmp_path, SHARED + read), x=x, y=y)
    assert "race" in told(
        probe(tmp_path, SHARED + "__ballot_sync(0xffffffff, 1);\n" + read), x=x, y=y
    )  # orders no memory
    launch(probe(tmp_path, SHARED + "__syncwarp();\n" + read), x=x, y=y)


def test_two_blocks_that_add_without_atomics(tmp_path):
    shapes, parameters = "total: float[N] in place", "float* total, int N"
    body = "if (threadIdx.x == 0) {};"
    file = probe(tmp_path, body.format("total[0] += 1"), shapes, parameters, grid="2", block="32")
    message = told(file, total=np.zeros(1, np.float32))
    assert re.search("race on total: byte 0 is (read|written), and was written by block 0, thread 0", message)
    file = probe(tmp_path, body.format("atomicAdd(total, 1.0f)"), shapes, parameters, grid="2", block="32")
    total = np.zeros(1, np.float32)
    launch(file, total=total)
    assert total[0] == 2


LAST_BLOCK = """__shared__ bool last;
part[blockIdx.x * 64 + threadIdx.x] = blockIdx.x + threadIdx.x;
__syncthreads();
if (threadIdx.x == 0) {
  __threadfence();
  last = atomicAdd(count, 1) == gridDim.x - 1;
}
__syncthreads();
if (!last) return;
float sum = 0;
for (int b = 0; b < gridDim.x; ++b) sum += part[b * 64 + threadIdx.x];
total[threadIdx.x] = sum;"""


def last_block(folder, body):
    shapes = "count: int[N] in place  part: float[3,64]  total: float[64]"
    return probe(folder, body, shapes, "int* count, float* part, float* total, int N", grid="3", block="64")


def test_the_last_block_adds_up_what_the_others_wrote(tmp_path):
    """The programming guide's pattern; fences of all threads before the barrier serve as well."""
    every = LAST_BLOCK.replace("  __threadfence();\n", "").replace(
        "threadIdx.x;\n", "threadIdx.x;\n__threadfence();\n", 1
    )
    for body in (LAST_BLOCK, every):
        for schedule in emulator.SCHEDULES:
            total = np.empty(64, np.float32)
            given = {"count": np.zeros(1, np.int32), "part": np.empty((3, 64), np.float32), "total": total}
            with emulator.settings(schedule=schedule):
                launch(last_block(tmp_path, body), **given)
            assert np.array_equal(total, 3 + 3 * np.arange(64))


@pytest.mark.parametrize(
    "gone", ["  __threadfence();\n", "__syncthreads();\nif (threadIdx", "__syncthreads();\nif (!last"]
)
def test_the_last_block_without_its_fence_or_a_barrier(tmp_path, gone):
    body = LAST_BLOCK.replace(gone, gone.replace("__threadfence();", "").replace("__syncthreads();", "__syncwarp();"))
    given = {"count": np.zeros(1, np.int32), "part": np.empty((3, 64), np.float32), "total": np.empty(64, np.float32)}
    assert re.search("race on|uninitialised", told(last_block(tmp_path, body), **given))


def test_a_block_that_writes_what_another_reads(tmp_path):
    file = probe(
        tmp_path,
        "y[blockIdx.x] = 1;\nif (blockIdx.x == 0) y[0] = y[1];",
        "y: float[N] in place",
        "float* y, int N",
        grid="N",
        block="1",
    )
    assert "race on y: byte 4 is written, and was read by block 0" in told(file, y=np.zeros(2, np.float32))


def test_memory_that_nothing_has_written(tmp_path):
    x, y = numbers(64)
    body = "__shared__ float kept[64];\nif (threadIdx.x) kept[threadIdx.x] = 1;\n__syncthreads();\n"
    file = probe(tmp_path, body + "y[threadIdx.x] = kept[threadIdx.x];")
    assert "read of uninitialised static shared memory, byte 0: nothing has written it" in told(file, x=x, y=y)
    assert "read of uninitialised y, byte 4" in told(
        probe(tmp_path, "y[0] = 1;\nx[0] + y[1] > 0 ? y[0] = 2 : y[0] = 3;", block="1"), x=x, y=y
    )


def test_bounds_are_exact_where_guard_pages_are_not(tmp_path):
    """Below the array, and in the bytes that alignment leaves above it."""
    x, y = numbers(5)
    assert "out of bounds: 4 bytes at byte 20 of x, which has 20" in told(
        probe(tmp_path, "y[threadIdx.x] = x[threadIdx.x + 1];"), x=x, y=y
    )
    assert "out of bounds: 4 bytes at byte -4 of y, which has 20" in told(
        probe(tmp_path, "y[(int)threadIdx.x - 1] = 1;"), x=x, y=y
    )
    x, y = numbers(32)
    with pytest.raises(KernelError, match="out of bounds|illegal access"):
        launch(
            probe(tmp_path, "CG_DYNAMIC_SHARED(float, kept);\nkept[threadIdx.x + 1] = 1;", shared="4 * N"),
            x=x,
            y=y,
        )


def test_a_shared_array_of_a_template_function_is_refused(tmp_path):
    """g++ drops its section, so that nothing would poison or watch it; clang++ does not, and the race in it is seen."""
    path = probe(tmp_path, "y[threadIdx.x] = kept_in<4>(x[threadIdx.x]);")
    text = Path(path).read_text()
    helper = "template <int n>\n__device__ float kept_in(float v) {\n__shared__ float kept[n];\nkept[0] = v;\n"
    helper += "__syncthreads();\nreturn kept[0];\n}\n"
    Path(path).write_text(text.replace("/*\nprobe", helper + "\n/*\nprobe"))
    x, y = numbers(4)
    with pytest.raises(RuntimeError, match="kept is a __shared__ array of a template function|race on static shared"):
        launch(path, x=x, y=y)


def test_alignment_of_every_access(tmp_path):
    body = "*(double*)(y + 1) = x[0];"
    x, y = numbers(6)
    assert "8 bytes of y at an address that is 4 past a multiple of 8" in told(
        probe(tmp_path, body, block="1"), x=x, y=y
    )


@needs_lines
def test_sectors_of_strided_accesses_are_counted(tmp_path):
    body = "y[threadIdx.x] = x[8 * threadIdx.x];  // strided"
    file = probe(tmp_path, body, "x: float[M]  y: float[N]")
    x, y = np.ones(256, np.float32), np.empty(32, np.float32)
    with emulator.traffic() as found:
        launch(file, x=x, y=y)
    place = f"probe.cu:{line_of(file, '// strided')}"
    assert found.lines == {("probe", place, "load"): [1, 32, 4], ("probe", place, "store"): [1, 4, 4]}
    assert found.ratio("probe", place, "load") == 8
    assert found.touched == {"probe": [32 * 4 * 2]}


@needs_lines
@pytest.mark.parametrize(("index", "ratio"), [("i", 1), ("32 * i", 32), ("2 * i", 2), ("0", 1), ("33 * i", 1)])
def test_bank_conflicts_are_counted(tmp_path, index, ratio):
    body = "__shared__ float kept[1056];\nfor (int i = threadIdx.x; i < 1056; i += 32) kept[i] = 1;\n__syncthreads();\n"
    file = probe(tmp_path, body + f"int i = threadIdx.x;\ny[i] = kept[{index}];  // here")
    x, y = numbers(32)
    with emulator.traffic() as found:
        launch(file, x=x, y=y)
    assert found.ratio("probe", f"probe.cu:{line_of(file, '// here')}", "shared load") == ratio


# ---- our kernels


def with_fault(tmp_path, file, text, by):
    """A copy of the kernels' sources with the one place of ``text`` in ``file`` made ``by``."""
    for source in kernels_path().glob("*.cu*"):
        shutil.copy(source, tmp_path / source.name)
    changed = tmp_path / file
    whole = changed.read_text()
    assert whole.count(text) == 1, text
    changed.write_text(whole.replace(text, by))
    return tmp_path


def forward(file, shape):
    x, y = np.random.default_rng(0).standard_normal(shape).astype(np.float32), np.empty(shape, np.float32)
    mean, rstd = np.empty(shape[0], np.float32), np.empty(shape[0], np.float32)
    given = dict(x=x, w=x[0].copy(), b=x[1].copy(), y=y, mean=mean, rstd=rstd, eps=1e-5, centre=1)
    launch(str(file), "layer_norm_forward", **given)
    return y


FAULTS = {
    "the barrier before the warps' sums are read": ("common.cuh", "  __syncthreads();\n  v = combine", "  v = combine"),
    "the barrier after": ("common.cuh", "neutral);\n  __syncthreads();", "neutral);"),
    "an index shifted by one pack": (
        "layer_norm.cu",
        "store_pack(y + start + j, out)",
        "store_pack(y + start + j + 4, out)",
    ),
    "a bound left out": ("layer_norm.cu", "if (first(k) < C) load_pack", "load_pack"),
    "a row too many": ("layer_norm.cu", "if (i >= N) return;", "if (i > N) return;"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_put_into_layer_norm_is_caught(tmp_path, fault):
    file, text, by = FAULTS[fault]
    # rows of one warp share a block: 5 rows are one block of 4 and one of 1
    shape = (5, 128) if fault == "a row too many" else (5, 600)
    with pytest.raises(KernelError) as caught:
        forward(with_fault(tmp_path, file, text, by) / "layer_norm.cu", shape)
    assert re.search("race on|out of bounds|uninitialised|illegal access", str(caught.value))


def all_kernels(shape, dtype):
    """Both directions of every op with kernels, on rows of ``shape``."""
    F = cudagrad.nn.functional

    def leaf(*size):
        return cudagrad.randn(*size, device="emulated").to(dtype).detach().requires_grad_()

    x, w, b, residual = leaf(*shape), leaf(shape[1]), leaf(shape[1]), leaf(*shape)
    for y in (
        F.layer_norm(x, shape[1:], w, b),
        F.rms_norm(x, shape[1:], w),
        F.softmax(x, 1),
        F.log_softmax(x, 1),
        F.dropout(x),
        F.bias_dropout_add(x, b, residual),
        *F.add_layer_norm(x, residual, shape[1:], w, b),
        *F.add_rms_norm(x, residual, shape[1:], w),
    ):
        y.backward(leaf(*shape).detach(), retain_graph=True)
    classes = cudagrad.arange(shape[0], device="emulated")
    (F.cross_entropy(x, classes, label_smoothing=0.1) * 2).backward()
    cudagrad.logsumexp(x, 1).backward(leaf(shape[0]).detach())
    y, s = F.add_layer_norm(x, residual, shape[1:], w, b)
    cudagrad.autograd.backward([y, s], [leaf(*shape).detach(), leaf(*shape).detach()])


@pytest.mark.parametrize("shape", [(9, 200), (3, 1000), (5, 33), (2, 600)], ids=str)
@pytest.mark.parametrize("schedule", ["ordered", "eager"])
def test_our_kernels_have_no_race_in_any_order(monkeypatch, shape, schedule):
    monkeypatch.setattr(cudagrad.config, "STRICT", True)
    with emulator.settings(schedule=schedule, seed=2):
        all_kernels(shape, cudagrad.float32)


@needs_lines
@pytest.mark.parametrize("dtype", [cudagrad.float32, cudagrad.bfloat16], ids=str)
@pytest.mark.parametrize("columns", [1024, 2048])
def test_our_kernels_move_no_sector_in_vain(dtype, columns):
    """Rows of whole packs: every access of global memory is coalesced, none of shared memory meets a bank twice."""
    with emulator.traffic() as found:
        all_kernels((9, columns), dtype)
    assert {entry for entry, *_ in found.lines} >= {"layer_norm_forward", "layer_norm_backward", "softmax_forward"}
    wasteful = {line: found.ratio(*line) for line in found.lines if found.ratio(*line) > 1.01}
    assert not wasteful


def test_the_bytes_of_a_header_are_the_bytes_that_move(monkeypatch):
    """Each byte of each array read once and written once: a header states no more and no less."""
    stated, run = {}, emulator.run

    def noting(plan, extra=()):
        absent = {p.name for p, a in zip(plan.entry.parameters, plan.arguments) if p.pointer and a is None}
        known = absent <= {name.removeprefix("size_") for name in plan.entry.launch["bytes"].co_names}
        stated.setdefault(plan.entry.name, []).append(plan.cost("bytes") if known else None)
        return run(plan, extra)

    monkeypatch.setattr(emulator, "run", noting)
    with emulator.traffic() as found:
        for shape in ((9, 256), (9, 40), (3, 33), (2, 8200)):
            all_kernels(shape, cudagrad.float32)
    for entry, counts in stated.items():
        for expected, touched in zip(counts, found.touched[entry], strict=True):
            assert expected in (None, touched), entry  # None: an array was left out, and the header does not say
        assert any(counts), entry


def test_an_output_that_is_not_wholly_written_is_named_with_the_first_index(tmp_path):
    file = probe(tmp_path, "if (threadIdx.x != 5) y[threadIdx.x] = 1;")
    x, y = numbers(8)
    launch(file, x=x, y=y)
    with emulator.settings(whole=True):
        message = told(file, x=x, y=y)
        assert message == "probe: output y of shape (8,) was never written at index (5,)"
        launch(probe(tmp_path, "y[threadIdx.x] = 1;"), x=x, y=y)


def test_plain_cuda_without_our_headers_builds(tmp_path):
    """Dynamic shared memory in CUDA's own spelling, CUDA's includes, its min; the line of an error is the source's."""
    text = Path(probe(tmp_path, "", shared="4 * N")).read_text().replace("common.cuh", "cuda_fp16.h")
    body = "extern __shared__ float kept[];\nkept[threadIdx.x] = x[min(threadIdx.x, N)];\n__syncthreads();\n"
    Path(tmp_path / "probe.cu").write_text(text.replace("{\n\n}", "{\n" + body + "y[threadIdx.x] = kept[0]; // end\n}"))
    x, y = np.full(8, 3, np.float32), np.empty(8, np.float32)
    file = str(tmp_path / "probe.cu")
    launch(file, x=x, y=y)
    assert (y == 3).all()
    if shutil.which("addr2line"):
        Path(file).write_text(Path(file).read_text().replace("kept[0]", "kept[N]"))
        assert f"probe at probe.cu:{line_of(file, '// end')}: " in told(file, x=x, y=y)
