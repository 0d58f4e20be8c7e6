"""Packing and padding: by loops over the sequences, gradients included."""

import copy
import pickle

import numpy as np
import pytest

import cudagrad as cg
from cudagrad.nn.utils import rnn

LENGTHS = [2, 4, 1]


def batch(lengths=LENGTHS, width=2):
    """[T,B,width] with the value 100 b + 10 t + i at sequence b, step t."""
    x = np.zeros((max(lengths), len(lengths), width), np.float32)
    for b in range(len(lengths)):
        for t in range(max(lengths)):
            x[t, b] = [100 * b + 10 * t + i for i in range(width)]
    return x


def packed_by_loops(x, lengths):
    """Data, batch sizes and order from the definition: longest first, step by step."""
    order = sorted(range(len(lengths)), key=lambda b: -lengths[b])
    rows, sizes = [], []
    for t in range(max(lengths)):
        running = [b for b in order if lengths[b] > t]
        rows += [x[t, b] for b in running]
        sizes.append(len(running))
    return np.array(rows), sizes, order


@pytest.mark.parametrize("batch_first", [False, True])
def test_packing_takes_the_steps_of_the_longest_first(batch_first):
    x = batch()
    rows, sizes, order = packed_by_loops(x, LENGTHS)
    given = cg.tensor(x.transpose(1, 0, 2).copy() if batch_first else x)
    packed = rnn.pack_padded_sequence(given, LENGTHS, batch_first=batch_first, enforce_sorted=False)
    assert np.array_equal(packed.data.numpy(), rows) and packed.batch_sizes.tolist() == sizes
    assert packed.sorted_indices.tolist() == order and packed.batch_sizes.dtype is cg.int64
    assert [order[i] for i in packed.unsorted_indices.tolist()] == [0, 1, 2]


def test_sorted_lengths_need_no_indices():
    packed = rnn.pack_padded_sequence(cg.tensor(batch([3, 2, 2])), cg.tensor([3, 2, 2]))
    assert (
        packed.sorted_indices is None and packed.unsorted_indices is None and packed.batch_sizes.tolist() == [3, 3, 1]
    )


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("total", [None, 6])
def test_unpacking_brings_the_batch_back(batch_first, total):
    x = batch()
    for b, n in enumerate(LENGTHS):
        x[n:, b] = -1
    packed = rnn.pack_padded_sequence(cg.tensor(x), LENGTHS, enforce_sorted=False)
    out, lengths = rnn.pad_packed_sequence(packed, batch_first, padding_value=-1.0, total_length=total)
    expected = np.full((total or 4, 3, 2), -1, np.float32)
    expected[:4] = x
    assert np.array_equal(out.numpy(), expected.transpose(1, 0, 2) if batch_first else expected)
    assert lengths.tolist() == LENGTHS


def test_gradients_go_to_the_packed_elements_only():
    x = cg.tensor(batch(), requires_grad=True)
    packed = rnn.pack_padded_sequence(x, LENGTHS, enforce_sorted=False)
    out, _ = rnn.pad_packed_sequence(packed)
    (out * 3).sum().backward()
    expected = np.zeros((4, 3, 2))
    for b, n in enumerate(LENGTHS):
        expected[:n, b] = 3
    assert np.array_equal(x.grad.numpy(), expected)


def test_bad_lengths_are_refused_in_pytorchs_words():
    x = cg.zeros(4, 3, 2)
    with pytest.raises(RuntimeError, match="^`lengths` array must be sorted in decreasing order when `enforce_sorted`"):
        rnn.pack_padded_sequence(x, [2, 4, 1])
    with pytest.raises(
        RuntimeError, match="^Length of all samples has to be greater than 0, but found an element in 'le"
    ):
        rnn.pack_padded_sequence(x, [4, 2, 0])
    with pytest.raises(
        RuntimeError, match=r"^Expected `len\(lengths\)` to be equal to batch_size, but got 2 \(batch_si"
    ):
        rnn.pack_padded_sequence(x, [4, 2])
    with pytest.raises(RuntimeError, match="^Cannot pack empty tensors.$"):
        rnn.pack_padded_sequence(cg.zeros(0, 3, 2), [1, 1, 1])
    with pytest.raises(
        RuntimeError, match="^'lengths' argument should be a 1D CPU int64 tensor, but got 2D cpu Long te"
    ):
        rnn.pack_padded_sequence(x, cg.tensor([[4, 2, 1]]))
    with pytest.raises(RuntimeError, match="at most the padded length 4, but got 5"):
        rnn.pack_padded_sequence(x, [5, 2, 1])
    packed = rnn.pack_padded_sequence(x, [4, 2, 1])
    with pytest.raises(
        ValueError, match="^Expected total_length to be at least the length of the longest sequence in in"
    ):
        rnn.pad_packed_sequence(packed, total_length=3)


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("batch_first", [False, True])
def test_padding_fills_up_to_the_longest(side, batch_first):
    sequences = [np.arange(1.0, 3), np.arange(3.0, 7), np.arange(7.0, 8)]
    expected = np.full((3, 4), 9.0)
    for row, s in zip(expected, sequences):
        row[slice(0, len(s)) if side == "right" else slice(4 - len(s), 4)] = s
    tensors = [cg.tensor(s, requires_grad=True) for s in sequences]
    out = rnn.pad_sequence(tensors, batch_first, 9.0, side)
    assert np.array_equal(out.detach().numpy(), expected if batch_first else expected.T)
    (out * out).sum().backward()
    assert all(np.array_equal(t.grad.numpy(), 2 * s) for t, s in zip(tensors, sequences))


def test_padding_takes_integers_and_refuses_nonsense():
    assert rnn.pad_sequence([cg.tensor([1, 2]), cg.tensor([3])], True, 7).tolist() == [[1, 2], [3, 7]]
    with pytest.raises(RuntimeError, match="^received an empty list of sequences$"):
        rnn.pad_sequence([])
    with pytest.raises(
        RuntimeError, match="^pad_sequence: Expected iterable for input sequences, but got arg of type:"
    ):
        rnn.pad_sequence(3)
    with pytest.raises(RuntimeError, match="^Expected padding_side to be one of left or right, but got middle.$"):
        rnn.pad_sequence([cg.zeros(2)], padding_side="middle")


def test_lists_of_sequences_go_through_packing():
    sequences = [cg.tensor([[1.0], [2.0]]), cg.tensor([[3.0], [4.0], [5.0]])]
    packed = rnn.pack_sequence(sequences, enforce_sorted=False)
    assert packed.data.flatten().tolist() == [3.0, 1.0, 4.0, 2.0, 5.0]
    assert [s.tolist() for s in rnn.unpack_sequence(packed)] == [s.tolist() for s in sequences]
    padded = rnn.pad_sequence(sequences)
    back = rnn.unpad_sequence(padded, cg.tensor([2, 3]))
    assert [s.tolist() for s in back] == [s.tolist() for s in sequences] and padded.shape == (3, 2, 1)
    with pytest.raises(RuntimeError, match="^`lengths` array must be sorted"):
        rnn.pack_sequence(sequences)


def test_a_packed_sequence_converts_copies_and_pickles():
    packed = rnn.pack_sequence([cg.tensor([1.0, 2.0]), cg.tensor([3.0])])
    assert packed.double().data.dtype is cg.float64 and packed.double().batch_sizes is packed.batch_sizes
    assert packed.float() is packed and packed.cpu() is packed and packed.to("cpu") is packed
    assert packed.long().data.tolist() == [1, 3, 2] and not packed.is_cuda
    for other in (copy.deepcopy(packed), pickle.loads(pickle.dumps(packed))):
        assert isinstance(other, rnn.PackedSequence) and other.data.tolist() == packed.data.tolist()
    data, sizes, order, back = packed
    assert rnn.PackedSequence((data, sizes)).data is data
    assert rnn.invert_permutation(cg.tensor([2, 0, 1])).tolist() == [1, 2, 0] and rnn.invert_permutation(None) is None


@pytest.mark.peer
def test_packing_equals_pytorchs():
    torch = pytest.importorskip("torch")
    from torch.nn.utils import rnn as theirs

    x = batch([3, 5, 1, 5], 3)
    for batch_first in (False, True):
        y = np.ascontiguousarray(x.transpose(1, 0, 2)) if batch_first else x
        a = rnn.pack_padded_sequence(cg.tensor(y), [3, 5, 1, 5], batch_first, False)
        b = theirs.pack_padded_sequence(torch.tensor(y), torch.tensor([3, 5, 1, 5]), batch_first, False)
        for ours, other in zip(a, b):
            assert ours.tolist() == other.tolist()
        for ours, other in zip(rnn.pad_packed_sequence(a, True, 2.0), theirs.pad_packed_sequence(b, True, 2.0)):
            assert ours.tolist() == other.tolist()
