"""Parameters computed from others at every access: a module's attribute becomes a function of what is stored."""

import contextlib
import copy
from collections.abc import Sequence

from ...core.modes import no_grad
from ...core.tensor import Tensor
from ..container import ModuleDict, ModuleList
from ..parameter import Parameter

_cache_enabled = 0
_cache = {}


@contextlib.contextmanager
def cached():
    """Within, each parametrized tensor is computed at its first access and then kept."""
    global _cache_enabled, _cache
    _cache_enabled += 1
    try:
        yield
    finally:
        _cache_enabled -= 1
        if not _cache_enabled:
            _cache = {}


def _register_parameter_or_buffer(module, name, tensor):
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _put_into(original, value):
    """Make ``value`` the data of ``original``, which stays the same object, so that an optimizer still knows it."""
    original.data = value.detach().clone() if value.array is original.array else value.detach()


def _inverted(parametrizations, value, all_of_them):
    """``value`` through the right inverses, last first; one that is missing is the identity, unless ``all_of_them``."""
    for module in reversed(list(parametrizations)):
        if hasattr(module, "right_inverse"):
            try:
                value = module.right_inverse(value)
            except NotImplementedError:
                if all_of_them:
                    raise
        elif all_of_them:
            raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
    return value


def _same(what, before, after, first, names):
    """ValueError where dtype or shape (``what``) differs."""
    one, two = getattr(before, what), getattr(after, what)
    if one != two:
        raise ValueError(f"{first}\n{names[0]}: {one}\n{names[1]}: {two}")


def _needs_tensor(value, text="A parametrization must return a tensor. Got {}."):
    if not isinstance(value, Tensor):
        raise ValueError(text.format(type(value).__name__))


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, applied one after the other to ``original`` (or original0, original1, ...).

    Raises      ValueError where they change the tensor's dtype or shape, unless ``unsafe``
    """

    def __init__(self, modules, original, unsafe=False):
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        with no_grad():
            new = _inverted(self, original, all_of_them=False)
        self.is_tensor = isinstance(new, Tensor)
        if not self.is_tensor and not isinstance(new, Sequence):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got "
                + type(new).__name__
            )
        self.ntensors = 1 if self.is_tensor else len(new)
        shape, dtype = original.shape, original.dtype
        if self.is_tensor:
            self._store_one(original, new)
        else:
            self._store_several(original, new)
        if not unsafe:
            self._check_result(shape, dtype)

    def _store_one(self, original, new):
        for what in ("dtype", "device"):
            first = f"When `right_inverse` outputs one tensor, it may not change the {what}."
            _same(what, original, new, first, (f"original.{what}", f"right_inverse(original).{what}"))
        with no_grad():
            if new is not original:
                _put_into(original, new)
        _register_parameter_or_buffer(self, "original", original)

    def _store_several(self, original, new):
        for i, tensor in enumerate(new):
            if not isinstance(tensor, Tensor):
                raise ValueError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got element "
                    f"{i} of the sequence with type {type(tensor).__name__}."
                )
            if isinstance(original, Parameter):
                tensor = Parameter(tensor.detach(), original.requires_grad)
            tensor.requires_grad_(original.requires_grad)
            _register_parameter_or_buffer(self, f"original{i}", tensor)

    def _check_result(self, shape, dtype):
        result = self()
        _needs_tensor(result)
        for what, before in (("dtype", dtype), ("shape", shape)):
            after = getattr(result, what)
            if before != after:
                raise ValueError(
                    f"Registering a parametrization may not change the {what} of the tensor, unless `unsafe` flag is "
                    f"enabled.\nunparametrized {what}: {before}\nparametrized {what}: {after}"
                )

    def _originals(self):
        return [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]

    @no_grad()
    def right_inverse(self, value):
        """Store what makes the parametrized tensor equal ``value``."""
        value = _inverted(self, value, all_of_them=True)
        if self.is_tensor:
            _needs_tensor(value, "`right_inverse` should return a tensor. Got {}")
            if value.dtype is not self.original.dtype:
                raise ValueError(
                    f"The tensor returned by `right_inverse` has dtype {value.dtype} while `original` has dtype "
                    f"{self.original.dtype}"
                )
            _put_into(self.original, value)
            return
        if not isinstance(value, Sequence):
            raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(value).__name__}.")
        if len(value) != self.ntensors:
            raise ValueError(
                f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a sequence of "
                f"length {len(value)}."
            )
        for i, (tensor, original) in enumerate(zip(value, self._originals())):
            _needs_tensor(tensor, f"'right_inverse' must return a sequence of tensors. Got element {i} of type {{}}.")
            if tensor.dtype is not original.dtype:
                raise ValueError(
                    f"Tensor {i} returned by `right_inverse` has dtype {tensor.dtype} while `original{i}` has dtype "
                    f"{original.dtype}"
                )
            _put_into(original, tensor)

    def forward(self):
        first, *rest = self._modules.values()
        x = first(*self._originals())
        for module in rest:
            x = module(x)
        return x


def _deepcopy_of(self, memo):
    """As ``copy.deepcopy`` of a module does it; ``__getstate__`` of a parametrized one only raises."""
    if id(self) not in memo:
        replica = memo[id(self)] = self.__new__(type(self))
        replica.__dict__.update(copy.deepcopy(self.__dict__, memo))
    return memo[id(self)]


def _no_state(self):
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(). See:\n"
        "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
        "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
    )


def _give_own_class(module):
    """Put a subclass of its own in the place of the module's class: properties can only live on classes."""
    kind = type(module)
    members = {"__getstate__": _no_state}
    if not hasattr(kind, "__deepcopy__"):
        members["__deepcopy__"] = _deepcopy_of
    module.__class__ = type(f"Parametrized{kind.__name__}", (kind,), members)


def _add_property(module, name):
    def get(self):
        parametrization = self.parametrizations[name]
        if not _cache_enabled:
            return parametrization()
        key = id(module), name
        if key not in _cache:
            _cache[key] = parametrization()
        return _cache[key]

    def put(self, value):
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(get, put))


def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    """Make ``module.tensor_name`` the result of ``parametrization`` of the stored tensor; returns the module.

    The stored tensor is ``module.parametrizations.<name>.original``. A ``right_inverse`` method says what to store for
    a value that is assigned. Several parametrizations of one tensor are applied one after the other.

    Raises      ValueError for an unknown name, or where dtype or shape change, unless ``unsafe``
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_another(module, tensor_name, parametrization)
        parametrizations = module.parametrizations[tensor_name]
        parametrizations.append(parametrization)
        parametrizations.unsafe |= unsafe
        return module
    if tensor_name not in module._buffers and tensor_name not in module._parameters:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    parametrizations = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        _give_own_class(module)
        module.parametrizations = ModuleDict()
    _add_property(module, tensor_name)
    # Past add_module's check of names: the property has just made the name one of the module's.
    module.parametrizations._modules[tensor_name] = parametrizations
    return module


def _check_another(module, name, parametrization):
    before = getattr(module, name)
    after = parametrization(before)
    _needs_tensor(after)
    for what in ("dtype", "shape"):
        first = f"Registering a parametrization may not change the {what} of the tensor, unless the `unsafe` flag "
        first += "is enabled."
        _same(what, before, after, first, (f"module.{name}.{what}", f"parametrization(module.{name}).{what}"))
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        back = parametrization.right_inverse(after)
    except NotImplementedError:
        return
    _needs_tensor(back, "parametrization.right_inverse must return a tensor. Got: {}")
    for what in ("dtype", "shape"):
        first = f"The tensor returned by parametrization.right_inverse must have the same {what} as module.{name}, "
        _same(
            what,
            before,
            back,
            first + "unless the `unsafe` flag is enabled.",
            (f"module.{name}.{what}", f"returned {what}"),
        )


def is_parametrized(module, tensor_name=None):
    """Whether a tensor of the module is parametrized, or any where no name is given."""
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module, tensor_name, leave_parametrized=True):
    """Make the tensor an ordinary parameter or buffer again; returns the module.

    ``leave_parametrized``: with its present value, otherwise with what is stored.

    Raises      ValueError where there is nothing to remove, or several stored tensors cannot be one
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrizations = module.parametrizations[tensor_name]
    if parametrizations.is_tensor:
        original = parametrizations.original
        if leave_parametrized:
            with no_grad():
                _put_into(original, getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value.detach()) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register_parameter_or_buffer(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module):
    """The class of the module as it was before it was parametrized."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module, to_module, tensor_name=None):
    """Give ``to_module`` the parametrizations and stored tensors of ``from_module``, of one tensor or of all."""
    if not is_parametrized(from_module):
        return to_module
    for name in list(from_module.parametrizations) if tensor_name is None else [tensor_name]:
        source = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach()))
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        target = to_module.parametrizations[name]
        for stored in ("original", *(f"original{i}" for i in range(source.ntensors))):
            if hasattr(source, stored):
                setattr(target, stored, getattr(source, stored))
    return to_module
