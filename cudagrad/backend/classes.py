"""The targets of losses that are classes."""

import numpy as np


def check_classes(xp, target, classes, ignore_index):
    """IndexError for a class that is not there; on NumPy's memory only, since a look at a GPU's waits for the GPU."""
    if xp is not np:
        return
    target = target.astype(np.int64, copy=False)  # NumPy 2.0 crashes where strided uint8 meets a number beyond it
    wrong = ((target < 0) | (target >= classes)) & (target != ignore_index)
    if wrong.any():
        raise IndexError(f"Target {target[wrong].reshape(-1)[0]} is out of bounds.")
