"""The functions of neural networks by PyTorch's names: what the files of ``ops`` list under FUNCTIONAL."""

from .. import ops

_INPLACE = ("celu_", "elu_", "hardtanh_", "leaky_relu_", "relu_", "rrelu_", "selu_", "threshold_")

globals().update(ops.listed("FUNCTIONAL"))
globals().update({name: getattr(ops, name) for name in _INPLACE if hasattr(ops, name)})
__all__ = [*ops.listed("FUNCTIONAL"), *(name for name in _INPLACE if hasattr(ops, name))]
