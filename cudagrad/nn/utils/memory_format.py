"""Weights of convolutions in another order in memory."""

from ..conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d


def _convert(module, memory_format, kinds):
    for part in module.modules():
        if isinstance(part, kinds):
            part.weight.data = part.weight.detach().contiguous(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module, memory_format):
    """The module with the weights of its Conv2d and ConvTranspose2d in ``memory_format``."""
    return _convert(module, memory_format, (Conv2d, ConvTranspose2d))


def convert_conv3d_weight_memory_format(module, memory_format):
    """The module with the weights of its Conv3d and ConvTranspose3d in ``memory_format``."""
    return _convert(module, memory_format, (Conv3d, ConvTranspose3d))
