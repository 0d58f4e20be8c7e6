"""What the tests of kernels share: launches on the emulated device, awkward arrays, and errors against float64."""

import shutil

import ml_dtypes
import numpy as np
import pytest

from cudagrad.backend import emulator
from cudagrad.backend.emulated import EmulatedArray
from cudagrad.backend.emulator import KernelError
from cudagrad.backend.kernels import nvrtc
from cudagrad.backend.kernels.launch import plan
from cudagrad.core.tensor import wrap

needs_compiler = pytest.mark.skipif(
    not (shutil.which("g++") or shutil.which("clang++")), reason="the emulated device needs g++ or clang++"
)
needs_lines = pytest.mark.skipif(not shutil.which("addr2line"), reason="source lines come from binutils' addr2line")


def _why_no_nvrtc():
    try:
        nvrtc.compiler()
    except RuntimeError as reason:
        return str(reason).splitlines()[0]


# For tests that build for GPUs; the extra ``compile`` has all they need, and no GPU is.
needs_nvrtc = pytest.mark.skipif(_why_no_nvrtc() is not None, reason=str(_why_no_nvrtc()))

# Where a kernel does not run, a test of kernels is of nothing.
no_fallback = pytest.mark.usefixtures("strict")

DTYPES = {"float32": np.dtype("f4"), "float16": np.dtype("f2"), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
# Rounding of an output once, and of sums in float32.
EPS = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-11, "bfloat16": 2.0**-8}
REGISTERS = 65536  # of a multiprocessor, on every architecture here

HEADER = """/*
probe                     a kernel of a test

math     {math}
source   this test
shapes   {shapes}
launch   grid = {grid}   block = {block}   shared = {shared}
bytes    0
flops    0
limits   N > 0
used by  tests/kernels
*/
"""


def probe(folder, body, shapes="x, y: float[N]", parameters="const float* x, float* y, int N", **launch):
    """The path of a ``.cu`` file with one entry, ``probe``, of the given body."""
    launch = {"math": "none", "grid": "1", "block": "N", "shared": "0", **launch}
    text = HEADER.format(shapes=shapes, **launch)
    path = folder / "probe.cu"
    signature = f'extern "C" __global__ void probe({parameters})'
    path.write_text(f'#include "common.cuh"\n\n{text}{signature} {{\n{body}\n}}\n')
    return str(path)


def launch(file, name="probe", extra=(), **given):
    """Run an entry on the emulated device; returns its plan."""
    made = plan(file, name, given, emulator.address, emulator.PROCESSORS)
    emulator.run(made, extra)
    return made


def told(file, **given):
    """The message of the error that a launch raises."""
    with pytest.raises(KernelError) as caught:
        launch(file, **given)
    return str(caught.value)


def numbers(n):
    """x and y of a probe: 0 to n - 1, and room for as many."""
    return np.arange(n, dtype=np.float32), np.empty(n, np.float32)


def line_of(file, text):
    """The number of the line of a file that contains ``text``."""
    with open(file, encoding="utf-8") as lines:
        return next(i for i, line in enumerate(lines, 1) if text in line)


def made(seed, shape, dtype=np.float32, scale=1.0, shift=0.0):
    """Normal random numbers."""
    return np.asarray(np.random.default_rng(seed).standard_normal(shape) * scale + shift).astype(dtype)


def on_device(a, layout=None):
    """A tensor on the emulated device over ``a`` in a layout, a leaf of the graph where its dtype can be one's."""
    t = wrap((a if layout is None else layout(a)).view(EmulatedArray))
    return t.requires_grad_() if t.dtype.is_floating_point else t


def host(t):
    """The array of a tensor, brought to the CPU."""
    return t.detach().cpu().array


def askew(a):
    """The same values one element past a multiple of 16 bytes."""
    room = np.empty(a.size + 64, a.dtype)
    start = (-room.__array_interface__["data"][0] // a.dtype.itemsize) % (16 // a.dtype.itemsize) + 1
    part = room[start : start + a.size].reshape(a.shape)
    part[...] = a
    return part


def every_second(a):
    """The same values, every second element of a larger array."""
    room = np.zeros((*a.shape[:-1], 2 * a.shape[-1]), a.dtype)
    room[..., ::2] = a
    return room[..., ::2]


def worst(got, expected):
    """The largest error, over the largest finite element expected; nan where nans are not in the same places."""
    got = np.asarray(got).astype(np.float64)
    assert got.shape == expected.shape, (got.shape, expected.shape)
    if not got.size:
        return 0.0
    assert (np.isnan(got) == np.isnan(expected)).all(), "nans in other places"
    return float(np.nanmax(np.abs(got - expected)) / max(np.nanmax(np.abs(expected)), 1e-30))
