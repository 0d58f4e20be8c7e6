"""A PyTorch file that names anything but harmless things is refused, and the name said."""

import collections
import io
import os
import pickle
import tracemalloc
import zipfile

import numpy as np
import pytest

from cudagrad import serialization
from cudagrad.serialization import load, torch_file, unpickle

from .common import Config, Point, refused, same
from .test_damaged import HOSTILE, HOSTILE_TREES, with_tree
from .test_values import PLAIN


class Reduce:
    """Pickles as a call of ``function``."""

    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


def zipped(data, **records):
    f = io.BytesIO()
    with zipfile.ZipFile(f, "w") as z:
        z.writestr("archive/data.pkl", data)
        for name, content in records.items():
            z.writestr(f"archive/{name}", content)
    return f.getvalue()


def legacy_bomb():
    """The object of an old file that names a storage of 2^40 bytes."""
    return (
        b"\x80\x02(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu\x8a\x06"
        + (2**40).to_bytes(6, "little")
        + b"NtQ.\x80\x02]X\x01\x00\x00\x000a."
        + (2**40).to_bytes(8, "little")
    )


PICKLES = {
    "os.system": zipped(pickle.dumps(Reduce(os.system, "true"), 2)),
    "eval": zipped(pickle.dumps(Reduce(eval, "1"), 2)),
    "getattr": zipped(pickle.dumps(Reduce(getattr, "", "upper"), 4)),
    "a method of a known class": zipped(b"\x80\x04\x8c\x0bcollections\x8c\x14OrderedDict.fromkeys\x93)R."),
    "a known class called with much": zipped(b"\x80\x02c__builtin__\nbytearray\nJ\x00\x00\x00\x7f\x85R."),
    "a range as a set": zipped(b"\x80\x02c__builtin__\nset\nc__builtin__\nxrange\nJ\x00\x00\x00\x7f\x85R\x85R."),
    "a codec that unpacks": zipped(b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x04\x00\x00\x00zlib\x86R."),
    "a string longer than the file": zipped(b"\x80\x02X\xff\xff\xff\xffabc."),
    "a key that takes a year to hash": zipped(
        b"\x80\x02}" + b"))\x86q\x00" + b"h\x00h\x00\x86q\x00" * 90 + b"h\x00Ns."
    ),
    "an extension": zipped(b"\x80\x02\x82\x01."),
    "a state for a list": zipped(b"\x80\x02]}b."),
    "an empty stack": zipped(b"\x80\x02R."),
    "no end": zipped(b"\x80\x02N"),
    "a storage that is not there": zipped(
        b"\x80\x02(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x02tQ."
    ),
    "a storage shorter than named": zipped(
        b"\x80\x02(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x02tQ.",
        **{"data/0": b"1234567"},
    ),
    "a persistent id of code": zipped(b"\x80\x02(X\x06\x00\x00\x00moduleNtQ."),
    "nothing on the stack": zipped(b"\x80\x02."),
    "a script": zipped(pickle.dumps({}, 2), **{"constants.pkl": b""}),
    "objects in a NumPy array": zipped(pickle.dumps(np.array([Reduce(len, "")], object), 2)),
    "another pickle": pickle.dumps({"a": 1}),
}


def test_a_memo_far_out_takes_no_memory():
    assert load(io.BytesIO(zipped(b"\x80\x02Nr\xff\xff\xff\xff."))) is None


@pytest.mark.parametrize("name", PICKLES)
def test_a_hostile_pickle_is_refused(name, tmp_path):
    assert refused(PICKLES[name], tmp_path)


def test_what_is_refused_is_named():
    with pytest.raises(pickle.UnpicklingError) as caught:
        load(io.BytesIO(zipped(pickle.dumps(Config(), 2))))
    first, *rest = str(caught.value).split("\n")
    assert first == (
        "Weights only load failed. This file can still be loaded, to do so you have two options, "
        "\033[1mdo those steps only if you trust the source of the checkpoint\033[0m. "
    )
    assert (
        f"Unsupported global: GLOBAL {Config.__module__}.Config was not an allowed global by default. Please use"
        in rest[-1]
    )
    with pytest.raises(
        pickle.UnpicklingError, match="Trying to load unsupported GLOBAL posix.system whose module posix"
    ):
        load(io.BytesIO(PICKLES["os.system"]))
    with pytest.raises(RuntimeError, match="Cannot use ``weights_only=True`` with TorchScript archives"):
        load(io.BytesIO(PICKLES["a script"]))


def test_a_name_that_the_user_allows_is_believed():
    config = Config()
    config.lr = 3
    raw = zipped(pickle.dumps([config, Reduce(Point, 1, 2)], 2))
    with serialization.safe_globals([Config, (Point, f"{Point.__module__}.Point")]):
        first, second = load(io.BytesIO(raw))
    assert first.lr == 3
    assert second == Point(1, 2)
    with pytest.raises(pickle.UnpicklingError, match="Config was not an allowed global"):
        load(io.BytesIO(raw))
    serialization.add_safe_globals([Config, Point])
    assert serialization.get_safe_globals() == [Config, Point]
    assert load(io.BytesIO(raw))[0].lr == 3
    serialization.clear_safe_globals()
    assert serialization.get_safe_globals() == []
    with serialization.safe_globals([os.system]), pytest.raises(pickle.UnpicklingError, match="posix is blocked"):
        load(io.BytesIO(PICKLES["os.system"]))


def test_wrong_allowances_are_refused():
    with pytest.raises(ValueError, match="Expected tuple of length 2"):
        serialization.add_safe_globals([(Config,)])
    with pytest.raises(TypeError, match="Expected second item in tuple to be str"):
        serialization.add_safe_globals([(Config, 3)])


def test_the_unpickler_knows_every_plain_value_that_pickle_writes():
    values = [PLAIN[k] for k in ("none", "bools", "ints", "floats", "strings", "bytes")]
    values += [
        (),
        (1,),
        (1, 2),
        (1, 2, 3),
        (1, 2, 3, 4),
        {1: {2: []}},
        {1, 2},
        frozenset({3}),
        1 + 2j,
        range(3),
        slice(1),
    ]
    values += [collections.OrderedDict(a=1), collections.Counter("aab"), collections.defaultdict(int, {1: 2})]
    values += [np.arange(6).reshape(2, 3).T, np.array(3, ">i4"), np.float64(0.5), np.array(["ab"]), np.zeros((0, 2))]
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        stream = io.BytesIO(pickle.dumps(values, protocol))
        got = unpickle.Unpickler(stream, {}, lambda pid: None).load()
        for a, b in zip(got, values, strict=True):
            if isinstance(b, np.ndarray):
                assert a.dtype == b.dtype
                assert (a == b).all()
            else:
                assert same(a, b)


def test_hostile_files_take_no_memory(tmp_path):
    bombs = [*HOSTILE.values(), *(with_tree(*HOSTILE_TREES[n], [{"entry": "a"}]) for n in HOSTILE_TREES)]
    bombs += [*PICKLES.values(), torch_file.MAGIC + b"\x80\x02M\xe9\x03.\x80\x02}." + legacy_bomb()]
    tracemalloc.start()
    for raw in bombs:
        refused(raw, tmp_path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30e6
