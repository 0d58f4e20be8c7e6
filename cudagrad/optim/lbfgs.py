"""L-BFGS: quasi-Newton steps from the last few changes of gradient, with a line search where asked for."""

import numpy as np

from ..backend import xp_of
from ..core.inplace import bump
from ..core.modes import enable_grad, no_grad
from ..core.tensor import wrap
from .line_search import strong_wolfe
from .optimizer import Optimizer
from .options import check, check_lr, current, number


class LBFGS(Optimizer):
    """
    d = -H g, H from the last history_size pairs s = change of w, y = change of g     (two-loop recursion)
    w = w + t d,  t = lr (first step: lr min(1, 1 / |g|_1)), or the step that "strong_wolfe" finds

    State       under the first parameter: func_evals, n_iter, and d, t, old_dirs, old_stps, ro, H_diag,
                prev_flat_grad, prev_loss of the iteration before
    Raises      ValueError for several groups; RuntimeError for another line search
    Source      Nocedal & Wright 2006, algorithms 7.4 and 7.5; line search: 3.5 and 3.6
    """

    def __init__(
        self,
        params,
        lr=1,
        max_iter=20,
        max_eval=None,
        tolerance_grad=1e-7,
        tolerance_change=1e-9,
        history_size=100,
        line_search_fn=None,
    ):
        check_lr(lr)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        first = "LBFGS doesn't support per-parameter options (parameter groups)"
        check(len(self.param_groups) == 1, first, f"got {len(self.param_groups)} groups")

    @no_grad()
    def step(self, closure):
        """Up to ``max_iter`` iterations; ``closure`` clears the gradients, computes the loss and runs backward.

        Returns the loss that ``closure`` returned at the start.
        """
        group = self.param_groups[0]
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        first = group["params"][0]
        run = _Run(group, self.state[first], enable_grad()(closure))
        with np.errstate(all="ignore"), current(first.device):
            run.iterate()
        return run.first_loss


class _Run:
    """One call of ``step``: the parameters as one flat vector, and the iterations over it."""

    def __init__(self, group, state, closure):
        self.group, self.state, self.closure = group, state, closure
        self.params = group["params"]
        array = self.params[0].array
        self.xp = xp_of(array)
        real = array.dtype.type(0).real.dtype if array.dtype.kind == "c" else array.dtype
        self.work = np.dtype(np.float32) if real.itemsize == 2 else real
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        self.evals = 0
        self.first_loss = closure()
        self._counted(1)
        self.loss, self.g = float(self.first_loss), self._gradient()

    def _counted(self, evals):
        self.evals += evals
        self.state["func_evals"] += evals

    # ---- the flat vector

    def _gradient(self):
        parts = []
        for p in self.params:
            a = self.xp.zeros_like(p.array) if p.grad is None else p.grad.array
            parts.append(_real(a.reshape(-1)))
        return self.xp.concatenate(parts, dtype=self.work)

    def _move(self, start, by):
        """Make the parameters ``start + by``, ``start`` a list of arrays of their shapes and ``by`` flat."""
        at = 0
        for p, before in zip(self.params, start):
            flat = _real(before.reshape(-1))
            moved = (flat + by[at : at + flat.size]).astype(flat.dtype, copy=False)
            at += flat.size
            p.array[...] = moved.view(before.dtype).reshape(before.shape)
            bump(p)

    def _evaluate(self, start, d, t):
        """Loss, gradient and slope along ``d`` at ``start + t d``."""
        self._move(start, d * t)
        loss = float(self.closure())
        g = self._gradient()
        return t, loss, g, float(g.dot(d))

    # ---- the iterations

    def iterate(self):
        group, state = self.group, self.state
        if self._largest(self.g) <= group["tolerance_grad"]:
            return
        iterations = 0
        while iterations < group["max_iter"]:
            iterations += 1
            state["n_iter"] += 1
            d = self._direction()
            state.update(d=wrap(d), prev_flat_grad=wrap(self.g.copy()), prev_loss=self.loss)
            lr = number(group["lr"])
            t = state["t"] = lr if state["n_iter"] > 1 else min(1.0, 1.0 / float(self.xp.abs(self.g).sum())) * lr
            slope = float(self.g.dot(d))
            if slope > -group["tolerance_change"]:
                break
            before = self.loss
            t = state["t"] = self._advance(d, t, slope, last=iterations == group["max_iter"])
            if iterations < group["max_iter"] and self._finished(d, t, before):
                break

    def _advance(self, d, t, slope, last):
        """Step along ``d``; comes back as the length of the step taken."""
        start = [p.array.copy() for p in self.params]
        if self.group["line_search_fn"] is None:
            self._move(start, d * t)
            if not last:  # the next step() evaluates here anyway
                self.loss, self.g = float(self.closure()), self._gradient()
                self._counted(1)
            return t
        limit = self.group["max_eval"] - self.evals
        found, evals = strong_wolfe(
            lambda t: self._evaluate(start, d, t),
            (0.0, self.loss, self.g, slope),
            t,
            self._largest(d),
            self.group["tolerance_change"],
            limit,
        )
        self._counted(evals)
        t, self.loss, self.g, _ = found
        self._move(start, d * t)
        return t

    def _finished(self, d, t, before):
        group = self.group
        return (
            self.evals >= group["max_eval"]
            or self._largest(self.g) <= group["tolerance_grad"]
            or self._largest(d * t) <= group["tolerance_change"]
            or abs(self.loss - before) < group["tolerance_change"]
        )

    def _largest(self, a):
        return float(self.xp.abs(a).max())

    def _direction(self):
        """``-H g``; the pair of the last step is added to the history first."""
        state = self.state
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
            return -self.g
        y = self.g - state["prev_flat_grad"].array
        s = state["d"].array * number(state["t"])
        curvature = float(y.dot(s))
        if curvature > 1e-10:
            for values, new in zip(self._history(), (wrap(y), wrap(s), 1.0 / curvature)):
                values.append(new)
                del values[: -self.group["history_size"]]
            state["H_diag"] = curvature / float(y.dot(y))
        pairs = [(y.array, s.array, number(r)) for y, s, r in zip(*self._history())]
        q, weights = -self.g, []
        for y, s, r in reversed(pairs):
            weights.append(float(s.dot(q)) * r)
            q -= y * weights[-1]
        q *= number(state["H_diag"])
        for (y, s, r), weight in zip(pairs, reversed(weights)):
            q += s * (weight - float(y.dot(q)) * r)
        return q

    def _history(self):
        return self.state["old_dirs"], self.state["old_stps"], self.state["ro"]


def _real(a):
    return a.view(a.dtype.type(0).real.dtype) if a.dtype.kind == "c" else a
