"""``backward`` and ``grad``: from tensors and options to a run of the engine."""

import functools

from .. import errors
from ..backend import xp_of
from . import engine, graph
from .hooks import of_node
from .inplace import overwrite
from .modes import MODE
from .op import TABLE
from .tensor import wrap
from .turns import Turn


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None):
    """Add the gradients of ``tensors`` into ``.grad`` of the leaves, or only of ``inputs``.

    Raises      RuntimeError for a missing gradient of a non-scalar, or a tensor without graph
    """
    if inputs is not None and not hasattr(inputs, "array") and len(inputs) == 0:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    tensors = _listed(tensors)
    grads = _listed(grad_tensors if grad_tensors is not None else grad_variables, len(tensors))
    roots = _roots(tensors, grads, create_graph)
    retain = create_graph if retain_graph is None else retain_graph
    if inputs is None:
        with Turn() as turn:
            _run(roots, retain, create_graph, turn)
        return
    inputs = _listed(inputs)
    _check_wanted(inputs)
    for t in inputs:
        t.retain_grad()
    _run_to(inputs, [t.node for t in inputs if not t.is_leaf], roots, retain, create_graph)


def zero_grad(tensors, set_to_none):
    """Forget the gradients of ``tensors``, or, where not ``set_to_none``, fill them with zeros, off their graphs."""
    for t in tensors:
        g = t.grad
        if g is None:
            continue
        if set_to_none:
            t.grad = None
            continue
        if g.is_leaf:
            g.requires_grad_(False)
        else:
            g.detach_()
        overwrite(g, 0, "zero_")


def grad(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph=None,
    create_graph=False,
    only_inputs=True,
    allow_unused=None,
    is_grads_batched=False,
    materialize_grads=False,
):
    """The gradients of ``outputs`` by ``inputs``, a tuple of Tensors, without touching any ``.grad``.

    ``is_grads_batched``: ``grad_outputs`` have a leading dimension, and so has each result, one backward a row.

    Raises      RuntimeError where an input was not used and ``allow_unused`` is not set
    """
    outputs, inputs = _listed(outputs), _listed(inputs)
    if not inputs:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if is_grads_batched:
        return _batched(outputs, inputs, _listed(grad_outputs, len(outputs)), retain_graph, create_graph, allow_unused)
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    _check_wanted(inputs)
    roots = _roots(outputs, _listed(grad_outputs, len(outputs)), create_graph)
    retain = create_graph if retain_graph is None else retain_graph
    found = _run_to(inputs, [t.node for t in inputs], roots, retain, create_graph)
    return tuple(
        _result(t, i, found, allow_unused or materialize_grads, materialize_grads, create_graph)
        for i, t in enumerate(inputs)
    )


def _result(t, i, found, allowed, materialize, create_graph):
    g = found.get(t.node)
    if g is not None:
        return _writable(g if g.array.dtype is t.array.dtype else g.to(t.dtype))
    if not allowed:
        raise RuntimeError(
            errors.text(
                f"The differentiated Tensor at index {i} appears to not have been used in the graph. Set "
                "allow_unused=True if this is the desired behavior.",
                f"it is {t.dtype} {tuple(t.shape)}",
            )
        )
    return wrap(xp_of(t.array).zeros_like(t.array)).requires_grad_(create_graph) if materialize else None


def _writable(g):
    """A gradient that was spread over its shape, as a mean's is, in memory of its own: it may be written to."""
    if g.node is None and 0 in g.array.strides and g.array.size > 1:
        return wrap(xp_of(g.array).ascontiguousarray(g.array))
    return g


def _check_wanted(inputs):
    if any(t.node is None for t in inputs):
        raise RuntimeError("One of the differentiated Tensors does not require grad")


def _run_to(inputs, captured, roots, retain, create_graph):
    """Run only what leads to ``inputs``; comes back as the gradients of the nodes ``captured``, by node."""
    found = {}
    with Turn() as turn:
        needed, masked = engine.prune([k for k, _ in roots], [t.node for t in inputs])
        turn.mask(masked)
        turn.capture([_into(found, k) for k in dict.fromkeys(captured)])
        _run([(k, g) for k, g in roots if k in needed], retain, create_graph, turn)
    return found


def _into(found, k):
    """What lets the gradient that reaches node ``k`` go into ``found`` and no further than it must."""
    return of_node(k), functools.partial(found.__setitem__, k), not any(e is not None for e in k.edges or ())


def _run(roots, retain, create_graph, turn):
    if not roots:
        return
    if create_graph or MODE.checker is not None:
        graph.run(roots, retain, create_graph)
    else:
        engine.run([(k, g.array) for k, g in roots], retain, turn.heap)


def _listed(value, count=None):
    if value is None:
        return [None] * (count or 0)
    if hasattr(value, "array"):
        return [value]
    return list(value)


def _roots(tensors, grads, create_graph):
    if len(tensors) != len(grads):
        raise RuntimeError(f"got {len(tensors)} tensors and {len(grads)} gradients")
    roots = []
    for i, (t, g) in enumerate(zip(tensors, grads)):
        if g is None:
            g = _implicit(t)
        else:
            _check_given(t, g, i)
        if t.node is None:
            raise RuntimeError(
                errors.text(
                    f"element {i} of tensors does not require grad and does not have a grad_fn",
                    f"it is {t.dtype} {tuple(t.shape)}; nothing it was made from has requires_grad=True",
                )
            )
        roots.append((t.node, g if create_graph or g.node is None else g.detach()))
    return roots


def _implicit(t):
    if t.node is not None and t.array.size != 1:
        first = "grad can be implicitly created only for scalar outputs"
        raise RuntimeError(errors.text(first, f"got {tuple(t.shape)}; fix: give gradient=, or reduce with .sum()"))
    if t.array.dtype.kind == "c":
        raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {t.dtype}")
    return wrap(xp_of(t.array).ones_like(t.array))


def _check_given(t, g, i):
    if not hasattr(g, "array"):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
    if g.array.shape != t.array.shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{i}] has a shape of {g.shape} and output[{i}] has a shape of {t.shape}."
        )
    if (g.array.dtype.kind == "c") != (t.array.dtype.kind == "c"):
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
            f"grad_output[{i}] has a dtype of {g.dtype} and output[{i}] has a dtype of {t.dtype}."
        )


def _batched(outputs, inputs, grads, retain_graph, create_graph, allow_unused):
    rows = []
    count = grads[0].shape[0]
    for i in range(count):
        last = i == count - 1 and not retain_graph and not create_graph
        row = [None if g is None else g[i] for g in grads]
        rows.append(grad(outputs, inputs, row, not last, create_graph, allow_unused=allow_unused))
    return tuple(None if column[0] is None else _stack(column) for column in zip(*rows))


def _stack(rows):
    return TABLE["cat"].raw([TABLE["unsqueeze"].raw(row, dim=0) for row in rows], dim=0)
