"""Streams and events: CuPy's, under PyTorch's names."""

import contextlib
import functools

from ..backend import cuda as _cuda
from ..backend.device import device as Device


def index_of(device):
    """The index of the GPU that ``device`` (None, int, str or device) names: the current one where it names none.

    Raises      ValueError for a device that is no GPU
    """
    if device is None:
        return _cuda.current_device()
    named = Device(device)
    if named.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {named}")
    return named.index if named.index is not None else _cuda.current_device()


class Stream:
    """A queue of a GPU's work; within ``with stream:`` it is the current one, also for CuPy.

    ``stream.cupy`` is CuPy's own, ``cuda_stream`` the driver's handle. A lower ``priority`` goes first.
    """

    def __init__(self, device=None, priority=0, **kwargs):
        self.device = Device("cuda", index_of(device))
        if "cupy" in kwargs:
            self.cupy = kwargs.pop("cupy")
        else:
            with _cuda.on(self.device):
                self.cupy = _cuda.cupy().cuda.Stream(non_blocking=True, priority=priority)
        if kwargs:
            raise TypeError(f"Stream() got an unexpected keyword argument '{next(iter(kwargs))}'")
        self._before = []

    @property
    def cuda_stream(self):
        """The driver's handle, a number."""
        return self.cupy.ptr

    _as_parameter_ = cuda_stream

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
        self.wait_event(stream.record_event())

    def record_event(self, event=None):
        """An event at this place of the stream: ``event``, or a new one."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def __enter__(self):
        context = contextlib.ExitStack()
        context.enter_context(_cuda.on(self.device))
        context.enter_context(self.cupy)
        self._before.append(context)
        return self

    def __exit__(self, *exception):
        self._before.pop().close()

    def __eq__(self, other):
        return isinstance(other, Stream) and (self.device, self.cuda_stream) == (other.device, other.cuda_stream)

    def __hash__(self):
        return hash((self.device, self.cuda_stream))

    def __repr__(self):
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    """A stream that somebody else made, by the driver's handle; whoever made it keeps it alive."""

    def __init__(self, stream_ptr, device=None, **kwargs):
        device = Device("cuda", index_of(device))
        super().__init__(device, cupy=_cuda.cupy().cuda.ExternalStream(stream_ptr, device.index), **kwargs)


class Event:
    """A mark in a stream, to wait for or, with ``enable_timing``, to measure time with."""

    def __init__(self, enable_timing=False, blocking=False, interprocess=False, external=False):
        self._options = {"block": blocking, "disable_timing": not enable_timing, "interprocess": interprocess}

    @functools.cached_property
    def cupy(self):
        """CuPy's event, made on the GPU that is current when it is first used."""
        return _cuda.cupy().cuda.Event(**self._options)

    def record(self, stream=None):
        """Put the mark into a stream, the current one by default."""
        stream = current_stream() if stream is None else stream
        with _cuda.on(stream.device):
            self.cupy.record(stream.cupy)

    def wait(self, stream=None):
        """Later work of a stream, the current one by default, waits for this event."""
        (current_stream() if stream is None else stream).wait_event(self)

    def query(self):
        """Whether the work before the mark is done."""
        return self.cupy.done

    def synchronize(self):
        """Wait until the work before the mark is done."""
        self.cupy.synchronize()

    def elapsed_time(self, end_event):
        """The milliseconds from this event to ``end_event``, both recorded and done.

        Raises      ValueError where one was made without ``enable_timing``
        """
        if self._options["disable_timing"] or end_event._options["disable_timing"]:
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        return _cuda.cupy().cuda.get_elapsed_time(self.cupy, end_event.cupy)

    def __repr__(self):
        return f"<torch.cuda.Event {self.cupy.ptr if 'cupy' in vars(self) else 'uninitialized'}>"


def current_stream(device=None):
    """The stream that work of a GPU goes to: CuPy's current one."""
    index = index_of(device)
    return Stream(Device("cuda", index), cupy=_cuda.cupy().cuda.get_current_stream(index))


def default_stream(device=None):
    """The stream that is current where nobody has chosen another."""
    return Stream(Device("cuda", index_of(device)), cupy=_cuda.cupy().cuda.Stream.null)


def set_stream(stream):
    """Make ``stream`` the current one of its GPU in this thread; None changes nothing."""
    if stream is not None:
        with _cuda.on(stream.device):
            stream.cupy.use()


class StreamContext(contextlib.ContextDecorator):
    """Within, ``stream`` and its GPU are the current ones; None changes nothing."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        if self.stream is not None:
            self.stream.__enter__()

    def __exit__(self, *exception):
        if self.stream is not None:
            self.stream.__exit__(*exception)


def stream(stream):
    """``StreamContext`` of ``stream``."""
    return StreamContext(stream)


def get_stream_from_external(data_ptr, device=None):
    """``ExternalStream`` of a driver's handle."""
    return ExternalStream(data_ptr, device)


def is_current_stream_capturing():
    """Whether the current stream's work is being recorded into a graph."""
    return _cuda.is_available() and _cuda.cupy().cuda.get_current_stream().is_capturing()
