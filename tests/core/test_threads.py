"""Backward in several threads, and backward within backward: over shared leaves, shared graphs, and hooks that wait."""

import threading

import pytest

import cudagrad as cg
from cudagrad.autograd import Function, grad


def leaf(*values):
    return cg.tensor(list(values), dtype=cg.float64, requires_grad=True)


def together(*works):
    """Run the works in a thread each; what went wrong in one is raised here."""
    errors = []

    def guarded(work):
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not any(t.is_alive() for t in threads)
    if errors:
        raise errors[0]


def test_a_hook_may_wait_for_a_backward_of_another_thread():
    x = leaf(1.0, 2.0)
    y = x * x

    def hook(g):
        found = []

        def inner():
            z = leaf(3.0)
            (z * z).sum().backward()
            found.append(z.grad.item())

        together(inner)
        return g * found[0]

    y.register_hook(hook)
    y.sum().backward()
    assert x.grad.tolist() == [12.0, 24.0]


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph:UserWarning")
def test_threads_may_meet_in_their_hooks_as_ranks_do_that_add_up_their_gradients(create_graph):
    count = 3
    meet, box, seen = threading.Barrier(count, timeout=30), [0.0] * count, [None] * count

    def rank(i):
        weights = [leaf(float(i + 1)) for _ in range(3)]

        def add_up(p):
            box[i] = p.grad.item()
            meet.wait()
            total = sum(box)
            meet.wait()
            p.grad = cg.tensor([total], dtype=cg.float64)

        for p in weights:
            p.register_post_accumulate_grad_hook(add_up)
        loss = (weights[0] * 2 + weights[1] * 3 + weights[2] * 4) * (i + 1)
        loss.sum().backward(create_graph=create_graph)
        seen[i] = [p.grad.item() for p in weights]

    together(*(lambda i=i: rank(i) for i in range(count)))
    assert seen == [[12.0, 18.0, 24.0]] * count


def test_functions_may_meet_in_their_backward():
    meet = threading.Barrier(2, timeout=30)

    class Meeting(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            meet.wait()
            return g * 2

    x = leaf(1.0)
    together(*[lambda: Meeting.apply(x).sum().backward()] * 2)
    assert x.grad.tolist() == [4.0]


def test_two_threads_that_meet_in_the_middle_of_one_graph_get_each_its_gradient():
    """Each masks what does not lead to its input, and both have gradients under way in the same nodes."""
    x, w = leaf(2.0), leaf(3.0)
    h = x * w
    y = (h * h * x).sum()
    meet, found = threading.Barrier(2, timeout=30), {}
    h.register_hook(lambda g: (meet.wait(), None)[1])

    def work(name, t):
        found[name] = grad(y, t, retain_graph=True)[0].item()

    together(lambda: work("x", x), lambda: work("w", w))
    assert found == {"x": 3 * 2.0**2 * 3.0**2, "w": 2 * 2.0**3 * 3.0}
    assert x.grad is None


def test_many_threads_ask_one_graph_for_different_gradients():
    x, w = leaf(0.5, 1.0), leaf(0.9, 1.1)
    y = x
    for _ in range(30):
        y = y * w + x
    z = y.sum()
    wanted = [g.tolist() for g in grad(z, [x, w], retain_graph=True)]

    def work(i):
        for _ in range(10):
            assert grad(z, (x, w)[i], retain_graph=True)[0].tolist() == wanted[i]

    together(*(lambda i=i: work(i % 2) for i in range(6)))


def test_a_backward_within_a_hook_goes_through_the_same_graph():
    x = leaf(2.0)
    h = x * x
    y, z = (h * h).sum(), (h * 5).sum()
    seen = []

    def hook(g):
        if not seen:
            seen.append(g.item())
            seen.append(grad(z, x, retain_graph=True)[0].item())
            z.backward(retain_graph=True)
            seen.append(x.grad.item())

    h.register_hook(hook)
    y.backward(retain_graph=True)
    assert seen == [8.0, 20.0, 20.0]
    assert x.grad.tolist() == [52.0]


def test_a_gradient_asked_for_within_another_sees_the_whole_graph():
    x, w = leaf(2.0), leaf(3.0)
    h = x * w
    z, y = (h * 7).sum(), (h * h).sum()
    seen = []

    def hook(g):
        if not seen:
            seen.append(None)
            seen.append(grad(z, w, retain_graph=True)[0].item())

    h.register_hook(hook)
    assert grad(y, x, retain_graph=True)[0].item() == 2 * 2.0 * 3.0**2
    assert seen[1] == 14.0
    assert grad(y, w)[0].item() == 2 * 2.0**2 * 3.0


def test_an_error_within_leaves_the_outer_backward_as_it_was():
    x = leaf(3.0)
    y = x * x

    def hook(g):
        z = leaf(5.0)
        with cg.enable_grad():
            bad = z * z
            bad.register_hook(lambda g: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                bad.sum().backward()

    y.register_hook(hook)
    (y + x).sum().backward()
    assert x.grad.tolist() == [7.0]


def test_a_gradient_that_a_hook_keeps_is_not_added_into():
    x, kept = leaf(2.0), []
    x.register_hook(kept.append)
    for _ in range(2):
        (x * 2 + x * 3).sum().backward()
    assert [g.item() for g in kept] == [5.0, 5.0]
    assert x.grad.item() == 10.0
