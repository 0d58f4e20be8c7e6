"""Tables of learned vectors."""

from ..core.modes import no_grad
from ..ops.embedding import embedding, embedding_bag
from . import init
from .linear import uninitialised
from .module import Module
from .parameter import Parameter

__all__ = ("Embedding", "EmbeddingBag")


def _padding(padding_idx, rows):
    """``padding_idx`` counted from the front."""
    if padding_idx is None:
        return None
    if not -rows <= padding_idx < rows:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return padding_idx + rows if padding_idx < 0 else padding_idx


class _Table(Module):
    """What both tables share: the weight and its initial values."""

    def _make_weight(self, weight, freeze, device, dtype):
        shape = (self.num_embeddings, self.embedding_dim)
        if weight is None:
            self.weight = uninitialised(shape, device, dtype).requires_grad_(not freeze)
            self.reset_parameters()
        else:
            if tuple(weight.shape) != shape:
                raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
            self.weight = Parameter(weight, requires_grad=not freeze)

    def reset_parameters(self):
        """Draw the weight anew."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self):
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)


def _check_pretrained(embeddings):
    if embeddings.dim() != 2:
        raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
    return embeddings.shape


class Embedding(_Table):
    """The rows of ``weight`` at the numbers of the input.

    ``padding_idx``: a row that starts at zero and gets no gradient. ``max_norm``: rows taken whose ``norm_type``-norm
    is larger are scaled to it first, in place. ``scale_grad_by_freq``: gradients over how often a row was taken.

    Shapes      input any, int64 or int32 -> [*input,embedding_dim]; weight [num_embeddings,embedding_dim]
    Init        normal(0, 1), the padding row 0
    Raises      AssertionError for a padding_idx or weight that does not fit
    """

    __constants__ = ["num_embeddings", "embedding_dim", "padding_idx", "max_norm", "norm_type", "scale_grad_by_freq"]

    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        padding_idx=None,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        sparse=False,
        _weight=None,
        _freeze=False,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = _padding(padding_idx, num_embeddings)
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        self._make_weight(_weight, _freeze, device, dtype)

    @classmethod
    def from_pretrained(
        cls,
        embeddings,
        freeze=True,
        padding_idx=None,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        sparse=False,
    ):
        """An Embedding over the 2-d tensor ``embeddings``, which learns only where not ``freeze``."""
        rows, width = _check_pretrained(embeddings)
        options = (padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
        return cls(rows, width, *options, _weight=embeddings, _freeze=freeze)

    def forward(self, input):
        options = (self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse)
        return embedding(input, self.weight, *options)

    def extra_repr(self):
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        if self.padding_idx is not None:
            parts.append(f"padding_idx={self.padding_idx}")
        if self.max_norm is not None:
            parts.append(f"max_norm={self.max_norm}")
        if self.norm_type != 2:
            parts.append(f"norm_type={self.norm_type}")
        if self.scale_grad_by_freq:
            parts.append(f"scale_grad_by_freq={self.scale_grad_by_freq}")
        if self.sparse:
            parts.append("sparse=True")
        return ", ".join(parts)


class EmbeddingBag(_Table):
    """The sum, mean or largest, by ``mode``, of each bag of rows of ``weight``; see ``nn.functional.embedding_bag``.

    Shapes      input [B,N], or [N] with offsets [B]; weight [num_embeddings,embedding_dim]; out [B,embedding_dim]
    Init        normal(0, 1), the padding row 0
    """

    __constants__ = [
        *("num_embeddings", "embedding_dim", "max_norm", "norm_type", "scale_grad_by_freq", "mode", "sparse"),
        *("include_last_offset", "padding_idx"),
    ]

    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        mode="mean",
        sparse=False,
        _weight=None,
        include_last_offset=False,
        padding_idx=None,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = _padding(padding_idx, num_embeddings)
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.mode, self.sparse = scale_grad_by_freq, mode, sparse
        self.include_last_offset = include_last_offset
        self._make_weight(_weight, False, device, dtype)

    @classmethod
    def from_pretrained(
        cls,
        embeddings,
        freeze=True,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        mode="mean",
        sparse=False,
        include_last_offset=False,
        padding_idx=None,
    ):
        """An EmbeddingBag over the 2-d tensor ``embeddings``, which learns only where not ``freeze``."""
        rows, width = _check_pretrained(embeddings)
        options = (max_norm, norm_type, scale_grad_by_freq, mode, sparse)
        made = cls(rows, width, *options, embeddings, include_last_offset, padding_idx)
        made.weight.requires_grad_(not freeze)
        return made

    def forward(self, input, offsets=None, per_sample_weights=None):
        options = (self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse)
        last = (per_sample_weights, self.include_last_offset, self.padding_idx)
        return embedding_bag(input, self.weight, offsets, *options, *last)

    def extra_repr(self):
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        if self.max_norm is not None:
            parts.append(f"max_norm={self.max_norm}")
        if self.norm_type != 2:
            parts.append(f"norm_type={self.norm_type}")
        if self.scale_grad_by_freq:
            parts.append(f"scale_grad_by_freq={self.scale_grad_by_freq}")
        parts.append(f"mode={self.mode!r}")
        if self.padding_idx is not None:
            parts.append(f"padding_idx={self.padding_idx}")
        return ", ".join(parts)
