"""How two engines are timed side by side: each in a process of its own, in turns, on one core, by processor time.

A workload is ``make(torch, numpy) -> step`` written once in PyTorch's names and run with both modules; ``step()`` does
the work and returns a number that both engines must agree on, or None.
"""

import argparse
import csv
import importlib
import json
import os
import platform
import statistics
import subprocess
import sys
import time

ENGINES = ("cudagrad", "torch")
_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_SLOW_BLAS = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")  # settings for old OpenBLAS builds, which slow a current one


def main(workloads, file):
    """Run the command line of a benchmark: compare the engines, or be one of them (``--serve``)."""
    parser = argparse.ArgumentParser(description="Ratios of processor time to a peer's, one core, engines in turns.")
    parser.add_argument("--only", nargs="*", help="names of workloads")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each engine")
    parser.add_argument("--engines", nargs="*", default=ENGINES)
    parser.add_argument("--csv", help="also write the table to this file")
    parser.add_argument("--serve", metavar="ENGINE", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        _serve(args.serve, workloads)
        return
    names = args.only or list(workloads)
    rows = [compare(file, name, args.engines, args.rounds) for name in names]
    if args.csv:
        _write(args.csv, rows)


def compare(file, name, engines, rounds):
    """Time one workload with every engine in turns; prints and returns the row."""
    servers = {engine: _Server(file, engine, name) for engine in engines}
    values = {engine: server.ask("check") for engine, server in servers.items()}
    _agree(name, values)
    times = {engine: [] for engine in engines}
    for turn in range(rounds):
        order = list(engines)[turn % len(engines) :] + list(engines)[: turn % len(engines)]
        for engine in order:
            times[engine].append(servers[engine].ask("time"))
    for server in servers.values():
        server.close()
    medians = {engine: statistics.median(t) for engine, t in times.items()}
    base = medians.get("torch")
    row = {"workload": name, "machine": machine(), **{f"{e}_us": round(m * 1e6, 3) for e, m in medians.items()}}
    if base:
        row["ratio"] = round(medians[engines[0]] / base, 3)
    text = "  ".join(f"{e} {_spoken(m)}" for e, m in medians.items())
    print(f"{name:18s} {text}" + (f"  ratio {row['ratio']:.2f}" if base else ""), flush=True)
    return row


def machine():
    """The processor's name, which every figure is quoted with."""
    try:
        with open("/proc/cpuinfo") as f:
            return next(line.split(":", 1)[1].strip() for line in f if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _spoken(seconds):
    return f"{seconds * 1e6:9.2f} us" if seconds < 1e-3 else f"{seconds * 1e3:9.2f} ms"


def _agree(name, values):
    numbers = [v for v in values.values() if v is not None]
    if numbers and max(numbers) - min(numbers) > 2e-3 * max(1, abs(numbers[0])):
        raise SystemExit(f"{name}: the engines do not compute the same: {values}")


def _write(path, rows):
    names = list(dict.fromkeys(name for row in rows for name in row))
    with open(path, "w", newline="") as f:
        writer = csv.DictWriter(f, names)
        writer.writeheader()
        writer.writerows(rows)


class _Server:
    """An engine in its own process, asked by a line, answering by a line of JSON."""

    def __init__(self, file, engine, workload):
        environment = {k: v for k, v in os.environ.items() if k not in _SLOW_BLAS} | _ENVIRONMENT
        root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        environment["PYTHONPATH"] = os.pathsep.join([root, environment.get("PYTHONPATH", "")])
        command = [sys.executable, file, "--serve", engine, "--only", workload]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(command, env=environment, text=True, **pipes)

    def ask(self, what):
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"{' '.join(self.process.args)} died")
        return json.loads(answer)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def _serve(engine, workloads):
    """Be an engine: time the workload when asked, in blocks long enough for the clock."""
    import numpy

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    torch = importlib.import_module(engine)
    if hasattr(torch, "set_num_threads") and engine == "torch":
        torch.set_num_threads(1)
    args = sys.argv[sys.argv.index("--only") + 1 :]
    step = workloads[args[0]](torch, numpy)
    value = step()
    calls = 1
    while _timed(step, calls) < 0.1:
        calls *= 2
    for line in sys.stdin:
        if line.strip() == "check":
            answer = None if value is None else float(value)
        else:
            answer = min(_timed(step, calls) for _ in range(3)) / calls
        print(json.dumps(answer), flush=True)


def _timed(step, calls):
    start = time.process_time()
    for _ in range(calls):
        step()
    return time.process_time() - start
