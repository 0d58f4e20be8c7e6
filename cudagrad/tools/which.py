"""Which code runs for a call: the kernel or the text of every op in it, and why."""

import dataclasses
import os

from ..backend import device_of
from ..backend.kernels import dispatch
from ..core.modes import watching


@dataclasses.dataclass(frozen=True)
class Ran:
    """One op of a call: what ran, on which device, and why not a kernel where none did."""

    op: str
    device: str
    code: str
    why: str

    def __str__(self):
        return f"{self.op} on {self.device}: {self.code}" + (f" ({self.why})" if self.why else "")


def where(function, *args, **kwargs):
    """A list of ``Ran``, one for every op that ``function(*args, **kwargs)`` calls, which it is to find that out.

    The rules that a backward within runs are not listed.

    >>> print(*where(cudagrad.nn.functional.relu, tensor([1.0])))
    relu on cpu: cudagrad/ops/activation.py relu (the CPU runs no kernels)
    """
    found = []

    def note(op, tensors, options, call):
        with dispatch.noting() as notes:
            result = call(tensors, options)
        found.extend(_ran(op, tensors, [n for n in notes if n[0] == op.name]))
        return result

    with watching(note):
        function(*args, **kwargs)
    return found


def _ran(op, tensors, notes):
    device = next((str(device_of(t.array)) for t in tensors if t is not None), "cpu")
    launched = [code for _, code, _ in notes if code]
    if launched:
        if op.name.startswith("kernel "):  # a user's own, which says itself where its source is
            why = "built for this processor" if device == "cpu" else ""
            return [Ran(op.name, device, code, why) for code in launched]
        return [Ran(op.name, device, f"kernels/{code}", "") for code in launched]
    why = next((reason for _, _, reason in notes if reason), None)
    if why is None:
        why = "the CPU runs no kernels" if device == "cpu" else "no kernel serves it"
    code = op.forward.__code__
    path = code.co_filename.replace(os.sep, "/")
    return [Ran(op.name, device, f"cudagrad/{path.rpartition('/cudagrad/')[2]} {op.name}", why)]
