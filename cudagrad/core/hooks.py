"""Hooks on tensors and nodes, and the order in which a gradient passes them."""

import collections
import itertools
import weakref

from . import node as nodes
from .modes import SPACE
from .turns import called

_ids = itertools.count()


class RemovableHandle:
    """A hook's handle; ``remove()`` takes the hook away. Also a context manager that removes at its end."""

    def __init__(self, hooks):
        self.id = next(_ids)
        self._hooks = weakref.ref(hooks)

    def remove(self):
        hooks = self._hooks()
        if hooks is not None:
            hooks.pop(self.id, None)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.remove()


class Table(collections.OrderedDict):
    """The hooks of one kind, in the order of registration; weakly referenced by their handles."""

    def add(self, hook):
        handle = RemovableHandle(self)
        self[handle.id] = hook
        return handle


class Hooks:
    """What is attached to one node. A gradient passes tensor hooks, then ``retain`` and ``capture``, then ``pre``."""

    __slots__ = ("tensor", "pre", "post", "accumulated", "retain", "capture", "stops", "metadata", "dtype")

    def __init__(self):
        self.tensor, self.pre, self.post, self.accumulated = Table(), Table(), Table(), Table()
        self.retain = self.capture = None
        self.dtype = None  # of the tensor, where one hung its hooks here: a half gradient may come in float32
        self.stops = False
        self.metadata = {}


def of_node(k):
    """The hooks of a node, made if it has none."""
    if k.hooks is None:
        k.hooks = Hooks()
    return k.hooks


def add_pre_hook(k, hook):
    return of_node(k).pre.add(hook)


def add_post_hook(k, hook):
    hooks = of_node(k)
    if k.fn is not None and not hooks.post and not hasattr(k.fn, "before_post"):
        k.fn = _with_post_hooks(k.fn)
    return hooks.post.add(hook)


def run(k, g, lift, lower):
    """Pass a gradient through the hooks of ``k``; None where it ends here. ``lift`` makes the Tensor a hook sees."""
    hooks = k.hooks
    for hook in list(hooks.tensor.values()):
        got = called(hook, lift(g))
        if got is not None:
            g = lower(_checked(hook, got, g))
    if hooks.retain is not None:
        hooks.retain(lift(g))
    if hooks.capture is not None:
        hooks.capture(lift(g))
        if hooks.stops or k.fn is None:
            return None
    for hook in list(hooks.pre.values()):
        given = g if g.__class__ is list else [g]
        got = called(hook, tuple(map(lift, given)))
        if got is not None:
            got = list(map(lower, _checked_all(hook, got, given)))
            g = got if g.__class__ is list else got[0]
            if g is None:
                return None
    return g


def accumulated(k, x, g):
    """Tell the hooks of a leaf that ``g``, a Tensor, was added into the gradient of ``x``."""
    for hook in list(k.hooks.accumulated.values()):
        got = called(hook, x)
        if got is not None:
            _check_tensor(got)
            raise RuntimeError("Tensor post accumulate grad hooks should return None.")
    for hook in list(k.hooks.post.values()):
        called(hook, (), (g,))


def _checked_all(hook, got, given):
    """What a hook of a node returned in place of the tuple ``given``: checked one by one."""
    if not isinstance(got, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(got).__name__}'")
    if len(got) != len(given):
        raise RuntimeError(
            f"hook '{_name(hook)}' has returned an incorrect number of values (got {len(got)}, but "
            f"expected {len(given)})"
        )
    return [_checked(hook, *pair) for pair in zip(got, given)]


def _checked(hook, got, g):
    if got is None:
        return None
    if g is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    _check_tensor(got)
    was = g if hasattr(g, "array") else SPACE["wrap"](g)
    if got.array.dtype != was.array.dtype:
        change = f"(was torch.{was.dtype.legacy}Tensor got torch.{got.dtype.legacy}Tensor)"
        raise RuntimeError(f"hook '{_name(hook)}' has changed the type of value {change}")
    if got.device != was.device:
        raise RuntimeError(f"hook '{_name(hook)}' has changed the device of value")
    if got.array.shape != was.array.shape:
        raise RuntimeError(f"hook '{_name(hook)}' has changed the size of value")
    return got


def _check_tensor(got):
    if not hasattr(got, "array"):
        raise TypeError(f"expected Variable, but hook returned '{type(got).__name__}'")


def _name(hook):
    return getattr(hook, "__name__", "<unknown>")


def _with_post_hooks(fn):
    """A rule that runs ``fn`` aside, shows its results to the node's post-hooks, and then sends them on."""

    def hooked(k, g, heap):
        from . import graph

        wrap = SPACE["wrap"]
        lifted = [None if v is None else wrap(v) for v in g] if g.__class__ is list else wrap(g)
        ds = _shown(k, graph.gradients(k, lifted, fn), lifted)
        for n, d in zip(k.edges, ds):
            if n is not None and d is not None:
                nodes.send(n, d.array, heap)

    def hooked_graph(k, g):
        from . import graph

        return _shown(k, graph.gradients(k, g, fn), g)

    hooked.graph, hooked.before_post = hooked_graph, fn
    return nodes.wrapping(hooked, fn)


def _shown(k, ds, g):
    ds = tuple(ds)
    for hook in list(k.hooks.post.values()):
        got = called(hook, ds, tuple(g) if g.__class__ is list else (g,))
        if got is not None:
            ds = tuple(_checked_all(hook, got, ds))
    return ds
