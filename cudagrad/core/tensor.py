"""The tensor: an array, the node that made it, and its place among the views of its memory."""

import copy
import functools
import warnings
import weakref

from .. import dtypes
from ..backend import copy_of, data_ptr, device_of, memory_of
from . import hooks, node
from .modes import MODE, SPACE
from .op import TABLE
from .shape import Size, check_dim, strided
from .views import INFERENCE, base_of, counter_of


class _TensorMeta(type):
    """Makes ``Tensor(2, 3)`` PyTorch's legacy constructor, without slowing tensors made inside."""

    def __call__(cls, *args, **kwargs):
        if cls is Tensor:
            return SPACE["legacy_tensor"](*args, **kwargs)
        return type.__call__(cls, *args, **kwargs)


class Tensor(metaclass=_TensorMeta):
    """An n-dimensional array on a device that may remember how it was made.

    ``array`` is the NumPy or CuPy array; ``node`` its node in the graph, None where no gradient is wanted; ``version``
    the counter of writes to its memory; ``link`` says of which tensor, by which op, it is a view.
    """

    __slots__ = ("array", "node", "version", "link", "__dict__", "__weakref__")
    __array_priority__ = 1000

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        SPACE["TENSORS"].add(cls)

    @staticmethod
    def _make_subclass(cls, data, requires_grad=False):
        """A tensor of class ``cls`` that shares the array of ``data`` and none of its history."""
        t = object.__new__(cls)
        t.array, t.node, t.version, t.link = data.array, None, None, None
        if requires_grad:
            t.requires_grad = True
        return t

    def as_subclass(self, cls):
        """This tensor as an instance of a subclass, with its history."""
        t = object.__new__(cls)
        t.array, t.node, t.version, t.link = self.array, self.node, self.version, self.link
        return t

    # ---- what it is

    @property
    def shape(self):
        return Size(self.array.shape)

    @property
    def dtype(self):
        return dtypes.OF_NUMPY[self.array.dtype]

    @property
    def device(self):
        return device_of(self.array)

    @property
    def ndim(self):
        return self.array.ndim

    @property
    def itemsize(self):
        return self.array.itemsize

    @property
    def nbytes(self):
        return self.array.size * self.array.itemsize

    @property
    def layout(self):
        return strided

    @property
    def is_cuda(self):
        return self.device.type == "cuda"

    is_cpu = property(lambda self: self.device.type == "cpu")
    is_sparse = is_quantized = is_mkldnn = is_mps = is_meta = is_nested = property(lambda self: False)
    names = property(lambda self: (None,) * self.array.ndim)
    name = property(lambda self: self.__dict__.get("_name"))

    def size(self, dim=None):
        """The shape, or the length of one dimension."""
        if dim is None:
            return Size(self.array.shape)
        return self.array.shape[check_dim(dim, self.array.ndim)]

    def dim(self):
        return self.array.ndim

    ndimension = dim

    def numel(self):
        return self.array.size

    nelement = numel

    def element_size(self):
        return self.array.itemsize

    def stride(self, dim=None):
        """The step of each dimension, or of one, in elements."""
        strides = tuple(s // self.array.itemsize for s in self.array.strides)
        return strides if dim is None else strides[check_dim(dim, self.array.ndim)]

    def storage_offset(self):
        """The place of the first element in the memory that this tensor and its views share, in elements."""
        return (data_ptr(self.array) - data_ptr(memory_of(self.array))) // self.array.itemsize

    def data_ptr(self):
        """The address of the first element."""
        return data_ptr(self.array)

    def is_contiguous(self, memory_format=None):
        """Whether the elements lie in memory in row-major order."""
        return self.array.flags.c_contiguous

    def is_floating_point(self):
        return self.dtype.is_floating_point

    def is_complex(self):
        return self.array.dtype.kind == "c"

    def is_signed(self):
        return self.dtype.is_signed

    def is_inference(self):
        return self.version is INFERENCE

    def get_device(self):
        """The index of the CUDA device; -1 on the CPU."""
        return -1 if self.device.type != "cuda" else self.device.index or 0

    # ---- its place in the graph

    @property
    def grad_fn(self):
        """The node that made this tensor; None for a leaf."""
        if self.node is None or self.node.fn is None:
            return None
        return node.visible(self.node)[0]

    @property
    def is_leaf(self):
        return self.node is None or self.node.fn is None

    @property
    def output_nr(self):
        return 0 if self.node is None or self.node.fn is None else node.visible(self.node)[1]

    @property
    def requires_grad(self):
        return self.node is not None

    @requires_grad.setter
    def requires_grad(self, wanted):
        self._require(wanted, "floating point and complex")

    def _require(self, wanted, kinds):
        if not self.is_leaf:
            if not wanted:
                raise RuntimeError(
                    "you can only change requires_grad flags of leaf variables. If you want to use a computed variable "
                    "in a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
                )
            return
        if not wanted:
            if self.node is not None:
                self.__dict__["_leaf"] = self.node  # graphs lead to it, and it has the hooks: kept for the next time
                self.node = None
        elif self.node is None:
            if self.dtype.category < 2:
                raise RuntimeError(f"only Tensors of {kinds} dtype can require gradients")
            if self.version is INFERENCE and not MODE.inference:
                raise RuntimeError(
                    "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."
                )
            self.node = self.__dict__.pop("_leaf", None) or node.leaf(weakref.ref(self))
            if "_grad" in self.__dict__:
                self.node.grad = self.__dict__.pop("_grad")
            if self.array.dtype.kind == "c":
                SPACE["RARE"] = True

    def requires_grad_(self, requires_grad=True):
        """Ask for a gradient (or for none), in place; returns this tensor."""
        self._require(requires_grad, "floating point")
        return self

    @property
    def grad(self):
        """The gradient that backward added up here, a Tensor, or None."""
        k = self.node or self.__dict__.get("_leaf")
        if k is not None and k.fn is None:
            return k.grad
        if self.node is not None and not self.retains_grad and "_grad" not in self.__dict__:
            warnings.warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad "
                "attribute won't "
                "be populated during autograd.backward(). If you indeed want the .grad field to be populated for a "
                "non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by "
                "mistake, make sure you access the leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for "
                "more informations.",
                UserWarning,
                stacklevel=2,
            )
        return self.__dict__.get("_grad")

    @grad.setter
    def grad(self, value):
        if value is not None:
            _check_grad(self, value)
        k = self.node or self.__dict__.get("_leaf")
        if k is not None and k.fn is None:
            k.grad = value
        elif value is None:
            self.__dict__.pop("_grad", None)
        else:
            self.__dict__["_grad"] = value

    @grad.deleter
    def grad(self):
        self.grad = None

    @property
    def retains_grad(self):
        k = self.node
        return k is not None and k.fn is not None and k.hooks is not None and k.hooks.retain is not None

    def retain_grad(self):
        """Keep the gradient of this non-leaf tensor in ``.grad``; nothing happens for a leaf."""
        if self.node is None:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        if self.node.fn is None or self.retains_grad:
            return
        me = weakref.ref(self)

        def keep(g):
            t = me()
            if t is not None:
                before = t.__dict__.get("_grad")
                t.__dict__["_grad"] = g if before is None else before + g

        self._hooks().retain = keep

    def register_hook(self, hook):
        """Call ``hook(grad)`` whenever a gradient of this tensor is made; what it returns takes its place."""
        if self.node is None:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        return self._hooks().tensor.add(hook)

    def _hooks(self):
        attached = hooks.of_node(self.node)
        attached.dtype = self.array.dtype
        return attached

    def register_post_accumulate_grad_hook(self, hook):
        """Call ``hook(tensor)`` after a gradient was added into ``.grad`` of this leaf."""
        if self.node is None:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if self.node.fn is not None:
            raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        return hooks.of_node(self.node).accumulated.add(hook)

    @property
    def _version(self):
        if self.version is INFERENCE:
            raise RuntimeError("Inference tensors do not track version counter.")
        return 0 if self.version is None else self.version[1]

    @property
    def _base(self):
        return None if self.link is None else base_of(self)[0]

    def _is_view(self):
        return self.link is not None

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        """Add the gradients of this tensor into ``.grad`` of the leaves it was made from.

        Raises      RuntimeError where it is no scalar and ``gradient`` is missing, or where there is no graph
        """
        from .backward import backward

        backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    def detach(self):
        """This tensor's values without its history, over the same memory and version counter."""
        t = wrap(self.array)
        t.version = counter_of(self)
        return t

    def detach_(self):
        """Forget how this tensor was made, in place."""
        if self.link is not None:
            raise RuntimeError(
                "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for "
                "training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence "
                "detach_() cannot be called on these gradients. To fix this error, please refer to the "
                "Optimizer.zero_grad() function in torch/optim/optimizer.py as the solution."
            )
        if self.is_leaf:
            self.requires_grad = False
        self.node = None
        return self

    @property
    def data(self):
        """The same memory without history and with a version counter of its own."""
        return wrap(self.array)

    @data.setter
    def data(self, value):
        if not isinstance(value, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        if self.node is not None and value.dtype.category < 2:
            raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
        self.array = value.array

    # ---- copies

    def __deepcopy__(self, memo):
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
                "moment.  If you were attempting to deepcopy a module, this may be because of a "
                "torch.nn.utils.weight_norm usage, "
                "see https://github.com/pytorch/pytorch/pull/103001"
            )
        if id(self) in memo:
            return memo[id(self)]
        t = object.__new__(type(self))
        t.array, t.node, t.version, t.link = _copied(self.array, memo), None, None, None
        memo[id(self)] = t
        grad = self.grad
        t.__dict__.update({k: copy.deepcopy(v, memo) for k, v in self.__dict__.items() if k not in _OF_GRAPH})
        t.requires_grad = self.requires_grad
        if grad is not None:
            t.grad = copy.deepcopy(grad.detach() if grad.node is not None else grad, memo)
        return t

    def __reduce_ex__(self, protocol):
        state = {k: v for k, v in self.__dict__.items() if k not in _OF_GRAPH}
        return _rebuild, (type(self), self.array, self.requires_grad, state)

    __hash__ = object.__hash__


def _copied(array, memo):
    """A copy of ``array``; arrays over one memory are copied to arrays over one memory, within one deep copy."""
    memory = memory_of(array)
    if memory.dtype != array.dtype or memory.__class__ is not array.__class__:
        return copy_of(array)
    key = "memory", id(memory)
    if key not in memo:
        memo[key] = memory, copy_of(memory)
    copied = memo[key][1]
    if memory is array or copied.strides != memory.strides:
        return copied if memory is array else copy_of(array)
    size = array.itemsize
    place = {"shape": array.shape, "strides": tuple(s // size for s in array.strides), "layout": None}
    offset = (data_ptr(array) - data_ptr(memory)) // size
    return canonical(TABLE["as_strided"].impl[array.__class__](copied, offset=offset, **place))


_OF_GRAPH = {"_grad", "_leaf"}  # attributes that no copy takes along


def _rebuild(cls, array, requires_grad, state):
    t = object.__new__(cls)
    t.array, t.node, t.version, t.link = canonical(array), None, None, None
    t.__dict__.update(state)
    t.requires_grad = requires_grad
    return t


def _check_grad(x, value):
    if not isinstance(value, Tensor):
        raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}")
    if value is x:
        raise RuntimeError("can't assign Variable as its own grad")
    if value.device != x.device:
        raise RuntimeError(
            f"attempting to assign a gradient with device type '{value.device}' to a tensor with device type "
            f"'{x.device}'. Please ensure that the gradient and the tensor are on the same device"
        )
    if value.dtype is not x.dtype:
        given = value.dtype.cpp
        raise RuntimeError(
            f"attempting to assign a gradient with dtype '{given}' to a tensor with grad_dtype '{x.dtype.legacy}'. The "
            "gradient must match the tensor's grad_dtype (defaults to the tensor's dtype)."
        )
    if value.array.shape != x.array.shape:
        raise RuntimeError(
            f"attempting to assign a gradient of size '{list(value.shape)}' to a tensor of size "
            f"'{list(x.shape)}'. Please "
            "ensure that the gradient and the tensor are the same size"
        )


def wrap(array):
    """A tensor without history over ``array``, whose class decides the device."""
    t = object.__new__(Tensor)
    t.array = array
    t.node = t.version = t.link = None
    if MODE.inference:
        t.version = INFERENCE
    return t


def canonical(array):
    """``array`` with the one dtype object that stands for its dtype, so that dtypes can be compared by identity."""
    d = dtypes.of_array(array)
    return array if array.dtype is d.numpy else array.view(d.numpy)


SPACE.update(
    Tensor=Tensor, TENSORS=set(), blank=functools.partial(Tensor.__new__, Tensor), wrap=wrap, device_of=device_of
)
