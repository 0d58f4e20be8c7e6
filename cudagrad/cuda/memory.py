"""What CuPy's memory pool holds, under PyTorch's names."""

import warnings

from ..backend import cuda as _cuda
from ..backend.device import device as Device
from .streams import index_of

__all__ = [
    "device_memory_used",
    "empty_cache",
    "get_allocator_backend",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "set_per_process_memory_fraction",
]


def _asked(device):
    """A context in which the GPU that is asked about is the current one."""
    return _cuda.on(Device("cuda", index_of(device)))


def _figures(device):
    """(allocated, reserved, largest allocated, largest reserved) of a GPU, in bytes; zeros where there is none."""
    if not _cuda.is_available():
        return 0, 0, 0, 0
    with _asked(device):
        return _cuda.WATCH.figures(index_of(device))


def memory_allocated(device=None):
    """The bytes that tensors and CuPy arrays of a GPU hold; 0 where there is no GPU."""
    return _figures(device)[0]


def memory_reserved(device=None):
    """The bytes that CuPy's pool holds on a GPU; 0 where there is no GPU."""
    return _figures(device)[1]


def max_memory_allocated(device=None):
    """The largest ``memory_allocated`` since the start or ``reset_peak_memory_stats``."""
    return _figures(device)[2]


def max_memory_reserved(device=None):
    """The largest ``memory_reserved`` since the start or ``reset_peak_memory_stats``."""
    return _figures(device)[3]


def reset_peak_memory_stats(device=None):
    """Let the largest figures start again from those of now."""
    if _cuda.is_available():
        with _asked(device):
            _cuda.WATCH.reset(index_of(device))


def _renamed(name, function):
    def renamed(device=None):
        warnings.warn(f"`{name}` is deprecated, use `{function.__name__}`", FutureWarning, stacklevel=2)
        return function(device)

    renamed.__doc__, renamed.__name__ = function.__doc__, name
    return renamed


memory_cached = _renamed("memory_cached", memory_reserved)
max_memory_cached = _renamed("max_memory_cached", max_memory_reserved)
reset_max_memory_allocated = _renamed("reset_max_memory_allocated", reset_peak_memory_stats)
reset_max_memory_cached = _renamed("reset_max_memory_cached", reset_peak_memory_stats)


def memory_stats(device=None):
    """The figures by PyTorch's names, ``allocated_bytes.all.current`` and ``.peak``, ``reserved_bytes.all...``.

    Differs     CuPy's pool counts bytes only: no requests, segments or small and large pools
    """
    allocated, reserved, most_allocated, most_reserved = _figures(device)
    return {
        "allocated_bytes.all.current": allocated,
        "allocated_bytes.all.peak": most_allocated,
        "reserved_bytes.all.current": reserved,
        "reserved_bytes.all.peak": most_reserved,
    }


def memory_stats_as_nested_dict(device=None):
    """``memory_stats`` with a dict for each part of a name."""
    nested = {}
    for name, value in memory_stats(device).items():
        *parts, last = name.split(".")
        place = nested
        for part in parts:
            place = place.setdefault(part, {})
        place[last] = value
    return nested


def memory_summary(device=None, abbreviated=False):
    """The figures as a table to print."""
    stats = memory_stats(device)
    title = f"CUDA memory summary, device {index_of(device) if _cuda.is_available() else 'none'}"
    lines = [f"{'':<22}{'now':>14}{'at most':>14}"]
    for what in ("allocated", "reserved"):
        now, most = (stats[f"{what}_bytes.all.{part}"] for part in ("current", "peak"))
        lines.append(f"{what + ' memory':<22}{_spoken(now):>14}{_spoken(most):>14}")
    width = max(map(len, lines))
    rule = "=" * width
    return "\n".join([rule, title.center(width), rule, *lines, rule]) + "\n"


def _spoken(size):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 10240 or unit == "GiB":
            return f"{size:.0f} {unit}"
        size /= 1024


def empty_cache():
    """Give the pool's free blocks back to the driver; nothing happens where there is no GPU."""
    if _cuda.is_available():
        _cuda.WATCH.free()


def mem_get_info(device=None):
    """(free, total) bytes of a GPU, as the driver sees them."""
    with _asked(device):
        return _cuda.cupy().cuda.runtime.memGetInfo()


def device_memory_used(device=None):
    """The bytes of a GPU that are in use, by any process."""
    free, total = mem_get_info(device)
    return total - free


def set_per_process_memory_fraction(fraction, device=None):
    """Let the pool of a GPU hold no more than this part of its memory; what asks for more raises OutOfMemoryError.

    Raises      TypeError for no float, ValueError outside 0...1
    """
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    with _asked(device):
        _cuda.cupy().get_default_memory_pool().set_limit(fraction=fraction)


def get_allocator_backend():
    """The name of the allocator: CuPy's pool."""
    return "cupy"
