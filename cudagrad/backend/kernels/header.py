"""The headers of kernels read: what an entry computes, its arrays, launch and cost, as the `.cu` file states them."""

import ast
import dataclasses
import functools
import os
import re
from pathlib import Path

import numpy as np

from . import cache
from .layout import LAYOUT
from .path import kernels_path

FIELDS = ("math", "source", "texts", "shapes", "where", "launch", "bytes", "flops", "limits", "used by")
OPTIONAL = {"texts", "where"}
SCALARS = {"int": "i4", "unsigned": "u4", "long long": "i8", "unsigned long long": "u8", "float": "f4", "double": "f8"}
SCALARS |= {"bool": "?", "Layout": LAYOUT}
ANY = ("*",)  # the dims of an array of any shape and strides
SPELLINGS = {"CG_T": "T", "CG_W": "W", "CG_A": "A", "unsigned int": "unsigned", "half": "__half"}  # of one C type

_HEADER = re.compile(r"/\*\n(\w+)  +(.+?)\n\n(.*?)\*/\n(.*?)\{", re.S)
_SIGNATURE = re.compile(r'extern "C" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\((.*?)\)\s*$', re.S)
_ARRAYS = re.compile(r"((?:\w+,\s*)*\w+):\s*((?:unsigned )?(?:long )?\w+)\[([^\]]*)\]((?: or null)?)((?: in place)?)")


class HeaderError(ValueError):
    """A header that does not say what it must, or does not fit its entry."""


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One argument of an entry: a scalar of C type ``type``, or an array with the header's ``dims``.

    ``spelled`` is the type in the source's own words, ``spread`` the place in ``dims`` of one that may be several axes.
    """

    name: str
    type: str
    pointer: bool = False
    const: bool = False
    dims: tuple = ()
    nullable: bool = False
    in_place: bool = False
    spelled: str = ""
    spread: int | None = None


@dataclasses.dataclass(frozen=True)
class Entry:
    """A kernel: its file, its header's fields and its parameters in order."""

    file: str
    name: str
    title: str
    fields: dict
    parameters: tuple
    where: dict  # letter -> compiled expression, in the header's order
    launch: dict  # grid, block, shared -> compiled expression
    alone: bool = False  # built apart from the other entries of its file, which may have no headers

    def __hash__(self):
        return hash((self.file, self.name))

    @functools.cached_property
    def arrays(self):
        """The parameters that are arrays."""
        return tuple(p for p in self.parameters if p.pointer)

    @functools.cached_property
    def texts(self):
        """The names of the source's macros that are texts of the launch: ``formula`` for CG_FORMULA."""
        return tuple(name.lower() for name in re.findall(r"CG_(\w+)", self.fields.get("texts", "")))

    @functools.cached_property
    def deciding(self):
        """The names of the scalar parameters that the launch depends on."""
        named = {n for code in (*self.where.values(), *self.launch.values()) for n in code.co_names}
        named |= {dim for p in self.arrays for dim in p.dims}
        return tuple(p.name for p in self.parameters if not p.pointer and p.name in named)


def stamp(file):
    """((path, when it was last changed), ...) of a file named by its whole path and of what it includes beside it.

    It is read anew when that changes; the files of ``kernels/`` are read once.
    """
    if not os.path.isabs(file):
        return ()
    times = {file: os.stat(file).st_mtime_ns}
    waiting = [*_beside(file, times[file])]
    while waiting:
        path = waiting.pop()
        if path not in times:
            try:
                times[path] = os.stat(path).st_mtime_ns
            except OSError:  # it lies elsewhere, or nowhere: the compiler knows
                times[path] = None
            else:
                waiting += _beside(path, times[path])
    return tuple(times.items())


@functools.lru_cache(maxsize=1024)
def _beside(path, changed):
    """The paths of what a file includes, were it all in its own folder."""
    return [os.path.join(os.path.dirname(path), name) for name in cache.included(Path(path).read_bytes())]


def entries(file):
    """Name -> ``Entry`` of such a file, in the file's order."""
    return _entries(file, stamp(file))


@functools.lru_cache(maxsize=256)
def _entries(file, stamp):
    return parse(str(file), (kernels_path() / file).read_text(encoding="utf-8"))


def parse(file, text):
    """Name -> ``Entry`` of the text of a ``.cu`` file.

    Raises      HeaderError for an entry without header, a header without entry, or fields that do not fit
    """
    found = {}
    for name, title, body, after in _HEADER.findall(text):
        signature = _SIGNATURE.match(after.strip())
        if not signature or signature[1] != name:
            raise HeaderError(f'{file}: below the header of {name} must stand extern "C" __global__ void {name}(...)')
        found[name] = _entry(file, name, title, _fields(file, name, body), signature[2])
    declared = re.findall(r"__global__ void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\(", text)
    for name in declared:
        if name not in found:
            raise HeaderError(f"{file}: {name} has no header")
    return found


def _fields(file, name, body):
    fields, last = {}, None
    for line in body.splitlines():
        word = next((f for f in FIELDS if line.startswith(f + " ")), None)
        if word:
            last, fields[word] = word, line[len(word) :].strip()
        elif line.strip() and last and line[0] == " ":
            fields[last] += "\n" + line.strip()
        elif line.strip():
            raise HeaderError(f"{file}: the header of {name} has a line that belongs to no field: {line!r}")
    missing = [f for f in FIELDS if f not in fields and f not in OPTIONAL]
    if missing:
        raise HeaderError(f"{file}: the header of {name} lacks {', '.join(missing)}")
    return fields


def _entry(file, name, title, fields, signature):
    arrays = {}
    for names, kind, dims, null, place in _ARRAYS.findall(fields["shapes"]):
        for each in names.split(","):
            arrays[each.strip()] = (kind, tuple(dims.replace(" ", "").split(",")), bool(null), bool(place))
    parameters = tuple(parameter(file, name, text, arrays) for text in signature.split(","))
    unknown = set(arrays) - {p.name for p in parameters if p.pointer}
    if unknown:
        raise HeaderError(f"{file}: shapes of {name} names {', '.join(sorted(unknown))}, which is no array of it")
    where = {
        letter: expression(text, f"{file} {name} where {letter}")
        for letter, text in re.findall(r"(\w+) = (.+)", fields.get("where", ""))
    }
    parts = re.fullmatch(r"grid = (.+?)\s{2,}block = (.+?)\s{2,}shared = (.+)", fields["launch"].replace("\n", "  "))
    if not parts:
        raise HeaderError(f"{file}: launch of {name} must read: grid = ...   block = ...   shared = ...")
    launch = {k: expression(v, f"{file} {name} {k}") for k, v in zip(("grid", "block", "shared"), parts.groups())}
    for field in ("bytes", "flops", "limits"):
        launch[field] = expression(fields[field], f"{file} {name} {field}")
    return Entry(file, name, title, fields, parameters, where, launch)


def parameter(file, entry, text, arrays):
    """The ``Parameter`` that a piece of a C signature is; ``arrays``: name -> (type, dims, or null, in place)."""
    words = re.fullmatch(r"\s*(const\s+)?([\w ]+?)\s*(\*?)\s*(?:__restrict__\s+)?(\w+)\s*", text)
    if not words:
        raise HeaderError(f"{file}: cannot read the parameter {text.strip()!r} of {entry}")
    const, spelled, star, name = words.groups()
    kind = SPELLINGS.get(spelled, spelled)
    if not star:
        if kind not in SCALARS and len(kind) > 1:
            raise HeaderError(
                f"{file}: {name} of {entry} has type {kind}; a scalar is {', '.join(SCALARS)} or a letter"
            )
        return Parameter(name, kind, spelled=spelled)
    if name not in arrays:
        raise HeaderError(f"{file}: shapes of {entry} does not give the array {name}")
    stated, dims, nullable, in_place = arrays[name]
    if stated != kind:
        raise HeaderError(f"{file}: {name} of {entry} is {kind}* in the signature and {stated} in shapes")
    return Parameter(name, kind, True, bool(const), dims, nullable, in_place, spelled)


# ---- expressions

_ALLOWED = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call, ast.Name, ast.Constant,
    ast.Tuple, ast.Load, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
)  # fmt: skip


def ceil(a, b):
    """a / b, rounded up."""
    return -(-a // b)


def power2(n):
    """The smallest power of two that is at least n."""
    return 1 << max(n - 1, 0).bit_length()


FUNCTIONS = {"ceil": ceil, "power2": power2, "min": min, "max": max, "__builtins__": {}}


def expression(text, what):
    """An expression of a header, compiled: numbers, letters, arithmetic, comparisons, min, max, ceil, power2."""
    try:
        tree = ast.parse(text.replace("\n", " ").strip(), mode="eval")
    except SyntaxError as error:
        raise HeaderError(f"{what}: {text!r} is no expression") from error
    for node in ast.walk(tree):
        if not isinstance(node, _ALLOWED) or (
            isinstance(node, ast.Call) and getattr(node.func, "id", "") not in FUNCTIONS
        ):
            raise HeaderError(f"{what}: {text!r} may use numbers, letters, arithmetic, min, max, ceil and power2 only")
    return compile(tree, f"<{what}>", "eval")


def value(code, letters):
    """An expression's value where ``letters`` says what its names stand for."""
    return eval(code, FUNCTIONS, letters)


# ---- number types

CTYPES = {
    np.dtype("f4"): "float", np.dtype("f8"): "double", np.dtype("f2"): "__half", "bfloat16": "__nv_bfloat16",
    np.dtype("i4"): "int", np.dtype("u4"): "unsigned", np.dtype("i8"): "long long",
    np.dtype("u8"): "unsigned long long", np.dtype("u1"): "unsigned char", np.dtype("bool"): "bool",
    np.dtype("i1"): "signed char", np.dtype("i2"): "short", np.dtype("u2"): "unsigned short",
}  # fmt: skip


def ctype(dtype):
    """The C type of the elements of a NumPy dtype; None where there is none."""
    return CTYPES.get(dtype) or CTYPES.get(dtype.name)
