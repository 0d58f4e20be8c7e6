"""bench/gpu_check.py runs from end to end on the emulated device, and sees what is wrong."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from .common import needs_compiler

pytestmark = needs_compiler

BENCH = Path(__file__).parents[2] / "bench"


def run(folder, *options):
    command = [sys.executable, str(BENCH / "gpu_check.py"), "--emulate", "--out", str(folder), *options]
    done = subprocess.run(command, capture_output=True, text=True)
    rows = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    return done, rows


def test_it_writes_a_line_for_each_item_and_a_table(tmp_path):
    done, rows = run(tmp_path, "--only", "softmax_columns", "--phases", "ACEG")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {row["phase"] for row in rows} == set("ACEG")
    checked = [row for row in rows if row["item"].startswith("softmax_columns") and row["phase"] == "C"]
    assert len(checked) == 33 and all(row["passed"] for row in checked)
    assert f"{len(rows)} items, 0 missed" in done.stdout
    assert "PASS  error" in done.stdout


def test_without_time_every_item_says_that_it_was_left_out(tmp_path):
    done, rows = run(tmp_path, "--only", "softmax", "--phases", "CE", "--budget", "0")
    assert done.returncode == 0 and all(row.get("skipped") for row in rows if row["phase"] in "CE")


@pytest.fixture
def check(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    return pytest.importorskip("gpu_check")


def test_a_wrong_result_and_an_error_are_misses(check, tmp_path):
    def wrong(torch, x):
        return x * (1.001 if x.device.type == "emulated" else 1)

    def broken(torch, x):
        raise RuntimeError("first line\nsecond")

    report = check.Report(tmp_path, 60)
    for call in (wrong, broken):
        item = type(check.WORK[0])("item", call, lambda n, c: [(n, c)])
        check.guarded(report, "C", "item", lambda: check.check(report, item, (3, 5), "float32", "emulated"))
    assert [row["passed"] for row in report.rows] == [False, False]
    assert report.rows[1]["error"] == "RuntimeError: first line"


def test_a_target_is_a_share_of_a_copy_or_a_multiple_of_the_peers_time(check):
    judged = importlib.import_module("gpu_time").judged
    assert judged(0.9, share=0.91, ratio=None) is True and judged(0.9, share=0.89, ratio=None) is False
    assert judged(-1.0, share=0, ratio=0.99) is True and judged(-1.0, share=0, ratio=1.01) is False
    assert judged(-1.0, share=0, ratio=None) is None
