"""Programs that are killed at any moment and go on give the numbers of one that was never stopped, bit for bit."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .common import STEPS, checkpoint, differences, small

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 120


def start(name, options, out, *more):
    """The example in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    arguments = [sys.executable, "-W", "error", "-m", f"cudagrad.examples.{name}", *options, "--out", str(out), *more]
    return subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finished(process):
    """The output of a process that must succeed."""
    output, _ = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, output
    return output


def step_of(out):
    """The step of the checkpoint, -1 where there is none yet; one that is torn would not load."""
    return int(checkpoint(out)["step"]) if (out / "checkpoint.cgt").exists() else -1


def wait_for(step, process, out):
    """Until the checkpoint has come to a step or the process has ended."""
    until = time.monotonic() + DEADLINE_S
    while step_of(out) < step and process.poll() is None and time.monotonic() < until:
        time.sleep(0.005)


@pytest.mark.parametrize("name, every", [("gpt", 1), ("images", 6)])
def test_killed_at_any_moment_and_resumed_it_repeats_every_bit(name, every, tmp_path):
    options = [*small(name, tmp_path), "--every", str(every)]
    whole = start(name, options, tmp_path / "whole")
    seed = random.randrange(2**32)  # another moment each time: it must not matter which
    chance, out = random.Random(seed), tmp_path / "killed"
    for place in (0, 1, 2):
        process = start(name, options, out, "--resume")
        done = step_of(out)
        wait_for(chance.randrange(done + 1, done + 2 + STEPS // 3) if place else -1, process, out)
        time.sleep(chance.uniform(0, 1 if place == 0 else 0.03))
        process.kill()
        process.communicate(timeout=DEADLINE_S)
    output = finished(start(name, options, out, "--resume"))
    finished(whole)
    assert "goes on after step" in output, (seed, output)
    assert len(checkpoint(out)["losses"]) == STEPS
    assert differences(checkpoint(tmp_path / "whole"), checkpoint(out)) == [], seed
    assert sorted(os.listdir(out)) == ["checkpoint.cgt"], seed


def test_ctrl_c_saves_and_ends_with_a_sentence(tmp_path):
    options = small("gpt", tmp_path)
    options[options.index("--steps") + 1] = "1000000"
    process = start("gpt", options, tmp_path / "out", "--every", "3")
    wait_for(3, process, tmp_path / "out")
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=DEADLINE_S)
    step = step_of(tmp_path / "out")
    assert process.returncode == 130, output
    path = tmp_path / "out" / "checkpoint.cgt"
    assert output.endswith(f"stopped after step {step}: the same command with --resume goes on from {path}\n")
    assert "Traceback" not in output and len(checkpoint(tmp_path / "out")["losses"]) == step >= 3
