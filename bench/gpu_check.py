"""Is this GPU served right, and how fast? One command for ten minutes on a GPU machine; ``--emulate`` rehearses it.

Writes a line of JSON for each finished item to DIR/results.jsonl at once, so that a run cut short keeps what it found,
and at its end a table with PASS or the miss against each target. PyTorch is the peer where it is installed with CUDA.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

import numpy as np  # noqa: E402
from gpu_time import synchronize, time_work, timed  # noqa: E402
from gpu_work import WORK  # noqa: E402

import cudagrad  # noqa: E402
from cudagrad import config  # noqa: E402
from cudagrad.backend.kernels import nvrtc  # noqa: E402
from cudagrad.backend.kernels.header import entries  # noqa: E402
from cudagrad.backend.kernels.path import kernels_path  # noqa: E402
from cudagrad.tools.kernels import DTYPES, variant  # noqa: E402

# Of the largest element expected, beside float64: what rounding once and sums in float32 leave.
TOLERANCE = {"float32": 1e-5, "float16": 5e-3, "bfloat16": 3e-2}


class Report:
    """The file of finished items, the time left, and the table."""

    def __init__(self, folder, budget):
        self.start, self.budget = time.monotonic(), budget
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.rows = folder, []

    def left(self):
        return self.budget - (time.monotonic() - self.start)

    def add(self, phase, item, passed, **facts):
        """``passed``: True, False, or None where there is nothing to pass."""
        row = {"phase": phase, "item": item, "passed": passed, "at": round(time.monotonic() - self.start, 1), **facts}
        self.rows.append(row)
        with open(self.folder / "results.jsonl", "a", encoding="utf-8") as file:
            print(json.dumps(row), file=file, flush=True)
            os.fsync(file.fileno())

    def table(self):
        words = {True: "PASS", False: "miss", None: "-"}
        for row in self.rows:
            facts = {k: v for k, v in row.items() if k not in ("phase", "item", "passed", "at")}
            told = "  ".join(f"{k} {v}" for k, v in facts.items())
            print(f"{row['phase']}  {row['item']:44s} {words[row['passed']]:5s} {told}"[:200])


def guarded(report, phase, item, run):
    """One item: an error is its result, and the next one runs; skipped when the time is short."""
    if report.left() < 5:
        report.add(phase, item, None, skipped="no time left")
        return
    try:
        run()
    except Exception as error:  # a row of the table, whatever it is
        report.add(phase, item, False, error=f"{type(error).__name__}: {str(error).splitlines()[0][:300]}")


# ---- A: the machine


def machine(report, device, emulate):
    facts = {"python": platform.python_version(), "numpy": np.__version__, "cpu": platform.processor()}
    for name in ("cupy", "torch", "triton"):
        try:
            facts[name] = __import__(name).__version__
        except ImportError:
            facts[name] = None
    report.add("A", "versions", None, **facts)
    if shutil.which("nvidia-smi"):
        asked = "name,driver_version,clocks.sm,clocks.mem,temperature.gpu,memory.used,utilization.gpu,ecc.mode.current"
        told = subprocess.run(
            ["nvidia-smi", f"--query-gpu={asked}", "--format=csv,noheader"], capture_output=True, text=True
        )
        report.add("A", "nvidia-smi", None, told=told.stdout.strip())
    return copy_bandwidth(report, device, emulate)


def copy_bandwidth(report, device, emulate):
    """Bytes read and written in a second by a copy: the ceiling of all that is bound by memory."""
    count = (1 << 16) if emulate else (1 << 30)
    x = cudagrad.zeros(count, device=device)
    y = cudagrad.empty(count, device=device)
    seconds = timed(lambda: y.copy_(x), device, 20)
    rate = 2 * 4 * count / seconds
    report.add("A", "copy", None, GB_per_s=round(rate / 1e9, 1))
    return rate


# ---- B: every kernel built


def architecture(emulate):
    if emulate:
        return "90"
    major, minor = cudagrad.cuda.get_device_capability()
    return "90a" if (major, minor) == (9, 0) else f"{major}{minor}"


def _build(job):
    file, name, dtype, columns, arch = job
    start = time.monotonic()
    made = variant(file, name, DTYPES[dtype], columns)
    told = nvrtc.resources(file, made.macros, arch)[name]
    return job, told, time.monotonic() - start


def compiles(report, emulate):
    """Every entry for this GPU, in parallel, so that later phases only load."""
    try:
        nvrtc.compiler()
    except RuntimeError as error:
        report.add("B", "compile", None if emulate else False, why=str(error))
        return
    files = sorted(p.name for p in kernels_path().glob("*.cu"))
    arch = architecture(emulate)
    columns = (4096,) if emulate else (1000, 1024, 4096, 8192)
    jobs = [(f, n, d, c, arch) for f in files for n in entries(f) for d in DTYPES for c in columns]
    context = __import__("multiprocessing").get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(min(14, os.cpu_count()), mp_context=context) as pool:
        for future in concurrent.futures.as_completed([pool.submit(_attempt, job) for job in jobs]):
            job, told, seconds = future.result()
            passed = told["spills"] == 0 if isinstance(told, dict) else None if told.startswith("Unfit") else False
            facts = told if isinstance(told, dict) else {"why": told}
            if passed is not True or not emulate:
                report.add("B", " ".join(map(str, job)), passed, **facts, seconds=round(seconds, 2))
    report.add("B", "built", True, entries=len(jobs), arch=arch)


def _attempt(job):
    try:
        return _build(job)
    except Exception as error:
        return job, f"{type(error).__name__}: {str(error).splitlines()[0][:200]}", 0.0


# ---- C: right results


def leaves_of(work, size, dtype, seed=0):
    """NumPy arrays, rounded to ``dtype``."""
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(DTYPES[dtype]) for shape in work.shapes_of(*size)]


def run_once(call, arrays, device, dtype=None, torch=cudagrad):
    """[output, gradients...] as NumPy float64, and the raw bytes of all."""
    made = [torch.from_numpy(np.ascontiguousarray(a)).to(device) for a in arrays]
    made = [(t if dtype is None else t.to(dtype)).requires_grad_() for t in made]
    out = call(torch, *made)
    g = np.asarray(np.random.default_rng(9).standard_normal(tuple(out.shape)))
    out.backward(torch.from_numpy(g).to(out.dtype).to(device))
    found = [out.detach(), *(t.grad for t in made)]
    host = [t.cpu() for t in found]
    return [h.double().numpy() for h in host], [h.numpy().tobytes() for h in host]


def error_of(got, expected):
    """The largest error over the largest element expected; infinite where not-a-numbers differ."""
    if not expected.size:
        return 0.0
    if (np.isnan(got) != np.isnan(expected)).any():
        return float("inf")
    return float(np.nanmax(np.abs(got - expected)) / max(np.nanmax(np.abs(expected)), 1e-3))


def check(report, work, size, dtype, device):
    arrays = leaves_of(work, size, dtype)
    config.STRICT = bool(min(size))  # a fallback would check nothing
    try:
        runs = [run_once(work.call, arrays, device) for _ in range(3 if device == "cuda" else 1)]
    finally:
        config.STRICT = False
    wide = [a.astype(np.float64) for a in arrays]
    expected, _ = run_once(work.call, wide, "cpu")
    worst = max(error_of(g, e) for g, e in zip(runs[0][0], expected))
    room = TOLERANCE[dtype]
    if size[-1] == 1:  # a norm of one column: gradients are differences of equals, each times an rstd of 300 and more
        text, _ = run_once(work.call, arrays, "cpu")
        room = 4 * max(room, *(error_of(t, e) for t, e in zip(text, expected)))
    same = all(raw == runs[0][1] for _, raw in runs)
    item = f"{work.name} {'x'.join(map(str, size))} {dtype}"
    report.add("C", item, worst <= room and same, error=float(f"{worst:.2g}"), bits_repeat=same)


def correct(report, device, only):
    for work in WORK:
        if only and work.name not in only:
            continue
        for size in work.checked if device == "cuda" else work.checked[:-1]:
            for dtype in work.dtypes:
                guarded(report, "C", f"{work.name} {size} {dtype}", lambda: check(report, work, size, dtype, device))
    if only:
        return
    guarded(report, "C", "philox", lambda: philox(report, device))
    if device == "cuda":
        guarded(report, "C", "graph capture", lambda: captured(report))
        guarded(report, "C", "two streams", lambda: two_streams(report))
        guarded(report, "C", "more than 2^31 elements", lambda: huge(report))


def philox(report, device):
    cudagrad.manual_seed(11)
    here = cudagrad.nn.functional.dropout(cudagrad.ones(100_003, device=device), 0.3).cpu().numpy()
    cudagrad.manual_seed(11)
    there = cudagrad.nn.functional.dropout(cudagrad.ones(100_003), 0.3).numpy()
    report.add("C", "philox bits are NumPy's", here.tobytes() == there.tobytes())


def captured(report):
    """A captured step gives, with inputs changed in place, what the step itself gives."""
    cupy = __import__("cupy")
    F = cudagrad.nn.functional
    x, w = cudagrad.randn(64, 256, device="cuda"), cudagrad.ones(256, device="cuda")

    def step():
        return F.softmax(F.layer_norm(x, (256,), w), -1)

    step()
    stream, y = cupy.cuda.Stream(non_blocking=True), None
    with stream:
        stream.begin_capture()
        y = step()
        graph = stream.end_capture()
    worst = 0.0
    for seed in range(3):
        x.copy_(cudagrad.from_numpy(np.random.default_rng(seed).standard_normal((64, 256)).astype("f4")).to("cuda"))
        cudagrad.cuda.synchronize()
        graph.launch(stream)
        stream.synchronize()
        worst = max(worst, error_of(y.cpu().double().numpy(), step().cpu().double().numpy()))
    report.add("C", "graph capture", worst == 0.0, error=worst)


def two_streams(report):
    F = cudagrad.nn.functional
    x = cudagrad.randn(4096, 4096, device="cuda")
    expected = F.softmax(x, -1).cpu().numpy()
    streams = [cudagrad.cuda.Stream() for _ in range(2)]
    cudagrad.cuda.synchronize()
    found = []
    for s in streams * 4:
        with cudagrad.cuda.stream(s):
            found.append(F.softmax(x, -1))
    cudagrad.cuda.synchronize()
    report.add("C", "two streams", all((f.cpu().numpy() == expected).all() for f in found))


def huge(report):
    x = cudagrad.ones(2**31 // 4096 + 1, 4096, device="cuda", dtype=cudagrad.bfloat16)
    y = cudagrad.softmax(x, -1)
    report.add("C", "more than 2^31 elements", y[-1].cpu().float().numpy().tolist() == [1 / 4096] * 4096)


# ---- D: the sanitizer, F: the profiler


def sanitized(report):
    """memcheck and racecheck over the small checks of each kernel, in a process of its own."""
    tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not pathlib.Path(tool).exists():
        report.add("D", "compute-sanitizer", None, why="not on this machine")
        return
    for kind in ("memcheck", "racecheck"):
        command = [tool, "--tool", kind, "--error-exitcode", "9", sys.executable, __file__, "--phases", "C"]
        command += ["--only", *(w.name for w in WORK), "--out", str(report.folder / kind)]
        done = subprocess.run([*command, "--budget", "40"], capture_output=True, text=True, timeout=120)
        last = (done.stdout + done.stderr).strip().splitlines()[-1:]
        clean = "ERROR SUMMARY: 0 errors" in done.stdout + done.stderr or "RACECHECK SUMMARY: 0 " in done.stdout
        report.add("D", kind, clean, status=done.returncode, told=" ".join(last)[:200])


def profiled(report):
    tool = shutil.which("ncu")
    if tool is None:
        report.add("F", "ncu", None, why="not on this machine")
        return
    metrics = "dram__bytes.sum,sm__warps_active.avg.pct_of_peak_sustained_active"
    for name in ("layer_norm", "softmax", "cross_entropy", "linear_relu"):
        command = [tool, "--clock-control", "none", "--metrics", metrics, "--launch-count", "6"]
        command += ["--kernel-name", f"regex:{name.split('_')[0]}", sys.executable, __file__]
        command += ["--phases", "E", "--only", name, "--out", str(report.folder / "ncu")]
        done = subprocess.run([*command, "--budget", "30"], capture_output=True, text=True, timeout=90)
        lines = [
            " ".join(line.split()) for line in done.stdout.splitlines() if "dram__bytes" in line or "warps" in line
        ]
        report.add("F", name, None, status=done.returncode, told=lines[:6])


# ---- E: time


def fast(report, device, rate, only):
    for work in WORK:
        for dtype in ("bfloat16", "float32"):
            if only and work.name not in only:
                continue
            guarded(report, "E", f"{work.name} {dtype}", lambda: time_work(report, work, dtype, device, rate, 20))


# ---- G: the host


def host(report, device):
    """Microseconds of Python an op costs, with nothing waited for, and a trace of a training loop."""
    F = cudagrad.nn.functional
    x = cudagrad.randn(8, 64, device=device)
    w = cudagrad.ones(64, device=device)
    count = 20 if device != "cuda" else 2000
    with cudagrad.no_grad():
        for name, run in (
            ("mul", lambda: x * x),
            ("softmax", lambda: x.softmax(-1)),
            ("layer_norm", lambda: F.layer_norm(x, (64,), w)),
        ):
            run()
            synchronize(device)
            start = time.perf_counter()
            for _ in range(count):
                run()
            spent = (time.perf_counter() - start) / count
            synchronize(device)
            report.add("G", f"host {name}", None, us=round(spent * 1e6, 2))
    train(report, device)


def train(report, device):
    """Ten seconds of a small GPT on a GPU, a few steps elsewhere, under nvidia-smi's eye."""
    from cudagrad import nn

    cudagrad.manual_seed(0)
    width, length, batch = (512, 256, 16) if device == "cuda" else (16, 8, 2)
    layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.1, activation="gelu", batch_first=True).to(device)
    head = nn.Linear(width, 65).to(device)
    optimizer = cudagrad.optim.AdamW([*layer.parameters(), *head.parameters()], lr=1e-3)
    x, y = (
        cudagrad.randn(batch, length, width, device=device),
        cudagrad.zeros(batch * length, dtype=cudagrad.int64, device=device),
    )
    watch = None
    if device == "cuda" and shutil.which("nvidia-smi"):
        watch = subprocess.Popen(["nvidia-smi", "dmon", "-c", "8", "-s", "pucm"], stdout=subprocess.PIPE, text=True)
    start, count = time.perf_counter(), 0
    while count < 3 or (device == "cuda" and time.perf_counter() - start < 10):
        loss = cudagrad.nn.functional.cross_entropy(head(layer(x)).flatten(0, 1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        count += 1
    last = loss.item()
    facts = {"steps_per_s": round(count / (time.perf_counter() - start), 2), "loss": round(last, 4)}
    if watch:
        facts["dmon"] = watch.communicate()[0].splitlines()[-8:]
    report.add("G", "training", bool(np.isfinite(last)), **facts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("gpu_check"), help="folder of the results")
    parser.add_argument("--budget", type=float, default=540, help="seconds in all")
    parser.add_argument("--emulate", action="store_true", help="run on the emulated device, with small shapes")
    parser.add_argument("--phases", default="ABCDEFG", help="which of A machine, B builds, C results, D sanitizer, ...")
    parser.add_argument("--only", nargs="*", help="names of work")
    given = parser.parse_args()
    device = "emulated" if given.emulate else "cuda"
    if not given.emulate and not cudagrad.cuda.is_available():
        sys.exit("there is no CUDA device here; rehearse with --emulate")
    report = Report(given.out, given.budget)
    rate = 1.0
    run = {
        "B": lambda: compiles(report, given.emulate),
        "C": lambda: correct(report, device, given.only),
        "D": lambda: sanitized(report),
        "E": lambda: fast(report, device, rate, given.only),
        "F": lambda: profiled(report),
        "G": lambda: host(report, device),
    }
    if set(given.phases) & set("AE"):
        rate = machine(report, device, given.emulate)
    for phase in given.phases:
        if phase in run and not (given.emulate and phase in "DF"):
            guarded(report, phase, "phase", run[phase])
    report.table()
    failed = [row for row in report.rows if row["passed"] is False]
    print(f"{len(report.rows)} items, {len(failed)} missed, {time.monotonic() - report.start:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
