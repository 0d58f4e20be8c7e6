"""The container of a checkpoint: a safetensors file, written whole or not at all, read with every number checked."""

import contextlib
import json
import math
import mmap as mapping
import os
import secrets
import stat
import struct
import zlib

import ml_dtypes
import numpy as np

from ..errors import text

KIND = "cudagrad"  # the metadata key that holds the JSON tree; a reader that does not know it still finds the arrays
ALIGN = 64
MAX_HEADER_BYTES = 100_000_000  # what the safetensors readers in use accept

DTYPES = {
    "BOOL": np.dtype(np.bool_),
    "U8": np.dtype(np.uint8),
    "I8": np.dtype(np.int8),
    "U16": np.dtype(np.uint16),
    "I16": np.dtype(np.int16),
    "U32": np.dtype(np.uint32),
    "I32": np.dtype(np.int32),
    "U64": np.dtype(np.uint64),
    "I64": np.dtype(np.int64),
    "F16": np.dtype(np.float16),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "F32": np.dtype(np.float32),
    "F64": np.dtype(np.float64),
}
NAMES = {d: name for name, d in DTYPES.items()}


class Damaged(RuntimeError):
    """The file is no checkpoint, or no longer one."""


def damaged(name, why):
    """The one sentence for a file that cannot be believed."""
    return Damaged(
        text(f"load: {name} is damaged, cut short or no checkpoint: {why}", "fix: load another copy, or save it again")
    )


# ---- writing


def chunks(entries, tree):
    """The bytes of a file, piece by piece: ``entries`` are (name, dtype name, shape, flat uint8 array)."""
    entries = sorted(entries, key=lambda e: -DTYPES[e[1]].itemsize)  # so that each entry lies at a multiple of its item
    header, end, crc = {}, 0, 0
    for name, dtype, shape, data in entries:
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [end, end + data.nbytes]}
        end += data.nbytes
        crc = zlib.crc32(data, crc)
    meta = {KIND: tree, "crc32": f"{crc:08x}", "header_crc32": _header_crc(header, tree)}
    raw = json.dumps({"__metadata__": meta, **header}, separators=(",", ":")).encode()
    raw += b" " * (-(len(raw) + 8) % ALIGN)
    if len(raw) > MAX_HEADER_BYTES:
        raise ValueError(
            f"save: the names, shapes and plain Python values take {len(raw)} bytes; a file holds "
            f"{MAX_HEADER_BYTES} of them (fix: keep long lists of numbers as tensors)"
        )
    yield struct.pack("<Q", len(raw)) + raw
    for _, _, _, data in entries:
        yield data


def _header_crc(header, tree):
    rows = [[name, e["dtype"], e["shape"], e["data_offsets"]] for name, e in header.items()]
    return f"{zlib.crc32(json.dumps([rows, tree]).encode()):08x}"


def write(f, pieces):
    """Write to a path, which holds the old file or the new one and never a part, or to an object with ``write``."""
    if hasattr(f, "write"):
        for piece in pieces:
            f.write(memoryview(piece))
        return
    path = os.path.realpath(os.fsdecode(f))  # a link stays a link
    parent = os.path.dirname(path)
    if not os.path.isdir(parent):
        raise RuntimeError(f"Parent directory {os.path.dirname(os.fsdecode(f)) or parent} does not exist.")
    mode = _mode_of(path)
    if mode is not None and not stat.S_ISREG(mode):  # a pipe or a device: there is nothing to replace
        with open(path, "wb") as stream:
            return write(stream, pieces)
    temporary = os.path.join(parent, f".{os.path.basename(path)[:100]}.{secrets.token_hex(6)}.tmp")
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as stream:
            write(stream, pieces)
            stream.flush()
            os.fsync(stream.fileno())
        if mode is not None:
            os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(parent)


def _mode_of(path):
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return None


def _sync_folder(folder):
    """The new name on the disk too; Windows cannot, some file systems will not."""
    with contextlib.suppress(OSError, AttributeError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# ---- reading


def read(stream, name, whole, mmap=False):
    """(entries, tree or None) of the safetensors file at the stream's position.

    ``entries`` is name -> (dtype, shape, flat uint8 array). No more memory is asked for than the file has bytes.
    ``whole`` says that the file ends where the archive does.
    """
    start = stream.tell()
    room = stream.seek(0, os.SEEK_END) - start
    stream.seek(start)
    header, data_at = _header(stream, name, room)
    meta = header.pop("__metadata__", {})
    if not isinstance(meta, dict) or not all(isinstance(v, str) for v in meta.values()):
        raise damaged(name, "its metadata is no table of strings")
    spans = _spans(header, name, room - data_at, whole)
    tree = meta.get(KIND)
    if meta.get("header_crc32") != (None if tree is None else _header_crc(header, tree)):
        raise damaged(name, "its header does not have the checksum it was written with")
    if mmap:
        buffers = _mapped(stream, spans, start + data_at)
    else:
        buffers = _loaded(stream, spans, name, meta.get("crc32", "none") if tree is not None else None)
    return {n: (*what, buffers[n]) for n, (what, _) in spans.items()}, tree


def _header(stream, name, room):
    raw = stream.read(8)
    if len(raw) < 8:
        raise damaged(name, f"it has {len(raw)} bytes, too few for a header")
    length = struct.unpack("<Q", raw)[0]
    if length > min(room - 8, MAX_HEADER_BYTES):
        raise damaged(name, f"it says that {length} bytes of header follow and {room - 8} bytes do")
    raw = stream.read(length)
    try:
        header = json.loads(raw.decode(), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise damaged(name, f"its header is not what safetensors writes ({error})") from None
    if not raw.startswith(b"{") or not isinstance(header, dict):
        raise damaged(name, "its header is no JSON object")
    return header, 8 + length


def _once(pairs):
    table = dict(pairs)
    if len(table) != len(pairs):
        names = [k for k, _ in pairs]
        raise ValueError(f"the name {next(k for k in names if names.count(k) > 1)!r} stands there twice")
    return table


def _spans(header, name, room, whole):
    """name -> ((dtype, shape), (begin, end)), in the file's order: no hole, no overlap, nothing outside."""
    found = {}
    for key, entry in header.items():
        try:
            dtype, shape, (begin, end) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
            fits = len(entry) == 3 and all(type(n) is int and n >= 0 for n in (*shape, begin, end))
        except (TypeError, KeyError, ValueError):
            fits = False
        if not fits or not isinstance(dtype, str):
            raise damaged(name, f"the entry {key!r} has no dtype, shape and offsets")
        if dtype not in DTYPES:
            raise damaged(name, f"the entry {key!r} has the dtype {dtype!r}, which is none of {', '.join(DTYPES)}")
        if math.prod(shape) * DTYPES[dtype].itemsize != end - begin:
            raise damaged(name, f"the entry {key!r} of shape {list(shape)} and {dtype} cannot take {end - begin} bytes")
        found[key] = (DTYPES[dtype], shape), (begin, end)
    found = dict(sorted(found.items(), key=lambda item: item[1][1]))
    at = 0
    for key, (_, (begin, end)) in found.items():
        if begin != at:
            raise damaged(name, f"the entry {key!r} begins at {begin}, the one before ends at {at}")
        at = end
    if at > room or (whole and at != room):
        raise damaged(name, f"its entries take {at} bytes and {room} bytes follow the header")
    return found


def _mapped(stream, spans, data_at):
    """Copy-on-write views of the file; a page is read when it is first touched."""
    if not any(end > begin for _, (begin, end) in spans.values()):
        return {n: np.empty(0, np.uint8) for n in spans}
    pages = mapping.mmap(stream.fileno(), 0, access=mapping.ACCESS_COPY)
    return {n: np.ndarray((e - b,), np.uint8, buffer=pages, offset=data_at + b) for n, (_, (b, e)) in spans.items()}


def _loaded(stream, spans, name, crc):
    buffers, seen = {}, 0
    for key, (_, (begin, end)) in spans.items():
        buffers[key] = read_array(stream, end - begin, name)
        if crc is not None:
            seen = zlib.crc32(buffers[key], seen)
    if crc is not None and crc != f"{seen:08x}":
        raise damaged(name, "its data does not have the checksum it was written with")
    return buffers


def read_array(stream, count, name):
    """The next ``count`` bytes, which the caller knows to be there, as a flat array."""
    out, at = np.empty(count, np.uint8), 0
    view = memoryview(out)
    fill = getattr(stream, "readinto", None)
    while at < count:
        if fill is not None:
            got = fill(view[at:])
        else:
            piece = stream.read(count - at)
            got = len(piece)
            view[at : at + got] = piece
        if not got:
            raise damaged(name, f"{count - at} bytes of an array are missing")
        at += got
    return out
