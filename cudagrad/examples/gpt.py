"""A character GPT on the source text of Python's own standard library: ``python -m cudagrad.examples.gpt``."""

import math
import os
import sysconfig
import zlib

import numpy as np

import cudagrad as cg
from cudagrad import nn
from cudagrad.nn import functional as F

from .training import Problem, Run, command, device_of, files_of, learning_rate, options, positive, rate, read


def texts_of(path=None):
    """The texts to learn from and those held out, from a file, a folder, or the standard library.

    Of a folder, one file in twenty is held out, by a hash of its name; of a single file, or of a folder with so few
    that none would be, the last twentieth.

    Raises      Problem where ``path`` is neither
    """
    if path is not None and os.path.isfile(path):
        return _cut(read(path))
    folder = path or sysconfig.get_paths()["stdlib"]
    if not os.path.isdir(folder):
        raise Problem(f"--data: there is no file or folder {folder}")
    train, held = [], []
    for file in files_of(folder, ".py" if path is None else ""):
        name = os.path.relpath(file, folder)
        (held if zlib.crc32(name.encode()) % 20 == 0 else train).append(read(file))
    return ("".join(train), "".join(held)) if held else _cut("".join(train))


def _cut(text):
    at = len(text) * 19 // 20
    return text[:at], text[at:]


class Text:
    """A text as numbers: one for each character that is at least one in 10,000 of it, and 0 for all others."""

    def __init__(self, text):
        counts = np.bincount(_codes(text))
        common = [chr(c) for c in np.flatnonzero(counts * 10_000 >= max(1, len(text))) if chr(c) != "\ufffd"]
        self.alphabet = "\ufffd" + "".join(common)
        self.number = {c: i for i, c in enumerate(self.alphabet)}

    def encode(self, text):
        """int64 numbers of the characters."""
        numbers = np.zeros(0x110000, np.int64)  # one for each code point there is
        numbers[_codes(self.alphabet)] = np.arange(len(self.alphabet))
        return numbers[_codes(text)]

    def decode(self, numbers):
        """The characters of numbers."""
        return "".join(self.alphabet[i] for i in numbers)


def _codes(text):
    """The code points of a text."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


class Block(nn.Module):
    """Attention and a two-layer perceptron, each on the normalised input and added to it.

    Shapes      x, out: [B, T, C]
    """

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(B, T, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)  # [B,H,T,D]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(B, T, C))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT(nn.Module):
    """A transformer that gives for each place of a text the scores of the next character.

    Shapes      tokens: int64 [B, T], T <= context -> [B, T, V]
    Source      Radford et al. 2019, Language Models are Unsupervised Multitask Learners
    """

    def __init__(self, vocabulary, layers=4, heads=4, width=128, context=64):
        super().__init__()
        self.context = context
        self.token, self.place = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.apply(self._init)
        for block in self.blocks:  # the sum over 2 * layers residual branches keeps the variance of one
            for weight in (block.proj.weight, block.down.weight):
                nn.init.normal_(weight, std=0.02 / math.sqrt(2 * layers))

    @staticmethod
    def _init(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
            if getattr(module, "bias", None) is not None:
                nn.init.zeros_(module.bias)

    def forward(self, tokens):
        places = cg.arange(tokens.shape[1], device=tokens.device)
        x = self.token(tokens) + self.place(places)  # [B,T,C]
        return self.head(self.norm(self.blocks(x)))

    @cg.no_grad()
    def continue_(self, tokens, count, temperature=0.8):
        """``tokens`` [1, T] with ``count`` more, each drawn from the scores given the last ``context``."""
        for _ in range(count):
            scores = self(tokens[:, -self.context :])[:, -1] / temperature
            tokens = cg.cat([tokens, cg.multinomial(F.softmax(scores, dim=-1), 1)], dim=1)
        return tokens


def batch_of(data, count, context, device):
    """``count`` random stretches of the text and the same one character on: int64 [B, T] each."""
    starts = cg.randint(len(data) - context, (count,)).numpy()
    rows = data[starts[:, None] + np.arange(context + 1)]
    return cg.from_numpy(rows[:, :-1].copy()).to(device), cg.from_numpy(rows[:, 1:].copy()).to(device)


def loss_of(model, tokens, targets):
    """The mean cross-entropy in nats a character."""
    return F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())


@cg.no_grad()
def held_out_loss(model, data, context, device, batches=20, batch=64):
    """The mean loss over evenly spaced stretches of the held-out text."""
    starts = np.linspace(0, len(data) - context - 1, batches * batch).astype(np.int64)
    losses = []
    for part in starts.reshape(batches, batch):
        rows = data[part[:, None] + np.arange(context + 1)]
        tokens, targets = (cg.from_numpy(r.copy()).to(device) for r in (rows[:, :-1], rows[:, 1:]))
        losses.append(loss_of(model, tokens, targets).item())
    return sum(losses) / len(losses)


def main(argv=None):
    """Train, and return the held-out loss."""
    parser = options("Train a character GPT.", steps=2000, out="runs/gpt")
    parser.add_argument("--data", default=None, help="a text file or folder; default: Python's standard library")
    for name, default in (("layers", 4), ("heads", 4), ("width", 128), ("context", 64), ("batch", 16)):
        parser.add_argument(f"--{name}", type=positive, default=default)
    parser.add_argument("--lr", type=rate, default=2e-3, help="peak learning rate")
    parser.add_argument("--sample", type=int, default=400, help="characters to write at the end")
    args = parser.parse_args(argv)
    if args.width % args.heads:
        parser.error(f"--width {args.width} must be a multiple of --heads {args.heads}")
    device = device_of(args.device)

    cg.manual_seed(args.seed)
    train, held = texts_of(args.data)
    if min(len(train), len(held)) <= args.context + 1:
        parser.error(f"--data: too little text: {len(train)} and {len(held)} characters, need over {args.context + 1}")
    text = Text(train)
    train, held = text.encode(train), text.encode(held)
    model = GPT(len(text.alphabet), args.layers, args.heads, args.width, args.context).to(device)
    optimizer = cg.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.99), weight_decay=0.1)
    count = sum(p.numel() for p in model.parameters())
    print(
        f"{len(train):,} characters, {len(held):,} held out, {len(text.alphabet)} symbols; {count:,} parameters "
        f"on {device}"
    )

    run = Run(args, device, model=model, optimizer=optimizer)
    for step in run:
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, args.steps, args.lr)
        loss = loss_of(model, *batch_of(train, args.batch, args.context, device))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        run.log(loss.item(), args.batch * args.context, "tokens")

    loss = held_out_loss(model, held, args.context, device)
    print(f"held-out loss {loss:.4f} nats a character")
    if args.sample:
        start = cg.tensor([[text.number.get("\n", 0)]], device=device)
        print(text.decode(model.continue_(start, args.sample)[0].tolist()))
    return loss


if __name__ == "__main__":
    command(main)
