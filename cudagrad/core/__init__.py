"""The tape: tensors, nodes, the engine and the declaration of ops, and nothing about any one op."""
