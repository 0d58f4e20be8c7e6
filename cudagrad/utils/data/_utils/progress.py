"""How far an epoch has come, and what it takes to come there again: the loader's ``state_dict``."""

import itertools

from ....core.generator import default_generator
from ....errors import text
from ..sampler import draw_seed

VERSION = 1


class Progress:
    """One epoch of a loader: the random states it began with, and the batches that were given out.

    ``batches`` of them without a gap, ``ahead`` the numbers of later ones (where batches come out of order).
    """

    def __init__(self, loader, epoch):
        self.generators = [g.get_state() for g in _generators(loader)]
        self.samplers = {name: s.state_dict() for name, s in _with_state(loader).items()}
        self.epoch, self.base_seed, self.drew = epoch, None, False
        self.batches, self.ahead, self.done = 0, set(), False

    def gave(self, number):
        """Batch ``number`` of the epoch was given out."""
        self.ahead.add(number)
        while self.batches in self.ahead:
            self.ahead.discard(self.batches)
            self.batches += 1

    def state(self):
        """Plain values and tensors, of which ``begin`` makes the rest of the same epoch."""
        names = "epoch", "base_seed", "drew", "generators", "samplers", "batches"
        return {"version": VERSION, **{n: getattr(self, n) for n in names}, "ahead": sorted(self.ahead)}


def idle():
    """The state of a loader between two epochs."""
    return {"version": VERSION, "batches": None}


def check(state):
    """ValueError where ``state`` is none of ours."""
    if not isinstance(state, dict) or state.get("version") != VERSION or "batches" not in state:
        raise ValueError("load_state_dict: this is no state that DataLoader.state_dict() returned")


def begin(loader, epoch=0, base_seed=None, state=None):
    """(Progress of an epoch, iterator over its tasks (number of the batch, count of samples before it, index)).

    A ``base_seed`` of None is drawn. With ``state`` it is the epoch of that state, without the batches that were given
    out: the sampler is asked for those again, with the random states of then. The default generator is put back
    afterwards, since it may have gone its own way.
    """
    if state is None:
        progress = Progress(loader, epoch)
        indices = iter(loader._index_sampler)
        progress.drew = base_seed is None
        progress.base_seed = draw_seed(loader.generator) if base_seed is None else base_seed
        return progress, _begun(_tasks(indices, loader._auto_collation))
    now = default_generator.get_state()
    try:
        return _again(loader, state)
    finally:
        default_generator.set_state(now)


def _again(loader, state):
    for name, sampler in _with_state(loader).items():
        sampler.load_state_dict(state["samplers"][name])
    own = _generators(loader)
    if len(own) != len(state["generators"]):
        first = "load_state_dict: the state is of a loader with other generators"
        raise ValueError(text(first, f"got the states of {len(state['generators'])}", f"need {len(own)}"))
    for g, before in zip(own, state["generators"]):
        g.set_state(before)
    progress = Progress(loader, state["epoch"])
    indices = iter(loader._index_sampler)
    if state["drew"]:
        draw_seed(loader.generator)
    progress.base_seed, progress.drew = state["base_seed"], state["drew"]
    progress.batches, progress.ahead = state["batches"], set(state["ahead"])
    tasks = _tasks(indices, loader._auto_collation)
    if not loader._is_iterable:  # a stream cannot skip: its workers read it again, and what was given out is left out
        tasks = (task for task in tasks if task[0] >= state["batches"] and task[0] not in state["ahead"])
    return progress, _begun(tasks)


def _begun(tasks):
    """``tasks``, of which the first is made now: samplers draw from their generators when they are first asked."""
    return itertools.chain(list(itertools.islice(tasks, 1)), tasks)


def _tasks(indices, batched):
    before = 0
    for number, index in enumerate(indices):
        yield number, before, index
        before += len(index) if batched and hasattr(index, "__len__") else 1


def _samplers(loader):
    found = {"sampler": loader.sampler, "batch_sampler": loader.batch_sampler}
    return {name: s for name, s in found.items() if s is not None}


def _with_state(loader):
    samplers = _samplers(loader)
    return {n: s for n, s in samplers.items() if hasattr(s, "state_dict") and hasattr(s, "load_state_dict")}


def _generators(loader):
    """Every generator that an epoch draws from, each once: the loader's, its samplers', the default one."""
    holders = (loader, *_samplers(loader).values(), getattr(loader.batch_sampler, "sampler", None))
    found = [getattr(h, "generator", None) for h in holders] + [default_generator]
    return list({id(g): g for g in found if hasattr(g, "get_state")}.values())
