"""What the recurrent layers share: the steps of a batch, and a layer's gradients by the formulas of its cell.

A layer runs over rows [N,I]: those of step 0, then of step 1, ..., ``sizes[t]`` of them at step t. Padded input has all
sizes equal; packed input has sizes that fall. The state [B,H] is one array whose first ``sizes[t]`` rows change at
step t, so a sequence that has ended keeps its last state, and in reverse a sequence that starts finds its first one.
"""

from ..backend import LOW


def spans(sizes, reverse):
    """``(first row, rows)`` of each step, in the order in which the steps run."""
    start, found = 0, []
    for size in sizes:
        found.append((start, size))
        start += size
    return found[::-1] if reverse else found


def half(array):
    """Whether the arithmetic of this array is done in float32."""
    return array.itemsize == 2 and array.dtype in LOW


def widened(*arrays):
    """float16 and bfloat16 arrays as float32; None stays."""
    return [a.astype("float32") if a is not None and half(a) else a for a in arrays]


def narrowed(dtype, arrays):
    """The arrays in ``dtype``; None stays."""
    return tuple(a if a is None or a.dtype == dtype else a.astype(dtype) for a in arrays)


def turned(xp, w, sizes):
    """The transposed weight, copied where it serves several steps: 57 us a product (32 x 128 x 512) instead of 92."""
    return w.T if len(sizes) == 1 else xp.ascontiguousarray(w.T)


def by_ones(xp, a):
    """The sum of the rows of a matrix; a product with ones is twice as fast as ``sum`` (measured, NumPy 2.4)."""
    return xp.ones(a.shape[0], a.dtype).dot(a)


def start_of(xp, g, like):
    """The gradient of a last state as an array in C order that may be written to; zeros where there is none."""
    return xp.zeros(like.shape, like.dtype) if g is None else xp.array(g, dtype=like.dtype, order="C")


# ---- any order of derivative: polymorphic


def rows(m, x, start, count):
    """Rows ``start`` to ``start + count`` of x; None stays."""
    if x is None or (start == 0 and count == x.shape[0]):
        return x
    return m.narrow(x, dim=0, start=start, length=count)


def columns(m, x, count):
    """x [N, count * H] as ``count`` matrices [N,H]."""
    width = x.shape[1] // count
    return [m.narrow(x, dim=1, start=i * width, length=width) for i in range(count)]


def joined(m, parts, dim):
    """Several matrices as one."""
    if len(parts) == 1:
        return parts[0]
    return m.cat(parts, dim=dim)


def replaced(m, state, new, count):
    """``state`` with its first ``count`` rows replaced."""
    if state is None or count == state.shape[0]:
        return new
    return joined(m, [new, rows(m, state, count, state.shape[0] - count)], 0)


def affine(m, x, w, b):
    return m.mm_nt(x, w) if b is None else m.mm_nt(x, w) + b


def gradients(m, g, cell, x, h, c, w_ih, w_hh, b_ih, b_hh, w_hr, sizes, reverse):
    """The gradients by all tensors of a layer whose cell has the formulas ``cell.step`` and ``cell.back``.

    The steps are run again, since what the first run kept would be constant in a second derivative.
    """
    g_out, g_h, g_c = (*g, None)[:3]
    dh = h * 0 if g_h is None else g_h
    dc = None if c is None else c * 0 if g_c is None else g_c
    ran = _run_again(m, cell, x, h, c, w_ih, w_hh, b_ih, b_hh, w_hr, sizes, reverse)
    by_row, dw_hr = {}, None
    for start, count, before, unprojected, kept in reversed(ran):
        d = rows(m, dh, 0, count)
        if g_out is not None:
            d = d + rows(m, g_out, start, count)
        if w_hr is not None:
            by_w = m.mm_tn(d, unprojected)
            dw_hr = by_w if dw_hr is None else dw_hr + by_w
            d = m.mm(d, w_hr)
        dzx, dzh, direct, dc_before = cell.back(m, d, rows(m, dc, 0, count), *kept)
        dh_before = m.mm(dzh, w_hh)
        dh_before = dh_before if direct is None else dh_before + direct
        by_row[start] = dzx, dzh, before
        dh, dc = replaced(m, dh, dh_before, count), replaced(m, dc, dc_before, count)
    dzx, dzh, before = (joined(m, [by_row[s][i] for s in sorted(by_row)], 0) for i in range(3))
    dx, dw_ih, dw_hh = m.mm(dzx, w_ih), m.mm_tn(dzx, x), m.mm_tn(dzh, before)
    biases = [None if b is None else m.sum_to(dz, shape=b.shape) for dz, b in ((dzx, b_ih), (dzh, b_hh))]
    return dx, dh, dc, dw_ih, dw_hh, *biases, dw_hr


def _run_again(m, cell, x, h, c, w_ih, w_hh, b_ih, b_hh, w_hr, sizes, reverse):
    """``(first row, rows, state before, output before projection, what cell.back needs)`` of each step."""
    zx, ran = affine(m, x, w_ih, b_ih), []
    for start, count in spans(sizes, reverse):
        before, c_before = rows(m, h, 0, count), rows(m, c, 0, count)
        new, c_new, kept = cell.step(m, rows(m, zx, start, count), affine(m, before, w_hh, b_hh), before, c_before)
        ran.append((start, count, before, new, kept))
        h, c = replaced(m, h, new if w_hr is None else m.mm_nt(new, w_hr), count), replaced(m, c, c_new, count)
    return ran
