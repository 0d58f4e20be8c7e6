"""Where results go: `out=`, `inplace=` of activations, and named tuples."""

import functools
import inspect
import types
from collections import namedtuple

from ..core.inplace import into, write
from ..core.modes import MODE
from ..core.op import TABLE
from ..core.promote import wrong_type
from ..core.views import alias
from ..core.writable import check_apart, check_writable


def placed(name, result, out):
    """``result`` of the function ``name``, written into ``out`` where one is given; tuples go pairwise."""
    if out is None:
        return result
    function = types.SimpleNamespace(name=name)
    if isinstance(result, tuple):
        written = [into(o, function, r) for o, r in zip(out, result, strict=True)]
        return type(result)(*written) if hasattr(result, "_fields") else tuple(written)
    return into(out, function, result)


def return_type(name, fields):
    """A named tuple class for a function's results, printed as ``torch.return_types.name``."""

    def __repr__(self):
        rows = ",\n".join(f"{field}={value!r}" for field, value in zip(self._fields, self))
        return f"torch.return_types.{name}(\n{rows})"

    made = namedtuple(name, fields)
    made.__repr__ = __repr__
    made.__module__ = __name__
    globals()[name] = made  # where pickle looks for it
    return made


def takes_inplace(function):
    """``function`` with PyTorch's last argument ``inplace``; where it is true the result goes into the input."""
    into = inplace_form(function)
    taken = _positional(function)

    if taken == 1:  # the common case, without the cost of *args: 70 ns

        def call(input, inplace=False):
            return into(input) if inplace else function(input)

    else:

        def call(input, *args, inplace=False, **kwargs):
            if len(args) >= taken:
                if len(args) > taken:
                    given = f"from 1 to {taken + 1} positional arguments but {len(args) + 1} were given"
                    raise TypeError(f"{function.__name__}() takes {given}")
                *args, inplace = args
            return (into if inplace else function)(input, *args, **kwargs)

    call.__name__ = call.__qualname__ = function.__name__
    call.__doc__, call.__module__ = function.__doc__, function.__module__
    return call


def _positional(function):
    """How many positional arguments a function or an op takes."""
    declared = TABLE.get(function.__name__)
    if declared is None or declared.call is not function:
        return len(inspect.signature(function).parameters)
    if declared.prepare is None:
        return len(declared.tensors) + len(declared.options)
    return len(inspect.signature(declared.prepare).parameters)


def inplace_form(function):
    """The form of ``function`` that writes its result into its first argument and returns that."""

    @functools.wraps(function)
    def into(input, *args, **kwargs):
        try:
            check_writable(input)
        except AttributeError:
            raise wrong_type(into.__name__, "input", 0, input) from None
        check_apart(input, args)
        return write(input, function(_before(input, function), *args, **kwargs))

    into.__name__ = into.__qualname__ = function.__name__ + "_"
    return into


def _before(input, function):
    """What ``input`` was before the write: over a copy where the derivative needs its values."""
    if not MODE.grad or input.node is None:
        return input
    before = alias(input)
    if function.__name__ != "relu":  # whose derivative needs the result alone
        before.array, before.version = input.array.copy(), None
    return before
