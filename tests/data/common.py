"""Datasets that the tests of the loader share; at the top of a module, so that spawned workers find them."""

import os
import random
import threading
import time

import numpy as np

import cudagrad as torch
from cudagrad.utils.data import Dataset, IterableDataset, get_worker_info

WAYS = [{"num_workers": 0}, {"num_workers": 2}, {"num_workers": 2, "workers": "thread"}]
AHEAD = WAYS[1:]
NAMES = ["alone", "processes", "threads"]


class Squares(Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return i * i


class Arrays(Squares):
    """Samples large enough for shared memory: 64 KiB each."""

    def __getitem__(self, i):
        return np.full((64, 256), i, np.float32)


class Noise(Squares):
    """What the three global generators say while a sample is made."""

    def __getitem__(self, i):
        return i, random.random(), float(np.random.rand()), torch.rand(1).item()


class OwnNoise(Squares):
    """What the worker's own generators say."""

    def __getitem__(self, i):
        rng = get_worker_info().rng
        torch_number = torch.rand(1, generator=rng.torch_generator).item()
        return i, rng.random_generator.random(), float(rng.numpy_generator.random()), torch_number


class Whoami(Squares):
    def __getitem__(self, i):
        info = get_worker_info()
        return (-1, -1, -1) if info is None else (info.id, info.num_workers, info.seed)


class Strange(Exception):
    """An exception that cannot be made of one text."""

    def __init__(self, a, b):
        super().__init__(a, b)


class Faulty(Squares):
    """Fails at 5 in the way it is told."""

    def __init__(self, n, way):
        super().__init__(n)
        self.way = way

    def __getitem__(self, i):
        if i == 5:
            WAYS_TO_FAIL[self.way]()
        return i


def _raise(error):
    raise error


class Local:
    """Makes an exception of a class that no other process can look up."""

    def __call__(self):
        class Hidden(Exception):
            pass

        raise Hidden("cannot be pickled")


WAYS_TO_FAIL = {
    "value": lambda: _raise(ValueError("five is bad")),
    "key": lambda: _raise(KeyError("five\nis bad")),
    "strange": lambda: _raise(Strange(1, 2)),
    "hidden": Local(),
    "stop": lambda: _raise(StopIteration("five")),
    "exit": lambda: _raise(SystemExit(3)),
    "abort": lambda: os.kill(os.getpid(), 9),
    "sleep": lambda: time.sleep(60),
    "interrupt": lambda: _raise(KeyboardInterrupt()),
}


class Unsendable(Squares):
    """Samples that pickle refuses."""

    def __getitem__(self, i):
        return threading.Lock()


class Stream(IterableDataset):
    """0 to n - 1, shared out among the workers where ``sharded``."""

    def __init__(self, n, sharded=True, length=None):
        self.n, self.sharded, self.length = n, sharded, length

    def __iter__(self):
        info = get_worker_info()
        if info is None or not self.sharded:
            return iter(range(self.n))
        return iter(range(info.id, self.n, info.num_workers))

    def __len__(self):
        return self.n if self.length is None else self.length


class NoisyStream(Stream):
    def __iter__(self):
        for i in super().__iter__():
            yield i, random.random(), float(np.random.rand()), torch.rand(1).item()


def plain(batches):
    """Batches as plain values."""
    return [
        [c.tolist() if isinstance(c, torch.Tensor) else c for c in b] if isinstance(b, list) else b.tolist()
        for b in batches
    ]


def as_is(samples):
    """A collation that does nothing."""
    return samples
