"""The names of ``torch.cuda``, on CuPy's devices, streams and memory pool."""

import contextlib
import importlib

from ..backend import cuda as _cuda
from ..backend.cuda import current_device, device_count, is_available
from ..backend.device import device as _device
from ..errors import OutOfMemoryError
from ..ops.legacy import CUDA_TYPES
from . import memory, random
from .streams import (
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    get_stream_from_external,
    is_current_stream_capturing,
    set_stream,
    stream,
)
from .streams import index_of as _index

__all__ = [
    "Event",
    "ExternalStream",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "can_device_access_peer",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_stream_from_external",
    "init",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_tf32_supported",
    "set_device",
    "set_stream",
    "stream",
    "synchronize",
    *CUDA_TYPES,
    *memory.__all__,
    *random.__all__,
]


globals().update(CUDA_TYPES)  # FloatTensor and its like
for _part in (memory, random):
    globals().update({name: getattr(_part, name) for name in _part.__all__})


def __getattr__(name):
    if name == "amp":
        return importlib.import_module(".amp", __name__)
    if name == "default_generators":
        return tuple(random._generator(i) for i in range(device_count()))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def init():
    """Make the CUDA device ready; RuntimeError where there is none."""
    _cuda.cupy()


def is_initialized():
    """Whether CuPy was loaded and has a device."""
    return _cuda.WATCH is not None


def set_device(device):
    """Make a GPU the current one; a negative index changes nothing."""
    if not (isinstance(device, int) and device < 0):
        _cuda.use(_index(device))


class device(contextlib.ContextDecorator):
    """Within, a GPU is the current one; with a negative index, or None, the one that is."""

    def __init__(self, device):
        self.idx = -1 if device is None or (isinstance(device, int) and device < 0) else _index(device)

    def __enter__(self):
        self.prev_idx = current_device() if self.idx >= 0 else -1
        if self.idx >= 0:
            _cuda.use(self.idx)

    def __exit__(self, *exception):
        if self.idx >= 0:
            _cuda.use(self.prev_idx)


class device_of(device):
    """Within, the GPU of a tensor is the current one; one of the CPU changes nothing."""

    def __init__(self, obj):
        super().__init__(obj.get_device() if obj.is_cuda else -1)


def synchronize(device=None):
    """Wait until a GPU has done all that was asked of it."""
    _cuda.cupy().cuda.Device(_index(device)).synchronize()


def get_device_properties(device=None):
    """The properties of a GPU: name, total_memory, major, minor, multi_processor_count, ..."""
    cp = _cuda.cupy()
    index = _index(device)
    if not 0 <= index < device_count():
        raise AssertionError("Invalid device id")
    return _Properties(cp.cuda.runtime.getDeviceProperties(index))


class _Properties:
    """CUDA's own fields, and PyTorch's names for some of them."""

    NAMES = {
        "total_memory": "totalGlobalMem",
        "multi_processor_count": "multiProcessorCount",
        "warp_size": "warpSize",
        "max_threads_per_multi_processor": "maxThreadsPerMultiProcessor",
        "max_threads_per_block": "maxThreadsPerBlock",
        "regs_per_multiprocessor": "regsPerMultiprocessor",
        "shared_memory_per_block": "sharedMemPerBlock",
        "shared_memory_per_block_optin": "sharedMemPerBlockOptin",
        "shared_memory_per_multiprocessor": "sharedMemPerMultiprocessor",
        "L2_cache_size": "l2CacheSize",
        "is_integrated": "integrated",
        "is_multi_gpu_board": "isMultiGpuBoard",
        "clock_rate": "clockRate",
        "memory_clock_rate": "memoryClockRate",
        "memory_bus_width": "memoryBusWidth",
        "pci_bus_id": "pciBusID",
        "pci_device_id": "pciDeviceID",
        "pci_domain_id": "pciDomainID",
    }

    def __init__(self, facts):
        self.__dict__.update(facts)
        self.name = facts["name"].decode()
        self.__dict__.update({name: facts[own] for name, own in self.NAMES.items() if own in facts})

    def __repr__(self):
        memory = self.total_memory // 2**20
        version = f"major={self.major}, minor={self.minor}"
        size = f"total_memory={memory}MB, multi_processor_count={self.multi_processor_count}"
        return f"_CudaDeviceProperties(name='{self.name}', {version}, {size})"


def get_device_name(device=None):
    """The name of a GPU."""
    return get_device_properties(device).name


def get_device_capability(device=None):
    """The compute capability of a GPU, ``(major, minor)``."""
    facts = get_device_properties(device)
    return facts.major, facts.minor


def can_device_access_peer(device, peer_device):
    """Whether one GPU can read the memory of another."""
    return bool(_cuda.cupy().cuda.runtime.deviceCanAccessPeer(_index(device), _index(peer_device)))


def get_arch_list():
    """The architectures that kernels are built for on demand; empty where there is no GPU."""
    from ..backend.kernels.nvrtc import ARCHITECTURES

    return [f"sm_{a}" for a in ARCHITECTURES] if is_available() else []


def is_bf16_supported(including_emulation=True):
    """Whether the current GPU computes in bfloat16."""
    return is_available() and (including_emulation or get_device_capability()[0] >= 8)


def is_tf32_supported():
    """Whether the current GPU multiplies float32 matrices in TF32."""
    return is_available() and get_device_capability()[0] >= 8


def ipc_collect():
    """Accepted: no memory is shared with other processes."""
