"""The map of lines to tests is complete and true."""

import pathlib
import re

import tests.semantics as semantics

TESTS = pathlib.Path(__file__).parents[1]
ROWS = re.findall(r"^ *(\w+)  (\S+)::(\S+)$", semantics.__doc__, re.M)


def test_every_line_has_a_test():
    numbers = {int(line) for line, _, _ in ROWS if line.isdigit()}
    assert numbers == set(range(1, 95))
    assert {line for line, _, _ in ROWS if not line.isdigit()} == {"B", "D", "peers"}


def test_every_test_that_is_named_exists():
    missing = [f"{file}::{name}" for _, file, name in ROWS if f"\ndef {name}(" not in (TESTS / file).read_text()]
    assert not missing


def test_every_test_of_a_line_is_named():
    named = {(file, name) for _, file, name in ROWS}
    for path in sorted(TESTS.glob("semantics/test_[a-i]_*.py")):
        for name in re.findall(r"^def (test_\d+_\w+)\(", path.read_text(), re.M):
            assert (f"semantics/{path.name}", name) in named
