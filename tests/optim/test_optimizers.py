"""Each optimizer against its formula in float64 NumPy, values worked out by hand, and PyTorch."""

import numpy as np
import pytest

from cudagrad import optim
from cudagrad.core.tensor import wrap

from .problems import combinations, descend, gradients, leaf, name_of, start


def sgd(w, lr, momentum=0, dampening=0, weight_decay=0, nesterov=False):
    b = None
    while True:
        g = (yield w) + weight_decay * w
        if momentum:
            b = g if b is None else momentum * b + (1 - dampening) * g
            g = g + momentum * b if nesterov else b
        w = w - lr * g


def adam(w, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False, decoupled=False):
    m, v, top, t = 0 * w, 0 * w, 0 * w, 0
    b1, b2 = betas
    while True:
        g, t = (yield w), t + 1
        if decoupled:
            w = w - lr * weight_decay * w
        else:
            g = g + weight_decay * w
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g**2
        top = np.maximum(top, v) if amsgrad else v
        w = w - lr * (m / (1 - b1**t)) / (np.sqrt(top / (1 - b2**t)) + eps)


def adamw(w, weight_decay=1e-2, **options):
    return adam(w, weight_decay=weight_decay, decoupled=True, **options)


def nadam(w, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, momentum_decay=4e-3, decoupled_weight_decay=False):
    m, v, t, product = 0 * w, 0 * w, 0, 1.0
    b1, b2 = betas
    while True:
        g, t = (yield w), t + 1
        if decoupled_weight_decay:
            w = w * (1 - lr * weight_decay)
        else:
            g = g + weight_decay * w
        mu, after = (b1 * (1 - 0.5 * 0.96 ** (i * momentum_decay)) for i in (t, t + 1))
        product *= mu
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g**2
        m_hat = after * m / (1 - product * after) + (1 - mu) * g / (1 - product)
        w = w - lr * m_hat / (np.sqrt(v / (1 - b2**t)) + eps)


def radam(w, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, decoupled_weight_decay=False):
    m, v, t = 0 * w, 0 * w, 0
    b1, b2 = betas
    top = 2 / (1 - b2) - 1
    while True:
        g, t = (yield w), t + 1
        if decoupled_weight_decay:
            w = w * (1 - lr * weight_decay)
        else:
            g = g + weight_decay * w
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g**2
        m_hat, rho = m / (1 - b1**t), top - 2 * t * b2**t / (1 - b2**t)
        if rho > 5:
            r = np.sqrt((rho - 4) * (rho - 2) * top / ((top - 4) * (top - 2) * rho))
            m_hat = m_hat * r * np.sqrt(1 - b2**t) / (np.sqrt(v) + eps)
        w = w - lr * m_hat


def adamax(w, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0):
    m, u, t = 0 * w, 0 * w, 0
    b1, b2 = betas
    while True:
        g, t = (yield w) + weight_decay * w, t + 1
        m, u = b1 * m + (1 - b1) * g, np.maximum(b2 * u, np.abs(g) + eps)
        w = w - lr / (1 - b1**t) * m / u


def adagrad(w, lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10):
    s, t = 0 * w + initial_accumulator_value, 0
    while True:
        g, t = (yield w) + weight_decay * w, t + 1
        s = s + g**2
        w = w - lr / (1 + (t - 1) * lr_decay) * g / (np.sqrt(s) + eps)


def adadelta(w, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0):
    v, u = 0 * w, 0 * w
    while True:
        g = (yield w) + weight_decay * w
        v = rho * v + (1 - rho) * g**2
        step = np.sqrt(u + eps) / np.sqrt(v + eps) * g
        u = rho * u + (1 - rho) * step**2
        w = w - lr * step


def rmsprop(w, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False):
    v, b, mean = 0 * w, 0 * w, 0 * w
    while True:
        g = (yield w) + weight_decay * w
        v, mean = alpha * v + (1 - alpha) * g**2, alpha * mean + (1 - alpha) * g
        b = momentum * b + g / (np.sqrt(v - mean**2 if centered else v) + eps)
        w = w - lr * b


def rprop(w, lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50)):
    before, s = 0 * w, 0 * w + lr
    while True:
        g = yield w
        turned = g * before < 0
        s = np.clip(s * np.where(turned, etas[0], np.where(g * before > 0, etas[1], 1.0)), *step_sizes)
        before = np.where(turned, 0, g)
        w = w - np.sign(before) * s


def asgd(w, lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0):
    eta, t = lr, 0
    while True:
        g, t = (yield w) + weight_decay * w, t + 1
        eta = np.float64(np.float32(eta))  # the state is float32
        w = w * (1 - lambd * eta) - eta * g
        eta = lr / (1 + lambd * lr * t) ** alpha


def adafactor(w, lr=1e-2, beta2_decay=-0.8, eps=(None, 1e-3), d=1.0, weight_decay=0.0):
    r, c, v, t = 0.0, 0.0, 0.0, 0
    eps1 = np.finfo(w.dtype).eps if eps[0] is None else eps[0]
    while True:
        g, t = (yield w), t + 1
        rate = max(eps[1], np.sqrt(np.mean(w**2))) * min(lr, t**-0.5)
        b = 1 - t**beta2_decay
        if w.ndim < 2:
            v = b * v + (1 - b) * g**2
        else:
            r = b * r + (1 - b) * (g**2).mean(-1, keepdims=True)
            c = b * c + (1 - b) * (g**2).mean(-2, keepdims=True)
            v = r * c / np.maximum(r.mean(-2, keepdims=True), eps1)
        u = g / np.sqrt(np.maximum(v, eps1**2))
        w = w * (1 - lr * weight_decay) - rate * u / max(1, np.sqrt(np.mean(u**2)) / d)


def muon(w, lr=1e-3, weight_decay=0.1, momentum=0.95, nesterov=True, adjust_lr_fn=None, coefficients=None, steps=5):
    b, (c1, c3, c5) = 0 * w, coefficients or (3.4445, -4.775, 2.0315)
    while True:
        g = yield w
        b = momentum * b + (1 - momentum) * g
        u = (1 - momentum) * g + momentum * b if nesterov else b
        left, s, right = np.linalg.svd(u / np.linalg.norm(u), full_matrices=False)
        for _ in range(steps):  # the iteration is this polynomial of the singular values
            s = c1 * s + c3 * s**3 + c5 * s**5
        rows, columns = w.shape
        scale = 0.2 * max(rows, columns) ** 0.5 if adjust_lr_fn == "match_rms_adamw" else max(1, rows / columns) ** 0.5
        w = w * (1 - lr * weight_decay) - lr * scale * (left * s) @ right


ADAMS = combinations(lr=[0.01], betas=[(0.9, 0.999), (0.5, 0.9)], weight_decay=[0, 0.1], amsgrad=[False, True])
FORMULAS = {
    "SGD": (
        sgd,
        combinations(lr=[0.1], momentum=[0, 0.9], weight_decay=[0, 0.05])
        + [{"lr": 0.1, "momentum": 0.9, "dampening": 0.5}, {"lr": 0.1, "momentum": 0.9, "nesterov": True}],
    ),
    "Adam": (adam, ADAMS),
    "AdamW": (adamw, ADAMS),
    "NAdam": (nadam, combinations(lr=[0.01], weight_decay=[0, 0.1], decoupled_weight_decay=[False, True])),
    "RAdam": (radam, combinations(lr=[0.01], weight_decay=[0, 0.1], decoupled_weight_decay=[False, True])),
    "Adamax": (adamax, combinations(lr=[0.01], weight_decay=[0, 0.1])),
    "Adagrad": (
        adagrad,
        combinations(lr=[0.1], lr_decay=[0, 0.3], weight_decay=[0, 0.1], initial_accumulator_value=[0, 0.5]),
    ),
    "Adadelta": (adadelta, combinations(lr=[1.0, 0.5], rho=[0.9, 0.5], weight_decay=[0, 0.1])),
    "RMSprop": (rmsprop, combinations(weight_decay=[0, 0.1], momentum=[0, 0.9], centered=[False, True])),
    "Rprop": (rprop, combinations(lr=[0.1], etas=[(0.5, 1.2)], step_sizes=[(1e-6, 50), (0.05, 0.12)])),
    "ASGD": (asgd, combinations(lr=[0.1], lambd=[1e-4, 0.1], weight_decay=[0, 0.1])),
    "Adafactor": (adafactor, combinations(lr=[0.05, 10.0], weight_decay=[0, 0.1], d=[1.0, 2.0])),
    "Muon": (muon, combinations(nesterov=[True, False], adjust_lr_fn=[None, "match_rms_adamw"])),
}
ROWS = [(name, options) for name, (_, all_options) in FORMULAS.items() for options in all_options]
IDS = [f"{name}-{name_of(options)}" for name, options in ROWS]


def arrays_for(name, dtype=np.float64):
    arrays = start(dtype=dtype)
    return [a for a in arrays if a.ndim == 2][:2] if name == "Muon" else arrays


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("name,options", ROWS, ids=IDS)
def test_twelve_steps_follow_the_formula(name, options, maximize):
    if maximize and name == "Muon":
        return  # has no such option
    arrays = arrays_for(name)
    params = [leaf(a) for a in arrays]
    more = {"maximize": True} if maximize else {}
    optimizer = getattr(optim, name)(params, **options, **more)
    formulas = [FORMULAS[name][0](a, **options) for a in arrays]
    expected = [next(f) for f in formulas]
    for step in range(12):
        for i, g in enumerate(gradients(step, arrays)):
            if g is not None:
                expected[i] = formulas[i].send(-g if maximize else g)
            params[i].grad = None if g is None else wrap(g)
        optimizer.step()
    for p, w in zip(params, expected):
        np.testing.assert_allclose(p.array, w, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", FORMULAS)
def test_a_transposed_parameter_is_updated_in_its_own_memory_order(name):
    rows = start(shapes=[(40, 30)])[0]
    params = [leaf(rows.T), leaf(rows.T.copy())]
    optimizer = getattr(optim, name)(params, lr=0.1)
    memory = params[0].array
    for step in range(3):
        g = gradients(step, [rows])[0].T
        params[0].grad, params[1].grad = wrap(g), wrap(g.copy())
        optimizer.step()
    assert params[0].array is memory and memory.flags.f_contiguous
    np.testing.assert_allclose(params[0].array, params[1].array, rtol=1e-12)


@pytest.mark.parametrize("name", [name for name in FORMULAS if name != "Muon"])
def test_memory_with_gaps_and_a_broadcast_gradient_are_fine(name):
    memory = start(shapes=[(6, 10)])[0]
    holes, dense = wrap(memory.copy()[:, ::2]), leaf(memory[:, ::2].copy())
    holes.requires_grad_()
    optimizer = getattr(optim, name)([holes, dense], lr=0.1)
    for _ in range(3):
        holes.grad = wrap(np.broadcast_to(np.linspace(-1, 1, 5), (6, 5)))
        dense.grad = wrap(np.broadcast_to(np.linspace(-1, 1, 5), (6, 5)).copy())
        optimizer.step()
    np.testing.assert_allclose(holes.array, dense.array, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", FORMULAS)
def test_half_types_are_computed_in_float32_and_rounded_once(name, dtype):
    import ml_dtypes

    kind = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(np.float16)
    arrays = [a.astype(kind) for a in arrays_for(name)]
    params = [leaf(a) for a in arrays]
    options = {"eps": (1e-3, 1e-3)} if name == "Adafactor" else {}
    optimizer = getattr(optim, name)(params, lr=0.125, **options)
    grads = [g.astype(kind) for g in gradients(0, [a.astype(np.float64) for a in arrays])]
    for p, g in zip(params, grads):
        p.grad = wrap(g)
    optimizer.step()
    for p, a, g in zip(params, arrays, grads):
        formula = FORMULAS[name][0](a.astype(np.float64), lr=0.125, **options)
        next(formula)
        w = formula.send(g.astype(np.float64))
        assert p.array.dtype == kind
        unit = float(ml_dtypes.finfo(kind).eps)
        # half a unit of the result for the one rounding, and the same of float32's own errors
        assert np.all(np.abs(p.array.astype(np.float64) - w) <= 0.51 * unit * np.maximum(np.abs(w), 1e-3) + 1e-6)


@pytest.mark.parametrize("name", FORMULAS)
def test_parameters_without_gradient_are_left_alone_and_zero_gradients_are_not(name):
    params = [leaf(np.ones((2, 3))), leaf(np.ones((2, 3)))]
    optimizer = getattr(optim, name)(params, lr=0.1)
    params[1].grad = wrap(np.zeros((2, 3)))
    optimizer.step()
    assert np.all(params[0].array == 1) and not optimizer.state[params[0]].get("exp_avg")
    if name not in ("Adagrad", "SGD"):
        assert len(optimizer.state[params[1]]) > 0


def one(name, gradient, steps=1, w=1.0, **options):
    """The value of one parameter that starts at ``w`` after ``steps`` steps on one gradient (or a list of them)."""
    p = leaf(np.array([w]))
    optimizer = getattr(optim, name)([p], **options)
    values = []
    for step in range(steps):
        p.grad = wrap(np.array([gradient[step] if isinstance(gradient, list) else gradient]))
        optimizer.step()
        values.append(float(p.array[0]))
    return values


def test_weight_decay_acts_on_zero_gradients():
    assert one("SGD", 0.0, lr=0.1, weight_decay=0.1) == pytest.approx([0.99])


def test_dampening_begins_with_the_second_step():
    assert one("SGD", 1.0, 2, lr=0.1, momentum=0.9, dampening=0.5) == pytest.approx([0.9, 0.76])


def test_nesterov_looks_ahead_in_its_first_step():
    assert one("SGD", 1.0, lr=0.1, momentum=0.9, nesterov=True) == pytest.approx([0.81])


def test_adam_adds_eps_outside_the_root_after_bias_correction():
    assert one("Adam", 1e-8, lr=0.1) == pytest.approx([0.95])


def test_adamw_shrinks_the_weight_before_its_step():
    assert one("AdamW", 1.0, lr=0.1, weight_decay=0.1) == pytest.approx([0.89])
    assert optim.AdamW([leaf(np.ones(1))]).defaults["weight_decay"] == 0.01


def test_rmsprop_adds_eps_outside_the_root():
    assert one("RMSprop", 1.0, lr=0.1, eps=0.1) == pytest.approx([1 - 0.1 / (0.1 + 0.1)])


def test_adagrad_decays_its_rate_from_the_second_step():
    values = one("Adagrad", 1.0, 2, lr=0.1, lr_decay=1.0)
    assert values == pytest.approx([0.9, 0.9 - 0.05 / 2**0.5])


def test_rprop_stands_still_where_the_gradient_turned_and_forgets_it():
    # +, turned (no step, size halved), - counts as the first of its kind, then same sign grows the step by 1.2
    assert one("Rprop", [1.0, -1.0, -1.0, -1.0], 4, lr=0.1) == pytest.approx([0.9, 0.9, 0.95, 1.01])


def test_asgd_averages_from_t0():
    p = leaf(np.array([1.0]))
    optimizer = optim.ASGD([p], lr=0.1, lambd=0.0, t0=1)
    path = []
    for _ in range(4):
        p.grad = wrap(np.array([1.0]))
        optimizer.step()
        path.append(float(p.array[0]))
    assert path == pytest.approx([0.9, 0.8, 0.7, 0.6])
    # mu of the step is that of the step before: 1, 1, 1/max(1, 2 - 1), 1/2
    assert float(optimizer.state[p]["ax"].array[0]) == pytest.approx(0.7 + 0.5 * (0.6 - 0.7))


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_reaches_the_solution_of_a_least_squares_problem(search):
    rng = np.random.default_rng(0)
    a, y = rng.standard_normal((30, 8)), rng.standard_normal(30)
    p = leaf(np.zeros(8))
    calls = []

    def closure():
        residual = a @ p.array - y
        p.grad = wrap(a.T @ residual)
        calls.append(1)
        return wrap(np.asarray(0.5 * residual @ residual))

    optimizer = optim.LBFGS([p], lr=1.0 if search else 0.1, line_search_fn=search, max_iter=40, tolerance_change=1e-16)
    first = optimizer.step(closure)
    for _ in range(60):
        optimizer.step(closure)
    assert float(first.array) == pytest.approx(0.5 * y @ y)
    assert optimizer.state[p]["func_evals"] == len(calls)
    np.testing.assert_allclose(p.array, np.linalg.lstsq(a, y, rcond=None)[0], atol=1e-6)


def test_lbfgs_with_strong_wolfe_descends_rosenbrocks_valley():
    p, q = leaf(np.array([-1.2])), leaf(np.array([1.0]))

    def closure():
        x, y = p.array[0], q.array[0]
        p.grad = wrap(np.array([-400 * x * (y - x * x) - 2 * (1 - x)]))
        q.grad = wrap(np.array([200 * (y - x * x)]))
        return float(100 * (y - x * x) ** 2 + (1 - x) ** 2)

    optimizer = optim.LBFGS([p, q], line_search_fn="strong_wolfe", max_iter=100, tolerance_change=1e-16)
    optimizer.step(closure)
    assert float(p.array[0]) == pytest.approx(1, abs=1e-5) and float(q.array[0]) == pytest.approx(1, abs=1e-5)


def test_a_closure_is_called_with_grad_on_and_its_loss_comes_back():
    import cudagrad

    p = leaf(np.ones(2))

    def closure():
        assert cudagrad.is_grad_enabled()
        p.grad = wrap(np.ones(2))
        return 7.0

    with cudagrad.no_grad():
        assert optim.SGD([p], lr=0.5).step(closure) == 7.0
    assert p.array.tolist() == [0.5, 0.5]


def test_a_rate_that_is_a_tensor_is_read_at_each_step():
    p, lr = leaf(np.ones(1, np.float32)), wrap(np.array(0.5, np.float32))
    optimizer = optim.SGD([p], lr=lr)
    for expected in (0.5, 0.25):
        p.grad = wrap(np.ones(1, np.float32))
        optimizer.step()
        assert float(p.array[0]) == expected
        lr.array[...] = 0.25
    assert optimizer.param_groups[0]["lr"] is lr


def test_numpy_floats_as_options_leave_float32_alone():
    p = leaf(np.ones(3, np.float32))
    optimizer = optim.Adam([p], lr=np.float64(0.1), eps=np.float64(1e-8))
    p.grad = wrap(np.ones(3, np.float32))
    optimizer.step()
    assert p.array.dtype == np.float32 and optimizer.state[p]["exp_avg"].array.dtype == np.float32
    assert p.array == pytest.approx(0.9, rel=1e-6)


def test_a_step_counts_as_a_write_to_the_parameter():
    p = leaf(np.ones(3))
    p.grad = wrap(np.ones(3))
    before = p._version
    optim.SGD([p], lr=0.1).step()
    assert p._version > before


@pytest.mark.parametrize("name", [name for name in FORMULAS if name not in ("Adafactor", "Muon")])
def test_complex_parameters_are_pairs_of_real_ones(name):
    rng = np.random.default_rng(3)
    w = rng.standard_normal((4, 6)) + 1j * rng.standard_normal((4, 6))
    together, apart = leaf(w), [leaf(w.real.copy()), leaf(w.imag.copy())]
    a, b = (getattr(optim, name)(params, lr=0.1) for params in ([together], apart))
    for step in range(4):
        g = gradients(step, [w])[0]
        together.grad = wrap(g)
        apart[0].grad, apart[1].grad = wrap(g.real.copy()), wrap(g.imag.copy())
        a.step()
        b.step()
    np.testing.assert_allclose(together.array, apart[0].array + 1j * apart[1].array, rtol=1e-12)


# ---- PyTorch

COMMON = {"maximize": [False, True]}
PEER = {
    "SGD": combinations(
        lr=[0.1], momentum=[0, 0.9], dampening=[0, 0.3], weight_decay=[0, 0.1], nesterov=[False], **COMMON
    )
    + combinations(lr=[0.1], momentum=[0.9], weight_decay=[0, 0.1], nesterov=[True], **COMMON),
    "Adam": combinations(
        lr=[0.01],
        betas=[(0.9, 0.999), (0.0, 0.5)],
        eps=[1e-8, 1e-2],
        weight_decay=[0, 0.1],
        amsgrad=[False, True],
        decoupled_weight_decay=[False, True],
        **COMMON,
    ),
    "AdamW": combinations(lr=[0.01], weight_decay=[0, 0.1], amsgrad=[False, True], **COMMON),
    "NAdam": combinations(
        weight_decay=[0, 0.1], momentum_decay=[4e-3, 0.1], decoupled_weight_decay=[False, True], **COMMON
    ),
    "RAdam": combinations(lr=[0.01], weight_decay=[0, 0.1], decoupled_weight_decay=[False, True], **COMMON),
    "Adamax": combinations(betas=[(0.9, 0.999), (0.5, 0.5)], weight_decay=[0, 0.1], **COMMON),
    "Adagrad": combinations(
        lr=[0.1], lr_decay=[0, 0.2], weight_decay=[0, 0.1], initial_accumulator_value=[0, 0.3], **COMMON
    ),
    "Adadelta": combinations(lr=[1.0], rho=[0.9, 0.5], eps=[1e-6, 1e-3], weight_decay=[0, 0.1], **COMMON),
    "RMSprop": combinations(
        alpha=[0.99, 0.5], weight_decay=[0, 0.1], momentum=[0, 0.9], centered=[False, True], **COMMON
    ),
    "Rprop": combinations(etas=[(0.5, 1.2), (0.1, 2.0)], step_sizes=[(1e-6, 50), (0.005, 0.02)], **COMMON),
    "ASGD": combinations(lambd=[1e-4, 0.1], alpha=[0.75, 0.3], t0=[1e6, 3], weight_decay=[0, 0.1], **COMMON),
    "Adafactor": combinations(
        lr=[0.01, 1.0], beta2_decay=[-0.8, -0.5], eps=[(None, 1e-3), (1e-3, 0.5)], d=[1.0, 3.0], weight_decay=[0, 0.1]
    )
    + [{"maximize": True}],
    "Muon": combinations(
        weight_decay=[0, 0.1],
        nesterov=[True, False],
        adjust_lr_fn=[None, "original", "match_rms_adamw"],
        ns_steps=[1, 5],
    ),
}
PEER_ROWS = [(name, options) for name, all_options in PEER.items() for options in all_options]


@pytest.mark.peer
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name,options", PEER_ROWS, ids=[f"{n}-{name_of(o)}" for n, o in PEER_ROWS])
def test_twenty_steps_and_the_state_are_those_of_pytorch(name, options, dtype):
    torch = pytest.importorskip("torch")
    arrays = arrays_for(name, dtype)
    params = [leaf(a) for a in arrays]
    theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
    optimizer, other = getattr(optim, name)(params, **options), getattr(torch.optim, name)(theirs, **options)
    descend(optimizer, params, arrays, 20)
    for step in range(20):
        for p, g in zip(theirs, gradients(step, arrays)):
            p.grad = None if g is None else torch.from_numpy(g)
        other.step()
    # their scalars (mu_product, eta) are float32, RMSprop's centered variance loses digits, Muon iterates in bfloat16
    tolerance = {np.float64: 2e-6, np.float32: 3e-4}[dtype]
    state, their_state = optimizer.state_dict(), other.state_dict()
    assert state["param_groups"] == their_state["param_groups"]
    for i, (p, q) in enumerate(zip(params, theirs)):
        atol = 20 * 1e-3 * 0.2 * 12 * 0.05 if name == "Muon" else tolerance
        np.testing.assert_allclose(p.array, q.detach().numpy(), rtol=tolerance, atol=atol)
        assert list(state["state"].get(i, {})) == list(their_state["state"].get(i, {}))
        for key, value in their_state["state"].get(i, {}).items():
            mine = state["state"][i][key].array
            assert mine.dtype == value.numpy().dtype and mine.shape == value.numpy().shape
            np.testing.assert_allclose(mine, value.numpy(), rtol=10 * tolerance, atol=tolerance)


@pytest.mark.peer
@pytest.mark.parametrize("name", [name for name in PEER if name not in ("Adafactor", "Muon")])
def test_complex_parameters_follow_pytorch(name):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(5)
    arrays = [rng.standard_normal(shape) + 1j * rng.standard_normal(shape) for shape in [(3, 4), (50, 400)]]
    params, theirs = [leaf(a) for a in arrays], [torch.tensor(a, requires_grad=True) for a in arrays]
    optimizer, other = getattr(optim, name)(params), getattr(torch.optim, name)(theirs)
    descend(optimizer, params, arrays, 5)
    for step in range(5):
        for p, g in zip(theirs, gradients(step, arrays)):
            p.grad = None if g is None else torch.from_numpy(g)
        other.step()
    for p, q in zip(params, theirs):
        np.testing.assert_allclose(p.array, q.detach().numpy(), rtol=1e-6, atol=1e-6)


@pytest.mark.peer
@pytest.mark.parametrize("search", [None, "strong_wolfe"])
@pytest.mark.parametrize("options", [{}, {"max_iter": 3}, {"history_size": 2}, {"lr": 0.5, "max_eval": 7}], ids=name_of)
def test_lbfgs_follows_pytorch_over_twenty_steps(search, options):
    torch = pytest.importorskip("torch")
    begin = np.array([-1.2, 1.0, 0.5, -0.7])
    p, q = leaf(begin), torch.tensor(begin, requires_grad=True)

    def value(x):  # a chain of Rosenbrock valleys, shallow enough for unit steps
        return sum(2 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2 for i in range(3))

    def closure():
        leaf_of = torch.tensor(p.array, requires_grad=True)
        loss = value(leaf_of)
        loss.backward()
        p.grad = wrap(leaf_of.grad.numpy())
        return wrap(loss.detach().numpy())

    def their_closure():
        q.grad = None
        loss = value(q)
        loss.backward()
        return loss

    lr = {"lr": 0.2} if search is None else {}
    optimizer = optim.LBFGS([p], line_search_fn=search, **{**lr, **options})
    other = torch.optim.LBFGS([q], line_search_fn=search, **{**lr, **options})
    for _ in range(20):
        loss, their_loss = optimizer.step(closure), other.step(their_closure)
        assert float(loss.array) == pytest.approx(their_loss.item(), rel=1e-6, abs=1e-9)
        np.testing.assert_allclose(p.array, q.detach().numpy(), rtol=1e-6, atol=1e-8)
    mine, theirs = optimizer.state[p], other.state[q]
    assert (mine["func_evals"], mine["n_iter"]) == (theirs["func_evals"], theirs["n_iter"])
