"""A loader that is stopped in the middle of an epoch and continued elsewhere gives what it would have given."""

import io

import pytest

import cudagrad as torch
from cudagrad.serialization import load, save
from cudagrad.utils.data import DataLoader, RandomSampler, WeightedRandomSampler

from .common import AHEAD, NAMES, WAYS, Noise, NoisyStream, Squares, Stream, plain

ways = pytest.mark.parametrize("way", WAYS, ids=NAMES)
LOADERS = {
    "in order": {},
    "shuffled": {"shuffle": True},
    "by a generator": {"shuffle": True, "generator": 3},
    "by weights": {"sampler": lambda: WeightedRandomSampler(range(1, 24), 23)},
    "with replacement": {
        "sampler": lambda: RandomSampler(range(23), True, 70, generator=torch.Generator().manual_seed(4))
    },
}


def made(way, kind, data):
    options = dict(LOADERS[kind])
    if "generator" in options:
        options["generator"] = torch.Generator().manual_seed(options["generator"])
    if "sampler" in options:
        options["sampler"] = options["sampler"]()
    return DataLoader(data, batch_size=4, **options, **way)


def taken(loader, count):
    """The first ``count`` batches of an epoch, and the state after them."""
    it = iter(loader)
    return plain(next(it) for _ in range(count)), loader.state_dict()


@ways
@pytest.mark.parametrize("kind", LOADERS)
@pytest.mark.parametrize("count", [0, 4])
def test_the_rest_of_an_epoch_and_the_next_one_are_the_same(way, kind, count):
    torch.manual_seed(11)
    whole = made(way, kind, Squares(23))
    first, second = plain(whole), plain(whole)
    torch.manual_seed(11)
    loader = made(way, kind, Squares(23))
    head, state = taken(loader, count)
    after = torch.get_rng_state()
    torch.manual_seed(99)  # another process begins with another seed
    other = made(way, kind, Squares(23))
    other.load_state_dict(state)
    torch.set_rng_state(after)
    assert head + plain(other) == first
    assert torch.get_rng_state().tolist() == after.tolist()
    assert plain(other) == second


def test_random_transforms_continue_with_any_number_of_workers():
    torch.manual_seed(11)
    whole = plain(DataLoader(Noise(20), 3, shuffle=True, num_workers=1))
    torch.manual_seed(11)
    head, state = taken(DataLoader(Noise(20), 3, shuffle=True, num_workers=2), 3)
    other = DataLoader(Noise(20), 3, shuffle=True, num_workers=1)
    other.load_state_dict(state)
    assert head + plain(other) == whole


@pytest.mark.parametrize("way", AHEAD, ids=NAMES[1:])
def test_persistent_workers_continue_in_a_later_epoch(way):
    torch.manual_seed(11)
    loader = DataLoader(Noise(12), 3, shuffle=True, persistent_workers=True, **way)
    plain(loader)
    rest = [[row[0] for row in plain(loader)]][0]
    torch.manual_seed(11)
    loader = DataLoader(Noise(12), 3, shuffle=True, persistent_workers=True, **way)
    plain(loader)
    head, state = taken(loader, 2)
    for persistent in (True, False):
        other = DataLoader(Noise(12), 3, shuffle=True, persistent_workers=persistent, **way)
        plain(other)
        other.load_state_dict(state)
        assert [row[0] for row in head + plain(other)] == rest


def test_noise_of_a_later_epoch_continues():
    torch.manual_seed(11)
    loader = DataLoader(Noise(12), 3, num_workers=1, persistent_workers=True)
    plain(loader)
    it = iter(loader)
    head = plain([next(it), next(it)])
    state = loader.state_dict()
    rest = plain(it)
    other = DataLoader(Noise(12), 3, num_workers=1)
    other.load_state_dict(state)
    assert plain(other) == rest
    assert head != rest


@ways
def test_a_stream_continues(way):
    for data in (Stream(23), NoisyStream(23) if way == WAYS[1] else Stream(5)):
        torch.manual_seed(11)
        whole = plain(DataLoader(data, 4, **way))
        torch.manual_seed(11)
        head, state = taken(DataLoader(data, 4, **way), min(3, len(whole)))
        other = DataLoader(data, 4, **way)
        other.load_state_dict(state)
        assert head + plain(other) == whole


def test_batches_out_of_order_are_remembered():
    loader = DataLoader(Squares(40), 2, num_workers=2, in_order=False)
    head, state = taken(loader, 7)
    other = DataLoader(Squares(40), 2, num_workers=2, in_order=False)
    other.load_state_dict(state)
    assert sorted(head + plain(other)) == plain(DataLoader(Squares(40), 2))


def test_a_stream_out_of_order_says_that_it_cannot():
    loader = DataLoader(Stream(10), 2, num_workers=2, in_order=False)
    it = iter(loader)
    next(it)
    with pytest.raises(RuntimeError, match="with in_order=False nobody knows which samples of a stream were given out"):
        loader.state_dict()


def test_a_state_can_be_saved():
    torch.manual_seed(1)
    loader = DataLoader(Squares(10), 2, shuffle=True)
    it = iter(loader)
    head = plain([next(it)])
    f = io.BytesIO()
    save(loader.state_dict(), f)
    rest = plain(it)
    f.seek(0)
    other = DataLoader(Squares(10), 2, shuffle=True)
    other.load_state_dict(load(f))
    assert plain(other) == rest
    assert len(head + rest) == 5


def test_between_epochs_there_is_nothing_to_continue():
    loader = DataLoader(Squares(4), 2)
    fresh = loader.state_dict()
    it = iter(loader)
    next(it)
    middle = loader.state_dict()
    list(it)
    assert loader.state_dict() == fresh
    loader.load_state_dict(middle)
    assert loader.state_dict() is middle  # asked before the next epoch began
    loader.load_state_dict(fresh)
    assert plain(loader) == [[0, 1], [4, 9]]


def test_a_sampler_with_a_state_of_its_own_is_asked_for_it():
    class Counting:
        epoch = 0

        def __iter__(self):
            self.epoch += 1
            return iter([self.epoch * 10 + i for i in range(3)])

        def __len__(self):
            return 3

        def state_dict(self):
            return {"epoch": self.epoch}

        def load_state_dict(self, state):
            self.epoch = state["epoch"]

    loader = DataLoader(Squares(99), 1, sampler=Counting())
    list(loader)
    head, state = taken(loader, 1)
    other = DataLoader(Squares(99), 1, sampler=Counting())
    other.load_state_dict(state)
    assert head + plain(other) == [[400], [441], [484]]


def test_states_of_others_are_refused():
    for state in (None, {}, {"version": 0, "batches": 1}):
        with pytest.raises(ValueError, match=r"this is no state that DataLoader.state_dict\(\) returned"):
            DataLoader([1]).load_state_dict(state)
    _, state = taken(DataLoader(Squares(4), generator=torch.Generator()), 1)
    other = DataLoader(Squares(4))
    other.load_state_dict(state)
    with pytest.raises(
        ValueError, match="the state is of a loader with other generators\n  got the states of 2\n  need 1"
    ):
        iter(other)
