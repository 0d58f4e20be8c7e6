"""Limits the size of gradients, in place."""

import functools
import types
import warnings

import numpy as np

from ...backend import xp_of
from ...core.inplace import bump
from ...core.modes import no_grad
from ...core.tensor import Tensor, wrap
from ...ops.joining import stack


def _grads(parameters):
    parameters = [parameters] if isinstance(parameters, Tensor) else parameters
    return [p.grad for p in parameters if p.grad is not None]


@no_grad()
def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The p-norm of all elements of the tensors, a 0-d tensor; 0 for no tensors.

    ``foreach`` is accepted and makes no difference.

    Raises      RuntimeError for an infinite or NaN norm, if ``error_if_nonfinite``
    """
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return _zero()
    norms = [t.norm(norm_type) for t in tensors]
    if len({t.device for t in norms}) > 1:
        norms = [t.to(norms[0].device) for t in norms]
    total = stack(norms).norm(norm_type)
    if error_if_nonfinite and not total.isfinite():
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


def _zero():
    return wrap(np.zeros((), np.float32))


@no_grad()
def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    """Multiply the gradients by min(1, max_norm / (total_norm + 1e-6)), in place."""
    grads = _grads(parameters)
    if not grads:
        return
    scale = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
    on = {}
    with np.errstate(all="ignore"):  # a gradient that is not finite tells by its value
        for g in grads:
            if g.device not in on:
                on[g.device] = scale.to(g.device)
            _multiply(g, on[g.device])


def _multiply(g, scale):
    """g *= scale in g's own memory: 125 us for 6 MB, where ``mul_``, which computes aside first, takes 440."""
    if g.node is None and g.link is None and g.dtype is scale.dtype:
        xp_of(g.array).multiply(g.array, scale.array, out=g.array)
        bump(g)
    else:
        g.mul_(scale)


@no_grad()
def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scale all gradients so that their common p-norm is at most ``max_norm``; returns the norm before.

    ``parameters`` may be one tensor or an iterable; those without a gradient are left out. ``foreach`` is accepted and
    makes no difference.

    Raises      RuntimeError for an infinite or NaN norm, if ``error_if_nonfinite``; otherwise the gradients become NaN
    """
    if not isinstance(parameters, Tensor):
        given, parameters = parameters, list(parameters)
        if isinstance(given, types.GeneratorType) and not parameters:
            warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=3)
    total = get_total_norm(_grads(parameters), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


@functools.wraps(clip_grad_norm_)
def clip_grad_norm(*args, **kwargs):
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(*args, **kwargs)


@no_grad()
def clip_grad_value_(parameters, clip_value, foreach=None):
    """Clamp every element of the gradients between -clip_value and clip_value, in place."""
    limit = float(clip_value)
    for g in _grads(parameters):
        g.clamp_(-limit, limit)
