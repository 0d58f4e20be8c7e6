"""Turns: one backward at a time has its marks in the nodes, though several may be under way."""

import os
import threading

LOCK = threading.RLock()  # held while nodes are walked, not while a function of the user's runs
if hasattr(os, "register_at_fork"):  # a process that is forked has none of the threads that may hold it
    os.register_at_fork(after_in_child=LOCK._at_fork_reinit)
_mine = threading.local()  # .turn: the innermost backward of this thread
_current = [None]  # the turn whose marks are in the nodes


class Turn:
    """A backward, from its first mark on the graph to its last; within ``with``, its marks are in the nodes.

    ``heap`` are the nodes that have a gradient and wait; ``masked`` and ``captures`` what :meth:`mask` and
    :meth:`capture` changed. When another backward begins, in a hook or in another thread, all this is taken out of the
    nodes, which the two may share, and put back when this one goes on.
    """

    __slots__ = ("heap", "aside", "masked", "captures", "outer")

    def __init__(self):
        self.heap, self.aside, self.masked, self.captures = [], (), [], []

    def __enter__(self):
        LOCK.acquire()
        self.outer = getattr(_mine, "turn", None)
        _mine.turn = self
        _take(self)
        return self

    def __exit__(self, *exception):
        self._swap()
        _mine.turn, _current[0] = self.outer, None
        if self.outer is not None:
            _take(self.outer)
        LOCK.release()

    def mask(self, masked):
        """Let nodes have fewer edges: ``masked`` are pairs (node, edges)."""
        self.masked = [(n, n.edges) for n, _ in masked]
        for n, edges in masked:
            n.edges = edges

    def capture(self, captures):
        """Let hooks capture: ``captures`` are triples (hooks, capture, stops)."""
        self.captures = [(hooks, hooks.capture, hooks.stops) for hooks, _, _ in captures]
        for hooks, capture, stops in captures:
            hooks.capture, hooks.stops = capture, stops

    def _swap(self):
        """Exchange what the nodes have and what this turn has."""
        if self.masked:
            self.mask(self.masked)
        if self.captures:
            self.capture(self.captures)

    def _out(self):
        self._swap()
        self.aside = [(n, n.g, n.own) for _, n in self.heap]
        for n, _, _ in self.aside:
            n.g, n.own = None, False

    def _in(self):
        self._swap()
        for n, g, own in self.aside:
            n.g, n.own = g, own
        self.aside = ()


def _take(turn):
    before = _current[0]
    if before is turn:
        return
    if before is not None:
        before._out()
        turn._in()
    elif turn.aside or turn.masked or turn.captures:
        turn._in()
    _current[0] = turn


def called(function, *args):
    """What a function of the user's returns, called without the lock: it may wait for another thread's backward."""
    if not LOCK._is_owned():
        return function(*args)
    held = LOCK._release_save()
    try:
        return function(*args)
    finally:
        LOCK._acquire_restore(held)
        if getattr(_mine, "turn", None) is not None:
            _take(_mine.turn)
