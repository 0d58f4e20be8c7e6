"""Functions over lists of tensors against the function on each of them."""

import pytest

import cudagrad as cg


def lists():
    return [cg.tensor([1.0, 2.0]), cg.tensor([[3.0]])], [cg.tensor([0.5, -1.0]), cg.tensor([[4.0]])]


def same(got, expected):
    assert len(got) == len(expected)
    assert all(cg.equal(g, e) for g, e in zip(got, expected))


@pytest.mark.parametrize("name", ["exp", "sqrt", "neg", "sigmoid", "erf", "round", "abs", "lgamma", "reciprocal"])
def test_unary_functions_run_on_each(name):
    a, _ = lists()
    same(getattr(cg, f"_foreach_{name}")(a), [getattr(cg, name)(t) for t in a])
    form = getattr(cg, f"_foreach_{name}_")
    expected = [getattr(cg, name)(t) for t in a]
    assert form(a) is a
    same(a, expected)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "pow", "clamp_min", "clamp_max", "maximum", "minimum"])
def test_binary_functions_take_a_number_a_list_of_numbers_or_of_tensors(name):
    a, b = lists()
    each = getattr(cg, f"_foreach_{name}")
    of_numbers = {"maximum": cg.clamp_min, "minimum": cg.clamp_max}.get(name, getattr(cg, name))
    same(each(a, 2.0), [of_numbers(t, 2.0) for t in a])
    same(each(a, [2.0, 3.0]), [of_numbers(t, v) for t, v in zip(a, (2.0, 3.0))])
    expected = [getattr(cg, name)(t, u) for t, u in zip(a, b)]
    same(each(a, b), expected)
    getattr(cg, f"_foreach_{name}_")(a, b)
    same(a, expected)


def test_compound_functions():
    a, b = lists()
    same(cg._foreach_add(a, b, alpha=2), [t + 2 * u for t, u in zip(a, b)])
    same(cg._foreach_addcmul(a, a, b, 0.5), [cg.addcmul(t, t, u, value=0.5) for t, u in zip(a, b)])
    same(cg._foreach_addcdiv(a, a, b, [1.0, 3.0]), [cg.addcdiv(t, t, u, value=v) for t, u, v in zip(a, b, (1.0, 3.0))])
    same(cg._foreach_lerp(a, b, 0.25), [cg.lerp(t, u, 0.25) for t, u in zip(a, b)])
    same(cg._foreach_pow(2.0, a), [2.0**t for t in a])
    same(cg._foreach_norm(a), [t.norm() for t in a])
    same(cg._foreach_max(a), [t.max() for t in a])
    expected = cg._foreach_addcdiv(a, a, b, 2.0)
    cg._foreach_addcdiv_(a, a, b, 2.0)
    same(a, expected)
    cg._foreach_copy_(a, b)
    same(a, b)
    cg._foreach_zero_(a)
    assert all(not t.any() for t in a)


def test_lists_must_fit():
    a, _ = lists()
    with pytest.raises(RuntimeError, match="^Tensor list must have at least one tensor."):
        cg._foreach_exp([])
    with pytest.raises(RuntimeError, match="^Tensor lists must have the same number of tensors, got 2 and 1"):
        cg._foreach_add(a, a[:1])
    with pytest.raises(RuntimeError, match="^Tensor list must have same number of elements as scalar list."):
        cg._foreach_add(a, [1.0])


def test_gradients_pass():
    a = [cg.tensor([1.0, 2.0], requires_grad=True), cg.tensor([3.0], requires_grad=True)]
    sum(t.sum() for t in cg._foreach_mul(a, a)).backward()
    assert [t.grad.tolist() for t in a] == [[2, 4], [6]]
