"""The loader: batches of a dataset, fetched in this process, in worker processes or in worker threads."""

import multiprocessing
import os
import warnings
from multiprocessing.context import BaseContext
from typing import Generic, TypeVar

from ._utils import progress
from ._utils.collate import default_collate, default_convert
from ._utils.iterators import (
    _BaseDataLoaderIter,  # noqa: F401  programs look it up here
    _DatasetKind,
    _MultiProcessingDataLoaderIter,
    _SingleProcessDataLoaderIter,
)
from ._utils.worker import get_worker_info
from .dataset import IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

_T_co = TypeVar("_T_co", covariant=True)
WORKERS = ("process", "thread")
FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class _InfiniteConstantSampler(Sampler):
    """None without end: a stream is asked for its next sample, not for one by index."""

    def __iter__(self):
        while True:
            yield None


class DataLoader(Generic[_T_co]):
    """The batches of ``dataset``, once over for every ``iter()``.

    dataset         a map-style or iterable dataset
    batch_size      samples a batch; None: the samples themselves, converted by ``default_convert``
    shuffle         whether to take them in a new random order each time
    sampler, batch_sampler     an order of indices, of lists of indices, in the place of ``shuffle`` and ``batch_size``
    num_workers     how many fetch ahead of the user; 0: he fetches himself
    workers         "process" or "thread". Threads start at once and copy nothing, but share ``random``, NumPy's and the
                    default generator, which they do not seed: use ``get_worker_info().rng``
    collate_fn      list of samples -> batch
    pin_memory      whether batches come in page-locked memory, where there is a GPU
    drop_last       whether to leave out a last batch that is not full
    timeout         seconds to wait for a batch of a worker; 0: for ever
    worker_init_fn  is called in each worker with its number, after seeding
    multiprocessing_context    a start method or a context of ``multiprocessing``
    generator       draws the order and ``base_seed``; None: the default generator, also with no workers
    prefetch_factor batches that each worker is ahead, 2 by default
    persistent_workers         whether workers live on to the next epoch
    pin_memory_device          without effect, as in PyTorch
    in_order        whether batches come in the order of the sampler, or as they are ready

    ``state_dict()`` and ``load_state_dict(state)`` continue in the middle of an epoch, in another process and with
    another number of workers: the next ``iter()`` gives the batches that were still to come, the same to the bit. A
    stream is read again from its begin for that.

    Raises      ValueError and TypeError for arguments that exclude each other, in PyTorch's words; in ``next``: a
                worker's exception, by its type and with its traceback; RuntimeError where one died or is late
    Differs     before a worker process fetches a sample of a map-style dataset, ``random``, NumPy and cudagrad are
                seeded from (base_seed, epoch, place of the sample in the epoch, index), once a batch where the dataset
                has ``__getitems__``: random transforms do not depend on the number of workers. What ``worker_init_fn``
                seeds is overwritten by that. A stream is seeded once an epoch, by base_seed + worker id in the first.
                With ``num_workers=0`` nothing is seeded

    >>> from cudagrad.utils.data import DataLoader
    >>> [batch.tolist() for batch in DataLoader(range(5), batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """

    _initialized = False
    _iterator = _resume = _progress = _IterableDataset_len_called = None

    def __init__(
        self,
        dataset,
        batch_size=1,
        shuffle=None,
        sampler=None,
        batch_sampler=None,
        num_workers=0,
        collate_fn=None,
        pin_memory=False,
        drop_last=False,
        timeout=0,
        worker_init_fn=None,
        multiprocessing_context=None,
        generator=None,
        *,
        prefetch_factor=None,
        persistent_workers=False,
        pin_memory_device="",
        in_order=True,
        workers="process",
    ):
        prefetch_factor = _checked_workers(num_workers, timeout, prefetch_factor, persistent_workers, workers)
        self._is_iterable = isinstance(dataset, IterableDataset)
        self._dataset_kind = _DatasetKind.Iterable if self._is_iterable else _DatasetKind.Map
        self.dataset, self.num_workers, self.prefetch_factor = dataset, num_workers, prefetch_factor
        self.pin_memory, self.pin_memory_device, self.timeout = pin_memory, pin_memory_device, timeout
        self.worker_init_fn, self.in_order, self.workers = worker_init_fn, in_order, workers
        self.multiprocessing_context = multiprocessing_context
        if self._is_iterable:
            _check_stream(shuffle, sampler, batch_sampler)
        _check_batching(batch_size, bool(shuffle), sampler, batch_sampler, drop_last)
        if batch_sampler is not None:
            batch_size = None
        if sampler is None:
            sampler = self._default_sampler(shuffle, generator)
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size, self.drop_last, self.generator = batch_size, drop_last, generator
        self.sampler, self.batch_sampler, self.persistent_workers = sampler, batch_sampler, persistent_workers
        self.collate_fn = collate_fn or (default_collate if self._auto_collation else default_convert)
        self._initialized = True
        self.check_worker_number_rationality()

    def _default_sampler(self, shuffle, generator):
        if self._is_iterable:
            return _InfiniteConstantSampler()
        return RandomSampler(self.dataset, generator=generator) if shuffle else SequentialSampler(self.dataset)

    @property
    def multiprocessing_context(self):
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context):
        if context is not None:
            context = _checked_context(context, self.num_workers)
        self._context = context

    def __setattr__(self, attr, val):
        if self._initialized and attr in FIXED:
            raise ValueError(f"{attr} attribute should not be set after {self.__class__.__name__} is initialized")
        super().__setattr__(attr, val)

    def __getstate__(self):
        """Without the workers: another process starts its own."""
        return {k: v for k, v in self.__dict__.items() if k not in ("_iterator", "_progress")}

    def __iter__(self):
        if not (self.persistent_workers and self.num_workers > 0):
            return self._get_iterator()
        if self._iterator is None:
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        return self._iterator

    def _get_iterator(self):
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        return _MultiProcessingDataLoaderIter(self)

    @property
    def _auto_collation(self):
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        return self.batch_sampler if self._auto_collation else self.sampler

    def __len__(self):
        """The count of batches, as the sampler or the stream's own ``len`` has it."""
        if not self._is_iterable:
            return len(self._index_sampler)
        length = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)

    def state_dict(self):
        """How far the newest iterator has come, as plain values and tensors.

        Raises      RuntimeError in the middle of a stream whose batches come out of order
        """
        done = self._progress is None or self._progress.done
        if self._resume is not None:
            return self._resume
        if done:
            return progress.idle()
        if self._is_iterable and not self.in_order and self.num_workers > 1:
            raise RuntimeError(
                "state_dict: with in_order=False nobody knows which samples of a stream were given out "
                "(fix: in_order=True)"
            )
        return self._progress.state()

    def load_state_dict(self, state_dict):
        """Let the next ``iter()`` continue where ``state_dict`` was made.

        Raises      ValueError where it is no such state
        """
        progress.check(state_dict)
        self._resume = None if state_dict["batches"] is None else state_dict

    def check_worker_number_rationality(self):
        """Warn of more worker processes than this process has CPUs."""
        if not self.num_workers or self.workers == "thread":
            return
        cpuset_checked = hasattr(os, "sched_getaffinity")
        most = len(os.sched_getaffinity(0)) if cpuset_checked else os.cpu_count()
        if most is not None and self.num_workers <= most:
            return
        suggestion = "DataLoader is not able to compute a suggested max number of worker in current system."
        if most is not None:
            note = "" if cpuset_checked else " (`cpuset` is not taken into account)"
            suggestion = (
                f"Our suggested max number of worker in current system is {most}{note}, which is smaller than what "
                "this DataLoader is going to create."
            )
        warnings.warn(
            f"This DataLoader will create {self.num_workers} worker processes in total. {suggestion} Please be aware "
            "that excessive worker creation might get DataLoader running slow or even freeze, lower the worker number "
            "to avoid potential slowness/freeze if necessary.",
            stacklevel=3,
        )


def _checked_workers(num_workers, timeout, prefetch_factor, persistent_workers, workers):
    """``prefetch_factor``, 2 where there are workers and none was given."""
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable "
            "multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")
    if workers not in WORKERS:
        raise ValueError(f"workers option should be one of {WORKERS}, but got workers={workers!r}")
    return 2 if num_workers > 0 and prefetch_factor is None else prefetch_factor


def _check_stream(shuffle, sampler, batch_sampler):
    """A stream comes in its own order."""
    first = "DataLoader with IterableDataset: expected unspecified"
    if shuffle not in {False, None}:
        raise ValueError(f"{first} shuffle option, but got shuffle={shuffle}")
    if sampler is not None:
        raise ValueError(f"{first} sampler option, but got sampler={sampler}")
    if batch_sampler is not None:
        raise ValueError(f"{first} batch_sampler option, but got batch_sampler={batch_sampler}")


def _check_batching(batch_size, shuffle, sampler, batch_sampler, drop_last):
    """Nothing is said twice."""
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
        raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
    if batch_sampler is None and batch_size is None and drop_last:
        raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")


def _checked_context(context, num_workers):
    """``context``, where it is a name, as a context of ``multiprocessing``."""
    if num_workers == 0:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
            f"num_workers={num_workers}"
        )
    if isinstance(context, str):
        methods = multiprocessing.get_all_start_methods()
        if context not in methods:
            raise ValueError(
                f"multiprocessing_context option should specify a valid start method in {methods!r}, but got "
                f"multiprocessing_context={context!r}"
            )
        context = multiprocessing.get_context(context)
    if not isinstance(context, BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string specifying the start method, "
            f"but got multiprocessing_context={context}"
        )
    return context
