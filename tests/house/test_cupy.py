"""What the texts ask of the array module ``xp`` is there in the CuPy that is installed, with the keywords they give."""

import ast
import inspect
import re
from pathlib import Path

import numpy as np
import pytest

cupy = pytest.importorskip("cupy", reason="CuPy is not installed")

PACKAGE = Path(__file__).resolve().parents[2] / "cudagrad"
UFUNC = {"out", "dtype", "casting"}  # the keywords of every ufunc of CuPy's; there is no ``where``


def dotted(node):
    """``("xp", "linalg.inv")`` for ``xp.linalg.inv`` and ``self.xp.linalg.inv``; (None, "") for anything else."""
    parts = []
    while isinstance(node, ast.Attribute):
        if node.attr == "xp":
            return "xp", ".".join(reversed(parts))
        parts.append(node.attr)
        node = node.value
    return (node.id, ".".join(reversed(parts))) if isinstance(node, ast.Name) else (None, "")


def asked():
    """(name, where, positional count, keywords) of each use of ``xp``; the last two None where it is no call."""
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = {id(n.func): n for n in ast.walk(tree) if isinstance(n, ast.Call)}
        inner = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
        for node in ast.walk(tree):
            if not isinstance(node, ast.Attribute) or id(node) in inner:
                continue
            root, name = dotted(node)
            if root == "xp" and name:
                call, where = calls.get(id(node)), f"{path.relative_to(PACKAGE.parent)}:{node.lineno}"
                starred = call and (any(isinstance(a, ast.Starred) for a in call.args) or _spread(call))
                plain = call is not None and not starred
                yield name, where, len(call.args) if plain else None, [k.arg for k in call.keywords] if plain else None


def _spread(call):
    return any(k.arg is None for k in call.keywords)


def found(module, name):
    for part in name.split("."):
        module = getattr(module, part)
    return module


def fits(name, function, count, keywords):
    """Why CuPy's ``function`` does not take such a call; None where it does, or where its signature cannot be read."""
    if type(function).__name__ == "ufunc":
        most = function.nin + function.nout
        return None if count <= most and set(keywords) <= UFUNC else f"a ufunc takes {', '.join(sorted(UFUNC))}"
    if isinstance(function, type) or getattr(np, name.split(".")[0], None) is function:
        return None
    try:
        inspect.signature(function).bind(*range(count), **dict.fromkeys(keywords))
    except ValueError:
        told = re.match(r"[\w.]+\((.*)\)", (function.__doc__ or "").strip())
        known = set(re.findall(r"\b(\w+)(?==|,|$)", told[1])) if told else set(keywords)
        return None if set(keywords) <= known else f"it takes {', '.join(sorted(known))}"
    except TypeError as error:
        return str(error)
    return None


def test_every_name_is_there_and_takes_what_it_is_given():
    wrong, names = [], set()
    for name, where, count, keywords in asked():
        names.add(name)
        try:
            function = found(cupy, name)
        except AttributeError as error:
            wrong.append(f"{where}: {error}")
            continue
        why = fits(name, function, count, keywords) if count is not None else None
        if why:
            wrong.append(f"{where}: xp.{name}: {why}")
    assert not wrong, "\n".join(wrong)
    assert len(names) > 100


def test_it_would_notice():
    assert (
        fits("add", cupy.add, 2, ["where"]) and fits("sum", cupy.sum, 1, ["initial"]) and not hasattr(cupy, "errstate")
    )
    assert fits("clip", cupy.clip, 3, ["out"]) is None and fits("add.at", cupy.add.at, 3, []) is None
