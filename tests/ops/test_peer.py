"""The table of cases on PyTorch, where it is installed: the same values, dtypes, gradients and error lines."""

import warnings

import numpy as np
import pytest

from cudagrad import dtypes

from . import running as run
from .cases import load

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.peer

ROWS = [(f"{name}-{i}" if len(rows) > 1 else name, c) for name, rows in load().items() for i, c in enumerate(rows)]
DTYPES = {"float64": np.float64, "float32": np.float32}


def peer(case):
    """PyTorch's function of a row's name; None where the row has a function of its own."""
    if case._f is not None:
        return None
    found = torch
    for part in case.name.split("."):
        found = getattr(found, part, None)
    return found


SHARED = [pytest.param(c, id=i) for i, c in ROWS if peer(c) is not None]


def on_torch(given, wrt=()):
    made = []

    def make(a):
        t = torch.from_numpy(np.array(a))
        if len(made) in wrt:
            t.requires_grad_()
        made.append(t)
        return t

    args, options = run.each(given, make)
    options = {k: getattr(torch, v.name) if isinstance(v, dtypes.dtype) else v for k, v in options.items()}
    return (args, options), made


def quiet(function, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **options)


@pytest.mark.parametrize("case", SHARED)
def test_values_and_dtypes_are_pytorchs(case):
    for i, given_input in enumerate(case.inputs):
        for name, dtype in DTYPES.items():
            given = given_input.given(i, dtype)
            args, options = on_torch(given)[0]
            try:
                expected = run.flat(quiet(peer(case), *args, **options))
            except (TypeError, NotImplementedError):  # a call that only NumPy's keywords or wider dtypes make legal
                continue
            got = run.flat(quiet(run.call, case, run.tensors(given, "cpu")[0]))
            what = f"{case.name} {given_input!r} {name}"
            for g, e in zip(got, expected, strict=True):
                if isinstance(e, torch.Tensor):
                    assert str(e.dtype) == repr(g.dtype), f"{what}: {g.dtype}, PyTorch {e.dtype}"
                    g, e = run.numpy_of(g), e.detach().resolve_conj().numpy()
                run.assert_close(g, e, 1e-9 if name == "float64" else 3e-5, what)


@pytest.mark.parametrize("case", [p for p in SHARED if p.values[0].grad and p.values[0].inputs])
def test_gradients_are_pytorchs(case):
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
        if case.name == "ldexp" and made[1].dtype is torch.int64:  # its gradient is 0 for exponents below 0
            continue
        from .test_ops import first

        got = quiet(first, case, given, places, weights, "cpu")
        for g, e, t in zip(got, found, leaves):
            expected = np.zeros(t.shape) if e is None else e.numpy(force=True)
            run.assert_close(g, expected, 1e-9, f"{case.name} {given_input!r} gradient")


@pytest.mark.parametrize("case", [p for p in SHARED if p.values[0].errors])
def test_error_lines_are_pytorchs(case):
    for i, error in enumerate(case.errors):
        args, options = on_torch(error.call.given(i, np.float32))[0]
        with pytest.raises(error.kind) as caught:
            quiet(peer(case), *args, **options)
        assert error.match in str(caught.value).split("\n")[0], str(caught.value)
