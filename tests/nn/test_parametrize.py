"""Normalised and orthogonal weights, and parametrizations of the user's own."""

import copy
import pickle

import numpy as np
import pytest

import cudagrad as cg
from cudagrad import nn
from cudagrad.nn import utils
from cudagrad.nn.utils import parametrizations, parametrize


class Linear(nn.Module):
    def __init__(self, n=3, m=2, dtype=cg.float64):
        super().__init__()
        cg.manual_seed(1)
        self.weight = nn.Parameter(cg.randn(m, n, dtype=dtype))
        self.bias = nn.Parameter(cg.zeros(m, dtype=dtype))

    def forward(self, x):
        return x @ self.weight.T + self.bias


# ---- weight and spectral normalisation


def norm_of_rows(v, dim):
    axes = None if dim is None else tuple(i for i in range(v.ndim) if i != dim)
    return np.sqrt((v**2).sum(axes, keepdims=dim is not None))


@pytest.mark.filterwarnings("ignore:`torch.nn.utils.weight_norm`")
@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm_is_g_v_over_its_norm(dim):
    m = Linear()
    w = m.weight.detach().numpy().copy()
    assert utils.weight_norm(m, dim=dim) is m
    assert [n for n, _ in m.named_parameters()] == ["bias", "weight_g", "weight_v"]
    assert np.allclose(m.weight_g.detach().numpy(), norm_of_rows(w, dim)) and np.allclose(m.weight.detach().numpy(), w)
    with cg.no_grad():
        m.weight_g.mul_(2.0)
    x = cg.ones(1, 3, dtype=cg.float64)
    m(x).sum().backward()
    assert np.allclose(m.weight.detach().numpy(), 2 * w) and m.weight_g.grad.shape == m.weight_g.shape
    with pytest.raises(RuntimeError, match="^Cannot register two weight_norm hooks on the same parameter weight$"):
        utils.weight_norm(m)
    assert utils.remove_weight_norm(m) is m and isinstance(m.weight, nn.Parameter)
    assert np.allclose(m.weight.detach().numpy(), 2 * w) and not m._forward_pre_hooks
    with pytest.raises(ValueError, match="^weight_norm of 'weight' not found in"):
        utils.remove_weight_norm(m)


def test_old_weight_norm_warns_and_its_state_loads_into_the_new_one():
    with pytest.warns(FutureWarning, match="^`torch.nn.utils.weight_norm` is deprecated in favor of"):
        old = utils.weight_norm(Linear())
    new = parametrizations.weight_norm(Linear())
    with cg.no_grad():
        old.weight_g.fill_(3.0)
    new.load_state_dict(old.state_dict())
    assert np.allclose(norm_of_rows(new.weight.detach().numpy(), 0), 3.0)


def test_parametrized_weight_norm_has_the_gradient_of_its_definition():
    m = parametrizations.weight_norm(Linear())
    g, v = m.parametrizations.weight.original0, m.parametrizations.weight.original1
    a = np.random.default_rng(0).standard_normal((2, 3))
    (m.weight * cg.tensor(a)).sum().backward()
    n, u = norm_of_rows(v.detach().numpy(), 0), v.detach().numpy()
    expected = g.detach().numpy() * (a / n - u * (a * u).sum(1, keepdims=True) / n**3)
    assert np.allclose(v.grad.numpy(), expected)


@pytest.mark.parametrize("old", [True, False])
def test_spectral_norm_divides_by_the_largest_singular_value(old):
    m = Linear(6, 4)
    w = m.weight.detach().numpy().copy()
    apply = utils.spectral_norm if old else parametrizations.spectral_norm
    m = apply(m, n_power_iterations=50)
    x = cg.ones(1, 6, dtype=cg.float64)
    for _ in range(10):
        m(x)
    sigma = np.linalg.svd(w, compute_uv=False)[0]
    assert np.allclose(m.weight.detach().numpy(), w / sigma, atol=1e-6)
    m.eval()
    m(x)
    m(x).sum().backward()
    m.train()
    (m(x) - m(x)).sum().backward()  # two forwards before one backward
    assert list(m.state_dict())[0] == "bias"
    if old:
        assert list(m.state_dict()) == ["bias", "weight_orig", "weight_u", "weight_v"]
        utils.remove_spectral_norm(m)
        assert isinstance(m.weight, nn.Parameter) and not m._forward_pre_hooks and not m._state_dict_hooks
        with pytest.raises(ValueError, match="^spectral_norm of 'weight' not found in"):
            utils.remove_spectral_norm(m)


def test_spectral_norm_refuses_nonsense():
    with pytest.raises(ValueError, match="^Expected n_power_iterations to be positive, but got n_power_iterations=0$"):
        utils.spectral_norm(Linear(), n_power_iterations=0)
    with pytest.raises(IndexError, match="^Dimension out of range"):
        parametrizations.spectral_norm(Linear(), dim=5)
    with pytest.raises(ValueError, match="has no parameter or buffer with name 'x'$"):
        parametrizations.spectral_norm(Linear(), "x")


# ---- parametrizations


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).mT

    def right_inverse(self, a):
        return a.triu()


class Double(nn.Module):
    def forward(self, x):
        return 2 * x


def test_a_parametrized_weight_is_computed_at_every_access():
    m = Linear(3, 3)
    weight = m.weight
    assert parametrize.register_parametrization(m, "weight", Symmetric()) is m
    assert type(m).__name__ == "ParametrizedLinear" and parametrize.is_parametrized(m, "weight")
    assert m.parametrizations.weight.original is weight and parametrize.type_before_parametrizations(m) is Linear
    assert np.array_equal(m.weight.detach().numpy(), m.weight.detach().numpy().T)
    a = cg.tensor(np.arange(9.0).reshape(3, 3))
    m.weight = a + a.T
    assert m.weight.tolist() == (a + a.T).tolist() and m.parametrizations.weight.original is weight
    m(cg.ones(1, 3, dtype=cg.float64)).sum().backward()
    assert weight.grad.tolist() == [[1, 2, 2], [0, 1, 2], [0, 0, 1]]
    parametrize.register_parametrization(m, "weight", Double())
    assert m.weight.tolist() == (2 * (a + a.T)).tolist()
    assert list(m.state_dict()) == ["bias", "parametrizations.weight.original"]
    with pytest.raises(RuntimeError, match="^parametrization Double does not implement right_inverse.$"):
        m.weight = a


def test_removing_a_parametrization_leaves_either_value():
    for leave in (True, False):
        m = Linear(3, 3)
        weight, before = m.weight, m.weight.detach().numpy().copy()
        parametrize.register_parametrization(m, "weight", Double())
        parametrize.remove_parametrizations(m, "weight", leave_parametrized=leave)
        assert m.weight is weight and type(m) is Linear and not parametrize.is_parametrized(m)
        assert np.allclose(m.weight.detach().numpy(), before * (2 if leave else 1))
        assert sorted(n for n, _ in m.named_parameters()) == ["bias", "weight"]


def test_a_parametrization_of_several_tensors():
    class Rank1(nn.Module):
        def forward(self, x, y):
            return x[:, None] * y

        def right_inverse(self, z):
            return z[:, 0].clone(), z[0].clone()

    m = parametrize.register_parametrization(Linear(3, 2), "weight", Rank1())
    parts = m.parametrizations.weight
    assert [n for n, _ in parts.named_parameters()] == ["original0", "original1"] and m.weight.shape == (2, 3)
    with pytest.raises(ValueError, match="^Cannot leave unparametrized"):
        parametrize.remove_parametrizations(m, "weight", leave_parametrized=False)
    parametrize.remove_parametrizations(m, "weight")
    assert isinstance(m.weight, nn.Parameter) and m.weight.is_leaf


def test_parametrized_buffers_copies_and_caching():
    class Counting(nn.Module):
        calls = 0

        def forward(self, x):
            self.calls += 1
            return x + 1

    m = nn.Module()
    m.register_buffer("b", cg.zeros(2))
    parametrize.register_parametrization(m, "b", Counting())
    counter = m.parametrizations["b"][0]
    before = counter.calls
    with parametrize.cached():
        assert m.b is m.b
    assert counter.calls == before + 1 and m.b is not m.b
    other = copy.deepcopy(m)
    other.parametrizations.b.original.fill_(5.0)
    assert other.b.tolist() == [6.0, 6.0] and m.b.tolist() == [1.0, 1.0]
    with pytest.raises(
        RuntimeError, match="^Serialization of parametrized modules is only supported through state_dict"
    ):
        pickle.dumps(m)


def test_parametrizations_that_change_shape_or_dtype_are_refused():
    class Longer(nn.Module):
        def forward(self, x):
            return cg.cat([x, x])

    class Single(nn.Module):
        def forward(self, x):
            return x.float()

    with pytest.raises(
        ValueError, match="^Registering a parametrization may not change the shape of the tensor, unless"
    ):
        parametrize.register_parametrization(Linear(), "weight", Longer())
    with pytest.raises(
        ValueError, match="^Registering a parametrization may not change the dtype of the tensor, unless"
    ):
        parametrize.register_parametrization(Linear(), "weight", Single())
    m = parametrize.register_parametrization(Linear(), "weight", Double())
    with pytest.raises(ValueError, match="^Registering a parametrization may not change the shape"):
        parametrize.register_parametrization(m, "weight", Longer())
    assert parametrize.register_parametrization(Linear(), "weight", Longer(), unsafe=True).weight.shape == (4, 3)
    with pytest.raises(
        ValueError, match="does not have a parameter, a buffer, or a parametrized element with name 'x'$"
    ):
        parametrize.register_parametrization(Linear(), "x", Double())
    with pytest.raises(ValueError, match="does not have a parametrization on weight$"):
        parametrize.remove_parametrizations(Linear(), "weight")


def test_parametrizations_are_transferred():
    a, b = Linear(3, 3), Linear(3, 3)
    parametrize.register_parametrization(a, "weight", Symmetric())
    with cg.no_grad():
        a.parametrizations.weight.original.fill_(3.0)
    parametrize.transfer_parametrizations_and_params(a, b)
    assert b.weight.tolist() == a.weight.tolist()
    assert b.parametrizations.weight.original is a.parametrizations.weight.original


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
@pytest.mark.parametrize("map_", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("trivial", [True, False])
def test_orthogonal_weights_stay_orthogonal_after_a_step(shape, map_, trivial):
    m = parametrizations.orthogonal(Linear(shape[1], shape[0]), orthogonal_map=map_, use_trivialization=trivial)

    def is_orthogonal():
        w = m.weight.detach().numpy()
        product = w @ w.T if shape[0] <= shape[1] else w.T @ w
        return np.allclose(product, np.eye(len(product)), atol=1e-9)

    assert is_orthogonal()
    target = cg.tensor(np.linalg.qr(np.random.default_rng(0).standard_normal((5, 5)))[0][: shape[0], : shape[1]])
    loss = ((m.weight - target) ** 2).sum()
    loss.backward()
    original = m.parametrizations.weight.original
    assert abs(original.grad.numpy()).max() > 0
    with cg.no_grad():
        original -= 0.05 * original.grad
    assert is_orthogonal() and ((m.weight - target) ** 2).sum().item() < loss.item()


def test_an_orthogonal_weight_is_kept_and_may_be_assigned():
    q = np.linalg.qr(np.random.default_rng(1).standard_normal((4, 4)))[0]
    m = Linear(4, 4)
    with cg.no_grad():
        m.weight.copy_(cg.tensor(q))
    parametrizations.orthogonal(m)
    assert np.allclose(m.weight.detach().numpy(), q)
    m.weight = cg.tensor(np.eye(4)[::-1].copy())
    assert np.allclose(m.weight.detach().numpy(), np.eye(4)[::-1])
    tall = parametrizations.orthogonal(Linear(3, 5), orthogonal_map="householder", use_trivialization=False)
    q = np.linalg.qr(np.random.default_rng(2).standard_normal((5, 3)))[0]
    tall.weight = cg.tensor(q)
    assert np.allclose(tall.weight.detach().numpy(), q)


def test_orthogonal_refuses_nonsense():
    with pytest.raises(ValueError, match="^Expected a matrix or batch of matrices. Got a tensor of 1 dimensions.$"):
        parametrizations.orthogonal(Linear(), "bias")
    with pytest.raises(
        ValueError, match='^orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: x'
    ):
        parametrizations.orthogonal(Linear(), orthogonal_map="x")
    m = parametrizations.orthogonal(Linear(4, 4), use_trivialization=False)
    with pytest.raises(
        NotImplementedError, match="^It is not possible to assign to the matrix exponential or the Cayley"
    ):
        m.weight = cg.zeros(4, 4, dtype=cg.float64)
