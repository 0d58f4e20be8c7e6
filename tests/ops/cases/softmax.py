"""Softmax and its kin."""

import math

import numpy as np

from . import Error, Input, case

RANGE = "Dimension out of range (expected to be in range of [-2, 1], but got 2)"
CALLS = [
    *(Input((3, 4), d) for d in (0, 1, -1)),
    *(Input((), d) for d in (0, -1)),
    *(Input((2, 3, 4), 1), Input((2, 3, 4), 0), Input((2, 3, 4, 5), 2), Input((2, 0), 1), Input((0, 3), 1)),
    *(Input((70, 10), 1), Input((70, 40), 1), Input((30, 600), 1), Input((2, 33, 31), 1), Input((1, 1000), 1)),
]
FAR = np.array([[1.0, -math.inf, 3.0], [1000.0, -1000.0, 999.0], [-5.0, math.nan, 2.0]])
LOST = np.full((2, 3), -math.inf)


def softmax(x, dim, dtype=None):
    if not x.ndim:
        return np.ones_like(x)
    e = np.exp(x - x.max(dim, keepdims=True, initial=-math.inf))
    return e / e.sum(dim, keepdims=True)


def log_softmax(x, dim, dtype=None):
    if not x.ndim:
        return np.zeros_like(x)
    d = x - x.max(dim, keepdims=True, initial=-math.inf)
    return d - np.log(np.exp(d).sum(dim, keepdims=True))


for name, ref in (("softmax", softmax), ("log_softmax", log_softmax)):
    kernel = f"\"{name}_lastdim_kernel_impl\" not implemented for 'Long'"
    for full in (name, "nn.functional." + name, "special." + name):
        case(
            full,
            ref,
            *CALLS,
            Error(IndexError, RANGE, (3, 4), 2),
            Error(NotImplementedError, kernel, np.array([1, 2]), 0),
            Error(TypeError, f"{name}(): argument 'input' (position 1) must be Tensor, not int", 3, 0),
            roundings=8,
        )
    case(name, ref, Input(FAR, 1), Input(LOST, 1), Input(FAR * 3, 0), grad=0, low=False)
    case("Tensor." + name, ref, Input((3, 4), 1), roundings=8)
case("nn.functional.softmin", lambda x, dim: softmax(-x, dim), Input((3, 4), 0), Input((2, 3, 4), 1), roundings=8)
