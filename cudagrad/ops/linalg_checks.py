"""The checks of linear algebra in PyTorch's words, and what a failed factorisation says."""

import numpy as np

from ..backend import to_device
from ..backend.device import device
from ..core.tensor import Tensor


class _LinAlgError(RuntimeError):
    """A matrix that cannot be factorised or inverted; ``linalg.LinAlgError``."""


_LinAlgError.__module__ = "torch._C"


# Functions whose first argument, A in the messages about its shape, is called input in those about its class.
_INPUT = {"linalg.cholesky", "linalg.cholesky_ex", "cholesky", "cholesky_inverse", "linalg.eigh", "linalg.eigvalsh"}
_INPUT |= {"linalg.matrix_exp", "linalg.solve_triangular"}


def a_tensor(name, A, argument="A"):
    if not isinstance(A, Tensor):
        argument = "input" if name in _INPUT else argument
        what = f"{name.replace('.', '_')}(): argument '{argument}' (position 1) must be Tensor"
        raise TypeError(f"{what}, not {type(A).__name__}")


# Function -> the one whose name stands in what its checks say: PyTorch computes it by that.
_SPEAKER = {f"linalg.{name}_ex": f"linalg.{name}" for name in ("inv", "cholesky", "solve")}
_SPEAKER |= {"linalg.svdvals": "linalg.svd", "linalg.eigvalsh": "linalg.eigh"}
# Function -> PyTorch's kernel on the CPU, where it is what turns down half precision.
_KERNEL = {"linalg.det": "lu_cpu", "linalg.solve": "lu_cpu", "linalg.cholesky": "cholesky_cpu"}
_KERNEL |= {"linalg.svd": "linalg_svd_cpu", "linalg.qr": "geqrf_cpu", "torch.linalg.lu_solve": "linalg.lu_solve_cpu"}
# The same for functions that do not look at the dtype before, so that the kernel turns down integers too.
_ALONE = {"linalg.lu": "lu_cpu", "linalg.lu_factor_ex": "lu_cpu", "linalg.eigh": "linalg_eigh_cpu"}
_ALONE |= {"linalg.eig": "linalg_eig_out_cpu", "linalg.eigvals": "linalg_eig_out_cpu", "cholesky": "cholesky_cpu"}
_ALONE |= {"cholesky_inverse": "cholesky_inverse_out_cpu", "cholesky_solve": "cholesky_solve_cpu"}
_ALONE |= {"linalg.solve_triangular": "triangular_solve_cpu", "torch.linalg.householder_product": "orgqr_cpu"}


def matrices(name, A, argument="A"):
    """A batch of matrices, floating but not of half precision."""
    _axes(name, A, argument)
    floating(name, A)


def _axes(name, A, argument):
    a_tensor(name, A, argument)
    if A.ndim < 2:
        spoken = _SPEAKER.get(name, name)
        raise RuntimeError(f"{spoken}: The input tensor {argument} must have at least 2 dimensions.")


def floating(name, A):
    name = _SPEAKER.get(name, name)
    if A.dtype.category < 2 and name not in _ALONE:
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {A.dtype.legacy}")
    if A.dtype.category < 2 or A.dtype.itemsize == 2:
        kernel = _ALONE.get(name) or _KERNEL.get(name)
        if kernel:
            raise NotImplementedError(f"\"{kernel}\" not implemented for '{A.dtype.legacy}'")
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {A.dtype.legacy}")


def square_matrices(name, A, argument="A"):
    """A batch of square matrices, floating but not of half precision."""
    _axes(name, A, argument)
    equal_sides(_SPEAKER.get(name, name), A, argument)
    floating(name, A)


def equal_sides(name, A, argument="A"):
    rows, columns = A.shape[-2:]
    if rows != columns:
        start = f"{name}: {argument}" if name else argument
        raise RuntimeError(f"{start} must be batches of square matrices, but they are {rows} by {columns} matrices")


def one_dtype(name, A, B, names="A and B"):
    if A.dtype is not B.dtype:
        first, second = names.split(" and ")
        raise RuntimeError(
            f"{name}: Expected {names} to have the same dtype, but found {first} of type {A.dtype.legacy} and {second} "
            f"of type {B.dtype.legacy} instead"
        )


def fit(name, A, B, left):
    """Whether A X = B (or X A = B) makes sense of the sizes."""
    if A.shape[-1] != B.shape[-2 if left else -1]:
        rows, columns = B.shape[-2:]
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
            f"({A.shape[-2]}x{A.shape[-1]} and {rows}x{columns})"
        )


def element(array, i):
    """``(Batch element i): `` in front of what failed, where there is a batch."""
    return f"(Batch element {i}): " if array.ndim > 2 else ""


def on_host(array):
    """The array in the host's memory, for what is looked at only when something has failed."""
    return to_device(array, device.CPU)


def each(array):
    """The matrices of a batch, one by one, in the host's memory."""
    return enumerate(on_host(array).reshape(-1, *array.shape[-2:]))


def first_minor(name, array):
    """The _LinAlgError that names the leading minor which is not positive-definite."""
    for i, a in each(array):
        k = failing_minor(a)
        if k:
            return _LinAlgError(
                f"{name}: {element(array, i)}The factorization could not be completed because the input is not "
                f"positive-definite (the leading minor of order {k} is not positive-definite)."
            )
    return None


def failing_minor(a):
    """The order of the first leading minor of ``a`` that has no Cholesky factor; 0 where all have."""
    low, high = 0, a.shape[0]
    if _has_factor(a):
        return 0
    while high - low > 1:  # minors up to ``low`` have one, that of order ``high`` has not
        middle = (low + high) // 2
        low, high = (middle, high) if _has_factor(a[:middle, :middle]) else (low, middle)
    return high


def _has_factor(a):
    try:
        np.linalg.cholesky(a)
        return True
    except np.linalg.LinAlgError:
        return False


def zero_pivot(array):
    """(index in the batch, row counted from 1) of the first zero pivot in the LU of a batch; None where none is."""
    from .lu import eliminate

    for i, a in each(array):
        _, _, info = eliminate(np, a)
        if info:
            return i, int(info)
    return None
