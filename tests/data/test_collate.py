"""From samples to a batch."""

import collections
import types

import numpy as np
import pytest

import cudagrad as torch
from cudagrad.utils.data import _utils, default_collate, default_convert
from cudagrad.utils.data._utils.collate import collate, default_collate_fn_map

Point = collections.namedtuple("Point", "x y")


def seen(value):
    """A batch as plain values, with the dtypes of its tensors."""
    if isinstance(value, torch.Tensor):
        return str(value.dtype).removeprefix("torch."), value.tolist()
    if isinstance(value, dict):
        return {k: seen(v) for k, v in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(seen, value))
    return [seen(v) for v in value] if isinstance(value, list) else value


CASES = {
    "ints": ([1, 2], ("int64", [1, 2])),
    "floats give float64": ([1.5, 2], ("float64", [1.5, 2.0])),
    "bools": ([True, False], ("bool", [True, False])),
    "strings": (["a", "b"], ["a", "b"]),
    "bytes": ([b"a", b"b"], [b"a", b"b"]),
    "numpy scalars": ([np.float32(1), np.float32(2)], ("float32", [1, 2])),
    "numpy bools": ([np.bool_(True)], ("bool", [True])),
    "numpy doubles": ([np.float64(1)], ("float64", [1])),
    "arrays": ([np.array([1, 2], np.int16)] * 2, ("int16", [[1, 2], [1, 2]])),
    "0-d arrays": ([np.array(1.0)] * 2, ("float64", [1, 1])),
    "tuples become lists": ([(1, "a"), (2, "b")], [("int64", [1, 2]), ("a", "b")]),
    "lists": ([[1, 2.0], [3, 4.0]], [("int64", [1, 3]), ("float64", [2, 4])]),
    "dicts": ([{"a": 1, "b": [2]}, {"a": 3, "b": [4]}], {"a": ("int64", [1, 3]), "b": [("int64", [2, 4])]}),
    "namedtuples": ([Point(1, 2.0), Point(3, 4.0)], Point(("int64", [1, 3]), ("float64", [2, 4]))),
}


@pytest.mark.parametrize("name", CASES)
def test_samples_are_collated(name):
    samples, want = CASES[name]
    assert seen(default_collate(samples)) == want


def test_tensors_are_stacked():
    got = default_collate([torch.tensor([1, 2]), torch.tensor([3, 4])])
    assert seen(got) == ("int64", [[1, 2], [3, 4]])


def test_a_gradient_flows_through_collation():
    x = torch.ones(2, requires_grad=True)
    default_collate([x, x]).sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_ragged_samples_are_refused():
    with pytest.raises(
        RuntimeError, match=r"stack expects each tensor to be equal size, but got \[1\] at entry 0 and \[2\]"
    ):
        default_collate([torch.ones(1), torch.ones(2)])
    with pytest.raises(
        RuntimeError, match=r"stack expects each tensor to be equal size, but got \[1\] at entry 0 and \[2\]"
    ):
        default_collate([np.ones(1), np.ones(2)])
    with pytest.raises(RuntimeError, match="each element in list of batch should be of equal size"):
        default_collate([[1], [1, 2]])


@pytest.mark.parametrize("sample", [object(), {1, 2}, None, np.array(["a"]), np.array([object()])])
def test_samples_of_no_known_type_are_refused(sample):
    words = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found "
    with pytest.raises(TypeError, match=words):
        default_collate([sample, sample])


def test_containers_keep_their_class():
    default = collections.defaultdict(list, a=1)
    got = default_collate([default, default])
    assert got.default_factory is list
    assert type(default_collate([collections.OrderedDict(a=1)] * 2)) is collections.OrderedDict
    assert type(default_collate([types.MappingProxyType({"a": 1})] * 2)) is types.MappingProxyType
    assert type(default_collate([collections.UserList([1])] * 2)) is collections.UserList
    assert seen(default_collate([range(2), range(2)])) == [("int64", [0, 0]), ("int64", [1, 1])]


def test_the_samples_themselves_are_not_changed():
    sample = {"a": 1, "b": [1]}
    default_collate([sample, sample])
    assert sample == {"a": 1, "b": [1]}


def test_a_type_of_the_user_can_be_taught(monkeypatch):
    class Box:
        def __init__(self, value):
            self.value = value

    def boxes(batch, *, collate_fn_map=None):
        return collate([b.value for b in batch], collate_fn_map=collate_fn_map)

    table = {**default_collate_fn_map, Box: boxes}
    assert seen(collate([(Box(1), 2), (Box(3), 4)], collate_fn_map=table)) == [("int64", [1, 3]), ("int64", [2, 4])]
    monkeypatch.setitem(default_collate_fn_map, torch.Tensor, lambda batch, *, collate_fn_map: len(batch))
    assert default_collate([np.ones(2), np.ones(2)]) == 2


CONVERTED = {
    "array": (np.array([1, 2]), ("int64", [1, 2])),
    "numpy scalar": (np.float32(2), ("float32", 2)),
    "number": (3, 3),
    "string": ("abc", "abc"),
    "array of strings": (np.array("a"), np.array("a")),
    "tuple becomes a list": ((1, np.array(2)), [1, ("int64", 2)]),
    "namedtuple": (Point(1, np.array(2)), Point(1, ("int64", 2))),
    "dict": ({"a": np.array(2), "b": None}, {"a": ("int64", 2), "b": None}),
    "list": ([np.array(2), "x"], [("int64", 2), "x"]),
    "set": ({1}, {1}),
}


@pytest.mark.parametrize("name", CONVERTED)
def test_one_sample_is_converted(name):
    sample, want = CONVERTED[name]
    assert seen(default_convert(sample)) == want


def test_a_tensor_is_converted_to_itself():
    t = torch.ones(2)
    assert default_convert([t])[0] is t


def test_converted_arrays_share_memory():
    a = np.zeros(2)
    default_convert(a)[0] = 1
    assert a[0] == 1


class Pinnable:
    pinned = False

    def pin_memory(self):
        made = Pinnable()
        made.pinned = True
        return made


def test_whatever_can_be_pinned_is_pinned():
    batch = {"a": [Pinnable(), "x"], "b": (Pinnable(), 1), "c": Point(Pinnable(), b"y")}
    got = _utils.pin_memory.pin_memory(batch)
    assert got["a"][0].pinned
    assert got["b"][0].pinned
    assert got["c"].x.pinned
    assert (got["a"][1], got["b"][1], got["c"].y) == ("x", 1, b"y")
    assert type(got["b"]) is tuple
