"""Ops of several outputs whose rule asks for one of them by name: kept once, and watched for writes."""

import pytest

import cudagrad
from cudagrad.nn import functional as F


def called(**options):
    x, residual = (cudagrad.randn(3, 4, dtype=cudagrad.float64, requires_grad=True) for _ in range(2))
    return x, residual, *F.add_layer_norm(x, residual, (4,), **options)


def test_the_output_that_the_rule_asks_for_is_all_the_tape_keeps_of_size():
    _, _, _, s = called()
    (kept,) = [a for a in s.node.edges[0].saved if a is not None]
    assert kept is s.array


def test_a_write_to_it_before_backward_is_an_error():
    _, _, y, s = called()
    s.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_write_to_another_output_is_none():
    x, _, y, _ = called()
    y.mul_(2)
    y.pow(2).sum().backward()
    assert x.grad is not None


def test_saved_tensor_hooks_see_it_and_give_it_back():
    seen = []

    def pack(t):
        seen.append(tuple(t.shape))
        return t.numpy().copy()

    with cudagrad.autograd.graph.saved_tensors_hooks(pack, cudagrad.from_numpy):
        x, residual, y, s = called()
    assert seen == [(3, 4)]
    (y * y * s).sum().backward()
    again = [t.detach().clone().requires_grad_() for t in (x, residual)]
    y, s = F.add_layer_norm(*again, (4,))
    (y * y * s).sum().backward()
    assert all((a.grad == b.grad).all() for a, b in zip((x, residual), again))
