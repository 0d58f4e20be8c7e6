"""The one way in which element-by-element update rules run: over blocks of arrays, or recorded over Tensors."""

import threading

import numpy as np

from ..backend import xp_of
from ..core.inplace import bump
from .optimizer import GroupOptimizer
from .options import current, numbers_of, scalar_state, zeros_state
from .program import Program, Recorder, public

# A rule makes a dozen passes; in pieces of this size all but the first find their operands in the core's own cache.
BLOCK_BYTES = 128 * 1024
_SMALL = 4  # arrays under BLOCK_BYTES / _SMALL are gathered into one block: small ones cost calls, not bytes


class Elementwise(GroupOptimizer):
    """An optimizer whose new value of an element needs only that element, its gradient and its state.

    A subclass says which state it keeps and gives its rule once; the rule runs on blocks of NumPy or CuPy arrays, and
    with ``differentiable=True`` on Tensors, recorded.

    slots(group)        names of the state of the parameter's shape, in the rule's order
    init(group, p)      the state of a parameter that has none
    advance(group, p, state)    counts the step in the state's scalars; what ``numbers`` needs of them, hashable
    numbers(group, *scalars)    the rule's keywords: Python numbers; recorded, Tensors where the options are Tensors
    rule(xp, p, g, *slots, **numbers)   changes ``p`` and the slots in place; ``xp`` is numpy, cupy or, recorded, the
                        public functions of the same names
    """

    def slots(self, group):
        raise NotImplementedError

    def numbers(self, group, *scalars):
        raise NotImplementedError

    @staticmethod
    def rule(xp, p, g, *slots, **numbers):
        raise NotImplementedError

    def init(self, group, p):
        """Step 0 and zeros in every slot."""
        return {"step": scalar_state(0.0), **{name: zeros_state(p) for name in self.slots(group)}}

    def advance(self, group, p, state):
        step = state["step"].array
        step += 1
        return (float(step),)

    def _update(self, group):
        recorded = group.get("differentiable", False)
        if recorded and group.get("foreach"):
            raise AssertionError("_foreach ops don't support autograd")
        options = group if recorded else numbers_of(group)
        names = self.slots(options)
        alike = {}  # parameters whose arrays and numbers are of one kind
        for p in group["params"]:
            grad = p.grad
            if grad is None:
                continue
            state = self.state[p] if names else {}  # a rule that keeps nothing leaves no entry
            if names and not state:
                state.update(self.init(options, p))
            scalars = self.advance(options, p, state)
            slots = [state[name] for name in names]
            if recorded:
                self._record(p, grad, slots, self.numbers(options, *scalars))
                continue
            array = p.array
            arrays = [array, grad.array, *(slot.array for slot in slots)]
            alike.setdefault((p.device, array.dtype, scalars), []).append(arrays)
            bump(p)
        for (device, _, scalars), items in alike.items():
            with current(device):
                sweep(self.rule, items, self.numbers(options, *scalars))

    def _record(self, p, g, slots, numbers):
        """The rule over Tensors: on copies, so that no value that is saved for backward is written to later."""
        olds = [p, g, *slots]
        reals = [_real(t.clone()) for t in olds]
        for i, (old, new) in enumerate(zip(olds, Recorder().run(self.rule, reals, numbers))):
            if i != 1:
                old.copy_(public("view_as_complex")(new) if p.is_complex() else new)


def descent(p, g, maximize, weight_decay, decoupled_by=None):
    """The gradient to follow: ``-g`` to maximize, plus ``weight_decay p``; ``decoupled_by=lr`` takes that off ``p``."""
    if maximize:
        g = -g
    if weight_decay != 0:
        if decoupled_by is None:
            return g + p * weight_decay
        p *= 1 - decoupled_by * weight_decay
    return g


def _real(t):
    return public("view_as_real")(t) if t.is_complex() else t


def sweep(rule, items, numbers):
    """Run ``rule`` over ``items``, each ``[p, g, *state]`` of one size, dtype and device; only ``g`` is not written.

    float16 and bfloat16 are computed in float32 and rounded once; complex elements are pairs of real ones.
    """
    xp, dtype = xp_of(items[0][0]), items[0][0].dtype
    real = np.dtype(dtype.type(0).real.dtype) if dtype.kind == "c" else dtype
    work = np.dtype(np.float32) if real.itemsize == 2 else real
    blocks = (_CpuBlocks if xp is np else _GpuBlocks)(rule, xp, work, len(items[0]), numbers)
    small, late = [], []
    for arrays in items:
        flat = _flat(arrays, real, late)
        size = flat[0].size
        if size < blocks.small and len(items) > 1:
            small.append(flat)
            continue
        for start in range(0, size, blocks.limit):
            blocks.run([a[start : start + blocks.limit] for a in flat])
    for batch in _batches(small, blocks.limit):
        blocks.run_gathered(batch)
    for array, copy in late:
        array[...] = copy.reshape(array.shape)


def _flat(arrays, real, late):
    """One-dimensional views of real numbers; of what lies otherwise in memory copies, noted in ``late``."""
    first = arrays[0]
    if not first.flags.c_contiguous:  # a transposed parameter: its state and gradient lie as it does
        order = sorted(range(first.ndim), key=lambda i: -abs(first.strides[i]))
        arrays = [a.transpose(order) for a in arrays]
    flat = []
    for i, a in enumerate(arrays):
        dense = a.flags.c_contiguous
        f = a if a.ndim == 1 and dense else a.reshape(-1) if dense else a.flatten()
        if not dense and i != 1:
            late.append((a, f))
        flat.append(f.view(real) if f.dtype.kind == "c" else f)
    return flat


def _batches(items, limit):
    """Runs of ``items`` of at most ``limit`` elements together."""
    batch, size = [], 0
    for flat in items:
        if batch and size + flat[0].size > limit:
            yield batch
            batch, size = [], 0
        batch.append(flat)
        size += flat[0].size
    if batch:
        yield batch


class _CpuBlocks:
    """Blocks of ``BLOCK_BYTES``, by a traced program on scratch arrays that stay from step to step."""

    def __init__(self, rule, xp, work, count, numbers):
        self.limit = BLOCK_BYTES // work.itemsize
        self.small = self.limit // _SMALL
        self.work = work
        self.program = Program(rule, count, work, numbers)
        arrays = _scratch(work, self.limit, count + self.program.scratch)
        self.wide, self.scratch = arrays[:count], arrays[count:]

    def _run(self, arrays, size):
        scratch = self.scratch if size == self.limit else [s[:size] for s in self.scratch]
        self.program.run(*arrays, *self.program.constants, *scratch)

    def run(self, blocks):
        size = blocks[0].size
        wide = [b if b.dtype == self.work else w[:size] for b, w in zip(blocks, self.wide)]
        for b, w in zip(blocks, wide):
            if b is not w:
                w[...] = b
        self._run(wide, size)
        _put_back(blocks, wide)

    def run_gathered(self, batch):
        """One run for many small arrays: they are copied side by side, and the results back."""
        size = sum(blocks[0].size for blocks in batch)
        wide = [w[:size] for w in self.wide]
        for w, slot in zip(wide, zip(*batch)):
            np.concatenate(slot, out=w, casting="unsafe")
        self._run(wide, size)
        _put_all_back(batch, wide)


class _GpuBlocks:
    """Whole arrays, and small ones gathered: on a GPU every block would be a dozen launches more."""

    limit, small = 1 << 24, 1 << 18  # elements

    def __init__(self, rule, xp, work, count, numbers):
        self.rule, self.xp, self.work, self.numbers = rule, xp, work, numbers

    def run(self, blocks):
        wide = [b if b.dtype == self.work else b.astype(self.work) for b in blocks]
        self.rule(self.xp, *wide, **self.numbers)
        _put_back(blocks, wide)

    def run_gathered(self, batch):
        wide = [self.xp.concatenate(slot, dtype=self.work) for slot in zip(*batch)]
        self.rule(self.xp, *wide, **self.numbers)
        _put_all_back(batch, wide)


def _put_back(blocks, wide):
    for i, (b, w) in enumerate(zip(blocks, wide)):
        if b is not w and i != 1:
            b[...] = w


def _put_all_back(batch, wide):
    start = 0
    for blocks in batch:
        end = start + blocks[0].size
        _put_back(blocks, [w[start:end] for w in wide])
        start = end


_kept = threading.local()


def _scratch(work, size, count):
    """``count`` arrays of this thread's own, the same ones at every call."""
    held = _kept.__dict__.setdefault(work.char, [])
    if held and held[0].size != size:
        held.clear()
    while len(held) < count:
        held.append(np.empty(size, work))
    return held[:count]
