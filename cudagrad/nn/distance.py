"""Distance and similarity layers."""

from ..ops.distance import cosine_similarity, pairwise_distance
from .module import Module

__all__ = ("PairwiseDistance", "CosineSimilarity")


class PairwiseDistance(Module):
    """The p-norm of x1 - x2 + eps over the last axis."""

    __constants__ = ["norm", "eps", "keepdim"]

    def __init__(self, p=2.0, eps=1e-6, keepdim=False):
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1, x2):
        return pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """The cosine of the angle between x1 and x2 along ``dim``, norms not below eps."""

    __constants__ = ["dim", "eps"]

    def __init__(self, dim=1, eps=1e-8):
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1, x2):
        return cosine_similarity(x1, x2, self.dim, self.eps)
