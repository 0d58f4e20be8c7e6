"""nn.utils: clipping, vectors, fusion."""

import numpy as np
import pytest

import cudagrad as cg
from cudagrad import nn
from cudagrad.nn import utils


class Linear(nn.Module):
    def __init__(self, n=3, m=2, dtype=cg.float64):
        super().__init__()
        cg.manual_seed(1)
        self.weight = nn.Parameter(cg.randn(m, n, dtype=dtype))
        self.bias = nn.Parameter(cg.zeros(m, dtype=dtype))

    def forward(self, x):
        return x @ self.weight.T + self.bias


def with_grads(*grads):
    made = []
    for g in grads:
        p = nn.Parameter(cg.zeros(np.shape(g)))
        p.grad = None if g is None else cg.tensor(g)
        made.append(p)
    return made


# ---- clipping


@pytest.mark.parametrize("norm", [1.0, 2.0, 3.5, float("inf")])
@pytest.mark.parametrize("foreach", [None, True, False])
def test_clipping_scales_to_the_norm_and_returns_the_one_before(norm, foreach):
    grads = [np.array([3.0, -4.0], np.float32), np.array([[12.0]], np.float32)]
    params = with_grads(*grads, None)
    total = np.linalg.norm([3.0, -4.0, 12.0], norm)
    found = utils.clip_grad_norm_(params, 2.0, norm, foreach=foreach)
    assert found.item() == pytest.approx(total)
    for p, g in zip(params, grads):
        assert np.allclose(p.grad.numpy(), g * 2 / (total + 1e-6), rtol=1e-6)
    assert params[2].grad is None


def test_clipping_leaves_small_gradients_alone():
    p = with_grads([0.3, 0.4])
    assert (
        utils.clip_grad_norm_(p, 1.0).item() == pytest.approx(0.5)
        and p[0].grad.tolist() == cg.tensor([0.3, 0.4]).tolist()
    )


def test_clipping_takes_one_tensor_and_nothing():
    (p,) = with_grads([3.0, 4.0])
    assert utils.clip_grad_norm_(p, 1.0).item() == pytest.approx(5.0)
    assert utils.clip_grad_norm_([], 1.0).item() == 0.0 and utils.clip_grad_norm_(with_grads(None), 1.0).item() == 0.0
    with pytest.warns(UserWarning, match="^`parameters` is an empty generator, no gradient clipping will occur.$"):
        utils.clip_grad_norm_((p for p in []), 1.0)


def test_a_norm_that_is_not_finite_poisons_or_raises():
    p = with_grads([float("nan"), 1.0])
    with pytest.raises(
        RuntimeError, match="^The total norm of order 2.0 for gradients from `parameters` is non-finite, "
    ):
        utils.clip_grad_norm_(p, 1.0, error_if_nonfinite=True)
    assert p[0].grad[1].item() == 1.0
    utils.clip_grad_norm_(p, 1.0)
    assert np.isnan(p[0].grad.numpy()).all()
    p = with_grads([float("inf"), 1.0])
    assert utils.clip_grad_norm_(p, 1.0).item() == float("inf") and p[0].grad[1].item() == 0.0


def test_the_two_halves_of_clipping():
    p = with_grads([3.0, 4.0])
    total = utils.get_total_norm([q.grad for q in p])
    assert total.item() == pytest.approx(5.0)
    assert utils.clip_grads_with_norm_(p, 1.0, total) is None and p[0].grad.tolist() == pytest.approx([0.6, 0.8])


def test_values_are_clamped():
    p = with_grads([3.0, -4.0, 0.5])
    utils.clip_grad_value_(p, 1)
    assert p[0].grad.tolist() == [1.0, -1.0, 0.5]


def test_the_old_name_of_clipping_warns():
    with pytest.warns(FutureWarning, match="^`torch.nn.utils.clip_grad_norm` is now deprecated in favor of"):
        utils.clip_grad_norm(with_grads([3.0, 4.0]), 1.0)


# ---- vectors


def test_parameters_become_a_vector_and_back():
    m = Linear()
    v = utils.parameters_to_vector(m.parameters())
    assert v.tolist() == [*m.weight.flatten().tolist(), *m.bias.tolist()] and v.requires_grad
    utils.vector_to_parameters(cg.arange(8.0, dtype=cg.float64), m.parameters())
    assert m.weight.tolist() == [[0, 1, 2], [3, 4, 5]] and m.bias.tolist() == [6, 7] and m.weight.is_leaf
    with pytest.raises(TypeError, match="^expected torch.Tensor, but got: list$"):
        utils.vector_to_parameters([1.0], m.parameters())


# ---- fusion, and what else goes over whole modules


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("affine", [True, False])
def test_normalisation_folded_into_the_layer_before_it_changes_nothing(bias, affine):
    rng = np.random.default_rng(0)

    def filled(bn):
        bn.running_mean.copy_(cg.tensor(rng.standard_normal(4)))
        bn.running_var.copy_(cg.tensor(rng.uniform(0.5, 2, 4)))
        for p in bn.parameters():
            p.data.normal_()
        return bn.eval()

    for layer, bn, x in (
        (nn.Conv2d(3, 4, 2, bias=bias), nn.BatchNorm2d(4, affine=affine), (2, 3, 5, 5)),
        (nn.ConvTranspose2d(3, 4, 2, bias=bias), nn.BatchNorm2d(4, affine=affine), (2, 3, 5, 5)),
        (nn.Linear(3, 4, bias=bias), nn.BatchNorm1d(4, affine=affine), (2, 3)),
    ):
        layer, bn, x = layer.eval(), filled(bn), cg.tensor(rng.standard_normal(x)).float()
        if isinstance(layer, nn.Linear):
            fused = utils.fuse_linear_bn_eval(layer, bn)
        else:
            fused = utils.fuse_conv_bn_eval(layer, bn, transpose=isinstance(layer, nn.ConvTranspose2d))
        assert np.allclose(fused(x).detach().numpy(), bn(layer(x)).detach().numpy(), atol=1e-5)
    with pytest.raises(AssertionError, match="^Fusion only for eval!$"):
        utils.fuse_linear_bn_eval(nn.Linear(3, 4), filled(nn.BatchNorm1d(4)))


def test_weights_of_convolutions_are_put_in_another_order():
    m = nn.Sequential(nn.Conv2d(3, 4, 2), nn.Linear(2, 2))
    before, parameter = m[0].weight.detach().numpy().copy(), m[0].weight
    assert utils.convert_conv2d_weight_memory_format(m, cg.channels_last) is m
    assert m[0].weight is parameter and parameter.stride() == (12, 1, 6, 3)
    assert np.array_equal(parameter.detach().numpy(), before)


def test_a_module_is_made_without_first_values():
    m = utils.skip_init(nn.Linear, 3, 4)
    assert m.weight.shape == (4, 3)
    with pytest.raises(RuntimeError, match="^Module must support a 'device' arg to skip initialization$"):
        utils.skip_init(nn.Dropout, 0.5)


def test_batch_norms_become_sync_batch_norms_over_the_same_tensors():
    m = nn.Sequential(nn.Linear(3, 3), nn.Sequential(nn.BatchNorm1d(3)), nn.BatchNorm1d(3, affine=False)).eval()
    other = nn.SyncBatchNorm.convert_sync_batchnorm(m)
    assert other is m and type(m[1][0]) is nn.SyncBatchNorm and type(m[2]) is nn.SyncBatchNorm and not m[2].training
    bn = nn.BatchNorm1d(3)
    sync = nn.SyncBatchNorm.convert_sync_batchnorm(bn)
    assert sync.weight is bn.weight and sync.running_mean is bn.running_mean
    x = cg.tensor(np.random.default_rng(0).standard_normal((4, 3, 2))).float()
    assert np.allclose(sync(x).detach().numpy(), nn.BatchNorm1d(3)(x).detach().numpy())
    with pytest.raises(ValueError, match=r"^expected at least 2D input \(got 1D input\)$"):
        sync(cg.zeros(3))
