"""CuPy as the ops' texts see it: what NumPy refuses it refuses too."""

import functools
import types


def texts_of(cp, errstate):
    """The module ``cp`` (CuPy), but for its linear algebra, which raises for a matrix without an inverse or a factor.

    CuPy says nothing of such a matrix unless ``errstate``, of ``cupyx``, has asked it to.
    """

    def asked(function):
        @functools.wraps(function)
        def asking(*args, **kwargs):
            with errstate(linalg="raise"):
                return function(*args, **kwargs)

        return asking

    def of_linalg(name):
        found = getattr(cp.linalg, name)
        return asked(found) if callable(found) and not isinstance(found, type) else found

    return _module("cupy", vars(cp), lambda name: getattr(cp, name), linalg=_module("cupy.linalg", {}, of_linalg))


def _module(name, names, others, **changed):
    """A module of ``names``; ``others(name)`` finds the rest. (A class with __getattr__ is 7 times as slow to ask.)"""
    made = types.ModuleType(name)
    vars(made).update(names | {"__getattr__": others} | changed)
    return made
