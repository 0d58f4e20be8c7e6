"""Generators: the seed and the count of calls from which every random number is made."""

import contextlib
import secrets
import threading

import numpy as np

from ..backend import current_gpu
from ..backend.device import device as Device
from ..backend.device import resolve
from .tensor import Tensor, wrap

DEFAULT_SEED = 67280421310721  # of a new Generator, as in PyTorch; the default generators start at one drawn by chance
WORD = 2**64


class Generator:
    """A source of random numbers: a seed and an offset, which counts the calls made with it.

    Number i of a call depends on (seed, offset, i) alone, so that one seed gives the same numbers on every device.
    Safe to use from several threads: each call gets an offset of its own.

    Raises      RuntimeError for an unknown device
    Differs     the numbers are Philox's, not those of PyTorch's mt19937; ``get_offset`` works on the CPU too

    >>> Generator().manual_seed(3).initial_seed()
    3
    """

    __slots__ = ("device", "_seed", "_offset", "_lock", "__weakref__")

    def __init__(self, device="cpu"):
        self.device, self._seed, self._offset, self._lock = Device(device), DEFAULT_SEED, 0, threading.Lock()

    def draw(self, calls=1):
        """(seed, offset) of the next ``calls`` calls, which nobody else gets."""
        with self._lock:
            offset = self._offset
            self._offset = (offset + calls) % WORD
            return self._seed, offset

    def manual_seed(self, seed):
        """Start again from ``seed``, an integer of 64 bits; a negative one counts down from 2^64. Returns itself."""
        if isinstance(seed, Tensor):
            seed = seed.item()
        if not hasattr(seed, "__index__"):
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        seed = seed.__index__()
        if not -WORD // 2 <= seed < WORD:
            raise ValueError("Overflow when unpacking long long")
        self._become(seed % WORD, 0)
        return self

    def seed(self):
        """Start again from a seed drawn by chance, which is returned."""
        self._become(secrets.randbits(64), 0)
        return self._seed

    def initial_seed(self):
        """The seed."""
        return self._seed

    def get_offset(self):
        """The count of calls since the seed was set."""
        return self._offset

    def set_offset(self, offset):
        """Go to the numbers that followed ``offset`` calls."""
        self._become(self._seed, int(offset) % WORD)

    def get_state(self):
        """Seed and offset as a uint8 tensor of 16 bytes on the CPU."""
        with self._lock:
            state = self._seed, self._offset
        return wrap(np.array(state, "<u8").view(np.uint8))

    def set_state(self, new_state):
        """Go to a state that ``get_state`` returned."""
        self._become(*_read(new_state))

    def clone_state(self):
        """A generator of its own at the same state."""
        clone = Generator(self.device)
        clone.set_state(self.get_state())
        return clone

    graphsafe_get_state = clone_state

    def graphsafe_set_state(self, state):
        """Go to the state of another generator."""
        self.set_state(state.get_state())

    def _become(self, seed, offset):
        with self._lock:
            self._seed, self._offset = seed, offset

    def __reduce__(self):
        return _rebuild, (self.device, self._seed, self._offset)


def _rebuild(device, seed, offset):
    g = Generator(device)
    g._become(seed, offset)
    return g


def _read(state):
    """(seed, offset) of a state tensor."""
    if not isinstance(state, Tensor):
        raise TypeError(f"expected a torch.ByteTensor, but got {type(state).__name__}")
    if state.array.dtype != np.uint8:
        raise TypeError("RNG state must be a torch.ByteTensor")
    array = np.ascontiguousarray(state.numpy())
    if array.shape != (16,):
        raise RuntimeError(f"RNG state is wrong size: found {array.size} bytes, need the 16 of seed and offset")
    return tuple(int(v) for v in array.view("<u8"))


default_generator = Generator("cpu")
default_generator.seed()
_defaults = {Device.CPU: default_generator}
_lock = threading.Lock()


def generator_of(device, generator=None):
    """The generator to use on ``device``: the one given, else the device's own.

    Raises      TypeError where it is no Generator, RuntimeError where it belongs to another kind of device
    """
    if generator is None:
        return _defaults[device] if device in _defaults else _default_of(device)
    if not isinstance(generator, Generator):
        raise TypeError(f"argument 'generator' must be torch.Generator, not {type(generator).__name__}")
    if generator.device.type != device.type:
        raise RuntimeError(f"Expected a '{device.type}' device type for generator but found '{generator.device.type}'")
    return generator


def _default_of(device):
    """The default generator of a device, made at its first use: the seed of the CPU's, no calls made."""
    if device.type == "cuda" and device.index is None:
        device = Device("cuda", current_gpu())
    with _lock:
        if device not in _defaults:
            _defaults[device] = _rebuild(device, default_generator.initial_seed(), 0)
        return _defaults[device]


def manual_seed(seed):
    """Seed the default generators of all devices; returns that of the CPU.

    Raises      ValueError where ``seed`` does not fit in 64 bits
    """
    seed = int(seed)
    for g in list(_defaults.values()):
        g.manual_seed(seed)
    return default_generator


def seed():
    """Seed the default generators of all devices with one number drawn by chance, which is returned."""
    drawn = secrets.randbits(64)
    manual_seed(drawn)
    return drawn


def initial_seed():
    """The seed of the CPU's default generator."""
    return default_generator.initial_seed()


def get_rng_state():
    """The state of the CPU's default generator, as a uint8 tensor."""
    return default_generator.get_state()


def set_rng_state(new_state):
    """Set the state of the CPU's default generator to one that ``get_rng_state`` returned."""
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(devices=None, enabled=True, _caller="fork_rng", _devices_kw="devices", device_type="cuda"):
    """Within, random numbers are drawn as ever; after it the default generators are where they were before.

    ``devices`` are the GPUs to restore beside the CPU; all those in use by default.
    """
    if not enabled:
        yield
        return
    if devices is None:
        forked = list(_defaults.values())
    else:
        named = (Device(device_type, d) if isinstance(d, int) else resolve(d) for d in devices)
        forked = [default_generator, *(generator_of(d) for d in named)]
    states = [g.get_state() for g in forked]
    try:
        yield
    finally:
        for g, state in zip(forked, states):
            g.set_state(state)
