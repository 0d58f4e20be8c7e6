"""Source lines of code addresses, by the binutils' addr2line where it is installed."""

import os
import shutil
import subprocess

# Helpers that a report looks through, to the line of the kernel that called them.
_SHARED = ("common.cuh", "ptx.cuh", "cuda_emulated.h", "special.h")


def of(library, offsets):
    """``file:line`` of each offset into a library; None where it cannot be told."""
    tool = shutil.which("addr2line")
    if tool is None or not offsets:
        return [None] * len(offsets)
    before = (hex(max(o - 1, 0)) for o in offsets)  # a return address is one past its call
    asked = [tool, "-a", "-i", "-e", str(library), *before]
    told = subprocess.run(asked, capture_output=True, text=True).stdout.splitlines()
    frames = []
    for line in told:
        if line.startswith("0x"):
            frames.append([])
        elif not line.startswith("??"):
            frames[-1].append(line.split(" (discriminator")[0])
    return [_named(chain) for chain in frames]


def _named(chain):
    """The innermost line of the kernel itself; of a helper where there is no other."""
    if not chain:
        return None
    lines = [os.path.basename(frame) for frame in chain]
    return next((line for line in lines if not line.startswith(_SHARED)), lines[0])
