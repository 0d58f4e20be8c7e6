"""Jacobians, Hessians and their products with vectors, of functions of tensors."""

import numpy as np

from ..backend import xp_of
from ..core.backward import grad
from ..core.modes import enable_grad
from ..core.op import TABLE
from ..core.tensor import Tensor, wrap
from ..ops.joining import stack


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """``(outputs, vector-Jacobian product)`` of ``func`` at ``inputs``, as ``torch.autograd.functional.vjp``."""
    with enable_grad():
        single, xs = _prepare(inputs, create_graph)
        one, outputs = _call(func, xs)
        vs = _vectors(v, outputs)
        ds = grad(outputs, xs, vs, create_graph=create_graph, allow_unused=True)
        ds = _filled(ds, xs, strict, "vjp")
    return _packed(outputs, one, create_graph), _packed(ds, single, create_graph)


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """``(outputs, Jacobian-vector product)`` of ``func`` at ``inputs``, by two backwards."""
    with enable_grad():
        single, xs = _prepare(inputs, True)
        vs = _vectors(v, xs)
        one, outputs = _call(func, xs)
        dummies = [_zeros_like(o).requires_grad_() for o in outputs]
        ds = _filled(grad(outputs, xs, dummies, create_graph=True, allow_unused=True), xs, strict, "jvp")
        products = _second(ds, dummies, vs, create_graph)
    return _packed(outputs, one, create_graph), _packed(products, one, create_graph)


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    """The Jacobian of ``func``: for each output and input a tensor of shape ``output.shape + input.shape``.

    ``vectorize`` and ``strategy`` are accepted; the result is the same.
    """
    with enable_grad():
        single, xs = _prepare(inputs, create_graph)
        one, outputs = _call(func, xs)
        blocks = [_rows(o, xs, create_graph, strict) for o in outputs]
    blocks = [_packed(row, single, create_graph) for row in blocks]
    return blocks[0] if one else tuple(blocks)


def _rows(output, xs, create_graph, strict):
    rows = []
    for index in np.ndindex(*output.shape):
        e = np.zeros(output.shape, output.dtype.numpy)
        e[index] = 1
        if output.node is None:
            ds = [None] * len(xs)
        else:
            seed = wrap(e).to(output.device)
            ds = grad([output], xs, [seed], retain_graph=True, create_graph=create_graph, allow_unused=True)
        rows.append(_filled(ds, xs, strict, "jacobian"))
    columns = zip(*rows) if rows else ([] for _ in xs)
    return [_stacked(list(c), output.shape, x) for c, x in zip(columns, xs)]


def _stacked(rows, shape, x):
    if not rows:
        return wrap(np.zeros((*shape, *x.shape), x.dtype.numpy)).to(x.device)
    return stack(rows).reshape((*shape, *x.shape))


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"):
    """The Hessian of a scalar ``func``: for each pair of inputs a tensor of both shapes."""
    single = isinstance(inputs, Tensor)

    def gradient(*xs):
        out = _scalar(func(*xs), "hessian")
        ds = grad([out], xs, create_graph=True, allow_unused=True)
        return tuple(_filled(ds, xs, strict, "hessian"))

    with enable_grad():
        blocks = jacobian(gradient, (inputs,) if single else tuple(inputs), create_graph, strict)
    return blocks[0][0] if single else blocks


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """``(output, Hessian-vector product)`` of a scalar ``func``, by the double-backward trick."""
    with enable_grad():
        single, xs = _prepare(inputs, True)
        vs = _vectors(v, xs)
        _, outputs = _call(func, xs)
        out = _scalar(outputs[0], "hvp")
        ds = _filled(grad([out], xs, create_graph=True, allow_unused=True), xs, strict, "hvp")
        dummies = [_zeros_like(x).requires_grad_() for x in xs]
        second = _filled(_grad_of(ds, xs, dummies), xs, strict, "hvp")
        products = _second(second, dummies, vs, create_graph)
    return _packed([out], True, create_graph), _packed(products, single, create_graph)


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """``(output, vector-Hessian product)`` of a scalar ``func``."""
    with enable_grad():
        single, xs = _prepare(inputs, create_graph)
        vs = _vectors(v, xs)
        _, outputs = _call(func, xs)
        out = _scalar(outputs[0], "vhp")
        ds = _filled(grad([out], xs, create_graph=True, allow_unused=True), xs, strict, "vhp")
        products = _filled(_grad_of(ds, xs, vs, create_graph), xs, strict, "vhp")
    return _packed([out], True, create_graph), _packed(products, single, create_graph)


def _grad_of(ds, xs, vs, create_graph=True):
    kept = [(d, v) for d, v in zip(ds, vs) if d.node is not None]
    if not kept:
        return [None] * len(xs)
    return grad([d for d, _ in kept], xs, [v for _, v in kept], create_graph=create_graph, allow_unused=True)


def _second(ds, dummies, vs, create_graph):
    """The derivative by ``dummies`` of ``ds``, which are linear in them, along ``vs``."""
    products = _grad_of(ds, dummies, vs, create_graph)
    return [_zeros_like(z) if p is None else p for p, z in zip(products, dummies)]


def _prepare(inputs, create_graph):
    single = isinstance(inputs, Tensor)
    xs = (inputs,) if single else tuple(inputs)
    for i, x in enumerate(xs):
        if not isinstance(x, Tensor):
            raise TypeError(
                f"The inputs given must be either a Tensor or a tuple of Tensors but the value at index {i} has "
                f"type {type(x)}."
            )
    if create_graph:
        return single, tuple(TABLE["clone"].raw(x) if x.node is not None else x.detach().requires_grad_() for x in xs)
    return single, tuple(x.detach().requires_grad_() for x in xs)


def _call(func, xs):
    outputs = func(*xs)
    one = isinstance(outputs, Tensor)
    outputs = (outputs,) if one else tuple(outputs)
    for i, o in enumerate(outputs):
        if not isinstance(o, Tensor):
            raise TypeError(
                f"The outputs of the user-provided function must be Tensors but the value at index {i} has type "
                f"{type(o)}."
            )
    return one, outputs


def _vectors(v, like):
    """``v`` as a list of tensors shaped as those of ``like``; 1 where it is None and ``like`` one number."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(
                "The vector v can only be None if the user-provided function returns a single Tensor with a "
                "single element."
            )
        return [wrap(xp_of(like[0].array).ones_like(like[0].array))]
    vs = (v,) if isinstance(v, Tensor) else tuple(v)
    if len(vs) != len(like):
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(vs)}.")
    for i, (a, b) in enumerate(zip(vs, like)):
        if a.shape != b.shape:
            raise RuntimeError(f"Entry {i} in v has invalid size: should be {b.shape} but got {a.shape}.")
    return [a.detach() if a.node is None else a for a in vs]


def _scalar(out, name):
    if not isinstance(out, Tensor):
        raise RuntimeError(f"The function given to {name} should return a single Tensor")
    if out.numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {name} should contain a single element")
    return out


def _filled(ds, xs, strict, name):
    if strict and any(d is None for d in ds):
        i = [d is None for d in ds].index(True)
        raise RuntimeError(
            f"Output of the user-provided function is independent of input {i}. This is not allowed in strict "
            f"mode ({name})."
        )
    return [_zeros_like(x) if d is None else d for d, x in zip(ds, xs)]


def _zeros_like(x):
    return wrap(xp_of(x.array).zeros_like(x.array))


def _packed(values, single, create_graph):
    values = [v if create_graph else v.detach() for v in values]
    return values[0] if single else tuple(values)
