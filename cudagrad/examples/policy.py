"""REINFORCE learns to balance a pole on a cart: ``python -m cudagrad.examples.policy``.

How often the loop over time runs, and for how many poles, depends on what the policy did: each graph is another.
"""

import math

import cudagrad as cg
from cudagrad import nn
from cudagrad.nn import functional as F

from .training import Run, command, device_of, options, positive, rate

GRAVITY, CART_KG, POLE_KG, HALF_POLE_M, FORCE_N, TICK_S = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
FURTHEST_M, STEEPEST = 2.4, math.radians(12)
LONGEST = 200  # ticks: who still stands then has won
SOLVED = 195  # ticks that poles must stand in the mean for the task to count as solved


class Carts:
    """Carts on a rail, each with a pole that falls over unless the cart is pushed left or right at every tick.

    ``state`` is float32 [N, 4]: place and speed of the cart, angle and speed of the pole.

    Source      Barto, Sutton & Anderson 1983, Neuronlike adaptive elements that can solve difficult learning control
                problems; no friction
    """

    def __init__(self, count, device):
        self.state = cg.rand(count, 4, device=device) * 0.1 - 0.05

    def push(self, right):
        """One tick, with the carts pushed right where bool ``right`` [N] says so, else left: who still stands [N]."""
        place, speed, angle, turning = self.state.unbind(1)
        force = cg.where(right, FORCE_N, -FORCE_N)
        sin, cos, mass = angle.sin(), angle.cos(), CART_KG + POLE_KG
        pull = (force + POLE_KG * HALF_POLE_M * turning**2 * sin) / mass
        turn = (GRAVITY * sin - cos * pull) / (HALF_POLE_M * (4 / 3 - POLE_KG * cos**2 / mass))
        gain = pull - POLE_KG * HALF_POLE_M * turn * cos / mass
        change = cg.stack([speed, gain, turning, turn], dim=1)
        self.state = self.state + TICK_S * change
        return (self.state[:, 0].abs() <= FURTHEST_M) & (self.state[:, 2].abs() <= STEEPEST)

    def keep(self, standing):
        """Go on with those alone that bool ``standing`` [N] names."""
        self.state = self.state[standing]


class Policy(nn.Module):
    """The log-probabilities of pushing left and right.

    Shapes      state: [N, 4] -> [N, 2]
    """

    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 2))

    def forward(self, state):
        return F.log_softmax(self.net(state), dim=1)


def play(policy, count, device, longest=LONGEST):
    """Let ``count`` carts run until every pole has fallen: (said, who, ticks).

    ``said`` and ``who`` have a tensor a tick: the log-probabilities of what the carts did that still stood, and their
    numbers. ``ticks`` int64 [count] is how long each stood.
    """
    carts, alive = Carts(count, device), cg.arange(count, device=device)
    ticks = cg.zeros(count, dtype=cg.int64, device=device)
    said, who = [], []
    while len(alive) and len(said) < longest:
        scores = policy(carts.state)  # [N,2]
        action = cg.multinomial(scores.detach().exp(), 1)
        said.append(scores.gather(1, action)[:, 0])
        who.append(alive)
        ticks[alive] += 1
        standing = carts.push(action[:, 0] == 1)
        carts.keep(standing)
        alive = alive[standing]
    return said, who, ticks


def loss_of(said, who, ticks):
    """Minus the log-probability of each action times how much longer its pole stood than those of the others.

    The return of an action is the count of ticks from it on; its baseline the mean over the carts that stood then.

    Source      Williams 1992, Simple statistical gradient-following algorithms for connectionist reinforcement learning
    """
    total = 0.0
    for tick, (log_p, alive) in enumerate(zip(said, who)):
        left = (ticks[alive] - tick).float()
        total = total - (log_p * (left - left.mean())).sum()
    return total / (ticks.sum() * ticks.float().mean())


def main(argv=None):
    """Train, and return the mean number of ticks that new poles stand."""
    parser = options("Learn to balance a pole.", steps=60, every=20, out="runs/policy")
    parser.add_argument("--carts", type=positive, default=32, help="carts a step")
    parser.add_argument("--width", type=positive, default=32)
    parser.add_argument("--lr", type=rate, default=2e-2)
    parser.add_argument("--trials", type=positive, default=100, help="new carts to try the policy on at the end")
    args = parser.parse_args(argv)
    device = device_of(args.device)

    cg.manual_seed(args.seed)
    policy = Policy(args.width).to(device)
    optimizer = cg.optim.Adam(policy.parameters(), lr=args.lr)
    run = Run(args, device, model=policy, optimizer=optimizer)
    for _ in run:
        said, who, ticks = play(policy, args.carts, device)
        loss = loss_of(said, who, ticks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.log(loss.item(), ticks.sum().item(), "ticks", f"stood {ticks.float().mean().item():.0f} of {LONGEST} ticks")

    with cg.no_grad():
        stood = play(policy, args.trials, device)[-1].float().mean().item()
    solved = "solved" if stood >= SOLVED else "not solved"
    print(f"{args.trials} new poles stood {stood:.1f} of {LONGEST} ticks in the mean: {solved}, {SOLVED} are asked for")
    return stood


if __name__ == "__main__":
    command(main)
