"""CuPy's memory pool, watched: how much of it was in use at the most."""

import collections
import threading

from .. import errors


class Watch:
    """The default pool of ``cp`` (CuPy), whose allocator looks at the figures after every allocation.

    Where the program has given CuPy another allocator before, that one stays, and the largest figures are those that
    were seen when somebody asked.
    """

    def __init__(self, cp):
        self.pool, self._lock, self._peaks = cp.get_default_memory_pool(), threading.Lock(), {}
        self._kept = collections.deque()  # (event, memory) that a GPU may still be using
        self._malloc, self._used = self.pool.malloc, self.pool.used_bytes
        runtime = cp.cuda.runtime
        self._free = runtime.memGetInfo
        self._index = runtime.getDevice if runtime.getDeviceCount() > 1 else int
        if cp.cuda.get_allocator() == self._malloc:
            cp.cuda.set_allocator(self.malloc)

    def malloc(self, size):
        """A piece of the pool."""
        if self._kept:
            self._let_go()
        try:
            block = self._malloc(size)
        except MemoryError as error:
            raise self._exhausted(size) from error
        index, used = self._index(), self._used()
        if used > self._peaks.get(index, (0, 0))[0]:
            self._note(index, used, 0)
        return block

    def _exhausted(self, size):
        free, total = self._free()
        size, free, total = map(_spoken, (size, free, total))
        used, held = map(_spoken, (self._used(), self.pool.total_bytes()))
        first = f"CUDA out of memory. Tried to allocate {size}. GPU {self._index()} has a total capacity of {total} of "
        own = f"of CuPy's pool of {held} tensors and arrays hold {used}"
        return errors.OutOfMemoryError(errors.text(f"{first}which {free} is free.", own))

    def keep(self, event, memory):
        """Hold on to ``memory`` until ``event`` has happened."""
        self._let_go()
        self._kept.append((event, memory))

    def _let_go(self):
        try:
            while self._kept[0][0].done:
                self._kept.popleft()
        except IndexError:  # all of it, or another thread was faster
            pass

    def _note(self, index, used, total):
        with self._lock:
            most = self._peaks.get(index, (0, 0))
            self._peaks[index] = max(most[0], used), max(most[1], total)

    def figures(self, index):
        """(used, held, most used, most held), in bytes, of the GPU ``index``, which is the current one."""
        used, total = self._used(), self.pool.total_bytes()
        self._note(index, used, total)
        return used, total, *self._peaks[index]

    def reset(self, index):
        """Let the largest figures of the GPU ``index``, which is the current one, start again."""
        with self._lock:
            self._peaks[index] = self._used(), self.pool.total_bytes()

    def free(self):
        """Give the free blocks of the current GPU back to the driver."""
        self.figures(self._index())
        self.pool.free_all_blocks()


def _spoken(size):
    return f"{size / 2**30:.2f} GiB" if size >= 2**30 else f"{size / 2**20:.2f} MiB"
