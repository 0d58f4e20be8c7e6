"""Indexing by brackets beyond the table of cases: kinds of index, writes, gradients, warnings and errors."""

import numpy as np
import pytest

import cudagrad as cg


def counted(*shape):
    """0, 1, 2, ... in ``shape``, float64."""
    return cg.arange(float(np.prod(shape)), dtype=cg.float64).reshape(*shape).clone()


A = np.arange(24.0).reshape(2, 3, 4)
I, J = np.array([0, 1]), np.array([1, 0])
MASK = A % 5 == 0
OLD = "Using a non-tuple sequence for multidimensional indexing is deprecated"
BYTE = "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead."

# ---- reading: the index, and NumPy's reading of the same elements

READS = [
    # lists, ranges, arrays and NumPy's numbers
    ([1, 0], A[[1, 0]]),
    ([-1], A[[-1]]),
    ([], A[:0]),
    ((slice(None), [0, 2]), A[:, [0, 2]]),
    (([0, 1], [2, 0]), A[[0, 1], [2, 0]]),
    ((..., [0, 3, 3]), A[..., [0, 3, 3]]),
    (range(2), A[[0, 1]]),
    (I, A[I]),
    (I.astype(np.int16), A[I]),
    (np.array([[0, 1], [1, 1]]), A[np.array([[0, 1], [1, 1]])]),
    (np.int64(1), A[1]),
    (np.array(1), A[1]),
    ((np.int32(1), slice(np.int64(1), None)), A[1, 1:]),
    ([True, False], A[[True, False]]),
    (np.array([False, True]), A[1:]),
    ([1.9, 0.2], A[[1, 0]]),
    ([0] * 40, A[[0] * 40]),
    ([[0, 1]] * 40, A[np.array([[0, 1]] * 40)]),
    ([cg.tensor(1)] * 40, A[[1] * 40]),
    # tensors
    (cg.tensor(1), A[1]),
    (cg.tensor([1, 0]), A[J]),
    (cg.tensor([1, 0], dtype=cg.int32), A[J]),
    ((cg.tensor([0, 1]), slice(None), cg.tensor([1, 0])), A[I, :, J]),
    ((0, cg.tensor([0, 1])), A[0][I]),
    ((0, slice(None), cg.tensor([0, 1])), A[0][:, I]),  # an int is taken first; for NumPy it is one more array
    ((cg.tensor(1), slice(None), [0, 1]), A[1][:, I]),
    ((cg.tensor([0, 1]), 0, cg.tensor([1, 0])), A[:, 0][I, J]),
    ((slice(cg.tensor(1), cg.tensor([3])), 0), A[1:3, 0]),
    (cg.from_numpy(MASK), A[MASK]),
    ((slice(None), cg.tensor([True, False, True])), A[:, [0, 2]]),
    ((cg.tensor([True, True]), cg.tensor([True, False, True])), A[[0, 1], [0, 2]]),
    # bools and 0-d masks make a dim
    (True, A[None]),
    (False, A[None][:0]),
    ((None, True), A[None, None]),
    ((True, True), A[None]),
    ((0, True), A[0][None]),
    ((slice(None), False), A[:, None][:, :0]),
    (cg.tensor(True), A[None]),
    (cg.tensor(0, dtype=cg.uint8), A[None][:0]),
    # None and Ellipsis
    ((..., 1, ...), A[..., 1]),  # the first one stands for all the dims there are
    ((..., ...), A),
    ((None, [0, 1], [0, 1]), A[None][:, I, I]),
    (([0, 1], None, [0, 1]), A[:, None][I, :, I]),
    ((), A),
]


@pytest.mark.parametrize("index, expected", READS, ids=[repr(i)[:60] for i, _ in READS])
def test_every_kind_of_index_reads_what_its_definition_says(index, expected):
    got = cg.from_numpy(A)[index]
    assert got.shape == expected.shape and np.array_equal(got.numpy(), expected)


@pytest.mark.parametrize("index, expected", READS, ids=[repr(i)[:60] for i, _ in READS])
def test_every_kind_of_index_sends_the_gradient_back_to_what_it_read(index, expected):
    """The places that were read are found by reading a tensor that holds its own places."""
    x = cg.from_numpy(A).requires_grad_()
    weights = np.random.default_rng(0).standard_normal(expected.shape)
    (x[index] * cg.from_numpy(weights)).sum().backward()
    reference = np.zeros(24)
    np.add.at(reference, expected.astype(int).ravel(), weights.ravel())
    assert np.allclose(x.grad.numpy().ravel(), reference)


@pytest.mark.parametrize("index, expected", READS, ids=[repr(i)[:60] for i, _ in READS])
@pytest.mark.parametrize("scalar", [True, False])
def test_every_kind_of_index_writes_where_it_reads(index, expected, scalar):
    x = cg.from_numpy(A.copy())
    values = np.array(-3.5) if scalar else -1 - np.arange(float(expected.size)).reshape(expected.shape)
    x[index] = -3.5 if scalar else cg.from_numpy(values)
    reference = A.copy().ravel()
    reference[expected.astype(int).ravel()] = values if scalar else values.ravel()  # of equal places the last wins
    assert np.array_equal(x.numpy().ravel(), reference)


@pytest.mark.parametrize("index, expected", READS, ids=[repr(i)[:60] for i, _ in READS])
def test_writing_stops_the_gradient_of_what_was_there_and_passes_that_of_the_value(index, expected):
    places = expected.astype(int).ravel()
    x, w = cg.from_numpy(A).requires_grad_(), counted(*expected.shape).requires_grad_()
    y = x * 2
    y[index] = w * 3
    g = np.random.default_rng(1).standard_normal(A.shape)
    (y * cg.from_numpy(g)).sum().backward()
    kept = 2 * g.ravel()
    kept[places] = 0
    assert np.allclose(0 if x.grad is None else x.grad.numpy().ravel(), kept)
    if len(set(places.tolist())) == places.size:  # the gradient of a value that was overwritten is not defined
        assert np.allclose(w.grad.numpy().ravel(), 3 * g.ravel()[places])


@pytest.mark.parametrize(
    "index, expected",
    [
        ([[0, 1], [1, 0]], A[[0, 1], [1, 0]]),
        ([0, slice(None)], A[0]),
        ([slice(None), 0], A[:, 0]),
        ([None], A[None]),
        ([..., 0], A[..., 0]),
        ([cg.tensor(1), 0], A[1, 0]),
        ([(0, 1)], A[[0, 1]]),
    ],
)
def test_a_list_that_holds_more_than_numbers_counts_as_a_tuple_and_warns(index, expected):
    with pytest.warns(UserWarning, match=OLD):
        got = cg.from_numpy(A)[index]
    assert np.array_equal(got.numpy(), expected)


@pytest.mark.parametrize("mask", [cg.tensor([1, 0], dtype=cg.uint8), np.array([1, 0], np.uint8)])
def test_a_mask_of_bytes_warns(mask):
    with pytest.warns(UserWarning, match=BYTE):
        assert np.array_equal(cg.from_numpy(A)[mask].numpy(), A[:1])


def test_an_iterator_walks_over_the_first_dim():
    rows = list(cg.from_numpy(A))
    assert len(rows) == 2 and np.array_equal(rows[1].numpy(), A[1])
    with pytest.raises(TypeError, match="iteration over a 0-d tensor"):
        iter(cg.tensor(1.0))


def test_a_basic_index_of_a_bare_number_stays_a_tensor():
    x = counted(3)
    assert isinstance(x[1], cg.Tensor) and x[1].shape == () and x[1]._is_view()


# ---- errors

NEITHER = "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got {})"
REFUSED = [
    (1.0, IndexError, NEITHER.format("float")),
    ((0, 1.0), IndexError, NEITHER.format("float")),
    (1j, IndexError, NEITHER.format("complex")),
    ({0}, IndexError, NEITHER.format("set")),
    (np.float32(1), IndexError, NEITHER.format("numpy.float32")),
    (np.bool_(True), IndexError, NEITHER.format("numpy.bool")),
    ("a", TypeError, "new(): invalid data type 'str'"),
    (slice(0.5, 1), TypeError, "slice indices must be integers or None or have an __index__ method"),
    (slice(None, None, -2), ValueError, "step must be greater than zero"),
    ((0, slice(None, None, -1)), ValueError, "step must be greater than zero"),
    ((I, slice(None, None, -1)), ValueError, "step must be greater than zero"),
    (slice(None, None, 0), ValueError, "slice step cannot be zero"),
    (cg.tensor([1.0]), IndexError, "tensors used as indices must be long, int, byte or bool tensors"),
    (cg.tensor([1], dtype=cg.int8), IndexError, "tensors used as indices must be long, int, byte or bool tensors"),
    (
        slice(cg.tensor([0, 1]), None),
        TypeError,
        "only integer tensors of a single element can be converted to an index",
    ),
    (2, IndexError, "index 2 is out of bounds for dimension 0 with size 2"),
    (-3, IndexError, "index -3 is out of bounds for dimension 0 with size 2"),
    ((0, 5), IndexError, "index 5 is out of bounds for dimension 1 with size 3"),
    ((..., -5), IndexError, "index -5 is out of bounds for dimension 2 with size 4"),
    ([0, 2], IndexError, "index 2 is out of bounds for dimension 0 with size 2"),
    (([0, 1], [0, 3]), IndexError, "index 3 is out of bounds for dimension 1 with size 3"),
    ((slice(None), [0, -4]), IndexError, "index -4 is out of bounds for dimension 0 with size 3"),
    ((0, 0, 0, 0), IndexError, "too many indices for tensor of dimension 3"),
    ((slice(None),) * 4, IndexError, "too many indices for tensor of dimension 3"),
    ((I, I, I, I), IndexError, "too many indices for tensor of dimension 3"),
    (
        ([0, 1], [0, 1, 2]),
        IndexError,
        "shape mismatch: indexing tensors could not be broadcast together with shapes [2], [3]",
    ),
    (
        cg.tensor([True, False, True]),
        IndexError,
        "The shape of the mask [3] at index 0 does not match the shape of the indexed tensor [2, 3, 4] at index 0",
    ),
    (
        (slice(None), cg.tensor([[True], [False], [True]])),
        IndexError,
        "The shape of the mask [3, 1] at index 1 does not match the shape of the indexed tensor [2, 3, 4] at index 2",
    ),
]


@pytest.mark.parametrize("index, kind, line", REFUSED, ids=[repr(r[0])[:60] for r in REFUSED])
def test_what_is_no_index_is_refused_in_reading_and_writing_and_nothing_is_changed(index, kind, line):
    x = cg.from_numpy(A.copy())
    for act in (
        lambda: x[index],
        lambda: x.__setitem__(index, 1.0),
        lambda: x.__setitem__(index, cg.ones(()).double()),
    ):
        with pytest.raises(kind) as caught:
            act()
        assert str(caught.value).split("\n")[0] == line
    assert np.array_equal(x.numpy(), A)


def test_a_0d_tensor_has_no_element_0():
    for act in (lambda: cg.tensor(1.0)[0], lambda: cg.tensor(1.0).__setitem__(0, 1)):
        with pytest.raises(IndexError, match=r"^invalid index of a 0-dim tensor. Use `tensor.item\(\)` in Python or"):
            act()
    with pytest.raises(IndexError, match=r"^slice\(\) cannot be applied to a 0-dim tensor."):
        cg.tensor(1.0)[:]
    with pytest.raises(IndexError, match="^too many indices for tensor of dimension 0"):
        cg.tensor(1.0)[cg.tensor([0])]


REFUSED_VALUES = [
    (0, "a", TypeError, "can't assign a str to a torch.DoubleTensor"),
    (0, [1.0], TypeError, "can't assign a list to a torch.DoubleTensor"),
    (0, np.ones(4), TypeError, "can't assign a numpy.ndarray to a torch.DoubleTensor"),
    ([0], None, TypeError, "can't assign a NoneType to a torch.DoubleTensor"),
    (0, 1j, RuntimeError, "value cannot be converted to type double without overflow"),
    (
        0,
        cg.ones(5),
        RuntimeError,
        "The expanded size of the tensor (4) must match the existing size (5) at non-singleton dimension 1.  "
        "Target sizes: "
        "[3, 4].  Tensor sizes: [5]",
    ),
    (
        [0, 1],
        cg.ones(5).double(),
        RuntimeError,
        "shape mismatch: value tensor of shape [5] cannot be broadcast to indexing result of shape [2, 3, 4]",
    ),
    (
        [0, 1],
        cg.ones(4),
        RuntimeError,
        "Index put requires the source and destination dtypes match, got Double for the destination and Float "
        "for the source.",
    ),
]


@pytest.mark.parametrize("index, value, kind, line", REFUSED_VALUES)
def test_a_value_that_does_not_fit_is_refused_and_nothing_is_changed(index, value, kind, line):
    x = cg.from_numpy(A.copy())
    with pytest.raises(kind) as caught:
        x[index] = value
    assert str(caught.value).split("\n")[0] == line
    assert np.array_equal(x.numpy(), A) and x._version == 0
