"""The names of ``torch.backends``: switches of libraries that are not used here, kept so that programs may set them."""


class _Switches:
    """Attributes that a program may set and read back."""

    def __init__(self, available, **values):
        self._available = available
        self.__dict__.update(values)

    def is_available(self):
        """Whether the library is used here."""
        return self._available

    def is_built(self):
        """Whether the library is used here."""
        return self._available


cudnn = _Switches(False, enabled=True, deterministic=True, benchmark=False, allow_tf32=True, benchmark_limit=10)
cudnn.version = lambda: None
cuda = _Switches(False, matmul=_Switches(False, allow_tf32=False, allow_fp16_reduced_precision_reduction=True))
mps = _Switches(False)
mkl = _Switches(False)
mkldnn = _Switches(False, enabled=False)
openmp = _Switches(False)
