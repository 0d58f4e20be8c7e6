"""The table of inputs: one `case` row an op; tests/ops/test_ops.py runs every row through the generic checks."""

import importlib
import pkgutil

import numpy as np

import cudagrad

CASES = {}


class Input:
    """One call: ``args`` (a tuple of ints stands for a normal random array of that shape) and options."""

    def __init__(self, *args, **options):
        self.args, self.options = args, options

    def arrays(self, seed=0, dtype=np.float64):
        """The arguments with every shape and floating array as an array of ``dtype``; lists are kept as lists."""
        rng = np.random.default_rng(seed)

        def make(a):
            if isinstance(a, list):
                return [make(v) for v in a]
            if isinstance(a, tuple):
                return np.asarray(rng.standard_normal(a), dtype)
            return _in(a, dtype)

        return [make(a) for a in self.args]

    def given(self, seed=0, dtype=np.float64):
        """The arguments as ``arrays`` has them, and the options, whose arrays count as tensors too."""
        return self.arrays(seed, dtype), {k: _in(v, dtype) for k, v in self.options.items()}

    def __repr__(self):
        return f"Input({', '.join(map(_shown, self.args))}{', ' if self.options else ''}{_named(self.options)})"


class Error:
    """One call that must raise ``kind`` with a first line that holds ``match``."""

    def __init__(self, kind, match, *args, **options):
        self.kind, self.match, self.call = kind, match, Input(*args, **options)


class HostError(Error):
    """One that takes a look at the values, for which no GPU is waited; or that speaks of the CPU."""


class Case:
    """A public function, its definition ``ref`` over float64 NumPy arrays, and the calls to try.

    ``grad``: orders of derivative to check (0, 1 or 2) by the floating arguments, or by those at the places ``wrt``
    among all arrays; ``low``: also in float16 and bfloat16; ``ints``: also on integer inputs; ``complex``: also on
    complex ones (against ``ref``); ``pointwise``: also on arrays of many shapes, filled from the values of each call;
    ``out``: the name of the dtype of floating results where it is not the dtype of the inputs; ``roundings``: how many
    roundings of the largest result an error may have, besides twice that of the definition in the same precision.
    """

    def __init__(
        self,
        name,
        ref,
        *calls,
        f=None,
        grad=2,
        low=True,
        ints=False,
        complex=False,
        pointwise=False,
        wrt=None,
        out=None,
        roundings=4,
    ):
        self.name, self.ref, self.grad, self.low, self.ints, self.complex = name, ref, grad, low, ints, complex
        self.pointwise, self.wrt, self.out, self.roundings = pointwise, wrt, out, roundings
        self.inputs = [c for c in calls if isinstance(c, Input)]
        self.errors = [c for c in calls if isinstance(c, Error)]
        self._f = f

    @property
    def f(self):
        """The public function: given, or found by name (``nn.functional.gelu``, ``Tensor.add_``)."""
        if self._f is not None:
            return self._f
        found = cudagrad
        for part in self.name.split("."):
            found = getattr(found, part)
        return found


def case(name, ref, *calls, **facts):
    """Add a row; a name may have several."""
    CASES.setdefault(name, []).append(Case(name, ref, *calls, **facts))


def load():
    """Import every family's file of rows and return the table."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return CASES


def _in(a, dtype):
    """A floating array in ``dtype``, a complex one in the complex dtype beside it, a list of either; others as is."""
    if isinstance(a, list):
        return [_in(v, dtype) for v in a]
    kind = a.dtype.kind if isinstance(a, np.ndarray) else ""
    if kind == "c":
        return a.astype(np.complex128 if dtype == np.float64 else np.complex64)
    return a.astype(dtype) if kind == "f" else a


def _shown(a):
    return f"{a.dtype}{list(a.shape)}" if isinstance(a, np.ndarray) else repr(a)


def _named(options):
    return ", ".join(f"{k}={_shown(v)}" for k, v in options.items())
