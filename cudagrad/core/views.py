"""Views: tensors over one memory, which share a version counter and know the way from their base."""

import weakref

from .modes import MODE, SPACE

# The fourth part of a view's link says who made it, as far as it matters for writes: None; "no_grad"; (name, index) of
# one of several views; and (name, index, "function" or "functions") of an output of a user's Function.

# A version counter is [time of the last write, count of writes, weakrefs of views or None, the recent writes]; it is
# made when someone needs it. This one stands for "made in inference mode: none is kept".
INFERENCE = [0, 0, None, ()]


def counter_of(x):
    """The version counter of a tensor, made if it has none."""
    if x.version is None:
        x.version = [0, 0, None, ()]
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


def mark(t):
    """A tensor that is not recorded, made while some thread is or was in inference mode."""
    if MODE.inference and t.link is None:
        t.version = INFERENCE


SPACE.update(share=share, mark=mark)
