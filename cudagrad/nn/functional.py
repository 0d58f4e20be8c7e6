"""The functions of neural networks by PyTorch's names: what the files of ``ops`` list under FUNCTIONAL."""

from .. import ops
from ..ops.pointwise import sigmoid, tanh

globals().update(ops.listed("FUNCTIONAL"))
__all__ = [*ops.listed("FUNCTIONAL"), "sigmoid", "tanh"]
