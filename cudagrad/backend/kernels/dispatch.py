"""Which kernel serves an op: the op's arguments made the kernel's, and the op's own text where no kernel can serve."""

import contextlib
import functools
import threading

from ... import config
from .launch import Rather, Unfit


def with_kernel(table, op, text, xp, run):
    """``text`` with the kernel of ``table`` for ``op`` before it; ``text`` itself where there is none."""
    kernel = table.get(op.name)
    if kernel is None:
        return text

    @functools.wraps(kernel)
    def served(*arrays, **options):
        try:
            return kernel(_noted(op, run), xp, *arrays, **options)
        except Unfit as reason:
            if _notes.list is not None:
                _notes.list.append((op.name, None, str(reason)))
            if config.STRICT and not isinstance(reason, Rather) and not _nothing(arrays):
                raise RuntimeError(f"CUDAGRAD_STRICT: {op.name} ran without its kernel: {reason}") from None
            return text(*arrays, **options)

    return served


def writer(table, op, xp, run):
    """The function that writes what ``op`` makes of arrays into the first, by the kernel of ``table``.

    Raises      ValueError where there is none for them; nothing is written then
    """
    kernel = table.get(op.name)

    def write(*arrays):
        try:
            if kernel is None:
                raise Rather(f"{op.name}: no kernel writes in place")
            kernel(_noted(op, run), xp, *arrays)
        except Unfit as reason:
            raise ValueError(str(reason)) from None

    return write


class _Notes(threading.local):
    list = None


_notes = _Notes()


@contextlib.contextmanager
def noting():
    """Within, a list of what serves the ops that have kernels: (op, "file entry", None), or (op, None, why not)."""
    before, _notes.list = _notes.list, []
    try:
        yield _notes.list
    finally:
        _notes.list = before


def note(name, code):
    """Tell who listens that ``code`` served ``name``."""
    if _notes.list is not None:
        _notes.list.append((name, code, None))


def _noted(op, run):
    notes = _notes.list
    if notes is None:
        return run

    def noted(file, entry, **given):
        notes.append((op.name, f"{file} {entry}", None))
        return run(file, entry, **given)

    return noted


def _nothing(arrays):
    """Whether a call has no elements: there is nothing to launch, and the text is not slower."""
    return any(hasattr(type(a), "size") and a.size == 0 for a in arrays)
