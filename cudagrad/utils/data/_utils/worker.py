"""What a worker does, be it a process or a thread: seeds, the user's hook, fetching, and its errors as values."""

import copy
import random
import threading
from dataclasses import dataclass

import numpy as np

from ....core import generator as generators
from ....core.generator import Generator
from .exceptions import ExceptionWrapper

WORD = 2**64 - 1
_worker_info = None  # of this process, where it is a worker
_of_thread = threading.local()  # .info, where this thread is one


@dataclass(frozen=True)
class WorkerInfo:
    """What ``get_worker_info()`` returns in a worker.

    ``seed`` is base_seed + id; ``dataset`` the worker's copy. ``rng`` holds generators of the worker's own, seeded
    anew for each sample: in a worker thread they take the place of the global ones, which all threads share.
    """

    id: int
    num_workers: int
    seed: int
    dataset: object
    rng: object = None
    worker_method: str = "multiprocessing"


class WorkerRNG:
    """``random_generator``, ``numpy_generator``, ``torch_generator``: made of the sample's seed when asked for."""

    def __init__(self):
        self.seed_anew(0)

    def seed_anew(self, seed):
        self.seed, self._made = seed, {}

    def _get(self, kind, make):
        if kind not in self._made:
            self._made[kind] = make()
        return self._made[kind]

    @property
    def random_generator(self):
        return self._get("random", lambda: random.Random(self.seed))

    @property
    def numpy_generator(self):
        return self._get("numpy", lambda: np.random.default_rng(self.seed))

    @property
    def torch_generator(self):
        return self._get("torch", lambda: Generator().manual_seed(self.seed))


def get_worker_info():
    """In a worker its ``WorkerInfo``, elsewhere None."""
    return getattr(_of_thread, "info", None) or _worker_info


def sample_seed(base_seed, epoch, place, index):
    """A seed of 64 bits for the ``place``-th sample of an epoch, which is ``index`` of the dataset.

    The place is in it so that an index drawn twice is not augmented alike, the index so that processes that train
    together on different indices are not. Both are the same for any number of workers.

    Source      Steele, Lea, Flood 2014, Fast Splittable Pseudorandom Number Generators (its mix64variant13)
    """
    z = base_seed
    for part in (epoch, place, index if isinstance(index, int) else 0):
        z = (z + 0x9E3779B97F4A7C15 * (part + 1)) & WORD
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & WORD
        z = (z ^ z >> 27) * 0x94D049BB133111EB & WORD
        z ^= z >> 31
    return z


def seed_globals(seed):
    """Seed ``random``, NumPy and the CPU's default generator: 7 us. NumPy gets 32 bits, since more take 11 us more."""
    random.seed(seed)
    np.random.seed(seed & 0xFFFFFFFF)
    generators.default_generator.manual_seed(seed)


@dataclass(frozen=True)
class Ended:
    """In the place of a batch: the stream of this worker has no more."""

    worker_id: int


@dataclass
class Job:
    """What all workers of an iterator are given; it travels to a process once."""

    make_fetcher: object
    dataset: object
    auto_collation: bool
    collate_fn: object
    drop_last: bool
    worker_init_fn: object
    num_workers: int
    in_threads: bool
    iterable: bool


class Worker:
    """One worker of a ``Job``. ``begin`` an epoch, then ``answer`` its tasks; neither raises an Exception."""

    def __init__(self, job, worker_id, base_seed):
        self.job, self.id, self.base_seed, self.epoch = job, worker_id, base_seed, 0
        self.where = f"in DataLoader worker {'thread' if job.in_threads else 'process'} {worker_id}"
        self.dataset = _copy_of(job.dataset) if job.in_threads else job.dataset
        self.rng, self.fetcher, self.failed, self.ended = WorkerRNG(), None, None, False
        method = "thread" if job.in_threads else "multiprocessing"
        info = WorkerInfo(worker_id, job.num_workers, base_seed + worker_id, self.dataset, self.rng, method)
        if job.in_threads:
            _of_thread.info = info
        else:
            global _worker_info
            _worker_info = info

    def _seed(self, seed):
        self.rng.seed_anew(seed)
        if not self.job.in_threads:
            seed_globals(seed)

    def begin(self, epoch, base_seed):
        """Seed, call the user's hook before the first epoch, and start the stream anew."""
        job, self.epoch, self.base_seed, self.ended = self.job, epoch, base_seed, False
        self._seed(sample_seed(base_seed, epoch, self.id, -1) if epoch else base_seed + self.id)
        try:
            if self.fetcher is None and job.worker_init_fn is not None:
                job.worker_init_fn(self.id)
            self.fetcher = job.make_fetcher(self.dataset, job.auto_collation, job.collate_fn, job.drop_last)
        except Exception:
            self.failed = ExceptionWrapper(where=self.where)

    def answer(self, index, first):
        """The batch at ``index``, whose first sample is the ``first``-th of the epoch; or an error, or ``Ended``."""
        if self.failed is not None:
            failed, self.failed = self.failed, None
            return failed
        if self.ended:
            return Ended(self.id)
        try:
            return self.fetcher.fetch(index, None if self.job.iterable else self._seeding(first))
        except Exception as error:
            if isinstance(error, StopIteration) and self.job.iterable:
                self.ended = True
                return Ended(self.id)
            return ExceptionWrapper(where=self.where)

    def _seeding(self, first):
        def before(place, index):
            self._seed(sample_seed(self.base_seed, self.epoch, first + place, index))

        return before


def _copy_of(dataset):
    """A shallow copy, so that a hook that sets attributes of one thread's dataset leaves the others' alone."""
    try:
        return copy.copy(dataset)
    except Exception:
        return dataset
