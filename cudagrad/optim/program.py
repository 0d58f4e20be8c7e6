"""A rule of arithmetic, read once and run two ways: on blocks of arrays without temporaries, or recorded on Tensors."""

import functools
import linecache
import operator
import sys
import zlib

import numpy as np

# Functions of one or two arrays, element by element, that write where they are told. What any other returns is kept.
UFUNCS = {"add", "subtract", "multiply", "divide", "negative", "positive", "sqrt", "maximum", "minimum", "abs", "sign"}


class Program:
    """What ``rule`` does to ``count`` arrays of dtype ``work``, as straight calls that write into given arrays.

    ``run(*arrays, *constants, *scratch)`` changes the arrays; ``scratch`` is the count of arrays of their size that it
    needs besides. Run as it is written, ``a * b`` allocates: the C library gives blocks of this size back to the system
    and takes them anew, page by page, which made a step of SGD take twice, of Adam 1.2 times as long.
    """

    def __init__(self, rule, count, work, numbers):
        self._work = work
        self.constants, self._steps = [], []
        self._values = count
        rule(_Functions(self), *(_Value(self, i) for i in range(count)), **numbers)
        self.source, self.run, self.scratch = _compiled(tuple(self._steps), count, len(self.constants))

    def call(self, name, *operands, into=None):
        """Note a call; comes back as the value it makes, or ``into`` where it writes over that one.

        A step is (name, values in, value out); values are the arrays 0, 1, ..., then those made; constants -1, -2, ...
        """
        inputs = tuple([v.held if v.__class__ is _Value else self._constant(v) for v in operands])
        if into is None:
            into = _Value(self, self._values)
            self._values += 1
        self._steps.append((name, inputs, into.held))
        return into

    def _constant(self, number):
        self.constants.append(np.array(number, self._work))  # 0-d: an operand at half the price of a Python number
        return -len(self.constants)


@functools.lru_cache(256)
def _compiled(steps, count, constants):
    """The text of ``run``, the function, and how many scratch arrays it needs."""
    source, scratch = _source(_written_in_place(steps, count), count, constants)
    space, name = dict(np.__dict__), f"<cudagrad optim rule {zlib.crc32(source.encode()):08x}>"
    linecache.cache[name] = len(source), None, source.splitlines(True), name  # tracebacks and debuggers show it
    exec(compile(source, name, "exec"), space)
    return source, space["run"], scratch


def _written_in_place(steps, count):
    """``steps`` without ``x[...] = v`` where v was made just before and for nothing else: v is made in x."""
    kept = []
    for i, (name, inputs, out) in enumerate(steps):
        (made,) = inputs if name == "positive" else (None,)
        if kept and made == kept[-1][2] and made >= count and kept[-1][0] in UFUNCS:
            if not any(made in later for _, later, _ in steps[i + 1 :]):
                kept[-1] = (*kept[-1][:2], out)
                continue
        kept.append((name, inputs, out))
    return kept


def _source(steps, count, constants):
    """The text of ``run``; a scratch array is used again once the value in it is not needed any more."""
    last = {v: i for i, (_, inputs, out) in enumerate(steps) for v in (*inputs, out)}
    arrays, numbers = [f"a{i}" for i in range(count)], [f"c{i}" for i in range(constants)]
    name_of = {**dict(enumerate(arrays)), **{-1 - i: c for i, c in enumerate(numbers)}}
    free, scratch, lines = [], [], []
    for i, (name, inputs, out) in enumerate(steps):
        arguments = ", ".join(name_of[v] for v in inputs)
        # The result may lie over an input: they go element by element.
        done = [name_of[v] for v in inputs if last[v] == i and v != out and name_of[v] in scratch]
        free += dict.fromkeys(done)  # once, where an array is multiplied by itself
        if name not in UFUNCS:
            name_of[out] = f"v{i}"
            lines.append(f"    {name_of[out]} = {name}({arguments})")
            continue
        if out not in name_of and not free:
            scratch.append(f"s{len(scratch)}")
            free.append(scratch[-1])
        if out not in name_of:
            name_of[out] = free.pop()
        lines.append(f"    {name}({arguments}, out={name_of[out]})")
    return "\n".join([f"def run({', '.join([*arrays, *numbers, *scratch])}):", *lines, ""]), len(scratch)


def public(name):
    """The public function of Tensors; looked up when it is used, for the package names it above this floor."""
    return getattr(sys.modules[__package__.partition(".")[0]], name)


class Recorder:
    """Runs a rule on Tensors: out of place, so that nothing that is saved for backward is written to later."""

    def run(self, rule, tensors, numbers):
        """The tensors that ``rule`` makes of ``tensors``, recorded."""
        values = [_Value(self, t) for t in tensors]
        rule(_Functions(self), *values, **numbers)
        return [v.held for v in values]

    def call(self, name, *operands, into=None):
        """Make one call; comes back as a new value, or ``into``, which from now on holds the result."""
        function = _OPERATORS.get(name) or public(name)
        if into is None:
            into = _Value(self, None)
        into.held = function(*[v.held if v.__class__ is _Value else v for v in operands])
        return into


# Python's operators take a number on either side, which the functions of these names do not.
_OPERATORS = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv}
_OPERATORS.update(negative=operator.neg, positive=operator.pos, greater=operator.gt, less=operator.lt)


class _Value:
    """An array of a rule: ``held`` is its number in a program, or the Tensor while it is recorded."""

    __slots__ = ("by", "held")
    __array_ufunc__ = None  # a NumPy scalar on the left leaves the operation to this class

    def __init__(self, by, held):
        self.by, self.held = by, held

    def __neg__(self):
        return self.by.call("negative", self)

    def __setitem__(self, everything, value):
        self.by.call("positive", value, into=self)


def _operator(method, name):
    def forward(self, other):
        return self.by.call(name, self, other)

    def reflected(self, other):
        return self.by.call(name, other, self)

    def in_place(self, other):
        return self.by.call(name, self, other, into=self)

    setattr(_Value, f"__{method}__", forward)
    setattr(_Value, f"__r{method}__", reflected)
    setattr(_Value, f"__i{method}__", in_place)


for _method, _name in {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide"}.items():
    _operator(_method, _name)
for _method, _name in {"gt": "greater", "lt": "less"}.items():
    setattr(_Value, f"__{_method}__", lambda self, other, name=_name: self.by.call(name, self, other))


class _Functions:
    """What ``xp`` is while a rule is read."""

    def __init__(self, by):
        self._by = by

    def __getattr__(self, name):
        return lambda *operands: self._by.call(name, *operands)
