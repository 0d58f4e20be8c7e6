"""Objects between two processes: arrays by shared memory that is used again, the rest by pickle over a socket.

The sender keeps a few segments of anonymous memory, whose handle goes to the receiver with the first message that uses
one. The receiver's arrays lie in a segment until the last of them is gone; then it tells the sender, which writes the
next batch there. Nothing has a name in the file system, so a killed process leaves nothing behind.
"""

import collections
import io
import mmap
import os
import pickle
import tempfile
import weakref
from multiprocessing import reduction

import numpy as np

from .exceptions import ExceptionWrapper

SMALL = 64 * 1024  # bytes up to which the socket is faster than a segment
ALIGN = 64
CAN_SHARE = os.name == "posix" and hasattr(reduction, "send_handle")


def _array(raw, dtype, shape, order):
    """An array over the bytes ``raw``; strides are those of a row-major or column-major array."""
    raw = raw.obj if isinstance(raw, memoryview) else raw  # read-only at the sender's; here it is nobody else's
    flat = raw if isinstance(raw, np.ndarray) else np.frombuffer(raw, np.uint8)
    return flat.view(dtype).reshape(shape, order=order)


class _Pickler(pickle.Pickler):
    """Leaves the bytes of arrays out, also of dtypes that are not NumPy's own, which NumPy's pickling cannot."""

    def reducer_override(self, value):
        if type(value) is not np.ndarray or value.dtype.hasobject or value.dtype.itemsize == 0 or not value.size:
            return NotImplemented
        order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
        flat = np.ascontiguousarray(value.T if order == "F" else value).reshape(-1).view(np.uint8)
        return _array, (pickle.PickleBuffer(flat), value.dtype, value.shape, order)


def dumps(value):
    """(pickle, list of flat byte arrays that belong to it)."""
    stream, buffers = io.BytesIO(), []
    _Pickler(stream, protocol=5, buffer_callback=buffers.append).dump(value)
    return stream.getvalue(), [b.raw() for b in buffers]


class _Segment:
    """Memory that two processes can write."""

    def __init__(self, number, size, handle=None):
        self.number, self.size = number, size
        if handle is None:
            handle = _new_memory(size)
        self.handle = handle
        self.memory = mmap.mmap(handle, size)

    def close_handle(self):
        os.close(self.handle)


def _new_memory(size):
    if hasattr(os, "memfd_create"):
        handle = os.memfd_create("cudagrad-batch")
    else:
        with tempfile.TemporaryFile() as f:
            handle = os.dup(f.fileno())
    try:
        os.ftruncate(handle, size)
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(handle, 0, size)  # no memory is an error here, and not a bus error later
    except OSError:
        os.close(handle)
        raise
    return handle


class Sender:
    """The worker's end: ``send`` puts an object on its way, ``free`` takes back a segment that was read."""

    def __init__(self, connection, share=CAN_SHARE):
        self.connection, self.share = connection, share
        self.idle, self.busy, self.made = {}, {}, 0

    def free(self, numbers):
        for n in numbers:
            self.idle[n] = self.busy.pop(n)

    def send(self, head, value):
        """Send ``head``, a small tuple, and ``value``; what cannot be pickled raises here and nothing was sent."""
        stream, buffers = dumps(value)
        total = sum(-(-len(b) // ALIGN) * ALIGN for b in (stream, *buffers))
        if not self.share or total <= SMALL:
            self.connection.send((head, None, stream, [bytearray(b) for b in buffers], ()))
            return
        segment, retired = self._segment(total)
        sizes = _copied((stream, *buffers), segment.memory)
        new = segment.handle is not None
        self.connection.send((head, (segment.number, segment.size, new), sizes, None, retired))
        if new:
            reduction.send_handle(self.connection, segment.handle, None)
            segment.close_handle()
            segment.handle = None
        self.busy[segment.number] = segment

    def _segment(self, size):
        """(a segment of at least ``size`` bytes, numbers of smaller ones that are given up for it)."""
        fitting = [s for s in self.idle.values() if s.size >= size]
        if fitting:
            return self.idle.pop(min(fitting, key=lambda s: s.size).number), ()
        retired = tuple(self.idle)
        self.idle.clear()
        self.made += 1
        return _Segment(self.made, -(-size * 5 // 4 // mmap.PAGESIZE) * mmap.PAGESIZE), retired


def _copied(parts, memory):
    """Copy the parts into ``memory`` one after another; their sizes."""
    target, at = np.frombuffer(memory, np.uint8), 0
    for part in parts:
        size = len(part)
        target[at : at + size] = np.frombuffer(part, np.uint8)
        at += -(-size // ALIGN) * ALIGN
    return [len(part) for part in parts]


class Receiver:
    """The user's end of a connection, and the account of which segments its arrays still use.

    At most ``keep`` segments are lent to arrays at a time; beyond that arrays are copied, so that whoever keeps every
    batch does not run out of file handles.
    """

    def __init__(self, connection, keep):
        self.connection, self.keep = connection, keep
        self.segments, self.numbers = {}, []
        self.lent, self.watched, self.died = {}, {}, collections.deque()

    def released(self):
        """The numbers of segments that the sender may use again, each told once."""
        self._settle()
        numbers, self.numbers = self.numbers, []
        return numbers

    def _settle(self):
        """Take the arrays that died off the account."""
        while self.died:
            number = self.watched.pop(id(self.died.popleft()))[1]
            self.lent[number] -= 1
            if not self.lent[number]:
                del self.lent[number]
                self.numbers.append(number)

    def _lend(self, number, buffers):
        """Count the arrays over a segment: it is released when the last is gone.

        The callback is a method of C, since Python's own would swallow a Ctrl-C that came while it ran.
        """
        self.lent[number] = len(buffers)
        for b in buffers:
            ref = weakref.ref(b, self.died.append)
            self.watched[id(ref)] = ref, number

    def receive(self, wanted):
        """(head, value) of the next message; value is None and unread where ``wanted(head)`` is false.

        What cannot be unpickled comes as an ExceptionWrapper.
        """
        head, place, stream, buffers, retired = self.connection.recv()
        for n in retired:
            self.segments.pop(n, None)
        if place is None:
            return head, _loaded(stream, buffers) if wanted(head) else None
        number, size, new = place
        if new:
            handle = reduction.recv_handle(self.connection)
            try:
                self.segments[number] = mmap.mmap(handle, size)
            finally:
                os.close(handle)
        if not wanted(head):
            self.numbers.append(number)
            return head, None
        return head, self._unpacked(number, stream)

    def _unpacked(self, number, sizes):
        memory, at, parts = self.segments[number], 0, []
        for size in sizes:
            parts.append(np.ndarray((size,), np.uint8, buffer=memory, offset=at))
            at += -(-size // ALIGN) * ALIGN
        stream, *buffers = parts
        self._settle()
        if len(self.lent) >= self.keep or not buffers:
            buffers = [b.copy() for b in buffers]
            self.numbers.append(number)
        else:
            self._lend(number, buffers)
        return _loaded(stream, buffers)


def _loaded(stream, buffers):
    try:
        return pickle.loads(stream, buffers=buffers)
    except Exception:
        return ExceptionWrapper(where="while unpickling what a DataLoader worker sent")
