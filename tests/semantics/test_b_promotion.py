"""dtypes, integers and numbers: what tests/core/test_promotion.py leaves open of section B, by line or row."""
# ruff: noqa: E501  a row stands on its line, whole texts of PyTorch too

import math

import numpy as np
import pytest

import cudagrad as cg

INF, NAN = math.inf, math.nan


def test_the_mean_of_integers_names_the_dtype():
    for dtype, name in ((cg.int64, "Long"), (cg.bool, "Bool"), (cg.uint8, "Byte")):
        with pytest.raises(RuntimeError) as raised:
            cg.ones(2, dtype=dtype).mean()
        assert str(raised.value).split("\n")[0] == (
            "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: "
            + name
        )
    assert cg.ones(2, dtype=cg.int64).mean(dtype=cg.float32).item() == 1.0


def test_the_hints_of_bool_subtraction_and_negation():
    b = cg.tensor([True, False])
    with pytest.raises(RuntimeError) as raised:
        b - b
    assert str(raised.value).split("\n")[0] == (
        "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator "
        "instead."
    )
    with pytest.raises(RuntimeError) as raised:
        b - 1
    assert str(raised.value).split("\n")[0] == (
        "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the "
        "`~` or `logical_not()` operator instead."
    )
    with pytest.raises(RuntimeError) as raised:
        -b
    assert str(raised.value).split("\n")[0] == (
        "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
        "`logical_not()` operator instead."
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda z: cg.tensor([1, -1]) // z,
        lambda z: cg.tensor([1, -1]) % z,
        lambda z: cg.floor_divide(cg.tensor([1, -1]), z),
        lambda z: cg.div(cg.tensor([1, -1]), z, rounding_mode="trunc"),
        lambda z: cg.fmod(cg.tensor([1, -1]), z),
    ],
)
@pytest.mark.parametrize("zero", [0, np.int64(0), "tensor"])
def test_integers_by_zero_are_an_error(call, zero):
    with pytest.raises(RuntimeError, match="^ZeroDivisionError"):
        call(cg.tensor(0) if zero == "tensor" else zero)


def test_integers_divided_by_zero_as_floats_are_infinite():
    assert (cg.tensor([1, -1, 0]) / 0).tolist()[:2] == [INF, -INF]


def test_variances_are_unbiased_by_default():
    x = cg.tensor([1.0, 3.0], dtype=cg.float64)
    assert x.var().item() == 2.0
    assert x.std(correction=0).item() == 1.0
    assert x.std(unbiased=False).item() == 1.0


def test_the_step_of_a_slice_must_be_positive():
    with pytest.raises(ValueError, match="^step must be greater than zero"):
        cg.ones(3)[::-1]
    with pytest.raises(ValueError, match="^slice step cannot be zero"):
        cg.ones(3)[::0]


@pytest.mark.parametrize(
    "name, kind, first",
    [
        ("max", RuntimeError, "max(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument."),
        ("min", RuntimeError, "min(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument."),
        ("amax", RuntimeError, "amax(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument."),
        ("amin", RuntimeError, "amin(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument."),
        ("argmax", IndexError, "argmax(): Expected reduction dim to be specified for input.numel() == 0."),
        ("argmin", IndexError, "argmin(): Expected reduction dim to be specified for input.numel() == 0."),
    ],
)  # fmt: skip
def test_65_extremes_of_nothing_have_each_their_text(name, kind, first):
    with pytest.raises(kind) as raised:
        getattr(cg.tensor([]), name)()
    assert str(raised.value).split("\n")[0] == first


def test_23_floats_floor_divided_by_zero():
    got = (cg.tensor([1.0, -1.0, 0.0]) // 0).tolist()
    assert got[:2] == [INF, -INF]
    assert math.isnan(got[2])
    assert cg.fmod(cg.tensor([5.0, -5.0]), 3).tolist() == [2.0, -2.0]
    assert cg.remainder(cg.tensor([5.0, -5.0, 5.0]), cg.tensor([3.0, 3.0, -3.0])).tolist() == [2.0, 1.0, -1.0]
    assert cg.div(cg.tensor([-3]), 2, rounding_mode="trunc").tolist() == [-1]
    assert cg.div(cg.tensor([-3]), 2, rounding_mode="floor").tolist() == [-2]


def test_24_a_negative_number_as_the_power_of_integers_is_an_error():
    with pytest.raises(RuntimeError, match="^Integers to negative integer powers are not allowed"):
        cg.tensor([2, 3]).pow(-1)
    with pytest.raises(RuntimeError, match="^Integers to negative integer powers are not allowed"):
        cg.tensor([2, 3]).pow_(-1)


def test_25_an_operand_of_a_higher_category_cannot_be_written_into_integers():
    for call in (
        lambda x: x.add_(1.5),
        lambda x: x.mul_(cg.tensor(1.5)),
        lambda x: x.div_(2),
        lambda x: x.add_(cg.ones(3)),
    ):
        x = cg.arange(3)
        with pytest.raises(RuntimeError, match="^result type Float can't be cast to the desired output type Long"):
            call(x)
        assert x.tolist() == [0, 1, 2]
        assert x._version == 0
    b = cg.tensor([True])
    with pytest.raises(RuntimeError, match="^result type Long can't be cast to the desired output type Bool"):
        b.add_(1)


@pytest.mark.parametrize(
    "made, dtype",
    [
        (lambda: cg.tensor(np.float64(1)), "float64"),
        (lambda: cg.tensor([np.float64(1)]), "float64"),
        (lambda: cg.tensor(np.float32(1)), "float32"),
        (lambda: cg.tensor(1.0), "float32"),
        (lambda: cg.tensor([1, 2.0]), "float32"),
        (lambda: cg.tensor([True, False]), "bool"),
        (lambda: cg.tensor(1j), "complex64"),
        (lambda: cg.full((1,), 1.0), "float32"),
        (lambda: cg.full((1,), True), "bool"),
        (lambda: cg.full((1,), 1j), "complex64"),
        (lambda: cg.tensor([]), "float32"),
    ],
)
def test_26_the_dtype_of_data(made, dtype):
    assert made().dtype is getattr(cg, dtype)


def test_27_alpha_of_integers_must_be_an_integer():
    with pytest.raises(RuntimeError) as raised:
        cg.add(cg.tensor([1]), cg.tensor([1]), alpha=1.5)
    assert str(raised.value).split("\n")[0] == (
        "For integral input tensors, argument alpha must not be a floating point number."
    )
    with pytest.raises(RuntimeError, match="^Boolean alpha only supported for Boolean results"):
        cg.add(cg.tensor([1]), cg.tensor([1]), alpha=True)


@pytest.mark.parametrize(
    "call, first",
    [
        (lambda a, b: cg.mm(a, b), "expected m1 and m2 to have the same dtype, but got: float != double"),
        (lambda a, b: a @ b, "expected m1 and m2 to have the same dtype, but got: float != double"),
        (
            lambda a, b: cg.mv(a, b[0]),
            "addmv input tensors must have the same dtype, but got Double, Float, and Double",
        ),
        (lambda a, b: cg.dot(a[0], b[0]), "dot : expected both vectors to have same dtype, but found Float and Double"),
        (lambda a, b: cg.bmm(a[None], b[None]), "expected scalar type Float but found Double"),
        (
            lambda a, b: cg.nn.functional.linear(a, b),
            "expected m1 and m2 to have the same dtype, but got: float != double",
        ),
    ],
    ids=["mm", "matmul", "mv", "dot", "bmm", "linear"],
)
def test_27_products_of_matrices_do_not_promote(call, first):
    with pytest.raises(RuntimeError) as raised:
        call(cg.ones(2, 2), cg.ones(2, 2, dtype=cg.float64))
    assert str(raised.value).split("\n")[0] == first


def test_28_an_array_on_the_left_is_refused_and_a_numpy_number_is_not():
    with pytest.raises(TypeError, match=r"^unsupported operand type\(s\) for \*: 'numpy.ndarray' and 'Tensor'"):
        np.ones(2) * cg.ones(2)
    for t in (np.float64(2) * cg.ones(2), np.float32(2) * cg.ones(2)):
        assert isinstance(t, cg.Tensor)
        assert t.dtype is cg.float32
        assert t.tolist() == [2.0, 2.0]


def test_29_ties_nan_and_rounding():
    assert cg.tensor([2.0, 1.0, 2.0]).argmax().item() == 0
    assert cg.tensor([1.0, 1.0]).argmin().item() == 0
    assert cg.tensor([[1.0, NAN, NAN]]).argmax(1).tolist() == [1]
    assert cg.tensor([1.0, NAN]).argmin().item() == 1
    x = cg.tensor([NAN])
    assert not (x == x).item()
    assert (x != x).item()
    assert cg.tensor([0.5, 1.5, 2.5, -1.5]).round().tolist() == [0.0, 2.0, 2.0, -2.0]
    assert cg.tensor([NAN, 1e30, -1e30]).to(cg.int32).tolist() == [-(2**31)] * 3
    assert cg.tensor([-1.7, 1.7]).to(cg.int64).tolist() == [-1, 1]


def test_30_argsort_of_equals():
    assert cg.tensor([1, 1, 0]).argsort().tolist() == [2, 0, 1]
    assert cg.tensor([1, 1, 0]).argsort(stable=True).tolist() == [2, 0, 1]


def test_31_half_types_accumulate_wider():
    assert cg.ones(100_000, dtype=cg.bfloat16).sum().item() == 99_840
    assert cg.ones(5000, dtype=cg.float16).cumsum(0)[-1].item() == 5000
    assert cg.ones(5000, dtype=cg.float16).mean().item() == 1.0


@pytest.mark.parametrize(
    "made, dtype",
    [
        (lambda: cg.tensor([1, 2]).sqrt(), "float32"),
        (lambda: cg.tensor([True]).exp(), "float32"),
        (lambda: cg.ones(2, dtype=cg.uint8) / cg.ones(2, dtype=cg.uint8), "float32"),
        (lambda: cg.ones(2) * np.float64(2), "float32"),
        (lambda: cg.ones(2) + cg.tensor(1.0, dtype=cg.float64), "float32"),
        (lambda: cg.ones(2, dtype=cg.int64) + cg.tensor(1.0, dtype=cg.float64), "float64"),
        (lambda: cg.ones(2, dtype=cg.int64) + cg.tensor(1.0, dtype=cg.float16), "float16"),
        (lambda: cg.ones(2, dtype=cg.int32) + cg.tensor(1), "int32"),
        (lambda: cg.ones(2, dtype=cg.uint8) + cg.tensor(-1), "uint8"),
        (lambda: cg.tensor(1.0) + cg.tensor(1.0, dtype=cg.float64), "float64"),
        (lambda: cg.tensor(1) + cg.tensor(1.0), "float32"),
        (lambda: cg.cat([cg.tensor([1]), cg.tensor([1.0])]), "float32"),
        (lambda: cg.stack([cg.tensor([1]), cg.tensor([1.0])]), "float32"),
        (lambda: cg.where(cg.tensor([True]), cg.tensor([1]), cg.tensor([1.0])), "float32"),
        (lambda: cg.where(cg.tensor([True]), 1, cg.tensor([1.0])), "float32"),
        (lambda: cg.where(cg.tensor([True]), 1.0, cg.tensor([1])), "float32"),
        (lambda: cg.tensor([True]) + True, "bool"),
        (lambda: cg.ones(2, dtype=cg.uint8).sum(), "int64"),
        (lambda: cg.ones(2, dtype=cg.uint8).prod(), "int64"),
        (lambda: cg.ones(2, dtype=cg.uint8).cumsum(0), "int64"),
    ],
)
def test_where_two_dtypes_meet(made, dtype):
    assert made().dtype is getattr(cg, dtype)
