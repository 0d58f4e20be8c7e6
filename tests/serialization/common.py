"""What the tests of save and load share."""

import collections
import io
import pickle
from pathlib import Path

import numpy as np

from cudagrad.core.tensor import Tensor, wrap
from cudagrad.serialization import load, save

FIXTURES = Path(__file__).parents[1] / "fixtures"


class Config:
    lr = 0.1


Point = collections.namedtuple("Point", "x y")


def tensor(values, dtype=np.float32):
    return wrap(np.array(values, dtype))


def trip(obj, **options):
    """``obj`` saved to memory and loaded again."""
    f = io.BytesIO()
    save(obj, f)
    f.seek(0)
    return load(f, **options)


def same(a, b):
    """Equal in value, type, dtype, shape and strides, all the way down."""
    if type(a) is not type(b):
        return False
    if isinstance(a, Tensor):
        return a.requires_grad == b.requires_grad and same(a.array, b.array)
    if isinstance(a, np.ndarray):
        alike = (a.dtype, a.shape, a.strides) == (b.dtype, b.shape, b.strides)
        return alike and a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple, collections.deque)):
        return len(a) == len(b) and all(map(same, a, b))
    return repr(a) == repr(b) if isinstance(a, (float, complex)) else a == b  # nan is nan, 0.0 is not -0.0


def refused(raw, tmp_path):
    """Whether ``raw`` is refused, in one sentence; anything but that and a load is a failure."""
    path = tmp_path / "damaged"
    path.write_bytes(raw)
    try:
        load(path)
    except (RuntimeError, EOFError, pickle.UnpicklingError) as error:
        assert str(error).startswith(("load: ", "Weights only load failed.", "Cannot use"))
        return True
    return False
