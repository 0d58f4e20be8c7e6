"""Kernels built for GPUs by NVRTC, without one: every architecture, registers within their budget, nothing spilled, and
the instructions that were meant."""

import csv
from pathlib import Path

import pytest

from cudagrad.backend.kernels import nvrtc
from cudagrad.backend.kernels.header import entries
from cudagrad.backend.kernels.launch import Unfit
from cudagrad.backend.kernels.path import kernels_path
from cudagrad.tools.kernels import variant

from .common import DTYPES, REGISTERS, needs_nvrtc, probe

FILES = sorted(p.name for p in kernels_path().glob("*.cu"))
BUDGET = Path(__file__).with_name("budget.tsv")


def rows(*columns):
    """(file, entry, dtype, C, S, and the numbers in the columns asked for) of each line of the budget."""
    with open(BUDGET, encoding="utf-8", newline="") as lines:
        return [
            (r["file"], r["entry"], r["dtype"], int(r["C"]), int(r["S"] or 1), *(int(r[c] or 0) for c in columns))
            for r in csv.DictReader(lines, delimiter="\t")
        ]


def macros_of(file, name, dtype, c, s=1):
    return variant(file, name, dtype, c, apart=s).macros


def test_every_entry_has_a_row_in_the_budget():
    named = {(file, name) for file in FILES for name in entries(file)}
    assert {row[:2] for row in rows()} == named


@needs_nvrtc
@pytest.mark.parametrize("architecture", nvrtc.ARCHITECTURES)
def test_every_entry_keeps_its_budget_of_registers(architecture):
    over = []
    for file, name, dtype, c, s, budget in rows("registers"):
        macros = macros_of(file, name, DTYPES[dtype], c, s)
        told = nvrtc.resources(file, macros, architecture)[name]
        threads = int(dict(macros).get("CG_B", 256))
        if told["registers"] > budget or told["spills"] or told["registers"] * threads > REGISTERS:
            over.append((name, dtype, c, told))
    assert not over


@needs_nvrtc
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("c", [8192, 16384, 40000, 4099])
def test_the_longest_rows_spill_nothing(dtype, c):
    for file, name in {row[:2] for row in rows()}:
        try:
            macros = macros_of(file, name, DTYPES[dtype], c)
        except Unfit:  # it is of another dtype
            continue
        assert nvrtc.resources(file, macros, "90")[name]["spills"] == 0, name


def _counted(instructions, *words):
    return sum(n for name, n in instructions.items() if all(w in name.split(".") for w in words))


@needs_nvrtc
def test_every_entry_has_the_wide_loads_and_stores_and_the_tensor_core_products_that_were_meant():
    """The budget's least numbers, on sm_90; and no array that was to lie in registers lies in memory."""
    try:
        nvrtc.disassembler()
    except RuntimeError as reason:
        pytest.skip(str(reason))
    short = []
    for file, name, dtype, c, s, *least in rows("loads", "stores", "mma"):
        found = nvrtc.instructions(file, macros_of(file, name, DTYPES[dtype], c, s), "90")[name]
        loads = _counted(found, "LDG", "128") + _counted(found, "LDGSTS", "128")
        counts = [loads, _counted(found, "STG", "128"), _counted(found, "HMMA")]
        if any(n < m for n, m in zip(counts, least)) or _counted(found, "LDL") or _counted(found, "STL"):
            short.append((name, dtype, c, counts, least, _counted(found, "LDL"), _counted(found, "STL")))
    assert not short


@needs_nvrtc
def test_a_source_that_does_not_compile_shows_nvrtcs_words(tmp_path):
    macros = (("CG_T", "float"), ("CG_W", "float"), ("CG_A", "float"))
    with pytest.raises(RuntimeError, match=r"probe\.cu does not compile with .*\n.*nonsense"):
        nvrtc.cubin(probe(tmp_path, "nonsense;"), macros, "80")


@needs_nvrtc
def test_a_cubin_is_cached_for_its_architecture_and_types(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDAGRAD_CACHE", str(tmp_path / "cache"))
    file = probe(tmp_path, "y[threadIdx.x] = x[threadIdx.x];")
    macros = (("CG_T", "float"), ("CG_W", "float"), ("CG_A", "float"))
    first = nvrtc.cubin(file, macros, "80")
    assert first.read_bytes()[:4] == b"\x7fELF"
    monkeypatch.setattr(nvrtc, "_compile", lambda *given: pytest.fail("built again"))
    assert nvrtc.cubin(file, macros, "80") == first
    with pytest.raises(pytest.fail.Exception):
        nvrtc.cubin(file, macros, "90")


@needs_nvrtc
def test_a_gpu_gets_its_own_architecture_or_an_older_one_of_its_generation():
    found = {c: nvrtc.architecture(c) for c in ("75", "89", "90", "120", "87", "101", "121")}
    assert found == {**{c: c for c in ("75", "89", "120", "87", "101", "121")}, "90": "90a"}
    assert nvrtc.architecture("129") == "121"
    with pytest.raises(RuntimeError, match=r"NVRTC 1.* knows no GPU of compute capability 20.0 .* install a newer one"):
        nvrtc.architecture("200")


def test_without_nvrtc_one_sentence_says_what_to_install(monkeypatch):
    import builtins

    real = builtins.__import__

    def missing(name, *given, **named):
        if name.startswith("cupy"):
            raise ImportError("No module named 'cupy_backends'")
        return real(name, *given, **named)

    monkeypatch.setattr(builtins, "__import__", missing)
    nvrtc.compiler.cache_clear()
    try:
        with pytest.raises(
            RuntimeError, match="CUDA kernels are built with CuPy and NVRTC, which are not both installed"
        ):
            nvrtc.compiler()
    finally:
        nvrtc.compiler.cache_clear()
