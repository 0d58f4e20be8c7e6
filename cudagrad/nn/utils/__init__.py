"""Tools round modules: clipping, packing, normalised and parametrized weights."""

from . import parametrize, rnn, stateless
from .clip_grad import clip_grad_norm, clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm
from .convert_parameters import parameters_to_vector, vector_to_parameters
from .weight_norm import remove_weight_norm, weight_norm

try:
    from . import parametrizations
    from .spectral_norm import remove_spectral_norm, spectral_norm
except ImportError as e:
    print("NOT YET WIRED: nn.utils", e)

__all__ = [
    *("clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"),
    *("parameters_to_vector", "vector_to_parameters", "weight_norm"),
    *("remove_weight_norm", "parametrize", "rnn", "stateless"),
]
