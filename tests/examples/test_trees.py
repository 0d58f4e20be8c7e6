"""The syntax trees: what is seen of a function, the batches, the network against its equations, and what it learns."""

import ast
import random

import numpy as np
import pytest

import cudagrad as cg
from cudagrad.examples import trees
from cudagrad.examples.training import Problem

SOURCE = """
class A:
    def method(self, x):
        def inner():
            pass
        return x

if True:
    async def other():
        return 1.5
"""


THREE = "def f():\n    return a(1, b)", "def g(x, y):\n    if x:\n        return y.z", "def h(): pass"


def tree(source):
    (function,) = ast.parse(source).body
    return trees.tree_of(function)


def test_functions_are_found_everywhere_and_inner_ones_stay_inside():
    assert sorted(f.name for f in trees.functions_of(SOURCE)) == ["method", "other"]
    assert list(trees.functions_of("def broken(:")) == [] and list(trees.functions_of("a\0b")) == []


def test_a_tree_has_the_kinds_the_roles_and_the_parents_level_by_level():
    kinds = "FunctionDef, arguments, Assign, arg, Attribute Store, UnaryOp, Name, USub, Constant int"
    assert tree("def f(a):\n    a.b = -1") == trees.Tree(
        kinds=kinds.split(", "),
        roles=("", "args", "body", "args", "targets", "value", "value", "op", "operand"),
        parents=(0, 0, 0, 1, 2, 2, 4, 5, 5),
        depths=(0, 1, 1, 2, 2, 2, 3, 3, 3),
    )


def test_names_texts_and_numbers_are_not_seen():
    one = 'def f(self, *, key="a"):\n    """Text."""\n    return self.g(key, 1)[b"x"] + os.path'
    two = 'def g(this, *, name="bc"):\n    """Other."""\n    return this.h(name, 23)[b"yz"] + x.y'
    assert tree(one) == tree(two)
    assert tree(one) != tree(one.replace("1", "1.0")) and tree(one) != tree(one.replace("+", "-"))


def encoded(*sources):
    found = [tree(source) for source in sources]
    alphabet = trees.Alphabet(found)
    return [alphabet.encode(t) for t in found], alphabet


def test_what_was_never_seen_is_0():
    _, alphabet = encoded("def f():\n    return 1")
    kinds = alphabet.encode(tree("def f():\n    return 'a'")).kinds.tolist()
    assert kinds.count(0) == 1 and sorted(alphabet.kinds.values()) == [1, 2, 3, 4]


def test_a_forest_goes_level_by_level_and_loses_nothing():
    many, alphabet = encoded(*THREE)
    kinds = len(alphabet.kinds) + 1
    forest = trees.forest_of(list(zip(many, (2, 0, 1))), kinds)
    assert forest.labels.tolist() == [2, 0, 1] and sum(forest.levels) == len(forest.kinds)
    assert forest.levels == np.bincount(np.concatenate([t.depths for t in many])).tolist()
    assert forest.counts.tolist() == [np.bincount(t.kinds, minlength=kinds).tolist() for t in many]
    above = list(range(3))  # the tree of each node of the level above
    levels = zip(forest.kinds.split(forest.levels), forest.parents.split(forest.levels))
    for depth, (level, parents) in enumerate(levels):
        above = [above[p] for p in parents] if depth else above
        for number, t in enumerate(many):
            mine = [kind for kind, owner in zip(level.tolist(), above) if owner == number]
            assert mine == t.kinds[t.depths == depth].tolist()


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def node_state(model, t, node):
    """h and c of a node and all below it, by equations 2 to 8 in float64, one node at a time."""
    p = {name: value.detach().double().numpy() for name, value in model.named_parameters()}
    width = model.width
    x = p["kind.weight"][t.kinds[node]] + p["role.weight"][t.roles[node]]
    children = [k for k in range(1, len(t.kinds)) if t.parents[k] == node]
    states = [node_state(model, t, k) for k in children]
    total = sum((h for h, _ in states), np.zeros(width))
    i, o, u = np.split(x[: 3 * width] + p["gates.weight"] @ total + p["gates.bias"], 3)
    c = sigmoid(i) * np.tanh(u)
    for h, below in states:
        c = c + sigmoid(x[3 * width :] + p["forget.weight"] @ h + p["forget.bias"]) * below
    return sigmoid(o) * np.tanh(c), c


def test_the_tree_lstm_is_that_of_the_paper():
    cg.manual_seed(0)
    many, alphabet = encoded(*THREE)
    model = trees.TreeLSTM(len(alphabet.kinds) + 1, len(alphabet.roles) + 1, classes=3, width=5).eval()
    scores = model(trees.forest_of([(t, 0) for t in many], len(alphabet.kinds) + 1)).detach().numpy()
    weight, bias = (p.detach().numpy() for p in (model.classify.weight, model.classify.bias))
    for row, t in zip(scores, many):
        np.testing.assert_allclose(row, weight @ node_state(model, t, 0)[0] + bias, rtol=1e-4, atol=1e-5)


def write_modules(folder, count=120, seed=0):
    """Two modules whose functions have the same kinds of nodes, an ``if`` in a ``while`` or the other way round."""
    rng = random.Random(seed)
    for name, outer, inner in (("first", "if a", "while b"), ("second", "while a", "if b")):
        functions = []
        for i in range(count):
            lines = [rng.choice(["a = b", "a()", "a + 1", "a[b]", "'a'"]) for _ in range(4)]
            lines.insert(rng.randrange(5), f"{outer}:\n        {inner}:\n            c")
            functions.append(f"def f{i}():\n    " + "\n    ".join(lines) + "\n")
        (folder / f"{name}.py").write_text("\n".join(functions), encoding="utf-8")


def test_functions_that_look_the_same_are_on_the_same_side(tmp_path):
    write_modules(tmp_path)
    names, train, held = trees.samples(2, str(tmp_path))
    assert names == ["first", "second"] and len(train) + len(held) == 240
    assert not {repr(t) for t, _ in train} & {repr(t) for t, _ in held}


def test_small_and_huge_functions_are_left_out(tmp_path):
    (tmp_path / "a.py").write_text("def f(): pass\ndef g():\n" + "    a()\n" * 200 + "def h():\n" + "    a\n" * 9)
    _, train, held = trees.samples(1, str(tmp_path))
    assert [len(t.kinds) for t, _ in train + held] == [20]


def test_more_modules_than_there_are_is_a_problem(tmp_path):
    write_modules(tmp_path, count=1)
    with pytest.raises(Problem, match="3 modules are asked for, there are 2"):
        trees.samples(3, str(tmp_path))
    with pytest.raises(Problem, match="there is no folder nowhere"):
        trees.samples(3, "nowhere")


def test_it_sees_what_a_bag_cannot(tmp_path, capsys):
    write_modules(tmp_path)
    small = "--device cpu --modules 2 --steps 80 --width 16 --batch 16 --lr 0.02"
    accuracy = trees.main([*small.split(), "--data", str(tmp_path), "--out", ""])
    assert accuracy["tree"] >= 0.95 and accuracy["bag"] <= 0.7
    assert "held-out accuracy: Tree-LSTM" in capsys.readouterr().out
