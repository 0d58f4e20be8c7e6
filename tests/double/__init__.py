"""A double of CuPy: what cudagrad asks of it, with NumPy for the GPU's memory and the emulated device for launches.

It is as strict as CuPy where NumPy is not: a NumPy array is no operand, a result is always an array, nothing is copied
to the host but by those who say so, arrays of another GPU than the current one are refused, and every call is checked
against the signature of the CuPy that is installed. What is copied to the host is counted.
"""

from .install import installed
from .module import Double

__all__ = ("Double", "installed")
