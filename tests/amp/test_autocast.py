"""Autocast: which dtype each op chooses, and that its lists name ops that exist."""

import pytest

import cudagrad as cg
from cudagrad import nn
from cudagrad.amp import autocast_mode
from cudagrad.core.op import TABLE

F = nn.functional
f32, bf16, f64 = cg.float32, cg.bfloat16, cg.float64


@pytest.mark.parametrize("name", ["LOW", "LOW_ON_CUDA", "FULL", "FULL_ON_CPU", "FULL_ON_CUDA"])
def test_the_lists_name_ops(name):
    compositions = {n for space in (cg, F) for n in dir(space) if hasattr(getattr(space, n), "autocasts")}
    assert not getattr(autocast_mode, name) - set(TABLE) - compositions


@pytest.mark.parametrize(
    "call, dtype",
    [
        (lambda x, h: x @ x, bf16),
        (lambda x, h: nn.Linear(4, 4)(x), bf16),
        (lambda x, h: cg.einsum("ij,jk->ik", x, x), bf16),
        (lambda x, h: nn.Conv1d(4, 4, 1)(x), bf16),
        (lambda x, h: F.softmax(h, -1), bf16),
        (lambda x, h: F.layer_norm(h, (4,)), bf16),
        (lambda x, h: F.softmax(x, -1), f32),
        (lambda x, h: F.softmax(h, -1, dtype=f32), f32),
        (lambda x, h: F.layer_norm(x, (4,)), f32),
        (lambda x, h: F.batch_norm(x, None, None, training=True), f32),
        (lambda x, h: cg.mv(x, x[0]), f32),
        (lambda x, h: h.cumsum(0), bf16),
        (lambda x, h: F.mse_loss(h, h), f32),
        (lambda x, h: F.cross_entropy(h, cg.arange(4)), f32),
        (lambda x, h: h + x, f32),
        (lambda x, h: x.sum(), f32),
        (lambda x, h: x.double() @ x.double(), f64),
    ],
)
def test_the_dtype_of_a_result_on_the_cpu(call, dtype):
    x, h = cg.randn(4, 4), cg.randn(4, 4, dtype=bf16)
    with cg.autocast("cpu"):
        assert call(x, h).dtype is dtype


SIGNS = cg.tensor([1.0, -1, 1, -1])
COMPOSED = {
    "l1_loss": lambda h: F.l1_loss(h, h),
    "kl_div": lambda h: F.kl_div(h, h, reduction="sum"),
    "poisson_nll_loss": lambda h: F.poisson_nll_loss(h, target=h),
    "cosine_embedding_loss": lambda h: F.cosine_embedding_loss(h, h, SIGNS),
    "hinge_embedding_loss": lambda h: F.hinge_embedding_loss(h[0], SIGNS),
    "margin_ranking_loss": lambda h: F.margin_ranking_loss(h[0], h[1], SIGNS),
    "multi_margin_loss": lambda h: F.multi_margin_loss(h, cg.arange(4)),
    "multilabel_margin_loss": lambda h: F.multilabel_margin_loss(h, cg.zeros(4, 4, dtype=cg.int64)),
    "soft_margin_loss": lambda h: F.soft_margin_loss(h, SIGNS),
    "triplet_margin_loss": lambda h: F.triplet_margin_loss(h, h, h),
    "trace": cg.trace,
    "avg_pool3d": lambda h: F.avg_pool3d(h[None, None, None], (1, 2, 2)),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_a_composition_that_pytorch_lists_runs_in_float32(name):
    with cg.autocast("cpu"):
        assert COMPOSED[name](cg.rand(4, 4, dtype=bf16)).dtype is f32


@pytest.mark.parametrize("name", ["baddbmm", "addbmm"])
def test_batched_products_added_to_something_run_in_a_half_dtype(name):
    x = cg.randn(2, 4, 4)
    with cg.autocast("cpu"):
        assert getattr(cg, name)(x if name == "baddbmm" else x[0], x, x).dtype is bf16


@pytest.mark.parametrize("device, low", [("cpu", bf16), ("emulated", cg.float16)])
def test_attention_casts_queries_keys_values_and_masks_together(device, low):
    """PyTorch 2.13 runs these programs; a mask of floats was once refused, since only the queries had been cast."""
    x = cg.randn(2, 5, 8, device=device)
    padding = cg.zeros(2, 5).masked_fill(cg.arange(5) > 2, -cg.inf).to(device)
    causal = nn.Transformer.generate_square_subsequent_mask(5).to(device)
    attention = nn.MultiheadAttention(8, 2, batch_first=True).to(device)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).to(device)
    with cg.autocast(device):
        out, _ = attention(x, x, x, attn_mask=causal, key_padding_mask=padding, need_weights=False)
        assert out.dtype is low
        assert layer(x, src_mask=causal, src_key_padding_mask=padding).dtype is f32
        h = x.to(low)
        assert F.scaled_dot_product_attention(h, x, x, attn_mask=causal).dtype is low


def test_gradients_come_back_in_float32_and_a_leafs_cast_is_made_once():
    w = cg.randn(4, 4, requires_grad=True)
    x = cg.randn(3, 4)
    with cg.autocast("cpu"):
        first, second = x @ w, x @ w
    assert first.grad_fn.next_functions[1][0] is second.grad_fn.next_functions[1][0]
    (first.float().sum() + second.float().sum()).backward()
    assert w.grad.dtype is f32
    assert w.grad[:, 0].tolist() == pytest.approx((2 * x.bfloat16().float().sum(0)).tolist(), rel=1e-2, abs=1e-2)


def test_an_inner_autocast_may_switch_it_off():
    x = cg.randn(4, 4)
    with cg.autocast("cpu"):
        with cg.autocast("cpu", enabled=False):
            assert (x @ x).dtype is f32
            assert not cg.is_autocast_enabled("cpu")
        assert (x @ x).dtype is bf16
    assert (x @ x).dtype is f32


def test_as_a_decorator_with_a_dtype():
    @cg.autocast("cpu", dtype=cg.float16)
    def product(x):
        return x @ x

    assert product(cg.randn(4, 4)).dtype is cg.float16


def test_what_cannot_be_is_refused():
    with pytest.raises(RuntimeError, match="^User specified an unsupported autocast device_type 'tpu'"):
        cg.autocast("tpu")
    with pytest.raises(ValueError, match="^Expected `device_type` of type `str`"):
        cg.autocast(1)


def test_a_function_keeps_the_autocast_of_its_forward():
    from cudagrad.amp import custom_bwd, custom_fwd

    seen = []

    class Product(cg.autograd.Function):
        @staticmethod
        @custom_fwd(device_type="cpu")
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        @custom_bwd(device_type="cpu")
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            seen.append((a @ b).dtype)
            return g.float() @ b.t(), a.t() @ g.float()

    x = cg.randn(4, 4, requires_grad=True)
    with cg.autocast("cpu"):
        y = Product.apply(x, x)
    y.sum().backward()
    assert y.dtype is bf16
    assert seen == [bf16]
