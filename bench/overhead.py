"""What does one op cost beside its arithmetic? 8x8 tensors, against PyTorch. Targets: add 0.60, chain 0.42."""

import protocol


def recorded(name):
    """One recorded op on two 8x8 tensors, a thousand times."""

    def make(torch, np):
        rng = np.random.default_rng(0)
        a = torch.from_numpy(rng.random((8, 8), dtype=np.float32)).requires_grad_()
        b = torch.from_numpy(rng.random((8, 8), dtype=np.float32))
        call = {
            "add": lambda: a + b,
            "mul": lambda: a * b,
            "mul_number": lambda: a * 2.0,
            "matmul": lambda: a @ b,
            "tanh": lambda: a.tanh(),
            "sum": lambda: a.sum(),
            "getitem": lambda: a[2:4],
            "bias_add": lambda: a + b[0],
        }[name]

        def step():
            for _ in range(1000):
                call()

        return step

    return make


def no_grad_add(torch, np):
    """An op that is not recorded, a thousand times."""
    a, b = torch.ones(8, 8), torch.ones(8, 8)

    def step():
        with torch.no_grad():
            for _ in range(1000):
                a + b

    return step


def chain(torch, np):
    """A chain of 1000 products, forward and backward: divide by 1000 for one op's share."""
    rng = np.random.default_rng(0)
    a = torch.from_numpy(rng.random((8, 8), dtype=np.float32)).requires_grad_()
    b = torch.from_numpy(rng.random((8, 8), dtype=np.float32))
    g = torch.ones(8, 8)

    def step():
        x = a
        for _ in range(1000):
            x = x * b
        x.backward(g)

    return step


NAMES = ("add", "mul", "mul_number", "matmul", "tanh", "sum", "getitem", "bias_add")
WORKLOADS = {name: recorded(name) for name in NAMES} | {"no_grad_add": no_grad_add, "chain": chain}

if __name__ == "__main__":
    protocol.main(WORKLOADS, __file__)
