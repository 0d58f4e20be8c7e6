"""What does a launch cost the host? ``cuda.run``, and what it could be made of: CuPy's calls, the driver's by ctypes.

On a GPU machine with the real driver. Elsewhere with CuPy's own arrays over host memory and a library built here whose
``cuLaunchKernelEx`` does nothing, so all that is ours is timed; CuPy's own calls need a driver. Target: 3 us.
"""

import contextlib
import ctypes
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from cudagrad.backend import cuda  # noqa: E402
from cudagrad.backend.kernels import elementwise  # noqa: E402
from cudagrad.backend.kernels.launch import plan  # noqa: E402

TARGET_US = 3.0
ROWS, COLUMNS, PROCESSORS = 64, 64, 132
STUB = """
extern "C" int cuLaunchKernelEx(const void*, void*, void**, void**) { return 0; }
typedef unsigned u;
extern "C" int cuLaunchKernel(void*, u, u, u, u, u, u, u, void*, void**, void**) { return 0; }
"""


def timed(call, wait, calls, times):
    """The least time of a call in us, of ``times`` rounds of ``calls``; the GPU catches up between the rounds."""
    best = math.inf
    for _ in range(times):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, time.perf_counter() - start)
        wait()
    return best / calls * 1e6


@contextlib.contextmanager
def stub():
    """A library that stands for the driver's."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise SystemExit("without a driver the benchmark builds one that does nothing, with g++ or clang++")
    with tempfile.TemporaryDirectory() as folder:
        source, library = os.path.join(folder, "stub.cpp"), os.path.join(folder, "stub.so")
        with open(source, "w") as file:
            file.write(STUB)
        subprocess.run([compiler, "-O2", "-shared", "-fPIC", source, "-o", library], check=True)
        yield ctypes.CDLL(library)


class Stubbed(cuda.Driver):
    """The driver's part without a driver: one GPU, the null stream, a function that is nowhere."""

    def __init__(self, library):
        self.launch, self.index = library.cuLaunchKernelEx, None
        self.null = type("Stream", (), {"ptr": 0})()

    def stream(self):
        return self.null

    def processors(self, index):
        return PROCESSORS

    def function(self, plan, index):
        return 1


def arrays_over(memory, cupy):
    """A maker of CuPy arrays over host memory, one after another, each on 16 bytes."""
    held = cupy.cuda.UnownedMemory(memory.ctypes.data, memory.nbytes, memory, 0)
    place = [-memory.ctypes.data % 16]

    def make(*shape):
        pointer = cupy.cuda.MemoryPointer(held, place[0])
        place[0] += -(-math.prod(shape) * 4 // 16) * 16
        return cupy.ndarray(shape, np.float32, pointer)

    return make


def cases(make):
    """Name -> (file, entry, arguments): kernels of two, three, six and seven arrays."""
    n, c = ROWS, COLUMNS
    x, y, g, dx = (make(n, c) for _ in range(4))
    w, b, mean, rstd, stored = make(c), make(c), make(n), make(n), {}
    drawn = dict(per=1, limit=6554, scale=1.1, seed=2**40, offset=7)
    lines = dict(g=g.reshape(n, c, 1), y=y.reshape(n, c, 1), dx=dx.reshape(n, c, 1), log=0)
    norm = dict(w=w, mean=mean, rstd=rstd)

    def partial(letters):
        q = letters["Q"]
        if q not in stored:
            stored[q] = make(2, q, c)
        return stored[q]

    return {
        "dropout: 2 arrays, 5 numbers": ("dropout.cu", "dropped", dict(x=x.reshape(-1), y=y.reshape(-1), **drawn)),
        "softmax backward: 3 arrays, 1 number": ("softmax.cu", "softmax_backward", lines),
        "layer norm: 6 arrays, 2 numbers": (
            "layer_norm.cu",
            "layer_norm_forward",
            dict(x=x, y=y, b=b, eps=1e-5, centre=1, **norm),
        ),
        "layer norm backward: 7 arrays, one made": (
            "layer_norm.cu",
            "layer_norm_backward",
            dict(g=g, x=x, dx=dx, partial=partial, **norm),
        ),
    }


def ways(driver, file, name, given, cupy=None):
    """Name -> a launch of the entry by other ways than ``cuda.run``: with ``cupy``, on its GPU, by CuPy's too."""
    made = plan(file, name, given, driver.address, driver.processors(0))
    function = ctypes.c_void_p(driver.function(made, 0))
    free, *_ = next(iter(cuda._launcher(cuda.entries(file)[name], tuple(given)).plans.values()))
    _, config, arguments = free.another()
    library = cuda.libcuda() if cupy is not None else driver.library
    sizes = [ctypes.c_uint(n) for n in (*made.grid, *made.block, made.shared)]
    null, eleven, four = ctypes.c_void_p(0), library.cuLaunchKernel, library.cuLaunchKernelEx
    found = {
        "the launch worked out anew (plan)": lambda: plan(file, name, given, driver.address, driver.processors(0)),
        "cuLaunchKernel by ctypes, all packed": lambda: eleven(function, *sizes, null, arguments, None),
        "cuLaunchKernelEx by ctypes, all packed": lambda: four(config, function, arguments, None),
    }
    if cupy is not None:
        raw = cuda._loaded(file, 0, name, made.macros, 0)
        values = tuple(np.uint64(0) if a is None else a for a in made.arguments)
        found["CuPy's RawKernel"] = lambda: raw(made.grid, made.block, values, shared_mem=made.shared)
        found["CuPy's Function"] = lambda: raw.kernel(made.grid, made.block, values, made.shared)
    return found


def report(name, us, target=None):
    verdict = "" if target is None else "  PASS" if us <= target else f"  miss {us / target:.2f} x"
    print(f"{name:<48}{us:8.2f} us{verdict}", flush=True)
    return name, us


def measure(calls=500, times=30):
    """[(what, us)], printed as they are found; the least of ``times`` rounds of ``calls``."""
    with contextlib.ExitStack() as stack:
        on_gpu = cuda.is_available()
        import cupy

        if on_gpu:
            driver, wait = cuda._driver(), cupy.cuda.Device().synchronize
            make = lambda *shape: cupy.ones(shape, np.float32)  # noqa: E731
        else:
            library = stack.enter_context(stub())
            driver, wait = Stubbed(library), lambda: None
            driver.library = library
            stack.callback(setattr, cuda, "_driver", cuda._driver)
            stack.callback(cuda._LAUNCHERS.clear)
            cuda._driver = lambda: driver
            make = arrays_over(np.zeros(1 << 20, np.uint8), cupy)
        rows = []
        for what, (file, name, given) in cases(make).items():
            rows.append(report(what, timed(lambda: cuda.run(file, name, **given), wait, calls, times), TARGET_US))
        x, y, z = (make(ROWS, COLUMNS) for _ in range(3))
        product = lambda: elementwise.compute(cuda.run, cupy, "y0 = x0 * x1", (x, y), (z,))  # noqa: E731
        rows.append(report("a product, element by element", timed(product, wait, calls, times), TARGET_US))
        file, name, given = next(iter(cases(make).values()))
        for what, call in ways(driver, file, name, given, cupy if on_gpu else None).items():
            rows.append(report(what, timed(call, wait, calls, times)))
        return rows


if __name__ == "__main__":
    try:
        import cupy  # noqa: F401
    except ImportError:
        raise SystemExit("this asks what a launch over CuPy costs, and CuPy is not installed") from None
    print(
        f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors, {'a GPU' if cuda.is_available() else 'no GPU'}"
    )
    measure()
