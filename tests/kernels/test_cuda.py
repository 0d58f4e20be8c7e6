"""What the CUDA device asks of CuPy, against a double: arrays in host memory, launches by the emulated device."""

import types

import numpy as np
import pytest

import cudagrad
from cudagrad.backend import cuda, emulator
from cudagrad.backend.kernels import nvrtc
from cudagrad.backend.kernels.header import entries

from .common import needs_compiler

pytestmark = needs_compiler


class Pointed(np.ndarray):
    """A NumPy array with the one attribute of CuPy's that a launch reads."""

    @property
    def data(self):
        return types.SimpleNamespace(ptr=self.__array_interface__["data"][0])


class Function:
    """A RawKernel's call: grid, block, arguments, shared memory; arrays, NumPy scalars and null pointers only."""

    def __init__(self, double, file, name, macros):
        self.double, self.entry, self.macros = double, entries(file)[name], macros

    def __call__(self, grid, block, args, *, shared_mem=0):
        self.double.launched.append((self.entry.name, grid, block, shared_mem))
        assert len(args) == len(self.entry.parameters)
        for p, a in zip(self.entry.parameters, args):
            assert isinstance(a, np.ndarray if p.pointer and not isinstance(a, np.uint64) else np.generic), p.name
        arguments = tuple(
            None if p.pointer and isinstance(a, np.uint64) else a for p, a in zip(self.entry.parameters, args)
        )
        plan = types.SimpleNamespace(entry=self.entry, macros=self.macros, grid=grid, block=block)
        emulator.run(types.SimpleNamespace(**vars(plan), shared=shared_mem, arguments=arguments))


class Double(types.SimpleNamespace):
    """The names of the module ``cupy`` that a launch uses."""

    def __init__(self):
        super().__init__(launched=[], built=[], ndarray=Pointed, float32=np.float32)
        attributes = {"MultiProcessorCount": 3}
        device = types.SimpleNamespace(id=0, attributes=attributes, compute_capability="90")
        self.cuda = types.SimpleNamespace(Device=lambda index=0: device)

    def RawModule(self, *, path):
        file, macros = self.built[int(path)]
        return types.SimpleNamespace(get_function=lambda name: Function(self, file, name, macros))

    def __getattr__(self, name):
        function = getattr(np, name)
        return lambda *args, **kwargs: function(*args, **kwargs).view(Pointed)


@pytest.fixture
def double(monkeypatch):
    cupy = Double()

    def cubin(file, macros, architecture):
        assert architecture == "90"
        cupy.built.append((file, macros))
        return len(cupy.built) - 1

    monkeypatch.setattr(cuda, "cupy", lambda: cupy)
    monkeypatch.setattr(nvrtc, "cubin", cubin)
    for cached in (cuda._loaded, cuda._processors):
        cached.cache_clear()
    yield cupy
    for cached in (cuda._loaded, cuda._processors):
        cached.cache_clear()


def op(name):
    from cudagrad.core.op import TABLE

    return TABLE[name]


def test_an_op_launches_its_kernels_with_the_headers_geometry(double):
    x, w, g = (
        np.random.default_rng(i).standard_normal(s).astype("f4").view(Pointed)
        for i, s in enumerate([(9, 40), 40, (9, 40)])
    )
    layer_norm = op("layer_norm")
    forward = cuda.forward(layer_norm, lambda *given, **options: pytest.fail("ran the text"))
    y, mean, rstd = forward(x, w, None, shape=(40,), eps=1e-5)
    backward = cuda.first_order(layer_norm, layer_norm.fused)
    dx, dw, db = backward(None, g, x, w, (True, True, False), (40,), mean, rstd)
    host = [a.view(np.ndarray) for a in (x, w, g)]
    expected = layer_norm.forward(np, host[0], host[1], None, shape=(40,), eps=1e-5)
    gradients = layer_norm.fused(np, host[2], host[0], host[1], (True, True, False), (40,), *expected[1:])
    for got, wanted in zip((y, dx, dw), (expected[0], *gradients[:2])):
        assert np.allclose(got, wanted, atol=1e-5)
    assert db is None
    names = [name for name, *_ in double.launched]
    assert names == ["layer_norm_forward", "layer_norm_backward", "layer_norm_columns"]
    assert double.launched[0][1:] == ((3, 1, 1), (32, 4, 1), 0)
    assert double.launched[1][1] == (3, 1, 1)  # 9 rows, 4 a block; at most twice the 3 multiprocessors


def test_a_kernel_is_built_once_for_its_variant(double):
    forward = cuda.forward(op("softmax"), None)
    for rows in (2, 5):
        forward(np.ones((rows, 64), "f4").view(Pointed), dim=1)
    forward(np.ones((2, 64), "f8").view(Pointed), dim=1)
    assert len(double.built) == 2 and len(double.launched) == 3


def test_the_doubles_signatures_are_cupys():
    """CuPy imports without a GPU: what the double takes, CuPy's own must take."""
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    assert "path (str)" in cupy.RawModule.__doc__
    assert hasattr(cupy.RawModule, "get_function")
    for name in ("attributes", "compute_capability", "id"):
        assert hasattr(cupy.cuda.Device, name), name
    assert hasattr(cupy.RawKernel, "max_dynamic_shared_size_bytes")


def test_without_a_driver_cuda_says_so_in_one_sentence():
    if cudagrad.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(RuntimeError, match="Found no NVIDIA driver|needs CuPy, which is not installed"):
        cudagrad.ones(1).cuda()
