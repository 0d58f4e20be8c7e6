"""Ops that formulas are made of: zeros in the shape of a gradient, and a gradient where a mask lets it through."""

from ..core.op import SAME, op

__all__ = ()

_INTEGERS = {2: "int16", 4: "int32", 8: "int64"}  # of the same size as an element


def complex_valued(x):
    """Whether an array or a Tensor is complex: formulas run on both."""
    return getattr(x.dtype, "kind", "") == "c" or getattr(x.dtype, "is_complex", False)


@op()
def null(xp, x):
    """Zeros in the shape and dtype of x, whatever x holds."""
    return xp.zeros(x.shape, x.dtype)


@op(x=SAME, at=lambda m, at: m.null(at))
def tied(xp, x, at):
    """x, a gradient that depends on ``at`` by steps alone: zeros come back to ``at``, where else it had no part in x.

    Shapes      any; the second derivative of what is made of straight pieces is zero then, and no error
    """
    return x


@op(x=lambda m, g, mask: m.only(g, mask))
def only(xp, x, mask):
    """x where the bool ``mask`` is True, 0 elsewhere, also where x is infinite or nan.

    Shapes      mask broadcasts to x
    """
    whole = _INTEGERS.get(x.dtype.itemsize)
    if whole is None:
        return xp.where(mask, x, xp.zeros((), x.dtype))
    # 0 * inf is nan, but 0 * its bits is 0. xp.where gives the same, in 2.1 ms against 0.11 for 2 MiB (EPYC 4, 1 core):
    # its branches are mispredicted.
    return (x.view(whole) * mask).view(x.dtype)
