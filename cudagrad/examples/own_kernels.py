"""Three CUDA kernels of one's own, checked and put to use: ``python -m cudagrad.examples.own_kernels``.

Without a GPU they run on the emulated device, which needs g++ or clang++.
"""

import argparse
import math
from pathlib import Path

import cudagrad as cg
from cudagrad import nn
from cudagrad.nn import functional as F

from .training import command, device_of, natural

# ---- 1. SwiGLU: two inputs in one pass over memory, and one pass back. CG_T is the dtype of the tensors it is called
# with, N... any number of axes.

swiglu = cg.kernel(
    r"""
    extern "C" __global__ void swiglu(const CG_T* gate, const CG_T* up, CG_T* y, int N) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i >= N) return;
      CG_A x = gate[i], u = up[i];
      y[i] = (CG_T)(x / (1 + exp(-x)) * u);
    }
    """,
    "gate, up: T[N...] -> y: T[N...]",
    grad=cg.kernel(
        r"""
        extern "C" __global__ void swiglu_backward(const CG_T* g, const CG_T* gate, const CG_T* up, CG_T* dgate,
                                                   CG_T* dup, int N) {
          int i = blockIdx.x * blockDim.x + threadIdx.x;
          if (i >= N) return;
          CG_A x = gate[i], u = up[i], d = g[i], s = 1 / (1 + exp(-x));
          dgate[i] = (CG_T)(d * u * s * (1 + x * (1 - s)));
          dup[i] = (CG_T)(d * x * s);
        }
        """,
        "g, gate, up: T[N...] -> dgate, dup: T[N...]",
    ),
)


class GatedLinear(nn.Module):
    """The perceptron of today's language models: two linear maps, SwiGLU, and a linear map back.

    Shapes      x: [..., width] -> [..., width]
    Source      Shazeer 2020, arXiv:2002.05202, equation 6
    """

    def __init__(self, width, hidden):
        super().__init__()
        self.gate, self.up = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        return self.down(swiglu(self.gate(x), self.up(x)))


# ---- 2. The heat equation in a rod bent to a ring: one explicit step. As a linear map of the temperatures the step is
# symmetric, so that its gradient is the step itself, to any order; that by the conductivities is a formula of ops.


def _heat_gradient(g, u, k, r):
    slopes = (u - u.roll(1, -1)) * (g - g.roll(1, -1))
    return heat_step(g, k, r), -r * slopes.sum(0)


heat_step = cg.kernel(
    r"""
    // y_i = u_i + r (k_{i+1} (u_{i+1} - u_i) - k_i (u_i - u_{i-1})): k_i conducts between the cells i - 1 and i.
    extern "C" __global__ void heat_step(const CG_T* u, const CG_T* k, CG_T* y, float r, int N) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i >= N) return;
      const CG_T* row = u + (long long)blockIdx.y * N;
      int left = i > 0 ? i - 1 : N - 1, right = i < N - 1 ? i + 1 : 0;
      CG_A flow = (CG_A)k[right] * ((CG_A)row[right] - (CG_A)row[i]) - (CG_A)k[i] * ((CG_A)row[i] - (CG_A)row[left]);
      y[(long long)blockIdx.y * N + i] = (CG_T)((CG_A)row[i] + (CG_A)r * flow);
    }
    """,
    "u: T[B,N], k: T[N] -> y: T[B,N]",
    grid=("ceil(N, 128)", "B"),
    block=128,
    grad=_heat_gradient,
)


def cooled(u, k, steps, r=0.2):
    """The temperatures u [B,N] after ``steps`` steps through conductivities k [N]; stable where r max(k) < 1/2."""
    for _ in range(steps):
        u = heat_step(u, k, r)
    return u


# ---- 3. A loss of one's own, from a file whose headers say shapes and launch.

_FOCAL = Path(__file__).with_name("focal.cu")
focal = cg.kernel(_FOCAL, entry="focal_forward", grad=cg.kernel(_FOCAL, entry="focal_backward"), name="focal")


# ---- what the same functions are as ops


def swiglu_of_ops(gate, up):
    return F.silu(gate) * up


def heat_step_of_ops(u, k, r):
    flow = k * (u - u.roll(1, -1))
    return u + r * (flow.roll(-1, -1) - flow)


def focal_of_ops(x, target, gamma, alpha):
    s = cg.where(target > 0.5, x, -x)
    weight = cg.where(target > 0.5, alpha, 1 - alpha)
    return -weight * cg.sigmoid(-s) ** gamma * F.logsigmoid(s)


def cases(device):
    """(kernel, the same of ops, tensors, numbers), one of each."""

    def randn(*shape):
        return cg.randn(*shape, device=device)

    target = (cg.rand(300, device=device) < 0.2).float()
    return [
        (swiglu, swiglu_of_ops, (randn(3, 5, 7), randn(3, 5, 7)), ()),
        (heat_step, heat_step_of_ops, (randn(2, 150), cg.rand(150, device=device)), (0.2,)),
        (focal, focal_of_ops, (randn(300), target), (2.0, 0.25)),
    ]


def differences(run, of_ops, tensors, numbers):
    """The largest difference of the outputs, and that of the gradients of their sine's sum."""
    found = []
    for function in (run, of_ops):
        leaves = [t.clone().requires_grad_() for t in tensors]
        y = function(*leaves, *numbers)
        y.sin().sum().backward()
        found.append([y.detach(), *(t.grad for t in leaves)])
    apart = [0.0 if a is None or b is None else (a - b).abs().max().item() for a, b in zip(*found)]
    return apart[0], max(apart[1:])


# ---- something tiny to learn for each


def learn_rotation(device, steps):
    """SwiGLU: a gated perceptron learns to turn vectors by a right angle; (first loss, last loss)."""
    model = GatedLinear(4, 16).to(device)
    x = cg.randn(64, 4, device=device)
    return _descend(model.parameters(), lambda: F.mse_loss(model(x), x.roll(1, 1)), steps, 0.02)


def learn_conductivity(device, steps, cells=48):
    """Heat: a badly conducting stretch of a ring is found from temperatures; (first loss, last loss)."""
    place = cg.arange(cells, device=device) / cells * 2 * math.pi
    before = cg.stack([(place - shift).cos() for shift in (0.0, 1.0, 2.0, 3.0)])
    true = cg.where((place > 2) & (place < 4), 0.2, 1.0)
    after = cooled(before, true, 40)
    raw = cg.zeros(cells, device=device, requires_grad=True)
    return _descend([raw], lambda: F.mse_loss(cooled(before, 2 * raw.sigmoid(), 40), after) * 1e3, steps, 0.1)


def learn_rare(device, steps):
    """Focal loss: one class in twenty is told from the others; (first loss, last loss)."""
    x = cg.randn(400, 2, device=device)
    target = ((x * x).sum(1) > 6).float()
    model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1)).to(device)
    return _descend(model.parameters(), lambda: focal(model(x)[:, 0], target, 2.0, 0.75).mean(), steps, 0.05)


def _descend(parameters, loss_of, steps, rate):
    optimizer = cg.optim.Adam(parameters, lr=rate)
    losses = []
    for _ in range(steps):
        loss = loss_of()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses[0], losses[-1]


def main(arguments=None):
    """Check the three kernels and let something learn through each."""
    parser = argparse.ArgumentParser(description="Three CUDA kernels of one's own under the tape.")
    parser.add_argument("--device", default="auto", help="cuda, emulated, cpu, or auto: cuda where there is one")
    parser.add_argument("--steps", type=natural, default=60, help="optimizer steps of each training")
    options = parser.parse_args(arguments)
    name = options.device
    device = device_of("cuda" if cg.cuda.is_available() else "emulated") if name == "auto" else device_of(name)
    cg.manual_seed(0)
    print(f"on {device}")
    for run, of_ops, tensors, numbers in cases(device):
        run.check(*tensors, *numbers)
        forward, backward = differences(run, of_ops, tensors, numbers)
        print(f"{run.title:10} checked; from ops it differs by {forward:.1e}, its gradient by {backward:.1e}")
    for learn in (learn_rotation, learn_conductivity, learn_rare):
        if options.steps:
            first, last = learn(device, options.steps)
            print(f"{learn.__name__:20} loss {first:.4f} -> {last:.4f}")


if __name__ == "__main__":
    command(main)
