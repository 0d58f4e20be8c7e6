"""The line search for the strong Wolfe conditions."""

import numpy as np


def strong_wolfe(evaluate, start, t, d_largest, tolerance_change, limit, c1=1e-4, c2=0.9):
    """A point ``(t, loss, gradient, slope)`` along a direction, low and flat enough, and the evaluations it took.

    ``evaluate(t)`` gives the point at step ``t``, ``start`` is the one at 0, ``t`` the first step to try,
    ``d_largest`` the largest element of the direction; at most ``limit`` evaluations after the first.

    Source      Nocedal & Wright 2006, algorithms 3.5 (finding a bracket) and 3.6 (narrowing it)
    """
    search = _Search(evaluate, start, c1, c2, limit)
    low, high = search.bracket(t)
    if high is not None:
        low = search.narrow(low, high, d_largest, tolerance_change)
    return low, search.evals


class _Search:
    def __init__(self, evaluate, start, c1, c2, limit):
        self._evaluate, self.start, self.limit = evaluate, start, limit
        self.c1, self.c2, self.evals = c1, c2, 0

    def at(self, t):
        self.evals += 1
        return self._evaluate(t)

    def spent(self):
        return self.evals > self.limit

    def too_high(self, point):
        """Whether the loss has not fallen enough for the step (the first Wolfe condition fails)."""
        return point[1] > self.start[1] + self.c1 * point[0] * self.start[3]

    def flat(self, point):
        """Whether the slope is small enough (the second, strong condition holds)."""
        return abs(point[3]) <= -self.c2 * self.start[3]

    def bracket(self, t):
        """Two points, the lower first, with a good one between; ``(point, None)`` where a good one was met."""
        before, now = self.start, self.at(t)
        while not self.spent():
            if self.too_high(now) or (self.evals > 2 and now[1] >= before[1]):
                return _by_loss(before, now)
            if self.flat(now):
                return now, None
            if now[3] >= 0:
                return _by_loss(before, now)
            bounds = now[0] + 0.01 * (now[0] - before[0]), now[0] * 10
            before, now = now, self.at(cubic_minimum(before, now, bounds))
        return _by_loss(self.start, now)

    def narrow(self, low, high, d_largest, tolerance_change):
        """The lowest point found between ``low`` and ``high`` once it is good, or the bracket or ``limit`` is spent."""
        stalled = False
        while not self.spent() and abs(high[0] - low[0]) * d_largest >= tolerance_change:
            t, stalled = self._inside(low, high, stalled)
            point = self.at(t)
            if self.too_high(point) or point[1] >= low[1]:
                low, high = _by_loss(low, point)
                continue
            if self.flat(point):
                return point
            if point[3] * (high[0] - low[0]) >= 0:
                high = low
            low = point
        return low

    @staticmethod
    def _inside(low, high, stalled):
        """The cubic's minimum; the second time running that it lies at an end, a tenth of the bracket from there."""
        left, right = sorted((low[0], high[0]))
        t = cubic_minimum(low, high, (left, right))
        margin = 0.1 * (right - left)
        if min(right - t, t - left) >= margin:
            return t, False
        if not stalled and left < t < right:
            return t, True
        return (right - margin if abs(t - right) < abs(t - left) else left + margin), False


def _by_loss(a, b):
    return (a, b) if a[1] <= b[1] else (b, a)


def cubic_minimum(a, b, bounds):
    """The minimum, within ``bounds``, of the cubic through two points with their slopes; the middle if it has none."""
    (x1, f1, g1), (x2, f2, g2) = sorted(map(_floats, (a, b)), key=lambda point: point[0])
    left, right = bounds
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1 * d1 - g1 * g2
    if not square >= 0:  # also where it is NaN
        return (left + right) / 2.0
    root = square**0.5
    t = x2 - (x2 - x1) * ((g2 + root - d1) / (g2 - g1 + 2 * root))
    return min(max(t, left), right)


def _floats(point):
    """Step, loss and slope as NumPy's floats, whose division by zero is inf or NaN and no exception."""
    return np.float64(point[0]), np.float64(point[1]), np.float64(point[3])
