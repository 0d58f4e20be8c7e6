"""Integers, bools and Python numbers in arithmetic: PyTorch's rules where NumPy's would leak."""

import math
import operator
import warnings

import numpy as np
import pytest

import cudagrad as cg

T = cg.tensor


def exactly(got, expected, dtype):
    assert got.dtype is dtype, got.dtype
    np.testing.assert_array_equal(got.numpy(), expected)


def test_integers_wrap_round():
    exactly(T([200], dtype=cg.uint8) + 100, [44], cg.uint8)
    exactly(T([100], dtype=cg.int8) * T([3], dtype=cg.int8), [44], cg.int8)
    exactly(-T([1], dtype=cg.uint8), [255], cg.uint8)
    exactly(T(2**63 - 1) + T(1), -(2**63), cg.int64)


def test_bools_add_and_multiply_as_or_and_and():
    a, b = T([True, True, False]), T([True, False, False])
    exactly(a + b, [True, True, False], cg.bool)
    exactly(a * b, [True, False, False], cg.bool)
    exactly(a + 1, [2, 2, 1], cg.int64)


@pytest.mark.parametrize("a, b, floor, rest", [(7, 2, 3, 1), (-7, 2, -4, 1), (7, -2, -4, -1), (-7, -2, 3, -1)])
def test_floor_division_rounds_down_and_the_remainder_has_the_divisors_sign(a, b, floor, rest):
    for kind in (cg.int64, cg.float32):
        x, y = T([a], dtype=kind), T([b], dtype=kind)
        exactly(x // y, [floor], kind)
        exactly(x % y, [rest], kind)
        exactly(a // y, [floor], kind)
        exactly(x // b, [floor], kind)
        exactly(cg.div(x, y, rounding_mode="trunc"), [int(a / b)], kind)
        exactly(cg.fmod(x, y), [a - b * int(a / b)], kind)


def test_floats_divide_by_zero_without_a_word():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = T([1.0, -1.0, 0.0])
        np.testing.assert_array_equal((x / 0).numpy(), [math.inf, -math.inf, math.nan])
        np.testing.assert_array_equal((x // 0).numpy(), [math.inf, -math.inf, math.nan])
        assert bool((x % 0).isnan().all())


@pytest.mark.parametrize("divide", [operator.floordiv, operator.mod, cg.fmod, cg.remainder, cg.floor_divide])
def test_integers_do_not_divide_by_zero(divide):
    with pytest.raises(RuntimeError, match="^ZeroDivisionError"):
        divide(T([1, 2]), T([1, 0]))


def test_integers_divide_as_the_default_dtype():
    exactly(T([1, 3]) / 2, [0.5, 1.5], cg.float32)
    exactly(T([True]) / T([2]), [0.5], cg.float32)
    exactly(T([4]).sqrt(), [2.0], cg.float32)


def test_whole_powers_of_integers():
    exactly(T([2, 3]) ** 2, [4, 9], cg.int64)
    exactly(T([2, 3]) ** 2.0, [4.0, 9.0], cg.float32)
    exactly(2 ** T([-1, 3]), [0, 8], cg.int64)
    exactly(T([True, False]) ** 2, [1, 0], cg.int64)
    with pytest.raises(RuntimeError, match="^Integers to negative integer powers are not allowed."):
        T([2]) ** -1


def test_the_power_of_a_number_keeps_the_dtype_of_the_tensor():
    for kind in (cg.float16, cg.bfloat16, cg.float32, cg.float64):
        for exponent in (2, 3, 0.5, -1, 2.5, True):
            assert (T([2.0], dtype=kind) ** exponent).dtype is kind


def test_a_number_on_the_left_is_an_operand_like_any():
    x = T([1.0, 2.0], requires_grad=True)
    exactly(cg.sub(1, x).detach(), [0.0, -1.0], cg.float32)
    exactly(cg.rsub(x, 1).detach(), [0.0, -1.0], cg.float32)
    (1 / x - 2**x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [-1 - 2 * math.log(2), -0.25 - 4 * math.log(2)], rtol=1e-6)


def test_alpha_scales_the_second():
    exactly(cg.add(T([1, 2]), T([3, 4]), alpha=2), [7, 10], cg.int64)
    exactly(cg.sub(T([1.0]), T([0.1]), alpha=10), [0.0], cg.float32)
    assert cg.add(T([1.0], dtype=cg.bfloat16), T([3.0], dtype=cg.bfloat16), alpha=0.5).dtype is cg.bfloat16


def test_the_result_of_an_in_place_operation_must_fit():
    with pytest.raises(RuntimeError, match="^result type Float can't be cast to the desired output type Long"):
        cg.arange(3).div_(2)
    x = cg.arange(3)
    assert x.mul_(2) is x and x.tolist() == [0, 2, 4]


def test_a_sum_written_into_after_it_is_made_still_has_its_gradient():
    """Neither add, mul nor div keeps its result, so writing into it is allowed, as in PyTorch."""
    for f in (operator.add, operator.mul, operator.truediv):
        x = T([1.0, 2.0], requires_grad=True)
        y = f(x, 2.0)
        y += 1
        y.sum().backward()
        assert x.grad is not None


def test_lerp_ends_exactly_at_its_ends():
    a, b = T([0.1, 1e8]), T([0.3, -1.0])
    assert cg.equal(cg.lerp(a, b, 0.0), a) and cg.equal(cg.lerp(a, b, 1.0), b)


def test_cross_without_dim_warns_and_takes_the_first_of_three():
    with pytest.warns(UserWarning, match="^Using torch.cross without specifying the dim arg is deprecated."):
        exactly(cg.cross(T([[1.0], [0.0], [0.0]]), T([[0.0], [1.0], [0.0]])), [[0], [0], [1]], cg.float32)


def test_frexp_and_ldexp_are_inverse():
    x = T([5.0, -0.3, 0.0, 1e-3])
    mantissa, exponent = cg.frexp(x)
    assert exponent.dtype is cg.int32 and bool((mantissa.abs() < 1).all())
    assert cg.equal(cg.ldexp(mantissa, exponent), x)


def test_division_has_pytorchs_node_names():
    x = T([1.0], requires_grad=True)
    for result, name in ((x / 2, "Div"), (x * 2, "Mul"), (x - 1, "Sub"), (x**2, "Pow"), (2**x, "Pow"), (-x, "Neg")):
        assert type(result.grad_fn).__name__ == "Node" and result.grad_fn.name() == f"{name}Backward0"
