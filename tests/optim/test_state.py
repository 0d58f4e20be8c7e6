"""Parameter groups, saving and loading, hooks, and recorded steps."""

import copy
import pickle

import numpy as np
import pytest

import cudagrad
from cudagrad import optim
from cudagrad.core.tensor import wrap
from cudagrad.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
    required,
)

from .problems import descend, leaf, start


def tensors(count=2):
    return [leaf(np.ones(3, np.float32)) for _ in range(count)]


# ---- construction


def test_what_is_not_a_list_of_leaves_is_refused_in_pytorchs_words():
    (p,) = tensors(1)
    for bad, kind, first in [
        (p, TypeError, "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "),
        ([], ValueError, "optimizer got an empty parameter list"),
        ([1], TypeError, "optimizer can only optimize Tensors, but one of the params is int"),
        ([{"params": {p}}], TypeError, "optimizer parameters need to be organized in ordered collections"),
        ([{"params": [p]}, 3], TypeError, "param_group must be a dict, but got <class 'int'>"),
        ([{"params": [p]}, {"params": [p]}], ValueError, "some parameters appear in more than one parameter group"),
        ([("a", p), leaf(np.ones(1))], ValueError, "all optimizer params should be with/without names. Some param"),
    ]:
        with pytest.raises(kind) as caught:
            optim.SGD(bad, lr=0.1)
        assert str(caught.value).startswith(first)


def test_a_tensor_of_a_graph_is_refused_unless_it_keeps_its_gradient():
    (p,) = tensors(1)
    child = p * 2
    with pytest.raises(ValueError) as caught:
        optim.SGD([child], lr=0.1)
    assert str(caught.value).splitlines()[0] == "can't optimize a non-leaf Tensor"
    child.retain_grad()
    optim.SGD([child], lr=0.1)
    optim.SGD([p * 3], lr=0.1, differentiable=True)


def test_a_set_is_accepted_and_a_parameter_twice_in_a_group_warns():
    p, q = tensors()
    assert set(optim.SGD({p, q}).param_groups[0]["params"]) == {p, q}
    with pytest.warns(UserWarning, match="optimizer contains a parameter group with duplicate parameters"):
        optim.SGD([p, p])


def test_names_are_kept_beside_the_parameters_and_go_for_all_groups_or_none():
    p, q = tensors()
    optimizer = optim.SGD([("p", p)], lr=0.1)
    assert optimizer.param_groups[0]["param_names"] == ["p"] and optimizer.param_groups[0]["params"] == [p]
    with pytest.raises(ValueError, match="cannot add param group without names to the optimizer"):
        optimizer.add_param_group({"params": [q]})
    with pytest.raises(ValueError, match="cannot add param group with names to the optimizer"):
        optim.SGD([p]).add_param_group({"params": [("q", q)]})
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["p"]


def test_a_group_takes_the_defaults_that_it_does_not_give():
    p, q = tensors()
    optimizer = optim.SGD([{"params": p, "lr": 1.0}], lr=0.5, momentum=0.9)
    optimizer.add_param_group({"params": (t for t in [q])})
    assert [g["lr"] for g in optimizer.param_groups] == [1.0, 0.5]
    assert optimizer.param_groups[1]["momentum"] == 0.9 and optimizer.param_groups[1]["params"] == [q]


def test_a_required_option_must_be_given_by_each_group():
    class Own(optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {"lr": required})

    with pytest.raises(
        ValueError, match="parameter group didn't specify a value of required optimization parameter lr"
    ):
        Own(tensors())
    assert Own([{"params": tensors(), "lr": 1}]).param_groups[0]["lr"] == 1
    assert repr(required) == "<required parameter>"


OPTIONS = [
    ("SGD", {"lr": -1.0}, "Invalid learning rate: -1.0"),
    ("SGD", {"momentum": -1.0}, "Invalid momentum value: -1.0"),
    ("SGD", {"weight_decay": -1.0}, "Invalid weight_decay value: -1.0"),
    ("SGD", {"nesterov": True}, "Nesterov momentum requires a momentum and zero dampening"),
    ("SGD", {"nesterov": True, "momentum": 0.9, "dampening": 0.1}, "Nesterov momentum requires a momentum and zero"),
    ("Adam", {"betas": (1.0, 0.9)}, "Invalid beta parameter at index 0: 1.0"),
    ("AdamW", {"betas": (0.0, -0.5)}, "Invalid beta parameter at index 1: -0.5"),
    ("Adam", {"betas": (0, 0.9)}, "betas must be either both floats or both Tensors"),
    ("Adam", {"eps": -1.0}, "Invalid epsilon value: -1.0"),
    ("NAdam", {"momentum_decay": -1.0}, "Invalid momentum_decay value: -1.0"),
    ("RAdam", {"weight_decay": -1.0}, "Invalid weight_decay value: -1.0"),
    ("Adagrad", {"lr_decay": -1.0}, "Invalid lr_decay value: -1.0"),
    ("Adagrad", {"initial_accumulator_value": -1.0}, "Invalid initial_accumulator_value value: -1.0"),
    ("Adadelta", {"rho": 1.5}, "Invalid rho value: 1.5"),
    ("RMSprop", {"alpha": -0.1}, "Invalid alpha value: -0.1"),
    ("Rprop", {"etas": (1.2, 0.5)}, "Invalid eta values: 1.2, 0.5"),
    ("Adafactor", {"lr": -1.0}, "Learning rate should be >= 0 but is: -1.0"),
    ("Adafactor", {"beta2_decay": 0.5}, "beta2_decay should be <= 0 but is: 0.5"),
    ("Adafactor", {"d": 0.5}, "Clipping threshold d should be >= 1 but is: 0.5"),
    ("Muon", {"adjust_lr_fn": "x"}, "Adjust learning rate function x is not supported"),
]


@pytest.mark.parametrize("name,options,first", OPTIONS, ids=[f"{n}-{f}" for n, _, f in OPTIONS])
def test_wrong_options_are_refused_in_pytorchs_words(name, options, first):
    with pytest.raises(ValueError) as caught:
        getattr(optim, name)([leaf(np.ones((2, 2)))], **options)
    assert str(caught.value).startswith(first)


@pytest.mark.peer
@pytest.mark.parametrize("name,options,first", OPTIONS, ids=[f"{n}-{f}" for n, _, f in OPTIONS])
def test_the_words_are_pytorchs(name, options, first):
    torch = pytest.importorskip("torch")
    seen = []
    for space, p in ((optim, leaf(np.ones((2, 2)))), (torch.optim, torch.ones(2, 2, requires_grad=True))):
        with pytest.raises(ValueError) as caught:
            getattr(space, name)([p], **options)
        seen.append(str(caught.value).splitlines()[0])
    assert seen[0] == seen[1]


def test_rates_that_are_tensors_have_one_element_and_no_foreach():
    p = tensors()
    with pytest.raises(ValueError, match="Tensor lr must be 1-element"):
        optim.SGD(p, lr=wrap(np.ones(2)))
    with pytest.raises(ValueError, match="lr as a Tensor is not supported for capturable=False and foreach=True"):
        optim.Adam(p, lr=wrap(np.ones(())), foreach=True)
    with pytest.raises(RuntimeError, match="`fused` does not support `differentiable`"):
        optim.Adam(p, fused=True, differentiable=True)
    with pytest.raises(RuntimeError, match="`fused` and `foreach` cannot be `True` together."):
        optim.SGD(p, fused=True, foreach=True)


def test_options_that_choose_a_kernel_elsewhere_are_accepted():
    for options in ({"foreach": True}, {"fused": True}, {"capturable": True}, {"foreach": False}):
        (p,) = tensors(1)
        optimizer = optim.Adam([p], lr=0.5, **options)
        p.grad = wrap(np.ones(3, np.float32))
        optimizer.step()
        assert p.array == pytest.approx(0.5)


def test_muon_takes_matrices_only():
    with pytest.raises(ValueError, match=r"Muon only supports 2D parameters whereas we found a parameter with size"):
        optim.Muon([leaf(np.ones(3))])


def test_lbfgs_takes_one_group_and_one_line_search():
    p, q = tensors()
    with pytest.raises(ValueError, match="LBFGS doesn't support per-parameter options"):
        optim.LBFGS([{"params": [p]}, {"params": [q]}])
    with pytest.raises(RuntimeError, match="only 'strong_wolfe' is supported"):
        optim.LBFGS([p], line_search_fn="golden").step(lambda: 1.0)


def test_repr_lists_the_options_of_each_group_by_name():
    text = repr(optim.SGD(tensors(), lr=0.1))
    assert text.startswith("SGD (\nParameter Group 0\n    dampening: 0\n    differentiable: False\n")
    assert text.endswith("    nesterov: False\n    weight_decay: 0\n)")


# ---- zero_grad


def test_zero_grad_forgets_gradients_or_fills_the_same_tensor_with_zeros():
    p, q = tensors()
    p.grad = wrap(np.ones(3, np.float32))
    optimizer = optim.SGD([p, q])
    held = p.grad
    optimizer.zero_grad(set_to_none=False)
    assert p.grad is held and held.array.tolist() == [0, 0, 0] and q.grad is None
    optimizer.zero_grad()
    assert p.grad is None


def test_zero_grad_takes_a_gradient_out_of_its_graph():
    (p,) = tensors(1)
    p.grad = (p * 2).detach().requires_grad_()
    optim.SGD([p]).zero_grad(set_to_none=False)
    assert not p.grad.requires_grad


# ---- saving and loading


def test_the_state_names_parameters_by_place_across_groups():
    p, q, r = tensors(3)
    optimizer = optim.Adam([{"params": [p]}, {"params": [q, r], "lr": 0.5}])
    r.grad = wrap(np.ones(3, np.float32))
    optimizer.step()
    saved = optimizer.state_dict()
    assert [g["params"] for g in saved["param_groups"]] == [[0], [1, 2]]
    assert list(saved["state"]) == [2] and list(saved["state"][2]) == ["step", "exp_avg", "exp_avg_sq"]
    assert saved["state"][2]["exp_avg"] is optimizer.state[r]["exp_avg"]
    step = saved["state"][2]["step"]
    assert step.dtype is cudagrad.float32 and step.shape == () and float(step.array) == 1


@pytest.mark.parametrize(
    "name", ["SGD", "Adam", "NAdam", "RAdam", "Adamax", "Adagrad", "Adadelta", "RMSprop", "Rprop", "ASGD", "Adafactor"]
)
def test_a_loaded_optimizer_goes_on_where_the_saved_one_was(name):
    options = {"momentum": 0.9} if name in ("SGD", "RMSprop") else {}
    arrays = start()
    params = [leaf(a) for a in arrays]
    first = getattr(optim, name)(params, lr=0.1, **options)
    descend(first, params, arrays, 3)
    others = [leaf(p.array) for p in params]
    second = getattr(optim, name)(others, lr=0.7, **options)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    assert second.param_groups[0]["lr"] == 0.1 and second.param_groups[0]["params"] == others
    descend(first, params, arrays, 3)
    descend(second, others, arrays, 3)
    for p, q in zip(params, others):
        # loading makes the scalars of NAdam and ASGD float64, the parameter's dtype: they round differently from then
        np.testing.assert_allclose(p.array, q.array, rtol=1e-6, atol=1e-7)


def test_loading_casts_state_to_the_parameters_dtype_except_the_step():
    p = leaf(np.ones(3, np.float64))
    first = optim.Adam([p])
    p.grad = wrap(np.ones(3))
    first.step()
    q = leaf(np.ones(3, np.float16))
    second = optim.Adam([q])
    second.load_state_dict(first.state_dict())
    assert second.state[q]["exp_avg"].dtype is cudagrad.float16 and second.state[q]["step"].dtype is cudagrad.float32


def test_state_of_no_parameter_is_kept_and_lists_are_cast_within():
    p, q = leaf(np.ones(3, np.float32)), leaf(np.ones(3, np.float64))
    first, second = optim.SGD([p]), optim.SGD([q])
    first.state["global"] = {"count": 3}
    first.state[p]["history"] = [wrap(np.ones(2, np.float32)), 5]
    second.load_state_dict(first.state_dict())
    assert second.state["global"] == {"count": 3}
    assert second.state[q]["history"][0].dtype is cudagrad.float64 and second.state[q]["history"][1] == 5


def test_a_state_of_other_groups_is_refused():
    p, q = tensors()
    saved = optim.SGD([p]).state_dict()
    with pytest.raises(ValueError, match="loaded state dict has a different number of parameter groups"):
        optim.SGD([{"params": [p]}, {"params": [q]}]).load_state_dict(saved)
    with pytest.raises(ValueError, match="that doesn't match the size of optimizer's group"):
        optim.SGD([p, q]).load_state_dict(saved)


def test_old_states_get_the_options_and_step_tensors_of_today():
    (p,) = tensors(1)
    optimizer = optim.Adam([p])
    saved = optimizer.state_dict()
    group = {k: v for k, v in saved["param_groups"][0].items() if k in ("lr", "betas", "eps", "weight_decay", "params")}
    state = {0: {"step": 5, "exp_avg": wrap(np.zeros(3, np.float32)), "exp_avg_sq": wrap(np.zeros(3, np.float32))}}
    optimizer.load_state_dict({"state": state, "param_groups": [group]})
    p.grad = wrap(np.ones(3, np.float32))
    optimizer.step()
    assert float(optimizer.state[p]["step"].array) == 6 and optimizer.param_groups[0]["amsgrad"] is False


def test_optimizers_survive_pickle_and_deepcopy():
    p, q = tensors()
    optimizer = optim.Adam([p, q], lr=0.5)
    for t in (p, q):
        t.grad = wrap(np.ones(3, np.float32))
    optimizer.step()
    for other in (pickle.loads(pickle.dumps(optimizer)), copy.deepcopy(optimizer)):
        mine = other.param_groups[0]["params"][0]
        assert mine is not p and float(other.state[mine]["step"].array) == 1
        mine.grad = wrap(np.ones(3, np.float32))
        other.step()
        assert mine.array == pytest.approx(0.0, abs=1e-5)


@pytest.mark.peer
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "NAdam", "RMSprop", "ASGD", "Adafactor"])
def test_a_state_of_pytorchs_loads_here_and_goes_on_alike(name):
    torch = pytest.importorskip("torch")
    options = {"momentum": 0.9} if name in ("SGD", "RMSprop") else {}
    rng = np.random.default_rng(0)
    a = rng.standard_normal((4, 5)).astype(np.float32)
    theirs = torch.tensor(a, requires_grad=True)
    other = getattr(torch.optim, name)([theirs], lr=0.1, **options)

    def their_steps():
        for _ in range(3):
            theirs.grad = torch.from_numpy(a) * 0.5 + theirs.detach()
            other.step()

    their_steps()
    saved = other.state_dict()
    state = {i: {k: wrap(v.detach().numpy().copy()) for k, v in values.items()} for i, values in saved["state"].items()}
    p = leaf(theirs.detach().numpy())
    optimizer = getattr(optim, name)([p], lr=0.3, **options)
    optimizer.load_state_dict({"state": state, "param_groups": saved["param_groups"]})
    their_steps()
    for _ in range(3):
        p.grad = wrap(a * np.float32(0.5) + p.array)
        optimizer.step()
    np.testing.assert_allclose(p.array, theirs.detach().numpy(), rtol=1e-5, atol=1e-6)


# ---- hooks


def test_hooks_run_around_a_step_global_ones_outside_and_may_change_its_arguments():
    (p,) = tensors(1)
    p.grad = wrap(np.ones(3, np.float32))
    optimizer = optim.SGD([p], lr=0.5)
    seen = []
    handles = [
        register_optimizer_step_pre_hook(lambda o, a, k: seen.append("all before")),
        register_optimizer_step_post_hook(lambda o, a, k: seen.append("all after")),
    ]
    optimizer.register_step_pre_hook(lambda o, args, kwargs: ((o, lambda: 3.0), {}))
    removed = optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append("gone"))
    removed.remove()
    optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append(("after", len(args))))
    try:
        assert optimizer.step() == 3.0
    finally:
        for handle in handles:
            handle.remove()
    assert seen == ["all before", ("after", 2), "all after"]
    optimizer.register_step_pre_hook(lambda o, args, kwargs: 5)
    with pytest.raises(RuntimeError, match=r"must return None or a tuple of \(new_args, new_kwargs\), but got 5."):
        optimizer.step()


def test_the_step_of_a_base_class_runs_no_hooks_a_second_time():
    class Twice(optim.SGD):
        def step(self, closure=None):
            super().step()
            return super().step(closure)

    (p,) = tensors(1)
    p.grad = wrap(np.ones(3, np.float32))
    optimizer, calls = Twice([p], lr=0.25), []
    optimizer.register_step_post_hook(lambda *a: calls.append(1))
    optimizer.step()
    assert calls == [1] and p.array.tolist() == [0.5] * 3


def test_hooks_see_and_replace_state_dicts():
    (p,) = tensors(1)
    optimizer = optim.SGD([p], lr=0.5)
    order = []
    optimizer.register_state_dict_pre_hook(lambda o: order.append("second"))
    optimizer.register_state_dict_pre_hook(lambda o: order.append("first"), prepend=True)
    optimizer.register_state_dict_post_hook(lambda o, s: {**s, "extra": 1})
    saved = optimizer.state_dict()
    assert order == ["first", "second"] and saved["extra"] == 1

    def faster(o, s):
        return {**s, "param_groups": [{**g, "lr": 9.0} for g in s["param_groups"]]}

    optimizer.register_load_state_dict_pre_hook(faster)
    optimizer.register_load_state_dict_post_hook(lambda o: order.append(o.param_groups[0]["lr"]))
    optimizer.load_state_dict(saved)
    assert order[-1] == 9.0 and saved["param_groups"][0]["lr"] == 0.5


# ---- recorded steps


@pytest.mark.parametrize(
    "name,options",
    [
        ("SGD", {"momentum": 0.9, "weight_decay": 0.1}),
        ("SGD", {"momentum": 0.9, "nesterov": True, "maximize": True}),
        ("Adam", {"weight_decay": 0.1}),
        ("Adam", {"amsgrad": True}),
        ("AdamW", {}),
        ("NAdam", {"weight_decay": 0.1}),
        ("RAdam", {}),
        ("Adamax", {}),
        ("Adagrad", {}),
        ("Adadelta", {}),
        ("RMSprop", {"momentum": 0.9, "centered": True}),
        ("Rprop", {}),
        ("ASGD", {"weight_decay": 0.1}),
    ],
)
def test_a_differentiable_step_has_the_derivative_that_differences_see(name, options):
    rng = np.random.default_rng(7)
    w0, direction = rng.standard_normal(6), rng.standard_normal(6)
    weights = rng.standard_normal(6)

    def run(start, recorded):
        """The loss after three steps on the loss sum(w^4) / 4, which ``start`` is the start of."""
        x = leaf(start)
        p = x * 1 if recorded else leaf(start)
        optimizer = getattr(optim, name)([p], lr=0.05, differentiable=recorded, **options)
        for _ in range(3):
            p.grad = (p * 1) ** 3 if recorded else wrap(p.array**3)  # p itself is written to by the step
            optimizer.step()
        return x, p

    x, p = run(w0, recorded=True)
    np.testing.assert_allclose(p.array, run(w0, recorded=False)[1].array, rtol=1e-12)
    (p * wrap(weights)).sum().backward()
    small = 1e-6
    up, down = (weights @ run(w0 + s * small * direction, recorded=False)[1].array for s in (1, -1))
    assert x.grad.array @ direction == pytest.approx((up - down) / (2 * small), rel=1e-5)


def test_a_rate_that_is_a_tensor_gets_a_gradient_through_recorded_steps():
    x, lr = leaf(np.array([2.0])), leaf(np.array(0.1))
    p = x * 1
    optimizer = optim.SGD([p], lr=lr, differentiable=True)
    for _ in range(2):  # w = x (1 - lr)^2 on the gradient w
        p.grad = p * 1
        optimizer.step()
    p.sum().backward()
    assert float(lr.grad.array) == pytest.approx(-2 * 2.0 * 0.9)
    assert float(x.grad.array[0]) == pytest.approx(0.81)


def test_a_differentiable_step_on_a_leaf_is_the_in_place_error():
    (p,) = tensors(1)
    optimizer = optim.SGD([p], differentiable=True)
    p.grad = wrap(np.ones(3, np.float32))
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        optimizer.step()
    assert p.array.tolist() == [1, 1, 1]


@pytest.mark.parametrize("name", ["SGD", "Adam", "Adadelta"])
def test_a_differentiable_step_on_complex_numbers_has_the_values_of_a_plain_one(name):
    rng = np.random.default_rng(1)
    w, g = (rng.standard_normal((2, 3)) + 1j * rng.standard_normal((2, 3)) for _ in range(2))
    x, plain = leaf(w), leaf(w)
    p = x * 1
    for q, recorded in ((p, True), (plain, False)):
        optimizer = getattr(optim, name)([q], lr=0.1, differentiable=recorded)
        for _ in range(2):
            q.grad = wrap(g)
            optimizer.step()
    np.testing.assert_allclose(p.array, plain.array, rtol=1e-12)
    assert p.requires_grad and not p.is_leaf
