"""The cache of built kernels: what is in its key, damage, and writers that race."""

import multiprocessing
import os

import numpy as np
import pytest

from cudagrad.backend import emulator
from cudagrad.backend.kernels import cache
from cudagrad.backend.kernels.cache import built, key, sources

from .common import launch, needs_compiler, probe


@pytest.fixture(autouse=True)
def own_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("CUDAGRAD_CACHE", str(tmp_path / "cache"))


def made_of(content, count):
    def build(path):
        count.append(content)
        path.write_bytes(content)

    return build


def test_what_is_built_is_built_once():
    count = []
    first = built("name", ".so", made_of(b"code", count))
    assert built("name", ".so", made_of(b"other", count)) == first
    assert first.read_bytes() == b"code" and len(count) == 1


@pytest.mark.parametrize("damage", ["cut", "changed", "removed", "pointer cut", "pointer of nonsense"])
def test_what_is_damaged_is_built_again(damage):
    count = []
    path = built("name", ".so", made_of(b"code" * 100, count))
    pointer = cache.folder() / "kernels" / "name"
    if damage == "cut":
        path.write_bytes(b"code" * 99)
    elif damage == "changed":
        path.write_bytes(b"Code" + b"code" * 99)
    elif damage == "removed":
        os.remove(path)
    else:
        pointer.write_bytes(b"" if damage == "pointer cut" else b"\xff../..")
    path = built("name", ".so", made_of(b"code" * 100, count))
    assert path.read_bytes() == b"code" * 100 and len(count) == 2


def test_a_build_that_fails_leaves_nothing():
    def build(path):
        path.write_bytes(b"half")
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        built("name", ".so", build)
    assert list((cache.folder() / "kernels").iterdir()) == []


def test_what_was_used_longest_ago_goes_when_the_cache_is_full(monkeypatch):
    monkeypatch.setattr(cache, "MOST_BYTES", 900)
    monkeypatch.setattr(cache, "_MANY", 1)
    paths = {}
    for age, name in enumerate(("old", "used", "new")):
        paths[name] = built(name, ".so", made_of(name.encode() * 100, []))
        os.utime(paths[name], (age, age))
    count = []
    assert built("used", ".so", made_of(b"", count)) == paths["used"] and not count  # a use makes it young
    built("more", ".so", made_of(b"more", []))
    assert not paths["old"].exists() and paths["new"].exists() and paths["used"].exists()
    assert built("used", ".so", made_of(b"", count)) == paths["used"] and not count  # its key is there still
    assert built("old", ".so", made_of(b"old" * 100, count)).exists() and len(count) == 1


def test_a_folder_that_cannot_be_made_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CUDAGRAD_CACHE", str(tmp_path / "file"))
    with pytest.raises(RuntimeError, match="kept in .*file/kernels, which cannot be made .*: name another folder"):
        built("name", ".so", made_of(b"code", []))


def test_the_key_covers_every_included_file_once_and_the_order_of_parts(tmp_path):
    (tmp_path / "a.cu").write_text('#include "b.cuh"\n#include <cmath>\n#include "missing.cuh"\n')
    (tmp_path / "b.cuh").write_text('#pragma once\n  #  include "c.cuh"\n')
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "c.cuh").write_text('#include "b.cuh"\n')
    before = sources(tmp_path / "a.cu", [tmp_path, tmp_path / "inner"])
    assert [name for name, _ in before] == ["a.cu", "b.cuh", "c.cuh"]
    (tmp_path / "inner" / "c.cuh").write_text("// changed\n")
    assert key(before) != key(sources(tmp_path / "a.cu", [tmp_path, tmp_path / "inner"]))
    assert key("ab", "c") != key("a", "bc") and key(["a"], "b") != key(["a", "b"])


def _race(folder, barrier, i):
    os.environ["CUDAGRAD_CACHE"] = folder
    barrier.wait()
    for k in range(20):
        path = built(f"name{k}", ".so", lambda path: path.write_bytes(bytes([i, k]) * 1000))
        content = path.read_bytes()
        assert content[1] == k and content == content[:2] * 1000


def test_processes_that_race_each_find_a_whole_file(tmp_path):
    context = multiprocessing.get_context("fork" if hasattr(os, "fork") else "spawn")
    barrier = context.Barrier(4)
    racers = [context.Process(target=_race, args=(str(tmp_path / "cache"), barrier, i)) for i in range(4)]
    for r in racers:
        r.start()
    for r in racers:
        r.join(60)
    assert [r.exitcode for r in racers] == [0] * 4


@needs_compiler
def test_an_edited_kernel_is_built_again_in_the_same_process(tmp_path):
    x, y = np.ones(4, np.float32), np.empty(4, np.float32)
    for factor in (2, 3):
        launch(probe(tmp_path, f"y[threadIdx.x] = {factor} * x[threadIdx.x];"), x=x, y=y)
        assert (y == factor).all()


@needs_compiler
def test_a_damaged_library_is_built_again(tmp_path):
    x, y = np.ones(4, np.float32), np.empty(4, np.float32)
    file = probe(tmp_path, "y[threadIdx.x] = 7 * x[threadIdx.x];")
    launch(file, x=x, y=y)
    for path in (cache.folder() / "kernels").glob("*.so"):
        path.unlink()  # a loaded library is not written over
        path.write_bytes(b"damaged")
    emulator._loaded.cache_clear()
    y[:] = 0
    launch(file, x=x, y=y)
    assert (y == 7).all()


@needs_compiler
def test_options_of_the_environment_reach_the_compiler_and_the_key(tmp_path, monkeypatch):
    x, y = np.ones(4, np.float32), np.empty(4, np.float32)
    file = probe(tmp_path, "y[threadIdx.x] = FACTOR * x[threadIdx.x];")
    for factor in (2, 3):
        monkeypatch.setenv("CXXFLAGS", f"-O0 '-DFACTOR={factor}'")
        emulator._loaded.cache_clear()
        launch(file, x=x, y=y)
        assert (y == factor).all()
