"""Forms of view functions that copy, under PyTorch's names for them."""

import functools

from ..core.op import TABLE
from .axes import permute, t, transpose
from .broadcasting import expand
from .outputs import placed
from .shape import squeeze, unsqueeze, view
from .splitting import diagonal, split, split_with_sizes, unbind
from .strides import as_strided, sliding

_VIEWS = {"as_strided": as_strided, "diagonal": diagonal, "expand": expand, "permute": permute, "squeeze": squeeze}
_VIEWS |= {"t": t, "transpose": transpose, "unfold": sliding, "unsqueeze": unsqueeze, "view": view}
_SEVERAL = {"unbind_copy": unbind, "split_copy": split, "split_with_sizes_copy": split_with_sizes}


def _copying(function, name):
    """``function``, which gives a view, with a copy of that view for its result."""

    @functools.wraps(function)
    def copy(input, *args, out=None, **kwargs):
        return placed(name, TABLE["clone"].raw(function(input, *args, **kwargs)), out)

    copy.__name__ = copy.__qualname__ = name
    copy.__doc__ = f"``{function.__name__}`` of ``input``, copied."
    return copy


def _copying_each(function, name):
    """``function``, which gives several views, with copies of them: these may be written to."""

    @functools.wraps(function)
    def copies(input, *args, out=None, **kwargs):
        made = tuple(TABLE["clone"].raw(part) for part in function(input, *args, **kwargs))
        if out is None:
            return made
        for result, into in zip(made, out, strict=True):
            placed(name, result, into)
        return None

    copies.__name__ = copies.__qualname__ = name
    copies.__doc__ = f"``{function.__name__}`` of ``input``, each part copied."
    return copies


def alias_copy(input, *, out=None):
    """A copy of ``input``."""
    return placed("alias_copy", TABLE["clone"].raw(input), out)


_MADE = {f"{name}_copy": _copying(function, f"{name}_copy") for name, function in _VIEWS.items()}
_MADE |= {name: _copying_each(function, name) for name, function in _SEVERAL.items()}
globals().update(_MADE)
__all__ = ("alias_copy", *_MADE)
