"""The tape: tensors, nodes, the engine and the declaration of ops, and nothing about any one op."""

# What generated code reads at run time is put into its globals by these, so they are there before the first op runs.
from . import engine, explain, graph, inplace, promote, tensor

__all__ = ["engine", "explain", "graph", "inplace", "promote", "tensor"]
