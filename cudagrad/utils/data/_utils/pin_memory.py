"""Batches in page-locked memory, from which copies to a GPU are fast and need not be waited for."""

import collections
import queue
import threading

from ....core.tensor import Tensor
from .collate import rebuilt
from .exceptions import ExceptionWrapper
from .pool import Timeout


def pin_memory(data, device=None):
    """``data`` with its tensors, and whatever else has ``pin_memory()``, in pinned memory."""
    if isinstance(data, Tensor) or hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, collections.abc.Mapping):
        return rebuilt(data, [(key, pin_memory(value, device)) for key, value in data.items()], pairs=True)
    if isinstance(data, tuple):
        values = [pin_memory(d, device) for d in data]
        return type(data)(*values) if hasattr(data, "_fields") else type(data)(values)
    if isinstance(data, collections.abc.Sequence):
        return rebuilt(data, [pin_memory(d, device) for d in data], pairs=False)
    return data


class Pinning:
    """A pool whose answers a thread has copied into pinned memory while the user computed."""

    def __init__(self, pool):
        self.pool, self.answers, self.closing = pool, queue.SimpleQueue(), threading.Event()
        self.send, self.pids = pool.send, pool.pids
        self.thread = threading.Thread(target=_pin_all, args=(pool, self.answers, self.closing), daemon=True)
        self.thread.start()

    epoch = property(lambda self: self.pool.epoch, lambda self, epoch: setattr(self.pool, "epoch", epoch))

    def receive(self, timeout):
        """As the pool's."""
        try:
            head, value = self.answers.get(timeout=timeout)
        except queue.Empty:
            raise Timeout from None
        if head is None:
            raise value
        return head, value

    def close(self):
        """End the thread, then the workers."""
        self.closing.set()
        if self.thread is not threading.current_thread():
            self.thread.join()
        self.pool.close()


def _pin_all(pool, answers, closing):
    while not closing.is_set():
        try:
            head, value = pool.receive(0.1)
        except Timeout:
            continue
        except Exception as error:
            answers.put((None, error))
            return
        try:
            value = value if isinstance(value, ExceptionWrapper) else pin_memory(value)
        except Exception:
            value = ExceptionWrapper(where="in pin memory thread")
        answers.put((head, value))
        del value
