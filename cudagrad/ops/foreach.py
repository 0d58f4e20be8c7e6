"""One function over every tensor of a list: ``torch._foreach_add`` and its like, which optimizers are written in."""

from ..core.tensor import Tensor
from . import arithmetic, error_function, norms, pointwise, powers, rounding, special
from .extremum import max as largest

_UNARY = ("exp", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh")
_UNARY += ("tanh", "sigmoid", "abs", "sign", "sqrt", "rsqrt", "neg", "reciprocal", "floor", "ceil", "trunc", "round")
_UNARY += ("frac", "erf", "erfc", "lgamma")
_BINARY = ("add", "sub", "mul", "div", "pow", "clamp_min", "clamp_max", "maximum", "minimum")
_COMPOUND = ("addcmul", "addcdiv", "lerp")
_FAMILIES = (arithmetic, powers, pointwise, rounding, error_function, special)


def _function(name):
    return next(vars(family)[name] for family in _FAMILIES if name in vars(family))


def _rows(first, *others):
    """The tensors of ``first``, each with its part of every other argument: of a list one, of anything else all."""
    if not len(first):
        raise RuntimeError("Tensor list must have at least one tensor.")
    columns = [first]
    for values in others:
        if not isinstance(values, (list, tuple)):
            values = [values] * len(first)
        elif len(values) != len(first):
            if isinstance(values[0], Tensor):
                counts = f"got {len(first)} and {len(values)}"
                raise RuntimeError(f"Tensor lists must have the same number of tensors, {counts}")
            raise RuntimeError("Tensor list must have same number of elements as scalar list.")
        columns.append(values)
    return zip(*columns)


def _over(name, function, doc):
    """The function ``name`` over lists: calls ``function`` on each row."""

    def foreach(self, *others, **options):
        if not isinstance(self, (list, tuple)) and others:  # a number to the power of a list
            return tuple(function(self, t, **options) for t in others[0])
        return tuple(function(*row, **options) for row in _rows(self, *others))

    foreach.__name__ = foreach.__qualname__ = name
    foreach.__doc__ = doc
    return foreach


def _in_place(name, method):
    """The in-place function ``name``: calls the Tensor method of each row; the list comes back."""

    def foreach(self, *others, **options):
        for t, *rest in _rows(self, *others):
            getattr(t, method)(*rest, **options)
        return self

    foreach.__name__ = foreach.__qualname__ = name
    foreach.__doc__ = f"``Tensor.{method}`` of each tensor of a list, with its part of the other lists."
    return foreach


def _bounded(function, larger):
    """maximum and minimum also take numbers here."""
    bound = rounding.clamp_min if larger else rounding.clamp_max
    return lambda x, y: function(x, y) if isinstance(y, Tensor) else bound(x, y)


def _scaled(function):
    """addcmul and addcdiv take their factor as the last argument here."""
    return lambda x, a, b, value=1: function(x, a, b, value=value)


def _make():
    made = {}
    for name in (*_UNARY, *_BINARY, *_COMPOUND):
        function = _function(name)
        if name in ("maximum", "minimum"):
            function = _bounded(function, name == "maximum")
        elif name in ("addcmul", "addcdiv"):
            function = _scaled(function)
        doc = f"``{name}`` of each tensor of a list, with its part of the other lists: a tuple."
        made[f"_foreach_{name}"] = _over(f"_foreach_{name}", function, doc)
        if name not in ("maximum", "minimum", "addcmul", "addcdiv"):
            made[f"_foreach_{name}_"] = _in_place(f"_foreach_{name}_", name + "_")
    for name in ("copy_", "zero_"):
        made[f"_foreach_{name}"] = _in_place(f"_foreach_{name}", name)
    return made


def _written(of):
    """The in-place form of a function over lists that Tensor has no method for."""

    def foreach(self, *others, **options):
        for t, result in zip(self, of(self, *others, **options)):
            t.copy_(result)
        return self

    foreach.__name__ = foreach.__qualname__ = of.__name__ + "_"
    foreach.__doc__ = of.__doc__.replace(": a tuple.", ", written into it.")
    return foreach


globals().update(_make())
for _name in ("maximum", "minimum", "addcmul", "addcdiv"):
    globals()[f"_foreach_{_name}_"] = _written(globals()[f"_foreach_{_name}"])


def _foreach_norm(self, ord=2, dtype=None):
    """The norm of each tensor of a list: a tuple."""
    return tuple(norms.vector_norm(t, ord, dtype=dtype) for (t,) in _rows(self))


def _foreach_max(self):
    """The largest element of each tensor of a list: a tuple."""
    return tuple(largest(t) for (t,) in _rows(self))


def _foreach_clone(self, memory_format=None):
    """A copy of each tensor of a list: a tuple."""
    return tuple(t.clone(memory_format=memory_format) for (t,) in _rows(self))


__all__ = tuple(name for name in list(globals()) if name.startswith("_foreach_"))
