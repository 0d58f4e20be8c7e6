"""A launch worked out from an entry's header and the arrays it is given: letters, types, geometry and arguments."""

import dataclasses

import numpy as np

from .header import SCALARS, ctype, entries, value

MOST_THREADS = 1024
TYPE_LETTERS = ("T", "W", "A")
SEEN = ("V", "K", "B")  # letters that reach the source, as CG_V, ...


class Unfit(Exception):
    """Why a kernel cannot serve a call; the op's own text does then."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """One launch: what to build, how wide, and the arguments in the entry's order (arrays, NumPy scalars or None)."""

    entry: object
    macros: tuple  # ("CG_T", "float"), ...
    grid: tuple
    block: tuple
    shared: int
    arguments: tuple
    letters: dict

    def cost(self, field):
        """The entry's ``bytes`` or ``flops`` for these arrays."""
        return value(self.entry.launch[field], self.letters)


def complete(file, name, given, address, processors):
    """``(plan, given)``, where a function given for an array has made it from the letters of the others."""
    made = {k: v for k, v in given.items() if callable(v)}
    if made:
        others = {k: v for k, v in given.items() if k not in made}
        letters = plan(file, name, others, address, processors).letters
        given = {**others, **{k: build(letters) for k, build in made.items()}}
    return plan(file, name, given, address, processors), given


def plan(file, name, given, address, processors):
    """The ``Plan`` of entry ``name`` for ``given``, name -> array, number or None; letters of shapes are found.

    ``address(array)`` is where an array lies on the device, ``processors`` the count of its multiprocessors.

    Raises      Unfit outside the entry's limits; TypeError, ValueError naming an argument that does not fit
    """
    entry = entries(file)[name]
    arrays = [(p, given.get(p.name)) for p in entry.arrays]
    for p, a in arrays:
        if a is not None and not _is_array(a):
            raise TypeError(f"{name}: argument {p.name} must be an array, not {type(a).__name__}")
    aligned = all(a is None or address(a) % 16 == 0 for _, a in arrays)
    seen = tuple(None if a is None else (a.shape, a.dtype, a.flags.c_contiguous) for _, a in arrays)
    key = entry, processors, aligned, seen, tuple(given.get(n) for n in entry.deciding), tuple(given)
    sized = _SIZED.get(key)
    if sized is None:
        sized = _sized(entry, given, aligned, processors)
        if len(_SIZED) >= 4096:
            _SIZED.clear()
        _SIZED[key] = sized
    macros, grid, block, shared, letters, types = sized
    arguments = tuple(
        given.get(p.name) if p.pointer else _number(entry, p, given, letters, types) for p in entry.parameters
    )
    return Plan(entry, macros, grid, block, shared, arguments, letters)


_SIZED = {}  # what a launch is but for its arguments' values: 20 times the work of looking it up


def _sized(entry, given, aligned, processors):
    """(macros, grid, block, shared, letters, types) of a launch."""
    unknown = set(given) - {p.name for p in entry.parameters}
    if unknown:
        raise TypeError(f"{entry.name}: has no argument {', '.join(sorted(unknown))}")
    letters, types = {"processors": processors, "aligned": aligned}, {}
    for p in entry.arrays:
        _bind(entry, p, given, letters, types)
    _accumulator(types)
    for letter, dtype in types.items():
        letters["size_" + letter] = dtype.itemsize
    for n in entry.deciding:
        if given.get(n) is not None and letters.setdefault(n, given[n]) != given[n]:
            raise ValueError(f"{entry.name}: argument {n} is {given[n]}, and {letters[n]} by the arrays' shapes")
    for letter, code in entry.where.items():
        letters.setdefault(letter, value(code, letters))
    if not value(entry.launch["limits"], letters):
        raise Unfit(f"{entry.name}: outside its limits ({entry.fields['limits']}) with {_told(letters)}")
    grid, block = (_three(value(entry.launch[k], letters)) for k in ("grid", "block"))
    if np.prod(block) > MOST_THREADS:
        raise ValueError(f"{entry.name}: a block of {block} has more than {MOST_THREADS} threads")
    macros = [("CG_" + letter, ctype(types.get(letter, np.dtype("f4")))) for letter in TYPE_LETTERS]
    macros += [("CG_" + letter, str(int(letters[letter]))) for letter in entry.where if letter in SEEN]
    return tuple(macros), grid, block, int(value(entry.launch["shared"], letters)), letters, types


def _is_array(a):
    return hasattr(a, "flags") and hasattr(a, "strides") and not isinstance(a, np.generic)


def _bind(entry, p, given, letters, types):
    """Learn the letters of ``p``'s shape and the letter of its type from the array given for it."""
    array = given.get(p.name)
    if array is None:
        if not p.nullable:
            raise TypeError(f"{entry.name}: argument {p.name} is missing")
        return
    if not array.flags.c_contiguous:
        raise ValueError(f"{entry.name}: argument {p.name} must be C-contiguous; its strides are {array.strides}")
    if len(p.type) == 1:
        if ctype(array.dtype) is None:
            raise Unfit(f"{entry.name}: no kernel computes with {array.dtype}")
        if types.setdefault(p.type, array.dtype) != array.dtype:
            raise TypeError(f"{entry.name}: argument {p.name} is {array.dtype}, where {p.type} is {types[p.type]}")
    elif ctype(array.dtype) != p.type:
        raise TypeError(f"{entry.name}: argument {p.name} is {array.dtype}, and must be {p.type}")
    if len(array.shape) != len(p.dims):
        raise ValueError(f"{entry.name}: argument {p.name} has shape {array.shape}, and must be [{','.join(p.dims)}]")
    for dim, n in zip(p.dims, array.shape):
        want = int(dim) if dim.isdigit() else letters.setdefault(dim, n)
        if want != n:
            stated = f"[{','.join(p.dims)}] with {dim} = {want}"
            raise ValueError(f"{entry.name}: argument {p.name} has shape {array.shape}, and must be {stated}")


def _accumulator(types):
    """A, in which sums are made, is double beside double and else float; W is T where no array says."""
    first = types.get("T", types.get("A", np.dtype("f4")))
    wanted = np.dtype("f8") if first == np.dtype("f8") else np.dtype("f4")
    if types.setdefault("A", wanted) != wanted:
        raise TypeError(f"sums beside {first} are made in {wanted}, not in {types['A']}")
    types.setdefault("T", first)
    types.setdefault("W", first)


def _number(entry, p, given, letters, types):
    """A NumPy scalar of the very width of the parameter: a number of another width would be garbage, and silently."""
    number = given.get(p.name, letters.get(p.name))
    if number is None:
        raise TypeError(f"{entry.name}: argument {p.name} is missing")
    kind = types[p.type] if len(p.type) == 1 else _WIDTHS[p.type]
    limits = _LIMITS.get(kind)
    if limits and not limits[0] <= number <= limits[1]:
        raise ValueError(f"{entry.name}: argument {p.name} = {number} does not fit into {p.type}")
    return kind.type(number)


_WIDTHS = {name: np.dtype(kind) for name, kind in SCALARS.items()}
_LIMITS = {d: (int(np.iinfo(d).min), int(np.iinfo(d).max)) for d in _WIDTHS.values() if d.kind in "iu"}


def _three(sizes):
    sizes = sizes if isinstance(sizes, tuple) else (sizes,)
    return tuple(int(n) for n in sizes) + (1,) * (3 - len(sizes))


def _told(letters):
    return ", ".join(f"{k} = {v}" for k, v in letters.items() if len(k) == 1)
