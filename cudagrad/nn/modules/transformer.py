"""The path ``torch.nn.modules.transformer``."""


__all__ = [
    *("Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer"),
]
