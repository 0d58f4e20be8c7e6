"""Hooks of modules: before and after forward, before and after backward, on one module and on all."""

import copy
import pickle

import pytest

import cudagrad as cg
from cudagrad import nn
from cudagrad.nn.modules import module as global_hooks


class Affine(nn.Module):
    """x, y -> x * w + y"""

    def __init__(self, w=2.0):
        super().__init__()
        self.w = nn.Parameter(cg.tensor(w))

    def forward(self, x, y=None):
        return x * self.w if y is None else x * self.w + y


def test_forward_hooks_may_change_arguments_and_output():
    m, x = Affine(), cg.tensor(3.0)
    with m.register_forward_pre_hook(lambda module, args: args[0] + 1):
        assert m(x).item() == 8.0
    assert m(x).item() == 6.0
    handle = m.register_forward_hook(lambda module, args, out: out * 10)
    assert m(x).item() == 60.0
    handle.remove()
    assert m(x).item() == 6.0


def test_hooks_with_kwargs_see_and_change_them():
    m, x = Affine(), cg.tensor(3.0)
    m.register_forward_pre_hook(lambda module, args, kwargs: (args, {"y": kwargs["y"] + 1}), with_kwargs=True)
    seen = []
    m.register_forward_hook(lambda module, args, kwargs, out: seen.append(kwargs["y"].item()), with_kwargs=True)
    assert m(x, y=cg.tensor(1.0)).item() == 8.0 and seen == [2.0]


def test_a_pre_hook_with_kwargs_returns_both():
    m = Affine()
    m.register_forward_pre_hook(lambda module, args, kwargs: args, with_kwargs=True)
    with pytest.raises(
        RuntimeError, match=r"^forward pre-hook must return None or a tuple of \(new_args, new_kwargs\)"
    ):
        m(cg.tensor(1.0))


def test_hooks_run_in_order_and_may_be_put_first():
    m, order = Affine(), []
    m.register_forward_hook(lambda *a: order.append("one"))
    m.register_forward_hook(lambda *a: order.append("two"))
    m.register_forward_hook(lambda *a: order.append("zero"), prepend=True)
    m.register_forward_pre_hook(lambda *a: order.append("pre"))
    m.register_forward_pre_hook(lambda *a: order.append("first"), prepend=True)
    m(cg.tensor(1.0))
    assert order == ["first", "pre", "zero", "one", "two"]


def test_always_called_hooks_run_after_an_error():
    class Broken(nn.Module):
        def forward(self, x):
            raise ValueError("broken")

    m, seen = Broken(), []
    m.register_forward_hook(lambda module, args, out: seen.append(out))
    m.register_forward_hook(lambda module, args, out: seen.append("always"), always_call=True)
    with pytest.raises(ValueError, match="^broken$"):
        m(1)
    assert seen == ["always"]

    def raises(*args):
        raise KeyError("second")

    m.register_forward_hook(raises, always_call=True)
    with pytest.warns(UserWarning, match="^module forward hook with ``always_call=True`` raised an exception that was"):
        with pytest.raises(ValueError, match="^broken$"):
            m(1)


def test_a_full_backward_hook_sees_gradients_of_inputs_and_outputs():
    m, seen = Affine(3.0), []
    m.register_full_backward_hook(lambda module, gin, gout: seen.append((gin, gout)))
    x, y = cg.tensor(2.0, requires_grad=True), cg.tensor(1.0, requires_grad=True)
    (m(x, y) * 5).backward()
    ((gx, gy), (gout,)) = seen[0]
    assert (gx.item(), gy.item(), gout.item()) == (15.0, 5.0, 5.0)
    assert m.w.grad.item() == 10.0


def test_a_full_backward_hook_may_replace_the_gradients():
    m = Affine(3.0)
    m.register_full_backward_pre_hook(lambda module, gout: (gout[0] * 10,))
    m.register_full_backward_hook(lambda module, gin, gout: (gin[0] + 1, None))
    x = cg.tensor(2.0, requires_grad=True)
    m(x, 4).backward()
    assert x.grad.item() == 31.0 and m.w.grad.item() == 20.0


def test_a_full_backward_hook_fires_with_none_where_no_input_requires_grad():
    m, seen = Affine(), []
    m.register_full_backward_hook(lambda module, gin, gout: seen.append((gin, gout[0].item())))
    with pytest.warns(UserWarning, match="^Full backward hook is firing when gradients are computed with respect to"):
        m(cg.tensor(2.0)).backward()
    assert seen == [((None,), 1.0)]


def test_constant_inputs_get_zeros_and_what_is_no_tensor_none():
    class Three(nn.Module):
        def forward(self, a, n, b):
            return a * n + b, a

    m, seen = Three(), []
    m.register_full_backward_hook(lambda module, gin, gout: seen.append((gin, gout)))
    a, b = cg.tensor(2.0, requires_grad=True), cg.tensor(1.0)
    out, _ = m(a, 3, b)
    out.backward()
    (ga, gn, gb), (g0, g1) = seen[0]
    assert ga.item() == 3.0 and gn is None and gb.item() == 0.0 and g0.item() == 1.0 and g1 is None


def test_a_wrong_number_of_gradients_is_refused():
    m = Affine()
    m.register_full_backward_hook(lambda module, gin, gout: (gin[0], gin[0]))
    with pytest.raises(RuntimeError, match="^Backward hook returned an invalid number of grad_input, got 2, but expec"):
        m(cg.tensor(2.0, requires_grad=True)).backward()
    m = Affine()
    m.register_full_backward_pre_hook(lambda module, gout: ())
    with pytest.raises(RuntimeError, match="^Backward pre hook returned an invalid number of grad_output, got 0, but"):
        m(cg.tensor(2.0, requires_grad=True)).backward()


def test_full_and_old_backward_hooks_do_not_mix():
    m = Affine()
    m.register_full_backward_hook(lambda *a: None)
    with pytest.raises(
        RuntimeError, match="^Cannot use both regular backward hooks and full backward hooks on a single"
    ):
        m.register_backward_hook(lambda *a: None)


def test_a_second_derivative_goes_through_full_backward_hooks():
    m = Affine(3.0)
    m.register_full_backward_hook(lambda module, gin, gout: None)
    x = cg.tensor(2.0, requires_grad=True)
    (g,) = cg.autograd.grad(m(x * x), x, create_graph=True)
    (h,) = cg.autograd.grad(g, x)
    assert (g.item(), h.item()) == (12.0, 6.0)


def test_an_old_backward_hook_sees_the_last_node_and_warns():
    m, seen = Affine(), []
    m.register_backward_hook(lambda module, gin, gout: seen.append(gout[0].item()))
    x = cg.tensor(2.0, requires_grad=True)
    with pytest.warns(FutureWarning, match="^Using a non-full backward hook when the forward contains multiple"):
        y = m(x)
    y.backward()
    assert seen == [1.0]


def test_backward_hooks_need_tensors_as_output():
    class Dict(nn.Module):
        def forward(self, x):
            return {"x": x}

    m = Dict()
    m.register_full_backward_hook(lambda *a: None)
    with pytest.warns(UserWarning, match="^For backward hooks to be called, module output should be a Tensor or a tup"):
        m(cg.tensor(1.0, requires_grad=True))


def test_global_hooks_run_before_the_modules_own_and_for_every_module():
    order = []
    m = nn.Sequential(Affine())
    m[0].register_forward_hook(lambda *a: order.append("own"))
    handles = [
        global_hooks.register_module_forward_pre_hook(lambda module, args: order.append("pre")),
        global_hooks.register_module_forward_hook(lambda module, args, out: order.append(type(module).__name__)),
        global_hooks.register_module_full_backward_hook(lambda module, gin, gout: order.append("back")),
    ]
    try:
        m(cg.tensor(1.0, requires_grad=True)).backward()
    finally:
        for handle in handles:
            handle.remove()
    assert order == ["pre", "pre", "Affine", "own", "Sequential", "back", "back"]
    order.clear()
    m(cg.tensor(1.0))
    assert order == ["own"]


def test_registration_hooks_may_replace_what_is_registered():
    other = nn.Parameter(cg.zeros(3))
    with global_hooks.register_module_parameter_registration_hook(lambda module, name, p: other):
        m = Affine()
    assert m.w is other
    names = []
    with global_hooks.register_module_module_registration_hook(lambda module, name, child: names.append(name)):
        nn.Sequential(Affine())
    with global_hooks.register_module_buffer_registration_hook(lambda module, name, b: names.append(name)):
        m.register_buffer("b", cg.zeros(1))
    assert names == ["0", "b"]


def scale(module, args, out):
    return out * 10


def test_hooks_are_copied_and_pickled_with_the_module():
    m = Affine()
    handle = m.register_forward_hook(scale, with_kwargs=False)
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert other(cg.tensor(1.0)).item() == 20.0
    handle.remove()
    assert m(cg.tensor(1.0)).item() == 2.0 and other(cg.tensor(1.0)).item() == 20.0


def test_a_handle_takes_all_its_marks_away():
    m = Affine()
    handle = m.register_forward_hook(lambda *a: None, with_kwargs=True, always_call=True)
    handle.remove()
    assert not m._forward_hooks and not m._forward_hooks_with_kwargs and not m._forward_hooks_always_called


@pytest.mark.peer
def test_hook_order_and_gradients_are_pytorchs():
    torch = pytest.importorskip("torch")

    def run(lib):
        class Mul(lib.nn.Module):
            def forward(self, a, b):
                return a * b, a + b

        order = []
        m = lib.nn.Sequential()
        mul = Mul()
        m.add_module("mul", mul)

        def show(t):
            return None if t is None else t.tolist()

        mul.register_full_backward_pre_hook(lambda module, gout: order.append(("pre", [show(g) for g in gout])))
        mul.register_full_backward_hook(
            lambda module, gin, gout: order.append(([show(g) for g in gin], [show(g) for g in gout]))
        )
        a = lib.tensor([1.0, 2.0], requires_grad=True)
        b = lib.tensor([3.0, 4.0])
        first, second = mul(a, b)
        first.sum().backward(retain_graph=True)
        (first * second).sum().backward()
        return order, a.grad.tolist()

    assert run(cg) == run(torch)
