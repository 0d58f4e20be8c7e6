"""Dropout layers: they drop in training and hand their input on in evaluation."""

from ..ops.dropout import alpha_dropout, dropout, dropout1d, dropout2d, dropout3d, feature_alpha_dropout
from .module import Module

__all__ = ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout")


class _Dropout(Module):
    """Drops by the function ``_function`` with probability ``p``, in place where ``inplace``."""

    __constants__ = ["p", "inplace"]

    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p, self.inplace = p, inplace

    def forward(self, input):
        return self._function(input, self.p, self.training, self.inplace)

    def extra_repr(self):
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """Each element times 1 / (1 - p), or 0 with probability p.

    Source      Srivastava et al. 2014, Dropout, JMLR 15
    """

    _function = staticmethod(dropout)


class Dropout1d(_Dropout):
    """Whole channels of [N,C,T] or [C,T] times 1 / (1 - p), or 0 with probability p."""

    _function = staticmethod(dropout1d)


class Dropout2d(_Dropout):
    """Whole channels of [N,C,H,W] times 1 / (1 - p), or 0 with probability p."""

    _function = staticmethod(dropout2d)


class Dropout3d(_Dropout):
    """Whole channels of [N,C,D,H,W] or [C,D,H,W] times 1 / (1 - p), or 0 with probability p."""

    _function = staticmethod(dropout3d)


class AlphaDropout(_Dropout):
    """Dropout that keeps mean 0 and variance 1, for selu.

    Source      Klambauer et al. 2017, arXiv:1706.02515, section 3
    """

    _function = staticmethod(alpha_dropout)


class FeatureAlphaDropout(_Dropout):
    """``AlphaDropout`` of whole channels."""

    _function = staticmethod(feature_alpha_dropout)
