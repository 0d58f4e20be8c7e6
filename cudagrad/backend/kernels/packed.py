"""Launches whose arguments lie packed in a buffer, by one call of the driver: all that a launch costs the host.

For an entry and the names it is given, a ``Launcher`` writes the function that one would write by hand: it looks up the
plan of the arrays' shapes and types, packs addresses and numbers, each at the width of its parameter, and calls the
driver. The buffer holds CUlaunchConfig and the arguments. It is one launch's at a time, so threads may launch the same
plan at once; when the driver returns it has read it.
"""

import ctypes
import itertools
import struct

from .header import ANY
from .launch import complete, planned

CONFIG = struct.Struct("=7I4xQQI4x")  # CUlaunchConfig: grid, block, shared; stream, attributes, their count
STREAM = 32  # where in it the stream stands; what comes before is the same in every launch of a plan
FORMATS = {
    "b1": "?7x",
    "i4": "i4x",
    "u4": "I4x",
    "i8": "q",
    "u8": "Q",
    "f4": "f4x",
    "f8": "d",
    "f2": "e6x",
}  # each in eight bytes
MOST_PLANS = 4096


class Launcher:
    """The launches of one entry with arguments of given names, on a device.

    ``device`` has ``ADDRESS`` and ``CONTIGUOUS``, the texts that ask an array for them, and ``address(array)``;
    ``index()`` of the current GPU, or None in its place where there is one; ``processors(index)``; ``stream()``, CuPy's
    current one; ``function(plan, index)``, the driver's handle; ``launch(config, function, arguments, extra)``, the
    driver's, and ``failed(entry, status, again)`` for what it returns.
    """

    def __init__(self, entry, names, device):
        self.entry, self.names, self.device = entry, names, device
        self.given = [p for p in entry.parameters if p.name in names]
        self.deciding = [n for n in (*entry.deciding, *entry.texts) if n in names]
        self.plans, self.letters, self.made = {}, {}, set()
        self.call = self._compiled()

    def _compiled(self):
        space = {"launcher": self, "plans": self.plans, "letters": self.letters, "maker": type(lambda: 0)}
        space |= {n: getattr(self.device, n) for n in ("stream", "index", "launch", "failed")}
        exec(compile(self.text(), f"<launch of {self.entry.name}>", "exec"), space)
        return space["call"]

    # ---- the text

    def text(self):
        """The text of ``call(given, ...)``, which launches and returns the arguments, arrays that it made too.

        Of an argument x, ``v_x`` is the value, ``p_x`` the address, ``s_x`` the shape, ``d_x`` the dtype.
        """
        key = ["here", *("v_" + n for n in self.deciding)]
        here = "0" if self.device.index is None else "index()"
        lines = [f"def call(given, {', '.join('v_' + n for n in self.names)}):", f"    here = {here}", "    try:"]
        pointers, of = [], None
        for p in self._arrays():
            if p.name in self.made:
                of = of or f"letters[{', '.join(key)}, ({' | '.join(pointers) or '0'}) & 15]"
                lines += [f"        if v_{p.name}.__class__ is maker:"]
                lines += [f"            v_{p.name} = given['{p.name}'] = v_{p.name}({of})"]
            lines += self._seen(p)
            key += [f"s_{p.name}", f"d_{p.name}"]
            pointers.append(f"p_{p.name}")
        values = ", ".join([*pointers, *("v_" + p.name for p in self._numbers())])
        lines += [
            f"        free, pack, function = plans[{', '.join(key)}, ({' | '.join(pointers) or '0'}) & 15]",
            "    except (KeyError, AttributeError):",
            "        return launcher.first(given)",
            "    try:",
            "        at = free.pop()",
            "    except IndexError:",
            "        at = free.another()",
            "    buffer, config, arguments = at",
            "    try:",
            f"        pack(buffer, {STREAM}, stream().ptr, 0, 0, {values})",
            "    except Exception:",
            "        launcher.refuse(given)",
            "    status = launch(config, function, arguments, None)",
            "    if status:",
            "        failed(launcher.entry, status, lambda: launch(config, function, arguments, None))",
            "    free.append(at)",
            "    return given",
        ]
        return "\n".join(lines) + "\n"

    def _arrays(self):
        """The arrays that are given, those made from the letters of the others last."""
        return sorted((p for p in self.given if p.pointer), key=lambda p: p.name in self.made)

    def _numbers(self):
        return [p for p in self.given if not p.pointer]

    def _seen(self, p):
        """The lines that take an array's shape, dtype and address; one that is not contiguous ``first`` refuses."""
        take = [
            f"p_{p.name} = v_{p.name}{self.device.ADDRESS}",
            f"s_{p.name} = v_{p.name}.shape",
            f"d_{p.name} = v_{p.name}.dtype",
        ]
        if p.dims != ANY:
            take += [f"if not v_{p.name}{self.device.CONTIGUOUS}:", "    raise AttributeError"]
        if not p.nullable:
            return ["        " + line for line in take]
        none = [f"if v_{p.name} is None:", f"    p_{p.name} = 0", f"    s_{p.name} = d_{p.name} = None", "else:"]
        return ["        " + line for line in (*none, *("    " + line for line in take))]

    # ---- what is not known yet

    def _here(self):
        return 0 if self.device.index is None else self.device.index()

    def first(self, given):
        """The launch of a plan that is not known yet; what does not fit raises as ``launch.planned`` does."""
        made = {k for k, v in given.items() if callable(v)}
        if not made <= self.made:
            self.made |= made
            self.plans.clear(), self.letters.clear()
            self.call = self._compiled()
        here, device = self._here(), self.device
        found, given = complete(self.entry, given, device.address, device.processors(here))
        if found.empty:
            return given
        letters, key = self._keys(given, here)
        for kept in (self.plans, self.letters):
            if len(kept) >= MOST_PLANS:
                kept.clear()
        self.letters[letters] = found.letters
        self.plans[key] = self._plan(found, here)
        return self.call(given, *(given[n] for n in self.names))

    def _keys(self, given, here):
        """The keys under which ``call`` looks for the letters of the arrays that are given, and for the plan."""
        key = [here, *(given[n] for n in self.deciding)]
        letters, address = None, 0
        for p in self._arrays():
            if p.name in self.made and letters is None:
                letters = (*key, address & 15)
            a = given[p.name]
            key += [None, None] if a is None else [a.shape, a.dtype]
            address |= 0 if a is None else self.device.address(a)
        return letters, (*key, address & 15)

    def _plan(self, found, here):
        """(free buffers, what packs into one, the driver's function) of a plan."""
        values = dict(zip((p.name for p in self.entry.parameters), found.arguments))
        dynamic = [*self._arrays(), *self._numbers()]
        rest = [p for p in self.entry.parameters if p.name not in self.names]
        formats = ["Q" if p.pointer else _format(values[p.name].dtype) for p in dynamic]
        constants = b"".join(bytes(8) if p.pointer else values[p.name].tobytes().ljust(8, b"\0") for p in rest)
        sizes = [struct.calcsize("=" + width) for width in formats] + [8] * len(rest)
        places = dict(zip((p.name for p in (*dynamic, *rest)), itertools.accumulate(sizes, initial=0)))
        head = CONFIG.pack(*found.grid, *found.block, found.shared, 0, 0, 0)
        pack = struct.Struct("=QQI4x" + "".join(formats)).pack_into
        free = Free(head, sum(sizes[: len(formats)]), constants, [places[p.name] for p in self.entry.parameters])
        return free, pack, ctypes.c_void_p(self.device.function(found, here))

    def refuse(self, given):
        """TypeError or ValueError that names the argument which could not be packed."""
        planned(self.entry, given, self.device.address, self.device.processors(self._here()))
        numbers = ", ".join(f"{p.type} {p.name} = {given[p.name]!r}" for p in self._numbers())
        raise TypeError(f"{self.entry.name}: one of these numbers is not of its parameter's type: {numbers}") from None


def _format(dtype):
    """How a number is packed, or a struct, which is given as its bytes and fills a multiple of eight."""
    return f"{dtype.itemsize}s" if dtype.names else FORMATS[dtype.str[1:]]


class Free(list):
    """The buffers of a plan that no launch is using: (buffer, address of the config, address of the arguments)."""

    def __init__(self, head, dynamic, constants, places):
        self.head, self.dynamic, self.constants, self.places = head, dynamic, constants, places

    def another(self):
        """One more buffer, for one more thread."""
        start = CONFIG.size
        text = bytearray(start + self.dynamic + len(self.constants))
        text[:start], text[start + self.dynamic :] = self.head, self.constants
        buffer = (ctypes.c_char * len(text)).from_buffer(text)
        address = ctypes.addressof(buffer)
        pointers = (ctypes.c_void_p * len(self.places))(*(address + start + place for place in self.places))
        config, arguments = ctypes.c_void_p(address), ctypes.c_void_p(ctypes.addressof(pointers))
        arguments.owner = pointers, buffer
        return text, config, arguments
