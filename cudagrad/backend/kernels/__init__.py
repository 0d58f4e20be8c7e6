"""The CUDA sources of `kernels/`: their headers read, built, cached, and put before the texts of the ops they serve."""
