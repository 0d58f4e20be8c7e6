"""Batch normalisation over the processes of a group."""

from .batchnorm import _BatchNorm

__all__ = ("SyncBatchNorm",)


class SyncBatchNorm(_BatchNorm):
    """As BatchNorm for any number of spatial axes; within one process the batch is the process's own.

    Shapes      input, out [N,C,...]
    Raises      ValueError for an input of fewer than two dimensions
    Differs     ``process_group`` is kept and not used: statistics are those of this process
    """

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        process_group=None,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input):
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None):
        """The module with every BatchNorm in it made a SyncBatchNorm, over the same parameters and buffers."""
        made = module
        if isinstance(module, _BatchNorm):
            made = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            made._parameters, made._buffers = dict(module._parameters), dict(module._buffers)
            made.training = module.training
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made
