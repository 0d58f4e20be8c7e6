"""cross_entropy and logsumexp on the emulated device, against float64 NumPy from the definition."""

import functools

import numpy as np
import pytest

import cudagrad
import cudagrad.config
from cudagrad.backend import emulator
from cudagrad.tools.which import where

from .common import DTYPES, EPS, askew, every_second, host, launch, made, needs_compiler, no_fallback, on_device, worst

pytestmark = [needs_compiler, no_fallback]

F = cudagrad.nn.functional
IGNORED = -100

# 1 row, 1 class, ragged, powers of two and their neighbours; rows off 16 bytes, and ones that registers do not hold.
ROWS = [(1, 1), (1, 100), (7, 1), (5, 31), (4, 32), (3, 33), (2, 128), (2, 129), (9, 1000), (3, 1001), (3, 1024)]
LONG = [(2, 4099), (2, 20000), (1, 50257)]
COLUMNS = [(2, 7, 8), (1, 33, 50), (3, 5, 4, 9), (2, 600, 17), (2, 130, 33), (4, 6, 3), (1, 1, 40)]


made = functools.partial(made, scale=2.0)


def classes(shape, ignored=False):
    """Random targets for logits of a shape, every third of them to be ignored."""
    t = np.random.default_rng(9).integers(0, shape[1], (shape[0], *shape[2:]))
    if ignored:
        t.reshape(-1)[1::3] = IGNORED
    return t


# ---- cross_entropy


def defined(x, target, w=None, reduction="mean", label_smoothing=0.0, z_loss=0.0):
    """(loss, its gradient for g = 1, or by each target's loss where there is no reduction), classes along axis 1."""
    count = x.shape[1]
    top = x.max(1, keepdims=True)
    lse = top + np.log(np.exp(x - top).sum(1, keepdims=True))
    log_p = x - lse
    w = np.ones(count) if w is None else w
    along = w.reshape(-1, *[1] * (x.ndim - 2))
    kept = (target != IGNORED)[:, None]
    one_hot = np.arange(count).reshape(along.shape) == target[:, None]
    weight = (one_hot * along).sum(1, keepdims=True)
    share = (one_hot * weight * (1 - label_smoothing) + along * label_smoothing / count) * kept
    losses = -(share * log_p).sum(1) + (z_loss * weight * lse**2)[:, 0]
    gradient = np.exp(log_p) * (share.sum(1, keepdims=True) + 2 * z_loss * weight * lse) - share
    if reduction == "none":
        return losses, gradient
    total = weight.sum() if reduction == "mean" else 1.0
    return losses.sum() / total, gradient / total


def run(x, target, w=None, layout=None, g=None, **options):
    """(loss, gradient) on the device."""
    t = on_device(x, layout)
    given = None if w is None else on_device(w).detach()
    loss = F.cross_entropy(t, on_device(target), given, **options)
    loss.backward(None if g is None else on_device(g).detach())
    return host(loss), t.grad.cpu().array


def check(x, target, w=None, layout=None, g=None, roundings=4, **options):
    loss, gradient = run(x, target, w, layout, g, **options)
    expected, slope = defined(x.astype(np.float64), target, None if w is None else w.astype(np.float64), **options)
    if g is not None:
        slope = slope * (g.astype(np.float64)[:, None] if g.ndim else float(g))
    eps, room = EPS[x.dtype.name], np.abs(x.astype(np.float64)).max()  # a loss is a difference of logits
    assert loss.dtype == gradient.dtype == x.dtype and gradient.shape == x.shape
    assert np.abs(loss - expected).max() <= roundings * eps * max(np.abs(expected).max(), room * EPS["float32"] / eps)
    share = 1.0 if w is None else w.astype(np.float64).max()
    scale = np.abs(slope).max() if x.shape[1] > 1 else share * (1.0 if g is None else np.abs(g.astype(float)).max())
    assert np.abs(gradient - slope).max() <= roundings * eps * scale


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", ROWS, ids=str)
def test_cross_entropy_and_its_gradient_are_the_definition(shape, name):
    check(made(1, shape, DTYPES[name]), classes(shape))


OPTIONS = {
    "weights": dict(w=True),
    "sum": dict(reduction="sum", ignored=True),
    "none": dict(reduction="none", ignored=True, w=True),
    "smooth": dict(label_smoothing=0.1),
    "all": dict(w=True, ignored=True, label_smoothing=0.2, z_loss=0.01),
    "z": dict(z_loss=0.1, reduction="none"),
}


@pytest.mark.parametrize("name", [*DTYPES, "float64"])
@pytest.mark.parametrize("shape", [(5, 31), (4, 520), (3, 1001), (2, 40, 17)], ids=str)
@pytest.mark.parametrize("option", OPTIONS)
def test_its_options(option, shape, name):
    options, dtype = dict(OPTIONS[option]), np.dtype(name) if name == "float64" else DTYPES[name]
    w = np.random.default_rng(3).random(shape[1]).astype(dtype) if options.pop("w", False) else None
    target = classes(shape, options.pop("ignored", False))
    g = made(4, target.shape, dtype) if options.get("reduction") == "none" else np.array(0.5, dtype)
    check(made(1, shape, dtype), target, w, g=g, roundings=8, **options)


@pytest.mark.parametrize("shape", LONG, ids=str)
@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_long_rows(shape, name):
    check(made(1, shape, DTYPES[name]), classes(shape), label_smoothing=0.1)


@pytest.mark.parametrize("shape", [(1, 20001), (2, 300, 17)], ids=str)
def test_long_lines_in_float64(shape):
    check(made(1, shape, np.float64), classes(shape), roundings=16)  # of which the definition has half itself


def test_the_longest_vocabulary():
    check(made(1, (1, 128256), DTYPES["bfloat16"]), classes((1, 128256)))


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", COLUMNS, ids=str)
def test_classes_before_other_dims(shape, name):
    check(made(1, shape, DTYPES[name]), classes(shape))


@pytest.mark.parametrize("layout", [askew, every_second, np.asfortranarray])
@pytest.mark.parametrize("shape", [(6, 64), (3, 9, 8)], ids=str)
def test_logits_of_any_layout(shape, layout):
    check(made(1, shape, np.float32), classes(shape), layout=layout)


def test_classes_that_lie_last_are_read_where_they_lie():
    """A transposed view of [N,T,C] is rows: no copy is made, and the gradient lies as the logits do."""
    x = on_device(made(1, (2, 10, 24), np.float32))
    target = classes((2, 24, 10))
    view = x.transpose(1, 2)
    view.retain_grad()
    F.cross_entropy(view, on_device(target)).backward()
    expected = defined(x.detach().cpu().numpy().transpose(0, 2, 1).astype(np.float64), target)[1]
    assert worst(x.grad.cpu().array, expected.transpose(0, 2, 1)) < 1e-6
    assert view.grad.stride() == view.stride()


@pytest.mark.parametrize("schedule", emulator.SCHEDULES)
@pytest.mark.parametrize("shape", [(5, 2000), (9, 130), (2, 40, 40)], ids=str)
def test_no_order_of_threads_changes_a_bit(schedule, shape):
    x, target = made(1, shape, np.float32), classes(shape, True)
    w = np.random.default_rng(3).random(shape[1]).astype(np.float32)
    ordered = run(x, target, w, label_smoothing=0.1, z_loss=0.01)
    with emulator.settings(schedule=schedule, seed=7):
        assert all(map(np.array_equal, ordered, run(x, target, w, label_smoothing=0.1, z_loss=0.01)))


@pytest.mark.parametrize("shape", [(3, 1001), (2, 40, 33), (5, 31), (3, 20001), (1, 600, 32)], ids=str)
def test_accesses_are_clean_and_coalesced(shape):
    """No race, no byte outside; beside the fewest sectors there are only those that ragged ends share."""
    x, target = made(1, shape, np.float32), classes(shape)
    with emulator.settings(check=True):
        run(x, classes(shape, True), np.ones(shape[1], np.float32), label_smoothing=0.1)
    with emulator.traffic() as traffic:
        run(x, target, label_smoothing=0.1, g=np.array(2.0, np.float32))
        logsumexp_run(x, made(2, target.shape, np.float32), 1)
    assert {entry for entry, _, _ in traffic.lines} >= {"cross_entropy_forward", "cross_entropy_scale"}
    for entry in ("cross_entropy_forward", "cross_entropy_scale", "logsumexp_forward", "softmax_forward"):
        rows = [v for (name, _, kind), v in traffic.lines.items() if name == entry and "shared" not in kind]
        assert sum(moved for _, moved, _ in rows) <= 1.5 * sum(ideal for _, _, ideal in rows), entry


def test_the_logits_of_ignored_rows_are_not_read():
    x, target = made(1, (8, 512), np.float32), classes((8, 512))
    target[2:] = IGNORED
    with emulator.traffic() as traffic:
        run(x, target)
    moved = x[:2].nbytes + x.nbytes  # read, and written
    assert moved <= traffic.touched["cross_entropy_forward"][0] <= moved + 200


def test_a_gradient_of_one_is_not_multiplied():
    x, target = made(1, (8, 512), np.float32), classes((8, 512))
    for g, most in ((1.0, 64), (2.0, 2 * x.nbytes + 64)):
        with emulator.traffic() as traffic:
            run(x, target, g=np.array(g, np.float32))
        assert traffic.touched["cross_entropy_scale"][0] <= most
    assert traffic.touched["cross_entropy_scale"][0] >= 2 * x.nbytes


@pytest.mark.parametrize("count", [4096, 4097, 9000])
def test_many_targets_are_added_in_two_stages(count):
    x, target = made(1, (count, 3), np.float32), classes((count, 3), True)
    check(x, target, np.array([0.5, 1.0, 2.0], np.float32))
    loss, _ = run(x, target, reduction="sum")
    assert worst(loss, defined(x.astype(np.float64), target, reduction="sum")[0]) < 1e-6


def test_a_second_backward_makes_the_same_gradient_again():
    x = on_device(made(1, (4, 40), np.float32))
    loss = F.cross_entropy(x, on_device(classes((4, 40), True)), z_loss=0.1)
    loss.backward(retain_graph=True)
    first = x.grad.cpu().array.copy()
    x.grad = None
    loss.backward()
    assert np.array_equal(first, x.grad.cpu().array)


@pytest.mark.parametrize("shape", [(3, 8), (2, 5, 9)], ids=str)
def test_a_second_derivative_comes_from_the_definition(shape):
    def second(x, target, w):
        loss = F.cross_entropy(x, target, w, label_smoothing=0.1, z_loss=0.05)
        (g,) = cudagrad.autograd.grad(loss**2, x, create_graph=True)
        return cudagrad.autograd.grad((g * g).sum(), x)[0]

    x, target, w = made(1, shape, np.float64), classes(shape, True), np.linspace(0.5, 2, shape[1])
    expected = second(*(cudagrad.tensor(a, requires_grad=a is x) for a in (x, target, w)))
    got = second(on_device(x), on_device(target), on_device(w).detach())
    assert worst(host(got), expected.array) < 1e-10


def test_infinite_logits_and_ignored_rows():
    inf = np.inf
    x = np.array([[0, -inf, 1], [1, -inf, 0], [-inf, -inf, -inf], [0, inf, 1], [0, np.nan, 1]], np.float32)
    target = np.array([0, 1, 0, 0, 0])
    loss, gradient = run(x, target, reduction="none", g=np.ones(5, np.float32))
    assert np.isfinite(loss[0]) and loss[1] == inf and np.isnan(loss[2:]).all()
    assert np.isfinite(gradient[:2]).all() and np.isnan(gradient[2:]).all()
    loss, gradient = run(x, np.full(5, IGNORED), reduction="sum")
    assert loss == 0 and not gradient.any()
    loss, gradient = run(x, np.full(5, IGNORED))  # as in PyTorch
    assert np.isnan(loss) and not gradient.any()


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_a_mean_over_weights_that_are_all_0_is_nan(smoothing):
    """Smoothing leaves a sum of losses that is not 0, and it over 0 would be infinite; PyTorch has nan."""
    w = np.array([0, 1, 1], np.float32)
    loss, gradient = run(made(1, (2, 3), np.float32), np.array([0, 0]), w, label_smoothing=smoothing)
    assert np.isnan(loss) and not gradient.any()


@pytest.mark.parametrize("device", ["cpu", "emulated"])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("kind", ["classes", "probabilities"])
def test_of_no_classes_all_targets_are_ignored(device, smoothing, kind):
    x = cudagrad.zeros(3, 0, device=device, requires_grad=True)
    target = cudagrad.full((3,), IGNORED, device=device) if kind == "classes" else x.detach()
    for reduction, expected in ("sum", 0.0), ("none", [0.0] * 3):
        loss = F.cross_entropy(x, target, label_smoothing=smoothing, reduction=reduction)
        loss.sum().backward()
        assert loss.tolist() == expected and x.grad.shape == (3, 0)
    assert F.cross_entropy(x, target, label_smoothing=smoothing).isnan()


def test_a_class_of_weight_0_does_not_count_were_it_infinite():
    w = np.array([1, 0, 2], np.float32)
    x = np.array([[0.5, -np.inf, 1]], np.float32)
    loss, _ = run(x, np.array([2]), w, label_smoothing=0.3)
    log_p = x[0, [0, 2]] - np.log(np.exp(x[0, [0, 2]]).sum())
    assert loss == pytest.approx(-(0.7 * 2 * log_p[1] + 0.1 * (log_p[0] + 2 * log_p[1])) / 2, rel=1e-6)
    loss, _ = run(x, np.array([1]), w, reduction="sum")
    assert loss == 0


def test_a_class_that_is_not_there():
    """On a GPU, which must not be waited for, the loss and the gradient become nan; here it is the CPU's error."""
    x = made(1, (3, 4), np.float32)
    for target, told in (([1, 0, 4], "Target 4 is out of bounds."), ([1, -1, 0], "Target -1 is out of bounds.")):
        with pytest.raises(IndexError, match=told):
            F.cross_entropy(on_device(x), on_device(np.array(target)))
        target = np.array(target)
        partial, losses, total = (np.empty(n, np.float32) for n in (1, 3, 1))
        dx = np.empty((3, 4, 1), np.float32)
        given = dict(ignored=IGNORED, w=None)
        launch("cross_entropy.cu", "cross_entropy_weights", target=target, classes=4, partial=partial, **given)
        rest = dict(x=x[:, :, None], target=target[:, None], loss=losses[:, None], dx=dx, smoothing=0.0, z=0.0)
        launch("cross_entropy.cu", "cross_entropy_forward", **rest, total=None, **given)
        launch("cross_entropy.cu", "cross_entropy_total", v=losses, total=partial, out=total)
        wrong = (target < 0) | (target > 3)
        assert np.isnan(total[0]) and np.isnan(partial[0])
        assert np.array_equal(np.isnan(losses), wrong) and np.array_equal(np.isnan(dx).all((1, 2)), wrong)


def test_bytes_one_sample_and_no_gradient():
    x, target = made(1, (5, 4), np.float32), classes((5, 4))
    assert all(map(np.array_equal, run(x, target), run(x, target.astype(np.uint8))))
    loss, gradient = run(x[0], np.array(target[0]))
    expected, slope = defined(x[:1].astype(np.float64), target[:1])
    assert loss.shape == () and worst(loss, expected) < 1e-6 and worst(gradient, slope[0]) < 1e-6
    with cudagrad.no_grad():
        assert F.cross_entropy(on_device(x), on_device(target)).grad_fn is None
    ran = {r.code for r in where(F.cross_entropy, on_device(x), on_device(target))}
    assert "kernels/cross_entropy.cu cross_entropy_forward" in ran


def test_probabilities_are_log_softmax_and_a_product():
    x, p = made(1, (5, 4), np.float32), np.random.default_rng(2).dirichlet(np.ones(4), 5).astype(np.float32)
    ran = {r.code for r in where(F.cross_entropy, on_device(x), on_device(p), z_loss=0.1)}
    assert {"kernels/softmax.cu softmax_forward", "kernels/softmax.cu logsumexp_forward"} <= ran
    device = F.cross_entropy(on_device(x), on_device(p), z_loss=0.1)
    assert host(device) == pytest.approx(F.cross_entropy(cudagrad.tensor(x), cudagrad.tensor(p), z_loss=0.1).item())


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_a_gradient_of_another_precision_is_brought_to_the_inputs(name):
    x = on_device(made(1, (3, 8), DTYPES[name]))
    (F.cross_entropy(x, on_device(classes((3, 8)))) * 3.0).backward()
    assert x.grad.array.dtype == DTYPES[name]


def test_of_no_targets_there_is_nothing_to_launch():
    x = on_device(np.empty((0, 5), np.float32))
    loss = F.cross_entropy(x, on_device(np.empty(0, np.int64)), reduction="sum")
    loss.backward()
    assert loss.item() == 0 and tuple(x.grad.shape) == (0, 5)


# ---- logsumexp


def logsumexp64(x, dim, keepdim=False):
    top = x.max(dim, keepdims=True)
    out = top + np.log(np.exp(x - top).sum(dim, keepdims=True))
    return out if keepdim else np.squeeze(out, dim)


def logsumexp_run(x, g, dim, keepdim=False, layout=None):
    t = on_device(x, layout)
    y = cudagrad.logsumexp(t, dim, keepdim)
    y.backward(on_device(g).detach())
    return host(y), t.grad.cpu().array


def check_logsumexp(x, dim, keepdim=False, layout=None):
    wide, eps = x.astype(np.float64), EPS[x.dtype.name]
    expected = logsumexp64(wide, dim, keepdim)
    g = made(2, expected.shape, x.dtype)
    y, dx = logsumexp_run(x, g, dim, keepdim, layout)
    assert y.dtype == dx.dtype == x.dtype and worst(y, expected) < 4 * eps
    upper = g.astype(np.float64) if keepdim else np.expand_dims(g.astype(np.float64), dim)
    assert worst(dx, np.exp(wide - logsumexp64(wide, dim, True)) * upper) < 4 * eps


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", [*ROWS, (2, 20001)], ids=str)
def test_logsumexp_and_its_gradient_are_the_definition(shape, name):
    check_logsumexp(made(1, shape, DTYPES[name]) + DTYPES[name].type(5), 1)


@pytest.mark.parametrize("dim", [0, 1, 2, (0, 1), (1, 2), (0, 1, 2)], ids=str)
@pytest.mark.parametrize("shape", [(3, 5, 4), (2, 7, 40), (17, 1, 9)], ids=str)
def test_logsumexp_over_dims_that_are_neighbours(shape, dim):
    for keepdim in (False, True):
        check_logsumexp(made(1, shape, np.float32), dim, keepdim)


def test_logsumexp_over_other_dims_is_the_text(monkeypatch):
    x = made(1, (3, 5, 4), np.float32)
    with pytest.raises(RuntimeError, match=r"logsumexp: dims \(0, 2\) are no neighbours"):
        cudagrad.logsumexp(on_device(x), (0, 2))
    monkeypatch.setattr(cudagrad.config, "STRICT", False)
    assert worst(host(cudagrad.logsumexp(on_device(x), (0, 2))), logsumexp64(x.astype(np.float64), (0, 2))) < 1e-6


@pytest.mark.parametrize("layout", [askew, every_second, np.asfortranarray])
def test_logsumexp_of_any_layout(layout):
    for dim in (0, 1):
        check_logsumexp(made(1, (9, 64), np.float32), dim, layout=layout)


def test_logsumexp_in_float64_and_of_one_number():
    check_logsumexp(made(1, (5, 130), np.float64), 1)
    x = on_device(np.array(2.5, np.float32))
    y = cudagrad.logsumexp(x, 0)
    y.backward()
    assert y.item() == 2.5 and x.grad.item() == 1


def test_logsumexp_of_infinities_and_nans():
    inf = np.inf
    x = np.array([[0, inf, 1], [-inf, 0, -inf], [-inf, -inf, -inf], [0, np.nan, 1], [inf, inf, -inf]], np.float32)
    for shape in (x, np.repeat(x[:, :, None], 9, 2)):
        got = host(cudagrad.logsumexp(on_device(shape), 1)).reshape(5, -1)[:, 0]
        assert np.array_equal(got, np.array([inf, 0, -inf, np.nan, inf], np.float32), equal_nan=True)


@pytest.mark.parametrize("columns", [1, 9])
def test_the_gradient_of_an_infinite_logsumexp_is_0_beside_what_is_infinite(columns):
    """e^(x - inf): nan where x is inf, as PyTorch has it, and nowhere else."""
    inf, nan = np.inf, np.nan
    x = np.array([[0, inf, 1], [inf, inf, -inf], [-inf, -inf, -inf]], np.float32)
    given = on_device(np.repeat(x[:, :, None], columns, 2)).requires_grad_()
    cudagrad.logsumexp(given, 1).sum().backward()
    expected = np.array([[0, nan, 0], [nan, nan, 0], [nan, nan, nan]], np.float32)
    for column in range(columns):
        assert np.array_equal(host(given.grad)[:, :, column], expected, equal_nan=True)
