"""The declaration of an op: what it refuses, what it makes, and what it shows."""

import pickle

import numpy as np
import pytest

import cudagrad as cg
from cudagrad.core.op import TABLE, op


@pytest.fixture
def table():
    """The table of ops, put back as it was."""
    before = dict(TABLE)
    yield TABLE
    TABLE.clear()
    TABLE.update(before)


def test_a_formula_that_asks_for_what_there_is_not_is_refused_at_declaration(table):
    with pytest.raises(TypeError, match="odd: the derivative by x asks for outt; it may ask for g, m, needs, out, x"):

        @op(x=lambda g, outt: g)
        def odd(xp, x):
            return x


def test_a_polymorphic_formula_may_not_ask_for_an_extra_of_the_forward(table):
    with pytest.raises(TypeError, match="odd: the joint derivative asks for rstd"):

        @op(joint=lambda m, g, x, rstd: (g * rstd,), extras=("rstd",))
        def odd(xp, x):
            return x, 1.0


def test_a_derivative_by_no_tensor_is_refused(table):
    with pytest.raises(TypeError, match="odd: y is no tensor of this op; it has x"):

        @op(y=lambda g: g)
        def odd(xp, x):
            return x


def test_a_name_that_would_hide_the_generated_codes_own_is_refused(table):
    with pytest.raises(TypeError, match="odd: k would hide a name that the generated code uses"):

        @op(x=lambda g: g)
        def odd(xp, x, *, k):
            return x


def test_a_new_op_is_differentiable_twice_and_keeps_only_what_its_formula_names(table):
    @op(x=lambda m, g, x: g * m.cos(x))
    def sine(xp, x):
        """sin(x)."""
        return xp.sin(x)

    x = cg.tensor([0.5, 2.0], dtype=cg.float64, requires_grad=True)
    y = sine(x)
    assert y.grad_fn.name() == "SineBackward0"
    assert y.grad_fn._saved_self is x
    (g,) = cg.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = cg.autograd.grad(g.sum(), x)
    assert np.allclose(g.detach().numpy(), np.cos([0.5, 2.0]))
    assert np.allclose(h.numpy(), -np.sin([0.5, 2.0]))
    assert sine.__doc__ == "sin(x)."


def test_the_generated_text_can_be_read_and_is_named_in_tracebacks():
    source = TABLE["mul"].source()
    assert "d = a_x * a_y" in source
    assert "def back_mul(k, g, heap):" in source


def test_public_functions_can_be_pickled_and_take_pytorchs_keywords():
    assert pickle.loads(pickle.dumps(cg.tanh)) is cg.tanh
    assert cg.add(input=cg.ones(1), other=2.0).item() == 3.0
    with pytest.raises(TypeError, match="unexpected keyword argument 'dims'"):
        cg.tanh(cg.ones(1), dims=0)


def test_a_list_op_is_called_the_same_in_formulas_over_arrays_and_over_tensors(table):
    @op(x=lambda m, g: m.cat([g, g], dim=0))
    def halved(xp, x):
        n = x.shape[0] // 2
        return x[:n] + x[n:]

    x = cg.arange(4.0, dtype=cg.float64).requires_grad_()
    halved(x).sum().backward()
    assert x.grad.tolist() == [1.0] * 4
    assert cg.autograd.gradgradcheck(halved, x)
