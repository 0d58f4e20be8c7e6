"""The names of devices: ``cpu``, ``cuda``, ``cuda:1``, ``emulated``."""

import threading

TYPES = ("cpu", "cuda", "emulated", "meta")


class device:
    """Where a tensor lives. ``device("cuda", 1)``, ``device("cuda:1")`` and ``device(1)`` are the same.

    As a context manager or decorator it is the default device of what is made within.

    Raises      RuntimeError for an unknown type or a bad index
    """

    __slots__ = ("type", "index", "_before")

    def __init__(self, type, index=None):
        if isinstance(type, device):
            self.type, self.index = type.type, type.index
            return
        if isinstance(type, int):
            type, index = "cuda", type
        if not isinstance(type, str):
            raise TypeError(f"device(): argument 'type' must be str, not {type.__class__.__name__}")
        if not type:
            raise RuntimeError("Device string must not be empty")
        if index is not None and index < 0:
            raise RuntimeError(f"Device index must not be negative\n  got {index}")
        name, colon, number = type.partition(":")
        if not name.replace("_", "a").isalpha():
            raise RuntimeError(f"Invalid device string: '{type}'")
        if name not in TYPES:
            first = f"Expected one of cpu, cuda, emulated, meta device type at start of device string: {type}"
            raise RuntimeError(first)
        if colon:
            if index is not None:
                raise RuntimeError(
                    f"type (string) must not include an index because index was passed explicitly: {type}"
                )
            if not number.isdigit():
                raise RuntimeError(f"Invalid device string: '{type}'")
            index = int(number)
        self.type, self.index = name, index

    def __repr__(self):
        return f"device(type='{self.type}'" + (f", index={self.index})" if self.index is not None else ")")

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other):
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self):
        return hash((self.type, self.index))

    def __reduce__(self):
        return device, (self.type, self.index)

    def __enter__(self):
        _default.stack = (self, *_default.stack)
        return self

    def __exit__(self, *exception):
        _default.stack = _default.stack[1:]

    def __call__(self, function):
        import functools

        @functools.wraps(function)
        def within(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return within


device.CPU = device("cpu")


class _Default(threading.local):
    stack = (device.CPU,)


_default = _Default()


def get_default_device():
    """The device of tensors made without ``device=``; thread-local."""
    return _default.stack[0]


def set_default_device(d):
    """Make ``d`` the device of tensors made without ``device=`` in this thread; None for the CPU."""
    _default.stack = (device(d or "cpu"), *_default.stack[1:])


def resolve(d):
    """``d`` (None, str, int or device) as a device."""
    if d is None:
        return _default.stack[0]
    return d if d.__class__ is device else device(d)
