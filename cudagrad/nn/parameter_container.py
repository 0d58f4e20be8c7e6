"""Modules that hold parameters: in a list, by name."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping

from ..core.tensor import Tensor
from .container import pairs, position
from .module import Module, typename
from .parameter import Parameter

__all__ = ("ParameterList", "ParameterDict")


def _as_parameter(value):
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _line(key, value, name_of_dtype):
    if not isinstance(value, Tensor):
        return f"  ({key}): Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    device = "" if value.device.type == "cpu" else f" ({value.device})"
    size = "x".join(str(n) for n in value.shape)
    return f"  ({key}): {kind} containing: [{name_of_dtype(value)} of size {size}{device}]"


class ParameterList(Module):
    """A list whose tensors are registered as parameters; other objects may be in it, too."""

    def __init__(self, values=None):
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __getitem__(self, idx):
        if isinstance(idx, slice):
            return type(self)([self[i] for i in range(*idx.indices(len(self)))])
        return getattr(self, str(position(idx, len(self))))

    def __setitem__(self, idx, param):
        setattr(self, str(position(idx, len(self))), _as_parameter(param))

    def __len__(self):
        return self._size

    def __iter__(self):
        return iter(self[i] for i in range(len(self)))

    def __iadd__(self, parameters):
        return self.extend(parameters)

    def append(self, value):
        """Add a value at the end; returns this list."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values):
        """Add the values of an iterable at the end; returns this list."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self):
        return "\n".join(_line(i, p, lambda t: t.dtype) for i, p in enumerate(self))

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dict whose tensors are registered as parameters; other objects may be in it, too."""

    def __init__(self, parameters=None):
        super().__init__()
        self._keys = {}
        if parameters is not None:
            self.update(parameters)

    @staticmethod
    def _key_to_attr(key):
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string (type is "
                f"'{type(key).__name__}'). Open an issue on github if you need non-string keys."
            )
        return key

    def __getitem__(self, key):
        return getattr(self, self._key_to_attr(key))

    def __setitem__(self, key, value):
        self._keys[key] = None
        setattr(self, self._key_to_attr(key), _as_parameter(value))

    def __delitem__(self, key):
        del self._keys[key]
        delattr(self, self._key_to_attr(key))

    def __len__(self):
        return len(self._keys)

    def __iter__(self):
        return iter(self._keys)

    def __reversed__(self):
        return reversed(self._keys)

    def __contains__(self, key):
        return key in self._keys

    def copy(self):
        """Another ParameterDict with the same parameters."""
        return ParameterDict(OrderedDict(self.items()))

    def setdefault(self, key, default=None):
        """The value under ``key``, which is set to ``default`` first where there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self):
        """Remove all entries."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key):
        """Take a value out and return it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self):
        """Take the last entry out and return it as ``(key, value)``."""
        key = next(reversed(self._keys)) if self._keys else self._keys.popitem()
        return key, self.pop(key)

    def get(self, key, default=None):
        """The value under ``key``, or ``default``."""
        return self[key] if key in self else default

    def fromkeys(self, keys, default=None):
        """A new ParameterDict with ``default`` under each of ``keys``."""
        return ParameterDict((key, default) for key in keys)

    def keys(self):
        return self._keys.keys()

    def items(self):
        return ((key, self[key]) for key in self._keys)

    def values(self):
        return (self[key] for key in self._keys)

    def update(self, parameters):
        """Add the entries of a mapping (a plain dict's in the order of its keys) or of an iterable of pairs."""
        if not isinstance(parameters, Iterable):
            raise TypeError(
                "ParametersDict.update should be called with an iterable of key/value pairs, but got "
                + type(parameters).__name__
            )
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            parameters = sorted(parameters.items())
        for key, value in pairs(parameters, "ParameterDict"):
            self[key] = value

    def extra_repr(self):
        return "\n".join(_line(key, p, typename) for key, p in self.items())

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other):
        joined = self.copy()
        joined.update(other)
        return joined

    def __ror__(self, other):
        joined = other.copy()
        joined.update(self)
        return joined

    def __ior__(self, other):
        self.update(other)
        return self
