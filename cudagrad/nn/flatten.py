"""Axes flattened into one, and one axis unflattened into several."""

from .module import Module

__all__ = ("Flatten", "Unflatten")


class Flatten(Module):
    """The axes from ``start_dim`` to ``end_dim`` as one.

    Shapes      [N,*] -> [N,product of *] by default
    """

    __constants__ = ["start_dim", "end_dim"]

    def __init__(self, start_dim=1, end_dim=-1):
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input):
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self):
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """The axis ``dim`` as axes of ``unflattened_size``; one of them may be -1.

    Raises      TypeError where ``unflattened_size`` is no tuple of ints
    """

    __constants__ = ["dim", "unflattened_size"]

    def __init__(self, dim, unflattened_size):
        super().__init__()
        if not isinstance(unflattened_size, (tuple, list)):
            what = type(unflattened_size).__name__
            raise TypeError(f"unflattened_size must be a tuple of ints, but found type {what}")
        for place, n in enumerate(unflattened_size):
            if not isinstance(n, int):
                what = type(n).__name__
                raise TypeError(
                    f"unflattened_size must be tuple of ints, but found element of type {what} at pos {place}"
                )
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input):
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self):
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
