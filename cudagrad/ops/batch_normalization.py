"""Normalisation over the batch, with running statistics, and of each sample's channels by themselves."""

from ..core.modes import no_grad
from ..core.op import TABLE, op
from ..core.promote import not_tensor
from ..core.tensor import Tensor
from . import channelwise
from .casting import to_dtype
from .checks import count_of, refuse
from .normalizing import check_dtypes, check_values, reshaped, standardised_gradients

# torch.batch_norm and torch.instance_norm, which take their arguments in another order, are not public here.
FUNCTIONAL = ("batch_norm", "instance_norm")


@op(outputs=2)
def batch_moments(xp, x):
    """``(mean, var)`` [C] of each channel of x [N,C,*S]; var divided by N*S. float32 for half types."""
    refuse("batch_norm", x, "biuc")
    return channelwise.batch_moments(xp, x)


def _gradients(m, g, x, w, mean, var, needs, training, eps):
    shape = (1, x.shape[1]) + (1,) * (len(x.shape) - 2)
    over = (0, *range(2, len(x.shape)))
    factor = None if w is None else m.reshape(w, shape=shape)
    if training:
        dx, h = standardised_gradients(m, g, x, factor, over, eps)
    else:
        r = m.rsqrt(m.reshape(var, shape=shape) + eps)
        h = (x - m.reshape(mean, shape=shape)) * r
        dx = g * r if factor is None else g * (r * factor)
    dw = m.sum(g * h, dim=over, keepdim=False) if needs[1] else None
    return dx, dw, m.sum(g, dim=over, keepdim=False) if needs[2] else None, None, None


def _fused(xp, g, x, w, mean, var, needs, training, eps):
    dx, dw, db = channelwise.batch_backward(xp, g, x, w, mean, var, eps, needs, training)
    return dx, *(reshaped(d, (-1,), w) for d in (dw, db)), None, None


@op(joint=_gradients, fused=_fused, node="NativeBatchNorm")
def normalize_batch(xp, x, w=None, b=None, mean=None, var=None, *, training, eps):
    """(x - mean) / sqrt(var + eps) * w + b, one value of each a channel; with ``training`` mean and var are x's own.

    Shapes      x, out [N,C,*S]; w, b, mean, var [C]
    Derivative  as of ``layer_norm`` over batch and places; without ``training`` g * w / sqrt(var + eps)
    """
    refuse("batch_norm", x, "biuc")
    return channelwise.batch_forward(xp, x, w, b, mean, var, eps)


def _check(input, training, eps, **per_channel):
    if not isinstance(input, Tensor):
        raise not_tensor(TABLE["normalize_batch"], input)
    if input.ndim < 2:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    if training:
        check_values("Expected more than 1 value per channel when training", input.shape)
        if eps <= 0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    elif eps < 0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    channels = input.shape[1]
    for name, t in per_channel.items():
        if t is None:
            if name.startswith("running") and not training:
                raise RuntimeError(f"{name} must be defined in evaluation mode")
        elif t.numel() != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {t.numel()}")
    check_dtypes(input, *per_channel.values())


def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    """(input - mean) / sqrt(var + eps) * weight + bias, one value of each a channel.

    In ``training`` mean and var are those of the batch, and ``running_mean`` and ``running_var`` go towards them in
    place by ``momentum``, var divided by one less than the count; else the running ones are used.

    Shapes      input, out [N,C,*S]; the others [C]
    Dtypes      floating; half types are computed in float32, the others may be float32 beside them
    Raises      ValueError for one value a channel in training, RuntimeError where shapes or dtypes do not fit
    Source      Ioffe, Szegedy 2015, arXiv:1502.03167, algorithm 1
    """
    if getattr(input, "ndim", 2) < 2 and not input.numel():
        return input.clone()
    running = {"running_mean": running_mean, "running_var": running_var}
    _check(input, training, eps, **running, weight=weight, bias=bias)
    if training:
        mean, var = batch_moments(input.detach())
        count = count_of([input.shape[0], *input.shape[2:]], None)
        if count:
            _follow(running_mean, mean, momentum, 1)
            _follow(running_var, var, momentum, count / max(count - 1, 1))
    else:
        mean, var = running_mean.detach(), running_var.detach()
    return normalize_batch(input, weight, bias, mean, var, training=bool(training), eps=eps)


def _follow(running, value, momentum, factor):
    """Move a running statistic towards ``factor * value`` by ``momentum``, in place."""
    if running is not None:
        with no_grad():
            value = value if factor == 1 else value * factor
            running.lerp_(to_dtype(value, running.dtype), momentum)


def instance_norm(
    input,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    use_input_stats=True,
    momentum=0.1,
    eps=1e-5,
):
    """As ``batch_norm`` with each sample normalised by itself; running statistics are means over the batch.

    Shapes      input, out [N,C,*S]; the others [C]
    Raises      ValueError for one value a channel, RuntimeError where shapes or dtypes do not fit
    Source      Ulyanov, Vedaldi, Lempitsky 2016, arXiv:1607.08022, equation 3
    """
    if (running_mean is None) != (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    if not use_input_stats:
        if running_mean is None:
            raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    places = count_of(input.shape[2:], None)
    if places == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    n, c = input.shape[:2]
    for name, t in (("running_mean", running_mean), ("running_var", running_var), ("weight", weight), ("bias", bias)):
        if t is not None and t.numel() != c:
            raise RuntimeError(f"{name} should contain {n * c} elements not {n * t.numel()}")
    if running_mean is not None:
        mean, var = (m.reshape(n, c).mean(0) for m in batch_moments(input.detach().reshape(1, n * c, places)))
        _follow(running_mean, mean, momentum, 1)
        _follow(running_var, var, momentum, places / (places - 1))
    return TABLE["group_norm"].raw(input, weight, bias, groups=c, eps=eps)
