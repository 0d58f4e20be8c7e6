"""``cudagrad.cuda``, pinned memory, arrays shared with CuPy, and several GPUs, over a double of CuPy."""

import gc
import inspect
import types
import warnings

import ml_dtypes
import numpy as np
import pytest

import cudagrad as cg
from cudagrad.backend import cuda

from ..double import installed


@pytest.fixture
def double():
    with installed() as made:
        yield made


@pytest.fixture
def two():
    """Two GPUs."""
    with installed(2) as made:
        yield made


# ---- without a GPU

NOTHING = {"device_count": 0, "memory_allocated": 0, "max_memory_allocated": 0, "memory_reserved": 0}
NOTHING |= {"empty_cache": None, "reset_peak_memory_stats": None, "seed": None, "seed_all": None, "get_arch_list": []}
NOTHING |= {"is_available": False, "is_bf16_supported": False, "is_initialized": False, "get_rng_state_all": []}


@pytest.mark.parametrize("name", NOTHING)
def test_without_a_gpu_these_ask_nothing_of_it(name):
    if cg.cuda.is_available():
        pytest.skip("there is a GPU here")
    assert getattr(cg.cuda, name)() == NOTHING[name]


@pytest.mark.parametrize("name", ["current_device", "synchronize", "Stream", "current_stream", "init", "mem_get_info"])
def test_without_a_gpu_the_others_say_so_in_one_sentence(name):
    if cg.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(RuntimeError, match="Found no NVIDIA driver|needs CuPy, which is not installed") as told:
        getattr(cg.cuda, name)()
    assert "\n" not in str(told.value)


@pytest.mark.peer
def test_signatures_are_pytorchs():
    torch = pytest.importorskip("torch")
    for name in cg.cuda.__all__:
        ours, theirs = getattr(cg.cuda, name), getattr(torch.cuda, name, None)
        if name.endswith(("Tensor", "Error")):
            continue
        assert theirs is not None, name
        names = [p.name for p in inspect.signature(theirs).parameters.values()]
        assert [p.name for p in inspect.signature(ours).parameters.values()] == names, name


# ---- what a GPU tells


def test_properties_name_and_capability(double):
    facts = cg.cuda.get_device_properties()
    assert (facts.name, facts.total_memory, facts.multi_processor_count, facts.warp_size) == ("Double", 2**33, 3, 32)
    assert facts.L2_cache_size == 2**20 and "name='Double', major=9, minor=0, total_memory=8192MB" in repr(facts)
    assert cg.cuda.get_device_name(0) == "Double" and cg.cuda.get_device_capability("cuda:0") == (9, 0)
    assert cg.cuda.is_available() and cg.cuda.is_initialized() and cg.cuda.is_bf16_supported()
    assert "sm_90a" in cg.cuda.get_arch_list()
    with pytest.raises(AssertionError, match="Invalid device id"):
        cg.cuda.get_device_properties(7)
    with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
        cg.cuda.get_device_name("cpu")


def test_memory_is_counted_with_its_peak(double):
    gc.collect()
    before = cg.cuda.memory_allocated()
    cg.cuda.reset_peak_memory_stats()
    x = cg.zeros(1000, device="cuda")
    y = cg.zeros(300, device="cuda")
    assert cg.cuda.memory_allocated() - before == 4096 + 1536  # pieces of 512 bytes
    del y
    assert cg.cuda.memory_allocated() - before == 4096
    assert cg.cuda.max_memory_allocated() - before == 5632
    assert cg.cuda.memory_reserved() >= 5632 and cg.cuda.max_memory_reserved() >= 5632
    cg.cuda.empty_cache()
    assert cg.cuda.memory_reserved() == cg.cuda.memory_allocated()
    assert cg.cuda.max_memory_reserved() - before >= 5632
    cg.cuda.reset_peak_memory_stats()
    assert cg.cuda.max_memory_allocated() - before == 4096
    assert cg.cuda.memory_stats()["allocated_bytes.all.peak"] == cg.cuda.max_memory_allocated()
    assert cg.cuda.memory_stats_as_nested_dict()["reserved_bytes"]["all"]["current"] == cg.cuda.memory_reserved()
    assert "allocated memory" in cg.cuda.memory_summary() and "device 0" in cg.cuda.memory_summary(0)
    assert cg.cuda.mem_get_info()[1] == 2**33 and cg.cuda.device_memory_used() >= 0
    with pytest.warns(FutureWarning, match="`memory_cached` is deprecated, use `memory_reserved`"):
        cg.cuda.memory_cached()
    assert x.is_cuda


def test_a_limit_of_memory_is_the_pools(double):
    cg.cuda.set_per_process_memory_fraction(0.5)
    assert double.pool.limit == (None, 0.5)
    cg.cuda.set_per_process_memory_fraction(2.0**-20)
    x = cg.zeros(1000, device="cuda")
    first = "CUDA out of memory. Tried to allocate 0.01 MiB. GPU 0 has a total capacity of 8.00 GiB of which "
    with pytest.raises(cg.OutOfMemoryError, match=first) as told:
        x.repeat(2)
    assert isinstance(told.value, RuntimeError) and "repeat got float32 (1000,)" in str(told.value)
    with pytest.raises(ValueError, match="Invalid fraction value: 2.0. Allowed range: 0~1"):
        cg.cuda.set_per_process_memory_fraction(2.0)
    with pytest.raises(TypeError, match="must be `float`"):
        cg.cuda.set_per_process_memory_fraction(1)


def test_an_allocator_of_the_programs_own_stays(double):
    double.cuda.set_allocator(own := lambda size: double.pool.malloc(size))
    cuda._begin(double)
    assert double.cuda.get_allocator() is own
    x = cg.zeros(1000, device="cuda")
    assert cg.cuda.max_memory_allocated() >= 4096 and x.is_cuda


# ---- streams and events


def test_a_stream_is_the_current_one_within(double):
    before = cg.cuda.current_stream()
    assert before == cg.cuda.default_stream() and before.cuda_stream == 0
    outer, inner = cg.cuda.Stream(), cg.cuda.Stream(priority=-1)
    with cg.cuda.stream(outer):
        with inner:
            assert cg.cuda.current_stream() == inner and double.cuda.get_current_stream() == inner.cupy
        assert cg.cuda.current_stream() == outer
    assert cg.cuda.current_stream() == before and outer != inner and len({outer, inner, outer}) == 2
    with cg.cuda.stream(None):
        assert cg.cuda.current_stream() == before
    cg.cuda.set_stream(outer)
    assert cg.cuda.current_stream() == outer
    cg.cuda.set_stream(before)
    assert inner.cupy.priority == -1 and inner.cupy.non_blocking
    assert repr(outer) == f"<torch.cuda.Stream device=cuda:0 cuda_stream={outer.cuda_stream:#x}>"
    assert cg.cuda.ExternalStream(outer.cuda_stream) == outer and not cg.cuda.is_current_stream_capturing()


def test_streams_wait_for_one_another_by_events(double):
    first, second = cg.cuda.Stream(), cg.cuda.Stream()
    second.wait_stream(first)
    (_, at, event), (_, waits, same) = double.stream_calls
    assert (at, waits) == (first.cuda_stream, second.cuda_stream) and event is same
    event = first.record_event()
    event.wait(second)
    with second:
        event.wait()
        event.record()
    assert [(kind, at) for kind, at, _ in double.stream_calls[2:]] == [
        ("record", first.cuda_stream),
        ("wait_event", second.cuda_stream),
        ("wait_event", second.cuda_stream),
        ("record", second.cuda_stream),
    ]
    assert first.query() and event.query()


def test_memory_that_another_stream_uses_waits_for_it(double):
    x, side = cg.zeros(1000, device="cuda"), cg.cuda.Stream()
    before = cg.cuda.memory_allocated()
    x[10:].record_stream(side)
    event = types.SimpleNamespace(done=False)
    side.cupy.record = lambda: event
    del x
    assert cg.cuda.memory_allocated() == before
    event.done = True
    cg.zeros(1, device="cuda")
    assert cg.cuda.memory_allocated() == before - 4096
    cg.zeros(1).record_stream(side)  # of the CPU's nothing need be kept


def test_events_measure_time(double):
    start, end = cg.cuda.Event(enable_timing=True), cg.cuda.Event(enable_timing=True)
    assert repr(start) == "<torch.cuda.Event uninitialized>"
    start.record()
    end.record()
    end.synchronize()
    cg.cuda.synchronize()
    assert 0 <= start.elapsed_time(end) < 60e3 and double.waits == ["Event.synchronize", "Device.synchronize"]
    with pytest.raises(ValueError, match="Both events must be created with argument 'enable_timing=True'."):
        start.elapsed_time(cg.cuda.Event())


# ---- random numbers


def test_a_gpus_generator_has_a_state_of_its_own(double):
    cg.cuda.manual_seed(5)
    state = cg.cuda.get_rng_state()
    first = cg.rand(3, device="cuda")
    cg.cuda.set_rng_state(state)
    assert cg.equal(cg.rand(3, device="cuda"), first) and cg.cuda.initial_seed() == 5
    cg.cuda.set_rng_state_all(cg.cuda.get_rng_state_all())
    cg.cuda.manual_seed_all(5)
    assert cg.equal(cg.rand(3, device="cuda"), first)
    cg.manual_seed(5)
    assert cg.equal(cg.rand(3).cuda(), first)
    cg.cuda.seed_all()
    assert cg.cuda.initial_seed() == cg.cuda.default_generators[0].initial_seed() != 5


# ---- pinned memory


@pytest.mark.parametrize("dtype", [cg.float32, cg.bfloat16, cg.bool])
def test_pinned_memory_is_copied_while_the_program_goes_on(double, dtype):
    x = cg.arange(6).reshape(2, 3).to(dtype)
    pinned = x.pin_memory()
    assert pinned.is_pinned() and not x.is_pinned() and pinned.pin_memory() is pinned and pinned[1:].is_pinned()
    stream = cg.cuda.Stream()
    with stream:
        there = pinned.to("cuda", non_blocking=True)
    assert there.array._memory.copies == [(x.numel() * dtype.itemsize, stream.cuda_stream)]
    assert cg.equal(there.cpu(), x)
    assert not x.cuda(non_blocking=True).array._memory.copies  # from pageable memory by way of a buffer
    double.to_host.clear()
    back = there.to("cpu", non_blocking=True)
    assert back.is_pinned() and not double.to_host and cg.equal(back, x)


def test_empty_tensors_can_be_pinned_and_gpus_not(double):
    assert cg.empty(0, 3).pin_memory().shape == (0, 3)
    assert cg.zeros(2, pin_memory=True).is_pinned()
    with pytest.raises(RuntimeError, match="cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned"):
        cg.zeros(2, device="cuda").pin_memory()


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_pins_its_batches(double, workers):
    data = cg.utils.data.TensorDataset(cg.arange(4.0), cg.arange(4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of fork beside threads, on newer Pythons
        batches = list(cg.utils.data.DataLoader(data, batch_size=2, pin_memory=True, num_workers=workers))
    assert all(t.is_pinned() for batch in batches for t in batch)
    assert [t.tolist() for t in batches[1]] == [[2.0, 3.0], [2, 3]]


# ---- memory shared with CuPy


def test_arrays_of_cupys_are_shared_both_ways(double):
    array = double.asarray(np.arange(4.0))
    for take in (cg.as_tensor, cg.asarray, cg.from_dlpack):
        t = take(array)
        t[0] = 7
        assert t.is_cuda and t.data_ptr() == array.data.ptr and array.get()[0] == 7
        array[0] = 0
    for give in (double.asarray, double.from_dlpack):
        assert give(t).data.ptr == t.data_ptr()
    assert t.__dlpack__(stream=1, max_version=(1, 0)).asked == (1, (1, 0))
    interface = t.__cuda_array_interface__
    assert interface["shape"] == (4,) and interface["data"][0] == t.data_ptr() and interface["version"] == 3
    assert t.__dlpack_device__() == (2, 0)
    with pytest.raises(RuntimeError, match="Can't get __cuda_array_interface__ on Variable that requires grad"):
        cg.zeros(2, device="cuda", requires_grad=True).__cuda_array_interface__
    with pytest.raises(AttributeError, match="on non-CUDA tensor type"):
        cg.zeros(2).__cuda_array_interface__


def test_a_gpus_tensor_does_not_become_a_numpy_array_unasked(double):
    t = cg.zeros(2, device="cuda")
    for ask in (t.numpy, lambda: np.asarray(t)):
        with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
            ask()


def test_half_types_are_made_there(double):
    t = cg.ones(3, dtype=cg.bfloat16, device="cuda")
    assert t.array.dtype == ml_dtypes.bfloat16 and (t + t).tolist() == [2, 2, 2]


def test_a_view_knows_whose_memory_it_is(double):
    """Or a gradient would be taken for nobody else's, and a write to it change another."""
    x, g = cg.ones(1, device="cuda", requires_grad=True), cg.ones((), device="cuda")
    x.sum().backward(g)
    x.grad += 1
    assert g.item() == 1 and x.grad.tolist() == [2]
    whole = cg.arange(12.0, device="cuda")
    window = whole.as_strided((2, 3), (4, 1), 2)
    assert window.tolist() == [[2, 3, 4], [6, 7, 8]] and window.array.base is whole.array
    window.as_strided((2,), (6,), 1).mul_(10)
    assert whole[:8].tolist() == [0, 10, 2, 3, 4, 5, 6, 70]


# ---- several GPUs


def test_tensors_of_two_gpus_do_not_meet(two):
    a, b = cg.ones(2, device="cuda:0"), cg.ones(2, device="cuda:1")
    at = cg.device("cuda", 1)
    for act in (lambda: a + b, lambda: a @ b, lambda: cg.cat([a, b]), lambda: cg.where(a > 0, b, b), lambda: a.add_(b)):
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device, but found at least two"):
            act()
    assert (a + cg.tensor(1.0)).tolist() == [2, 2] and (b * cg.tensor(3.0)).device == at
    assert cg.cuda.current_device() == 0 and cg.cuda.device_count() == 2


def test_work_is_done_where_the_tensors_are(two):
    x = cg.linspace(-1, 1, 12, device="cuda:1").reshape(3, 4).requires_grad_()
    layer = cg.nn.Linear(4, 5).to("cuda:1")
    optimizer = cg.optim.AdamW(layer.parameters(), lr=0.1)
    y = cg.nn.functional.gelu(layer(x)).sort(-1).values
    loss = (y[:, 1:] ** 2).mean() + cg.nn.functional.cross_entropy(y, cg.tensor([0, 1, 2], device="cuda:1"))
    loss.backward()
    cg.nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
    optimizer.step()
    assert x.detach().clone().add_(2).mul_(y[:, :1]).relu_().get_device() == 1
    one = cg.device("cuda:1")
    assert {t.device for t in (x, x.grad, y, loss, *layer.parameters())} == {one}
    assert all(t.array.__class__ is x.array.__class__ for t in (x.grad, y, loss, *layer.parameters()))
    assert cg.cuda.current_device() == 0


def test_the_current_gpu_is_where_tensors_are_made(two):
    with cg.cuda.device(1):
        x = cg.zeros(2, device="cuda")
        assert cg.cuda.current_device() == 1 and x.get_device() == 1
        assert cg.cuda.Stream().device == x.device
    with cg.cuda.device_of(x):
        assert cg.cuda.current_device() == 1
    with cg.cuda.device_of(cg.zeros(1)), cg.cuda.device(-1), cg.cuda.device(None):
        assert cg.cuda.current_device() == 0
    cg.cuda.set_device("cuda:1")
    assert cg.zeros(1).cuda().get_device() == 1
    cg.cuda.set_device(-1)
    assert cg.cuda.current_device() == 1
    cg.cuda.set_device(0)
    assert cg.cuda.memory_allocated(1) >= 512 and cg.cuda.can_device_access_peer(0, 1)


def test_copies_go_from_gpu_to_gpu_without_the_host(two):
    x = cg.arange(6.0, device="cuda:0").reshape(2, 3).T.requires_grad_()
    y = x.to("cuda:1")
    assert y.get_device() == 1 and y.cuda().get_device() == 0 and not two.to_host and x.to("cuda") is x
    (y * 2).sum().backward()
    assert x.grad.get_device() == 0 and x.grad.tolist() == [[2, 2]] * 3


def test_a_users_array_keeps_its_class(two):
    with two.cuda.Device(1):
        array = two.asarray(np.zeros(3))
    t = cg.as_tensor(array, device="cuda:1")
    t += 1
    assert type(array) is two.ndarray and array._host.tolist() == [1, 1, 1] and t.get_device() == 1
