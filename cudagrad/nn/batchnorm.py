"""Normalisation over the batch."""

from ..backend import empty
from ..core.tensor import wrap
from ..dtypes import get_default_dtype, int64
from ..ops.batch_normalization import batch_norm
from . import init
from .linear import uninitialised
from .module import Module

__all__ = ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d")


def _buffer(shape, device, dtype):
    return wrap(empty(shape, dtype or get_default_dtype(), device))


class _NormBase(Module):
    """What batch and instance normalisation share: weight, bias and running statistics."""

    _version = 2
    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        shape = (num_features,)
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, uninitialised(shape, device, dtype) if wanted else None)
        for name in ("running_mean", "running_var"):
            self.register_buffer(name, _buffer(shape, device, dtype) if track_running_stats else None)
        count = wrap(empty((), int64, device)) if track_running_stats else None
        self.register_buffer("num_batches_tracked", count)
        self.reset_parameters()

    def reset_running_stats(self):
        """Mean 0, variance 1, no batch seen."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self):
        """Weight 1, bias 0, statistics as at the start."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input_dim(self, input):
        raise NotImplementedError

    def extra_repr(self):
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self._has_bias()}, track_running_stats={self.track_running_stats}"
        )

    def _has_bias(self):
        return self.bias is not None

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        key, version = prefix + "num_batches_tracked", local_metadata.get("version", None)
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            # a checkpoint from before batches were counted
            counted = self.num_batches_tracked
            state_dict[key] = counted if counted is not None else wrap(empty((), int64)).zero_()
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class _BatchNorm(_NormBase):
    """(x - mean) / sqrt(var + eps) * weight + bias, over the batch in training, by running statistics else."""

    def forward(self, input):
        self._check_input_dim(input)
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the mean of all batches so far
                factor = 1.0 / float(self.num_batches_tracked)
        of_batch = self.training or (self.running_mean is None and self.running_var is None)
        follow = not self.training or self.track_running_stats
        running = (self.running_mean, self.running_var) if follow else (None, None)
        return batch_norm(input, *running, self.weight, self.bias, of_batch, factor, self.eps)


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of [N,C] or [N,C,T].

    ``momentum``: how fast running statistics follow, None for their mean over all batches. Running variances are
    divided by one less than the count. Without ``track_running_stats`` batch statistics serve in evaluation too.

    Shapes      weight, bias, running_mean, running_var [C]
    Init        weight 1, bias 0, running mean 0, running variance 1
    Raises      ValueError for another number of axes, or one value a channel in training
    Source      Ioffe, Szegedy 2015, arXiv:1502.03167, algorithms 1 and 2
    """

    def _check_input_dim(self, input):
        if input.dim() not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of [N,C,H,W]; see ``BatchNorm1d``."""

    def _check_input_dim(self, input):
        if input.dim() != 4:
            raise ValueError(f"expected 4D input (got {input.dim()}D input)")


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of [N,C,D,H,W]; see ``BatchNorm1d``."""

    def _check_input_dim(self, input):
        if input.dim() != 5:
            raise ValueError(f"expected 5D input (got {input.dim()}D input)")
