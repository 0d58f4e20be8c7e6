"""``cudagrad.kernel``: a user's own CUDA C as a differentiable function, its gradients, checks and errors."""

import contextlib
import copy
import os
import pickle
import shutil
import threading
import warnings

import ml_dtypes
import numpy as np
import pytest

import cudagrad as torch
import cudagrad.config
from cudagrad.autograd import GradcheckError
from cudagrad.backend import emulator
from cudagrad.backend.emulator import KernelError, build
from cudagrad.backend.kernels import header, nvrtc
from cudagrad.backend.kernels.header import HeaderError
from cudagrad.tools import where

from ..double import installed, launch
from .common import needs_compiler, needs_lines, needs_nvrtc

SCALE = """
extern "C" __global__ void scale(const float* x, float* y, float k, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) y[i] = k * x[i];  // the product
}
"""
STATED = "x: float[N] -> y: float[N]"


def by_element(name, body, parameters, includes=""):
    """The source of a kernel that computes ``body`` for each i below N."""
    return (
        f'{includes}\nextern "C" __global__ void {name}({parameters}, int N) {{\n'
        f"  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < N) {{ {body} }}\n}}\n"
    )


def scale(**options):
    return torch.kernel(SCALE, STATED, **{"grad": lambda g, k: k * g, **options})


def cube(signature="x: T[N] -> y: T[N]", **options):
    return torch.kernel(
        by_element("cube", "y[i] = x[i] * x[i] * x[i];", "const CG_T* x, CG_T* y"), signature, **options
    )


def cube_backward(body="dx[i] = 3 * x[i] * x[i] * g[i];", **options):
    text = by_element("cube_backward", body, "const CG_T* g, const CG_T* x, CG_T* dx")
    return torch.kernel(text, "g, x: T[N] -> dx: T[N]", **options)


def numbers(*shape, seed=1, dtype="f4"):
    return torch.tensor(np.random.default_rng(seed).standard_normal(shape).astype(dtype))


# ---- what it computes


@needs_compiler
@pytest.mark.parametrize("device", ["cpu", "emulated"])
def test_a_plain_kernel_is_a_differentiable_function(device):
    x = numbers(700).to(device).requires_grad_()
    y = scale()(x, 2.5)
    assert type(y.array) is type(x.array) and y.device == x.device
    assert np.array_equal(y.detach().cpu().numpy(), x.detach().cpu().numpy() * np.float32(2.5))
    (y * y).sum().backward()
    assert torch.allclose(x.grad, 12.5 * x)


@needs_compiler
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("included", ["", '#include "common.cuh"\n'])
def test_a_type_letter_serves_every_dtype(dtype, included):
    text = by_element("twice", "y[i] = (CG_T)((CG_A)x[i] * 2);", "const CG_T* x, CG_T* y", included)
    text = text if not included else text.replace("CG_T", "T").replace("CG_A", "A")
    x = torch.arange(5).to(getattr(torch, dtype))
    y = torch.kernel(text, "x: T[N] -> y: T[N]")(x)
    assert y.dtype is x.dtype and y.tolist() == [0, 2, 4, 6, 8]


@needs_compiler
@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "uint16", "int32", "int64", "uint32", "uint64", "bool"])
def test_numpys_words_name_c_types(name):
    kinds = {"int8": "signed char", "uint8": "unsigned char", "int16": "short", "uint16": "unsigned short"}
    kinds |= {"int32": "int", "int64": "long long", "uint32": "unsigned int", "uint64": "unsigned long long"}
    c = kinds.get(name, "bool")
    text = by_element("copied", "y[i] = x[i];", f"const {c}* __restrict__ x, {c}* y")
    x = torch.tensor([0, 1, 1]).to(getattr(torch, name))
    for stated in (name, " ".join(c.split())):
        y = torch.kernel(text, f"x: {stated}[N] -> y: {stated}[N]")(x)
        assert y.dtype is x.dtype and y.tolist() == x.tolist() and not y.requires_grad


@needs_compiler
@pytest.mark.parametrize(("c", "name"), [("__half", "float16"), ("half", "float16"), ("__nv_bfloat16", "bfloat16")])
def test_half_types_may_be_named_with_cudas_headers(c, name):
    includes = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"
    text = by_element("twice", f"y[i] = ({c})((float)x[i] * 2.0f);", f"const {c} *x, {c} *y", includes)
    y = torch.kernel(text, f"x: {name}[N] -> y: {name}[N]")(torch.arange(3).to(getattr(torch, name)))
    assert y.dtype is getattr(torch, name) and y.tolist() == [0, 2, 4]


@needs_compiler
def test_a_scalar_is_an_array_of_no_axes():
    text = """#include "common.cuh"
    template <class S> __global__ void of_a_template(S* x) {}

    extern "C" __global__ void mean(const float* x, const float* scale, float* y, int N) {
      float v = 0;
      for (int i = threadIdx.x; i < N; i += blockDim.x) v += x[i];
      v = row_sum(v);
      if (threadIdx.x == 0) *y = *scale * v / N;
    }"""
    grad = {"grad": lambda g, x, scale, y: ((scale * g / len(x)).expand(len(x)), g * y / scale)}
    run = torch.kernel(text, "x: float[N], scale: float[] -> y: float[]", block=64, **grad, check=True)
    x, scale = numbers(300).requires_grad_(), torch.tensor(3.0, requires_grad=True)
    y = run(x, scale)
    y.backward()
    assert y.shape == () and torch.allclose(y, 3 * x.mean()) and torch.allclose(scale.grad, x.mean())


@needs_compiler
def test_arguments_may_have_any_name():
    names = ("entry", "like", "given", "xp", "lambda", "unwanted", "shared")
    parameters = "const float* x, float* y, " + ", ".join(f"float {n}" for n in names)
    text = by_element("named", f"y[i] = x[i] * ({' + '.join(names)});", parameters)
    run = torch.kernel(text, "x: float[N] -> y: float[N]")
    assert run(torch.ones(2), **dict.fromkeys(names, 2)).tolist() == [14, 14]
    text = by_element("named", "self[i] = entry[i];", "const float* entry, float* self")
    run = torch.kernel(text, "entry: float[N] -> self: float[N]", grad=lambda dself: dself, check=True)
    assert run(entry=torch.ones(2)).tolist() == [1, 1]
    with pytest.raises(TypeError, match="named: has no argument self"):
        run(self=torch.ones(2))


@needs_compiler
def test_numbers_come_in_cs_order_or_by_name():
    x = numbers(4)
    run = scale()
    for y in (run(x, 2), run(x, k=2), run(k=np.float64(2), x=x), run(x, np.float32(2), N=4)):
        assert y.tolist() == (2 * x).tolist()
    assert repr(run) == "<kernel scale(x, k) -> y>"


@needs_compiler
def test_numbers_have_the_widths_of_c():
    text = by_element(
        "widths",
        "y[i] = x[i] * 0 + a * 1e-9 + b + (c > 4294967295ull) + d;",
        "const double* x, double* y, double a, unsigned b, unsigned long long c, bool d",
    )
    y = torch.kernel(text, "x: double[N] -> y: double[N]")(numbers(1, dtype="f8"), 1e-3, 2**32 - 1, 2**63, True)
    assert y.item() == 1e-12 + 2**32 - 1 + 1 + 1


@needs_compiler
def test_a_path_and_a_source_with_headers(tmp_path):
    (tmp_path / "own.cuh").write_text("__device__ inline float by(float k, float x) { return k * x; }\n")
    file = tmp_path / "own.cu"
    file.write_text('#include "own.cuh"\n' + SCALE.replace("k * x[i]", "by(k, x[i])"))
    for path in (file, str(file)):
        assert torch.kernel(path, STATED)(torch.ones(3), 4).tolist() == [4, 4, 4]
    run = torch.kernel(file, STATED)
    again = pickle.loads(pickle.dumps(run))
    assert again(torch.ones(1), 2).item() == 2
    os.utime(file, (1, 1))
    for edited in (run, again):
        with pytest.raises(RuntimeError, match=r"own\.cu has changed since kernel\(\.\.\.\) read it: call that again"):
            edited(torch.ones(1), 2)
    run = torch.kernel(file, STATED)
    (tmp_path / "own.cuh").write_text("__device__ inline float by(float k, float x) { return k * x + 1; }\n")
    os.utime(tmp_path / "own.cuh", (2, 2))
    with pytest.raises(RuntimeError, match=r"own\.cuh has changed since kernel\(\.\.\.\) read it: call that again"):
        run(torch.ones(1), 2)
    assert torch.kernel(file, STATED)(torch.ones(1), 2).item() == 3  # and not what was built before
    header = (
        "/*\nscale                     y = k x\n\nmath     y = k x\nsource   this test\nshapes   x, y: float[N]\n"
        "launch   grid = ceil(N, 32)   block = 32   shared = 0\nbytes    0\nflops    0\nlimits   N < 100\n"
        "used by  this test\n*/"
    )
    run = torch.kernel(header + SCALE)
    assert run(torch.ones(40), 4).sum() == 160
    with pytest.raises(ValueError, match=r"scale: outside its limits \(N < 100\) with N = 100"):
        run(torch.ones(100), 4)
    with pytest.raises(TypeError, match="the source's header states the launch"):
        torch.kernel(header + SCALE, block=64)


@needs_compiler
def test_shapes_of_outputs_are_expressions_and_there_may_be_several():
    body = "if (i + 2 < N) y[i] = x[i] + x[i + 2]; if (i < M) z[i] = i; if (i == 0) s[0] = N;"
    text = by_element("several", body, "const float* x, float* y, int* z, float* s, int M")
    run = torch.kernel(text, "x: float[N] -> y: float[N - 2], z: int[M], s: float[ceil(N, 100)]", grid=1, check=True)
    y, z, s = run(torch.arange(5.0), 3)
    assert (y.tolist(), z.tolist(), s.tolist()) == ([2, 4, 6], [0, 1, 2], [5])
    with pytest.raises(ValueError, match=r"several: output y would have shape \(-1,\), \[N-2\]"):
        run(torch.ones(1), 3)


@needs_compiler
def test_geometry_may_be_of_several_dims_with_shared_memory():
    text = """
    extern "C" __global__ void transposed(const float* x, float* y, int N, int C) {
      extern __shared__ float tile[];
      int j = blockIdx.x * 8 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;
      if (i < N && j < C) tile[threadIdx.y * 9 + threadIdx.x] = x[i * C + j];
      __syncthreads();
      j = blockIdx.x * 8 + threadIdx.y, i = blockIdx.y * 8 + threadIdx.x;
      if (i < N && j < C) y[j * N + i] = tile[threadIdx.x * 9 + threadIdx.y];
    }"""
    run = torch.kernel(
        text, "x: float[N,C] -> y: float[C,N]", grid=("ceil(C, 8)", "ceil(N, 8)"), block=(8, 8), shared=8 * 9 * 4,
        grad=lambda g: g.T, check=True,
    )  # fmt: skip
    x = numbers(13, 21).requires_grad_()
    assert torch.equal(run(x), x.T)
    (run(x) * x.T).sum().backward()


@needs_compiler
def test_shared_and_constant_memory_may_be_declared_outside_of_functions():
    text = """
    extern __shared__ __align__(16) char room[];
    __constant__ float taps[3] = {1, 2, 4};
    extern "C" __global__ void convolved(const float* x, float* y, int N) {
      float* kept = (float*)room;
      kept[threadIdx.x] = x[threadIdx.x];
      __syncthreads();
      if (threadIdx.x + 2 < N)
        for (int t = y[threadIdx.x] = 0; t < 3; ++t) y[threadIdx.x] += taps[t] * kept[threadIdx.x + t];
    }"""
    run = torch.kernel(text, "x: float[N] -> y: float[N - 2]", grid=1, block="N", shared="4 * N", check=True)
    assert run(torch.arange(5.0)).tolist() == [10, 17, 24]


@needs_compiler
def test_one_axis_may_stand_for_several():
    text = by_element("rows", "y[i] = x[i] * w[i % C];", "const float* x, const float* w, float* y, int C, int R")
    text = text.replace("i < N", "i < R * C").replace(", int N)", ")")
    run = torch.kernel(
        text, "x: float[R...,C], w: float[C] -> y: float[R...,C]",
        grad=lambda g, x, w: (g * w, (g * x).sum_to_size(w.shape)), check=True,
    )  # fmt: skip
    w = numbers(3)
    for shape in ((3,), (4, 3), (2, 5, 3)):
        x = numbers(*shape).requires_grad_()
        y = run(x, w)
        assert y.shape == shape and torch.allclose(y, x * w)
        y.sum().backward()
        assert torch.allclose(x.grad, w.expand(shape))
    with pytest.raises(ValueError, match=r"rows: argument x has shape \(\), and must be \[R\.\.\.,C\]"):
        run(torch.tensor(1.0), w)
    add = by_element("add", "y[i] = a[i] + b[i];", "const float* a, const float* b, float* y")
    with pytest.raises(
        ValueError, match=r"argument b has shape \(3, 2\), and must be \[N\.\.\.\], with N\.\.\. = \(6,\)"
    ):
        torch.kernel(add, "a, b: float[N...] -> y: float[N...]")(torch.ones(6), torch.ones(3, 2))


@needs_compiler
def test_inputs_of_any_layout_are_made_contiguous():
    run, x = cube(grad=lambda g, x: 3 * x * x * g), numbers(6)
    for t in (x[::2], x.flip(0), x[1:]):
        leaf = t.detach().clone().requires_grad_()
        run(leaf[:] if t is x else leaf).sum().backward()
        assert torch.allclose(run(t), t**3) and torch.allclose(leaf.grad, 3 * t * t)
    y = run(x)
    (g,) = torch.autograd.grad(run(x.requires_grad_()), x, torch.ones(1).expand(6))
    assert torch.allclose(g, 3 * x * x) and y.is_contiguous()


@needs_compiler
def test_of_no_elements_nothing_is_launched():
    x = torch.empty(0, requires_grad=True)
    y = scale()(x, 2.0)
    y.sum().backward()
    assert y.shape == (0,) and x.grad.shape == (0,)
    with pytest.raises(
        ValueError, match="launch grid = ceil.N, 256. .* with N = 0: no block would run, and nothing write"
    ):
        torch.kernel(SCALE, "x: float[N] -> y: float[N + 1]", grid="ceil(N, 256)")(torch.empty(0), 2.0)


@needs_compiler
def test_an_input_may_be_left_out_and_no_gradient_may_be_made():
    text = by_element("shifted", "y[i] = x[i] + (b ? b[i] : 0);", "const float* x, const float* b, float* y")
    back = by_element(
        "shifted_backward", "if (dx) dx[i] = g[i]; if (db) db[i] = g[i];", "const float* g, float* dx, float* db"
    )
    grad = torch.kernel(back, "g: float[N] -> dx: float[N] or null, db: float[N] or null")
    run = torch.kernel(text, "x: float[N], b: float[N] or null -> y: float[N]", grad=grad)
    x, b = numbers(4).requires_grad_(), numbers(4, seed=2)
    assert run(x).tolist() == run(x, None).tolist() == x.tolist()
    run(x, b).sum().backward()
    assert x.grad.tolist() == [1] * 4
    formula = torch.kernel(text, "x: float[N], b: float[N] or null -> y: float[N]", grad=lambda g: (g, g), check=True)
    formula(x).sum().backward()
    assert x.grad.tolist() == [2] * 4


ADDED = by_element("added", "total[i] += k * x[i];", "const float* x, float* total, float k")


@needs_compiler
def test_an_array_is_changed_in_place_and_its_history_with_it():
    run = torch.kernel(
        ADDED, "x: float[N], total: float[N] in place -> total", grad=lambda g, k: (k * g, g), check=True
    )
    x, start = numbers(5).requires_grad_(), numbers(5, seed=2).requires_grad_()
    total = start * 1
    result = run(x, total, 3)
    assert result is total and torch.allclose(total, start + 3 * x) and total.grad_fn.name() == "AddedBackward"
    (total * total).sum().backward()
    assert torch.allclose(x.grad, 6 * total) and torch.allclose(start.grad, 2 * total)
    strided = torch.zeros(10)[::2]
    run(x.detach(), strided, 1)
    assert strided.tolist() == x.tolist()
    with pytest.raises(ValueError, match="added: argument total is changed in place, and x lies in its memory"):
        run(strided, strided, 1)
    run(strided[:2], strided[2:4], 1)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place"):
        run(x, start, 1)
    assert start.tolist() == numbers(5, seed=2).tolist()  # refused before it was written


@needs_compiler
def test_a_saved_tensor_that_changes_is_noticed():
    run, x = cube(grad=lambda g, x: 3 * x * x * g), numbers(3).requires_grad_()
    kept = x * 1
    y = run(kept)
    kept.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


# ---- gradients


@needs_compiler
def test_a_formula_takes_names_and_gives_a_tuple_or_a_dict():
    text = by_element(
        "product", "y[i] = a[i] * b[i]; z[i] = a[i];", "const float* a, const float* b, float* y, float* z"
    )
    signature = "a, b: float[N] -> y, z: float[N]"
    a, b = numbers(4).requires_grad_(), numbers(4, seed=2).requires_grad_()
    formulas = {
        "tuple": lambda dy, dz, a, b: (dy * b + dz, dy * a),
        "dict": lambda dy, dz, a, b, unused=None: {"b": dy * a, "a": dy * b + dz},
    }
    for formula in formulas.values():
        y, z = torch.kernel(text, signature, grad=formula, check=True)(a, b)
        found = torch.autograd.grad((y * y).sum() + 3 * z.sum(), [a, b])
        assert torch.allclose(found[0], 2 * a * b * b + 3) and torch.allclose(found[1], 2 * a * a * b)
    (y, _) = torch.kernel(text, signature, grad=lambda dy, b: (dy * b, None))(a, b)
    assert torch.autograd.grad(y.sum(), [a, b], allow_unused=True)[1] is None
    (_, z) = torch.kernel(text, signature, grad=formulas["tuple"])(a, b)  # the output y is not used: dy is zeros
    assert torch.autograd.grad(z.sum(), b)[0].tolist() == [0] * 4


@needs_compiler
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_a_kernel_may_be_the_gradient(dtype):
    run = cube(grad=cube_backward(), check=True)
    x = numbers(50).to(getattr(torch, dtype)).requires_grad_()
    (run(x) * 2.0).sum().backward()
    assert x.grad.dtype is x.dtype
    rounding = {"float64": 1e-6, "float32": 1e-5, "float16": 1e-2, "bfloat16": 0.06}[dtype]
    assert torch.allclose(x.grad.double(), 6 * x.double() ** 2, rtol=rounding)


@needs_compiler
def test_higher_derivatives_go_through_formulas():
    x = numbers(4, dtype="f8").requires_grad_()
    for gradient in (
        lambda g, x: 3 * x * x * g,
        cube_backward(grad=lambda ddx, g, x: (3 * x * x * ddx, 6 * x * g * ddx)),
    ):
        run = cube(grad=gradient)
        assert torch.autograd.gradcheck(run, (x,)) and torch.autograd.gradgradcheck(run, (x,))
        (first,) = torch.autograd.grad(run(x).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), x, create_graph=True)
        assert torch.allclose(second, 6 * x)


@needs_compiler
def test_a_second_derivative_through_a_kernel_without_gradient_says_so():
    run, x = cube(grad=cube_backward()), numbers(4).requires_grad_()
    (first,) = torch.autograd.grad(run(x).sum(), x, create_graph=True)
    with pytest.raises(
        RuntimeError, match="cube_backward: the gradient of cube is a kernel without a gradient of its own"
    ):
        torch.autograd.grad(first.sum(), x)


@needs_compiler
def test_without_grad_a_backward_is_an_error_and_a_forward_is_not():
    x = numbers(3).requires_grad_()
    y = cube()(x)
    with pytest.raises(RuntimeError, match=r"cube: has no gradient; give kernel\(\.\.\., grad=\.\.\.\)"):
        y.sum().backward()


@needs_compiler
def test_under_no_grad_nothing_is_recorded():
    x = numbers(3).requires_grad_()
    run = scale(grad=lambda g: pytest.fail("asked for a gradient"))
    with torch.no_grad():
        assert run(x, 2.0).grad_fn is None
    with torch.inference_mode():
        assert run(x, 2.0).is_inference()
    assert run(x.detach(), 2.0).grad_fn is None


def test_a_gradient_that_does_not_fit_is_refused_at_once():
    for gradient, error, words in [
        (lambda g, q: g, HeaderError, "scale: its formula asks for q; it may ask for dy, g, k, x, y"),
        (lambda *all: all, HeaderError, r"scale: its formula must name what it needs, and has \*all"),
        (3, TypeError, "scale: grad must be a kernel or a function of tensors, not int"),
        (cube(), HeaderError, "scale: its gradient cube makes y, and must make dx"),
        (cube_backward(), None, None),
    ]:
        with pytest.raises(error, match=words) if error else contextlib.nullcontext():
            scale(grad=gradient)
    text = SCALE.replace("float k", "float dy").replace("k *", "dy *")
    with pytest.raises(HeaderError, match="dy is one of its arguments and the gradient of y: rename it"):
        torch.kernel(text, STATED, grad=lambda g: g)
    taking = torch.kernel(by_element("b", "dx[i] = z[i];", "const float* z, float* dx"), "z: float[N] -> dx: float[N]")
    with pytest.raises(HeaderError, match="scale: its gradient b takes z, which is none of dy, g, k, x, y"):
        scale(grad=taking)


@needs_compiler
@pytest.mark.parametrize(
    ("formula", "words"),
    [
        (lambda g: (g, g), "scale: its formula gives 2 gradients; need 1, for x"),
        (lambda g: {"z": g}, "scale: its formula gives a gradient by z, which is no input"),
        (lambda g: g[:2], "invalid gradient at index 2"),
    ],
)
def test_what_a_formula_gives_must_fit(formula, words):
    x = numbers(4).requires_grad_()
    with pytest.raises(RuntimeError, match=words):
        scale(grad=formula)(x, 2.0).sum().backward()


# ---- in the rest of the house


@needs_compiler
def test_nodes_bear_the_kernels_name():
    x = numbers(3).requires_grad_()
    text = SCALE.replace("void scale", "void my_scale_forward")
    for options, name in [({}, "MyScaleBackward"), ({"name": "gain"}, "GainBackward")]:
        y = torch.kernel(text, STATED, grad=lambda g, k: k * g, **options)(x, 2.0)
        assert y.grad_fn.name() == name and f"grad_fn=<{name}>" in repr(y)


@needs_compiler
def test_where_names_the_source():
    (ran,) = where(scale(), torch.ones(2, device="emulated"), 2.0)
    assert str(ran) == f"kernel scale on emulated: test_own.py:{line_here('SCALE = ' + 3 * chr(34))} scale"
    (ran,) = where(scale(), torch.ones(2), 2.0)
    assert ran.why == "built for this processor"


@needs_compiler
def test_strict_and_autocast_leave_it_alone(monkeypatch):
    monkeypatch.setattr(cudagrad.config, "STRICT", True)
    assert scale()(torch.ones(2, device="emulated"), 2.0).tolist() == [2, 2]
    run = torch.kernel(SCALE.replace("void scale", "void linear"), STATED)
    with torch.autocast("cpu"):
        assert run(torch.ones(2), 2.0).dtype is torch.float32


@needs_compiler
def test_anomaly_detection_names_the_kernel_and_its_line():
    x = torch.tensor([-1.0], requires_grad=True)
    run = torch.kernel(
        by_element("root", "y[i] = sqrtf(x[i]);", "const float* x, float* y"), STATED, grad=lambda g, y: g / (2 * y)
    )
    with pytest.warns(UserWarning), torch.autograd.detect_anomaly(), pytest.raises(RuntimeError) as caught:
        y = run(x)  # here
        y.sum().backward()
    told = str(caught.value)
    assert "Function 'RootBackward' returned nan values" in told and "y = run(x)  # here" in told
    assert "made by kernel root" in told


def _gain_formula(g, k):
    return k * g


GAIN = torch.kernel(SCALE, STATED, grad=_gain_formula)


class Gain(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.run, self.weight = GAIN, torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        return self.run(x * self.weight, 2.0)


@needs_compiler
def test_modules_that_hold_one_are_copied_and_pickled():
    module, x = Gain(), numbers(3)
    assert list(module.state_dict()) == ["weight"] and copy.deepcopy(module).run is GAIN
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        y = other(x)
        y.sum().backward()
        assert torch.equal(y, module(x)) and torch.allclose(other.weight.grad, 2 * x) and module.weight.grad is None


@needs_compiler
def test_checkpointed_and_in_threads_it_gives_the_same():
    module, x = Gain(), numbers(3)
    torch.utils.checkpoint.checkpoint(module, x, use_reentrant=False).sum().backward()
    assert torch.allclose(module.weight.grad, 2 * x)
    found = [None] * 8

    def work(i):
        leaf = (x + i).requires_grad_()
        (GAIN(leaf, float(i)) ** 2).sum().backward()
        found[i] = leaf.grad

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(torch.allclose(g, 2 * i * i * (x + i)) for i, g in enumerate(found))


# ---- on a GPU, by a double


@needs_compiler
def test_on_cuda_it_launches_on_the_gpu_of_its_tensors(monkeypatch):
    parameters = "const float* index, float* stream, float status, bool lambda, unsigned long long at"
    text = by_element("gpu", "stream[i] = index[i] * status + lambda + (at >> 63);", parameters)
    back = torch.kernel(
        by_element("gpu_backward", "dindex[i] = g[i] * status;", "const float* g, float* dindex, float status"),
        "g: float[N...] -> dindex: float[N...] or null",
    )  # fmt: skip
    run = torch.kernel(text, "index: float[N...] -> stream: float[N...]", grad=back)
    own = {k.entry.file: {k.entry.name: k.entry} for k in (run, back)}
    monkeypatch.setattr(launch, "entries", lambda file: own.get(file) or header.entries(file))
    with installed(2) as double:
        for device in ("cuda:1", "cuda:1", "cuda:0"):
            x = numbers(30, 10).to(device).requires_grad_()
            y = run(x, 2, np.bool_(True), np.float64(2**63))
            assert y.device == x.device and np.allclose(y.detach().cpu().numpy(), 2 * x.detach().cpu().numpy() + 2)
            with torch.cuda.device(device):  # for the ops; the kernel itself sees to where it runs
                y.sum().backward()
            assert x.grad.device == x.device and x.grad.cpu().tolist() == [[2.0] * 10] * 30
        ours = [at for at in double.launched if at[0] in ("gpu", "gpu_backward")]
        assert ours[:2] == [(n, (2, 1, 1), (256, 1, 1), 0, 0) for n in ("gpu", "gpu_backward")] and len(ours) == 6
        assert run(torch.empty(0, 3, device="cuda"), 2, True, 1).shape == (0, 3)
        with pytest.raises(TypeError, match="argument index is float64, and must be float"):
            run(x.detach().double(), 2, True, 1)


@needs_nvrtc
@pytest.mark.parametrize("c", ["float", "double", "__half", "__nv_bfloat16"])
def test_nvrtc_builds_a_plain_source_for_every_type(c):
    text = by_element("twice", "y[i] = (CG_T)((CG_A)x[i] * 2);", "const CG_T* x, CG_T* y")
    run = torch.kernel(text, "x: T[N] -> y: T[N]")
    macros = (("CG_T", c), ("CG_W", c), ("CG_A", "double" if c == "double" else "float"))
    assert nvrtc.resources(run.entry.file, macros, "90")["twice"]["spills"] == 0


# ---- checked at the first call


@needs_compiler
def test_a_wrong_gradient_is_found_at_the_first_call_and_named():
    x = numbers(40)
    for dtype in ("double", "float", "half", "bfloat16"):
        run = cube(grad=cube_backward("dx[i] = 2 * x[i] * x[i] * g[i];"), check=True)
        for _ in range(2):  # until it is put right
            with pytest.raises(GradcheckError, match=r"cube: the gradient by x along a random .* .in float64"):
                run(getattr(x, dtype)())
    run = torch.kernel(SCALE, STATED, grad=lambda g, k: k * k * g, check=True)
    with pytest.raises(GradcheckError, match="scale: the gradient by x .*in float32"):
        run(x, 3.0)
    with pytest.raises(GradcheckError, match="the gradient by x .* is 0, and differences see"):
        torch.kernel(SCALE, STATED, grad=lambda g: None, check=True)(x, 3.0)


@needs_compiler
def test_a_wrong_gradient_of_the_gradient_is_found():
    second = lambda ddx, g, x: (3 * x * x * ddx, 5 * x * g * ddx)  # noqa: E731
    with pytest.raises(GradcheckError, match="cube_backward: the gradient by x"):
        cube(grad=cube_backward(grad=second)).check(numbers(20))


@needs_compiler
def test_checks_are_asked_for_by_the_environment_and_run_once(monkeypatch):
    from cudagrad.autograd import kernel_check

    checked = []
    monkeypatch.setattr(kernel_check, "check", lambda *given: checked.append(given[0].title))
    x = numbers(3)
    run = scale()
    run(x, 2.0)
    monkeypatch.setattr(cudagrad.config, "DEBUG", True)
    run(x, 2.0), run(x, 2.0), scale(check=False)(x, 2.0)
    assert checked == ["scale"]


FAULTS = {
    "an output that is not wholly written": (
        "i < N - 1",
        "scale: output y of shape (5,) was never written at index (4,)",
    ),
    "an access out of bounds": ("i <= N", "out of bounds: 4 bytes at byte 20 of x, which has 20"),
    "a race": ("i < N) y[0] = 1; if (i < N", "race on y: byte 0 is written, and was written by block 0, thread 0"),
    "a const array that is written": ("i < N) ((float*)x)[i] = 1; if (i < N", "which has 20 bytes and is const"),
}


@needs_compiler
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_at_the_first_call(fault):
    changed, words = FAULTS[fault]
    run = torch.kernel(SCALE.replace("i < N", changed), STATED, check=True)
    with pytest.raises(KernelError) as caught:
        run(torch.ones(5), 2.0)
    assert words in str(caught.value)


@needs_compiler
def test_a_check_of_large_arguments_cuts_them_or_says_that_it_did_not(monkeypatch):
    from cudagrad.autograd import kernel_check

    sizes, run = [], emulator.run
    monkeypatch.setattr(emulator, "run", lambda plan, extra=(): (sizes.append(plan.letters["N"]), run(plan, extra)))
    scale().check(torch.ones(200_000), 2.0)
    assert max(sizes) <= kernel_check.MOST
    text = by_element("picked", "y[i] = x[at[i]];", "const float* x, const int* at, float* y")
    picked = torch.kernel(text, "x: float[N], at: int[N] -> y: float[N]")
    picked.check(numbers(8), torch.arange(8, dtype=torch.int32))
    with pytest.warns(UserWarning, match="picked was not checked: .* call picked.check"):
        picked.check(torch.ones(50_000), torch.zeros(50_000, dtype=torch.int32))


@needs_compiler
def test_a_check_moves_no_zero_and_leaves_the_arguments_as_they_are():
    """A kink at 0, where padding and relu put many values, is no wrong gradient."""
    text = by_element("ramp", "y[i] = x[i] > 0 ? x[i] : 0;", "const float* x, float* y")
    x = torch.tensor([0.0, 1.0, -2.0, 0.0])
    torch.kernel(text, STATED, grad=lambda g, x: g * (x > 0), check=True)(x)
    assert x.tolist() == [0, 1, -2, 0]


# ---- errors


@pytest.mark.parametrize(
    ("text", "signature", "options", "words"),
    [
        ("int f() { return 1; }", STATED, {}, 'there is no extern "C" __global__ void name'),
        (SCALE.replace('extern "C" ', ""), STATED, {}, 'write extern "C" before __global__ void scale'),
        (SCALE + SCALE.replace("scale", "other"), STATED, {}, "entry= must say which is meant; it has scale, other"),
        (SCALE, STATED, {"entry": "other"}, "there is no other; it has scale"),
        (SCALE, None, {}, "give scale a signature such as"),
        (SCALE, "x: float[N]", {}, "the signature 'x: float.N.' has no ->"),
        (SCALE, "x: float[N] ->", {}, "scale: y is an input that may be written|does not give the array y"),
        (SCALE, "x: float[N], z: float[N] -> y: float[N]", {}, "names z, which is no array argument of it"),
        (SCALE, "x: float[N] -> y: float[N], z: float[N]", {}, "names z, which is no array argument of it"),
        (SCALE, "x: float[N] -> y: float[N], x", {}, "x is an output and const: write float\\* x"),
        (SCALE, "x, x: float[N] -> y: float[N]", {}, "names x twice"),
        (SCALE, "x, y: float[N] -> z: float[N]", {}, "y is an input that may be written: write const float\\* y"),
        (SCALE, "x, y: float[N] in place -> y", {}, "x is changed in place: it must stand right of -> too"),
        (SCALE, "x: float[N], y: float[N] in place -> y: float[N]", {}, "y stands on both sides of ->"),
        (SCALE, "x: double[N] -> y: float[N]", {}, r"x of scale is float\* in the signature and double in shapes"),
        (SCALE, "x: real[N] -> y: float[N]", {}, "x has type 'real'; need one of bool, uint8"),
        (SCALE, "x: float(N) -> y: float[N]", {}, r"cannot read 'x: float\(N\)' in the signature"),
        (SCALE, "x: float[N - 1] -> y: float[N]", {}, "x has the axis 'N-1'; one of an input is a letter"),
        (SCALE, "x: float[N] -> y: float[M]", {}, "the shape of y names M, which is no axis of an input"),
        (
            SCALE,
            "x: float[N] -> y: float[M...]",
            {},
            r"y has M\.\.\.; one such axis is possible, which an input has too",
        ),
        (
            SCALE,
            STATED,
            {"grid": "ceil(M, 256)"},
            "grid names M, which is no axis of an input and no number .*: N, k",
        ),
        (SCALE, STATED, {"block": "open(N)"}, "may use numbers, letters, arithmetic"),
        (SCALE, STATED, {"shared": "4 *"}, "is no expression"),
        (
            SCALE.replace("float k", "CG_T k"),
            STATED,
            {},
            "k is a number of type CG_T: give it one of C's, float or double",
        ),
        (SCALE.replace("int N", "size_t N"), STATED, {}, "N of scale has type size_t; a scalar is int"),
    ],
)
def test_a_declaration_that_does_not_fit_says_what_and_where(text, signature, options, words):
    with pytest.raises(HeaderError, match=words):
        torch.kernel(text, signature, **options)


def test_a_source_that_is_not_there():
    with pytest.raises(FileNotFoundError, match="there is no file '.*missing.cu', and CUDA C has a body in braces"):
        torch.kernel("missing.cu", STATED)
    with pytest.raises(TypeError, match="source must be CUDA C or the path of a file, not int"):
        torch.kernel(3, STATED)
    with pytest.raises(TypeError, match="signature must be a text, not int"):
        torch.kernel(SCALE, 5)


X = torch.ones(3)


@pytest.mark.parametrize(
    ("args", "kwargs", "error", "words"),
    [
        ((X,), {}, TypeError, "scale: argument k is missing; it takes x, k"),
        ((), {"k": 1}, TypeError, "scale: argument x is missing"),
        ((X, 1, 2), {}, TypeError, "scale: takes 2 arguments, x, k; got 3"),
        ((X, 1), {"k": 2}, TypeError, "scale: argument k is given twice"),
        ((X, 1), {"z": 2}, TypeError, "scale: has no argument z; it takes x, k"),
        ((X, 1), {"y": X}, TypeError, "scale: has no argument y"),
        ((np.ones(3), 1), {}, TypeError, "scale: argument x must be a Tensor, not ndarray"),
        ((None, 1), {}, TypeError, "scale: argument x must be a Tensor, not NoneType"),
        ((X, "1"), {}, TypeError, "scale: argument k must be a number, float, not str"),
        ((X, X[0]), {}, TypeError, r"argument k must be a number, float, not Tensor; \.item\(\) makes a number of it"),
        ((X, 1e300), {}, ValueError, r"scale: argument k = 1e\+300 does not fit into float"),
        ((X.double(), 1), {}, TypeError, "scale: argument x is float64, and must be float"),
        ((X.reshape(3, 1), 1), {}, ValueError, r"scale: argument x has shape \(3, 1\), and must be \[N\]"),
        ((X, 1), {"N": 4}, ValueError, "scale: argument N is 4, and 3 by the arrays' shapes"),
        ((X, 1), {"N": 3.5}, ValueError, "scale: argument N is 3.5, and 3 by the arrays' shapes"),
    ],
)
def test_an_argument_that_does_not_fit_is_named(args, kwargs, error, words):
    with pytest.raises(error, match=words):
        scale()(*args, **kwargs)


@pytest.mark.parametrize(
    ("launch", "words"),
    [
        ({"block": 2048}, r"scale: launch grid = ceil\(N, 2048\) block = 2048 shared = 0 with N = 3: a block of"),
        ({"grid": 2**31}, "a grid of"),
        ({"grid": "N / 2"}, r"grid is \(1.5,\), which is not whole; ceil\(a, b\) rounds up"),
        ({"grid": "N - 3"}, "no block would run, and nothing write y"),
        ({"grid": (1, 1, 1, 1)}, r"grid is \(1, 1, 1, 1\), and has at most three sizes"),
        (
            {"block": 0},
            r"scale: launch grid = ceil\(N, 0\) .*: an expression of it or of a shape divides by 0",
        ),
        ({"shared": "N * 100000"}, "0 to 232448 bytes of shared memory, not 300000"),
    ],
)
def test_a_launch_that_no_gpu_takes_is_refused(launch, words):
    with pytest.raises(ValueError, match=words):
        scale(**launch)(X, 1)


def test_tensors_of_two_devices_or_none():
    add = by_element("add", "y[i] = a[i] + b[i];", "const float* a, const float* b, float* y")
    with pytest.raises(RuntimeError, match="same device.*\n  add: a on cpu, b on emulated"):
        torch.kernel(add, "a, b: float[N] -> y: float[N]")(X, X.to("emulated"))
    with pytest.raises(ValueError, match="add: no argument is a Tensor"):
        torch.kernel(add, "a, b: float[N] or null -> y: float[N]")(None, None)


@needs_compiler
def test_an_axis_that_no_given_array_has_is_a_number_to_give():
    text = by_element("spread", "y[i] = b ? b[i % C] : 1;", "const float* x, const float* b, float* y, int C")
    run = torch.kernel(text.replace("i < N", "i < N * C"), "x: float[N], b: float[C] or null -> y: float[N,C]")
    assert run(X, torch.arange(2.0)).tolist() == [[0, 1]] * 3 and run(X, C=2).tolist() == [[1, 1]] * 3
    with pytest.raises(TypeError, match="spread: argument C is missing: no array that is given has that axis"):
        run(X)


def test_an_axis_of_other_length_and_a_dtype_apart_are_named():
    add = by_element("add", "y[i] = a[i] + b[i];", "const CG_T* a, const CG_T* b, CG_T* y")
    run = torch.kernel(add, "a, b: T[N] -> y: T[N]")
    with pytest.raises(ValueError, match=r"add: argument b has shape \(4,\), and must be \[N\] with N = 3"):
        run(X, torch.ones(4))
    with pytest.raises(TypeError, match="add: argument b is float16, where T is float32"):
        run(X, X.half())
    with pytest.raises(ValueError, match="no kernel computes with complex64, which argument a is"):
        run(X.to(torch.complex64), X.to(torch.complex64))


WRONG = """
extern "C" __global__ void wrong(const float* x, float* y, int N) {
  y[0] = nonsense;
}
"""


def line_here(text):
    with open(__file__, encoding="utf-8") as lines:
        return next(i for i, line in enumerate(lines, 1) if line.strip() == text)


@needs_compiler
def test_a_compile_error_has_the_users_own_lines(tmp_path):
    at = line_here("y[0] = nonsense;")
    with pytest.raises(RuntimeError) as caught:
        torch.kernel(WRONG, STATED)(X)
    assert "test_own.py does not compile" in str(caught.value) and f"{__file__}:{at}:10: error:" in str(caught.value)
    (tmp_path / "wrong.cu").write_text(WRONG)
    with pytest.raises(RuntimeError, match=r"wrong\.cu does not compile:(.|\n)*wrong\.cu:3:10: error:"):
        torch.kernel(tmp_path / "wrong.cu", STATED)(X)
    with pytest.raises(RuntimeError, match=r"wrong\.cu:4:10: error:"):  # a text that stands in no program
        torch.kernel("\n" + WRONG, STATED)(X)


@needs_nvrtc
def test_nvrtcs_errors_have_the_users_own_lines():
    from cudagrad.autograd.kernel import _in_the_users_lines

    run = torch.kernel(WRONG, STATED)
    with pytest.raises(RuntimeError) as caught:
        nvrtc.cubin(run.entry.file, (("CG_T", "float"),), "90")
    told = _in_the_users_lines(str(caught.value), run._place, run.entry)
    assert f"test_own.py({line_here('y[0] = nonsense;')}): error" in told


@needs_compiler
@needs_lines
def test_a_fault_of_a_thread_has_the_users_own_line():
    run = torch.kernel(SCALE.replace("i < N", "i <= N"), STATED)
    with emulator.settings(check=True), pytest.raises(KernelError, match=r"scale at scale\.cu:4: "):
        run(X, 1)
    with emulator.settings(check=True), pytest.raises(KernelError) as caught:
        torch.kernel(OVERRUN, STATED)(X)
    assert f"overrun at test_own.py:{line_here('if (i < N) y[i + 1] = x[i];')}: " in str(caught.value)


OVERRUN = """
extern "C" __global__ void overrun(const float* x, float* y, int N) {
  int i = threadIdx.x;
  if (i < N) y[i + 1] = x[i];
}
"""


def test_without_a_compiler_one_sentence_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("CUDAGRAD_CACHE", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.delenv("CXX", raising=False)
    build.compiler.cache_clear()
    emulator._loaded.cache_clear()
    try:
        with pytest.raises(RuntimeError, match="there is no g\\+\\+ or clang\\+\\+ here: install one, or name it"):
            scale()(X, 1.0)
    finally:
        build.compiler.cache_clear()


def test_a_dtype_of_ml_dtypes_is_a_number_too():
    assert scale()._number("k", ml_dtypes.bfloat16(2)) == 2
    with pytest.raises(TypeError, match="must be a number, float, not complex"):
        scale()._number("k", 1j)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert scale()._number("k", float("inf")) == float("inf")
