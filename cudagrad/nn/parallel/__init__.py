"""Data parallelism within a process: on one device a module runs as it is."""

from .data_parallel import DataParallel, data_parallel

__all__ = ["DataParallel", "data_parallel"]
