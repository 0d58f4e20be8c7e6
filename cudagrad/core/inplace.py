"""Views and in-place writes: shared version counters, the checks before a write, and the history after it."""

import functools
import sys
import weakref

import numpy as np

from .. import errors
from ..backend import copy_of, data_ptr, xp_of
from .hooks import of_node
from .modes import MODE, SPACE
from .node import LASTWRITE, make, outside, rule, send, tick
from .op import TABLE
from .promote import cast, lift

# The fourth part of a view's link says who made it, as far as it matters for writes: None; "no_grad"; (name, index) of
# one of several views; and (name, index, "function" or "functions") of an output of a user's Function.

# A version counter is [time of the last write, count of writes, weakrefs of views or None, the recent writes]; it is
# made when someone needs it. This one stands for "made in inference mode: none is kept".
INFERENCE = [0, 0, None, ()]
_RECENT = 16  # writes a counter remembers by their line, for the error message


def counter_of(x):
    """The version counter of a tensor, made if it has none."""
    if x.version is None:
        x.version = [0, 0, None]
    return x.version


def share(t, x, op, options):
    """Make ``t`` a view of ``x`` by ``op``: one version counter, and a link for the history after writes."""
    counter = t.version = counter_of(x)
    if counter is INFERENCE:
        return
    t.link = x, op, options, None if MODE.grad else "no_grad"
    views = counter[2]
    if views is None:
        counter[2] = [weakref.ref(t)]
        return
    views.append(weakref.ref(t))
    size = len(views)
    if size >= 16 and size & (size - 1) == 0:
        counter[2] = [r for r in views if r() is not None]


def multi_view(t, maker, index=0):
    """Mark ``t`` as view ``index`` of several made by the function of node name ``maker``: it may not be written to."""
    if t.link is not None:
        x, op, options, _ = t.link
        t.link = x, op, options, (maker, index) if maker else None
    return t


def base_of(t):
    """The tensor at the root of a chain of views, and the steps ``(op, options)`` from it to ``t``."""
    steps = []
    while t.link is not None:
        t, op, options, _ = t.link
        steps.append((op, options))
    return t, tuple(reversed(steps))


def alias(x):
    """Another tensor over the same array, counter and history: what ``x`` was before a write."""
    t = SPACE["wrap"](x.array)
    t.node, t.version = x.node, x.version
    return t


# ---- the checks, all before anything is changed


def check_writable(x, name="the operation"):
    """RuntimeError in PyTorch's words where ``x`` may not be written in place just now."""
    if x.version is INFERENCE and not MODE.inference:
        raise _refused(
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a "
            "normal tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details.",
            x,
        )
    if MODE.grad and (x.node is not None or x.link is not None):
        _check_history(x)
    array = x.array
    if 0 in array.strides and array.size > 1 and _overlaps(array):
        raise _refused(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation.",
            x,
        )


def _check_history(x):
    made_by, chain = None, [x]
    while chain[-1].link is not None:
        base, *_, maker = chain[-1].link
        made_by = made_by or maker
        chain.append(base)
    nodes = [t.node for t in chain if t.node is not None]
    if not nodes:
        return
    if made_by is not None:
        raise _refused(_forbidden(made_by, "is being modified"), x)
    if any(k.fn is None for k in nodes):
        of = "view of a " if x.link is not None else ""
        raise _refused(f"a {of}leaf Variable that requires grad is being used in an in-place operation.", x)


def _forbidden(made_by, done):
    """PyTorch's words for a view that may not be written, or not be used once its base was."""
    if made_by == "no_grad":
        return (
            "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that this "
            "use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view "
            "and the inplace either both inside the no_grad block (if you don't want the inplace to be tracked) or "
            "both outside (if you want the inplace to be tracked)."
        )
    first = f"Output {made_by[1]} of {_short(made_by[0])} is a view and {done} inplace. This view "
    if made_by[2:] == ("function",):
        return first + (
            "was created inside a custom Function (or because an input was returned as-is) and the autograd logic to "
            "handle view+inplace would override the custom backward associated with the custom Function, leading to "
            "incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of the custom "
            "Function."
        )
    return first + (
        "is the output of a function that returns multiple views. Such functions do not allow the output views to be "
        "modified inplace. You should replace the inplace operation by an out-of-place one."
    )


@rule("StaleView")
def _stale_rule(k, g, heap):
    raise RuntimeError(_forbidden(k.attrs, "its base or another view of its base has been modified"))


_stale_rule.graph = lambda k, g: _stale_rule(k, g, None)


def _overlaps(array):
    return any(s == 0 and n > 1 for n, s in zip(array.shape, array.strides))


def check_apart(x, sources):
    """RuntimeError where a source lies in part in the memory of ``x``, which is about to be written.

    One that is exactly the memory of ``x`` is fine. As in PyTorch, only memory without gaps is looked at.
    """
    a = x.array
    root = a if a.base is None else a.base
    for y in sources:
        b = getattr(y, "array", None)
        if b is not None and b is not a and (b if b.base is None else b.base) is root and _meet_in_part(a, b):
            raise _refused(
                "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
                "memory location. Please clone() the tensor before performing the operation.",
                x,
            )


def _meet_in_part(a, b):
    if not (_gapless(a) and _gapless(b)):
        return False
    start, other = data_ptr(a), data_ptr(b)
    if start == other and a.nbytes == b.nbytes:
        return _steps(a) != _steps(b)
    return start < other + b.nbytes and other < start + a.nbytes


def _steps(array):
    return [(s, n) for s, n in zip(array.strides, array.shape) if n != 1]


def _gapless(array):
    """Whether the elements lie in one piece of memory, in the order of some permutation of the axes."""
    expected = array.itemsize
    for stride, length in sorted(_steps(array)):
        if stride != expected:
            return False
        expected *= length
    return array.size > 0


def _refused(first, x):
    frame = outside(sys._getframe(2))
    return RuntimeError(
        errors.text(first, f"the tensor is {x.dtype} {tuple(x.shape)}", site=(frame.f_code, frame.f_lasti))
    )


def _check_fits(x, t):
    if t.array.shape != x.array.shape:
        raise RuntimeError(
            f"output with shape {list(x.array.shape)} doesn't match the broadcast shape {list(t.array.shape)}"
        )
    if t.dtype.category > x.dtype.category:
        raise RuntimeError(
            errors.text(
                f"result type {t.dtype.legacy} can't be cast to the desired output type {x.dtype.legacy}",
                "an in-place operation never changes the dtype of its tensor",
            )
        )


# ---- the write


def inplace(function, name):
    """The in-place form ``name`` of a function of tensors: runs it out of place, then writes the result into ``x``."""
    op = (function.__kwdefaults__ or {}).get("_op")
    single = op is not None  # not a composition, whose inner nodes save what they like
    ufunc = op.ufunc if single else None

    def method(self, *args, **kwargs):
        check_writable(self, name)
        if args:
            check_apart(self, args)
        if ufunc is not None and not kwargs and _written_by(ufunc, self, args):
            return self
        if not MODE.grad or self.array.dtype.kind in "biu":
            return write(self, function(self, *args, **kwargs), name)
        before = alias(self)
        if not single:
            before.array, before.version = copy_of(self.array), None
        t = function(before, *args, **kwargs)
        if single:
            _keep_values(t.node, before)
        return write(self, t, name)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"In-place form of :func:`{function.__name__}`: writes the result into this tensor and returns it."
    return method


def _written_by(ufunc, x, args):
    """Write ``ufunc(x, *args)`` straight into ``x``, where that is all there is to do: no history, no cast, no resize.

    Only with NumPy, which copes with operands that overlap.
    """
    array = x.array
    if array.__class__ is not np.ndarray or (MODE.grad and (x.node is not None or x.link is not None)):
        return False
    given = [array]
    for y in args:
        if y.__class__ in _NUMBERS:
            y = lift(y, x, None)
        a = getattr(y, "array", None)
        if (
            a is None
            or a.dtype is not array.dtype
            or a.__class__ is not np.ndarray
            or (MODE.grad and y.node is not None)
        ):
            return False
        given.append(a)
    try:
        with np.errstate(all="ignore"):
            getattr(np, ufunc)(*given, out=array)
    except (TypeError, ValueError):  # before anything was written; the general path says why
        return False
    bump(x)
    return True


_NUMBERS = {bool, int, float}


def _keep_values(k, before):
    """Where the op saved what it is about to overwrite, let it have a copy, as PyTorch does."""
    if k is not None and k.fn is not None and any(value is before for value in k.saved):
        before.array, before.version = copy_of(before.array), None


def write(x, t, name="copy_"):
    """Write the values of ``t`` into the memory of ``x``, and its history into the history of ``x``."""
    _check_fits(x, t)
    if t.array.dtype is not x.array.dtype:
        t = cast(t, x.array.dtype)
    x.array[...] = t.array
    k = t.node
    if k is not None and k.fn is not None and k.saved and k.saved[-1] is t.array:
        k.saved, k.counter = (*k.saved[:-1], x.array), counter_of(x)  # the copy can go: x holds the same values
        bump(x, k.seq)
    else:
        bump(x)
    if MODE.grad:
        rebase(x, t, name)
    return x


def overwrite(x, values, name="the operation"):
    """Replace the contents of ``x`` by ``values`` (an array or number that broadcasts), which carry no history."""
    check_writable(x, name)
    x.array[...] = values
    bump(x)
    if MODE.grad and (x.node is not None or x.link is not None):
        rebase(x, SPACE["wrap"](x.array), name)
    return x


def bump(x, time=None):
    """Note a write to ``x``: what saved it before can tell from now on."""
    counter = x.version
    if counter is INFERENCE:
        return
    if time is None:
        time = tick()
    LASTWRITE[0] = min(time, LASTWRITE[0])
    if counter is None:
        counter = x.version = [0, 0, None]
    counter[0] = time
    counter[1] += 1
    frame = outside(sys._getframe(1))
    recent = counter[3] if len(counter) > 3 else []
    counter[3:] = [[*recent[-_RECENT:], (time, frame.f_code, frame.f_lasti)]]


def copy_history(x, values):
    """What ``x`` becomes when ``values``, of its shape and dtype, are copied into it: part of the graphs of both."""
    t = SPACE["wrap"](x.array)
    before = x.node if x.link is None else None
    if before is not None or values.node is not None:
        t.node = make(_copied_rule, (before, values.node), (), x.array.shape)
    return t


@rule("CopyBackwards")
def _copied_rule(k, g, heap):
    before, values = k.edges
    if before is not None:
        send(before, _zeros(k, g), heap)
    if values is not None:
        send(values, g, heap)


def _zeros(k, g):
    return xp_of(g).zeros(k.attrs, g.dtype)


_copied_rule.graph = lambda k, g: (SPACE["wrap"](_zeros(k, g.array)), g)


def rebase(x, t, name="copy_"):
    """Give ``x`` the history of ``t``, whose values it holds now, and with it the base and the views of ``x``."""
    if x.link is None:
        if x.node is not None and t.node is None:
            t.node = make(_constant_rule(name), (x.node,), (), x.array.shape)
        _take(x, t.node)
        base = x
    else:
        base, steps = base_of(x)
        if base.node is None and t.node is None:
            return
        layout = base.array.shape, base.array.strides, steps
        _take(base, make(_written_rule, (base.node, t.node), (), layout))
    views = base.version[2] if base.version is not None else None
    if views:
        for view in [r() for r in views]:
            if view is None or view.link is None or view.link[3] == "no_grad":
                continue
            parent, op, options, made_by = view.link
            if made_by is not None and len(made_by) == 3:
                _take(view, make(_stale_rule, (), (), made_by))
            else:
                k = op.bare(parent, **dict(zip(op.options, options))).node
                if k is not None or not view.is_leaf:
                    _take(view, k)


def _take(x, k):
    """Make ``k`` the node of ``x``; a gradient that ``x`` retains is from now on that of its new value."""
    before = x.node
    x.node = k
    if k in (None, before) or before is None or before.hooks is None:
        return
    if before.hooks.retain is not None:
        hooks = of_node(k)
        hooks.retain, hooks.dtype, before.hooks.retain = before.hooks.retain, before.hooks.dtype, None


@functools.cache
def _constant_rule(name):
    """The rule of a tensor that was overwritten by ``name`` with what has no history: it is in the graph still."""

    @rule("".join(part.capitalize() for part in name.split("_")) + "Backward0")
    def overwritten(k, g, heap):
        send(k.edges[0], _zeros(k, g), heap)

    overwritten.graph = lambda k, g: (SPACE["wrap"](_zeros(k, g.array)),)
    return overwritten


@rule("CopySlices")
def _written_rule(k, g, heap):
    """The part of ``g`` under the view goes to what was written; the rest to what the base was before."""
    shape, strides, steps = k.attrs
    rest = _copy_like(g, shape, strides)
    part = rest
    for op, options in steps:
        part = op.impl[part.__class__](part, **dict(zip(op.options, options)))
    if k.edges[1] is not None:
        send(k.edges[1], part.copy(), heap)
    if k.edges[0] is not None:
        part[...] = 0
        send(k.edges[0], rest, heap)


def _copy_like(g, shape, strides):
    """A copy of ``g`` whose axes lie in memory in the order of ``strides``, so that every view of it is legal."""
    order = sorted(range(len(shape)), key=lambda i: -strides[i])
    copy = g.transpose(order).copy(order="C") if order else g.copy()
    return copy.transpose([order.index(i) for i in range(len(order))]) if order else copy


def _written_graph(k, g):
    *_, steps = k.attrs
    rest = TABLE["clone"].raw(g)
    part = rest
    for op, options in steps:
        part = op.raw(part, **dict(zip(op.options, options)))
    to_value = TABLE["clone"].raw(part)
    if k.edges[0] is not None:
        write(part, SPACE["wrap"](part.array * 0))
    return rest, to_value


_written_rule.graph = _written_graph


# ---- what saved tensors, results and unusual tensors need


def check_saved(k):
    """RuntimeError where something that node ``k`` saved was written to since: its op, versions, and both lines."""
    for value in k.saved:
        counter = value.version if hasattr(value, "version") else k.counter
        if value is not None and counter is not None and counter[0] < k.seq:
            raise _modified(k, value, counter)


def _modified(k, value, counter):
    recent = counter[3] if len(counter) > 3 else ()
    since = [w for w in recent if w[0] < k.seq]
    tensor = value if hasattr(value, "link") else SPACE["wrap"](getattr(value, "array", value))
    kind = f"torch.{tensor.dtype.legacy}Tensor {list(tensor.shape)}"
    made = tensor.node if tensor is value else k
    of = f", which is output 0 of {_short(made.name())}," if made is not None and made.fn is not None else ","
    first = (
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{kind}]{of} is at version {counter[1]}; expected version {counter[1] - len(since)} instead. Hint: enable "
        "anomaly detection to find the operation that failed to compute its gradient, with "
        "torch.autograd.set_detect_anomaly(True, check_nan=False)."
    )
    lines = [f"saved by {k.name()} " + errors.place(k.code, k.lasti)]
    lines += ["changed " + errors.place(code, lasti) for _, code, lasti in since[-1:]]
    return RuntimeError(errors.text(first, *lines, "fix: use the out-of-place form, or clone() before the change"))


def _short(name):
    return name.removesuffix("0").removesuffix("Backward")


def mark(t):
    """A tensor that is not recorded, made while some thread is or was in inference mode."""
    if MODE.inference and t.link is None:
        t.version = INFERENCE


def into(out, op, t, *sources):
    """The result ``t`` of ``op`` on ``sources`` as ``out=``: resized where it does not fit, cast and written.

    Raises      RuntimeError where it wants a gradient, is of a higher category, or lies in part in a source
    """
    if t.node is not None or (out.node is not None and MODE.grad):
        raise RuntimeError(
            f"{op.name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )
    if t.dtype.category > out.dtype.category:
        raise RuntimeError(f"result type {t.dtype.legacy} can't be cast to the desired output type {out.dtype.legacy}")
    if out.array.shape != t.array.shape:
        out.array = t.array.astype(out.array.dtype)
        bump(out)
        return out
    check_apart(out, [y for y in sources if op.promote or getattr(y, "shape", None) == out.shape])
    return overwrite(out, t.array, op.name)


SPACE.update(share=share, mark=mark, into=into, check_saved=check_saved)
