"""Embedding layers and multi-head attention's function: what is written, frozen, or left out."""

import math

import numpy as np
import pytest

import cudagrad as cg
from cudagrad import nn
from cudagrad.nn import functional as F


def test_the_padding_row_starts_at_zero_and_gets_no_gradient_but_is_used():
    layer = nn.Embedding(4, 3, padding_idx=-3)
    assert layer.padding_idx == 1 and layer.weight[1].tolist() == [0, 0, 0]
    with cg.no_grad():
        layer.weight[1].fill_(5.0)
    out = layer(cg.tensor([1, 2, 1]))
    assert out[0].tolist() == [5, 5, 5]
    out.sum().backward()
    assert layer.weight.grad.tolist() == [[0] * 3, [0] * 3, [1] * 3, [0] * 3]


def test_rows_taken_are_scaled_to_max_norm_in_place():
    weight = cg.tensor([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0]])
    version = weight._version
    out = F.embedding(cg.tensor([0, 1, 0]), weight, max_norm=1.0)
    assert weight._version > version
    assert np.allclose(weight.numpy(), [[0.6, 0.8], [0.3, 0.4], [6.0, 8.0]], atol=1e-6)
    assert np.allclose(out.numpy(), [[0.6, 0.8], [0.3, 0.4], [0.6, 0.8]], atol=1e-6)


def test_a_renormalised_weight_that_backward_needs_is_noticed():
    weight = cg.tensor([[3.0, 4.0]], requires_grad=True)
    product = weight * weight
    F.embedding(cg.tensor([0]), weight, max_norm=1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()


def test_gradients_over_how_often_a_row_was_taken():
    weight = cg.ones(4, 2, requires_grad=True)
    index = cg.tensor([0, 2, 2, 2, 2])
    F.embedding(index, weight, scale_grad_by_freq=True).sum().backward()
    assert weight.grad.tolist() == [[1, 1], [0, 0], [1, 1], [0, 0]]


def test_a_row_taken_many_times_adds_up_the_same_every_time():
    rng = np.random.default_rng(0)
    index, g = cg.tensor(rng.integers(0, 7, 5000)), cg.tensor(rng.standard_normal((5000, 40)).astype("f"))
    weight = cg.zeros(7, 40, requires_grad=True)
    first, second = (cg.autograd.grad(F.embedding(index, weight), weight, g)[0] for _ in range(2))
    expected = np.zeros((7, 40))
    np.add.at(expected, index.numpy(), g.numpy().astype(np.float64))
    assert cg.equal(first, second) and np.allclose(first.numpy(), expected, rtol=1e-4, atol=1e-4)


def test_pretrained_tables_are_frozen_and_shared():
    table = cg.randn(3, 2)
    layer = nn.Embedding.from_pretrained(table, padding_idx=0)
    assert not layer.weight.requires_grad and layer.weight.data_ptr() == table.data_ptr()
    assert nn.Embedding.from_pretrained(table, freeze=False).weight.requires_grad
    bag = nn.EmbeddingBag.from_pretrained(table, mode="sum")
    assert not bag.weight.requires_grad
    assert cg.allclose(bag(cg.tensor([[0, 2]])), (table[0] + table[2]).unsqueeze(0))
    with pytest.raises(AssertionError, match="Embeddings parameter is expected to be 2-dimensional"):
        nn.Embedding.from_pretrained(cg.randn(3))


def test_weights_start_normal():
    cg.manual_seed(0)
    weight = nn.Embedding(300, 100).weight.detach()
    assert abs(weight.mean().item()) < 0.02 and abs(weight.std().item() - 1) < 0.02


def test_an_empty_bag_is_zero_and_the_mean_leaves_padding_out():
    layer = nn.EmbeddingBag(3, 2, padding_idx=0, mode="mean")
    weight = layer.weight.detach()
    out = layer(cg.tensor([0, 1, 2, 0]), cg.tensor([0, 3, 3])).detach()
    assert cg.allclose(out[0], (weight[1] + weight[2]) / 2)
    assert out[1].tolist() == [0, 0] and out[2].tolist() == [0, 0]


def test_the_old_order_of_arguments_warns():
    weight, index = cg.randn(3, 2), cg.tensor([[0, 1]])
    with pytest.warns(UserWarning, match="Argument order of nn.functional.embedding_bag was changed"):
        assert cg.equal(F.embedding_bag(weight, index), F.embedding_bag(index, weight))


def test_a_query_that_sees_nothing_gives_zero_and_no_nan_in_any_gradient():
    q, k, v = (cg.randn(2, 3, 4, requires_grad=True) for _ in range(3))
    mask = cg.tensor([[True, True, False], [False, False, False], [True, False, False]])
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    assert out[:, 1].abs().max().item() == 0
    grads = cg.autograd.grad(out.sum(), (q, k, v), create_graph=True)
    again = cg.autograd.grad(sum(g.square().sum() for g in grads), (q, k, v))
    assert all(bool(g.isfinite().all()) for g in (*grads, *again))


def test_causal_attention_is_aligned_at_the_top_left():
    q, k = cg.randn(1, 2, 4), cg.randn(1, 5, 4)
    v = cg.eye(5).unsqueeze(0)
    weights = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert weights[0, 0].tolist() == [1, 0, 0, 0, 0] and weights[0, 1, 2:].tolist() == [0, 0, 0]


@pytest.mark.parametrize("kept", [0, 1 << 22])
@pytest.mark.parametrize("block", [1, 40, 1 << 16])
def test_the_size_of_blocks_and_what_is_kept_change_nothing(monkeypatch, block, kept):
    from cudagrad.ops import attention_blocks

    q, k, v = (cg.randn(2, 3, n, 4, dtype=cg.float64, requires_grad=True) for n in (6, 7, 7))
    mask = cg.randn(3, 1, 7, dtype=cg.float64, requires_grad=True)
    leaves = (q, k, v, mask)
    expected = cg.softmax(q @ k.transpose(-2, -1) / 2 + mask, -1) @ v
    plain = cg.autograd.grad(expected.sum(), leaves)
    monkeypatch.setattr(attention_blocks, "BLOCK", block)
    monkeypatch.setattr(attention_blocks, "KEPT", kept)
    out = F.scaled_dot_product_attention(q, k, v, mask)
    assert cg.allclose(out, expected, rtol=1e-12)
    for a, b in zip(cg.autograd.grad(out.sum(), leaves), plain):
        assert cg.allclose(a, b, rtol=1e-9, atol=1e-12)


def test_half_types_are_computed_in_float32():
    q, k, v = (cg.randn(2, 40, 16).to(cg.bfloat16).requires_grad_() for _ in range(3))
    out = F.scaled_dot_product_attention(q, k, v)
    exact = F.scaled_dot_product_attention(*(t.detach().double() for t in (q, k, v)))
    assert out.dtype is cg.bfloat16 and (out.detach().double() - exact).abs().max().item() < 2**-7
    out.float().sum().backward()
    assert q.grad.dtype is cg.bfloat16


def test_one_hot_of_a_class_out_of_range_names_the_rule():
    with pytest.raises(RuntimeError, match="Class values must be smaller than num_classes."):
        F.one_hot(cg.tensor([3]), 3)
    assert F.one_hot(cg.tensor([[1], [0]])).tolist() == [[[0, 1]], [[1, 0]]]


@pytest.mark.peer
def test_attention_and_embeddings_agree_with_pytorch():
    torch = pytest.importorskip("torch", reason="needs the extra peer")
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((2, 4, 5, 8)).astype("f") for _ in range(3))
    for options in ({}, {"is_causal": True}, {"scale": 0.3}):
        mine = F.scaled_dot_product_attention(*map(cg.tensor, (q, k, v)), **options)
        theirs = torch.nn.functional.scaled_dot_product_attention(*map(torch.tensor, (q, k, v)), **options)
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-4, atol=1e-5)
    mine, theirs = nn.EmbeddingBag(5, 3, mode="max"), torch.nn.EmbeddingBag(5, 3, mode="max")
    mine.load_state_dict({key: cg.tensor(t.numpy()) for key, t in theirs.state_dict().items()})
    index = rng.integers(0, 5, (4, 6))
    a, b = mine(cg.tensor(index)), theirs(torch.tensor(index))
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy())
    assert math.isclose(a.sum().item(), b.sum().item(), rel_tol=1e-6)
