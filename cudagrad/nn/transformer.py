"""Transformers: encoder and decoder layers, stacks of them, and both together."""

import copy

from ..ops.activation import relu
from ..ops.creation import full
from ..ops.smooth import gelu
from .attention import MultiheadAttention
from .container import ModuleList
from .dropout import Dropout
from .fusing import fusible, plus, plus_and_norm
from .init import xavier_uniform_
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

__all__ = (
    *("TransformerEncoderLayer", "TransformerDecoderLayer", "TransformerEncoder", "TransformerDecoder"),
    "Transformer",
)

_ACTIVATIONS = {"relu": relu, "gelu": gelu}


def _activation(activation):
    if not isinstance(activation, str):
        return activation
    if activation not in _ACTIVATIONS:
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return _ACTIVATIONS[activation]


def _causal_mask(size, device=None, dtype=None):
    return full((size, size), float("-inf"), dtype=dtype, device=device).triu(1)


def _is_causal(mask, is_causal, x, batch_first):
    """``is_causal`` where it is given; else whether ``mask`` is the causal mask of the length of x."""
    if is_causal is not None or mask is None:
        return bool(is_causal)
    length = x.size(0) if x.dim() == 2 or not batch_first else x.size(1)
    if tuple(mask.shape) != (length, length):
        return False
    return bool((mask == _causal_mask(length, mask.device, mask.dtype)).all())


def _feed_forward(layer, d_model, dim_feedforward, dropout, bias, where):
    layer.linear1 = Linear(d_model, dim_feedforward, bias=bias, **where)
    layer.dropout = Dropout(dropout)
    layer.linear2 = Linear(dim_feedforward, d_model, bias=bias, **where)


class TransformerEncoderLayer(Module):
    """Self-attention and a feed-forward network, each with a residual and a LayerNorm after it (or before it).

    ``activation``: "relu", "gelu" or a function. ``norm_first``: the LayerNorm stands before each part.
    On a device with kernels a residual sum is one op with the dropout before it or the norm after it, unless those have
    hooks or this is a subclass.

    Shapes      src [S,B,C], [B,S,C] if ``batch_first``, or [S,C]; src_mask [S,S] or [B*H,S,S];
                src_key_padding_mask [B,S] or [S]
    Source      Vaswani et al. 2017, arXiv:1706.03762; norm_first: Xiong et al. 2020, arXiv:2002.04745
    """

    def __init__(
        self,
        d_model,
        nhead,
        dim_feedforward=2048,
        dropout=0.1,
        activation=relu,
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        bias=True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        where = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias=bias, batch_first=batch_first, **where)
        _feed_forward(self, d_model, dim_feedforward, dropout, bias, where)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = _activation(activation)

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        x = src
        if type(self) is TransformerEncoderLayer and fusible(x):
            return self._fused(x, src_mask, src_key_padding_mask, is_causal)
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), src_mask, src_key_padding_mask, is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, src_mask, src_key_padding_mask, is_causal))
        return self.norm2(x + self._ff_block(x))

    def _fused(self, x, *own):
        """``forward`` with each residual sum in one op with the dropout before it or the norm after it."""
        if self.norm_first:
            y, x = plus_and_norm(self.norm2, self.dropout1, self._attended(self.norm1(x), *own), x)
            return plus(self.dropout2, self._fed_forward(y), x)
        x, _ = plus_and_norm(self.norm1, self.dropout1, self._attended(x, *own), x)
        return plus_and_norm(self.norm2, self.dropout2, self._fed_forward(x), x)[0]

    def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
        return self.dropout1(self._attended(x, attn_mask, key_padding_mask, is_causal))

    def _attended(self, x, attn_mask, key_padding_mask, is_causal):
        x, _ = self.self_attn(
            x,
            x,
            x,
            attn_mask=attn_mask,
            key_padding_mask=key_padding_mask,
            need_weights=False,
            is_causal=is_causal,
        )
        return x

    def _ff_block(self, x):
        return self.dropout2(self._fed_forward(x))

    def _fed_forward(self, x):
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerDecoderLayer(Module):
    """Self-attention, attention to the encoder's output, and a feed-forward network, each with residual and LayerNorm.

    Shapes      tgt [T,B,C], [B,T,C] if ``batch_first``, or [T,C]; memory with S in the place of T; tgt_mask [T,T] or
                [B*H,T,T]; memory_mask [T,S]; key padding masks [B,T] and [B,S]
    Source      Vaswani et al. 2017, arXiv:1706.03762
    """

    def __init__(
        self,
        d_model,
        nhead,
        dim_feedforward=2048,
        dropout=0.1,
        activation=relu,
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        bias=True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        where = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias=bias, batch_first=batch_first, **where)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, bias=bias, batch_first=batch_first, **where)
        _feed_forward(self, d_model, dim_feedforward, dropout, bias, where)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where)
        self.norm3 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = _activation(activation)

    def forward(
        self,
        tgt,
        memory,
        tgt_mask=None,
        memory_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
        tgt_is_causal=False,
        memory_is_causal=False,
    ):
        x = tgt
        own = tgt_mask, tgt_key_padding_mask, tgt_is_causal
        other = memory, memory_mask, memory_key_padding_mask, memory_is_causal
        if type(self) is TransformerDecoderLayer and fusible(x):
            return self._fused(x, own, other)
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *own)
            x = x + self._mha_block(self.norm2(x), *other)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, *own))
        x = self.norm2(x + self._mha_block(x, *other))
        return self.norm3(x + self._ff_block(x))

    def _fused(self, x, own, other):
        """``forward`` with each residual sum in one op with the dropout before it or the norm after it."""
        if self.norm_first:
            y, x = plus_and_norm(self.norm2, self.dropout1, self._attended(self.norm1(x), *own), x)
            y, x = plus_and_norm(self.norm3, self.dropout2, self._attended_to(y, *other), x)
            return plus(self.dropout3, self._fed_forward(y), x)
        x, _ = plus_and_norm(self.norm1, self.dropout1, self._attended(x, *own), x)
        x, _ = plus_and_norm(self.norm2, self.dropout2, self._attended_to(x, *other), x)
        return plus_and_norm(self.norm3, self.dropout3, self._fed_forward(x), x)[0]

    def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
        return self.dropout1(self._attended(x, attn_mask, key_padding_mask, is_causal))

    def _attended(self, x, attn_mask, key_padding_mask, is_causal):
        x, _ = self.self_attn(
            x,
            x,
            x,
            attn_mask=attn_mask,
            key_padding_mask=key_padding_mask,
            is_causal=is_causal,
            need_weights=False,
        )
        return x

    def _mha_block(self, x, mem, attn_mask, key_padding_mask, is_causal=False):
        return self.dropout2(self._attended_to(x, mem, attn_mask, key_padding_mask, is_causal))

    def _attended_to(self, x, mem, attn_mask, key_padding_mask, is_causal):
        x, _ = self.multihead_attn(
            x,
            mem,
            mem,
            attn_mask=attn_mask,
            key_padding_mask=key_padding_mask,
            is_causal=is_causal,
            need_weights=False,
        )
        return x

    def _ff_block(self, x):
        return self.dropout3(self._fed_forward(x))

    def _fed_forward(self, x):
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoder(Module):
    """``num_layers`` copies of an encoder layer one after the other, then ``norm`` where it is given.

    Differs     ``enable_nested_tensor`` and ``mask_check`` are accepted; there are no nested tensors, and no warning
    """

    def __init__(self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True):
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm
        self.enable_nested_tensor, self.use_nested_tensor = enable_nested_tensor, False
        self.mask_check = mask_check

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        """``is_causal`` None: found out from ``mask``."""
        is_causal = _is_causal(mask, is_causal, src, self.layers[0].self_attn.batch_first)
        x = src
        for layer in self.layers:
            x = layer(x, src_mask=mask, is_causal=is_causal, src_key_padding_mask=src_key_padding_mask)
        return x if self.norm is None else self.norm(x)


class TransformerDecoder(Module):
    """``num_layers`` copies of a decoder layer one after the other, then ``norm`` where it is given."""

    def __init__(self, decoder_layer, num_layers, norm=None):
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(decoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        tgt,
        memory,
        tgt_mask=None,
        memory_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
        tgt_is_causal=None,
        memory_is_causal=False,
    ):
        """``tgt_is_causal`` None: found out from ``tgt_mask``."""
        tgt_is_causal = _is_causal(tgt_mask, tgt_is_causal, tgt, self.layers[0].self_attn.batch_first)
        x = tgt
        for layer in self.layers:
            x = layer(
                x,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=tgt_is_causal,
                memory_is_causal=memory_is_causal,
            )
        return x if self.norm is None else self.norm(x)


class Transformer(Module):
    """An encoder of the source and a decoder of the target that attends to it.

    Shapes      src [S,B,C], tgt [T,B,C] -> [T,B,C]; batch first if ``batch_first``; or without B
    Init        xavier_uniform_ for every weight of more than one dimension
    Source      Vaswani et al. 2017, arXiv:1706.03762
    """

    def __init__(
        self,
        d_model=512,
        nhead=8,
        num_encoder_layers=6,
        num_decoder_layers=6,
        dim_feedforward=2048,
        dropout=0.1,
        activation=relu,
        custom_encoder=None,
        custom_decoder=None,
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        bias=True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        where = {"device": device, "dtype": dtype}
        settings = d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias

        def stack(kind, layer, count):
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where)
            return kind(layer(*settings, **where), count, norm)

        self.encoder = custom_encoder
        if custom_encoder is None:
            self.encoder = stack(TransformerEncoder, TransformerEncoderLayer, num_encoder_layers)
        self.decoder = custom_decoder
        if custom_decoder is None:
            self.decoder = stack(TransformerDecoder, TransformerDecoderLayer, num_decoder_layers)
        self._reset_parameters()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def forward(
        self,
        src,
        tgt,
        src_mask=None,
        tgt_mask=None,
        memory_mask=None,
        src_key_padding_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
        src_is_causal=None,
        tgt_is_causal=None,
        memory_is_causal=False,
    ):
        """Masks: True (bool) or -inf (floating) where attention may not look."""
        batch = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(batch) != tgt.size(batch):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz, device=None, dtype=None):
        """[sz,sz]: 0 on and below the diagonal, -inf above it."""
        return _causal_mask(sz, device, dtype)

    def _reset_parameters(self):
        for p in self.parameters():
            if p.dim() > 1:
                xavier_uniform_(p)
