"""The pole on the cart: its physics against the equations of motion, the loss against its definition, whole runs."""

import numpy as np
import pytest

import cudagrad as cg
from cudagrad.examples import policy

CPU = cg.device("cpu")


def accelerations(state, force):
    """Of cart and pole, from the two equations of motion of a cart with a uniform rod, as a linear system."""
    _, _, angle, turning = state
    pole, length = policy.POLE_KG, policy.HALF_POLE_M
    coupling = pole * length * np.cos(angle)
    matrix = [[policy.CART_KG + pole, coupling], [coupling, 4 / 3 * pole * length**2]]
    spin = pole * length * turning**2 * np.sin(angle)
    return np.linalg.solve(matrix, [force + spin, pole * policy.GRAVITY * length * np.sin(angle)])


def test_a_push_obeys_the_equations_of_motion():
    rng = np.random.default_rng(0)
    before = rng.uniform(-1, 1, (20, 4)) * [2, 3, 1.5, 3]
    right = rng.random(20) < 0.5
    carts = policy.Carts(20, CPU)
    carts.state = cg.tensor(before)  # in float64
    carts.push(cg.from_numpy(right))
    for state, to_right, after in zip(before, right, carts.state.numpy()):
        cart, pole = accelerations(state, policy.FORCE_N if to_right else -policy.FORCE_N)
        change = np.array([state[1], cart, state[3], pole])
        np.testing.assert_allclose(after, state + policy.TICK_S * change, rtol=1e-12, atol=1e-14)


def test_a_cart_stands_within_its_rail_and_its_angle():
    carts = policy.Carts(4, CPU)
    edge = policy.STEEPEST
    carts.state = cg.tensor([[2.3, 0, 0, 0], [-2.5, 0, 0, 0], [0, 0, 0.9 * edge, 0], [0, 0, -1.1 * edge, 0]])
    standing = carts.push(cg.tensor([True] * 4))
    assert standing.tolist() == [True, False, True, False]
    carts.keep(standing)
    assert carts.state.shape == (2, 4)


class Always(cg.nn.Module):
    """Pushes right."""

    def forward(self, state):
        return cg.tensor([-100.0, 0.0]).expand(len(state), 2)


def test_pushing_one_way_only_the_poles_fall_soon_and_leave_the_loop():
    cg.manual_seed(0)
    said, who, ticks = policy.play(Always(), 50, CPU)
    assert len(said) == len(who) == ticks.max() and 8 <= ticks.min() and ticks.max() <= 12
    assert [len(w) for w in who] == [(ticks > t).sum() for t in range(len(who))]
    for tick, numbers in enumerate(who):
        assert numbers.tolist() == cg.nonzero(ticks > tick)[:, 0].tolist()


def test_nobody_plays_longer_than_told():
    said, _, ticks = policy.play(Always(), 3, CPU, longest=4)
    assert len(said) == 4 and ticks.tolist() == [4, 4, 4]


def test_the_loss_weighs_each_action_by_its_advantage():
    ticks = [3, 1]
    log_p = [cg.tensor([-0.5, -1.0], requires_grad=True), cg.tensor([-2.0], requires_grad=True)]
    log_p.append(cg.tensor([-3.0], requires_grad=True))
    who = [cg.tensor([0, 1]), cg.tensor([0]), cg.tensor([0])]
    loss = policy.loss_of(log_p, who, cg.tensor(ticks))
    loss.backward()
    # At tick 0 the returns are 3 and 1, their mean 2; alone there is nothing to compare with. Over 4 actions, mean 2.
    assert loss.item() == pytest.approx((0.5 * 1 - 1.0 * 1) / 8)
    assert [p.grad.tolist() for p in log_p] == [[-1 / 8, 1 / 8], [0.0], [0.0]]


def test_it_learns_to_balance(capsys):
    stood = policy.main(["--out", "", "--device", "cpu", "--steps", "40"])
    assert stood >= policy.SOLVED
    assert capsys.readouterr().out.endswith(f"stood {stood:.1f} of 200 ticks in the mean: solved, 195 are asked for\n")
