"""``save`` and ``load``: one file that runs no code when it is read, and PyTorch's own files too."""

import contextlib
import json
import os

import numpy as np

from .. import dtypes
from ..backend import data_ptr
from ..core.tensor import Tensor, wrap
from . import archive, memory, torch_file, tree
from .safe_globals import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "safe_globals", "save"]

VERSION = 1


def save(
    obj,
    f,
    pickle_module=None,
    pickle_protocol=None,
    _use_new_zipfile_serialization=True,
    _disable_byteorder_record=False,
):
    """Write ``obj`` to ``f``, a path or an object with ``write``: tensors, and plain values around them.

    The file is a safetensors file: any safetensors reader finds the arrays by the names of their places
    (``model.weight``), and the metadata ``cudagrad`` holds everything else as JSON. A path holds the old file or the
    new one, never a part: the file is written beside it, brought to the disk and renamed. Tensors over one piece of
    memory stay so, and the whole of that memory is saved. Values: None, bool, int, float, complex, str, bytes,
    bytearray, list, tuple, dict, OrderedDict with its attributes, Counter, defaultdict, deque, set, frozenset, range,
    slice, NumPy arrays and scalars, dtypes, devices and sizes.

    Raises      TypeError for any other object, with its place in ``obj`` and what to save in its stead;
                RuntimeError where the folder does not exist
    Differs     nothing is pickled: ``pickle_module`` and ``pickle_protocol`` are taken and not used, and whole modules
                are refused; PyTorch's own ``torch.load`` does not read the file, ``safetensors.torch.load_file`` does
    """
    if not isinstance(f, (str, os.PathLike)) and not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    encoder = tree.Encoder()
    nodes = encoder.encode(obj)
    entries, names = [], _Names()
    tensors = _tensor_entries(encoder.tensors, names, entries)
    arrays = [_array_entry(path, a, names, entries) for path, a in encoder.arrays]
    plain = {"version": VERSION, "tree": nodes, "tensors": tensors, "arrays": arrays}
    archive.write(f, archive.chunks(entries, json.dumps(plain, separators=(",", ":"), allow_nan=False)))


class _Names(set):
    """Gives each entry a name of its own, after its place in the saved object."""

    def new(self, path, ending=""):
        base = ".".join(str(part) for part in path) or "tensor"
        name = base = (base + ending).encode("utf-8", "replace").decode()
        number = 1
        while name in self or name == "__metadata__":
            number += 1
            name = f"{base}#{number}"
        self.add(name)
        return name


def _tensor_entries(tensors, names, entries):
    """Append the memory of the tensors to ``entries``; comes back with one description a tensor."""
    arrays = [t.array for _, t in tensors]
    placed = memory.spans(arrays)
    members = {}
    for i, span in enumerate(placed):
        members.setdefault(span, []).append(i)
    rows = [None] * len(arrays)
    for span, group in members.items():
        # The tensor that is the whole of the memory gives the entry its shape, so that other readers see it.
        full = [i for i in group if arrays[i].flags.c_contiguous and arrays[i].nbytes == span.high - span.low]
        path = tensors[(full or group)[0]][0]
        entry = names.new(path, "" if full else ".storage")
        first = arrays[(full or group)[0]]
        entries.append((entry, *_kind(first.dtype, first.shape if full else None, span), span.bytes()))
        for i in group:
            rows[i] = _describe(tensors[i][1], entry, span)
    return rows


def _kind(d, shape, span):
    """The safetensors dtype and shape of an entry; a complex number is two numbers in a last axis."""
    count = span.high - span.low
    part = dtypes.OF_NUMPY[d].to_real().numpy
    if shape is None:
        if count % d.itemsize:
            return "U8", (count,)
        shape = (count // d.itemsize,)
    return archive.NAMES[part], (*shape, 2) if d.kind == "c" else shape


def _describe(t, entry, span):
    a = t.array
    return {
        "entry": entry,
        "dtype": t.dtype.name,
        "shape": list(a.shape),
        "strides": list(a.strides),
        "offset": data_ptr(a) - span.low if a.size else 0,
        "requires_grad": t.requires_grad,
        "class": type(t).__name__,
        "device": str(t.device),
    }


def _array_entry(path, a, names, entries):
    entry = names.new(path)
    a = np.ascontiguousarray(a)
    kind = archive.NAMES.get(a.dtype) if a.dtype.isnative else None
    shape = a.shape if kind else (a.nbytes,)
    entries.append((entry, kind or "U8", shape, a.reshape(-1).view(np.uint8) if a.nbytes else np.empty(0, np.uint8)))
    return {"entry": entry}


def load(f, map_location=None, pickle_module=None, *, weights_only=None, mmap=None, **pickle_load_args):
    """What ``save`` wrote to ``f``, a path or a seekable object with ``read``.

    Reads files of ``save``, any other safetensors file (a dict of tensors), and PyTorch's ``.pt`` and ``.pth`` files,
    new and old, of which a short list of harmless names is believed. ``map_location``: a device or its name, a dict
    from saved to wanted names, or a function (storage, name) -> storage or None. ``mmap=True`` (paths only) maps the
    file copy-on-write instead of reading it; the checksum of the data is then not looked at.

    Raises      RuntimeError for a damaged file; pickle.UnpicklingError for a PyTorch file that names anything else,
                with the name; EOFError for an empty file
    Differs     no file is ever unpickled: ``weights_only=False`` changes nothing, ``pickle_module`` is not used
    """
    move = memory.mover(map_location)
    is_path = isinstance(f, (str, os.PathLike))
    if mmap and not is_path:
        raise ValueError("f must be a file path in order to use the mmap argument")
    name = repr(os.fspath(f)) if is_path else f"the {type(f).__name__} object"
    with open(f, "rb") if is_path else contextlib.nullcontext(f) as stream:
        start = _position(stream)
        first = stream.read(512)
        stream.seek(start)
        if not first:
            raise EOFError(f"load: {name} is empty: Ran out of input")
        if torch_file.is_one(first):
            return torch_file.load_torch(stream, first, name, move, bool(mmap))
        entries, plain = archive.read(stream, name, is_path, bool(mmap))
    if plain is None:
        return {key: wrap(_whole(move(flat, "cpu"), d, shape)) for key, (d, shape, flat) in entries.items()}
    with _blaming(name):
        plain, wanted = _plan(plain, entries)
    roots = {key: move(entries[key][2], where) for key, where in wanted.items()}
    with _blaming(name):
        return _restored(plain, entries, roots)


@contextlib.contextmanager
def _blaming(name):
    """Whatever goes wrong within is the file's fault, and said so."""
    try:
        yield
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RuntimeError) as error:
        why = f"its tree is not what save writes ({type(error).__name__}: {error})"
        raise archive.damaged(name, why) from None


def _position(stream):
    try:
        return stream.tell()
    except (AttributeError, OSError) as error:
        raise AttributeError(
            f"{error}. You can only torch.load from a file that is seekable. Please pre-load the data into a buffer "
            "like io.BytesIO and try to load from it instead."
        ) from None


def _whole(root, d, shape):
    d = dtypes.OF_NUMPY[d]
    return memory.view(root, d, shape, memory.contiguous_strides(shape, d.itemsize), 0)


def _plan(text_of_tree, entries):
    """(tree, entry name -> name of the device that its bytes were on), looked through before anything moves."""
    plain, wanted = tree.parse(text_of_tree), {}
    if plain["version"] != VERSION:
        raise ValueError(f"version {plain['version']!r} of the format; this program reads {VERSION}")
    for row in plain["tensors"]:
        wanted.setdefault(row["entry"], str(memory.device_named(row["device"])))
    missing = [key for key in wanted if key not in entries]
    if missing:
        raise ValueError(f"no entry is called {missing[0]!r}")
    return plain, wanted


def _restored(plain, entries, roots):
    made, arrays = {}, dict(enumerate(plain["arrays"]))

    def tensor(index):
        if index not in made:
            made[index] = _tensor(plain["tensors"][_number(index)], roots)
        return made[index]

    def array(index):
        return entries[arrays.pop(_number(index))["entry"]][2]  # once each: a small file cannot fill the memory

    return tree.Decoder(tensor, array).decode(plain["tree"])


def _number(index):
    if type(index) is not int or index < 0:
        raise ValueError(f"{index!r} is no index")
    return index


def _tensor(row, roots):
    d = memory.dtype_named(row["dtype"])
    if d is None:
        raise ValueError(f"no dtype is called {row['dtype']!r}")
    if not all(type(n) is int for n in (*row["shape"], *row["strides"], row["offset"])):
        raise ValueError("a shape that is not of ints")
    t = wrap(memory.view(roots[row["entry"]], d, tuple(row["shape"]), tuple(row["strides"]), row["offset"]))
    kind, wanted = tree.tensor_classes()[row["class"]], row["requires_grad"] is True
    if kind is Tensor:
        return t.requires_grad_() if wanted else t
    return kind(t, requires_grad=wanted)
