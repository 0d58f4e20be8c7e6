"""What save writes load gives back, value by value and memory by memory."""

import collections
import io
import math

import numpy as np
import pytest

from cudagrad import dtypes
from cudagrad.backend import device
from cudagrad.core.shape import Size
from cudagrad.core.tensor import Tensor, wrap
from cudagrad.nn.parameter import Parameter
from cudagrad.serialization import load, save

from .common import same, tensor, trip

PLAIN = {
    "none": None,
    "bools": [True, False],
    "ints": [0, -1, 2**63 - 1, 2**64 - 1, -(2**63), 2**64, -(2**200), 10**5000],
    "floats": [0.1, -0.0, 1e300, 5e-324, math.nan, math.inf, -math.inf],
    "complex": [1 + 2j, complex(math.nan, -math.inf), complex(-0.0, 0.0)],
    "strings": ["", "näïve ☃ 🎲", '\x00\n"\\', "\ud800"],
    "bytes": [b"", b"\x00\xff" * 100, bytearray(b"abc")],
    "containers": [(), (1, (2, [3])), {1, 2}, frozenset({"a"}), {}, [], collections.deque([1, 2], maxlen=3)],
    "keys": {1: "int", (1, "a"): "tuple", None: 0, 2.5: 1, "$": "our own tag", b"b": 2},
    "counter": collections.Counter("abca"),
    "defaultdict": collections.defaultdict(list, {"x": [1]}),
    "ranges": [range(1, 9, 2), slice(None, 3), Ellipsis],
    "ours": [dtypes.bfloat16, device("cuda:1"), device("cpu"), Size((2, 3)), Size(())],
    "tagged": {"$": "tensor", "index": 0},
}


@pytest.mark.parametrize("name", PLAIN)
def test_a_plain_value_comes_back_as_it_was(name):
    assert same(trip(PLAIN[name]), PLAIN[name])


def test_negative_zero_keeps_its_sign():
    assert math.copysign(1, trip(-0.0)) == -1
    assert math.copysign(1, trip(complex(-0.0, 0.0)).real) == -1


def test_a_defaultdict_keeps_its_factory():
    assert trip(collections.defaultdict(list))["new"] == []
    assert trip(collections.defaultdict(None, {1: 2})).default_factory is None


@pytest.mark.parametrize("d", dtypes.ALL, ids=repr)
@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (1,), (3, 1, 2)])
def test_a_tensor_of_any_dtype_comes_back(d, shape):
    count = math.prod(shape)
    t = wrap((np.arange(count) % 2).reshape(shape).astype(d.numpy))
    got = trip(t)
    assert same(got, t)
    assert got.array.dtype is d.numpy


def test_every_bit_of_a_float_comes_back():
    bits = np.array([0x7FC00001, 0xFFC12345, 0x80000000, 0x00000001, 0x7F800000], np.uint32)
    assert (trip(wrap(bits.view(np.float32))).array.view(np.uint32) == bits).all()


ARRAYS = [
    np.arange(6).reshape(2, 3),
    np.arange(6.0).reshape(2, 3).T,
    np.array(["ab", "ç"]),
    np.array([b"x", b"yz"]),
    np.array(["2020-01-01"], "M8[D]"),
    np.array(3.5, ">f8"),
    np.zeros((0, 2), bool),
    np.ones(3, dtypes.bfloat16.numpy),
    np.ones(2, np.complex128),
    np.float32(0.1),
    np.int64(-5),
    np.bool_(True),
    np.str_("word"),
    np.complex64(1j),
    np.ones(1, dtypes.bfloat16.numpy)[0],
]


@pytest.mark.parametrize("a", ARRAYS, ids=lambda a: f"{type(a).__name__}-{a.dtype}")
def test_numpy_arrays_and_scalars_come_back(a):
    assert same(trip(a), a)


def test_numpy_arrays_are_saved_by_value_and_can_be_written():
    a = np.arange(10)
    got = trip([a, a[::2]])
    got[0][0] = 99
    assert got[1].tolist() == [0, 2, 4, 6, 8]


def test_optimizer_and_model_state_come_back():
    weight = tensor([[1, 2], [3, 4]])
    model = collections.OrderedDict(weight=weight, bias=tensor([0, 0]))
    model._metadata = collections.OrderedDict({"": {"version": 1}})
    group = {"lr": 0.1, "betas": (0.9, 0.999), "params": [0, 1], "foreach": None}
    state = {"state": {0: {"step": tensor(3.0), "exp_avg": tensor([1, 2])}, 1: {}}, "param_groups": [group]}
    got = trip({"model": model, "optimizer": state})
    assert same(got, {"model": model, "optimizer": state})
    assert got["model"]._metadata == {"": {"version": 1}}


def test_a_parameter_comes_back_as_one_with_its_requires_grad():
    got = trip(
        [Parameter(tensor([1.0])), Parameter(tensor([1.0]), requires_grad=False), tensor([1.0]).requires_grad_()]
    )
    assert [type(t) for t in got] == [Parameter, Parameter, Tensor]
    assert [t.requires_grad for t in got] == [True, False, True]
    assert all(t.is_leaf for t in got)


def test_one_tensor_in_two_places_is_one_tensor_again():
    p = Parameter(tensor([1.0]))
    got = trip({"encoder": p, "decoder": [p]})
    assert got["encoder"] is got["decoder"][0]


def test_views_of_one_memory_come_back_as_views_of_one_memory():
    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    views = [base[1], base.T, base[::2, 1:], base.reshape(-1)[5:7], base[:0], np.broadcast_to(base[0], (3, 6))]
    got = trip([wrap(v) for v in views])
    assert all(same(g.array, v) for g, v in zip(got, views))
    got[1].array[...] = -1
    assert all((g.array == -1).all() for g in got)


def test_a_view_of_another_dtype_shares_too():
    base = np.arange(4, dtype=np.complex64)
    got = trip([wrap(base), wrap(base.real), wrap(base.imag), wrap(base.view(np.int64))])
    got[2].array[0] = 5
    assert got[0].array[0] == 5j
    assert got[3].array.dtype == np.int64


def test_memory_that_views_made_by_strides_share_is_found_by_address():
    base = np.arange(6, dtype=np.float32)
    windows = np.lib.stride_tricks.as_strided(base, (4, 3), (4, 4))  # its chain of bases does not lead to base
    got = trip([wrap(windows), wrap(base)])
    got[1].array[2] = 100
    assert got[0].array[0, 2] == got[0].array[1, 1] == got[0].array[2, 0] == 100


def test_a_small_view_saves_the_whole_memory():
    f = io.BytesIO()
    save(wrap(np.zeros(250_000, np.float32)[:1]), f)
    assert 1_000_000 < len(f.getvalue()) < 1_002_000


def test_an_expanded_tensor_saves_one_element():
    f = io.BytesIO()
    save(wrap(np.broadcast_to(np.ones((), np.float32), (10_000, 10_000))), f)
    assert len(f.getvalue()) < 2_000
    f.seek(0)
    assert load(f).array.strides == (0, 0)


def test_strides_of_a_transposed_owner_are_kept():
    a = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    assert trip(wrap(a)).array.strides == a.strides == (8, 16)


def test_what_is_loaded_can_be_written():
    for t in trip([tensor([1.0]), tensor([])]):
        assert t.array.flags.writeable
