"""Sums of products over named or numbered axes: einsum, tensordot, kron, chains of matrices."""

from ..core.node import warn
from ..core.shape import check_dim
from ..core.tensor import Tensor
from .matmul import matmul
from .outputs import placed

__all__ = ("einsum", "tensordot", "kron", "chain_matmul")
METHODS = ("kron",)
LINALG = ("multi_dot",)


def tensordot(a, b, dims=2, out=None):
    """Sums of products over ``dims``: the last ``dims`` axes of a with the first of b, or two lists of axes.

    Shapes      axes of a that are not summed, then those of b
    Raises      RuntimeError where the summed axes differ in number or length
    """
    over_a, over_b = _summed_axes(a, b, dims)
    for i, (d, e) in enumerate(zip(over_a, over_b)):
        a, b = _evened(a, b, d, e, i, dims)
    free_a = [d for d in range(a.ndim) if d not in over_a]
    free_b = [d for d in range(b.ndim) if d not in over_b]
    shape = [a.shape[d] for d in free_a] + [b.shape[d] for d in free_b]
    inner = _size(a, over_a)
    left = a.permute(*free_a, *over_a).reshape(_size(a, free_a), inner)
    right = b.permute(*over_b, *free_b).reshape(inner, _size(b, free_b))
    return placed("tensordot", (left @ right).reshape(shape), out)


def _size(t, axes):
    size = 1
    for d in axes:
        size *= t.shape[d]
    return size


def _summed_axes(a, b, dims):
    """The axes of a and of b that are summed, counted from 0."""
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.ndim, b.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        return list(range(a.ndim - dims, a.ndim)), list(range(dims))
    over_a, over_b = ([d] if isinstance(d, int) else list(d) for d in dims)
    if len(over_a) != len(over_b):
        raise RuntimeError("both dimension lists should have same length")
    over_a, over_b = [check_dim(d, a.ndim) for d in over_a], [check_dim(d, b.ndim) for d in over_b]
    for t_dims in (over_a, over_b):
        for d in t_dims:
            if t_dims.count(d) > 1:
                raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return over_a, over_b


def _evened(a, b, d, e, i, dims):
    """a and b with the axes d and e of one length: where one has length 1, the other is summed first."""
    m, n = a.shape[d], b.shape[e]
    if m == n:
        return a, b
    if n == 1:
        return a.sum(d, keepdim=True), b
    if m == 1:
        return a, b.sum(e, keepdim=True)
    names = (d - a.ndim, e) if isinstance(dims, int) else (d, e)
    raise RuntimeError(
        f"contracted dimensions need to match, but first has size {m} in dim {names[0]} and second has size {n} "
        f"in dim {names[1]}"
    )


def kron(input, other, *, out=None):
    """The Kronecker product: blocks of ``other`` scaled by the elements of ``input``.

    Shapes      lengths multiply axis by axis, the shorter shape filled with ones in front
    """
    n = max(input.ndim, other.ndim)
    a = (1,) * (n - input.ndim) + tuple(input.shape)
    b = (1,) * (n - other.ndim) + tuple(other.shape)
    left = input.reshape([v for size in a for v in (size, 1)])
    right = other.reshape([v for size in b for v in (1, size)])
    return placed("kron", (left * right).reshape([i * j for i, j in zip(a, b)]), out)


# ---- chains of matrices


def chain_matmul(*matrices, out=None):
    """The product of the matrices, in the order that multiplies least. Deprecated in favour of linalg.multi_dot."""
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    if len(matrices) == 1:
        return placed("chain_matmul", matrices[0], out)
    warn(
        "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use torch.linalg.multi_dot "
        "instead, which accepts a list of two or more tensors rather than multiple parameters."
    )
    return multi_dot(matrices, out=out)


def multi_dot(tensors, *, out=None):
    """The product of a list of matrices in the order that multiplies least; the first and last may be vectors.

    Raises      RuntimeError where one is no matrix or two neighbours do not fit
    Source      Cormen et al., Introduction to Algorithms, section 15.2
    """
    tensors = list(tensors)
    _check_chain(tensors)
    first, last = tensors[0], tensors[-1]
    chain = [first.unsqueeze(0) if first.ndim == 1 else first, *tensors[1:-1]]
    chain.append(last.unsqueeze(-1) if last.ndim == 1 else last)
    product = _chained(chain, _best_splits([t.shape[0] for t in chain] + [chain[-1].shape[1]]), 0, len(chain) - 1)
    if first.ndim == 1:
        product = product.squeeze(0)
    return placed("multi_dot", product.squeeze(-1) if last.ndim == 1 else product, out)


def _check_chain(tensors):
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    for i, t in enumerate(tensors):
        if i in (0, len(tensors) - 1):
            if t.ndim not in (1, 2):
                which = "first" if i == 0 else "last"
                raise RuntimeError(f"multi_dot(): the {which} tensor must be 1D or 2D but got {t.ndim}D")
        elif t.ndim != 2:
            raise RuntimeError(f"multi_dot(): tensor {i} must be 2D but got {t.ndim}D")
    for i, (a, b) in enumerate(zip(tensors, tensors[1:])):
        if a.shape[-1] != b.shape[0]:
            shapes = f"{list(a.shape)} and {list(b.shape)}"
            raise RuntimeError(f"multi_dot(): tensors {i} and {i + 1} with shapes {shapes} cannot be multiplied")


def _best_splits(sizes):
    """``split[i, j]``: after which to cut the product of matrices i to j, matrix i being sizes[i] x sizes[i+1]."""
    count = len(sizes) - 1
    cost = {(i, i): 0 for i in range(count)}
    split = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            ways = ((cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j))
            cost[i, j], split[i, j] = min(ways)
    return split


def _chained(chain, split, i, j):
    if i == j:
        return chain[i]
    k = split[i, j]
    return matmul(_chained(chain, split, i, k), _chained(chain, split, k + 1, j))


# ---- einsum


def einsum(*args):
    """The sum of products that an equation spells: ``einsum("bij,bjk->bik", x, y)``.

    A letter names an axis; letters that are not in the output are summed, a letter twice in one operand takes the
    diagonal, ``...`` stands for axes that broadcast. Without ``->`` the output has the ellipsis axes and then, in
    alphabetical order, the letters that occur once. Also ``einsum(x, [0, 1], y, [1, 2], [0, 2])``.

    Shapes      as spelt; an axis of length 1 meets any length
    Raises      RuntimeError or ValueError, in PyTorch's words, for an equation that does not fit the operands
    Source      Smith, Gray 2018, opt_einsum, JOSS 3(26) 753, for the greedy order of pairs

    >>> x = cudagrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> cudagrad.einsum("ij,ij->i", x, x)
    tensor([ 5., 25.])
    """
    from .equation import parse

    inputs, output, operands = parse(args)
    sizes = _sizes(inputs, operands)
    terms = [_plain(t, labels, sizes, n) for n, (t, labels) in enumerate(zip(operands, inputs))]
    while len(terms) > 1:
        i, j = _next_pair([labels for _, labels in terms], output, sizes)
        b, a = terms.pop(j), terms.pop(i)
        kept = set(output).union(*(labels for _, labels in terms))
        terms.append(_pair(a, b, kept))
    return _finished(*terms[0], output, sizes)


def _sizes(inputs, operands):
    """The length of every label; 1 where it is 1 everywhere."""
    sizes = {}
    for n, (labels, t) in enumerate(zip(inputs, operands)):
        own = {}
        for label, size in zip(labels, t.shape):
            if own.setdefault(label, size) != size:
                raise RuntimeError(
                    f"einsum(): subscript {label} is repeated for operand {n} but the sizes don't match, "
                    f"{size} != {own[label]}"
                )
        for label, size in own.items():
            seen = sizes.setdefault(label, size)
            if seen == 1:
                sizes[label] = size
            elif size not in (1, seen):
                raise RuntimeError(
                    f"einsum(): subscript {label} has size {size} for operand {n} which does not broadcast with "
                    f"previously seen size {seen}"
                )
    return sizes


def _plain(t, labels, sizes, n):
    """An operand with no label twice, and without the axes of length 1 that broadcast."""
    labels = list(labels)
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            t = t.diagonal(0, first, second)  # the diagonal comes as the last axis
            labels = [v for i, v in enumerate(labels) if i not in (first, second)] + [label]
    for label in [v for i, v in enumerate(labels) if t.shape[i] == 1 and sizes[v] != 1]:
        t = t.squeeze(labels.index(label))
        labels.remove(label)
    return t, labels


def _next_pair(terms, output, sizes):
    """The pair whose product shrinks most: its size less that of the two it takes the place of."""
    if len(terms) == 2:
        return 0, 1
    best = None
    for i in range(len(terms)):
        for j in range(i + 1, len(terms)):
            rest = set(output).union(*(t for k, t in enumerate(terms) if k not in (i, j)))
            made = [v for v in dict.fromkeys([*terms[i], *terms[j]]) if v in rest]
            grows = _product(made, sizes) - _product(terms[i], sizes) - _product(terms[j], sizes)
            if best is None or grows < best[0]:
                best = grows, i, j
    return best[1:]


def _product(labels, sizes):
    size = 1
    for v in labels:
        size *= sizes[v]
    return size


def _pair(a, b, kept):
    """The sum of products of two terms over the labels that nobody needs any more, as one batched product."""
    (a, la), (b, lb) = _summed_alone(*a, set(b[1]) | kept), _summed_alone(*b, set(a[1]) | kept)
    both = [v for v in la if v in lb]
    batch, inner = [v for v in both if v in kept], [v for v in both if v not in kept]
    left, right = [v for v in la if v not in lb], [v for v in lb if v not in la]
    labels = [*batch, *left, *right]
    if not inner:
        return _aligned(a, la, labels) * _aligned(b, lb, labels), labels
    sizes = {**dict(zip(la, a.shape)), **dict(zip(lb, b.shape))}
    size = [[sizes[v] for v in group] for group in (batch, left, inner, right)]
    m, k, n = (_product(group, sizes) for group in (left, inner, right))
    lead = [_product(batch, sizes)] if batch else []
    x = a.permute([la.index(v) for v in (*batch, *left, *inner)]).reshape([*lead, m, k])
    y = b.permute([lb.index(v) for v in (*batch, *inner, *right)]).reshape([*lead, k, n])
    return matmul(x, y).reshape([*size[0], *size[1], *size[3]]), labels


def _summed_alone(t, labels, wanted):
    """A term summed over the labels that only it has."""
    alone = [i for i, v in enumerate(labels) if v not in wanted]
    return (t.sum(alone), [v for v in labels if v in wanted]) if alone else (t, labels)


def _aligned(t, labels, order):
    """A term with its axes in ``order``, those it lacks of length 1."""
    t = t.permute([labels.index(v) for v in order if v in labels])
    shape = iter(t.shape)
    return t.reshape([next(shape) if v in labels else 1 for v in order])


def _finished(t, labels, output, sizes):
    """The last term summed, with its axes in the order of the output."""
    t, labels = _summed_alone(t, labels, set(output))
    t = _aligned(t, labels, output) if len(labels) < len(output) else t.permute([labels.index(v) for v in output])
    shape = [sizes[v] for v in output]
    return t if list(t.shape) == shape else t.expand(shape)
