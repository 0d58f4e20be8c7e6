"""The emulated CUDA device: NumPy arrays of a class of their own, and the kernels of `kernels/` on this processor."""

import functools
import sys

import numpy as np

from . import adopt, emulator
from .device import device
from .kernels.adapters import FIRST_ORDER, FORWARD, WRITES
from .kernels.dispatch import with_kernel, writer
from .kernels.header import entries
from .kernels.launch import complete

DEVICE = device("emulated")

# Ops whose result lies on another device, which they see to themselves.
TRAVELS = {"to_device"}


def _lifted(result):
    """What a function of NumPy returned, a list too, as arrays of the device."""
    return list(map(_up, result)) if result.__class__ is list else _up(result)


class EmulatedArray(np.ndarray):
    """An array in the memory of the emulated device."""

    def __array_function__(self, function, types, args, kwargs):
        """NumPy's functions of such arrays return such arrays, as they do of CuPy's; some would forget the class."""
        return _lifted(super().__array_function__(function, types, args, kwargs))


def _up(value):
    """An array, or those of a tuple, as ones of the device; anything else, a list too, as it is."""
    if value.__class__ is np.ndarray:
        return value.view(EmulatedArray)
    if value.__class__ is tuple:
        return tuple(map(_up, value))
    return np.asarray(value).view(EmulatedArray) if isinstance(value, np.generic) else value


def _down(value):
    """What NumPy computes with: the same memory as plain arrays.

    A list that holds none of ours stays the same list: a forward may leave one for its rule to empty.
    """
    if value.__class__ is EmulatedArray:
        return value.view(np.ndarray)
    if value.__class__ is tuple or (value.__class__ is list and any(v.__class__ is EmulatedArray for v in value)):
        return value.__class__(map(_down, value))
    return value


class _Module:
    """NumPy for those who compute with arrays of the device outside of an op: its functions return such arrays."""

    def __getattr__(self, name):
        found = getattr(np, name)
        if callable(found) and not isinstance(found, (type, np.ufunc)):
            found = self._lifted(found)
        elif isinstance(found, np.ufunc) and found.signature is not None:
            found = self._lifted(found)
        setattr(self, name, found)
        return found

    @staticmethod
    def _lifted(function):
        @functools.wraps(function)
        def lifted(*args, **kwargs):
            return _lifted(function(*args, **kwargs))

        return lifted


xp = _Module()
adopt(EmulatedArray, xp, sys.modules[__name__])


def device_of(array):
    """The device of an array that is not plain."""
    return DEVICE


def _only(target):
    if target.index:
        raise RuntimeError(f"device '{target}': there is one emulated device, index 0")


def make(target, build):
    """The array that ``build(numpy)`` makes."""
    _only(target)
    return _up(build(np))


def from_host(array, target, non_blocking=False):
    """A NumPy array, copied to the device."""
    _only(target)
    return array.copy(order="K").view(EmulatedArray)


def from_device(array, target):
    """The array itself: there is one device."""
    _only(target)
    return array


def to_host(array, non_blocking=False):
    """An array of the device, copied into a plain one."""
    return array.view(np.ndarray).copy(order="K")


# ---- kernels


def run(file, name, **given):
    """``launch`` of the entry ``name`` of a file of ``kernels/``."""
    return launch(entries(file)[name], **given)


def launch(entry, /, **given):
    """Launch an entry; returns the arguments. A function given for an array makes it from letters."""
    plan, given = complete(entry, given, emulator.address, emulator.PROCESSORS)
    if not plan.empty:
        emulator.run(plan)
    return given


def adds_up_in_float32(array):
    """Not NumPy, which computes here."""
    return False


def text_module():
    """The array module that the ops' texts compute with here: plain NumPy on the same memory."""
    return np


def forward(op, text):
    """The function that runs ``op`` on arrays of the device: its kernel where there is one, on plain arrays."""
    if op.name in TRAVELS:
        return text
    return _across(with_kernel(FORWARD, op, text, np, run))


def writing(op):
    """The function that writes what ``op`` makes of arrays of the device into the first."""
    return _across(writer(WRITES, op, np, run))


def first_order(op, rule):
    """The function that runs a fused or adding rule of ``op``; its first argument ``xp``, if it has one, is NumPy."""
    takes_xp = "xp" in rule.__code__.co_varnames[:1]
    text = functools.partial(rule, np) if takes_xp else rule
    served = with_kernel(FIRST_ORDER, op, text, np, run) if rule is op.fused else text
    across = _across(lambda *given: _listed(served(*given)))
    return (lambda xp, *given: across(*given)) if takes_xp else across


def _listed(gradients):
    """The gradients of a list of tensors as a tuple, whose arrays are put on."""
    return tuple(gradients) if gradients.__class__ is list else gradients


def _across(function):
    """``function`` of plain arrays as one of the device's arrays: the one place where they are taken off and put on."""

    def across(*arrays, **options):
        return _up(function(*map(_down, arrays), **options))

    return across
