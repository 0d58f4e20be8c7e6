"""dtypes that meet, and numbers that meet tensors: PyTorch's table, never NumPy's."""

import itertools

import numpy as np
import pytest

import cudagrad as cg

f16, bf16, f32, f64 = cg.float16, cg.bfloat16, cg.float32, cg.float64
i8, i16, i32, i64, u8, c64, c128 = cg.int8, cg.int16, cg.int32, cg.int64, cg.uint8, cg.complex64, cg.complex128


def of(dtype, *shape):
    return cg.ones(*shape, dtype=dtype)


@pytest.mark.parametrize(
    "made, dtype",
    [
        (lambda: of(i64, 2) + of(f32, 2), f32),
        (lambda: of(i64, 2) + 1.5, f32),
        (lambda: of(i64, 2) / of(i64, 2), f32),
        (lambda: of(i64, 2).sqrt(), f32),
        (lambda: of(f32, 2) * np.float64(2), f32),
        (lambda: of(f32, 2) + cg.tensor(1.0, dtype=f64), f32),
        (lambda: of(i64, 2) + cg.tensor(1.0, dtype=f64), f64),
        (lambda: cg.tensor(1.0) + cg.tensor(1.0, dtype=f64), f64),
        (lambda: of(cg.bool, 2) + 1, i64),
        (lambda: of(cg.bool, 2) + 1.0, f32),
        (lambda: of(cg.bool, 2) * True, cg.bool),
        (lambda: of(f16, 2) + of(bf16, 2), f32),
        (lambda: of(u8, 2) + of(i8, 2), i16),
        (lambda: of(i32, 2) + cg.tensor(1), i32),
        (lambda: of(f64, 2) + 1j, c128),
        (lambda: of(f32, 2) + 1j, c64),
        (lambda: of(f16, 2) * 2.5, f16),
        (lambda: of(i32, 2) * True, i32),
        (lambda: cg.cat([of(f32, 2), of(i64, 2)]), f32),
        (lambda: cg.stack([of(f32, 2), of(i64, 2)]), f32),
        (lambda: cg.where(of(cg.bool, 2), of(f32, 2), of(i64, 2)), f32),
        (lambda: of(u8, 3).sum(), i64),
        (lambda: of(i32, 3).sum(), i64),
        (lambda: of(cg.bool, 3).sum(), i64),
        (lambda: cg.arange(3.0), f32),
        (lambda: cg.arange(3), i64),
        (lambda: cg.ones(1), f32),
        (lambda: cg.tensor(1.0), f32),
        (lambda: cg.tensor(np.float64(1)), f64),
        (lambda: cg.tensor([True, 1]), i64),
        (lambda: cg.full((1,), 1), i64),
        (lambda: of(f32, 2) > 1, cg.bool),
        (lambda: of(f32, 2).argmax(), i64),
        (lambda: of(f32, 2).max(), f32),
        (lambda: of(bf16, 2).mean(), bf16),
        (lambda: 2 ** of(f32, 2), f32),
        (lambda: 1 - of(i64, 2), i64),
        (lambda: 1.0 / of(i64, 2), f32),
        (lambda: np.float64(2) * of(f32, 2), f32),
    ],
)
def test_the_dtype_of_a_result(made, dtype):
    t = made()
    assert isinstance(t, cg.Tensor)
    assert t.dtype is dtype


def test_integers_wrap_round():
    assert (of(u8, 1) + 300).item() == 45
    assert (of(u8, 1) + -1).item() == 0
    assert (of(i32, 1) + 2**40).item() == 1
    assert (cg.tensor([127], dtype=i8) + 1).item() == -128


def test_results_of_no_dimension_stay_tensors():
    for t in (cg.ones(2).sum(), cg.ones(2)[0], cg.tensor(1.0) + 1, cg.ones(2).max(), cg.tensor(2.0).exp()):
        assert isinstance(t, cg.Tensor)
        assert t.shape == ()


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda: cg.ones(2, dtype=i64).mean(), RuntimeError, "mean(): could not infer output dtype"),
        (lambda: of(cg.bool, 2) - of(cg.bool, 2), RuntimeError, "Subtraction, the `-` operator, with two bool tensors"),
        (lambda: -of(cg.bool, 2), RuntimeError, "Negation, the `-` operator, on a bool tensor is not supported"),
        (lambda: of(i64, 2) // 0, RuntimeError, "ZeroDivisionError"),
        (lambda: cg.tensor([]).max(), RuntimeError, "max(): Expected reduction dim to be specified "
         "for input.numel() == 0"),
        (lambda: of(i64, 2) ** -1, RuntimeError, "Integers to negative integer powers are not allowed."),
        (lambda: cg.add(of(i64, 2), 1, alpha=1.5), RuntimeError, "For integral input tensors, argument alpha must "
         "not be"),
        (lambda: cg.mm(of(f32, 2, 2), of(f64, 2, 2)), RuntimeError, "expected m1 and m2 to have the same dtype, but "
         "got: float != double"),
        (lambda: np.ones(2) * cg.ones(2), TypeError, "unsupported operand type(s) for *"),
        (lambda: cg.ones(3)[::-1], ValueError, "step must be greater than zero"),
        (lambda: cg.add(cg.ones(2), "a"), TypeError, "add(): argument 'other' (position 2) must be Tensor, not str"),
        (lambda: cg.ones(2) + "a", TypeError, "unsupported operand type(s) for +: 'Tensor' and 'str'"),
        (lambda: cg.ones(2) + [1, 2], TypeError, "unsupported operand type(s) for +: 'Tensor' and 'list'"),
        (lambda: cg.exp(2), TypeError, "exp(): argument 'input' (position 1) must be Tensor, not int"),
        (lambda: cg.ones(2) + cg.ones(3), RuntimeError, "The size of tensor a (2) must match the size of "
         "tensor b (3) at non-singleton dimension 0"),
        (lambda: cg.ones(2, 3) @ cg.ones(2, 3), RuntimeError, "mat1 and mat2 shapes cannot be multiplied (2x3 "
         "and 2x3)"),
        (lambda: bool(cg.ones(2)), RuntimeError, "Boolean value of Tensor with more than one value is ambiguous"),
        (lambda: cg.ones(2).item(), RuntimeError, "a Tensor with 2 elements cannot be converted to Scalar"),
        (lambda: len(cg.tensor(1.0)), TypeError, "len() of a 0-d tensor"),
        (lambda: list(cg.tensor(1.0)), TypeError, "iteration over a 0-d tensor"),
    ],
)  # fmt: skip
def test_the_first_line_of_an_error(call, kind, text):
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value).split("\n")[0].startswith(text)


def test_comparison_with_strangers_is_false():
    assert (cg.ones(2) == None) is False  # noqa: E711
    assert (cg.ones(2) == "a") is False
    assert (cg.ones(2) != "a") is True
    assert hash(cg.ones(2)) is not None


def test_an_array_on_the_right_is_an_operand():
    x = cg.ones(2, dtype=f64, requires_grad=True)
    y = x * np.array([2.0, 3.0])  # PyTorch would refuse, since NumPy would lose the graph
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 3.0]


def test_floor_remainder_and_powers_of_integers():
    assert (cg.tensor([-3]) // 2).item() == -2
    assert (cg.tensor([-3]) % 2).item() == 1
    assert cg.fmod(cg.tensor([-3]), 2).item() == -1
    assert cg.div(cg.tensor([-3.0]), 2, rounding_mode="trunc").item() == -1.0
    assert (cg.tensor([2, 1, -1]) ** cg.tensor([-1, -1, -1])).tolist() == [0, 1, -1]
    assert cg.tensor([2.5, 3.5, -0.5]).round().tolist() == [2.0, 4.0, -0.0]


def test_half_sums_are_added_up_in_a_wider_dtype():
    assert cg.ones(100_000, dtype=bf16).sum().item() == 99_840
    assert cg.ones(5000, dtype=f16).cumsum(0)[-1].item() == 5000


def test_median_std_and_argmax_follow_pytorch():
    assert cg.tensor([1.0, 2.0, 3.0, 4.0]).median().item() == 2.0
    assert cg.tensor([1.0, 3.0]).std().item() == pytest.approx(2**0.5)
    assert cg.tensor([1.0, 2.0, 2.0]).argmax().item() == 1
    assert cg.tensor([1.0, float("nan"), 2.0]).argmax().item() == 1


def test_gradients_come_back_in_the_dtype_of_each_operand():
    a = cg.ones(2, dtype=f16, requires_grad=True)
    b = cg.ones(2, dtype=f64, requires_grad=True)
    (a * b).sum().backward()
    assert a.grad.dtype is f16
    assert b.grad.dtype is f64


@pytest.mark.peer
@pytest.mark.filterwarnings("ignore:ComplexHalf support")
def test_every_pair_of_dtypes_meets_as_in_pytorch():
    torch = pytest.importorskip("torch")
    names = "uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128 bool".split()
    for a, b in itertools.product(names, names):
        for shape_a, shape_b in itertools.product([(), (2,)], repeat=2):
            want = torch.ones(shape_a, dtype=getattr(torch, a)) * torch.ones(shape_b, dtype=getattr(torch, b))
            got = cg.ones(shape_a, dtype=getattr(cg, a)) * cg.ones(shape_b, dtype=getattr(cg, b))
            wanted = str(want.dtype).replace("complex32", "complex64")  # there is no complex of halves here
            assert wanted == str(got.dtype), (a, shape_a, b, shape_b)
    for a, number in itertools.product(names, [True, 2, 2.5, 2j]):
        for shape in [(), (2,)]:
            want, got = (
                torch.ones(shape, dtype=getattr(torch, a)) * number,
                cg.ones(shape, dtype=getattr(cg, a)) * number,
            )
            assert str(want.dtype).replace("complex32", "complex64") == str(got.dtype), (a, shape, number)


def test_a_complex_number_of_numpy_on_the_left_keeps_its_precision():
    product = np.complex128(0.1 + 0.1j) * cg.ones(1, dtype=cg.float64)
    assert product.dtype is cg.complex128 and product.tolist() == [0.1 + 0.1j]


def test_numpys_functions_and_numbers_on_the_left_run_ours():
    x = cg.tensor([2.0, 3.0], dtype=f64, requires_grad=True)
    y = np.float64(2) ** x
    assert y.tolist() == [4.0, 8.0]
    y.sum().backward()
    assert x.grad.tolist() == pytest.approx([4 * np.log(2), 8 * np.log(2)])
    assert np.exp(x).requires_grad
    assert (np.float32(1) - x).tolist() == [-1.0, -2.0]
    with pytest.raises(TypeError, match="unexpected keyword argument 'retain_grap'"):
        cg.autograd.backward(y.sum(), retain_grap=True)
