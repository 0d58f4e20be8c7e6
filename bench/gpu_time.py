"""How long does work take on a device, beside PyTorch and beside a copy: phase E of gpu_check.py."""

import statistics
import time

import numpy as np

import cudagrad
from cudagrad.tools.kernels import DTYPES


def synchronize(device):
    if device == "cuda":
        cudagrad.cuda.synchronize()


def timed(run, device, repeats):
    """Median seconds of ``run``: by events on a GPU, by the clock elsewhere."""
    for _ in range(3):
        run()
    synchronize(device)
    if device != "cuda":
        return statistics.median(_by_clock(run) for _ in range(3))
    pairs = [(cudagrad.cuda.Event(enable_timing=True), cudagrad.cuda.Event(enable_timing=True)) for _ in range(repeats)]
    for first, last in pairs:
        first.record()
        run()
        last.record()
    synchronize(device)
    return statistics.median(first.elapsed_time(last) for first, last in pairs) / 1e3


def _by_clock(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def peer_torch():
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def steps(work, torch, call, size, dtype, device):
    """(forward, forward and backward) of one engine, over input sets that together do not fit into the L2 cache."""
    drawn = np.random.default_rng(0).standard_normal(1 << 20).astype(DTYPES[dtype])
    arrays = [np.resize(drawn, shape) for shape in work.shapes_of(*size)]  # to draw all would take longer than the rest
    total = sum(a.nbytes for a in arrays)
    sets = 1 if device != "cuda" else max(1, -(-(200 << 20) // max(total, 1)))
    sent = [a.view(np.uint16) if dtype == "bfloat16" else a for a in arrays]
    low = getattr(torch, dtype)

    def made():
        for a in sent:
            t = torch.from_numpy(a).to(device)
            yield (t.view(low) if dtype == "bfloat16" else t).requires_grad_()

    leaves = [list(made()) for _ in range(sets)]
    g = torch.ones_like(call(torch, *leaves[0]).detach())
    turn = [0]

    def following():
        turn[0] += 1
        return leaves[turn[0] % sets]

    def forward():
        with torch.no_grad():
            call(torch, *following())

    def both():
        chosen = following()
        for t in chosen:
            t.grad = None
        call(torch, *chosen).backward(g)

    return forward, both


def time_work(report, work, dtype, device, rate, repeats):
    size = work.timed if device == "cuda" else work.checked[3]
    torch = peer_torch() if device == "cuda" else None
    ours = steps(work, cudagrad, work.call, size, dtype, device)
    theirs = steps(work, torch, work.peer or work.call, size, dtype, device) if torch else (None, None)
    first, both = ([timed(f, device, repeats) for f in (mine, mine)] for mine in ours)
    peers = [timed(f, device, repeats) if f else None for f in theirs]
    seconds = {"forward": min(first), "backward": min(both) - min(first)}
    others = {"forward": peers[0], "backward": peers[1] - peers[0] if torch else None}
    elements = np.prod(work.shapes_of(*size)[0]) * np.dtype(DTYPES[dtype]).itemsize
    for i, part in enumerate(("forward", "backward")):
        facts = {"us": round(seconds[part] * 1e6, 2), "spread": round(max(first) / min(first), 3)}
        if others[part]:
            facts["torch_us"], facts["ratio"] = round(others[part] * 1e6, 2), round(seconds[part] / others[part], 3)
        share = work.passes[i] * elements / seconds[part] / rate
        facts["of_copy"] = round(float(share), 3)
        if work.flops:
            facts["TFLOPS"] = round((1 + i) * work.flops(*size) / seconds[part] / 1e12, 2)
        passed = judged((work.forward, work.backward)[i], share, facts.get("ratio")) if device == "cuda" else None
        report.add(
            "E", f"{work.name} {part} {dtype}", passed, target=round((work.forward, work.backward)[i], 3), **facts
        )


def judged(target, share, ratio):
    """Whether a figure meets its target; None where the peer is missing."""
    if target > 0:
        return bool(share >= target)
    return None if ratio is None else bool(ratio <= -target)
