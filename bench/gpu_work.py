"""What the kernels do, as work to check and to time: a table in PyTorch's names, run by cudagrad and by PyTorch."""

import dataclasses
from collections.abc import Callable

# 1 row, 1 column, ragged, powers of two and their neighbours, none, rows that registers do not hold.
ROWS = (
    (1, 1),
    (1, 100),
    (7, 1),
    (5, 31),
    (4, 32),
    (3, 33),
    (2, 129),
    (37, 1000),
    (9, 1024),
    (3, 1025),
    (0, 8),
    (2, 20001),
)
PRODUCTS = ((1, 1, 1), (1, 64, 8), (5, 3, 7), (16, 16, 16), (17, 31, 33), (64, 65, 63), (130, 40, 72), (3, 200, 129))


@dataclasses.dataclass(frozen=True)
class Work:
    """``call(torch, *leaves)`` on leaves of ``shapes_of(size)``; ``peer`` is the same in names that PyTorch has too.

    ``forward`` and ``backward`` are the targets: a share of the bandwidth of a copy at least (positive), or a multiple
    of PyTorch's time at most (negative). ``passes`` counts reads and writes of the first leaf, forward and backward;
    ``flops(*size)`` is given where the work is bound by arithmetic.
    """

    name: str
    call: Callable
    shapes_of: Callable
    checked: tuple = ROWS
    timed: tuple = (16384, 4096)
    peer: Callable | None = None
    passes: tuple = (2, 3)
    flops: Callable | None = None
    forward: float = 0.92
    backward: float = 0.92
    dtypes: tuple = ("float32", "float16", "bfloat16")


def _row(*others):
    """Shapes of x [N,C] and of ``others``: "x" as x, "c" [C]."""
    return lambda n, c: [(n, c), *((n, c) if o == "x" else (c,) for o in others)]


def _linear(act, by="auto"):
    """``linear_act`` with products by "own" kernels, the "library", or the one of the two that the rule prefers."""

    def call(torch, x, w, b):
        torch.config.MATMUL = by  # until the next call: the products of its backward, too
        return torch.nn.functional.linear_act(x, w, b, act)

    return call


def _linear_peer(act):
    def call(torch, x, w, b):
        F = torch.nn.functional
        y = F.linear(x, w, b)
        acts = {"none": lambda y: y, "relu": F.relu, "gelu": F.gelu, "silu": F.silu}
        return acts[act](y) if act in acts else F.gelu(y, approximate="tanh")

    return call


def _targets(torch, x):
    """Class numbers for the rows of x, every seventh of them ignored."""
    n, c = x.shape
    y = torch.arange(n, device=x.device) * 7919 % max(c, 1)
    return torch.where(torch.arange(n, device=x.device) % 7 == 6, torch.full_like(y, -100), y)


def _cross_entropy(torch, x):
    weight = torch.linspace(0.5, 1.5, x.shape[1], device=x.device, dtype=x.dtype)
    smooth = {"weight": weight, "label_smoothing": 0.1}
    return torch.nn.functional.cross_entropy(x, _targets(torch, x), reduction="sum", **smooth)


def _dropout(torch, x):
    torch.manual_seed(3)
    return torch.nn.functional.dropout(x, 0.25)


def _bias_dropout_add(torch, x, b, r):
    torch.manual_seed(3)
    return torch.nn.functional.bias_dropout_add(x, b, r, 0.25)


def _bias_dropout_add_peer(torch, x, b, r):
    return r + torch.nn.functional.dropout(x + b, 0.25)


def _add_norm(torch, x, r, w, b):
    y, total = torch.nn.functional.add_layer_norm(x, r, w.shape, w, b)
    return y + 0.5 * total


def _add_norm_peer(torch, x, r, w, b):
    total = x + r
    return torch.nn.functional.layer_norm(total, w.shape, w, b) + 0.5 * total


def _linear_work(act, by="auto", forward=-1 / 1.12, backward=-1.0):
    return Work(
        f"linear_{act}" + (f"_{by}" if by != "auto" else ""),
        _linear(act, by),
        lambda m, n, k: [(m, k), (n, k), (n,)],
        checked=PRODUCTS,
        timed=(16384, 4096, 4096),
        peer=_linear_peer(act),
        flops=lambda m, n, k: 2 * m * n * k,
        forward=forward,
        backward=backward,
    )


WORK = (
    *(_linear_work(act, "own", -2.0, -2.0) for act in ("none", "relu")),  # mma.sync has 60 % of Hopper's tensor cores
    _linear_work("relu", "library"),
    *(_linear_work(act) for act in ("none", "relu", "gelu", "gelu_tanh", "silu")),
    Work(  # w comes first: its bytes are those that count
        "linear_few_rows",
        lambda torch, w, x: _linear("none")(torch, x, w, None),
        lambda m, n, k: [(n, k), (m, k)],
        checked=PRODUCTS[:4],
        timed=(8, 16384, 4096),
        peer=lambda torch, w, x: torch.nn.functional.linear(x, w),
        passes=(1, 2),
        forward=0.8,
        backward=-1.0,
    ),
    Work("layer_norm", lambda t, x, w, b: t.nn.functional.layer_norm(x, w.shape, w, b), _row("c", "c"), backward=0.75),
    Work("rms_norm", lambda t, x, w: t.nn.functional.rms_norm(x, w.shape, w), _row("c"), backward=0.75),
    Work("add_layer_norm", _add_norm, _row("x", "c", "c"), peer=_add_norm_peer, passes=(4, 4), backward=0.75),
    Work("softmax", lambda t, x: t.softmax(x, -1), _row()),
    Work("softmax_columns", lambda t, x: t.softmax(x, 0), _row(), forward=0.8, backward=0.8),
    Work("log_softmax", lambda t, x: t.log_softmax(x, -1), _row()),
    Work("logsumexp", lambda t, x: t.logsumexp(x, -1), _row(), passes=(1, 2)),
    Work("cross_entropy", _cross_entropy, _row(), timed=(8192, 32000), passes=(2, 0), forward=0.9),
    Work("dropout", _dropout, _row(), passes=(2, 2), forward=0.9, backward=0.9),
    Work(
        "bias_dropout_add",
        _bias_dropout_add,
        _row("c", "x"),
        peer=_bias_dropout_add_peer,
        passes=(3, 2),
        forward=0.9,
        backward=0.75,
    ),
    Work("gelu", lambda t, x: t.nn.functional.gelu(x), _row(), forward=0.95, backward=0.95),
    Work("mul", lambda t, x, y: x * y, _row("x"), passes=(3, 5), forward=0.95, backward=0.95),
    Work("add_row", lambda t, x, b: x + b, _row("c"), passes=(2, 1), forward=0.95, backward=0.75),
)
