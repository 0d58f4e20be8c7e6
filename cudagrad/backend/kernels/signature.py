"""A user's own CUDA source: its entry, with a signature of one line in the place of a header."""

import dataclasses
import os
import re
from pathlib import Path

import numpy as np

from . import cache
from .header import FUNCTIONS, SPELLINGS, Entry, HeaderError, ctype, expression, parameter, parse
from .launch import TYPE_LETTERS

# Types a signature may give, C's words and NumPy's, -> C's.
_NUMPY = ("bool", "uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
_NUMPY += ("float16", "float32", "float64")


def _types():
    named = {name: ctype(np.dtype(name)) for name in _NUMPY} | {"bfloat16": "__nv_bfloat16"}
    return named | {c: c for c in named.values()} | {letter: letter for letter in TYPE_LETTERS} | SPELLINGS


TYPES = _types()
FLOATING = {*TYPE_LETTERS, "float", "double", "__half", "__nv_bfloat16"}  # a letter may stand for such a type

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
_BOUNDS = r"(?:__launch_bounds__\s*\([^)]*\)\s*)?"
_PROTOTYPE = re.compile(rf'(extern\s+"C"\s+)?__global__\s+{_BOUNDS}void\s+{_BOUNDS}(\w+)\s*\(([^)]*)\)\s*\{{', re.S)
_ITEM = re.compile(
    r"\s*(\w+(?:\s*,\s*\w+)*)\s*:\s*(\w[\w ]*?)\s*\[([^\]]*)\]((?:\s+or null)?)((?:\s+in place)?)\s*(?:,|$|(?=\s\w))"
)
_SPREAD = "..."  # behind the name of an axis that stands for any number of them
_NAME = re.compile(r"\s*(\w+)\s*(?:,|$)")


def is_text(source):
    """Whether ``source`` is CUDA C itself, and not the path of a file: it has a body in braces."""
    return isinstance(source, str) and "{" in source


def filed(text, name):
    """The path of a file that holds ``text``, named after its entry; the same text is the same file."""
    path = cache.folder() / "own" / cache.key(text) / f"{name}.cu"
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        cache.write(path, text)
    return path


def read(source, place, signature, entry, launch):
    """The ``Entry`` of a source: ``entry`` or the only one there is, by its signature, or by its header without one.

    ``place`` is the source's name in errors, ``launch`` the texts of grid (None: a thread an element of the first
    output), block and shared.

    Raises      HeaderError for what does not fit, naming the argument; FileNotFoundError
    """
    text = source if is_text(source) else _text_of(source)
    found = {name: parameters for _, name, parameters in _prototypes(text, place)}
    name = _chosen(found, entry, place)
    file = str(filed(text, name) if is_text(source) else Path(source).resolve())
    if signature is None:
        return _by_header(file, text, name, place)
    return _by_signature(file, name, found[name], signature, launch, f"{place}: {name}")


def _text_of(path):
    if not os.path.isfile(path):
        raise FileNotFoundError(f"kernel: there is no file {os.fspath(path)!r}, and CUDA C has a body in braces")
    return Path(path).read_text(encoding="utf-8")


def _prototypes(text, place):
    plain = _COMMENT.sub(" ", text)
    found = _PROTOTYPE.findall(plain)
    if not found:
        raise HeaderError(f'{place}: there is no extern "C" __global__ void name(...) {{ in it')
    linked = found if re.search(r'extern\s+"C"\s*\{', plain) else [f for f in found if f[0]]
    if not linked:
        raise HeaderError(f'{place}: write extern "C" before __global__ void {found[0][1]}, or its name is lost')
    return linked


def _chosen(found, entry, place):
    if entry is None and len(found) == 1:
        return next(iter(found))
    if entry not in found:
        wanted = "entry= must say which is meant" if entry is None else f"there is no {entry}"
        raise HeaderError(f"{place}: {wanted}; it has {', '.join(found)}")
    return entry


def _by_header(file, text, name, place):
    own = f"give {name} a signature such as 'x: float[N] -> y: float[N]', or a header as kernels/README.md has it"
    if not re.search(r"/\*\n" + name + r"  +", text):
        raise HeaderError(f"{place}: {own}")
    return parse(file, text)[name]


# ---- signatures


def _by_signature(file, name, prototype, signature, launch, label):
    given, made = _sides(signature, label)
    arrays = {n: a for n, a in given.items()}
    for n, (kind, *rest) in made.items():
        if kind is None and n not in given:
            raise HeaderError(f"{label}: {n} stands right of -> without a type, and is no array in place left of it")
        if kind is not None:
            if n in given:
                raise HeaderError(
                    f"{label}: {n} stands on both sides of ->; right of it an array in place is a name only"
                )
            arrays[n] = (kind, *rest)
    parameters = tuple(_parameter(label, p, arrays, made) for p in prototype.split(",") if p.strip())
    for n in arrays:
        if n not in {p.name for p in parameters if p.pointer}:
            raise HeaderError(f"{label}: the signature names {n}, which is no array argument of it")
    outputs = [p for p in parameters if p.pointer and not p.const]
    if not outputs:
        raise HeaderError(f"{label}: it has no output: none of its arrays stands right of ->")
    known = {d for p in parameters if p.name in given for d in p.dims if not d.isdigit()}
    known |= {p.name for p in parameters if not p.pointer} | {"aligned", "processors", *FUNCTIONS}
    known |= {f"size_{letter}" for letter in TYPE_LETTERS}
    where = {d: _known(d, known, f"{label}: the shape of {p.name}") for p in outputs for d in p.dims if not d.isdigit()}
    texts = _launch_texts(launch, next(p for p in parameters if p.pointer and p.name in made))
    known |= set(where)
    codes = {part: _known(text, known, f"{label}: {part}") for part, text in texts.items()}
    codes |= {part: expression(text, f"{label} {part}") for part, text in _NO_COST.items()}
    where = {d: code for d, code in where.items() if not d.isidentifier()}
    fields = {"launch": "   ".join(f"{part} = {text}" for part, text in texts.items()), "shapes": signature, **_NO_COST}
    return Entry(file, name, name, fields, parameters, where, codes, alone=True)


_NO_COST = {"bytes": "0", "flops": "0", "limits": "1"}  # which a signature does not state


def _sides(signature, label):
    """Name -> (type, dims, nullable, in place) of what stands left and right of ``->``."""
    left, arrow, right = signature.partition("->")
    if not arrow:
        raise HeaderError(f"{label}: the signature {signature!r} has no -> with the outputs right of it")
    given, made = _items(left, label, False), _items(right, label, True)
    for n, (_, dims, _, in_place) in given.items():
        if in_place and n not in made:
            raise HeaderError(f"{label}: {n} is changed in place: it must stand right of -> too, by its name")
        odd = next((d for d in dims if not (d.removesuffix(_SPREAD).isidentifier() or d.isdigit())), None)
        if odd is not None:
            raise HeaderError(f"{label}: {n} has the axis {odd!r}; one of an input is a letter, a word or a number")
    spread = {d for _, dims, *_ in given.values() for d in dims if d.endswith(_SPREAD)}
    for n, (_, dims, *_) in (given | made).items():
        several = [d for d in dims if d.endswith(_SPREAD)]
        if len(several) > 1 or not spread.issuperset(several):
            raise HeaderError(
                f"{label}: {n} has {', '.join(several)}; one such axis is possible, which an input has too"
            )
    return given, made


def _items(text, label, names_too):
    found, at = {}, 0
    while text[at:].strip():
        item = _ITEM.match(text, at)
        name = None if item or not names_too else _NAME.match(text, at)
        if not item and not name:
            raise HeaderError(f"{label}: cannot read {text[at:].strip()!r} in the signature; need 'x: float[N,C], ...'")
        at = (item or name).end()
        for n in re.split(r"\s*,\s*", (item or name)[1]):
            if n in found:
                raise HeaderError(f"{label}: the signature names {n} twice")
            found[n] = _array(n, item, label) if item else (None, (), False, True)
    return found


def _array(name, item, label):
    kind = " ".join(item[2].split())
    if kind not in TYPES:
        raise HeaderError(f"{label}: {name} has type {kind!r}; need one of {', '.join(dict.fromkeys(TYPES))}")
    return TYPES[kind], _axes(item[3]), bool(item[4]), bool(item[5])


def _axes(text):
    """The axes of ``"N, ceil(C, 2)"``: commas within parentheses are none of theirs."""
    parts, depth = [""], 0
    for c in text.replace(" ", ""):
        depth += (c == "(") - (c == ")")
        if c == "," and not depth:
            parts.append("")
        else:
            parts[-1] += c
    return tuple(parts) if parts != [""] else ()


def _parameter(label, text, arrays, made):
    p = parameter(label, label.rpartition(" ")[2], " ".join(text.split()), arrays)
    if not p.pointer and p.type in TYPE_LETTERS:
        raise HeaderError(f"{label}: {p.name} is a number of type {p.spelled}: give it one of C's, float or double")
    spread = next((i for i, d in enumerate(p.dims) if d.endswith(_SPREAD)), None)
    p = dataclasses.replace(p, dims=tuple(d.removesuffix(_SPREAD) for d in p.dims), spread=spread)
    if p.pointer and p.const and p.name in made:
        raise HeaderError(f"{label}: {p.name} is an output and const: write {p.spelled}* {p.name}")
    if p.pointer and not p.const and p.name not in made:
        raise HeaderError(
            f"{label}: {p.name} is an input that may be written: write const {p.spelled}* {p.name}, or "
            f"'{p.name}: ... in place -> {p.name}'"
        )
    return p


def _launch_texts(launch, output):
    grid, block, shared = launch
    texts = {"block": _text(block), "shared": _text(shared)}
    if grid is None:
        grid = f"ceil({_product(output.dims)}, {_product(block if isinstance(block, (tuple, list)) else [block])})"
    return {"grid": _text(grid), **texts}


def _product(sizes):
    return " * ".join(s if s.isalnum() else f"({s})" for s in map(_text, sizes)) or "1"


def _text(sizes):
    return f"({', '.join(map(_text, sizes))},)" if isinstance(sizes, (tuple, list)) else str(sizes)


def _known(text, known, what):
    """The expression of ``text``, all of whose names are ``known``."""
    code = expression(text, what)
    for n in code.co_names:
        if n not in known:
            letters = sorted(known - set(FUNCTIONS) - {"aligned", "processors"})
            raise HeaderError(
                f"{what} names {n}, which is no axis of an input and no number of it: {', '.join(letters)}"
            )
    return code
