"""Built kernels on disk, under a key of everything that went into them; damaged ones are made again."""

import contextlib
import hashlib
import itertools
import os
import re
import tempfile
from pathlib import Path


def folder():
    """``CUDAGRAD_CACHE``, or ``cudagrad`` in the user's cache folder."""
    own = os.environ.get("CUDAGRAD_CACHE")
    return Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cudagrad"


def sources(path, places):
    """[(name, bytes)] of a source and of every file that it includes by ``#include "..."``, from ``places``."""
    found, waiting = {}, [Path(path)]
    while waiting:
        file = waiting.pop()
        if file in found:
            continue
        found[file] = content = file.read_bytes()
        for name in included(content):
            at = next((p / name for p in (file.parent, *places) if (p / name).is_file()), None)
            if at is not None:  # what is found nowhere the compiler will name
                waiting.append(at)
    return sorted((file.name, content) for file, content in found.items())


def included(content):
    """The names in ``#include "..."`` of a source's bytes."""
    return [os.fsdecode(name) for name in re.findall(rb'^\s*#\s*include\s+"([^"]+)"', content, re.M)]


def key(*parts):
    """The name of what is made of ``parts``: strings, bytes and nested lists of them."""
    digest = hashlib.sha256()
    _feed(digest, parts)
    return digest.hexdigest()[:40]


def _feed(digest, part):
    if isinstance(part, (list, tuple)):
        digest.update(b"(%d" % len(part))
        for each in part:
            _feed(digest, each)
    else:
        part = part if isinstance(part, bytes) else str(part).encode()
        digest.update(b"%d:" % len(part) + part)


MOST_BYTES = 2 << 30  # of what was built; what was used longest ago goes first
_MANY = 64  # builds of this process from one look at the cache's size to the next
_builds = itertools.count()


def built(name, suffix, build):
    """The path of the file that ``build(path)`` makes, made now where the cache does not hold it whole.

    What is kept is named by its own contents, and the key's file holds that name: writers that race write the same or
    another whole pair, and a file that was cut or changed no longer bears its name.
    """
    kept = folder() / "kernels"
    pointer = kept / name
    path = _whole(kept, pointer, suffix)
    if path is not None:
        os.utime(path)
        return path
    _make(kept)
    if next(_builds) % _MANY == 0:
        _trim(kept)
    with tempfile.TemporaryDirectory(dir=kept, prefix="making-") as workplace:
        made = Path(workplace) / ("kernel" + suffix)
        build(made)
        path = kept / (_digest(made) + suffix)
        os.replace(made, path)
        note = Path(workplace) / "note"
        note.write_text(path.name)
        os.replace(note, pointer)
    return path


def _trim(kept):
    """Remove what was used longest ago while more than ``MOST_BYTES`` are kept; a key without its file builds again."""
    found = []
    for file in os.scandir(kept):
        with contextlib.suppress(OSError):  # another process may remove it too
            if file.is_file() and os.path.splitext(file.name)[1] not in ("", ".log"):  # keys and logs are small
                told = file.stat()
                found.append((told.st_mtime, told.st_size, file.path))
    spare = sum(size for _, size, _ in found) - MOST_BYTES
    for _, size, path in sorted(found):
        if spare <= 0:
            break
        with contextlib.suppress(OSError):
            os.remove(path)
            spare -= size


def write(path, text):
    """Put ``text`` into a file of the cache, which nobody sees half written.

    Raises      RuntimeError where the folder cannot be made
    """
    _make(path.parent)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as file:
        file.write(text)
    os.replace(file.name, path)


def _make(kept):
    try:
        kept.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RuntimeError(
            f"built kernels are kept in {kept}, which cannot be made ({error.strerror}): name another folder in the "
            "environment variable CUDAGRAD_CACHE"
        ) from error


def _whole(kept, pointer, suffix):
    try:
        path = kept / pointer.read_text().strip()
        return path if path.suffix == suffix and _digest(path) == path.stem else None
    except (OSError, ValueError):
        return None


def _digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()[:40]
