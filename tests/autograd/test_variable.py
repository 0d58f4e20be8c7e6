"""``Variable``: the tensors of programs that are older than ``requires_grad_``."""

import pytest

import cudagrad as cg
from cudagrad.autograd import Variable


def test_it_is_a_leaf_over_the_same_memory_with_the_wish_it_was_given():
    data = cg.ones(2)
    x = Variable(data, requires_grad=True)
    (x * x).sum().backward()
    assert type(x) is cg.Tensor and x.data_ptr() == data.data_ptr() and not data.requires_grad
    assert x.is_leaf and x.grad.tolist() == [2, 2] and Variable(data, True).requires_grad
    assert not Variable(x).requires_grad and Variable(x * 2).is_leaf


def test_each_tensor_is_one():
    assert isinstance(cg.ones(1), Variable) and isinstance(cg.nn.Parameter(cg.ones(1)), Variable)
    assert not isinstance(1.0, Variable)


def test_what_is_no_tensor_or_cannot_have_a_gradient_is_refused():
    with pytest.raises(TypeError, match="^Variable data has to be a tensor, but got list"):
        Variable([1.0])
    with pytest.raises(RuntimeError, match="^Only Tensors of floating point and complex dtype can require gradients"):
        Variable(cg.ones(1, dtype=cg.int64), requires_grad=True)


def test_volatile_is_answered_with_a_warning():
    with pytest.warns(UserWarning, match="volatile was removed and now has no effect"):
        assert Variable(cg.ones(1), volatile=True).item() == 1
