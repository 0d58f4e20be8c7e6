"""nn.utils.prune: what each method zeroes, several on top of one another, gradients, and back again."""

import numpy as np
import pytest

import cudagrad as cg
from cudagrad import nn
from cudagrad.nn.utils import prune

VALUES = np.array([[1.0, -5.0, 3.0, 0.5], [2.0, -4.0, 0.1, 6.0], [-7.0, 8.0, -0.2, 0.3]], np.float32)


class Linear(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(cg.tensor(VALUES.copy()))
        self.bias = nn.Parameter(cg.tensor([1.0, -2.0, 3.0]))

    def forward(self, x):
        return x @ self.weight.T + self.bias


def mask_of(m):
    return m.weight_mask.numpy().astype(bool)


def test_the_smallest_elements_go():
    m = prune.l1_unstructured(Linear(), "weight", 4)
    expected = ~np.isin(np.abs(VALUES), np.float32([0.1, 0.2, 0.3, 0.5]))
    assert np.array_equal(mask_of(m), expected) and np.array_equal(m.weight.detach().numpy(), VALUES * expected)
    assert [n for n, _ in m.named_parameters()] == ["bias", "weight_orig"] and prune.is_pruned(m)
    m(cg.ones(1, 4)).sum().backward()
    assert np.array_equal(m.weight_orig.grad.numpy(), expected.astype(np.float32))
    scored = prune.l1_unstructured(Linear(), "weight", 4, importance_scores=cg.arange(12.0).view(3, 4))
    assert np.array_equal(mask_of(scored), np.arange(12).reshape(3, 4) >= 4)


def test_the_channels_of_the_smallest_norm_go():
    m = prune.ln_structured(Linear(), "weight", 1, n=2, dim=0)
    assert mask_of(m).all(1).tolist() == [False, True, True] and not mask_of(m)[0].any()
    m = prune.ln_structured(Linear(), "weight", 0.5, n=float("inf"), dim=1)
    assert mask_of(m).all(0).tolist() == [False, True, False, True] or mask_of(m).all(0).sum() == 2


def test_random_methods_zero_the_right_number():
    cg.manual_seed(0)
    assert (~mask_of(prune.random_unstructured(Linear(), "weight", 0.25))).sum() == 3
    rows = mask_of(prune.random_structured(Linear(), "weight", 2, dim=0)).all(1)
    assert rows.sum() == 1
    assert mask_of(prune.identity(Linear(), "weight")).all()


def test_a_given_mask_is_kept_through_a_step_and_made_permanent():
    mask = VALUES > 0
    m = prune.custom_from_mask(Linear(), "weight", cg.tensor(mask))
    original = m.weight_orig
    with cg.no_grad():
        original.add_(1.0)
    m(cg.ones(1, 4))
    assert np.array_equal(m.weight.detach().numpy(), (VALUES + 1) * mask)
    assert prune.remove(m, "weight") is m and m.weight is original and not prune.is_pruned(m)
    assert np.array_equal(m.weight.detach().numpy(), (VALUES + 1) * mask) and list(m._buffers) == []
    with pytest.raises(ValueError, match="has to be pruned before pruning can be removed$"):
        prune.remove(m, "weight")


def test_methods_act_on_what_others_have_left():
    m = prune.l1_unstructured(Linear(), "weight", 4)
    prune.l1_unstructured(m, "weight", 2)
    assert np.array_equal(mask_of(m), np.abs(VALUES) > 2) and len(m._forward_pre_hooks) == 1
    prune.ln_structured(m, "weight", 1, n=2, dim=0)
    assert not mask_of(m)[0].any() and np.array_equal(mask_of(m)[1:], np.abs(VALUES[1:]) > 2)
    assert isinstance(next(iter(m._forward_pre_hooks.values())), prune.PruningContainer)
    assert len(next(iter(m._forward_pre_hooks.values()))) == 3


def test_pruning_over_several_parameters_at_once():
    m = Linear()
    prune.global_unstructured([(m, "weight"), (m, "bias")], prune.L1Unstructured, amount=6)
    both = np.abs(np.concatenate([VALUES.ravel(), [1, 2, 3]]))
    kept = np.concatenate([m.weight_mask.numpy().ravel(), m.bias_mask.numpy()])
    assert kept.sum() == 9 and both[kept == 1].min() >= both[kept == 0].max()
    with pytest.raises(TypeError, match='^Only "unstructured" PRUNING_TYPE supported for the `pruning_method`'):
        prune.global_unstructured([(Linear(), "weight")], prune.LnStructured, amount=1, n=2)


def test_a_tensor_is_pruned_by_itself():
    t = cg.tensor([3.0, -1.0, 2.0])
    assert prune.L1Unstructured(1).prune(t).tolist() == [3.0, 0.0, 2.0]


def test_nonsense_is_refused():
    with pytest.raises(
        ValueError, match=r"^amount=1.5 should either be a float in the range \[0, 1\] or a non-negative"
    ):
        prune.l1_unstructured(Linear(), "weight", 1.5)
    with pytest.raises(TypeError, match="^Invalid type for amount: x. Must be int or float.$"):
        prune.L1Unstructured("x")
    m = Linear()
    with pytest.raises(ValueError, match="^amount=13 should be smaller than the number of parameters to prune=12$"):
        prune.l1_unstructured(m, "weight", 13)
    assert isinstance(m.weight, nn.Parameter) and not prune.is_pruned(m)
    with pytest.raises(ValueError, match="^Structured pruning can only be applied to multidimensional tensors."):
        prune.random_structured(m, "bias", 1, dim=0)
    with pytest.raises(IndexError, match=r"^Invalid index 2 for tensor of size torch.Size\(\[3, 4\]\)$"):
        prune.random_structured(m, "weight", 1, dim=2)
