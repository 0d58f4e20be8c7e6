"""Writing at an index: numbers and dtypes, equal places, and what becomes of histories."""

import numpy as np
import pytest

import cudagrad as cg


def counted(*shape):
    """0, 1, 2, ... in ``shape``, float64."""
    return cg.arange(float(np.prod(shape)), dtype=cg.float64).reshape(*shape).clone()


# ---- numbers and dtypes in writing


@pytest.mark.parametrize(
    "dtype, value, expected",
    [
        ("int64", 1.9, 1),
        ("int64", -1.9, -1),
        ("int64", True, 1),
        ("uint8", -1, 255),
        ("bool", 5, True),
        ("float16", 2.5, 2.5),
        ("bfloat16", 2.5, 2.5),
        ("float32", float("-inf"), float("-inf")),
        ("float32", np.float64(0.5), 0.5),
        ("complex64", 1 + 2j, 1 + 2j),
        ("int8", cg.tensor(7.8), 7),
    ],
)
@pytest.mark.parametrize(
    "index", [0, [0], slice(0, 1), cg.tensor([True, False, False])], ids=["int", "list", "slice", "mask"]
)
def test_a_number_becomes_of_the_tensors_dtype(dtype, value, expected, index):
    if isinstance(value, cg.Tensor) and not isinstance(index, (int, slice)):
        pytest.skip("an index tensor wants a value of the same dtype")
    x = cg.zeros(3, dtype=getattr(cg, dtype))
    x[index] = value
    assert x.tolist() == [expected, 0, 0] and x.dtype is getattr(cg, dtype)


@pytest.mark.parametrize(
    "dtype, value, c_type",
    [
        ("int8", 300, "int8_t"),
        ("uint8", 300, "uint8_t"),
        ("int32", 2**40, "int"),
        ("int32", float("nan"), "int"),
        ("float32", 1e300, "float"),
        ("float32", 1j, "float"),
    ],
)
def test_a_number_that_does_not_fit_is_refused(dtype, value, c_type):
    x = cg.ones(3, dtype=getattr(cg, dtype))
    for index in (0, [0], cg.tensor([True, False, False])):
        with pytest.raises(RuntimeError, match=f"^value cannot be converted to type {c_type} without overflow"):
            x[index] = value
    assert x.tolist() == [1, 1, 1]


def test_a_value_of_another_dtype_is_cast_into_a_slice():
    x = cg.zeros(3, dtype=cg.int64)
    x[1:] = cg.tensor([1.5, -2.5])
    assert x.tolist() == [0, 1, -2]


def test_leading_dims_of_length_1_of_a_value_do_not_count():
    x = cg.zeros(2, 3)
    x[0] = cg.ones(1, 1, 3)
    x[[1]] = cg.full((1, 1, 1, 3), 2.0)
    x[0, 0] = cg.tensor([5.0])
    assert x.tolist() == [[5, 1, 1], [2, 2, 2]]


# ---- duplicates


def test_adding_at_equal_places_adds_once_and_reading_them_adds_up_the_gradient():
    x = counted(3)
    x[[0, 0]] += 1
    assert x.tolist() == [1, 1, 2]
    y = counted(2).requires_grad_()
    y[cg.tensor([0, 0, 1])].sum().backward()
    assert y.grad.tolist() == [2, 1]


def test_index_put_adds_at_equal_places_where_it_accumulates():
    x = counted(3)
    x.index_put_((cg.tensor([0, 0, 2]),), cg.ones(3, dtype=cg.float64), accumulate=True)
    assert x.tolist() == [2, 1, 3]


def test_gradients_at_equal_places_are_the_same_bits_every_time():
    rng = np.random.default_rng(0)
    for shape, count in (((50, 64), 4000), ((5000, 3), 20000), ((7, 300), 900)):
        index = cg.from_numpy(rng.integers(0, shape[0], count))
        g = cg.from_numpy(rng.standard_normal((count, shape[1])).astype(np.float32))
        grads = []
        for _ in range(3):
            x = cg.zeros(shape).requires_grad_()
            x[index].backward(g)
            grads.append(x.grad.numpy())
        exact = np.zeros(shape)
        np.add.at(exact, index.numpy(), g.numpy().astype(np.float64))
        assert all(np.array_equal(grads[0], other) for other in grads[1:])
        assert np.abs(grads[0] - exact).max() <= 1e-5 * np.abs(exact).max()


@pytest.mark.parametrize("dtype", [cg.float16, cg.bfloat16])
def test_half_gradients_at_one_place_are_added_up_in_float32(dtype):
    """4096 ones make 4096; in float16 itself they stop at 2048, in bfloat16 at 256."""
    x = cg.zeros(3, 40, dtype=dtype).requires_grad_()
    x[cg.zeros(4096, dtype=cg.int64)].sum(0).sum().backward()
    assert x.grad.dtype is dtype and x.grad[0].tolist() == [4096] * 40


def test_a_nan_in_the_gradient_stays_where_it_belongs():
    x = cg.zeros(4, 64).requires_grad_()
    g = cg.ones(200, 64)
    g[0] = float("nan")
    x[cg.arange(200) % 4].backward(g)
    assert bool(x.grad[0].isnan().all()) and x.grad[1:].tolist() == [[50.0] * 64] * 3


# ---- histories


@pytest.mark.parametrize("index", [0, [0], slice(None, None, 2), ..., (slice(None), [0, 1]), True])
def test_a_leaf_that_wants_a_gradient_may_not_be_written(index):
    x = counted(2, 3).requires_grad_()
    for value in (1.0, cg.ones(()).double()):
        with pytest.raises(
            RuntimeError, match="leaf Variable that requires grad is being used in an in-place operation."
        ):
            x[index] = value
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    with cg.no_grad():
        x[index] = 7.0
    assert (x == 7).any()


def test_writing_an_element_tells_whoever_saved_the_tensor():
    w = counted(3).requires_grad_()
    for index in (0, [0], cg.tensor([True, False, False]), slice(1)):
        z = counted(3)
        y = w * z
        z[index] = 5.0
        assert z._version == 1
        with pytest.raises(
            RuntimeError, match="^one of the variables needed for gradient computation has been modified"
        ):
            y.sum().backward()


def test_a_tensor_of_inference_mode_may_not_be_written_outside():
    with cg.inference_mode():
        x = cg.zeros(3)
        x[0] = 1.0
    with pytest.raises(RuntimeError, match="^Inplace update to inference tensor outside InferenceMode is not allowed."):
        x[0] = 2.0
    assert x.tolist() == [1, 0, 0]


def test_writing_into_what_lies_apart_in_memory_is_seen_in_the_base():
    x = counted(2, 3).requires_grad_()
    y = x * 2
    y.t()[[2, 0], [1, 0]] = cg.tensor([10.0, 20.0], dtype=cg.float64)
    assert y.tolist() == [[20, 2, 4], [6, 8, 10]]
    (y * y).sum().backward()
    assert x.grad.tolist() == [[0, 8, 16], [24, 32, 0]]


def test_the_value_may_be_a_part_of_the_tensor_itself():
    x = counted(2, 2).requires_grad_()
    y = x * 1
    y[[0, 1]] = y[[1, 0]]
    y[0] = y[1]
    assert y.tolist() == [[0, 1], [0, 1]]
    (y * y).sum().backward()
    assert x.grad.tolist() == [[0, 4], [0, 0]]


def test_a_leaf_written_into_a_whole_tensor_stays_a_leaf_of_its_own():
    w = counted(3).requires_grad_()
    x = cg.zeros(3, dtype=cg.float64)
    x[...] = w
    assert not x.is_leaf and x.requires_grad
    x[0] = 9.0
    x.sum().backward()
    assert w.grad.tolist() == [0, 1, 1]


def test_an_index_has_a_second_derivative():
    """x[i]^3 summed: the gradient is 3 x^2 a read, and the gradient of its square sum 36 x^3 times reads squared."""
    x = cg.tensor([1.0, 2.0, 3.0], dtype=cg.float64, requires_grad=True)
    (g,) = cg.autograd.grad((x[[0, 0, 2]] ** 3).sum(), x, create_graph=True)
    assert g.tolist() == [6, 0, 27]
    (g * g).sum().backward()
    assert x.grad.tolist() == [2 * 6 * 12, 0, 2 * 27 * 18]
