"""What the tape keeps alive and for how long: large graphs, early release, no cycles."""

import gc
import subprocess
import sys
import tracemalloc
import weakref

import numpy as np
import pytest

import cudagrad as cg
from cudagrad import nn
from cudagrad.autograd import Function, grad


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def leaf(*values):
    return cg.tensor(list(values), dtype=cg.float64, requires_grad=True)


def run(program):
    """What a program prints in a fresh process with a small stack."""
    limited = "import resource; resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, 1 << 20))\n" + program
    done = subprocess.run([sys.executable, "-c", limited], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


# ---- large graphs


def test_a_million_nodes_run_backward_in_bounded_memory_and_go_without_recursion():
    program = """
import resource
import cudagrad as cg

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

x = cg.tensor([1.0], requires_grad=True)
y = x
before = peak()
for _ in range(1_000_000):
    y = y + 1
made = peak()
y.backward()
after = peak()
del y
print(x.grad.item(), (made - before) < 600e6, (after - made) < 10e6)
"""
    assert run(program) == "1.0 True True"


@pytest.mark.parametrize(
    "step, count",
    [("y + 1", 100_000), ("y * one", 30_000), ("y.view(1)", 30_000), ("Same.apply(y)", 30_000), ("y.mul_(1)", 30_000)],
)
def test_a_long_chain_is_dropped_without_recursion(step, count):
    program = f"""
import cudagrad as cg

class Same(cg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 1

    @staticmethod
    def backward(ctx, g):
        return g

x, one = cg.tensor([1.0], requires_grad=True), cg.tensor([1.0], requires_grad=True)
for backward in (False, True):
    y = x * 1
    for _ in range({count}):
        y = {step}
    if backward:
        y.backward()
    del y
print(x.grad.item())
"""
    assert run(program) == "1.0"


def test_a_wide_sum_of_10000_leaves():
    xs = [cg.tensor(1.0, requires_grad=True) for _ in range(10_000)]
    cg.stack(xs).sum().backward()
    assert all(x.grad.item() == 1.0 for x in xs[::100])


def test_create_graph_of_a_long_chain_needs_no_recursion():
    x = leaf(1.0)
    y = x
    for _ in range(10_000):
        y = y * 1.0001
    (g,) = grad(y.sum(), x, create_graph=True)
    (h,) = grad((g * x).sum(), x)
    assert h.item() == pytest.approx(1.0001**10_000)


# ---- early release


def test_what_is_saved_goes_as_backward_goes():
    """At the first node of the chain, the last to run, everything saved after it is gone."""
    x = cg.ones(1000, requires_grad=True)
    y, alive, seen = x, [], []
    for i in range(10):
        y = y.exp().log()
        alive.append(weakref.ref(y.grad_fn.next_functions[0][0]._saved_result))
        if i == 0:
            y.register_hook(lambda g: seen.append(sum(r() is not None for r in alive)))
    arrays = y.sum()
    del y
    arrays.backward()
    assert seen == [0]


def test_the_peak_of_backward_is_that_of_the_forward():
    """Each of 20 layers saves 8 MB; backward frees them one by one, so that its own gradients fit beside them."""
    x = cg.ones(1_000_000, dtype=cg.float64, requires_grad=True)
    tracemalloc.start()
    try:
        y = x
        for _ in range(20):
            y = y.exp() * 0.1
        loss = y.sum()
        del y
        made = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        loss.backward()
        now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert made > 20 * 8e6
    assert peak < made + 5 * 8e6
    assert now < 3 * 8e6


def test_retain_graph_keeps_what_is_saved():
    x = leaf(1.0)
    y = x.exp()
    z = y.exp().sum()
    z.backward(retain_graph=True)
    assert z.grad_fn.next_functions[0][0]._saved_result.item() == pytest.approx(np.exp(np.exp(1.0)))
    z.backward()


def test_a_result_that_is_dropped_takes_its_graph_along(no_collector):
    x = leaf(1.0, 2.0)
    y = (x * 2).exp()
    gone = weakref.ref(y), weakref.ref(y.grad_fn), weakref.ref(y.grad_fn.next_functions[0][0])
    del y
    assert [r() for r in gone] == [None] * 3


# ---- no cycles


def small_model():
    return nn.Sequential(
        *(nn.Conv1d(2, 4, 3, padding=1), nn.BatchNorm1d(4), nn.ReLU(), nn.MaxPool1d(2), nn.Flatten()),
        *(nn.Linear(16, 8), nn.LayerNorm(8), nn.GELU(), nn.Dropout(0.1), nn.Linear(8, 3)),
    )


@pytest.mark.parametrize("optimizer", ["SGD", "AdamW"])
def test_a_step_of_training_leaves_nothing_to_the_collector(no_collector, optimizer):
    model = small_model()
    o = getattr(cg.optim, optimizer)(model.parameters(), lr=0.1)
    x, target = cg.randn(5, 2, 8), cg.tensor([0, 1, 2, 0, 1])
    gone = []
    for _ in range(3):
        out = model(x)
        loss = nn.functional.cross_entropy(out, target)
        gone += [weakref.ref(loss), weakref.ref(out), weakref.ref(loss.grad_fn)]
        o.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        o.step()
        del out, loss
    assert [r() for r in gone] == [None] * 9


def recurrent():
    return nn.LSTM(2, 3), lambda m: m(cg.randn(4, 2, 2))[0].sum()


def attention():
    return nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), lambda m: m(cg.randn(2, 3, 4)).sum()


def embedding():
    return nn.Embedding(5, 3), lambda m: m(cg.tensor([0, 1, 1])).pow(2).sum()


def hooked():
    m = nn.Linear(2, 2)
    m.register_full_backward_hook(lambda module, gi, go: None)
    return m, lambda m: m(cg.randn(3, 2, requires_grad=True)).sum()


@pytest.mark.parametrize("make", [recurrent, attention, embedding, hooked])
def test_layers_leave_nothing_to_the_collector(no_collector, make):
    model, loss_of = make()
    gone = []
    for _ in range(2):
        loss = loss_of(model)
        k = loss.grad_fn
        while k is not None and k.name() != "torch::autograd::AccumulateGrad":
            gone.append(weakref.ref(k))
            k = next((n for n, _ in k.next_functions if n is not None), None)
        loss.backward()
        gone.append(weakref.ref(loss))
        del loss, k
    assert not [r() for r in gone if r() is not None]


class Exp(Function):
    @staticmethod
    def forward(ctx, x):
        out = x.exp()
        ctx.save_for_backward(x, out)
        return out

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[1]


def use_function(x):
    return Exp.apply(x).sum()


def use_views(x):
    y = x * 1
    y[0].mul_(3)
    y[1:].exp_()
    return y.sum()


def use_hooks(x):
    y = x * 2
    y.register_hook(lambda g: g * 2)
    y.retain_grad()
    y.grad_fn.register_prehook(lambda g: None)
    y.grad_fn.register_hook(lambda i, o: None)
    return y.sum()


def use_several_outputs(x):
    a, b = x.exp().split(1)
    values, _ = x.sort()
    return (a * b * values).sum()


def use_checkpoint(x):
    return cg.utils.checkpoint.checkpoint(lambda t: (t.exp() * t).sin(), x, use_reentrant=False).sum()


def use_saved_tensors_hooks(x):
    with cg.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        return (x.exp() * x).sum()


def use_autocast(x):
    with cg.autocast("cpu"):
        return (x.float().view(1, 2) @ x.float().view(2, 1)).sum()


def use_second_derivative(x):
    (g,) = grad((x**3).sum(), x, create_graph=True)
    return g.sum()


USES = [f for name, f in sorted(globals().items()) if name.startswith("use_")]


@pytest.mark.parametrize("use", USES, ids=[f.__name__[4:] for f in USES])
def test_graphs_of_every_kind_are_freed_without_the_collector(no_collector, use):
    x = leaf(0.5, 2.0)
    loss = use(x)
    nodes, stack = [], [loss.grad_fn]
    while stack:
        k = stack.pop()
        if k is not None and k.name() != "torch::autograd::AccumulateGrad":
            nodes.append(weakref.ref(k))
            stack += [n for n, _ in k.next_functions]
    del k, stack
    loss.backward()
    del loss
    assert nodes
    assert not [r() for r in nodes if r() is not None]
    assert x.grad.isfinite().all()


def test_an_error_in_backward_frees_the_graph_once_it_is_handled(no_collector):
    x = leaf(1.0)
    y = x.exp()
    y.register_hook(lambda g: 1 / 0)
    gone = weakref.ref(y.grad_fn)
    try:
        y.sum().backward()
    except ZeroDivisionError:
        pass
    del y
    assert gone() is None
