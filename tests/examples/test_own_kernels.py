"""The kernels of the example against the same of ops, in every dtype and to second order; and that it learns."""

import numpy as np
import pytest

import cudagrad as cg
from cudagrad.backend.kernels import nvrtc
from cudagrad.examples import own_kernels as own

from ..kernels.common import needs_compiler

pytestmark = needs_compiler
CPU = cg.device("cpu")


@pytest.mark.parametrize("device", ["cpu", "emulated"])
def test_each_does_what_its_ops_do(device):
    cg.manual_seed(0)
    for run, of_ops, tensors, numbers in own.cases(cg.device(device)):
        run.check(*tensors, *numbers)
        forward, backward = own.differences(run, of_ops, tensors, numbers)
        assert forward < 1e-5 and backward < 1e-5, run


@pytest.mark.parametrize(("dtype", "rounding"), [("float64", 1e-6), ("float16", 0.01), ("bfloat16", 0.08)])
def test_each_serves_every_dtype(dtype, rounding):
    cg.manual_seed(0)
    for run, of_ops, tensors, numbers in own.cases(CPU):
        given = [t.to(getattr(cg, dtype)) for t in tensors]
        got = run(*given, *numbers)
        assert got.dtype is given[0].dtype
        assert (got.double() - of_ops(*(t.double() for t in given), *numbers)).abs().max() < rounding, run


def test_a_step_of_heat_is_differentiable_twice_and_keeps_the_heat():
    rng = np.random.default_rng(0)
    u, k = (cg.tensor(rng.random(s), requires_grad=True) for s in ((2, 9), 9))
    assert cg.allclose(own.heat_step(u, k, 0.25).sum(1), u.sum(1))
    assert cg.autograd.gradcheck(lambda u, k: own.cooled(u, k, 3, 0.25), (u, k))
    assert cg.autograd.gradgradcheck(lambda u, k: own.heat_step(u, k, 0.25), (u, k))


@pytest.mark.parametrize("architecture", ["75", "90", "120"])
def test_each_builds_for_gpus_and_spills_nothing(architecture):
    try:
        nvrtc.compiler()
    except RuntimeError as reason:
        pytest.skip(str(reason).splitlines()[0])
    kernels = [k for run in (own.swiglu, own.heat_step, own.focal) for k in (run, run.grad) if hasattr(k, "entry")]
    assert len(kernels) == 5
    for c in ("float", "__half", "__nv_bfloat16", "double"):
        macros = (("CG_T", c), ("CG_W", c), ("CG_A", "double" if c == "double" else "float"))
        for run in kernels:
            told = nvrtc.resources(run.entry.file, macros, architecture)[run.entry.name]
            assert told["spills"] == 0, (run, c)


@pytest.mark.parametrize(
    ("learn", "steps"), [(own.learn_rotation, 20), (own.learn_conductivity, 12), (own.learn_rare, 20)]
)
def test_something_is_learnt(learn, steps):
    cg.manual_seed(0)
    first, last = learn(CPU, steps)
    assert last < 0.7 * first


def test_the_program_says_what_it_found(capsys):
    own.main(["--device", "cpu", "--steps", "1"])
    told = capsys.readouterr().out
    assert told.startswith("on cpu\nswiglu     checked; from ops it differs by ")
    assert told.count("checked") == 3 and "learn_conductivity   loss" in told
