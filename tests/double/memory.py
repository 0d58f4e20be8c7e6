"""GPUs, their memory, streams and events, in the words of ``cupy.cuda``."""

import ctypes
import threading
import time
import types
import weakref

import numpy as np


class CUDARuntimeError(RuntimeError):
    """What CuPy raises for an error of the driver."""


class OutOfMemoryError(MemoryError):
    """What CuPy's pool raises."""


class Memory:
    """A piece of a GPU's memory, counted by its pool as long as it lives; ``host`` is the NumPy memory behind it."""

    def __init__(self, pool, host, device_id):
        self.host, self.device_id, self.copies = host, device_id, []
        size = pool.allocator(host.nbytes)
        weakref.finalize(self, pool.give, device_id, size).atexit = False


class MemoryPointer:
    """A place in a GPU's memory."""

    def __init__(self, mem, offset):
        self.mem, self.offset = mem, offset

    @property
    def ptr(self):
        return self.mem.host.__array_interface__["data"][0] + self.offset

    def copy_from_host_async(self, mem, size, stream=None):
        source = (ctypes.c_char * size).from_address(getattr(mem, "value", mem))
        self.mem.host.reshape(-1).view(np.uint8)[self.offset : self.offset + size] = np.frombuffer(source, np.uint8)
        self.mem.copies.append((size, stream.ptr))

    def __add__(self, offset):
        return MemoryPointer(self.mem, self.offset + offset)

    @property
    def device_id(self):
        return self.mem.device_id


class Pool:
    """The figures of a memory pool; a block that is given back stays with the pool until it is asked to free it."""

    def __init__(self, current):
        self._current, self._used, self._total, self.limit = current, {}, {}, None
        self.allocator = self.malloc

    def malloc(self, size):
        size, device_id = -(-size // 512) * 512, self._current()
        used = self._used.get(device_id, 0) + size
        if self.limit is not None and used > self.limit[1] * PROPERTIES["totalGlobalMem"]:
            raise OutOfMemoryError(size, used)
        self._used[device_id] = used
        self._total[device_id] = max(self._total.get(device_id, 0), used)
        return size

    def set_limit(self, size=None, fraction=None):
        self.limit = size, fraction

    def give(self, device_id, size):
        self._used[device_id] -= size

    def used_bytes(self):
        return self._used.get(self._current(), 0)

    def total_bytes(self):
        return self._total.get(self._current(), 0)

    def free_bytes(self):
        return self.total_bytes() - self.used_bytes()

    def free_all_blocks(self, stream=None):
        self._total[self._current()] = self.used_bytes()


class PinnedMemoryPointer(bytearray):
    """Page-locked memory."""

    @property
    def ptr(self):
        return np.frombuffer(self, np.uint8).__array_interface__["data"][0]

    def size(self):
        return len(self)


PROPERTIES = {
    "name": b"Double", "totalGlobalMem": 1 << 33, "multiProcessorCount": 3, "major": 9, "minor": 0, "warpSize": 32,
    "sharedMemPerBlock": 48 << 10, "sharedMemPerBlockOptin": 227 << 10, "regsPerMultiprocessor": 65536,
    "maxThreadsPerMultiProcessor": 2048, "l2CacheSize": 1 << 20, "integrated": 0, "isMultiGpuBoard": 0,
    "pciBusID": 1, "pciDeviceID": 0, "pciDomainID": 0, "maxThreadsPerBlock": 1024, "clockRate": 1, "memoryClockRate": 1,
    "memoryBusWidth": 1, "sharedMemPerMultiprocessor": 228 << 10, "uuid": bytes(16),
}  # fmt: skip


def make_cuda(double, count):
    """The module ``cupy.cuda`` of ``count`` GPUs."""
    state = threading.local()

    def current():
        return getattr(state, "device", 0)

    def use(index):
        if not 0 <= index < count:
            raise CUDARuntimeError("cudaErrorInvalidDevice: invalid device ordinal")
        state.device = index

    class Device:
        def __init__(self, device=None):
            self.id = current() if device is None else int(device)

        def __int__(self):
            return self.id

        def __eq__(self, other):
            return isinstance(other, Device) and other.id == self.id

        __hash__ = None

        def __enter__(self):
            self._before = [*getattr(self, "_before", ()), current()]
            use(self.id)
            return self

        def __exit__(self, *args):
            use(self._before.pop())

        def use(self):
            use(self.id)

        def synchronize(self):
            double.waits.append("Device.synchronize")

        @property
        def attributes(self):
            return {"MultiProcessorCount": PROPERTIES["multiProcessorCount"], "MaxSharedMemoryPerBlockOptin": 227 << 10}

        @property
        def compute_capability(self):
            return "90"

        @property
        def mem_info(self):
            return runtime.memGetInfo()

        @property
        def pci_bus_id(self):
            return f"0000:0{self.id + 1}:00.0"

    class _Stream:
        def __init__(self, ptr):
            self.ptr, self.device_id = ptr, current()

        @property
        def done(self):
            return True

        def is_capturing(self):
            return False

        def synchronize(self):
            double.waits.append("Stream.synchronize")

        def record(self, event=None):
            event = Event() if event is None else event
            event.record(self)
            return event

        def wait_event(self, event):
            double.stream_calls.append(("wait_event", self.ptr, event))

        def use(self):
            streams()[current()] = self
            return self

        def __enter__(self):
            self._before = [*getattr(self, "_before", ()), (current(), get_current_stream())]
            return self.use()

        def __exit__(self, *args):
            device_id, stream = self._before.pop()
            streams()[device_id] = stream

        def __eq__(self, other):
            return isinstance(other, _Stream) and other.ptr == self.ptr

        def __hash__(self):
            return hash(self.ptr)

    class Stream(_Stream):
        null = None
        numbers = iter(range(0x1000, 1 << 30, 16))

        def __init__(self, null=False, non_blocking=False, ptds=False, priority=None):
            super().__init__(0 if null else next(Stream.numbers))
            self.non_blocking, self.priority = non_blocking, priority

    class ExternalStream(_Stream):
        def __init__(self, ptr, device_id=-1):
            super().__init__(ptr)

    Stream.null = Stream(null=True)

    def streams():
        if not hasattr(state, "streams"):
            state.streams = {}
        return state.streams

    def get_current_stream(device_id=-1):
        return streams().get(current() if device_id < 0 else device_id, Stream.null)

    class Event:
        def __init__(self, block=False, disable_timing=False, interprocess=False):
            self.disable_timing, self.time, self.ptr = disable_timing, None, id(self)

        def record(self, stream=None):
            stream = get_current_stream() if stream is None else stream
            double.stream_calls.append(("record", stream.ptr, self))
            self.time = time.perf_counter()

        @property
        def done(self):
            return True

        def synchronize(self):
            double.waits.append("Event.synchronize")

    def get_elapsed_time(start_event, end_event):
        for event in (start_event, end_event):
            if event.disable_timing or event.time is None:
                raise CUDARuntimeError("cudaErrorInvalidResourceHandle: invalid resource handle")
        return (end_event.time - start_event.time) * 1e3

    def alloc_pinned_memory(size):
        return PinnedMemoryPointer(size)

    def properties(device):
        if not 0 <= device < count:
            raise CUDARuntimeError("cudaErrorInvalidDevice: invalid device ordinal")
        return dict(PROPERTIES)

    runtime = types.SimpleNamespace(
        CUDARuntimeError=CUDARuntimeError,
        getDeviceCount=lambda: count,
        getDevice=current,
        setDevice=use,
        getDeviceProperties=properties,
        memGetInfo=lambda: ((1 << 33) - double.pool.total_bytes(), 1 << 33),
        deviceCanAccessPeer=lambda device, peer: 1,
        free=lambda ptr: None,
        runtimeGetVersion=lambda: 12090,
        driverGetVersion=lambda: 12090,
    )
    double.pool = Pool(current)
    return types.SimpleNamespace(
        Device=Device,
        Stream=Stream,
        ExternalStream=ExternalStream,
        Event=Event,
        MemoryPointer=MemoryPointer,
        PinnedMemoryPointer=PinnedMemoryPointer,
        set_allocator=lambda allocator=None: setattr(double.pool, "allocator", allocator or double.pool.malloc),
        get_allocator=lambda: double.pool.allocator,
        runtime=runtime,
        get_current_stream=get_current_stream,
        get_elapsed_time=get_elapsed_time,
        alloc_pinned_memory=alloc_pinned_memory,
        is_available=lambda: True,
    )
