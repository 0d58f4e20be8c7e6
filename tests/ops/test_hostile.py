"""Programs that nobody should write and somebody does: PyTorch 2.13's answers to them, noted from it."""

import numpy as np
import pytest

import cudagrad
from cudagrad import no_grad


def raises(first, call):
    with pytest.raises((RuntimeError, TypeError, NotImplementedError)) as caught:
        call()
    assert str(caught.value).split("\n")[0] == first


APART = (
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
    "location. Please clone() the tensor before performing the operation."
)


@pytest.mark.parametrize(
    "write",
    [
        lambda x, i: x.scatter_(0, i[:, None].expand(3, 3), x),
        lambda x, i: x.scatter_add_(0, i[:, None].expand(3, 3), x),
        lambda x, i: x.index_add_(0, i, x),
        lambda x, i: x.index_copy_(0, i, x),
        lambda x, i: x.index_put_((i,), x),
        lambda x, i: x.__setitem__(i, x),
        lambda x, i: x.scatter_reduce_(0, i[:, None].expand(3, 3), x, "sum"),
        lambda x, i: x.index_reduce_(0, i, x, "amax"),
    ],
)
def test_a_write_that_moves_elements_wants_its_source_elsewhere(write):
    x, i = cudagrad.arange(9.0).reshape(3, 3).clone(), cudagrad.tensor([1, 2, 0])
    before = x.tolist()
    raises(APART, lambda: write(x, i))
    assert x.tolist() == before


def test_an_operator_writes_onto_its_own_source():
    x = cudagrad.tensor([1.0, 2.0])
    assert x.add_(x).tolist() == [2.0, 4.0]
    x[:] = x
    x[[0, 1]] += 1
    assert x.tolist() == [3.0, 5.0]


def test_what_changes_the_shape_alone_may_be_done_to_an_expanded_tensor():
    x = cudagrad.ones(3, 1).expand(3, 4)
    assert x.t_().shape == (4, 3)
    assert x.unsqueeze_(0).shape == (1, 4, 3) and x.squeeze_().swapaxes_(0, 1).shape == (3, 4)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        x.zero_()


def test_one_element_given_through_a_mask_is_cast():
    x = cudagrad.tensor([1.0, 2.0, 3.0])
    x[x > 1] = cudagrad.tensor([5])
    assert x.tolist() == [1.0, 5.0, 5.0]
    x[x > 1] = cudagrad.tensor(6)
    assert x.tolist() == [1.0, 6.0, 6.0]
    x[x > 5] = x[:1]  # of its own memory
    assert x.tolist() == [1.0, 1.0, 1.0]
    whole = cudagrad.tensor([1, 2])
    whole[whole > 1] = cudagrad.tensor([1.5])
    assert whole.tolist() == [1, 1]
    first = (
        "Index put requires the source and destination dtypes match, got Float for the destination and Long for the "
        "source."
    )
    raises(first, lambda: x.__setitem__(cudagrad.tensor([0, 1]), cudagrad.tensor(6)))
    raises(first, lambda: x.__setitem__(x > 0, cudagrad.tensor([1, 2, 3])))
    with pytest.raises(RuntimeError):  # a complex number is no float
        x[x > 0] = cudagrad.tensor([1j])


def test_its_gradient_flows_through_the_cast():
    x, v = cudagrad.ones(3, requires_grad=True), cudagrad.tensor([2.0], dtype=cudagrad.float64, requires_grad=True)
    y = x * 1
    y[y > 0] = v
    y.sum().backward()
    assert x.grad.tolist() == [0, 0, 0] and v.grad.tolist() == [3.0] and v.grad.dtype is cudagrad.float64


@pytest.mark.parametrize(
    "minus",
    [
        lambda x: x - True,
        lambda x: True - x,
        lambda x: x.sub_(True),
        lambda x: x.__isub__(True),
        lambda x: cudagrad.sub(x, True),
        lambda x: cudagrad.rsub(x, True),
    ],
)
def test_a_bool_is_not_subtracted(minus):
    first = (
        "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use "
        "the `~` or `logical_not()` operator instead."
    )
    for x in (cudagrad.tensor([1, 2]), cudagrad.tensor([1.0, 2.0])):
        raises(first, lambda x=x: minus(x))
    assert (cudagrad.tensor([1]) + True).tolist() == [2] and (True * cudagrad.tensor([3.0])).tolist() == [3.0]


def test_zeros_for_an_unused_input_want_a_gradient_with_create_graph():
    x, unused = cudagrad.ones(2, requires_grad=True), cudagrad.ones(3, requires_grad=True)
    for create in (False, True):
        y = (x * x).sum()
        _, zeros = cudagrad.autograd.grad(y, (x, unused), create_graph=create, materialize_grads=True)
        assert zeros.tolist() == [0, 0, 0] and zeros.requires_grad is create


@pytest.mark.parametrize("name", ["floor_divide", "heaviside"])
def test_an_unknown_derivative_is_an_error_and_not_silence(name):
    x = cudagrad.tensor([1.0, 3.0], requires_grad=True)
    y = getattr(cudagrad, name)(x, cudagrad.tensor([2.0, 2.0]))
    assert y.requires_grad and y.grad_fn.name() == "torch::autograd::NotImplemented"
    assert "grad_fn=<NotImplemented>" in repr(y)
    raises(f"derivative for aten::{name} is not implemented", lambda: (y + x).sum().backward())


def test_the_second_derivative_of_a_remainder_is_zero():
    x, y = cudagrad.tensor([7.0], requires_grad=True), cudagrad.tensor([3.0], requires_grad=True)
    (g,) = cudagrad.autograd.grad(x % y, y, create_graph=True)
    assert g.tolist() == [-2.0]
    assert cudagrad.autograd.grad((g * g).sum(), y)[0].tolist() == [0.0]


def test_a_result_that_does_not_fit_out_resizes_it_and_says_so():
    out = cudagrad.zeros(2, 3)
    with pytest.warns(UserWarning, match=r"was resized since it had shape \[2, 3\].*output shape \[4\]"):
        cudagrad.exp(cudagrad.zeros(4), out=out)
    assert out.tolist() == [1, 1, 1, 1]
    empty = cudagrad.zeros(0)
    assert cudagrad.exp(cudagrad.zeros(4), out=empty) is empty and empty.shape == (4,)


def test_resizing_keeps_the_memory_where_it_suffices():
    x = cudagrad.arange(6.0).reshape(2, 3).clone()
    row = x[0]
    x.resize_(2, 2)
    assert x.tolist() == [[0, 1], [2, 3]] and x._version == 1
    row[0] = 9.0
    assert x.tolist() == [[9, 1], [2, 3]]
    x.resize_(2, 3)
    assert x.tolist() == [[9, 1, 2], [3, 4, 5]]
    assert x.resize_(8).tolist()[:6] == [9, 1, 2, 3, 4, 5]


def test_other_answers():
    assert cudagrad.ones(0, 3).fill_diagonal_(1).shape == (0, 3)
    x = cudagrad.ones(2, requires_grad=True)
    assert cudagrad.broadcast_tensors(x, x)[0] is x
    first = "Could not set tensor of type long int to a tensor of type float"
    raises(first, lambda: cudagrad.ones(2).set_(cudagrad.ones(2, dtype=cudagrad.int64)))
    raises("abs_(): argument 'input' (position 1) must be Tensor, not str", lambda: cudagrad.abs_("x"))
    with no_grad():
        raises("relu_(): argument 'input' (position 1) must be Tensor, not str", lambda: cudagrad.relu_("x"))


def test_a_mask_of_two_dims_takes_a_row_of_values():
    x = cudagrad.zeros(2, 2)
    x[cudagrad.tensor([[True, False], [True, True]])] = cudagrad.tensor([[1.0, 2.0, 3.0]])
    assert x.tolist() == [[1.0, 0.0], [2.0, 3.0]]


def test_nothing_is_divided_by_zero_where_there_is_nothing():
    empty = cudagrad.zeros(0, dtype=cudagrad.int64)
    for divided in (empty // 0, empty % 0, cudagrad.fmod(empty, 0), cudagrad.div(empty, 0, rounding_mode="trunc")):
        assert divided.shape == (0,)
    raises("ZeroDivisionError", lambda: cudagrad.tensor([1]) // 0)


def test_complex_numbers_have_no_order():
    z = cudagrad.tensor([1 + 1j, 2.0])
    raises("max(): does not support complex input", lambda: z.max(0))
    raises("min(): does not support complex input", lambda: z.min(0))
    raises("\"median_cpu\" not implemented for 'ComplexFloat'", lambda: z.median())
    raises("\"median_out\" not implemented for 'ComplexFloat'", lambda: z.median(0))
    raises("\"mode_cpu\" not implemented for 'ComplexFloat'", lambda: z.mode())
    raises("\"kthvalue_cpu\" not implemented for 'ComplexFloat'", lambda: z.kthvalue(1))
    raises("\"kthvalue_cpu\" not implemented for 'Bool'", lambda: cudagrad.tensor([True]).kthvalue(1))


def test_result_type():
    whole, halves = cudagrad.tensor([1]), cudagrad.ones(1, dtype=cudagrad.float16)
    assert cudagrad.result_type(whole, 1.0) is cudagrad.float32
    assert cudagrad.result_type(1.0, whole) is cudagrad.float32
    assert cudagrad.result_type(whole, halves) is cudagrad.float16
    assert cudagrad.result_type(halves, cudagrad.tensor(1.0, dtype=cudagrad.float64)) is cudagrad.float16
    assert cudagrad.result_type(whole, cudagrad.tensor(1.0, dtype=cudagrad.float64)) is cudagrad.float64
    assert cudagrad.result_type(whole, True) is cudagrad.int64
    assert cudagrad.result_type(cudagrad.ones(1), 1j) is cudagrad.complex64
    assert cudagrad.result_type(1, 2.0) is cudagrad.float32


def test_groups_of_an_optimizer_are_printed_apart():
    p, q = cudagrad.ones(1, requires_grad=True), cudagrad.ones(1, requires_grad=True)
    optimizer = cudagrad.optim.SGD([{"params": [p]}, {"params": [q], "lr": 0.5}], lr=0.1)
    assert "weight_decay: 0\n\nParameter Group 1\n    dampening: 0\n" in repr(optimizer)


@pytest.mark.parametrize("into", [cudagrad.tensor([1.5]), cudagrad.tensor(1.5)])
def test_one_element_is_scattered_from_a_tensor_without_dims(into):
    index, src = cudagrad.tensor([0]), cudagrad.tensor(2.0, requires_grad=True)
    assert into.scatter(0, index, src).flatten().tolist() == [2.0]
    assert into.scatter_add(0, index, src).flatten().tolist() == [3.5]
    assert into.clone().scatter_add_(0, index, src).flatten().tolist() == [3.5]
    assert into.clone().scatter_(0, index, src).flatten().tolist() == [2.0]
    for reduce, expected in (("sum", 3.5), ("prod", 3.0), ("mean", 1.75), ("amax", 2.0), ("amin", 1.5)):
        assert into.scatter_reduce(0, index, src, reduce).flatten().tolist() == [expected]
    into.scatter_add(0, index, src * 3).sum().backward()
    assert src.grad.shape == () and src.grad.item() == 3.0


def test_a_zero_remainder_has_the_sign_of_the_dividend():
    def signs(x):
        return [f"{v:+.0f}" for v in x.tolist()]

    x = cudagrad.tensor([-2.0, 2.0, -0.0, 0.0, 5.0, -5.0])
    assert signs(x % 2.0) == ["-0", "+0", "-0", "+0", "+1", "+1"]
    assert signs(x % -2.0) == ["-0", "+0", "-0", "+0", "-1", "-1"]
    infinite = float("inf")
    assert (cudagrad.tensor([1.0, -1.0]) % infinite).tolist() == [1.0, infinite]
    for half in (cudagrad.float16, cudagrad.bfloat16):
        assert (cudagrad.tensor([-7.5, 7.5], dtype=half) % 2).tolist() == [0.5, 1.5]
    assert (cudagrad.tensor([-7, 7]) % -2).tolist() == [-1, -1]


def test_bytes_wrap_round_and_do_not_overflow():
    x = cudagrad.tensor([200, 3], dtype=cudagrad.uint8)
    assert cudagrad.addcmul(x, x, x, value=-1).tolist() == [136, 250]
    assert x.addcmul_(x, x, value=-1).tolist() == [136, 250]
    assert cudagrad.trapz(cudagrad.tensor([200, 200, 7], dtype=cudagrad.uint8)).item() == 303.5


BENT = ["relu", "relu6", "leaky_relu", "hardtanh", "hardsigmoid", "softshrink", "hardshrink", "rrelu"]


@pytest.mark.parametrize("name", [*BENT, "threshold", "prelu", "relu_"])
@pytest.mark.parametrize("dtype", [cudagrad.float64, cudagrad.bfloat16])
def test_the_second_derivative_of_straight_pieces_is_zero(name, dtype):
    functional = cudagrad.nn.functional
    more = {"threshold": (0.1, 0.0), "prelu": (cudagrad.tensor([0.25], dtype=dtype),)}.get(name, ())
    x = cudagrad.tensor([0.25, -1.5, 2.0], dtype=dtype, requires_grad=True)
    scale = cudagrad.tensor(3.0, dtype=dtype, requires_grad=True)
    y = getattr(functional, name)(x * 1, *more) * scale
    (g,) = cudagrad.autograd.grad(y.sum(), x, create_graph=True)
    assert g.requires_grad
    by_x, by_scale = cudagrad.autograd.grad((g * g).sum(), (x, scale))
    assert by_x.tolist() == [0.0, 0.0, 0.0]
    assert abs(by_scale.item() - (g * g).sum().item() * 2 / 3) < 0.05 * by_scale.item()


def test_so_is_that_of_the_largest_of_a_window():
    x = cudagrad.tensor([[0.25, -1.5, 2.0, 1.0]], requires_grad=True)
    scale = cudagrad.tensor(3.0, requires_grad=True)
    y = cudagrad.nn.functional.max_pool1d(x, 2) * scale
    (g,) = cudagrad.autograd.grad(y.sum(), x, create_graph=True)
    assert g.tolist() == [[3.0, 0.0, 3.0, 0.0]]
    by_x, by_scale = cudagrad.autograd.grad((g * g).sum(), (x, scale))
    assert by_x.tolist() == [[0.0] * 4] and by_scale.item() == 12.0


def test_a_quotient_of_bytes_is_taken_of_the_numbers_themselves():
    u, i = cudagrad.tensor([1, 2, 200], dtype=cudagrad.uint8), cudagrad.tensor([100, -4], dtype=cudagrad.int8)
    assert (u / -2).tolist() == [-0.5, -1.0, -100.0] == u.div(-2).tolist()
    assert (-1 / u[:2]).tolist() == [-1.0, -0.5] and (300 / u).tolist() == [300.0, 150.0, 1.5]
    assert (u[2:] / 400).tolist() == [0.5] and (i / 200).tolist() == [0.5, np.float32(-0.02)]
    minus, many = cudagrad.tensor(-2), cudagrad.tensor(400)
    assert (u / minus).tolist() == [-0.5, -1.0, -100.0] and (minus / u[:2]).tolist() == [-2.0, -1.0]
    assert (u[2:] / many).tolist() == [0.5] and (many / u).tolist() == [400.0, 200.0, 2.0]
    assert np.allclose(cudagrad.atan2(u, minus).numpy(), np.arctan2([1, 2, 200], -2.0))
    assert cudagrad.copysign(u, minus).tolist() == [-1.0, -2.0, -200.0] == cudagrad.copysign(u, -2).tolist()
    assert np.allclose(cudagrad.xlogy(-2, u).numpy(), -2 * np.log([1, 2, 200]))
    assert np.allclose(cudagrad.xlogy(u, 300).numpy(), np.multiply([1, 2, 200], np.log(300)))
    assert (u / many).dtype is cudagrad.float32
    assert (u * -2).tolist() == [254, 252, 112]  # which stays a product of bytes, and wraps round


def test_views_of_nothing_may_begin_past_its_end():
    x = cudagrad.tensor([], dtype=cudagrad.float32).reshape(2, 3, 0)
    x[1:] += x[:-1]
    assert x.shape == (2, 3, 0) and x[1:].diagonal().shape == (0, 1)
    assert x.tensor_split(2)[1].diagonal().shape == (0, 1) and x[1:].unfold(1, 2, 1).shape == (1, 2, 0, 2)
    assert x[1:].as_strided((0,), (1,)).shape == (0,) and x[1:].mT.unsqueeze(0).shape == (1, 1, 0, 3)
