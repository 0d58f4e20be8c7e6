"""The share of PyTorch's tables that agrees: ``python -m tests.peer.share``; the tests keep its lists exact."""

from . import both, gaps


def shares():
    """Name of a table -> (how many agree, of how many, how many differ in a listed respect, how many are missing)."""
    tables = both.tables()
    labels = {both.label(op) for op in tables.ops}
    modules = {info.name for info in tables.modules}
    optimizers = {info.optim_cls.__name__ for info in tables.optimizers}
    lists = {
        "operators": (labels, gaps.DIFFERS, gaps.missing()),
        "modules": (modules, {}, gaps.MODULES_MISSING),
        "optimizers": (optimizers, gaps.OPTIMIZERS_DIFFER, gaps.OPTIMIZERS_MISSING),
    }
    return {
        name: (len(all_of_it - set(differ) - set(missing)), len(all_of_it), len(differ), len(missing))
        for name, (all_of_it, differ, missing) in lists.items()
    }


def lines():
    """A line a table: ``603 of 699 operators agree; 16 differ in a listed respect, 80 are missing``."""
    return [
        f"{agree} of {total} {name} agree; {differ} differ in a listed respect, {missing} are missing"
        for name, (agree, total, differ, missing) in shares().items()
    ]


if __name__ == "__main__":
    print("\n".join(lines()))
