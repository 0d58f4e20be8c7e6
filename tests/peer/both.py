"""One operator of PyTorch's table run by both engines, and what must agree: the checks by name."""

import copy
import re
import types
import warnings

import numpy as np
import torch

import cudagrad as cg

from .gaps import INVARIANT, RANDOM, UNDEFINED
from .translate import INSIDE, Untranslatable, array_of, found, leaves_in, rewritten, tensors_in, to_ours

# dtype -> the relative and the absolute error that torch.testing.assert_close allows between two of PyTorch's devices.
CLOSE = {"float64": (1e-7, 1e-7), "float32": (1.3e-6, 1e-5), "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5)}
CLOSE |= {"complex128": CLOSE["float64"], "complex64": CLOSE["float32"]}

VALUES = {"float64": 8, "float32": 8, "complex64": 5, "int64": 5, "bool": 3, "bfloat16": 4, "float16": 4}  # samples


def tables():
    """PyTorch's tables: the operators and modules that run on a CPU, and the optimizers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it would like to have hypothesis
        from torch.testing._internal import common_methods_invocations, common_modules, common_optimizers
    ops = [op for op in common_methods_invocations.op_db if op.supported_dtypes("cpu")]
    modules, optimizers = common_modules.module_db, common_optimizers.optim_db
    return types.SimpleNamespace(ops=ops, modules=modules, optimizers=optimizers)


class Disagreement(AssertionError):
    """The engines differ: what, where, and by how much."""


def label(op):
    """An operator's name with that of its variant."""
    return op.name + ("." + op.variant_test_name if op.variant_test_name else "")


def ours(op, seed=42):
    """Our function of an operator; None where there is none. A function that the table defines runs on our names."""
    theirs = op.op
    where = getattr(theirs, "__module__", None) or ""
    if where.startswith(INSIDE):
        return rewritten(theirs, cg, seed)
    if where in ("", "torch._tensor"):  # a method, with or without a Python text
        return getattr(cg.Tensor, getattr(theirs, "__name__", op.name), None)
    return found(op.name)


def theirs(op, seed=42):
    """PyTorch's own function of an operator, under another fixed seed."""
    return rewritten(op.op, torch, seed) if (getattr(op.op, "__module__", "") or "").startswith(INSIDE) else op.op


def samples(op, dtype, count, requires_grad=False):
    """``count`` sample inputs of an operator, spread over PyTorch's list."""
    np.random.seed(0)
    torch.default_generator.manual_seed(0)
    # The function itself: op.sample_inputs seeds every device and inspects the stack for each sample, which takes long.
    all_of_them = list(op.sample_inputs_func(op, "cpu", getattr(torch, dtype), requires_grad))
    if len(all_of_them) <= count:
        return all_of_them
    return [all_of_them[i * len(all_of_them) // count] for i in range(count)]


def close(op, got, want, what, exact=None):
    """Raise unless a tensor (or a number) of ours is PyTorch's: shape, dtype, and values to the dtype's tolerance.

    Where PyTorch's result itself is further than that from its float64 result ``exact``, twice its distance will do.
    """
    if isinstance(want, torch.Tensor) != isinstance(got, cg.Tensor):
        raise Disagreement(f"{what}: {type(got).__name__}, PyTorch {type(want).__name__}")
    if not isinstance(want, torch.Tensor):
        if not (_plain_close(got, want) if isinstance(want, (float, complex)) else _plain_same(got, want)):
            raise Disagreement(f"{what}: {got!r}, PyTorch {want!r}")
        return
    if tuple(got.shape) != tuple(want.shape):
        raise Disagreement(f"{what}: shape {tuple(got.shape)}, PyTorch {tuple(want.shape)}")
    if str(got.dtype) != str(want.dtype):
        raise Disagreement(f"{what}: dtype {got.dtype}, PyTorch {want.dtype}")
    dtype = str(want.dtype).removeprefix("torch.")
    rtol, atol = CLOSE.get(dtype, (0, 0))
    got, want = array_of(got), array_of(want)
    if dtype in CLOSE:
        # The error of a sum is one of its terms', so elements that cancel are measured by the largest one.
        atol += rtol * float(np.abs(want[np.isfinite(want)]).max(initial=0))
    with np.errstate(all="ignore"):
        wrong = ~np.isclose(got, want, rtol, atol, equal_nan=True)
        if exact is not None and wrong.any():
            exact = array_of(exact())
            allowed = atol + rtol * np.abs(exact) + 2 * np.abs(want - exact).max(initial=0, where=np.isfinite(want))
            wrong &= ~(np.abs(got - exact) <= allowed)
    if wrong.any():
        first = tuple(int(i[0]) for i in np.nonzero(np.atleast_1d(wrong)))
        g, w = np.atleast_1d(got)[first], np.atleast_1d(want)[first]
        raise Disagreement(f"{what}: {int(wrong.sum())} of {wrong.size} differ, at {list(first)} {g!r}, PyTorch {w!r}")


def _plain_close(got, want):
    return isinstance(got, type(want)) and np.allclose(got, want, 1e-6, 1e-6, equal_nan=True)


def _plain_same(got, want):
    return got == want or got == to_ours(want) or str(got) == str(want)


def all_close(op, got, want, what, exact=None):
    """``close`` for all that two nests hold."""
    gots, wants = leaves_in(got), leaves_in(want)
    if len(gots) != len(wants):
        raise Disagreement(f"{what}: {len(gots)} outputs, PyTorch {len(wants)}")
    for i, (g, w) in enumerate(zip(gots, wants)):
        finer = None if exact is None else (lambda i=i: leaves_in(exact())[i])
        close(op, g, w, f"{what} {i}" if len(wants) > 1 else what, finer)


def all_keys(got, want, what):
    """Raise unless two dicts have the same keys in the same order."""
    if list(got) != list(want):
        raise Disagreement(f"{what}: keys {list(got)}, PyTorch {list(want)}")


_FINER = {torch.float16: torch.float64, torch.bfloat16: torch.float64, torch.float32: torch.float64}
_FINER |= {torch.complex64: torch.complex128}


def finer(value, memo=None):
    """A nest of PyTorch objects whose tensors and dtypes are of double precision; one object stays one object."""
    memo = {} if memo is None else memo
    if id(value) in memo:
        return memo[id(value)]
    made = value
    if isinstance(value, torch.Tensor):
        made = value.detach().to(_FINER.get(value.dtype, value.dtype))
        made = made.clone().requires_grad_() if value.requires_grad else made
    elif isinstance(value, torch.dtype):
        made = _FINER.get(value, value)
    elif isinstance(value, dict):
        made = {k: finer(v, memo) for k, v in value.items()}
    elif type(value) in (list, tuple):
        made = type(value)(finer(v, memo) for v in value)
    memo[id(value)] = made
    return made


def arguments(sample, copied=False):
    """A sample's positional and keyword arguments for PyTorch, also as copies to write into, and the same for us."""
    given = (sample.input, *sample.args), dict(sample.kwargs)
    return (copy.deepcopy(given) if copied else given), to_ours(given)


# ---- values


def check_values(op, f, dtype):
    """The outputs for samples of one dtype; of random operators all but the numbers."""
    for sample in samples(op, dtype, VALUES[dtype]):
        given, mine = arguments(sample)
        want, got = op.op(*given[0], **given[1]), f(*mine[0], **mine[1])
        if label(op) in RANDOM or label(op) in UNDEFINED:
            check_random(op, sample, got, want)
            continue
        exact = None if dtype in ("float64", "int64", "bool") else (lambda: _exact(op, sample, given))
        if label(op) in INVARIANT:
            facts_agree(got, want)
            want, got = invariant(op, sample, torch)(want), invariant(op, sample, cg)(got)
        all_close(op, got, want, f"{_told(sample)}: output", exact)


def _exact(op, sample, given):
    args, kwargs = finer(given)
    out = op.op(*args, **kwargs)
    return invariant(op, sample, torch)(out) if label(op) in INVARIANT else out


def invariant(op, sample, engine):
    """The map from outputs that are not unique to what is: as gaps.py has it, else as PyTorch's sample has it."""
    mine = INVARIANT[label(op)]
    if mine is None:
        return _processed(sample, engine)
    args, kwargs = arguments(sample)[0 if engine is torch else 1]
    return lambda out: mine(engine, out, *args, **kwargs)


def _told(sample):
    """A sample in a line: its tensors by dtype and shape."""

    def of(value):
        if isinstance(value, torch.Tensor):
            contiguous = "" if value.is_contiguous() else " strided"
            return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}{contiguous}"
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(map(of, value))}]"
        return repr(value)

    given = [*map(of, (sample.input, *sample.args)), *(f"{k}={of(v)}" for k, v in sample.kwargs.items())]
    return f"({', '.join(given)})"[:400]


def facts_agree(got, want):
    """Raise unless shapes and dtypes are PyTorch's."""
    gots, wants = ([(tuple(t.shape), str(t.dtype)) for t in tensors_in(v)] for v in (got, want))
    if gots != wants:
        raise Disagreement(f"shapes and dtypes: {gots}, PyTorch {wants}")


def check_random(op, sample, got, want):
    """One seed gives the same numbers again; another gives others where PyTorch's differ by seed as well."""
    facts_agree(got, want)
    if label(op) in UNDEFINED:
        return
    again, other = (_drawn(op, sample, cg, seed) for seed in (7, 8))
    if not _same(op, again, _drawn(op, sample, cg, 7)):
        raise Disagreement(f"{_told(sample)}: one seed gave two results")
    first, *others = (_drawn(op, sample, torch, seed) for seed in range(9))
    if all(_same(op, first, o) for o in others):
        all_close(op, again, first, f"{_told(sample)}: output", lambda: _exact(op, sample, arguments(sample)[0]))
    elif sum(t.numel() for t in tensors_in(again)) > 30 and _same(op, again, other):
        raise Disagreement(f"{_told(sample)}: two seeds gave one result")


def _drawn(op, sample, engine, seed):
    """The outputs at a seed, brought to what is unique about them."""
    f = ours(op, seed) if engine is cg else theirs(op, seed)
    out = _seeded(f, engine, sample, seed)
    return invariant(op, sample, engine)(out) if label(op) in INVARIANT else out


def _seeded(f, engine, sample, seed):
    args, kwargs = arguments(sample, copied=True)[0 if engine is torch else 1]
    engine.default_generator.manual_seed(seed)
    return f(*args, **kwargs)


def _same(op, a, b):
    """Whether two results are equal: to the bit, or to rounding where they were brought to what is unique."""
    pairs = [(array_of(x), array_of(y)) for x, y in zip(tensors_in(a), tensors_in(b))]
    if label(op) in INVARIANT:
        return all(np.allclose(x, y, 1e-4, 1e-4) for x, y in pairs)
    return all(np.array_equal(x, y, equal_nan=True) for x, y in pairs)


def _processed(sample, engine):
    """PyTorch's map of a sample's outputs to what is unique about them."""
    process = sample.output_process_fn_grad
    if (getattr(process, "__module__", "") or "").startswith(INSIDE):
        return rewritten(process, engine)
    return process


# ---- derivatives


def differentiable(op, f, engine):
    """The operator on inputs brought into its domain (symmetric, triangular), as PyTorch's own gradient tests do."""
    wrap = op.gradcheck_wrapper
    if wrap.__name__ == "<lambda>" or not wrap.__module__.startswith(INSIDE):
        return f
    wrap = rewritten(wrap, engine)
    return lambda *args, **kwargs: wrap(f, *args, **kwargs)


def check_gradients(op, f, dtype, count, second):
    """Gradients of samples with random gradients of the outputs, and with ``second`` the gradients of those."""
    if label(op) in RANDOM:
        return check_slope(op, f)
    for sample in samples(op, dtype, count, requires_grad=True):
        given, mine = arguments(sample)
        try:
            _check_gradients(op, f, sample, given, mine, second)
        except RuntimeError as error:
            if not re.match(r"derivative for \S+ is not implemented", str(error)):
                raise


def _check_gradients(op, f, sample, given, mine, second):
    want = _processed(sample, torch)(differentiable(op, op.op, torch)(*given[0], **given[1]))
    got = _processed(sample, cg)(differentiable(op, f, cg)(*mine[0], **mine[1]))
    wants, gots = tensors_in(want), tensors_in(got)
    told = _told(sample)
    flags = [g.requires_grad for g in gots], [w.requires_grad for w in wants]
    wants, gots = [w for w in wants if w.requires_grad], [g for g in gots if g.requires_grad]
    leaves = unique([t for t in tensors_in(given) if t.requires_grad])
    mine = unique([t for t in tensors_in(mine) if t.requires_grad])
    if not leaves or not any(flags[1]):
        return
    seeds = [random_like(w, i).requires_grad_(second) for i, w in enumerate(wants)]
    mine_seeds = to_ours(seeds)
    gs = torch.autograd.grad(wants, leaves, seeds, allow_unused=True, create_graph=second)
    if flags[0] != flags[1]:
        raise Disagreement(f"{told}: requires_grad of outputs {flags[0]}, PyTorch {flags[1]}")
    hs = cg.autograd.grad(gots, mine, mine_seeds, allow_unused=True, create_graph=second)
    exact = (
        None if leaves[0].dtype in (torch.float64, torch.complex128) else lambda: _exact_gradients(op, sample, seeds)
    )
    pairs = matched(op, hs, gs, leaves, f"{told}: gradient", exact)
    if not second:
        return
    pairs = [(h, g) for h, g in pairs if g.requires_grad]
    if not pairs:
        return
    if not all(h.requires_grad for h, _ in pairs):
        raise Disagreement(f"{told}: a gradient is a constant, PyTorch's is not")
    seconds = [random_like(g, 100 + i) for i, (_, g) in enumerate(pairs)]
    ggs = torch.autograd.grad([g for _, g in pairs], [*leaves, *seeds], seconds, allow_unused=True)
    hhs = cg.autograd.grad([h for h, _ in pairs], [*mine, *mine_seeds], to_ours(seconds), allow_unused=True)
    matched(op, hhs, ggs, [*leaves, *seeds], f"{told}: second derivative")


def unique(tensors):
    """The tensors without repetition, by identity."""
    return list({id(t): t for t in tensors}.values())


def random_like(t, seed):
    """A normal PyTorch tensor of the shape and dtype of ``t``."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(t.shape)
    if t.dtype.is_complex:
        values = values + 1j * rng.standard_normal(t.shape)
    return torch.tensor(values, dtype=t.dtype)


def _exact_gradients(op, sample, seeds):
    """PyTorch's gradients of a sample in double precision."""
    given = finer(((sample.input, *sample.args), dict(sample.kwargs)))
    outs = tensors_in(_processed(sample, torch)(differentiable(op, op.op, torch)(*given[0], **given[1])))
    leaves = unique([t for t in tensors_in(given) if t.requires_grad])
    outs = [o for o in outs if o.requires_grad]
    gs = torch.autograd.grad(outs, leaves, finer(seeds), allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for g, x in zip(gs, leaves)]


def matched(op, gots, wants, inputs, what, exact=None):
    """``close`` for gradients, where a missing one counts as zeros; the pairs that both have."""
    pairs = []
    for i, (got, want, x) in enumerate(zip(gots, wants, inputs)):
        name = f"{what} {i}"
        if got is None and want is None:
            continue
        if got is not None and want is not None:
            pairs.append((got, want))
        got = to_ours(torch.zeros_like(x.detach())) if got is None else got
        want = torch.zeros_like(x) if want is None else want
        close(op, got, want, name, None if exact is None else (lambda i=i: exact()[i]))
    return pairs


def check_slope(op, f):
    """The gradient of a random operator at one seed is the slope that central differences see at that seed."""
    for sample in samples(op, "float64", 4, requires_grad=True):
        given, (args, kwargs) = arguments(sample)
        leaves = [t for t in tensors_in((args, kwargs)) if t.requires_grad]
        if _constant(op, given):
            continue
        run = lambda: tensors_in(_seeded_ours(op, f, args, kwargs))  # noqa: E731
        outs = [o for o in run() if o.requires_grad]
        if not leaves or not outs:
            continue
        seeds = [to_ours(random_like(torch.empty(tuple(o.shape), dtype=torch.float64), i)) for i, o in enumerate(outs)]
        along = [np.random.default_rng(i).standard_normal(t.shape) for i, t in enumerate(leaves)]
        gs = cg.autograd.grad(outs, leaves, seeds, allow_unused=True)
        slope = sum((array_of(g) * d).sum() for g, d in zip(gs, along) if g is not None)
        sides = []
        for step in (1e-6, -1e-6):
            for t, d in zip(leaves, along):
                t.array += step * d
            outs = [o for o in run() if o.requires_grad]
            sides.append(sum((array_of(o) * array_of(s)).sum() for o, s in zip(outs, seeds)))
            for t, d in zip(leaves, along):
                t.array -= step * d
        numeric = (sides[0] - sides[1]) / 2e-6
        if not np.isclose(slope, numeric, 1e-5, 1e-5):
            raise Disagreement(f"{_told(sample)}: slope {slope}, by central differences {numeric}")


def _constant(op, given):
    """Whether PyTorch's gradient is 0 by definition, as that of normal(mean, std) by both."""
    outs = [o for o in tensors_in(op.op(*given[0], **given[1])) if o.requires_grad]
    leaves = [t for t in tensors_in(given) if t.requires_grad]
    gs = torch.autograd.grad(outs, leaves, [torch.ones_like(o) for o in outs], allow_unused=True) if outs else []
    return all(g is None or not g.any() for g in gs)


def _seeded_ours(op, f, args, kwargs):
    cg.manual_seed(3)
    return f(*args, **kwargs)


# ---- other forms of an operator


def check_forms(op, f):
    """Aliases, methods, in-place forms and ``out=`` give what the function gives, and are there where PyTorch's are."""
    if label(op) in UNDEFINED:
        return
    dtype = "float64" if torch.float64 in op.dtypes else sorted(str(d) for d in op.dtypes)[0].removeprefix("torch.")
    for sample in samples(op, dtype, 2):
        for variant in (op, *op.aliases):
            _check_variant(op, f, variant, sample)
        if op.supports_out and label(op) not in RANDOM:
            _check_out(op, f, sample)


def _check_variant(op, f, variant, sample):
    names = [("", variant.op), ("Tensor.", variant.method_variant), ("Tensor.", variant.inplace_variant)]
    for place, form in names:
        name = getattr(form, "__name__", "")
        if form is None or name in ("", "<lambda>") or form is op.op:
            continue
        if place and not isinstance(sample.input, torch.Tensor):
            continue
        mine = getattr(cg.Tensor, name, None) if place else found(variant.name)
        if mine is None:
            raise Disagreement(f"there is no {place}{name if place else variant.name}")
        given, own = arguments(sample, copied=True)
        try:
            want = form(*given[0], **given[1])
        except (RuntimeError, TypeError, ValueError, IndexError):
            continue  # a form takes fewer arguments, or writes into a smaller tensor, than the sample has for it
        got = mine(*own[0], **own[1])
        _check_form(op, f, sample, got, want, place + name)
        if place and name.endswith("_") and not name.endswith("__") and got is not own[0][0]:
            raise Disagreement(f"{place}{name} returned another tensor")


def _check_form(op, f, sample, got, want, what):
    """A form's result is PyTorch's, or, where it has the dtype and shape of that, the function's own to the bit."""
    if label(op) in RANDOM:
        return facts_agree(got, want)
    if label(op) in INVARIANT:
        got, want = invariant(op, sample, cg)(got), invariant(op, sample, torch)(want)
    try:
        all_close(op, got, want, f"{_told(sample)}: {what}")
    except Disagreement:
        args, kwargs = arguments(sample)[1]
        facts_agree(got, want)
        if label(op) in INVARIANT or not _same(op, got, f(*args, **kwargs)):
            raise


def _check_out(op, f, sample):
    given, mine = arguments(sample)
    try:
        made = op.op(*given[0], **given[1])
        outs = torch.empty_like(made) if isinstance(made, torch.Tensor) else type(made)(map(torch.empty_like, made))
        op.op(*given[0], **given[1], out=outs)
    except (RuntimeError, TypeError, ValueError, IndexError):
        return
    mine_outs = to_ours(tuple(outs) if isinstance(outs, tuple) else outs)
    got = f(*mine[0], **mine[1], out=mine_outs)
    _check_form(op, f, sample, mine_outs, made, "out=")
    if got is not None and any(a is not b for a, b in zip(leaves_in(got), leaves_in(mine_outs))):
        raise Disagreement("out= returned another tensor")


# ---- errors


def error_checks(op, f):
    """Name -> check, for inputs that PyTorch refuses: they are refused with the same type and the same words."""
    return {f"error {case.error_regex!r}"[:80]: (lambda case=case: _check_error(op, f, case)) for case in refused(op)}


def refused(op):
    """The error inputs of an operator that PyTorch does refuse when they are called like this."""
    for case in op.error_inputs_func(op, "cpu") if op.error_inputs_func is not None else ():
        sample = case.sample_input
        if ours(op) is getattr(cg.Tensor, op.name, None) and not isinstance(sample.input, torch.Tensor):
            continue  # a method of C checks what it is a method of, one of Python does not
        try:
            given, _ = arguments(sample, copied=True)
            op.op(*given[0], **given[1])
        except Untranslatable:
            continue
        except Exception:  # noqa: BLE001 - whatever it is, the table says which it should be
            yield case


def _check_error(op, f, case):
    sample = case.sample_input
    args, kwargs = arguments(sample)[1]
    wanted = f"{case.error_type.__name__}: {case.error_regex}"
    try:
        f(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 - its type is what is tested
        if not isinstance(error, case.error_type) or not re.search(case.error_regex, str(error)):
            said = f"{type(error).__name__}: {error}"[:300]
            raise Disagreement(f"{_told(sample)}: raises {said}, PyTorch {wanted}") from error
    else:
        raise Disagreement(f"{_told(sample)}: accepted, PyTorch raises {wanted}")


# ---- all of it


def checks(op, f):
    """Name -> check, for all that PyTorch's table states of an operator."""
    supported = {str(d).removeprefix("torch.") for d in op.supported_dtypes("cpu")}
    backward = {str(d).removeprefix("torch.") for d in op.supported_backward_dtypes("cpu")}
    made = {d: (lambda d=d: check_values(op, f, d)) for d in VALUES if d in supported}
    if not made and supported:
        only = sorted(supported)[0]
        VALUES.setdefault(only, 3)
        made[only] = lambda: check_values(op, f, only)
    if op.supports_autograd and "float64" in backward:
        made["gradient"] = lambda: check_gradients(op, f, "float64", 8, False)
        if op.supports_gradgrad and label(op) not in RANDOM:
            made["second derivative"] = lambda: check_gradients(op, f, "float64", 3, True)
    if op.supports_autograd and "float32" in backward and label(op) not in RANDOM:
        made["float32 gradient"] = lambda: check_gradients(op, f, "float32", 2, False)
    if op.supports_autograd and "complex128" in backward and label(op) not in RANDOM:
        made["complex gradient"] = lambda: check_gradients(op, f, "complex128", 4, False)
        if op.supports_gradgrad:
            made["complex second derivative"] = lambda: check_gradients(op, f, "complex128", 1, True)
    if supported:
        made["forms"] = lambda: check_forms(op, f)
    return made | error_checks(op, f)


def failures(op):
    """Name of the check -> what it found, for the checks of an operator that fail; None where we have no such one."""
    f = ours(op)
    if f is None:
        return None
    found = {}
    for name, check in checks(op, f).items():
        try:
            check()
        except AttributeError as error:
            if "module 'cudagrad" in str(error) or "'Tensor' object has no attribute" in str(error):
                if (op.op.__module__ or "").startswith(INSIDE) and f.__code__.co_names[-1:] != ():
                    missing = [n for n in f.__code__.co_names if f"attribute '{n}'" in str(error)]
                    if missing:
                        return None
            found[name] = f"{type(error).__name__}: {error}"
        except Exception as error:  # noqa: BLE001 - whatever is raised is a difference
            found[name] = f"{type(error).__name__}: {error}"
    return found
