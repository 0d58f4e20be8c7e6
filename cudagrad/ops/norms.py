"""Norms of vectors and matrices, and the trace."""

import numbers

from .. import errors
from ..core.modes import autocasts
from ..core.op import op
from ..core.shape import check_dim
from .linalg_checks import a_tensor
from .outputs import placed

__all__ = ("norm", "trace", "frobenius_norm", "nuclear_norm", "norm_except_dim")
METHODS = ("norm", "trace")
INF = float("inf")


def complex_valued(x):
    """Whether an array or a Tensor in a formula is complex."""
    return getattr(x.dtype, "kind", None) == "c" or getattr(x.dtype, "is_complex", False)


# ---- vectors


def _prepare_vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None):
    if not isinstance(ord, numbers.Number):
        what = type(ord).__name__
        raise TypeError(f"linalg_vector_norm(): argument 'ord' (position 2) must be Number, not {what}")
    x = _in_dtype("linalg.vector_norm", x, dtype)
    dims = dims_of(x, dim)
    ord = float(ord)
    if not x.array.size and (ord < 0 or ord == INF):
        _check_not_empty(x, ord, dims, dim)
    return x, ord, dims, bool(keepdim)


def dims_of(x, dim):
    """``dim`` (None or empty: all) as a tuple of axes counted from 0, none of them twice."""
    if dim is None or dim == () or dim == []:
        return tuple(range(x.ndim))
    dims = tuple(check_dim(d, x.ndim) for d in ((dim,) if isinstance(dim, int) else dim))
    for d in dims:
        if dims.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return dims if x.ndim else ()


def _in_dtype(name, x, dtype):
    """x, checked to be floating, in ``dtype``, which must not be narrower."""
    a_tensor(name, x, "input")
    if x.dtype.category < 2:
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {x.dtype.legacy}")
    if dtype is None or dtype is x.dtype:
        return x
    if dtype.category < 2:
        raise RuntimeError(f"{name}: dtype should be floating point or complex, but got {dtype.legacy}")
    if x.dtype.category != dtype.category:
        kinds = ("complex", "real") if x.is_complex() else ("real", "complex")
        raise RuntimeError(f"{name}: dtype should be {kinds[0]} for {kinds[0]} inputs, but got {dtype.legacy}")
    if dtype.itemsize < x.dtype.itemsize:
        raise RuntimeError(
            f"{name}: the dtype of the input ({x.dtype.legacy}) should be convertible without narrowing to the "
            f"specified dtype ({dtype.legacy})"
        )
    return x.to(dtype)


def _check_not_empty(x, ord, dims, dim):
    first = f"linalg.vector_norm cannot compute the {ord:g} norm on "
    if dim is None or len(dims) == x.ndim:
        first += "an empty tensor because the operation does not have an identity"
        raise RuntimeError(errors.text(first, f"got input {tuple(x.shape)}"))
    for d in dims:
        if x.shape[d] == 0:
            first += f"the dimension {d}because this dimension is empty and the operation does not have an identity"
            raise RuntimeError(first)


def _vector_norm_by_x(m, g, x, out, ord, dim, keepdim, x_shape):
    if not keepdim and dim:
        kept = tuple(1 if d in dim else n for d, n in enumerate(x_shape))
        g, out = m.reshape(g, shape=kept), m.reshape(out, shape=kept)
    if ord == 2:
        return x * _shrunk(g, out, 1)
    if ord == 0:
        return x * 0 * g
    sign = m.sgn(x) if complex_valued(x) else m.sign(x)
    if ord == 1:
        return sign * g
    size = m.abs(x)
    if abs(ord) == INF:
        picked = (size == out) + m.null(size)
        return sign * picked * (g / m.sum(picked, dim=dim, keepdim=True))
    nonzero = size + (size == 0)  # so that no power of 0 is taken; sign is 0 there
    if ord < 1:
        return sign * nonzero ** (ord - 1) * (g * out ** (1 - ord))
    if ord < 2:
        return sign * nonzero ** (ord - 1) * _shrunk(g, out, ord - 1)
    return x * nonzero ** (ord - 2) * _shrunk(g, out, ord - 1)


def _shrunk(g, out, power):
    """g / out^power, 0 where out is 0."""
    size = out + (out == 0)  # what is divided by must not be 0, or derivatives of this are nan
    return g * (out != 0) / (size if power == 1 else size**power)


@op(x=_vector_norm_by_x, prepare=_prepare_vector_norm, wide=True, holomorphic=False, node="LinalgVectorNorm")
def vector_norm(xp, x, *, ord, dim, keepdim):
    """(sum_i |x[i]|^ord)^(1/ord) over ``dim``; the count of nonzeros for 0, largest and smallest for inf and -inf.

    Shapes      x without ``dim``, or with 1 there; all axes for ``dim=None``
    Dtypes      floating or complex; the result is real
    Derivative  0 where the norm is 0; for inf and -inf ties share it evenly
    Raises      RuntimeError for integers, a narrower ``dtype``, an empty axis of inf or of a negative order

    >>> cudagrad.linalg.vector_norm(cudagrad.tensor([3.0, -4.0]))
    tensor(5.)
    """
    if x.dtype.kind == "c":
        x = xp.abs(x)
    if ord == 2:
        if len(dim) == x.ndim and not keepdim and x.flags.c_contiguous:
            flat = x.reshape(-1)
            return xp.sqrt(flat.dot(flat))  # one pass, no square in memory
        return xp.sqrt((x * x).sum(axis=dim, keepdims=keepdim))
    if ord == 0:
        return (x != 0).sum(axis=dim, keepdims=keepdim, dtype=x.dtype)
    size = xp.abs(x)
    if ord == INF:
        return size.max(axis=dim, keepdims=keepdim)
    if ord == -INF:
        return size.min(axis=dim, keepdims=keepdim)
    if ord == 1:
        return size.sum(axis=dim, keepdims=keepdim)
    return (size**ord).sum(axis=dim, keepdims=keepdim) ** (1 / ord)


# ---- matrices


def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None, out=None):
    """A norm of matrices: 'fro', 'nuc', 2 and -2 of the singular values, 1, -1, inf, -inf of sums of |A|.

    Shapes      A without the two axes ``dim``, or with 1 there
    Raises      RuntimeError for another ``ord``, for ``dim`` that are not two axes
    """
    name = "linalg.matrix_norm"
    a_tensor(name, A, "input")
    if A.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if len(dims) != 2:
        raise RuntimeError(f"{name}: dim must be a 2-tuple. Got {' '.join(map(str, dims))}")
    A = _in_dtype(name, A, dtype)
    rows, columns = (check_dim(d, A.ndim) for d in dims)
    if rows == columns:
        raise RuntimeError(f"{name}: dims must be different. Got ({dims[0]}, {dims[1]})")
    return placed("linalg_matrix_norm", _matrix_norm(name, A, ord, rows, columns, keepdim), out)


def _matrix_norm(name, A, ord, rows, columns, keepdim):
    if ord == "fro":
        return vector_norm(A, 2, (rows, columns), keepdim)
    if ord in ("nuc", 2, -2):
        result = _of_singular_values(A.movedim((rows, columns), (-2, -1)), ord)
    elif ord in (1, -1, INF, -INF):
        if abs(ord) == 1:
            rows, columns = columns, rows
        sums = vector_norm(A, 1, columns, keepdim=True)
        if ord > 0 and sums.shape[rows] == 0:  # sums are not negative: the largest of none of them is 0
            sums = vector_norm(A, 1, (rows, columns), keepdim=True)
        result = (sums.amax if ord > 0 else sums.amin)((rows, columns), keepdim=False)
    else:
        raise RuntimeError(f"{name}: Order {ord} not supported.")
    if keepdim:
        for d in sorted((rows, columns)):
            result = result.unsqueeze(d)
    return result


def _of_singular_values(A, ord):
    from .decomposition import svdvals

    s = svdvals(A)
    return s.sum(-1) if ord == "nuc" else s.amax(-1) if ord > 0 else s.amin(-1)


# ---- either


def linalg_norm(A, ord=None, dim=None, keepdim=False, *, out=None, dtype=None):
    """The norm of vectors or, for two axes ``dim`` or a matrix with an ``ord``, of matrices.

    Raises      RuntimeError where ``ord`` is given without ``dim`` for more than two axes
    """
    a_tensor("linalg.norm", A, "input")
    if ord is not None and dim is None and A.ndim not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.ndim}D."
        )
    two = A.ndim == 2 if dim is None else not isinstance(dim, int) and len(dim) == 2
    if ord is not None and (two or isinstance(ord, str)):
        return matrix_norm(A, ord, (-2, -1) if dim is None else dim, keepdim, dtype=dtype, out=out)
    return vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype, out=out)


@autocasts
def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    """The p-norm of all elements or over ``dim``; 'fro' is the 2-norm, 'nuc' the sum of singular values.

    Raises      RuntimeError for another name
    """
    if isinstance(p, str) and p != "fro":
        return matrix_norm(input, p, (-2, -1) if dim is None else dim, keepdim, dtype=dtype, out=out)
    return vector_norm(input, 2 if p is None or p == "fro" else p, dim, keepdim, dtype=dtype, out=out)


def frobenius_norm(input, dim, keepdim=False, *, out=None):
    """The 2-norm over ``dim``. Deprecated in favour of linalg.vector_norm."""
    return vector_norm(input, 2, dim, keepdim, out=out)


def nuclear_norm(input, dim=(-2, -1), keepdim=False, *, out=None):
    """The sum of singular values. Deprecated in favour of linalg.matrix_norm."""
    return matrix_norm(input, "nuc", dim, keepdim, out=out)


def norm_except_dim(v, pow=2, dim=0):
    """The ``pow``-norms over all dims but ``dim``, which keep their length 1; of all elements for dim = -1."""
    if dim == -1:
        return vector_norm(v, pow)
    others = tuple(d for d in range(v.ndim) if d != dim)
    return vector_norm(v, pow, others, keepdim=True) if others else v.abs()


@autocasts
def trace(input):
    """The sum of the diagonal of a matrix; of integers in int64.

    Raises      RuntimeError where ``input`` is no matrix
    """
    if input.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input.ndim}")
    return input.diagonal().sum()


LINALG = {"vector_norm": vector_norm, "matrix_norm": matrix_norm, "norm": linalg_norm}
