"""PyTorch's own tables of operators, modules and optimizers, run by both engines; needs the extra ``peer``."""
