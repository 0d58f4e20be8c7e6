"""Weight normalisation by a hook: the older form of ``parametrizations.weight_norm``."""

import warnings

from ..parameter import Parameter, is_lazy


def norm_except_dim(v, pow=2, dim=0):
    """The p-norm over all dimensions but ``dim``, which stay with length 1; over all, a 0-d tensor, for dim -1."""
    return v.norm(pow) if dim == -1 else v.norm(pow, dim=[d for d in range(v.dim()) if d != dim], keepdim=True)


def weight_of(v, g, dim=0):
    """g v / |v|, the norm taken over all dimensions but ``dim``; -1 or None: over all.

    Source      Salimans & Kingma 2016, arXiv:1602.07868
    """
    return v * (g / norm_except_dim(v, 2, -1 if dim is None else dim))


class WeightNorm:
    """The hook that computes the weight before each forward."""

    def __init__(self, name, dim):
        self.name, self.dim = name, -1 if dim is None else dim

    def compute_weight(self, module):
        return weight_of(getattr(module, self.name + "_v"), getattr(module, self.name + "_g"), self.dim)

    @staticmethod
    def apply(module, name, dim):
        warnings.warn(
            "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.",
            FutureWarning,
            stacklevel=3,
        )
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
        hook = WeightNorm(name, dim)
        weight = getattr(module, name)
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `WeightNorm` can't have uninitialized parameters. Make sure to run the dummy "
                "forward before applying weight normalization"
            )
        del module._parameters[name]
        module.register_parameter(name + "_g", Parameter(norm_except_dim(weight, 2, hook.dim).data))
        module.register_parameter(name + "_v", Parameter(weight.data))
        setattr(module, name, hook.compute_weight(module))
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module):
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"]
        del module._parameters[self.name + "_v"]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module, inputs):
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module, name="weight", dim=0):
    """Make the parameter ``name`` g v / |v|, with the parameters ``name_g`` and ``name_v``; returns the module.

    Deprecated: ``parametrizations.weight_norm`` does the same and works with state_dicts of this one.
    """
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module, name="weight"):
    """Make the parameter an ordinary one again, with its present value; returns the module."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
