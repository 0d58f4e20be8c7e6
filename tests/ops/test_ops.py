"""Every row of the table of cases through the same checks: values, derivatives, dtypes, layouts, errors."""

import contextlib
import warnings

import numpy as np
import pytest

import cudagrad
import cudagrad.config
from cudagrad.core.tensor import Tensor, wrap

from . import running as run
from .cases import HostError, load

ROWS = [(f"{name}-{i}" if len(rows) > 1 else name, c) for name, rows in load().items() for i, c in enumerate(rows)]


def rows(keep):
    return pytest.mark.parametrize("case", [pytest.param(c, id=i) for i, c in ROWS if keep(c)])


@pytest.fixture(params=run.DEVICES)
def device(request):
    return request.param


@contextlib.contextmanager
def told_warnings():
    """What a function warns of on purpose is its own test's matter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def results_of(case, given):
    with told_warnings():
        return run.flat(run.call(case, given))


@rows(lambda c: c.inputs)
def test_values_are_those_of_the_definition(case, device):
    """In float64 to 1e-9 of the scale; in float32 at most twice what the definition itself loses in float32."""
    for i, given_input in enumerate(case.inputs):
        for name in ("float64", "float32"):
            given = given_input.given(i, np.dtype(name))
            wide = run.each(given, _widened)
            expected = run.reference(case, wide)
            what = f"{case.name} {given_input!r} {name}"
            got = results_of(case, run.tensors(given, device)[0])
            assert len(got) == len(expected), what
            naive = expected if name == "float64" else _naive(case, given, expected)
            for g, e, n in zip(got, expected, naive):
                e = np.asarray(e)
                run.assert_category(case, g, e, run.floats_of(given, name), what)
                run.assert_close(run.numpy_of(g), e, 1e-9, what, _limit(case, _precision(case, given, name), e, n))


def _widened(a):
    if a.dtype.kind == "c":
        return a.astype(np.complex128)
    return a.astype(np.float64) if run.is_float(a) else a


def _naive(case, given, expected):
    """The definition computed in the precision of ``given``; the exact results where it cannot be."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return run.reference(case, given)
    except Exception:
        return expected


def _precision(case, given, name):
    """The name of the coarser of the dtypes of a call's inputs and results."""
    return max((name, case.out or name, run.floats_of(given, name)), key=lambda n: run.EPS.get(n, 0))


def _limit(case, name, expected, naive):
    """Twice the error of the naive computation, and a few roundings of the scale."""
    if name == "float64" or expected.dtype.kind not in "fc":
        return None
    with np.errstate(all="ignore"):
        error = np.abs(np.asarray(naive).astype(expected.dtype) - expected) if np.shape(naive) == expected.shape else 0
        error = error[np.isfinite(error)] if np.ndim(error) else np.where(np.isfinite(error), error, 0)
    worst = float(np.max(error)) if np.size(error) else 0.0
    return 2 * worst + case.roundings * run.EPS[name] * run.scale_of(expected)


@rows(lambda c: c.inputs and c.low)
def test_half_precision_keeps_its_dtype_and_digits(case, device):
    """The error against float64 is at most twice that of the definition computed in the half type."""
    for i, given_input in enumerate(case.inputs):
        for name, dtype in run.LOW.items():
            given = given_input.given(i, dtype)
            wide = run.each(given, _widened)
            expected = [np.asarray(e) for e in run.reference(case, wide)]
            what = f"{case.name} {given_input!r} {name}"
            got = results_of(case, run.tensors(given, device)[0])
            for g, e, n in zip(got, expected, _naive(case, given, expected), strict=True):
                run.assert_category(case, g, e, run.floats_of(given, name), what)
                if e.dtype.kind != "f" or case.out:
                    continue
                fits = np.abs(e) < 60000  # beyond, float16 is infinite
                g, e = run.numpy_of(g).astype(np.float64), e
                assert g.shape == e.shape, what
                n = np.asarray(n).astype(np.float64) if np.shape(n) == e.shape else e
                run.assert_close(g[fits], e[fits], None, what, _limit(case, name, e[fits], n[fits]))


@rows(lambda c: c.inputs and c.grad >= 1 and c.low and not c.out)
def test_a_gradient_that_numpy_made_float32_fits_a_bfloat16_graph(case, device):
    """bfloat16 times a Python number is a float32 to NumPy; the leaves get what they get from one in bfloat16."""
    for i, given_input in enumerate(case.inputs):
        given = given_input.given(i, run.LOW["bfloat16"])
        places = run.differentiable(case, given)
        found = [_gradients_through(case, given, places, device, widened) for widened in (False, True)]
        for plain, through in zip(*found, strict=True):
            what = f"{case.name} {given_input!r}"
            assert (plain is None) == (through is None), what
            if plain is not None:
                assert plain.dtype is through.dtype, what
                a, b = (t.float().numpy() for t in (plain, through))
                scale = max(1, np.nanmax(np.abs(np.where(np.isfinite(a), a, 0)), initial=0))  # the inputs' is about 1
                close = (np.abs(a - b) <= 2.0**-5 * (np.abs(a) + scale)) | (np.isnan(a) & np.isnan(b)) | (a == b)
                assert close.all(), f"{what}: {a} {b}"


def _gradients_through(case, given, places, device, widened):
    """The gradients of 1.5 times the sum of the results, whose factor comes as bfloat16, or as NumPy makes it."""
    given, made = run.tensors(given, device, places)
    cudagrad.manual_seed(3)
    results = [r for r in results_of(case, given) if getattr(r, "requires_grad", False) and r.dtype.is_floating_point]
    leaves = [made[p] for p in places]
    if not results or not leaves:
        return []
    if widened:
        total = sum(cudagrad.add(r, r, alpha=0.5).float().sum() for r in results)
        return cudagrad.autograd.grad(total, leaves, allow_unused=True)
    return cudagrad.autograd.grad(results, leaves, [cudagrad.full_like(r, 1.5) for r in results], allow_unused=True)


@rows(lambda c: c.inputs and c.grad >= 1)
def test_the_first_derivative_is_the_slope_of_the_definition(case, device):
    """Along a random direction, to 1e-7: the tape's against central differences of the float64 reference."""
    for i, given_input in enumerate(case.inputs):
        given = given_input.given(i)
        places = run.differentiable(case, given)
        expected = run.reference(case, given)
        weights = run.weights_for(expected, 1000 + i)
        along = run.directions([run.arrays_of(given)[p] for p in places], 2000 + i)
        numeric = run.slope(lambda t: run.weighed(run.reference(case, run.moved(given, places, along, t)), weights))
        gradients = first(case, given, places, weights, device)
        analytic = run.inner(gradients, along)
        size = sum(float(np.sum(np.abs(g * d))) for g, d in zip(gradients, along)) + abs(numeric)
        assert abs(analytic - numeric) <= 1e-7 * size + 1e-10, f"{case.name} {given_input!r}: {analytic} {numeric}"


def first(case, given, places, weights, device):
    """The gradients of the weighed results, as arrays; zeros where there is none."""
    given, made = run.tensors(given, device, places)
    results = results_of(case, given)
    leaves = [made[p] for p in places]
    pairs = [(r, w) for r, w in zip(results, weights, strict=True) if w is not None and getattr(r, "requires_grad", 0)]
    if not pairs or not leaves:
        return [np.zeros(t.shape) for t in leaves]
    outs, grads = [r for r, _ in pairs], [_weight(w, r, device) for r, w in pairs]
    found = cudagrad.autograd.grad(outs, leaves, grads, allow_unused=True)
    for t, g in zip(leaves, found):
        assert g is None or (g.shape == t.shape and g.dtype is t.dtype), f"{case.name}: gradient {g}"
    return [np.zeros(t.shape) if g is None else run.numpy_of(g) for t, g in zip(leaves, found)]


def _weight(w, result, device):
    t = wrap(np.asarray(w).astype(run.numpy_of(result).dtype))
    return t if device == "cpu" else t.to(device)


@rows(lambda c: c.inputs and c.grad >= 2)
def test_the_second_derivative_is_the_slope_of_the_first(case, device):
    """By the inputs and by the incoming gradient: create_graph's against central differences of the first order."""
    for i, given_input in enumerate(case.inputs):
        given = given_input.given(i)
        places = run.differentiable(case, given)
        weights = run.weights_for(run.reference(case, given), 1000 + i)
        arrays = [run.arrays_of(given)[p] for p in places]
        along, u = run.directions(arrays, 2000 + i), run.directions(arrays, 3000 + i)
        random = run.directions([np.zeros(()) if w is None else w for w in weights], 4000 + i)
        along_w = [None if w is None else d for w, d in zip(weights, random)]

        def along_u(t):
            w = [None if w is None else w + t * d for w, d in zip(weights, along_w)]
            return run.inner(first(case, run.moved(given, places, along, t), places, w, device), u)

        numeric = run.slope(along_u)
        analytic, size = second(case, given, places, weights, u, along, along_w, device)
        what = f"{case.name} {given_input!r}: {analytic} {numeric}"
        assert abs(analytic - numeric) <= 1e-6 * (size + abs(numeric)) + 1e-9, what


def second(case, given, places, weights, u, along, along_w, device):
    """The derivative of <first gradients, u> along a direction of inputs and weights, and the size of its terms."""
    given, made = run.tensors(given, device, places)
    results = results_of(case, given)
    leaves = [made[p] for p in places]
    outs, grads, moves = [], [], list(along)
    for r, w, d in zip(results, weights, along_w, strict=True):
        if w is not None and getattr(r, "requires_grad", False):
            outs.append(r)
            grads.append(_weight(w, r, device).requires_grad_())
            moves.append(d)
    if not outs:
        return 0.0, 0.0
    found = cudagrad.autograd.grad(outs, leaves, grads, create_graph=True, allow_unused=True)
    pairs = [(g, _weight(d, g, device)) for g, d in zip(found, u) if g is not None and g.requires_grad]
    if not pairs:
        return 0.0, 0.0
    again = cudagrad.autograd.grad([g for g, _ in pairs], leaves + grads, [d for _, d in pairs], allow_unused=True)
    again = [np.zeros(np.shape(d)) if g is None else run.numpy_of(g) for g, d in zip(again, moves, strict=True)]
    return run.inner(again, moves), sum(float(np.sum(np.abs(g * d))) for g, d in zip(again, moves))


@rows(lambda c: c.inputs)
def test_every_memory_layout_gives_the_same(case, device):
    """Strided, transposed, offset and expanded inputs: values and gradients of contiguous ones."""
    for i, given_input in enumerate(case.inputs):
        given = given_input.given(i)
        if not any(a.ndim and a.size for a in run.arrays_of(given)):
            continue
        for name, layout in run.LAYOUTS.items():
            other = run.each(given, layout)
            _same(case, given, other, device, f"{case.name} {given_input!r} {name}")
        _same(case, *_expanded(given), device, f"{case.name} {given_input!r} expanded", may_fail=True)


def _expanded(given):
    """The call with the first row of each floating array in every row: in memory of its own, and as a view."""

    def view(a):
        return np.broadcast_to(a[:1], a.shape) if run.is_float(a) and a.ndim and a.size else a

    views = run.each(given, view)
    return run.each(views, np.array), views


def _same(case, given, other, device, what, may_fail=False):
    try:
        expected = results_of(case, run.tensors(given, device)[0])
    except Exception:
        if may_fail:  # rows that are all alike are no input of every function (a singular matrix)
            return
        raise
    got = results_of(case, run.tensors(other, device)[0])
    for g, e in zip(got, expected, strict=True):
        run.assert_close(run.numpy_of(g), run.numpy_of(e), 1e-12, what)
    if case.grad and not may_fail:
        places = run.differentiable(case, given)
        weights = run.weights_for([run.numpy_of(e) for e in expected], 5)
        for g, e in zip(first(case, other, places, weights, device), first(case, given, places, weights, device)):
            run.assert_close(g, e, 1e-11, what + " gradient")


SHAPES = [(), (0,), (1,), (31,), (33,), (2, 0, 3), (3, 1, 5)]


@rows(lambda c: c.pointwise)
def test_pointwise_functions_take_any_shape(case, device):
    """0-d, empty, and sizes around a vector's: each element is the definition's, and the gradient has the shape."""
    for i, given_input in enumerate(case.inputs):
        given = given_input.given(i)
        if not all(a.size for a in run.arrays_of(given)):
            continue
        for shape in SHAPES:
            refilled = run.each(given, lambda a: np.resize(a, shape))
            expected = run.reference(case, refilled)
            what = f"{case.name} {given_input!r} {shape}"
            for g, e in zip(results_of(case, run.tensors(refilled, device)[0]), expected, strict=True):
                run.assert_close(run.numpy_of(g), e, 1e-9, what)
            if case.grad:
                first(case, refilled, run.differentiable(case, refilled), run.weights_for(expected, 6), device)


@rows(lambda c: c.ints)
def test_integers_give_integers_or_the_default_dtype(case, device):
    for i, given_input in enumerate(case.inputs):
        for dtype in (np.int64, np.int32, np.int8):
            given = run.each(given_input.given(i), lambda a: _whole(a, dtype))
            expected = run.reference(case, given)
            what = f"{case.name} {given_input!r} {np.dtype(dtype)}"
            for g, e in zip(results_of(case, run.tensors(given, device)[0]), expected, strict=True):
                e = np.asarray(e)
                run.assert_category(case, g, e, "float32", what)
                run.assert_close(run.numpy_of(g), e, 1e-5, what)


def _whole(a, dtype):
    return np.asarray(np.rint(2 * a)).astype(dtype) if run.is_float(a) else a


@rows(lambda c: c.complex)
def test_complex_numbers_follow_the_definition_and_its_derivatives(case, device):
    """grad is the conjugate Wirtinger derivative, as in PyTorch: d L = Re(sum of conj(grad) dz) for a real L."""
    for i, given_input in enumerate(case.inputs):
        real = given_input.given(i)
        places = run.differentiable(case, real)
        given = run.complexified(real, places, 7000 + i)
        arrays = run.arrays_of(given)
        what = f"{case.name} {given_input!r} complex"
        expected = run.reference(case, given)
        for g, e in zip(results_of(case, run.tensors(given, device)[0]), expected, strict=True):
            run.assert_close(run.numpy_of(g), e, 1e-9, what)
        if not case.grad:
            continue
        weights = run.weights_for(expected, 1000 + i)
        along = run.directions([arrays[p] for p in places], 2000 + i)
        numeric = run.slope(lambda t: run.weighed(run.reference(case, run.moved(given, places, along, t)), weights))
        gradients = first(case, given, places, weights, device)
        analytic = run.inner(gradients, along)
        size = sum(float(np.sum(np.abs(g * d))) for g, d in zip(gradients, along)) + abs(numeric)
        assert abs(analytic - numeric) <= 1e-7 * size + 1e-10, f"{what}: {analytic} {numeric}"


@rows(lambda c: c.inputs)
def test_the_in_place_form_writes_the_same_into_its_tensor(case, device):
    name = case.name.rpartition(".")[2]
    form = getattr(Tensor, name + "_", None)
    if form is None or "." in case.name:
        return
    for i, given_input in enumerate(case.inputs):
        given = given_input.given(i)
        expected = results_of(case, run.tensors(given, device)[0])
        if not given[0] or not isinstance(given[0][0], np.ndarray) or len(expected) != 1:
            continue
        e = run.numpy_of(expected[0])
        if e.shape != given[0][0].shape or e.dtype != given[0][0].dtype:
            continue
        (args, options), _ = run.tensors(given, device)
        with told_warnings():
            result = form(*args, **options)
        assert result is args[0] and result._version >= 1
        run.assert_close(run.numpy_of(result), e, 1e-12, f"{case.name}_ {given_input!r}")


@rows(lambda c: c.inputs)
def test_out_receives_the_result_in_its_shape(case, device):
    if not run.takes_out(case.f):
        return
    for i, given_input in enumerate(case.inputs):
        given = run.tensors(given_input.given(i), device)[0]
        expected = results_of(case, given)
        if "out" in given[1] or not all(isinstance(e, Tensor) for e in expected):
            continue
        outs = [cudagrad.empty(e.shape, dtype=e.dtype, device=device) for e in expected]
        with told_warnings():
            result = case.f(*given[0], **given[1], out=outs[0] if len(outs) == 1 else tuple(outs))
        for o, r, e in zip(outs, run.flat(result), expected, strict=True):
            assert r is o, case.name
            run.assert_close(run.numpy_of(o), run.numpy_of(e), 1e-12, f"{case.name} {given_input!r} out=")


@rows(lambda c: c.errors)
def test_errors_say_pytorchs_line_and_change_nothing(case, device, monkeypatch):
    monkeypatch.setattr(cudagrad.config, "CHECK", True)  # a GPU's values are looked at too
    for i, error in enumerate(case.errors):
        if device != "cpu" and isinstance(error, HostError):
            continue
        given, made = run.tensors(error.call.given(i, np.float32), device)
        before = [run.numpy_of(t).copy() for t in made]
        with pytest.raises(error.kind) as caught, told_warnings():
            run.call(case, given)
        line = str(caught.value).split("\n")[0]
        assert error.match in line, f"{case.name}: {line!r}, expected {error.match!r}"
        for t, b in zip(made, before):
            assert t._version == 0 and np.array_equal(run.numpy_of(t), b, equal_nan=t.dtype.category >= 2)
