"""``cupy.ndarray``: an array in a GPU's memory, which only leaves it by those methods that say so."""

import types
import weakref

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from .memory import Memory, MemoryPointer


class Capsule:
    """What an array hands over by DLPack."""

    def __init__(self, array, asked):
        self.array, self.asked = array, asked


def make_ndarray(double):
    """The class ``cupy.ndarray``; ``double`` counts what leaves the GPU."""

    def down(array, what):
        """The host's copy of an array, which has to wait for the GPU."""
        double.to_host.append((what, array.nbytes))
        return array._host

    class ndarray(NDArrayOperatorsMixin):
        """An array in a GPU's memory."""

        __array_priority__ = 100

        def __init__(self, shape, dtype=float, memptr=None, strides=None, order="C"):
            if memptr is None:
                host = np.empty(shape, dtype, order)
                memory = Memory(double.pool, host, double.current())
            else:
                memory = memptr.mem
                host = np.ndarray(shape, dtype, memory.host.ravel("K").view(np.uint8), memptr.offset, strides, order)
            self._set(host, memory, None)

        def _set(self, host, memory, base):
            self._host, self._memory, self.base = host, memory, base

        @classmethod
        def _new(cls, host, parent=None):
            """An array over NumPy memory: of its own, or a view of ``parent``'s."""
            self = cls.__new__(cls)
            if parent is None:
                self._set(host, Memory(double.pool, host, double.current()), None)
            else:
                self._set(host, parent._memory, parent if parent.base is None else parent.base)
            return self

        # what an array is

        shape = property(lambda self: self._host.shape)
        dtype = property(lambda self: self._host.dtype)
        ndim = property(lambda self: self._host.ndim)
        size = property(lambda self: self._host.size)
        nbytes = property(lambda self: self._host.nbytes)
        itemsize = property(lambda self: self._host.itemsize)
        strides = property(lambda self: self._host.strides)
        device = property(lambda self: double.cuda.Device(self._memory.device_id))
        T = property(lambda self: self.transpose())
        mT = property(lambda self: self.swapaxes(-1, -2))
        _c_contiguous = property(lambda self: self._host.flags.c_contiguous)
        _f_contiguous = property(lambda self: self._host.flags.f_contiguous)

        @shape.setter
        def shape(self, shape):
            self._host.shape = shape

        @property
        def data(self):
            start, here = (a.__array_interface__["data"][0] for a in (self._memory.host, self._host))
            double.arrays[here] = weakref.ref(self)
            return MemoryPointer(self._memory, here - start)

        @property
        def flags(self):
            f = self._host.flags
            return types.SimpleNamespace(c_contiguous=f.c_contiguous, f_contiguous=f.f_contiguous, owndata=f.owndata)

        @property
        def real(self):
            return double.up(self._host.real, [self])

        @real.setter
        def real(self, value):
            self._host.real = double.down_all("real", value)

        @property
        def imag(self):
            return double.up(self._host.imag, [self])

        @imag.setter
        def imag(self, value):
            self._host.imag = double.down_all("imag", value)

        @property
        def __cuda_array_interface__(self):
            found = dict(self._host.__array_interface__)
            strides = None if self._host.flags.c_contiguous else self._host.strides
            return {**found, "strides": strides, "stream": 1, "version": 3}

        # to the host, waiting

        def get(self, stream=None, order="C", out=None, blocking=True):
            if out is not None:
                out[...] = down(self, "get") if blocking else self._host
                return out
            return np.array(down(self, "get"), order=order)

        def item(self, *args):
            return down(self, "item").item(*args)

        def tolist(self):
            return down(self, "tolist").tolist()

        def tobytes(self, order="C"):
            return down(self, "tobytes").tobytes(order)

        def __bool__(self):
            return bool(down(self, "bool"))

        def __int__(self):
            return int(down(self, "int"))

        def __float__(self):
            return float(down(self, "float"))

        def __complex__(self):
            return complex(down(self, "complex"))

        def __repr__(self):
            return repr(down(self, "repr"))

        def __array__(self, dtype=None, copy=None):
            raise TypeError(
                "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy array "
                "explicitly."
            )

        # items

        def __len__(self):
            return len(self._host)

        def __iter__(self):
            return (self[i] for i in range(len(self)))

        def __getitem__(self, slices):
            return double.up(self._host[double.index(self, slices, True)], [self])

        def __setitem__(self, slices, value):
            double.here(self)
            if isinstance(value, np.ndarray):
                double.to_gpu.append(("setitem", value.nbytes))
            else:
                value = double.down_all("setitem", value)
            self._host[double.index(self, slices, False)] = value

        # to others

        def __dlpack_device__(self):
            return 2, self._memory.device_id

        def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
            return Capsule(self, (stream, max_version))

        def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
            found = getattr(double, ufunc.__name__, None)
            if found is None or method == "outer":
                return NotImplemented
            out = kwargs.pop("out", None)
            if out is not None:
                kwargs["out"] = out[0] if len(out) == 1 else out
            return (found if method == "__call__" else getattr(found, method))(*inputs, **kwargs)

        def __array_function__(self, func, types, args, kwargs):
            place = double
            for part in func.__module__.split(".")[1:]:
                place = getattr(place, part, None)
            found = getattr(place, func.__name__, None)
            return NotImplemented if found is None else found(*args, **kwargs)

        def set(self, arr, stream=None):
            double.to_gpu.append(("set", arr.nbytes))
            self._host[...] = arr

        def copy(self, order="C"):
            return double.ndarray._new(self._host.copy(order))

        def _set_shape_and_strides(self, shape, strides, update_c_contiguity, update_f_contiguity):
            self._host = np.lib.stride_tricks.as_strided(self._host, shape, strides)

        def view(self, dtype=None, type=None):
            host = self._host if dtype is None else self._host.view(dtype)
            return (self.__class__ if type is None else type)._new(host.view(), self)

    for name, method in _methods(double).items():
        setattr(ndarray, name, method)
    return ndarray


# As ``cupy.ndarray`` has them: a test compares these texts with CuPy's own.
METHODS = """
all(self, axis=None, out=None, keepdims=False)
any(self, axis=None, out=None, keepdims=False)
argmax(self, axis=None, out=None, dtype=None, keepdims=False)
argmin(self, axis=None, out=None, dtype=None, keepdims=False)
argpartition(self, kth, axis=-1)
argsort(self, axis=-1, kind=None)
astype(self, dtype, order='K', casting=None, subok=None, copy=True)
clip(self, min=None, max=None, out=None)
conj(self)
conjugate(self)
cumprod(self, axis=None, dtype=None, out=None)
cumsum(self, axis=None, dtype=None, out=None)
diagonal(self, offset=0, axis1=0, axis2=1)
dot(self, b, out=None)
fill(self, value)
flatten(self, order='C')
max(self, axis=None, out=None, keepdims=False)
mean(self, axis=None, dtype=None, out=None, keepdims=False)
min(self, axis=None, out=None, keepdims=False)
nonzero(self)
prod(self, axis=None, dtype=None, out=None, keepdims=None)
ravel(self, order='C')
repeat(self, repeats, axis=None)
reshape(self, *shape, order='C', copy=None)
round(self, decimals=0, out=None)
searchsorted(self, v, side='left', sorter=None)
sort(self, axis=-1, kind=None)
squeeze(self, axis=None)
std(self, axis=None, dtype=None, out=None, ddof=0, keepdims=False)
sum(self, axis=None, dtype=None, out=None, keepdims=False)
swapaxes(self, axis1, axis2)
take(self, indices, axis=None, out=None)
trace(self, offset=0, axis1=0, axis2=1, dtype=None, out=None)
transpose(self, *axes)
var(self, axis=None, dtype=None, out=None, ddof=0, keepdims=False)
"""


def _methods(double):
    made = {}
    for line in METHODS.split("\n"):
        if line:
            name, _, parameters = line[:-1].partition("(")
            made[name] = _method(double, name, parameters)
    return made


def _method(double, name, parameters):
    """A method with CuPy's own signature, so that what it does not take is a TypeError here as well."""
    names = [p.split("=")[0].strip() for p in parameters.split(",")[1:]]
    given = ", ".join(n if n[0] == "*" else f"{n}={n}" for n in names)
    space = {"run": double.method, "name": name}
    exec(f"def {name}({parameters}):\n    return run(self, name{', ' + given if given else ''})\n", space)
    return space[name]
