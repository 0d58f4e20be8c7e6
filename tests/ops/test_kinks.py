"""Gradients where a function has none, or several: the values PyTorch 2.13 takes, and why where there is a reason."""

import math

import numpy as np
import pytest

import cudagrad as cg
from cudagrad.ops import rounding

INF, NAN = math.inf, math.nan

# what is computed, at which values, the gradient of its sum
ONE_TENSOR = [
    ("abs", lambda x: x.abs(), [0.0, -2.0], [0.0, -1.0]),
    ("abs of nan", lambda x: x.abs(), [NAN], [0.0]),
    ("clamp at its bounds", lambda x: x.clamp(0, 1), [0.0, 1.0, -1.0, 2.0, 0.5], [1.0, 1.0, 0.0, 0.0, 1.0]),
    ("sqrt", lambda x: x.sqrt(), [0.0, 4.0], [INF, 0.25]),
    ("clamp hides an infinite gradient", lambda x: x.clamp(min=0).sqrt(), [-1.0, 4.0], [0.0, 0.25]),
    ("norm of zeros", lambda x: x.norm(), [0.0, 0.0], [0.0, 0.0]),
    ("max of equals", lambda x: x.max(), [1.0, 1.0, 0.0], [0.5, 0.5, 0.0]),
    ("min of equals", lambda x: x.min(), [1.0, 0.0, 0.0], [0.0, 0.5, 0.5]),
    ("max along a dim", lambda x: x.max(0).values, [1.0, 1.0, 0.0], [1.0, 0.0, 0.0]),
    ("amax of equals", lambda x: x.amax(0), [1.0, 1.0, 0.0], [0.5, 0.5, 0.0]),
    ("aminmax of equals", lambda x: sum(x.aminmax()), [1.0, 1.0, 3.0], [0.5, 0.5, 1.0]),
    ("max with nan", lambda x: x.max(), [1.0, NAN, NAN], [0.0, 0.5, 0.5]),
    ("median of equals", lambda x: x.median(), [3.0, 1.0, 1.0, 2.0], [0.0, 0.5, 0.5, 0.0]),
    ("x^0", lambda x: x**0, [0.0, 4.0], [0.0, 0.0]),
    ("x^0.5", lambda x: x**0.5, [0.0, 4.0], [INF, 0.25]),
    ("x^-1", lambda x: x**-1, [0.0, 4.0], [-INF, -0.0625]),
    ("0^x", lambda x: 0**x, [0.0, 4.0, -1.0], [0.0, 0.0, -INF]),
    ("x^x", lambda x: x**x, [0.0], [0.0]),
    ("prod with one zero", lambda x: x.prod(), [0.0, 2.0, 3.0], [6.0, 0.0, 0.0]),
    ("prod with two zeros", lambda x: x.prod(), [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]),
    ("cumprod with a zero", lambda x: x.cumprod(0), [1.0, 0.0, 3.0], [1.0, 4.0, 0.0]),
    ("std of constants", lambda x: x.std(), [2.0, 2.0], [0.0, 0.0]),
    ("cummax of equals", lambda x: x.cummax(0).values, [1.0, 1.0, 0.0], [1.0, 2.0, 0.0]),
    ("sign", lambda x: x.sign(), [0.0, 2.0], [0.0, 0.0]),
    ("floor", lambda x: x.floor(), [1.0, 1.5], [0.0, 0.0]),
    ("round", lambda x: x.round(), [0.5, 1.2], [0.0, 0.0]),
    ("log", lambda x: x.log(), [0.0], [INF]),
    ("rsqrt", lambda x: x.rsqrt(), [0.0], [-INF]),
    ("asin", lambda x: x.asin(), [1.0], [INF]),
    ("sinc", lambda x: x.sinc(), [0.0], [0.0]),
    ("xlogy of itself", lambda x: x.xlogy(x), [0.0], [NAN]),
    ("logsumexp of -inf", lambda x: x.logsumexp(0), [-INF, -INF], [NAN, NAN]),
    ("nan_to_num", lambda x: x.nan_to_num(), [NAN, INF, 2.0], [0.0, 0.0, 1.0]),
    ("nansum", lambda x: x.nansum(), [NAN, 2.0], [0.0, 1.0]),
    ("nanmean", lambda x: x.nanmean(), [1.0, NAN, 3.0], [0.5, 0.0, 0.5]),
    ("logit outside", lambda x: x.logit(), [0.0, 1.0, 2.0, 0.5], [INF, INF, NAN, 4.0]),
    ("logit at eps", lambda x: x.logit(eps=0.25), [0.0, 0.25, 0.5, 0.9], [0.0, 16 / 3, 4.0, 0.0]),
    ("angle", lambda x: x.angle(), [-1.0, 0.0, 1.0], [0.0, 0.0, 0.0]),
    ("quantile between two", lambda x: x.quantile(0.3), [3.0, 1.0, 1.0, 2.0], [0.0, 0.1, 0.9, 0.0]),
    ("erfinv", lambda x: x.erfinv(), [1.0, 0.0], [INF, math.sqrt(math.pi) / 2]),
    ("lgamma", lambda x: x.lgamma(), [0.0, -1.0], [-INF, NAN]),
    ("real power of a negative", lambda x: x**2.5, [-1.0], [NAN]),
]

TWO_TENSORS = [
    ("maximum", cg.maximum, [1.0, 2.0, 0.0], [1.0, 1.0, 3.0], [0.5, 1.0, 0.0], [0.5, 0.0, 1.0]),
    ("minimum", cg.minimum, [1.0, 2.0, 0.0], [1.0, 1.0, 3.0], [0.5, 0.0, 1.0], [0.5, 1.0, 0.0]),
    ("maximum with nan", cg.maximum, [2.0, NAN, NAN], [NAN, 2.0, NAN], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]),
    ("fmax", cg.fmax, [1.0, 2.0, NAN, NAN], [1.0, NAN, 2.0, NAN], [1.0, 1.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0]),
    ("fmin", cg.fmin, [1.0, 2.0, NAN, NAN], [1.0, NAN, 2.0, NAN], [1.0, 1.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0]),
    ("atan2 at the origin", cg.atan2, [0.0, 1.0], [0.0, 0.0], [0.0, 0.0], [0.0, -1.0]),
    ("remainder", cg.remainder, [5.0, -5.0], [3.0, 3.0], [1.0, 1.0], [-1.0, 2.0]),
    ("fmod", cg.fmod, [5.0, -5.0], [3.0, 3.0], [1.0, 1.0], [-1.0, 1.0]),
    ("copysign", cg.copysign, [1.0, -2.0, 0.0], [-1.0, 0.0, 1.0], [-1.0, -1.0, 0.0], [0.0, 0.0, 0.0]),
    ("pow", cg.pow, [0.0, 0.0, 2.0], [0.0, 2.0, 3.0], [0.0, 0.0, 12.0], [0.0, 0.0, 8 * math.log(2)]),
    ("hypot at the origin", cg.hypot, [0.0, 3.0], [0.0, 4.0], [NAN, 0.6], [NAN, 0.8]),
    ("xlogy", cg.xlogy, [0.0, 0.0, 1.0], [0.0, -1.0, 2.0], [0.0, 0.0, math.log(2)], [NAN, 0.0, 0.5]),
    ("logaddexp", cg.logaddexp, [-INF, 1.0], [-INF, INF], [NAN, 0.0], [NAN, 1.0]),
    ("div rounded", lambda a, b: cg.div(a, b, rounding_mode="floor"), [3.0], [2.0], [0.0], [0.0]),
]


def gradients(function, *values):
    tensors = [cg.tensor(v, dtype=cg.float64, requires_grad=True) for v in values]
    function(*tensors).sum().backward()
    return [t.grad.numpy() for t in tensors]


@pytest.mark.parametrize("function, values, expected", [r[1:] for r in ONE_TENSOR], ids=[r[0] for r in ONE_TENSOR])
def test_the_gradient_at_a_kink_is_pytorchs(function, values, expected):
    (got,) = gradients(function, values)
    np.testing.assert_allclose(got, expected, rtol=1e-12, equal_nan=True)


@pytest.mark.parametrize("function, a, b, by_a, by_b", [r[1:] for r in TWO_TENSORS], ids=[r[0] for r in TWO_TENSORS])
def test_the_gradients_of_two_at_a_kink_are_pytorchs(function, a, b, by_a, by_b):
    for got, expected in zip(gradients(function, a, b), (by_a, by_b)):
        np.testing.assert_allclose(got, expected, rtol=1e-12, equal_nan=True)


def test_clamp_by_tensors_hands_the_gradient_to_what_is_the_result():
    got = gradients(cg.clamp, [0.0, 1.0, 2.0, 5.0], [0.0, 1.0, 3.0, 2.0], [1.0, 1.0, 1.0, 4.0])
    assert [g.tolist() for g in got] == [[1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 1, 1]]


def test_the_rule_of_clamp_at_its_bounds_is_one_constant(monkeypatch):
    monkeypatch.setattr(rounding, "GRADIENT_AT_BOUND", False)
    (got,) = gradients(lambda x: x.clamp(0, 1), [0.0, 1.0, 0.5])
    assert got.tolist() == [0, 0, 1]


@pytest.mark.parametrize("order, expected", [(INF, [0.5, -0.5, 0.0]), (-INF, [0.0, 0.0, 1.0]), (0, [0.0, 0.0, 0.0])])
def test_norms_of_ties_share_the_gradient_with_their_signs(order, expected):
    (got,) = gradients(lambda x: x.norm(order), [3.0, -3.0, 1.0])
    assert got.tolist() == expected


@pytest.mark.parametrize("order", [0.5, 1, 1.5, 3])
def test_norms_of_zeros_have_zero_gradient(order):
    (got,) = gradients(lambda x: x.norm(order), [0.0, 0.0])
    assert got.tolist() == [0, 0]


def test_the_gradient_of_a_squared_length_is_twice_the_number():
    z = cg.tensor(1 + 2j, requires_grad=True)
    (z.abs() ** 2).backward()
    assert z.grad.item() == pytest.approx(2 + 4j)


def test_the_length_of_complex_zero_has_zero_gradient():
    z = cg.tensor(0j, requires_grad=True)
    z.abs().backward()
    assert z.grad.item() == 0


@pytest.mark.parametrize(
    "function, values",
    [
        (lambda x: x ** x.detach().round(), [0.0, 2.0]),
        (lambda x: cg.atan2(x, x), [0.0, 2.0]),
        (lambda x: cg.copysign(x, x), [0.0, 2.0]),
        (lambda x: x.std(), [2.0, 2.0]),
        (lambda x: x.sinc(), [0.0, 0.5]),
        (lambda x: x.logit(eps=0.1), [0.0, 0.5]),
        (lambda x: x.norm(), [0.0, 0.0]),
        (lambda x: x.prod(), [0.0, 0.0, 2.0]),
    ],
    ids=["pow", "atan2", "copysign", "std", "sinc", "logit", "norm", "prod"],
)
def test_what_a_mask_hides_makes_no_second_derivative_nan(function, values):
    x = cg.tensor(values, dtype=cg.float64, requires_grad=True)
    (g,) = cg.autograd.grad(function(x).sum(), x, create_graph=True)
    (h,) = cg.autograd.grad((g * g).sum(), x)
    assert bool(h.isfinite().all())
