"""Anomaly detection: where the first value that is not finite was made, forward and backward."""

import sys
import warnings
import weakref

from .. import errors
from ..backend import xp_of
from ..core.modes import MODE, watching
from ..core.node import outside


class detect_anomaly:
    """Within, backward stops at the first node that makes a NaN, and names the forward line it comes from.

    It also says which forward op first made a value that is not finite, and whether the NaN is zero times infinity in a
    branch that ``where`` did not take. ``check_nan=False``: name lines only.
    """

    def __init__(self, check_nan=True):
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            UserWarning,
            stacklevel=2,
        )

    def __enter__(self):
        self.before = _switch(_Anomaly(self.check_nan))
        return self

    def __exit__(self, *exception):
        _switch(self.before)


class set_detect_anomaly:
    """Anomaly detection on or off from here on; as a context manager, until its end."""

    def __init__(self, mode, check_nan=True):
        self.before = _switch(_Anomaly(check_nan) if mode else None)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        _switch(self.before)


class _Anomaly:
    """What one stretch of anomaly detection has seen: the first forward op that made a value that is not finite."""

    def __init__(self, check_nan):
        self.check_nan, self.first = check_nan, None
        self.wheres = weakref.WeakSet()  # the nodes of `where` that backward has passed
        self.watcher = watching(self.watch)

    def watch(self, op, tensors, options, call):
        result = call(tensors, options)
        if self.first is None:
            outputs = result if isinstance(result, tuple) else (result,)
            if not all(map(_finite, outputs)) and all(map(_finite, tensors)):
                frame = outside(sys._getframe(1))
                self.first = op.name, errors.place(frame.f_code, frame.f_lasti)
        return result

    def failed(self, k):
        """An error came out of node ``k``: show where it was made."""
        warnings.warn(_trace(k), UserWarning, stacklevel=2)

    def check(self, k, ds, g):
        """RuntimeError where node ``k``, given ``g``, sends on a NaN."""
        if k.name() in ("WhereBackward0", "MaskedFillBackward0"):
            self.wheres.add(k)
        if not self.check_nan:
            return
        for i, (n, d) in enumerate(zip(k.edges, ds)):
            if n is not None and d is not None and _has_nan(d.array):
                self.failed(k)
                raise RuntimeError(_report(self, k, i, d.array, g))


def _finite(t):
    array = getattr(t, "array", None)
    if array is None or array.dtype.kind in "biu":
        return True
    return bool(xp_of(array).isfinite(array).all())


def is_anomaly_enabled():
    """Whether anomaly detection is on in this thread."""
    return MODE.checker is not None


def _switch(anomaly):
    """Detection by ``anomaly`` from here on, by nobody where it is None; comes back as what there was before."""
    before, MODE.checker = MODE.checker, anomaly
    if before is not None:
        before.watcher.__exit__()
    if anomaly is not None:
        anomaly.watcher.__enter__()
    return before


def _has_nan(array):
    return array.dtype.kind not in "biu" and bool(xp_of(array).isnan(array).any())


def _trace(k):
    first = f"Error detected in {k.name()}. Traceback of forward call that caused the error:"
    return errors.text(first, site=(k.code, k.lasti))


def _report(anomaly, k, i, d, g):
    lines = ["made " + errors.place(k.code, k.lasti)]
    if anomaly.first is not None:
        lines.append(f"first value that is not finite in forward: made by {anomaly.first[0]} {anomaly.first[1]}")
    else:
        lines.append("every value of forward was finite")
    taken = _untaken(anomaly, k, d, g)
    if taken is not None:
        lines.append(
            "the gradient that came in is 0 there: the NaN is 0 * inf, from the branch not taken of the where "
            + errors.place(taken.code, taken.lasti)
            + "; fix: make the argument of that branch harmless with a where inside it"
        )
    return errors.text(f"Function '{k.name()}' returned nan values in its {i}th output.", *lines)


def _untaken(anomaly, k, d, g):
    """The ``where`` whose untaken branch leads to ``k``, if the NaNs of ``d`` stand where ``g`` is 0."""
    if isinstance(g, list) or g.array.shape != d.shape or not bool((g.array[xp_of(d).isnan(d)] == 0).all()):
        return None
    return next((w for w in anomaly.wheres if _reaches(w, k)), None)


def _reaches(start, wanted):
    seen, stack = set(), [start]
    while stack:
        n = stack.pop()
        if n is wanted:
            return True
        for e in n.edges or ():
            if e is not None and e not in seen and e.seq <= wanted.seq:
                seen.add(e)
                stack.append(e)
    return False
