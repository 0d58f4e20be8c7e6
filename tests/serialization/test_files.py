"""A checkpoint is a safetensors file, written whole or not at all, and put where the user wants it."""

import collections
import io
import json
import os
import signal
import stat
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from cudagrad.backend import device
from cudagrad.core.generator import Generator
from cudagrad.core.tensor import Tensor, wrap
from cudagrad.serialization import load, save

from .common import FIXTURES, Config, Point, same, tensor, trip


def test_any_safetensors_reader_finds_the_arrays_by_the_names_of_their_places(tmp_path):
    st = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")
    weight = tensor([[1, 2], [3, 4]])
    view = wrap(weight.array[0])
    save({"model": {"weight": weight, "row": view}, "epochs": [1, 2], "z": tensor([1j], np.complex64)}, tmp_path / "a")
    found = st.load_file(tmp_path / "a")
    assert {k: v.tolist() for k, v in found.items()} == {"model.weight": [[1, 2], [3, 4]], "z": [[0, 1]]}


def test_files_of_the_safetensors_library_are_read_as_a_dict(tmp_path):
    st = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")
    arrays = {
        "a": np.arange(6, dtype=np.int16).reshape(2, 3),
        "b.c": np.ones((), np.float64),
        "e": np.zeros((0, 2), "f2"),
    }
    st.save_file(arrays, tmp_path / "a", {"format": "np"})
    for mmap in (False, True):
        got = load(tmp_path / "a", mmap=mmap)
        assert {k: v.array.tolist() for k, v in got.items()} == {k: v.tolist() for k, v in arrays.items()}
        assert {k: v.array.dtype for k, v in got.items()} == {k: v.dtype for k, v in arrays.items()}


def test_names_that_clash_get_a_number():
    a, b, c = tensor([1]), tensor([2]), tensor([3])
    f = io.BytesIO()
    save({"x.y": a, "x": {"y": b}, "__metadata__": c}, f)
    length = struct.unpack("<Q", f.getvalue()[:8])[0]
    assert set(json.loads(f.getvalue()[8 : 8 + length])) == {"__metadata__", "x.y", "x.y#2", "__metadata__#2"}
    f.seek(0)
    assert same(load(f), {"x.y": a, "x": {"y": b}, "__metadata__": c})


def test_several_objects_in_one_stream_are_read_one_after_another():
    f = io.BytesIO()
    save({"first": tensor([1.0])}, f)
    save("second", f)
    f.seek(0)
    assert load(f)["first"].array.tolist() == [1.0]
    assert load(f) == "second"


def test_a_stream_that_can_only_read_and_seek_will_do():
    class Narrow:
        def __init__(self, raw):
            self.read, self.seek, self.tell = raw.read, raw.seek, raw.tell

    f = io.BytesIO()
    save(tensor([1.0, 2.0]), f)
    f.seek(0)
    assert load(Narrow(f)).array.tolist() == [1.0, 2.0]


def test_mmap_reads_the_same_and_writes_stay_in_memory(tmp_path):
    path = tmp_path / "a.pt"
    obj = {
        "w": tensor(np.arange(1000.0)),
        "n": np.arange(3, dtype=np.int8),
        "b": b"xyz",
        "half": tensor([1], np.float16),
    }
    save(obj, path)
    got = load(path, mmap=True)
    assert same(got, obj)
    assert got["w"].array.ctypes.data % 64 == 0
    got["w"].array[0] = -1
    assert load(path)["w"].array[0] == 0
    save(got, path)  # over the file that is mapped
    assert load(path)["w"].array[0] == -1


def test_mmap_needs_a_path():
    with pytest.raises(ValueError, match="f must be a file path in order to use the mmap argument"):
        load(io.BytesIO(b"x"), mmap=True)


def test_map_location_takes_every_form():
    t = tensor([1.0])
    for where in (
        None,
        "cpu",
        device("cpu"),
        {"cpu": "cpu"},
        lambda storage, name: storage,
        lambda storage, name: None,
    ):
        assert trip(t, map_location=where).array.tolist() == [1.0]
    seen = []
    trip([t, wrap(t.array[:1]), tensor([2.0])], map_location=lambda s, name: seen.append((s.nbytes(), name)) or s.cpu())
    assert seen == [(4, "cpu"), (4, "cpu")]  # once a storage


def test_an_error_of_map_location_is_the_users_and_not_the_files():
    def fail(storage, name):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        trip(tensor([1.0]), map_location=fail)
    with pytest.raises(KeyError, match="mine"):
        load(FIXTURES / "torch_2_13.pt", map_location=fail)
    with pytest.raises(TypeError, match="'int' object is not callable"):
        trip(tensor([1.0]), map_location=3)


def test_a_tensor_of_a_gpu_needs_one_or_a_map_location(monkeypatch):
    from cudagrad.backend import cuda

    monkeypatch.setattr(cuda, "device_count", lambda: 0)
    with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device but torch.cuda.is_avail"):
        trip(tensor([1.0]), map_location="cuda")
    monkeypatch.setattr(cuda, "device_count", lambda: 1)
    with pytest.raises(
        RuntimeError, match=r"on CUDA device 7 but torch.cuda.device_count\(\) is 1. Please use torch.lo"
    ):
        trip(tensor([1.0]), map_location={"cpu": "cuda:7"})


class Net:
    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        return None


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        (Net(), r"save: obj\['a'\]\[1\] is a \S*Net object; .*\n.*save obj\['a'\]\[1\]\.state_dict\(\)"),
        (Config(), r"Config object; .*\n.*save vars\(obj\['a'\]\[1\]\)"),
        (Point(1, 2), r"Point object; .*\n.*_asdict\(\)"),
        (Generator(), r"Generator object; .*\n.*save obj\['a'\]\[1\]\.get_state\(\)"),
        (len, r"builtin_function_or_method object; .*\n.*save its name"),
        (Path("x"), r"Path object; .*\n.*save str\("),
        (collections.ChainMap(), r"ChainMap object; "),
        (np.array([object()]), r"is a NumPy array of object"),
        (np.zeros(1, [("a", "f4")]), r"is a NumPy array of \[\('a', '<f4'\)\]"),
        (collections.defaultdict(lambda: 0), r"obj\['a'\]\[1\]\['default_factory'\] is a function object"),
    ],
)
def test_an_object_that_needs_code_is_refused_with_its_place_and_a_way_out(obj, words):
    with pytest.raises(TypeError, match=words):
        save({"a": [0, obj]}, io.BytesIO())


def test_a_tensor_class_of_the_user_is_refused():
    class Mine(Tensor):
        pass

    with pytest.raises(TypeError, match=r"Mine object; .*\n.*as_subclass\(Tensor\)"):
        save(tensor([1.0]).as_subclass(Mine), io.BytesIO())


def test_an_object_in_itself_and_one_too_deep_are_refused():
    loop = {}
    loop["a"] = [loop]
    with pytest.raises(ValueError, match=r"save: obj\['a'\]\[0\] contains itself"):
        save(loop, io.BytesIO())
    deep = []
    for _ in range(150):
        deep = [deep]
    assert trip(deep) == deep
    for _ in range(150):
        deep = [deep]
    with pytest.raises(ValueError, match=r"lies 201 levels deep"):
        save(deep, io.BytesIO())


def test_what_stands_twice_is_no_loop():
    twice = [1]
    assert trip([twice, twice]) == [[1], [1]]


def test_save_says_where_it_cannot_write(tmp_path):
    with pytest.raises(
        AttributeError, match="expected 'f' to be string, path, or a file-like object with a 'write' attr"
    ):
        save(1, 3)
    with pytest.raises(RuntimeError, match=r"Parent directory .*nowhere does not exist\."):
        save(1, tmp_path / "nowhere" / "a.pt")
    with pytest.raises(AttributeError, match="You can only torch.load from a file that is seekable"):
        load(3)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "absent")


def test_a_failed_save_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "a.pt"
    save("old", path)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save("new", path)
    assert load(path) == "old"
    assert os.listdir(tmp_path) == ["a.pt"]


def test_the_folder_is_synced_after_the_file(tmp_path, monkeypatch):
    order = []
    real_fsync, real_replace = os.fsync, os.replace

    def fsync(handle):
        order.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        real_fsync(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", lambda *a: (order.append("rename"), real_replace(*a)))
    save(1, tmp_path / "a.pt")
    assert order == ["file", "rename", "folder"]


def test_mode_and_links_are_kept(tmp_path):
    path, link = tmp_path / "a.pt", tmp_path / "link.pt"
    save(1, path)
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask
    path.chmod(0o640)
    link.symlink_to(path)
    save(2, link)
    assert link.is_symlink()
    assert load(path) == 2
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    save(3, os.devnull)


KILLED = """
import sys
import numpy as np
from cudagrad.core.tensor import wrap
from cudagrad.serialization import save
print("ready", flush=True)
for i in range(10**6):
    save({"n": i, "a": wrap(np.full(300_000, i, np.float64))}, sys.argv[1])
"""


def test_a_kill_during_save_never_tears_the_file(tmp_path):
    path = tmp_path / "a.pt"
    save({"n": -1, "a": tensor(np.full(3, -1))}, path)
    root = Path(__file__).parents[2]
    for wait_s in (0.0, 0.011, 0.023, 0.05):
        with subprocess.Popen([sys.executable, "-c", KILLED, path], stdout=subprocess.PIPE, cwd=root) as child:
            assert child.stdout.readline() == b"ready\n"
            before = path.stat().st_ino
            while path.stat().st_ino == before:  # until the first save is done
                time.sleep(0.001)
            time.sleep(wait_s)
            child.send_signal(signal.SIGKILL)
        got = load(path)
        assert (got["a"].array == got["n"]).all()
    assert got["n"] >= 0
