"""Dropout where chance has no say: nothing dropped, or all. What is dropped else is tests/ops/test_dropout.py's."""

import numpy as np

from . import Error, Input, case

PROBABILITY = "dropout probability has to be between 0 and 1, but got 1.5"


def zeros(x, **options):
    return x * 0


def same(x, **options):
    return x


for name, shape in (
    *(("dropout", (3, 4)), ("dropout1d", (2, 3, 4)), ("dropout2d", (2, 3, 2, 2)), ("dropout3d", (2, 3, 1, 2, 2))),
    *(("alpha_dropout", (3, 4)), ("feature_alpha_dropout", (2, 3, 4))),
):
    case(
        "nn.functional." + name,
        zeros,
        Input(shape, p=1.0, training=True),
        Error(ValueError, PROBABILITY, shape, p=1.5),
        complex=name == "dropout",
    )
    case("nn.functional." + name, same, Input(shape, p=0.0, training=True), Input(shape, p=0.7, training=False))
case(
    "nn.functional.dropout",
    None,
    Error(
        RuntimeError,
        "result type Float can't be cast to the desired output type Long",
        np.ones(3, int),
    ),
)
case(
    "nn.functional.dropout1d",
    None,
    Error(
        RuntimeError, "dropout1d: Expected 2D or 3D input, but received a 1D input. Note that dropout1d exists", (3,)
    ),
)
case("feature_dropout", zeros, Input((2, 3, 4), p=1.0, train=True))
case(
    "feature_dropout",
    None,
    Error(RuntimeError, "Feature dropout requires at least 2 dimensions in the input", (3,), p=0.5, train=True),
    Error(RuntimeError, PROBABILITY, (3, 4), p=1.5, train=True),
)
