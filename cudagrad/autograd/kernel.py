"""``kernel``: a user's own CUDA C as a differentiable function of tensors."""

import inspect
import linecache
import math
import numbers
import os
import re
import sys

import numpy as np

from .. import config, dtypes
from ..backend import data_ptr, device_of, launch, make, xp_of
from ..backend.kernels import dispatch, signature
from ..backend.kernels.header import CTYPES, stamp
from ..backend.kernels.launch import Unfit
from ..core.function import Function
from ..core.modes import SPACE
from ..core.node import outside
from ..core.tensor import Tensor, wrap
from ..core.writable import check_writable
from . import kernel_check


def kernel(source, signature=None, *, grid=None, block=256, shared=0, entry=None, grad=None, check=None, name=None):
    """A function of tensors that runs a CUDA kernel of your own, with its gradient.

    ``source`` is CUDA C or the path of a file, with an ``extern "C" __global__`` function. ``signature`` states its
    arrays, ``"x: float[N,C], w: float[C] -> y: float[N]"``: what stands left of ``->`` is given, what stands right is
    made and returned, several as a tuple. Types are C's or NumPy's, or T, W, A: the data's, the weights' and that of
    sums, which reach the source as ``CG_T``, ``CG_W``, ``CG_A``. An input may be ``or null`` (None is given) or
    ``in place``: it is changed, and its name alone stands right of ``->`` as well. What an output
    holds at first is undefined, so what atomics add into is given: ``"x: float[N], y: float[1] in place -> y"``. A
    source with a header, as kernels/README.md has it, needs no signature. Call it with inputs and numbers in the C
    function's order, or by name; a number named as an axis is known from the shapes. Autocast casts none of its
    arguments: what a half-precision layer gives is of another type than a float32 parameter, and T is one type.

    Shapes      axes of inputs are letters, words or numbers; ``N...`` is any number of axes, which the source sees as
                one; of outputs also expressions: ``[N - 2]``. Arrays are C-contiguous, copied where they are not
    Launch      ``grid`` in blocks and ``block`` in threads, up to three each, ``shared`` in bytes: numbers, or texts of
                expressions in axes and numbers with ceil(a, b), min, max, power2. ``grid=None``: a thread an element of
                the first output
    Derivative  ``grad`` is a formula, a function of tensors that names what it needs of inputs, numbers, outputs and
                gradients (``dy`` of output y, or ``g`` where there is one) and returns a gradient for each floating
                input, as a tuple or a dict by their names, None for none; or it is another ``kernel``, of such arrays,
                that makes ``dx`` of input x, ``or null`` where it need not always be made. Higher derivatives go
                through the formula, or by the other kernel's own ``grad``
    Devices     cuda by NVRTC; emulated and cpu by a build for this processor, which is for tests and small data
    check       True, or ``CUDAGRAD_DEBUG=1`` in the environment: at the first call races, accesses out of bounds and
                outputs that are not wholly written are looked for, and gradients are compared with differences, both
                on the emulated device; ``f.check(...)`` does so at any time
    Raises      HeaderError for a signature that does not fit the source; TypeError, ValueError naming an argument that
                does not fit; RuntimeError with the compiler's words; KernelError for a fault on the emulated device
    Source      docs.nvidia.com/cuda/cuda-c-programming-guide

    >>> square = kernel('extern "C" __global__ void square(const float* x, float* y, int N) {'
    ...                 '  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < N) y[i] = x[i] * x[i]; }',
    ...                 "x: float[N] -> y: float[N]", grad=lambda g, x: 2 * x * g)
    >>> square(tensor([1.0, 3.0]))
    tensor([1., 9.])
    """
    options = {"grid": grid, "block": block, "shared": shared, "entry": entry}
    options |= {"grad": grad, "check": check, "name": name}
    if not isinstance(source, (str, os.PathLike)):
        raise TypeError(f"kernel: source must be CUDA C or the path of a file, not {type(source).__name__}")
    if not isinstance(signature, (str, type(None))):
        raise TypeError(f"kernel: signature must be a text, not {type(signature).__name__}")
    return Kernel(source, signature, _place(source, outside(sys._getframe(1))), **options)


class Kernel:
    """What ``kernel`` returns: called as a function of tensors; ``check(...)`` proves it on given arguments."""

    variadic = False  # as an op of one, for those that watch op calls

    def __init__(self, source, stated, place, *, grid, block, shared, entry, grad, check, name):
        if stated is None and (grid, block, shared) != (None, 256, 0):
            raise TypeError("kernel: the source's header states the launch; grid, block and shared go with a signature")
        options = {"grid": grid, "block": block, "shared": shared, "entry": entry, "grad": grad, "check": check}
        source = source if signature.is_text(source) else os.path.abspath(source)
        self._made_of = source, stated, place, {**options, "name": name}
        self._place = place
        self.entry = signature.read(source, _spoken(source, place), stated, entry, (grid, block, shared))
        self._stamp = None if signature.is_text(source) else stamp(self.entry.file)
        self.title = name or self.entry.name
        self.name = f"kernel {self.title}"
        arrays = self.entry.arrays
        self.inputs = tuple(p.name for p in arrays if p.const or p.in_place)
        self.outputs = tuple(p.name for p in arrays if not p.const)
        axes = {d for p in arrays if p.name in self.inputs for d in p.dims}
        self.numbers = tuple(
            p.name for p in self.entry.parameters if not p.pointer and p.name not in axes | set(self.entry.where)
        )
        self._arrays = {p.name: p for p in arrays}
        self._parameters = {p.name: p for p in self.entry.parameters}
        self.order = tuple(n for n in self._parameters if n in self.inputs or n in self.numbers)
        self.floating = tuple(n for n in self.inputs if self._arrays[n].type in signature.FLOATING)
        self.grad, self._asked, self._serves = grad, _asked(self, grad), None
        if isinstance(grad, Kernel):
            grad._serves = self.title
        self._check, self._checked = check, False
        base = re.sub("_forward$", "", self.title)
        camel = "".join(part[:1].upper() + part[1:] for part in re.split(r"[\W_]+", base))
        self._function = type(_Launch)(camel, (_Launch,), {"kernel": self})

    def __repr__(self):
        return f"<kernel {self.title}({', '.join(self.order)}) -> {', '.join(self.outputs)}>"

    def __deepcopy__(self, memo):
        return self  # as functions are: it has no state of its own

    __copy__ = __deepcopy__

    def __reduce__(self):
        return _again, self._made_of

    def __call__(self, /, *args, **kwargs):
        tensors, given = self._bound(args, kwargs)
        if not self._checked and (config.DEBUG if self._check is None else self._check):
            self._checked = True  # before it is: the check itself calls
            try:
                kernel_check.check(self, tensors, given)
            except BaseException:
                self._checked = False
                raise
        return self.run(tensors, given)

    def check(self, /, *args, **kwargs):
        """Prove the kernel at these arguments, or near them, on the emulated device; nothing comes back.

        Floating elements are moved by about 1 %, and so a 0 is not: a kink there is no error, nor is one found there.

        Raises      KernelError for a race, an access out of bounds or an output that is not wholly written;
                    GradcheckError where the gradient is not what differences see
        """
        kernel_check.check(self, *self._bound(args, kwargs))

    def run(self, tensors, given, unwanted=()):
        """The outputs for a tuple of tensors and a dict of numbers; None is given for the arrays ``unwanted``."""
        if SPACE["WATCH"] is not None:
            return SPACE["WATCH"](self, tensors, {"given": given, "unwanted": unwanted})
        return self.bare(*tensors, given=given, unwanted=unwanted)

    def bare(self, *tensors, given, unwanted):
        """``run`` that nobody watches."""
        for n, t in zip(self.inputs, tensors):
            if self._arrays[n].in_place:
                check_writable(t)
                self._check_apart(n, t, tensors)
        return self._function.apply(given, unwanted, *tensors)

    # ---- arguments

    def _bound(self, args, kwargs):
        """(tensors in the order of ``inputs``, numbers by name) of a call."""
        if len(args) > len(self.order):
            raise TypeError(
                f"{self.title}: takes {len(self.order)} arguments, {', '.join(self.order)}; got {len(args)}"
            )
        given = dict(zip(self.order, args))
        for n in kwargs:
            if n in given:
                raise TypeError(f"{self.title}: argument {n} is given twice")
            if n not in self._parameters or n in self._arrays and n not in self.inputs:
                raise TypeError(f"{self.title}: has no argument {n}; it takes {', '.join(self.order)}")
        given |= kwargs
        missing = [n for n in self.order if n not in given and not self._parameters[n].nullable]
        if missing:
            raise TypeError(f"{self.title}: argument {missing[0]} is missing; it takes {', '.join(self.order)}")
        tensors = tuple(self._tensor(n, given.get(n)) for n in self.inputs)
        self._check_devices(tensors)
        return tensors, {n: self._number(n, v) for n, v in given.items() if n not in self._arrays}

    def _tensor(self, n, value):
        if isinstance(value, Tensor) or value is None and self._arrays[n].nullable:
            return value
        raise TypeError(f"{self.title}: argument {n} must be a Tensor, not {type(value).__name__}")

    def _check_devices(self, tensors):
        found = {n: device_of(t.array) for n, t in zip(self.inputs, tensors) if t is not None}
        if not found:
            raise ValueError(f"{self.title}: no argument is a Tensor, so there is no device to run on")
        if len(set(found.values())) > 1:
            told = ", ".join(f"{n} on {d}" for n, d in found.items())
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found at least two devices\n  {self.title}: {told}"
            )

    def _number(self, n, value):
        kind = self._parameters[n].type
        if not isinstance(value, (numbers.Real, np.generic)) or isinstance(value, np.complexfloating):
            hint = "; .item() makes a number of it" if isinstance(value, Tensor) else ""
            raise TypeError(f"{self.title}: argument {n} must be a number, {kind}, not {type(value).__name__}{hint}")
        whole = kind not in signature.FLOATING
        if whole and not math.isfinite(value) or kind == "float" and _MOST_FLOAT < abs(value) < math.inf:
            raise ValueError(f"{self.title}: argument {n} = {value} does not fit into {kind}")
        return int(value) if whole and value == int(value) else value

    def _check_apart(self, n, changed, tensors):
        """ValueError where an argument lies in the memory of one that is changed in place: threads have no order."""
        start, end = _extent(changed.array)
        for other, t in zip(self.inputs, tensors):
            if other != n and t is not None and start < _extent(t.array)[1] and _extent(t.array)[0] < end:
                raise ValueError(f"{self.title}: argument {n} is changed in place, and {other} lies in its memory")

    # ---- the launch

    def launched(self, given, numbers, unwanted=()):
        """Output name -> array of a launch on arrays by name."""
        now = stamp(self.entry.file) if self._stamp is not None else None
        if now != self._stamp:
            file = min(path for path, _ in set(now) ^ set(self._stamp))
            raise RuntimeError(f"{self.title}: {file} has changed since kernel(...) read it: call that again")
        like = next(a for a in given.values() if a is not None)
        return make(device_of(like), lambda xp: self._launched(given, numbers, unwanted, like))

    def _launched(self, given, numbers, unwanted, like):
        spread = self._spread(given)
        compact = {n: None if a is None else self._compact(n, a) for n, a in given.items()}
        made = {n: None if n in unwanted else self._maker(n, xp_of(like)) for n in self.outputs if n not in given}
        try:
            result = launch(self.entry, like, **compact, **numbers, **made)
        except NameError as error:
            told = f"argument {error.name} is missing: no array that is given has that axis"
            raise TypeError(f"{self.title}: {told}") from None
        except Unfit as reason:
            raise ValueError(str(reason)) from None
        except RuntimeError as error:
            if error.args and isinstance(error.args[0], str):
                error.args = (_in_the_users_lines(error.args[0], self._place, self.entry), *error.args[1:])
            raise
        dispatch.note(self.name, _note(self._place, self.entry))
        for n in self.outputs:
            if n in given and not given[n].flags.c_contiguous:
                given[n][...] = compact[n].reshape(given[n].shape)
        return {n: given[n] if n in given else self._opened(n, result[n], spread) for n in self.outputs}

    def _spread(self, given):
        """Name of an axis that stands for several -> their lengths in the inputs, which must agree."""
        found = {}
        for n, a in given.items():
            p = self._arrays[n]
            if a is None or p.spread is None:
                continue
            first, rest = p.spread, len(p.dims) - p.spread - 1
            axes = a.shape[first : a.ndim - rest]
            if a.ndim < len(p.dims) - 1 or found.setdefault(p.dims[first], axes) != axes:
                axis, stated = p.dims[first], ",".join(d + "..." * (i == first) for i, d in enumerate(p.dims))
                told = f", with {axis}... = {found[axis]} by another argument" if axis in found else ""
                raise ValueError(f"{self.title}: argument {n} has shape {a.shape}, and must be [{stated}]{told}")
        return found

    def _compact(self, n, array):
        """A C-contiguous array of as many axes as the source sees; a view where that is possible."""
        array = array if array.flags.c_contiguous else xp_of(array).ascontiguousarray(array)
        p = self._arrays[n]
        if p.spread is None:
            return array
        first, rest = p.spread, array.ndim - (len(p.dims) - p.spread - 1)
        return array.reshape((*array.shape[:first], math.prod(array.shape[first:rest]), *array.shape[rest:]))

    def closed(self, tensors):
        """The tensors, of as many axes as the source sees."""
        return tuple(None if t is None else wrap(self._compact(n, t.array)) for n, t in zip(self.inputs, tensors))

    def _opened(self, n, array, spread):
        p = self._arrays[n]
        if array is None or p.spread is None:
            return array
        return array.reshape((*array.shape[: p.spread], *spread[p.dims[p.spread]], *array.shape[p.spread + 1 :]))

    def _maker(self, n, xp):
        p = self._arrays[n]

        def build(letters):
            unknown = [d for d in p.dims if not d.isdigit() and d not in letters]
            if unknown:
                raise NameError(unknown[0], name=unknown[0])  # as an expression of the launch would
            shape = tuple(int(d) if d.isdigit() else letters[d] for d in p.dims)
            if any(size != int(size) or size < 0 for size in shape):
                raise ValueError(f"{self.title}: output {n} would have shape {shape}, [{','.join(p.dims)}]")
            dtype = letters["dtype_" + p.type] if p.type in ("T", "W", "A") else _DTYPES[p.type]
            return xp.empty(tuple(map(int, shape)), dtype)

        return build

    # ---- the gradient

    def gradients(self, values, needs):
        """A gradient for each input, from what ``grad`` asks for by name; ``needs``: which inputs want one."""
        if self.grad is None:
            raise RuntimeError(self._no_gradient())
        made = self._by_kernel(values, needs) if isinstance(self.grad, Kernel) else self._by_formula(values)
        return tuple(made.get(n) if needs[n] else None for n in self.inputs)

    def _no_gradient(self):
        if self._serves is None:
            return f"{self.title}: has no gradient; give kernel(..., grad=...) a formula of tensors or another kernel"
        return (
            f"{self.title}: the gradient of {self._serves} is a kernel without a gradient of its own, and a second "
            f"derivative needs one; give it grad=, or {self._serves} a formula of tensors"
        )

    def _by_kernel(self, values, needs):
        back = self.grad
        given = {n: values[n] for n in back.order if n in values}
        tensors = tuple(given[n].clone() if back._arrays[n].in_place else given[n] for n in back.inputs)
        skipped = {"d" + n for n in self.inputs if not needs[n]}
        unwanted = tuple(n for n in back.outputs if n in skipped and back._arrays[n].nullable)
        made = back.run(tensors, {n: given[n] for n in back.numbers}, unwanted)
        return {n[1:]: d for n, d in zip(back.outputs, made if isinstance(made, tuple) else (made,))}

    def _by_formula(self, values):
        made = self.grad(**{n: values[n] for n in self._asked})
        if isinstance(made, dict):
            unknown = [n for n in made if n not in self.inputs]
            if unknown:
                raise RuntimeError(f"{self.title}: its formula gives a gradient by {unknown[0]}, which is no input")
            return made
        made = made if isinstance(made, (tuple, list)) else (made,)
        if len(made) != len(self.floating):
            raise RuntimeError(
                f"{self.title}: its formula gives {len(made)} gradients; need {len(self.floating)}, for "
                f"{', '.join(self.floating)} (None where there is none)"
            )
        return dict(zip(self.floating, made))


_MOST_FLOAT = float(np.finfo(np.float32).max)
_DTYPES = {c: dtypes.bfloat16.numpy if d == "bfloat16" else d for d, c in CTYPES.items()}


class _Launch(Function):
    """The node of a call; each kernel has a subclass of its own, by whose name a graph shows it."""

    kernel = None

    @staticmethod
    def forward(ctx, numbers, unwanted, *tensors):
        k = ctx._function.kernel
        given = dict(zip(k.inputs, tensors))
        arrays = {n: None if t is None else t.array for n, t in given.items()}
        made = k.launched(arrays, numbers, unwanted)
        made = {n: given[n] if n in given else None if a is None else wrap(a) for n, a in made.items()}
        ctx.mark_dirty(*(given[n] for n in k.outputs if n in given))
        ctx.numbers, ctx.kept = numbers, [n for n in k._asked if n in given or n in made]
        ctx.save_for_backward(*(made[n] if n in made else given[n] for n in ctx.kept))
        outputs = tuple(made[n] for n in k.outputs)
        return outputs if len(outputs) > 1 else outputs[0]

    @staticmethod
    def backward(ctx, *grads):
        k = ctx._function.kernel
        values = {**dict(zip(ctx.kept, ctx.saved_tensors)), **ctx.numbers}
        values |= {"d" + n: _like(g, shape) for n, g, shape in zip(k.outputs, grads, ctx._shapes)}
        if len(grads) == 1 and "g" not in values:
            values["g"] = values["d" + k.outputs[0]]
        needs = dict(zip(k.inputs, ctx.needs_input_grad[2:]))
        return None, None, *k.gradients(values, needs)


def _extent(array):
    """The addresses between which an array's elements lie."""
    start = end = data_ptr(array)
    for n, step in zip(array.shape, array.strides):
        start, end = start + min(step, 0) * max(n - 1, 0), end + max(step, 0) * max(n - 1, 0)
    return start, end + array.itemsize * (array.size > 0)


def _like(g, shape):
    """A gradient in the dtype of its output: sums may have made it wider."""
    return g if g is None or shape is None or g.array.dtype == shape[1] else g.to(dtypes.OF_NUMPY[shape[1]])


def _asked(k, grad):
    """The names that the gradient of ``k`` asks for; HeaderError for one that it cannot have."""
    if grad is None:
        return ()
    upper = {"d" + n for n in k.outputs} | ({"g"} if len(k.outputs) == 1 else set())
    own = {*k.inputs, *k.outputs, *k.numbers}
    for n in sorted({"d" + n for n in k.outputs} & own):
        raise signature.HeaderError(f"{k.title}: {n} is one of its arguments and the gradient of {n[1:]}: rename it")
    if isinstance(grad, Kernel):
        return _asked_by_kernel(k, grad, own | upper)
    if not callable(grad):
        raise TypeError(f"{k.title}: grad must be a kernel or a function of tensors, not {type(grad).__name__}")
    asked = []
    for p in inspect.signature(grad).parameters.values():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD, p.POSITIONAL_ONLY):
            raise signature.HeaderError(f"{k.title}: its formula must name what it needs, and has {p}")
        if p.name in own | upper:
            asked.append(p.name)
        elif p.default is p.empty:
            may = ", ".join(sorted(own | upper))
            raise signature.HeaderError(f"{k.title}: its formula asks for {p.name}; it may ask for {may}")
    return tuple(asked)


def _asked_by_kernel(k, grad, known):
    for n in grad.order:
        if n not in known:
            raise signature.HeaderError(
                f"{k.title}: its gradient {grad.title} takes {n}, which is none of {', '.join(sorted(known))}"
            )
    for n in grad.outputs:
        if n[:1] != "d" or n[1:] not in k.inputs:
            raise signature.HeaderError(
                f"{k.title}: its gradient {grad.title} makes {n}, and must make {', '.join('d' + i for i in k.inputs)}"
            )
    return grad.order


# ---- where the source stands


def _place(source, frame):
    """(file, lines before the source's first) of a source that stands in a program; (file, 0) of one that is a file."""
    if not signature.is_text(source):
        return os.fspath(source), 0
    program = "".join(linecache.getlines(frame.f_code.co_filename))
    lines = [program.count("\n", 0, m.start()) for m in re.finditer(re.escape(source), program)]
    return (frame.f_code.co_filename, min(lines, key=lambda n: abs(n - frame.f_lineno))) if lines else None


def _spoken(source, place):
    if place is None:
        return "kernel"
    return os.path.basename(place[0]) + (f":{place[1] + 1}" if signature.is_text(source) else "")


def _note(place, entry):
    """Where a reader finds the code that ran."""
    where = os.path.basename(entry.file) if place is None else f"{os.path.basename(place[0])}:{place[1] + 1}"
    return f"{where} {entry.name}"


def _in_the_users_lines(message, place, entry):
    """A message that names the cached copy of a source and its lines, with those of the program it stands in."""
    if place is None or os.path.abspath(place[0]) == entry.file:
        return message
    copy = re.escape(os.path.basename(entry.file))

    def line(found):
        file = place[0] if found[1] else os.path.basename(place[0])
        if found[2]:
            return f"{file}:{int(found[2]) + place[1]}"
        return f"{file}({int(found[3]) + place[1]})" if found[3] else file

    return re.sub(rf"([^\s'\"]*/)?{copy}(?::(\d+)|\((\d+)\))?", line, message)


def _again(source, stated, place, options):
    return Kernel(source, stated, place, **options)
