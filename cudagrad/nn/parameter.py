"""Parameters and buffers: tensors that a module registers when they are assigned to it."""

import contextlib

from ..backend import empty
from ..core.tensor import Tensor, wrap
from ..dtypes import get_default_dtype

__all__ = ("Parameter", "Buffer", "UninitializedParameter", "UninitializedBuffer")

_TensorMeta = type(Tensor)


class _ParameterMeta(_TensorMeta):
    """``isinstance(t, Parameter)`` also for tensors of other classes that were made by ``Parameter(t)``."""

    def __instancecheck__(cls, instance):
        if super().__instancecheck__(instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)


class _BufferMeta(_TensorMeta):
    def __instancecheck__(cls, instance):
        if cls is Buffer:
            return isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)
        return super().__instancecheck__(instance)


def _nothing(device=None, dtype=None):
    return wrap(empty((0,), dtype or get_default_dtype(), device))


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that is a parameter of the module it is assigned to; it wants a gradient unless told otherwise.

    It shares the memory of ``data``. ``requires_grad`` is honoured under ``no_grad``, too.

    >>> Parameter(cudagrad.zeros(2))
    Parameter containing:
    tensor([0., 0.], requires_grad=True)
    """

    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            data = _nothing()
        if requires_grad and data.dtype.category < 2:
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        if type(data) is Tensor or type(data) is Parameter:
            return Tensor._make_subclass(cls, data, requires_grad)
        # A tensor of the user's own class keeps the class; a mark makes it a parameter.
        t = Tensor._make_subclass(type(data), data.detach(), requires_grad)
        t._is_param = True
        return t

    def __deepcopy__(self, memo):
        """A parameter over copied memory; neither the gradient nor attributes of the user are copied."""
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.detach().clone(), self.requires_grad)
        return memo[id(self)]

    def __repr__(self):
        return "Parameter containing:\n" + super().__repr__()

    __str__ = __repr__


class Buffer(Tensor, metaclass=_BufferMeta):
    """``Buffer(data, persistent=True)``: a tensor that becomes a buffer of the module it is assigned to."""

    def __new__(cls, data=None, *, persistent=True):
        if data is None:
            data = _nothing()
        t = data.detach().requires_grad_(data.requires_grad)
        t.persistent = persistent
        t._is_buffer = True
        return t


# ---- tensors whose shape is not known yet

_READY = "Call `forward` to initialize the parameters before"


class UninitializedTensorMixin:
    """A parameter or buffer without shape and memory, until ``materialize`` gives it both."""

    __slots__ = ()
    cls_to_become = None

    @property
    def array(self):
        raise ValueError(
            "Attempted to use an uninitialized parameter. This error happens when you are using a `LazyModule` or "
            f"explicitly manipulating `torch.nn.parameter.{type(self).__name__}` objects. When using LazyModules Call "
            "`forward` with a dummy batch to initialize the parameters before calling torch functions"
        )

    @property
    def shape(self):
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. "
            f"{_READY} accessing their attributes."
        )

    @contextlib.contextmanager
    def _ordinary(self):
        """Within, this is a tensor of the class it is to become, over no elements."""
        lazy = type(self)
        self.__class__ = self.cls_to_become
        try:
            yield self
        finally:
            self.__class__ = lazy

    def materialize(self, shape, device=None, dtype=None):
        """Become an ordinary parameter or tensor of this shape; device and dtype stay as they are by default."""
        device, dtype = device or self.device, dtype or self.dtype
        self.__class__ = self.cls_to_become
        self.data = wrap(empty(tuple(shape), dtype, device))

    def share_memory_(self):
        raise RuntimeError(
            f"Can't share memory on an uninitialized parameter or buffer. {_READY} calling `module.share_memory()`."
        )

    def __repr__(self):
        return f"<{type(self).__name__}>"

    __str__ = __repr__

    def __reduce_ex__(self, protocol):
        return type(self), (self.requires_grad,)

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.device, self.dtype)
        return memo[id(self)]


def _allowed_method(name):
    def method(self, *args, **kwargs):
        with self._ordinary():
            return getattr(self, name)(*args, **kwargs)

    method.__name__ = method.__qualname__ = name
    return method


def _allowed_property(name):
    def get(self):
        with self._ordinary():
            return getattr(self, name)

    def put(self, value):
        with self._ordinary():
            setattr(self, name, value)

    return property(get, put)


_METHODS = "half bfloat16 float double char short int long cuda cpu to is_complex is_floating_point get_device"
for _name in (*_METHODS.split(), "requires_grad_", "detach"):
    setattr(UninitializedTensorMixin, _name, _allowed_method(_name))
for _name in ("data", "dtype", "device", "grad", "requires_grad", "is_cuda"):
    setattr(UninitializedTensorMixin, _name, _allowed_property(_name))


def is_lazy(param):
    """Whether ``param`` is an UninitializedParameter or UninitializedBuffer."""
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is not known yet; a lazy module gives it one at its first call."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad=True, device=None, dtype=None):
        t = Tensor._make_subclass(Parameter, _nothing(device, dtype), requires_grad)
        t.__class__ = cls
        return t


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape is not known yet."""

    cls_to_become = Tensor

    def __new__(cls, requires_grad=False, device=None, dtype=None, persistent=True):
        t = _nothing(device, dtype).requires_grad_(requires_grad)
        t.__class__ = cls
        t.persistent = persistent
        t._is_buffer = True
        return t
