"""What NumPy and CuPy say, in PyTorch's words."""

import numpy as np

from .. import errors
from .modes import SPACE


def recover(op, error, arrays, options):
    """The result after all, where the forward's ``error`` was only NumPy's floating-point warning made an error.

    Raises      else what the op's ``explain``, or the table below, says of it
    """
    if isinstance(error, RuntimeWarning):
        with np.errstate(all="ignore"):
            return op.impl[arrays[0].__class__](*arrays, **options)
    told = op.explain(error, *arrays, **options) if op.explain is not None else None
    raise told or translate(op, error, arrays) from None


def translate(op, error, arrays):
    """The exception to raise for ``error`` of ``op``'s forward on ``arrays``."""
    given = [a for a in arrays if hasattr(a, "shape")]
    if isinstance(error, ValueError) and "broadcast" in str(error) and len(given) > 1:
        return _broadcast(op, given) or _told(op, error, given)
    if isinstance(error, errors.OutOfMemoryError):
        error.args = (errors.text(str(error), f"{op.name} {_came(given)}"),)
        return error
    if isinstance(error, MemoryError):
        return RuntimeError(errors.text(f"{op.name}: not enough memory: {error}", _came(given)))
    return _told(op, error, given)


def _broadcast(op, given):
    """What does not fit, in PyTorch's words: each shape meets what those before it broadcast to."""
    met = given[0].shape
    for array in given[1:]:
        ndim = max(len(met), array.ndim)
        a, b = ((1,) * (ndim - len(shape)) + tuple(shape) for shape in (met, array.shape))
        for d in reversed(range(ndim)):
            if a[d] != b[d] and 1 not in (a[d], b[d]):
                first = f"The size of tensor a ({a[d]}) must match the size of tensor b ({b[d]}) at non-singleton "
                return RuntimeError(errors.text(f"{first}dimension {d}", f"{op.name} {_came(given)}"))
        met = tuple(n if m == 1 else m for m, n in zip(a, b))
    return None


def _came(given):
    return "got " + ", ".join(f"{a.dtype} {tuple(a.shape)}" for a in given)


def _told(op, error, given):
    if error.args and isinstance(error.args[0], str) and given and "\n" not in error.args[0]:
        error.args = (errors.text(error.args[0], f"{op.name} {_came(given)}"), *error.args[1:])
    return error


SPACE["recover"] = recover
