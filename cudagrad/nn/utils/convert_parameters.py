"""All parameters as one vector, and back."""

from ...core.tensor import Tensor
from ...ops.joining import cat
from ..module import typename


def parameters_to_vector(parameters):
    """The elements of all parameters in one vector, differentiably."""
    parameters = list(parameters)
    _on_one_device(parameters)
    return cat([p.view(-1) for p in parameters])


def vector_to_parameters(vec, parameters):
    """Make consecutive slices of a vector the data of the parameters; they share its memory."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {typename(vec)}")
    parameters = list(parameters)
    _on_one_device(parameters)
    start = 0
    for p in parameters:
        p.data = vec[start : start + p.numel()].view_as(p).data
        start += p.numel()


def _on_one_device(parameters):
    if len({p.device for p in parameters}) > 1:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")
