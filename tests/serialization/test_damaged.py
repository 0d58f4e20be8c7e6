"""Nothing that a file says is believed before it is checked."""

import io
import json
import struct

import numpy as np
import pytest

from cudagrad.core.tensor import wrap
from cudagrad.nn.parameter import Parameter
from cudagrad.serialization import archive, load, save, torch_file

from .common import refused, tensor


def sample():
    f = io.BytesIO()
    base = np.arange(12, dtype=np.float32).reshape(3, 4)
    save({"w": wrap(base), "v": wrap(base[1]), "n": [1, 2.5, (None, b"raw")], "p": Parameter(tensor([1.5]))}, f)
    return f.getvalue()


def test_every_truncation_is_refused(tmp_path):
    raw = sample()
    for size in [*range(0, len(raw), 13), len(raw) - 1]:
        assert refused(raw[:size], tmp_path), size


def test_every_flipped_bit_is_refused(tmp_path):
    raw = sample()
    header = struct.unpack("<Q", raw[:8])[0]
    blank = 8 + len(raw[8 : 8 + header].rstrip())  # the spaces that pad the header mean nothing
    for at in range(0, len(raw), 3):
        if not blank <= at < 8 + header:
            flipped = bytearray(raw)
            flipped[at] ^= 1 << at % 8
            assert refused(bytes(flipped), tmp_path), at


def test_what_follows_the_end_is_refused(tmp_path):
    assert refused(sample() + b"x", tmp_path)


def test_noise_is_refused(tmp_path):
    noise = np.random.default_rng(0)
    for size in (1, 7, 8, 9, 100, 1000):
        for start in (b"", b"PK\x03\x04", b"\x80\x02", torch_file.MAGIC, struct.pack("<Q", 50) + b"{"):
            assert refused(start + noise.bytes(size), tmp_path)


def test_an_empty_file_says_so():
    with pytest.raises(EOFError, match="Ran out of input"):
        load(io.BytesIO())


def with_header(header, data=b""):
    raw = json.dumps(header).encode() if not isinstance(header, bytes) else header
    return struct.pack("<Q", len(raw)) + raw + data


def entry(dtype="F32", shape=(2,), begin=0, end=8):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


HOSTILE = {
    "a header longer than the file": struct.pack("<Q", 2**63) + b"{}",
    "a header of a gigabyte": struct.pack("<Q", 10**9) + b"{" + b" " * 1000,
    "a name that stands twice": with_header(b'{"a":%s,"a":%s}' % ((json.dumps(entry()).encode(),) * 2), b"\0" * 8),
    "a deep header": with_header(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "a header that is a list": with_header([1]),
    "a header that is no UTF-8": with_header(b'{"\xff":1}'),
    "a number of many digits": with_header(b'{"a":' + b"9" * 10_000 + b"}"),
    "a size that wraps round": with_header({"a": entry(shape=(2**62, 4), end=0)}),
    "a size without end": with_header({"a": entry(shape=(2**40,) * 64, end=8)}, b"\0" * 8),
    "a negative size": with_header({"a": entry(shape=(-2, -1))}, b"\0" * 8),
    "a size that is a bool": with_header({"a": entry(dtype="U8", shape=(True,), end=1)}, b"\0"),
    "a hole": with_header({"a": entry(begin=4, end=12)}, b"\0" * 12),
    "an overlap": with_header({"a": entry(), "b": entry()}, b"\0" * 8),
    "an end before the begin": with_header({"a": entry(shape=(0,), begin=8, end=0)}, b"\0" * 8),
    "less data than the header says": with_header({"a": entry()}, b"\0" * 7),
    "an unknown dtype": with_header({"a": entry(dtype="F8_E4M3", end=2)}, b"\0" * 2),
    "an unknown field": with_header({"a": {**entry(), "code": "x"}}, b"\0" * 8),
    "metadata that is no table of strings": with_header({"__metadata__": {"a": 1}}),
    "an entry that is a list": with_header({"a": [1, 2, 3]}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_header_is_refused(name, tmp_path):
    assert refused(HOSTILE[name], tmp_path)


def with_tree(tree, tensors=(), arrays=(), version=1):
    """A well-formed file, checksums and all, whose tree is ours to make up; its entry ``a`` has 16 bytes."""
    plain = {"version": version, "tree": tree, "tensors": list(tensors), "arrays": list(arrays)}
    return b"".join(
        bytes(piece) for piece in archive.chunks([("a", "F32", (4,), np.zeros(16, np.uint8))], json.dumps(plain))
    )


ROW = {
    "entry": "a", "dtype": "float32", "shape": [4], "strides": [4], "offset": 0, "requires_grad": False,
    "class": "Tensor", "device": "cpu",
}  # fmt: skip
T = {"$": "tensor", "index": 0}
N = {"$": "numpy", "index": 0, "dtype": "<f4", "shape": [4], "order": "C"}


def nested(depth):
    node = 0
    for _ in range(depth):
        node = [node]
    return node


HOSTILE_TREES = {
    "past the end": (T, [{**ROW, "shape": [5]}]),
    "before the begin": (T, [{**ROW, "offset": -4}]),
    "before the begin by its steps": (T, [{**ROW, "strides": [-4]}]),
    "far steps": (T, [{**ROW, "strides": [2**62]}]),
    "a shape of 100 axes": (T, [{**ROW, "shape": [1] * 100, "strides": [4] * 100}]),
    "a negative shape": (T, [{**ROW, "shape": [-4]}]),
    "fewer steps than axes": (T, [{**ROW, "strides": []}]),
    "a shape of floats": (T, [{**ROW, "shape": [4.0]}]),
    "an offset that is null": (T, [{**ROW, "offset": None}]),
    "an unknown dtype": (T, [{**ROW, "dtype": "dtype"}]),
    "an unknown class": (T, [{**ROW, "class": "Module"}]),
    "an unknown device": (T, [{**ROW, "device": "abacus"}]),
    "an unknown entry": (T, [{**ROW, "entry": "b"}]),
    "a gradient of integers": (T, [{**ROW, "dtype": "int32", "requires_grad": True}]),
    "a tensor that is not there": ({"$": "tensor", "index": 1}, [ROW]),
    "a tensor counted from the end": ({"$": "tensor", "index": -1}, [ROW]),
    "an unknown kind": ({"$": "eval", "items": ["1"]}, []),
    "a kind that is a list": ({"$": ["tuple"]}, []),
    "a kind without its fields": ({"$": "tuple"}, []),
    "a key that has no hash": ({"$": "dict", "items": [[[1], 2]]}, []),
    "a pair of three": ({"$": "dict", "items": [[1, 2, 3]]}, []),
    "an unknown factory": ({"$": "defaultdict", "items": [], "factory": "eval"}, []),
    "a tree of 500 levels": (nested(500), []),
    "a NumPy array of objects": ({**N, "dtype": "|O"}, []),
    "a NumPy array that does not fit": ({**N, "shape": [2**40]}, []),
    "a NumPy array made twice": ([N, N], []),
    "a NumPy scalar that does not fit": ({"$": "numpy.scalar", "dtype": "<f8", "base64": "AAAA"}, []),
    "attributes of a class": ({"$": "OrderedDict", "items": [], "attributes": [["__class__", 1]]}, []),
}


@pytest.mark.parametrize("name", HOSTILE_TREES)
def test_a_hostile_tree_is_refused(name, tmp_path):
    tree, tensors = HOSTILE_TREES[name]
    assert refused(with_tree(tree, tensors, [{"entry": "a"}]), tmp_path)


def test_the_made_up_tree_is_read_where_it_is_right(tmp_path):
    assert not refused(with_tree([T, N], [ROW], [{"entry": "a"}]), tmp_path)


def test_a_file_of_a_later_version_says_so():
    with pytest.raises(RuntimeError, match="version 2 of the format; this program reads 1"):
        load(io.BytesIO(with_tree(0, version=2)))
