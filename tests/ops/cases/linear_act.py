"""A linear map with an activation, by its two definitions one after the other."""

import numpy as np

from . import Error, Input, case
from .activation import gelu, sigmoid

ACTS = {
    "none": lambda z: z,
    "relu": lambda z: np.maximum(z, 0),
    "gelu": gelu,
    "gelu_tanh": lambda z: gelu(z, "tanh"),
    "silu": lambda z: z * sigmoid(z),
}


def linear_act(x, w, b=None, act="none"):
    return ACTS[act](x @ w.T if b is None else x @ w.T + b)


for act in ACTS:
    case(
        "nn.functional.linear_act",
        linear_act,
        *(Input(s, (4, 3), (4,), act=act) for s in ((3,), (2, 3), (5, 2, 3), (0, 3))),
        *(Input((2, 3), (4, 3), act=act), Input((5, 2, 3), (3,), act=act), Input((5, 3), (4, 3), (1,), act=act)),
        Error(RuntimeError, "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x4)", (2, 3), (4, 2), act=act),
        complex=act in ("none", "silu"),
    )
case(
    "nn.functional.linear_act",
    linear_act,
    Error(ValueError, "act is 'tanh'; it may be none, relu, gelu, gelu_tanh, silu", (2, 3), (4, 3), act="tanh"),
)
