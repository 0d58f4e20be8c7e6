"""A linear map and an activation as one op, which one kernel computes without a pass over memory between them."""

from ..core.modes import MODE
from ..core.op import TABLE, asks, op
from .affine import explain_linear, linear, linear_back

__all__ = ()
FUNCTIONAL = ("linear_act",)

_SMOOTH = {"gelu": "gelu_exact", "gelu_tanh": "gelu_tanh", "silu": "silu"}  # act -> its op


def _linear(xp, x, w, b):
    return TABLE["linear"].forward(xp, x, w, b)


def _run(name, z):
    """The activation's own forward, on the device of ``z``."""
    return TABLE[name].impl[z.__class__](z)


def _first_order(name, xp, m, g, z):
    """The activation's own first-order rule, from its input or its output."""
    rule = TABLE[name].fused
    given = {"xp": xp, "m": m, "g": g, "x": z, "out": z}
    return rule(*(given[asked] for asked in asks(rule)))[0]


def _explain(error, x, w, b=None, **options):
    return explain_linear(error, x, w, b)


def _relu_back(m, g, x, w, out, b_shape, needs):
    return linear_back(m, m.only(g, out != 0), x, w, b_shape, needs)


def _relu_first(xp, m, g, x, w, out, b_shape, needs):
    return linear_back(m, _first_order("relu", xp, m, g, out), x, w, b_shape, needs)


@op(joint=_relu_back, fused=_relu_first, uniform=True, explain=_explain, node="Relu")
def linear_relu(xp, x, w, b=None):
    """max(x @ w^T + b, 0); the result alone tells the derivative."""
    return _run("relu", _linear(xp, x, w, b))


def _smooth_back(m, g, x, w, b, b_shape, needs, act):
    slope = TABLE[_SMOOTH[act]].formulas["x"]
    return linear_back(m, slope(m, g, m.linear(x, w, b)), x, w, b_shape, needs)


def _smooth_first(xp, m, g, x, w, b, b_shape, needs, act, pre):
    pre = m.linear(x, w, b) if pre is None else pre
    dz = _first_order(_SMOOTH[act], xp, m, g, pre).astype(x.dtype, copy=False)  # NumPy's bfloat16 may be wider by now
    return linear_back(m, dz, x, w, b_shape, needs)


@op(joint=_smooth_back, fused=_smooth_first, extras=("pre",), uniform=True, explain=_explain, node="LinearAct")
def linear_smooth(xp, x, w, b=None, *, act, keep):
    """act(x @ w^T + b) for an ``act`` whose derivative needs its argument, which comes back too where ``keep``.

    Not of complex numbers: the tape takes derivatives of those from conjugated inputs.
    """
    pre = _linear(xp, x, w, b)
    return _run(_SMOOTH[act], pre), pre if keep and pre.dtype.kind != "c" else None


def linear_act(input, weight, bias=None, act="none"):
    """act(input @ weight^T + bias), ``act`` one of "none", "relu", "gelu", "gelu_tanh", "silu".

    What ``linear`` and then the activation give, in one op: on CUDA one kernel. A relu keeps its result for the
    derivative, the others their argument.

    Shapes      input [...,K], weight [N,K] or [K], bias broadcastable to the result -> [...,N], or [...] for weight [K]
    Dtypes      all the same, floating; float16 and bfloat16 are added up in float32
    Derivative  with dz = act'(z) * g: by input dz @ weight; by weight dz^T @ input; by bias dz added up over the rows
    Raises      RuntimeError where shapes or dtypes do not fit, ValueError for another ``act``
    Differs     no function of PyTorch's: its name for what cuBLASLt calls an epilogue

    >>> cudagrad.nn.functional.linear_act(cudagrad.ones(2, 3), -cudagrad.ones(4, 3), act="relu").sum()
    tensor(0.)
    """
    if act == "none":
        return linear(input, weight, bias)
    if act == "relu":
        return TABLE["linear_relu"].call(input, weight, bias)
    if act not in _SMOOTH:
        raise ValueError(f"linear_act: act is {act!r}; it may be none, relu, {', '.join(_SMOOTH)}")
    wanted = (input, weight) if bias is None else (input, weight, bias)
    keep = MODE.grad and any(getattr(t, "node", None) is not None for t in wanted)
    return TABLE["linear_smooth"].call(input, weight, bias, act=act, keep=keep)
