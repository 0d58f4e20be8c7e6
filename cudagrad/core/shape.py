"""What a shape is, and the layout of its elements."""


class Size(tuple):
    """A shape: a tuple of ints with ``numel()``, printed as ``torch.Size([2, 3])``."""

    __slots__ = ()

    def numel(self):
        count = 1
        for n in self:
            count *= n
        return count

    def __repr__(self):
        return f"torch.Size({list(self)})"

    def __getitem__(self, index):
        got = tuple.__getitem__(self, index)
        return Size(got) if isinstance(index, slice) else got

    def __add__(self, other):
        return Size(tuple.__add__(self, tuple(other)))

    def __radd__(self, other):
        return Size(tuple(other) + tuple(self))

    def __mul__(self, count):
        return Size(tuple.__mul__(self, count))

    __rmul__ = __mul__

    def __reduce__(self):
        return Size, (tuple(self),)


class strided:
    """The memory layout that every tensor here has."""

    def __repr__(self):
        return "torch.strided"

    def __reduce__(self):
        return "strided"


strided = strided()


def check_dim(dim, ndim):
    """``dim`` counted from the front; IndexError in PyTorch's words where there is none such."""
    low, high = (-ndim, ndim - 1) if ndim else (-1, 0)
    if not low <= dim <= high:
        raise IndexError(f"Dimension out of range (expected to be in range of [{low}, {high}], but got {dim})")
    return dim + ndim if dim < 0 else dim
