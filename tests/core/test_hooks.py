"""Hooks, user-defined functions and what is saved: their order and their errors."""

import numpy as np
import pytest

import cudagrad as cg
from cudagrad.autograd import Function, grad, gradcheck, gradgradcheck
from cudagrad.autograd.function import once_differentiable
from cudagrad.autograd.graph import saved_tensors_hooks


def leaf(*values):
    return cg.tensor(list(values), dtype=cg.float64, requires_grad=True)


def test_retain_grad_reads_the_value_after_all_tensor_hooks():
    x = leaf(1.0)
    y = x * 1
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    y.sum().backward()
    assert y.grad.tolist() == [10.0]
    assert x.grad.tolist() == [10.0]


def test_hooks_run_in_pytorchs_order():
    x = leaf(2.0)
    y = x * 3
    seen = []
    y.register_hook(lambda g: seen.append("tensor"))
    y.grad_fn.register_prehook(lambda gs: seen.append("pre"))
    y.grad_fn.register_hook(lambda ins, outs: seen.append("post"))
    x.register_hook(lambda g: seen.append("leaf"))
    x.register_post_accumulate_grad_hook(lambda t: seen.append(("accumulated", t.grad.tolist())))
    y.sum().backward()
    assert seen == ["tensor", "pre", "post", "leaf", ("accumulated", [3.0])]


def test_a_removed_hook_does_not_run():
    x = leaf(1.0)
    handle = x.register_hook(lambda g: g * 10)
    (x * 2).sum().backward()
    handle.remove()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [22.0]


def test_a_hook_registered_before_an_in_place_op_sees_the_gradient_before_it():
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    y.mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [60.0]


def test_grad_runs_tensor_hooks_but_not_post_accumulate_hooks():
    x = leaf(1.0)
    seen = []
    x.register_hook(lambda g: g * 2)
    x.register_post_accumulate_grad_hook(lambda t: seen.append(1))
    (g,) = grad((x * 3).sum(), x)
    assert g.tolist() == [6.0]
    assert seen == []


def test_a_hook_may_not_change_the_shape():
    x = leaf(1.0, 2.0)

    def grow(g):
        return cg.ones(3, dtype=cg.float64)

    x.register_hook(grow)
    with pytest.raises(RuntimeError, match="^hook 'grow' has changed the size of value"):
        (x * 1).sum().backward()


def test_a_hook_needs_a_tensor_that_wants_a_gradient():
    with pytest.raises(RuntimeError, match="^cannot register a hook on a tensor that doesn't require gradient"):
        cg.ones(1).register_hook(print)


def test_a_post_hook_may_replace_the_gradients_it_sees():
    x, y = leaf(2.0), leaf(5.0)
    z = x * y
    z.grad_fn.register_hook(lambda ins, outs: (ins[0] * 100, ins[1]))
    z.sum().backward()
    assert x.grad.tolist() == [500.0]
    assert y.grad.tolist() == [2.0]


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 2 * x


class SquareApart(Function):
    @staticmethod
    def forward(x, power):
        return x**power

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.power = inputs
        ctx.save_for_backward(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.power * x ** (ctx.power - 1), None


@pytest.mark.parametrize("apply", [Square.apply, lambda x: SquareApart.apply(x, 2)], ids=["ctx", "setup_context"])
def test_a_function_is_differentiable_twice(apply):
    x = leaf(1.5, -2.0)
    assert gradcheck(apply, x)
    assert gradgradcheck(apply, x)
    assert apply(x).grad_fn.name() in ("SquareBackward", "SquareApartBackward")


def test_needs_input_grad_and_grad_mode_in_backward():
    seen = []

    class F(Function):
        @staticmethod
        def forward(ctx, a, b, c):
            return a * b

        @staticmethod
        def backward(ctx, g):
            seen.append((ctx.needs_input_grad, cg.is_grad_enabled()))
            return g, None, None

    x = leaf(1.0)
    F.apply(x, cg.ones(1, dtype=cg.float64), 3).sum().backward()
    grad(F.apply(x, cg.ones(1, dtype=cg.float64), 3).sum(), x, create_graph=True)
    assert seen == [((True, False, False), False), ((True, False, False), True)]


def returning(*given):
    class F(Function):
        @staticmethod
        def forward(ctx, a, b):
            return a * b

        @staticmethod
        def backward(ctx, g):
            return given

    F.__name__ = "Fn"
    return F


def test_a_wrong_count_of_gradients_is_an_error():
    x = leaf(1.0)
    one = cg.ones(1, dtype=cg.float64)
    with pytest.raises(RuntimeError, match=r"returned an incorrect number of gradients \(expected 2, got 1\)"):
        returning(one).apply(x, x).sum().backward()
    returning(one, one, None, None).apply(x, x).sum().backward()
    with pytest.raises(RuntimeError, match="gradient different than None at position 2"):
        returning(one, one).apply(x, 3.0).sum().backward()


def test_a_gradient_that_is_only_broadcast_bigger_is_summed():
    x = leaf(1.0, 2.0)
    returning(cg.ones(3, 2, dtype=cg.float64), None).apply(x, 1.0).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match=r"returned an invalid gradient at index 0 - got \[3\] but expected shape"):
        returning(cg.ones(3, dtype=cg.float64), None).apply(x, 1.0).sum().backward()


def test_none_leaves_the_gradient_undefined():
    x = leaf(1.0)
    returning(None, None).apply(x, 1.0).sum().backward()
    assert x.grad is None


@pytest.mark.parametrize("materialize", [True, False])
def test_unused_outputs_have_zero_gradients_unless_told(materialize):
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(materialize)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, g, h):
            seen.append(None if h is None else h.tolist())
            return g * 2

    x = leaf(1.0)
    Two.apply(x)[0].sum().backward()
    assert seen == [[0.0] if materialize else None]
    assert x.grad.tolist() == [2.0]


def test_a_returned_input_is_a_new_tensor_with_the_functions_node():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 5

    x = leaf(1.0)
    y = Same.apply(x)
    assert y is not x
    assert y.grad_fn.name() == "SameBackward"
    assert y.data_ptr() == x.data_ptr()
    y.sum().backward()
    assert x.grad.tolist() == [5.0]


def test_mark_dirty_gives_the_written_input_the_new_history():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            x.mul_(2)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    w = leaf(3.0)
    y = w * 1
    z = Double.apply(y)
    assert z is y
    z.sum().backward()
    assert w.grad.tolist() == [2.0]
    with pytest.raises(
        RuntimeError, match="^a leaf Variable that requires grad has been used in an in-place operation"
    ):
        Double.apply(leaf(1.0))


def test_mark_non_differentiable_outputs_want_no_gradient():
    class Sort(Function):
        @staticmethod
        def forward(ctx, x):
            index = x.argsort()
            ctx.mark_non_differentiable(index)
            ctx.save_for_backward(index)
            return x[index], index

        @staticmethod
        def backward(ctx, g, _):
            (index,) = ctx.saved_tensors
            return cg.zeros_like(g).index_put((index,), g)

    x = leaf(3.0, 1.0, 2.0)
    values, index = Sort.apply(x)
    assert not index.requires_grad
    (values * cg.tensor([1.0, 10.0, 100.0], dtype=cg.float64)).sum().backward()
    assert x.grad.tolist() == [100.0, 1.0, 10.0]


def test_once_differentiable_refuses_a_second_derivative():
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 2 * x

    x, v = leaf(2.0), leaf(1.0)
    Once.apply(x).sum().backward()
    assert x.grad.tolist() == [4.0]
    (g,) = grad(Once.apply(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="^element 0 of tensors does not require grad"):
        g.sum().backward()
    (g,) = grad(Once.apply(x), x, v, create_graph=True)
    with pytest.raises(RuntimeError, match="^trying to differentiate twice a function that was marked with @once"):
        g.sum().backward()


def test_a_legacy_function_is_refused():
    with pytest.raises(RuntimeError, match="^Legacy autograd function with non-static forward method is deprecated"):
        Square()(leaf(1.0))


def test_a_saved_tensor_changed_since_is_noticed():
    x = leaf(1.0)
    y = x * 1
    z = Square.apply(y)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


class Twice(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g


@pytest.mark.parametrize("act", [lambda x: x.exp().log(), Twice.apply], ids=["op", "Function"])
def test_what_a_pack_hook_computes_is_not_recorded(act):
    seen = []

    def pack(t):
        seen.append((cg.is_grad_enabled(), (t * 1).requires_grad))
        return t

    x = leaf(1.0, 2.0)
    with saved_tensors_hooks(pack, lambda t: t):
        y = act(x)
    assert seen and set(seen) == {(False, False)} and cg.is_grad_enabled()
    y.sum().backward()
    assert x.grad is not None


def test_saved_tensors_hooks_see_what_is_saved():
    packed, unpacked = [], []

    def pack(t):
        packed.append(t.tolist())
        return t.numpy(force=True).copy()

    def unpack(a):
        unpacked.append(a.tolist())
        return cg.from_numpy(a)

    x = leaf(2.0)
    with saved_tensors_hooks(pack, unpack):
        y = (x.exp() * x).sum()
    y.backward()
    e = float(np.exp(2.0))
    assert sorted(v for (v,) in packed) == pytest.approx([2.0, e, e])
    assert len(unpacked) == len(packed)
    assert x.grad.item() == pytest.approx(3 * e)


def test_save_on_cpu_keeps_gradients_right():
    x = leaf(2.0, 3.0)
    with cg.autograd.graph.save_on_cpu():
        y = (x * x * x).sum()
    assert grad(y, x, create_graph=True)[0].tolist() == [12.0, 27.0]


def test_gradcheck_finds_a_wrong_derivative():
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * x.cos() * 1.01

    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="^Jacobian mismatch for output 0 with respect to input 0"):
        gradcheck(Wrong.apply, x)
    assert not gradcheck(Wrong.apply, x, raise_exception=False)
    assert not gradcheck(Wrong.apply, x, raise_exception=False, fast_mode=True)
    assert gradcheck(lambda t: t.sin(), x)


def test_gradcheck_of_a_complex_function():
    z = cg.tensor([1 + 2j, -0.5 + 0.25j], dtype=cg.complex128, requires_grad=True)
    assert gradcheck(lambda t: t * t + t.conj(), z)
    assert gradcheck(lambda t: t.abs(), z)


def test_checkpoint_gives_the_same_gradients_and_random_numbers():
    from cudagrad.utils.checkpoint import checkpoint

    def f(x, w):
        return cg.nn.functional.dropout((x @ w).tanh(), 0.5) @ w

    cg.manual_seed(3)
    x = cg.randn(4, 4, dtype=cg.float64, requires_grad=True)
    w = cg.randn(4, 4, dtype=cg.float64, requires_grad=True)
    results = []
    for run in (f, lambda x, w: checkpoint(f, x, w, use_reentrant=False)):
        cg.manual_seed(7)
        y = run(x, w)
        after = cg.rand(1).item()
        results.append((y.tolist(), [g.tolist() for g in grad(y.sum(), [x, w])], after))
    assert results[0] == results[1]


def test_anomaly_detection_names_the_branch_of_where_that_was_not_taken():
    x = leaf(0.0, 4.0)
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"), cg.autograd.detect_anomaly():
        y = cg.where(x > 0, x.sqrt(), x).sum()  # the untaken branch
        with (
            pytest.warns(UserWarning, match="Error detected in SqrtBackward0"),
            pytest.raises(
                RuntimeError, match="(?s)^Function 'SqrtBackward0' returned nan values in its 0th output.*not taken"
            ),
        ):
            y.backward()


def test_anomaly_detection_names_the_first_forward_value_that_is_not_finite():
    x = leaf(-1.0)
    with cg.autograd.set_detect_anomaly(True):
        y = x.log()  # made here
        z = (y * 2).sum()
        with (
            pytest.warns(UserWarning, match="Error detected in"),
            pytest.raises(RuntimeError, match="(?s)made by log .*made here"),
        ):
            (z * x).sum().backward()


def test_anomaly_detection_that_ends_leaves_the_one_round_it_as_it_was():
    x = leaf(0.0)
    with cg.autograd.set_detect_anomaly(True):
        with cg.autograd.set_detect_anomaly(False):
            (x.sqrt() * 0).sum().backward()  # 0 * inf, and nobody looks
        with (
            pytest.warns(UserWarning, match="Error detected in SqrtBackward0"),
            pytest.raises(RuntimeError, match="returned nan"),
        ):
            (x.sqrt() * 0).sum().backward()


def test_a_watcher_that_ends_early_takes_no_other_with_it():
    x = cg.ones(2, 2)
    anomaly = cg.autograd.set_detect_anomaly(True)
    with cg.autocast("cpu"):
        anomaly.__exit__()
        assert (x @ x).dtype is cg.bfloat16
    assert (x @ x).dtype is cg.float32


def test_a_hook_on_the_node_of_a_leaf_runs_after_the_gradient_is_added():
    x = leaf(2.0)
    seen = []
    (x * 3).grad_fn.next_functions[0][0].register_hook(
        lambda ins, outs: seen.append((ins, outs[0].tolist(), x.grad.tolist()))
    )
    (x * 3).sum().backward()
    assert seen == [((), [3.0], [3.0])]


class Same(Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 5


class Flat(Function):
    @staticmethod
    def forward(ctx, x):
        return x.view(-1)

    @staticmethod
    def backward(ctx, g):
        return g.view(2) * 5


@pytest.mark.parametrize("function", [Same, Flat])
def test_an_output_that_is_a_view_of_an_input_may_not_be_written(function):
    for x in (leaf(1.0, 2.0), leaf(1.0, 2.0) * 1):
        y = function.apply(x)
        assert y._base is x
        for part in (y, y[:1]):
            with pytest.raises(
                RuntimeError, match="is a view and is being modified inplace. This view was created inside a"
            ):
                part.mul_(2)
        assert x.tolist() == [1.0, 2.0]
    x = cg.ones(2)
    function.apply(x).mul_(2)
    assert x.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("function", [Same, Flat])
def test_an_output_that_is_a_view_of_what_was_written_since_has_no_gradient(function):
    x = leaf(1.0, 2.0) * 1
    y = function.apply(x)
    x.mul_(2)
    with pytest.raises(
        RuntimeError, match="is a view and its base or another view of its base has been modified inplace"
    ):
        y.sum().backward()


def test_keywords_and_defaults_are_arguments_of_a_function():
    class Power(Function):
        @staticmethod
        def forward(x, power=2, scale=1):
            return x**power * scale

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.inputs = inputs

        @staticmethod
        def backward(ctx, g):
            x, power, scale = ctx.inputs
            return g * power * scale * x ** (power - 1), None, None

    class Scaled(Function):
        @staticmethod
        def forward(ctx, x, scale=2):
            ctx.scale = scale
            return x * scale

        @staticmethod
        def backward(ctx, g):
            return g * ctx.scale, None

    x = leaf(3.0)
    for y, expected in (
        (Power.apply(x), 6.0),
        (Power.apply(x, 3), 27.0),
        (Power.apply(x, scale=4), 24.0),
        (Power.apply(scale=4, x=x), 24.0),
        (Scaled.apply(x), 2.0),
        (Scaled.apply(x, scale=5), 5.0),
        (Scaled.apply(scale=5, x=x), 5.0),
    ):
        assert grad(y.sum(), x)[0].tolist() == [expected]
    with pytest.raises(TypeError, match="unexpected keyword argument 'zz'"):
        Scaled.apply(x, zz=1)


def test_what_a_function_may_not_save_or_return():
    class Saves(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, 5)
            return x * 1

    with pytest.raises(TypeError, match="^save_for_backward can only save variables, but argument 1 is of type int"):
        Saves.apply(leaf(1.0))
    with pytest.raises(RuntimeError, match=r"^expected Variable or None \(got float\)"):
        returning(1.0, None).apply(leaf(1.0), 1.0).sum().backward()


def test_a_saved_output_of_a_function_changed_since_is_noticed():
    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            out = x.exp()
            ctx.save_for_backward(out)
            return out

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    x = leaf(1.0)
    y = Exp.apply(x)
    y.mul_(2)
    with pytest.raises(
        RuntimeError, match=r"modified by an inplace operation: \[torch.DoubleTensor \[1\]\], which is output 0 o"
    ):
        y.sum().backward()
