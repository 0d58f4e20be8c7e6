"""The name of ``torch.utils.tensorboard``: the writer of the package tensorboardX."""

try:
    from tensorboardX import SummaryWriter
except ImportError as error:
    raise ImportError("SummaryWriter is tensorboardX's, which is not installed: pip install tensorboardX") from error

__all__ = ["SummaryWriter"]
