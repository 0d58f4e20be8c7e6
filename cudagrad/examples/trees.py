"""A Tree-LSTM that says from which module of the standard library a function is: ``python -m cudagrad.examples.trees``.

Every sample is the syntax tree of a function, so every graph is another: as deep as the tree, as wide as its levels.
All names, texts and numbers are left out, since some would give the module away; what is seen is the kinds of the nodes
and how they hang together. A perceptron on the counts of the same kinds is trained beside it, on the same batches: what
the structure adds is the difference.
"""

import ast
import collections
import os
import sysconfig
import zlib

import numpy as np

import cudagrad as cg
from cudagrad import nn
from cudagrad.nn import functional as F
from cudagrad.utils.data import DataLoader

from .training import Problem, Run, command, device_of, endless, files_of, learning_rate, options, positive, rate, read

SMALLEST, LARGEST = 10, 400  # nodes of a function; smaller ones are alike everywhere
FUNCTIONS = ast.FunctionDef, ast.AsyncFunctionDef

Tree = collections.namedtuple("Tree", "kinds roles parents depths")
Forest = collections.namedtuple("Forest", "kinds roles parents levels counts labels")


def kind_of(node):
    """The type of a node; of a constant also its type, of a place that is written to or deleted also that."""
    name = type(node).__name__
    if isinstance(node, ast.Constant):
        return f"{name} {type(node.value).__name__}"
    context = type(getattr(node, "ctx", None)).__name__
    return f"{name} {context}" if context in ("Store", "Del") else name


def tree_of(function):
    """The nodes of a syntax tree, level by level: kind, the field it hangs in, the number of its parent, depth."""
    nodes = [(function, "", 0, 0)]
    for me, (node, _, _, depth) in enumerate(nodes):  # which grows meanwhile
        for field in node._fields:
            value = getattr(node, field, None)
            for child in value if isinstance(value, list) else (value,):
                if isinstance(child, ast.AST) and not isinstance(child, ast.expr_context):
                    nodes.append((child, field, me, depth + 1))
    found, *rest = zip(*nodes)
    return Tree([kind_of(node) for node in found], *rest)


def functions_of(text):
    """The syntax trees of the functions and methods of a source text; an inner function is part of its outer one."""
    try:
        stack = [ast.parse(text)]
    except (SyntaxError, ValueError):  # some files are there to show an error
        return
    while stack:
        node = stack.pop()
        if isinstance(node, FUNCTIONS):
            yield node
        else:
            stack.extend(ast.iter_child_nodes(node))


def samples(count, folder=None):
    """(names of the ``count`` modules with most functions, their trees to learn from, those held out).

    A tree comes with the number of its module. A fifth is held out, by a hash of the tree, so that functions that look
    the same are on the same side.

    Raises      Problem where there is no such folder, or it has fewer modules
    """
    folder = folder or sysconfig.get_paths()["stdlib"]
    if not os.path.isdir(folder):
        raise Problem(f"--data: there is no folder {folder}")
    texts = collections.defaultdict(list)
    for file in files_of(folder, ".py"):
        module = os.path.relpath(file, folder).split(os.sep)[0].removesuffix(".py")
        texts[module].append(read(file))
    sizes = {module: sum(text.count("def ") for text in parts) for module, parts in texts.items()}
    modules = sorted(sizes, key=lambda module: (-sizes[module], module))[:count]
    if len(modules) < count:
        raise Problem(f"--data {folder}: {count} modules are asked for, there are {len(modules)}")
    train, held = [], []
    for label, module in enumerate(modules):
        for function in (f for text in texts[module] for f in functions_of(text)):
            tree = tree_of(function)
            if SMALLEST <= len(tree.kinds) <= LARGEST:
                (held if zlib.crc32(repr(tree).encode()) % 5 == 0 else train).append((tree, label))
    return modules, train, held


class Alphabet:
    """Numbers for the kinds and roles of the trees to learn from; 0 for what they do not have."""

    def __init__(self, trees):
        self.kinds = self._numbers(tree.kinds for tree in trees)
        self.roles = self._numbers(tree.roles for tree in trees)

    @staticmethod
    def _numbers(lists):
        return {name: i for i, name in enumerate(sorted({name for names in lists for name in names}), 1)}

    def encode(self, tree):
        """The tree with int64 arrays in its fields."""
        kinds = [self.kinds.get(k, 0) for k in tree.kinds]
        roles = [self.roles.get(r, 0) for r in tree.roles]
        return Tree(*(np.array(values, np.int64) for values in (kinds, roles, tree.parents, tree.depths)))


def forest_of(pairs, kinds):
    """Trees as one forest whose nodes go level by level: all roots first, then all their children, and so on.

    ``levels`` are the sizes of the levels; ``parents`` says for each node the place of its parent in the level above,
    ``counts`` how often each kind is in each tree.

    Shapes      kinds, roles, parents: int64 [N]; counts: [B, kinds]; labels: int64 [B]
    """
    trees, labels = zip(*pairs)
    sizes = np.array([len(tree.kinds) for tree in trees])
    kind, role, parent, depth = (np.concatenate(values) for values in zip(*trees))
    tree = np.repeat(np.arange(len(trees)), sizes)
    parent += np.repeat(np.cumsum(sizes) - sizes, sizes)
    order = np.argsort(depth, kind="stable")
    levels = np.bincount(depth)
    place = np.empty_like(order)  # of each node in its level
    place[order] = np.arange(len(order)) - np.repeat(np.cumsum(levels) - levels, levels)
    counts = np.bincount(tree * kinds + kind, minlength=len(trees) * kinds).reshape(len(trees), kinds)
    parts = kind[order], role[order], place[parent[order]]
    parts = (cg.from_numpy(part) for part in parts)
    return Forest(*parts, levels.tolist(), cg.from_numpy(counts.astype(np.float32)), cg.tensor(labels))


def to_device(forest, device):
    """The forest with its tensors there."""
    return Forest(*(f.to(device) if isinstance(f, cg.Tensor) else f for f in forest))


class TreeLSTM(nn.Module):
    """The scores of a tree's classes from the state of its root, made from those of its children, and so on down.

    The children of a node are summed, with a forget gate each. One level of all trees of a batch is done at a time,
    from the deepest up: the loop runs as often as the deepest tree of this batch has levels.

    Shapes      forest of B trees -> [B, classes]
    Source      Tai, Socher & Manning 2015, Improved Semantic Representations From Tree-Structured Long Short-Term
                Memory Networks, equations 2 to 8
    """

    def __init__(self, kinds, roles, classes, width=64, dropout=0.2):
        super().__init__()
        self.width = width
        self.kind, self.role = nn.Embedding(kinds, 4 * width), nn.Embedding(roles, 4 * width)  # what W x is in (2-8)
        self.gates, self.forget = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.dropout, self.classify = nn.Dropout(dropout), nn.Linear(width, classes)
        for table in (self.kind, self.role):
            nn.init.normal_(table.weight, std=0.3)
        nn.init.ones_(self.forget.bias)

    def forward(self, forest):
        x = self.dropout(self.kind(forest.kinds) + self.role(forest.roles))  # [N,4D]
        h = c = below = None
        for level, parents in reversed(list(zip(x.split(forest.levels), forest.parents.split(forest.levels)))):
            h, c = self._level(level, h, c, below)
            below = parents
        return self.classify(self.dropout(h))

    def _level(self, x, h, c, parents):
        """The states [N, D] of a level from those [M, D] of the one below it, None where there is none."""
        gates, forget = x.split([3 * self.width, self.width], dim=1)
        children = cells = x.new_zeros(len(x), self.width)
        if h is not None:
            children = children.index_add(0, parents, h)
            cells = cells.index_add(0, parents, c * F.sigmoid(forget[parents] + self.forget(h)))
        i, o, u = (gates + self.gates(children)).chunk(3, dim=1)
        c = F.sigmoid(i) * u.tanh() + cells
        return F.sigmoid(o) * c.tanh(), c


class Bag(nn.Module):
    """The scores of a tree's classes from how often it has each kind of node.

    Shapes      forest of B trees -> [B, classes]
    """

    def __init__(self, kinds, classes, width=128, dropout=0.3):
        super().__init__()
        layers = nn.Linear(kinds, width), nn.ReLU(), nn.Dropout(dropout), nn.Linear(width, classes)
        self.net = nn.Sequential(*layers)

    def forward(self, forest):
        return self.net(forest.counts.log1p())


@cg.no_grad()
def accuracy_of(models, loader, device):
    """For each of the models the share of trees whose module it names."""
    right, total = dict.fromkeys(models, 0), 0
    for forest in loader:
        forest = to_device(forest, device)
        total += len(forest.labels)
        for name, model in models.items():
            right[name] += (model.eval()(forest).argmax(1) == forest.labels).sum().item()
    return {name: count / total for name, count in right.items()}


def main(argv=None):
    """Train both, and return their accuracies on held-out functions, {"tree": ..., "bag": ...}."""
    parser = options("Train a Tree-LSTM on syntax trees.", steps=2000, out="runs/trees")
    parser.add_argument("--data", default=None, help="a folder with Python modules; default: the standard library")
    parser.add_argument("--modules", type=positive, default=16, help="how many: those with most functions")
    parser.add_argument("--width", type=positive, default=64)
    parser.add_argument("--batch", type=positive, default=32)
    parser.add_argument("--lr", type=rate, default=5e-3, help="peak learning rate")
    args = parser.parse_args(argv)
    device = device_of(args.device)

    cg.manual_seed(args.seed)
    modules, train, held = samples(args.modules, args.data)
    if not train or not held:
        parser.error(f"--data: too few functions: {len(train)} to learn from and {len(held)} held out")
    alphabet = Alphabet([tree for tree, _ in train])
    kinds, roles = len(alphabet.kinds) + 1, len(alphabet.roles) + 1
    train, held = ([(alphabet.encode(tree), label) for tree, label in part] for part in (train, held))
    models = nn.ModuleDict(
        {"tree": TreeLSTM(kinds, roles, len(modules), args.width), "bag": Bag(kinds, len(modules))}
    ).to(device)
    optimizer = cg.optim.AdamW(models.parameters(), lr=args.lr, weight_decay=0.01)
    loader = DataLoader(train, args.batch, shuffle=True, collate_fn=lambda pairs: forest_of(pairs, kinds))
    print(f"{len(train):,} functions, {len(held):,} held out, of {', '.join(modules)}; {kinds - 1} kinds of nodes")

    run = Run(args, device, models=models, optimizer=optimizer, loader=loader)
    for step, forest in zip(run, endless(loader)):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, args.steps, args.lr)
        forest = to_device(forest, device)
        losses = {name: F.cross_entropy(model(forest), forest.labels) for name, model in models.items()}
        optimizer.zero_grad()
        sum(losses.values()).backward()
        nn.utils.clip_grad_norm_(models["tree"].parameters(), 5.0)
        optimizer.step()
        run.log(losses["tree"].item(), len(forest.kinds), "nodes", f"bag {losses['bag'].item():.2f}")

    batches = DataLoader(held, 256, collate_fn=lambda pairs: forest_of(pairs, kinds))
    accuracies = accuracy_of(models, batches, device)
    print("held-out accuracy: Tree-LSTM {tree:.1%}, bag of node types {bag:.1%}".format(**accuracies))
    return accuracies


if __name__ == "__main__":
    command(main)
