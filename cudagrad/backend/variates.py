"""Random numbers of the common distributions made of Philox bits, the same to the last bit on every device.

The contract that a CUDA twin has to keep; `philox` says which bits are number i of a call. All arithmetic is IEEE: each
+, -, *, / and sqrt is rounded by itself to nearest (``__fmul_rn``, ``__fadd_rn``, ``__fdiv_rn``, ``__fsqrt_rn``; never
contracted into fma), which makes log, sin and cos from the series below exact to the bit without any library's help.
float16 and bfloat16 numbers are float32 ones rounded, but for ``uniform``, which takes fewer bits. w is a number of
32 bits and F is float32, but for float64 results: there w has 64 bits and F is float64.

    uniform     float32: (w >> 8) * 2^-24    float64: (w >> 11) * 2^-53    float16: (w >> 21) * 2^-11
                bfloat16: (w >> 24) * 2^-8; all in [0, 1)
                on [low, high): u * (high - low) + low, at most the number of the dtype before high
    positive    F32: F(w) * 2^-32 + 2^-33, in (0, 1]    F64: F(w >> 11) * 2^-53 + 2^-54
    -log(u)     e = (bits(u) - bits(sqrt(1/2))) >> mantissa bits; v = u * 2^-e, in [sqrt(1/2), sqrt(2));
                s = (v - 1) / (v + 1), z = s * s; -(e * ln2 + (s + s) * P(z)),
                P(z) = 1 + z/3 + z^2/5 + ... by Horner's rule
    normal      numbers 2k and 2k + 1 are a pair: radius r = sqrt(2 * -log(positive(w of 2k))), angle from w of 2k + 1:
                a = F(its lowest 29 bits) * (pi/4 * 2^-29) (F64: bits 8 to 60, 2^-53); c, s = cos a, sin a by Taylor's
                series; third highest bit: swap c and s; highest bit: negate c; second highest: negate s;
                numbers r * c and r * s (Box and Muller 1958, an octant at a time). Then * std, then + mean
    exponential -log(min(positive, 1 - 2^-24 or 1 - 2^-53)) / rate, so never 0
    cauchy      s / c for w of i, a zero c replaced by 2^-29 (F64: 2^-53); then * sigma, then + median
    happens     w32 < round(p * 2^32)
    below       integers of [0, n): n <= 2^20: (w32 * n) >> 32; n <= 2^32: the same with w64, in 96 bits;
                above: w64 mod n
    permutation the ranks of (w64 with its lowest b bits replaced by i), b the bits of n - 1
"""

import functools
import math

import numpy as np

from .philox import AHEAD, ahead, bits, blocks, scalar

HALF_TYPES = {np.dtype("f2"): (21, 11), "bfloat16": (24, 8)}


class Form:
    """The constants of one precision: types of its bits, lengths of the series (the next term is below rounding)."""

    def __init__(self, size, mantissa, log_terms, trig_terms):
        self.size, self.width, self.mantissa = size, 8 * size, mantissa
        self.real, self.integer, self.unsigned = f"f{size}", f"i{size}", f"u{size}"
        self.root_half = int(np.array(math.sqrt(0.5), self.real).view(self.integer))
        self.log = [2 / (2 * k + 1) for k in range(log_terms)]
        self.sin = [(-1) ** k / math.factorial(2 * k + 1) for k in range(trig_terms)]
        self.cos = [(-1) ** k / math.factorial(2 * k) for k in range(trig_terms)]
        self.angle_bits = 29 if size == 4 else 53
        self.below_one = 1 - 2.0 ** -(mantissa + 1)


SINGLE = Form(4, 23, log_terms=5, trig_terms=6)
DOUBLE = Form(8, 52, log_terms=11, trig_terms=10)


def form_of(dtype):
    """The precision that numbers of a floating NumPy dtype are computed in."""
    return DOUBLE if np.dtype(dtype) == np.float64 else SINGLE


def uniform(xp, seed, offset, count, dtype, low=0.0, high=1.0):
    """``count`` numbers of [low, high) in a floating ``dtype``."""
    form, dtype = form_of(dtype), np.dtype(dtype)
    out = xp.empty(count, dtype)
    drop, keep = (8, 24) if form is SINGLE else (11, 53)
    drop, keep = HALF_TYPES.get(dtype, HALF_TYPES.get(dtype.name, (drop, keep)))
    unit, span = _real(xp, 2.0**-keep, form), _real(xp, high - low, form)
    for start, words in blocks(xp, seed, offset, count, form.width):
        xp.right_shift(words, scalar(xp, drop, form.unsigned), out=words)
        piece = out[start : start + words.size]
        u = piece if dtype == form.real else xp.empty(words.size, form.real)
        u[...] = words.view(form.integer)  # below 2^53, so exact, and signed integers convert faster
        xp.multiply(u, unit, out=u)
        if (low, high) != (0, 1):
            xp.multiply(u, span, out=u)
            xp.add(u, _real(xp, low, form), out=u)
        if u is not piece:
            piece[...] = u
    if (low, high) != (0, 1) and low < high:  # rounding may reach high
        xp.minimum(out, np.nextafter(dtype.type(high), dtype.type(low)), out=out)
    return out


def normal(xp, seed, offset, count, dtype, mean=0.0, std=1.0):
    """``count`` normal numbers in a floating ``dtype``."""
    form = form_of(dtype)
    out = xp.empty(count + count % 2, dtype)
    if xp is np and out.size * form.size <= 16 * AHEAD[1][0]:
        return _adjusted(xp, _normals_ahead(seed, offset, out.size, form), out, mean, std, form)[:count]
    work = None
    for start, words in blocks(xp, seed, offset, out.size, form.width):
        work = _work(xp, work, words.size // 2, form)
        for side, value in enumerate(_pairs(xp, words, work, form)):
            _adjusted(xp, value, out[start + side : start + words.size : 2], mean, std, form)
    return out[:count]


def _adjusted(xp, value, out, mean, std, form):
    """``value`` * std + mean, in place and into ``out``."""
    if std != 1:
        xp.multiply(value, _real(xp, std, form), out=value)
    if mean != 0:
        xp.add(value, _real(xp, mean, form), out=value)
    out[...] = value
    return out


def exponential(xp, seed, offset, count, dtype, rate=1.0):
    """``count`` exponential numbers, all above 0, in a floating ``dtype``."""
    form = form_of(dtype)
    out, work = xp.empty(count, dtype), None
    for start, words in blocks(xp, seed, offset, count, form.width):
        work = _work(xp, work, words.size, form)
        u, *rest = (w[: words.size] for w in work[:4])
        positive(xp, words, u, form)
        xp.minimum(u, _real(xp, form.below_one, form), out=u)
        u = log_times(xp, -1, u, *rest, form)
        if rate != 1:
            xp.divide(u, _real(xp, rate, form), out=u)
        out[start : start + words.size] = u
    return out


def cauchy(xp, seed, offset, count, dtype, median=0.0, sigma=1.0):
    """``count`` Cauchy numbers in a floating ``dtype``: sine over cosine of an angle of ``normal``, from one w each."""
    form = form_of(dtype)
    out, work = xp.empty(count, dtype), None
    for start, words in blocks(xp, seed, offset, count, form.width):
        work = _work(xp, work, words.size, form)
        a, z, cos, sin = (w[: words.size] for w in work[:4])
        _circle(xp, words, a, z, cos, sin, form)
        cos[cos == 0] = 2.0**-form.angle_bits
        xp.divide(sin, cos, out=sin)
        _adjusted(xp, sin, out[start : start + words.size], median, sigma, form)
    return out


def happens(xp, seed, offset, count, p):
    """``count`` bools, True with probability ``p`` to the nearest multiple of 2^-32: w32 < round(p * 2^32)."""
    out, limit = xp.empty(count, bool), round(p * 2**32)
    if limit == 2**32:
        out[...] = True
        return out
    for start, words in blocks(xp, seed, offset, count, 32):
        xp.less(words, scalar(xp, limit, "u4"), out=out[start : start + words.size])
    return out


def below(xp, seed, offset, count, n):
    """``count`` integers of [0, n), n up to 2^64, as uint64; none is likelier than another by more than n * 2^-32."""
    if n <= 2**20:
        w = bits(xp, seed, offset, count, 32).astype("u8")
        return xp.right_shift(xp.multiply(w, scalar(xp, n, "u8"), out=w), scalar(xp, 32, "u8"), out=w)
    w = bits(xp, seed, offset, count, 64)
    if n == 2**64:
        return w
    if n > 2**32:
        return w % scalar(xp, n, "u8")
    n, shift = scalar(xp, n, "u8"), scalar(xp, 32, "u8")
    return ((w >> shift) * n + ((w & scalar(xp, 2**32 - 1, "u8")) * n >> shift)) >> shift


def permutation(xp, seed, offset, n):
    """The integers 0 to n - 1 in random order, as int64: sorted random keys that carry their index below."""
    low = scalar(xp, (1 << max(n - 1, 0).bit_length()) - 1, "u8")
    keys = bits(xp, seed, offset, n, 64)
    keys &= ~low
    keys |= xp.arange(n, dtype="u8")
    keys.sort()
    keys &= low
    return keys.view("i8")


def positive(xp, words, u, form):
    """Uniform numbers of (0, 1] with as long a tail as the bits allow, into ``u``."""
    if form is DOUBLE:
        words = (words >> scalar(xp, 11, form.unsigned)).view(form.integer)
    keep = 32 if form is SINGLE else 53
    u[...] = words
    xp.multiply(u, _real(xp, 2.0**-keep, form), out=u)
    return xp.add(u, _real(xp, 2.0 ** -(keep + 1), form), out=u)


def log_times(xp, scale, u, s, whole, series, form):
    """scale * log(u), scale = -1 or -2, for positive normal numbers, within two ulp, by IEEE operations alone.

    ``u`` and the three work arrays are overwritten. Scaling by a power of two is exact, so it goes into the constants.
    """
    i, e = u.view(form.integer), s.view(form.integer)
    mantissa = scalar(xp, form.mantissa, form.integer)
    xp.subtract(i, scalar(xp, form.root_half, form.integer), out=e)
    xp.right_shift(e, mantissa, out=e)
    whole[...] = e
    xp.left_shift(e, mantissa, out=e)
    xp.subtract(i, e, out=i)  # u is now in [sqrt(1/2), sqrt(2))
    one = _real(xp, 1, form)
    xp.subtract(u, one, out=s)
    xp.add(u, one, out=u)
    xp.divide(s, u, out=s)
    xp.multiply(s, s, out=u)
    _horner(xp, [c * scale for c in form.log], u, series, form)
    xp.multiply(s, series, out=s)
    xp.multiply(whole, _real(xp, math.log(2) * scale, form), out=whole)
    return xp.add(whole, s, out=whole)


def _pairs(xp, words, work, form):
    """The two halves of the normal pairs that ``words`` make: those of even index and those of odd index."""
    half = words.size // 2
    u, s, radius, series, sin, turn = (w[:half] for w in work)
    turn = turn.view(form.unsigned)
    positive(xp, words[0::2], u, form)
    log_times(xp, -2, u, s, radius, series, form)
    xp.sqrt(radius, out=radius)
    turn[...] = words[1::2]
    cos = series
    _circle(xp, turn, u, s, cos, sin, form)
    return xp.multiply(cos, radius, out=cos), xp.multiply(sin, radius, out=sin)


def _circle(xp, words, a, z, cos, sin, form):
    """cos and sin of the angles that ``words`` name; ``words``, ``a`` and ``z`` are overwritten."""
    _angle(xp, words, a, z, form)
    _horner(xp, form.cos, z, cos, form)
    _horner(xp, form.sin, z, sin, form)
    xp.multiply(sin, a, out=sin)
    _octant(xp, words, *(v.view(form.unsigned) for v in (cos, sin, a, z)), form)


def _angle(xp, words, a, z, form):
    """The angle in [0, pi/4] that the low bits of ``words`` name, into ``a``, its square into ``z``."""
    low = scalar(xp, 2**29 - 1 if form is SINGLE else 2**61 - 1, form.unsigned)
    t = z.view(form.unsigned)
    xp.bitwise_and(words, low, out=t)
    if form is DOUBLE:
        xp.right_shift(t, scalar(xp, 8, form.unsigned), out=t)
    a[...] = t.view(form.integer)
    xp.multiply(a, _real(xp, math.pi / 4 * 2.0**-form.angle_bits, form), out=a)
    xp.multiply(a, a, out=z)


def _octant(xp, words, cos, sin, swap, differ, form):
    """Swap and negate by the three highest bits of ``words``: from the first octant to all eight. On bit patterns."""
    top, one = scalar(xp, 1 << (form.width - 1), form.unsigned), scalar(xp, 1, form.unsigned)
    xp.left_shift(words, scalar(xp, 2, form.unsigned), out=swap)
    signed = swap.view(form.integer)
    xp.right_shift(signed, scalar(xp, form.width - 1, form.integer), out=signed)  # all ones or all zeros
    xp.bitwise_xor(cos, sin, out=differ)
    xp.bitwise_and(differ, swap, out=differ)
    xp.bitwise_xor(cos, differ, out=cos)
    xp.bitwise_xor(sin, differ, out=sin)
    xp.bitwise_and(words, top, out=differ)
    xp.bitwise_xor(cos, differ, out=cos)
    xp.left_shift(words, one, out=words)
    xp.bitwise_and(words, top, out=words)
    xp.bitwise_xor(sin, words, out=sin)


@functools.lru_cache(maxsize=64)
def _normals_of(seed, block, few, calls, form):
    """[calls, 16 * few / size]: the standard normal numbers of ``philox.ahead``."""
    words = ahead(seed, block, few, calls).ravel().view(form.unsigned).copy()
    out = np.empty(words.size, form.real)
    out[0::2], out[1::2] = _pairs(np, words, _work(np, None, words.size // 2, form), form)
    return out.reshape(calls, -1)


def _normals_ahead(seed, offset, count, form):
    """Standard normal numbers of a small call: made for many offsets at once, as the bits are."""
    few, calls = AHEAD[count * form.size > 16 * AHEAD[0][0]]
    return _normals_of(seed, offset // calls, few, calls, form)[offset % calls, :count].copy()


def _work(xp, work, size, form):
    """Six arrays for the passes of one block, made at the first, largest one: fresh ones every time double the time."""
    return xp.empty((6, size), form.real) if work is None else work


def _horner(xp, terms, z, total, form):
    """terms[0] + z * (terms[1] + z * (...)), from the innermost outwards, into ``total``."""
    xp.multiply(z, _real(xp, terms[-1], form), out=total)
    for c in terms[-2:0:-1]:
        xp.add(total, _real(xp, c, form), out=total)
        xp.multiply(total, z, out=total)
    xp.add(total, _real(xp, terms[0], form), out=total)


def _real(xp, value, form):
    return scalar(xp, value, form.real)
