"""Full backward hooks: catches the gradients of a module's outputs and inputs and hands both to the user's hook."""

import warnings

from ..backend import xp_of
from ..core.function import Function
from ..core.modes import is_grad_enabled
from ..core.tensor import Tensor, wrap


class BackwardHookFunction(Function):
    """The tensors as they are, all made by one node, whose hooks see their gradients together."""

    @staticmethod
    def forward(ctx, *tensors):
        ctx.mark_non_differentiable(*(t for t in tensors if not t.requires_grad))
        return tensors

    @staticmethod
    def backward(ctx, *grads):
        return grads


class BackwardHook:
    """One call of a module with full backward hooks; keeps ``grad_outputs`` until the inputs' gradients are there."""

    def __init__(self, module, user_hooks, user_pre_hooks):
        self.module, self.user_hooks, self.user_pre_hooks = module, user_hooks, user_pre_hooks
        self.grad_outputs, self.zeros = None, {}
        self.inputs = self.outputs = None  # places of the tensors; None where none of them requires a gradient
        self.n_inputs = self.n_outputs = -1

    def setup_input_hook(self, args):
        """The arguments to call forward with."""
        self.n_inputs = len(args)
        # A tensor that wants no gradient has zeros for one; only what is no tensor has None.
        self.zeros = {i: _zeros(t) for i, t in enumerate(args) if isinstance(t, Tensor) and not t.requires_grad}
        args, self.inputs = _through_one_node(args, self._inputs_done)
        return args

    def setup_output_hook(self, result):
        """What the module's call returns."""
        results = result if isinstance(result, tuple) else (result,)
        self.n_outputs = len(results)
        results, self.outputs = _through_one_node(results, self._outputs_done)
        return results if isinstance(result, tuple) else results[0]

    def _outputs_done(self, _, grad_outputs):
        """After the outputs' node: their gradients are all known."""
        self.grad_outputs = _spread(grad_outputs, self.outputs, self.n_outputs)
        for hook in self.user_pre_hooks:
            got = hook(self.module, self.grad_outputs)
            if got is not None:
                self.grad_outputs = _same_length(got, self.grad_outputs, "Backward pre hook", "grad_output")
        grads = tuple(self.grad_outputs[i] for i in self.outputs)
        if self.inputs is None:
            self._call_without_inputs()
        return grads

    def _inputs_done(self, grad_inputs, _):
        """After the inputs' node; it may run without the outputs' one, in a second derivative."""
        if self.grad_outputs is None:
            return None
        grads = [self.zeros[i]() if i in self.zeros else g for i, g in zip(self.inputs, grad_inputs)]
        grads = _spread(grads, self.inputs, self.n_inputs)
        for hook in self.user_hooks:
            got = hook(self.module, grads, self.grad_outputs)
            if got is not None:
                grads = _same_length(got, grads, "Backward hook", "grad_input")
        self.grad_outputs = None
        return tuple(None if g is None else grads[i] for i, g in zip(self.inputs, grad_inputs))

    def _call_without_inputs(self):
        warnings.warn(
            "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs "
            "require gradients. See https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html"
            "#torch.nn.Module.register_full_backward_hook for more details.",
            stacklevel=2,
        )
        nothing = (None,) * self.n_inputs
        for hook in self.user_hooks:
            got = hook(self.module, nothing, self.grad_outputs)
            if got is not None and not (isinstance(got, tuple) and all(g is None for g in got)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None for "
                    "all gradients."
                )
        self.grad_outputs = None


def _zeros(t):
    """A function that makes zeros like ``t`` without keeping ``t`` alive."""
    zeros, shape, dtype = xp_of(t.array).zeros, t.array.shape, t.array.dtype
    return lambda: wrap(zeros(shape, dtype))


def _spread(grads, places, count):
    """A tuple of ``count`` with the gradients at their places and None elsewhere."""
    spread = [None] * count
    for i, g in zip(places, grads):
        spread[i] = g
    return tuple(spread)


def _same_length(got, expected, whose, what):
    if len(got) != len(expected):
        raise RuntimeError(
            f"{whose} returned an invalid number of {what}, got {len(got)}, but expected {len(expected)}"
        )
    return got


def _through_one_node(values, hook):
    """The values with all tensors made by one node with ``hook``, and their places; None if none needs a gradient."""
    places = [i for i, v in enumerate(values) if isinstance(v, Tensor)]
    tensors = [values[i] for i in places]
    if not is_grad_enabled() or not any(t.requires_grad for t in tensors):
        return values, None
    made = BackwardHookFunction.apply(*tensors)
    next(t for t in made if t.requires_grad).grad_fn.register_hook(hook)
    spread = list(values)
    for i, t in zip(places, made):
        spread[i] = t
    return (tuple(spread) if type(values) is tuple else type(values)(*spread)), places
