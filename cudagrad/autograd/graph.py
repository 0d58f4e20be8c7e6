"""Hooks on what the tape saves, and the names of ``torch.autograd.graph``."""

import contextlib

from ..core.modes import MODE, SPACE
from ..core.node import Node
from ..core.op import TABLE

__all__ = ["Node", "saved_tensors_hooks", "save_on_cpu", "disable_saved_tensors_hooks", "register_multi_grad_hook"]


class saved_tensors_hooks:
    """Within, what the tape saves goes through ``pack_hook(tensor)``, and comes back by ``unpack_hook(packed)``.

    Source      pytorch.org/docs/stable/autograd.html, saved tensors hooks
    """

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self):
        if MODE.hooks_disabled:
            raise RuntimeError(MODE.hooks_disabled)
        SPACE["RARE"] = True
        MODE.saved_hooks = ((self.pack_hook, self.unpack_hook), *MODE.saved_hooks)

    def __exit__(self, *exception):
        MODE.saved_hooks = MODE.saved_hooks[1:]


class save_on_cpu(saved_tensors_hooks):
    """Within, what the tape saves waits on the CPU for backward, and the device's memory is free meanwhile.

    ``pin_memory``: keep it in page-locked memory, so that it comes back without waiting.
    """

    def __init__(self, pin_memory=False, device_type="cuda"):
        def pack(t):
            if t.device.type == "cpu":
                return t.device, TABLE["clone"].raw(t.detach())
            kept = t.detach().cpu()
            return t.device, kept.pin_memory() if pin_memory else kept

        super().__init__(pack, lambda packed: packed[1].to(packed[0], non_blocking=pin_memory))


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message):
    """Within, ``saved_tensors_hooks`` raises ``RuntimeError(error_message)``."""
    before = MODE.hooks_disabled
    if MODE.saved_hooks:
        raise RuntimeError(error_message)
    MODE.hooks_disabled = error_message
    try:
        yield
    finally:
        MODE.hooks_disabled = before


def register_multi_grad_hook(tensors, fn, *, mode="all"):
    """Call ``fn`` once a backward: with all gradients of ``tensors`` when all are known, or with ``"any"`` first one.

    Returns a handle whose ``remove()`` takes the hooks away.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    tensors = list(tensors)
    grads = {}

    def at(i):
        def hook(g):
            first = not grads
            grads[i] = g
            if mode == "any" and first:
                fn(g)
            if len(grads) == len(tensors):
                found = [grads[j] for j in range(len(tensors))]
                grads.clear()
                if mode == "all":
                    fn(found)

        return hook

    return _Handles([t.register_hook(at(i)) for i, t in enumerate(tensors)])


class _Handles:
    """Several hooks' handles as one."""

    def __init__(self, handles):
        self.handles = tuple(handles)

    def remove(self):
        for handle in self.handles:
            handle.remove()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.remove()
