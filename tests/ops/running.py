"""What the generic tests share: calls on tensors, derivatives along random directions, and comparisons of arrays."""

import inspect
import os

import ml_dtypes
import numpy as np

import cudagrad
from cudagrad.core.tensor import Tensor, wrap

from ..double import installed

# A device's name here puts the whole table on it: CUDAGRAD_TEST_DEVICES=cpu,emulated
DEVICES = os.environ.get("CUDAGRAD_TEST_DEVICES", "cpu").split(",")
if any(d.startswith("cuda") for d in DEVICES) and not cudagrad.cuda.is_available():
    # No GPU here: a double of CuPy stands for it, to the end of the run; for cuda:1 it has two, of which 0 is current.
    DOUBLE = installed(2 if "cuda:1" in DEVICES else 1)
    DOUBLE.__enter__()

LOW = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
STEP = 1e-4  # of central differences: their error is about STEP^4, and rounding gives 1e-12


def is_float(a):
    """Whether an array is floating or complex; bfloat16 is of NumPy's kind "V"."""
    return isinstance(a, np.ndarray) and a.dtype.kind in "fcV"


def walk(value, change):
    """``value`` with every array, also within lists, tuples of arrays and dicts, as ``change`` makes it."""
    if isinstance(value, np.ndarray):
        return change(value)
    if isinstance(value, list):
        return [walk(v, change) for v in value]
    if isinstance(value, dict):
        return {k: walk(v, change) for k, v in value.items()}
    return value


def arrays_of(given):
    """Every array of the call ``given``, (args, options)."""
    found = []
    each(given, found.append)
    return found


def floats_of(given, name):
    """The dtype of floating results of a call whose floating arrays are of ``name``: the default without any."""
    return name if any(is_float(a) for a in arrays_of(given)) else "float32"


def each(given, change):
    """The call ``given``, (args, options), with every array as ``change`` makes it."""
    return walk(list(given[0]), change), walk(given[1], change)


def replaced(given, arrays):
    """The call ``given`` with its arrays replaced, in the order of ``arrays_of``."""
    rest = iter(arrays)
    return each(given, lambda a: next(rest))


def tensors(given, device, wrt=()):
    """``given`` with tensors for arrays, those at the places ``wrt`` wanting a gradient, and a list of all."""
    made = []

    def make(a):
        t = wrap(a.copy() if a.flags.c_contiguous else a)
        t = t if device == "cpu" else t.to(device)
        if len(made) in wrt:
            t.requires_grad_()
        made.append(t)
        return t

    return each(given, make), made


def call(case, given):
    return case.f(*given[0], **given[1])


def reference(case, given):
    with np.errstate(all="ignore"):
        return flat(case.ref(*given[0], **given[1]))


def flat(result):
    """The results of a function as a list, tuples laid flat."""
    if isinstance(result, (tuple, list)):
        return [r for part in result for r in flat(part)]
    return [result]


def numpy_of(result):
    return result.detach().cpu().array if isinstance(result, Tensor) else np.asarray(result)


def differentiable(case, given):
    """The places, among all arrays of ``given``, of those to differentiate by."""
    places = [i for i, a in enumerate(arrays_of(given)) if is_float(a)]
    return places if case.wrt is None else [p for p in places if p in case.wrt]


# ---- comparisons


def scale_of(expected):
    """The size of the largest finite element, at least the smallest normal number."""
    finite = np.abs(expected[np.isfinite(expected)]) if expected.size else expected
    return max(float(finite.max()), 1e-30) if finite.size else 1.0


def assert_close(got, expected, rel, what, absolute=None):
    """Same shape, nan and infinities, and differences of at most ``absolute``, by default ``rel`` of the scale."""
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape, f"{what}: shape {got.shape}, expected {expected.shape}"
    if got.dtype.kind == "V":
        got = got.astype(np.float32)
    if not is_float(expected):
        assert np.array_equal(got, expected), f"{what}: got {got}, expected {expected}"
        return
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    got, expected = got.astype(wide), expected.astype(wide)
    limit = rel * scale_of(expected) if absolute is None else absolute
    with np.errstate(all="ignore"):
        same = (got == expected) | (np.isnan(got) & np.isnan(expected)) | (np.abs(got - expected) <= limit)
        worst = np.nan_to_num(np.abs(np.where(same, 0, got - expected)), nan=np.inf)
    if not same.all():
        raise AssertionError(f"{what}: off by {worst.max():.3g} where {limit:.3g} may be\n{got}\n{expected}")


def assert_category(case, result, expected, dtype_name, what):
    """Floating results have the dtype of the inputs (or the row's), others the kind of the reference's."""
    if not isinstance(result, Tensor):
        return
    name = result.dtype.name
    kind = np.asarray(expected).dtype.kind
    if kind == "f":
        assert name == (case.out or dtype_name), f"{what}: dtype {name}"
    elif kind == "c":
        wanted = case.out or ("complex128" if dtype_name == "float64" else "complex64")
        assert name == wanted, f"{what}: dtype {name}"
    else:
        assert result.dtype.category == (0 if kind == "b" else 1), f"{what}: dtype {name}"


# ---- derivatives


def directions(arrays, seed):
    """A random array of the shape and kind of each."""
    rng = np.random.default_rng(seed)

    def one(a):
        d = rng.standard_normal(a.shape)
        return d + 1j * rng.standard_normal(a.shape) if np.iscomplexobj(a) else d

    return [one(a) for a in arrays]


def weighed(results, weights):
    """The real part of the sum of floating results, each times the conjugate of its weight: a scalar."""
    total = 0.0
    for r, w in zip(results, weights, strict=True):
        if w is not None:
            total = total + np.sum(r * np.conj(w)).real
    return total


def weights_for(results, seed):
    results = [np.asarray(r) for r in results]
    made = directions(results, seed)
    return [w if r.dtype.kind in "fc" else None for r, w in zip(results, made)]


def complexified(given, places, seed):
    """The call with a random imaginary part on the arrays at ``places``."""
    arrays = arrays_of(given)
    imaginary = directions(arrays, seed)
    for p in places:
        arrays[p] = np.asarray(arrays[p] + 0.5j * imaginary[p].real)
    return replaced(given, arrays)


def slope(function):
    """The derivative of ``function(t)`` at 0 by the five-point rule."""
    near = function(STEP) - function(-STEP)
    far = function(2 * STEP) - function(-2 * STEP)
    return (8 * near - far) / (12 * STEP)


def moved(given, places, along, t):
    """``given`` with the arrays at ``places`` moved by ``t`` times a direction."""
    arrays = arrays_of(given)
    for p, d in zip(places, along, strict=True):
        arrays[p] = np.asarray(arrays[p] + t * d)
    return replaced(given, arrays)


def inner(gradients, along):
    """The sum of gradient times direction; for complex ones the real part of conj(gradient) times direction."""
    return sum(float(np.sum(np.conj(g) * d).real) for g, d in zip(gradients, along, strict=True))


# ---- layouts


def strided(a):
    """The same values, every second element of a larger array."""
    if a.ndim == 0:
        return a
    big = np.zeros((*a.shape[:-1], 2 * a.shape[-1]), a.dtype)
    big[..., ::2] = a
    return big[..., ::2]


def turned(a):
    """The same values with the axes in the opposite order in memory."""
    return np.asfortranarray(a) if a.ndim else a


def offset(a):
    """The same values, a part of a larger array."""
    if a.ndim == 0:
        return a
    big = np.zeros((a.shape[0] + 2, *a.shape[1:]), a.dtype)
    big[1:-1] = a
    return big[1:-1]


LAYOUTS = {"strided": strided, "turned": turned, "offset": offset}


def takes_out(f):
    try:
        return "out" in inspect.signature(f).parameters
    except (TypeError, ValueError):
        return False
