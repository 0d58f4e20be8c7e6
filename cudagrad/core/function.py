"""``Function``: a differentiable function whose backward the user writes."""

import functools
import inspect

from .. import errors
from ..backend import xp_of
from . import graph
from .inplace import bump, rebase
from .modes import MODE, no_grad
from .node import FREED, Node, freed, make, pick, rule, send, tick
from .op import TABLE
from .tensor import Tensor, wrap
from .turns import called
from .views import counter_of
from .writable import check_saved, check_writable


class FunctionCtx(Node):
    """What ``forward`` and ``backward`` of a Function share; it is the node of the outputs as well."""

    def save_for_backward(self, *tensors):
        """Keep tensors for backward; inputs and outputs belong here, so that changes to them are noticed."""
        self._to_save = tensors

    save_for_forward = save_for_backward

    def mark_dirty(self, *tensors):
        """Say that forward wrote to these inputs in place; they must be returned."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors):
        """Say that these outputs have no gradient."""
        self._constant = tensors

    def set_materialize_grads(self, value):
        """Whether backward gets zeros (the default) or None for outputs that were not used."""
        self._materialize = value

    @property
    def saved_tensors(self):
        """The tensors given to ``save_for_backward``.

        Raises      RuntimeError where they were freed, or changed in place since
        """
        if self.saved is FREED:
            raise freed(self)
        if self.saved is None:  # forward is still running
            return self._to_save
        check_saved(self)
        return tuple(None if v is None else _unpacked(self, v) for v in self.saved)

    saved_variables = saved_tensors


class _Output:
    """A saved output, kept without its tensor: that would be a cycle."""

    __slots__ = ("array", "node", "version", "index")

    def __init__(self, t, index):
        self.array, self.version, self.index, self.node = t.array, counter_of(t), index, None


def _unpacked(ctx, value):
    if isinstance(value, tuple):
        return graph.unpacked(*value)
    if isinstance(value, _Output):
        t = wrap(value.array)
        t.version = value.version
        t.node = ctx if ctx._count == 1 else pick(ctx, value.index, ctx._count)
        return t
    return value


class _FunctionMeta(type):
    """Gives every Function class the rule of its nodes."""

    def __init__(cls, name, bases, space):
        super().__init__(name, bases, space)

        @rule(name + "Backward")
        def run(k, g, heap):
            lifted = [None if v is None else wrap(v) for v in g] if g.__class__ is list else wrap(g)
            with no_grad():
                for n, d in zip(k.edges, _gradients(k, lifted)):
                    if n is not None and d is not None:
                        send(n, d.array, heap)

        run.graph = lambda k, g: _gradients(k, g)  # which is below, and Function itself is made by this
        cls._rule = run


class Function(metaclass=_FunctionMeta):
    """Base of user-defined differentiable functions: static ``forward(ctx, ...)`` and ``backward(ctx, *grads)``.

    With a static ``setup_context(ctx, inputs, output)`` forward takes no ``ctx``. Called as ``MyFunction.apply(...)``.

    Source      pytorch.org/docs/stable/autograd.html, torch.autograd.Function
    """

    def __init__(self, *args, **kwargs):
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
            "function with static forward method. (Example: https://pytorch.org/docs/stable/autograd.html"
            "#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args, **kwargs):
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx, inputs, output):
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    vjp = backward

    @classmethod
    def apply(cls, *args, **kwargs):
        """Run forward without recording and make one node of it; keywords count as arguments in their place."""
        apart = cls.setup_context is not Function.setup_context
        if kwargs or apart:
            args = _bound(cls.forward, args, kwargs, apart)
        needs = tuple(isinstance(a, Tensor) and a.node is not None for a in args)
        recorded = MODE.grad and any(needs)
        ctx = _context(cls, args, needs)
        with no_grad():
            outputs = cls.forward(*args) if apart else cls.forward(ctx, *args)
            if apart:
                cls.setup_context(ctx, args, outputs)
        for t in ctx._dirty:
            bump(t)
        ctx.seq = tick()  # after forward: what it wrote is older than the node, and so not "changed since"
        single = not isinstance(outputs, tuple)
        listed = (outputs,) if single else outputs
        made = _outputs(ctx, args, listed, recorded)
        if recorded:
            _save(ctx, listed, made)
        else:
            ctx.saved = ()
        return made[0] if single else tuple(made)


def _bound(forward, args, kwargs, apart):
    """All arguments of ``forward`` in their order: those of keywords, and for ``setup_context`` the defaults too."""
    bound = inspect.signature(forward).bind(*([] if apart else [None]), *args, **kwargs)
    if apart:
        bound.apply_defaults()
    return tuple(bound.args if apart else bound.args[1:])


def _context(cls, args, needs):
    ctx = make(cls._rule, tuple(a.node if n else None for a, n in zip(args, needs)), None, kind=FunctionCtx)
    ctx._function, ctx.needs_input_grad = cls, needs
    ctx._to_save = ctx._dirty = ctx._constant = ()
    ctx._materialize = True
    ctx._inputs = [(a.array.shape, a.array.dtype) if isinstance(a, Tensor) else None for a in args]
    return ctx


def _outputs(ctx, args, outputs, recorded):
    """The outputs as tensors of the graph; a returned input as another tensor, one written to with the new history."""
    ctx._count = len(outputs)
    ctx._shapes = [(t.array.shape, t.array.dtype, xp_of(t.array)) if isinstance(t, Tensor) else None for t in outputs]
    dirty = {id(t) for t in ctx._dirty}
    made = []
    for i, t in enumerate(outputs):
        if not isinstance(t, Tensor):
            made.append(t)
            continue
        constant = any(t is c for c in ctx._constant) or t.dtype.category < 2
        returned = any(t is a for a in args)
        if id(t) in dirty:
            if recorded and t.node is not None and t.node.fn is None:
                raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
            if recorded:
                check_writable(t)
        elif returned:
            t = t.detach() if constant else TABLE["reshape"].bare(t, shape=t.array.shape)
        if recorded and not constant:
            if t.link is not None and id(t) not in dirty:
                t.link = (*t.link[:3], (ctx.name(), i, "function" if len(outputs) == 1 else "functions"))
            k = ctx if len(outputs) == 1 else pick(ctx, i, len(outputs))
            if id(t) in dirty:
                history = wrap(t.array)
                history.node = k
                rebase(t, history)
            else:
                t.node = k
        made.append(t)
    return made


def _save(ctx, outputs, made):
    saved = []
    for i, t in enumerate(ctx._to_save):
        if t is not None and not isinstance(t, Tensor):
            raise TypeError(
                f"save_for_backward can only save variables, but argument {i} is of type {type(t).__name__}"
            )
        index = next((i for i, o in enumerate(outputs) if o is t), None)
        if t is None:
            saved.append(None)
        elif MODE.saved_hooks:
            pack, unpack = MODE.saved_hooks[0]
            with no_grad():
                saved.append((unpack, pack(t), t.node))
        else:
            saved.append(t if index is None else _Output(made[index], index))
    ctx.saved = tuple(saved)
    ctx._to_save = ()


def _gradients(k, g):
    """What the user's backward gives for each input: checked, reduced to the input's shape, in its dtype."""
    given = g if isinstance(g, list) else [g]
    if k._materialize:
        given = [_zeros(s) if v is None and s is not None else v for v, s in zip(given, k._shapes)]
    cls = k._function
    run = cls.backward if cls.backward is not Function.backward else cls.vjp
    ds = called(run, k, *given)
    ds = ds if isinstance(ds, tuple) else (ds,)
    count = len(k.edges)
    if len(ds) > count and all(d is None for d in ds[count:]):
        ds = ds[:count]
    if len(ds) != count:
        raise RuntimeError(
            f"function {k.name()} returned an incorrect number of gradients (expected {count}, got {len(ds)})"
        )
    return [_fitted(k, i, d) for i, d in enumerate(ds)]


def _zeros(shape):
    size, dtype, xp = shape
    return wrap(xp.zeros(size, dtype))


def _fitted(k, i, d):
    wanted = k._inputs[i]
    if d is None:
        return None
    if wanted is None:
        raise RuntimeError(
            f"function {k.name()} returned a gradient different than None at position {i + 1}, but the corresponding "
            "forward input was not a Variable"
        )
    if k.edges[i] is None:
        return None
    if not isinstance(d, Tensor):
        raise RuntimeError(f"expected Variable or None (got {type(d).__name__})\n  as gradient {i} of {k.name()}")
    shape, dtype = wanted
    if d.array.shape != shape:
        d = _reduced(k, i, d, shape)
    if d.array.dtype is not dtype:
        d = TABLE["to"].raw(d, dtype=dtype, source=d.array.dtype)
    return d


def _reduced(k, i, d, shape):
    grown = d.array.ndim >= len(shape) and all(
        n in (1, m) for n, m in zip(shape, d.array.shape[d.array.ndim - len(shape) :])
    )
    if not grown:
        raise RuntimeError(
            errors.text(
                f"Function {k.name()} returned an invalid gradient at index {i} - got {list(d.array.shape)} but "
                "expected "
                f"shape compatible with {list(shape)}"
            )
        )
    return TABLE["sum_to"].raw(d, shape=shape)


def once_differentiable(backward):
    """Mark a backward as not differentiable: a second derivative through it is an error, not a wrong value."""

    @functools.wraps(backward)
    def once(ctx, *grads):
        with no_grad():
            ds = backward(ctx, *grads)
        if not MODE.grad or not any(isinstance(g, Tensor) and g.node is not None for g in grads):
            return ds
        nodes = tuple(g.node for g in grads if isinstance(g, Tensor) and g.node is not None)
        refusing = make(_refuse, nodes)
        listed = ds if isinstance(ds, tuple) else (ds,)
        for d in listed:
            if isinstance(d, Tensor):
                d.node = refusing
        return ds

    return once


@rule("DelayedError")
def _refuse(k, g, heap):
    raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


_refuse.graph = lambda k, g: _refuse(k, g, None)
