"""A training step waits for no GPU: modules, losses, ops and optimizers over the double of CuPy, which counts."""

import functools

import numpy as np
import pytest

import cudagrad as cg
from cudagrad import nn

from ..double import installed

F = nn.functional


@pytest.fixture(scope="module")
def double():
    with installed() as made:
        yield made


def numbers(*shape):
    return cg.from_numpy(np.random.default_rng(0).random(shape).astype("f4"))


def whole(below, *shape):
    return cg.from_numpy(np.random.default_rng(1).integers(0, below, shape))


def waits(double, act):
    """What ``act`` copied to the host or waited for."""
    double.to_host.clear(), double.waits.clear()
    act()
    return double.to_host + double.waits


IMAGE, SEQUENCE = numbers(2, 3, 8, 8), numbers(4, 3, 8)
MODULES = {
    "conv": (nn.Conv2d(3, 4, 3, padding=1), IMAGE),
    "transposed conv": (nn.ConvTranspose2d(3, 4, 3), IMAGE),
    "batch norm": (nn.BatchNorm2d(3), IMAGE),
    "group norm": (nn.GroupNorm(3, 3), IMAGE),
    "instance norm": (nn.InstanceNorm2d(3, affine=True), IMAGE),
    "layer norm": (nn.LayerNorm(8), SEQUENCE),
    "rms norm": (nn.RMSNorm(8), SEQUENCE),
    "pools": (nn.Sequential(nn.Conv2d(3, 3, 1), nn.MaxPool2d(2), nn.AvgPool2d(2), nn.AdaptiveMaxPool2d(2)), IMAGE),
    "resampling": (nn.Sequential(nn.Conv2d(3, 4, 1), nn.Upsample(scale_factor=2, mode="bilinear")), IMAGE),
    "lstm": (nn.LSTM(8, 5, 2), SEQUENCE),
    "gru": (nn.GRU(8, 5), SEQUENCE),
    "embedding": (nn.Embedding(20, 8, padding_idx=0), whole(20, 4, 5)),
    "embedding bag": (nn.EmbeddingBag(20, 8), whole(20, 4, 5)),
    "transformer": (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), SEQUENCE),
    "dropout": (nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 8), nn.GELU()), SEQUENCE),
}


@pytest.mark.parametrize("name", MODULES)
def test_a_module_waits_for_nothing(double, name):
    module, x = MODULES[name]
    module, x = module.to("cuda"), x.cuda()

    def step():
        out = module(x)
        (out[0] if isinstance(out, tuple) else out).square().mean().backward()

    assert not waits(double, step)


ACTS = {
    "mse_loss": lambda x, y: F.mse_loss(x, y),
    "huber_loss": lambda x, y: F.huber_loss(x, y),
    "binary_cross_entropy": lambda x, y: F.binary_cross_entropy(x.sigmoid(), y),
    "cross_entropy": lambda x, y, t: F.cross_entropy(x, t),
    "cross_entropy, half": lambda x, y, t: F.cross_entropy(x.half(), t),
    "cross_entropy, smoothed": lambda x, y, t: F.cross_entropy(x, t, y[0], label_smoothing=0.1, ignore_index=2),
    "cross_entropy of maps": lambda x, y, t: F.cross_entropy(x.reshape(1, 6, 4), t[None], y[0], label_smoothing=0.1),
    "nll_loss": lambda x, y, t: F.nll_loss(F.log_softmax(x, 1), t, ignore_index=1),
    "kl_div": lambda x, y: F.kl_div(F.log_softmax(x, 1), y, reduction="batchmean"),
    "multi_margin_loss": lambda x, y, t: F.multi_margin_loss(x, t),
    "ctc_loss": lambda x, y, t: F.ctc_loss(x[:, None].log_softmax(-1), t[None, :2] % 5 + 1, (4,), (2,)),
    "index": lambda x, y, t: x[t % 4],
    "gather": lambda x, y, t: x.gather(1, t[:, None]),
    "index_add": lambda x, y, t: x.index_add(0, t % 4, x),
    "scatter_add": lambda x, y, t: x.scatter_add(1, t[:, None], x),
    "topk, sort, max": lambda x, y: x.topk(2).values.sum() + x.sort(1).values[:, 0] + x.max(1).values,
    "masks": lambda x, y: cg.where(x > y, x, y).masked_fill(x > 0.5, 0).triu(),
    "attention": lambda x, y: F.scaled_dot_product_attention(x[None], y[None], x[None], is_causal=True),
    "random": lambda x, y: F.dropout(x) * cg.randn_like(x),
    "one_hot": lambda x, y, t: F.one_hot(t, 6) * x,
}


@pytest.mark.parametrize("name", ACTS)
def test_an_op_and_its_derivative_wait_for_nothing(double, name):
    act = ACTS[name]
    given = numbers(4, 6).cuda().requires_grad_(), numbers(4, 6).cuda(), whole(6, 4).cuda()
    given = given[: act.__code__.co_argcount]
    assert not waits(double, lambda: act(*given).sum().backward())


OPTIMIZERS = ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop")


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_waits_for_nothing(double, name):
    layer, x = nn.Linear(4, 3).cuda(), numbers(2, 4).cuda()
    optimizer = getattr(cg.optim, name)(layer.parameters(), lr=0.01)
    assert not waits(double, functools.partial(_step, layer, x, optimizer)) and layer.weight.is_cuda


def _step(layer, x, optimizer):
    for _ in range(2):
        optimizer.zero_grad()
        layer(x).sum().backward()
        nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
        optimizer.step()


def test_a_scaler_waits_once_as_pytorchs(double):
    """For whether a gradient was infinite: the step is left out on the host."""
    layer, x, scaler = nn.Linear(4, 3).cuda(), numbers(2, 4).cuda(), cg.amp.GradScaler("cuda")
    optimizer = cg.optim.AdamW(layer.parameters())

    def step():
        optimizer.zero_grad()
        with cg.autocast("cuda"):
            loss = layer(x).sum()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()

    step()
    assert len(waits(double, step)) == 1
