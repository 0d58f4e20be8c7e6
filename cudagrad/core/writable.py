"""What is checked before a write, and before what was saved is used: nothing is changed here."""

import sys

from .. import errors
from ..backend import data_ptr, memory_of
from .modes import MODE, SPACE
from .node import outside, rule
from .views import INFERENCE

# ---- before a write


def check_writable(x):
    """RuntimeError in PyTorch's words where ``x`` may not be written in place just now."""
    check_history(x)
    array = x.array
    if 0 in array.strides and array.size > 1 and _overlaps(array):
        raise _refused(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation.",
            x,
        )


def check_history(x):
    """As ``check_writable``, for what changes the shape of ``x`` alone: no element is written."""
    if x.version is INFERENCE and not MODE.inference:
        raise _refused(
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a "
            "normal tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details.",
            x,
        )
    if MODE.grad and (x.node is not None or x.link is not None):
        _check_nodes(x)


def _check_nodes(x):
    made_by, chain = None, [x]
    while chain[-1].link is not None:
        base, *_, maker = chain[-1].link
        made_by = made_by or maker
        chain.append(base)
    nodes = [t.node for t in chain if t.node is not None]
    if not nodes:
        return
    if made_by is not None:
        raise _refused(forbidden(made_by, "is being modified"), x)
    if any(k.fn is None for k in nodes):
        of = "view of a " if x.link is not None else ""
        raise _refused(f"a {of}leaf Variable that requires grad is being used in an in-place operation.", x)


def forbidden(made_by, done):
    """PyTorch's words for a view that may not be written, or not be used once its base was."""
    if made_by == "no_grad":
        return (
            "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that this "
            "use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view "
            "and the inplace either both inside the no_grad block (if you don't want the inplace to be tracked) or "
            "both outside (if you want the inplace to be tracked)."
        )
    first = f"Output {made_by[1]} of {_short(made_by[0])} is a view and {done} inplace. This view "
    if made_by[2:] == ("function",):
        return first + (
            "was created inside a custom Function (or because an input was returned as-is) and the autograd logic to "
            "handle view+inplace would override the custom backward associated with the custom Function, leading to "
            "incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of the custom "
            "Function."
        )
    return first + (
        "is the output of a function that returns multiple views. Such functions do not allow the output views to be "
        "modified inplace. You should replace the inplace operation by an out-of-place one."
    )


@rule("StaleView")
def stale_rule(k, g, heap):
    raise RuntimeError(forbidden(k.attrs, "its base or another view of its base has been modified"))


stale_rule.graph = lambda k, g: stale_rule(k, g, None)


def _overlaps(array):
    return any(s == 0 and n > 1 for n, s in zip(array.shape, array.strides))


def check_apart(x, sources, entirely=False):
    """RuntimeError where a source lies in part in the memory of ``x``, which is about to be written.

    One that is exactly the memory of ``x`` is fine, but not for a write that moves elements, which must have its
    sources ``entirely`` elsewhere. As in PyTorch, only memory without gaps is looked at.
    """
    a = x.array
    root = memory_of(a)
    for y in sources:
        b = getattr(y, "array", None)
        if b is None or memory_of(b) is not root:
            continue
        if _meet_in_part(a, b) if not entirely else _meet(a, b):
            raise _refused(
                "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
                "memory location. Please clone() the tensor before performing the operation.",
                x,
            )


def _meet_in_part(a, b):
    same = a is b or (data_ptr(a) == data_ptr(b) and a.nbytes == b.nbytes and _steps(a) == _steps(b))
    return not same and _meet(a, b)


def _meet(a, b):
    if not (_gapless(a) and _gapless(b)):
        return False
    start, other = data_ptr(a), data_ptr(b)
    return start < other + b.nbytes and other < start + a.nbytes


def _steps(array):
    return [(s, n) for s, n in zip(array.strides, array.shape) if n != 1]


def _gapless(array):
    """Whether the elements lie in one piece of memory, in the order of some permutation of the axes."""
    expected = array.itemsize
    for stride, length in sorted(_steps(array)):
        if stride != expected:
            return False
        expected *= length
    return array.size > 0


def _refused(first, x):
    frame = outside(sys._getframe(2))
    return RuntimeError(
        errors.text(first, f"the tensor is {x.dtype} {tuple(x.shape)}", site=(frame.f_code, frame.f_lasti))
    )


def check_fits(x, t):
    if t.array.shape != x.array.shape:
        raise RuntimeError(
            f"output with shape {list(x.array.shape)} doesn't match the broadcast shape {list(t.array.shape)}"
        )
    if t.dtype.category > x.dtype.category:
        raise RuntimeError(
            errors.text(
                f"result type {t.dtype.legacy} can't be cast to the desired output type {x.dtype.legacy}",
                "an in-place operation never changes the dtype of its tensor",
            )
        )


# ---- before what was saved is used


def check_saved(k):
    """RuntimeError where something that node ``k`` saved was written to since: its op, versions, and both lines."""
    for value in k.saved:
        counter = value.version if hasattr(value, "version") else k.counter
        if value is not None and counter is not None and counter[0] < k.seq:
            raise _modified(k, value, counter)


def _modified(k, value, counter):
    since = [w for w in counter[3] if w[0] < k.seq]
    tensor = value if hasattr(value, "link") else SPACE["wrap"](getattr(value, "array", value))
    kind = f"torch.{tensor.dtype.legacy}Tensor {list(tensor.shape)}"
    made = tensor.node if tensor is value else k
    of = f", which is output 0 of {_short(made.name())}," if made is not None and made.fn is not None else ","
    first = (
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{kind}]{of} is at version {counter[1]}; expected version {counter[1] - len(since)} instead. Hint: enable "
        "anomaly detection to find the operation that failed to compute its gradient, with "
        "torch.autograd.set_detect_anomaly(True, check_nan=False)."
    )
    lines = [f"saved by {k.name()} " + errors.place(k.code, k.lasti)]
    lines += ["changed " + errors.place(code, lasti) for _, code, lasti in since[-1:]]
    return RuntimeError(errors.text(first, *lines, "fix: use the out-of-place form, or clone() before the change"))


def _short(name):
    return name.removesuffix("0").removesuffix("Backward")


SPACE.update(check_saved=check_saved)
