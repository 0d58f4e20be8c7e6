"""Multi-head attention, and the names of ``torch.nn.attention``."""

import contextlib
import enum

from ..ops.attention import multi_head_attention_forward
from .init import constant_, xavier_normal_, xavier_uniform_
from .linear import Linear, uninitialised
from .module import Module

__all__ = ("MultiheadAttention",)


class NonDynamicallyQuantizableLinear(Linear):
    """A Linear under the name that PyTorch gives the output projection of attention."""


class MultiheadAttention(Module):
    """softmax(q k^T / sqrt(D)) v in ``num_heads`` heads, with a projection of each input and of the output.

    ``kdim``, ``vdim``: the widths of key and value where they differ. ``add_bias_kv``: a learned key and value more.
    ``add_zero_attn``: a zero key and value more. Returns ``(output, weights)``, weights None unless ``need_weights``.

    Shapes      query [T,B,C], key [S,B,kdim], value [S,B,vdim] (batch first if ``batch_first``, or without B);
                key_padding_mask [B,S] or [S]; attn_mask [T,S] or [B*H,T,S]; weights [B,T,S], or [B,H,T,S] where not
                ``average_attn_weights``
    Init        in_proj: xavier_uniform; bias_k, bias_v: xavier_normal; other biases 0
    Source      Vaswani et al. 2017, arXiv:1706.03762
    """

    def __init__(
        self,
        embed_dim,
        num_heads,
        dropout=0.0,
        bias=True,
        add_bias_kv=False,
        add_zero_attn=False,
        kdim=None,
        vdim=None,
        batch_first=False,
        device=None,
        dtype=None,
    ):
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} "
                "instead"
            )
        super().__init__()
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")

        def new(*shape):
            return uninitialised(shape, device, dtype)

        same = self._qkv_same_embed_dim
        self.register_parameter("q_proj_weight", None if same else new(embed_dim, embed_dim))
        self.register_parameter("k_proj_weight", None if same else new(embed_dim, self.kdim))
        self.register_parameter("v_proj_weight", None if same else new(embed_dim, self.vdim))
        self.register_parameter("in_proj_weight", new(3 * embed_dim, embed_dim) if same else None)
        self.register_parameter("in_proj_bias", new(3 * embed_dim) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        self.bias_k = new(1, 1, embed_dim) if add_bias_kv else None
        self.bias_v = new(1, 1, embed_dim) if add_bias_kv else None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self):
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            constant_(self.in_proj_bias, 0.0)
            constant_(self.out_proj.bias, 0.0)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                xavier_normal_(bias)

    def __setstate__(self, state):
        state.setdefault("_qkv_same_embed_dim", True)  # modules pickled before there were kdim and vdim
        super().__setstate__(state)

    def forward(
        self,
        query,
        key,
        value,
        key_padding_mask=None,
        need_weights=True,
        attn_mask=None,
        average_attn_weights=True,
        is_causal=False,
    ):
        batch_first = self.batch_first and query.dim() == 3
        if batch_first:
            # one transposed view for tensors that are the same, so that self-attention is still seen as such
            views = {id(t): t.transpose(0, 1) for t in (query, key, value)}
            query, key, value = views[id(query)], views[id(key)], views[id(value)]
        separate = {}
        if not self._qkv_same_embed_dim:
            separate = {
                "use_separate_proj_weight": True,
                "q_proj_weight": self.q_proj_weight,
                "k_proj_weight": self.k_proj_weight,
                "v_proj_weight": self.v_proj_weight,
            }
        out, weights = multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
            **separate,
        )
        return (out.transpose(1, 0) if batch_first else out), weights

    def merge_masks(self, attn_mask, key_padding_mask, query):
        """``(mask, kind)``: both masks as one, and 0, 1 or 2 for an attention mask, a padding mask or both."""
        if attn_mask is None and key_padding_mask is None:
            return None, None
        if attn_mask is None:
            return key_padding_mask, 1
        if key_padding_mask is None:
            return attn_mask, 0
        batch, length = query.size(0), query.size(1)
        if attn_mask.dim() == 3:
            expanded = attn_mask.view(batch, -1, length, length)
        else:
            expanded = attn_mask.view(1, 1, length, length).expand(batch, self.num_heads, -1, -1)
        padding = key_padding_mask.view(batch, 1, 1, length).expand(-1, self.num_heads, -1, -1)
        return expanded + padding, 2


class SDPBackend(enum.IntEnum):
    """PyTorch's implementations of attention, by name."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(backends, set_priority=False):
    """Within, attention may use these ``SDPBackend``s, one or a list of them.

    Raises      AssertionError for what is none
    Differs     There is one implementation a device, and it is used
    """
    for backend in backends if isinstance(backends, (list, tuple)) else [backends]:
        if not isinstance(backend, SDPBackend):
            raise AssertionError("Backend must be an instance of SDPBackend or a list of SDPBackend instances")
    yield
