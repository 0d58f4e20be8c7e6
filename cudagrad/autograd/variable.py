"""``Variable``, by which programs of PyTorch before 0.4 made a tensor one that a gradient can be asked of."""

import warnings

from ..backend import empty
from ..core.tensor import Tensor, wrap
from ..dtypes import get_default_dtype


class _VariableMeta(type):
    """Each tensor is a Variable."""

    def __instancecheck__(cls, instance):
        return isinstance(instance, Tensor)


class Variable(metaclass=_VariableMeta):
    """A leaf Tensor over the memory of ``data``, which wants a gradient only where ``requires_grad`` says so.

    Raises      TypeError for what is no tensor; RuntimeError for a gradient of integers

    >>> Variable(cudagrad.ones(2), requires_grad=True)
    tensor([1., 1.], requires_grad=True)
    """

    def __new__(cls, data=None, requires_grad=False, volatile=False, _grad_fn=None, name=None):
        if data is None:
            data = wrap(empty((0,), get_default_dtype(), None))
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        if requires_grad and data.dtype.category < 2:
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        if volatile:
            warnings.warn(
                "volatile was removed and now has no effect. Use `with torch.no_grad():` instead.", stacklevel=2
            )
        leaf = data.detach().requires_grad_(bool(requires_grad))
        if name is not None:
            leaf._name = name
        return leaf
