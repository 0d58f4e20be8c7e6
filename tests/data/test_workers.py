"""Workers: what they are told, what their errors say, how they die, and that nothing of them is left."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import numpy as np
import pytest

import cudagrad as torch
from cudagrad.utils.data import DataLoader, get_worker_info
from cudagrad.utils.data._utils import pool as pools

from .common import (
    AHEAD,
    NAMES,
    Arrays,
    Faulty,
    Noise,
    NoisyStream,
    OwnNoise,
    Squares,
    Stream,
    Unsendable,
    Whoami,
    as_is,
    plain,
)

ahead = pytest.mark.parametrize("way", AHEAD, ids=NAMES[1:])
WHERE = {"process": "process", "thread": "thread"}
METHODS = multiprocessing.get_all_start_methods()


def alive(pid):
    """Whether a process runs; one that ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def gone(pids, within_s=8.0):
    """Whether all these processes end in time."""
    limit = time.monotonic() + within_s
    while any(map(alive, pids)) and time.monotonic() < limit:
        time.sleep(0.02)
    return not any(map(alive, pids))


def noted(worker_id):
    """A hook that marks the worker's copy of the dataset."""
    get_worker_info().dataset.n = 1000 + worker_id


def failing(worker_id):
    raise ValueError(f"hook of {worker_id}")


# ---- what a worker knows


def test_in_the_users_process_there_is_no_worker_info():
    assert get_worker_info() is None
    assert [b[0].tolist() for b in DataLoader(Whoami(2))] == [[-1], [-1]]


@ahead
def test_a_worker_knows_its_number_and_its_seed(way):
    torch.manual_seed(4)
    seed = torch.Generator().manual_seed(4)
    got = [tuple(c.item() for c in b) for b in DataLoader(Whoami(4), 1, generator=seed, **way)]
    base = got[0][2]
    assert got == [(0, 2, base), (1, 2, base + 1)] * 2
    assert get_worker_info() is None


@ahead
def test_the_hook_sees_the_workers_own_copy(way):
    class Told(Squares):
        def __getitem__(self, i):
            return self.n

    data = Told(4)
    got = plain(DataLoader(data, 1, worker_init_fn=noted, **way))
    assert got == [[1000], [1001], [1000], [1001]]
    assert data.n == 4


@ahead
def test_an_error_of_the_hook_is_the_first_thing_that_comes(way):
    it = iter(DataLoader(Squares(4), 1, worker_init_fn=failing, **way))
    kind = "thread" if "workers" in way else "process"
    with pytest.raises(ValueError, match=f"Caught ValueError in DataLoader worker {kind} 0.\n(?s:.*)hook of 0"):
        next(it)


@pytest.mark.parametrize("method", METHODS)
def test_every_start_method_works(method):
    loader = DataLoader(Arrays(4), 2, num_workers=2, multiprocessing_context=method, worker_init_fn=noted)
    assert [b[:, 0, 0].tolist() for b in (b.numpy() for b in loader)] == [[0, 1], [2, 3]]
    context = multiprocessing.get_context(method)
    assert plain(DataLoader(Squares(2), num_workers=1, multiprocessing_context=context)) == [[0], [1]]


def test_what_cannot_be_pickled_is_said_with_the_way_out():
    with pytest.raises(Exception, match=r"pickle(?s:.*)workers='thread', or multiprocessing_context='fork'"):
        iter(DataLoader(Squares(2), num_workers=1, multiprocessing_context="spawn", collate_fn=lambda b: b))


# ---- random numbers


def test_random_numbers_of_samples_do_not_depend_on_the_number_of_workers():
    runs = []
    for workers, batch_size in ((1, 3), (2, 3), (2, 4)):
        torch.manual_seed(5)
        got = plain(DataLoader(Noise(12), batch_size, num_workers=workers))
        runs.append([sum((b[c] for b in got), []) for c in range(4)])
    assert runs[0] == runs[1] == runs[2]
    assert all(len(set(column)) == 12 for column in runs[0])


def test_the_workers_own_generators_say_the_same_in_threads_and_processes():
    runs = []
    for way in ({"num_workers": 1}, *AHEAD):
        torch.manual_seed(5)
        runs.append(plain(DataLoader(OwnNoise(8), 4, **way)))
    assert runs[0] == runs[1] == runs[2]
    assert len(set(runs[0][0][1] + runs[0][1][1])) == 8


def test_random_numbers_are_new_in_each_epoch():
    for persistent in (True, False):
        torch.manual_seed(5)
        loader = DataLoader(Noise(4), 4, num_workers=1, persistent_workers=persistent)
        first, second = plain(loader), plain(loader)
        assert not set(first[0][1]) & set(second[0][1])
        torch.manual_seed(5)
        assert plain(loader if not persistent else DataLoader(Noise(4), 4, num_workers=1)) == first


def test_an_index_drawn_twice_is_not_augmented_alike():
    got = plain(DataLoader(Noise(4), 4, sampler=[2, 2, 2, 2], num_workers=1))
    assert len(set(got[0][1])) == 4


def test_threads_leave_the_global_generators_alone():
    import random

    states = random.getstate(), np.random.get_state()[2], torch.default_generator.get_offset()
    plain(DataLoader(Squares(8), 2, num_workers=2, workers="thread"))
    assert (random.getstate(), np.random.get_state()[2]) == states[:2]
    assert torch.default_generator.get_offset() == states[2] + 1  # base_seed


def test_streams_are_seeded_by_worker():
    torch.manual_seed(5)
    first = plain(DataLoader(NoisyStream(8), 4, num_workers=2))
    assert len({r for b in first for r in b[1]}) == 8
    torch.manual_seed(5)
    assert plain(DataLoader(NoisyStream(8), 4, num_workers=2)) == first


# ---- order


class Slow(Squares):
    """The first sample takes long."""

    def __getitem__(self, i):
        time.sleep(0.3 if i == 0 else 0.0)
        return i


@ahead
def test_batches_come_in_order_unless_told_otherwise(way):
    assert plain(DataLoader(Slow(8), 1, **way)) == [[i] for i in range(8)]
    loose = plain(DataLoader(Slow(8), 1, in_order=False, **way))
    assert sorted(loose) == [[i] for i in range(8)]
    assert loose[0] != [0]


@ahead
def test_no_more_is_fetched_ahead_than_told(way):
    asked = []

    class Sampler:
        def __iter__(self):
            for i in range(20):
                asked.append(i)
                yield i

    it = iter(DataLoader(Squares(20), 1, sampler=Sampler(), prefetch_factor=3, **way))
    assert len(asked) == 6
    next(it)
    assert len(asked) == 7


@ahead
def test_streams_of_different_lengths_run_out_one_by_one(way):
    class Uneven(Stream):
        def __iter__(self):
            return iter([0] * (9 if get_worker_info().id else 1))

    assert len(plain(DataLoader(Uneven(1), 1, **way))) == 10
    loose = DataLoader(Uneven(1), 1, in_order=False, **way)
    assert len(plain(loose)) == 10


@ahead
def test_persistent_workers_live_on(way):
    loader = DataLoader(Squares(6), 2, persistent_workers=True, **way)
    it = iter(loader)
    workers = list(it._pool.workers)
    assert plain(it) == [[0, 1], [4, 9], [16, 25]]
    for _ in range(2):
        again = iter(loader)
        assert again is it
        assert plain(again) == [[0, 1], [4, 9], [16, 25]]
    assert it._pool.workers == workers
    assert all(w.is_alive() for w in workers)


@ahead
@pytest.mark.parametrize("data", [Arrays(12), Stream(12)], ids=["map", "stream"])
def test_an_epoch_that_was_left_early_does_not_leak_into_the_next(way, data):
    loader = DataLoader(data, 2, persistent_workers=True, collate_fn=as_is, **way)
    want = [[np.ravel(s)[0] for s in b] for b in loader]
    for _ in range(5):
        next(iter(loader))
    assert [[np.ravel(s)[0] for s in b] for b in loader] == want


# ---- errors


@ahead
def test_an_error_comes_with_its_type_and_traceback_and_the_epoch_goes_on(way):
    kind = "thread" if "workers" in way else "process"
    it = iter(DataLoader(Faulty(8, "value"), 1, **way))
    assert plain(next(it) for _ in range(5)) == [[i] for i in range(5)]
    with pytest.raises(ValueError) as caught:
        next(it)
    said = str(caught.value)
    assert said.startswith(
        f"Caught ValueError in DataLoader worker {kind} 1.\nOriginal Traceback (most recent call last):\n"
    )
    assert "tests/data/common.py" in said
    assert said.endswith("ValueError: five is bad\n")
    assert plain(it) == [[6], [7]]


@ahead
def test_a_key_error_is_readable(way):
    with pytest.raises(KeyError) as caught:
        list(DataLoader(Faulty(6, "key"), **way))
    assert "\n" in repr(caught.value.args[0])
    assert str(caught.value).startswith("Caught KeyError in DataLoader worker")


@ahead
@pytest.mark.parametrize("name", ["strange", "hidden"])
def test_an_exception_that_cannot_be_made_again_is_a_runtime_error(way, name):
    with pytest.raises(
        Exception, match=f"Caught {'Strange' if name == 'strange' else 'Hidden'} in DataLoader worker"
    ) as got:
        list(DataLoader(Faulty(6, name), **way))
    if name == "strange" or "workers" not in way:
        assert type(got.value) is RuntimeError


@ahead
def test_stop_iteration_of_a_map_is_an_error_and_no_end(way):
    with pytest.raises(RuntimeError, match="Caught StopIteration in DataLoader worker"):
        list(DataLoader(Faulty(6, "stop"), **way))


def test_stop_iteration_without_workers_is_an_error_and_no_end():
    with pytest.raises(RuntimeError, match="the dataset raised StopIteration, which would end the epoch unnoticed"):
        list(DataLoader(Faulty(6, "stop")))


def test_a_batch_that_cannot_be_sent_is_an_error():
    with pytest.raises(TypeError, match="Caught TypeError in DataLoader worker process 0.\n(?s:.*)cannot pickle"):
        list(DataLoader(Unsendable(2), num_workers=1, collate_fn=as_is))
    assert len(list(DataLoader(Unsendable(2), num_workers=1, workers="thread", collate_fn=as_is))) == 2


class Fragile:
    """Pickles and does not come back."""

    def __reduce__(self):
        return int, ("not a number",)


def test_a_batch_that_cannot_be_read_is_an_error_and_the_epoch_goes_on():
    it = iter(DataLoader([Fragile(), 1], num_workers=1, collate_fn=as_is))
    with pytest.raises(ValueError, match="Caught ValueError while unpickling what a DataLoader worker sent"):
        next(it)
    assert list(it) == [[1]]


@pytest.mark.parametrize(
    ("way", "cause"),
    [("exit", "worker 1: exit code 3"), ("abort", r"worker 1: killed by signal SIGKILL \(out of memory\?\)")],
)
def test_a_dead_worker_is_noticed_at_once(way, cause):
    it = iter(DataLoader(Faulty(8, way), 1, num_workers=2))
    pid = it._pool.pids()[1]
    start = time.monotonic()
    with pytest.raises(
        RuntimeError, match=rf"^DataLoader worker \(pid\(s\) {pid}\) exited unexpectedly\n  {cause}\n  fix: num"
    ):
        list(it)
    assert time.monotonic() - start < 4
    pids = it._pool.pids()
    del it
    gc.collect()
    assert gone(pids)


def test_a_worker_that_dies_between_epochs_is_noticed():
    loader = DataLoader(Squares(4), 1, num_workers=2, persistent_workers=True)
    it = iter(loader)
    list(it)
    os.kill(it._pool.pids()[0], signal.SIGKILL)
    it._pool.workers[0].join()
    with pytest.raises(RuntimeError, match="exited unexpectedly\n  worker 0: killed by signal SIGKILL"):
        list(loader)


@pytest.mark.parametrize("way", ["exit", "interrupt"])
def test_a_thread_that_ends_itself_is_noticed(way):
    with pytest.raises(
        RuntimeError, match=r"DataLoader worker \(thread 0\) exited unexpectedly\n  (SystemExit|KeyboardInt)"
    ):
        list(DataLoader(Faulty(8, way), 1, num_workers=1, workers="thread"))


def test_a_late_worker_is_an_error(monkeypatch):
    monkeypatch.setattr(pools, "INTERVAL_S", 0.2)
    it = iter(DataLoader(Faulty(8, "sleep"), 1, num_workers=2, timeout=0.3))
    pids = it._pool.pids()
    with pytest.raises(RuntimeError, match="^DataLoader timed out after 0.3 seconds\n  waited for worker 1"):
        list(it)
    del it
    gc.collect()
    assert gone(pids, 5)  # asked to end, then told by SIGTERM
    slow = iter(DataLoader(Slow(2), 1, num_workers=1, workers="thread", timeout=0.05))
    with pytest.raises(RuntimeError, match="DataLoader timed out after 0.05 seconds"):
        list(slow)


# ---- nothing is left


def test_workers_that_another_pool_was_forked_after_end_at_once():
    first, second = (iter(DataLoader(Squares(8), 1, num_workers=2)) for _ in range(2))
    start = time.monotonic()
    pids = first._pool.pids()
    del first
    assert gone(pids)
    assert time.monotonic() - start < 2
    assert plain(second) == [[i * i] for i in range(8)]


@ahead
@pytest.mark.parametrize("taken", [0, 1, 12])
def test_an_iterator_that_is_dropped_ends_its_workers(way, taken):
    it = iter(DataLoader(Arrays(12), 1, **way))
    for _ in range(taken):
        next(it)
    pool, seen = it._pool, weakref.ref(it)
    del it
    assert seen() is None  # at once, not at the next collection: nothing refers back to it
    for worker in pool.workers:
        worker.join(5)
        assert not worker.is_alive()
    assert len(multiprocessing.active_children()) == 0


def test_a_used_up_iterator_ends_its_workers_though_it_is_kept():
    it = iter(DataLoader(Squares(4), 1, num_workers=2))
    pids = it._pool.pids()
    list(it)
    assert gone(pids)
    with pytest.raises(StopIteration):
        next(it)


def test_handles_and_memory_of_earlier_epochs_are_given_back():
    def handles():
        return len(os.listdir("/proc/self/fd"))

    loader = DataLoader(Arrays(8), 2, num_workers=2)
    list(loader)
    gc.collect()
    before = handles(), threading.active_count()
    for _ in range(5):
        assert len(list(loader)) == 4
        next(iter(loader))
    gc.collect()
    assert (handles(), threading.active_count()) == before


def test_a_forked_child_that_drops_the_iterator_leaves_the_workers_alone():
    it = iter(DataLoader(Squares(8), 1, num_workers=1))
    next(it)
    child = os.fork()
    if child == 0:
        it = None
        gc.collect()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert plain(it) == [[i * i] for i in range(1, 8)]


PROGRAM = """
import os, signal, sys, time
from cudagrad.utils.data import DataLoader
from cudagrad.utils.data._utils import pool
from tests.data.common import Faulty, Squares

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it, and so do its children
way = sys.argv[1]
pool.INTERVAL_S = 1.0
data = Faulty(99, "sleep") if way == "stuck" else Squares(99)
loader = DataLoader(data, 1, num_workers=2, prefetch_factor=4, persistent_workers=True)
it = iter(loader)
print(*it._pool.pids(), flush=True)
next(it)
if way == "raise":
    raise ValueError("user")
if way == "loop":
    while True:
        next(it, None) or iter(loader)
if way in ("stuck", "wait"):
    time.sleep(100)
"""


def started(way):
    root = Path(__file__).parents[2]
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, way],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=root,
        start_new_session=True,
    )
    return program, [int(pid) for pid in program.stdout.readline().split()]


def ended(program):
    """What a program wrote to stderr before it ended; if it does not end, it goes with all its processes."""
    try:
        return program.communicate(timeout=60)[1].decode()
    except subprocess.TimeoutExpired:
        os.killpg(program.pid, signal.SIGKILL)
        program.communicate()
        raise


@pytest.mark.parametrize(
    ("way", "number", "code"),
    [
        ("end", None, 0),
        ("raise", None, 1),
        ("loop", signal.SIGINT, -2),
        ("wait", signal.SIGINT, -2),
        ("wait", signal.SIGTERM, -15),
        ("wait", signal.SIGKILL, -9),
    ],
)
def test_whatever_ends_the_program_no_process_is_left(way, number, code):
    program, pids = started(way)
    assert len(pids) == 2
    if number is not None:
        time.sleep(0.2)
        if number == signal.SIGINT:
            os.killpg(program.pid, number)  # as the terminal does at Ctrl-C
        else:
            program.send_signal(number)
    errors = ended(program)
    assert program.returncode == code
    assert gone(pids)
    if code == 0:
        assert errors == ""
    if code == -2:  # the user's traceback and none of a worker
        assert errors.count("Traceback") == 1
        assert errors.rstrip().endswith("KeyboardInterrupt")


def test_workers_that_hang_go_with_a_killed_program():
    program, pids = started("stuck")
    time.sleep(0.3)
    program.kill()
    program.wait()
    time.sleep(0.5)
    assert alive(pids[1])  # it sleeps on; its listener gives it two seconds
    assert gone(pids)
    program.communicate()
