"""Settings of the process: threads, determinism, precision, and the CUDAGRAD_* variables."""

import os
import warnings

__all__ = [
    "are_deterministic_algorithms_enabled",
    "get_float32_matmul_precision",
    "get_num_threads",
    "set_float32_matmul_precision",
    "set_num_threads",
    "use_deterministic_algorithms",
]

# CUDAGRAD_STRICT=1: an error, instead of the slower path, where a kernel should have run and could not.
STRICT = os.environ.get("CUDAGRAD_STRICT", "0") == "1"

# CUDAGRAD_CHECK=1: indices and targets are looked at on a GPU too, which has to be waited for; the emulated device
# looks at every access of a kernel.
CHECK = os.environ.get("CUDAGRAD_CHECK", "0") == "1"

# CUDAGRAD_DEBUG=1: a user's own kernel is proved on the emulated device at its first call.
DEBUG = os.environ.get("CUDAGRAD_DEBUG", "0") == "1"

# CUDAGRAD_MATMUL: who makes products of matrices on CUDA: "own" kernels, the "library" (cuBLAS), or, by the rule of
# backend/kernels/adapters/linear.py, "auto".
MATMUL = os.environ.get("CUDAGRAD_MATMUL", "auto")

_precision = "highest"


def use_deterministic_algorithms(mode, *, warn_only=False):
    """Accepted: every op here is deterministic always, in the first and the second derivative."""
    if not isinstance(mode, bool):
        raise TypeError(f"use_deterministic_algorithms(): argument 'mode' must be bool, not {type(mode).__name__}")


def are_deterministic_algorithms_enabled():
    """True: there are no others."""
    return True


def set_float32_matmul_precision(precision):
    """How float32 matrix products may be computed on CUDA: "highest" is float32, "high" and "medium" allow TF32.

    Raises      ValueError for another word
    """
    global _precision
    if precision not in ("highest", "high", "medium"):
        raise ValueError(f"{precision} is not one of highest, high, or medium.")
    _precision = precision


def get_float32_matmul_precision():
    """The setting of ``set_float32_matmul_precision``."""
    return _precision


def _pools():
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController().select(user_api="blas")


def set_num_threads(count):
    """Let the CPU's matrix products use ``count`` threads; needs the package threadpoolctl, and warns without it.

    Raises      RuntimeError for a count below 1
    """
    if count < 1:
        raise RuntimeError("set_num_threads expects a positive integer")
    pools = _pools()
    if pools is None:
        warnings.warn(
            "set_num_threads: nothing was changed, since threadpoolctl is not installed (pip install threadpoolctl); "
            "OPENBLAS_NUM_THREADS in the environment does the same",
            UserWarning,
            stacklevel=2,
        )
        return
    for pool in pools.lib_controllers:
        pool.set_num_threads(count)


def get_num_threads():
    """The threads that the CPU's matrix products may use."""
    pools = _pools()
    if pools is None or not pools.lib_controllers:
        return int(os.environ.get("OPENBLAS_NUM_THREADS") or os.cpu_count() or 1)
    return pools.lib_controllers[0].num_threads
