"""Connectionist temporal classification: the likelihood of labels without their places in time."""

import numpy as np

from ..backend import xp_of
from ..core.op import TABLE, op
from ..core.tensor import Tensor, wrap
from .checks import refuse
from .loss_reduction import reduction_of

FUNCTIONAL = ("ctc_loss",)

# log(0): finite, so that differences of two of them, and their derivatives, are no nan. Below IMPOSSIBLE is inf.
NEVER, IMPOSSIBLE = -1e30, -1e29


class _Batch:
    """The states of every sequence: its labels with blanks around them, S = 2 L + 1, and who may follow whom."""

    def __init__(self, xp, labels, input_lengths, target_lengths, blank, dtype):
        n, longest = labels.shape
        self.xp, self.dtype = xp, dtype
        self.times = xp.asarray(np.array(input_lengths))
        self.ends = xp.asarray(2 * np.array(target_lengths))  # the place of the last blank
        self.states = xp.full((n, 2 * longest + 1), blank, np.int64)
        self.states[:, 1::2] = labels
        skips = xp.zeros(self.states.shape, bool)  # over a blank, where the label before it is another
        skips[:, 3::2] = labels[:, 1:] != labels[:, :-1]
        self.skip = xp.where(skips, 0.0, NEVER).astype(dtype)

    def first(self):
        """log of who may come first: the first blank and the first label."""
        first = self.xp.full(self.states.shape, NEVER, self.dtype)
        first[:, :2] = 0
        return first

    def last(self):
        """log of who may come last: the last label and the last blank."""
        place = self.xp.arange(self.states.shape[1])
        ends = self.ends[:, None]
        return self.xp.where((place == ends) | (place == ends - 1), 0.0, NEVER).astype(self.dtype)

    def one_hot(self, classes):
        """[N,S,C]: 1 where a state has a class."""
        return (self.states[:, :, None] == self.xp.arange(classes)).astype(self.dtype)


def _moved(xp, a, by):
    """The columns of ``a`` moved to the right (to the left for negative ``by``), NEVER where they were."""
    out = xp.full(a.shape, NEVER, a.dtype)
    if by > 0:
        out[:, by:] = a[:, :-by]
    else:
        out[:, :by] = a[:, -by:]
    return out


def _forwards(batch, emitted, logaddexp, moved):
    """alphas[t]: log of all ways to be in a state at time t, having emitted what it takes."""
    alpha = batch.skip * 0 + batch.first() + emitted[0]
    alphas = [alpha]
    for now in emitted[1:]:
        ways = logaddexp(alpha, moved(alpha, 1))
        alpha = logaddexp(ways, moved(alpha, 2) + batch.skip) + now
        alphas.append(alpha)
    return alphas


def _backwards(batch, emitted, logaddexp, moved, where):
    """betas[t]: log of all ways from a state at time t to the end, what it emits itself not counted."""
    last = batch.last()
    beta, betas = last, []
    for t in reversed(range(len(emitted))):
        if t + 1 < len(emitted):
            after = beta + emitted[t + 1]
            ways = logaddexp(after, moved(after, -1))
            beta = logaddexp(ways, moved(after + batch.skip, -2))
            beta = where(batch.times[:, None] - 1 == t, last, beta)
        betas.append(beta)
    return betas[::-1]


def _emitted(xp, x, batch):
    """The log-probabilities of the states: [T,N,S]."""
    index = xp.broadcast_to(batch.states, (x.shape[0], *batch.states.shape))
    return xp.take_along_axis(x, index, 2)


def _likelihood(batch, alphas):
    """log of the probability of the labels: that of the last states at the last time, [N]."""
    xp = batch.xp
    n = xp.arange(batch.states.shape[0])
    if not len(alphas):
        return xp.where(batch.ends == 0, 0.0, NEVER).astype(batch.dtype)
    stacked = xp.stack(alphas)
    t = xp.maximum(batch.times - 1, 0)
    end = stacked[t, n, batch.ends]
    label = xp.where(batch.ends > 0, stacked[t, n, xp.maximum(batch.ends - 1, 0)], NEVER)
    nothing = xp.where(batch.ends == 0, 0.0, NEVER)  # no time at all: only the empty sequence
    return xp.where(batch.times > 0, xp.logaddexp(end, label), nothing).astype(batch.dtype)


def _fused(xp, g, x, labels, out, input_lengths, target_lengths, empty, zero_infinity, alphas):
    """e^x less the share of every class in the ways through it at that time, 0 after a sequence's end.

    Source      Graves et al. 2006, ICML, equation 15; e^x as in PyTorch: softmax takes it out again
    """
    batch = _Batch(xp, labels, input_lengths, target_lengths, empty, x.dtype)
    emitted = _emitted(xp, x, batch)
    betas = _backwards(batch, list(emitted), xp.logaddexp, lambda a, by: _moved(xp, a, by), xp.where)
    finite = xp.isfinite(out)
    share = xp.exp(xp.stack(alphas) + xp.stack(betas) + xp.where(finite, out, 0)[:, None]) if len(betas) else emitted
    of_classes = xp.matmul(share.transpose(1, 0, 2), batch.one_hot(x.shape[2])).transpose(1, 0, 2)
    d = (xp.exp(x) - of_classes) * g[:, None]
    d = xp.where(finite[:, None], d, xp.asarray(0.0 if zero_infinity else np.nan, d.dtype))
    d[xp.arange(x.shape[0])[:, None] >= batch.times] = 0
    return d, None


def _recorded(m, g, x, labels, out, input_lengths, target_lengths, empty, zero_infinity):
    """As the fused rule, of Tensors, so that it can be differentiated again."""
    from .joining import cat, stack

    array = x.array
    xp = xp_of(array)
    batch = _Batch(xp, labels.array, input_lengths, target_lengths, empty, array.dtype)
    for name in ("skip", "times"):
        setattr(batch, name, wrap(getattr(batch, name)))
    first, last, one_hot = map(wrap, (batch.first(), batch.last(), batch.one_hot(x.shape[2])))
    batch.first, batch.last = lambda: first, lambda: last

    def moved(a, by):
        blank_columns = a.new_full((a.shape[0], abs(by)), NEVER)
        kept = a.narrow(1, max(0, -by), a.shape[1] - abs(by))
        return cat([blank_columns, kept] if by > 0 else [kept, blank_columns], 1)

    index = wrap(batch.states).unsqueeze(0).expand(x.shape[0], *batch.states.shape)
    emitted = list(x.gather(2, index).unbind(0))
    alphas = stack(_forwards(batch, emitted, m.logaddexp, moved))
    betas = stack(_backwards(batch, emitted, m.logaddexp, moved, m.where))
    finite = out.isfinite()
    share = (alphas + betas + out.masked_fill(~finite, 0).unsqueeze(1)).exp()
    d = (x.exp() - (share.transpose(0, 1) @ one_hot).transpose(0, 1)) * g.unsqueeze(1)
    d = d.masked_fill(~finite.reshape(1, -1, 1), 0.0 if zero_infinity else np.nan)
    after = wrap(xp.arange(x.shape[0])[:, None] >= batch.times.array)
    return d.masked_fill(after.unsqueeze(2), 0)


@op(x=_recorded, fused=_fused, extras=("alphas",), node="CtcLoss")
def ctc_negative_log_likelihood(xp, x, labels, *, input_lengths, target_lengths, empty, zero_infinity):
    """-log of the probability of every sequence of labels: x [T,N,C] log-probabilities, labels [N,L] -> [N]."""
    refuse("ctc_loss_cpu", x, "biuc")
    if x.itemsize == 2:
        refuse("ctc_loss_cpu", x, x.dtype.kind)
    batch = _Batch(xp, labels, input_lengths, target_lengths, empty, x.dtype)
    emitted = list(_emitted(xp, x, batch))
    alphas = _forwards(batch, emitted, xp.logaddexp, lambda a, by: _moved(xp, a, by)) if emitted else []
    likelihood = _likelihood(batch, alphas)
    return xp.where(likelihood < IMPOSSIBLE, np.inf, -likelihood).astype(x.dtype), alphas


# ---- the public function


def _lengths(lengths, name):
    if isinstance(lengths, Tensor):
        if lengths.dtype.category != 1:
            raise RuntimeError(f"{name} must be integral")
        lengths = lengths.reshape(-1).tolist()
    return tuple(int(v) for v in ([lengths] if isinstance(lengths, int) else lengths))


def _check(log_probs, input_lengths, target_lengths, blank):
    if log_probs.ndim != 3:
        got = f"but got {max(2, log_probs.ndim)}-dimensional tensor for argument #1 'log_probs'"
        first = f"Expected 3-dimensional tensor, {got} (while checking arguments for ctc_loss_allocate_outputs)"
        raise RuntimeError(first)
    t, n, c = log_probs.shape
    if not log_probs.array.size:
        raise RuntimeError("log_probs tensor must not be empty")
    if not 0 <= blank < c:
        raise RuntimeError("blank must be in label range")
    for name, lengths in (("input", input_lengths), ("target", target_lengths)):
        if len(lengths) != n:
            raise RuntimeError(f"{name}_lengths must be of size batch_size")
    while_checking = "(while checking arguments for ctc_loss_allocate_outputs)"
    for v in input_lengths:
        if v < 0:
            raise RuntimeError(f"Expected input_lengths to have value at least 0, but got value {v} {while_checking}")
        if v > t:
            raise RuntimeError(f"Expected input_lengths to have value at most {t}, but got value {v} {while_checking}")
    for v in target_lengths:
        if v < 0:
            raise RuntimeError(f"Expected target_lengths to have value at least 0, but got value {v} {while_checking}")


def _padded(targets, lengths):
    """The labels as a matrix [N,L], given so or one after the other."""
    xp, array, longest = xp_of(targets.array), targets.array, max(lengths, default=0)
    where = "for argument #2 'targets' (while checking arguments for ctc_loss_allocate_outputs)"
    if array.ndim == 2:
        if array.shape[1] < longest:
            got = f"size at least {longest} at dimension 1, but got size {array.shape[1]}"
            raise RuntimeError(f"Expected tensor to have {got} {where}")
        return array[:, :longest].astype(np.int64)
    if array.size != sum(lengths):
        got = f"size {sum(lengths)} at dimension 0, but got size {array.size}"
        raise RuntimeError(f"Expected tensor to have {got} {where}")
    labels, at = xp.zeros((len(lengths), longest), np.int64), 0
    for i, n in enumerate(lengths):
        labels[i, :n] = array[at : at + n]
        at += n
    return labels


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    """-log of the probability that log_probs emit the targets, blanks and repeats taken out.

    The mean divides every loss by its target's length first. ``zero_infinity`` makes 0 of what cannot be emitted.

    Shapes      log_probs [T,N,C] or [T,C]; targets [N,S], or all labels one after the other
    Derivative  by log_probs, as if they came from log_softmax
    Raises      RuntimeError where lengths do not fit
    Source      Graves, Fernández, Gomez, Schmidhuber 2006, ICML
    """
    reduction = reduction_of(None, None, reduction)
    single = log_probs.ndim == 2
    if single:
        log_probs = log_probs.unsqueeze(1)
        targets = targets.reshape(1, -1)
    input_lengths, target_lengths = _lengths(input_lengths, "input_lengths"), _lengths(target_lengths, "target_lengths")
    _check(log_probs, input_lengths, target_lengths, blank)
    losses = TABLE["ctc_negative_log_likelihood"].raw(
        log_probs,
        wrap(_padded(targets, target_lengths)),
        input_lengths=input_lengths,
        target_lengths=target_lengths,
        empty=blank,
        zero_infinity=bool(zero_infinity),
    )
    if zero_infinity:
        losses = losses.masked_fill(losses.detach().isinf(), 0)
    if reduction == "mean":
        xp = xp_of(losses.array)
        lengths = wrap(xp.asarray(np.maximum(target_lengths, 1)).astype(losses.array.dtype))
        return (losses / lengths).mean()
    if reduction == "sum":
        return losses.sum()
    return losses.reshape(()) if single else losses
