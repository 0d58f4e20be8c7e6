"""Batches of sequences of unequal length: padded, packed, and one from the other."""

import collections
import functools
from collections.abc import Iterable

import numpy as np

from ... import dtypes
from ...core.tensor import Tensor, wrap
from ...ops.joining import cat
from ..module_tree import parse_to


class PackedSequence(
    collections.namedtuple("PackedSequence_", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"])
):
    """The steps of a batch of sequences one after the other, without padding.

    ``data``: the rows of step 0, then of step 1, ...; ``batch_sizes``: how many sequences reach each step (int64, on
    the CPU); ``sorted_indices``: where each sequence came from; ``unsorted_indices``: the inverse.
    """

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. "
                "They should be instantiated by functions like pack_sequence and pack_padded_sequences in "
                "nn.utils.rnn. https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence"
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def __getnewargs__(self):
        return tuple(self)

    def _with(self, data, change):
        indices = (None if i is None else change(i) for i in (self.sorted_indices, self.unsorted_indices))
        return type(self)(data, self.batch_sizes, *indices)

    def pin_memory(self):
        """This sequence in page-locked memory."""
        return self._with(self.data.pin_memory(), lambda t: t.pin_memory())

    def to(self, *args, **kwargs):
        """This sequence with its data on another device or in another dtype; itself where nothing changes."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        non_blocking = parse_to(*args, **kwargs)[2]
        return self._with(data, lambda t: t.to(data.device, non_blocking=non_blocking))

    def cuda(self, *args, **kwargs):
        """This sequence on a CUDA device."""
        if parse_to(*args, **kwargs)[0] is None:
            kwargs["device"] = "cuda"
        return self.to(*args, **kwargs)

    def cpu(self, *args, **kwargs):
        """This sequence on the CPU."""
        return self.to(*args, **{**kwargs, "device": "cpu"})

    double = functools.partialmethod(to, dtype=dtypes.float64)
    float = functools.partialmethod(to, dtype=dtypes.float32)
    half = functools.partialmethod(to, dtype=dtypes.float16)
    long = functools.partialmethod(to, dtype=dtypes.int64)
    int = functools.partialmethod(to, dtype=dtypes.int32)
    short = functools.partialmethod(to, dtype=dtypes.int16)
    char = functools.partialmethod(to, dtype=dtypes.int8)
    byte = functools.partialmethod(to, dtype=dtypes.uint8)

    @property
    def is_cuda(self):
        return self.data.is_cuda

    def is_pinned(self):
        return self.data.is_pinned()


def _index(array, like=None):
    """A NumPy array of positions as a tensor, on the device of ``like``."""
    t = wrap(np.ascontiguousarray(array, dtype=np.int64))
    return t if like is None else t.to(like.device)


def invert_permutation(permutation):
    """The permutation that undoes this one; None for None."""
    return None if permutation is None else permutation.argsort()


def _lengths(lengths):
    """Lengths given as a list or tensor, as a NumPy array."""
    if not isinstance(lengths, Tensor):
        return np.asarray([int(n) for n in lengths], dtype=np.int64)
    if lengths.device.type != "cpu" or lengths.dim() != 1:
        raise RuntimeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.dim()}D {lengths.device} "
            f"{lengths.dtype.legacy} tensor"
        )
    return lengths.array.astype(np.int64)


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    """A PackedSequence of padded sequences; what lies beyond each length is left out.

    ``enforce_sorted``: the lengths must not increase; if False they may come in any order.

    Shapes      input [T,B,*], or [B,T,*] if ``batch_first``; lengths [B]
    Raises      RuntimeError for lengths that increase, are not positive, exceed T, or do not match the batch
    """
    lengths = _lengths(lengths)
    order = None
    if not enforce_sorted:
        order = np.argsort(-lengths, kind="stable")
        lengths = lengths[order]
    shape = tuple(input.shape)
    if len(shape) < 2 or input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    batch, steps = shape[:2] if batch_first else shape[1::-1]
    _check_lengths(lengths, batch, steps)
    step, column = np.arange(lengths[0])[:, None], np.arange(batch) if order is None else order
    place = column * steps + step if batch_first else step * batch + column  # [T,B]
    used = lengths > step  # [T,B]
    data = input.reshape(batch * steps, *shape[2:]).index_select(0, _index(place[used], input))
    return PackedSequence(data, _index(used.sum(1)), None if order is None else _index(order, input))


def _check_lengths(lengths, batch, steps):
    if len(lengths) != batch:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(lengths)} (batch_size={batch})"
        )
    if (lengths <= 0).any():
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if (np.diff(lengths) > 0).any():
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
            "do not need ONNX exportability."
        )
    if lengths[0] > steps:
        raise RuntimeError(f"Expected all lengths to be at most the padded length {steps}, but got {lengths[0]}")


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """The padded sequences and their lengths, in the order in which they were packed.

    Shapes      [T,B,*], or [B,T,*] if ``batch_first``, T the longest length or ``total_length``; lengths [B]
    Raises      ValueError where ``total_length`` is less than the longest length
    """
    data, sizes = sequence.data, sequence.batch_sizes.array
    steps = len(sizes)
    if total_length is not None:
        if total_length < steps:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {steps}"
            )
        steps = total_length
    batch = int(sizes[0])
    place = np.full((steps, batch), int(sizes.sum()))  # rows past the data: one row of padding
    start = 0
    for t, size in enumerate(sizes):
        place[t, :size] = np.arange(start, start + size)
        start += size
    lengths = (np.arange(batch)[None] < sizes[:, None]).sum(0)
    if sequence.unsorted_indices is not None:
        back = sequence.unsorted_indices.cpu().array
        place, lengths = place[:, back], lengths[back]
    place = place.T if batch_first else place
    padding = data.new_full((1, *data.shape[1:]), padding_value)
    rows = cat([data, padding]).index_select(0, _index(place.reshape(-1), data))
    return rows.reshape(*place.shape, *data.shape[1:]), _index(lengths)


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """The sequences in one tensor, each filled up to the longest with ``padding_value`` on its ``padding_side``.

    Shapes      sequences: [L,*] each; [T,B,*], or [B,T,*] if ``batch_first``
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    sequences = tuple(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    first = sequences[0]
    lengths = np.asarray([s.size(0) for s in sequences])
    starts = np.cumsum(lengths) - lengths
    steps = int(lengths.max())
    offset = np.arange(steps)[None] - (steps - lengths[:, None] if padding_side == "left" else 0)  # [B,T]
    inside = (offset >= 0) & (offset < lengths[:, None])
    place = np.where(inside, starts[:, None] + offset, lengths.sum())
    place = place if batch_first else place.T
    padding = first.new_full((1, *first.shape[1:]), padding_value)
    rows = cat([*(s.to(first.dtype) for s in sequences), padding])
    return rows.index_select(0, _index(place.reshape(-1), first)).reshape(*place.shape, *first.shape[1:])


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """A list of the sequences without their padding.

    Differs     ``padded_sequences`` itself stays as it is; PyTorch transposes it in place unless ``batch_first``.
    """
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    lengths = lengths.tolist() if isinstance(lengths, Tensor) else list(lengths)
    return [sequence[:length] for sequence, length in zip(padded_sequences, lengths, strict=True)]


def pack_sequence(sequences, enforce_sorted=True):
    """A PackedSequence of a list of sequences; in the order of falling length, unless not ``enforce_sorted``.

    Shapes      sequences: [L,*] each
    """
    sequences = list(sequences)
    return pack_padded_sequence(pad_sequence(sequences), [s.size(0) for s in sequences], enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences):
    """The list of sequences of a PackedSequence, in their first order."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
