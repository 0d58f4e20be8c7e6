"""bench/launch.py runs from end to end without a GPU."""

import importlib.util
from pathlib import Path

import pytest

from cudagrad.backend import cuda

from ..kernels.common import needs_compiler

BENCH = Path(__file__).resolve().parents[2] / "bench" / "launch.py"


@needs_compiler
def test_the_launch_benchmark_times_every_way(capsys):
    pytest.importorskip("cupy", reason="CuPy is not installed")
    spec = importlib.util.spec_from_file_location("launch_benchmark", BENCH)
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    before = cuda._driver
    rows = bench.measure(calls=2, times=1)
    assert cuda._driver is before and len(rows) >= 7 and all(us > 0 for _, us in rows)
    assert capsys.readouterr().out.count(" us") == len(rows)
