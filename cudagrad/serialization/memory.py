"""Which tensors share which memory, how a view is made again, and on which device."""

import ctypes

import numpy as np

from .. import dtypes
from ..backend import data_ptr, device, device_of, memory_of, to_device, xp_of
from ..errors import text


class Span:
    """A run of bytes that one or several tensors lie in."""

    def __init__(self, root, low, high):
        self.root, self.low, self.high, self.device = root, low, high, device_of(root)

    def holds(self, other):
        return self.device == other.device and self.low <= other.low and other.high <= self.high

    def bytes(self):
        """A flat uint8 NumPy array over the bytes, valid as long as this span; no copy of what the host has."""
        if self.high == self.low:
            return np.empty(0, np.uint8)
        if _on_gpu(self.root):
            start = self.root.data + (self.low - self.root.data.ptr)
            return to_device(xp_of(self.root).ndarray((self.high - self.low,), np.uint8, start), device.CPU)
        return np.frombuffer((ctypes.c_uint8 * (self.high - self.low)).from_address(self.low), np.uint8)


def _on_gpu(array):
    return not isinstance(array, np.ndarray)


def _extent(array):
    """(first, one past the last) address of an array's elements."""
    low = high = data_ptr(array)
    if array.size == 0:
        return low, low
    for n, step in zip(array.shape, array.strides):
        low, high = (low, high + (n - 1) * step) if step > 0 else (low + (n - 1) * step, high)
    return low, high + array.itemsize


def spans(arrays):
    """For each array the ``Span`` it lies in; arrays over one piece of memory get the same one.

    A span is as long as the memory's owner: a saved view of one element saves the whole, as in PyTorch. Ownership is
    told by addresses, since a chain of NumPy views may lose its root (``as_strided``).
    """
    own = [Span(root := memory_of(a), *_extent(root)) for a in arrays]
    place, current = {}, None
    for i in sorted(range(len(own)), key=lambda i: (str(own[i].device), own[i].low, -own[i].high)):
        span = own[i]
        if current is None or span.high == span.low or not current.holds(span):
            current = span if span.high > span.low else current
            place[i] = span
        else:
            place[i] = current
    return [place[i] for i in range(len(own))]


def view(root, d, shape, strides, offset):
    """The array of dtype ``d`` (ours) that lies in the flat uint8 array ``root``; steps and offset in bytes.

    Raises      ValueError where it would reach outside
    """
    if any(n < 0 for n in shape) or len(shape) != len(strides) or len(shape) > 64:
        raise ValueError(f"no tensor has the shape {list(shape)} with the steps {list(strides)}")
    if 0 not in shape:
        low = offset + sum(min(0, (n - 1) * s) for n, s in zip(shape, strides))
        high = offset + sum(max(0, (n - 1) * s) for n, s in zip(shape, strides)) + d.itemsize
        if low < 0 or high > root.nbytes:
            raise ValueError(f"a tensor of shape {list(shape)} takes bytes {low} to {high} of {root.nbytes}")
    elif not 0 <= offset <= root.nbytes:
        raise ValueError(f"a tensor begins at byte {offset} of {root.nbytes}")
    if _on_gpu(root):
        return xp_of(root).ndarray(shape, d.numpy, root.data + offset, strides)
    if root.nbytes == 0:
        return np.empty(shape, d.numpy)
    made = np.ndarray(shape, d.numpy, buffer=root, offset=offset, strides=strides)
    return made if root.__class__ is np.ndarray else made.view(root.__class__)


def contiguous_strides(shape, itemsize):
    """Steps in bytes of a row-major array."""
    steps = []
    for n in reversed(shape):
        steps.insert(0, itemsize)
        itemsize *= max(n, 1)
    return tuple(steps)


# ---- where to


class Storage:
    """What a ``map_location`` function gets and returns: some bytes, on a device."""

    def __init__(self, root):
        self.root = root

    device = property(lambda self: device_of(self.root))

    def nbytes(self):
        return self.root.nbytes

    def cpu(self):
        return Storage(place(self.root, "cpu"))

    def cuda(self, device=None, non_blocking=False):
        return Storage(place(self.root, "cuda" if device is None else str(device_named(device))))

    def to(self, *, device, non_blocking=False):
        return Storage(place(self.root, str(device_named(device))))


def device_named(where):
    return device(where)


def place(root, where):
    """``root`` on the device named ``where``; RuntimeError, in PyTorch's words, where this machine has none such."""
    target = device(where)
    if target.type == "cuda" and device_of(root) != target:
        _require_cuda(target)
    return to_device(root, target)


def _require_cuda(target):
    from ..backend import cuda

    count = cuda.device_count()
    if count == 0:
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are "
            "running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your "
            "storages to the CPU."
        )
    if (target.index or 0) >= count:
        raise RuntimeError(
            f"Attempting to deserialize object on CUDA device {target.index} but torch.cuda.device_count() is {count}. "
            "Please use torch.load with map_location to map your storages to an existing device."
        )


def mover(map_location):
    """``map_location`` (None, a device or its name, a dict of names, a function) as a function (root, name) -> root."""
    if map_location is None:
        return place
    if isinstance(map_location, (str, device)):
        target = str(device(map_location))
        return lambda root, where: place(root, target)
    if isinstance(map_location, dict):
        table = {str(k): str(v) for k, v in map_location.items()}
        return lambda root, where: place(root, table.get(where, where))
    if not callable(map_location):
        raise TypeError(
            text(
                f"'{type(map_location).__name__}' object is not callable",
                "need map_location = a device, its name, a dict from saved to wanted names, or a function",
            )
        )

    def ask(root, where):
        answer = map_location(Storage(root), where)
        return place(root, where) if answer is None else answer.root

    return ask


class Unplaced(Exception):
    """Carries ``error``, which the move to a device raised: the file is not to blame."""

    def __init__(self, error):
        self.error = error


def moved(move, root, where):
    """``move(root, where)``; what it raises comes as ``Unplaced``."""
    try:
        return move(root, where)
    except Exception as error:
        raise Unplaced(error) from error


def dtype_named(name):
    """Our dtype of that name, None where there is none."""
    found = getattr(dtypes, name, None) if isinstance(name, str) else None
    return found if isinstance(found, dtypes.dtype) else None
