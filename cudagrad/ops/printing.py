"""How a tensor prints: PyTorch's digits, its rule for scientific notation, and its suffixes."""

import math

import numpy as np

from .. import dtypes
from ..backend.device import get_default_device
from .interop import host

__all__ = ("set_printoptions",)

_PROFILES = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}
_options = {**_PROFILES["default"], "sci_mode": None}


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None):
    """Change how tensors print; ``profile`` is "default", "short" or "full", ``sci_mode`` None decides by the values.

    Raises      ValueError for an unknown profile
    """
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f"profile must be one of {', '.join(_PROFILES)}; got {profile}")
        _options.update(_PROFILES[profile])
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    _options.update({name: value for name, value in given.items() if value is not None})
    _options["sci_mode"] = sci_mode


class _Form:
    """How the numbers of one tensor are written: all to one width, by what the largest and smallest need."""

    def __init__(self, values):
        self.floating = values.dtype.kind == "f"
        self.width, self.sci, self.whole = 1, False, True
        if not self.floating:
            self.width = max((len(str(v)) for v in values.ravel().tolist()), default=1)
            return
        finite = np.abs(values[np.isfinite(values) & (values != 0)].astype(np.float64))
        if finite.size:
            low, high = finite.min(), finite.max()
            self.whole = bool((finite == np.ceil(finite)).all())
            self.sci = high / low > 1000 or high > 1e8 or (not self.whole and low < 1e-4)
        if _options["sci_mode"] is not None:
            self.sci = _options["sci_mode"]
        shown = values[np.isfinite(values) & (values != 0)]
        self.width = max((len(self._digits(v)) for v in shown.ravel().tolist()), default=1)

    def _digits(self, v):
        if self.sci:
            return f"{v:.{_options['precision']}e}"
        if self.whole:
            return f"{v:.0f}" + ("." if math.isfinite(v) else "")
        return f"{v:.{_options['precision']}f}"

    def __call__(self, v):
        return (self._digits(v) if self.floating else str(v)).rjust(self.width)


def _line(values, form, indent):
    """One dimension of numbers, broken where the line is full."""
    edge = _options["edgeitems"]
    texts = list(map(form, values))
    if values.shape[0] > 2 * edge and _summarized.on:
        texts = [*texts[:edge], " ...", *texts[len(texts) - edge :]]
    per_line = max(1, (_options["linewidth"] - indent) // (form.width + 2))
    lines = [texts[i : i + per_line] for i in range(0, len(texts), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(", ".join(line) for line in lines) + "]"


class _summarized:
    """Whether the tensor being printed is too long to show whole."""

    on = False


def _block(values, form, indent):
    if values.ndim == 0:
        return form(values.item())
    if values.ndim == 1:
        return _line(values, form, indent)
    edge = _options["edgeitems"]
    if _summarized.on and values.shape[0] > 2 * edge:
        parts = [_block(v, form, indent + 1) for v in values[:edge]] + ["..."]
        parts += [_block(v, form, indent + 1) for v in values[-edge:]]
    else:
        parts = [_block(v, form, indent + 1) for v in values]
    return "[" + ("," + "\n" * (values.ndim - 1) + " " * (indent + 1)).join(parts) + "]"


class _ComplexForm:
    """Complex numbers: both parts, each to its own width."""

    def __init__(self, values):
        self.real, self.imag = _Form(values.real), _Form(values.imag)
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, v):
        imag = self.imag(v.imag).lstrip()
        return self.real(v.real) + (imag if imag.startswith("-") else "+" + imag) + "j"


def _edges(values):
    """The elements that a summarized print shows."""
    edge = _options["edgeitems"]
    for axis in range(values.ndim):
        if values.shape[axis] > 2 * edge:
            values = np.concatenate([values.take(range(edge), axis), values.take(range(-edge, 0), axis)], axis)
    return values


def _contents(t, indent):
    values = host(t)
    if t.dtype in (dtypes.bfloat16, dtypes.float16):
        values = values.astype(np.float32)
    _summarized.on = values.size > _options["threshold"]
    shown = _edges(values) if _summarized.on else values
    form = _ComplexForm(shown) if values.dtype.kind == "c" else _Form(shown)
    return _block(values, form, indent)


def __repr__(input):
    prefix = type(input).__dict__.get("_repr_prefix", "tensor(")
    suffixes = []
    if input.device.type != get_default_device().type or input.device.index is not None:
        suffixes.append(f"device='{input.device}'")
    usual = input.dtype in (dtypes.get_default_dtype(), dtypes.int64, dtypes.bool)
    usual = usual or input.dtype is dtypes.get_default_dtype().to_complex()
    if input.array.size == 0:
        contents = "[]"
        if input.array.ndim != 1:
            suffixes.append(f"size={tuple(input.array.shape)}")
        if input.dtype is not dtypes.get_default_dtype():
            suffixes.append(f"dtype={input.dtype}")
    else:
        contents = _contents(input, len(prefix))
        if not usual:
            suffixes.append(f"dtype={input.dtype}")
    if input.grad_fn is not None:
        suffixes.append(f"grad_fn=<{input.grad_fn.name().removeprefix('torch::autograd::')}>")
    elif input.requires_grad:
        suffixes.append("requires_grad=True")
    return _joined(prefix + contents, suffixes, len(prefix)) + ")"


def _joined(text, suffixes, indent):
    """The suffixes after the numbers, on a new line where the last one is full."""
    last = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if last + len(suffix) + 2 > _options["linewidth"]:
            text += ",\n" + " " * indent + suffix
            last = indent + len(suffix)
        else:
            text += ", " + suffix
            last += len(suffix) + 2
    return text


METHODS = {"__repr__": __repr__, "__str__": __repr__}
