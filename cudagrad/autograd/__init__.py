"""The public face of the tape: gradients, user-defined functions, hooks, checks and functional transforms."""

from ..core.backward import backward, grad
from ..core.function import Function, FunctionCtx
from ..core.modes import enable_grad, inference_mode, no_grad, set_grad_enabled
from . import function, functional, graph
from .anomaly import detect_anomaly, set_detect_anomaly
from .gradcheck import GradcheckError, gradcheck, gradgradcheck
from .variable import Variable

__all__ = [
    "Function",
    "FunctionCtx",
    "GradcheckError",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "function",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]
