"""The sampler of one process among several that train together."""

import itertools

from ... import ops
from ...core.generator import Generator
from .sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler):
    """Every ``num_replicas``-th index from ``rank`` on, of an order that all processes share.

    The order is shuffled by ``seed + epoch``, so ``set_epoch`` is to be called before each epoch. Where the dataset
    does not divide evenly, indices from the front are given out again, or with ``drop_last`` the tail is left out.
    """

    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0, drop_last=False):
        if num_replicas is None:
            num_replicas = _group().get_world_size()
        if rank is None:
            rank = _group().get_rank()
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.epoch, self.shuffle, self.seed, self.drop_last = 0, shuffle, seed, drop_last
        whole, rest = divmod(len(dataset), num_replicas)
        self.num_samples = whole + bool(rest and not drop_last)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self):
        count = len(self.dataset)
        if self.shuffle:
            order = ops.randperm(count, generator=Generator().manual_seed(self.seed + self.epoch)).tolist()
        else:
            order = range(count)
        return itertools.islice(itertools.cycle(order), self.rank, self.total_size, self.num_replicas)

    def __len__(self):
        return self.num_samples

    def set_epoch(self, epoch):
        """The number of the epoch that the next iteration shuffles for."""
        self.epoch = epoch


def _group():
    try:
        from ... import distributed
    except ImportError:
        distributed = None
    if distributed is None or not distributed.is_available():
        raise RuntimeError("Requires distributed package to be available")
    return distributed
