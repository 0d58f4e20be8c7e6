"""Cross-entropy of classes."""

import numpy as np

from ...classes import check_classes
from .common import Lines, fits, flat, like, sums

FEW = 4096  # summed by one block; more by up to BLOCKS of them, and their sums by one
BLOCKS = 128


def _blocks(n):
    return min(-(-n // FEW), BLOCKS)


def _total(run, xp, v, weights=None):
    """The sum of ``v`` over the total of the weights, as an array [1]."""
    for blocks in sorted({_blocks(v.size), 1}, reverse=True):
        out, last = xp.empty(blocks, v.dtype), blocks == 1
        run("cross_entropy.cu", "cross_entropy_total", v=v, total=weights if last else None, out=out)
        v = out
    return v


class _Call:
    """One loss: its logits as lines, targets and weights, and what both directions launch of it."""

    def __init__(self, run, xp, x, target, w, ignore_index, label_smoothing, z_loss, reduction):
        self.run, self.xp, self.x, self.w = run, xp, x, flat(xp, w)
        self.lines = Lines(xp, x, 1)
        self.rows = self.lines.of(x)
        self.target = xp.ascontiguousarray(target.astype(np.int64, copy=False)).reshape(-1, self.rows.shape[2])
        self.settings = dict(ignored=ignore_index, smoothing=label_smoothing, z=z_loss)
        self.total = self._weights() if reduction == "mean" else None

    def _weights(self):
        n, classes = self.target.size, self.x.shape[1]
        given = dict(target=self.target.reshape(-1), w=self.w, classes=classes, ignored=self.settings["ignored"])
        partial = self.xp.empty(_blocks(n), sums(self.x))
        self.run("cross_entropy.cu", "cross_entropy_weights", **given, partial=partial)
        return partial if partial.size == 1 else _total(self.run, self.xp, partial)

    def losses(self, wanted):
        """The losses [N,S], and the gradient of their sum or mean where it is ``wanted``."""
        losses = self.xp.empty(self.target.shape, sums(self.x))
        dx = self.xp.empty(self.rows.shape, self.x.dtype) if wanted else None
        given = dict(x=self.rows, target=self.target, w=self.w, total=self.total, loss=losses, dx=dx)
        self.run("cross_entropy.cu", "cross_entropy_forward", **given, **self.settings)
        return losses, self.lines.back(dx, self.x.shape) if wanted else None


def cross_entropy(run, xp, x, target, w=None, *, ignore_index, label_smoothing, z_loss, reduction, wanted):
    """The loss, and for the rule [gradient]. A class that is not there: nan on a GPU, which must not be waited for."""
    fits("cross_entropy", x, w)
    check_classes(xp, target, x.shape[1], ignore_index)
    call = _Call(run, xp, x, target, w, ignore_index, label_smoothing, z_loss, reduction)
    losses, gradient = call.losses(wanted)
    if reduction == "none":
        out = losses.reshape(target.shape)
    else:
        out = _total(run, xp, losses.reshape(-1), call.total).reshape(())
    return out.astype(x.dtype, copy=False), [gradient] if wanted else []


def cross_entropy_back(run, xp, m, g, x, target, w, x_shape, ignore_index, label_smoothing, z_loss, reduction, made):
    """The gradient that the forward made, or the same made again, times ``g`` in place."""
    fits("cross_entropy", x, w)
    if made:
        gradient = made.pop()
    else:
        gradient = _Call(run, xp, x, target, w, ignore_index, label_smoothing, z_loss, reduction).losses(True)[1]
    dx, upper = Lines(xp, gradient, 1).of(gradient), xp.ascontiguousarray(like(g, x)).reshape(-1)
    run("cross_entropy.cu", "cross_entropy_scale", dx=dx, g=upper, each=int(reduction == "none"))
    return gradient, None, None


FORWARD = {"cross_entropy_of_classes": cross_entropy}
FIRST_ORDER = {"cross_entropy_of_classes": cross_entropy_back}
