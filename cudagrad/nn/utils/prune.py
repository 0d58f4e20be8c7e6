"""Pruning: masks that keep chosen elements of a parameter at zero."""

import numbers
from collections.abc import Iterable

from ...core.modes import no_grad
from ...ops.joining import cat


class BasePruningMethod:
    """A hook that puts ``name_orig * name_mask`` in the place of a parameter before each forward.

    A subclass has ``PRUNING_TYPE`` ("unstructured", "structured" or "global") and ``compute_mask(t, default_mask)``.
    """

    PRUNING_TYPE = "unstructured"

    def __call__(self, module, inputs):
        setattr(module, self._tensor_name, self.apply_mask(module))

    def compute_mask(self, t, default_mask):
        """A mask of the shape of ``t`` that is zero where ``default_mask`` is, and where this method prunes."""
        raise NotImplementedError(f"compute_mask is not implemented for {type(self).__name__}")

    def apply_mask(self, module):
        """The pruned tensor."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        mask, original = (getattr(module, self._tensor_name + end) for end in ("_mask", "_orig"))
        return mask.to(original.dtype) * original

    @classmethod
    def apply(cls, module, name, *args, importance_scores=None, **kwargs):
        """Prune the parameter ``name``, on top of what prunes it already; returns the method or the container."""
        old = [(k, h) for k, h in module._forward_pre_hooks.items() if _prunes(h, name)]
        if len(old) > 1:
            raise AssertionError(f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}.")
        method = cls(*args, **kwargs)
        method._tensor_name = name
        original = getattr(module, name)
        scores = original if importance_scores is None else importance_scores
        if scores.shape != original.shape:
            raise AssertionError(f"importance_scores should have the same shape as parameter {name} of {module}")
        if not old:
            mask = method.compute_mask(scores, original.detach().clone().fill_(1))
            module.register_parameter(name + "_orig", original)
            del module._parameters[name]
        else:
            key, before = old[0]
            container = before if isinstance(before, PruningContainer) else PruningContainer(before)
            container.add_pruning_method(method)
            method = container
            mask = method.compute_mask(scores, getattr(module, name + "_mask").detach().clone())
            del module._forward_pre_hooks[key]
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t, default_mask=None, importance_scores=None):
        """The tensor ``t`` itself, pruned."""
        scores = t if importance_scores is None else importance_scores
        mask = t.detach().clone().fill_(1) if default_mask is None else default_mask
        return t * self.compute_mask(scores, mask)

    def remove(self, module):
        """Make the parameter an ordinary one again, with its pruned values."""
        name = self._tensor_name
        pruned = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters[name + "_orig"]
        original.data = pruned.data
        del module._parameters[name + "_orig"]
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Several methods on one parameter; each prunes what those before have left."""

    def __init__(self, *args):
        self._pruning_methods = ()
        self._tensor_name = args[0]._tensor_name if len(args) == 1 and not isinstance(args[0], Iterable) else None
        for method in args[0] if len(args) == 1 and isinstance(args[0], Iterable) else args:
            self._tensor_name = self._tensor_name or method._tensor_name
            self.add_pruning_method(method)

    def add_pruning_method(self, method):
        """Add a method at the end."""
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and method._tensor_name != self._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self):
        return len(self._pruning_methods)

    def __iter__(self):
        return iter(self._pruning_methods)

    def __getitem__(self, idx):
        return self._pruning_methods[idx]

    def compute_mask(self, t, default_mask):
        """The mask of the last method, computed on what ``default_mask`` has left."""
        method, mask = self._pruning_methods[-1], default_mask.clone()
        if method.PRUNING_TYPE == "unstructured":
            left = default_mask.flatten().nonzero().flatten()
            part = method.compute_mask(t.flatten()[left], default_mask.flatten()[left])
            return mask.flatten().index_copy(0, left, part.to(mask.dtype)).view(mask.shape)
        if method.PRUNING_TYPE == "structured":
            dim = method.dim % t.dim()
            others = [d for d in range(t.dim()) if d != dim]
            left = default_mask.sum(dim=others).nonzero().flatten()
            part = method.compute_mask(t.index_select(dim, left), default_mask.index_select(dim, left))
            return mask.index_copy(dim, left, part.to(mask.dtype))
        if method.PRUNING_TYPE == "global":
            return method.compute_mask(t, default_mask)
        raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")


def _zeroed(mask, where):
    """``mask`` with the elements at the flat positions ``where`` set to zero."""
    return mask.flatten().index_fill(0, where, 0).view(mask.shape)


def _check_amount(amount):
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if (isinstance(amount, numbers.Integral) and amount < 0) or (
        not isinstance(amount, numbers.Integral) and not 0.0 <= float(amount) <= 1.0
    ):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _count(amount, size):
    """How many of ``size`` to prune: ``amount`` itself, or that share of them."""
    if not isinstance(amount, numbers.Integral):
        return round(amount * size)
    if amount > size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={size}")
    return amount


class Identity(BasePruningMethod):
    """Prunes nothing; the mask is there for others to change."""

    def compute_mask(self, t, default_mask):
        return default_mask


class _OfAmount(BasePruningMethod):
    def __init__(self, amount):
        _check_amount(amount)
        self.amount = amount


class RandomUnstructured(_OfAmount):
    """Prunes random elements."""

    def compute_mask(self, t, default_mask):
        count = _count(self.amount, t.numel())
        return _zeroed(default_mask, t.detach().flatten().clone().uniform_().topk(count).indices)


class L1Unstructured(_OfAmount):
    """Prunes the elements of the smallest magnitude."""

    def compute_mask(self, t, default_mask):
        count = _count(self.amount, t.numel())
        return _zeroed(default_mask, t.detach().abs().flatten().topk(count, largest=False).indices)


class _Structured(_OfAmount):
    PRUNING_TYPE = "structured"

    def __init__(self, amount, dim=-1):
        super().__init__(amount)
        self.dim = dim

    def _channels(self, t):
        if t.dim() <= 1:
            raise ValueError(
                "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
                f"{t.shape} with {t.dim()} dims"
            )
        if self.dim >= t.dim():
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        return t.shape[self.dim]


class RandomStructured(_Structured):
    """Prunes random channels along ``dim``."""

    def compute_mask(self, t, default_mask):
        channels = self._channels(t)
        chosen = t.new_empty(channels).uniform_().topk(_count(self.amount, channels)).indices
        return default_mask.index_fill(self.dim, chosen, 0)


class LnStructured(_Structured):
    """Prunes the channels along ``dim`` of the smallest n-norm."""

    def __init__(self, amount, n, dim=-1):
        super().__init__(amount, dim)
        self.n = n

    def compute_mask(self, t, default_mask):
        channels = self._channels(t)
        others = [d for d in range(t.dim()) if d != self.dim % t.dim()]
        size = t.detach().norm(p=self.n, dim=others)
        return default_mask.index_fill(self.dim, size.topk(_count(self.amount, channels), largest=False).indices, 0)


class CustomFromMask(BasePruningMethod):
    """Prunes where a given mask is zero."""

    PRUNING_TYPE = "global"

    def __init__(self, mask):
        self.mask = mask

    def compute_mask(self, t, default_mask):
        return default_mask * self.mask.to(default_mask.dtype)


def identity(module, name):
    """Give the parameter a mask of ones; returns the module."""
    Identity.apply(module, name)
    return module


def random_unstructured(module, name, amount):
    """Prune random elements, ``amount`` of them or that share; returns the module."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module, name, amount, importance_scores=None):
    """Prune the elements of the smallest magnitude (or score); returns the module."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module, name, amount, dim):
    """Prune random channels along ``dim``; returns the module."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module, name, amount, n, dim, importance_scores=None):
    """Prune the channels along ``dim`` of the smallest n-norm; returns the module."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module, name, mask):
    """Prune where ``mask`` is zero; returns the module."""
    CustomFromMask.apply(module, name, mask)
    return module


@no_grad()
def global_unstructured(parameters, pruning_method, importance_scores=None, **kwargs):
    """Prune the elements of several parameters, ``(module, name)`` pairs, as if they were one.

    Raises      TypeError for anything but pairs and a method that prunes single elements
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    parameters, given = list(parameters), importance_scores or {}
    tensors = [getattr(module, name) for module, name in parameters]
    scores = [given.get(pair, tensor) for pair, tensor in zip(parameters, tensors)]
    masks = [getattr(m, n + "_mask", t.detach().clone().fill_(1)) for (m, n), t in zip(parameters, tensors)]
    method = PruningContainer()
    method._tensor_name = "temp"
    step = pruning_method(**kwargs)
    step._tensor_name = "temp"
    if step.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {step.PRUNING_TYPE}"
        )
    method.add_pruning_method(step)
    final = method.compute_mask(cat([s.flatten() for s in scores]), cat([m.flatten() for m in masks]))
    start = 0
    for (module, name), tensor in zip(parameters, tensors):
        custom_from_mask(module, name, final[start : start + tensor.numel()].view_as(tensor))
        start += tensor.numel()


def _prunes(hook, name):
    return isinstance(hook, BasePruningMethod) and hook._tensor_name == name


def remove(module, name):
    """Make the pruned parameter an ordinary one, with its present values; returns the module."""
    for key, hook in module._forward_pre_hooks.items():
        if _prunes(hook, name):
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module):
    """Whether a parameter of the module or of one below it is pruned."""
    return any(isinstance(h, BasePruningMethod) for m in module.modules() for h in m._forward_pre_hooks.values())
