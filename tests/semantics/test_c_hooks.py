"""Hooks and custom functions: what the tests of core and nn leave open of section C, by line."""

import gc
import weakref

import pytest

import cudagrad as cg
from cudagrad.autograd import Function, grad


def leaf(*values):
    return cg.tensor(list(values), dtype=cg.float64, requires_grad=True)


def test_32_the_whole_order_with_retained_gradients_and_two_hooks_of_each_kind():
    x = leaf(2.0)
    y = x * 3
    seen = []
    y.register_hook(lambda g: seen.append("tensor 1"))
    y.retain_grad()
    y.register_hook(lambda g: seen.append("tensor 2") or g * 10)
    y.grad_fn.register_prehook(lambda gs: seen.append(("pre 1", y.grad.tolist(), gs[0].tolist())))
    y.grad_fn.register_prehook(lambda gs: seen.append("pre 2"))
    y.grad_fn.register_hook(lambda ins, outs: seen.append(("post 1", ins[0].tolist(), outs[0].tolist())))
    y.grad_fn.register_hook(lambda ins, outs: seen.append("post 2"))
    x.register_hook(lambda g: seen.append("leaf 1") or g + 1)
    x.register_hook(lambda g: seen.append(("leaf 2", g.tolist(), x.grad)))
    x.register_post_accumulate_grad_hook(lambda t: seen.append(("accumulated 1", t.grad.tolist())))
    x.register_post_accumulate_grad_hook(lambda t: seen.append("accumulated 2"))
    y.sum().backward()
    assert seen == [
        *("tensor 1", "tensor 2", ("pre 1", [10.0], [10.0]), "pre 2", ("post 1", [30.0], [10.0]), "post 2"),
        *("leaf 1", ("leaf 2", [31.0], None), ("accumulated 1", [31.0]), "accumulated 2"),
    ]


def test_32_a_retained_gradient_is_read_after_hooks_registered_later():
    y = leaf(1.0) * 1
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    y.sum().backward()
    assert y.grad.tolist() == [10.0]


def test_32_a_pre_hook_changes_what_the_node_gets_and_not_what_was_retained():
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    y.grad_fn.register_prehook(lambda gs: (gs[0] * 5,))
    y.sum().backward()
    assert y.grad.tolist() == [1.0]
    assert x.grad.tolist() == [10.0]


def test_33_hooks_before_and_after_an_in_place_op_see_each_their_gradient():
    x = leaf(1.0)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(("before", g.item())))
    y.mul_(3)
    y.register_hook(lambda g: seen.append(("after", g.item())))
    (y * 7).sum().backward()
    assert seen == [("after", 7.0), ("before", 21.0)]
    assert x.grad.tolist() == [42.0]


def test_33_a_gradient_retained_before_an_in_place_op_is_that_of_the_new_value():
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    (y * 7).sum().backward()
    assert y.grad.tolist() == [7.0]
    assert x.grad.tolist() == [42.0]


def test_34_hooks_of_inputs_and_of_what_lies_between_run_for_grad_too():
    x = leaf(1.0)
    y = x * 2
    seen = []
    x.register_hook(lambda g: seen.append("x") or g * 10)
    y.register_hook(lambda g: seen.append("y") or g * 100)
    x.register_post_accumulate_grad_hook(lambda t: seen.append("never"))
    assert grad((y * y).sum(), [x, y])[0].tolist() == [4 * 100 * 2 * 10.0]
    assert seen == ["y", "x"]


def test_34_what_a_hook_may_not_return():
    def text(g):
        return "g"

    x = leaf(1.0, 2.0)
    x.register_hook(text)
    with pytest.raises(TypeError, match="^expected Variable, but hook returned 'str'"):
        (x * 1).sum().backward()
    y = leaf(1.0)
    y.register_hook(lambda g: g.float())
    with pytest.raises(
        RuntimeError, match=r"^hook '<lambda>' has changed the type of value \(was torch.DoubleTensor got "
    ):
        (y * 1).sum().backward()
    z = leaf(1.0)
    z.register_post_accumulate_grad_hook(lambda t: t.grad)
    with pytest.raises(RuntimeError, match="^Tensor post accumulate grad hooks should return None."):
        (z * 1).sum().backward()


@pytest.mark.parametrize(
    "change", [lambda v: v[0], lambda v: (*v, v[0]), lambda v: "a", lambda v: (v[0].float(), *v[1:])]
)
@pytest.mark.parametrize("where", ["register_hook", "register_prehook"])
def test_34_hooks_of_a_node_return_as_many_gradients_of_the_same_kind_or_nothing(change, where):
    x = leaf(1.0)
    y = x * 2
    getattr(y.grad_fn, where)(lambda v, *_: change(v))
    with pytest.raises(
        (RuntimeError, TypeError), match="^expected tuple, but hook returned '(Tensor|str)'|^hook '<lambda>' has "
    ):
        y.sum().backward()
    assert x.grad is None


@pytest.mark.parametrize("where", ["itself", "a view", "its base"])
def test_33_a_retained_gradient_follows_writes_into(where):
    x = leaf(1.0, 2.0)
    y = x * 2
    view = y[0]
    y.retain_grad()
    view.retain_grad()
    {"itself": y, "a view": view, "its base": y}[where].mul_(3)
    assert y.retains_grad
    assert view.retains_grad
    (y.sum() * 7 + view * 5).backward()
    assert view.grad.item() == 5.0
    assert y.grad.tolist() == [12.0, 7.0]


def test_35_a_module_hook_without_an_input_that_wants_a_gradient_warns_and_gets_none():
    m = cg.nn.Linear(2, 1)
    seen = []
    m.register_full_backward_hook(lambda module, gi, go: seen.append(gi))
    with pytest.warns(
        UserWarning, match="^Full backward hook is firing when gradients are computed with respect to module outp"
    ):
        m(cg.ones(3, 2)).sum().backward()
    assert seen == [(None,)]


def test_36_the_count_of_gradients_is_that_of_all_arguments():
    class Fn(Function):
        @staticmethod
        def forward(ctx, a, b, c):
            return a * 1

        @staticmethod
        def backward(ctx, g):
            return g, None

    with pytest.raises(RuntimeError) as raised:
        Fn.apply(leaf(1.0), 2, None).sum().backward()
    assert str(raised.value).split("\n")[0] == (
        "function FnBackward returned an incorrect number of gradients (expected 3, got 2)"
    )


def test_36_the_grad_mode_of_backward_comes_back_after_it():
    class Fn(Function):
        @staticmethod
        def forward(ctx, a):
            assert not cg.is_grad_enabled()
            return a * 1

        @staticmethod
        def backward(ctx, g):
            assert not cg.is_grad_enabled()
            with cg.enable_grad():
                assert cg.is_grad_enabled()
            return g

    Fn.apply(leaf(1.0)).sum().backward()
    assert cg.is_grad_enabled()
    with cg.no_grad():
        assert not Fn.apply(leaf(1.0)).requires_grad


def test_37_a_gradient_with_size_one_dims_is_summed():
    class Fn(Function):
        @staticmethod
        def forward(ctx, a):
            return a * 1

        @staticmethod
        def backward(ctx, g):
            return cg.ones(4, 2, 3, dtype=cg.float64)

    x = cg.zeros(2, 1, dtype=cg.float64, requires_grad=True)
    Fn.apply(x).sum().backward()
    assert x.grad.tolist() == [[12.0], [12.0]]


def test_38_an_output_used_twice_and_one_not_at_all():
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2, a.new_ones(3), a * 3

        @staticmethod
        def backward(ctx, *gs):
            seen.append([None if g is None else g.tolist() for g in gs])
            return gs[0] * 2 + gs[2] * 3

    x = leaf(1.0)
    a, b, c = Two.apply(x)
    assert [t.output_nr for t in (a, b, c)] == [0, 1, 2]
    (a + a * c.detach()).sum().backward()
    assert seen == [[[4.0], [0.0] * 3, [0.0]]]
    assert x.grad.tolist() == [8.0]


def test_39_a_write_that_was_not_marked_is_accepted_where_the_input_is_returned():
    class Fn(Function):
        @staticmethod
        def forward(ctx, a):
            a.mul_(2)
            return a

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf(3.0)
    y = x * 1
    z = Fn.apply(y)
    assert z is not y
    assert z.tolist() == y.tolist() == [6.0]
    assert z.grad_fn.name() == "FnBackward"
    z.sum().backward()
    assert x.grad.tolist() == [2.0]


def test_40_an_input_kept_as_an_attribute_is_differentiated_twice():
    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.x = x
            return x**3

        @staticmethod
        def backward(ctx, g):
            return g * 3 * ctx.x**2

    x = leaf(2.0)
    (g,) = grad(Cube.apply(x).sum(), x, create_graph=True)
    assert grad(g.sum(), x)[0].tolist() == [12.0]


class Exp(Function):
    @staticmethod
    def forward(ctx, x):
        out = x.exp()
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, g):
        (out,) = ctx.saved_tensors
        return g * out


class Leaking(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.out = x.exp()
        return ctx.out

    @staticmethod
    def backward(ctx, g):
        return g * ctx.out


@pytest.mark.parametrize("function, freed", [(Exp, True), (Leaking, False)], ids=["saved", "attribute"])
def test_40_a_saved_output_makes_no_cycle_and_one_kept_as_an_attribute_does(function, freed):
    gc.collect()
    gc.disable()
    try:
        y = function.apply(leaf(1.0))
        y.sum().backward()
        gone = weakref.ref(y.grad_fn)
        del y
        assert (gone() is None) is freed
    finally:
        gc.enable()
    gc.collect()
    assert gone() is None


def test_40_the_second_derivative_of_a_saved_output():
    x = leaf(0.0)
    y = Exp.apply(x)
    for _ in range(3):
        (y,) = grad(y.sum(), x, create_graph=True)
        assert y.item() == 1.0


def test_41_the_text_for_functions_that_are_called():
    with pytest.raises(RuntimeError) as raised:
        Exp()(leaf(1.0))
    assert str(raised.value).split("\n")[0] == (
        "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function "
        "with static forward method. (Example: https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
    )
