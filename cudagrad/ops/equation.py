"""Reading einsum's arguments: the equation's letters, or lists of numbers, as labels a operand."""

import string

from ..core.tensor import Tensor

LETTERS = string.ascii_uppercase + string.ascii_lowercase  # 0 to 51 of the list form; also the order of an output


def parse(args):
    """Labels of each operand, of the output, and the operands; ellipsis axes are labelled by negative numbers."""
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its "
            "subscripts list"
        )
    if isinstance(args[0], str):
        equation, operands = args[0], args[1:]
    else:
        equation, operands = _spelt(args), args[: len(args) - len(args) % 2 : 2]
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    for n, t in enumerate(operands):
        if not isinstance(t, Tensor):
            raise TypeError(f"expected Tensor as element {n} in argument 1, but got {type(t).__name__}")
    return _labelled(equation, operands)


def _spelt(args):
    """The equation of the form (operand, list, operand, list, ..., [output list])."""
    lists = list(args[1::2])
    parts = [_spell(v) for v in lists]
    if len(args) % 2:
        return ",".join(parts) + "->" + _spell(args[-1])
    return ",".join(parts)


def _spell(subscripts):
    spelt = ""
    for s in subscripts:
        if s is Ellipsis:
            spelt += "..."
        elif 0 <= s < len(LETTERS):
            spelt += LETTERS[s]
        else:
            raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
    return spelt


def _labelled(equation, operands):
    left, arrow, right = equation.partition("->")
    terms = _read_terms(left, len(operands))
    output = _read(right, "output", len(left) + 2) if arrow else None
    widest = _widest(terms, operands)
    inputs = [_filled(term, t, n) for n, (term, t) in enumerate(zip(terms, operands))]
    axes = list(range(-widest, 0))
    return inputs, _output(terms, output, axes), list(operands)


def _read_terms(left, count):
    terms, start = [], 0
    for n, part in enumerate(left.split(",")):
        if n >= count:
            raise RuntimeError("einsum(): fewer operands were provided than specified in the equation")
        terms.append(_read(part, f"operand {n}", start))
        start += len(part) + 1
    if len(terms) < count:
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")
    return terms


def _read(part, whose, start):
    """The letters of one term, ``...`` as one item."""
    items, i = [], 0
    while i < len(part):
        c = part[i]
        if c == ".":
            _check_dots(part, i, whose, "..." in items)
            items.append("...")
            i += 3
            continue
        if c in LETTERS:
            items.append(c)
        elif c != " ":
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {start + i} in the equation string, subscripts must be "
                "in [a-zA-Z]"
            )
        i += 1
    return items


def _check_dots(part, i, whose, seen):
    if seen:
        found = "for which an ellipsis was already found"
        if whose == "output":
            found = "but an ellipsis (...) was already found"
        raise RuntimeError(f"einsum(): found '.' for {whose} {found}")
    if part[i : i + 3] != "...":
        of = "any ellipsis (...)" if whose == "output" else "any ellipsis"
        raise RuntimeError(f"einsum(): found '.' for {whose} that is not part of {of}")


def _widest(terms, operands):
    """The number of axes that the ellipses stand for: the most that any operand leaves."""
    return max((t.ndim - (len(term) - 1) for term, t in zip(terms, operands) if "..." in term), default=0)


def _filled(term, t, n):
    """The labels of one operand's axes, its ellipsis as negative numbers counted from the right."""
    letters = len(term) - ("..." in term)
    if letters > t.ndim or (letters < t.ndim and "..." not in term):
        tail = "" if "..." in term else " and no ellipsis was given"
        more = " is more than the number of dimensions" if "..." in term else " does not match the number of dimensions"
        raise RuntimeError(
            f"einsum(): the number of subscripts in the equation ({letters}){more} ({t.ndim}) for operand {n}{tail}"
        )
    axes = list(range(letters - t.ndim, 0))
    return [v for item in term for v in (axes if item == "..." else [item])]


def _output(terms, output, axes):
    if output is None:
        letters = [c for term in terms for c in term if c != "..."]
        return axes + [c for c in LETTERS if letters.count(c) == 1]
    seen = {c for term in terms for c in term}
    for c in output:
        if c != "..." and output.count(c) > 1:
            raise RuntimeError(f"einsum(): output subscript {c} appears more than once in the output")
        if c != "..." and c not in seen:
            raise RuntimeError(f"einsum(): output subscript {c} does not appear in the equation for any input operand")
    return [v for item in output for v in (axes if item == "..." else [item])]
