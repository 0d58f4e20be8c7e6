"""First-order backward: walks the graph on bare arrays, newest node first, and frees what it has used."""

import sys
from heapq import heappop, heappush, heappushpop

import numpy as np

from .. import errors
from ..backend import ARRAYS, device_of, xp_of
from .hooks import accumulated
from .hooks import run as run_hooks
from .inplace import bump
from .modes import MODE, SPACE, _set
from .node import FREED, send
from .op import TABLE, ByClass
from .promote import keep
from .tensor import wrap


def run(roots, retain, heap):
    """Send gradients from ``roots``, a list of (node, array), to the leaves they depend on; ``heap`` is the turn's."""
    grad = MODE.grad
    _set(False)
    try:
        for k, g in roots:
            send(k, g, heap)
        if heap:
            with np.errstate(all="ignore"):
                _loop(heap, retain, roots[0][1])
    finally:
        _set(grad)


def _loop(heap, retain, like):
    k = heappop(heap)[1]
    kind = like.__class__
    try:
        while True:
            g, k.g = k.g, None
            if g.__class__ is not kind and g.__class__ is not list:
                if g.__class__ in ARRAYS:  # the graph goes on on another device
                    like, kind = g, g.__class__
                else:
                    g = keep(g, like)
            if k.hooks is not None:
                k.own = False  # a hook may keep what it sees; and another backward may come by while it runs
                g = run_hooks(k, _rounded(g, k.hooks.dtype), _lift, _lower)
            if g is None:
                after = None
            elif k.fn is None:  # a leaf: all parts of this backward are in
                arrive(k, g)
                after = None
            else:
                after = k.fn(k, g, heap)  # sends to parents; returns one node that it touched first
                if not retain and k.saved:
                    k.saved, k.attrs = FREED, None
            k.own = False
            if after is None:
                if not heap:
                    break
                k = heappop(heap)[1]
            elif heap and heap[0][0] < after.seq:
                k = heappushpop(heap, (after.seq, after))[1]
            else:
                k = after  # a chain never touches the heap
    except BaseException as error:
        _clear(k, heap)
        name_line(error, k)
        raise


def _rounded(g, dtype):
    """A gradient in the dtype of its tensor: NumPy makes bfloat16 times a Python number a float32."""
    return g if dtype is None or g.__class__ is list or g.dtype is dtype else g.astype(dtype)


def _lift(g):
    return g if g is None else wrap(g)


def _lower(t):
    return t if t is None else t.array


def _clear(k, heap):
    """After an error no node keeps a part of a gradient, or the next backward would add to it."""
    for n in (k, *(e for e in k.edges or () if e is not None), *(n for _, n in heap)):
        n.g, n.own = None, False
    heap.clear()


def name_line(error, k):
    """Add the user's forward line to an error raised in backward, below its own first line."""
    if k.code is None or getattr(error, "_line_named", False) or not isinstance(error, Exception):
        return
    line = f"backward of {k.name()}, made {errors.place(k.code, k.lasti)}"
    if error.args and isinstance(error.args[0], str):
        if "\n  at " not in error.args[0] and ", made " not in error.args[0]:
            error.args = (errors.text(error.args[0], line), *error.args[1:])
        try:
            error._line_named = True
        except AttributeError:
            pass


def _held(g):
    return sys.getrefcount(g)


def _count_of_fresh():
    g = next(iter(ARRAYS.values())).empty(1)
    return _held(g)


_FRESH = _count_of_fresh()  # references to an array that only a caller's local and a callee's argument hold


def arrive(k, g):
    """Add ``g`` into the ``.grad`` of the leaf of node ``k``, in the leaf's dtype and layout."""
    free = k.own or (sys.getrefcount(g) <= _FRESH and g.base is None)
    x = k.variable()
    if x is None or x.node is not k:  # it is gone, or wants no gradient any more
        return
    if k.grad is None:
        k.grad = wrap(_fitted(g, x.array, free))
    else:
        _add(k, g)
    if k.hooks is not None:
        accumulated(k, x, wrap(g))


def _fitted(g, like, free):
    """``g`` as an array of ``like``'s class, dtype and strides; ``g`` itself where it is that and nobody else's."""
    if g.__class__ is not like.__class__:
        g = TABLE["to_device"].impl[g.__class__](g, device=device_of(like))
        free = True
    if g.dtype is not like.dtype:
        g = TABLE["to"].impl[g.__class__](g, dtype=like.dtype, source=g.dtype)
        free = True
    if free and g.strides == like.strides:
        return g
    fitted = xp_of(like).empty_like(like)
    fitted[...] = g
    return fitted


def _add(k, g):
    grad = k.grad
    if grad.node is not None:  # it belongs to a graph: a new tensor, so that the graph keeps its values
        k.grad = wrap(grad.array + g)
        return
    if g.dtype is not grad.array.dtype:
        g = g.astype(grad.array.dtype)
    grad.array += g
    bump(grad)


def prune(roots, targets):
    """The nodes that lead to ``targets``, and the edges to be masked: pairs of a node and the edges it is to have.

    Nodes are looked at oldest first, so whether one is needed is known from its parents.
    """
    seen, order, stack = set(), [], list(roots)
    while stack:
        n = stack.pop()
        if n in seen:
            continue
        seen.add(n)
        order.append(n)
        stack += [e for e in n.edges or () if e is not None and e not in seen]
    order.sort(key=lambda n: -n.seq)
    needed = {n for n in targets if n in seen}
    masked = []
    for n in order:
        edges = n.edges or ()
        wanted = tuple(e if e in needed else None for e in edges)
        if any(e is not None for e in wanted):
            needed.add(n)
        if wanted != edges:
            masked.append((n, wanted))
    return needed, masked


def buffer(e, shape, g):
    """An array to add into: zeros of ``shape`` like ``g``, or a copy of ``e`` that nobody else holds."""
    xp = xp_of(g)
    return xp.zeros(shape, g.dtype) if e is None else xp.array(e)


class Ops:
    """``m`` in a formula: all ops by name, each by what ``of(op)`` gives, which is asked once."""

    def __init__(self, of):
        self._of = of

    def __getattr__(self, name):
        if name not in TABLE:
            raise AttributeError(f"there is no op {name}")
        run = self._of(TABLE[name])
        setattr(self, name, run)
        return run


def _over_arrays(array_class):
    """``m`` over arrays of one class, where the class of a NumPy scalar counts as NumPy's: the forwards."""
    array_class = array_class if array_class in ARRAYS else np.ndarray

    def forward(op):
        run = op.impl[array_class]
        return (lambda arrays, **options: run(*arrays, **options)) if op.variadic else run

    return Ops(forward)


OVER_ARRAYS = ByClass(_over_arrays)
OVER_TENSORS = Ops(lambda op: op.raw)

SPACE.update(M=OVER_ARRAYS, heappush=heappush, buffer=buffer, xp_of=xp_of)
SPACE["xp_of_list"] = lambda g: xp_of(next(v for v in g if v is not None))
SPACE["class_of_list"] = lambda g: next(v for v in g if v is not None).__class__
