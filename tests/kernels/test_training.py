"""The main example trains on the emulated device as on the CPU."""

import numpy as np
import pytest

import cudagrad as cg
from cudagrad.backend import emulator
from cudagrad.examples.gpt import GPT, loss_of

from .common import needs_compiler

pytestmark = needs_compiler


class Net(cg.nn.Module):
    """The example's model, with dropout behind it, so that every kernel there is takes part."""

    def __init__(self):
        super().__init__()
        self.gpt, self.dropout = GPT(11, layers=2, heads=2, width=16, context=8), cg.nn.Dropout(0.1)

    def forward(self, tokens):
        return cg.log_softmax(self.dropout(self.gpt(tokens)), -1)


def losses_on(device, steps):
    cg.manual_seed(5)
    model = Net().to(device)
    cg.manual_seed(6)  # a device has a generator of its own, and the CPU's has just made the weights
    optimizer = cg.optim.AdamW(model.parameters(), lr=1e-2)
    tokens = cg.tensor(np.random.default_rng(0).integers(0, 11, (steps, 4, 9))).to(device)
    losses = []
    for batch in tokens:
        loss = loss_of(model, batch[:, :-1], batch[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("schedule", ["ordered", "eager"])
def test_a_gpt_has_the_losses_of_the_cpu(schedule):
    expected = losses_on("cpu", 4)
    with emulator.settings(schedule=schedule):
        assert losses_on("emulated", 4) == pytest.approx(expected, rel=1e-4)
