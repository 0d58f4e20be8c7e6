"""What the examples share: their common options, a progress line, and runs that survive being killed."""

import argparse
import contextlib
import glob
import math
import os
import shutil
import signal
import sys
import threading
import time

import cudagrad as cg
from cudagrad.core.generator import generator_of

MAY_CHANGE = {"device", "out", "every", "resume", "steps", "sample", "trials"}  # options, when a run goes on
LEFT_ALONE = ("site-packages", "dist-packages", "test", "tests", "__pycache__")


class Problem(Exception):
    """What the user can put right: ``command`` shows it as a sentence, with no traceback."""


def command(main):
    """Run an example as a program: what its user can put right, and Ctrl-C, end in a sentence."""
    try:
        main()
    except (Problem, OSError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)


def options(description, **defaults):
    """A parser with the options that every example has; ``defaults`` sets those of steps, every, out and seed."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--device", default="auto", help="cpu, cuda, emulated, or auto: cuda where there is one")
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same losses, bit for bit")
    parser.add_argument("--steps", type=natural, default=1000, help="optimizer steps in all")
    parser.add_argument("--out", default=None, help="folder for the checkpoint; '' for none")
    parser.add_argument("--every", type=positive, default=500, help="steps between checkpoints")
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint in --out, where there is one")
    parser.set_defaults(**defaults)
    return parser


def natural(text):
    """The integer, 0 or more, that an option's text stands for."""
    return _integer(text, 0)


def positive(text):
    """The integer, 1 or more, that an option's text stands for."""
    return _integer(text, 1)


def rate(text):
    """The number above 0 that an option's text stands for."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return value


def _integer(text, least):
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise argparse.ArgumentTypeError(f"{text!r} is no integer of {least} or more")
    return value


def device_of(name):
    """The device an option names; "auto" is cuda where there is one.

    Raises      Problem where this machine has none of that name
    """
    if name == "auto":
        name = "cuda" if cg.cuda.is_available() else "cpu"
    try:
        probe = cg.zeros(1, device=name)
        probe.item()
    except RuntimeError as error:
        raise Problem(f"--device {name}: {error}") from error
    return probe.device


def files_of(folder, ending=""):
    """The files under a folder, in the same order everywhere; without installed packages, tests and hidden folders."""
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(f for f in folders if f not in LEFT_ALONE and f[0] != ".")
        yield from (os.path.join(here, f) for f in sorted(files) if f.endswith(ending))


def read(file):
    """The text of a file; what is no UTF-8 becomes U+FFFD."""
    with open(file, encoding="utf-8", errors="replace") as f:
        return f.read()


def learning_rate(step, steps, peak, warmup=100):
    """Linear up to ``peak``, then a cosine down to a tenth of it."""
    if step < warmup:
        return peak * (step + 1) / warmup
    along = min(1.0, (step - warmup) / max(1, steps - warmup))
    return peak * (0.55 + 0.45 * math.cos(math.pi * along))


def endless(loader):
    """The batches of a loader, one epoch after another."""
    while True:
        yield from loader


class Run:
    """A training run: counts steps, shows progress, and keeps all it needs to go on in one checkpoint file.

    ``parts`` are the objects with ``state_dict`` and ``load_state_dict`` (model, optimizer, data loader, ...). A
    checkpoint also holds the step, the losses so far, the options and the states of the random generators of the CPU
    and the device, so a resumed run repeats the numbers of one that was never stopped.

    Raises      Problem where the checkpoint to go on from is damaged, or was made with other options
    """

    def __init__(self, args, device, **parts):
        self.args, self.device, self.parts = args, device, parts
        self.step, self.losses, self.saved, self.stopped = 0, [], None, False
        self.seen, self.unit, self.note = 0, "samples", ""
        self.path = os.path.join(args.out, "checkpoint.cgt") if args.out else None
        if self.path:
            os.makedirs(args.out, exist_ok=True)
            for left in glob.glob(os.path.join(glob.escape(args.out), ".checkpoint.cgt.*.tmp")):
                os.unlink(left)  # a run was killed while it wrote this
        there = self.path and os.path.exists(self.path)
        if args.resume and there:
            self._load()
        elif args.resume:
            print(f"there is no {self.path or 'checkpoint without --out'} to go on from: this run starts at step 0")
        elif there:
            earlier = os.path.join(args.out, "earlier.cgt")
            os.replace(self.path, earlier)
            print(f"the checkpoint of an earlier run is now {earlier}")

    def __iter__(self):
        """The numbers of the steps still to do; a checkpoint every so often, at the end, and at Ctrl-C, which exits."""
        started, first = time.time(), self.step
        with self._signals():
            try:
                while self.step < self.args.steps and not self.stopped:
                    yield self.step
                    self.step += 1
                    self._show(time.time() - started, self.step - first)
                    if self.step % self.args.every == 0:
                        self.save()
            finally:
                if sys.stdout.isatty():
                    print()
            self.save()
        if self.stopped:
            kept = f"the same command with --resume goes on from {self.path}" if self.path else "nothing is kept"
            print(f"stopped after step {self.step}: {kept}", flush=True)
            raise SystemExit(128 + self.stopped)

    def log(self, loss, units=0, unit="samples", note=""):
        """Note the loss of this step, a number, how many units of input it saw, and what else to show."""
        self.losses.append(loss)
        self.seen += units
        self.unit, self.note = unit, note

    @contextlib.contextmanager
    def _signals(self):
        """Ctrl-C, and the polite kill, let the step end first; only the main thread may say so."""
        names = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
        before = [signal.signal(name, self._stop) for name in names]
        try:
            yield
        finally:
            for name, handler in zip(names, before):
                signal.signal(name, handler)

    def _stop(self, number, frame):
        if self.stopped:
            raise KeyboardInterrupt
        self.stopped = number

    def save(self):
        """Write the checkpoint: to a file of another name, then renamed, so that none is ever torn."""
        if self.path is None or self.saved == self.step:
            return
        state = {name: part.state_dict() for name, part in self.parts.items()}
        losses = cg.tensor(self.losses, dtype=cg.float64)
        own = {"step": self.step, "losses": losses, "options": vars(self.args)}
        random = {"cpu": cg.get_rng_state(), "device": generator_of(self.device).get_state()}
        cg.save({**state, **own, "random": random}, self.path)
        self.saved = self.step

    def _load(self):
        try:
            state = cg.load(self.path, map_location=self.device)
            self._check(state.get("options") if isinstance(state, dict) else None)
            for name, part in self.parts.items():
                part.load_state_dict(state[name])
        except (RuntimeError, KeyError, ValueError, EOFError) as error:
            raise Problem(f"--resume: {self.path} does not fit this run: {error}") from error
        self.step = self.saved = state["step"]
        self.losses = state["losses"].tolist()
        if self.device.type != "cpu":
            generator_of(self.device).set_state(state["random"]["device"].cpu())
        cg.set_rng_state(state["random"]["cpu"].cpu())
        print(f"goes on after step {self.step} of {self.path}")

    def _check(self, before):
        """ValueError where this run is another than that of the options ``before``."""
        if before is None:
            raise ValueError("it is no checkpoint of an example")
        now = vars(self.args)
        other = [n for n in now if n not in MAY_CHANGE and before.get(n) != now[n]]
        if other:
            was = " ".join(f"--{n} {before.get(n)}" for n in other)
            raise ValueError(f"it was made with {was} (fix: give the same options, or another --out)")

    def _show(self, seconds, done):
        terminal, last = sys.stdout.isatty(), self.step == self.args.steps
        if not last and self.step % max(1, min(20, self.args.steps // 50) if terminal else self.args.steps // 20):
            return
        seconds = max(seconds, 1e-9)
        recent = self.losses[-20:]
        text = f"step {self.step}/{self.args.steps}  loss {sum(recent) / max(1, len(recent)):.4f}"
        left = (self.args.steps - self.step) * seconds / done
        text += f"  {self.seen / seconds:,.0f} {self.unit}/s  {_clock(left)} left"
        if self.device.type == "cuda":
            text += f"  {cg.cuda.max_memory_allocated() / 2**20:,.0f} MiB"
        text += f"  {self.note}" if self.note else ""
        if not terminal:
            print(text, flush=True)
            return
        columns = shutil.get_terminal_size().columns - 1
        width = min(24, columns - len(text) - 3)
        full = width * self.step // self.args.steps
        bar = f"|{'█' * full}{' ' * (width - full)}| " if width >= 8 else ""
        print(f"\r{(bar + text)[:columns]}\x1b[K", end="", flush=True)


def _clock(seconds):
    minutes, seconds = divmod(int(seconds), 60)
    return f"{minutes}:{seconds:02d}"
