"""The GPUs' default generators, under PyTorch's names."""

from ..backend import cuda as _cuda
from ..backend.device import device as Device
from ..core.generator import generator_of
from .streams import index_of

__all__ = [
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]


def _generator(device):
    return generator_of(Device("cuda", index_of(device)))


def manual_seed(seed):
    """Seed the current GPU's generator; nothing happens where there is no GPU."""
    if _cuda.is_available():
        _generator(None).manual_seed(seed)


def manual_seed_all(seed):
    """Seed every GPU's generator; nothing happens where there is no GPU."""
    for i in range(_cuda.device_count()):
        _generator(i).manual_seed(seed)


def seed():
    """Seed the current GPU's generator by chance; nothing happens where there is no GPU."""
    if _cuda.is_available():
        _generator(None).seed()


def seed_all():
    """Seed every GPU's generator with one number drawn by chance; nothing happens where there is no GPU."""
    if _cuda.is_available():
        manual_seed_all(_generator(0).seed())


def initial_seed():
    """The seed of the current GPU's generator."""
    return _generator(None).initial_seed()


def get_rng_state(device="cuda"):
    """The state of a GPU's generator, as a uint8 tensor on the CPU."""
    return _generator(device).get_state()


def set_rng_state(new_state, device="cuda"):
    """Set the state of a GPU's generator to one that ``get_rng_state`` returned; nothing happens without a GPU."""
    if _cuda.is_available():
        _generator(device).set_state(new_state)


def get_rng_state_all():
    """The states of the generators of all GPUs."""
    return [get_rng_state(i) for i in range(_cuda.device_count())]


def set_rng_state_all(new_states):
    """Set the states of the generators of all GPUs."""
    for i, state in enumerate(new_states):
        set_rng_state(state, i)
