"""A reader of pickles that knows a short list of harmless names and calls nothing else."""

import collections
import pickle
import pickletools
import re

import numpy as np

from .. import dtypes
from ..backend import device
from ..core.shape import Size
from .safe_globals import _allowed

BLOCKED = ("sys", "os", "posix", "nt", "subprocess", "builtins.eval", "builtins.exec")
OLD_NAMES = {  # what a pickle of protocol 2 calls them, after Python 2
    "__builtin__.long": "builtins.int",
    "__builtin__.unicode": "builtins.str",
    "__builtin__.xrange": "builtins.range",
}


class Name:
    """A harmless name of a pickle: the value it stands for, and ``call``, what calling it makes (None: nothing)."""

    def __init__(self, value=None, call=None):
        self.value, self.call = self if value is None else value, call


class _Unfinished:
    """A NumPy array or dtype whose state comes later, by BUILD; ``done`` is then the value."""

    done = None

    def __init__(self, finish):
        self.finish = finish


def refuse(message):
    """UnpicklingError that begins as PyTorch's does; its two ways out are ours."""
    return pickle.UnpicklingError(
        "Weights only load failed. This file can still be loaded, to do so you have two options, "
        "\033[1mdo those steps only if you trust the source of the checkpoint\033[0m. \n"
        "\t(1) Load it with PyTorch, and save the tensors alone there: torch.save(model.state_dict(), path)\n"
        "\t(2) Alternatively, if the name is of your own program, allow it as the following error message says.\n"
        f"\tWeightsUnpickler error: {message}"
    )


def _unknown(name):
    if any(name == b or name.startswith(b + ".") for b in BLOCKED):
        module = name.rpartition(".")[0]
        return refuse(f"Trying to load unsupported GLOBAL {name} whose module {module} is blocked.")
    name = name.removeprefix("builtins.")
    return refuse(
        f"Unsupported global: GLOBAL {name} was not an allowed global by default. Please use "
        f"`torch.serialization.add_safe_globals([{name}])` or the `torch.serialization.safe_globals([{name}])` context "
        "manager to allowlist this global if you trust this class/function."
    )


# ---- the names, and what they make of their arguments


def _key(value, depth=0):
    """A dict key or set member whose hash takes no long time."""
    if isinstance(value, tuple) and depth < 4 and len(value) <= 64:
        return tuple(_key(v, depth + 1) for v in value)
    if value is None or isinstance(value, (str, bytes, int, float, complex, dtypes.dtype, device)):
        return value
    if isinstance(value, frozenset) and not depth:
        return value
    raise refuse(f"a dict key or set member of type {type(value).__name__}")


def _listed(value, *kinds):
    if not isinstance(value, kinds):
        raise refuse(f"a {type(value).__name__} where {kinds[0].__name__} belongs")
    return value


def _encoded(value, encoding):
    if not isinstance(value, str) or encoding not in ("latin1", "latin-1"):
        raise refuse(f"_codecs.encode to {encoding!r}")
    return value.encode("latin1")


def _bytearray(value=b"", encoding="latin-1"):
    return bytearray(_encoded(value, encoding) if isinstance(value, str) else _listed(value, bytes))


def _set(kind):
    return lambda values=(): kind(_key(v) for v in _listed(values, list, tuple))


def _ordered(pairs=()):
    return collections.OrderedDict((_key(k), v) for k, v in _listed(pairs, list, tuple))


def _counter(table=None):
    return collections.Counter({_key(k): v for k, v in _listed(table or {}, dict).items()})


def _default(factory=None):
    kinds = {None, int, float, bool, str, list, dict, set, tuple}
    if not (factory is None or isinstance(factory, type)) or factory not in kinds:
        raise refuse(f"a defaultdict of {factory!r}")
    return collections.defaultdict(factory)


def _numpy_dtype(spec, align=False, copy=False):
    """A NumPy dtype; its byte order comes by BUILD."""
    if not isinstance(spec, str) or spec[:1] not in tuple("biufcSUmM?<>|"):
        raise refuse(f"a NumPy dtype of {spec!r}")
    d = np.dtype(spec)
    if d.hasobject or d.fields:
        raise refuse(f"a NumPy dtype of {spec!r}")

    def finish(state):
        order = state[1]
        return d.newbyteorder(order) if order in ("<", ">", "=", "|") else d

    made = _Unfinished(finish)
    made.done = d
    return made


def _numpy_scalar(d, raw):
    d, raw = _listed(d, np.dtype), _listed(raw, bytes)
    if d.itemsize != len(raw) or not raw:
        raise refuse(f"a NumPy scalar of {d} in {len(raw)} bytes")
    return np.frombuffer(raw, d)[0]


def _numpy_array(kind, shape, code):
    """An empty array; shape, dtype and bytes come by BUILD."""

    def finish(state):
        _, shape, d, fortran, raw = state
        return _filled(raw, d, shape, "F" if fortran else "C")

    return _Unfinished(finish)


def _filled(raw, d, shape, order="C"):
    raw, shape = _listed(raw, bytes, bytearray), tuple(_listed(shape, tuple, list))
    size = _listed(d, np.dtype).itemsize
    for n in shape:
        size *= n if type(n) is int and n >= 0 else -1
    if size != len(raw):
        raise refuse(f"a NumPy array of shape {shape} and {d} in {len(raw)} bytes")
    return np.frombuffer(bytearray(raw), d).reshape(shape, order=order) if raw else np.zeros(shape, d, order=order)


NAMES = {
    "collections.OrderedDict": Name(collections.OrderedDict, _ordered),
    "collections.Counter": Name(collections.Counter, _counter),
    "collections.defaultdict": Name(collections.defaultdict, _default),
    "_codecs.encode": Name(call=_encoded),
    "builtins.bytearray": Name(bytearray, _bytearray),
    "builtins.bytes": Name(bytes, lambda *args: _encoded(*args) if args else b""),
    "builtins.set": Name(set, _set(set)),
    "builtins.frozenset": Name(frozenset, _set(frozenset)),
    "builtins.complex": Name(complex, lambda re, im: complex(_listed(re, float), _listed(im, float))),
    "builtins.slice": Name(slice, slice),
    "builtins.range": Name(range, range),
    **{f"builtins.{k.__name__}": Name(k) for k in (int, float, bool, str, list, dict, tuple)},
    "torch.Size": Name(Size, lambda shape=(): Size(_listed(shape, tuple, list))),
    "torch.device": Name(device, device),
    **{f"torch.{d.name}": Name(d) for d in dtypes.ALL},
    "numpy.ndarray": Name(np.ndarray),
    "numpy.dtype": Name(np.dtype, _numpy_dtype),
    **{
        f"numpy.{core}.{name}": Name(call=call)
        for core in ("core", "_core")
        for name, call in (
            ("multiarray._reconstruct", _numpy_array),
            ("multiarray.scalar", _numpy_scalar),
            ("numeric._frombuffer", _filled),
        )
    },
}


# ---- the machine


class Unpickler:
    """Reads one pickle from ``stream``; ``names`` adds to ``NAMES``, ``persistent(id)`` gives what an id stands for."""

    def __init__(self, stream, names, persistent):
        self.stream, self.persistent = stream, persistent
        self.names = {**NAMES, **names}
        self.stack, self.marks, self.memo = [], [], {}

    def load(self):
        """The object of the pickle.

        Raises      UnpicklingError for a name that is not known; other errors where the pickle is none
        """
        for opcode, arg, _ in pickletools.genops(self.stream):
            name = opcode.name
            if name in VALUES:
                self.stack.append(arg)
            elif name in CONSTANTS:
                self.stack.append(CONSTANTS[name]())
            elif name in ACTIONS:
                ACTIONS[name](self, arg)
            elif name not in ("PROTO", "FRAME", "STOP"):
                raise refuse(f"Unsupported operand {name}")
        return self.plain(self.stack.pop())

    def plain(self, value):
        """The value itself, of what stands on the stack for it."""
        if isinstance(value, _Unfinished):
            if value.done is None:
                raise refuse("an array that was never filled")
            return value.done
        return value.value if isinstance(value, Name) else value

    def pop(self):
        return self.plain(self.stack.pop())

    def marked(self):
        """What was pushed since the last MARK."""
        return self.last(len(self.stack) - self.marks.pop())

    def get(self, key):
        self.stack.append(self.memo[key])

    def put(self, key):
        self.memo[key] = self.stack[-1]

    def look_up(self, full):
        full = full.replace(" ", ".", 1)
        full = OLD_NAMES.get(full) or re.sub("^__builtin__[.]", "builtins.", full)
        if full in self.names:
            self.stack.append(self.names[full])
        elif full in _allowed and full.partition(".")[0] not in BLOCKED:
            self.stack.append(_User(_allowed[full]))
        else:
            raise _unknown(full)

    def reduce(self):
        args, function = _listed(self.pop(), tuple), self.stack.pop()
        if not isinstance(function, Name) or function.call is None:
            raise refuse(f"Trying to call reduce for unrecognized function {self.plain(function)!r}")
        self.stack.append(function.call(*args))

    def new(self):
        args, kind = _listed(self.pop(), tuple), self.stack[-1]
        if isinstance(kind, _User):
            self.stack[-1] = kind.value.__new__(kind.value, *args)
        else:
            self.stack.append(args)
            self.reduce()

    def build(self):
        state, target = self.pop(), self.stack[-1]
        if isinstance(target, _Unfinished):
            target.done = target.finish(_listed(state, tuple))
        elif type(target) is collections.OrderedDict:
            target.__dict__.update(_listed(state, dict))
        elif type(target) in _allowed.values():
            _set_state(target, state)
        else:
            raise refuse(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, but got "
                f"{type(target)}"
            )

    def append(self, values):
        target = self.stack[-1]
        if type(target) is not list:
            raise refuse(f"Can only append to lists, but got {type(target)}")
        target.extend(values)

    def set_items(self, values):
        target = self.stack[-1]
        if not isinstance(target, dict):
            kinds = "dict, collections.OrderedDict, collections.Counter"
            raise refuse(f"Can only SETITEMS for {kinds}, but got {type(target)}")
        for k, v in zip(values[::2], values[1::2], strict=True):
            target[_key(k)] = v

    def add_items(self, values):
        _listed(self.stack[-1], set).update(_key(v) for v in values)

    def last(self, count):
        """The last ``count`` values, taken off the stack."""
        at = len(self.stack) - count
        if at < 0:
            raise IndexError("it takes more from the stack than there is")
        values = [self.plain(v) for v in self.stack[at:]]
        del self.stack[at:]
        return values


class _User(Name):
    """A name that the user allowed, and with it whatever calling it does."""

    def __init__(self, value):
        self.value = self.call = value


def _set_state(target, state):
    if hasattr(target, "__setstate__"):
        return target.__setstate__(state)
    slots = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    target.__dict__.update(state or {})
    for k, v in (slots or {}).items():
        setattr(target, k, v)


VALUES = {
    "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "UNICODE", "BINUNICODE",
    "SHORT_BINUNICODE", "BINUNICODE8", "STRING", "BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES",
    "BINBYTES8", "BYTEARRAY8",
}  # fmt: skip
CONSTANTS = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_TUPLE": tuple,
    "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
    "EMPTY_SET": set,
}


def _dict_of(machine, values):
    machine.stack.append({})
    machine.set_items(values)


ACTIONS = {
    "MARK": lambda m, _: m.marks.append(len(m.stack)),
    "POP": lambda m, _: m.stack.pop(),
    "POP_MARK": lambda m, _: m.marked(),
    "GET": lambda m, key: m.get(int(key)),
    "BINGET": lambda m, key: m.get(key),
    "LONG_BINGET": lambda m, key: m.get(key),
    "PUT": lambda m, key: m.put(int(key)),
    "BINPUT": lambda m, key: m.put(key),
    "LONG_BINPUT": lambda m, key: m.put(key),
    "MEMOIZE": lambda m, _: m.put(len(m.memo)),
    "GLOBAL": lambda m, name: m.look_up(name),
    "STACK_GLOBAL": lambda m, _: m.look_up(" ".join(_listed(v, str) for v in m.last(2))),
    "REDUCE": lambda m, _: m.reduce(),
    "NEWOBJ": lambda m, _: m.new(),
    "BUILD": lambda m, _: m.build(),
    "APPEND": lambda m, _: m.append(m.last(1)),
    "APPENDS": lambda m, _: m.append(m.marked()),
    "SETITEM": lambda m, _: m.set_items(m.last(2)),
    "SETITEMS": lambda m, _: m.set_items(m.marked()),
    "ADDITEMS": lambda m, _: m.add_items(m.marked()),
    "TUPLE": lambda m, _: m.stack.append(tuple(m.marked())),
    "TUPLE1": lambda m, _: m.stack.append(tuple(m.last(1))),
    "TUPLE2": lambda m, _: m.stack.append(tuple(m.last(2))),
    "TUPLE3": lambda m, _: m.stack.append(tuple(m.last(3))),
    "LIST": lambda m, _: m.stack.append(m.marked()),
    "DICT": lambda m, _: _dict_of(m, m.marked()),
    "FROZENSET": lambda m, _: m.stack.append(frozenset(_key(v) for v in m.marked())),
    "BINPERSID": lambda m, _: m.stack.append(m.persistent(m.pop())),
    "PERSID": lambda m, pid: m.stack.append(m.persistent(pid)),
}
