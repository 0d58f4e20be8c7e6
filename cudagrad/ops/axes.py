"""The same elements in another order of dims: transposes as views; flips and rolls as copies."""

import warnings

from .. import errors
from ..core.op import TABLE, op
from ..core.shape import check_dim
from .checks import ndim_of
from .shape import reshaping
from .sizes import distinct, sizes_of

__all__ = (
    *("adjoint", "flip", "fliplr", "flipud", "moveaxis", "movedim", "permute", "roll", "rot90", "swapaxes"),
    *("swapdims", "t", "transpose"),
)

# ---- transposes


def _transpose(input, dim0, dim1):
    ndim = ndim_of(input, "transpose")
    return input, check_dim(dim0, ndim), check_dim(dim1, ndim)


@op(prepare=_transpose, x=lambda m, g, dim0, dim1: m.transpose(g, dim0=dim0, dim1=dim1), view=True)
def transpose(xp, x, *, dim0, dim1):
    """x with two dims exchanged, a view."""
    return x.swapaxes(dim0, dim1) if x.ndim else x[...]


def swapaxes(input, axis0, axis1):
    """``input.transpose(axis0, axis1)``."""
    return transpose(input, axis0, axis1)


def swapdims(input, dim0, dim1):
    """``input.transpose(dim0, dim1)``."""
    return transpose(input, dim0, dim1)


def _permute(input, *sizes, dims=None):
    ndim = ndim_of(input, "permute")
    order = () if ndim == 0 and dims is None and not sizes else sizes_of(sizes, dims, "permute", "dims")
    if len(order) != ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {len(order)}"
        )
    order = tuple([check_dim(d, ndim) for d in order])
    if len(set(order)) != ndim:
        raise RuntimeError(errors.text("permute(): duplicate dims are not allowed.", f"got dims {order}"))
    return input, order


def _back(dims):
    """The permutation that undoes ``dims``."""
    return tuple([dims.index(d) for d in range(len(dims))])


@op(prepare=_permute, x=lambda m, g, dims: m.permute(g, dims=_back(dims)), view=True)
def permute(xp, x, *, dims):
    """x with its dims in the order ``dims``, a view.

    Shapes      out.shape[i] = x.shape[dims[i]]
    Raises      RuntimeError where ``dims`` is no permutation of x's dims
    """
    return x.transpose(dims)


def movedim(input, source, destination):
    """``input`` with the dims ``source`` (an int or several) moved to the places ``destination``; the others keep
    their order.

    Raises      RuntimeError where one is named twice, or the counts differ
    """
    ndim = ndim_of(input, "permute")
    source, destination = (
        sizes_of((d,), None, "movedim", n) for d, n in ((source, "source"), (destination, "destination"))
    )
    if len(source) != len(destination):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(source)} dims) should contain the same number "
            f"of dims as destination ({list(destination)} dims)"
        )
    places = []
    for dims, name in ((source, "source"), (destination, "destination")):
        places.append([check_dim(d, ndim) for d in dims])
        if len(set(places[-1])) != len(dims):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(dims)})")
    to = dict(zip(places[1], places[0]))
    rest = iter([d for d in range(ndim) if d not in places[0]])
    return permute(input, tuple([to[d] if d in to else next(rest) for d in range(ndim)]))


def moveaxis(input, source, destination):
    """``input.movedim(source, destination)``."""
    return movedim(input, source, destination)


def _t(input):
    ndim = ndim_of(input, "t")
    if ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {ndim}D")
    return (input,)


@op(prepare=_t, x=lambda m, g: m.t(g), view=True)
def t(xp, x):
    """The transpose of a matrix, a view; x itself, as a view, where it has fewer dims.

    Raises      RuntimeError for more than two dims
    """
    return x.transpose()


def _reversed(input):
    """``input.T``: the dims in reverse order."""
    ndim = input.array.ndim
    if ndim == 0:
        _deprecated("Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases.")
    elif ndim != 2:
        _deprecated(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will "
            "throw an error in a future release. Consider `x.mT` to transpose batches of matrices or "
            "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor."
        )
    return permute(input, tuple(range(ndim - 1, -1, -1)))


def _deprecated(text):
    warnings.warn(text, UserWarning, stacklevel=3)


def _matrices(input, name):
    """Whether there are matrices to transpose; a 0-d tensor is let through with a warning."""
    ndim = input.array.ndim
    if ndim == 0:
        use = "Consider using x.conj()." if name in ("H", "mH") else "This function is the identity in these cases."
        warnings.warn(f"Tensor.{name} is deprecated on 0-D tensors. {use}", UserWarning, stacklevel=3)
    elif ndim == 1:
        first = f"tensor.{name} is only supported on matrices or batches of matrices. Got 1-D tensor."
        raise RuntimeError(errors.text(first, f"got {tuple(input.shape)}", "fix: unsqueeze(0) or unsqueeze(1) first"))
    return ndim > 1


def _mT(input):
    """``input.mT``: the last two dims exchanged."""
    return transpose(input, -2, -1) if _matrices(input, "mT") else input


def _conjugate(input):
    return TABLE["conj"].call(input) if input.array.dtype.kind == "c" else input


def _mH(input):
    """``input.mH``: the last two dims exchanged, complex elements conjugated."""
    return _conjugate(transpose(input, -2, -1) if _matrices(input, "mH") else input)


def _H(input):
    """``input.H``: the conjugate transpose of a matrix."""
    ndim = input.array.ndim
    if ndim not in (0, 2):
        more = " For batches of matrices, consider using tensor.mH" if ndim > 2 else ""
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {ndim}-D tensor.{more}")
    return _conjugate(transpose(input, 0, 1) if _matrices(input, "H") else input)


def adjoint(input):
    """``input.mH``: the last two dims exchanged, complex elements conjugated."""
    if input.array.ndim < 2:
        raise RuntimeError(
            f"tensor.adjoint() is only supported on matrices or batches of matrices. Got {input.array.ndim}-D tensor."
        )
    return _mH(input)


# ---- flips, rolls and turns: copies, for no tensor has a negative stride


def _flip(input, *sizes, dims=None):
    return input, distinct(sizes_of(sizes, dims, "flip", "dims"), ndim_of(input, "flip"))


@op(prepare=_flip, x=lambda m, g, dims: m.flip(g, dims=dims))
def flip(xp, x, *, dims):
    """A copy of x that runs backwards along ``dims``."""
    backwards = tuple([slice(None, None, -1) if d in dims else slice(None) for d in range(x.ndim)])
    return x[backwards].copy()


def fliplr(input):
    """``input`` with its columns in reverse order, a copy.

    Raises      RuntimeError for fewer than two dims
    """
    if input.array.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(input, (1,))


def flipud(input):
    """``input`` with its rows in reverse order, a copy.

    Raises      RuntimeError for a 0-d tensor
    """
    if input.array.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(input, (0,))


def _roll(input, shifts, dims=()):
    ndim = ndim_of(input, "roll")
    shifts, dims = sizes_of((shifts,), None, "roll", "shifts"), sizes_of((dims,), None, "roll", "dims")
    if not shifts:
        raise RuntimeError("`shifts` required")
    if len(shifts) != len(dims) and not (len(shifts) == 1 and not dims):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    if not ndim and dims:
        raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    return input, shifts, tuple([check_dim(d, ndim) for d in dims])


def _minus(shifts):
    return tuple([-s for s in shifts])


@op(prepare=_roll, x=lambda m, g, shifts, dims: m.roll(g, shifts=_minus(shifts), dims=dims))
def roll(xp, x, *, shifts, dims):
    """x moved round by ``shifts`` along ``dims``: what leaves at one end comes in at the other.

    Without ``dims`` over the elements row by row. A copy.
    """
    if not dims:
        return xp.roll(x, shifts[0])
    return xp.roll(x, shifts, dims)


def _rot90(input, k=1, dims=(0, 1)):
    ndim, dims = ndim_of(input, "rot90"), sizes_of((dims,), None, "rot90", "dims")
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {ndim}")
    if dims[0] == dims[1] or abs(dims[0] - dims[1]) == ndim:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    return input, k % 4, tuple([check_dim(d, ndim) for d in dims])


@op(prepare=_rot90, x=lambda m, g, turns, dims: m.rot90(g, turns=-turns, dims=dims))
def rot90(xp, x, *, turns, dims):
    """x turned ``turns`` times by 90 degrees in the plane of ``dims``, from the first towards the second; a copy."""
    return xp.rot90(x, turns, dims).copy()


METHODS = {n: globals()[n] for n in __all__}
METHODS |= {"T": property(_reversed), "mT": property(_mT), "H": property(_H), "mH": property(_mH)}
METHODS |= {n + "_": reshaping(globals()[n], n + "_") for n in ("transpose", "swapaxes", "swapdims", "t")}
