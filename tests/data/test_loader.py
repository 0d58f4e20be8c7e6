"""The loader without regard to who fetches: batches, order, lengths, generators, arguments."""

import multiprocessing
import pickle
import warnings

import numpy as np
import pytest

import cudagrad as torch
from cudagrad.utils.data import BatchSampler, DataLoader, SequentialSampler, Subset, TensorDataset
from cudagrad.utils.data import dataloader as module

from .common import NAMES, WAYS, Squares, Stream, as_is, plain

ways = pytest.mark.parametrize("way", WAYS, ids=NAMES)


@ways
@pytest.mark.parametrize("drop_last", [True, False])
@pytest.mark.parametrize("count", [0, 1, 4, 9])
def test_every_sample_comes_once_in_order(way, count, drop_last):
    loader = DataLoader(Squares(count), batch_size=4, drop_last=drop_last, **way)
    want = [[i * i for i in range(s, min(s + 4, count))] for s in range(0, count, 4)]
    want = [b for b in want if len(b) == 4 or not drop_last]
    for _ in range(2):
        assert plain(loader) == want
    assert len(loader) == len(want)


@ways
def test_without_batches_samples_come_converted(way):
    data = [np.array([1.0]), "x", (1, np.float32(2))]
    got = list(DataLoader(data, batch_size=None, **way))
    assert got[0].tolist() == [1.0]
    assert got[1] == "x"
    assert got[2][1].dtype is torch.float32
    assert len(DataLoader(data, batch_size=None)) == 3


@ways
def test_samplers_decide(way):
    assert plain(DataLoader(Squares(9), 2, sampler=[5, 1, 3], **way)) == [[25, 1], [9]]
    batches = BatchSampler(SequentialSampler(range(5)), 3, False)
    loader = DataLoader(Squares(9), batch_sampler=batches, **way)
    assert plain(loader) == [[0, 1, 4], [9, 16]]
    assert (loader.batch_size, loader.drop_last, len(loader)) == (None, False, 2)
    assert list(DataLoader({"a": 1, "b": 2}, sampler=["b", "a"], batch_size=None, **way)) == [2, 1]


@ways
def test_collate_fn_is_used(way):
    assert list(DataLoader(Squares(5), 2, collate_fn=as_is, **way)) == [[0, 1], [4, 9], [16]]


@ways
def test_getitems_is_asked_once_a_batch(way):
    class Batched(Squares):
        def __getitems__(self, indices):
            return [len(indices)] * len(indices)

    assert plain(DataLoader(Batched(5), 3, **way)) == [[3, 3, 3], [2, 2]]


@ways
def test_a_tensor_dataset_gives_the_same_by_columns_as_by_rows(way):
    x = torch.arange(20.0).reshape(10, 2)
    y = torch.arange(10)
    data = TensorDataset(x, y)
    rows = plain(DataLoader([data[i] for i in range(10)], 4, **way))
    assert plain(DataLoader(data, 4, **way)) == rows
    part = Subset(data, [7, 3, 3, 1])
    assert plain(DataLoader(part, 3, **way)) == plain(DataLoader([part[i] for i in range(4)], 3, **way))


def test_a_tensor_dataset_that_overrides_getitem_is_asked_for_each_sample():
    class Doubled(TensorDataset):
        def __getitem__(self, i):
            return tuple(2 * t for t in super().__getitem__(i))

    assert plain(DataLoader(Doubled(torch.arange(3)), 2)) == [[[0, 2]], [[4]]]


def test_a_taught_collation_of_tensors_is_used_for_columns_too(monkeypatch):
    from cudagrad.utils.data._utils.collate import default_collate_fn_map

    monkeypatch.setitem(default_collate_fn_map, torch.Tensor, lambda batch, *, collate_fn_map: len(batch))
    assert list(DataLoader(TensorDataset(torch.arange(3)), 2)) == [[2], [1]]


def test_batches_by_columns_are_copies():
    x = torch.zeros(4, 2)
    for (batch,) in DataLoader(TensorDataset(x), 2):
        batch += 1
    assert x.sum().item() == 0


# ---- streams


@ways
@pytest.mark.parametrize("drop_last", [True, False])
def test_a_stream_is_batched(way, drop_last):
    loader = DataLoader(Stream(10), batch_size=3, drop_last=drop_last, **way)
    got = plain(loader)
    if way["num_workers"]:  # worker 0 has the even numbers, worker 1 the odd ones
        want = [[0, 2, 4], [1, 3, 5], [6, 8], [7, 9]]
    else:
        want = [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]
    assert got == [b for b in want if len(b) == 3 or not drop_last]
    assert plain(loader) == got
    assert len(loader) == (3 if drop_last else 4)


@ways
def test_a_stream_without_batches(way):
    assert sorted(DataLoader(Stream(5), batch_size=None, **way)) == [0, 1, 2, 3, 4]
    assert len(DataLoader(Stream(5), batch_size=None)) == 5


@ways
def test_a_stream_longer_than_its_length_warns(way):
    loader = DataLoader(Stream(5, length=3), batch_size=None, **way)
    assert len(loader) == 3
    with pytest.warns(UserWarning, match="Length of IterableDataset .* was reported to be 3") as caught:
        list(loader)
    assert len(caught) == 2
    for count, warning in zip((4, 5), caught):
        said = str(warning.message)
        assert f"was reported to be 3(when accessing len(dataloader)), but {count} samples have been fetched. " in said
        assert ("For multiprocessing data-loading, this could be" in said) == bool(way["num_workers"])
        assert warning.filename == __file__


def test_a_stream_whose_length_nobody_asked_for_does_not_warn():
    assert len(list(DataLoader(Stream(5, length=3)))) == 5


@ways
def test_workers_that_do_not_share_a_stream_out_give_all_of_it_each(way):
    got = sorted(DataLoader(Stream(4, sharded=False), batch_size=None, **way))
    assert got == sorted([0, 1, 2, 3] * max(1, way["num_workers"]))


# ---- generators


@ways
def test_shuffle_and_base_seed_take_one_number_each_of_the_default_generator(way):
    torch.manual_seed(7)
    for shuffle in (True, False):
        before = torch.default_generator.get_offset()
        list(DataLoader(Squares(4), shuffle=shuffle, **way))
        assert torch.default_generator.get_offset() == before + 1 + shuffle


@ways
def test_the_order_depends_on_the_seed_alone(way):
    torch.manual_seed(7)
    orders = [plain(DataLoader(Squares(20), 5, shuffle=True)) for _ in range(2)]
    assert orders[0] != orders[1]
    torch.manual_seed(7)
    loader = DataLoader(Squares(20), 5, shuffle=True, **way)
    assert [plain(loader), plain(loader)] == orders
    assert sorted(sum(orders[0], [])) == [i * i for i in range(20)]


@ways
def test_a_generator_of_the_loader_leaves_the_default_one_alone(way):
    orders = []
    for _ in range(2):
        before = torch.default_generator.get_offset()
        g = torch.Generator().manual_seed(3)
        orders.append(plain(DataLoader(Squares(20), 5, shuffle=True, generator=g, **way)))
        assert torch.default_generator.get_offset() == before
        assert g.get_offset() == 2
    assert orders[0] == orders[1]


# ---- arguments

REFUSED = [
    ({"num_workers": -1}, ValueError, "num_workers option should be non-negative; use num_workers=0 to disable multi"),
    ({"timeout": -1}, ValueError, "timeout option should be non-negative"),
    ({"prefetch_factor": 2}, ValueError, "prefetch_factor option could only be specified in multiprocessing.let num_"),
    ({"num_workers": 1, "prefetch_factor": -1}, ValueError, "prefetch_factor option should be non-negative"),
    ({"persistent_workers": True}, ValueError, "persistent_workers option needs num_workers > 0"),
    ({"sampler": [0], "shuffle": True}, ValueError, "sampler option is mutually exclusive with shuffle"),
    ({"batch_sampler": [[0]], "batch_size": 2}, ValueError, "batch_sampler option is mutually exclusive with batch_s"),
    ({"batch_sampler": [[0]], "shuffle": True}, ValueError, "batch_sampler option is mutually exclusive with batch_s"),
    ({"batch_sampler": [[0]], "sampler": [0]}, ValueError, "batch_sampler option is mutually exclusive with batch_si"),
    ({"batch_sampler": [[0]], "drop_last": True}, ValueError, "batch_sampler option is mutually exclusive with batch"),
    ({"batch_size": None, "drop_last": True}, ValueError, "batch_size=None option disables auto-batching and is mut"),
    ({"batch_size": 0}, ValueError, "batch_size should be a positive integer value, but got batch_size=0"),
    ({"drop_last": 2}, ValueError, "drop_last should be a boolean value, but got drop_last=2"),
    ({"multiprocessing_context": "fork"}, ValueError, "multiprocessing_context can only be used with multi-process l"),
    ({"num_workers": 1, "multiprocessing_context": "nope"}, ValueError, "multiprocessing_context option should speci"),
    ({"num_workers": 1, "multiprocessing_context": 3}, TypeError, "multiprocessing_context option should be a valid"),
]
REFUSED_FOR_STREAMS = [
    ({"shuffle": True}, ValueError, "DataLoader with IterableDataset: expected unspecified shuffle option, but got s"),
    ({"sampler": [0]}, ValueError, "DataLoader with IterableDataset: expected unspecified sampler option, but got sa"),
    ({"batch_sampler": [[0]]}, ValueError, "DataLoader with IterableDataset: expected unspecified batch_sampler opti"),
]


@pytest.mark.parametrize(("arguments", "kind", "words"), REFUSED, ids=lambda v: str(v)[:40])
def test_arguments_that_exclude_each_other_are_refused(arguments, kind, words):
    with pytest.raises(kind) as caught:
        DataLoader(Squares(3), **arguments)
    assert str(caught.value).startswith(words)


@pytest.mark.parametrize(("arguments", "kind", "words"), REFUSED_FOR_STREAMS, ids=lambda v: str(v)[:40])
def test_arguments_that_a_stream_has_no_use_for_are_refused(arguments, kind, words):
    with pytest.raises(kind) as caught:
        DataLoader(Stream(3), **arguments)
    assert str(caught.value).startswith(words)


@pytest.mark.peer
def test_the_texts_are_torchs():
    torch_data = pytest.importorskip("torch.utils.data", reason="PyTorch is not installed")

    class TheirStream(torch_data.IterableDataset):
        def __iter__(self):
            return iter(())

    for cases, ours, theirs in ((REFUSED, Squares(3), [1, 2, 3]), (REFUSED_FOR_STREAMS, Stream(3), TheirStream())):
        for arguments, kind, _ in cases:
            with pytest.raises(kind) as caught:
                DataLoader(ours, **arguments)
            with pytest.raises(kind) as expected:
                torch_data.DataLoader(theirs, **arguments)
            assert str(caught.value).split("\n")[0] == str(expected.value)


def test_workers_is_process_or_thread():
    with pytest.raises(
        ValueError, match=r"workers option should be one of \('process', 'thread'\), but got workers='g'"
    ):
        DataLoader([1], workers="g")


def test_a_prefetch_factor_of_zero_is_refused_when_iterating():
    with pytest.raises(
        AssertionError, match="prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter"
    ):
        iter(DataLoader([1], num_workers=1, prefetch_factor=0))
    with pytest.raises(AssertionError, match="_SingleProcessDataLoaderIter requires timeout == 0"):
        iter(DataLoader([1], timeout=1))


@pytest.mark.parametrize(
    "name", ["batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"]
)
def test_what_the_samplers_were_made_of_cannot_change(name):
    loader = DataLoader([1])
    with pytest.raises(ValueError, match=f"{name} attribute should not be set after DataLoader is initialized"):
        setattr(loader, name, 1)


def test_defaults_are_torchs():
    loader = DataLoader([1, 2])
    assert (loader.batch_size, loader.num_workers, loader.prefetch_factor, loader.timeout) == (1, 0, None, 0)
    assert DataLoader([1], num_workers=1).prefetch_factor == 2
    assert (loader.pin_memory, loader.drop_last, loader.persistent_workers, loader.in_order) == (
        False,
        False,
        False,
        True,
    )
    assert isinstance(DataLoader([1], num_workers=1, multiprocessing_context="spawn").multiprocessing_context,
                      multiprocessing.context.SpawnContext)  # fmt: skip


def test_more_processes_than_cpus_warn(monkeypatch):
    monkeypatch.setattr(module.os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    words = "This DataLoader will create 3 worker processes in total. Our suggested max number of worker in current sy"
    with pytest.warns(UserWarning, match=words) as caught:
        DataLoader([1], num_workers=3)
    assert caught[0].filename == __file__
    DataLoader([1], num_workers=3, workers="thread")
    DataLoader([1], num_workers=2)


def test_pinned_memory_without_a_gpu_warns(monkeypatch):
    from cudagrad.backend import cuda

    monkeypatch.setattr(cuda, "is_available", lambda: False)
    with pytest.warns(UserWarning, match="'pin_memory' argument is set as true but no accelerator is found") as caught:
        batches = list(DataLoader([1, 2], pin_memory=True))
    assert len(batches) == 2
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning) as caught:
        iter(DataLoader([1, 2], pin_memory=True, pin_memory_device="cuda"))
    assert str(caught[0].message).startswith("pin_memory_device is deprecated")


@ways
def test_batches_are_pinned_where_there_is_a_gpu(way, monkeypatch):
    from cudagrad.backend import cuda

    monkeypatch.setattr(cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: self + 100)
    assert plain(DataLoader(Squares(4), 2, pin_memory=True, **way)) == [[100, 101], [104, 109]]


def test_iterators_are_not_pickled_and_loaders_are():
    loader = DataLoader(Squares(4), 2)
    with pytest.raises(NotImplementedError):
        pickle.dumps(iter(loader))
    assert plain(pickle.loads(pickle.dumps(loader))) == plain(loader)


def test_a_loader_can_be_subscripted_and_subclassed():
    class Mine(DataLoader[int]):
        pass

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert plain(Mine(Squares(2))) == [[0], [1]]


def test_an_iterator_has_a_length_and_is_its_own_iterator():
    it = iter(DataLoader(Squares(5), 2))
    assert len(it) == 3
    assert iter(it) is it
