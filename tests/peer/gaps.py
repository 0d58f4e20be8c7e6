"""What of PyTorch's tables is not here, what differs and why, and what cannot be compared number by number.

The tests keep MISSING and DIFFERS exact: an operator that is there, or agrees, may not be listed.
"""

# ---- operators that are not here, by the reason


def _named(prefix, names):
    return {prefix + name for name in names.split()}


MISSING = {
    "masked tensors": _named(
        "masked.",
        "sum prod cumsum cumprod amax amin argmax argmin mean median norm var std softmax log_softmax softmin "
        "normalize logaddexp logsumexp",
    ),
    "sparse tensors": {"sparse.sampled_addmm", "sparse.mm.reduce", "to_sparse"},
    "half-precision complex numbers": {"chalf"},
    "kernels given as CUDA text, which PyTorch compiles at run time": {
        *("jiterator_unary", "jiterator_binary", "jiterator_4inputs_with_extra_args", "jiterator_2inputs_2outputs"),
        "jiterator_binary_return_by_ref",
    },
    "parts of PyTorch's own kernels, which programs do not call by name": {
        *("_softmax_backward_data", "native_group_norm", "native_layer_norm", "native_batch_norm", "slice"),
        *("_native_batch_norm_legit", "_batch_norm_with_update", "_upsample_bilinear2d_aa", "native_dropout_backward"),
        *("max_pool2d_with_indices_backward", "torch._scaled_mm", "torch._scaled_mm_v2", "hash_tensor", "_chunk_cat"),
        *("torch.ops.aten._safe_softmax.default", "grid_sampler_2d"),
        *("grid_sampler_3d", "_unsafe_masked_index"),
        *("_unsafe_masked_index_put_accumulate", "_segment_reduce.lengths", "_segment_reduce.offsets"),
    },
    "factorisations that few programs ask for": {
        *("geqrf", "ormqr", "linalg.ldl_factor", "linalg.ldl_factor_ex", "linalg.ldl_solve"),
    },
    "special functions that few programs ask for": {"igamma", "igammac"}
    | _named("special.", "airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 spherical_bessel_j0")
    | _named("special.", "modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1")
    | _named("special.", "scaled_modified_bessel_k0 scaled_modified_bessel_k1"),
}

# ---- operators that differ: label -> check -> why

_APART = {"error 'unsupported operation'": "the result is made first, so out= may share memory with an input"}
_CAST = "out= of another dtype is cast to, as by the other operators"
_OUT = {
    "error \"Expected the dtype for input and out to match, but got Float for input's ": "says what other operators say"
}
_REPLACED = {
    "error 'the written-to tensor refer to a single memory location'": "an out= of another shape gets memory of its own"
}
_NARROW = {
    f"error {regex!r}"[:80]: "narrow_copy says what narrow says"
    for regex in (
        r"Expected dim < static_cast<int64_t>\(self_sizes.size\(\)\) to be true, but got false\.",
        r"start \(0\) \+ length \(-1\) exceeds dimension size \(10\)\.",
    )
}
_COMPLEX32 = {"float16": "there is no complex32"}
_SCATTERED = "PyTorch's gradient of the input is that of the places that src replaces; ours is 0 there"
_TRIANGLE = "0 in the triangle that is not read, where PyTorch's is not projected"
_CHUNKED = {"second derivative": "PyTorch's chunked path has none; here the options change nothing"}
_NOT_SQUARES = "complex input is refused: PyTorch averages squares that are not those of sizes"
_AT_ZERO = "0, where PyTorch's is nan"

DIFFERS = {
    "addbmm": {"forms": "addbmm_ keeps the shape of its tensor, where PyTorch's resizes a smaller one"},
    "aminmax": {"error 'Expected out tensor to have dtype float, but got double instead'": _CAST},
    "as_strided_scatter": {
        name: _SCATTERED
        for name in (
            *("gradient", "second derivative", "float32 gradient", "complex gradient", "complex second derivative"),
        )
    },
    "amax": _OUT,
    "amin": _OUT,
    "cat": _REPLACED,
    "narrow_copy": _NARROW,
    "cholesky_solve": {
        name: _TRIANGLE for name in ("gradient", "second derivative", "float32 gradient", "complex gradient")
    },
    "complex": _COMPLEX32,
    "view_as_complex": _COMPLEX32,
    "gather": {"error 'Expected out tensor to have dtype'": _CAST, **_APART},
    "index_select": _APART,
    "kthvalue": _APART,
    "masked_select": _APART,
    "take": _APART,
    "linalg.norm.subgradients_at_zero": {"second derivative": _AT_ZERO, "complex second derivative": _AT_ZERO},
    "matrix_exp": {"float16": "computed in float32, so it is finite longer than PyTorch's"},
    "nn.functional.linear_cross_entropy.chunked": _CHUNKED,
    "nn.functional.linear_cross_entropy.chunked_none": _CHUNKED,
    "nn.functional.rms_norm": {
        name: _NOT_SQUARES for name in ("complex64", "complex gradient", "complex second derivative")
    },
}

# ---- operators whose numbers are not determined

# Drawn from a generator, whose numbers are our own: compared by shape, dtype and what a seed determines.
RANDOM = {"cauchy", "exponential", "geometric", "log_normal", "normal.in_place", "uniform", "randn", "randn_like"}
RANDOM |= {"rand_like", "randint", "randint_like", "multinomial", "normal", "normal.number_mean", "bernoulli"}
RANDOM |= {f"nn.functional.{name}" for name in ("dropout", "dropout2d", "dropout3d", "alpha_dropout", "rrelu")}
RANDOM |= {f"nn.functional.feature_alpha_dropout.{name}_train" for name in ("with", "without")}
RANDOM |= {f"nn.functional.fractional_max_pool{ndim}d" for ndim in (2, 3)}
RANDOM |= {"svd_lowrank", "pca_lowrank"}  # by a random projection
RANDOM |= {"nn.functional.scaled_dot_product_attention", "nn.functional.multi_head_attention_forward"}

# Uninitialised memory: compared by shape and dtype.
UNDEFINED = {"empty", "empty_like", "new_empty", "new_empty_strided", "empty_strided", "empty_permuted"}

# Not unique: compared after the map that the samples of PyTorch's table carry (None), or by what is said here.
INVARIANT = {name: None for name in ("svd", "linalg.svd", "linalg.eig", "linalg.eigh", "svd_lowrank", "pca_lowrank")}


def _read(x, indices, dim):
    """What lies in x at the indices, which may be any of equal elements."""
    if x.ndim == 0:
        return x
    return x.gather(dim, indices if indices.ndim == x.ndim else indices.unsqueeze(dim))


def _topk(torch, out, x, k, dim=-1, *args, **kwargs):
    return out[0], _read(x, out[1], dim)


def _mode(torch, out, x, dim=-1, *args, **kwargs):
    return out[0], _read(x, out[1], dim)


def _sort(torch, out, x, dim=-1, descending=False, stable=False):
    return tuple(out) if stable else (out[0], _read(x, out[1], dim))


def _argsort(torch, out, x, dim=-1, descending=False, stable=False):
    return out if stable else _read(x, out, dim)


INVARIANT |= {"topk": _topk, "kthvalue": _topk, "mode": _mode, "sort": _sort, "argsort": _argsort}

# ---- modules and optimizers

MODULES_MISSING = set()

# With dropout in training, or random samples.
RANDOM_MODULES = {"nn.TransformerEncoder", "nn.TransformerEncoderLayer", "nn.TransformerDecoderLayer", "nn.Transformer"}
RANDOM_MODULES |= {"nn.FractionalMaxPool2d", "nn.FractionalMaxPool3d", "nn.MultiheadAttention"}

OPTIMIZERS_MISSING = {"SparseAdam"}  # there are no sparse tensors

OPTIMIZERS_DIFFER = {"Muon": "the iteration runs in the parameter's precision, PyTorch's in bfloat16"}


def missing():
    """The labels of all operators that are not here."""
    return set().union(*MISSING.values())
