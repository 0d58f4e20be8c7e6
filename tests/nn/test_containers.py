"""Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict: as Python's own lists and dicts."""

from collections import OrderedDict

import pytest

import cudagrad as cg
from cudagrad import nn


class Add(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.n = n

    def forward(self, x):
        return x + self.n

    def extra_repr(self):
        return str(self.n)


def numbers(modules):
    return [m.n for m in modules]


def names(module):
    return [name for name, _ in module.named_children()]


def test_sequential_applies_its_modules_in_order():
    m = nn.Sequential(Add(1), nn.Sequential(Add(2), Add(3)))
    assert m(cg.tensor(0.0)).item() == 6.0
    named = nn.Sequential(OrderedDict(a=Add(1), b=Add(2)))
    assert names(named) == ["a", "b"] and named.b.n == 2 and named[1] is named.b


def test_sequential_is_indexed_and_changed_as_a_list():
    m = nn.Sequential(*map(Add, range(5)))
    assert m[-1].n == 4 and numbers(m[1:3]) == [1, 2] and len(m) == 5
    with pytest.raises(IndexError, match="^index 5 is out of range$"):
        m[5]
    m[1] = Add(10)
    assert numbers(m) == [0, 10, 2, 3, 4]
    del m[1]
    assert numbers(m) == [0, 2, 3, 4] and names(m) == ["0", "1", "2", "3"]
    del m[::2]
    assert numbers(m) == [2, 4] and names(m) == ["0", "1"]
    assert m.pop(0).n == 2 and numbers(m) == [4]
    assert numbers(m.append(Add(5)).extend(nn.Sequential(Add(6)))) == [4, 5, 6]
    assert numbers(m.insert(1, Add(7))) == [4, 7, 5, 6] and numbers(m.insert(-1, Add(8))) == [4, 7, 5, 8, 6]
    with pytest.raises(IndexError, match="^Index out of range: 9$"):
        m.insert(9, Add(1))
    with pytest.raises(AssertionError, match="^module should be of type"):
        m.insert(0, 3)


def test_sequential_slices_keep_names_and_modules():
    m = nn.Sequential(OrderedDict(a=Add(1), b=Add(2), c=Add(3)))
    assert names(m[1:]) == ["b", "c"] and m[1:][0] is m.b


def test_sequentials_add_and_multiply():
    a, b = nn.Sequential(Add(1)), nn.Sequential(Add(2))
    assert numbers(a + b) == [1, 2] and numbers(a * 2) == [1, 1] and numbers(2 * b) == [2, 2]
    a += b
    a *= 2
    assert numbers(a) == [1, 2, 1, 2] and list(a._modules) == ["0", "1", "2", "3"]
    with pytest.raises(ValueError, match="^add operator supports only objects of Sequential class, but <class 'int'>"):
        a + 1
    with pytest.raises(ValueError, match="^Non-positive multiplication factor 0 for"):
        a * 0
    with pytest.raises(TypeError, match="^unsupported operand type"):
        a * 1.5


def test_a_module_list_is_a_list():
    m = nn.ModuleList(map(Add, range(3)))
    assert numbers(m) == [0, 1, 2] and numbers(m[1:]) == [1, 2] and isinstance(m[1:], nn.ModuleList)
    m.insert(1, Add(5))
    m += [Add(6)]
    assert numbers(m) == [0, 5, 1, 2, 6] and numbers(m + [Add(7)])[-1] == 7 and len(m) == 5
    assert m.pop(1).n == 5
    del m[1:3]
    assert numbers(m) == [0, 6] and names(m) == ["0", "1"]
    with pytest.raises(TypeError, match="^ModuleList.extend should be called with an iterable, but got int$"):
        m.extend(3)
    with pytest.raises(IndexError, match="^index -3 is out of range$"):
        m[-3]
    with pytest.raises(NotImplementedError):
        m(1)


def test_the_repr_of_a_module_list_counts_equal_neighbours():
    m = nn.ModuleList([Add(1), Add(1), Add(2)])
    assert repr(m) == "ModuleList(\n  (0-1): 2 x Add(1)\n  (2): Add(2)\n)"
    assert repr(nn.ModuleList()) == "ModuleList()"


def test_a_module_dict_is_an_ordered_dict():
    m = nn.ModuleDict({"b": Add(1), "a": Add(2)})
    m.update([["c", Add(3)]])
    assert list(m) == list(m.keys()) == ["b", "a", "c"] and "a" in m and len(m) == 3
    assert numbers(m.values()) == [1, 2, 3] and dict(m.items())["c"].n == 3
    assert m.pop("b").n == 1 and not hasattr(m, "b")
    del m["a"]
    m["d"] = Add(4)
    assert list(m) == ["c", "d"]
    m.clear()
    assert len(m) == 0
    with pytest.raises(KeyError):
        m["x"]
    with pytest.raises(TypeError, match="^ModuleDict.update should be called with an iterable of key/value pairs, but"):
        m.update(3)
    with pytest.raises(ValueError, match="^ModuleDict update sequence element #0 has length 1; 2 is required$"):
        m.update([["x"]])
    with pytest.raises(KeyError, match="attribute 'clear' already exists"):
        m["clear"] = Add(1)


def test_a_parameter_list_makes_parameters_of_tensors():
    m = nn.ParameterList([cg.zeros(2), nn.Parameter(cg.ones(3)), "text"])
    assert [n for n, _ in m.named_parameters()] == ["0", "1"] and m[2] == "text" and len(m) == 3
    assert isinstance(m[0], nn.Parameter) and m[-2] is m[1]
    m.append(cg.zeros(1)).extend([cg.zeros(4)])
    m += [cg.zeros(5)]
    assert [tuple(p.shape) for p in m if not isinstance(p, str)] == [(2,), (3,), (1,), (4,), (5,)]
    assert isinstance(m[:2], nn.ParameterList) and len(m[:2]) == 2
    m[0] = cg.ones(7)
    assert m[0].shape == (7,)
    with pytest.raises(TypeError, match="^ParameterList.extend should be called with an iterable, but got Tensor$"):
        m.extend(cg.zeros(2))
    with pytest.raises(RuntimeError, match="^ParameterList should not be called.$"):
        m()


def test_the_repr_of_parameter_containers_shows_dtypes_and_sizes():
    m = nn.ParameterList([cg.zeros(2, 3), 4])
    assert repr(m) == (
        "ParameterList(\n    (0): Parameter containing: [torch.float32 of size 2x3]\n    (1): Object of type: int\n)"
    )
    m = nn.ParameterDict({"a": cg.zeros(2, 3)})
    assert m.extra_repr() == "  (a): Parameter containing: [torch.FloatTensor of size 2x3]"


def test_a_parameter_dict_is_a_dict():
    m = nn.ParameterDict({"b": cg.zeros(1), "a": cg.zeros(2)})
    assert list(m) == ["a", "b"] and list(reversed(m)) == ["b", "a"]  # a plain dict's keys are sorted, as in PyTorch
    m = nn.ParameterDict(OrderedDict(b=cg.zeros(1), a=cg.zeros(2)))
    assert list(m) == ["b", "a"] and [n for n, _ in m.named_parameters()] == ["b", "a"]
    m["c"] = 5
    assert m["c"] == 5 and m.get("x", 7) == 7 and m.setdefault("c") == 5 and m.setdefault("d", cg.ones(1)) is m["d"]
    assert m.popitem()[0] == "d" and m.pop("c") == 5 and len(m) == 2
    other = m | nn.ParameterDict({"z": cg.zeros(3)})
    assert list(other) == ["b", "a", "z"] and other["a"] is m["a"] and list(m) == ["b", "a"]
    m |= {"y": cg.zeros(1)}
    assert "y" in m and list(m.fromkeys(["p", "q"], 1).items()) == [("p", 1), ("q", 1)]
    assert list(m.copy().keys()) == ["b", "a", "y"] and len(list(m.values())) == 3
    del m["y"]
    m.clear()
    assert len(m) == 0 and not m._parameters
    with pytest.raises(TypeError, match="^Index given to ParameterDict cannot be used as a key as it is not a string"):
        m[3]
    with pytest.raises(TypeError, match="^ParameterDict update sequence element #0 should be Iterable; isint$"):
        m.update([3])
    with pytest.raises(RuntimeError, match="^ParameterDict should not be called.$"):
        m(1)


def test_the_old_container_warns():
    with pytest.warns(FutureWarning, match="^nn.Container is deprecated."):
        m = nn.Container(a=Add(1))
    assert m.a.n == 1


@pytest.mark.peer
def test_container_reprs_are_pytorchs():
    torch = pytest.importorskip("torch")

    def build(lib):
        return lib.nn.ModuleDict(
            {
                "list": lib.nn.ModuleList([lib.nn.ModuleList([lib.nn.Sequential()] * 2)] * 3),
                "p": lib.nn.ParameterList([lib.zeros(2, 3), "x", lib.zeros(2, dtype=lib.float64)]),
                "d": lib.nn.ParameterDict({"w": lib.zeros(2, 3), "k": 1}),
            }
        )

    assert repr(build(cg)) == repr(build(torch))
