"""Rows of tables, bags of rows, and one-hot rows."""

import numpy as np

import cudagrad

from . import Error, Input, case

IDS = np.array([[0, 3, 3], [1, 0, 3]])
FLAT = np.array([2, 0, 0, 4, 1, 2, 2])
OFFSETS = np.array([0, 2, 2, 6])


def taken(index, weight, padding_idx=None):
    return weight[index]


case(
    "nn.functional.embedding",
    taken,
    Input(IDS, (4, 3)),
    Input(IDS.astype(np.int32), (4, 1)),
    Input(np.array(2), (4, 3)),
    Input(np.zeros((0,), int), (4, 3)),
    Input(np.resize(FLAT, (50, 9)), (5, 20)),
    Input(IDS, (4, 3), padding_idx=2),  # not among them
    Error(IndexError, "index out of range in self", np.array([0, 5]), (3, 2)),
    Error(IndexError, "index out of range in self", np.array([0, -1]), (3, 2)),
    Error(
        RuntimeError,
        "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, "
        "Int; but got torch.FloatTensor instead (while checking arguments for embedding)",
        np.array([0.0, 1.0]),
        (3, 2),
    ),
    Error(RuntimeError, "'weight' must be 2-D", np.array([0, 1]), (3,)),
    Error(AssertionError, "Padding_idx must be within num_embeddings", np.array([0, 1]), (3, 2), padding_idx=5),
)


def bags(index, offsets, include_last_offset, padding_idx):
    """The places of the input that belong to each bag."""
    if index.ndim == 2:
        n = index.shape[1]
        found = [np.arange(i * n, (i + 1) * n) for i in range(index.shape[0])]
    else:
        ends = [*offsets[1:], len(index)] if not include_last_offset else offsets[1:]
        found = [np.arange(a, b) for a, b in zip(offsets, ends)]
    flat = index.reshape(-1)
    return flat, [places[flat[places] != padding_idx] if padding_idx is not None else places for places in found]


def bagged(
    index,
    weight,
    offsets=None,
    mode="mean",
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=None,
):
    flat, found = bags(index, offsets, include_last_offset, padding_idx)
    rows = weight[flat]
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.reshape(-1, 1)
    out = np.zeros((len(found), weight.shape[1]), weight.dtype)
    for b, places in enumerate(found):
        if len(places):
            out[b] = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode](rows[places], 0)
    return out


for mode in ("sum", "mean", "max"):
    case(
        "nn.functional.embedding_bag",
        bagged,
        Input(IDS, (4, 3), mode=mode),
        Input(FLAT, (5, 2), offsets=OFFSETS, mode=mode),
        Input(FLAT, (5, 2), offsets=np.array([0, 3, 7]), mode=mode, include_last_offset=True),
        Input(IDS, (4, 3), mode=mode, padding_idx=3),
        Input(np.zeros((0,), int), (4, 3), offsets=np.array([0, 0]), mode=mode),
        roundings=8,
    )
    # The end of the last bag before that of the input: PyTorch's float32 kernel stops there, its float64 one does not.
    case(
        "nn.functional.embedding_bag",
        bagged,
        Input(FLAT, (5, 2), offsets=np.array([0, 3, 6]), mode=mode, include_last_offset=True),
        f=cudagrad.nn.functional.embedding_bag,
        roundings=8,
    )
case(
    "nn.functional.embedding_bag",
    bagged,
    Input(FLAT, (5, 2), offsets=OFFSETS, mode="sum", per_sample_weights=np.linspace(-1, 1, 7)),
    Input(IDS, (4, 3), mode="sum", per_sample_weights=np.linspace(-1, 1, 6).reshape(2, 3), padding_idx=0),
    roundings=8,
)
case(
    "nn.functional.embedding_bag",
    bagged,
    Error(ValueError, "offsets has to be a 1D Tensor but got None", FLAT, (5, 2)),
    Error(
        ValueError,
        "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences.",
        IDS,
        (5, 2),
        offsets=OFFSETS,
    ),
    Error(
        RuntimeError,
        "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from "
        "position 0. However, got 1",
        FLAT,
        (5, 2),
        offsets=np.array([1]),
    ),
    Error(
        RuntimeError,
        "offsets[-1] can not be greater than input's length 7 but got offsets[-1] of 9",
        FLAT,
        (5, 2),
        offsets=np.array([0, 9]),
    ),
    Error(ValueError, "mode has to be one of sum, mean or max", IDS, (5, 2), mode="foo"),
    Error(
        NotImplementedError,
        "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for "
        "mode='sum' (got mode='mean').",
        IDS,
        (5, 2),
        per_sample_weights=np.ones((2, 3)),
    ),
    Error(
        ValueError,
        "embedding_bag: If per_sample_weights (torch.Size([2])) is not None, then it must have the "
        "same shape as the input (torch.Size([2, 3]))",
        IDS,
        (5, 2),
        mode="sum",
        per_sample_weights=np.ones(2),
    ),
    Error(
        ValueError,
        "max mode does not support scaling the gradient by the frequency",
        IDS,
        (5, 2),
        mode="max",
        scale_grad_by_freq=True,
    ),
    Error(ValueError, "input has to be 1D or 2D Tensor, but got Tensor of dimension 3", IDS[None], (5, 2)),
)


def one_hot(index, num_classes=-1):
    out = np.zeros((*index.shape, index.max() + 1 if num_classes == -1 else num_classes), np.int64)
    for i in np.ndindex(index.shape):
        out[(*i, index[i])] = 1
    return out


case(
    "nn.functional.one_hot",
    one_hot,
    Input(IDS),
    Input(IDS, num_classes=6),
    Input(np.array(1), num_classes=3),
    Input(np.zeros((0,), int), num_classes=3),
    Error(RuntimeError, "Class values must be smaller than num_classes.", np.array([0, 5]), num_classes=3),
    Error(RuntimeError, "Class values must be non-negative.", np.array([0, -1])),
    Error(RuntimeError, "one_hot is only applicable to index tensor of type LongTensor.", np.array([0.0, 1.0])),
    Error(RuntimeError, "Can not infer total number of classes from empty tensor.", np.zeros((0,), int)),
)
