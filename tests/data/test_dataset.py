"""Datasets: what they hold, how they combine, and how they are split."""

import numpy as np
import pytest

import cudagrad as torch
from cudagrad.utils.data import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)


class Stream(IterableDataset):
    def __init__(self, *items):
        self.items = items

    def __iter__(self):
        return iter(self.items)

    def __len__(self):
        return len(self.items)


class Batched(Dataset):
    """Counts the calls of its two ways to be asked."""

    def __init__(self, n, extra=0):
        self.n, self.extra, self.calls = n, extra, []

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        self.calls.append(i)
        return i * 10

    def __getitems__(self, indices):
        self.calls.append(list(indices))
        return [i * 10 for i in indices] + [0] * self.extra


def test_a_dataset_without_getitem_says_so():
    with pytest.raises(NotImplementedError, match="Subclasses of Dataset should implement __getitem__"):
        Dataset()[0]
    with pytest.raises(NotImplementedError, match="Subclasses of IterableDataset should implement __iter__"):
        iter(IterableDataset())


def test_datasets_can_be_subscripted_with_their_sample_type():
    class Typed(Dataset[int]):
        def __getitem__(self, i):
            return i

    assert Typed()[3] == 3


def test_a_tensor_dataset_gives_rows():
    x, y = torch.arange(6).reshape(3, 2), torch.tensor([7, 8, 9])
    data = TensorDataset(x, y)
    row = data[1]
    assert isinstance(row, tuple)
    assert [t.tolist() for t in row] == [[2, 3], 8]
    assert len(data) == 3
    with pytest.raises(AssertionError, match="Size mismatch between tensors\n  got .3, 2., .2,."):
        TensorDataset(x, torch.ones(2))


def test_a_stack_gives_tuples_or_dicts():
    a, b = Batched(3), ["x", "y", "z"]
    assert StackDataset(a, b)[1] == (10, "y")
    assert StackDataset(a=a, b=b)[2] == {"a": 20, "b": "z"}
    assert len(StackDataset(a, b)) == 3
    assert StackDataset(a, b).__getitems__([2, 0]) == [(20, "z"), (0, "x")]
    assert StackDataset(a=a, b=b).__getitems__([1]) == [{"a": 10, "b": "y"}]
    assert a.calls == [1, 2, [2, 0], [1]]


def test_a_stack_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match=r"Supported either ``tuple``- \(via ``args``\) or``dict``"):
        StackDataset([1], a=[1])
    with pytest.raises(ValueError, match="At least one dataset should be passed"):
        StackDataset()
    with pytest.raises(ValueError, match="Size mismatch between datasets\n  got the lengths 1, 2"):
        StackDataset([1], [1, 2])
    with pytest.raises(ValueError, match="Nested dataset's output size mismatch. Expected 2, got 3"):
        StackDataset(Batched(3, extra=1)).__getitems__([0, 1])


def test_concatenation_counts_through():
    data = Batched(2) + Batched(3)
    assert isinstance(data, ConcatDataset)
    assert [data[i] for i in range(-5, 5)] == [0, 10, 0, 10, 20, 0, 10, 0, 10, 20]
    assert data.cumulative_sizes == [2, 5]
    assert len(data) == 5
    with pytest.raises(ValueError, match="absolute value of index should not exceed dataset length"):
        data[-6]
    with pytest.raises(AssertionError, match="datasets should not be an empty iterable"):
        ConcatDataset([])
    with pytest.raises(AssertionError, match="ConcatDataset does not support IterableDataset"):
        ConcatDataset([Stream(1)])
    with pytest.warns(FutureWarning, match="renamed to `cumulative_sizes`"):
        assert data.cummulative_sizes == [2, 5]


def test_streams_are_chained():
    chained = Stream(1, 2) + Stream(3)
    assert isinstance(chained, ChainDataset)
    assert list(chained) == [1, 2, 3]
    assert len(chained) == 3
    with pytest.raises(AssertionError, match="ChainDataset only supports IterableDataset"):
        list(ChainDataset([[1]]))


def test_a_subset_asks_its_dataset_once_a_batch():
    data = Batched(5)
    part = Subset(data, [4, 2, 0])
    assert part[1] == 20
    assert part.__getitems__([2, 0]) == [0, 40]
    assert data.calls == [2, [0, 4]]
    assert Subset("abcde", [4, 2]).__getitems__([1]) == ["c"]
    assert len(part) == 3


def test_a_subset_of_a_dataset_that_takes_lists_passes_them_on():
    assert Subset(np.arange(5) * 10, [4, 2, 0])[[0, 2]].tolist() == [40, 0]


def test_a_subset_that_overrides_half_is_refused():
    class Half(Subset):
        def __getitem__(self, i):
            return -1

    with pytest.raises(NotImplementedError, match="Half overrides __getitem__ but not __getitems__"):
        Half([1], [0])


def test_random_split_shares_all_out():
    g = torch.Generator().manual_seed(1)
    parts = random_split(range(10), [3, 7], generator=g)
    assert [len(p) for p in parts] == [3, 7]
    assert sorted(x for p in parts for x in p) == list(range(10))
    order = torch.randperm(10, generator=torch.Generator().manual_seed(1)).tolist()
    assert parts[0].indices + parts[1].indices == order


@pytest.mark.parametrize(
    ("count", "fractions", "lengths"),
    [
        (10, [0.5, 0.5], [5, 5]),
        (10, [0.33, 0.33, 0.34], [4, 3, 3]),
        (11, [0.3, 0.3, 0.4], [4, 3, 4]),
        (106, [0.1, 0.2, 0.3, 0.4], [11, 22, 31, 42]),
        (3, [1.0], [3]),
    ],
)
def test_fractions_are_rounded_down_and_the_rest_goes_round(count, fractions, lengths):
    assert [len(p) for p in random_split(range(count), fractions)] == lengths


def test_random_split_refuses_wrong_lengths():
    with pytest.raises(ValueError, match="Sum of input lengths does not equal the length of the input dataset!"):
        random_split(range(4), [1, 2])
    with pytest.raises(ValueError, match="Fraction at index 0 is not between 0 and 1"):
        random_split(range(4), [-0.5, 1.5])
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0. This might result in an empty dataset."):
        random_split(range(1), [0.5, 0.5])


def test_random_split_uses_the_default_generator():
    torch.manual_seed(3)
    first = random_split(range(20), [10, 10])[0].indices
    torch.manual_seed(3)
    assert random_split(range(20), [10, 10])[0].indices == first
