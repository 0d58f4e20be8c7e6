"""Modules that take the width of their input from the first call."""

import itertools

from ..core.modes import no_grad
from ..core.tensor import wrap
from . import batchnorm, conv, instancenorm
from .linear import Linear
from .parameter import UninitializedBuffer, UninitializedParameter, is_lazy

__all__ = (
    *("LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d", "LazyConv3d"),
    *("LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d", "LazyInstanceNorm1d"),
    *("LazyInstanceNorm2d", "LazyInstanceNorm3d", "LazyLinear"),
)


class LazyModuleMixin:
    """For a module whose parameters get their shape in ``initialize_parameters``, from the first input.

    After the first call the module is an ordinary one, of class ``cls_to_become``.

    Raises      RuntimeError where a parameter is still without shape after ``initialize_parameters``
    """

    cls_to_become = None

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        for name, tensor in self._own_state().items():
            destination[prefix + name] = tensor if keep_vars or is_lazy(tensor) else tensor.detach()

    def _lazy_load_hook(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        """Give a tensor without shape the one of the tensor that is about to be loaded into it."""
        for name, tensor in itertools.chain(self._parameters.items(), self._buffers.items()):
            loaded = state_dict.get(prefix + name)
            if loaded is not None and is_lazy(tensor) and not is_lazy(loaded):
                with no_grad():
                    tensor.materialize(loaded.shape)

    def initialize_parameters(self, *args, **kwargs):
        """Materialize the parameters for the arguments of the first call; to be overridden."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self):
        """Whether a parameter or buffer has no shape yet."""
        return any(map(is_lazy, itertools.chain(self._parameters.values(), self._buffers.values())))

    def _infer_parameters(self, module, args, kwargs=None):
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        for handle in ("_initialize_hook", "_load_hook"):
            getattr(module, handle).remove()
            delattr(module, handle)
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self):
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DataParallel`. Run a dummy forward pass to "
            "correctly initialize the modules"
        )


class LazyLinear(LazyModuleMixin, Linear):
    """A Linear that takes ``in_features`` from the last dimension of its first input."""

    cls_to_become = Linear

    def __init__(self, out_features, bias=True, device=None, dtype=None):
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self):
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    @no_grad()
    def initialize_parameters(self, input):
        if self.has_uninitialized_params():
            self.in_features = input.shape[-1]
            self.weight.materialize((self.out_features, self.in_features))
            if self.bias is not None:
                self.bias.materialize((self.out_features,))
            self.reset_parameters()
        self.in_features = self.weight.shape[-1]  # loaded from a state_dict


class _LazyConvXdMixin(LazyModuleMixin):
    """A convolution that takes ``in_channels`` from its first input."""

    def _make_lazy(self, out_channels, bias, device, dtype):
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self):
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    @no_grad()
    def initialize_parameters(self, input, *args, **kwargs):
        if self.has_uninitialized_params():
            self.in_channels = self._get_in_channels(input)
            if self.in_channels % self.groups:
                raise ValueError("in_channels must be divisible by groups")
            first, second = self.out_channels, self.in_channels
            if self.transposed:
                first, second = second, first
            self.weight.materialize((first, second // self.groups, *self.kernel_size))
            if self.bias is not None:
                self.bias.materialize((self.out_channels,))
            self.reset_parameters()
        elif self.in_channels == 0:  # loaded from a state_dict
            self.in_channels = self.weight.shape[0] if self.transposed else self.weight.shape[1] * self.groups

    def _get_in_channels(self, input):
        unbatched = len(self.kernel_size) + 1
        if input.dim() not in (unbatched, unbatched + 1):
            raise RuntimeError(
                f"Expected {unbatched}D (unbatched) or {unbatched + 1}D (batched) input to {type(self).__name__}, but "
                f"got input of size: {input.shape}"
            )
        return input.shape[-unbatched]


def _lazy_conv(base):
    """The lazy form of a convolution class."""

    class Lazy(_LazyConvXdMixin, base):
        cls_to_become = base

        def __init__(
            self,
            out_channels,
            kernel_size,
            stride=1,
            padding=0,
            dilation=1,
            groups=1,
            bias=True,
            padding_mode="zeros",
            device=None,
            dtype=None,
        ):
            super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode)
            self._make_lazy(out_channels, bias, device, dtype)

    return _named(Lazy, base)


def _lazy_conv_transpose(base):
    """The lazy form of a transposed convolution class."""

    class Lazy(_LazyConvXdMixin, base):
        cls_to_become = base

        def __init__(
            self,
            out_channels,
            kernel_size,
            stride=1,
            padding=0,
            output_padding=0,
            groups=1,
            bias=True,
            dilation=1,
            padding_mode="zeros",
            device=None,
            dtype=None,
        ):
            super().__init__(0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode)
            self._make_lazy(out_channels, bias, device, dtype)

    return _named(Lazy, base)


class _LazyNormBase(LazyModuleMixin):
    """A normalisation that takes ``num_features`` from dimension ``_channel_dim`` of its first input."""

    _channel_dim = 1

    def __init__(
        self, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None, *, bias=True
    ):
        super().__init__(0, eps, momentum, False, False)
        self.affine, self.track_running_stats = affine, track_running_stats
        where = {"device": device, "dtype": dtype}
        if affine:
            self.weight = UninitializedParameter(**where)
            if bias:
                self.bias = UninitializedParameter(**where)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**where)
            self.running_var = UninitializedBuffer(**where)
            self.num_batches_tracked = _count(device)

    def reset_parameters(self):
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    @no_grad()
    def initialize_parameters(self, input):
        if self.has_uninitialized_params():
            self.num_features = input.shape[self._channel_dim]
            for tensor in (self.weight, self.bias, self.running_mean, self.running_var):
                if is_lazy(tensor):
                    tensor.materialize((self.num_features,))
            self.reset_parameters()
        elif self.num_features == 0:  # loaded from a state_dict
            self.num_features = next(t for t in (self.weight, self.running_mean) if t is not None).shape[0]


def _count(device):
    from ..backend import empty
    from ..dtypes import int64

    return wrap(empty((), int64, device)).zero_()


def _lazy_norm(base, channel_dim=1):
    """The lazy form of a normalisation class."""

    class Lazy(_LazyNormBase, base):
        cls_to_become = base
        _channel_dim = channel_dim

    return _named(Lazy, base)


def _named(lazy, base):
    lazy.__name__ = lazy.__qualname__ = "Lazy" + base.__name__
    lazy.__doc__ = f"A {base.__name__} that takes the number of its input channels from its first input."
    return lazy


LazyConv1d, LazyConv2d, LazyConv3d = map(_lazy_conv, (conv.Conv1d, conv.Conv2d, conv.Conv3d))
LazyConvTranspose1d = _lazy_conv_transpose(conv.ConvTranspose1d)
LazyConvTranspose2d = _lazy_conv_transpose(conv.ConvTranspose2d)
LazyConvTranspose3d = _lazy_conv_transpose(conv.ConvTranspose3d)
LazyBatchNorm1d = _lazy_norm(batchnorm.BatchNorm1d)
LazyBatchNorm2d = _lazy_norm(batchnorm.BatchNorm2d)
LazyBatchNorm3d = _lazy_norm(batchnorm.BatchNorm3d)
# Counted from the end: an InstanceNorm's input may be without a batch dimension.
LazyInstanceNorm1d = _lazy_norm(instancenorm.InstanceNorm1d, -2)
LazyInstanceNorm2d = _lazy_norm(instancenorm.InstanceNorm2d, -3)
LazyInstanceNorm3d = _lazy_norm(instancenorm.InstanceNorm3d, -4)
