"""The texts of errors: PyTorch's first line, then what came, where in the user's program, and the way out."""

import linecache


class OutOfMemoryError(RuntimeError, MemoryError):
    """There is not so much memory on a device."""


def text(first, *lines, site=None):
    """``first`` (PyTorch's words), then our own lines, then the user's line ``site = (code, lasti)``."""
    rows = [first, *(line for line in lines if line)]
    if site is not None:
        rows.append(place(*site))
    return "\n  ".join(rows)


def place(code, lasti):
    """``at FILE:LINE in FUNCTION: SOURCE`` for an instruction of a code object."""
    line = code.co_firstlineno
    if lasti >= 0:
        for start, end, number in code.co_lines():
            if start <= lasti < end and number is not None:
                line = number
    source = linecache.getline(code.co_filename, line).strip()
    return f"at {code.co_filename}:{line} in {code.co_name}" + (f": {source}" if source else "")


def frames(*nodes):
    """The lines of the forward program that made these nodes, as one block of text."""
    return "\n  ".join(place(n.code, n.lasti) for n in nodes if n.code is not None)
