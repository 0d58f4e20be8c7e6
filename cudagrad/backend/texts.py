"""CuPy as the ops' texts see it: what NumPy refuses it refuses too."""

import functools
import types


class Texts(types.ModuleType):
    """The names of ``cp`` (CuPy), with its linear algebra as ``Raising``."""

    def __init__(self, cp, errstate):
        super().__init__("cupy")
        self.__dict__.update({**vars(cp), "_of": cp, "linalg": Raising(cp.linalg, errstate)})

    def __getattr__(self, name):
        found = getattr(self._of, name)
        setattr(self, name, found)
        return found


class Raising(types.ModuleType):
    """``cupy.linalg``, which says nothing of a matrix without an inverse or a factor unless it is asked to."""

    def __init__(self, linalg, errstate):
        super().__init__("cupy.linalg")
        self._of, self._errstate = linalg, errstate

    def __getattr__(self, name):
        found = getattr(self._of, name)
        if callable(found) and not isinstance(found, type):
            found = self._asked(found)
        setattr(self, name, found)
        return found

    def _asked(self, function):
        @functools.wraps(function)
        def asked(*args, **kwargs):
            with self._errstate(linalg="raise"):
                return function(*args, **kwargs)

        return asked
