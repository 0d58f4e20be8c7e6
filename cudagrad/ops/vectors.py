"""Tensors as vectors and samples: products, distances, lengths kept short, and covariances."""

import warnings

from .. import errors
from ..core.modes import autocasts
from ..core.op import TABLE, op
from ..core.promote import promote_all
from ..core.shape import check_dim
from ..core.tensor import Tensor
from .arithmetic import sub
from .casting import to_dtype
from .norms import vector_norm
from .outputs import placed

__all__ = ("cross", "dist", "renorm", "cov", "corrcoef")
METHODS = __all__
INPLACE = ("renorm",)


def _crossed(input, other, dim=None):
    if input.ndim != other.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    if dim is None:
        warnings.warn(
            "Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim explicitly or "
            "simply use torch.linalg.cross.\nThe default value of dim will change to agree with that of linalg.cross "
            "in a future release.",
            UserWarning,
            stacklevel=3,
        )
        dim = next((d for d, n in enumerate(input.shape) if n == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    d = check_dim(dim, input.ndim)
    if input.shape[d] != 3 or other.shape[d] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {input.shape[d]} and {other.shape[d]}"
        )
    return *promote_all(TABLE["cross"], (input, other)), d


@op(
    prepare=_crossed,
    x=lambda m, g, y, dim: m.cross(y, g, dim=dim),
    y=lambda m, g, x, dim: m.cross(g, x, dim=dim),
    broadcast=True,
    node="LinalgCross",
)
def cross(xp, x, y, *, dim):
    """The vector product of x and y along ``dim``: orthogonal to both, as long as the area they span.

    Shapes      x, y: 3 along dim, broadcast elsewhere
    Raises      RuntimeError where dim has another length
    """
    a, b = xp.moveaxis(x, dim, 0), xp.moveaxis(y, dim, 0)
    rows = [a[i - 2] * b[i - 1] - a[i - 1] * b[i - 2] for i in range(3)]
    return xp.stack(rows, axis=dim)


@autocasts
def dist(input, other, p=2):
    """The p-norm of ``input - other``, over all their elements."""
    return vector_norm(sub(input, other), p)


@autocasts
def renorm(input, p, dim, maxnorm, *, out=None):
    """``input`` with each slice along ``dim`` whose p-norm is above ``maxnorm`` scaled down to it.

    Raises      RuntimeError for fewer than 2 dims, or a p or maxnorm that is not positive
    """
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if input.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions")
    d = check_dim(dim, input.ndim)
    length = vector_norm(input, p, [k for k in range(input.ndim) if k != d], True)
    factor = TABLE["where"].call(length > maxnorm, maxnorm / (length + 1e-7), 1.0)  # 1e-7 is PyTorch's
    return placed("renorm", input * factor, out)


# ---- covariances


def _weights(name, weights, observations, kind, category):
    """A vector of weights, checked to be of the dtype and length that ``cov`` wants."""
    if weights is None:
        return None
    if weights.ndim > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with {weights.ndim} dimensions"
        )
    if weights.dtype.category != category:
        given = f"{name} with {weights.dtype.legacy} dtype"
        raise RuntimeError(f"cov(): expected {name} to have {kind} dtype but got {given}")
    if weights.numel() != observations:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input but got "
            f"{weights.numel()} != {observations}"
        )
    if observations and bool((weights.array < 0).any()):
        raise RuntimeError(f"cov(): {name} cannot be negative")
    return weights


def cov(input, *, correction=1, fweights=None, aweights=None):
    """The covariances of the variables in the rows of ``input``, observed in its columns.

    Shapes      input: [N, observations], or one variable; out [N, N], a scalar for one variable
    Dtypes      any but bool; integers as the default floating dtype
    Raises      RuntimeError for more dims, or weights of another dtype, length or sign; UserWarning where the divisor
                is not positive
    """
    if input.ndim > 2:
        first = f"cov(): expected input to have two or fewer dimensions but got an input with {input.ndim} dimensions"
        raise RuntimeError(errors.text(first, f"got {tuple(input.shape)}"))
    if input.array.dtype.kind == "b":
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = input if input.ndim == 2 else TABLE["reshape"].raw(input, shape=(1, input.numel()))
    count = x.shape[1]
    repeated = _weights("fweights", fweights, count, "integral", 1)
    relative = _weights("aweights", aweights, count, "floating point", 2)
    w = relative if repeated is None else repeated if relative is None else repeated * relative
    if w is not None and w.dtype.category < 2:
        w = to_dtype(w, x.dtype.to_real()) if x.dtype.category > 1 else w * 1.0
    total = count if w is None else TABLE["sum"].call(w)
    divisor = _divisor(total, w, relative, correction)
    away = x - _mean_of(x, w, total)
    scaled = away if w is None else away * w
    result = TABLE["matmul"].call(scaled, TABLE["conj"].call(away).t()) / divisor
    return TABLE["reshape"].raw(result, shape=()) if x.shape[0] == 1 else result


def _divisor(total, w, relative, correction):
    if relative is not None and correction:
        total = total - correction * TABLE["sum"].call(w * relative) / total
    else:
        total = total - correction
    if bool(total <= 0):
        warnings.warn(
            "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.",
            UserWarning,
            stacklevel=3,
        )
    return total.clamp(min=0) if isinstance(total, Tensor) else max(total, 0)


def _mean_of(x, w, total):
    weighed = x if w is None else x * w
    return TABLE["sum"].call(weighed, 1, True) / total


def corrcoef(input):
    """The correlations of the variables in the rows of ``input``: covariances over the standard deviations.

    Shapes      as ``cov``
    """
    if input.ndim > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {input.ndim} dimensions"
        )
    c = cov(input)
    if c.ndim == 0:
        return c / c
    deviation = TABLE["sqrt"].call(c.diagonal())
    return c / deviation.unsqueeze(1) / deviation.unsqueeze(0)
