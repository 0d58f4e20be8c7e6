"""Reductions: empties, dtypes, half precision, keywords, results and warnings as PyTorch has them."""

import math

import numpy as np
import pytest

import cudagrad as cg

T = cg.tensor
E = cg.empty


def test_sums_of_nothing():
    assert E(0).sum().item() == 0 and E(0).prod().item() == 1
    assert math.isnan(E(0).mean().item()) and E(0).logsumexp(0).item() == -math.inf
    assert E(0).norm().item() == 0
    assert E(0).all().item() is True and E(0).any().item() is False
    assert math.isnan(E(0).median().item())
    assert E(0, 3).sum(0).tolist() == [0, 0, 0] and E(2, 0).prod(1).tolist() == [1, 1]


@pytest.mark.parametrize("name", ["var", "std"])
def test_a_variance_without_freedom_is_nan_and_warns(name):
    text = f"^{name}\\(\\): degrees of freedom is <= 0"
    for values in ([], [1.0]):
        with pytest.warns(UserWarning, match=text):
            assert math.isnan(getattr(T(values), name)().item())
    with pytest.warns(UserWarning, match=text):
        assert getattr(T([1.0, 5.0]), name)(correction=3).item() == math.inf


def test_variances_divide_by_one_less_by_default():
    x = T([1.0, 3.0])
    assert x.var().item() == 2 and x.var(unbiased=False).item() == 1 and x.var(0, False).item() == 1
    assert x.var(False).item() == 1 and x.var(correction=0).item() == 1
    assert x.std(dim=0, correction=0).item() == 1
    assert [t.item() for t in cg.var_mean(x, correction=0)] == [1, 2]


def test_sums_of_integers_are_int64():
    for kind in (cg.uint8, cg.int8, cg.int32, cg.bool):
        x = T([1, 1], dtype=kind)
        assert x.sum().dtype is x.prod().dtype is x.cumsum(0).dtype is x.cumprod(0).dtype is cg.int64
    assert T([200, 200], dtype=cg.uint8).sum().item() == 400
    assert T([1, 2]).sum(dtype=cg.float64).dtype is cg.float64


def test_half_types_are_added_in_float32():
    """A running sum in bfloat16 would stop at 256, and one in float16 at 2048."""
    assert cg.ones(100_000, dtype=cg.bfloat16).sum().item() == 99_840
    assert cg.ones(5000, dtype=cg.float16).cumsum(0)[-1].item() == 5000
    assert cg.ones(5000, dtype=cg.float16).mean().item() == 1
    assert cg.full((4096,), 0.5, dtype=cg.float16).norm().item() == 32


def test_numpys_keywords_are_understood():
    x = T([[1.0, 2.0], [3.0, 4.0]])
    assert x.sum(axis=0).tolist() == [4, 6] and x.mean(axis=1, keepdims=True).tolist() == [[1.5], [3.5]]
    assert x.max(axis=1).values.tolist() == [2, 4] and x.argmax(axis=0).tolist() == [1, 1]
    assert x.std(axis=0, correction=0).tolist() == [1, 1] and cg.cumsum(x, axis=1).tolist() == [[1, 3], [3, 7]]
    assert x.prod(axis=0).tolist() == [3, 8] and x.all(axis=0).tolist() == [True, True]


def test_the_mean_of_integers_is_refused():
    first = "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: "
    with pytest.raises(RuntimeError) as caught:
        T([1, 2]).mean()
    assert str(caught.value).split("\n")[0] == first + "Long"
    assert T([1, 2]).mean(dtype=cg.float32).item() == 1.5
    with pytest.raises(RuntimeError, match="Optional dtype must be either a floating point or complex dtype"):
        T([1.0]).mean(dtype=cg.int64)


def test_extremes_along_a_dim_are_named_tuples():
    x = T([[1.0, 3.0], [4.0, 2.0]])
    values, indices = x.max(1)
    assert values.tolist() == [3, 4] and indices.tolist() == [1, 0] and indices.dtype is cg.int64
    assert x.min(dim=0, keepdim=True).indices.tolist() == [[0, 1]]
    assert repr(x.max(1)) == "torch.return_types.max(\nvalues=tensor([3., 4.]),\nindices=tensor([1, 0]))"
    assert cg.aminmax(x).max.item() == 4
    for name in ("median", "mode", "cummax", "cummin"):
        assert type(getattr(x, name)(0)).__name__ == name


def test_out_of_a_pair_is_a_pair():
    x, values, indices = T([[1.0, 3.0], [4.0, 2.0]]), E(0), E(0, dtype=cg.int64)
    result = cg.max(x, 1, out=(values, indices))
    assert result.values is values and result.indices is indices
    assert values.tolist() == [3, 4] and indices.tolist() == [1, 0]


def test_max_of_two_tensors_promotes_them():
    assert cg.max(T([1, 2]), T([2.0, 1.0])).tolist() == [2.0, 2.0]
    assert T([1, 5]).min(other=T([2, 2])).tolist() == [1, 2]


def test_the_median_of_an_even_count_is_the_lower():
    assert T([4.0, 1.0, 3.0, 2.0]).median().item() == 2
    assert T([math.nan, 1.0, 2.0]).nanmedian().item() == 1
    assert T([[1.0, math.nan, 3.0]]).median(1).indices.tolist() == [1]


def test_argmax_takes_the_first_of_equals_and_the_first_nan():
    assert T([1, 3, 3]).argmax().item() == 1
    assert T([1.0, math.nan, 5.0, math.nan]).argmax().item() == 1
    assert T([1.0, math.nan, 5.0], dtype=cg.bfloat16).argmin().item() == 1


def test_running_extremes_take_the_last_of_equals():
    values, indices = T([1.0, 3.0, 3.0, 2.0, math.nan, 4.0, math.nan]).cummax(0)
    assert indices.tolist() == [0, 1, 2, 2, 4, 4, 6]
    np.testing.assert_array_equal(values.numpy(), [1, 3, 3, 3, math.nan, math.nan, math.nan])


def test_the_mode_is_the_smallest_most_frequent_at_its_last_place():
    assert [t.item() for t in T([3, 1, 3, 1]).mode()] == [1, 3]
    assert [t.item() for t in T([1, 2, 2, 3, 3, 1]).mode()] == [1, 5]


def test_counts():
    assert cg.bincount(T([1, 3, 1])).tolist() == [0, 2, 0, 1]
    assert cg.bincount(T([1, 3, 1]), weights=T([0.5, 1.0, 2.0])).dtype is cg.float32
    assert cg.bincount(T([1, 3, 1]), weights=T([1, 1, 2])).dtype is cg.float64
    assert cg.histc(T([1.0, 2.0, 1.0]), bins=4, min=0, max=3).tolist() == [0, 2, 1, 0]
    assert cg.histc(T([1.0, 5.0, math.nan]), bins=4, min=0, max=3).tolist() == [0, 1, 0, 0]
    assert cg.histogram(T([1.0, 2.0, 1.0]), T([0.0, 1.0, 2.0, 3.0])).hist.tolist() == [0, 2, 1]
    assert cg.count_nonzero(T([[0, 1], [2, 0]]), dim=0).tolist() == [1, 1]


def test_all_keeps_uint8():
    assert T([1, 2], dtype=cg.uint8).all().dtype is cg.uint8
    assert T([1, 2]).all().dtype is cg.bool


def test_quantiles_stand_first():
    x = T([[1.0, 2.0], [3.0, 4.0]])
    assert cg.quantile(x, T([0.4, 0.5, 0.6]), dim=1, keepdim=True).shape == (3, 2, 1)
    np.testing.assert_allclose(cg.quantile(x, T([0.4, 0.5]), dim=0).numpy(), [[1.8, 2.8], [2.0, 3.0]], rtol=1e-6)
    assert math.isnan(T([1.0, math.nan]).quantile(0.5).item()) and T([1.0, math.nan, 3.0]).nanquantile(0.5).item() == 2


def test_a_long_product_has_an_exact_gradient_in_logarithmic_steps():
    """Against the product of the others, in float64: 1000 factors, one of them 0."""
    values = np.random.default_rng(0).uniform(0.9, 1.1, 1000)
    values[17] = 0
    x = T(values, requires_grad=True)
    x.prod().backward()
    expected = np.zeros(1000)
    expected[17] = np.prod(np.delete(values, 17))
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-12)


def test_logcumsumexp_has_no_overflow_in_value_or_gradient():
    x = T([1000.0, -1000.0, 1001.0], dtype=cg.float64, requires_grad=True)
    y = x.logcumsumexp(0)
    y.sum().backward()
    np.testing.assert_allclose(y.detach().numpy(), [1000, 1000, 1001 + math.log1p(math.exp(-1))], rtol=1e-12)
    share = 1 / (1 + math.e)
    np.testing.assert_allclose(x.grad.numpy(), [2 + share, 0, 1 - share], rtol=1e-12)
