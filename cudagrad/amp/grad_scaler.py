"""Loss scaling for float16 training."""

import collections
import enum
import inspect
import warnings

import numpy as np

from .. import errors
from ..backend import xp_of
from ..core.inplace import bump
from ..core.modes import no_grad
from ..core.tensor import Tensor, wrap


class OptState(enum.Enum):
    """How far an optimizer is since the last ``update``."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _fresh():
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """Multiplies losses by a scale, so that small float16 gradients are not lost, and divides the gradients by it.

    A step whose gradients hold inf or NaN is skipped and the scale times ``backoff_factor``; after
    ``growth_interval`` steps without, the scale times ``growth_factor``. ``device`` is where the scale lives;
    ``enabled=False`` makes every method do nothing.

    Raises      AssertionError for factors on the wrong side of 1, for steps and updates out of order
    Source      Micikevicius et al. 2018, arXiv:1710.03740, section 3.2
    """

    def __init__(
        self,
        device="cuda",
        init_scale=2.0**16,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self._device, self._enabled = device, enabled
        if enabled and device == "cuda" and not _cuda_is_available():
            text = "torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling."
            warnings.warn(text, stacklevel=2)
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError(errors.text("The growth factor must be > 1.0.", f"got {growth_factor}"))
        if backoff_factor >= 1.0:
            raise AssertionError(errors.text("The backoff factor must be < 1.0.", f"got {backoff_factor}"))
        self._init_scale, self._init_growth_tracker = init_scale, 0
        self._scale = self._growth_tracker = None  # 0-d tensors, made on the device of the first loss
        self._growth_factor, self._backoff_factor, self._growth_interval = (
            growth_factor,
            backoff_factor,
            growth_interval,
        )
        self._per_optimizer_states = collections.defaultdict(_fresh)

    # ---- a training step

    def scale(self, outputs):
        """A tensor, or the tensors in lists and tuples at any depth, times the scale; recorded for backward."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale_on(outputs)
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(map(self.scale, outputs))
        if isinstance(outputs, collections.abc.Iterable):
            return map(self.scale, outputs)
        first = "outputs must be a Tensor or an iterable of Tensors"
        raise ValueError(errors.text(first, f"got {type(outputs).__name__}"))

    def _scale_on(self, like):
        if self._scale is None:
            xp = xp_of(like.array)
            self._scale = wrap(xp.full((), self._init_scale, np.float32))
            self._growth_tracker = wrap(xp.full((), self._init_growth_tracker, np.int32))
        return self._scale.to(like.device)

    def unscale_(self, optimizer):
        """Divide the gradients of the optimizer's parameters by the scale, for example to clip them before ``step``.

        Raises      RuntimeError when called twice, or after step, since the last update; ValueError for float16
                    gradients
        """
        if not self._enabled:
            return
        self._check_started("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inverse = (1.0 / self._scale.array.astype(np.float64)).astype(np.float32)
        state["found_inf_per_device"] = _unscale(optimizer, wrap(xp_of(self._scale.array).asarray(inverse)), False)
        state["stage"] = OptState.UNSCALED

    def step(self, optimizer, *args, **kwargs):
        """``optimizer.step(*args, **kwargs)`` on unscaled gradients, unless they hold inf or NaN; what it returned.

        Raises      RuntimeError for a closure, or when called twice since the last update
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_started("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            return self._step_that_scales(optimizer, state, args, kwargs)
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        if not state["found_inf_per_device"]:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = self._maybe_opt_step(optimizer, state, *args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _maybe_opt_step(self, optimizer, state, *args, **kwargs):
        if any(found.array.item() for found in state["found_inf_per_device"].values()):
            return None
        return optimizer.step(*args, **kwargs)

    def _step_that_scales(self, optimizer, state, args, kwargs):
        """The step of a user's optimizer that itself divides by ``grad_scale`` and looks at ``found_inf``."""
        takes_scaler = "grad_scaler" in inspect.signature(optimizer.step).parameters
        if takes_scaler:
            warnings.warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. In the near "
                "future GradScaler registers `grad_scale: Tensor` and `found_inf: Tensor` to the passed optimizer and "
                "let the optimizer use them directly.",
                FutureWarning,
                stacklevel=3,
            )
            kwargs["grad_scaler"] = self
        else:
            given = getattr(optimizer, "grad_scale", None)
            if state["stage"] is OptState.READY:
                self._check_inf_per_device(optimizer)
                given = self._scale if given is None else self._scale * given
            optimizer.grad_scale = given
            optimizer.found_inf = self._added(state["found_inf_per_device"].values())
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            state["stage"] = OptState.STEPPED
            if not takes_scaler:
                del optimizer.grad_scale, optimizer.found_inf

    def _added(self, found):
        device = self._scale.device
        arrays = [f.to(device).array for f in found]
        return wrap(xp_of(self._scale.array).asarray(sum(arrays[1:], arrays[0])))

    def update(self, new_scale=None):
        """Set the scale for the next step, by what the steps since the last update found, or to ``new_scale``.

        Raises      AssertionError where no gradients were looked at, or for a new_scale that is no float or Tensor of
                    one element without gradient
        """
        if not self._enabled:
            return
        self._check_started("update")
        if new_scale is not None:
            self._set_scale(new_scale)
        else:
            states = self._per_optimizer_states.values()
            found = [f for state in states for f in state["found_inf_per_device"].values()]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            self._grow_or_back_off(self._added(found).array)
        self._per_optimizer_states = collections.defaultdict(_fresh)

    def _grow_or_back_off(self, found_inf):
        """The new scale and count of clean steps, on the device: a look at ``found_inf`` here would wait for it."""
        xp, scale, tracker = xp_of(self._scale.array), self._scale.array, self._growth_tracker.array
        clean = found_inf == 0
        count = xp.where(clean, tracker + 1, 0)
        full = count == self._growth_interval
        with np.errstate(over="ignore"):
            grown = scale * np.float32(self._growth_factor)
        grown = xp.where(xp.isfinite(grown), grown, scale)  # a scale of inf would never come back
        scale[...] = xp.where(clean, xp.where(full, grown, scale), scale * np.float32(self._backoff_factor))
        tracker[...] = xp.where(full, 0, count)
        bump(self._scale)
        bump(self._growth_tracker)

    def _set_scale(self, new_scale):
        if not isinstance(new_scale, Tensor):
            value = float(new_scale)
        else:
            fits = new_scale.device.type == self._device and new_scale.numel() == 1 and not new_scale.requires_grad
            if not fits:
                raise AssertionError(
                    "new_scale should be a float or a 1-element torch.cuda.FloatTensor or torch.FloatTensor with "
                    "requires_grad=False."
                )
            value = new_scale.array.reshape(())
        self._scale.array[...] = value
        bump(self._scale)

    def _check_started(self, name):
        if self._scale is None:
            raise AssertionError(
                f"Attempted {name} but _scale is None.  This may indicate your script did not use "
                "scaler.scale(loss or outputs) earlier in the iteration."
            )

    def _check_inf_per_device(self, optimizer):
        """Look for inf and NaN in the gradients as they are; comes back by device."""
        one = wrap(xp_of(self._scale.array).ones((), np.float32))
        found = _unscale(optimizer, one, allow_half=True)
        self._per_optimizer_states[id(optimizer)]["found_inf_per_device"] = found
        return found

    def _found_inf_per_device(self, optimizer):
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]

    # ---- settings

    def get_scale(self):
        """The scale as a float (on a GPU this waits for it); 1.0 when disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.array.item()

    def _get_growth_tracker(self):
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else self._growth_tracker.array.item()

    def get_growth_factor(self):
        """What the scale is multiplied by after enough clean steps."""
        return self._growth_factor

    def set_growth_factor(self, new_factor):
        self._growth_factor = new_factor

    def get_backoff_factor(self):
        """What the scale is multiplied by after inf or NaN."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor):
        self._backoff_factor = new_factor

    def get_growth_interval(self):
        """How many clean steps make the scale grow."""
        return self._growth_interval

    def set_growth_interval(self, new_interval):
        self._growth_interval = new_interval

    def is_enabled(self):
        return self._enabled

    # ---- saving and loading

    def state_dict(self):
        """Scale, factors, interval and the count of clean steps as numbers; empty when disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict):
        """Take over what ``state_dict`` returned.

        Raises      RuntimeError for the empty state of a disabled scaler
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale, self._init_growth_tracker = state_dict["scale"], state_dict["_growth_tracker"]
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        if self._scale is not None:
            self._scale.array[...] = self._init_scale
            self._growth_tracker.array[...] = self._init_growth_tracker

    def __getstate__(self):
        state = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after "
                    "scaler.update()."
                )
            state["_init_scale"], state["_init_growth_tracker"] = self.get_scale(), self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)


class CudaGradScaler(GradScaler):
    """``GradScaler`` for the GPU: what ``torch.cuda.amp.GradScaler`` names."""

    def __init__(self, init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


@no_grad()
def _unscale(optimizer, inverse, allow_half):
    """Multiply the gradients by ``inverse``; a 0-d tensor a device, 1 where one of them was inf or NaN."""
    found = {}
    for group in optimizer.param_groups:
        for p in group["params"]:
            grad = p.grad
            if grad is None:
                continue
            if not allow_half and grad.array.dtype == np.float16:
                raise ValueError(
                    errors.text(
                        "Attempting to unscale FP16 gradients.",
                        f"got a gradient of shape {tuple(grad.shape)}",
                        "fix: keep the parameters in float32 and let autocast compute in float16",
                    )
                )
            array = grad.array
            xp = xp_of(array)
            finite = xp.isfinite(array).all()
            before = found.setdefault(grad.device, wrap(xp.zeros((), np.float32)))
            before.array[...] = xp.where(finite, before.array, 1.0)
            with np.errstate(all="ignore"):
                array *= inverse.to(grad.device).array
            bump(grad)
    return found


def _cuda_is_available():
    from ..backend import cuda

    return cuda.is_available()
