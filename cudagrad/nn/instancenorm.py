"""Normalisation of each sample's channels by themselves."""

import warnings

from ..ops.batch_normalization import instance_norm
from .batchnorm import _NormBase

__all__ = ("InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d")


class _InstanceNorm(_NormBase):
    """(x - mean) / sqrt(var + eps) * weight + bias, mean and var of a channel of a sample."""

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=False,
        track_running_stats=False,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _check_input_dim(self, input):
        n = self._axes
        if input.dim() not in (n + 1, n + 2):
            raise ValueError(f"expected {n + 1}D or {n + 2}D input (got {input.dim()}D input)")

    def forward(self, input):
        self._check_input_dim(input)
        dim = input.dim() - self._axes - 1
        if input.size(dim) != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={dim} to match num_features ({self.num_features}), but got: "
                    f"{input.size(dim)}."
                )
            warnings.warn(
                f"input's size at dim={dim} does not match num_features. You can silence this warning by not passing "
                "in num_features, which is not used because affine=False",
                stacklevel=2,
            )
        x = input if input.dim() == self._axes + 2 else input.unsqueeze(0)
        of_input = self.training or not self.track_running_stats
        momentum = 0.0 if self.momentum is None else self.momentum
        running = (self.running_mean, self.running_var)
        out = instance_norm(x, *running, self.weight, self.bias, of_input, momentum, self.eps)
        return out if x is input else out.squeeze(0)

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        if local_metadata.get("version", None) is None and not self.track_running_stats:
            stale = [k for k in (prefix + "running_mean", prefix + "running_var") if k in state_dict]
            if stale:
                names = " and ".join(f'"{k}"' for k in stale)
                error_msgs.append(
                    f"Unexpected running stats buffer(s) {names} for {type(self).__name__} with "
                    "track_running_stats=False. If state_dict is a checkpoint saved before 0.4.0, this may be expected "
                    f"because {type(self).__name__} does not track running stats by default since 0.4.0. Please remove "
                    "these keys from state_dict. If the running stats are actually needed, instead set "
                    f"track_running_stats=True in {type(self).__name__} to enable them. See the documentation of "
                    f"{type(self).__name__} for details."
                )
                for key in stale:
                    state_dict.pop(key)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of [N,C,T] or [C,T].

    Shapes      weight, bias, running_mean, running_var [C]
    Init        weight 1, bias 0, both only with ``affine``; running mean 0, running variance 1
    Raises      ValueError for another number of axes, or one value a channel
    Source      Ulyanov, Vedaldi, Lempitsky 2016, arXiv:1607.08022, equation 3
    """

    _axes = 1


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of [N,C,H,W] or [C,H,W]; see ``InstanceNorm1d``."""

    _axes = 2


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of [N,C,D,H,W] or [C,D,H,W]; see ``InstanceNorm1d``."""

    _axes = 3
