"""Python's operators on tensors: each is the op itself, so that no frame stands between."""

import functools
import importlib

from ..core.op import TABLE
from ..core.promote import lift
from ..core.tensor import Tensor

_NAMES = ("arithmetic", "pointwise", "powers", "comparison", "matmul", "indexing")
_FAMILIES = [importlib.import_module("." + name, __package__) for name in _NAMES]  # ops.matmul is a function by now


def _first(name):
    """The function of a name, from the family that has it; an op's infix form, which leaves strangers to Python."""
    for family in _FAMILIES:
        if name in family.__dict__:
            op = TABLE.get(name)
            return op.infix if op is not None and op.call is family.__dict__[name] else family.__dict__[name]
    raise ImportError(f"no op is called {name}")


def _leaving_strangers(function, numbers=True):
    """``function`` as an operator: what is neither a Tensor nor a number is left to Python and to its own class."""

    @functools.wraps(function)
    def operator(self, other):
        if other.__class__ is not Tensor and not isinstance(other, Tensor):
            if not numbers or lift(other, self, None) is NotImplemented:
                return NotImplemented
        return function(self, other)

    return operator


def _reflected(function):
    """``other (op) self`` for a number on the left, which becomes a tensor first."""

    op = (function.__kwdefaults__ or {}).get("_op")

    def reflected(self, other):
        if not isinstance(other, Tensor):
            other = lift(other, self, op)
            if other is NotImplemented:
                return NotImplemented
        return function(other, self)

    return reflected


PLAIN = {"add": "add", "sub": "sub", "mul": "mul", "truediv": "true_divide", "mod": "remainder"}
PLAIN |= {"floordiv": "floor_divide"}
PLAIN |= {"pow": "pow", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor"}
PLAIN |= {"lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift"}
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
UNARY = {"neg": "neg", "pos": "positive", "abs": "abs", "invert": "invert"}

METHODS = {f"__{python}__": _first(name) for python, name in (PLAIN | UNARY).items()}
METHODS |= {f"__{name}__": _first(name) for name in COMPARISONS}
METHODS |= {f"__r{python}__": _reflected(_first(name)) for python, name in PLAIN.items()}
METHODS["__rdiv__"] = METHODS["__rtruediv__"]  # PyTorch's name of it, from Python 2
METHODS |= {"__pow__": _leaving_strangers(_first("pow")), "__matmul__": _leaving_strangers(_first("matmul"), False)}
IN_PLACE = {python: getattr(Tensor, name + "_") for python, name in PLAIN.items() if name != "matmul"}
METHODS |= {f"__i{python}__": _leaving_strangers(method) for python, method in IN_PLACE.items()}
METHODS |= {"__getitem__": _FAMILIES[-1].getitem, "__setitem__": _FAMILIES[-1].setitem, "__hash__": object.__hash__}
