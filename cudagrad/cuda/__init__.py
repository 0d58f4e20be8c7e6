"""The names of ``torch.cuda``, on CuPy's devices, streams and memory pool."""

import contextlib
import importlib

from ..backend import cuda as _cuda
from ..backend.cuda import current_device, device_count, is_available
from ..backend.device import device as _device
from ..core.generator import generator_of
from ..ops.legacy import CUDA_TYPES

__all__ = [
    "Event",
    "Stream",
    "current_device",
    "current_stream",
    "device",
    "device_count",
    "empty_cache",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "init",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "reset_peak_memory_stats",
    "set_device",
    "stream",
    "synchronize",
]


globals().update(CUDA_TYPES)  # FloatTensor and its like


def __getattr__(name):
    if name == "amp":
        return importlib.import_module(".amp", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def init():
    """Make the CUDA device ready; RuntimeError where there is none."""
    _cuda.cupy()


def is_initialized():
    """Whether CuPy was loaded and has a device."""
    return _cuda.cupy.cache_info().currsize > 0


def _index(device):
    if device is None:
        return current_device()
    device = _device(device)
    return device.index if device.index is not None else current_device()


def set_device(device):
    """Make a GPU the current one."""
    _cuda.cupy().cuda.Device(_index(device)).use()


class device(contextlib.ContextDecorator):
    """Within, a GPU is the current one."""

    def __init__(self, device):
        self.index = _index(device)

    def __enter__(self):
        self._context = _cuda.cupy().cuda.Device(self.index)
        self._context.__enter__()

    def __exit__(self, *exception):
        self._context.__exit__(*exception)


def synchronize(device=None):
    """Wait until a GPU has done all that was asked of it."""
    _cuda.cupy().cuda.Device(_index(device)).synchronize()


def get_device_properties(device=None):
    """The properties of a GPU: name, total_memory, major, minor, multi_processor_count, ..."""
    facts = _cuda.cupy().cuda.runtime.getDeviceProperties(_index(device))
    facts = {k: v.decode() if isinstance(v, bytes) else v for k, v in facts.items()}
    return _Properties(facts)


class _Properties:
    def __init__(self, facts):
        self.__dict__.update(facts)
        self.total_memory = facts["totalGlobalMem"]
        self.multi_processor_count = facts["multiProcessorCount"]

    def __repr__(self):
        memory = self.total_memory // 2**20
        version = f"major={self.major}, minor={self.minor}"
        return f"_CudaDeviceProperties(name='{self.name}', {version}, total_memory={memory}MB)"


def get_device_name(device=None):
    """The name of a GPU."""
    return get_device_properties(device).name


def get_device_capability(device=None):
    """The compute capability of a GPU, ``(major, minor)``."""
    facts = get_device_properties(device)
    return facts.major, facts.minor


def is_bf16_supported(including_emulation=True):
    """Whether the current GPU computes in bfloat16."""
    return is_available() and get_device_capability()[0] >= 8


def memory_allocated(device=None):
    """The bytes that tensors and CuPy arrays of a GPU hold; 0 where there is no GPU."""
    return _pool(device, "used_bytes")


def memory_reserved(device=None):
    """The bytes that CuPy's pool holds on a GPU; 0 where there is no GPU."""
    return _pool(device, "total_bytes")


def _pool(device, what):
    if not is_available():
        return 0
    cp = _cuda.cupy()
    with cp.cuda.Device(_index(device)):
        value = getattr(cp.get_default_memory_pool(), what)()
    key = _index(device), what
    _peaks[key] = max(value, _peaks.get(key, 0))
    return value


_peaks = {}


def max_memory_allocated(device=None):
    """The largest ``memory_allocated`` seen so far, by what was asked of it and at this moment, in bytes."""
    now = memory_allocated(device)
    return _peaks.get((_index(device), "used_bytes"), now) if is_available() else 0


def max_memory_reserved(device=None):
    """The bytes that CuPy's pool holds, which only ``empty_cache`` makes less."""
    now = memory_reserved(device)
    return _peaks.get((_index(device), "total_bytes"), now) if is_available() else 0


def reset_peak_memory_stats(device=None):
    """Forget the largest values seen."""
    _peaks.clear()


def empty_cache():
    """Give the pool's free blocks back to the driver; nothing happens where there is no GPU."""
    if is_available():
        _cuda.cupy().get_default_memory_pool().free_all_blocks()


def manual_seed(seed):
    """Seed the current GPU's generator; nothing happens where there is no GPU."""
    if is_available():
        generator_of(_device("cuda", current_device())).manual_seed(seed)


def manual_seed_all(seed):
    """Seed every GPU's generator; nothing happens where there is no GPU."""
    for i in range(device_count()):
        generator_of(_device("cuda", i)).manual_seed(seed)


class Stream:
    """A CUDA stream; as a context manager it is the current one within."""

    def __init__(self, device=None, priority=0, _stream=None):
        self.cupy = _stream or _cuda.cupy().cuda.Stream(non_blocking=True)

    def synchronize(self):
        """Wait until all work of this stream is done."""
        self.cupy.synchronize()

    def query(self):
        """Whether all work of this stream is done."""
        return self.cupy.done

    def wait_event(self, event):
        """Later work of this stream waits for ``event``."""
        self.cupy.wait_event(event.cupy)

    def wait_stream(self, stream):
        """Later work of this stream waits for what ``stream`` has been asked so far."""
        self.cupy.wait_event(stream.record_event().cupy)

    def record_event(self, event=None):
        """An event at this place of the stream."""
        event = event or Event()
        event.record(self)
        return event

    def __enter__(self):
        self.cupy.__enter__()
        return self

    def __exit__(self, *exception):
        self.cupy.__exit__(*exception)


class Event:
    """A mark in a stream, to wait for or to time with."""

    def __init__(self, enable_timing=False, blocking=False, interprocess=False):
        self.cupy = _cuda.cupy().cuda.Event(block=blocking, disable_timing=not enable_timing, interprocess=interprocess)

    def record(self, stream=None):
        """Put the mark into a stream, the current one by default."""
        self.cupy.record(None if stream is None else stream.cupy)

    def wait(self, stream=None):
        """Later work of a stream waits for this event."""
        (stream or current_stream()).wait_event(self)

    def query(self):
        """Whether the event has happened."""
        return self.cupy.done

    def synchronize(self):
        """Wait for the event."""
        self.cupy.synchronize()

    def elapsed_time(self, end):
        """The milliseconds from this event to ``end``."""
        return _cuda.cupy().cuda.get_elapsed_time(self.cupy, end.cupy)


def current_stream(device=None):
    """The stream that work goes to: CuPy's current one."""
    return Stream(_stream=_cuda.cupy().cuda.get_current_stream())


@contextlib.contextmanager
def stream(stream):
    """Within, ``stream`` is the current one; None changes nothing."""
    with contextlib.nullcontext() if stream is None else stream:
        yield
