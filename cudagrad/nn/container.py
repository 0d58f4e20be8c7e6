"""Modules that hold modules: in a row, in a list, by name."""

import operator
import warnings
from collections import OrderedDict
from collections.abc import Iterable, Mapping

from ..backend import has_kernels
from .fusing import in_a_row
from .module import Module

__all__ = ("Container", "Sequential", "ModuleList", "ModuleDict")


class Container(Module):
    """The old name of a module that only holds others; deprecated."""

    def __init__(self, **modules):
        super().__init__()
        warnings.warn(
            "nn.Container is deprecated. All of it's functionality is now implemented in nn.Module. Subclass that "
            "instead.",
            FutureWarning,
            stacklevel=2,
        )
        for name, module in modules.items():
            self.add_module(name, module)


def position(index, size):
    """``index`` counted from the front; IndexError where it is outside ``-size .. size - 1``."""
    index = operator.index(index)
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of range")
    return index % size


def pairs(entries, name):
    """The ``(key, value)`` pairs of a mapping or an iterable of pairs; ``name`` is what errors call the container."""
    if isinstance(entries, Mapping) or (hasattr(entries, "items") and isinstance(entries, Module)):
        yield from entries.items()
        return
    for i, pair in enumerate(entries):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{name} update sequence element #{i} should be Iterable; is{type(pair).__name__}")
        pair = list(pair)
        if len(pair) != 2:
            raise ValueError(f"{name} update sequence element #{i} has length {len(pair)}; 2 is required")
        yield tuple(pair)


class _InARow(Module):
    """What Sequential and ModuleList share: modules under the names "0", "1", ..."""

    def _key(self, index):
        return list(self._modules)[position(index, len(self))]

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __setitem__(self, index, module):
        setattr(self, self._key(index), module)

    def __delitem__(self, index):
        keys = list(self._modules)[index] if isinstance(index, slice) else [self._key(index)]
        kept = [module for key, module in self._modules.items() if key not in keys]
        self._modules = {str(i): module for i, module in enumerate(kept)}

    def append(self, module):
        """Add a module at the end; returns this container."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules):
        """Add the modules of an iterable at the end; returns this container."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"{self._get_name()}.extend should be called with an iterable, but got {type(modules).__name__}"
            )
        for module in list(modules):
            self.append(module)
        return self

    def pop(self, key):
        """Take a module (or several, by a slice) out and return it."""
        taken = self[key]
        del self[key]
        return taken

    def _insert(self, index, module):
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._modules = {str(i): m for i, m in enumerate(modules)}


class Sequential(_InARow):
    """Modules applied one after the other; ``Sequential(a, b)`` or, with names, ``Sequential(OrderedDict(...))``.

    On a device with kernels a Linear and its ReLU, GELU or SiLU run as one op, where neither has hooks.

    >>> len(Sequential(Module(), Module())[:1])
    1
    """

    def __init__(self, *args):
        super().__init__()
        named = args[0].items() if len(args) == 1 and isinstance(args[0], OrderedDict) else enumerate(args)
        for name, module in named:
            self.add_module(str(name) if isinstance(name, int) else name, module)

    def forward(self, input):
        if has_kernels(getattr(input, "array", None)):
            return in_a_row(self._modules.values(), input)
        for module in self._modules.values():
            input = module(input)
        return input

    def __getitem__(self, idx):
        if isinstance(idx, slice):
            return type(self)(OrderedDict(list(self._modules.items())[idx]))
        return self._modules[self._key(idx)]

    def insert(self, index, module):
        """Put a module before the one at ``index``; returns this container."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index}")
        self._insert(index, module)
        return self

    def __add__(self, other):
        self._needs_sequential(other)
        return Sequential().extend(self).extend(other)

    def __iadd__(self, other):
        self._needs_sequential(other)
        return self.extend(other)

    @staticmethod
    def _needs_sequential(other):
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")

    def _times(self, count):
        if not isinstance(count, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(count)}")
        if count <= 0:
            raise ValueError(f"Non-positive multiplication factor {count} for {type(self)}")
        return list(self) * count

    def __mul__(self, other):
        return Sequential().extend(self._times(other))

    __rmul__ = __mul__

    def __imul__(self, other):
        return self.extend(self._times(other)[len(self) :])


class ModuleList(_InARow):
    """A list of modules that are all registered; it has no forward of its own."""

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, idx):
        if isinstance(idx, slice):
            return type(self)(list(self._modules.values())[idx])
        return self._modules[self._key(idx)]

    def insert(self, index, module):
        """Put a module before the one at ``index``."""
        self._insert(index, module)

    def __iadd__(self, modules):
        return self.extend(modules)

    def __add__(self, other):
        return ModuleList().extend(self).extend(other)

    def __repr__(self):
        """Equal neighbours are shown once, with their count."""
        runs = []
        for i, text in enumerate(map(repr, self)):
            if runs and runs[-1][2] == text:
                runs[-1][1] = i
            else:
                runs.append([i, i, text])
        lines = [f"({a}): {text}" if a == b else f"({a}-{b}): {b - a + 1} x {text}" for a, b, text in runs]
        body = "".join("\n  " + line.replace("\n", "\n  ") for line in lines)
        return f"{self._get_name()}({body}\n)" if body else f"{self._get_name()}()"


class ModuleDict(Module):
    """A dict of modules that are all registered; ordered as they were put in."""

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key):
        return self._modules[key]

    def __setitem__(self, key, module):
        self.add_module(key, module)

    def __delitem__(self, key):
        del self._modules[key]

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def __contains__(self, key):
        return key in self._modules

    def clear(self):
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key):
        """Take a module out and return it; KeyError where there is none."""
        return self._modules.pop(key)

    def keys(self):
        return self._modules.keys()

    def items(self):
        return self._modules.items()

    def values(self):
        return self._modules.values()

    def update(self, modules):
        """Add the modules of a mapping or of an iterable of pairs; those there under the same names are replaced."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleDict.update should be called with an iterable of key/value pairs, but got "
                + type(modules).__name__
            )
        for key, module in pairs(modules, "ModuleDict"):
            self[key] = module
