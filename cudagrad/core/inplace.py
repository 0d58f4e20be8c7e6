"""In-place writes: the values into the memory, the history into the graphs of all who see that memory."""

import functools
import sys

import numpy as np

from ..backend import copy_of, memory_of, xp_of
from .hooks import of_node
from .modes import MODE, SPACE
from .node import LASTWRITE, make, outside, rule, send, tick, warn
from .op import TABLE
from .promote import cast, lift, wrong_type
from .views import INFERENCE, alias, base_of, counter_of
from .writable import check_apart, check_fits, check_writable, stale_rule

_RECENT = 16  # writes a counter remembers by their line, for the error message


def inplace(function, name):
    """The in-place form ``name`` of a function of tensors: runs it out of place, then writes the result into ``x``."""
    op = (function.__kwdefaults__ or {}).get("_op")
    single = op is not None  # not a composition, whose inner nodes save what they like
    ufunc = op.ufunc if single else None

    def method(self, *args, **kwargs):
        try:
            check_writable(self)
        except AttributeError:
            raise wrong_type(name, "input", 0, self) from None
        if args:
            check_apart(self, args)
        if ufunc is not None and not kwargs and _written_by(op, self, args):
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


def _written_by(op, x, args):
    """Write ``op(x, *args)`` straight into ``x``, where that is all there is to do: no history, no cast, no resize."""
    array = x.array
    if MODE.grad and (x.node is not None or x.link is not None):
        return False
    given = [array]
    for y in args:
        if y.__class__ in _NUMBERS:
            y = lift(y, x, op)
        a = getattr(y, "array", None)
        if (
            a is None
            or a.dtype is not array.dtype
            or a.__class__ is not array.__class__
            or _overlapping(a, array)
            or (MODE.grad and y.node is not None)
        ):
            return False
        given.append(a)
    try:
        with np.errstate(all="ignore"):
            op.writes[array.__class__](*given)
    except (TypeError, ValueError):  # before anything was written; the general path says why
        return False
    bump(x)
    return True


_NUMBERS = {bool, int, float}


def _overlapping(a, array):
    """Whether ``a`` is another part of the memory of ``array``: NumPy copes with that, no kernel does."""
    if a is array or a.__class__ is np.ndarray:
        return False
    return memory_of(a) is memory_of(array)


def _keep_values(k, before):
    """Where the op saved what it is about to overwrite, let it have a copy, as PyTorch does."""
    if k is not None and k.fn is not None and any(value is before for value in k.saved):
        before.array, before.version = copy_of(before.array), None


def write(x, t, name="copy_"):
    """Write the values of ``t`` into the memory of ``x``, and its history into the history of ``x``."""
    check_fits(x, t)
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
    check_writable(x)
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
        counter = x.version = [0, 0, None, ()]
    counter[0] = time
    counter[1] += 1
    frame = outside(sys._getframe(1))
    counter[3] = (*counter[3][1 - _RECENT :], (time, frame.f_code, frame.f_lasti))


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
                _take(view, make(stale_rule, (), (), made_by))
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


@rule("torch::autograd::CopySlices")
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


def into(out, op, t, *sources, silent=False):
    """The result ``t`` of ``op`` on ``sources`` as ``out=``: resized where it does not fit, cast and written.

    What replaces a tensor of another shape warns, but for a factory's, which is ``silent``.


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
        if out.array.size and not silent:
            warn(
                f"An output with one or more elements was resized since it had shape {list(out.shape)}, which does not "
                f"match the required output shape {list(t.shape)}. This behavior is deprecated, and in a future "
                "PyTorch release outputs will not be resized unless they have zero elements. You can explicitly reuse "
                "an out tensor t by resizing it, inplace, to zero elements with t.resize_(0)."
            )
        out.array = t.array.astype(out.array.dtype)
        bump(out)
        return out
    check_apart(out, [y for y in sources if op.promote or getattr(y, "shape", None) == out.shape])
    return overwrite(out, t.array, op.name)


SPACE.update(into=into)
