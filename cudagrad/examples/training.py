"""What the examples share: their common options, a progress line, and runs that survive being killed."""

import argparse
import os
import signal
import sys
import time

import cudagrad as cg


def options(description, **defaults):
    """A parser with the options that every example has; ``defaults`` sets those of steps, every, out and seed."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--device", default="auto", help="cpu, cuda, emulated, or auto: cuda where there is one")
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same losses, bit for bit")
    parser.add_argument("--steps", type=int, default=1000, help="optimizer steps in all")
    parser.add_argument("--out", default=None, help="folder for the checkpoint; none is written without it")
    parser.add_argument("--every", type=int, default=500, help="steps between checkpoints")
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint in --out")
    parser.set_defaults(**defaults)
    return parser


def device_of(name):
    """The device an option names; "auto" is cuda where there is one."""
    if name == "auto":
        name = "cuda" if cg.cuda.is_available() else "cpu"
    return cg.device(name)


class Run:
    """A training run: counts steps, shows progress, and keeps all it needs to go on in one checkpoint file.

    ``parts`` are the objects with ``state_dict`` and ``load_state_dict`` (model, optimizer, ...). A checkpoint also holds
    the step, the losses so far and the state of the random generators, so a resumed run repeats the numbers of one that
    was never stopped.

    Raises      FileNotFoundError where ``resume`` is asked for and there is no checkpoint
    """

    def __init__(self, args, device, **parts):
        self.args, self.device, self.parts = args, device, parts
        self.step, self.losses, self.stopped = 0, [], False
        self.path = os.path.join(args.out, "checkpoint.cgt") if args.out else None
        if args.out:
            os.makedirs(args.out, exist_ok=True)
        if args.resume:
            self._load()

    def __iter__(self):
        """The numbers of the steps still to do; a checkpoint every so often, at Ctrl-C and at the end."""
        started, first = time.time(), self.step
        before = signal.signal(signal.SIGINT, self._stop)
        try:
            while self.step < self.args.steps and not self.stopped:
                yield self.step
                self.step += 1
                self._show(time.time() - started, self.step - first)
                if self.step % self.args.every == 0:
                    self.save()
        finally:
            signal.signal(signal.SIGINT, before)
            self._end_line()
        self.save()
        if self.stopped:
            where = f"; --resume goes on from {self.path}" if self.path else ""
            print(f"stopped after step {self.step}{where}")

    def log(self, loss, units=0, unit="samples"):
        """Note the loss of this step, a number, and how many units of input it saw."""
        self.losses.append(loss)
        self.units, self.unit = units, unit

    def _stop(self, number, frame):
        if self.stopped:
            raise KeyboardInterrupt
        self.stopped = True

    def save(self):
        """Write the checkpoint: to a file of another name, then renamed, so that none is ever torn."""
        if self.path is None:
            return
        state = {name: part.state_dict() for name, part in self.parts.items()}
        cg.save({**state, "step": self.step, "losses": self.losses, "random": cg.get_rng_state()}, self.path)

    def _load(self):
        if self.path is None or not os.path.exists(self.path):
            raise FileNotFoundError(f"--resume: there is no checkpoint {self.path or '(give --out)'}")
        state = cg.load(self.path, map_location=self.device)
        for name, part in self.parts.items():
            part.load_state_dict(state[name])
        self.step, self.losses = state["step"], state["losses"]
        cg.set_rng_state(state["random"].cpu())

    def _show(self, seconds, done):
        if done % max(1, min(20, self.args.steps // 50)) and self.step != self.args.steps:
            return
        rate = done / max(seconds, 1e-9)
        left = (self.args.steps - self.step) / rate
        recent = self.losses[-20:]
        text = f"step {self.step}/{self.args.steps}  loss {sum(recent) / len(recent):.4f}"
        text += f"  {rate * self.units:,.0f} {self.unit}/s  {_clock(left)} left"
        if self.device.type == "cuda":
            text += f"  {cg.cuda.max_memory_allocated() / 2**20:,.0f} MiB"
        if sys.stdout.isatty():
            width = 24
            full = width * self.step // self.args.steps
            print(f"\r|{'█' * full}{' ' * (width - full)}| {text}\x1b[K", end="", flush=True)
        elif self.step % max(1, self.args.steps // 20) == 0 or self.step == self.args.steps:
            print(text, flush=True)

    def _end_line(self):
        if sys.stdout.isatty():
            print()


def _clock(seconds):
    minutes, seconds = divmod(int(seconds), 60)
    return f"{minutes}:{seconds:02d}"
