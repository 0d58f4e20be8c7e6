"""How long is a training step? Whole models against PyTorch, one core. Targets stand beside each workload."""

import protocol


def parameters(torch, np, *shapes, seed=0, scale=0.05):
    """Leaves with the same values for every engine."""
    rng = np.random.default_rng(seed)
    make = torch.from_numpy
    return [make((rng.standard_normal(s) * scale).astype(np.float32)).requires_grad_() for s in shapes]


def filled(torch, np, model, seed=0):
    """``model`` with parameters that are the same for every engine."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for p in model.parameters():
            values = rng.standard_normal(tuple(p.shape)) * (0.05 if p.ndim > 1 else 0.0) + (p.ndim == 1) * 0.5
            p.copy_(torch.from_numpy(values.astype(np.float32)))
    return model


def data(torch, np, *shape, seed=1):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def labels(torch, np, high, *shape, seed=2):
    return torch.from_numpy(np.random.default_rng(seed).integers(0, high, shape))


def stepper(torch, model, optimizer, loss_of):
    """A training step that returns the first loss it saw, for the comparison of engines."""
    first = []

    def step():
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        if not first:
            first.append(loss.item())
        return first[0]

    return step


def mlp(batch):
    """784-512-512-10 with Adam. Target 0.85 at batch 64, 1.0 at 512."""

    def make(torch, np):
        nn = torch.nn
        model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
        filled(torch, np, model)
        x, y = data(torch, np, batch, 784), labels(torch, np, 10, batch)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        return stepper(torch, model, optimizer, lambda: nn.functional.cross_entropy(model(x), y))

    return make


def lenet(torch, np):
    """LeNet on 28x28, batch 64, SGD. Target 1.6."""
    nn = torch.nn
    model = nn.Sequential(
        *(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)),
    )
    filled(torch, np, model)
    x, y = data(torch, np, 64, 1, 28, 28), labels(torch, np, 10, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    return stepper(torch, model, optimizer, lambda: nn.functional.cross_entropy(model(x), y))


def lstm(torch, np):
    """The library's LSTM: 32 steps, hidden 128, batch 32. Target 1.35."""
    model = filled(torch, np, torch.nn.LSTM(64, 128))
    x = data(torch, np, 32, 32, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    return stepper(torch, model, optimizer, lambda: (model(x)[0] ** 2).mean())


def lstm_loop(torch, np):
    """Cells in a Python loop, the same sizes. Target 1.1."""
    model = filled(torch, np, torch.nn.LSTMCell(64, 128))
    x = data(torch, np, 32, 32, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)

    def loss_of():
        h, c = torch.zeros(32, 128), torch.zeros(32, 128)
        for t in range(32):
            h, c = model(x[t], (h, c))
        return (h * h).mean()

    return stepper(torch, model, optimizer, loss_of)


def gpt(torch, np):
    """4 layers, 4 heads, width 128, context 64, batch 16, 65 symbols, AdamW. Target 1.2."""
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(128), nn.LayerNorm(128)
            self.qkv, self.proj = nn.Linear(128, 384), nn.Linear(128, 128)
            self.up, self.down = nn.Linear(128, 512), nn.Linear(512, 128)

        def forward(self, x):
            B, T, C = x.shape
            q, k, v = self.qkv(self.norm1(x)).view(B, T, 3, 4, C // 4).permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.proj(y.transpose(1, 2).reshape(B, T, C))
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.token, self.place = nn.Embedding(65, 128), nn.Embedding(64, 128)
            self.blocks = nn.Sequential(*(Block() for _ in range(4)))
            self.norm, self.head = nn.LayerNorm(128), nn.Linear(128, 65, bias=False)

        def forward(self, tokens):
            return self.head(self.norm(self.blocks(self.token(tokens) + self.place(torch.arange(64)))))

    model = filled(torch, np, GPT())
    x, y = labels(torch, np, 65, 16, 64), labels(torch, np, 65, 16, 64, seed=3)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    return stepper(torch, model, optimizer, lambda: F.cross_entropy(model(x).flatten(0, 1), y.flatten()))


def tree(torch, np):
    """A recursive Tree-LSTM on random trees, another graph each sample. Target 0.55."""
    size = 32
    (w, u, b, leaf) = parameters(torch, np, (size, 5 * size), (size, 5 * size), (5 * size,), (16, size))
    rng = np.random.default_rng(5)

    def grow(count):
        if count == 1:
            return int(rng.integers(16))
        left = int(rng.integers(1, count))
        return grow(left), grow(count - left)

    trees = [grow(24) for _ in range(8)]

    def run(node):
        if isinstance(node, int):
            h = leaf[node : node + 1]
            return h, h
        (h1, c1), (h2, c2) = run(node[0]), run(node[1])
        i, f, g, o, q = (h1 @ w + h2 @ u + b).chunk(5, 1)
        c = i.sigmoid() * q.tanh() + f.sigmoid() * c1 + g.sigmoid() * c2
        return o.sigmoid() * c.tanh(), c

    optimizer = torch.optim.SGD([w, u, b, leaf], lr=1e-2)

    def loss_of():
        total = None
        for t in trees:
            h, _ = run(t)
            loss = (h * h).sum()
            total = loss if total is None else total + loss
        return total

    return stepper(torch, None, optimizer, loss_of)


def rowwise(name):
    """One function of [4096, 1024], forward and backward."""

    def make(torch, np):
        F = torch.nn.functional
        (x,) = parameters(torch, np, (4096, 1024), scale=1.0)
        g = data(torch, np, 4096, 1024)
        w, b = parameters(torch, np, (1024,), (1024,))
        call = {
            "layer_norm": lambda: F.layer_norm(x, (1024,), w, b),
            "softmax": lambda: F.softmax(x, -1),
            "gelu": lambda: F.gelu(x),
            "gelu_tanh": lambda: F.gelu(x, approximate="tanh"),
            "dropout": lambda: F.dropout(x, 0.1),
        }[name]

        def step():
            x.grad = None
            call().backward(g)

        return step

    return make


def cross_entropy(torch, np):
    """[2048, 32000], forward and backward. Target 0.25."""
    (x,) = parameters(torch, np, (2048, 32000), scale=1.0)
    y = labels(torch, np, 32000, 2048)

    def step():
        x.grad = None
        loss = torch.nn.functional.cross_entropy(x, y)
        loss.backward()
        return loss.item()

    return step


WORKLOADS = {"mlp64": mlp(64), "mlp512": mlp(512), "lenet": lenet, "lstm": lstm, "lstm_loop": lstm_loop, "gpt": gpt}
WORKLOADS |= {"tree": tree, "cross_entropy": cross_entropy}
WORKLOADS |= {name: rowwise(name) for name in ("layer_norm", "softmax", "gelu", "gelu_tanh", "dropout")}

if __name__ == "__main__":
    protocol.main(WORKLOADS, __file__)
