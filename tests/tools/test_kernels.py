"""The tools that tell which code runs and what the kernels are."""

import subprocess
import sys

import pytest

import cudagrad
from cudagrad.backend.kernels.header import entries
from cudagrad.backend.kernels.path import kernels_path
from cudagrad.tools import kernels, where

from ..kernels.common import needs_compiler

F = cudagrad.nn.functional


def test_the_table_has_a_row_for_every_entry(capsys):
    assert kernels.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    names = [name for path in sorted(kernels_path().glob("*.cu")) for name in entries(path.name)]
    assert [line.split()[0] for line in lines[1:]] == names
    assert all(column in lines[0] for column in ("launch", "bytes", "flops"))


def test_it_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "cudagrad.tools.kernels"], capture_output=True, text=True)
    assert done.returncode == 0 and "layer_norm_forward" in done.stdout and not done.stderr


def test_registers_come_from_nvrtc_or_it_says_what_is_missing(capsys):
    status = kernels.main(["--registers", "--arch", "90", "--columns", "1024"])
    told = capsys.readouterr()
    if status:
        assert "CUDA kernels are built with CuPy and NVRTC" in told.err
    else:
        assert "layer_norm_backward bfloat16 128 sm_90" in " ".join(told.out.split())


@needs_compiler
def test_where_names_the_kernel_that_served():
    x = cudagrad.ones(2, 3, device="emulated")
    (ran,) = where(F.layer_norm, x, (3,))
    assert str(ran) == "layer_norm on emulated: kernels/layer_norm.cu layer_norm_forward"


def test_where_names_the_text_and_why_no_kernel():
    (ran,) = where(F.softmax, cudagrad.ones(2), dim=0)
    assert str(ran) == "softmax on cpu: cudagrad/ops/softmax.py softmax (the CPU runs no kernels)"
    (ran,) = where(cudagrad.tan, cudagrad.ones(2, device="emulated"))
    assert ran.code.startswith("cudagrad/ops/") and ran.why == "no kernel serves it"
    x, b = (cudagrad.ones(3, dtype=d, device="emulated") for d in (cudagrad.float16, cudagrad.float32))
    (ran,) = where(F.layer_norm, x, (3,), x, b)
    assert ran.why == "layer_norm: weight is float16 and bias float32"


def test_where_lists_every_op_of_a_module():
    model = cudagrad.nn.Sequential(cudagrad.nn.Linear(3, 2), cudagrad.nn.ReLU())
    assert [ran.op for ran in where(model, cudagrad.ones(4, 3))][-1] == "relu"


def test_an_error_in_the_call_leaves_no_watcher():
    with pytest.raises(IndexError):
        where(F.softmax, cudagrad.ones(2), dim=5)
    assert len(where(F.softmax, cudagrad.ones(2), dim=0)) == 1
