"""Objects from process to process: arrays by shared memory that is used again."""

import gc
import multiprocessing
import os
import threading

import ml_dtypes
import numpy as np
import pytest

import cudagrad as torch
from cudagrad.core.tensor import wrap
from cudagrad.utils.data import DataLoader
from cudagrad.utils.data._utils import transport
from cudagrad.utils.data._utils.transport import Receiver, Sender

from .common import Arrays

LARGE = 100_000


@pytest.fixture
def pair():
    """A sender and a receiver with a socket between them, in one process."""
    ours, theirs = multiprocessing.Pipe()
    yield Sender(theirs), Receiver(ours, keep=3)
    ours.close()
    theirs.close()


def passed(pair, value):
    sender, receiver = pair
    sending = threading.Thread(target=sender.send, args=((1,), value))  # a socket holds only so much
    sending.start()
    head, got = receiver.receive(lambda head: True)
    sending.join()
    assert head == (1,)
    return got


def released(pair):
    """Give the sender back what the receiver released; the numbers."""
    sender, receiver = pair
    numbers = receiver.released()
    sender.free(numbers)
    return numbers


VALUES = [
    np.arange(LARGE),
    np.asfortranarray(np.arange(LARGE * 2.0).reshape(2, LARGE)),
    np.arange(LARGE * 2)[::2],
    np.arange(LARGE).astype(ml_dtypes.bfloat16),
    np.zeros((0, 3)),
    np.array(5.0),
    np.array(["ab", "c"] * LARGE),
    np.broadcast_to(np.float32(1), (300, 300)),
    np.array([1, 2, 3], np.int8),
]


@pytest.mark.parametrize("large", [True, False])
@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("array", VALUES, ids=lambda a: f"{a.dtype}{a.shape}")
def test_arrays_arrive_as_they_were(pair, array, large, share):
    pair[0].share = share
    value = {"a": array, "more": np.zeros(LARGE) if large else None, "text": "x"}
    got = passed(pair, value)
    assert got["a"].dtype == array.dtype
    assert got["a"].shape == array.shape
    assert (got["a"] == array).all()
    assert got["a"].flags.writeable
    assert got["text"] == "x"


def test_arrays_that_cannot_be_written_can_be_at_the_other_end(pair):
    array = np.arange(LARGE)
    array.flags.writeable = False
    got = passed(pair, [array])[0]
    got += 1
    assert got[0] == 1


def test_tensors_keep_class_and_requires_grad(pair):
    t = torch.nn.Parameter(wrap(np.ones(LARGE, np.float32)))
    got = passed(pair, {"p": t, "b": wrap(np.ones(LARGE, ml_dtypes.bfloat16))})
    assert type(got["p"]) is torch.nn.Parameter
    assert got["p"].requires_grad
    assert got["b"].dtype is torch.bfloat16
    assert (got["p"].array == 1).all()


def test_objects_without_arrays_travel_too(pair):
    big = "x" * LARGE
    assert passed(pair, [big, None, {1, 2}]) == [big, None, {1, 2}]


def test_a_segment_is_used_again_when_its_last_array_is_gone(pair):
    first = passed(pair, [np.zeros(LARGE), np.ones(LARGE)])
    address = first[0].ctypes.data
    row = first[1][5:]
    del first
    gc.collect()
    assert released(pair) == []  # a view of a view still lies in it
    assert (row == 1).all()
    del row
    assert released(pair) == [1]
    second = passed(pair, [np.full(LARGE, 2.0), np.full(LARGE, 3.0)])
    assert second[0].ctypes.data == address
    assert (second[0] == 2).all()
    assert pair[0].made == 1


def test_a_segment_in_use_is_not_written(pair):
    got = [passed(pair, np.full(LARGE, i)) for i in range(8)]
    assert [int(a[0]) for a in got] == list(range(8))
    assert [int(a[-1]) for a in got] == list(range(8))
    assert len(pair[1].lent) == 3  # the others were copied, so that handles do not run out


def test_segments_too_small_are_given_up(pair):
    passed(pair, np.zeros(LARGE))
    gc.collect()
    assert released(pair) == [1]
    passed(pair, np.zeros(10 * LARGE))
    assert list(pair[1].segments) == [2]
    assert pair[0].idle == {}


def test_what_nobody_wants_is_not_read(pair):
    sender, receiver = pair
    sender.send((7,), np.zeros(LARGE))
    assert receiver.receive(lambda head: head != (7,)) == ((7,), None)
    assert released(pair) == [1]
    sender.send((8,), "small")
    assert receiver.receive(lambda head: False) == ((8,), None)


def test_what_cannot_be_pickled_sends_nothing(pair):
    with pytest.raises(Exception, match="pickle|local object"):
        pair[0].send((1,), [np.zeros(LARGE), lambda: 0])
    assert passed(pair, 3) == 3


def test_no_memory_is_an_error_of_the_batch(pair, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(transport.os, "posix_fallocate", full)
    handles = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="No space left"):
        pair[0].send((1,), np.zeros(LARGE))
    assert len(os.listdir("/proc/self/fd")) == handles
    assert passed(pair, 3) == 3


def test_a_temporary_file_takes_the_place_of_anonymous_memory(pair, monkeypatch):
    monkeypatch.delattr(transport.os, "memfd_create", raising=False)
    assert (passed(pair, np.arange(LARGE)) == np.arange(LARGE)).all()


def test_batches_that_are_kept_stay_as_they_are():
    loader = DataLoader(Arrays(40), 1, num_workers=2)
    kept = list(loader)
    for _ in range(2):
        for _ in loader:
            pass
    assert [int(b.array[0, 0, 0]) for b in kept] == list(range(40))
    assert [int(b.array[0, -1, -1]) for b in kept] == list(range(40))


def test_few_segments_serve_an_epoch():
    it = iter(DataLoader(Arrays(60), 1, num_workers=1))
    numbers = set()
    for batch in it:
        numbers |= set(it._pool.receivers[0].segments)
        del batch
    assert len(numbers) <= 5  # two ahead, one with the user, and what was on its way
