"""What README.md shows works: every code block runs, every path it names is there."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = [(kind, textwrap.dedent(text)) for kind, text in re.findall(r"^ *```(\w+)\n(.*?)^ *```", README, re.S | re.M)]
PYTHON = [text for kind, text in BLOCKS if kind == "python"]
SHELL = [text.strip() for kind, text in BLOCKS if kind == "sh"]


def run(arguments, folder):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(arguments, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("text", PYTHON, ids=range(len(PYTHON)))
def test_a_python_block_runs(text, tmp_path):
    if "torch.kernel(" in text and not (shutil.which("g++") or shutil.which("clang++")):
        pytest.skip("without a GPU a kernel is built by g++ or clang++")
    file = tmp_path / "block.py"
    file.write_text(text, encoding="utf-8")
    run([sys.executable, "-W", "error", str(file)], tmp_path)


def test_the_commands_set_up_everything_and_there_are_two():
    assert len(SHELL) == 2
    for command in SHELL:
        venv, install, job = command.split(" && ")
        assert venv == "python3 -m venv .venv" and install.startswith(".venv/bin/pip install -q -e ")
        assert job.startswith(".venv/bin/python -m ")


def test_the_main_job_runs(tmp_path):
    """With the interpreter of the tests and a few small steps in place of some thousands."""
    (job,) = (c.split(" && ")[-1] for c in SHELL if "cudagrad.examples" in c)
    arguments = [sys.executable if a == ".venv/bin/python" else a for a in shlex.split(job)]
    (tmp_path / "text").write_text("a small text to learn from\n" * 200)
    small = "--steps 3 --layers 1 --width 16 --batch 2 --sample 5 --device cpu --data text"
    assert "held-out loss" in run(arguments + small.split(), tmp_path)


def test_the_test_command_is_what_ci_runs():
    (command,) = (c for c in SHELL if "pytest" in c)
    assert command.endswith(".venv/bin/python -m pytest -q")
    assert "README.md" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_every_path_it_names_is_there():
    for name in re.findall(r"`((?:cudagrad|kernels|tests|bench)/[\w/.]*)`", README):
        assert (ROOT / name).exists(), name


def test_ten_lines_are_about_ten():
    assert len([line for line in PYTHON[0].splitlines() if line.strip()]) <= 14
