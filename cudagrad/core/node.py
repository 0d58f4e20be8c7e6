"""The node of the graph: who made a tensor, from what, and what backward needs for it."""

import heapq
import itertools
import os
import sys
import warnings

from .. import errors
from .modes import SPACE

# One clock for nodes and writes. It counts down, so that a heap pops the newest node first; leaves count up from 1,
# which puts them last and makes every key unique.
tick = itertools.count(-1, -1).__next__
_leaf_tick = itertools.count(1).__next__
LASTWRITE = [0]  # the time of the last in-place write of the process


class _Freed(tuple):
    __slots__ = ()

    def __repr__(self):
        return "FREED"


FREED = _Freed((None,))  # stands in `saved` once backward has used it


class Node:
    """One recorded call. ``fn(node, g, heap)`` sends the gradient on; ``fn is None`` marks a leaf.

    ``edges`` are the nodes of the inputs (None: no gradient wanted), ``saved`` what the rule needs of tensors,
    ``attrs`` what it needs besides, ``counter`` the version counter of a saved output, ``seq`` the time it was made,
    ``g`` the gradient so far, ``own`` whether ``g`` may be added into, ``code, lasti`` the user's instruction.
    """

    __slots__ = (
        *("fn", "edges", "saved", "attrs", "counter", "seq", "g", "own", "hooks", "code", "lasti", "grad", "variable"),
        "__weakref__",
    )

    def name(self):
        """PyTorch's name of this node, e.g. ``MulBackward0``."""
        return "torch::autograd::AccumulateGrad" if self.fn is None else self.fn.node_name

    def __repr__(self):
        return f"<{self.name().rsplit('::', 1)[-1]} object at {id(self):#x}>"

    @property
    def next_functions(self):
        """The nodes of the inputs as ``(node, output index)``, ``(None, 0)`` for one that needs no gradient."""
        return tuple((None, 0) if n is None else visible(n) for n in self.edges or ())

    @property
    def metadata(self):
        """A dict of the user's own for this node."""
        from .hooks import of_node

        return of_node(self).metadata

    def register_hook(self, hook):
        """Call ``hook(grad_inputs, grad_outputs)`` after this node has run; it may return other grad_inputs."""
        from .hooks import add_post_hook

        return add_post_hook(self, hook)

    def register_prehook(self, hook):
        """Call ``hook(grad_outputs)`` before this node runs; it may return other grad_outputs."""
        from .hooks import add_pre_hook

        return add_pre_hook(self, hook)

    def __getattr__(self, name):
        """``_saved_x``, ``_saved_result``: what the tape keeps, by the names of the op's formula."""
        if name.startswith("_saved_") and self.fn is not None and hasattr(self.fn, "op"):
            from .graph import saved_values

            wanted = {"self": "x", "result": "out", "other": "y", "weight": "w", "bias": "b"}.get(name[7:], name[7:])
            values = saved_values(self.fn.op, self)
            if wanted in values:
                return values[wanted]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def visible(node):
    """``(node, output index)`` as PyTorch shows it: adapters are skipped, a pick is an output of its parent."""
    index = 0
    while node.fn is not None and node.fn.hidden:
        if node.fn is pick_rule:
            index = node.attrs[0]
        node = node.edges[0]
    return node, index


def leaf(variable):
    """The node of a leaf tensor, in which its gradient arrives."""
    k = Node()
    k.fn = k.edges = k.saved = k.g = k.hooks = k.code = k.grad = k.counter = None
    k.own = False
    k.seq = _leaf_tick()
    k.lasti = -1
    k.variable = variable
    return k


def make(fn, edges, saved=(), attrs=None, kind=Node):
    """A node at the user's line; the generated ops do the same inline."""
    k = kind()
    k.fn, k.edges, k.saved, k.attrs = fn, edges, saved, attrs
    k.g = k.hooks = k.counter = None
    k.own = False
    k.seq = tick()
    f = outside(sys._getframe(1))
    k.code, k.lasti = f.f_code, f.f_lasti
    return k


def _own_files():
    """The files of the engine itself, whose frames are never the user's; the examples count as the user's."""
    package = os.path.dirname(os.path.dirname(__file__))
    for folder, _, files in os.walk(package):
        if os.path.basename(folder) != "examples":
            yield from (os.path.join(folder, file) for file in files if file.endswith(".py"))


INSIDE = set(_own_files())  # and the names of generated code, added as it is made


def outside(frame):
    """The nearest frame that is the user's own program; the outermost one where there is none."""
    while frame.f_code.co_filename in INSIDE and frame.f_back is not None:
        frame = frame.f_back
    return frame


def warn(text, category=UserWarning):
    """A warning that names the user's line, however many of our own frames and generated calls lie between."""
    frame, level = sys._getframe(1), 2
    while frame.f_code.co_filename in INSIDE and frame.f_back is not None:
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)


# ---- adapters: nodes on an edge that no user sees


def rule(name, hidden=False):
    """Mark a hand-written rule with the facts that the engine reads from generated ones."""

    def mark(fn):
        fn.node_name, fn.hidden = name, hidden
        return fn

    return mark


def wrapping(around, fn):
    """``around``, a rule that runs the rule ``fn`` in its own way, with the facts of ``fn``."""
    around.node_name, around.hidden = fn.node_name, fn.hidden
    if hasattr(fn, "op"):
        around.op = fn.op
    return around


def send(n, d, heap):
    """Add ``d`` to the gradient of node ``n``; puts it on the heap when it is touched first."""
    if n.g is None:
        n.g = d
        heapq.heappush(heap, (n.seq, n))
    else:
        add_into(n, d)


def add_into(n, d):
    """Add ``d`` to the gradient that node ``n`` has, in place where ``n`` owns it."""
    if n.own:
        n.g += d
    else:
        n.g = n.g + d
        n.own = True


@rule("SumToBackward0", hidden=True)
def _sum_to_rule(k, g, heap):
    send(k.edges[0], SPACE["M"][g.__class__].sum_to(g, shape=k.attrs), heap)


def _sum_to_graph(k, g):
    from .op import TABLE

    return (TABLE["sum_to"].raw(g, shape=k.attrs),)


_sum_to_rule.graph = _sum_to_graph


def sum_to(n, shape):
    """An adapter that undoes broadcasting: it adds the gradient up to ``shape`` on its way to ``n``."""
    return make(_sum_to_rule, (n,), (), shape)


@rule("PickBackward0", hidden=True)
def pick_rule(k, g, heap):
    parent, (index, count) = k.edges[0], k.attrs
    if parent.g is None:
        parent.g = [None] * count
        heapq.heappush(heap, (parent.seq, parent))
    parent.g[index] = g


pick_rule.graph = None  # graph.py knows it: it fills a place in the parent's list


def pick(k, index, count):
    """The node of output ``index`` of the node ``k``, which has ``count``."""
    return make(pick_rule, (k,), (), (index, count))


def freed(k):
    """The error of a backward through a node whose saved tensors are gone."""
    return RuntimeError(
        errors.text(
            "Trying to backward through the graph a second time (or directly access saved tensors after they have "
            "already been freed). Saved intermediate values of the graph are freed when you call .backward() or "
            "autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or "
            "if you need to access saved tensors after calling backward.",
            f"the node is {k.name()}, made",
            site=(k.code, k.lasti),
        )
    )


SPACE.update(Node=Node, tick=tick, LASTWRITE=LASTWRITE, FREED=FREED, INSIDE=INSIDE, outside=outside, sum_to=sum_to)
SPACE.update(pick=pick, freed=freed, frame=sys._getframe, send=send, add_into=add_into)
