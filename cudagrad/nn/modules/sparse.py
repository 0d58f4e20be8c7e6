"""The path ``torch.nn.modules.sparse``."""

from ..sparse import Embedding, EmbeddingBag  # noqa: F401
