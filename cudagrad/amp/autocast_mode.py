"""Autocast: matrix products in a half dtype, what needs the range in float32, the rest as it comes."""

import functools

from .. import dtypes
from ..core.modes import MODE, watching
from ..core.promote import cast
from ..core.tensor import Tensor

# Ops, and compositions marked `autocasts`, that gain from a half dtype and lose little by it, and those that need
# float32, as PyTorch lists them for each kind of device. What stands in no list follows its inputs: softmax and the
# norms on the CPU, for one.
LOW = {"linear", "linear_relu", "linear_smooth", "mm", "mm_nt", "mm_tn", "bmm", "matmul", "addmm", "prelu", "attention"}
LOW |= {"convolution", "convolution_transpose", "rnn_layer", "lstm_layer", "gru_layer"}
LOW |= {"baddbmm", "addbmm", "scaled_dot_product_attention"}
LOW_ON_CUDA = {"mv"}
FULL = {"squared_error", "bent_distance", "negative_log_likelihood", "cross_entropy_of_classes", "cdist", "prod"}
FULL |= {"binary_cross_entropy_each", "binary_cross_entropy_of_logits", "ctc_negative_log_likelihood"}
FULL |= {"l1_loss", "kl_div", "poisson_nll_loss", "cosine_embedding_loss", "hinge_embedding_loss"}
FULL |= {"margin_ranking_loss", "multi_margin_loss", "multilabel_margin_loss", "soft_margin_loss"}
FULL |= {"triplet_margin_loss", "pdist"}
FULL_ON_CPU = {"trace", "avg_pool3d", "grid_sample"}
FULL_ON_CPU |= {"determinant", "sign_and_log", "matrix_inverse", "solve_matrices", "all_of_svd", "hermitian_eigen"}
FULL_ON_CPU |= {"general_eigen", "reduced_qr", "cholesky_lower", "pseudo_inverse"}
FULL_ON_CUDA = {"softmax", "log_softmax", "layer_norm", "group_norm", "rms_norm", "cumsum", "cumprod", "vector_norm"}
FULL_ON_CUDA |= {"add_layer_norm", "add_rms_norm"}
FULL_ON_CUDA |= {"exp", "expm1", "log", "log10", "log1p", "log2", "power", "power_number", "reciprocal", "rsqrt"}
FULL_ON_CUDA |= {"sinh", "cosh", "tan", "acos", "asin", "erfinv", "sum", "logsumexp", "apply_taps"}
FULL_ON_CUDA |= {"softplus", "cosine_similarity", "dist", "renorm", "norm", "normalize"}
_LISTS = {"cpu": (LOW, FULL | FULL_ON_CPU), "cuda": (LOW | LOW_ON_CUDA, FULL | FULL_ON_CUDA)}
_LISTS["emulated"] = _LISTS["cuda"]
_HALVES = {"cpu": (dtypes.bfloat16, dtypes.float16), "cuda": (dtypes.float16, dtypes.bfloat16)}


class autocast:
    """Within, ops on ``device_type`` choose their dtype: ``dtype`` (bfloat16 on the CPU, float16 on CUDA) or float32.

    Context manager and decorator. The cast of a leaf is made once and kept until the outermost one ends
    (``cache_enabled``), so that its gradient comes back once.

    Raises      RuntimeError for an unknown device type
    Source      pytorch.org/docs/stable/amp.html, autocasting and op reference
    """

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if device_type not in _LISTS:
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        self.device = device_type
        self.fast_dtype = dtype or _HALVES.get(device_type, _HALVES["cuda"])[0]
        self._enabled = enabled
        self.cache = {} if cache_enabled is not False else None

    def __enter__(self):
        self._watcher = watching(self._watch)
        self._watcher.__enter__()
        self._before = MODE.autocast
        MODE.autocast = {**MODE.autocast, self.device: self}
        return self

    def __exit__(self, *exception):
        self._watcher.__exit__()
        MODE.autocast = self._before
        if self.cache is not None:
            self.cache.clear()

    def __call__(self, function):
        @functools.wraps(function)
        def within(*args, **kwargs):
            with type(self)(self.device, self.fast_dtype, self._enabled, self.cache is not None):
                return function(*args, **kwargs)

        return within

    def _watch(self, op, tensors, options, call):
        active = MODE.autocast.get(self.device) is self
        d = self._dtype_for(op.name) if active else None
        return call(tensors if d is None else type(tensors)(self._cast(t, d) for t in tensors), options)

    def cast_for(self, name, args, kwargs):
        """The arguments of the composition ``name``, its tensors in the dtype that it runs in."""
        d = self._dtype_for(name)
        if d is None:
            return args, kwargs
        return [self._cast(a, d) for a in args], {k: self._cast(a, d) for k, a in kwargs.items()}

    def _dtype_for(self, name):
        low, full = _LISTS[self.device]
        if not self._enabled:
            return None
        return self.fast_dtype if name in low else dtypes.float32 if name in full else None

    def _cast(self, t, d):
        if not isinstance(t, Tensor) or t.device.type != self.device or t.dtype is d:
            return t
        if t.dtype not in (dtypes.float32, dtypes.float16, dtypes.bfloat16):
            return t
        if self.cache is None or t.node is None or t.node.fn is not None:
            return cast(t, d.numpy)
        key = id(t), d
        if key not in self.cache:
            self.cache[key] = t, cast(t, d.numpy)  # the leaf is kept with it, so that its id stays its own
        return self.cache[key][1]


def is_autocast_available(device_type):
    """Whether ``autocast`` knows the device type."""
    return device_type in _LISTS


def is_autocast_enabled(device_type="cuda"):
    """Whether ops on the device type choose their dtype in this thread."""
    active = MODE.autocast.get(device_type)
    return active is not None and active._enabled


def get_autocast_dtype(device_type):
    """The half dtype of autocast on the device type."""
    active = MODE.autocast.get(device_type)
    return active.fast_dtype if active is not None else _HALVES.get(device_type, _HALVES["cuda"])[0]


def custom_fwd(fwd=None, *, device_type="cuda", cast_inputs=None):
    """Decorator of a Function's forward: autocast's state is kept for backward; ``cast_inputs``: cast, then off."""
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def forward(ctx, *args, **kwargs):
        active = is_autocast_enabled(device_type)
        ctx._dtype = get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = active and cast_inputs is None
        if cast_inputs is None or not active:
            return fwd(ctx, *args, **kwargs)
        args = [a.to(cast_inputs) if hasattr(a, "node") and a.is_floating_point() else a for a in args]
        with autocast(device_type, enabled=False):
            return fwd(ctx, *args, **kwargs)

    return forward


def custom_bwd(bwd=None, *, device_type="cuda"):
    """Decorator of a Function's backward: it runs under the autocast state that its forward had."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(ctx, *grads):
        with autocast(device_type, dtype=ctx._dtype, enabled=ctx._fwd_used_autocast):
            return bwd(ctx, *grads)

    return backward
