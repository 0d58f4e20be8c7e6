"""Bringing operands together: Python numbers, dtypes and devices, by PyTorch's categories and never by NumPy's."""

import sys

import numpy as np

from .. import dtypes, errors
from ..backend import ARRAYS, array_of_number, device_of, place
from .modes import SPACE
from .op import PUBLIC, TABLE

INEXACT = {d.numpy for d in dtypes.ALL if d.category >= 2}
_NUMBERS = (bool, int, float, complex)
_constants = {}
_FULL = 512  # constants kept for each kind of number, dtype and array class


def lift(value, like, op):
    """The number ``value`` as a 0-d tensor in the dtype it has beside ``like``; kept, so that it is made once."""
    kind = value.__class__
    try:
        array = like.array
    except AttributeError:
        raise not_tensor(op, like) from None
    if kind is bool and op is not None and op.mixed is not None:
        op.mixed(like, SPACE["wrap"](np.asarray(value)))
    if (kind is int or kind is bool) and op is not None and op.floating and array.dtype.kind in "iub":
        return lift(float(value), like, None)  # straight to a float: -2 is no uint8
    key = kind, array.dtype, array.__class__
    kept = _constants.get(key)
    if kept is None:
        if kind not in _NUMBERS:
            return _lift_other(value, like, op)
        kept = _constants[key] = {}
    name = value if value else repr(value)  # 0.0 and -0.0 are equal as keys, and not as operands
    t = kept.get(name)
    if t is None:
        t = _constant(value, like)
        if len(kept) < _FULL:
            kept[name] = t
    return t


def _constant(value, like):
    category, own = dtypes.category_of_number(value), like.dtype
    if own.category >= category:
        d = own
    else:
        d = own.to_complex() if category == 3 and own.category == 2 else dtypes.number_dtype(category)
    t = SPACE["wrap"](array_of_number(value, d, like.array))
    t.version = None  # it is kept for later, also where it was made in inference mode
    return t


def _lift_other(value, like, op):
    """NumPy scalars count as the Python number they hold; anything else is not for us to lift."""
    if isinstance(value, _NUMBERS):
        return lift(next(k for k in _NUMBERS if isinstance(value, k))(value), like, op)
    if isinstance(value, np.generic) and value.dtype.kind in "biufcV":
        return lift(value.item(), like, op)
    return NotImplemented


def not_tensor(op, *given):
    """The TypeError for an argument that should have been a Tensor; the first wrong one is named."""
    for position, (name, value) in enumerate(zip(op.tensors if not op.variadic else given, given)):
        if not hasattr(value, "node") and (value is not None or name not in op.optional):
            function, name, position = _as_given(value) or (op.name, _spoken(op, name), position)
            return wrong_type(function, name, position, value)
    return TypeError(f"{op.name}(): expected Tensor arguments, got {', '.join(type(v).__name__ for v in given)}")


def wrong_type(function, name, position, value):
    """The TypeError for an argument of a public function that should have been a Tensor."""
    kind = type(value)
    what = f"numpy.{kind.__name__}" if kind.__module__ == "numpy" else kind.__name__
    return TypeError(f"{function}(): argument '{name}' (position {position + 1}) must be Tensor, not {what}")


def _spoken(op, name):
    return "tensors" if op.variadic else PUBLIC.get(name, name)


def _as_given(value):
    """The function of ops that the user called with ``value``, the argument's name and place: not an inner op's."""
    found, frame = None, sys._getframe(2)
    while frame is not None and frame.f_code.co_filename in SPACE["INSIDE"]:
        code = frame.f_code
        space = frame.f_globals
        public = space is SPACE or space["__name__"].startswith(_OPS) and code.co_name in space
        if public and not code.co_name.startswith("_"):
            names = code.co_varnames[: code.co_argcount]
            found = next(((code.co_name, n, i) for i, n in enumerate(names) if frame.f_locals.get(n) is value), found)
        frame = frame.f_back
    return found


_OPS = __name__.replace("core.promote", "ops.")


def blame(op, value):
    """After an error in ``prepare``: TypeError where an argument is no tensor (or list of them) though it should be.

    Called by the public function, whose first argument is ``value``.
    """
    if op.variadic and isinstance(value, (list, tuple)):
        if all(hasattr(v, "node") for v in value):
            return
        position, wrong = next((i, v) for i, v in enumerate(value) if not hasattr(v, "node"))
        what = type(wrong).__name__
        raise TypeError(f"expected Tensor as element {position} in argument 0, but got {what}") from None
    if not hasattr(value, "node"):
        raise not_tensor(op, value) from None
    given = sys._getframe(1).f_locals
    for name in op.tensors[1:]:
        wrong = given.get(PUBLIC.get(name, name), value)
        if not hasattr(wrong, "node") and name not in op.optional and name not in op.numbers:
            raise not_tensor(op, *([value] * op.tensors.index(name)), wrong) from None


def elsewhere(op, *tensors):
    """The RuntimeError for operands on different devices."""
    devices = list(dict.fromkeys(str(device_of(t.array)) for t in tensors if t is not None))
    shapes = ", ".join(f"{tuple(t.shape)} on {t.device}" for t in tensors if t is not None)
    return RuntimeError(
        errors.text(
            f"Expected all tensors to be on the same device, but found at least two devices, {' and '.join(devices)}!",
            f"{op.name} got {shapes}; move one with .to(device)",
        )
    )


def result_type_of(tensors):
    """The dtype in which these tensors meet: dimensioned ones first, 0-d ones count only by a higher category."""
    met = None
    for zero in (False, True):
        group = None
        for t in tensors:
            if (t.array.ndim == 0) == zero:
                d = dtypes.of_array(t.array)
                group = d if group is None else dtypes.promote_types(group, d)
        if group is not None:
            if met is None:
                met = group
            elif group.category > met.category:
                met = met.to_complex() if met.category == 2 else group
    return met


def promote(op, x, y):
    """Both operands on one device and in one dtype, by recorded casts."""
    if op.mixed is not None:
        op.mixed(x, y)
    return promote_all(op, (x, y))


def promote_all(op, tensors):
    """All operands on one device and in one dtype, by recorded casts."""
    tensors = together(op, tensors)
    d = result_type_of(tensors).numpy
    if op.floating and d.kind in "iub":
        d = dtypes.get_default_dtype().numpy
    return [t if t.array.dtype is d else cast(t, d) for t in tensors]


def together(op, tensors):
    """All operands on one device: a 0-d one on the CPU follows the others, anything else is an error."""
    first = next((t for t in tensors if t.array.ndim), tensors[0])
    if all(t.array.__class__ is first.array.__class__ for t in tensors):
        return tensors
    home = next((t for t in tensors if t.array.__class__ is not np.ndarray), first)
    if any(t.array.ndim and t.array.__class__ is not home.array.__class__ for t in tensors):
        raise elsewhere(op, *tensors)
    move = TABLE["to_device"].raw
    target = home.device
    return [t if t.device == target else move(t, device=target, source=t.device) for t in tensors]


def cast(t, numpy_dtype):
    """``t`` in another dtype; recorded where a gradient can come back through it."""
    if numpy_dtype in INEXACT:
        if numpy_dtype.kind == "c":
            SPACE["RARE"] = True
        return TABLE["to"].raw(t, dtype=numpy_dtype, source=t.array.dtype)
    return TABLE["to_integer"].raw(t, dtype=numpy_dtype)


def to_float(t):
    """An integer or bool tensor in the default floating dtype."""
    return cast(t, dtypes.get_default_dtype().numpy)


def mixed(arrays):
    """Whether the arrays of a list op differ in dtype or device."""
    first = arrays[0]
    d, c = first.dtype, first.__class__
    return any(a.dtype is not d or a.__class__ is not c for a in arrays)


def keep(d, like):
    """A result that came back as a NumPy scalar, as a 0-d array on ``like``'s device."""
    return d if d.__class__ in ARRAYS else place(d, like)


SPACE.update(
    lift=lift, not_tensor=not_tensor, blame=blame, elsewhere=elsewhere, promote=promote, promote_all=promote_all
)
SPACE.update(to_float=to_float, mixed=mixed, keep=keep, INEXACT=INEXACT, ndarray=np.ndarray)
