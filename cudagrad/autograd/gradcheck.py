"""Derivatives checked against central differences."""

import warnings

import numpy as np

from ..core.backward import grad
from ..core.modes import no_grad
from ..core.tensor import Tensor, wrap


class GradcheckError(RuntimeError):
    """The derivative on the tape and the one that differences see do not agree."""


def gradcheck(
    func,
    inputs,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    raise_exception=True,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_batched_forward_grad=False,
    check_forward_ad=False,
    check_backward_ad=True,
    fast_mode=False,
    masked=None,
):
    """Whether the gradients of ``func`` by its floating inputs agree with central differences of step ``eps``.

    ``fast_mode``: along one random direction instead of by every element. ``nondet_tol``: how far two backwards may
    differ.

    Raises      GradcheckError where they do not and ``raise_exception``; ValueError where no input wants a gradient
    Differs     forward mode and batched gradients are not part of this engine; asking for them is a ValueError
    """
    if check_forward_ad or check_batched_forward_grad:
        raise ValueError("gradcheck: forward-mode AD is not supported; need check_forward_ad=False")
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    try:
        _check(func, inputs, eps, atol, rtol, nondet_tol, check_undefined_grad, check_grad_dtypes, fast_mode)
        if check_batched_grad:
            _check_batched(func, inputs)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func,
    inputs,
    grad_outputs=None,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    gen_non_contig_grad_outputs=False,
    raise_exception=True,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_fwd_over_rev=False,
    check_rev_over_rev=True,
    fast_mode=False,
    masked=False,
):
    """``gradcheck`` of the gradients of ``func``, as functions of its inputs and ``grad_outputs`` (random if None)."""
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    with no_grad():
        outputs = _floating(func(*inputs))
    if grad_outputs is None:
        rng = np.random.default_rng(0)
        grad_outputs = [_random_like(o, rng, gen_non_contig_grad_outputs) for o in outputs]
    elif isinstance(grad_outputs, Tensor):
        grad_outputs = [grad_outputs]
    count = len(grad_outputs)

    def first_derivative(*args):
        given, gs = args[:-count], args[-count:]
        wanted = [t for t in given if isinstance(t, Tensor) and t.requires_grad]
        pairs = [(o, g) for o, g in zip(_floating(func(*given)), gs) if o.requires_grad]
        ds = grad([o for o, _ in pairs], wanted, [g for _, g in pairs], create_graph=True, allow_unused=True)
        return tuple(d for d in ds if d is not None and d.requires_grad)

    return gradcheck(
        first_derivative,
        (*inputs, *grad_outputs),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        fast_mode=fast_mode,
    )


def _floating(outputs):
    outputs = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
    return tuple(o for o in outputs if isinstance(o, Tensor) and o.dtype.category >= 2)


def _random_like(t, rng, strided):
    shape = (*t.shape, 2) if strided else t.shape
    values = rng.standard_normal(shape)
    if t.is_complex():
        values = values + 1j * rng.standard_normal(shape)
    array = np.asarray(values).astype(t.dtype.numpy)
    return wrap(array[..., 0] if strided else array).to(t.device).requires_grad_()


def _check(func, inputs, eps, atol, rtol, nondet_tol, check_undefined, check_dtypes, fast):
    wanted = [t for t in inputs if isinstance(t, Tensor) and t.requires_grad]
    if not wanted:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of the them have "
            "requires_grad=True."
        )
    for i, t in enumerate(inputs):
        if isinstance(t, Tensor) and t.requires_grad:
            _check_input(i, t)
    outputs = [o for o in _floating(func(*inputs)) if o.requires_grad]
    if not outputs:
        _check_constant(func, inputs, wanted, eps, atol)
        return
    for j, output in enumerate(outputs):
        for i, x in enumerate(wanted):
            _check_pair(func, inputs, wanted, output, i, j, x, eps, atol, rtol, nondet_tol, check_dtypes, fast)
    if check_undefined:
        _check_undefined(outputs, wanted)


def _check_input(i, t):
    if t.dtype.to_real().itemsize != 8:
        warnings.warn(
            f"Input #{i} requires gradient and is not a double precision floating point or complex. This check will "
            "likely fail if all the inputs are not of double precision floating point or complex. ",
            UserWarning,
            stacklevel=5,
        )
    if any(s == 0 and n > 1 for n, s in zip(t.shape, t.stride())):
        raise RuntimeError(
            f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are "
            "non-overlapping to "
            "be able to compute the numerical gradients correctly. You should call .contiguous on the input before "
            "passing it to gradcheck."
        )


def _check_constant(func, inputs, wanted, eps, atol):
    for x in wanted:
        for change in _numerical(func, inputs, x, eps, 0):
            if np.abs(change).max(initial=0) > atol:
                raise GradcheckError("Numerical gradient for function expected to be zero")


def _check_pair(func, inputs, wanted, output, i, j, x, eps, atol, rtol, nondet_tol, check_dtypes, fast):
    rows = _analytical(output, x, check_dtypes, nondet_tol)
    columns = _numerical(func, inputs, x, eps, j)
    if fast:
        rng = np.random.default_rng(i + 31 * j)
        u, v = rng.standard_normal(rows.shape[0]), rng.standard_normal(rows.shape[1])
        rows, columns = (u @ rows @ v).reshape(1, 1), (u @ columns @ v).reshape(1, 1)
    if not np.allclose(rows, columns, rtol, atol, equal_nan=False):
        raise GradcheckError(
            f"Jacobian mismatch for output {j} with respect to input {i},\nnumerical:{columns}\nanalytical:{rows}\n"
        )


def _basis(t):
    """Directions along each real part (and imaginary part) of a tensor's elements: arrays of its shape."""
    for index in np.ndindex(*t.shape):
        for unit in (1, 1j) if t.is_complex() else (1,):
            e = np.zeros(t.shape, t.dtype.numpy)
            e[index] = unit
            yield index, unit, e


def _real_parts(array):
    """A complex array as twice as many real numbers, so that one comparison serves both kinds."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat


def _analytical(output, x, check_dtypes, nondet_tol):
    """The matrix of derivatives of (parts of) outputs, rows, by (parts of) inputs, columns, by backward."""
    rows = []
    for _, _, e in _basis(output):
        g = wrap(e).to(output.device)
        (d,) = grad([output], [x], [g], retain_graph=True, allow_unused=True)
        if nondet_tol >= 0 and d is not None:
            (again,) = grad([output], [x], [g], retain_graph=True, allow_unused=True)
            if np.abs(d.cpu().array - again.cpu().array).max(initial=0) > nondet_tol:
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
                    "gives different values, although analytical gradient matches numerical gradient."
                )
        if d is not None and check_dtypes and d.dtype is not x.dtype:
            raise GradcheckError(f"Backward returned {d.dtype} for an input of {x.dtype}")
        rows.append(_real_parts(np.zeros(x.shape, x.dtype.numpy) if d is None else d.detach().cpu().array))
    width = x.numel() * (2 if x.is_complex() else 1)
    return np.array(rows).reshape(len(rows), width)


def _numerical(func, inputs, x, eps, j):
    """The same matrix by central differences."""
    columns = []
    for index, unit, _ in _basis(x):
        before = x.array[index].copy()
        sides = []
        for step in (eps, -eps):
            x.array[index] = before + unit * step
            sides.append(_real_parts(_floating(func(*inputs))[j].detach().cpu().array).astype(np.float64))
        x.array[index] = before
        columns.append((sides[0] - sides[1]) / (2 * eps))
    return np.array(columns).T.reshape(-1, len(columns)) if columns else np.zeros((0, 0))


def _check_undefined(outputs, wanted):
    """Backward with zero gradients must give zero or undefined gradients, and no error."""
    for o in outputs:
        zeros = wrap(np.zeros(o.shape, o.dtype.numpy)).to(o.device)
        for d in grad([o], wanted, [zeros], retain_graph=True, allow_unused=True):
            if d is not None and bool((d.detach().cpu().array != 0).any()):
                raise GradcheckError("backward not multiplied by grad_output")


def _check_batched(func, inputs):
    wanted = [t for t in inputs if isinstance(t, Tensor) and t.requires_grad]
    rng = np.random.default_rng(1)
    for o in [o for o in _floating(func(*inputs)) if o.requires_grad]:
        rows = [wrap(rng.standard_normal(o.shape).astype(o.dtype.numpy)).to(o.device) for _ in range(2)]
        batch = wrap(np.stack([r.cpu().array for r in rows])).to(o.device)
        batched = grad([o], wanted, [batch], retain_graph=True, allow_unused=True, is_grads_batched=True)
        singles = [grad([o], wanted, [r], retain_graph=True, allow_unused=True) for r in rows]
        for i, d in enumerate(batched):
            if d is not None and not np.allclose(d.cpu().array, np.stack([s[i].cpu().array for s in singles])):
                raise GradcheckError("batched gradients differ from those of the rows")
