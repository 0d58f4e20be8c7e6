"""Softmax and its logarithm along one axis."""

from ..core.node import warn
from ..core.op import TABLE, op
from ..core.promote import not_tensor
from ..core.shape import check_dim
from ..dtypes import dtype as dtype_class
from .blocks import in_lines, line_dot, line_max, line_sum, plain_exponentials
from .casting import to_dtype
from .checks import refuse

__all__ = ("softmax", "log_softmax")
METHODS = ("softmax", "log_softmax")
FUNCTIONAL = ("softmax", "log_softmax", "softmin", "gumbel_softmax")
SPECIAL = ("softmax", "log_softmax")


def _guessed(name, ndim):
    """The axis that PyTorch takes where none is named, with its warning."""
    first = f"Implicit dimension choice for {name} has been deprecated. "
    warn(first + "Change the call to include dim=X as an argument.")
    return 0 if ndim in (0, 1, 3) else 1


def _prepare(name):
    def prepare(input, dim=None, _stacklevel=3, dtype=None):
        if isinstance(_stacklevel, dtype_class):  # torch.softmax(input, dim, dtype)
            dtype = _stacklevel
        try:
            ndim = input.array.ndim
        except AttributeError:
            raise not_tensor(TABLE[name], input) from None
        if dim is None:
            dim = _guessed(name, ndim)
        dim = check_dim(dim, ndim)
        if dtype is not None:
            input = to_dtype(input, dtype)
        return input, dim

    return prepare


def _softmax(xp, out, x):
    sums = plain_exponentials(xp, x, out)
    if sums is None:
        xp.subtract(x, line_max(xp, x), out=out)
        xp.exp(out, out=out)
        sums = line_sum(xp, out)
    out /= sums


def _softmax_back(xp, out, g, y):
    xp.subtract(g, line_dot(xp, g, y), out=out)
    out *= y


@op(
    x=lambda m, g, out, dim: (g - m.sum(g * out, dim=(dim,) * (out.ndim > 0), keepdim=True)) * out,
    fused=lambda xp, g, out, dim: (in_lines(xp, _softmax_back, dim, g, out),),
    prepare=_prepare("softmax"),
)
def softmax(xp, x, *, dim):
    """e^x[i] / sum_j e^x[j] along ``dim``.

    Shapes      any
    Dtypes      floating; ``dtype`` casts x first; float16 and bfloat16 are computed in float32
    Derivative  out * (g - sum(g * out)); nan where a whole line is -inf
    Raises      IndexError for ``dim`` out of range, NotImplementedError for integers
    Differs     as in nn.functional, ``dim=None`` is guessed, with PyTorch's warning, by torch.softmax too

    >>> cudagrad.softmax(cudagrad.tensor([0.0, 0.0]), 0)
    tensor([0.5000, 0.5000])
    """
    refuse("softmax_lastdim_kernel_impl", x, "biuc")
    return in_lines(xp, _softmax, dim, x)


def _log_softmax(xp, out, x):
    xp.subtract(x, line_max(xp, x), out=out)
    out -= xp.log(line_sum(xp, xp.exp(out)))


def _log_softmax_back(xp, out, g, y):
    xp.exp(y, out=out)
    out *= -line_sum(xp, g)
    out += g


@op(
    x=lambda m, g, out, dim: g - m.exp(out) * m.sum(g, dim=(dim,) * (out.ndim > 0), keepdim=True),
    fused=lambda xp, g, out, dim: (in_lines(xp, _log_softmax_back, dim, g, out),),
    prepare=_prepare("log_softmax"),
)
def log_softmax(xp, x, *, dim):
    """x[i] - log(sum_j e^x[j]) along ``dim``, without overflow.

    Shapes      any
    Dtypes      floating; ``dtype`` casts x first; float16 and bfloat16 are computed in float32
    Derivative  g - e^out * sum(g)
    Raises      IndexError for ``dim`` out of range, NotImplementedError for integers
    """
    refuse("log_softmax_lastdim_kernel_impl", x, "biuc")
    return in_lines(xp, _log_softmax, dim, x)


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """softmax(-input)."""
    if dim is None:
        dim = _guessed("softmin", input.ndim)
    return softmax(-input, dim, dtype=dtype)


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """A sample of the Gumbel-softmax distribution; with ``hard`` one-hot, differentiated as if it were not.

    Shapes      any
    Source      Jang, Gu, Poole 2017, arXiv:1611.01144; Maddison, Mnih, Teh 2017, arXiv:1611.00712
    """
    if eps != 1e-10:
        warn("`eps` parameter is deprecated and has no effect.")
    from .creation import empty_like

    noise = -empty_like(logits).exponential_().log()
    soft = softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    index = soft.detach().argmax(dim, keepdim=True)
    one_hot = soft.detach().new_zeros(soft.shape).scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft
