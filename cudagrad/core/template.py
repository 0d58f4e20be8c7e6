"""The one template: writes the Python text of an op's call and of its first-order rule, as one would by hand."""

import inspect
import linecache
import re

from .modes import SPACE
from .op import PUBLIC, SAME, asks

CONSTANTS = (type(None), bool, int, float, str)


def compile_call(op, kind):
    """The function of Tensors that runs ``op`` and records it; its rule is compiled beside it."""
    if op.diff and op.rule is None:
        op.rule = _compile(op, rule_text(op), f"back_{op.name}", "rule")
        op.rule.op, op.rule.node_name, op.rule.hidden = op, op.node_name, False
    return _compile(op, call_text(op, kind), op.name, kind)


def _compile(op, text, name, kind):
    _provide(op)
    file = f"<cudagrad {kind} {op.name}>"
    SPACE["INSIDE"].add(file)
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    made = {}
    exec(compile(text, file, "exec"), SPACE, made)
    if kind == "rule":
        SPACE[name] = made[name]
    return made[name]


def _provide(op):
    """Put the objects that the text of ``op`` names into the globals of generated code."""
    n = op.name
    SPACE.update({f"op_{n}": op, f"impl_{n}": op.impl, f"prepare_{n}": op.prepare, f"joint_{n}": op.joint})
    SPACE.update({f"fused_{n}": op.fused_impl, f"adds_{n}": op.adds_impl})
    SPACE.update({f"{n}_by_{t}": f for t, f in op.formulas.items()})


def saves(op):
    """What the tape keeps of a call: names of tensors (outputs last), and names of shapes, options and extras."""
    asked = [a for f in _formulas(op) for a in asks(f)]
    tensors = [t for t in (*op.tensors, *op.names) if t in asked]
    attrs = [t + "_shape" for t in op.tensors if t + "_shape" in asked] + [o for o in op.options if o in asked]
    if op.adds and "x_shape" not in attrs:
        attrs.insert(0, op.tensors[0] + "_shape")
    return tensors, attrs + [e for e in op.extras if e in asked]


def _formulas(op):
    return [f for f in (*op.formulas.values(), op.joint, op.fused, op.adds) if f is not None]


# ---- the call


def call_text(op, kind="call"):
    """The text of an op's function: "call" is the public one, "infix" an operator's, "raw" takes the forward's own
    arguments, "bare" is raw unwatched."""
    head, lines = _head(op, kind)
    lines += _arrays(op, kind)
    lines += _compute(op)
    if op.outputs == 1:
        lines += _result(op)
    else:
        lines += _results(op)
    return head + "".join(f"    {line}\n" for line in lines)


def _public(op, t):
    return PUBLIC.get(t, t)


def _default(op, owner, name, value):
    if type(value) in CONSTANTS or value == ():
        return repr(value)
    SPACE[f"default_{owner}_{name}"] = value
    return f"default_{owner}_{name}"


def _head(op, kind):
    """The def line and the lines that bring the arguments into the forward's form."""
    own = [*op.tensors, *op.options]
    takes_out = not op.view and op.outputs == 1 and kind in ("call", "raw")
    lines = []
    if kind in ("call", "infix") and op.prepare:
        signature, forward = _signature(op)
        if takes_out and kind == "call" and "out" not in inspect.signature(op.prepare).parameters:
            signature += ", out=None" if "*" in signature else ", *, out=None"
        unpack = ", ".join(own) + ("," if len(own) == 1 else "")
        first = forward.split(",")[0]
        lines += ["try:", f"    {unpack} = prepare_{op.name}({forward})", "except (AttributeError, TypeError):"]
        lines += [f"    blame(op_{op.name}, {first.lstrip('*')})", "    raise"]
        takes_out = takes_out and "out=" in signature
    else:
        parts = [_public(op, t) + ("=None" if t in op.optional else "") for t in op.tensors]
        star = False
        for o in op.options:
            if o in op.defaults:
                parts.append(f"{o}={_default(op, op.name, o, op.defaults[o])}")
            else:
                if not star and any("=" in p for p in parts):
                    parts.append("*")
                    star = True
                parts.append(o)
        if takes_out:
            parts += (["*"] if not star else []) + ["out=None"]
        signature = ", ".join(parts)
        lines += [f"{t} = {_public(op, t)}" for t in op.tensors if _public(op, t) != t]
    tensors = ", ".join(("*" if op.variadic else "") + t for t in op.tensors)
    tensors = f"[*{op.tensors[0]}]" if op.variadic else f"({tensors}{',' if len(op.tensors) == 1 else ''})"
    options = "{" + ", ".join(f'"{o}": {o}' for o in op.options) + "}"
    if kind != "bare":
        out = ", out" if takes_out else ""
        lines += ["if WATCH is not None:", f"    return WATCH(op_{op.name}, {tensors}, {options}{out})"]
    if takes_out:
        arguments = ", ".join([*op.tensors, *(f"{o}={o}" for o in op.options)])
        given = ", ".join(("*" if op.variadic else "") + t for t in op.tensors)
        lines += ["if out is not None:", f"    return into(out, op_{op.name}, op_{op.name}.raw({arguments}), {given})"]
    return f"def {op.name}({signature}):\n", lines


def _signature(op):
    """The text of prepare's signature, and of the call that hands everything on."""
    parts, forward, star = [], [], False
    for p in inspect.signature(op.prepare).parameters.values():
        default = "" if p.default is p.empty else f"={_default(op, 'prepare_' + op.name, p.name, p.default)}"
        if p.kind is p.VAR_POSITIONAL:
            parts.append(f"*{p.name}")
            forward.append(f"*{p.name}")
            star = True
        elif p.kind is p.KEYWORD_ONLY:
            if not star:
                parts.append("*")
                star = True
            parts.append(p.name + default)
            forward.append(f"{p.name}={p.name}")
        elif p.name != "out":
            parts.append(p.name + default)
            forward.append(p.name)
    return ", ".join(parts), ", ".join(forward)


def _arrays(op, kind):
    """The lines that take the arrays out of the tensors, brought to one dtype where the op wants it."""
    foreign = "return NotImplemented" if kind == "infix" else f"raise not_tensor(op_{op.name}, {', '.join(op.tensors)})"
    if op.variadic:
        return _arrays_of_list(op)
    lines = []
    for t in op.numbers:
        if kind == "infix" and t == op.tensors[0]:
            continue  # an operator's left side is a Tensor
        like = next(p for p in op.promote if p != t)
        lines += [
            f"if {t}.__class__ is not Tensor and {t}.__class__ not in TENSORS:",
            f"    lifted = lift({t}, {like}, op_{op.name})",
            "    if lifted is NotImplemented:",
            f"        {foreign}",
            f"    {t} = lifted",
        ]
    lines += ["try:"]
    for t in op.tensors:
        lines.append(f"    a_{t} = {t}.array" + (f" if {t} is not None else None" if t in op.optional else ""))
    lines += ["except AttributeError:", f"    raise not_tensor(op_{op.name}, {', '.join(op.tensors)}) from None"]
    if len(op.promote) > 1:
        p, q = op.promote
        lines += [
            f"if a_{p}.dtype is not a_{q}.dtype or a_{p}.__class__ is not a_{q}.__class__:",
            f"    {p}, {q} = promote(op_{op.name}, {p}, {q})",
            f"    a_{p}, a_{q} = {p}.array, {q}.array",
        ]
    first = op.promote[0] if op.promote else op.tensors[0]
    for t in op.tensors:
        if t != first and t not in op.promote:
            maybe = f"a_{t} is not None and " if t in op.optional else ""
            lines += [
                f"if {maybe}a_{t}.__class__ is not a_{first}.__class__:",
                f"    raise elsewhere(op_{op.name}, {first}, {t})",
            ]
    if op.floating:
        floats = op.promote or (op.tensors[0],)
        lines += [f"if a_{floats[0]}.dtype not in INEXACT:"]
        lines += [f"    {t} = to_float({t})" for t in floats]
        lines += [f"    a_{t} = {t}.array" for t in floats]
    return lines


def _arrays_of_list(op):
    (xs,) = op.tensors
    lines = ["try:", f"    arrays = [t.array for t in {xs}]"]
    lines += ["except AttributeError:", f"    raise not_tensor(op_{op.name}, *{xs}) from None"]
    lines += ["if mixed(arrays):"]
    if op.promote:
        lines += [f"    {xs} = promote_all(op_{op.name}, {xs})", f"    arrays = [t.array for t in {xs}]"]
    else:
        lines += [f"    raise elsewhere(op_{op.name}, *{xs})"]
    return lines


def _compute(op):
    """The lines that run the forward; what it raises is told in PyTorch's words."""
    first = "arrays[0]" if op.variadic else f"a_{op.tensors[0]}"
    options = "".join(f", {o}={o}" for o in op.options)
    given = "*arrays" if op.variadic else ", ".join(f"a_{t}" for t in op.tensors)
    outputs = ", ".join(["d", *(f"e_{e}" for e in op.extras)])
    if op.inline:
        infix = _rename(op.inline, op.tensors)
        infix = f"({infix})" if " if " in infix else infix
        value = f"{infix} if kind is ndarray else impl_{op.name}[kind]({given}{options})"
    else:
        value = f"impl_{op.name}[{first}.__class__]({given}{options})"
    return [
        *([f"kind = {first}.__class__"] if op.inline else []),
        "try:",
        f"    {outputs} = {value}",
        "except Exception as error:",
        f"    {outputs} = recover(op_{op.name}, error, ({given},), dict({options[2:]}))",
    ]


def _rename(text, tensors):
    return re.sub(r"\b(" + "|".join(tensors) + r")\b", r"a_\1", text)


def _result(op):
    """One output: its tensor, and the node where an input wants a gradient."""
    first = "arrays[0]" if op.variadic else f"a_{op.tensors[0]}"
    kind = "kind" if op.inline else f"{first}.__class__"
    lines = [
        f"if d.__class__ is not {kind}:",
        f"    d = keep(d, {first})",
        "t = blank()",
        "t.array = d",
        "t.version = t.link = None",
    ]
    if op.view:
        lines.append(f"share(t, {op.tensors[0]}, op_{op.name}, ({''.join(o + ', ' for o in op.options)}))")
    if not op.diff:
        return [*lines, "t.node = None", "if RARE:", "    mark(t)", "return t"]
    lines += _nodes(op) + ["    t.node = None", "    if RARE:", "        mark(t)", "    return t"]
    lines += _record(op)
    return [*lines, "t.node = k", "return t"]


def _results(op):
    """Several outputs: a list of tensors, each with a pick node where it is floating."""
    lines = _nodes(op) if op.diff else ["if True:"]
    first = "arrays[0]" if op.variadic else f"a_{op.tensors[0]}"
    lines += [f"    return plain_outputs(d, {first})"]
    if not op.diff:
        return lines
    kept = tuple(i for i, name in enumerate(op.names) if name in saves(op)[0])
    return lines + _record(op) + [f"return picked_outputs(d, {first}, k, {kept})"]


def _nodes(op):
    """The node of every tensor that has a derivative, and the test for whether to record."""
    if op.variadic:
        lines = [f"nodes = [t.node for t in {op.tensors[0]}]"]
        return lines + ["if not (RECORD or MODE.grad) or not any(n is not None for n in nodes):"]
    lines = [f"n_{t} = {t}.node" + (f" if {t} is not None else None" if t in op.optional else "") for t in op.diff]
    none = " and ".join(f"n_{t} is None" for t in op.diff)
    return [*lines, f"if ({none}) or not (RECORD or MODE.grad):"]


def _record(op):
    lines = []
    if op.broadcast and not op.variadic:
        lines += _undo_broadcast(op)
    tensors, attrs = saves(op)
    edges = "tuple(nodes)" if op.variadic else "(" + "".join(f"n_{t}, " for t in op.diff) + ")"
    lines += ["k = Node()", f"k.fn = back_{op.name}", f"k.edges = {edges}"]
    if op.variadic and op.tensors[0] in tensors:
        lines += [f"k.saved = (*{op.tensors[0]},{' d,' if 'out' in tensors else ''})"]
    else:
        lines += [f"k.saved = ({''.join(_kept(op, s) + ', ' for s in tensors)})"]
    if attrs:
        lines += [f"k.attrs = ({''.join(_attr(op, a) + ', ' for a in attrs)})"]
    counted = any(name in tensors for name in op.names) and not op.view
    counters = "k.counter = t.version" if op.outputs == 1 else "k.counter"
    lines += [f"{counters} = [0, 0, None, ()]"] if counted else ["k.counter = None"]
    lines += ["k.g = k.hooks = None", "k.own = False", "k.seq = tick()"]
    lines += [
        "f = frame(1)",
        "c = f.f_code",
        "if c.co_filename in INSIDE:",
        "    f = outside(f)",
        "    c = f.f_code",
        "k.code = c",
        "k.lasti = f.f_lasti",
        "if RARE:",
        f"    rare(op_{op.name}, k, d)",
    ]
    return lines


def _undo_broadcast(op):
    """Adapters on the edges of what was broadcast; operands of one shape, the common case, cost one comparison."""
    first, *others = op.tensors
    differs = [f"(a_{t} is not None and s != a_{t}.shape)" if t in op.optional else f"s != a_{t}.shape" for t in others]
    lines = [f"s = a_{first}.shape", f"if {' or '.join(differs)}:"]
    for t in op.diff:
        lines += [f"    if n_{t} is not None and a_{t}.shape != d.shape:"]
        lines += [f"        n_{t} = sum_to(n_{t}, a_{t}.shape)"]
    return lines


def _kept(op, name):
    """The expression that saves a tensor: itself if one of the formulas that ask for it will run."""
    value = name if name in op.tensors else "d" if op.outputs == 1 else f"d[{op.names.index(name)}]"
    if op.joint or op.fused or len(op.diff) < 2:
        return value
    wanting = [t for t in op.diff if name in asks(op.formulas[t])]
    if len(wanting) == len(op.diff):
        return value
    return f"{value} if {' or '.join(f'n_{t} is not None' for t in wanting)} else None"


def _attr(op, name):
    if name in op.options:
        return name
    if name in op.extras:
        return f"e_{name}"
    return "[a.shape for a in arrays]" if op.variadic else _shape_of(op, name[: -len("_shape")])


def _shape_of(op, t):
    return f"a_{t}.shape" + (f" if a_{t} is not None else None" if t in op.optional else "")


# ---- the first-order rule


def rule_text(op):
    """The text of the rule that runs the formulas on arrays and adds what they give into the inputs' nodes."""
    tensors, attrs = saves(op)
    lines = ["saved = k.saved", "if saved is FREED:", "    raise freed(k)"] if tensors else []
    if tensors and op.variadic and op.tensors[0] in tensors:
        xs = op.tensors[0]
        lines += [f"{xs} = saved[:len(k.edges)]"]
        lines += ["out = saved[-1]"] if "out" in tensors else []
        lines += ["if LASTWRITE[0] < k.seq:", "    check_saved(k)", f"{xs} = [t.array for t in {xs}]"]
    elif tensors:
        lines += [f"{', '.join(tensors)}{',' if len(tensors) == 1 else ''} = saved"]
        lines += ["if LASTWRITE[0] < k.seq:", "    check_saved(k)"]
        lines += [f"{t} = {t}.array if {t} is not None else None" for t in tensors if t not in op.names]
    if attrs:
        lines += [f"{', '.join(attrs)}{',' if len(attrs) == 1 else ''} = k.attrs"]
    lines += _uniform(op, tensors) if op.uniform else []
    lines += [f"m = M[{_class_of(op)}]"] if _first_order_asks(op, "m") else []
    if op.variadic:
        lines += _send_list(op)
    elif op.joint or op.fused:
        lines += _edges(op) + _send_joint(op)
    else:
        lines += _edges(op) + _send_each(op)
    return f"def back_{op.name}(k, g, heap):\n" + "".join(f"    {line}\n" for line in lines)


def _uniform(op, tensors):
    """The lines that bring ``g`` to the dtype of what was saved, of which some may be None."""
    like = "".join(f"{t} if {t} is not None else " for t in tensors[:-1]) + tensors[-1]
    lines = [f"like = {like}"] if len(tensors) > 1 else []
    like = "like" if lines else like
    return [*lines, f"if g.dtype is not {like}.dtype:", f"    g = g.astype({like}.dtype)"]


def _first_order(op):
    if op.adds:
        return [op.adds]
    return [op.fused or op.joint] if op.fused or op.joint else list(op.formulas.values())


def _first_order_asks(op, name):
    return any(name in asks(f) for f in _first_order(op))


def _class_of(op):
    return "g.__class__" if op.outputs == 1 else "class_of_list(g)"


def _rule_of(op):
    """The expression of the function that gives all gradients: the fused rule of the arrays' class, or the joint."""
    return f"fused_{op.name}[{_class_of(op)}]" if op.fused else f"joint_{op.name}"


def _edges(op):
    names = ", ".join(f"n_{t}" for t in op.diff)
    return [f"{names}{',' if len(op.diff) == 1 else ''} = k.edges"]


def _ask(op, formula):
    words = {"xp": "xp_of(g)" if op.outputs == 1 else "xp_of_list(g)"}
    return ", ".join(words.get(a, a) for a in asks(formula))


def _send_each(op):
    lines = ["after = None"]
    for i, t in enumerate(op.diff):
        body = _adding(op, t) if op.adds else _formula(op, t) + _accumulate(t, i)
        lines += body if len(op.diff) == 1 else [f"if n_{t} is not None:"] + ["    " + line for line in body]
    return lines + ["return after"]


def _formula(op, t):
    formula = op.formulas[t]
    return ["d = g"] if formula is SAME else [f"d = {op.name}_by_{t}({_ask(op, formula)})"]


def _accumulate(t, i):
    """Add ``d`` into the gradient of node ``n_t``; the first node touched goes back to the engine, not on the heap."""
    lines = [f"if n_{t}.g is None:", f"    n_{t}.g = d"]
    if i == 0:
        lines += [f"    after = n_{t}"]
    else:
        lines += ["    if after is None:", f"        after = n_{t}", "    else:"]
        lines += [f"        heappush(heap, (n_{t}.seq, n_{t}))"]
    return [*lines, "else:", f"    add_into(n_{t}, d)"]


def _adding(op, t):
    """The gradient goes straight into the input's full-size buffer, so that k slices cost one buffer, not k."""
    return [
        f"e = n_{t}.g",
        f"if e is None or not n_{t}.own:",
        "    if e is None:",
        f"        after = n_{t}",
        f"    n_{t}.g = e = buffer(e, {t}_shape, g)",
        f"    n_{t}.own = True",
        f"adds_{op.name}[g.__class__]({_ask(op, op.adds).replace('total', 'e')})",
    ]


def _send_joint(op):
    formula = op.fused or op.joint
    lines = []
    if "needs" in asks(formula):
        flags = [f"n_{t} is not None" if t in op.diff else "False" for t in op.tensors]
        lines += [f"needs = ({', '.join(flags)},)"]
    lines += [f"ds = {_rule_of(op)}({_ask(op, formula)})", "after = None"]
    for i, t in enumerate(op.diff):
        body, adding = [f"d = ds[{op.tensors.index(t)}]"], _accumulate(t, i)
        if op.outputs > 1:  # an input of outputs that have no gradient has none
            adding = ["if d is not None:"] + ["    " + line for line in adding]
        lines += [f"if n_{t} is not None:"] + ["    " + line for line in body + adding]
    return lines + ["return after"]


def _send_list(op):
    formula = op.fused or op.joint
    lines = ["needs = tuple(n is not None for n in k.edges)"] if "needs" in asks(formula) else []
    return lines + [
        f"for n, d in zip(k.edges, {_rule_of(op)}({_ask(op, formula)})):",
        "    if n is not None:",
        "        send(n, d, heap)",
        "return None",
    ]
