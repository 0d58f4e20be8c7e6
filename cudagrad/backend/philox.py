"""Philox4x32-10: random bits that depend on (seed, offset of the call, index) alone, hence the same on every device.

The contract that a CUDA twin has to keep, bit for bit. A call is named by two unsigned 64-bit integers, the seed and
the offset; a generator hands out one offset a call.

    counter j   c0 = offset mod 2^32, c1 = j mod 4096, c2 = offset div 2^32, c3 = j div 4096
    key         k0 = seed mod 2^32, k1 = seed div 2^32
    stream      the outputs x1 x0 x3 x2 of counter 0, then those of counter 1, ..., four little-endian bytes each

Number i of a call is read off that stream as if it were an array, so that one counter makes eight numbers of 16 bits,
four of 32 or two of 64, and one thread of a GPU writes 16 bytes:

    16 bits     counter i div 8; half (i div 4) mod 2, as below, shifted right by 16 * (i mod 4)
    32 bits     counter i div 4; x1, x0, x3, x2 for i mod 4 = 0, 1, 2, 3
    64 bits     counter i div 2; x0 * 2^32 + x1 for even i, x2 * 2^32 + x3 for odd i

What is made of these bits (uniform, normal, ...) is the contract of `variates`.

j is cut at 4096 for the CPU's sake: with the parts in c1 and c3, the first three of the ten rounds work on a number
that depends on the column c1 or on the row c3 alone, and cost nothing; a quarter of the time. c0 and c2 would have been
as random (Salmon et al. find 7 rounds enough).

Source      Salmon, Moraes, Dror, Shaw 2011, Parallel Random Numbers: As Easy as 1, 2, 3, section 3
"""

import collections
import functools
import threading

import numpy as np

MASK = 0xFFFFFFFF
MULTIPLY = 0xD2511F53, 0xCD9E8D57
WEYL = 0x9E3779B9, 0xBB67AE85
ROUNDS = 10
COLUMNS = 4096
ROWS = 4  # 16384 counters a block: four arrays of 128 KiB stay in L2. 8192 and 32768 are slower by 5 to 20 % (Zen 4)
AHEAD = (4, 256), (64, 16)  # calls of up to this many counters are made for so many offsets at once


def bits(xp, seed, offset, count, width):
    """``count`` random unsigned integers of ``width`` (16, 32 or 64) bits, as an array of ``xp``."""
    out = xp.empty(count, f"u{width // 8}")
    for start, words in blocks(xp, seed, offset, count, width):
        out[start : start + words.size] = words
    return out


def kept(xp, seed, offset, count, p):
    """``count`` bools, False with probability ``p`` to the nearest multiple of 2^-16: 16-bit number >= round(p * 2^16).

    The decisions of dropout, eight a counter: 1.7 ns each on one core of a Zen 4, where torch's bernoulli_ takes 6.
    1.6 of them are the passes of the seven rounds over arrays in L2, whose bandwidth they use up.
    """
    out = xp.empty(count, bool)
    for start, keep in decided(xp, seed, offset, count, p):
        out[start : start + keep.size] = keep
    return out


def decided(xp, seed, offset, count, p):
    """The decisions of ``kept`` piece by piece: pairs (index of the first, bools).

    The CPU keeps those of recent calls as bits, 2^24 bytes at most, until they are asked for a second time: a backward
    pass then takes 0.05 ns each. Whether they are still there changes no number.
    """
    limit = round(p * 65536)
    if limit == 65536:
        yield 0, xp.zeros(count, bool)
        return
    call = seed, offset, count, limit
    packed = _RECENT.pop(call) if xp is np else None
    if packed is not None:
        for start in range(0, count, BITS_BLOCK):
            bits = packed[start // 8 : (start + BITS_BLOCK) // 8]
            yield start, np.unpackbits(bits, count=min(BITS_BLOCK, count - start)).view(bool)
        return
    packed = []
    for start, words in blocks(xp, seed, offset, count, 16):
        keep = words >= scalar(xp, limit, "u2")
        if xp is np:
            packed.append(np.packbits(keep))
        yield start, keep
    if xp is np:
        _RECENT.put(call, np.concatenate(packed) if packed else np.empty(0, "u1"))


BITS_BLOCK = 8 * ROWS * COLUMNS


class _Recent:
    """Arrays by key, the oldest dropped when all together pass ``most`` bytes; taking one removes it."""

    def __init__(self, most):
        self._kept, self._bytes, self._most, self._lock = {}, 0, most, threading.Lock()

    def pop(self, key):
        with self._lock:
            array = self._kept.pop(key, None)
            self._bytes -= 0 if array is None else array.nbytes
            return array

    def put(self, key, array):
        self.pop(key)
        with self._lock:
            self._kept[key] = array
            self._bytes += array.nbytes
            while self._bytes > self._most:
                self._bytes -= self._kept.pop(next(iter(self._kept))).nbytes


_RECENT = _Recent(1 << 24)


def blocks(xp, seed, offset, count, width):
    """The numbers of a call piece by piece, each while it lies in the cache: pairs (index of the first, array).

    The array is the reader's to destroy until it asks for the next one.
    """
    per_counter = 128 // width
    counters = -(-count // per_counter)
    if not counters:
        return
    kind = f"u{width // 8}"
    few, calls = AHEAD[counters > AHEAD[0][0]]
    if counters <= few and xp is np:
        yield 0, ahead(seed, offset // calls, few, calls)[offset % calls].view(kind)[:count].copy()
        return
    for first, words in _mixed(xp, seed, offset, counters):
        start = first * per_counter
        yield start, words.view(kind)[: count - start]


def _mixed(xp, seed, offset, counters):
    """Pairs (first counter, the stream from there on as 64-bit numbers), in scratch memory."""
    rows, rest = divmod(counters, COLUMNS)
    a_column, a_row, b_column, b_row = _three_rounds(xp, seed, offset, min(counters, COLUMNS), rows + 1)
    pieces = [(r, min(ROWS, rows - r), COLUMNS) for r in range(0, rows, ROWS)] + ([(rows, 1, rest)] if rest else [])
    if xp is not np:  # a launch costs more than a pass over memory: all full rows at once
        pieces = [(r, h, w) for r, h, w in ((0, rows, COLUMNS), (rows, 1, rest)) if h * w]
    scratch = _FREE.pop() if _FREE and xp is np else _scratch(xp, max(h for _, h, _ in pieces) * COLUMNS)
    try:
        for row, height, width in pieces:
            a, b, p, q = (s[: height * width] for s in scratch[:4])
            xp.bitwise_xor(a_column[:width], a_row[row : row + height, None], out=a.reshape(height, width))
            xp.bitwise_xor(b_column[:width], b_row[row : row + height, None], out=b.reshape(height, width))
            words = scratch[4][: 2 * height * width]
            mix(xp, a, b, p, q, seed, 3, words)
            yield row * COLUMNS, words
    finally:
        if xp is np:
            _FREE.append(scratch)


_FREE = collections.deque(maxlen=4)  # scratch memory that nobody uses; taking and giving back are atomic


def _scratch(xp, size):
    size = max(size, ROWS * COLUMNS)
    return (*(xp.empty(size, "u8") for _ in range(4)), xp.empty(2 * size, "u8"))


def mix(xp, a, b, p, q, seed, done, words):
    """Rounds ``done`` to 9 of counters held as a = x0 * 2^32 + x1, b = x2 * 2^32 + x3; the stream comes in ``words``.

    With the high word above the low one a round of a half is five passes: the product p of the other half's high word
    is already (hi, lo), and the shift that brings x1 up to meet hi drops x0. a, b, p, q are overwritten.
    """
    m0, m1, shift = constants(xp)
    into_a, into_b = a, b
    for r, (k0, k1) in enumerate(schedule(xp, seed)[done:], done):
        if r == ROUNDS - 1:
            into_a, into_b = words[0::2], words[1::2]
        xp.right_shift(a, shift, out=p)
        xp.multiply(p, m0, out=p)
        xp.right_shift(b, shift, out=q)
        xp.multiply(q, m1, out=q)
        xp.left_shift(a, shift, out=a)
        xp.bitwise_xor(a, q, out=a)
        xp.bitwise_xor(a, k0, out=into_a)
        xp.left_shift(b, shift, out=b)
        xp.bitwise_xor(b, p, out=b)
        xp.bitwise_xor(b, k1, out=into_b)


def _three_rounds(xp, seed, offset, columns, rows):
    """Rounds 0 to 2 for all columns and rows: a = a_column ^ a_row and b = b_column ^ b_row after them."""
    (a0, b0), (a1, b1), (a2, b2) = ((int(k0) >> 32, int(k1) >> 32) for k0, k1 in schedule(np, seed)[:3])
    low, high = MULTIPLY[0] * (offset & MASK), MULTIPLY[1] * (offset >> 32)
    column, row = xp.arange(columns, dtype="u8"), xp.arange(rows, dtype="u8")
    mask, shift = scalar(xp, MASK, "u8"), constants(xp)[2]
    of_column = (column ^ scalar(xp, (high >> 32) ^ a0, "u8")) * constants(xp)[0]
    of_row = (row ^ scalar(xp, (low >> 32) ^ b0, "u8")) * constants(xp)[1]
    x0 = (of_row >> shift) ^ scalar(xp, (high & MASK) ^ a1, "u8")
    x2 = (of_column >> shift) ^ scalar(xp, (low & MASK) ^ b1, "u8")
    a_row = ((of_row & mask) ^ scalar(xp, a2, "u8")) << shift
    b_row = x0 * constants(xp)[0] ^ scalar(xp, b2 << 32, "u8")
    return x2 * constants(xp)[1], a_row, of_column << shift, b_row


@functools.lru_cache(maxsize=64)
def ahead(seed, block, few, calls):
    """[calls, 2 * few]: the streams of the first ``few`` counters of the ``block``-th ``calls`` offsets.

    A call costs a hundred NumPy calls, 43 us, however few its numbers; made ahead it costs 2 to 6 us.
    """
    offsets = np.full((calls, 1), block * calls, "u8") + np.arange(calls, dtype="u8")[:, None]
    a = ((offsets << 32) + np.arange(few, dtype="u8")).ravel()
    b = np.repeat(offsets >> 32 << 32, few)
    words = np.empty(2 * a.size, "u8")
    mix(np, a, b, np.empty_like(a), np.empty_like(a), seed, 0, words)
    return words.reshape(calls, 2 * few)


@functools.lru_cache(maxsize=256)
def schedule(xp, seed):
    """The ten round keys of a seed as pairs of 64-bit scalars, shifted up to where they are used."""
    key = seed & MASK, seed >> 32
    return tuple(tuple(scalar(xp, ((k + r * w) & MASK) << 32, "u8") for k, w in zip(key, WEYL)) for r in range(ROUNDS))


@functools.cache
def constants(xp):
    """The two multipliers and the shift by 32."""
    return tuple(scalar(xp, v, "u8") for v in (*MULTIPLY, 32))


def scalar(xp, value, kind):
    """A number as an operand of ``xp``: for NumPy a 0-d array, which costs half of a NumPy scalar."""
    return np.array(value, kind) if xp is np else np.dtype(kind).type(value)
