"""Where PyTorch's result is not what a row of the table asks for, why, and what is compared instead.

A row is named as in test_peer.py: by its function, with its number where a function has several. All that is not named
here is compared as it is; test_peer.py sees to it that nothing is named that agrees.
"""

import numpy as np


def _in_float32(case, given, got, expected):
    """PyTorch's numbers went through float32: ours are at least as near to the definition."""
    exact = np.asarray(case.ref(*given[0], **given[1]))
    ours, theirs = (np.abs(np.asarray(a, np.float64) - exact).max(initial=0) for a in (got, expected))
    assert ours <= theirs, f"off by {ours:.3g} from the definition, PyTorch by {theirs:.3g}"
    return got, expected, 3e-5 * max(1.0, np.abs(exact).max(initial=0))


def _singular(case, given, got, expected):
    """The determinant of a singular matrix is all rounding, which is a part of its rows' lengths multiplied."""
    x = given[0][0]
    return got, expected, x.shape[-1] * np.finfo(expected.dtype).eps * np.prod(np.linalg.norm(x, axis=-1))


def _undefined(case, given, got, expected):
    """A singular matrix has no inverse: PyTorch's is what LAPACK left, inf and nan, ours nan. ``info`` is compared."""
    if expected.dtype.kind == "f":
        assert not np.isfinite(got).any() and not np.isfinite(expected).any()
        return got, got, None
    return got, expected, None


def _fixed_point(case, given, got, expected):
    """PyTorch interpolates bytes in 16-bit fixed point, which may be one off; ours are the definition's, rounded."""
    assert np.array_equal(got, case.ref(*given[0], **given[1]))
    return got.astype(np.float64), expected.astype(np.float64), 1.0


def _sixth(case, given, got, expected):
    """PyTorch's factor 1/6 is a float32 number in float64 as well."""
    return got, expected, (abs(float(np.float32(1 / 6)) * 6 - 1) + 1e-9) * np.abs(expected).max(initial=0)


def _triangle(case, given, got, expected):
    """The other triangle of the factor is not read: its gradient is 0, PyTorch's is what comes out of the formula."""
    if got.shape[-1] != got.shape[-2]:
        return got, expected, None
    upper = len(given[0]) > 1 and given[0][-1] is True
    return got, (np.triu if upper else np.tril)(expected), None


def _no_gradient(case, given, got, expected):
    """PyTorch's gradient by an integer exponent multiplies by 2 to its power in integers, 0 below 0."""
    below = given[0][1] < 0 if given[0][1].dtype.kind == "i" else np.zeros(np.shape(expected), bool)
    assert not np.any(expected[below])
    return got, np.where(below, got, expected), None


VALUES = dict.fromkeys(("det-1", "linalg.det-1"), _singular)
VALUES |= {"linalg.inv_ex-1": _undefined, "nn.functional.interpolate-14": _fixed_point}
WINDOWS = "hann hamming general_hamming blackman nuttall bartlett cosine gaussian-0 kaiser-0 general_cosine"
VALUES |= {f"signal.windows.{name}": _in_float32 for name in WINDOWS.split()}

GRADIENTS = {"cholesky_solve": _triangle, "cholesky_inverse": _triangle, "ldexp": _no_gradient}
GRADIENTS |= {f"nn.functional.hardsigmoid-{i}": _sixth for i in (0, 3)}

_PYTHON = "PyTorch's text in Python trips over what is no tensor; ours says what torch.{0} says"
_PLAIN = "a function of torch.special is that of its plain name, and says so"
_START = "the position is counted as of the method, which it is too"

# Row -> (PyTorch's type and first line, why ours are others)
ERRORS = {
    "nn.functional.softmax": ("AttributeError: 'int' object has no attribute 'softmax'", _PYTHON.format("softmax")),
    "nn.functional.log_softmax": (
        "AttributeError: 'int' object has no attribute 'log_softmax'",
        _PYTHON.format("log_softmax"),
    ),
    "special.softmax": ("TypeError: special_softmax(): argument 'input' (position 1) must be Tensor, not int", _PLAIN),
    "special.log_softmax": (
        "TypeError: special_log_softmax(): argument 'input' (position 1) must be Tensor, not int",
        _PLAIN,
    ),
    "reshape-2": (
        "TypeError: reshape(): argument 'shape' (position 2) must be tuple of ints, but found element of type str at "
        "pos 0",
        _START,
    ),
}
