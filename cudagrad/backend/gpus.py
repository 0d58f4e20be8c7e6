"""Several GPUs: the arrays of each are of a class of their own, so that what tells a GPU from the CPU tells two apart.

Whatever is done with such an array is done while its GPU is the current one. On a machine with one GPU there is none
of this: tensors hold plain CuPy arrays.
"""

import functools
import types

# What tells of an array without a launch, or makes one: it does not matter which GPU is the current one.
PLAIN = {"__new__", "__init__", "__class__", "__getattribute__", "__setattr__", "__delattr__", "__dir__", "__sizeof__"}
PLAIN |= {"__init_subclass__", "__subclasshook__", "__class_getitem__", "__len__", "__hash__", "__array_finalize__"}


class Gpus:
    """The GPUs of ``cp`` (CuPy): for each an array class, and a module that computes with its arrays."""

    def __init__(self, cp):
        self.cupy = cp
        self.current, count = cp.cuda.runtime.getDevice, cp.cuda.runtime.getDeviceCount()
        self.classes = [self._class(index) for index in range(count)]
        self.index = {c: i for i, c in enumerate(self.classes)}
        self.modules = [Part(self, index, cp) for index in range(count)]

    def _class(self, index):
        own, plain = {"__slots__": ()}, self.cupy.ndarray
        for name in dir(plain):
            found = getattr(plain, name)
            if name not in PLAIN and callable(found) and not isinstance(found, type):
                own[name] = functools.wraps(found)(self.within(index, found))
        return type(f"ndarray_of_gpu_{index}", (plain,), own)

    def within(self, index, function):
        """``function``, run while the GPU ``index`` is the current one."""

        def within(*args, **kwargs):
            if self.current() == index:
                return self.lift(function(*args, **kwargs))
            with self.cupy.cuda.Device(index):
                return self.lift(function(*args, **kwargs))

        return within

    def across(self, function):
        """``function`` of arrays, run where the first of them is."""

        def across(*arrays, **options):
            index = self.home(arrays)
            return (function if index is None else self.within(index, function))(*arrays, **options)

        return across

    def home(self, arrays):
        """The index of the GPU of the first array, also in lists; None where there is none."""
        for a in arrays:
            index = self.home(a) if a.__class__ in (tuple, list) else self.index.get(a.__class__)
            if index is not None:
                return index
        return None

    def lift(self, value):
        """A plain array of CuPy's, or those of a tuple or list, as of the class of its GPU."""
        if value.__class__ is self.cupy.ndarray:
            value.__class__ = self.classes[value.data.device_id]
        elif value.__class__ is tuple:
            return tuple(map(self.lift, value))
        elif value.__class__ is list:
            value[:] = map(self.lift, value)
        return value


class Part:
    """CuPy, or a part of it, as those see it who compute with arrays of one GPU."""

    def __init__(self, gpus, index, of):
        self._gpus, self._index, self._of = gpus, index, of
        self._call = gpus.within(index, of)

    def __call__(self, *args, **kwargs):
        return self._call(*args, **kwargs)

    def __getattr__(self, name):
        found = getattr(self._of, name)
        if isinstance(found, types.ModuleType) or (callable(found) and not isinstance(found, type)):
            found = Part(self._gpus, self._index, found)
        setattr(self, name, found)
        return found
