"""The module ``cupy``: NumPy's functions over arrays of the double, those that CuPy has, with CuPy's signatures."""

import contextlib
import functools
import inspect
import types

import numpy as np

from .array import make_ndarray
from .launch import Library
from .memory import make_cuda

try:
    import cupy as REAL
except ImportError:
    REAL = None

# What takes a NumPy array of one element for the number it holds; functions but those below take no NumPy array at all.
FROM_NUMBERS = {"full", "full_like", "fill", "copyto"}
# What needs the GPU's numbers to know a shape, and so waits for it.
WAITS = {"nonzero", "flatnonzero", "argwhere", "unique", "bincount", "extract", "compress", "trim_zeros", "histogram"}
WAITS |= {"unique_values", "array_equal", "allclose", "isin", "in1d", "setdiff1d", "intersect1d"}
# What tells a Python value of its arguments' shapes and types alone.
TELLS = {"ndim", "shape", "size", "result_type", "can_cast", "promote_types", "shares_memory", "may_share_memory"}
TELLS |= {"isscalar", "iscomplexobj", "isrealobj", "broadcast_shapes", "issubdtype", "min_scalar_type", "common_type"}
AT = {"add", "subtract", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor"}
METHODS_OF_UFUNCS = {"reduce": {"add", "multiply"}, "accumulate": {"add", "multiply"}, "reduceat": {"add"}, "at": AT}


class Lent:
    """A part of NumPy's names, as CuPy has them."""

    def __init__(self, double, path, of, real):
        self._double, self._path, self._of, self._real = double, path, of, real

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if self._real is not None and not hasattr(self._real, name):
            raise AttributeError(f"module 'cupy{self._path}' has no attribute {name!r}")
        found = self._double.lend(self._path, name, getattr(self._of, name), getattr(self._real, name, None))
        setattr(self, name, found)
        return found


class Ufunc:
    """A ufunc of CuPy's: arrays, and Python or NumPy numbers; ``out``, ``dtype`` and ``casting``."""

    def __init__(self, double, ufunc, real):
        self.double, self.ufunc, self.real = double, ufunc, real
        self.__name__ = ufunc.__name__
        self.nin, self.nout = ufunc.nin, ufunc.nout

    def __call__(self, *args, out=None, dtype=None, casting=None):
        double, name = self.double, self.__name__
        if len(args) > self.ufunc.nin:
            *args, out = args
        given = [double.down_all(name, a) for a in args]
        double.loop(self, args, dtype)
        options = {} if casting is None else {"casting": casting}
        if dtype is not None:
            options["dtype"] = dtype
        if out is None:
            return double.up(self.ufunc(*given, **options), args)
        outs = out if isinstance(out, tuple) else (out,)
        for o in outs:
            if o is not None and not isinstance(o, double.ndarray):
                raise TypeError(f"Output arguments type must be cupy.ndarray, not {type(o)}")
        self.ufunc(*given, out=tuple(None if o is None else o._host for o in outs), **options)
        return out

    def _method(self, method):
        double, name = self.double, self.__name__
        if name not in METHODS_OF_UFUNCS[method]:
            raise NotImplementedError(f"`cupy_{name}.{method}` is not supported yet")
        return functools.partial(double.call, f"{name}.{method}", getattr(self.ufunc, method))

    def reduce(self, array, axis=0, dtype=None, out=None, keepdims=False):
        return self._method("reduce")(array, axis=axis, dtype=dtype, out=out, keepdims=keepdims)

    def accumulate(self, array, axis=0, dtype=None, out=None):
        return self._method("accumulate")(array, axis=axis, dtype=dtype, out=out)

    def reduceat(self, array, indices, axis=0, dtype=None, out=None):
        return self._method("reduceat")(array, indices, axis=axis, dtype=dtype, out=out)

    def at(self, a, indices, b=None):
        self._method("at")(a, indices, *(() if b is None else (b,)))

    def outer(self, A, B, **kwargs):
        return self(A.reshape(A.shape + (1,) * B.ndim), B.reshape((1,) * A.ndim + B.shape), **kwargs)


class Double:
    """The module ``cupy`` with ``count`` GPUs. ``to_host`` and ``to_gpu`` list copies, ``waits`` what waited."""

    __name__ = "cupy"

    def __init__(self, count=1):
        self.to_host, self.to_gpu, self.waits, self.stream_calls, self.launched, self.built = [], [], [], [], [], []
        self.arrays, self.libcuda = {}, Library(self)
        self._kept = Lent(self, "", np, REAL)
        self.cupyx = types.SimpleNamespace(errstate=self._errstate)
        self._raises = False
        self.cuda = make_cuda(self, count)
        self.ndarray = make_ndarray(self)
        self.get_default_memory_pool = lambda: self.pool
        self.get_default_pinned_memory_pool = lambda: types.SimpleNamespace(free_all_blocks=lambda: None)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(self._kept, name)
        setattr(self, name, found)
        return found

    def RawModule(self, *, path):
        return self.libcuda.module(path)

    def at(self, address):
        """The array that was last asked where it lies, and lies at ``address``: a launch asks all that it is given."""
        return self.arrays[address]()

    def current(self):
        return self.cuda.runtime.getDevice()

    @contextlib.contextmanager
    def _errstate(self, *, divide=None, over=None, under=None, invalid=None, linalg=None):
        before, self._raises = self._raises, linalg == "raise"
        try:
            yield
        finally:
            self._raises = before

    # functions of CuPy that NumPy does not have, or has otherwise

    def asnumpy(self, a, stream=None, order="C", out=None, *, blocking=True):
        if not isinstance(a, self.ndarray):
            return np.asarray(a)
        return a.get(stream, order, out, blocking)

    def from_dlpack(self, x, *, device=None, copy=None):
        assert x.__dlpack_device__()[0] == 2
        return x.__dlpack__(stream=1, max_version=(1, 0)).array.view()

    def get_array_module(self, *args):
        return self if any(isinstance(a, self.ndarray) for a in args) else np

    def asarray(self, a, dtype=None, order=None, *, copy=None, blocking=False):
        return self._from(a, dtype, order, copy)

    def array(self, obj, dtype=None, copy=True, order="K", subok=False, ndmin=0, *, blocking=False):
        if ndmin:
            raise NotImplementedError("ndmin")
        return self._from(obj, dtype, order, copy)

    def ascontiguousarray(self, a, dtype=None):
        return self._from(a, dtype, "C", None)

    def asfortranarray(self, a, dtype=None):
        return self._from(a, dtype, "F", None)

    def copyto(self, dst, src, casting="same_kind", where=None):
        if src.__class__ is np.ndarray and src.size != 1:
            raise TypeError(f"Cannot copy from numpy.ndarray: {type(src)}")
        options = {} if where is None else {"where": self.down_all("copyto", where)}
        np.copyto(self.down_all("copyto", dst), self.down_all("copyto", src), casting, **options)

    def _from(self, a, dtype, order, copy):
        if isinstance(a, self.ndarray):
            self.here(a)
            host = np.array(a._host, dtype, copy=copy, order=order or "K")
            return a if host is a._host else self.up(host, [a])
        if hasattr(a, "__cuda_array_interface__") and not isinstance(a, np.ndarray):
            return self._foreign(a.__cuda_array_interface__, a, dtype, order, copy)
        if isinstance(a, (list, tuple)) and any(isinstance(x, self.ndarray) for x in a):
            return self.stack([self.asarray(x, dtype) for x in a])
        host = np.array(a, dtype, order=order or "K")
        self.to_gpu.append(("array", host.nbytes))
        return self.ndarray._new(host)

    def _foreign(self, interface, owner, dtype, order, copy):
        base = getattr(owner, "array", owner)  # a tensor over an array of ours is that array's memory
        if isinstance(base, self.ndarray):
            return self._from(base, dtype, order, copy) if copy or dtype else base.view()
        raise TypeError(f"the double knows no memory of {type(owner)}")

    # calls

    def lend(self, path, name, found, real):
        """NumPy's ``found`` for arrays of the double; types, numbers and submodules as they are."""
        if isinstance(found, types.ModuleType):
            return Lent(self, f"{path}.{name}", found, real)
        if isinstance(found, np.ufunc):
            if found.signature is not None and not hasattr(real, "types"):
                return functools.wraps(found)(functools.partial(self.checked, name, found, real))
            return Ufunc(self, found, real)
        if isinstance(found, type) or not callable(found):
            return found
        if name in TELLS:
            return found
        return functools.partial(self.checked, name, found, real)

    def checked(self, name, function, real, /, *args, **kwargs):
        """``function`` where CuPy's own takes these arguments."""
        if real is not None:
            _bind(name, real, len(args), tuple(kwargs))
        return self.call(name, function, *args, **kwargs)

    def call(self, name, function, /, *args, **kwargs):
        if name in WAITS or (name == "where" and len(args) == 1):
            self.to_host.append((name, 0))
        if name == "repeat" and isinstance(args[1] if len(args) > 1 else kwargs.get("repeats"), self.ndarray):
            self.to_host.append(("repeat", 0))
        if name in ("dot", "matmul"):
            function = functools.partial(_added_in_float32, function)
        arguments = [*args, *kwargs.values()]
        given = [self.down_all(name, a) for a in args]
        options = {k: self.down_all(name, v) for k, v in kwargs.items()}
        try:
            result = function(*given, **options)
        except np.linalg.LinAlgError:
            assert self._raises, f"CuPy's {name} would say nothing of a singular matrix"
            raise
        out = kwargs.get("out")
        return out if out is not None else self.up(result, arguments)

    def method(self, array, name, *args, **kwargs):
        """The method ``name`` of NumPy's for one of the double's."""
        if name in ("argsort", "sort") and kwargs.get("kind") not in (None, "stable"):
            raise ValueError("kind can only be None or 'stable'")
        kwargs = {k: v for k, v in kwargs.items() if k != "order" or v is not None}
        if name == "prod":
            kwargs["keepdims"] = bool(kwargs["keepdims"])
        if name == "swapaxes":
            return self.call(name, np.swapaxes, array, *kwargs.values())
        if name in ("argmax", "argmin") and kwargs.pop("dtype", None) is not None:
            raise NotImplementedError("dtype of argmax")
        if name in ("astype", "reshape", "clip"):
            kwargs = {k: v for k, v in kwargs.items() if v is not None}
        if name == "sort":
            array._host.sort(kwargs["axis"])
            return None
        if name == "dot":
            return self.call(name, np.dot, array, kwargs["b"], *(() if kwargs["out"] is None else (kwargs["out"],)))
        if name == "fill":
            array._host.fill(self.down_all(name, kwargs["value"]))
            return None
        return self.call(name, getattr(np.ndarray, name), array, *args, **kwargs)

    def index(self, array, slices, getting):
        """An index for NumPy; a mask that an array is made by has to be counted first."""

        def one(s):
            if isinstance(s, self.ndarray):
                self.here(s)
                if getting and s.dtype == np.bool_:
                    self.to_host.append(("mask", 0))
                return s._host
            if isinstance(s, np.ndarray) and s.ndim:
                self.to_gpu.append(("index", s.nbytes))
            return s

        self.here(array)
        return tuple(map(one, slices)) if isinstance(slices, tuple) else one(slices)

    def here(self, array):
        """ValueError for an array of another GPU than the current one."""
        there, current = array._memory.device_id, self.current()
        if there != current:
            raise ValueError(
                f"The device where the array resides ({there}) is different from the current device ({current}). Peer "
                "access is unavailable between these devices."
            )

    def down_all(self, name, value):
        """What NumPy computes with, for an argument of CuPy's; TypeError for an array of the host's."""
        if isinstance(value, self.ndarray):
            self.here(value)
            return value._host
        if isinstance(value, np.ndarray) and not (name in FROM_NUMBERS and value.size == 1):
            raise TypeError(f"{name}: Unsupported type {type(value)}")
        if value.__class__ in (list, tuple):
            return value.__class__([self.down_all(name, v) for v in value])
        if hasattr(value, "__cuda_array_interface__"):
            return self.asarray(value)._host
        return value

    def up(self, result, arguments):
        """A result of NumPy's as one of CuPy's: an array always, a view of an argument's memory where it is that."""
        if isinstance(result, np.ndarray):
            for a in _flat(arguments):
                if isinstance(a, self.ndarray) and (result is a._host or _inside(result, a._memory.host)):
                    return a if result is a._host else a.__class__._new(result, a)
            return self.ndarray._new(result)
        if isinstance(result, np.generic):
            return self.ndarray._new(np.asarray(result))
        if isinstance(result, (list, tuple)):
            made = [self.up(r, arguments) for r in result]
            return type(result)(*made) if hasattr(result, "_fields") else type(result)(made)
        return result

    def loop(self, ufunc, args, dtype):
        """TypeError where CuPy has no loop of a ufunc for these types."""
        if ufunc.real is None or dtype is not None:
            return
        kinds = tuple(a.dtype if isinstance(a, (self.ndarray, np.generic)) else type(a) for a in args)
        if not _has_loop(ufunc.real, kinds):
            raise TypeError(f"Wrong type ({kinds}) of arguments for cupy_{ufunc.__name__}")


def _added_in_float32(product, a, b, *out, **options):
    """A product of matrices as cuBLAS makes it, of half types too."""
    if a.dtype.itemsize != 2 or a.dtype.kind in "iu":
        return product(a, b, *out, **options)
    result = product(a.astype(np.float32), b.astype(np.float32)).astype(a.dtype)
    if not out and options.get("out") is None:
        return result
    (out[0] if out else options["out"])[...] = result
    return result


def _flat(values):
    for v in values:
        if v.__class__ in (list, tuple):
            yield from _flat(v)
        else:
            yield v


def _inside(view, memory):
    return view.base is not None and np.may_share_memory(view, memory)


@functools.lru_cache(maxsize=None)
def _signature(real):
    try:
        return inspect.signature(real)
    except (TypeError, ValueError):
        return None


@functools.lru_cache(maxsize=None)
def _bind(name, real, count, keywords):
    signature = _signature(real)
    if signature is not None:
        try:
            signature.bind(*range(count), **dict.fromkeys(keywords))
        except TypeError as error:
            raise TypeError(f"cupy.{name}(): {error}") from None


@functools.lru_cache(maxsize=None)
def _has_loop(real, kinds):
    """Whether one of the loops that CuPy lists takes these types; a Python number fits where NumPy's promotion says."""
    known = [k for k in kinds if isinstance(k, np.dtype)]
    if not known or not hasattr(real, "types"):
        return True
    for text in real.types:
        if all(_goes(k, _dtype(c)) for k, c in zip(kinds, text.split("->")[0])):
            return True
    return False


def _dtype(char):
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16) if char == "E" else np.dtype(char)


def _goes(kind, loop):
    if isinstance(kind, np.dtype):
        return np.can_cast(kind, loop)
    return np.result_type(kind(0), loop) == loop if kind in (bool, int, float, complex) else True
