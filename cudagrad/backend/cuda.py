"""The CUDA device: tensors are CuPy arrays, on CuPy's pool and current stream. CuPy is imported here, when used."""

import ctypes
import functools
import math
import os
import sys
import weakref

import numpy as np

from . import adopt
from .device import device
from .gpus import Gpus
from .kernels import nvrtc
from .kernels.adapters import FIRST_ORDER, FORWARD, WRITES
from .kernels.dispatch import with_kernel, writer
from .kernels.header import entries, stamp
from .kernels.packed import Launcher
from .pool import Watch
from .texts import texts_of


@functools.cache
def cupy():
    """The CuPy module, its array class made known; RuntimeError in one sentence where it cannot work."""
    try:
        import cupy
    except ImportError as error:
        raise RuntimeError(
            "a CUDA tensor needs CuPy, which is not installed: pip install 'cudagrad-cupy[cuda12]'"
        ) from error
    if not _has_gpu(cupy):
        raise RuntimeError(
            "Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver "
            "from http://www.nvidia.com/Download/index.aspx"
        )
    _begin(cupy)
    return cupy


def cupyx():
    """The module ``cupyx``."""
    import cupyx

    return cupyx


TEXTS = None  # CuPy for the ops' texts, from the first use on
WATCH = None  # of CuPy's memory pool, from the first use on
GPUS = None  # where there are several


def _begin(cupy):
    """Make the arrays of ``cupy`` known, and watch its pool."""
    global TEXTS, WATCH, GPUS
    TEXTS, WATCH, GPUS = texts_of(cupy, cupyx().errstate), Watch(cupy), None
    adopt(cupy.ndarray, TEXTS, sys.modules[__name__])
    if cupy.cuda.runtime.getDeviceCount() > 1:
        GPUS = Gpus(TEXTS)
        for array_class, module in zip(GPUS.classes, GPUS.modules):
            adopt(array_class, module, sys.modules[__name__])


def _has_gpu(cupy):
    try:
        return cupy.cuda.runtime.getDeviceCount() > 0
    except cupy.cuda.runtime.CUDARuntimeError:
        return False


@functools.cache
def is_available():
    """Whether CuPy is installed and finds a driver with a GPU."""
    try:
        cupy()
    except RuntimeError:
        return False
    return True


def device_count():
    """The count of GPUs; 0 where there is no driver."""
    return cupy().cuda.runtime.getDeviceCount() if is_available() else 0


def current_device():
    """The index of the GPU that new tensors go to."""
    return cupy().cuda.runtime.getDevice()


def use(index):
    """Make a GPU the current one of this thread."""
    cupy().cuda.Device(index).use()


def device_of(array):
    """The device of an array that is not NumPy's."""
    return device("cuda", array.data.device_id)


def on(target):
    """A context in which ``target``'s GPU is the current one."""
    return cupy().cuda.Device(target.index if target.index is not None else current_device())


def make(target, build):
    """The array that ``build(cupy)`` makes while ``target``'s GPU is the current one."""
    with on(target):
        return _owned(build(cupy()))


def _owned(made):
    """An array of CuPy's as a tensor holds it; one that somebody else may hold stays what it is."""
    if GPUS is None or not isinstance(made, cupy().ndarray):
        return made
    return made.view(type=GPUS.classes[made.data.device_id])


def _across(function):
    """``function`` of arrays, run while their GPU is the current one."""
    return function if GPUS is None else GPUS.across(function)


def from_host(array, target, non_blocking=False):
    """A NumPy array, copied to a GPU: by way of a buffer of CuPy's, so that ``array`` may change at once.

    With ``non_blocking`` pinned memory is read where it lies, while the program goes on; it is kept until that is done.
    """
    with on(target):
        if not (non_blocking and is_pinned(array) and array.flags.c_contiguous):
            return _owned(cupy().asarray(array))
        there, stream = cupy().empty(array.shape, array.dtype), cupy().cuda.get_current_stream()
        there.data.copy_from_host_async(array.__array_interface__["data"][0], array.nbytes, stream)
        WATCH.keep(stream.record(), array)
        return _owned(there)


def outlive(array, stream):
    """Let the memory under ``array`` go back to the pool only when ``stream``, CuPy's, has done what it then has to do.

    CuPy's pool gives memory again to the stream that it was first asked from, whoever else has used it.
    """
    root = memory_of(array)
    weakref.finalize(root, _retire, root.data.mem, stream).atexit = False


def _retire(memory, stream):
    WATCH.keep(stream.record(), memory)


def memory_of(array):
    """The array at the root of a chain of views."""
    while array.base is not None:
        array = array.base
    return array


def to_host(array, non_blocking=False):
    """A GPU array, copied into a NumPy array; with ``non_blocking`` into pinned memory, and nobody waits."""
    with on(device_of(array)):
        if not non_blocking:
            return cupy().asnumpy(array)
        host = _pinned_empty(array.shape, array.dtype)
        return array.get(out=host, blocking=False)


def from_device(array, target):
    """An array of one GPU, copied to another."""
    with on(target):
        return _owned(cupy().ndarray.copy(array, order="K"))


def text_module():
    """The array module that the ops' texts compute with here."""
    cupy()
    return TEXTS


def forward(op, text):
    """The function that runs ``op`` on CuPy arrays: its kernel where there is one."""
    return _across(with_kernel(FORWARD, op, text, cupy(), run))


def writing(op):
    """The function that writes what ``op`` makes of CuPy arrays into the first."""
    return _across(writer(WRITES, op, cupy(), run))


def first_order(op, rule):
    """The function that runs a fused or adding rule of ``op`` on CuPy arrays; ``xp`` comes first where it asks."""
    if rule is not op.fused or op.name not in FIRST_ORDER:
        return _across(rule)
    if "xp" not in rule.__code__.co_varnames[:1]:
        return _across(with_kernel(FIRST_ORDER, op, rule, cupy(), run))
    served = _across(with_kernel(FIRST_ORDER, op, functools.partial(rule, TEXTS), cupy(), run))
    return lambda xp, *given: served(*given)


# ---- kernels


def run(file, name, **given):
    """``launch`` of the entry ``name`` of a file of ``kernels/``."""
    launcher = _LAUNCHERS.get((file, name, *given))
    if launcher is None:
        launcher = _launcher(entries(file)[name], tuple(given))
        if not os.path.isabs(file):  # one named by its whole path may change
            _LAUNCHERS[(file, name, *given)] = launcher
    return launcher.call(given, *given.values())


def launch(entry, /, **given):
    """Launch an entry on the current stream; returns the arguments, arrays made from letters too."""
    return _launcher(entry, tuple(given)).call(given, *given.values())


_LAUNCHERS = {}  # (file, entry's name, *names given), and (id of an entry, *names given), which the launcher keeps


def _launcher(entry, names):
    launcher = _LAUNCHERS.get((id(entry), *names))
    if launcher is None:
        launcher = _LAUNCHERS[(id(entry), *names)] = Launcher(entry, names, _driver())
    return launcher


@functools.cache
def _driver():
    return Driver(cupy())


class Driver:
    """What a ``Launcher`` asks of CUDA: its driver, called past CuPy, and CuPy's current stream and GPU."""

    ADDRESS, CONTIGUOUS = ".data.ptr", "._c_contiguous"
    NO_CONTEXT = 201  # CUDA_ERROR_INVALID_CONTEXT: a thread's first launch

    def __init__(self, cp):
        self.cupy, self.launch = cp, libcuda().cuLaunchKernelEx
        self.stream = cp.cuda.get_current_stream
        self.index = cp.cuda.runtime.getDevice if cp.cuda.runtime.getDeviceCount() > 1 else None
        self.functions = {}

    @staticmethod
    def address(array):
        """Where an array's first element lies."""
        return array.data.ptr

    def processors(self, index):
        """The count of multiprocessors of a GPU."""
        return _processors(index)

    def function(self, plan, index):
        """The driver's handle of a plan's function, built for the GPU ``index`` and loaded there."""
        entry = plan.entry
        loaded = _loaded(entry.file, stamp(entry.file), entry.name, plan.macros, index)
        with self.cupy.cuda.Device(index):
            if plan.shared > loaded.max_dynamic_shared_size_bytes:  # 48 KiB is what a block may have unasked
                loaded.max_dynamic_shared_size_bytes = plan.shared
            return loaded.kernel.ptr

    def failed(self, entry, status, again):
        """Launch once more where this thread had no context yet; RuntimeError for any other status of the driver's."""
        if status == self.NO_CONTEXT:
            self.cupy.cuda.Device().use()
            status = again()
        if status:
            raise RuntimeError(f"{entry.name}: the launch failed, {_status(status)}")


def _status(number):
    """A status of the driver's in its own words."""
    name = ctypes.c_char_p()
    libcuda().cuGetErrorName(number, ctypes.byref(name))
    return f"{(name.value or b'status').decode()} ({number})"


@functools.cache
def libcuda():
    """The driver's library."""
    return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")


@functools.cache
def _processors(index):
    return cupy().cuda.Device(index).attributes["MultiProcessorCount"]


@functools.cache
def _loaded(file, stamp, name, macros, index):
    """The function of an entry on the GPU ``index``, where it is loaded when it is first used."""
    return _module(file, stamp, macros, index).get_function(name)


def adds_up_in_float32(array):
    """Whether cuBLAS multiplies half-precision matrices of this dtype on their GPU: bfloat16 from sm_80 on."""
    return array.dtype == np.float16 or _knows_bfloat16(array.device.id)


@functools.cache
def _knows_bfloat16(index):
    return int(cupy().cuda.Device(index).compute_capability) >= 80


@functools.cache
def _module(file, stamp, macros, index):
    capability = cupy().cuda.Device(index).compute_capability
    return cupy().RawModule(path=str(nvrtc.cubin(file, macros, nvrtc.architecture(capability))))


# ---- pinned memory


def pinned(array):
    """A copy of a NumPy array in page-locked memory; itself where it lies there."""
    cupy()
    if is_pinned(array):
        return array
    copy = _pinned_empty(array.shape, array.dtype)
    copy[...] = array
    return copy


def _pinned_empty(shape, dtype):
    count = math.prod(shape)
    memory = cupy().cuda.alloc_pinned_memory(max(count, 1) * dtype.itemsize)
    return np.frombuffer(memory, np.uint8, count * dtype.itemsize).view(dtype).reshape(shape)


def is_pinned(array):
    """Whether a NumPy array lies in page-locked memory of CuPy's."""
    if WATCH is None or array.__class__ is not np.ndarray:
        return False
    while isinstance(array, np.ndarray):
        array = array.base
    owner = array.obj if isinstance(array, memoryview) else array
    return isinstance(owner, cupy().cuda.PinnedMemoryPointer)
