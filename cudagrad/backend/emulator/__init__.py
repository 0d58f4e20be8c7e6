"""The emulated CUDA device: the kernels of `kernels/`, built for this processor and run a thread at a time."""

import contextlib
import ctypes
import dataclasses
import functools
import os
import threading

import numpy as np

from ..kernels_header import entries, stamp
from ..kernels_path import kernels_path
from . import build, places

SCHEDULES = ("ordered", "reversed", "random", "eager")
PROCESSORS = 4  # multiprocessors of the device that is emulated
_LOCK = threading.Lock()  # one launch at a time: all share the threads' stacks
_STACKS = [None]


class KernelError(RuntimeError):
    """What went wrong in a kernel on the emulated device: where, in which block and thread, with which array."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """How kernels run: in which order threads do, from which random seed, and whether accesses are checked."""

    schedule: str = "ordered"
    seed: int = 0
    check: bool = False


class _Current(threading.local):
    settings = Settings(check=os.environ.get("CUDAGRAD_CHECK", "0") == "1")


_current = _Current()


@contextlib.contextmanager
def settings(**changes):
    """Within, kernels of this thread run with other ``schedule``, ``seed`` or ``check``.

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
    ]


SCALAR, INPUT, OUTPUT, IN_PLACE, MISSING = range(5)


@functools.cache
def _loaded(file, stamp, macros, check, extra):
    path = build.library(kernels_path() / file, entries(file).values(), macros, check, extra)
    library = ctypes.CDLL(str(path))
    library.cg_run.restype = ctypes.c_int
    return path, library


def address(array):
    """Where an array's first element lies."""
    return array.__array_interface__["data"][0]


def run(plan, extra=()):
    """Run a ``kernels_launch.Plan``; its output arrays are written. ``extra``: more options for the compiler.

    Raises      KernelError
    """
    entry, now = plan.entry, _current.settings
    path, library = _loaded(entry.file, stamp(entry.file), plan.macros, now.check, tuple(extra))
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
    with _LOCK:
        launch.stacks = _STACKS[0]
        failed = library.cg_run(ctypes.byref(launch))
        _STACKS[0] = launch.stacks
    del held
    if failed:
        at = places.of(path, [launch.pc])[0] if launch.pc else None
        where = f" at {at}" if at else ""
        raise KernelError(f"{entry.name}{where}: {message.value.decode(errors='replace')}")


def _argument(a, parameter, value):
    """Fill the structure of one argument; returns what must stay alive until the launch is over."""
    a.name = parameter.name.encode()
    if value is None:
        a.role = MISSING
    elif parameter.pointer:
        a.host, a.bytes = address(value), value.nbytes
        a.role = INPUT if parameter.const else IN_PLACE if parameter.in_place else OUTPUT
    else:
        value = np.array(value)
        a.host, a.bytes, a.role = address(value), value.nbytes, SCALAR
    return value
