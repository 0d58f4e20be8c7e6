"""The names of ``torch.func`` that concern modules: calls with other parameters, and stacks of models."""

from .core.modes import no_grad
from .nn.utils.stateless import functional_call
from .ops.joining import stack

__all__ = ["functional_call", "stack_module_state"]


def stack_module_state(models):
    """``(params, buffers)`` of several models of one class: dicts of their tensors stacked, by full name.

    The stacked parameters are new leaves.

    Raises      RuntimeError for no models, or models of several classes, modes or ``requires_grad``
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if len({type(m) for m in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    return (
        _stacked([dict(m.named_parameters()) for m in models]),
        _stacked([dict(m.named_buffers()) for m in models]),
    )


def _stacked(states):
    return {name: _leaf([state[name] for state in states], name) for name in states[0]}


def _leaf(tensors, name):
    wanted = {t.requires_grad for t in tensors}
    if len(wanted) > 1:
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    with no_grad():
        return stack(tensors).requires_grad_(wanted.pop())
