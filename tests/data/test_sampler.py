"""Samplers: every index they owe and no other, and which generator they use."""

import collections

import pytest

import cudagrad as torch
from cudagrad.utils.data import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)


def seeded(n):
    return torch.Generator().manual_seed(n)


def test_sequential():
    assert list(SequentialSampler("abc")) == [0, 1, 2]
    assert len(SequentialSampler("abc")) == 3


def test_a_sampler_without_iter_says_so():
    with pytest.raises(NotImplementedError):
        iter(Sampler())


def test_random_is_a_permutation_that_changes_with_each_pass():
    sampler = RandomSampler(range(50), generator=seeded(0))
    first, second = list(sampler), list(sampler)
    assert sorted(first) == sorted(second) == list(range(50))
    assert first != second
    assert first == torch.randperm(50, generator=seeded(0)).tolist()


def test_random_without_generator_takes_one_seed_a_pass_from_the_default_one():
    torch.manual_seed(5)
    offset = torch.default_generator.get_offset()
    order = list(RandomSampler(range(10)))
    assert torch.default_generator.get_offset() == offset + 1
    torch.manual_seed(5)
    assert list(RandomSampler(range(10))) == order


@pytest.mark.parametrize("count", [1, 3, 9, 10, 32, 33, 64])
def test_random_gives_as_many_as_asked_for(count):
    drawn = list(RandomSampler(range(10), num_samples=count))
    assert len(drawn) == count
    assert max(collections.Counter(drawn).values()) <= -(-count // 10)
    drawn = list(RandomSampler(range(3), replacement=True, num_samples=count))
    assert len(drawn) == count
    assert set(drawn) <= {0, 1, 2}


def test_random_refuses():
    with pytest.raises(TypeError, match="replacement should be a boolean value, but got replacement=1"):
        RandomSampler([1], replacement=1)
    with pytest.raises(ValueError, match="num_samples should be a positive integer value, but got num_samples=0"):
        RandomSampler([])
    with pytest.raises(ValueError, match="num_samples should be a positive integer value, but got num_samples=2.5"):
        RandomSampler([1], num_samples=2.5)


def test_subset_random():
    assert sorted(SubsetRandomSampler([3, 1, 9])) == [1, 3, 9]
    assert len(SubsetRandomSampler([3, 1, 9])) == 3
    assert list(SubsetRandomSampler(range(20), seeded(2))) == torch.randperm(20, generator=seeded(2)).tolist()


def test_weighted():
    sampler = WeightedRandomSampler([0.0, 1.0, 0.0, 3.0], 4000, generator=seeded(0))
    counts = collections.Counter(sampler)
    assert set(counts) == {1, 3}
    assert abs(counts[3] - 3000) < 5 * (4000 * 0.75 * 0.25) ** 0.5  # five standard deviations
    assert sorted(WeightedRandomSampler([1, 2, 3], 3, replacement=False)) == [0, 1, 2]
    assert len(sampler) == 4000


@pytest.mark.parametrize("value", [0, -1, True, 2.0, "3"])
def test_counts_that_are_none_are_refused(value):
    with pytest.raises(
        ValueError, match=f"num_samples should be a positive integer value, but got num_samples={value}"
    ):
        WeightedRandomSampler([1.0], value)
    with pytest.raises(ValueError, match=f"batch_size should be a positive integer value, but got batch_size={value}"):
        BatchSampler([1], value, False)


def test_weighted_refuses():
    with pytest.raises(ValueError, match="replacement should be a boolean value, but got replacement=1"):
        WeightedRandomSampler([1.0], 1, 1)
    with pytest.raises(ValueError, match=r"weights should be a 1d sequence but given weights have shape \(1, 2\)"):
        WeightedRandomSampler([[1.0, 2.0]], 1)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 6, 7])
@pytest.mark.parametrize("drop_last", [True, False])
def test_batches(count, drop_last):
    sampler = BatchSampler(range(count), 3, drop_last)
    want = [list(range(i, min(i + 3, count))) for i in range(0, count, 3)]
    want = [b for b in want if len(b) == 3 or not drop_last]
    assert list(sampler) == want
    assert len(sampler) == len(want)


def test_batches_refuse():
    with pytest.raises(ValueError, match="drop_last should be a boolean value, but got drop_last=1"):
        BatchSampler([1], 1, 1)


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize(("count", "replicas"), [(10, 2), (10, 3), (2, 5), (0, 2), (7, 1)])
def test_distributed_shares_are_equal_and_cover_all(count, replicas, shuffle):
    whole = [DistributedSampler(range(count), replicas, r, shuffle=shuffle) for r in range(replicas)]
    shares = [list(s) for s in whole]
    assert {len(s) for s in shares} == {len(whole[0])} == {-(-count // replicas)}
    assert {i for s in shares for i in s} == set(range(count))
    cut = [list(DistributedSampler(range(count), replicas, r, shuffle, drop_last=True)) for r in range(replicas)]
    assert {len(s) for s in cut} == {count // replicas}
    every = [i for s in cut for i in s]
    assert len(set(every)) == len(every)


def test_distributed_order_depends_on_seed_and_epoch():
    a, b = (DistributedSampler(range(100), 2, 0, seed=s) for s in (0, 1))
    first = list(a)
    assert list(a) == first
    assert list(b) != first
    a.set_epoch(1)
    assert list(a) == list(b)  # seed + epoch


def test_distributed_refuses():
    with pytest.raises(ValueError, match=r"Invalid rank 2, rank should be in the interval \[0, 1\]"):
        DistributedSampler([1], 2, 2)
    with pytest.raises(ValueError, match=r"Invalid rank -1, rank should be in the interval \[0, 1\]"):
        DistributedSampler([1], 2, -1)
