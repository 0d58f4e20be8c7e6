"""The adaptive softmax: frequent classes in the head, rare ones in clusters of lower dimension."""

from collections import namedtuple

from ..ops.softmax import log_softmax
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

__all__ = ("AdaptiveLogSoftmaxWithLoss",)

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """log softmax over many classes of unequal frequency, classes sorted from frequent to rare.

    The head scores the classes below cutoffs[0] and one entry a cluster; cluster i, of the classes up to cutoffs[i+1],
    sees the input through in_features / div_value^(i+1) dimensions.

    Shapes      input [N, in_features] or [in_features], target [N] or [] -> output as target, loss []
    Raises      ValueError for cutoffs that do not rise within 1 .. n_classes-1
    Source      Grave et al. 2017, arXiv:1609.04309
    """

    def __init__(self, in_features, n_classes, cutoffs, div_value=4.0, head_bias=False, device=None, dtype=None):
        super().__init__()
        cutoffs = _checked(list(cutoffs), n_classes)
        where = {"device": device, "dtype": dtype}
        self.in_features, self.n_classes, self.div_value, self.head_bias = in_features, n_classes, div_value, head_bias
        self.cutoffs = [*cutoffs, n_classes]
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, **where)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            hidden = int(in_features // div_value ** (i + 1))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            narrow = Linear(in_features, hidden, bias=False, **where)
            self.tail.append(Sequential(narrow, Linear(hidden, size, bias=False, **where)))

    def reset_parameters(self):
        """Draw all weights anew."""
        self.head.reset_parameters()
        for narrow, wide in self.tail:
            narrow.reset_parameters()
            wide.reset_parameters()

    def forward(self, input, target):
        if input.dim() == 1:
            input = input.unsqueeze(0)
            single = target.dim() == 0
            target = target.unsqueeze(0) if single else target
        else:
            single = False
        self._check(input, target, single)
        head = log_softmax(self.head(input), 1)
        output = head.gather(1, target.clamp(max=self.shortlist_size - 1).unsqueeze(1)).squeeze(1)
        for i in range(self.n_clusters):
            output = self._with_cluster(i, output, head, input, target)
        loss = (-output).mean()
        return _ASMoutput(output.squeeze(0) if single else output, loss)

    def _check(self, input, target, single):
        if target.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if input.dim() != 2:
            raise RuntimeError("1D target tensor expects 2D input tensors, but found inputs with size")
        if input.shape[0] != target.shape[0] or (target.dim() and not single and target.shape[0] != input.shape[0]):
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        low, high = int(target.min()), int(target.max())
        if low < 0 or high >= self.n_classes:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range [{low}, {high}] "
                "were found. "
            )

    def _with_cluster(self, i, output, head, input, target):
        """``output`` with the log-probabilities of the rows whose target is in cluster i."""
        low, high = self.cutoffs[i], self.cutoffs[i + 1]
        rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
        if rows.numel() == 0:
            return output
        inside = log_softmax(self.tail[i](input.index_select(0, rows)), 1)
        picked = inside.gather(1, (target.index_select(0, rows) - low).unsqueeze(1)).squeeze(1)
        entry = head.index_select(0, rows).select(1, self.shortlist_size + i)
        return output.index_copy(0, rows, picked + entry)

    def log_prob(self, input):
        """The log-probabilities of all classes: [N, in_features] -> [N, n_classes]."""
        from ..ops.joining import cat

        head = log_softmax(self.head(input), 1)
        parts = [head.narrow(1, 0, self.shortlist_size)]
        for i, cluster in enumerate(self.tail):
            parts.append(log_softmax(cluster(input), 1) + head.narrow(1, self.shortlist_size + i, 1))
        return cat(parts, 1)

    def predict(self, input):
        """The likeliest class of every row: [N, in_features] -> [N]."""
        head = self.head(input)
        best = head.argmax(1)
        unsure = (best >= self.shortlist_size).nonzero().squeeze(1)
        if unsure.numel() == 0:
            return best
        return best.index_copy(0, unsure, self.log_prob(input.index_select(0, unsure)).argmax(1))


def _checked(cutoffs, n_classes):
    if not cutoffs:
        raise ValueError("cutoffs should be a sequence of length larger than 0")
    rising = all(a < b for a, b in zip(cutoffs, cutoffs[1:]))
    if not rising or min(cutoffs) <= 0 or max(cutoffs) > n_classes - 1 or any(int(c) != c for c in cutoffs):
        raise ValueError(
            "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value "
            "is between 1 and n_classes-1"
        )
    return cutoffs
