"""Rows of the ops that draw samples, where chance has nothing to say; tests/core/test_random.py has the rest."""

import numpy as np

import cudagrad

from . import Error, Input, case

CERTAIN = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]])

# grad=0: a sample's gradient is 0 by definition, not the slope of these certain outcomes
case(
    "Tensor.bernoulli",
    lambda p: p,
    Input(CERTAIN),
    Input(np.zeros((0, 2))),
    Input(np.array(1.0)),
    Error(RuntimeError, "Expected p_in >= 0 && p_in <= 1 to be true, but got false.", np.array([0.5, 1.5])),
    Error(NotImplementedError, "\"bernoulli_tensor_cpu_p_\" not implemented for 'Long'", np.array([0, 1])),
    grad=0,
)
case(
    "poisson",
    np.zeros_like,
    Input(np.zeros((2, 3))),
    Input(np.array(0.0)),
    Error(RuntimeError, "invalid Poisson rate, expected rate to be non-negative", np.array([-1.0])),
    Error(NotImplementedError, "\"poisson_cpu\" not implemented for 'Long'", np.array([1, 2])),
    grad=0,
)
case(
    "binomial",
    lambda n, p: np.maximum(n, 0) * np.round(np.clip(p, 0, 1)),
    Input(np.array([[5.0], [100.0], [-3.0]]), np.array([0.0, 1.0, 0.0, 1.5, -0.5])),
    Input(np.array(0.0), np.array([0.25, 0.75])),
    Error(ValueError, "binomial only supports floating-point dtypes for count, got: Long", np.array([1]), np.ones(1)),
    Error(ValueError, "binomial only supports floating-point dtypes for prob, got: Long", np.ones(1), np.array([1])),
    grad=0,
)
case(
    "normal.of_tensors",  # not the out-of-place form of normal_
    lambda mean, std: mean + std,
    Input((2, 1), np.zeros(3)),
    Input((4,), 0.0),
    Input(2.5, np.zeros((2, 2))),
    Error(RuntimeError, "normal expects std >= 0.0, but found std -1", np.zeros(2), -1.0),
    Error(RuntimeError, "normal expects all elements of std >= 0.0", np.zeros(2), np.array([-1.0, 1.0])),
    Error(NotImplementedError, "\"normal_kernel_cpu\" not implemented for 'Long'", np.array([1, 2]), 1.0),
    Error(TypeError, "normal() received an invalid combination of arguments - got (float, float)", 0.0, 1.0),
    f=cudagrad.normal,
    grad=0,
)
case(
    "multinomial",
    lambda p, n, replacement=False: np.repeat(np.argmax(p, -1)[..., None], n, -1),
    Input(np.array([[0.0, 3.0, 0.0], [0.5, 0.0, 0.0]]), 1),
    Input(np.array([0.0, 0.0, 2.0]), 5, True),
    Error(RuntimeError, "cannot sample n_sample > prob_dist.size(-1) samples without replacement", np.ones(2), 3),
    Error(RuntimeError, "cannot sample n_sample <= 0 samples", np.ones(2), 0),
    Error(RuntimeError, "probability tensor contains either `inf`, `nan` or element < 0", np.array([np.inf, 1.0]), 1),
    Error(RuntimeError, "invalid multinomial distribution (sum of probabilities <= 0)", np.zeros(2), 1),
    Error(RuntimeError, "prob_dist must be 1 or 2 dim", np.ones((1, 1, 2)), 1),
    Error(RuntimeError, "multinomial only supports floating-point dtypes for input, got: Long", np.array([1, 2]), 1),
    grad=0,
)
