"""Tensors from Python data, arrays and buffers: dtypes, sharing, warnings and refusals, and the first constructors."""

import warnings

import numpy as np
import pytest

import cudagrad as cg
from cudagrad.ops import conversion


@pytest.fixture(autouse=True)
def warn_again():
    """Warnings that a program sees once, once a test."""
    conversion._warned.clear()


# ---- Python data


INFERRED = [
    (1.0, cg.float32),
    (1, cg.int64),
    (True, cg.bool),
    (1j, cg.complex64),
    ([], cg.float32),
    ([True, 1], cg.int64),
    ([1, 1.5], cg.float32),
    ([1, 1j], cg.complex64),
    ([[1.0, 2], [True, 3]], cg.float32),
    (range(3), cg.int64),
    (bytearray(b"ab"), cg.int64),
    (np.float64(1), cg.float64),
    ([np.float64(1), 2], cg.float64),
    ([np.float32(1), np.float64(2)], cg.float64),
    ([np.int32(1)], cg.int32),
    ([np.int32(1), 2], cg.int64),
    ([np.bool_(True)], cg.bool),
    (np.arange(3, dtype=np.int8), cg.int8),
    (np.array(1.5), cg.float64),
    ([cg.tensor(1.0), cg.tensor(2)], cg.float32),
    ([cg.tensor(1, dtype=cg.int16)], cg.int16),
    ([cg.tensor(1), 2.5], cg.float32),
]


@pytest.mark.parametrize("data, dtype", INFERRED, ids=[str(d) for d, _ in INFERRED])
def test_the_dtype_is_the_highest_that_occurs(data, dtype):
    assert cg.tensor(data).dtype is dtype


def test_python_floats_follow_the_default_dtype():
    cg.set_default_dtype(cg.float64)
    try:
        assert cg.tensor([1.0]).dtype is cg.float64 and cg.tensor(1j).dtype is cg.complex128
        assert cg.zeros(1).dtype is cg.float64 and cg.arange(3.0).dtype is cg.float64
        assert cg.full((1,), 2.0).dtype is cg.float64 and cg.full((1,), 2).dtype is cg.int64
    finally:
        cg.set_default_dtype(cg.float32)


@pytest.mark.parametrize(
    "data, shape",
    [(3, ()), ([], (0,)), ([[]], (1, 0)), ([[], []], (2, 0)), ([[1, 2], (3, 4)], (2, 2)), ([[[1]], [[2]]], (2, 1, 1))],
)
def test_nested_sequences_give_the_shape(data, shape):
    assert cg.tensor(data).shape == shape


VALUES = [
    ([1.5, -1.5], cg.int64, [1, -1]),
    (-1, cg.uint8, 255),
    ([-1], cg.uint16, [65535]),
    (2**63, cg.uint64, 2**63),
    ([2, 0], cg.bool, [True, False]),
    ([float("nan")], cg.bool, [True]),
    ([1e300, 1], cg.float16, [float("inf"), 1.0]),
    (2**70, cg.float32, float(np.float32(2.0**70))),
    ([1, 2.5], cg.int64, [1, 2]),
    ([3.7], cg.uint8, [3]),
    (np.array([300]), cg.uint8, [44]),
    ([1.0, 2.0], cg.bfloat16, [1.0, 2.0]),
    ([True], cg.complex64, [1 + 0j]),
]


@pytest.mark.parametrize("data, dtype, values", VALUES, ids=[f"{d}-{t}" for d, t, _ in VALUES])
def test_a_dtype_converts_each_value_as_pytorch_does(data, dtype, values):
    t = cg.tensor(data, dtype=dtype)
    assert t.dtype is dtype and t.tolist() == values


REFUSED = [
    (lambda: cg.tensor([[1, 2], [3]]), ValueError, "expected sequence of length 2 at dim 1 (got 1)"),
    (lambda: cg.tensor([[1, 2], 3]), TypeError, "not a sequence"),
    (lambda: cg.tensor([1, [2]]), TypeError, "'list' object cannot be interpreted as an integer"),
    (lambda: cg.tensor([1.0, [2.0]]), TypeError, "must be real number, not list"),
    (lambda: cg.tensor("a"), TypeError, "new(): invalid data type 'str'"),
    (lambda: cg.tensor(["a"]), ValueError, "too many dimensions 'str'"),
    (lambda: cg.tensor(b"a"), TypeError, "new(): invalid data type 'bytes'"),
    (lambda: cg.tensor(None), RuntimeError, "Could not infer dtype of NoneType"),
    (lambda: cg.tensor([1, None]), RuntimeError, "Could not infer dtype of NoneType"),
    (lambda: cg.tensor({}), RuntimeError, "Could not infer dtype of dict"),
    (lambda: cg.tensor(2**63), ValueError, "Overflow when unpacking long long"),
    (lambda: cg.tensor(300, dtype=cg.uint8), RuntimeError, "value cannot be converted to type uint8 without overflow"),
    (lambda: cg.tensor(-256, dtype=cg.uint8), RuntimeError, "value cannot be converted to type uint8 without overflow"),
    (
        lambda: cg.tensor([1e10], dtype=cg.int32),
        RuntimeError,
        "value cannot be converted to type int32 without overflow",
    ),
    (lambda: cg.tensor(float("nan"), dtype=cg.int64), RuntimeError, "value cannot be converted to type int64 without"),
    (lambda: cg.tensor([-1], dtype=cg.uint64), OverflowError, "can't convert negative int to unsigned"),
    (lambda: cg.tensor(1j, dtype=cg.float32), TypeError, "must be real number, not complex"),
    (
        lambda: cg.tensor(1, requires_grad=True),
        RuntimeError,
        "Only Tensors of floating point and complex dtype can requ",
    ),
    (lambda: cg.tensor([1], dtype="float"), TypeError, "tensor(): argument 'dtype' must be torch.dtype, not str"),
    (lambda: cg.tensor([cg.ones(2)]), ValueError, "only one element tensors can be converted to Python scalars"),
    (lambda: cg.tensor(np.arange(3)[::-1]), ValueError, "At least one stride in the given numpy array is negative"),
    (
        lambda: cg.tensor(np.arange(3, dtype=">i4")),
        ValueError,
        "given numpy array has byte order different from the nat",
    ),
    (
        lambda: cg.tensor(np.array("a")),
        TypeError,
        "can't convert np.ndarray of type numpy.str_. The only supported typ",
    ),
    (lambda: cg.from_numpy([1]), TypeError, "expected np.ndarray (got list)"),
    (lambda: cg.from_numpy(np.float64(1)), TypeError, "expected np.ndarray (got numpy.float64)"),
    (lambda: cg.asarray([1], copy=False), ValueError, "can't alias arbitrary sequence into a tensor."),
    (lambda: cg.frombuffer([1], dtype=cg.int32), ValueError, "object does not implement Python buffer protocol."),
    (lambda: cg.from_dlpack([1]), RuntimeError, "from_dlpack received an invalid capsule."),
    (
        lambda: cg.empty_strided((2, 3), (1,)),
        RuntimeError,
        "dimensionality of sizes (2) must match dimensionality of st",
    ),
    (
        lambda: cg.empty(2, memory_format=cg.channels_last),
        RuntimeError,
        "required rank 4 tensor to use channels_last f",
    ),
    (
        lambda: cg.zeros(2, dtype=cg.float64, out=cg.empty(2)),
        RuntimeError,
        "dtype Double does not match dtype of out pa",
    ),
    (lambda: cg.zeros_like([1]), TypeError, "zeros_like(): argument 'input' (position 1) must be Tensor, not list"),
    (lambda: cg.ones(1).new_zeros(), TypeError, 'new_zeros() missing 1 required positional arguments: "size"'),
    (lambda: cg.Tensor(2.5), TypeError, "new(): data must be a sequence (got float)"),
    (lambda: cg.Tensor("a"), TypeError, "new(): invalid data type 'str'"),
    (
        lambda: cg.FloatTensor(device="cuda"),
        RuntimeError,
        "legacy constructor expects device type: cpu but device type",
    ),
    (lambda: cg.LongTensor(cg.ones(2)), TypeError, "expected LongTensor"),
]


@pytest.mark.parametrize("call, kind, line", REFUSED, ids=[line[:45] for _, _, line in REFUSED])
def test_what_is_no_data_is_refused_in_pytorchs_words(call, kind, line):
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value).startswith(line)


def test_a_tensor_is_copied_with_a_warning_and_arrays_in_a_list_with_another():
    x = cg.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="^To copy construct from a tensor, it is recommended to use"):
        y = cg.tensor(x)
    assert y.is_leaf and not y.requires_grad and y.data_ptr() != x.data_ptr()
    with pytest.warns(UserWarning, match="^Creating a tensor from a list of numpy.ndarrays is extremely slow"):
        assert cg.tensor([np.arange(2), np.arange(2)]).tolist() == [[0, 1], [0, 1]]
    with pytest.warns(UserWarning, match="^Casting complex values to real discards the imaginary part"):
        assert cg.tensor(np.array([1 + 2j]), dtype=cg.float32).tolist() == [1.0]


def test_a_copy_keeps_the_strides_of_an_array():
    a = np.arange(6.0).reshape(2, 3).T
    t = cg.tensor(a)
    assert t.stride() == (1, 3) and t.tolist() == a.tolist()
    t[0, 0] = 9
    assert a[0, 0] == 0


# ---- shared memory


def test_arrays_and_tensors_share_their_memory():
    a = np.zeros(3)
    for t in (cg.from_numpy(a), cg.as_tensor(a), cg.asarray(a), cg.asarray(a, copy=False), cg.from_dlpack(a)):
        a[0] = 0
        t[0] = 7
        assert a[0] == 7 and t.dtype is cg.float64
    for t in (cg.tensor(a), cg.as_tensor(a, dtype=cg.float32), cg.asarray(a, copy=True)):
        t[0] = 1
        assert a[0] == 7


def test_as_tensor_is_the_tensor_itself_with_its_history():
    x = cg.ones(2, requires_grad=True)
    assert cg.as_tensor(x) is x
    y = cg.as_tensor(x * 2, dtype=cg.float64)
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_asarray_drops_history_unless_a_gradient_is_asked_for():
    x = cg.ones(2, requires_grad=True) * 2
    assert cg.asarray(x).grad_fn is None
    assert cg.asarray(x, requires_grad=True).grad_fn is not None
    assert cg.asarray(np.zeros(2), requires_grad=True).is_leaf
    with pytest.raises(ValueError, match="^can't alias tensor with dtype 'Long' into dtype 'Float'"):
        cg.asarray(np.arange(3), dtype=cg.float32, copy=False)


def test_an_array_that_may_not_be_written_warns_once():
    a = np.broadcast_to(np.arange(3.0), (2, 3))
    with pytest.warns(UserWarning, match="^The given NumPy array is not writable"):
        t = cg.from_numpy(a)
    assert t.stride() == (0, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cg.from_numpy(a)


BUFFERS = [
    ({}, [1684234849, 1751606885]),
    ({"count": 1, "offset": 4}, [1751606885]),
    ({"count": 3}, "requested buffer length (3 * 4 bytes) after offset (0 bytes) must not be greater than actual"),
    ({"offset": 8}, "offset (8 bytes) must be non-negative and no greater than buffer length (8 bytes) minus 1"),
    ({"offset": 5}, "buffer length (3 bytes) after offset (5 bytes) must be a multiple of element size (4)"),
    ({"count": 0}, "both buffer length (8) and count (0) must not be 0"),
]


@pytest.mark.parametrize("options, found", BUFFERS, ids=str)
def test_buffers_are_read_in_place(options, found):
    buffer = bytearray(b"abcdefgh")
    if isinstance(found, str):
        with pytest.raises(ValueError) as caught:
            cg.frombuffer(buffer, dtype=cg.int32, **options)
        assert str(caught.value).startswith(found)
        return
    t = cg.frombuffer(buffer, dtype=cg.int32, **options)
    assert t.tolist() == found
    t[0] = 0
    assert 0 in buffer


def test_dlpack_capsules_come_and_go_without_copies():
    x = cg.arange(4.0)
    y = cg.from_dlpack(cg.to_dlpack(x))
    y[0] = 5
    assert x[0] == 5
    assert np.from_dlpack(x).tolist() == [5.0, 1.0, 2.0, 3.0]
    assert cg.from_dlpack(x, copy=True).data_ptr() != x.data_ptr()


# ---- by size and like others


def test_sizes_come_as_numbers_lists_sizes_or_a_keyword():
    for t in (cg.zeros(2, 3), cg.zeros((2, 3)), cg.zeros([2, 3]), cg.zeros(cg.Size([2, 3])), cg.zeros(size=(2, 3))):
        assert t.shape == (2, 3)
    assert cg.zeros(np.int64(2), cg.tensor(3)).shape == (2, 3)
    assert cg.zeros(()).shape == ()


def test_python_types_name_dtypes():
    for python, dtype in ((float, cg.float64), (int, cg.int64), (bool, cg.bool), (complex, cg.complex128)):
        assert cg.zeros(1, dtype=python).dtype is dtype


def test_out_takes_the_size_and_keeps_its_dtype():
    out = cg.empty(5, dtype=cg.float64)
    assert cg.ones(2, 3, out=out) is out
    assert out.shape == (2, 3) and out.dtype is cg.float64 and out.tolist() == [[1.0] * 3] * 2
    assert cg.arange(3, out=cg.empty(0)).tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(RuntimeError, match=r"functions with out=... arguments don't support automatic differentiation"):
        cg.zeros(2, out=cg.empty(2, requires_grad=True))


LIKE = [
    (lambda: cg.empty(2, 3).t(), (1, 3)),
    (lambda: cg.empty(2, 1).expand(2, 3), (3, 1)),
    (lambda: cg.empty(4, 6)[::2, ::2], (3, 1)),
    (lambda: cg.empty(2, 3, 4, 5, memory_format=cg.channels_last), (60, 1, 15, 3)),
]


@pytest.mark.parametrize("make, strides", LIKE, ids=[str(s) for _, s in LIKE])
def test_tensors_like_another_lie_in_memory_as_it_does(make, strides):
    for function in (cg.empty_like, cg.zeros_like, cg.rand_like, lambda x: cg.full_like(x, 2)):
        assert function(make()).stride() == strides


def test_a_memory_format_is_obeyed():
    x = cg.empty(2, 3, 4, 5)
    assert cg.zeros_like(x, memory_format=cg.channels_last).stride() == (60, 1, 15, 3)
    assert cg.zeros_like(cg.empty(2, 3).t(), memory_format=cg.contiguous_format).stride() == (2, 1)
    assert cg.empty(1, 2, 3, 4, 5, memory_format=cg.channels_last_3d).stride() == (120, 1, 40, 10, 2)
    assert cg.empty_permuted((2, 3), (1, 0)).stride() == (1, 2)
    assert cg.empty_strided((2, 3), (1, 2)).stride() == (1, 2)


def test_new_methods_take_the_dtype_of_their_tensor():
    x = cg.zeros(1, dtype=cg.int16, requires_grad=False)
    assert x.new_zeros(2, 3).dtype is cg.int16 and x.new_ones((2,)).tolist() == [1, 1]
    assert x.new_full((2,), 2.5).tolist() == [2, 2] and x.new_empty(size=(4,)).shape == (4,)
    assert x.new_tensor([1.5]).tolist() == [1] and x.new_zeros(2, dtype=cg.float32).dtype is cg.float32
    assert x.new_empty_strided((2, 3), (1, 2)).stride() == (1, 2)
    assert x.new(2, 3).dtype is cg.int16 and x.new([4, 5]).tolist() == [4, 5]
    assert not cg.ones(1, requires_grad=True).new_zeros(1).requires_grad


def test_factories_heed_requires_grad_also_under_no_grad():
    with cg.no_grad():
        for t in (cg.zeros(1, requires_grad=True), cg.tensor(1.0, requires_grad=True), cg.rand(1, requires_grad=True)):
            assert t.requires_grad and t.is_leaf


def test_integer_ranges_are_counted_in_integers_and_others_in_doubles():
    assert cg.arange(0, 2.5, dtype=cg.int64).tolist() == [0, 1]
    assert cg.arange(0, 2.5, dtype=cg.int32).tolist() == [0, 1, 2]
    assert cg.arange(0, 1, 0.1).shape == (10,)
    assert cg.arange(2**40, 2**40 + 2).tolist() == [2**40, 2**40 + 1]
    assert cg.arange(cg.tensor(3.0)).dtype is cg.float32 and cg.arange(start=1, end=3).tolist() == [1, 2]
    with pytest.warns(UserWarning, match="^torch.range is deprecated"):
        assert cg.range(0, 1, 0.5).tolist() == [0.0, 0.5, 1.0]


def test_linspace_meets_both_ends():
    x = cg.linspace(0.1, 0.7, 11, dtype=cg.float64)
    assert x[0].item() == 0.1 and x[-1].item() == 0.7
    assert cg.linspace(0, 10, 4, dtype=cg.int64).tolist() == [0, 3, 6, 10]


# ---- the first constructors


def test_the_legacy_constructor_takes_sizes_data_and_tensors():
    assert cg.Tensor(2, 3).shape == (2, 3) and cg.Tensor().shape == (0,)
    assert cg.Tensor(cg.Size([2, 3])).shape == (2, 3) and cg.Tensor(np.int64(2)).shape == (2,)
    for data in ([1, 2], (1, 2), np.array([1, 2]), np.array([1.0, 2.0])):
        t = cg.Tensor(data)
        assert t.dtype is cg.float32 and t.tolist() == [1.0, 2.0]
    x = cg.ones(2, dtype=cg.float64)
    assert cg.Tensor(x).data_ptr() == x.data_ptr() and cg.Tensor(x).dtype is cg.float64


def test_the_legacy_constructor_loses_no_wish_in_silence():
    for make in (cg.Tensor, cg.FloatTensor):
        with pytest.raises(
            TypeError, match=r"^new\(\) received an invalid combination of arguments - got \(list, requires_grad=bool\)"
        ):
            make([1.0], requires_grad=True)
        assert make(data=[1.0]).tolist() == [1]


def test_legacy_types_make_tensors_and_are_types_of_tensors():
    assert cg.LongTensor([1.5, 2]).tolist() == [1, 2] and cg.FloatTensor(2, 3).shape == (2, 3)
    assert cg.BoolTensor([1, 0]).tolist() == [True, False] and cg.HalfTensor([1]).dtype is cg.float16
    x = cg.ones(2)
    assert isinstance(x, cg.FloatTensor) and not isinstance(x, cg.LongTensor)
    assert isinstance(cg.nn.Parameter(x), cg.FloatTensor) and not isinstance(3, cg.FloatTensor)
    assert x.type() == "torch.FloatTensor" and x.type(cg.LongTensor).dtype is cg.int64
    assert repr(cg.FloatTensor) == "<class 'torch.FloatTensor'>" and cg.FloatTensor.dtype is cg.float32


def test_a_default_tensor_type_is_a_default_dtype():
    with pytest.warns(UserWarning, match=r"^torch.set_default_tensor_type\(\) is deprecated"):
        cg.set_default_tensor_type("torch.DoubleTensor")
    try:
        assert cg.zeros(1).dtype is cg.float64 and cg.Tensor([1]).dtype is cg.float64
    finally:
        cg.set_default_tensor_type(cg.FloatTensor)
    assert cg.get_default_dtype() is cg.float32
    with pytest.raises(TypeError, match="^only floating-point types are supported as the default type"):
        cg.set_default_tensor_type(cg.LongTensor)


# ---- PyTorch itself, where it is installed


ANSWERS = """
tensor([[1, 2], [3, 4]]) | tensor([1, 1j]) | tensor([True, 1]) | tensor(np.float64(1)) | tensor([]) | tensor([[], []])
full((2,), 1.5, dtype=torch.int64) | full((2,), torch.tensor(3.0)) | full((2,), -1, dtype=torch.uint8) | full((2,), 1j)
arange(5, 0, -2) | arange(0, 2, 0.3) | arange(1, 4, dtype=torch.float16) | arange(True) | arange(torch.tensor(3))
linspace(0, 1, 5) | linspace(0, 10, 4, dtype=torch.int64) | linspace(0, 1j, 3) | logspace(0, 2, 3, base=2)
eye(2, 3, dtype=torch.int64) | scalar_tensor(True) | scalar_tensor(3, dtype=torch.int64) | zeros(2, dtype=int)
hann_window(5) | hann_window(5, False) | hamming_window(5) | bartlett_window(5) | kaiser_window(5) | kaiser_window(1)
asarray(np.arange(3)) | as_tensor([1.0], dtype=torch.int64) | frombuffer(bytearray(b'abcdefgh'), dtype=torch.int32)
zeros_like(torch.empty(2, 3).t()).stride() | full_like(torch.empty(2, dtype=torch.int64), 3.5) | Tensor([True])
randint(3, (2,)).dtype | randperm(4, dtype=torch.float32).dtype | normal(torch.zeros(2, 1), torch.ones(3)).shape
zeros(-1) | zeros(2.5) | ones(2, 2.5) | full((2,), 300, dtype=torch.uint8) | arange(0, 3, 0) | tensor([[1, 2], [3]])
tensor([1, [2]]) | tensor(None) | tensor('a') | rand(2, dtype=torch.int64) | randint(5, 3, (2,)) | randperm(-1)
multinomial(torch.ones(2), 3) | multinomial(torch.zeros(2), 1) | poisson(torch.tensor([-1.0])) | normal(0.0, -1.0, (2,))
"""


@pytest.mark.peer
@pytest.mark.parametrize("call", [c.strip() for line in ANSWERS.strip().splitlines() for c in line.split(" | ")])
def test_pytorch_answers_the_same(call):
    torch = pytest.importorskip("torch")

    def answer(module):
        try:
            return repr(eval("torch." + call, {"torch": module, "np": np}))
        except Exception as e:
            return f"{type(e).__name__}: {str(e).splitlines()[0]}"

    assert answer(cg) == answer(torch)
