"""A user's kernel proved on the emulated device: its accesses, that it writes all outputs, and its gradient."""

import warnings

import numpy as np

from .. import dtypes
from ..backend import emulator
from ..core.backward import grad
from ..core.modes import enable_grad, no_grad
from ..core.tensor import wrap
from .gradcheck import GradcheckError

DIRECTIONS = 2  # in which an input is moved: an error in few elements may hide in one
MOST = 1 << 16  # elements of all inputs; what is larger is cut
# dtype -> (relative step, tolerated error). A float64 build may still hold floats of the source's own.
_STEPS = {dtypes.float64: (1e-3, 2e-3), dtypes.float32: (1e-2, 1e-2), dtypes.float16: (0.1, 0.1)}
_STEPS[dtypes.bfloat16] = (0.2, 0.3)
_ROUNDING = {dtypes.float64: 1e-7, dtypes.float32: 1e-7, dtypes.float16: 1e-3, dtypes.bfloat16: 1e-2}


def check(kernel, tensors, numbers):
    """Run ``kernel`` and its gradient once in check mode, and compare the gradient with central differences.

    The tensors' own values are taken, times a random 1 %; in float64 where the kernel serves any type.

    Raises      KernelError, GradcheckError
    """
    cut = _cut(kernel, tensors)
    if cut is None:
        warnings.warn(
            f"{kernel.title} was not checked: its arguments have more than {MOST} elements, and some are integers, so "
            f"that they cannot be cut; call {kernel.title}.check(...) with smaller ones",
            UserWarning,
            stacklevel=3,
        )
        return
    rng = np.random.default_rng(0)
    inputs = [None if t is None else _near(t, rng, _free(kernel)) for t in cut]
    if kernel.grad is None:
        with emulator.settings(check=True, whole=True), no_grad():
            kernel.run(_fresh(inputs), numbers)
        return
    outputs, weights, gradients = _differentiated(kernel, inputs, numbers, rng)
    for n, x, d in (*zip(kernel.inputs, inputs, gradients),) * DIRECTIONS:
        if x is not None and x.dtype.is_floating_point and x.numel():
            _compare(kernel, inputs, numbers, weights, n, x, d, rng)
    back = kernel.grad
    if getattr(back, "grad", None) is not None:  # a kernel that has a gradient of its own
        values = {**dict(zip(kernel.inputs, inputs)), **outputs, **{"d" + n: w for n, w in weights.items()}}
        values.setdefault("g", next(iter(weights.values())))
        check(back, tuple(values[n] for n in back.inputs), {n: numbers[n] for n in back.numbers})


def _free(kernel):
    """Whether every floating array is of the types T, W, A, so that the kernel can be built for float64."""
    kinds = {p.type for p in kernel.entry.arrays}
    return not kinds & {"float", "double", "__half", "__nv_bfloat16"}


def _cut(kernel, tensors):
    """The tensors, cut along their named axes to ``MOST`` elements; None where integers among them may be indices."""
    total = sum(t.numel() for t in tensors if t is not None)
    if total <= MOST:
        return tensors
    if any(t is not None and not t.dtype.is_floating_point for t in tensors):
        return None
    if any(p.spread is not None for p in kernel.entry.arrays):
        tensors = kernel.closed(tensors)
    dims = {p.name: p.dims for p in kernel.entry.arrays}
    axes = {d: n for name, t in zip(kernel.inputs, tensors) if t is not None for d, n in zip(dims[name], t.shape)}
    named = [d for d in axes if not d.isdigit()]
    while named and _elements(kernel, tensors, dims, axes) > MOST:
        longest = max(named, key=axes.get)
        if axes[longest] == 1:
            break
        axes[longest] = (axes[longest] + 1) // 2
    return [None if t is None else t[tuple(slice(0, axes[d]) for d in dims[n])] for n, t in zip(kernel.inputs, tensors)]


def _elements(kernel, tensors, dims, axes):
    given = (dims[n] for n, t in zip(kernel.inputs, tensors) if t is not None)
    return sum(int(np.prod([axes[d] for d in ds])) for ds in given)


def _near(t, rng, free):
    """A copy of a tensor on the CPU, where formulas are quick too, each floating element moved by about 1 %."""
    host = t.detach().cpu().array
    if not t.dtype.is_floating_point:
        return wrap(host.copy())
    wide = host.astype(np.float64) * (1 + 0.01 * rng.standard_normal(host.shape))
    kept = np.float64 if free else host.dtype
    return wrap(np.asarray(wide, kept, order="C"))


def _fresh(inputs, wanted=False):
    """Copies, since a kernel may write in place; leaves that want a gradient where ``wanted``."""
    made = [None if t is None else t.detach().clone() for t in inputs]
    for t in made if wanted else ():
        if t is not None and t.dtype.is_floating_point:
            t.requires_grad = True
    return tuple(made)


def _outputs(kernel, inputs, numbers):
    """Name -> floating output."""
    made = kernel.run(inputs, numbers)
    made = zip(kernel.outputs, made if isinstance(made, tuple) else (made,))
    return {n: t for n, t in made if t.dtype.is_floating_point}


def _differentiated(kernel, inputs, numbers, rng):
    """The floating outputs, a random weight for each, and the gradient by each input of their weighted sum."""
    with emulator.settings(check=True, whole=True), enable_grad():
        leaves = _fresh(inputs, wanted=True)
        # times one: a kernel that writes in place may not write into a leaf
        given = tuple(t * 1 if t is not None and t.requires_grad else t for t in leaves)
        outputs = _outputs(kernel, given, numbers)
        weights = {n: _random(o, rng) for n, o in outputs.items()}
        wanted = [t for t in leaves if t is not None and t.requires_grad]
        asked = list(outputs.values()), wanted, list(weights.values())
        found = iter(grad(*asked, allow_unused=True) if wanted and outputs else ())
    gradients = [next(found) if t is not None and t.requires_grad else None for t in leaves]
    return {n: o.detach() for n, o in outputs.items()}, weights, gradients


def _random(like, rng):
    return wrap(np.asarray(rng.standard_normal(like.shape), like.array.dtype))


def _compare(kernel, inputs, numbers, weights, name, x, d, rng):
    step, tolerated = _STEPS[x.dtype]
    values = _host(x)
    size = np.abs(values) if values.any() else np.ones_like(values)
    direction = rng.standard_normal(values.shape) * size
    sums, rounding = [], 0.0
    for sign in (1, -1):
        moved = wrap(np.asarray(values + sign * step * direction, x.array.dtype))
        with no_grad():
            outputs = _outputs(kernel, _fresh(moved if t is x else t for t in inputs), numbers)
        terms = [_host(weights[n]) * _host(o) for n, o in outputs.items()]
        sums.append(sum(float(t.sum()) for t in terms))
        rounding = _ROUNDING[x.dtype] / step * sum(float(np.linalg.norm(t)) for t in terms)
    seen = (sums[0] - sums[1]) / (2 * step)
    by_tape = np.zeros(1) if d is None else _host(d) * direction
    told = float(by_tape.sum())
    if not abs(told - seen) <= tolerated * max(abs(seen), float(np.linalg.norm(by_tape))) + rounding:
        raise GradcheckError(
            f"{kernel.title}: the gradient by {name} along a random direction is {told:.6g}, and differences see "
            f"{seen:.6g} (in {x.dtype.name}, tolerated {tolerated:g}); its grad= is wrong, or {name} stands on a kink"
        )


def _host(t):
    return t.array.astype(np.float64)
