"""Tools to look into cudagrad with: which code runs, and what the kernels are."""

from .which import where
