"""Checkpointing: drop what a function saves, and run it again when backward needs it."""

import contextlib
import warnings
import weakref

from ..autograd.graph import saved_tensors_hooks
from ..backend.device import device
from ..core.generator import generator_of
from ..core.modes import MODE, enable_grad
from ..core.node import make, rule
from ..core.tensor import Tensor
from ..core.writable import check_saved


class CheckpointError(RuntimeError):
    """The second run of a checkpointed function saved other tensors than the first."""


class _Enough(Exception):
    """Raised within the second run once all that backward asks for is there."""


def noop_context_fn():
    """Two contexts that do nothing: for the first run and for the second."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def checkpoint(
    function,
    *args,
    use_reentrant=None,
    context_fn=noop_context_fn,
    determinism_check="default",
    debug=False,
    early_stop=True,
    preserve_rng_state=True,
    **kwargs,
):
    """``function(*args, **kwargs)``, whose intermediate tensors are made again in backward instead of being kept.

    ``preserve_rng_state``: the second run draws the same random numbers. ``determinism_check="default"``: compare
    shape, dtype and device of what both runs save. ``context_fn``: makes the contexts of the first and the second
    run.

    Raises      CheckpointError where the second run saves something else than the first
    Differs     ``use_reentrant=True`` takes the same path, so what only the other path could do works as well
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. use_reentrant=False is "
            "recommended, but if you need to preserve the current default behavior, you can pass use_reentrant=True.",
            UserWarning,
            stacklevel=2,
        )
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of ['default', 'none'] but got {determinism_check}")
    first, second = context_fn()
    frame = _Frame(function, args, kwargs, second, determinism_check == "default", early_stop, preserve_rng_state)
    with frame.packing(), first:
        return function(*args, **kwargs)


def checkpoint_sequential(functions, segments, input, use_reentrant=None, **kwargs):
    """A sequence of modules in ``segments`` checkpointed pieces, the last one without checkpoint."""
    functions = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size = len(functions) // segments

    def run(start, end):
        def forward(x):
            for f in functions[start:end]:
                x = f(x)
            return x

        return forward

    use_reentrant = True if use_reentrant is None else use_reentrant
    for i in range(segments - 1):
        input = checkpoint(run(i * size, (i + 1) * size), input, use_reentrant=use_reentrant, **kwargs)
    return run((segments - 1) * size, len(functions))(input)


@rule("CheckpointBackward0")
def _checkpointed(k, g, heap):
    raise NotImplementedError


class _Slot:
    """Stands in the graph for one saved tensor."""

    __slots__ = ("__weakref__", "facts", "index")

    def __init__(self, index, facts):
        self.index, self.facts = index, facts


class _Frame:
    """One checkpointed call: how to run it again, and what the second run saved."""

    def __init__(self, function, args, kwargs, context, check, early_stop, preserve_rng):
        self.call = function, args, kwargs
        given = [a for a in (*args, *kwargs.values()) if isinstance(a, Tensor)]
        self.inputs = make(_checkpointed, (), tuple(given))  # no part of the graph: notices writes, and says where
        self.context, self.check, self.early_stop = context, check, early_stop
        self.rng = _rng_states(args) if preserve_rng else None
        self.modes = _autocast_state()
        self.slots, self.again = [], {}

    def packing(self):
        return saved_tensors_hooks(self._pack, self._unpack)

    def _pack(self, t):
        slot = _Slot(len(self.slots), (tuple(t.shape), t.dtype, t.device))
        self.slots.append(weakref.ref(slot))
        return slot

    def _unpack(self, slot):
        if slot.index not in self.again:
            self._run_again()
        if slot.index not in self.again:
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(self.slots)}\nNumber of tensors saved "
                f"during recomputation: {len(self.again)}."
            )
        t = self.again.pop(slot.index)
        facts = (tuple(t.shape), t.dtype, t.device)
        if self.check and facts != slot.facts:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata "
                "than during "
                f"the forward pass.\ntensor at position {slot.index}:\nsaved metadata: {slot.facts}\nrecomputed "
                f"metadata: {facts}"
            )
        return t

    def _run_again(self):
        check_saved(self.inputs)
        function, args, kwargs = self.call
        count = 0

        def keep(t):
            nonlocal count
            if count < len(self.slots) and self.slots[count]() is not None:
                self.again[count] = t.detach()
            count += 1
            if self.early_stop and count == len(self.slots):
                raise _Enough
            return t

        def refuse(t):
            return t

        args = [a.detach().requires_grad_(a.requires_grad) if isinstance(a, Tensor) else a for a in args]
        with _rng_restored(self.rng), enable_grad(), self.modes(), self.context:
            with contextlib.suppress(_Enough), saved_tensors_hooks(keep, refuse):
                function(*args, **kwargs)
        if count > len(self.slots):
            raise CheckpointError(
                "torch.utils.checkpoint: trying to save more tensors during recomputation than during the original "
                "forward pass."
            )


def _rng_states(args):
    devices = {device("cpu"), *(a.device for a in args if isinstance(a, Tensor))}
    return {d: generator_of(d).get_state() for d in devices}


@contextlib.contextmanager
def _rng_restored(states):
    """Within, the generators continue from ``states``; afterwards from where they are now."""
    before = {d: generator_of(d).get_state() for d in states or ()}
    for d in before:
        generator_of(d).set_state(states[d])
    try:
        yield
    finally:
        for d, state in before.items():
            generator_of(d).set_state(state)


def _autocast_state():
    """A function that makes the context in which this thread's autocast is what it is now."""
    active = list(MODE.autocast.values())

    def restored():
        stack = contextlib.ExitStack()
        for a in active:
            stack.enter_context(type(a)(a.device, a.fast_dtype, a._enabled, a.cache is not None))
        return stack

    return restored
