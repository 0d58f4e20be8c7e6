"""From PyTorch's objects to ours, for tests that run both."""

import types

import numpy as np
import torch

import cudagrad as cg

INSIDE = "torch.testing._internal"  # where PyTorch's tables keep their own small functions


class Untranslatable(Exception):
    """A value of PyTorch's that has no counterpart here."""


def to_ours(value, memo=None):
    """A nest of PyTorch tensors, dtypes, devices, functions and modules as ours; one object stays one object."""
    memo = {} if memo is None else memo
    if id(value) in memo:
        return memo[id(value)][0]
    made = _made(value, memo)
    memo[id(value)] = made, value  # the value too, so that its id stays its own
    return made


def _made(value, memo):
    if isinstance(value, torch.Tensor):
        return tensor(value)
    if isinstance(value, torch.dtype):
        return getattr(cg, str(value).removeprefix("torch."))
    if isinstance(value, torch.device):
        return cg.device(str(value))
    if isinstance(value, (torch.memory_format, torch.layout)):
        return getattr(cg, str(value).removeprefix("torch."), value)
    if isinstance(value, torch.Size):
        return cg.Size(value)
    if isinstance(value, dict):
        return {k: to_ours(v, memo) for k, v in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(to_ours(v, memo) for v in value))
    if isinstance(value, (list, tuple)):
        return type(value)(to_ours(v, memo) for v in value)
    if isinstance(value, torch.nn.Module):
        return module(value)
    if isinstance(value, types.FunctionType):
        return function(value)
    if isinstance(value, types.BuiltinFunctionType) and value.__name__ in vars(torch.nn.functional):
        return getattr(cg.nn.functional, value.__name__)
    return value


def tensor(t):
    """One PyTorch tensor as ours, a leaf that wants a gradient as it does, over a copy of the same memory's layout."""
    if t.layout is not torch.strided or t.device.type != "cpu":
        raise Untranslatable(f"layout {t.layout} on {t.device}")
    if t.dim() > 64:
        raise Untranslatable("NumPy has no more than 64 dims")
    source = t.detach().resolve_conj().resolve_neg()
    dtype = getattr(cg, str(t.dtype).removeprefix("torch.")).numpy
    storage = torch.empty(0, dtype=torch.uint8).set_(source.untyped_storage())
    memory = storage.numpy()[: source.untyped_storage().nbytes() // dtype.itemsize * dtype.itemsize].view(dtype).copy()
    strides = [s * dtype.itemsize for s in source.stride()]
    offset = source.storage_offset() * dtype.itemsize
    empty = not source.numel()  # then NumPy takes no strides
    array = np.empty(tuple(source.shape), dtype) if empty else np.ndarray(source.shape, dtype, memory, offset, strides)
    ours = cg.core.tensor.wrap(array)
    return ours.requires_grad_() if t.requires_grad else ours


def module(theirs):
    """Our module of the class, the settings and the parameters of one of PyTorch's."""
    name = type(theirs).__name__
    settings = SETTINGS[name](theirs) if name in SETTINGS else {}
    made = getattr(cg.nn, name)(**to_ours(settings)).to(to_ours(next(theirs.parameters(), torch.empty(0)).dtype))
    made.load_state_dict(to_ours(dict(theirs.state_dict())))
    return made.train(theirs.training)


def _layer(t):
    return {
        "d_model": t.linear1.in_features,
        "nhead": t.self_attn.num_heads,
        "dim_feedforward": t.linear1.out_features,
        "dropout": t.dropout1.p,
        "activation": t.activation,
        "layer_norm_eps": t.norm1.eps,
        "batch_first": t.self_attn.batch_first,
        "norm_first": t.norm_first,
        "bias": t.linear1.bias is not None,
    }


# Class of a module that comes as an argument -> its settings.
SETTINGS = {
    "PairwiseDistance": lambda t: {"p": t.norm, "eps": t.eps, "keepdim": t.keepdim},
    "TransformerEncoderLayer": _layer,
    "TransformerDecoderLayer": _layer,
    "LayerNorm": lambda t: {"normalized_shape": t.normalized_shape, "eps": t.eps, "bias": t.bias is not None},
}


def found(path):
    """Our object of a dotted name below ``torch``; None where there is none."""
    here = cg
    for part in path.removeprefix("torch.").split("."):
        here = getattr(here, part, None)
        if here is None:
            return None
    return here


def function(f):
    """Our function of one of PyTorch's; one that its tables define runs as it is written, on our ``torch``."""
    if f.__module__.startswith(INSIDE):
        return rewritten(f, cg)
    return found(f"{f.__module__}.{f.__qualname__}")


def rewritten(f, engine, seed=42):
    """A function of PyTorch's tables whose ``torch`` is ``engine`` and whose fixed seed is ``seed``."""

    def wrapper_set_seed(op, *args, **kwargs):
        engine.manual_seed(seed)
        return op(*args, **kwargs)

    space = {**f.__globals__, "torch": engine, "wrapper_set_seed": wrapper_set_seed}
    made = types.FunctionType(f.__code__, space, f.__name__, f.__defaults__, f.__closure__)
    made.__kwdefaults__ = f.__kwdefaults__
    return made


def array_of(value):
    """A tensor of either engine, or a number, as a NumPy array; half types as float32."""
    if isinstance(value, torch.Tensor):
        value = value.detach().resolve_conj().resolve_neg()
        return (value.float() if value.dtype in (torch.float16, torch.bfloat16) else value).numpy(force=True)
    if isinstance(value, cg.Tensor):
        return (value.float() if value.dtype in (cg.float16, cg.bfloat16) else value).detach().numpy()
    return np.asarray(value)


def tensors_in(value):
    """The tensors of a nest, in order."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors_in(v)]
    return [value] if isinstance(value, (torch.Tensor, cg.Tensor)) else []


def leaves_in(value):
    """What a nest holds that is no list, tuple or dict, in order."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in leaves_in(v)]
    return [value]
