"""The one way in which element-by-element update rules run: over blocks of arrays, or recorded over Tensors."""

import sys

import numpy as np

from ..backend import xp_of
from ..core.inplace import bump
from .optimizer import GroupOptimizer
from .options import numbers_of, scalar_state, zeros_state

# A rule makes a dozen passes; in pieces of this size all but the first find their operands in the core's own cache.
BLOCK_BYTES = 128 * 1024
_SMALL = 4  # arrays under BLOCK_BYTES / _SMALL are gathered into one block: small ones cost calls, not bytes
_GPU_BLOCK, _GPU_SMALL = 1 << 62, 1 << 18  # elements; on a GPU every block would be a dozen launches more


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
            state = self.state[p]
            if not state:
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
        for (_, _, scalars), items in alike.items():
            sweep(self.rule, items, self.numbers(options, *scalars))

    def _record(self, p, g, slots, numbers):
        """The rule over Tensors: on copies, so that no value that is saved for backward is written to later."""
        olds = [p, *slots]
        news = [t.clone() for t in olds]
        real = RECORDED.view_as_real if p.is_complex() else lambda t: t
        self.rule(RECORDED, real(news[0]), real(g), *map(real, news[1:]), **numbers)
        for old, new in zip(olds, news):
            old.copy_(new)


def descent(p, g, maximize, weight_decay, decoupled_by=None):
    """The gradient to follow: ``-g`` to maximize, plus ``weight_decay p``; ``decoupled_by=lr`` takes that off ``p``."""
    if maximize:
        g = -g
    if weight_decay != 0:
        if decoupled_by is None:
            return g + p * weight_decay
        p *= 1 - decoupled_by * weight_decay
    return g


class _Recorded:
    """The public functions, found by name when a rule asks: what ``xp`` is over Tensors."""

    def __getattr__(self, name):
        return getattr(sys.modules[__package__.partition(".")[0]], name)


RECORDED = _Recorded()


def sweep(rule, items, numbers):
    """Run ``rule`` over ``items``, each ``[p, g, *state]`` of one size, dtype and device; only ``g`` is not written.

    float16 and bfloat16 are computed in float32 and rounded once; complex elements are pairs of real ones.
    """
    xp = xp_of(items[0][0])
    dtype = items[0][0].dtype
    real = np.dtype(dtype.type(0).real.dtype) if dtype.kind == "c" else dtype
    work = np.dtype(np.float32) if real.itemsize == 2 else real
    limit = BLOCK_BYTES // work.itemsize if xp is np else _GPU_BLOCK
    few = limit // _SMALL if xp is np else _GPU_SMALL
    small, late = [], []
    for arrays in items:
        flat = _flat(arrays, real, late)
        size = flat[0].size
        if size < few and len(items) > 1:
            small.append(flat)
            continue
        for start in range(0, size, limit):
            _run(rule, xp, [a[start : start + limit] for a in flat], work, numbers)
    for batch in _batches(small, limit):
        _run_gathered(rule, xp, batch, work, numbers)
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
        f = a.reshape(-1) if dense else a.flatten()
        if not dense and i != 1:
            late.append((a, f))
        flat.append(f.view(real) if f.dtype.kind == "c" else f)
    return flat


def _run(rule, xp, blocks, work, numbers):
    wide = [b if b.dtype == work else b.astype(work) for b in blocks]
    rule(xp, *wide, **numbers)
    _put_back(blocks, wide)


def _run_gathered(rule, xp, batch, work, numbers):
    """One call of the rule for many small arrays: they are copied side by side, and the results back."""
    wide = [xp.concatenate(slot, dtype=work) for slot in zip(*batch)]
    rule(xp, *wide, **numbers)
    start = 0
    for blocks in batch:
        end = start + blocks[0].size
        _put_back(blocks, [w[start:end] for w in wide])
        start = end


def _put_back(blocks, wide):
    for i, (b, w) in enumerate(zip(blocks, wide)):
        if b is not w and i != 1:
            b[...] = w


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
