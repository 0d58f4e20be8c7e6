"""GradScaler: the course of the scale, skipped steps, and calls in the wrong order."""

import copy
import pickle

import numpy as np
import pytest

from cudagrad.amp.grad_scaler import CudaGradScaler, GradScaler
from cudagrad.core.tensor import wrap
from cudagrad.optim import SGD

from .problems import leaf


def setting(init_scale=8.0, **options):
    """A scaler, an optimizer at rate 1, its parameter [1, 1]."""
    p = leaf(np.ones(2, np.float32))
    return GradScaler("cpu", init_scale=init_scale, **options), SGD([p], lr=1.0), p


def turn(scaler, optimizer, p, grad=0.5):
    """One iteration whose scaled gradient is ``scale grad``."""
    scaled = scaler.scale(wrap(np.ones((), np.float32)))
    p.grad = wrap(np.full(2, grad, np.float32) * scaled.array)
    scaler.step(optimizer)
    scaler.update()


def test_a_loss_is_multiplied_and_the_gradients_are_divided_before_the_step():
    scaler, optimizer, p = setting()
    turn(scaler, optimizer, p)
    assert p.array.tolist() == [0.5, 0.5] and p.grad.array.tolist() == [0.5, 0.5]


def test_scaling_is_recorded():
    scaler, _, p = setting()
    scaler.scale((p * 3).sum()).backward()
    assert p.grad.array.tolist() == [24, 24]


def test_lists_tuples_and_generators_are_scaled_at_any_depth():
    scaler, _, _ = setting()
    one = wrap(np.ones((), np.float32))
    nested = scaler.scale([one, (one, one)])
    assert isinstance(nested, list) and isinstance(nested[1], tuple)
    assert [float(t.array) for t in (nested[0], *nested[1], *scaler.scale(t for t in [one]))] == [8, 8, 8, 8]
    with pytest.raises(ValueError, match="outputs must be a Tensor or an iterable of Tensors"):
        scaler.scale(3)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_inf_and_nan_skip_the_step_and_halve_the_scale(bad):
    scaler, optimizer, p = setting()
    turn(scaler, optimizer, p, grad=bad)
    assert p.array.tolist() == [1, 1] and scaler.get_scale() == 4.0


def test_the_scale_doubles_after_enough_clean_steps_and_inf_starts_the_count_again():
    scaler, optimizer, p = setting(growth_interval=3)
    seen = []
    for grad in [0, 0, np.inf, 0, 0, 0, 0, 0, 0]:
        turn(scaler, optimizer, p, grad)
        seen.append(scaler.get_scale())
    assert seen == [8, 8, 4, 4, 4, 8, 8, 8, 16]


def test_a_scale_never_grows_to_inf():
    scaler, optimizer, p = setting(init_scale=float(np.finfo(np.float32).max), growth_interval=1)
    turn(scaler, optimizer, p, grad=0)
    assert scaler.get_scale() == float(np.finfo(np.float32).max)


def test_one_parameter_of_many_with_inf_is_enough():
    p, q, r = (leaf(np.ones(2, np.float32)) for _ in range(3))
    scaler, optimizer = GradScaler("cpu", init_scale=8.0), SGD([p, q, r], lr=1.0)
    scaler.scale(wrap(np.ones(())))
    p.grad, q.grad = wrap(np.ones(2, np.float32)), wrap(np.array([1, np.inf], np.float32))
    scaler.step(optimizer)
    assert p.array.tolist() == [1, 1] and r.grad is None


def test_unscale_lets_gradients_be_clipped_and_is_not_done_twice():
    scaler, optimizer, p = setting()
    scaler.scale(wrap(np.ones(())))
    p.grad = wrap(np.full(2, 4.0, np.float32))
    scaler.unscale_(optimizer)
    assert p.grad.array.tolist() == [0.5, 0.5]
    with pytest.raises(
        RuntimeError, match=r"unscale_\(\) has already been called on this optimizer since the last update"
    ):
        scaler.unscale_(optimizer)
    p.grad.array[...] = 0.25
    scaler.step(optimizer)
    assert p.array.tolist() == [0.75, 0.75]
    with pytest.raises(RuntimeError, match=r"unscale_\(\) is being called after step\(\)."):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match=r"step\(\) has already been called since the last update\(\)."):
        scaler.step(optimizer)
    scaler.update()
    scaler.step(optimizer)


def test_calls_out_of_order_are_refused():
    scaler, optimizer, p = setting()
    for call in (lambda: scaler.step(optimizer), lambda: scaler.unscale_(optimizer), scaler.update):
        with pytest.raises(AssertionError, match="but _scale is None.  This may indicate your script did not use"):
            call()
    scaler.scale(wrap(np.ones(())))
    with pytest.raises(AssertionError, match="No inf checks were recorded prior to update."):
        scaler.update()
    with pytest.raises(AssertionError, match="No inf checks were recorded for this optimizer."):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="Closure use is not currently supported if GradScaler is enabled."):
        scaler.step(optimizer, closure=lambda: 1)


def test_float16_gradients_are_refused():
    p = leaf(np.ones(2, np.float16))
    scaler, optimizer = GradScaler("cpu"), SGD([p])
    scaler.scale(wrap(np.ones(())))
    p.grad = wrap(np.ones(2, np.float16))
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients."):
        scaler.unscale_(optimizer)


def test_update_sets_a_scale_that_is_given():
    scaler, _, _ = setting()
    scaler.scale(wrap(np.ones(())))
    scaler.update(32.0)
    assert scaler.get_scale() == 32.0
    scaler.update(wrap(np.array([16.0], np.float32)))
    assert scaler.get_scale() == 16.0
    with pytest.raises(AssertionError, match="new_scale should be a float or a 1-element"):
        scaler.update(wrap(np.ones(2, np.float32)))


def test_two_optimizers_are_checked_apart_and_share_the_scale():
    scaler, good, p = setting()
    q = leaf(np.ones(2, np.float32))
    bad = SGD([q], lr=1.0)
    scaler.scale(wrap(np.ones(())))
    p.grad, q.grad = wrap(np.full(2, 4.0, np.float32)), wrap(np.full(2, np.nan, np.float32))
    scaler.step(good)
    scaler.step(bad)
    scaler.update()
    assert p.array.tolist() == [0.5, 0.5] and q.array.tolist() == [1, 1] and scaler.get_scale() == 4.0


def test_an_optimizer_that_unscales_itself_gets_scale_and_found_inf():
    class Own(SGD):
        _step_supports_amp_scaling = True

        def step(self, closure=None):
            self.seen = float(self.grad_scale.array), float(self.found_inf.array)

    p = leaf(np.ones(2, np.float32))
    scaler, optimizer = GradScaler("cpu", init_scale=8.0), Own([p])
    scaler.scale(wrap(np.ones(())))
    p.grad = wrap(np.array([1, np.inf], np.float32))
    scaler.step(optimizer)
    assert optimizer.seen == (8.0, 1.0) and not hasattr(optimizer, "grad_scale")
    scaler.update()
    assert scaler.get_scale() == 4.0


def test_a_disabled_scaler_does_nothing():
    p = leaf(np.ones(2, np.float32))
    scaler, optimizer = GradScaler("cpu", enabled=False), SGD([p], lr=1.0)
    loss = wrap(np.ones(()))
    assert scaler.scale(loss) is loss and scaler.get_scale() == 1.0 and scaler.state_dict() == {}
    p.grad = wrap(np.full(2, np.inf, np.float32))
    scaler.unscale_(optimizer)
    assert scaler.step(optimizer, lambda: 5.0) == 5.0 and not scaler.is_enabled()
    scaler.update()


def test_the_scaler_for_cuda_disables_itself_where_there_is_none():
    from cudagrad.backend import cuda

    if cuda.is_available():
        assert CudaGradScaler().is_enabled()
        return
    with pytest.warns(
        UserWarning, match="torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling."
    ):
        assert not CudaGradScaler(2.0).is_enabled()
    assert not CudaGradScaler(enabled=False).is_enabled()


def test_factors_on_the_wrong_side_of_one_are_refused():
    with pytest.raises(AssertionError, match="The growth factor must be > 1.0."):
        GradScaler("cpu", growth_factor=1.0)
    with pytest.raises(AssertionError, match="The backoff factor must be < 1.0."):
        GradScaler("cpu", backoff_factor=1.0)


def test_a_saved_scaler_goes_on_where_it_was():
    scaler, optimizer, p = setting(growth_interval=3)
    for _ in range(4):
        turn(scaler, optimizer, p, grad=0)
    saved = scaler.state_dict()
    expected = {"scale": 16.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 3, "_growth_tracker": 1}
    assert saved == expected
    fresh, used = GradScaler("cpu"), setting()[0]
    used.scale(wrap(np.ones(())))
    for other in (fresh, used):
        other.load_state_dict(saved)
    for other in (fresh, used, pickle.loads(pickle.dumps(scaler)), copy.deepcopy(scaler)):
        assert other.state_dict() == saved
        turn(other, optimizer, p, grad=0)
        turn(other, optimizer, p, grad=0)
        assert other.get_scale() == 32.0
    with pytest.raises(RuntimeError, match="The source state dict is empty"):
        fresh.load_state_dict({})


def test_a_scaler_is_not_pickled_in_the_middle_of_an_iteration():
    scaler, optimizer, p = setting()
    scaler.scale(wrap(np.ones(())))
    p.grad = wrap(np.ones(2, np.float32))
    scaler.unscale_(optimizer)
    with pytest.raises(AssertionError, match="may only be pickled at the beginning of an iteration"):
        pickle.dumps(scaler)


def test_the_settings_can_be_read_and_changed():
    scaler = setting()[0]
    scaler.set_growth_factor(3.0), scaler.set_backoff_factor(0.1), scaler.set_growth_interval(7)
    assert (scaler.get_growth_factor(), scaler.get_backoff_factor(), scaler.get_growth_interval()) == (3.0, 0.1, 7)


@pytest.mark.peer
def test_thirty_iterations_follow_pytorch():
    torch = pytest.importorskip("torch")
    options = {"init_scale": 16.0, "growth_interval": 2, "growth_factor": 1.5, "backoff_factor": 0.7}
    p, q = leaf(np.ones(2, np.float32)), torch.ones(2, requires_grad=True)
    mine, theirs = GradScaler("cpu", **options), torch.amp.GradScaler("cpu", **options)
    optimizer, other = SGD([p], lr=0.1), torch.optim.SGD([q], lr=0.1)
    rng = np.random.default_rng(0)
    for _ in range(30):
        g = rng.standard_normal(2).astype(np.float32)
        g[0] = np.inf if rng.random() < 0.3 else g[0]
        scale, their_scale = mine.scale(wrap(np.ones(()))), theirs.scale(torch.ones(()))
        p.grad, q.grad = wrap(g * np.float32(scale.array)), torch.from_numpy(g) * their_scale.float()
        mine.step(optimizer), theirs.step(other)
        mine.update(), theirs.update()
        assert mine.state_dict() == pytest.approx(theirs.state_dict())
        np.testing.assert_allclose(p.array, q.detach().numpy(), rtol=1e-6)
