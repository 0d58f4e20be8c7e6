"""From PyTorch's objects to ours and back, for tests that run both."""

import numpy as np

import cudagrad as cg


def to_ours(value, torch):
    """A nest of PyTorch tensors, dtypes and devices as ours; leaves stay leaves that want a gradient."""
    if isinstance(value, torch.Tensor):
        t = tensor(value.detach(), torch)
        return t.requires_grad_() if value.requires_grad else t
    if isinstance(value, torch.dtype):
        return getattr(cg, str(value).removeprefix("torch."))
    if isinstance(value, torch.device):
        return cg.device(str(value))
    if isinstance(value, torch.memory_format):
        return str(value).removeprefix("torch.")
    if isinstance(value, torch.Size):
        return cg.Size(value)
    if isinstance(value, dict):
        return {k: to_ours(v, torch) for k, v in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(to_ours(v, torch) for v in value))
    if isinstance(value, (list, tuple)):
        return type(value)(to_ours(v, torch) for v in value)
    return value


def tensor(t, torch):
    """One PyTorch tensor without history as ours, with its strides where its memory is dense."""
    if t.dtype is torch.bfloat16:
        return cg.from_numpy(t.float().numpy().copy()).to(cg.bfloat16)
    array = t.resolve_conj().resolve_neg().numpy()
    return cg.from_numpy(np.array(array, order="K"))


def array_of(value):
    """A tensor of either engine as a float64, complex128, integer or bool array."""
    if str(getattr(value, "dtype", "")) in ("torch.bfloat16", "torch.float16"):
        value = value.detach().float()
    if hasattr(value, "resolve_conj") and not isinstance(value, cg.Tensor):
        value = value.resolve_conj().resolve_neg()
    return np.asarray(value.detach().numpy() if hasattr(value, "detach") else value)


def tensors_in(value):
    """The tensors of a nest, in order."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors_in(v)]
    return [value] if hasattr(value, "requires_grad") else []
