"""MultiheadAttention and transformers: NumPy over the definition in float64, masks of every kind, errors, peers."""

import copy
import math

import numpy as np
import pytest

import cudagrad as cg
from cudagrad import nn

T, S, B, C, H = 4, 5, 2, 6, 3  # target and source length, batch, width, heads


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def arrays(module):
    return {n: p.detach().numpy() for n, p in module.named_parameters()}


def softmax(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def additive(mask):
    """A bool or floating mask as what is added to the scores."""
    return np.where(mask, -np.inf, 0.0) if mask.dtype == bool else mask


def attend(m, query, key, value, attn_mask=None, padding=None):
    """Output [T,B,C] and weights [B,H,T,S], head by head, from the definition."""
    w = arrays(m)
    if "in_proj_weight" in w:
        wq, wk, wv = np.split(w["in_proj_weight"], 3)
    else:
        wq, wk, wv = w["q_proj_weight"], w["k_proj_weight"], w["v_proj_weight"]
    bq, bk, bv = np.split(w.get("in_proj_bias", np.zeros(3 * m.embed_dim)), 3)
    q, k, v = query @ wq.T + bq, key @ wk.T + bk, value @ wv.T + bv
    more = 0
    for name, zero in (("bias_", False), ("zero", True)):
        if (m.add_zero_attn if zero else "bias_k" in w) is True:
            rows = [np.zeros((1, k.shape[1], k.shape[2]))] * 2 if zero else [w["bias_k"], w["bias_v"]]
            k, v = (np.concatenate([t, np.broadcast_to(r, (1, *t.shape[1:]))]) for t, r in zip((k, v), rows))
            more += 1
    t, b, _ = q.shape
    d = m.embed_dim // m.num_heads
    out, weights = np.zeros((t, b, m.embed_dim)), np.zeros((b, m.num_heads, t, len(k)))
    for i in range(b):
        for h in range(m.num_heads):
            at = slice(h * d, (h + 1) * d)
            scores = q[:, i, at] @ k[:, i, at].T / math.sqrt(d)
            if attn_mask is not None:
                mask = additive(attn_mask if attn_mask.ndim == 2 else attn_mask[i * m.num_heads + h])
                scores += np.pad(mask, ((0, 0), (0, more)))
            if padding is not None:
                scores += np.pad(additive(padding[i]), (0, more))
            weights[i, h] = softmax(scores)
            out[:, i, at] = weights[i, h] @ v[:, i, at]
    return out @ w["out_proj.weight"].T + w.get("out_proj.bias", 0.0), weights


def mha(*args, **kwargs):
    cg.manual_seed(2)
    m = nn.MultiheadAttention(*args, dtype=cg.float64, **kwargs)
    with cg.no_grad():
        for p in m.parameters():
            p.normal_(0, 0.5)
    return m


CAUSAL = np.triu(np.ones((T, T), bool), 1)
STRIPES = np.add.outer(range(T), range(T)) % 3 == 1


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bias": False},
        {"add_bias_kv": True},
        {"add_zero_attn": True},
        {"add_bias_kv": True, "add_zero_attn": True},
        {"kdim": 4, "vdim": 7},
        {"kdim": 4, "vdim": 7, "bias": False, "add_bias_kv": True},
    ],
)
@pytest.mark.parametrize("masked", [False, True])
def test_attention_is_the_definition(options, masked):
    m = mha(C, H, **options)
    q, k, v = normal(T, B, C), normal(S, B, m.kdim, seed=1), normal(S, B, m.vdim, seed=2)
    mask = normal(T, S, seed=3) if masked else None
    padding = np.array([[False] * 5, [False, False, False, True, True]]) if masked else None
    expected, weights = attend(m, q, k, v, mask, additive(padding) if masked else None)
    out, found = m(
        *map(cg.tensor, (q, k, v)),
        attn_mask=None if mask is None else cg.tensor(mask),
        key_padding_mask=None if padding is None else cg.tensor(additive(padding)),
    )
    assert np.allclose(out.detach().numpy(), expected) and np.allclose(found.detach().numpy(), weights.mean(1))


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("mask", [CAUSAL, np.where(CAUSAL, -np.inf, 0.0), np.stack([CAUSAL, STRIPES] * 3)])
def test_masks_of_every_kind_mean_the_same(mask, need_weights):
    m, x = mha(C, H), normal(T, B, C)
    expected, weights = attend(m, x, x, x, mask)
    t = cg.tensor(x)
    out, found = m(t, t, t, attn_mask=cg.tensor(mask), need_weights=need_weights, average_attn_weights=False)
    assert np.allclose(out.detach().numpy(), expected)
    assert found is None if not need_weights else np.allclose(found.detach().numpy(), weights)


def test_bool_padding_hides_keys():
    m, x = mha(C, H), normal(T, B, C)
    padding = np.array([[False, False, True, True], [False] * 4])
    expected, _ = attend(m, x, x, x, None, padding)
    t = cg.tensor(x)
    assert np.allclose(m(t, t, t, key_padding_mask=cg.tensor(padding))[0].detach().numpy(), expected)
    both, _ = attend(m, x, x, x, CAUSAL, padding)
    out, _ = m(t, t, t, key_padding_mask=cg.tensor(padding), attn_mask=cg.tensor(CAUSAL), need_weights=False)
    assert np.allclose(out.detach().numpy(), both)


def test_batch_first_and_unbatched_input():
    m = mha(C, H)
    first = mha(C, H, batch_first=True)
    first.load_state_dict(m.state_dict())
    q, k = cg.tensor(normal(T, B, C)), cg.tensor(normal(S, B, C, seed=1))
    out, weights = m(q, k, k)
    other, same = first(q.transpose(0, 1), k.transpose(0, 1), k.transpose(0, 1))
    assert np.allclose(other.transpose(0, 1).detach().numpy(), out.detach().numpy())
    assert np.allclose(same.detach().numpy(), weights.detach().numpy())
    for module in (m, first):
        alone, w = module(q[:, 0], k[:, 0], k[:, 0])
        assert alone.shape == (T, C) and w.shape == (T, S)
        assert np.allclose(alone.detach().numpy(), out[:, 0].detach().numpy())


@pytest.mark.parametrize("need_weights", [True, False])
def test_the_causal_hint_equals_the_causal_mask(need_weights):
    m, t = mha(C, H), cg.tensor(normal(T, B, C))
    mask = nn.Transformer.generate_square_subsequent_mask(T, dtype=cg.float64)
    plain, _ = m(t, t, t, attn_mask=mask, need_weights=need_weights)
    hinted, _ = m(t, t, t, attn_mask=mask, need_weights=need_weights, is_causal=True)
    assert np.allclose(plain.detach().numpy(), hinted.detach().numpy())
    with pytest.raises(RuntimeError, match=r"^Need attn_mask if specifying the is_causal hint\. You may use"):
        m(t, t, t, is_causal=True)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("options", [{}, {"kdim": C, "vdim": 4}, {"add_bias_kv": True, "add_zero_attn": True}])
def test_attention_gradients_are_the_slopes_of_the_definition(options, need_weights):
    m = mha(C, H, **options)
    inputs = [normal(T, B, C), normal(S, B, m.kdim, seed=1), normal(S, B, m.vdim, seed=2)]
    a, mask = normal(T, B, C, seed=4), normal(T, S, seed=5)
    tensors = [cg.tensor(x, requires_grad=True) for x in inputs]
    out, _ = m(*tensors, attn_mask=cg.tensor(mask), need_weights=need_weights)
    (out * cg.tensor(a)).sum().backward()
    checked = [*zip(inputs, (t.grad for t in tensors)), *((p.detach().numpy(), p.grad) for p in m.parameters())]
    for i, (array, grad) in enumerate(checked):
        direction, kept, h = normal(*array.shape, seed=10 + i), array.copy(), 1e-6
        values = []
        for sign in (1, -1):
            array[...] = kept + sign * h * direction
            values.append((attend(m, *inputs, mask)[0] * a).sum())
        array[...] = kept
        slope = (values[0] - values[1]) / (2 * h)
        assert (grad.numpy() * direction).sum() == pytest.approx(slope, rel=1e-6, abs=1e-8)


def test_attention_dropout_acts_in_training_only():
    m, t = mha(C, H, dropout=1.0), cg.tensor(normal(T, B, C))
    expected, _ = attend(m, *[normal(T, B, C)] * 3)
    assert np.allclose(m.eval()(t, t, t)[0].detach().numpy(), expected)
    out, _ = m.train()(t, t, t)
    assert np.allclose(out.detach().numpy(), m.out_proj.bias.detach().numpy())


def test_attention_parameters_have_pytorchs_names_shapes_and_start():
    m = nn.MultiheadAttention(C, H, add_bias_kv=True)
    shapes = {n: tuple(p.shape) for n, p in m.named_parameters()}
    assert shapes == {
        "in_proj_weight": (18, 6),
        "in_proj_bias": (18,),
        "bias_k": (1, 1, 6),
        "bias_v": (1, 1, 6),
        "out_proj.weight": (6, 6),
        "out_proj.bias": (6,),
    }
    assert not m.in_proj_bias.any() and not m.out_proj.bias.any() and m.q_proj_weight is None
    assert abs(m.in_proj_weight).max().item() <= math.sqrt(6 / 24)
    separate = nn.MultiheadAttention(C, H, kdim=4, vdim=5, bias=False)
    assert [n for n, _ in separate.named_parameters()] == [
        "q_proj_weight",
        "k_proj_weight",
        "v_proj_weight",
        "out_proj.weight",
    ]


def test_attention_errors():
    with pytest.raises(AssertionError, match="^embed_dim must be divisible by num_heads$"):
        nn.MultiheadAttention(5, 2)
    with pytest.raises(
        ValueError, match="^embed_dim and num_heads must be greater than 0, got embed_dim=0 and num_heads"
    ):
        nn.MultiheadAttention(0, 2)
    m, t = mha(C, H), cg.tensor(normal(T, B, C))
    with pytest.raises(AssertionError, match="^was expecting embedding dimension of 6, but got 4$"):
        m(cg.zeros(T, B, 4, dtype=cg.float64), t, t)
    with pytest.raises(
        RuntimeError, match=r"^The shape of the 2D attn_mask is torch.Size\(\[2, 2\]\), but should be \(4, 4"
    ):
        m(t, t, t, attn_mask=cg.zeros(2, 2, dtype=cg.bool))


def test_kernels_of_attention_are_chosen_by_name_and_change_nothing():
    from cudagrad.nn.attention import SDPBackend, sdpa_kernel

    m, t = mha(C, H), cg.tensor(normal(T, B, C))
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]):
        inside = m(t, t, t, need_weights=False)[0]
    assert inside.tolist() == m(t, t, t, need_weights=False)[0].tolist()
    with pytest.raises(AssertionError, match="^Backend must be an instance of SDPBackend"):
        with sdpa_kernel("math"):
            pass


def test_masks_are_merged():
    m = mha(C, H)
    q, a, p = cg.zeros(B, T, C), cg.zeros(T, T), cg.ones(B, T)
    assert m.merge_masks(None, None, q) == (None, None)
    assert m.merge_masks(a, None, q) == (a, 0) and m.merge_masks(None, p, q) == (p, 1)
    merged, kind = m.merge_masks(a, p, q)
    assert kind == 2 and merged.shape == (B, H, T, T) and merged.mean().item() == 1.0


# ---- layers


def norm(module, x):
    w = arrays(module)
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + module.eps)
    return x * w["weight"] + w.get("bias", 0.0)


def feed_forward(layer, x, activation):
    w1, w2 = arrays(layer.linear1), arrays(layer.linear2)
    return activation(x @ w1["weight"].T + w1.get("bias", 0)) @ w2["weight"].T + w2.get("bias", 0)


def relu(x):
    return np.maximum(x, 0)


def encode(layer, x, mask=None, padding=None, activation=relu):
    def sa(y):
        return attend(layer.self_attn, y, y, y, mask, padding)[0]

    if layer.norm_first:
        x = x + sa(norm(layer.norm1, x))
        return x + feed_forward(layer, norm(layer.norm2, x), activation)
    x = norm(layer.norm1, x + sa(x))
    return norm(layer.norm2, x + feed_forward(layer, x, activation))


def decode(layer, x, memory, mask=None, activation=relu):
    def sa(y):
        return attend(layer.self_attn, y, y, y, mask)[0]

    def ca(y):
        return attend(layer.multihead_attn, y, memory, memory)[0]

    if layer.norm_first:
        x = x + sa(norm(layer.norm1, x))
        x = x + ca(norm(layer.norm2, x))
        return x + feed_forward(layer, norm(layer.norm3, x), activation)
    x = norm(layer.norm1, x + sa(x))
    x = norm(layer.norm2, x + ca(x))
    return norm(layer.norm3, x + feed_forward(layer, x, activation))


def gelu(x):
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("activation", "function"), [("relu", relu), ("gelu", gelu), (cg.tanh, np.tanh)])
def test_encoder_and_decoder_layers_are_the_definition(norm_first, bias, activation, function):
    options = {"norm_first": norm_first, "bias": bias, "activation": activation, "dtype": cg.float64, "dropout": 0.0}
    cg.manual_seed(4)
    x, memory = normal(T, B, C), normal(S, B, C, seed=1)
    encoder = nn.TransformerEncoderLayer(C, H, 7, **options)
    decoder = nn.TransformerDecoderLayer(C, H, 7, **options)
    padding = np.array([[False, False, False, True], [False] * 4])
    out = encoder(cg.tensor(x), cg.tensor(CAUSAL), cg.tensor(padding))
    assert np.allclose(out.detach().numpy(), encode(encoder, x, CAUSAL, padding, function))
    out = decoder(cg.tensor(x), cg.tensor(memory), tgt_mask=cg.tensor(CAUSAL))
    assert np.allclose(out.detach().numpy(), decode(decoder, x, memory, CAUSAL, function))


@pytest.mark.parametrize("batch_first", [False, True])
def test_a_transformer_is_its_layers_one_after_the_other(batch_first):
    cg.manual_seed(5)
    m = nn.Transformer(C, H, 2, 2, 7, dropout=0.0, batch_first=batch_first, dtype=cg.float64)
    src, tgt = normal(S, B, C), normal(T, B, C, seed=1)
    memory = src
    for layer in m.encoder.layers:
        memory = encode(layer, memory)
    memory = norm(m.encoder.norm, memory)
    expected = tgt
    for layer in m.decoder.layers:
        expected = decode(layer, expected, memory, CAUSAL)
    expected = norm(m.decoder.norm, expected)
    turn = (lambda a: a.transpose(1, 0, 2).copy()) if batch_first else (lambda a: a)
    mask = m.generate_square_subsequent_mask(T, dtype=cg.float64)
    out = m(cg.tensor(turn(src)), cg.tensor(turn(tgt)), tgt_mask=mask)
    assert np.allclose(out.detach().numpy(), turn(expected))
    out = m(cg.tensor(turn(src)), cg.tensor(turn(tgt)), tgt_mask=mask, tgt_is_causal=True)
    assert np.allclose(out.detach().numpy(), turn(expected))
    assert m(cg.tensor(src[:, 0]), cg.tensor(tgt[:, 0])).shape == (T, C)


def test_the_causal_mask():
    mask = nn.Transformer.generate_square_subsequent_mask(3)
    inf = float("inf")
    assert mask.tolist() == [[0, -inf, -inf], [0, 0, -inf], [0, 0, 0]] and mask.dtype is cg.float32


def test_layers_of_a_stack_are_copies():
    layer = nn.TransformerEncoderLayer(C, H, 7)
    m = nn.TransformerEncoder(layer, 3, nn.LayerNorm(C))
    assert len(m.layers) == 3 and m.layers[0].linear1.weight is not layer.linear1.weight
    assert m.layers[0].linear1.weight.tolist() == m.layers[2].linear1.weight.tolist()


def test_dropout_is_on_in_training():
    m = nn.TransformerEncoderLayer(C, H, 7, dropout=0.5, dtype=cg.float64)
    x = normal(T, B, C)
    assert np.allclose(m.eval()(cg.tensor(x)).detach().numpy(), encode(m, x))
    assert not np.allclose(m.train()(cg.tensor(x)).detach().numpy(), encode(m, x))


def test_transformer_errors():
    m = nn.Transformer(C, H, 1, 1, 7)
    with pytest.raises(RuntimeError, match="^the batch number of src and tgt must be equal$"):
        m(cg.zeros(S, 2, C), cg.zeros(T, 3, C))
    with pytest.raises(RuntimeError, match="^the feature number of src and tgt must be equal to d_model$"):
        m(cg.zeros(S, 2, 4), cg.zeros(T, 2, C))
    with pytest.raises(RuntimeError, match="^activation should be relu/gelu, not tanh$"):
        nn.TransformerEncoderLayer(C, H, activation="tanh")


def test_a_transformer_is_copied_and_learns():
    cg.manual_seed(6)
    m = copy.deepcopy(nn.TransformerEncoder(nn.TransformerEncoderLayer(C, H, 12, 0.0), 1))
    x, target = cg.tensor(normal(T, B, C)).float(), cg.tensor(normal(T, B, C, seed=1)).float()
    losses = []
    for _ in range(30):
        loss = ((m(x) - target) ** 2).mean()
        m.zero_grad()
        loss.backward()
        with cg.no_grad():
            for p in m.parameters():
                p -= 0.1 * p.grad
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]


@pytest.mark.peer
def test_transformer_repr_names_and_results_are_pytorchs():
    torch = pytest.importorskip("torch")

    def build(lib):
        return lib.nn.Transformer(C, H, 1, 2, 7, dropout=0.0, activation="gelu", norm_first=True, dtype=lib.float64)

    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = build(torch)
    ours = build(cg)
    assert repr(ours) == repr(theirs)
    ours.load_state_dict({k: cg.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    results = []
    for lib, m in ((cg, ours), (torch, theirs)):
        src, tgt = lib.tensor(normal(S, B, C)), lib.tensor(normal(T, B, C, seed=1))
        mask = m.generate_square_subsequent_mask(T, dtype=lib.float64)
        padding = lib.tensor([[False] * 5, [False, False, True, True, True]])
        out = m(src, tgt, tgt_mask=mask, src_key_padding_mask=padding, memory_key_padding_mask=padding)
        out.sum().backward()
        results.append([out.detach().numpy(), *(p.grad.numpy() for p in m.parameters())])
    assert all(np.allclose(a, b, atol=1e-10) for a, b in zip(*results))
