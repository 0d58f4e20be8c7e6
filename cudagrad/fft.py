"""The names of ``torch.fft``: what the files of ``ops`` list under FFT."""

from .ops import listed

globals().update(listed("FFT"))
__all__ = list(listed("FFT"))
