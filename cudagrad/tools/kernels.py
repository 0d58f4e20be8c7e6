"""``python -m cudagrad.tools.kernels``: the table of kernels; with ``--registers`` what each takes of a GPU."""

import argparse
import sys

import ml_dtypes
import numpy as np

from ..backend.kernels import nvrtc
from ..backend.kernels.header import SCALARS, entries
from ..backend.kernels.launch import Unfit, planned
from ..backend.kernels.path import kernels_path

DTYPES = {"float32": np.dtype("f4"), "float16": np.dtype("f2"), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
FORMULA = "y0 = gelu(x0 + x1) + x2"  # an example, for the entry that takes any
PRODUCTS = {f"linear_{part}.cu" for part in ("float", "tensor", "rows", "total", "backward")}
PROCESSORS = 132  # of an H200, for launches that depend on it


def table():
    """Rows (entry, file, launch, bytes, flops, what it does) of every kernel."""
    rows = []
    for path in sorted(kernels_path().glob("*.cu")):
        for e in entries(path.name).values():
            launch = " ".join(e.fields["launch"].split())
            rows.append((e.name, path.name, launch, e.fields["bytes"], e.fields["flops"], e.title))
    return rows


def variant(file, name, dtype, columns, rows=64, processors=PROCESSORS, apart=1, without=()):
    """The ``Plan`` of an entry for ``rows`` rows of ``columns`` elements, ``apart`` apart, that start on 16 bytes.

    ``without``: names of arrays that are null.
    """
    entry = entries(file)[name]
    sums = np.dtype("f8") if dtype == np.dtype("f8") else np.dtype("f4")
    sizes = {"N": rows, "C": columns, "S": apart, "M": rows * columns, "G": rows * apart, "Q": 8, "1": 1, "2": 2}
    if file in PRODUCTS:  # of matrices, with tiles enough for the larger kind of them
        many = 128 * processors
        sizes |= {"Z": 1, "X": 2, "M": 16, "N": many, "P": 16, "Q": columns, "R": columns, "S": many, "D": columns}
    types = {"A": sums, **{c: np.dtype(width) for c, width in SCALARS.items()}}
    given = {p.name: 1 for p in entry.parameters if not p.pointer and p.name not in sizes}
    given |= {name: rows * columns for name in ("n", "units") if name in given}
    given |= {p.name: bytes(SCALARS["Layout"].itemsize) for p in entry.parameters if p.type == "Layout"}
    given |= dict.fromkeys(entry.texts, FORMULA)
    for p in entry.parameters:
        if p.type == "void":
            given[p.name] = np.empty(rows * columns, dtype) if p.name in FORMULA else None
        elif p.pointer and not (p.name in without or "Q" in p.dims and "Q" in entry.where):  # that the letters decide
            given[p.name] = np.empty([sizes[d] for d in p.dims], types.get(p.type, dtype))
    pending = tuple(p.name for p in entry.arrays if not p.nullable and p.name not in given)
    return planned(entry, given, lambda array: 0, processors, pending)


def resources(columns, architectures):
    """Rows (entry, dtype, threads a block, architecture, registers, spilled bytes, shared bytes)."""
    rows = []
    for path in sorted(kernels_path().glob("*.cu")):
        for name in entries(path.name):
            for dtype, numpy_dtype in DTYPES.items():
                try:
                    made = variant(path.name, name, numpy_dtype, columns)
                except Unfit:  # of another dtype
                    continue
                for a in architectures:
                    told = nvrtc.resources(path.name, made.macros, a)[name]
                    threads = int(np.prod(made.block))
                    rows.append((name, dtype, threads, f"sm_{a}", told["registers"], told["spills"], told["shared"]))
    return rows


def printed(head, rows):
    """The lines of a table with columns as wide as they need."""
    rows = [tuple(map(str, row)) for row in (head, *rows)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    return ["  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in rows]


def main(arguments=None):
    """Print the tables; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m cudagrad.tools.kernels", description="The table of CUDA kernels.")
    parser.add_argument("--registers", action="store_true", help="build every kernel with NVRTC and say what it takes")
    parser.add_argument("--columns", type=int, default=4096, help="elements a row in the builds (4096)")
    parser.add_argument("--arch", nargs="*", default=list(nvrtc.ARCHITECTURES), help="architectures: 80 90a ...")
    given = parser.parse_args(arguments)
    print(*printed(("entry", "file", "launch", "bytes", "flops", "what it does"), table()), sep="\n")
    if not given.registers:
        return 0
    head = ("entry", "dtype", "threads", "arch", "registers", "spills", "shared")
    try:
        print("", *printed(head, resources(given.columns, given.arch)), sep="\n")
    except (RuntimeError, Unfit) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
