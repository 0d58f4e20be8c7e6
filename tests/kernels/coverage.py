"""``python -m tests.kernels.coverage``: which lines of kernels/ the tests run; exit status 1 below 95 %.

The kernels are built with --coverage into a cache of their own, the tests of kernels run, and gcov's counts of all
variants are added up.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "kernels"
LEAST = 95.0
# Stands for the compiler: keeps the notes that gcov needs, which lie beside an object file in a folder of short life.
WRAPPER = """#!/bin/sh
{compiler} --coverage "$@" || exit 1
while [ $# -gt 0 ]; do
  case "$1" in -o) made=$2;; esac
  shift
done
notes="${{made%.o}}.gcno"
if [ -f "$notes" ]; then mkdir -p "{kept}$(dirname "$made")" && cp "$notes" "{kept}$notes"; fi
"""
# The tests of values; the emulated device's own, and the checker's, need other builds.
FAMILIES = ("rows", "losses", "dropout", "residual", "linear", "elementwise", "training")
TESTS = (*(f"tests/kernels/test_{family}.py" for family in FAMILIES), "-k", "not check and not nvrtc")


def counts(folder, tests):
    """{(file of kernels/, line): times run} over every build of the tests."""
    kept, cache, wrapper = folder / "notes", folder / "cache", folder / "compiler"
    wrapper.write_text(WRAPPER.format(compiler=os.environ.get("CXX", "g++"), kept=kept))
    wrapper.chmod(0o755)
    environment = {**os.environ, "CXX": str(wrapper), "CXXFLAGS": "-O1", "CUDAGRAD_CACHE": str(cache)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-x", *tests]
    done = subprocess.run(command, cwd=ROOT, env=environment)
    if done.returncode:
        sys.exit(done.returncode)
    found = defaultdict(int)
    for data in cache.rglob("*.gcda"):
        note = Path(f"{kept}{data.with_suffix('.gcno')}")
        if not note.exists():
            continue
        data.with_suffix(".gcno").write_bytes(note.read_bytes())
        told = subprocess.run(["gcov", "--json-format", "--stdout", data.name], cwd=data.parent, capture_output=True)
        for line in told.stdout.splitlines():
            for file in json.loads(line)["files"]:
                _add(found, file)
    return found


def _add(found, file):
    path = KERNELS / Path(file["file"]).name
    if path.is_file():
        for line in file["lines"]:
            found[path.name, line["line_number"]] += line["count"]


def main(tests=TESTS):
    with tempfile.TemporaryDirectory() as folder:
        found = counts(Path(folder), tests)
    if not found:
        sys.exit("no line of kernels/ was counted")
    missed = defaultdict(list)
    for (name, line), count in sorted(found.items()):
        if not count:
            missed[name].append(line)
    for name in sorted({name for name, _ in found}):
        lines = sum(n == name for n, _ in found)
        left = f"  not run: {', '.join(map(str, missed[name]))}" if missed[name] else ""
        print(f"{name:24s} {100 * (1 - len(missed[name]) / lines):6.1f} % of {lines}{left}")
    share = 100 * sum(count > 0 for count in found.values()) / len(found)
    print(f"kernels/ {share:.1f} % of {len(found)} lines; at least {LEAST} % is asked")
    return share < LEAST


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or TESTS))
