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
    if isinstance(error, MemoryError):
        return RuntimeError(errors.text(f"{op.name}: not enough memory: {error}", _came(given)))
    return _told(op, error, given)


def _broadcast(op, given):
    for a, b in zip(given, given[1:]):
        length = max(a.ndim, b.ndim)
        for back in range(1, min(a.ndim, b.ndim) + 1):
            m, n = a.shape[-back], b.shape[-back]
            if m != n and 1 not in (m, n):
                first = f"The size of tensor a ({m}) must match the size of tensor b ({n}) at non-singleton dimension "
                return RuntimeError(errors.text(f"{first}{length - back}", f"{op.name} {_came(given)}"))
    return None


def _came(given):
    return "got " + ", ".join(f"{a.dtype} {tuple(a.shape)}" for a in given)


def _told(op, error, given):
    if error.args and isinstance(error.args[0], str) and given and "\n" not in error.args[0]:
        error.args = (errors.text(error.args[0], f"{op.name} {_came(given)}"), *error.args[1:])
    return error


SPACE["recover"] = recover
