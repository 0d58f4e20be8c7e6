"""The emulated CUDA device: the kernels of `kernels/`, built for this processor and run a thread at a time."""

import contextlib
import ctypes
import dataclasses
import functools
import os
import re
import threading

import numpy as np

from ..kernels.header import entries, stamp
from ..kernels.path import kernels_path
from . import build, places

SCHEDULES = ("ordered", "reversed", "random", "eager")
PROCESSORS = 4  # multiprocessors of the device that is emulated
_LOCK = threading.RLock()  # one launch at a time: all share the threads' stacks
os.register_at_fork(after_in_child=_LOCK._at_fork_reinit)  # a forked process has none of the threads that may hold it
_STACKS = [None]


class KernelError(RuntimeError):
    """What went wrong in a kernel on the emulated device: where, in which block and thread, with which array."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """How kernels run: in which order threads do, from which random seed, and whether accesses are checked.

    ``whole``: in a checked run, an element of an output that was never written is an error.
    """

    schedule: str = "ordered"
    seed: int = 0
    check: bool = False
    whole: bool = False


@dataclasses.dataclass
class Traffic:
    """What checked launches moved.

    lines       (entry, "file:line", kind) -> [requests of a warp, units moved, the fewest that serve]; a unit of global
                memory is a sector of 32 bytes, one of shared memory a turn of its banks
    touched     entry -> for each launch, bytes of arrays read plus bytes written, each byte once
    """

    lines: dict = dataclasses.field(default_factory=dict)
    touched: dict = dataclasses.field(default_factory=dict)

    def ratio(self, entry, place, kind):
        """Units moved over the fewest possible: 1 where a warp's accesses are coalesced, or free of bank conflicts."""
        _, moved, ideal = self.lines[entry, place, kind]
        return moved / ideal


KINDS = ("load", "store", "shared load", "shared store")


class _Current(threading.local):
    settings = Settings(check=os.environ.get("CUDAGRAD_CHECK", "0") == "1")
    traffic = None


@contextlib.contextmanager
def traffic():
    """Within, kernels are checked and what they move is counted, in the ``Traffic`` that comes back."""
    before, _current.traffic = _current.traffic, Traffic()
    try:
        with settings(check=True):
            yield _current.traffic
    finally:
        _current.traffic = before


_current = _Current()


@contextlib.contextmanager
def settings(**changes):
    """Within, kernels of this thread run with other ``schedule``, ``seed``, ``check`` or ``whole``.

    ``schedule``: "ordered"; "reversed"; "random" threads; "eager", random with a switch at every collective of a warp.
    """
    before = _current.settings
    after = dataclasses.replace(before, **changes)
    if after.schedule not in SCHEDULES:
        raise ValueError(f"schedule {after.schedule!r} is none of {', '.join(SCHEDULES)}")
    _current.settings = after
    try:
        yield after
    finally:
        _current.settings = before


class _Argument(ctypes.Structure):
    _fields_ = [
        ("host", ctypes.c_void_p),
        ("bytes", ctypes.c_size_t),
        ("role", ctypes.c_int),
        ("name", ctypes.c_char_p),
        ("unwritten", ctypes.c_longlong),
    ]


class _Line(ctypes.Structure):
    _fields_ = [
        ("pc", ctypes.c_uint32),
        ("kind", ctypes.c_int),
        ("requests", ctypes.c_uint64),
        ("moved", ctypes.c_uint64),
        ("ideal", ctypes.c_uint64),
    ]


class _Launch(ctypes.Structure):
    _fields_ = [
        ("call", ctypes.c_void_p),
        ("arguments", ctypes.POINTER(_Argument)),
        ("count", ctypes.c_int),
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_size_t),
        ("schedule", ctypes.c_int),
        ("seed", ctypes.c_uint64),
        ("stacks", ctypes.c_void_p),
        ("message", ctypes.c_void_p),
        ("message_bytes", ctypes.c_size_t),
        ("pc", ctypes.c_size_t),
        ("lines", ctypes.POINTER(_Line)),
        ("most_lines", ctypes.c_int),
        ("line_count", ctypes.c_int),
        ("touched", ctypes.c_uint64),
    ]


SCALAR, INPUT, OUTPUT, IN_PLACE, MISSING = range(5)


@functools.cache
def _loaded(file, stamp, alone, macros, check, extra):
    """The library of a file, with all of its entries or with the entry ``alone``."""
    served = entries(file).values() if alone is None else [alone]
    path = build.library(kernels_path() / file, served, macros, check, extra)
    library = ctypes.CDLL(str(path))
    library.cg_run.restype = ctypes.c_int
    return path, library


def address(array):
    """Where an array's first element lies."""
    return array.__array_interface__["data"][0]


def _seen(macros):
    """Without the threads a block, which bound registers on a GPU and would only be one more build here."""
    return tuple(m for m in macros if m[0] != "CG_B")


def run(plan, extra=()):
    """Run a ``kernels.launch.Plan``; its output arrays are written. ``extra``: more options for the compiler.

    Raises      KernelError
    """
    entry, now = plan.entry, _current.settings
    alone = entry if entry.alone else None
    path, library = _loaded(entry.file, stamp(entry.file), alone, _seen(plan.macros), now.check, tuple(extra))
    arguments = (_Argument * len(plan.arguments))()
    held = [_argument(a, p, v) for a, p, v in zip(arguments, entry.parameters, plan.arguments)]
    message = ctypes.create_string_buffer(4096)
    launch = _Launch(
        call=ctypes.cast(library[f"launch_{entry.name}"], ctypes.c_void_p),
        arguments=arguments,
        count=len(arguments),
        grid=plan.grid,
        block=plan.block,
        shared_bytes=plan.shared,
        schedule=SCHEDULES.index(now.schedule),
        seed=now.seed,
        message=ctypes.cast(message, ctypes.c_void_p),
        message_bytes=len(message),
    )
    lines = (_Line * 4096)() if _current.traffic is not None else None
    if lines is not None:
        launch.lines, launch.most_lines = lines, len(lines)
    with _LOCK:
        launch.stacks = _STACKS[0]
        failed = library.cg_run(ctypes.byref(launch))
        _STACKS[0] = launch.stacks
    del held
    if failed:
        raise KernelError(_told(entry, path, launch.pc, message.value.decode(errors="replace")))
    if lines is not None:
        _count(entry, path, launch, _current.traffic)
    if now.check and now.whole:
        _refuse_unwritten(plan, arguments)


def _refuse_unwritten(plan, arguments):
    for a, p, array in zip(arguments, plan.entry.parameters, plan.arguments):
        if a.role == OUTPUT and a.unwritten >= 0:
            index = tuple(map(int, np.unravel_index(a.unwritten // array.itemsize, array.shape)))
            raise KernelError(
                f"{plan.entry.name}: output {p.name} of shape {array.shape} was never written at index {index}"
            )


def _told(entry, path, pc, message):
    """The message of an error, with source lines for code addresses: its own, and any it holds as @address@."""
    others = re.findall("@([0-9a-f]+)@", message)
    at, *named = places.of(path, [pc, *(int(o, 16) for o in others)])
    for other, place in zip(others, named):
        message = message.replace(f"@{other}@", place or "a place unknown")
    return f"{entry.name}{' at ' + at if pc and at else ''}: {message}"


def _count(entry, path, launch, traffic):
    lines = launch.lines[: launch.line_count]
    for line, place in zip(lines, places.of(path, [line.pc for line in lines])):
        total = traffic.lines.setdefault((entry.name, place, KINDS[line.kind]), [0, 0, 0])
        total[:] = total[0] + line.requests, total[1] + line.moved, total[2] + line.ideal
    traffic.touched.setdefault(entry.name, []).append(launch.touched)


def _argument(a, parameter, value):
    """Fill the structure of one argument; returns what must stay alive until the launch is over."""
    a.name = parameter.name.encode()
    if value is None:
        a.role = MISSING
    elif parameter.pointer:
        a.host, a.bytes = address(value), _extent(value)
        gaps = a.bytes != value.nbytes  # what lies between an output's elements stays
        a.role = INPUT if parameter.const else IN_PLACE if parameter.in_place or gaps else OUTPUT
    else:
        value = np.array(value)
        a.host, a.bytes, a.role = address(value), value.nbytes, SCALAR
    return value


def _extent(array):
    """The bytes from an array's first element to its last, strides being positive."""
    return array.itemsize + sum((n - 1) * step for n, step in zip(array.shape, array.strides)) if array.size else 0
