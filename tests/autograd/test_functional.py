"""Jacobians, Hessians and their products, against their closed forms."""

import numpy as np
import pytest

import cudagrad as cg
from cudagrad.autograd import functional, gradgradcheck

X, V = np.array([1.0, 2.0, -3.0]), np.array([0.5, -1.0, 2.0])


def pair():
    return cg.tensor(X), cg.tensor(V)


def cubes(x):
    return (x**3).sum()


def test_jacobian_of_squares_is_a_diagonal():
    assert functional.jacobian(lambda x: x * x, pair()[0]).numpy() == pytest.approx(np.diag(2 * X))


def test_jacobian_of_several_outputs_by_several_inputs():
    (by_x, by_y), (sum_by_x, sum_by_y) = functional.jacobian(lambda x, y: (x * y, y.sum()), pair())
    assert by_x.numpy() == pytest.approx(np.diag(V)) and by_y.numpy() == pytest.approx(np.diag(X))
    assert sum_by_x.tolist() == [0.0, 0.0, 0.0] and sum_by_y.tolist() == [1.0, 1.0, 1.0]


def test_jacobian_of_what_is_empty_has_both_shapes():
    assert functional.jacobian(lambda x: x[:0], pair()[0]).shape == (0, 3)


def test_hessian_of_cubes_is_a_diagonal():
    assert functional.hessian(cubes, pair()[0]).numpy() == pytest.approx(np.diag(6 * X))


def test_products_with_the_hessian_of_cubes():
    x, v = pair()
    for product in (functional.hvp, functional.vhp):
        value, along = product(cubes, x, v)
        assert value.item() == pytest.approx((X**3).sum())
        assert along.numpy() == pytest.approx(6 * X * V)


def test_products_with_the_jacobian_of_a_matrix_are_products_with_it():
    x, v = pair()
    a = np.arange(12.0).reshape(4, 3)
    u = np.array([1.0, -1.0, 2.0, 0.0])
    outputs, along = functional.jvp(lambda x: cg.tensor(a) @ x, x, v)
    assert outputs.numpy() == pytest.approx(a @ X) and along.numpy() == pytest.approx(a @ V)
    assert functional.vjp(lambda x: cg.tensor(a) @ x, x, cg.tensor(u))[1].numpy() == pytest.approx(u @ a)


def test_a_vector_of_the_wrong_shape_is_refused():
    x, v = pair()
    with pytest.raises(RuntimeError, match=r"Entry 0 in v has invalid size: should be torch.Size\(\[3\]\)"):
        functional.jvp(lambda x: x, x, v[:2])
    with pytest.raises(RuntimeError, match="v is a tuple of invalid length: should be 1 but got 2"):
        functional.vjp(lambda x: x, x, (v, v))
    with pytest.raises(RuntimeError, match="The vector v can only be None if"):
        functional.vjp(lambda x: x, x)


def test_strict_refuses_an_output_that_does_not_depend_on_an_input():
    with pytest.raises(RuntimeError, match="independent of input 1"):
        functional.vjp(lambda x, y: x.sum(), pair(), strict=True)


def test_gradgradcheck_passes_by_outputs_without_a_gradient():
    assert gradgradcheck(lambda x: (x.detach(), x * x), cg.tensor(X, requires_grad=True))
