"""A launch worked out from an entry's header and the arrays it is given: letters, types, geometry and arguments."""

import dataclasses

import numpy as np

from .header import ANY, SCALARS, ctype, entries, value

MOST_THREADS, MOST_IN_BLOCK, MOST_IN_GRID = 1024, (1024, 1024, 64), (2**31 - 1, 65535, 65535)
MOST_SHARED = 227 << 10  # bytes a block may ask for on the largest architecture
TYPE_LETTERS = ("T", "W", "A")
SEEN = ("V", "K", "B", "L", "E")  # letters that reach the source, as CG_V, ...


class Unfit(Exception):
    """Why a kernel cannot serve a call; the op's own text does then."""


class Rather(Unfit):
    """Why the op's own text is to serve a call, though it has a kernel: no fallback that STRICT would refuse."""


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

    @property
    def empty(self):
        """Whether there is no block to run."""
        return 0 in self.grid


def complete(entry, given, address, processors):
    """``(plan, given)``, where a function given for an array has made it from the letters of the others.

    Raises      as ``planned``; ValueError where the grid has no blocks, and so nothing would write the outputs
    """
    made = {k: v for k, v in given.items() if callable(v)}
    if made:
        others = {k: v for k, v in given.items() if k not in made}
        letters = planned(entry, others, address, processors, tuple(made)).letters
        given = {**others, **{k: build(letters) for k, build in made.items()}}
    launch = planned(entry, given, address, processors)
    if launch.empty:
        for p, a in zip(entry.parameters, launch.arguments):
            if p.pointer and not p.const and a is not None and a.size:
                raise ValueError(f"{_geometry(entry, launch.letters)}: no block would run, and nothing write {p.name}")
    return launch, given


def plan(file, name, given, address, processors):
    """``planned`` for an entry of a file of ``kernels/``."""
    return planned(entries(file)[name], given, address, processors)


def planned(entry, given, address, processors, pending=()):
    """The ``Plan`` of an entry for ``given``, name -> array, number or None; letters of shapes are found.

    ``address(array)`` is where an array lies on the device, ``processors`` the count of its multiprocessors,
    ``pending`` the names of arrays that are still to be made.

    Raises      Unfit outside the entry's limits; TypeError, ValueError naming an argument that does not fit
    """
    arrays = [(p, given.get(p.name)) for p in entry.arrays]
    for p, a in arrays:
        if a is not None and not _is_array(a):
            raise TypeError(f"{entry.name}: argument {p.name} must be an array, not {type(a).__name__}")
    aligned = all(a is None or address(a) % 16 == 0 for _, a in arrays)
    seen = tuple(None if a is None else (a.shape, a.dtype, a.flags.c_contiguous) for _, a in arrays)
    key = entry, processors, aligned, seen, tuple(given.get(n) for n in entry.deciding), tuple(given), pending
    key += tuple(given.get(n) for n in entry.texts)
    sized = _SIZED.get(key)
    if sized is None:
        try:
            sized = _sized(entry, given, aligned, processors, pending)
        except ZeroDivisionError:
            raise ValueError(f"{_geometry(entry, {})}: an expression of it or of a shape divides by 0") from None
        if len(_SIZED) >= 4096:
            _SIZED.clear()
        _SIZED[key] = sized
    macros, grid, block, shared, letters, types = sized
    arguments = tuple(
        given.get(p.name) if p.pointer else _number(entry, p, given, letters, types) for p in entry.parameters
    )
    return Plan(entry, macros, grid, block, shared, arguments, letters)


_SIZED = {}  # what a launch is but for its arguments' values: 20 times the work of looking it up


def _sized(entry, given, aligned, processors, pending):
    """(macros, grid, block, shared, letters, types) of a launch."""
    unknown = set(given) - {p.name for p in entry.parameters} - set(entry.texts)
    if unknown:
        raise TypeError(f"{entry.name}: has no argument {', '.join(sorted(unknown))}")
    letters, types = {"processors": processors, "aligned": aligned}, {}
    for p in entry.arrays:
        if p.name not in pending:
            _bind(entry, p, given, letters, types)
        if p.nullable:
            letters[p.name] = int(p.name in pending or given.get(p.name) is not None)
    if any(types[p.name] == np.dtype("f8") for p in entry.arrays if p.name in types):
        types.setdefault("A", np.dtype("f8"))
    _accumulator(types)
    letters.update({"size_" + p.name: 0 for p in entry.arrays if p.type == "void"})
    for letter, dtype in types.items():
        letters["size_" + letter], letters["dtype_" + letter] = dtype.itemsize, dtype
    for n in entry.deciding:
        if given.get(n) is not None and letters.setdefault(n, given[n]) != given[n]:
            raise ValueError(f"{entry.name}: argument {n} is {given[n]}, and {letters[n]} by the arrays' shapes")
    for letter, code in entry.where.items():
        letters.setdefault(letter, value(code, letters))
    if not value(entry.launch["limits"], letters):
        raise Unfit(f"{entry.name}: outside its limits ({entry.fields['limits']}) with {_told(letters)}")
    grid, block, (shared, *_) = (_whole(entry, k, letters) for k in ("grid", "block", "shared"))
    _check_geometry(entry, grid, block, shared, letters)
    macros = [("CG_" + letter, ctype(types.get(letter, np.dtype("f4")))) for letter in TYPE_LETTERS]
    macros += [("CG_" + letter, str(int(letters[letter]))) for letter in entry.where if letter in SEEN]
    macros += [
        ("CG_" + p.name.upper(), ctype(types[p.name]) if p.name in types else "void")
        for p in entry.arrays
        if p.type == "void"
    ]
    macros += [("CG_" + name.upper(), given[name]) for name in entry.texts]
    return tuple(macros), grid, block, shared, letters, types


def _whole(entry, part, letters):
    """The three sizes of the launch's ``part``."""
    sizes = value(entry.launch[part], letters)
    sizes = sizes if isinstance(sizes, tuple) else (sizes,)
    if len(sizes) > 3:
        raise ValueError(f"{_geometry(entry, letters)}: {part} is {sizes}, and has at most three sizes")
    if any(n != int(n) for n in sizes):
        raise ValueError(f"{_geometry(entry, letters)}: {part} is {sizes}, which is not whole; ceil(a, b) rounds up")
    return tuple(int(n) for n in sizes) + (1,) * (3 - len(sizes))


def _check_geometry(entry, grid, block, shared, letters):
    """ValueError for a launch that no GPU takes; a grid of no blocks is for the caller to judge."""
    if min(block) < 1 or any(n > most for n, most in zip(block, MOST_IN_BLOCK)) or np.prod(block) > MOST_THREADS:
        fault = f"a block of {block} is not of 1 to {MOST_THREADS} threads, at most {MOST_IN_BLOCK} of them"
    elif min(grid) < 0 or any(n > most for n, most in zip(grid, MOST_IN_GRID)):
        fault = f"a grid of {grid} is not of 1 to {MOST_IN_GRID} blocks"
    elif not 0 <= shared <= MOST_SHARED:
        fault = f"a block has 0 to {MOST_SHARED} bytes of shared memory, not {shared}"
    else:
        return
    raise ValueError(f"{_geometry(entry, letters)}: {fault}")


def _geometry(entry, letters):
    told = _told(letters)
    return f"{entry.name}: launch {' '.join(entry.fields['launch'].split())}" + (f" with {told}" if told else "")


def _is_array(a):
    return hasattr(a, "flags") and hasattr(a, "strides") and not isinstance(a, np.generic)


def _bind(entry, p, given, letters, types):
    """Learn the letters of ``p``'s shape and the letter of its type from the array given for it."""
    array = given.get(p.name)
    if array is None:
        if not p.nullable:
            raise TypeError(f"{entry.name}: argument {p.name} is missing")
        return
    if p.dims != ANY and not array.flags.c_contiguous:
        raise ValueError(f"{entry.name}: argument {p.name} must be C-contiguous; its strides are {array.strides}")
    if len(p.type) == 1 or p.type == "void":
        if ctype(array.dtype) is None:
            raise Unfit(f"{entry.name}: no kernel computes with {array.dtype}, which argument {p.name} is")
        if types.setdefault(p.name if p.type == "void" else p.type, array.dtype) != array.dtype:
            raise TypeError(f"{entry.name}: argument {p.name} is {array.dtype}, where {p.type} is {types[p.type]}")
    elif ctype(array.dtype) != p.type:
        raise TypeError(f"{entry.name}: argument {p.name} is {array.dtype}, and must be {p.type}")
    if p.dims == ANY:
        return
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
    if kind.names:  # a struct, as the bytes that it is
        return np.frombuffer(number, kind)[0]
    limits = _LIMITS.get(kind)
    if limits and int(number) != number:
        raise ValueError(f"{entry.name}: argument {p.name} = {number} is not whole, and {p.type} is")
    if limits and not limits[0] <= number <= limits[1]:
        raise ValueError(f"{entry.name}: argument {p.name} = {number} does not fit into {p.type}")
    return kind.type(number)


_WIDTHS = {name: np.dtype(kind) for name, kind in SCALARS.items()}
_LIMITS = {d: (int(np.iinfo(d).min), int(np.iinfo(d).max)) for d in _WIDTHS.values() if d.kind in "iu"}
_LIMITS[np.dtype("?")] = 0, 1


def _told(letters):
    return ", ".join(f"{k} = {v}" for k, v in letters.items() if len(k) == 1 and k.isupper())
