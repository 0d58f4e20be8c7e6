"""A module as a tree: walking it, finding its parts by name, and changing the device or dtype of all of them."""

import warnings

from ..backend.device import device as Device
from ..core.backward import zero_grad
from ..core.modes import no_grad
from ..core.tensor import Tensor
from ..dtypes import bfloat16, double, half
from ..dtypes import dtype as Dtype
from ..dtypes import float as float32
from .parameter import Parameter


class Tree:
    """The part of Module that walks and converts."""

    # ---- walking

    def _named_members(self, members_of, prefix="", recurse=True, remove_duplicate=True):
        """``(full name, member)`` of every module in turn; a tied member once, under its first name."""
        seen = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for module_prefix, module in modules:
            for name, member in members_of(module):
                if member is None or member in seen:
                    continue
                if remove_duplicate:
                    seen.add(member)
                yield module_prefix + ("." if module_prefix else "") + name, member

    def parameters(self, recurse=True):
        """An iterator over the parameters, tied ones once; of this module alone where not ``recurse``.

        Differs     The first call warns of parameters and modules in plain lists or tuples, which are not registered.
        """
        if "_lists_seen" not in self.__dict__:
            self.__dict__["_lists_seen"] = True
            _warn_of_lists(self)
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        """An iterator over ``(full name, parameter)``."""
        yield from self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True):
        """An iterator over the buffers."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        """An iterator over ``(full name, buffer)``."""
        yield from self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def children(self):
        """An iterator over the modules directly below."""
        for _, module in self.named_children():
            yield module

    def named_children(self):
        """An iterator over ``(name, module)`` directly below."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate=True):
        """An iterator over this module and all below it."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        """An iterator over ``(full name, module)``, this one first, under the name ``prefix``."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, prefix + ("." if prefix else "") + name, remove_duplicate)

    # ---- finding

    def get_submodule(self, target):
        """The module with the full name ``target``, this one for ``""``; AttributeError where there is none."""
        module = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Tree):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target, module, strict=False):
        """Put ``module`` in the place of the full name ``target``; ``strict``: only where there is a module already."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Tree):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Tree):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target):
        """The parameter with the full name ``target``; AttributeError where there is none."""
        found = self._find(target)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{target.rpartition('.')[2]}` is not an nn.Parameter")
        return found

    def get_buffer(self, target):
        """The buffer with the full name ``target``; AttributeError where there is none."""
        path, _, name = target.rpartition(".")
        found = self._find(target)
        if name not in self.get_submodule(path)._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return found

    def _find(self, target):
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        return getattr(module, name)

    # ---- changing all

    def apply(self, fn):
        """Call ``fn`` on every module below and then on this one; returns this module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode=True):
        """Training mode (or evaluation mode) for this module and all below; returns this module."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self):
        """Evaluation mode for this module and all below; returns this module."""
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        """Whether the parameters want gradients; returns this module."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        """Drop the gradients of all parameters, or set them to zero."""
        if getattr(self, "_is_replica", False):
            warnings.warn(
                "Calling .zero_grad() from a module created with nn.DataParallel() has no effect. The parameters are "
                "copied (in a differentiable manner) from the original module. This means they are not leaf nodes in "
                "autograd and so don't accumulate gradients. If you need gradients in your forward method, consider "
                "using autograd.grad instead.",
                stacklevel=2,
            )
        zero_grad(self.parameters(), set_to_none)

    def _apply(self, fn, recurse=True):
        """Replace the data of every parameter, its gradient and every buffer by ``fn`` of it; parameters stay the same
        objects, so that an optimizer made before goes on working."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for parameter in self._parameters.values():
            if parameter is not None:
                _convert(parameter, fn)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def cuda(self, device=None):
        """All parameters and buffers on a CUDA device; returns this module."""
        return self._apply(lambda t: t.cuda(device))

    def cpu(self):
        """All parameters and buffers on the CPU; returns this module."""
        return self._apply(lambda t: t.cpu())

    def type(self, dst_type):
        """All parameters and buffers in the dtype ``dst_type``; returns this module."""
        return self._apply(lambda t: t.type(dst_type))

    def _floating_to(self, dtype):
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def float(self):
        """All floating parameters and buffers in float32; returns this module."""
        return self._floating_to(float32)

    def double(self):
        """All floating parameters and buffers in float64; returns this module."""
        return self._floating_to(double)

    def half(self):
        """All floating parameters and buffers in float16; returns this module."""
        return self._floating_to(half)

    def bfloat16(self):
        """All floating parameters and buffers in bfloat16; returns this module."""
        return self._floating_to(bfloat16)

    def to_empty(self, *, device, recurse=True):
        """All parameters and buffers as uninitialised memory on ``device``; returns this module."""
        from ..ops.creation import empty_like

        return self._apply(lambda t: empty_like(t, device=device), recurse=recurse)

    def to(self, *args, **kwargs):
        """``to(device)``, ``to(dtype)``, ``to(device, dtype)``, ``to(tensor)``; returns this module.

        Only floating and complex parameters and buffers change dtype; all change device.

        Raises      TypeError for a dtype that is neither floating nor complex
        """
        device, dtype, non_blocking, memory_format = parse_to(*args, **kwargs)
        if dtype is not None:
            if not (dtype.is_floating_point or dtype.is_complex):
                raise TypeError(
                    f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
                )
            if dtype.is_complex:
                warnings.warn(
                    "Complex modules are a new feature under active development whose design may change, and some "
                    "modules might not work as expected when using complex tensors as parameters or buffers. Please "
                    "file an issue at https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml if a "
                    "complex module does not work as expected.",
                    stacklevel=2,
                )

        def convert(t):
            options = {} if memory_format is None or t.dim() not in (4, 5) else {"memory_format": memory_format}
            own = dtype if t.is_floating_point() or t.is_complex() else None
            try:
                return t.to(device or t.device, own or t.dtype, non_blocking, **options)
            except NotImplementedError as error:
                if "holds no data" not in str(error):
                    raise
                raise NotImplementedError(
                    f"{error} Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() when moving module "
                    "from meta to a different device."
                ) from None

        return self._apply(convert)

    def share_memory(self):
        """All parameters and buffers in memory that processes share; returns this module."""
        return self._apply(lambda t: t.share_memory_())


def parse_to(
    *args, device=None, dtype=None, tensor=None, other=None, non_blocking=False, copy=False, memory_format=None
):
    """``(device, dtype, non_blocking, memory_format)`` of the arguments that ``to`` takes in any of its forms."""
    rest = list(args)
    first = rest[0] if rest else tensor if tensor is not None else other
    if isinstance(first, Tensor):
        device, dtype, rest = first.device, first.dtype, rest[1:]
    elif isinstance(first, Dtype):
        dtype, rest = first, rest[1:]
    elif rest:
        if first is not None and not isinstance(first, (str, int, Device)):
            raise TypeError(
                f"to() received an invalid combination of arguments - got ({type(first).__name__}), but expected one "
                "of:\n * (torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, bool copy = "
                "False)\n"
                " * (torch.dtype dtype, bool non_blocking = False, bool copy = False)\n"
                " * (Tensor tensor, bool non_blocking = False, bool copy = False)"
            )
        device, rest = first, rest[1:]
        if rest and (rest[0] is None or isinstance(rest[0], Dtype)):
            dtype, rest = rest[0], rest[1:]
    if rest:
        non_blocking = rest[0]
    return None if device is None else Device(device), dtype, non_blocking, memory_format


def _convert(parameter, fn):
    with no_grad():
        data, grad = fn(parameter), parameter.grad
        if data is not parameter:
            parameter.data = data
        if grad is not None:
            grad.data = fn(grad)


def _warn_of_lists(root):
    """Warn of plain lists and tuples that hold modules or parameters which are registered nowhere below ``root``."""
    registered = set(root.modules())
    tensors = {p for _, p in root.named_parameters(remove_duplicate=False)}
    for module in registered:
        for name, value in module.__dict__.items():
            if type(value) not in (list, tuple) or not value:
                continue
            lost = [v for v in value if isinstance(v, Parameter) and v not in tensors]
            lost += [
                v for v in value if isinstance(v, Tree) and v not in registered and next(v.named_parameters(), None)
            ]
            if lost:
                holder = "ParameterList" if isinstance(lost[0], Parameter) else "ModuleList"
                warnings.warn(
                    f"{type(module).__name__}.{name} is a plain {type(value).__name__} with {len(lost)} "
                    f"{'parameter' if holder == 'ParameterList' else 'module'}(s) that are not registered: "
                    f"parameters(), state_dict() and to() do not see them. Use nn.{holder}.",
                    UserWarning,
                    stacklevel=3,
                )
