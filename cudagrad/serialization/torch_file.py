"""PyTorch's own files, read without PyTorch: the zip archives of today and the pickles in a row of before 1.6."""

import collections
import io
import os
import pickle
import struct
import zipfile

import numpy as np

from .. import dtypes
from ..core.tensor import Tensor, wrap
from . import memory
from .archive import Damaged, damaged, read_array
from .unpickle import Name, Unpickler, refuse

ZIP = b"PK\x03\x04"
MAGIC = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."  # the pickle of 0x1950a86a20f9469cfc6c
PROTOCOL = 1001
BROKEN = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, EOFError, struct.error)
BROKEN += (UnicodeDecodeError, zipfile.BadZipFile, NotImplementedError, RuntimeError, ZeroDivisionError)


def is_one(first):
    """Whether a file that begins with these bytes is PyTorch's, or another pickle."""
    if first.startswith(ZIP) or first[257:262] == b"ustar":
        return True
    return first[:1] == b"\x80" and first[8:9] != b"{"  # a safetensors header may well be 0x80 bytes long


def load_torch(stream, first, name, move, mmap):
    """The object of a PyTorch file, which begins with the bytes ``first``.

    Raises      UnpicklingError for a name that is not on the list; RuntimeError for a damaged file
    """
    if first[257:262] == b"ustar":
        raise RuntimeError("Cannot use ``weights_only=True`` with files saved in the legacy .tar format.")
    try:
        if first.startswith(ZIP):
            return _Zip(stream, name, move, mmap).load()
        return _Legacy(stream, name, move).load()
    except memory.Unplaced as unplaced:
        raise unplaced.error from None
    except (pickle.UnpicklingError, Damaged):
        raise
    except BROKEN as error:
        raise damaged(name, f"PyTorch writes none such ({type(error).__name__}: {error})") from error


# ---- tensors


class _Kind:
    """A storage class of a pickle; ``dtype`` None: bytes."""

    def __init__(self, dtype):
        self.dtype = dtype


class _Typed:
    """A storage: its bytes, and the dtype its offsets count in."""

    def __init__(self, root, dtype):
        self.root, self.dtype = root, dtype


def _tensor(storage, offset, size, stride, requires_grad=False, hooks=None, metadata=None):
    return _tensor_of(storage, offset, size, stride, requires_grad, storage.dtype, metadata)


def _tensor_v3(storage, offset, size, stride, requires_grad, hooks, dtype, metadata=None):
    return _tensor_of(storage, offset, size, stride, requires_grad, dtype, metadata)


def _tensor_of(storage, offset, size, stride, requires_grad, dtype, metadata):
    if not isinstance(storage, _Typed) or not isinstance(dtype, dtypes.dtype):
        raise refuse(f"a tensor over a {type(storage).__name__} of {dtype!r}")
    steps = tuple(s * dtype.itemsize for s in stride)
    array = memory.view(storage.root, dtype, tuple(size), steps, offset * dtype.itemsize)
    if metadata:
        array = array.conj() if metadata.get("conj") else array
        array = -array if metadata.get("neg") else array
    t = wrap(array)
    return t.requires_grad_() if requires_grad is True else t


def _parameter(data=None, requires_grad=True, hooks=None, state=None):
    from ..nn.parameter import Parameter

    if not isinstance(data, Tensor):
        raise refuse(f"a Parameter of a {type(data).__name__}")
    made = Parameter(data.detach(), requires_grad=requires_grad is True)
    _attributes(made, state or {})
    return made


def _attributes(made, state):
    for key, value in state.items():
        if not isinstance(key, str) or key.startswith("_") or hasattr(type(made), key):
            raise refuse(f"the attribute {key!r} of a {type(made).__name__}")
        made.__dict__[key] = value


def _of_type(function, kind, args, state):
    """A Tensor or Parameter with attributes of the user's."""
    if not isinstance(function, Name) or function.call is None or kind not in ("Tensor", "Parameter"):
        raise refuse(f"a tensor of the type {kind!r}")
    made = function.call(*args)
    if kind == "Parameter" and type(made) is Tensor:
        made = _parameter(made, made.requires_grad)
    if isinstance(state, dict):
        _attributes(made, {k: v for k, v in state.items() if k != "_is_param"})
    return made


NAMES = {
    **{f"torch.{legacy}Storage": Name(_Kind(d)) for legacy, d in dtypes.OF_LEGACY.items()},
    **{f"torch.cuda.{legacy}Storage": Name(_Kind(d)) for legacy, d in dtypes.OF_LEGACY.items()},
    "torch.storage.UntypedStorage": Name(_Kind(None)),
    "torch.UntypedStorage": Name(_Kind(None)),
    "torch._utils._rebuild_tensor": Name(call=_tensor),
    "torch._utils._rebuild_tensor_v2": Name(call=_tensor),
    "torch._utils._rebuild_tensor_v3": Name(call=_tensor_v3),
    "torch._utils._rebuild_parameter": Name(call=_parameter),
    "torch._utils._rebuild_parameter_with_state": Name(call=_parameter),
    "torch._tensor._rebuild_from_type_v2": Name(call=_of_type),
    "torch.Tensor": Name("Tensor"),
    "torch.nn.parameter.Parameter": Name("Parameter", _parameter),
    "torch.serialization._get_layout": Name(call=lambda layout: layout),
}


def _named_storage(pid, parts):
    """The fields of a persistent id; UnpicklingError where it names no storage."""
    if not isinstance(pid, tuple) or len(pid) != parts or pid[0] != "storage" or not isinstance(pid[1], _Kind):
        kind = pid[0] if isinstance(pid, tuple) and pid else pid
        raise refuse(f"a persistent id of {kind!r}; only storages of known dtypes are read")
    if type(pid[4]) is not int or pid[4] < 0:
        raise refuse(f"a storage of {pid[4]!r} elements")
    d = pid[1].dtype
    return d, str(pid[2]), str(pid[3]), pid[4] * (d.itemsize if d else 1)


# ---- the zip archive


class _Zip:
    """``archive/data.pkl`` names storages that lie uncompressed in ``archive/data/0`` and so on."""

    def __init__(self, stream, name, move, mmap):
        self.stream, self.name, self.move, self.mmap = stream, name, move, mmap
        self.storages = {}

    def load(self):
        self.zip = zipfile.ZipFile(self.stream)
        self.records = self._records()
        if "constants.pkl" in self.records:
            raise Damaged("Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``.")
        self.swap = self._text("byteorder", "little") == "big"
        return Unpickler(io.BytesIO(self.zip.read(self.records["data.pkl"])), NAMES, self._storage).load()

    def _records(self):
        """Name inside the archive's folder -> zip entry; together they cannot be longer than the file."""
        found = {}
        for info in self.zip.infolist():
            record = info.filename.partition("/")[2]
            if record in found:
                raise damaged(self.name, f"the record {record!r} stands there twice")
            if info.compress_type != zipfile.ZIP_STORED:
                raise damaged(self.name, f"the record {record!r} is compressed, which PyTorch never does")
            found[record] = info
        size = self.stream.seek(0, os.SEEK_END)
        if sum(i.file_size for i in found.values()) > size:
            raise damaged(self.name, f"its records are longer than its {size} bytes")
        return found

    def _text(self, record, otherwise):
        return self.zip.read(self.records[record]).decode() if record in self.records else otherwise

    def _storage(self, pid):
        d, key, where, count = _named_storage(pid, 5)
        if key not in self.storages:
            root = self._bytes(self.records[f"data/{key}"], count)
            if self.swap and d is not None and d.itemsize > 1:
                root = _swapped(root, d)
            self.storages[key] = memory.moved(self.move, root, where)
        return _Typed(self.storages[key], d)

    def _bytes(self, info, count):
        if info.file_size < count:
            raise damaged(self.name, f"the record {info.filename!r} has {info.file_size} bytes of {count}")
        if self.mmap and count:
            self.stream.seek(info.header_offset + 26)
            names = struct.unpack("<HH", self.stream.read(4))
            start = info.header_offset + 30 + sum(names)
            return np.memmap(self.stream, np.uint8, "c", start, (count,)).view(np.ndarray)
        with self.zip.open(info) as record:
            out = read_array(record, count, self.name)
            record.read(1)  # at the end of the record its CRC is looked at
            return out


def _swapped(root, d):
    part = d.to_real().itemsize
    return np.ascontiguousarray(root.reshape(-1, part)[:, ::-1]).reshape(-1)


# ---- pickles in a row


class _Bounded:
    """The rest of a file, of which a pickle cannot ask for more than there is."""

    def __init__(self, stream):
        self.stream = stream
        here = stream.tell()
        self.end = stream.seek(0, os.SEEK_END)
        stream.seek(here)

    def left(self):
        return self.end - self.stream.tell()

    def read(self, count):
        return self.stream.read(min(count, self.left()))

    def readline(self):
        return self.stream.readline(1 << 20)

    def tell(self):
        return self.stream.tell()


class _Legacy:
    """Magic number, protocol, system, object, the storages' names; then the bytes of each in that order."""

    def __init__(self, stream, name, move):
        self.stream, self.name, self.move = _Bounded(stream), name, move
        self.storages = collections.OrderedDict()  # key -> (root, device's name, itemsize)

    def load(self):
        head = self.stream.read(len(MAGIC))
        if head != MAGIC:
            raise refuse("Invalid magic number; corrupt file?")
        if self._plain() != PROTOCOL:
            raise damaged(self.name, "it is of a PyTorch before 0.4")
        system = self._plain()
        if not system.get("little_endian", True):
            raise damaged(self.name, "it was written on a big-endian machine, before PyTorch 1.6")
        self.first = self.stream.tell()
        self._measure()
        self.stream.stream.seek(self.first)
        return Unpickler(self.stream, NAMES, self._storage).load()

    def _plain(self):
        return Unpickler(self.stream, {}, _no_id).load()

    def _measure(self):
        """First pass: read the storages that stand behind the object, so that the second pass finds them filled."""
        Unpickler(self.stream, {k: Name(v.value, v.call and _nothing) for k, v in NAMES.items()}, self._declare).load()
        keys = self._plain()
        if sorted(map(str, keys)) != sorted(self.storages):
            raise damaged(self.name, "the storages it names are not those it holds")
        for key in map(str, keys):
            where, itemsize, count = self.storages[key]
            elements = struct.unpack("<q", self.stream.read(8))[0]
            if elements * itemsize != count or count > self.stream.left():
                raise damaged(self.name, f"the storage {key} has {elements} elements; {count} bytes were named")
            self.storages[key] = memory.moved(self.move, read_array(self.stream.stream, count, self.name), where)

    def _declare(self, pid):
        d, key, where, count = _named_storage(pid, 6)
        self.storages[key] = (where, d.itemsize if d else 1, count)

    def _storage(self, pid):
        d, key, _, count = _named_storage(pid, 6)
        root, of_view = self.storages[key], pid[5]
        if of_view is not None:
            _, offset, size = of_view
            begin, end = offset * d.itemsize, (offset + size) * d.itemsize
            if not 0 <= begin <= end <= count:
                raise damaged(self.name, f"a view of elements {offset} to {offset + size} of the storage {key}")
            root = root[begin:end]
        return _Typed(root, d)


def _nothing(*args):
    """What every name makes in the first pass."""


def _no_id(pid):
    raise refuse(f"a persistent id {pid!r} where none belongs")
