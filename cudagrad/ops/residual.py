"""What stands beside a residual sum in one op with it: the norm after the sum, bias and dropout before it."""

from .. import dtypes, errors
from ..core.op import TABLE, op
from ..core.promote import not_tensor, promote_all, result_type_of
from ..core.tensor import Tensor
from . import normalization
from .checks import refuse
from .dropout import check_probability, drawn, dropout, scale_of
from .normalizing import check_dtypes

__all__ = ()
FUNCTIONAL = ("add_layer_norm", "add_rms_norm", "bias_dropout_add")


def _check_summands(name, declared, x, residual):
    """TypeError, RuntimeError where the two are not tensors of one shape."""
    for t in (x, residual):
        if not isinstance(t, Tensor):
            raise not_tensor(TABLE[declared], t)
    if x.array.shape != residual.array.shape:
        first = f"{name}: x and residual must have the same shape"
        raise RuntimeError(errors.text(first, f"got {list(x.shape)} and {list(residual.shape)}"))


# ---- a norm after the sum


def _prepare_layer(x, residual, normalized_shape, weight=None, bias=None, eps=1e-5):
    _check_summands("add_layer_norm", "add_layer_norm", x, residual)
    shape = normalization.check_layer("add_layer_norm", x, normalized_shape, weight=weight, bias=bias)
    check_dtypes(residual, weight, bias)
    return x, residual, weight, bias, shape, eps


def _through(rule, m, g, summed, w, needs, *given):
    """Gradients by x, by residual and by what else the norm has; ``g`` came to y and to the sum, one may be None.

    ``rule`` gives those of the norm of the sum.
    """
    dy, direct = g
    needs = needs[0] or needs[1], *needs[2:]
    d, *others = [None] * len(needs) if dy is None else rule(m, dy, summed, w, needs, *given)
    d = direct if d is None else d if direct is None else d + direct
    return d, d, *others


def _layer_gradients(m, g, summed, w, needs, shape, eps):
    return _through(normalization.layer_gradients, m, g, summed, w, needs, shape, eps)


def _layer_fused(xp, g, summed, w, needs, shape, mean, rstd):
    return _through(normalization.layer_fused, xp, g, summed, w, needs, shape, mean, rstd)


@op(
    prepare=_prepare_layer,
    promote=("x", "residual"),
    numbers=(),
    broadcast=False,
    joint=_layer_gradients,
    fused=_layer_fused,
    outputs=("y", "summed"),
    extras=("mean", "rstd"),
)
def add_layer_norm(xp, x, residual, w=None, b=None, *, shape, eps):
    """``(y, s)``: s = x + residual and y = ``layer_norm`` of s; s is the residual of what comes next.

    What an addition and then ``layer_norm`` give, in one op: on CUDA one kernel, which reads x and residual once.

    Shapes      x, residual, y, s [...,*normalized_shape]; weight, bias as normalized_shape
    Dtypes      floating; x and residual are promoted; half types are computed in float32, weight and bias may be
                float32 beside them
    Derivative  by x and by residual: that of ``layer_norm`` at s plus the gradient of s
    Raises      RuntimeError where shapes or dtypes do not fit
    Differs     no function of PyTorch's
    Source      Ba, Kiros, Hinton 2016, arXiv:1607.06450, equations 3 and 4

    >>> cudagrad.nn.functional.add_layer_norm(tensor([[1.0, 2.0]]), tensor([[0.0, 1.0]]), (2,))
    (tensor([[-1.0000,  1.0000]]), tensor([[1., 3.]]))
    """
    refuse("LayerNormKernelImpl", x, "biuc")
    summed = x + residual
    y, mean, rstd = TABLE["layer_norm"].forward(xp, summed, w, b, shape=shape, eps=eps)
    return (y, summed), mean, rstd


def _prepare_rms(x, residual, normalized_shape, weight=None, eps=None):
    _check_summands("add_rms_norm", "add_rms_norm", x, residual)
    shape = normalization.check_layer("add_rms_norm", x, normalized_shape, weight=weight)
    check_dtypes(residual, weight)
    met = result_type_of((x, residual))
    if eps is None and met.category == 2:
        eps = dtypes.finfo(met).eps
    return x, residual, weight, shape, eps


def _rms_gradients(m, g, summed, w, needs, shape, eps):
    return _through(normalization.rms_gradients, m, g, summed, w, needs, shape, eps)


def _rms_fused(xp, g, summed, w, needs, shape, rstd):
    return _through(normalization.rms_fused, xp, g, summed, w, needs, shape, rstd)


@op(
    prepare=_prepare_rms,
    promote=("x", "residual"),
    numbers=(),
    broadcast=False,
    joint=_rms_gradients,
    fused=_rms_fused,
    outputs=("y", "summed"),
    extras=("rstd",),
)
def add_rms_norm(xp, x, residual, w=None, *, shape, eps):
    """``(y, s)``: s = x + residual and y = ``rms_norm`` of s; s is the residual of what comes next.

    ``eps``: the dtype's own by default.

    Shapes      x, residual, y, s [...,*normalized_shape]; weight as normalized_shape
    Dtypes      floating; x and residual are promoted; half types are computed in float32
    Derivative  by x and by residual: that of ``rms_norm`` at s plus the gradient of s
    Raises      RuntimeError where shapes or dtypes do not fit
    Differs     no function of PyTorch's
    Source      Zhang, Sennrich 2019, arXiv:1910.07467, equation 4
    """
    refuse("rms_norm", x, "biuc")
    summed = x + residual
    y, rstd = TABLE["rms_norm"].forward(xp, summed, w, shape=shape, eps=eps)
    return (y, summed), rstd


# ---- bias and dropout before the sum


def _dropped_gradients(m, g, x_shape, needs, p, seed, offset, scale):
    dx = m.dropped(g, p=p, seed=seed, offset=offset, scale=scale, dims=None) if p and (needs[0] or needs[1]) else g
    rows = tuple(range(len(x_shape) - 1))
    return dx, m.sum(dx, dim=rows, keepdim=False) if needs[1] and rows else dx, g


@op(joint=_dropped_gradients, fused=_dropped_gradients, wide=True)
def bias_dropped_added(xp, x, b=None, residual=None, *, p, seed, offset, scale):
    """residual + dropped(x + b), with the decisions that ``dropped`` makes for (seed, offset); p 0: x + b as it is.

    Shapes      x, residual, out [...,C]; b [C]
    Dtypes      floating and complex; half types are rounded once
    """
    out = x if b is None else x + b
    if p:
        out = TABLE["dropped"].forward(xp, out, p=p, seed=seed, offset=offset, scale=scale, dims=None)
    return out if residual is None else xp.add(out, residual, out=None if out is x else out)


def bias_dropout_add(x, bias=None, residual=None, p=0.5, training=True):
    """residual + dropout(x + bias), either of which may be left out; no dropout where not ``training``.

    What additions and ``dropout`` give, with the same random numbers, in one op: on CUDA one kernel that keeps no mask.

    Shapes      x, residual [...,C]; bias [C]
    Dtypes      floating and complex; all are promoted to one dtype; half types are rounded once
    Derivative  with d = g times mask and factor: by x d, by bias d added up over the rows, by residual g
    Raises      RuntimeError where shapes do not fit and for integers, ValueError where p is not in [0, 1]
    Differs     no function of PyTorch's; p counts to the nearest multiple of 2^-16
    Source      Srivastava et al. 2014, Dropout, JMLR 15

    >>> bias_dropout_add(ones(2), ones(2), ones(2), training=False)
    tensor([3., 3.])
    """
    check_probability(x, p)
    if bias is None and residual is None:
        return dropout(x, p, training)
    declared = TABLE["bias_dropped_added"]
    if residual is not None:
        _check_summands("bias_dropout_add", declared.name, x, residual)
    if bias is not None and (x.ndim == 0 or tuple(bias.shape) != tuple(x.shape[-1:])):
        first = f"bias_dropout_add: bias must have the shape of x's last axis, {list(x.shape[-1:])}"
        raise RuntimeError(errors.text(first, f"got {list(bias.shape)}"))
    met = iter(promote_all(declared, [t for t in (x, bias, residual) if t is not None]))
    x, bias, residual = (None if t is None else next(met) for t in (x, bias, residual))
    if not training or p == 0:
        return declared.call(x, bias, residual, p=0.0, seed=0, offset=0, scale=1.0)
    seed, offset = drawn(x)
    return declared.call(x, bias, residual, p=float(p), seed=seed, offset=offset, scale=scale_of(p))
