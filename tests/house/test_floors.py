"""The order of the house: imports go down only, each name is defined once, and importing it is light."""

import ast
import collections
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "cudagrad"

# Folder or file of the package -> its floor. What is not named here is on floor 4, beside nn.
FLOORS = {"errors": 0, "config": 0, "dtypes": 0, "backend": 1, "core": 2, "ops": 3}
FLOORS |= {"capture": 5, "distributed": 5, "gnn": 5, "export": 6}
FLOORS |= {"serve": 7, "monitor": 7, "tools": 7, "examples": 7}
NAMES_ONLY = {
    "utils",
    "special",
    "cuda",
    "random",
    "backends",
    "func",
    "linalg",
    "autograd",
    "nn",
}  # may be named by others

FILES = sorted(PACKAGE.rglob("*.py"))


def parts_of(path):
    """The dotted name of a file inside the package: ``("ops", "random")``; () for the package itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def imports_of(path, optional=True):
    """Every module that a file imports anywhere, absolute: ``["numpy", "cudagrad.core.op"]``; or those it must have."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    guards = [] if optional else [node for node in ast.walk(tree) if optional_import(node)]
    left_out = {id(n) for guard in guards for n in ast.walk(guard)}
    package = ("cudagrad", *parts_of(path))
    if path.name != "__init__.py":
        package = package[:-1]
    for node in ast.walk(tree):
        if id(node) in left_out:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*base, *((node.module or "").split(".") if node.module else ())))
            if node.module is None or module == "cudagrad":
                yield from (f"{module}.{alias.name}" for alias in node.names)
            else:
                yield module


def optional_import(node):
    """Whether a node is ``try: import ... except ImportError``: what is not there is done without."""
    return isinstance(node, ast.Try) and any("ImportError" in ast.dump(h.type) for h in node.handlers if h.type)


def floor_of(part):
    return FLOORS.get(part, 4)


def test_the_folders_are_those_of_the_floors():
    found = {p.stem if p.suffix == ".py" else p.name for p in PACKAGE.iterdir() if p.name[0] not in "_."}
    assert "ops" in found and "core" in found, found


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_down_only(path):
    """On one floor only inside one's own folder; what a package's __init__ names does not count, nor examples' use."""
    parts = parts_of(path)
    if not parts or parts[0] == "examples":
        return
    mine, wrong = parts[0], []
    for module in imports_of(path, optional=False):
        target = module.split(".")
        if target[0] != "cudagrad" or len(target) < 2 or target[1] == mine:
            continue
        if not (PACKAGE / target[1]).exists() and not (PACKAGE / f"{target[1]}.py").exists():
            wrong.append(f"{module}: the package itself may be imported by nobody inside")
        elif floor_of(target[1]) > floor_of(mine):
            wrong.append(f"{module}: floor {floor_of(target[1])} from floor {floor_of(mine)}")
        elif floor_of(target[1]) == floor_of(mine) and target[1] not in NAMES_ONLY and mine not in NAMES_ONLY:
            wrong.append(f"{module}: another folder of floor {floor_of(mine)}")
    assert not wrong, f"{path.relative_to(ROOT)} imports {'; '.join(wrong)}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_only_the_backend_imports_cupy_and_nobody_pytorch(path):
    for module in imports_of(path):
        top = module.split(".")[0]
        assert top != "torch", f"{path}: {module}"
        assert not top.startswith(("cupy", "nvidia", "cuda")) or top == "cudagrad" or parts_of(path)[0] == "backend", (
            path
        )


def definitions():
    """Name -> the files where ``def name(`` stands at the left margin, in the folders that define public functions."""
    found = collections.defaultdict(list)
    for path in FILES:
        if parts_of(path)[:1] in (("ops",), ("core",)):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                    found[node.name].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    return found


def test_a_public_name_is_defined_once():
    import cudagrad

    public = {n for n in dir(cudagrad) if n[0] != "_"} | {n for n in dir(cudagrad.nn.functional) if n[0] != "_"}
    twice = {name: places for name, places in definitions().items() if len(places) > 1 and name in public}
    assert not twice, twice


LIGHT = """
import sys
import numpy, ml_dtypes
before = set(sys.modules)
import cudagrad
new = set(sys.modules) - before
own = {m for m in new if m.split(".")[0] == "cudagrad"}
print(len(own), len(new - own), *sorted(m for m in sys.modules if "." not in m))
"""


def test_importing_the_package_is_light():
    """Counted in modules, which no busy machine can change: no CuPy, no parts that only some programs use."""
    run = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, cwd=ROOT, check=True)
    own, others, *tops = run.stdout.split()
    heavy = {"cupy", "torch", "scipy", "safetensors", "asyncio", "multiprocessing", "unittest", "http", "concurrent"}
    assert not heavy & set(tops), heavy & set(tops)
    assert int(own) <= 170, f"{own} modules of our own at import"
    assert int(others) <= 40, f"{others} modules of others at import, beyond NumPy's"


def test_the_kernels_are_found():
    from cudagrad.backend.kernels.path import kernels_path

    assert kernels_path() == ROOT / "kernels"


def tree():
    """The text files of the project, by git where there is one."""
    run = subprocess.run(["git", "ls-files", "-z"], capture_output=True, cwd=ROOT)
    if run.returncode == 0 and run.stdout:
        return [ROOT / name for name in run.stdout.decode().split("\0") if name]
    return [
        p for folder in ("cudagrad", "kernels", "tests", "bench") for p in (ROOT / folder).rglob("*") if p.is_file()
    ]


UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
MACHINE = re.compile(r"(^|[^\w.])/(wo" r"rk|ro" r"ot|ho" r"me/\w+|tm" r"p/\w+)/|/opt/whe" r"els")


@pytest.mark.parametrize("what, pattern", [("unfinished work", UNFINISHED), ("a path of one machine", MACHINE)])
def test_the_tree_is_free_of(what, pattern):
    found = []
    for path in tree():
        if (
            path.suffix in (".py", ".cu", ".cuh", ".h", ".md", ".toml", "")
            and path.is_file()
            and path.name != "LICENSE"
        ):
            for number, line in enumerate(path.read_text(encoding="utf-8", errors="ignore").splitlines(), 1):
                if pattern.search(line):
                    found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert not found, f"{what}:\n" + "\n".join(found[:20])
