"""An op is one declaration: its forward in `xp` form and its derivatives; the rest is made from them."""

import functools
import types

from ..backend import first_order, implementation, writing
from .modes import SPACE

TABLE = {}  # name -> Op: every op there is

PUBLIC = {"x": "input", "y": "other", "w": "weight", "b": "bias"}  # a formula's short name -> PyTorch's keyword


UNKNOWN = "NotImplemented"  # the node of what has a gradient that nobody, PyTorch included, has written down


def unknown(name):
    """The formula of an op that may stand in a graph, and through which no gradient can come back."""

    def formula(g):
        raise RuntimeError(f"derivative for aten::{name} is not implemented")

    return formula


def SAME(g):
    """The formula of an input that takes the output's gradient unchanged; it costs no call."""
    return g


def op(**declared):
    """Declare an op by its forward ``def name(xp, x, y, *, option=default)``; comes back as the public function.

    Parameters before ``*`` are tensors (``=None``: may be left out; ``*xs``: a list of tensors), those after it
    options. Keywords named as a tensor give the derivative by it, a function that asks by the names of its arguments
    for any of: ``m`` (the table of ops over arrays or over Tensors), ``g``, tensors, ``out``, options, ``needs``, and
    ``x_shape``. The others:

    joint       one formula for all tensors: a tuple (list for ``*xs``), None where ``needs`` says so
    fused       a first-order rule on arrays in place of the formulas; may ask for ``xp`` and for ``extras``
    adds        ``adds(xp, total, g, ...)`` adds the gradient into the array ``total`` of the input's shape
    extras      names of the arrays that forward returns after the output, for ``fused``
    prepare     the public signature; turns its arguments into the forward's, in the forward's order
    promote     tensors that are brought to one dtype first; numbers are allowed for ``numbers`` of them
    mixed       ``mixed(x, y)`` raises where two tensors of different dtypes may not meet
    uniform     the tensors are of one dtype, and the gradient is brought to it first: to NumPy a bfloat16 times a
                Python number is a float32
    broadcast   whether the tensors are broadcast against each other (default: when ``promote`` is given)
    floating    integer tensors become the default floating dtype first
    wide        float16 and bfloat16 are computed in float32 and rounded once
    view        the output shares the input's memory
    inline      the forward on NumPy arrays as an infix expression over the tensors' names, for the hottest ops
    ufunc       the NumPy ufunc that does what the forward does, for writing into the first tensor's own memory
    outputs     the count of outputs of an op that has several (the formula's ``g`` is then a list), or their names,
                by which formulas may ask for one as for ``out``
    holomorphic False where the formula itself conjugates (abs, real): by default the tape does, for complex inputs
    explain     ``explain(error, *arrays, **options)``: the exception to raise for one that the forward raised
    node        PyTorch's name of the node, without Backward0, where it is not the op's name in camel case; UNKNOWN
    """

    def declare(forward):
        return Op(forward, **declared).call

    return declare


_CALL_NAMES = {"d", "t", "out", "lifted", "arrays", "kind"}  # the locals of generated code, which no parameter may hide
_RULE_NAMES = {"k", "g", "heap", "m", "e", "after", "saved", "needs", "s", "nodes", "ds", "like"}


class Op:
    """A declared op: ``forward(xp, arrays, options)``, its formulas, and ``call``, the function of Tensors."""

    def __init__(
        self,
        forward,
        *,
        joint=None,
        fused=None,
        adds=None,
        extras=(),
        prepare=None,
        promote=(),
        numbers=None,
        mixed=None,
        uniform=False,
        broadcast=None,
        floating=False,
        wide=False,
        view=False,
        inline=None,
        ufunc=None,
        outputs=1,
        holomorphic=True,
        explain=None,
        node=None,
        **formulas,
    ):
        code = forward.__code__
        names = code.co_varnames
        count = code.co_argcount
        self.name = forward.__name__
        self.forward, self.prepare, self.inline, self.explain = forward, prepare, inline, explain
        self.ufunc = ufunc
        self.variadic = bool(code.co_flags & 0x04)
        self.options = names[count : count + code.co_kwonlyargcount]
        self.tensors = names[1:count] + ((names[count + len(self.options)],) if self.variadic else ())
        self.optional = self.tensors[len(self.tensors) - len(forward.__defaults__ or ()) :] if not self.variadic else ()
        self.defaults = forward.__kwdefaults__ or {}
        self.promote = tuple(promote)
        self.numbers = self.promote[1:] if numbers is None else tuple(numbers)
        self.mixed, self.uniform = mixed, uniform
        self.broadcast = bool(promote) if broadcast is None else broadcast
        self.floating, self.wide, self.view, self.holomorphic = floating, wide, view, holomorphic
        self.names = outputs if isinstance(outputs, tuple) else ("out",) if outputs == 1 else ()
        self.outputs, self.extras = len(self.names) or outputs, tuple(extras)
        self.formulas, self.joint, self.fused, self.adds = formulas, joint, fused, adds
        self.node_name = (node or "".join(part.capitalize() for part in self.name.split("_"))) + "Backward0"
        if node == UNKNOWN:
            self.node_name = "torch::autograd::NotImplemented"
        self.diff = self.tensors if joint else tuple(t for t in self.tensors if t in formulas)
        self._check()
        self.impl = ByClass(functools.partial(implementation, self))
        self.fused_impl = ByClass(functools.partial(first_order, self, fused))
        self.adds_impl = ByClass(functools.partial(first_order, self, adds))
        self.writes = ByClass(functools.partial(writing, self))
        self.call = self._stub("call", self.name)
        self.raw = self._stub("raw", self.name) if prepare else self.call
        self.bare = self._stub("bare", self.name)
        self.infix = self._stub("infix", self.name)
        self.rule = None
        TABLE[self.name] = self

    def __repr__(self):
        return f"<op {self.name}>"

    def _check(self):
        """Every formula asks only for what the tape can give it; said at import, not in the tenth epoch."""
        named = {*self.tensors, *self.options, *(self.names if self.outputs > 1 else ())}
        taken = (_CALL_NAMES | _RULE_NAMES if self.diff else _CALL_NAMES) & named
        if taken:
            raise TypeError(f"{self.name}: {', '.join(taken)} would hide a name that the generated code uses")
        values = {"m", "g", "needs", *self.names, *self.tensors, *self.options, *(t + "_shape" for t in self.tensors)}
        for name, formula in self.formulas.items():
            if name not in self.tensors:
                raise TypeError(f"{self.name}: {name} is no tensor of this op; it has {', '.join(self.tensors)}")
            self._may_ask(formula, values, f"the derivative by {name}")
        if self.joint:
            self._may_ask(self.joint, values, "the joint derivative")
        for formula, what in ((self.fused, "the fused rule"), (self.adds, "the adding rule")):
            if formula:
                self._may_ask(formula, values | {"xp", "total", *self.extras}, what)

    def _may_ask(self, formula, allowed, what):
        for asked in asks(formula):
            if asked not in allowed:
                raise TypeError(f"{self.name}: {what} asks for {asked}; it may ask for {', '.join(sorted(allowed))}")

    def _stub(self, kind, name):
        """A function that writes and compiles its own text at the first call and is that text from then on."""
        stub = types.FunctionType(_first_call.__code__, SPACE, name)
        stub.__kwdefaults__ = {"_op": self, "_kind": kind}
        stub.__doc__ = self.forward.__doc__
        stub.__module__, stub.__qualname__ = self.forward.__module__, name
        return stub

    def build(self, kind):
        """Put the generated text of ``kind`` ("call", "raw", "bare" or "infix") in the place of its stub."""
        from . import template

        stub = getattr(self, kind)
        made = template.compile_call(self, kind)
        stub.__defaults__ = made.__defaults__
        stub.__kwdefaults__ = {**stub.__kwdefaults__, **(made.__kwdefaults__ or {})}
        stub.__code__ = made.__code__
        return stub

    def source(self):
        """The generated Python text of this op, forward and rule."""
        from . import template

        return template.call_text(self) + "\n\n" + (template.rule_text(self) if self.diff else "")


def _first_call(*args, _op, _kind, **kwargs):
    return _op.build(_kind)(*args, **kwargs)


@functools.cache
def asks(formula):
    """The names of a formula's arguments: what the tape has to hand it."""
    code = formula.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


class ByClass(dict):
    """Array class -> what ``make`` gives for arrays of it; filled when a class is first met."""

    def __init__(self, make):
        self.make = make

    def __missing__(self, array_class):
        made = self[array_class] = self.make(array_class)
        return made
