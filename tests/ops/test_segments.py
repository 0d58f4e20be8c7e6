"""Adding rows at places: every way of doing it gives the sums of the definition, on NumPy and as CuPy does it."""

import ml_dtypes
import numpy as np
import pytest

from cudagrad.ops import segments


class Elsewhere:
    """NumPy under another name: makes the code take the ways that it keeps for CuPy."""

    def __getattr__(self, name):
        return getattr(np, name)


MODULES = {"numpy": np, "as on CuPy": Elsewhere()}
SIZES = [
    (1, 1, 1),
    (5, 3, 1),
    (50, 7, 2),
    (300, 10, 40),
    (2000, 5, 33),
    (2000, 5000, 17),
    (3000, 9, 4),
    (500, 100000, 1),
]
DTYPES = [np.float32, np.float64, np.complex64, np.float16, ml_dtypes.bfloat16, np.int64, np.int8, np.bool_]
EPS = {np.float32: 1e-6, np.float64: 1e-14, np.complex64: 1e-6, np.float16: 1e-3, ml_dtypes.bfloat16: 8e-3}


def made(dtype, k, m, s):
    rng = np.random.default_rng(k + m + s)
    rows, total = (3 * rng.standard_normal((n, s)) for n in (k, m))
    return rows.astype(dtype), rng.integers(0, m, k), total.astype(dtype)


def wide(a):
    """An array in the widest dtype of its kind."""
    kinds = {"f": np.float64, "V": np.float64, "c": np.complex128}
    return a.astype(kinds.get(a.dtype.kind, a.dtype))


@pytest.mark.parametrize("xp", MODULES.values(), ids=MODULES)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("k, m, s", SIZES)
def test_rows_are_added_at_their_places(xp, dtype, k, m, s):
    rows, index, total = made(dtype, k, m, s)
    exact = wide(total)
    np.add.at(exact, index, wide(rows))
    segments.add_rows(xp, total, index, rows)
    if dtype in EPS:
        assert np.abs(wide(total) - exact).max() <= EPS[dtype] * max(np.abs(exact).max(), 1)
    else:
        assert np.array_equal(total, exact)


@pytest.mark.parametrize("xp", MODULES.values(), ids=MODULES)
def test_a_place_with_very_many_rows_is_added_up_as_well(xp):
    rng = np.random.default_rng(0)
    rows, index = rng.standard_normal((20000, 24)).astype(np.float32), rng.integers(0, 50, 20000)
    index[:15000] = 3
    exact = np.zeros((50, 24))
    np.add.at(exact, index, rows.astype(np.float64))
    assert np.abs(segments.sum_rows(xp, rows, index, 50) - exact).max() <= 1e-4


@pytest.mark.parametrize("xp", MODULES.values(), ids=MODULES)
@pytest.mark.parametrize("name", ["maximum", "minimum", "multiply"])
@pytest.mark.parametrize(
    "dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.int64], ids=lambda d: np.dtype(d).name
)
def test_rows_are_combined_at_their_places(xp, name, dtype):
    for k, m, s in ((1, 1, 1), (9, 4, 1), (60, 30, 5), (40, 9, 20)):
        rows, index, total = made(dtype, k, m, s)
        exact = wide(total)
        getattr(np, name).at(exact, index, wide(rows))
        segments.combine_rows(xp, total, index, rows, getattr(np, name))
        with np.errstate(over="ignore"):
            assert np.allclose(wide(total), exact, rtol=0 if name != "multiply" else 3 * EPS.get(dtype, 0), atol=0)


@pytest.mark.parametrize("xp", MODULES.values(), ids=MODULES)
def test_the_last_row_written_to_a_place_wins(xp):
    total, index = np.zeros((4, 2)), np.array([1, 3, 1, 0, 3, 3])
    segments.put_rows(xp, total, index, np.arange(12.0).reshape(6, 2))
    assert total.tolist() == [[6, 7], [4, 5], [0, 0], [10, 11]]
    segments.put_rows(xp, total, index[:2], 9.0)
    assert total.tolist() == [[6, 7], [9, 9], [0, 0], [9, 9]]


@pytest.mark.parametrize("xp", MODULES.values(), ids=MODULES)
@pytest.mark.parametrize("s", [1, 8, 40])
def test_an_infinity_or_nan_stays_in_its_place(xp, s):
    rows, index = np.ones((700, s)), np.arange(700) % 3
    rows[0], rows[1] = np.nan, np.inf
    sums = segments.sum_rows(xp, rows, index, 4)
    assert np.isnan(sums[0]).all() and np.isposinf(sums[1]).all()
    assert (sums[2] == 233).all() and (sums[3] == 0).all()


def test_no_rows_change_nothing():
    total = np.ones((3, 2))
    for function in (segments.add_rows, lambda *given: segments.combine_rows(*given, np.maximum)):
        function(np, total, np.zeros(0, np.int64), np.zeros((0, 2)))
    assert (total == 1).all()
