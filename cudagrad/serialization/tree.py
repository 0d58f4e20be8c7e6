"""Python values as a JSON tree whose arrays stand elsewhere, and back; nothing in a tree names code to run."""

import base64
import collections
import json
import math

import numpy as np

from .. import dtypes
from ..backend import device
from ..core.shape import Size
from ..core.tensor import Tensor
from ..errors import text
from .memory import dtype_named

DEPTH = 200
TAG = "$"  # an object with this key is one of the kinds below; any other is a dict with str keys
FACTORIES = {f.__name__: f for f in (list, dict, int, float, set, str, bool, tuple, collections.OrderedDict)}


class Encoder:
    """Collects what a tree refers to: ``tensors`` (path, Tensor) and ``arrays`` (path, NumPy array)."""

    def __init__(self):
        self.tensors, self.arrays = [], []
        self._index, self._open = {}, set()

    def encode(self, value, path=()):
        """The JSON form of ``value``.

        Raises      TypeError for a kind of value that a file without code cannot hold; ValueError for one in itself
        """
        kind = type(value)
        if value is None or kind is bool or kind is str:
            return value
        if kind is int:
            return value if -(2**63) <= value < 2**64 else {TAG: "int", "hex": hex(value)}
        if kind is float:
            return value if math.isfinite(value) else {TAG: "float", "value": repr(value)}
        if isinstance(value, Tensor):
            return self._tensor(value, path)
        if isinstance(value, (np.ndarray, np.generic)):
            return self._numpy(value, path)
        write = LEAVES.get(kind)
        if write is not None:
            return write(value)
        write = CONTAINERS.get(kind)
        if write is None:
            raise _no_code(value, path)
        if id(value) in self._open:
            raise ValueError(f"save: {show(path)} contains itself")
        if len(path) > DEPTH:
            raise ValueError(f"save: {show(path)} lies {len(path)} levels deep; a file holds {DEPTH}")
        self._open.add(id(value))
        made = write(self, value, path)
        self._open.discard(id(value))
        return made

    def _tensor(self, t, path):
        if type(t) not in tensor_classes().values():
            raise _no_code(t, path)
        if id(t) not in self._index:
            self._index[id(t)] = len(self.tensors)
            self.tensors.append((path, t))
        return {TAG: "tensor", "index": self._index[id(t)]}

    def _numpy(self, a, path):
        d = a.dtype
        if d.kind not in "biufcSUmM" and dtypes.OF_NUMPY.get(d) is None or d.char in "gG":
            raise TypeError(
                text(
                    f"save: {show(path)} is a NumPy array of {d}, which a file that runs no code cannot hold",
                    "fix: turn it into numbers or strings first",
                )
            )
        name = "bfloat16" if d == dtypes.bfloat16.numpy else d.str
        if isinstance(a, np.generic):
            return {TAG: "numpy.scalar", "dtype": name, "base64": _base64(np.asarray(a).tobytes())}
        order = "F" if a.flags.f_contiguous and not a.flags.c_contiguous else "C"
        self.arrays.append((path, a.T if order == "F" else a))
        where = {"index": len(self.arrays) - 1, "dtype": name, "shape": list(a.shape)}
        return {TAG: "numpy", **where, "order": order}

    def items(self, values, path):
        return [self.encode(v, (*path, i)) for i, v in enumerate(values)]

    def pairs(self, table, path):
        return [[self.encode(k, (*path, "key")), self.encode(v, (*path, k))] for k, v in table.items()]

    def bytes(self, value, path):
        self.arrays.append((path, np.frombuffer(bytes(value), np.uint8)))
        return {TAG: type(value).__name__, "index": len(self.arrays) - 1}


def _base64(raw):
    return base64.b64encode(raw).decode()


def _dict(encoder, value, path):
    if TAG not in value and all(type(k) is str for k in value):
        return {k: encoder.encode(v, (*path, k)) for k, v in value.items()}
    return {TAG: "dict", "items": encoder.pairs(value, path)}


def _ordered(encoder, value, path):
    made = {TAG: type(value).__name__, "items": encoder.pairs(value, path)}
    if getattr(value, "__dict__", None):  # a state dict carries its modules' versions as ._metadata
        made["attributes"] = _dict(encoder, value.__dict__, path)
    return made


def _default(encoder, value, path):
    factory = value.default_factory
    if factory is not None and factory not in FACTORIES.values():
        raise _no_code(factory, (*path, "default_factory"))
    made = {TAG: "defaultdict", "items": encoder.pairs(value, path)}
    return made if factory is None else {**made, "factory": factory.__name__}


def _many(encoder, value, path):
    return {TAG: type(value).__name__, "items": encoder.items(value, path)}


LEAVES = {
    complex: lambda v: {TAG: "complex", "parts": [float.hex(v.real), float.hex(v.imag)]},
    type(Ellipsis): lambda v: {TAG: "Ellipsis"},
    dtypes.dtype: lambda v: {TAG: "dtype", "name": v.name},
    device: lambda v: {TAG: "device", "name": str(v)},
    range: lambda v: {TAG: "range", "items": [v.start, v.stop, v.step]},
}
CONTAINERS = {
    list: lambda e, v, path: e.items(v, path),
    dict: _dict,
    tuple: _many,
    set: _many,
    frozenset: _many,
    Size: _many,
    collections.deque: lambda e, v, path: {**_many(e, v, path), "maxlen": v.maxlen},
    slice: lambda e, v, path: {TAG: "slice", "items": e.items((v.start, v.stop, v.step), path)},
    collections.OrderedDict: _ordered,
    collections.Counter: _ordered,
    collections.defaultdict: _default,
    bytes: lambda e, v, path: e.bytes(v, path),
    bytearray: lambda e, v, path: e.bytes(v, path),
}


def tensor_classes():
    """Name -> class of the tensors that a file can hold."""
    from ..nn.parameter import Parameter

    return {"Tensor": Tensor, "Parameter": Parameter}


def show(path):
    """``obj['model'][0]``: where in the saved object something stands."""
    return "obj" + "".join(f"[{part!r}]" for part in path)


def _no_code(value, path):
    """TypeError for a value whose class would have to be run to make it again, with the way out."""
    where, kind = show(path), type(value)
    name = f"{kind.__module__}.{kind.__qualname__}" if kind.__module__ != "builtins" else kind.__qualname__
    if hasattr(value, "state_dict") and hasattr(value, "load_state_dict"):
        way = f"save {where}.state_dict(), make a new {kind.__name__} after load, and call its load_state_dict"
    elif hasattr(value, "_asdict"):
        way = f"save {where}._asdict()"
    elif hasattr(value, "get_state") and hasattr(value, "set_state"):
        way = f"save {where}.get_state()"
    elif isinstance(value, dict):
        way = f"save dict({where})"
    elif isinstance(value, Tensor):
        way = f"save {where}.as_subclass(Tensor)"
    elif callable(value):
        way = "save its name, and look it up after load"
    elif hasattr(value, "__fspath__"):
        way = f"save str({where})"
    else:
        way = f"save vars({where}) or another dict of its parts"
    said = f"save: {where} is a {name} object; a file that runs no code when it is loaded cannot hold one"
    return TypeError(text(said, f"fix: {way}"))


# ---- back


class Decoder:
    """Makes the values of a tree; ``tensor(i)`` and ``array(i)`` give what it refers to."""

    def __init__(self, tensor, array):
        self.tensor, self.array = tensor, array

    def decode(self, node, depth=0):
        """The value of a node; ValueError, TypeError, KeyError or IndexError where the node is none."""
        if depth > DEPTH + 2:
            raise ValueError("it is nested too deep")
        if isinstance(node, list):
            return [self.decode(v, depth + 1) for v in node]
        if not isinstance(node, dict):
            return node
        if TAG not in node:
            return {k: self.decode(v, depth + 1) for k, v in node.items()}
        kind = node[TAG]
        make = KINDS.get(kind) if isinstance(kind, str) else None
        if make is None:
            raise ValueError(f"it holds a {kind!r}, which this version does not know")
        if kind in BY_ITEMS:
            return make(self.items(node, depth))
        return make(self, node, depth)

    def items(self, node, depth):
        found = node["items"]
        if not isinstance(found, list):
            raise TypeError("items that are no list")
        return [self.decode(v, depth + 1) for v in found]

    def pairs(self, node, depth):
        return [(k, v) for k, v in self.items(node, depth)]


def _made_ordered(kind):
    def make(decoder, node, depth):
        made = kind()
        for k, v in decoder.pairs(node, depth):
            made[k] = v
        for k, v in decoder.decode(node.get("attributes", {}), depth).items():
            made.__dict__[k] = v
        return made

    return make


def _made_default(decoder, node, depth):
    factory = FACTORIES[node["factory"]] if "factory" in node else None
    return collections.defaultdict(factory, decoder.pairs(node, depth))


def _numpy_dtype(name):
    if name == "bfloat16":
        return dtypes.bfloat16.numpy
    d = np.dtype(name) if isinstance(name, str) and name[1:2] in tuple("biufcSUmM") else None
    if d is None or d.hasobject:
        raise ValueError(f"a NumPy array of {name!r}")
    return d


def _made_numpy(decoder, node, depth):
    flat, shape, d = decoder.array(node["index"]), tuple(node["shape"]), _numpy_dtype(node["dtype"])
    if math.prod(shape) * d.itemsize != flat.nbytes:
        raise ValueError(f"a NumPy array of shape {list(shape)} and {d} in {flat.nbytes} bytes")
    if 0 in shape or d.itemsize == 0:
        return np.zeros(shape, d)
    made = flat.view(d)
    return made.reshape(shape[::-1]).T if node.get("order") == "F" else made.reshape(shape)


def _made_scalar(decoder, node, depth):
    d, raw = _numpy_dtype(node["dtype"]), base64.b64decode(node["base64"], validate=True)
    if d.itemsize != len(raw):
        raise ValueError(f"a NumPy scalar of {d} in {len(raw)} bytes")
    return np.zeros((), d)[()] if not raw else np.frombuffer(raw, d)[0]


def _made_dtype(decoder, node, depth):
    found = dtype_named(node["name"])
    if found is None:
        raise ValueError(f"no dtype is called {node['name']!r}")
    return found


BY_ITEMS = {
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "Size": Size,
    "slice": lambda v: slice(*v),
    "range": lambda v: range(*v),
}
KINDS = {
    **BY_ITEMS,
    "dict": lambda d, node, depth: dict(d.pairs(node, depth)),
    "OrderedDict": _made_ordered(collections.OrderedDict),
    "Counter": _made_ordered(collections.Counter),
    "defaultdict": _made_default,
    "deque": lambda d, node, depth: collections.deque(d.items(node, depth), node["maxlen"]),
    "int": lambda d, node, depth: int(node["hex"], 16),
    "float": lambda d, node, depth: {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[node["value"]],
    "complex": lambda d, node, depth: complex(*map(float.fromhex, node["parts"])),
    "Ellipsis": lambda d, node, depth: Ellipsis,
    "bytes": lambda d, node, depth: d.array(node["index"]).tobytes(),
    "bytearray": lambda d, node, depth: bytearray(d.array(node["index"]).tobytes()),
    "dtype": _made_dtype,
    "device": lambda d, node, depth: device(node["name"]),
    "tensor": lambda d, node, depth: d.tensor(node["index"]),
    "numpy": _made_numpy,
    "numpy.scalar": _made_scalar,
}


def parse(tree):
    """The JSON text of a tree as nodes; ValueError where it is none."""

    def refuse(word):
        raise ValueError(f"{word} is not JSON")

    try:
        return json.loads(tree, parse_constant=refuse)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
