"""Small data and options with which each example runs in a second."""

import gzip
import random
import shutil
import sysconfig
from pathlib import Path

import numpy as np

import cudagrad as cg

STEPS = 40


def idx(file, array):
    """Write a uint8 array as a gzipped IDX file."""
    head = np.array([0x800 + array.ndim, *array.shape], ">i4").tobytes()
    with gzip.open(file, "wb") as f:
        f.write(head + array.tobytes())


def pictures(folder, sizes=(150, 60), seed=0):
    """Four files in MNIST's form: noise with a bright bar, whose row (of four) is the label."""
    rng = np.random.default_rng(seed)
    folder.mkdir()
    for name, count in zip(("train", "t10k"), sizes):
        labels = rng.integers(0, 4, count).astype(np.uint8)
        images = rng.integers(0, 100, (count, 8, 8)).astype(np.uint8)
        images[np.arange(count), 2 * labels.astype(int)] = 255
        idx(folder / f"{name}-images-idx3-ubyte.gz", images)
        idx(folder / f"{name}-labels-idx1-ubyte.gz", labels)
    return folder


def text(file, seed=0):
    """A text of random words."""
    rng = random.Random(seed)
    words = ["cart", "pole", "tree", "leaf", "root", "step", "loss"]
    file.write_text(" ".join(rng.choice(words) for _ in range(2000)), encoding="utf-8")
    return file


def modules(folder):
    """Three modules of the standard library."""
    folder.mkdir()
    for name in ("argparse.py", "fractions.py", "textwrap.py"):
        shutil.copy(Path(sysconfig.get_paths()["stdlib"]) / name, folder)
    return folder


def small(name, folder):
    """The options of a small run of an example, its data made in ``folder``."""
    made = {"gpt": (text, "text"), "images": (pictures, "pictures"), "trees": (modules, "modules")}
    data = []
    if name in made:
        make, file = made[name]
        data = ["--data", str(folder / file if (folder / file).exists() else make(folder / file))]
    own = {
        "gpt": "--layers 1 --heads 2 --width 16 --context 8 --batch 4 --sample 8",
        "images": "--channels 4 --batch 16",
        "trees": "--modules 3 --width 8 --batch 8",
        "policy": "--carts 4 --width 8 --trials 3",
    }
    return ["--device", "cpu", "--steps", str(STEPS), *own[name].split(), *data]


def checkpoint(out):
    """What the checkpoint in a folder holds."""
    return cg.load(Path(out) / "checkpoint.cgt")


def differences(a, b, at=""):
    """The places where two checkpoints differ in any bit, but for the options."""
    if isinstance(a, cg.Tensor):
        same = a.dtype == b.dtype and a.shape == b.shape and a.numpy().tobytes() == b.numpy().tobytes()
        return [] if same else [at]
    if isinstance(a, dict):
        keys = [k for k in {**a, **b} if k != "options"]
        return [d for k in keys for d in differences(a.get(k), b.get(k), f"{at}.{k}")]
    if isinstance(a, (list, tuple)) and len(a) == len(b):
        return [d for i, (x, y) in enumerate(zip(a, b)) for d in differences(x, y, f"{at}[{i}]")]
    return [] if a == b else [at]
