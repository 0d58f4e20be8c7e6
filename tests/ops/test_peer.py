"""The table of cases on PyTorch, where it is installed: the same values, dtypes, gradients and error lines.

peer_gaps.py has what differs and why.
"""

import warnings

import numpy as np
import pytest

from cudagrad import dtypes
from cudagrad.core.tensor import Tensor

from . import peer_gaps
from . import running as run
from .cases import load

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.peer

ROWS = [(f"{name}-{i}" if len(rows) > 1 else name, c) for name, rows in load().items() for i, c in enumerate(rows)]
DTYPES = {np.float64: 1e-9, np.float32: 3e-5}  # and the error that may be, in parts of the largest element


def peer(case):
    """PyTorch's function of a row's name; None where the row has a function of its own."""
    if case._f is not None:
        return None
    found = torch
    for part in case.name.split("."):
        found = getattr(found, part, None)
    return found


SHARED = [pytest.param(i, c, id=i) for i, c in ROWS if peer(c) is not None]


def on_torch(given, wrt=()):
    made = []

    def make(a):
        t = torch.from_numpy(np.array(a))
        if len(made) in wrt:
            t.requires_grad_()
        made.append(t)
        return t

    args, options = run.each(given, make)
    return ([translated(a) for a in args], {k: translated(v) for k, v in options.items()}), made


def translated(value):
    """A tensor or dtype of ours as PyTorch's."""
    if isinstance(value, Tensor):
        return torch.from_numpy(value.numpy())
    return getattr(torch, value.name) if isinstance(value, dtypes.dtype) else value


def quiet(function, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **options)


def assert_agrees(known, case, given, got, expected, rel, what):
    """``assert_close``, of what ``known`` (from peer_gaps.py) makes of a row's results where they differ."""
    if known is None:
        return run.assert_close(got, expected, rel, what)
    got, expected, limit = known(case, given, np.asarray(got), np.asarray(expected))
    run.assert_close(got, expected, rel, what, limit)


def differ(got, expected, rel):
    """Whether arrays are further apart than where there is nothing to say about them."""
    try:
        run.assert_close(got, expected, rel, "")
    except AssertionError:
        return True
    return False


@pytest.mark.parametrize("row, case", SHARED)
def test_values_and_dtypes_are_pytorchs(row, case):
    known, apart = peer_gaps.VALUES.get(row), False
    for i, given_input in enumerate(case.inputs):
        for dtype, rel in DTYPES.items():
            given = given_input.given(i, dtype)
            args, options = on_torch(given)[0]
            try:
                expected = run.flat(quiet(peer(case), *args, **options))
            except (TypeError, NotImplementedError):  # a call that only NumPy's keywords or wider dtypes make legal
                continue
            got = run.flat(quiet(run.call, case, run.tensors(given, "cpu")[0]))
            what = f"{case.name} {given_input!r} {dtype.__name__}"
            for g, e in zip(got, expected, strict=True):
                if isinstance(e, torch.Tensor):
                    assert str(e.dtype) == repr(g.dtype), f"{what}: {g.dtype}, PyTorch {e.dtype}"
                    g, e = run.numpy_of(g), e.detach().resolve_conj().numpy()
                apart = apart or (known is not None and differ(g, e, rel))
                assert_agrees(known, case, given, g, e, rel, what)
    assert apart or known is None, f"{row} agrees: take it off the list"


@pytest.mark.parametrize("row, case", [p for p in SHARED if p.values[1].grad and p.values[1].inputs])
def test_gradients_are_pytorchs(row, case):
    known, apart = peer_gaps.GRADIENTS.get(row), False
    for i, given_input in enumerate(case.inputs):
        given = given_input.given(i)
        places = run.differentiable(case, given)
        (args, options), made = on_torch(given, places)
        try:
            results = run.flat(quiet(peer(case), *args, **options))
            weights = run.weights_for([r.numpy(force=True) for r in results], 1000 + i)
            total = sum(
                (r * torch.from_numpy(np.asarray(w)).conj()).real.sum()
                if r.is_complex()
                else (r * torch.tensor(w)).sum()
                for r, w in zip(results, weights)
                if w is not None and r.requires_grad
            )
            leaves = [made[p] for p in places]
            found = torch.autograd.grad(total, leaves, allow_unused=True)
        except (TypeError, NotImplementedError, AttributeError, RuntimeError):  # it has no derivative there
            continue
        from .test_ops import first

        got = quiet(first, case, given, places, weights, "cpu")
        for g, e, t in zip(got, found, leaves):
            expected = np.zeros(t.shape) if e is None else e.numpy(force=True)
            apart = apart or (known is not None and differ(g, expected, 1e-9))
            assert_agrees(known, case, given, g, expected, 1e-9, f"{case.name} {given_input!r} gradient")
    assert apart or known is None, f"{row} agrees: take it off the list"


def said(function, *args, **options):
    """The type and the first line of what a call raises, without what names an engine or a machine."""
    try:
        quiet(function, *args, **options)
    except Exception as error:  # noqa: BLE001 - its type is what is compared
        first = str(error).split("\n")[0].replace("cudagrad.core.tensor.Tensor", "torch.Tensor")
        return f"{type(error).__name__}: {first.replace('-nan', 'nan')}"
    return "nothing"


@pytest.fixture(scope="module")
def no_onednn():
    """PyTorch without oneDNN, which has words of its own and is not on every machine."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.backends.mkldnn.flags(enabled=False):
            yield


@pytest.mark.parametrize("row, case", [p for p in SHARED if p.values[1].errors])
def test_error_lines_are_pytorchs(row, case, no_onednn):
    known = peer_gaps.ERRORS.get(row, ("",))[0]
    apart = False
    for error in case.errors:
        given = error.call.given(0, np.float32)
        args, options = on_torch(given)[0]
        theirs, ours = said(peer(case), *args, **options), said(run.call, case, run.tensors(given, "cpu")[0])
        if theirs == known:
            apart = apart or ours != theirs
            continue
        assert ours == theirs, f"{error.call!r}"
        assert error.match in theirs
    assert apart or not known, f"{row} agrees: take it off the list"


def test_the_list_names_rows_that_are_compared():
    rows = {p.id for p in SHARED}
    assert not {*peer_gaps.VALUES, *peer_gaps.GRADIENTS, *peer_gaps.ERRORS} - rows
