"""Transformer layers on a device with kernels: residual sums in one op with their neighbours, and who can tell."""

import numpy as np
import pytest

import cudagrad
from cudagrad import nn
from cudagrad.core.modes import watching

from ..kernels.common import needs_compiler

pytestmark = needs_compiler


def layer_of(kind, **options):
    cudagrad.manual_seed(1)
    return kind(16, 2, 24, dropout=0.3, batch_first=True, **options).to("emulated")


def run(layer, ops=None, dtype=None):
    """The output and all gradients of one call with the same random numbers, as arrays."""
    rng = np.random.default_rng(0)
    given = [rng.standard_normal((2, n, 16)).astype(np.float32) for n in (3, 5)]
    x, memory = (cudagrad.tensor(a).to("emulated").to(dtype or cudagrad.float32).requires_grad_() for a in given)
    cudagrad.manual_seed(2)

    def note(op, tensors, options, call):
        if ops is not None:
            ops.append(op.name)
        return call(tensors, options)

    with watching(note):
        y = layer(x, memory) if isinstance(layer, nn.TransformerDecoderLayer) else layer(x)
    layer.zero_grad()
    (y * y).sum().backward()
    gradients = [p.grad for p in (x, *layer.parameters()) if p.grad is not None]
    return y.detach().cpu().array, [g.cpu().array for g in gradients]


def listened_to(layer):
    """The same layer with a hook on each dropout and norm, which makes it call them."""
    seen = []
    for name, module in layer.named_modules():
        if isinstance(module, (nn.Dropout, nn.LayerNorm)):
            module.register_forward_hook(lambda *given, name=name: seen.append(name))
    return seen


@pytest.mark.parametrize("train", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("kind", [nn.TransformerEncoderLayer, nn.TransformerDecoderLayer])
def test_the_fused_layer_gives_what_its_modules_give(kind, norm_first, train):
    layer, ops, apart = layer_of(kind, norm_first=norm_first).train(train), [], []
    y, gradients = run(layer, ops)
    parts = 3 if kind is nn.TransformerDecoderLayer else 2
    sums = ops.count("bias_dropped_added"), ops.count("add_layer_norm")
    assert sums == ((parts, 0) if train else (0, parts - norm_first))
    seen = listened_to(layer)
    expected, others = run(layer, apart)
    assert len(seen) == 2 * parts + 1 and not {"bias_dropped_added", "add_layer_norm"} & set(apart)
    assert np.array_equal(y, expected) and len(gradients) == len(others)
    for a, b in zip(gradients, others):
        assert np.abs(a - b).max() <= 2e-5 * np.abs(b).max() + 1e-6


def test_autocast_gives_what_the_modules_give_under_it():
    for train in (True, False):
        layer = layer_of(nn.TransformerEncoderLayer).train(train)
        with cudagrad.amp.autocast("emulated", dtype=cudagrad.bfloat16):
            for dtype in (cudagrad.float32, cudagrad.bfloat16):
                seen = listened_to(fresh := layer_of(nn.TransformerEncoderLayer).train(train))
                y, expected = run(layer, dtype=dtype)[0], run(fresh, dtype=dtype)[0]
                assert seen and y.dtype == expected.dtype
                assert np.abs(y.astype(np.float32) - expected.astype(np.float32)).max() <= (0.03 if train else 0)


def test_a_subclass_and_a_replaced_module_are_called():
    class Mine(nn.TransformerEncoderLayer):
        def _ff_block(self, x):
            return super()._ff_block(x) * 0

    ops = []
    run(layer_of(Mine), ops)
    assert "bias_dropped_added" not in ops
    layer, ops = layer_of(nn.TransformerEncoderLayer).eval(), []
    layer.norm2 = nn.RMSNorm(16).to("emulated")
    run(layer, ops)
    assert ops.count("add_layer_norm") == 1 and "rms_norm" in ops


def test_on_the_cpu_nothing_changes():
    layer, ops = layer_of(nn.TransformerEncoderLayer).to("cpu"), []
    with watching(lambda op, tensors, options, call: ops.append(op.name) or call(tensors, options)):
        layer(cudagrad.randn(2, 3, 16))
    assert not {"bias_dropped_added", "add_layer_norm"} & set(ops)
