"""The CUDA device over a double of CuPy: what is launched, with which arguments, and what leaves the GPU."""

import importlib
import inspect
import threading

import numpy as np
import pytest

import cudagrad as cg
from cudagrad.backend import cuda
from cudagrad.backend.kernels.packed import Launcher
from cudagrad.examples.gpt import GPT, loss_of

from ..double import installed
from ..double.array import METHODS
from .common import needs_compiler, probe


@pytest.fixture
def double():
    with installed() as made:
        yield made


def gpu(*shape, dtype="f4", seed=0):
    values = np.random.default_rng(seed).standard_normal(shape).astype(dtype)
    return cg.from_numpy(values).to("cuda")


# ---- launches


@needs_compiler
def test_an_op_launches_its_kernels_with_the_headers_geometry(double):
    x, w, g = gpu(9, 40, seed=1), gpu(40, seed=2), gpu(9, 40, seed=3)
    host = [t.cpu().requires_grad_() for t in (x, w)]
    x.requires_grad_(), w.requires_grad_()
    y = cg.nn.functional.layer_norm(x, (40,), w)
    y.backward(g)
    expected = cg.nn.functional.layer_norm(host[0], (40,), host[1])
    expected.backward(g.cpu())
    for got, wanted in ((y, expected), (x.grad, host[0].grad), (w.grad, host[1].grad)):
        assert got.is_cuda and np.allclose(got.detach().cpu().numpy(), wanted.detach().numpy(), atol=1e-5)
    names = [name for name, *_ in double.launched]
    assert names == ["layer_norm_forward", "layer_norm_backward", "column_sums"]
    assert double.launched[0][1:] == ((3, 1, 1), (32, 4, 1), 0, 0)
    assert double.launched[1][1] == (3, 1, 1)  # 9 rows, 4 a block; at most twice the 3 multiprocessors


@needs_compiler
def test_a_kernel_is_built_once_for_its_variant(double):
    for rows, dtype in ((2, "f4"), (5, "f4"), (2, "f8")):
        cg.softmax(gpu(rows, 64, dtype=dtype), 1)
    assert len(double.built) == 2 and len(double.launched) == 3


@needs_compiler
def test_a_launch_goes_to_the_current_stream(double):
    x = gpu(2, 64)
    stream = cg.cuda.Stream()
    with cg.cuda.stream(stream):
        cg.softmax(x, 1)
    cg.softmax(x, 1)
    assert [at for *_, at in double.launched] == [stream.cupy.ptr, 0] and stream.cupy.ptr


def test_a_launch_that_fails_tells_the_drivers_status_and_a_new_threads_first_is_tried_again(double):
    x, y = gpu(2, 64, 1), gpu(2, 64, 1)
    given = dict(x=x.array, g=None, y=y.array, log=0)
    cuda.run("softmax.cu", "softmax_forward", **given)
    double.libcuda.statuses += [201]
    cuda.run("softmax.cu", "softmax_forward", **given)
    assert len(double.launched) == 2
    double.libcuda.statuses += [719]
    with pytest.raises(RuntimeError, match=r"softmax_forward: the launch failed, CUDA_ERROR_OF_THE_DOUBLE \(719\)"):
        cuda.run("softmax.cu", "softmax_forward", **given)


WIDTHS = {"int": -5, "unsigned": 7, "long long": -(2**40), "unsigned long long": 2**63, "float": 0.1, "double": 0.1}


@needs_compiler
def test_numbers_reach_a_kernel_at_the_width_of_their_parameters(double, tmp_path):
    """Between neighbours, and one that comes from the shapes: nothing is cut off and nothing runs over."""
    names = [f"v{i}" for i in range(len(WIDTHS))]
    parameters = ", ".join(f"{kind} {name}" for kind, name in zip(WIDTHS, names))
    body = "\n".join(f"y[{i}] = (double)v{i};" for i in range(len(names))) + "\ny[6] = N;"
    shapes, parameters = "y: double[N]", f"int N, double* y, {parameters}"
    file = probe(tmp_path, body, shapes, parameters, block="1")
    for _ in range(2):
        y = cg.zeros(7, dtype=cg.float64, device="cuda")
        cuda.run(file, "probe", y=y.array, **dict(zip(names, WIDTHS.values())))
        expected = [float(np.float32(v)) if kind == "float" else float(v) for kind, v in WIDTHS.items()]
        assert y.tolist() == [*expected, 7]


@pytest.mark.parametrize(
    "change, kind, message",
    [
        (dict(v=2**31), ValueError, "argument v = 2147483648 does not fit into int"),
        (dict(v=2.5), ValueError, "argument v = 2.5 is not whole, and int is"),
        (dict(v="5"), (TypeError, ValueError), "v"),
        (dict(v=None), TypeError, "argument v is missing"),
        (dict(w=1), TypeError, "has no argument w"),
        (dict(y=None), TypeError, "argument y is missing"),
        (dict(y=3), TypeError, "argument y must be an array, not int"),
        (dict(y="half"), TypeError, "argument y is float16, and must be float"),
        (dict(y="turned"), ValueError, "argument y must be C-contiguous"),
    ],
)
@needs_compiler
def test_an_argument_that_does_not_fit_is_named(double, tmp_path, change, kind, message):
    file = probe(tmp_path, "y[0] = v;", "y: float[N]", "float* y, int v, int N", block="1")
    y = cg.zeros(4, device="cuda")
    bad = {"half": y.half().array, "turned": y.reshape(2, 2).T.array}
    given = {**dict(y=y.array, v=1), **{k: bad.get(v, v) for k, v in change.items()}}
    for _ in range(2):
        cuda.run(file, "probe", y=y.array, v=1)
        with pytest.raises(kind, match=message):
            cuda.run(file, "probe", **given)


@needs_compiler
def test_an_array_that_is_left_out_is_a_null_pointer(double, tmp_path):
    body = "y[0] = w ? w[0] : 7;"
    file = probe(tmp_path, body, "y: float[N]   w: float[N] or null", "float* y, const float* w, int N", block="1")
    y, w = cg.zeros(4, device="cuda"), cg.full((4,), 3.0, device="cuda")
    for given, first in ((dict(w=w.array), 3), (dict(w=None), 7), ({}, 7), (dict(w=w.array), 3)):
        cuda.run(file, "probe", y=y.array, **given)
        assert y[0].item() == first


@needs_compiler
def test_threads_that_launch_one_plan_have_buffers_of_their_own(double, tmp_path):
    file = probe(tmp_path, "y[0] = v;", "y: double[N]", "double* y, long long v, int N", block="1")
    arrays = [cg.zeros(1, dtype=cg.float64, device="cuda") for _ in range(8)]
    launcher = Launcher(cuda.entries(file)["probe"], ("y", "v"), cuda._driver())
    call, wrong = cuda._driver().launch, []

    def work(i):
        for k in range(30):
            launcher.call(dict(y=arrays[i].array, v=i * 1000 + k), arrays[i].array, i * 1000 + k)
            if arrays[i].array._host[0] != i * 1000 + k:
                wrong.append((i, k))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and call


@needs_compiler
def test_more_shared_memory_than_a_block_has_by_itself_is_asked_for(double, tmp_path):
    file = probe(tmp_path, "y[threadIdx.x] = 1;", "y: float[N]", "float* y, int N", shared="N * 1024")
    entry = cuda.entries(file)["probe"]
    for n, most in ((32, 48), (100, 100), (64, 100)):
        cuda.launch(entry, y=cg.zeros(n, device="cuda").array)
        kernel = cuda._loaded(file, cuda.stamp(file), "probe", double.built[0][1], 0)
        assert kernel.max_dynamic_shared_size_bytes == most << 10
    assert len(double.built) == 1


# ---- what leaves the GPU


class Net(cg.nn.Module):
    def __init__(self):
        super().__init__()
        self.gpt, self.dropout = GPT(11, layers=2, heads=2, width=16, context=8), cg.nn.Dropout(0.1)

    def forward(self, tokens):
        return self.dropout(self.gpt(tokens))


def trained(device, steps, watch=lambda: None):
    cg.manual_seed(5)
    model = Net().to(device)
    cg.manual_seed(6)
    optimizer = cg.optim.AdamW(model.parameters(), lr=1e-2)
    tokens = cg.tensor(np.random.default_rng(0).integers(0, 11, (steps, 4, 9))).to(device)
    losses = []
    for batch in tokens:
        watch()
        loss = loss_of(model, batch[:, :-1], batch[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        cg.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        watch()
        losses.append(loss.detach())
    return [loss.item() for loss in losses]


@needs_compiler
def test_a_training_step_waits_for_nothing_and_has_the_losses_of_the_cpu(double):
    counts = []
    losses = trained("cuda", 3, lambda: counts.append((len(double.to_host), len(double.waits))))
    assert losses == pytest.approx(trained("cpu", 3), rel=1e-4)
    assert counts == [counts[0]] * 6, double.to_host[counts[0][0] :]
    assert len(double.launched) > 20


# ---- the double


def test_the_doubles_methods_have_cupys_signatures():
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    for line in filter(None, METHODS.split("\n")):
        name = line.partition("(")[0]
        told = (getattr(cupy.ndarray, name).__doc__ or "").split("\n")[0]
        if "(" in told:
            assert _names(line) == _names(told.split(" -> ")[0]), name


def _names(text):
    """The names, and the defaults, of the parameters in the text of a signature."""
    parameters = text.partition("(")[2].rpartition(")")[0].split(",")
    return [p.split()[-1] if "=" not in p else p.strip().split(" ")[-1] for p in parameters]


def test_the_doubles_cuda_has_cupys_names_and_parameters(double):
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    for name, own in vars(double.cuda).items():
        real = getattr(cupy.cuda, name)
        if inspect.isclass(own):
            missing = [n for n in dir(own) if n[0] != "_" and n not in ("ptr", "id", *dir(real))]
            assert not [n for n in missing if n not in ("numbers", "non_blocking", "time", "mem", *dir(bytearray))], (
                name
            )
    for name in vars(double.cuda.runtime):
        assert hasattr(cupy.cuda.runtime, name), name
    for name in ("Stream", "Event"):
        theirs = inspect.signature(getattr(cupy.cuda, name))
        assert str(inspect.signature(getattr(double.cuda, name))) == str(theirs)
    errstate = importlib.import_module("cupyx").errstate
    assert str(inspect.signature(errstate)) == str(inspect.signature(double.cupyx.errstate))
    for name in ("used_bytes", "total_bytes", "free_bytes", "free_all_blocks"):
        assert hasattr(cupy.cuda.MemoryPool, name)
    assert "path (str)" in cupy.RawModule.__doc__ and hasattr(cupy.RawModule, "get_function")
    assert hasattr(cupy.RawKernel, "max_dynamic_shared_size_bytes") and hasattr(cupy.RawKernel, "kernel")
    assert hasattr(cupy.cuda.function.Function, "ptr")


def test_a_real_array_of_cupys_tells_what_a_launch_asks():
    """CuPy makes arrays over foreign memory without a GPU."""
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    memory = np.zeros(64, np.float32)
    held = cupy.cuda.UnownedMemory(memory.ctypes.data, memory.nbytes, memory, 0)
    array = cupy.ndarray((4, 8), np.float32, cupy.cuda.MemoryPointer(held, 32))
    assert eval("array" + cuda.Driver.ADDRESS) == memory.ctypes.data + 32
    assert eval("array" + cuda.Driver.CONTIGUOUS) and not eval("array.T" + cuda.Driver.CONTIGUOUS)
    view = array[1:].view()
    view._set_shape_and_strides((2, 2), (0, 4), True, True)
    assert (view.shape, view.strides, view.base is array, view.data.ptr) == ((2, 2), (0, 4), True, array[1].data.ptr)
    assert array.dtype is np.dtype("f4") and array[1:].base is array and array.data.device_id == 0


def test_what_has_no_inverse_is_refused_as_on_the_cpu(double):
    """CuPy returns what cuSOLVER left, unless it is asked to raise."""
    x = cg.zeros(2, 2, device="cuda")
    for act in (cg.linalg.inv, cg.linalg.cholesky, lambda a: cg.linalg.solve(a, a)):
        with pytest.raises(cg.linalg.LinAlgError):
            act(x)


def test_without_a_driver_cuda_says_so_in_one_sentence():
    if cg.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(RuntimeError, match="Found no NVIDIA driver|needs CuPy, which is not installed"):
        cg.ones(1).cuda()
