"""Backward that is itself recorded: the same formulas, run on Tensors, so that every order of derivative exists."""

import warnings
from heapq import heappop, heappush

import numpy as np

from . import engine
from .hooks import accumulated
from .hooks import run as run_hooks
from .modes import MODE, SPACE, _set, no_grad
from .node import FREED, LASTWRITE, freed, pick, pick_rule, send, wrapping
from .op import SAME, TABLE, asks
from .promote import keep
from .template import saves
from .tensor import wrap
from .views import INFERENCE
from .writable import check_saved


def run(roots, retain, record=True):
    """Send gradients from ``roots``, a list of (node, Tensor), recording what is done.

    ``record=False`` is first-order backward at a walk, for who wants to look at every step.
    """
    before = MODE.grad
    _set(record)
    try:
        with np.errstate(all="ignore"):
            _walk(roots, retain, record)
    finally:
        _set(before)


def _walk(roots, retain, record):
    pending, heap = {}, []
    for k, g in roots:
        _send(pending, heap, k, g)
    while heap:
        k = heappop(heap)[1]
        g = pending.pop(k)
        try:
            if k.hooks is not None:
                g = run_hooks(k, g, _same, _same)
            if g is None:
                continue
            if k.fn is None:
                _arrive(k, g) if record else engine.arrive(k, g.array)
            elif k.fn is pick_rule:
                _send_pick(pending, heap, k, g)
            else:
                ds = list(gradients(k, g))
                if MODE.checker is not None:
                    MODE.checker.check(k, ds, g)
                for n, d in zip(k.edges, ds):
                    if n is not None and d is not None:
                        _send(pending, heap, n, d)
        except Exception as error:
            if MODE.checker is not None:
                MODE.checker.failed(k)
            engine.name_line(error, k)
            raise
        if not retain and k.saved:
            k.saved, k.attrs = FREED, None


def _same(t):
    return t


def _send(pending, heap, n, d):
    if n in pending:
        pending[n] = pending[n] + d
    else:
        pending[n] = d
        heappush(heap, (n.seq, n))


def _send_pick(pending, heap, k, g):
    parent = k.edges[0]
    if parent not in pending:
        pending[parent] = [None] * k.attrs[1]
        heappush(heap, (parent.seq, parent))
    pending[parent][k.attrs[0]] = g


def _arrive(k, g):
    x = k.variable()
    if x is None or x.node is not k:  # it is gone, or wants no gradient any more
        return
    if g.array.dtype is not x.array.dtype:
        g = TABLE["to"].raw(g, dtype=x.array.dtype, source=g.array.dtype)
    if k.grad is None:
        warnings.warn(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its "
            "gradient which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid "
            "this. If you have to use this function, make sure to reset the .grad fields of your parameters to None "
            "after use to break the cycle and avoid the leak.",
            UserWarning,
            stacklevel=6,
        )
    k.grad = g if k.grad is None else k.grad + g
    if k.hooks is not None:
        accumulated(k, x, g)


def gradients(k, g, fn=None):
    """The gradients of a node's inputs, as Tensors, by its formulas; ``g``: a Tensor, or a list for several outputs."""
    fn = fn or k.fn
    if getattr(fn, "graph", None) is not None:
        return fn.graph(k, g)
    if k.saved is FREED:
        raise freed(k)
    op = fn.op
    if LASTWRITE[0] < k.seq:
        check_saved(k)
    return formula_gradients(op, saved_values(op, k), k, g, engine.OVER_TENSORS)


def formula_gradients(op, values, k, g, m):
    """What the polymorphic formulas of ``op`` give for the edges of ``k``, over arrays or Tensors."""
    values = {**values, "g": g, "m": m, "needs": needs(op, k)}
    if op.joint:
        ds = op.joint(**{a: values[a] for a in asks(op.joint)})
        return ds if op.variadic else [ds[op.tensors.index(t)] for t in op.diff]
    ds = []
    for t, n in zip(op.diff, k.edges):
        formula = op.formulas[t]
        if n is None:
            ds.append(None)
        else:
            ds.append(g if formula is SAME else formula(**{a: values[a] for a in asks(formula)}))
    return ds


def needs(op, k):
    """Which tensors of the op want a gradient, in the order of its forward."""
    if op.variadic:
        return tuple(n is not None for n in k.edges)
    wanted = dict(zip(op.diff, k.edges))
    return tuple(wanted.get(t) is not None for t in op.tensors)


def saved_values(op, k, as_tensors=True):
    """The saved values of a node by the names of the formulas: tensors, ``out``, options and shapes."""
    if k.saved is FREED:
        raise freed(k)
    tensors, attrs = saves(op)
    saved = k.saved
    values = dict(zip(attrs, k.attrs)) if attrs else {}
    if op.variadic and op.tensors[0] in tensors:
        values[op.tensors[0]] = list(saved[: len(k.edges)])
        saved, tensors = saved[-1:] if "out" in tensors else (), [t for t in tensors if t == "out"]
    values.update(zip(tensors, saved))
    for i, name in enumerate(op.names):
        if name in values:
            values[name] = _output(values[name], k, k if op.outputs == 1 else pick(k, i, op.outputs))
    if as_tensors:
        return values
    return {name: _arrays(value) for name, value in values.items()}


def _arrays(value):
    if isinstance(value, list):
        return [_arrays(v) for v in value]
    return value.array if hasattr(value, "node") and hasattr(value, "array") else value


def _output(array, k, node):
    """The output of node ``k`` as a Tensor again, of the graph of ``node``."""
    if hasattr(array, "node"):
        return array
    t = wrap(array)
    t.node, t.version = node, k.counter
    return t


# ---- nodes that are not as most: complex, with inference tensors, with saved-tensor hooks


def rare(op, k, d):
    """Finish the node of a call in a process that has met complex or inference tensors or saved-tensor hooks."""
    for value in k.saved:
        if getattr(value, "version", None) is INFERENCE:
            raise RuntimeError(
                "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference "
                "mode in "
                "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and "
                "use it in autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."
            )
    if op.holomorphic and getattr(getattr(d, "dtype", None), "kind", "") == "c":
        k.fn = _complex_rule(op)
    if MODE.saved_hooks and k.saved:
        pack_saved(k)


_complex_rules = {}


def _complex_rule(op):
    """The rule of a holomorphic op on complex arrays: conj(formula(conj(g))), so no formula has to conjugate."""
    if op in _complex_rules:
        return _complex_rules[op]

    def run_rule(k, g, heap):
        if k.saved is FREED:
            raise freed(k)
        check_saved(k)
        m = engine.OVER_ARRAYS[g.__class__]
        for n, d in zip(k.edges, formula_gradients(op, saved_values(op, k, False), k, m.conj(g), m)):
            if n is not None:
                send(n, m.conj(d), heap)

    def run_graph(k, g):
        conj = TABLE["conj"].raw
        ds = formula_gradients(op, saved_values(op, k), k, conj(g), engine.OVER_TENSORS)
        return [None if d is None else conj(d) for d in ds]

    run_rule.graph, run_rule.op, run_rule.node_name = run_graph, op, op.node_name
    run_rule.hidden = False
    return _complex_rules.setdefault(op, run_rule)


def pack_saved(k):
    """Hand what a node saved to the innermost pack hook, which records nothing, and unpack it when its rule runs."""
    pack, unpack = MODE.saved_hooks[0]
    fn, packed = k.fn, []
    hooks, MODE.saved_hooks = MODE.saved_hooks, ()
    try:
        for value in k.saved:
            if value is None:
                packed.append(None)
                continue
            tensor = value if hasattr(value, "node") else _output(value, k, None)
            with no_grad():
                packed.append((pack(tensor), tensor.node, value is tensor))
    finally:
        MODE.saved_hooks = hooks
    k.saved, k.counter = tuple(packed), None

    def opened(k, rule_of):
        kept = k.saved
        if kept is FREED:
            raise freed(k)
        k.saved = tuple(None if p is None else unpacked(unpack, *p) for p in kept)
        try:
            return rule_of()
        finally:
            k.saved = kept

    def unpacking(k, g, heap):
        return opened(k, lambda: fn(k, g, heap))

    unpacking.graph = lambda k, g: opened(k, lambda: gradients(k, g, fn))
    k.fn = wrapping(unpacking, fn)


def unpacked(unpack, packed, node, was_tensor=True):
    """What ``unpack`` makes of ``packed``: an array, or a tensor of the graph of ``node`` where one was packed."""
    t = unpack(packed)
    if not hasattr(t, "array"):
        kind = type(t).__name__
        raise TypeError(f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {kind}")
    if not was_tensor:
        return t.array
    if t.node is not node:
        t = wrap(t.array)
        t.node = node
    return t


# ---- several outputs


def plain_outputs(outs, like):
    """The tensors of a several-output op; ``like`` is an input array, for results that are NumPy scalars."""
    return tuple(wrap(keep(d, like)) for d in outs)


def picked_outputs(outs, like, k, kept):
    """The tensors of a several-output op; each floating one gets a node that stands for its place.

    Those at the places ``kept``, which the node saves, share its version counter.
    """
    made = []
    for i, t in enumerate(plain_outputs(outs, like)):
        if t.dtype.category >= 2:
            t.node = pick(k, i, len(outs))
        if i in kept:
            t.version = k.counter
        made.append(t)
    return tuple(made)


SPACE.update(rare=rare, plain_outputs=plain_outputs, picked_outputs=picked_outputs)
