"""Sequential runs a Linear and its activation as one op on a device with kernels; nothing else tells a difference."""

import pickle

import numpy as np
import pytest

import cudagrad as cg
from cudagrad import nn
from cudagrad.core.modes import watching

from ..kernels.common import needs_compiler

pytestmark = needs_compiler

ACTIVATIONS = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "gelu_tanh": lambda: nn.GELU("tanh"),
    "silu": nn.SiLU,
    "relu in place": lambda: nn.ReLU(inplace=True),
    "silu in place": lambda: nn.SiLU(inplace=True),
}


def ops_of(function, *args):
    """The names of the ops that a call runs."""
    seen = []

    def note(op, tensors, options, call):
        seen.append(op.name)
        return call(tensors, options)

    with watching(note):
        function(*args)
    return seen


def pair(activation=nn.ReLU, device="emulated", bias=True):
    cg.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 4, bias=bias, device=device), activation())


def x_of(device="emulated"):
    return cg.tensor(np.random.default_rng(0).standard_normal((3, 5)).astype(np.float32)).to(device).requires_grad_()


def one_by_one(model, x):
    for module in model:
        x = module(x)
    return x


def results(model, run):
    """The output of a model and the gradients of x and of its parameters."""
    x = x_of()
    y = run(model.zero_grad() or model, x)
    (y.to(cg.float32) * cg.arange(12.0, device="emulated").view(3, 4)).sum().backward()
    return [t.detach().cpu().float().numpy() for t in (y, x.grad, *(p.grad for p in model.parameters()))]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_one_op_gives_what_the_two_modules_give(name, bias):
    model = pair(ACTIVATIONS[name], bias=bias)
    (op,) = ops_of(model, x_of())
    assert op == ("linear_relu" if "relu" in name else "linear_smooth")
    fused, apart = results(model, nn.Module.__call__), results(model, one_by_one)
    for a, b in zip(fused, apart, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_a_model_of_many_layers_runs_each_pair_as_one_op():
    model = nn.Sequential(
        *(
            nn.Linear(5, 4),
            nn.ReLU(),
            nn.ReLU(),
            nn.Linear(4, 4),
            nn.Linear(4, 4),
            nn.Tanh(),
            nn.Linear(4, 2),
            nn.SiLU(),
        )
    ).to("emulated")
    assert ops_of(model, x_of()) == ["linear_relu", "relu", "linear", "linear", "tanh", "linear_smooth"]
    assert ops_of(model[:1], x_of()) == ["linear"] and ops_of(nn.Sequential(), x_of()) == []


def test_the_cpu_runs_the_modules():
    assert ops_of(pair(device="cpu"), x_of("cpu")) == ["linear", "relu"]


class Louder(nn.Linear):
    pass


class Softer(nn.ReLU):
    pass


def with_forward(model):
    model[1].forward = lambda x: nn.functional.relu(x)


SPECIAL = {
    "forward hook": lambda model: model[0].register_forward_hook(lambda *given: None),
    "forward hook of the activation": lambda model: model[1].register_forward_hook(lambda *given: None),
    "pre hook": lambda model: model[1].register_forward_pre_hook(lambda *given: None),
    "backward hook": lambda model: model[0].register_full_backward_hook(lambda *given: None),
    "backward pre hook": lambda model: model[1].register_full_backward_pre_hook(lambda *given: None),
    "pruning": lambda model: nn.utils.prune.l1_unstructured(model[0], "weight", 0.5),
    "parametrization": lambda model: nn.utils.parametrizations.weight_norm(model[0]),
    "a subclass": lambda model: model.__setitem__(0, Louder(5, 4, device="emulated")),
    "a subclass of the activation": lambda model: model.__setitem__(1, Softer()),
    "a forward of its own": with_forward,
}


@pytest.mark.parametrize("name", SPECIAL)
def test_where_something_is_special_the_modules_are_called(name):
    model = pair()
    SPECIAL[name](model)
    assert ops_of(model, x_of())[-2:] == ["linear", "relu"]


def test_hooks_of_all_modules_are_called():
    seen = []
    handle = nn.modules.module.register_module_forward_hook(lambda module, *given: seen.append(type(module).__name__))
    try:
        pair()(x_of())
    finally:
        handle.remove()
    assert seen == ["Linear", "ReLU", "Sequential"]
    assert ops_of(pair(), x_of()) == ["linear_relu"]  # once it is gone


def test_hooks_of_saved_tensors_see_each():
    packed = []
    with cg.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        y = pair()(x_of())
    assert len(packed) == 3 and y.grad_fn.name() == "ReluBackward0"


def test_a_removed_hook_is_forgotten():
    model = pair()
    model[0].register_forward_hook(lambda *given: None).remove()
    assert ops_of(model, x_of()) == ["linear_relu"]


def test_pickles_and_state_are_as_ever():
    model = pair(nn.GELU)
    model(x_of())
    again = pickle.loads(pickle.dumps(model))
    assert list(again.state_dict()) == ["0.weight", "0.bias"]
    assert set(model.__dict__) == set(nn.Sequential().__dict__) | {"0", "1"}
    assert again(x_of()).tolist() == model(x_of()).tolist()


def test_under_autocast_the_product_is_in_the_half_dtype():
    for activation in (nn.ReLU, nn.GELU):
        model = pair(activation)
        with cg.autocast("emulated", dtype=cg.bfloat16):
            assert {"linear_relu", "linear_smooth"} & set(ops_of(model, x_of()))
            y, apart = model(x_of()), one_by_one(model, x_of())
        assert y.dtype is apart.dtype is cg.bfloat16
        np.testing.assert_allclose(
            y.detach().cpu().float().numpy(), apart.detach().cpu().float().numpy(), rtol=2e-2, atol=1e-2
        )
        y.float().sum().backward()
        assert model[0].weight.grad.dtype is cg.float32


def test_a_result_changed_in_place_is_an_error_only_where_the_activation_needs_it():
    pair(nn.GELU)(x_of()).mul_(2).sum().backward()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        pair(nn.ReLU)(x_of()).mul_(2).sum().backward()


def test_a_second_derivative_is_that_of_the_two_modules():
    found = []
    for run in (nn.Module.__call__, one_by_one):
        x, model = x_of(), pair(nn.SiLU)
        (g,) = cg.autograd.grad((run(model, x) ** 2).sum(), x, create_graph=True)
        (g * g).sum().backward()
        found.append([t.cpu().numpy() for t in (x.grad, model[0].weight.grad, model[0].bias.grad)])
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_the_shape_of_a_wrong_input_is_told_as_ever():
    for run in (nn.Module.__call__, one_by_one):
        with pytest.raises(RuntimeError, match=r"mat1 and mat2 shapes cannot be multiplied \(3x4 and 5x4\)"):
            run(pair(), cg.ones(3, 4, device="emulated"))
