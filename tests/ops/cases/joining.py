"""Several tensors as one, one tensor several times, and grids."""

import itertools

import numpy as np

from . import Error, Input, case

INT, BOOL = np.array([[1, 2, 3], [4, 5, 6]]), np.array([[True, False, True]])

# ---- one after the other


def cat_ref(tensors, dim=0, axis=None):
    tensors = [t for t in tensors if t.shape != (0,)] or tensors
    return np.concatenate(tensors, dim if axis is None else axis)


def at_least(name):
    return Error(RuntimeError, f"{name} expects a non-empty TensorList", [])


for name in ("cat", "concat", "concatenate"):
    case(
        name,
        cat_ref,
        *(
            Input([(2, 3), (1, 3)]),
            Input([(2, 3), (2, 1), (2, 2)], 1),
            Input([(2, 3), (2, 3)], dim=-1),
            Input([(3,), (0,)]),
        ),
        *(Input([(2, 3), (0,)], 1), Input([(2, 3), (2, 0)], axis=1), Input([(2, 3)])),
        Error(ValueError, "torch.cat(): expected a non-empty list of Tensors", []),
        Error(RuntimeError, "Tensors must have same number of dimensions: got 2 and 1", [(2, 3), (3,)]),
        Error(
            RuntimeError,
            "Sizes of tensors must match except in dimension 0. Expected size 3 but got size 2 for tensor "
            "number 1 in the list.",
            [(2, 3), (2, 2)],
        ),
        Error(RuntimeError, "zero-dimensional tensor (at position 0) cannot be concatenated", [(), ()]),
        Error(
            IndexError, "Dimension out of range (expected to be in range of [-2, 1], but got 5)", [(2, 3), (2, 3)], 5
        ),
        ints=True,
        complex=True,
    )
case(
    "cat", lambda tensors: np.concatenate(tensors), Input([(2, 3), INT]), Input([INT, BOOL, (1, 3)]), Input([INT, BOOL])
)
case("cat", None, Error(TypeError, "expected Tensor as element 1 in argument 0, but got int", [(2,), 1]))
case(
    "stack",
    lambda tensors, dim=0: np.stack(tensors, dim),
    *(Input([(2, 3), (2, 3)]), Input([(2, 3), (2, 3), (2, 3)], 1), Input([(2,), (2,)], dim=-1), Input([(), ()])),
    Error(RuntimeError, "stack expects a non-empty TensorList", []),
    Error(
        RuntimeError,
        "stack expects each tensor to be equal size, but got [1] at entry 0 and [2] at entry 1",
        [(1,), (2,)],
    ),
    Error(IndexError, "Dimension out of range (expected to be in range of [-3, 2], but got 7)", [(2, 3), (2, 3)], 7),
    ints=True,
    complex=True,
)
case("stack", np.stack, Input([(2, 3), INT]), Input([INT, INT > 2]))
for name, ref in (("hstack", np.hstack), ("vstack", np.vstack), ("row_stack", np.vstack), ("dstack", np.dstack)):
    calls = [Input([(2, 3), (2, 3)]), Input([(3,), (3,)]), Input([(), ()]), Input([(2, 3, 4), (2, 3, 4)])]
    case(name, ref, *calls, at_least("vstack" if name == "row_stack" else name), ints=True)
case(
    "column_stack",
    lambda tensors: np.column_stack([t.reshape(1) if t.ndim == 0 else t for t in tensors]),
    *(Input([(3,), (3,)]), Input([(3, 2), (3,)]), Input([(), ()])),
    at_least("column_stack"),
)


def block_diag_ref(*blocks):
    blocks = [np.atleast_2d(b) for b in blocks]
    out = np.zeros((sum(b.shape[0] for b in blocks), sum(b.shape[1] for b in blocks)), np.result_type(*blocks))
    row = column = 0
    for b in blocks:
        out[row : row + b.shape[0], column : column + b.shape[1]] = b
        row, column = row + b.shape[0], column + b.shape[1]
    return out


case(
    "block_diag",
    block_diag_ref,
    *(Input((2, 3), (1, 2)), Input((2,), (), (2, 2)), Input((2, 0), (2, 2))),
    Error(
        RuntimeError, "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input 1 has 3", (2,), (2, 3, 4)
    ),
    complex=True,
)

# ---- grids and choices


def meshgrid_ref(*tensors, indexing):
    return np.meshgrid(*[np.atleast_1d(t) for t in tensors], indexing=indexing)


case(
    "meshgrid",
    meshgrid_ref,
    *(Input((2,), (3,), indexing="ij"), Input((2,), (3,), indexing="xy"), Input((2,), (3,), (4,), indexing="xy")),
    *(Input((2,), (), indexing="ij"), Input((2,), indexing="xy")),
    Error(RuntimeError, "meshgrid expects a non-empty TensorList", indexing="ij"),
    Error(
        RuntimeError,
        'torch.meshgrid: indexing must be one of "xy" or "ij", but received: zz',
        (2,),
        (3,),
        indexing="zz",
    ),
    Error(RuntimeError, "meshgrid expects all tensors to have the same dtype", (2,), np.arange(3), indexing="ij"),
)
case(
    "cartesian_prod",
    lambda *tensors: np.array(list(itertools.product(*tensors))) if len(tensors) > 1 else tensors[0],
    *(Input((2,), (3,)), Input((2,), (1,), (3,)), Input((3,))),
    Error(RuntimeError, "Expect a 1D vector, but got shape [2, 3]", (2, 3)),
)


def combinations_ref(x, r=2, with_replacement=False):
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    return np.array(list(choose(x, r)), x.dtype).reshape(-1, r) if r else np.zeros(0, x.dtype)


case(
    "combinations",
    combinations_ref,
    *(Input((4,)), Input((4,), 3), Input((3,), with_replacement=True), Input((3,), 1), Input((2,), 3)),
    Error(RuntimeError, "Expect a non-negative number, but got -1", (3,), -1),
    Error(RuntimeError, "Expect a 1D vector, but got shape [2, 3]", (2, 3)),
)
case("combinations", combinations_ref, Input((4,), 0), grad=0)

# ---- one tensor several times

case(
    "Tensor.repeat",
    lambda x, *repeats: np.tile(x, repeats),
    *(Input((2, 3), 1, 2), Input((2, 3), 2, 1, 3), Input((), 3), Input((2, 3), 0, 1), Input((2,), 2, 2)),
    Error(RuntimeError, "Number of dimensions of repeat dims can not be smaller than number of dimensions", (2, 3), 2),
    Error(RuntimeError, "Trying to create tensor with negative dimension -2: [-2, 3]", (2, 3), -1, 1),
    ints=True,
    complex=True,
)
case(
    "tile",
    lambda x, dims: np.tile(x, dims),
    Input((2, 3), [2]),
    Input((2, 3), [2, 2, 1]),
    Input((), [2]),
    Input((2,), dims=[3]),
)


def interleaved(x, repeats=None, dim=None, output_size=None):
    if repeats is None:
        return np.repeat(np.arange(x.size), x)
    return np.repeat(x, repeats, dim)


COUNTS = np.array([2, 0, 3])
case(
    "repeat_interleave",
    interleaved,
    *(
        Input((2, 3), 2),
        Input((2, 3), 2, 1),
        Input((2, 3), COUNTS, 1),
        Input((2, 3), repeats=3, dim=0),
        Input((3,), COUNTS),
    ),
    *(Input((2, 3), np.array([2]), 1), Input((2, 3), np.array(2), dim=-1), Input((), 2), Input((2, 3), 0)),
    Input((2, 3), COUNTS, 1, output_size=5),
    Error(
        RuntimeError,
        "repeats must have the same size as input along dim, but got repeats.size(0) = 3 and",
        (2, 2),
        COUNTS,
        1,
    ),
    Error(RuntimeError, "Repeats must be non-negative", (2,), -1),
    Error(RuntimeError, "repeats can not be negative", (2,), np.array([-1, 1])),
    Error(RuntimeError, "repeats must be 0-dim or 1-dim tensor", (2,), np.array([[1, 1]])),
    complex=True,
)
case("repeat_interleave", interleaved, Input(COUNTS), Input(np.array([1, 2], np.int32)), grad=0)
