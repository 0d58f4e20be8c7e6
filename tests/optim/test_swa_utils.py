"""Averages of weights against their definition and PyTorch, and new statistics for BatchNorm."""

import numpy as np
import pytest

from cudagrad import nn
from cudagrad.core.tensor import wrap
from cudagrad.optim.swa_utils import (
    AveragedModel,
    get_ema_avg_fn,
    get_ema_multi_avg_fn,
    get_swa_avg_fn,
    get_swa_multi_avg_fn,
    update_bn,
)


class Net(nn.Module):
    """Two parameters and two buffers, one of integers."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(wrap(np.zeros((3, 4), np.float32)))
        self.b = nn.Parameter(wrap(np.zeros(5)))
        self.register_buffer("seen", wrap(np.zeros((), np.int64)))
        self.register_buffer("mean", wrap(np.zeros(2, np.float32)))

    def forward(self, x):
        return x


def walk(model, averaged, steps=4):
    """Give the model random weights ``steps`` times, average each time; comes back as the history of every tensor."""
    rng, history = np.random.default_rng(0), []
    for i in range(steps):
        for t in (model.w, model.b, model.mean):
            t.array[...] = rng.standard_normal(t.array.shape)
        model.seen.array[...] = 10 * i
        averaged.update_parameters(model)
        history.append([t.array.copy() for t in (model.w, model.b, model.seen, model.mean)])
    return history


@pytest.mark.parametrize("options", [{}, {"avg_fn": get_swa_avg_fn()}, {"multi_avg_fn": get_swa_multi_avg_fn()}])
def test_swa_is_the_mean_of_all_weights_and_copies_buffers(options):
    model = Net()
    averaged = AveragedModel(model, **options)
    history = walk(model, averaged)
    for name, values in zip(("w", "b"), zip(*history)):
        np.testing.assert_allclose(getattr(averaged.module, name).array, np.mean(values, 0), rtol=1e-5, atol=1e-7)
    assert averaged.module.seen.array == 30 and int(averaged.n_averaged.array) == 4
    np.testing.assert_array_equal(averaged.module.mean.array, history[-1][3])


@pytest.mark.parametrize("options", [{"avg_fn": get_ema_avg_fn(0.9)}, {"multi_avg_fn": get_ema_multi_avg_fn(0.9)}])
def test_ema_begins_at_the_first_weights_and_can_average_buffers(options):
    model = Net()
    averaged = AveragedModel(model, use_buffers=True, **options)
    history = walk(model, averaged)
    for i, name in enumerate(("w", "b", "seen", "mean")):
        expected = history[0][i]
        for values in history[1:]:
            expected = 0.9 * expected + 0.1 * values[i]
            expected = np.trunc(expected) if name == "seen" else expected
        np.testing.assert_allclose(getattr(averaged.module, name).array, expected, rtol=1e-5, atol=1e-7)


def test_wrong_averages_are_refused():
    with pytest.raises(ValueError, match="Invalid decay value 1.5 provided. Please provide a value in"):
        get_ema_multi_avg_fn(1.5)
    with pytest.raises(AssertionError, match="Only one of avg_fn and multi_avg_fn should be provided"):
        AveragedModel(Net(), avg_fn=get_swa_avg_fn(), multi_avg_fn=get_swa_multi_avg_fn())


def test_the_average_is_a_copy_and_runs_the_module():
    model = Net()
    averaged = AveragedModel(model)
    assert averaged.module is not model and averaged(5) == 5
    assert list(averaged.state_dict())[0] == "n_averaged"


def test_update_bn_makes_the_statistics_of_one_pass():
    model = nn.Sequential(nn.BatchNorm1d(3, momentum=0.3))
    batches = [np.random.default_rng(i).standard_normal((8, 3)).astype(np.float32) for i in range(3)]
    model.eval()
    update_bn([(wrap(b), 1) for b in batches], model)
    layer = model[0]
    np.testing.assert_allclose(layer.running_mean.array, np.mean([b.mean(0) for b in batches], 0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(layer.running_var.array, np.mean([b.var(0, ddof=1) for b in batches], 0), rtol=1e-5)
    assert layer.momentum == 0.3 and not model.training


@pytest.mark.peer
@pytest.mark.parametrize("kind", ["swa", "ema"])
def test_averages_follow_pytorch(kind):
    torch = pytest.importorskip("torch")
    theirs = torch.optim.swa_utils
    mine, other = nn.Module(), torch.nn.Module()
    mine.w = nn.Parameter(wrap(np.zeros(300, np.float32)))
    other.w = torch.nn.Parameter(torch.zeros(300))
    decay = (0.9,) if kind == "ema" else ()
    a = AveragedModel(mine, multi_avg_fn={"swa": get_swa_multi_avg_fn, "ema": get_ema_multi_avg_fn}[kind](*decay))
    b = theirs.AveragedModel(other, multi_avg_fn=getattr(theirs, f"get_{kind}_multi_avg_fn")(*decay))
    rng = np.random.default_rng(0)
    for _ in range(20):
        w = rng.standard_normal(300).astype(np.float32)
        mine.w.array[...] = w
        other.w.data = torch.from_numpy(w)
        a.update_parameters(mine)
        b.update_parameters(other)
        np.testing.assert_allclose(a.module.w.array, b.module.w.detach().numpy(), rtol=1e-5, atol=1e-6)
    assert list(a.state_dict()) == list(b.state_dict())
