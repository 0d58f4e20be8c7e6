"""The iterators of a loader: one that fetches in the user's process, one that has workers fetch ahead."""

import itertools
import warnings
import weakref

from ....errors import text
from . import progress as progresses
from .exceptions import ExceptionWrapper
from .fetch import _IterableDatasetFetcher, _MapDatasetFetcher
from .pin_memory import Pinning, pin_memory
from .pool import Processes, Threads, Timeout
from .worker import Ended, Job


class _DatasetKind:
    """The two kinds of datasets, by PyTorch's names."""

    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(kind, dataset, auto_collation, collate_fn, drop_last):
        return _FETCHERS[kind](dataset, auto_collation, collate_fn, drop_last)


_FETCHERS = {_DatasetKind.Map: _MapDatasetFetcher, _DatasetKind.Iterable: _IterableDatasetFetcher}


class _BaseDataLoaderIter:
    """What both iterators do: begin an epoch, count what was given out, warn of lengths that are not kept."""

    def __init__(self, loader):
        self._dataset, self._num_workers = loader.dataset, loader.num_workers
        self._is_iterable, self._index_sampler = loader._is_iterable, loader._index_sampler
        self._pin_memory = _pins(loader)
        self._begin(loader, 0, None)

    def _begin(self, loader, epoch, base_seed):
        state, loader._resume = loader._resume, None
        self._progress, self._tasks = progresses.begin(loader, epoch, base_seed, state)
        loader._progress = self._progress
        self._skip = self._progress.batches if self._is_iterable else 0
        self._promised = loader._IterableDataset_len_called
        self._num_yielded = self._progress.batches

    def __iter__(self):
        return self

    def __len__(self):
        return len(self._index_sampler)

    def __next__(self):
        try:
            number, data = self._next_data()
            while number < self._skip:
                number, data = self._next_data()
        except StopIteration:
            self._progress.done = True
            raise
        self._progress.gave(number)
        self._num_yielded += 1
        if self._is_iterable and self._promised is not None and self._num_yielded > self._promised:
            self._warn_of_length()
        return data

    def _warn_of_length(self):
        said = (
            f"Length of IterableDataset {self._dataset} was reported to be {self._promised}(when accessing "
            f"len(dataloader)), but {self._num_yielded} samples have been fetched. "
        )
        if self._num_workers > 0:
            said += (
                "For multiprocessing data-loading, this could be caused by not properly configuring the "
                "IterableDataset replica at each worker. Please see "
                "https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for examples."
            )
        warnings.warn(said, stacklevel=3)

    def __getstate__(self):
        raise NotImplementedError("{} cannot be pickled", type(self).__name__)


def _pins(loader):
    """Whether batches go to pinned memory, with PyTorch's warnings."""
    if not loader.pin_memory:
        return False
    from ....backend import cuda

    if loader.pin_memory_device:
        warnings.warn(
            "pin_memory_device is deprecated, the current accelerator will be used as the device,ignore "
            f"pin_memory_device='{loader.pin_memory_device}'.",
            stacklevel=6,
        )
    if not cuda.is_available():
        warnings.warn(
            "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be "
            "used.",
            stacklevel=6,
        )
        return False
    return True


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Fetches a batch when it is asked for."""

    def __init__(self, loader):
        if loader.timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        super().__init__(loader)
        arguments = loader.dataset, loader._auto_collation, loader.collate_fn, loader.drop_last
        self._dataset_fetcher = _DatasetKind.create_fetcher(loader._dataset_kind, *arguments)

    def _next_data(self):
        number, _, index = next(self._tasks)
        try:
            data = self._dataset_fetcher.fetch(index)
        except StopIteration as error:
            if self._is_iterable:
                raise
            raise RuntimeError("the dataset raised StopIteration, which would end the epoch unnoticed") from error
        return number, pin_memory(data) if self._pin_memory else data


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Gives batches to workers ahead of time, ``prefetch_factor`` each, and returns them in order.

    Every task is answered once, by a batch, an error or ``Ended``. What was asked for in an earlier epoch of persistent
    workers is dropped when it comes.
    """

    def __init__(self, loader):
        if loader.prefetch_factor <= 0:
            raise AssertionError("prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter")
        super().__init__(loader)
        self._prefetch_factor, self._in_order = loader.prefetch_factor, loader.in_order
        self._timeout, self._persistent_workers = loader.timeout, loader.persistent_workers
        self._pool = self._start(loader)
        # Not __del__: a finalizer also runs before the interpreter takes modules away, and never sees a half-made self.
        self._close = weakref.finalize(self, self._pool.close)
        self._epoch_of_workers = -1
        self._prime()

    def _start(self, loader):
        threads = loader.workers == "thread"
        job = Job(
            make_fetcher=_FETCHERS[loader._dataset_kind],
            dataset=loader.dataset,
            auto_collation=loader._auto_collation,
            collate_fn=loader.collate_fn,
            drop_last=loader.drop_last,
            worker_init_fn=loader.worker_init_fn,
            num_workers=loader.num_workers,
            in_threads=threads,
            iterable=self._is_iterable,
        )
        make = Threads if threads else Processes
        pool = make(job, self._progress.base_seed, self._prefetch_factor + 2, loader.multiprocessing_context)
        return Pinning(pool) if self._pin_memory else pool

    def _reset(self, loader):
        """Begin the next epoch with the same workers."""
        self._begin(loader, self._progress.epoch + 1, self._progress.base_seed)
        self._prime()

    def _prime(self):
        self._worker_of, self._answers = {}, {}  # task -> the worker that has it; task -> its answer, not yet returned
        self._active = [True] * self._num_workers
        self._load = [0] * self._num_workers
        self._turns = itertools.cycle(range(self._num_workers))
        self._epoch_of_workers += 1
        self._pool.epoch = self._epoch_of_workers
        for worker in range(self._num_workers):
            self._send(worker, None, (self._progress.epoch, self._progress.base_seed), 0)
        for _ in range(self._prefetch_factor * self._num_workers):
            self._try_put_index()

    def _send(self, worker, number, index, before):
        self._pool.send(worker, (self._epoch_of_workers, number, index, before))

    def _try_put_index(self):
        """Give the next task to the next worker that has room."""
        worker = self._next_worker()
        if worker is None:
            return
        task = next(self._tasks, None)
        if task is None:
            return
        number, before, index = task
        self._send(worker, number, index, before)
        self._worker_of[number] = worker
        self._load[worker] += 1

    def _next_worker(self):
        room = self._prefetch_factor * self._num_workers // max(1, sum(self._active))
        for _ in range(self._num_workers):
            worker = next(self._turns)
            if self._active[worker] and (self._in_order or self._load[worker] < room):
                return worker
        return None

    def _next_data(self):
        while self._worker_of or self._answers:
            number = self._returnable()
            if number is not None:
                return number, self._opened(number, self._answers.pop(number))
            number, data = self._receive()
            if isinstance(data, Ended):
                self._active[data.worker_id] = False
                self._try_put_index()
            else:
                self._answers[number] = data
        if not self._persistent_workers:
            self._close()
        raise StopIteration

    def _returnable(self):
        """The number of an answer that is here and is the next one to return; None where there is none."""
        if not self._in_order:
            return next(iter(self._answers), None)
        first = min(self._answers, default=None)
        waited_for = next(iter(self._worker_of), None)  # tasks are given out by number, so this is the least
        return first if first is None or waited_for is None or first < waited_for else None

    def _receive(self):
        """(number, answer) of the next task of this epoch that is answered."""
        while True:
            try:
                (worker, epoch, number), data = self._pool.receive(self._timeout or None)
            except Timeout:
                said = f"DataLoader timed out after {self._timeout} seconds"
                workers = " and ".join(f"worker {w}" for w in sorted(set(self._worker_of.values())))
                raise RuntimeError(text(said, f"waited for {workers}")) from None
            if epoch == self._epoch_of_workers:
                del self._worker_of[number]
                self._load[worker] -= 1
                return number, data

    def _opened(self, number, data):
        """The answer, where it is a batch; the next task is given out before its error is raised."""
        self._try_put_index()
        if isinstance(data, ExceptionWrapper):
            self._progress.gave(number)
            data.reraise()
        return data
