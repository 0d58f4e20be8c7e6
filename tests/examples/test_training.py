"""What the examples share: options, the steps of a run, its checkpoint, and how it ends."""

import importlib
import re
import signal

import pytest

import cudagrad as cg
from cudagrad.examples import training

from .common import checkpoint, differences, small

NAMES = ("gpt", "images", "trees", "policy")


def run_of(*options, device="cpu", **parts):
    """A run with these options of the command line."""
    parser = training.options("A test.", steps=5, every=2)
    parser.add_argument("--width", type=training.positive, default=8)
    parser.add_argument("--lr", type=training.rate, default=0.1)
    return training.Run(parser.parse_args(list(options)), cg.device(device), **parts)


def walk(run, stop_after=None):
    """Log the number of each step as its loss; Ctrl-C in one of them."""
    for step in run:
        run.log(float(step))
        if step == stop_after:
            signal.raise_signal(signal.SIGINT)


def main_of(name):
    return importlib.import_module(f"cudagrad.examples.{name}").main


@pytest.mark.parametrize("name", NAMES)
def test_stopped_and_resumed_an_example_repeats_every_bit(name, tmp_path, monkeypatch, capsys):
    options = [*small(name, tmp_path), "--every", "1000"]
    options[options.index("--steps") + 1] = "12"
    whole = main_of(name)([*options, "--out", str(tmp_path / "whole")])
    parts = [*options, "--out", str(tmp_path / "parts")]
    log = training.Run.log

    def interrupted(run, *args):
        log(run, *args)
        if run.step == 6:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(training.Run, "log", interrupted)
        main_of(name)(parts)
    assert checkpoint(tmp_path / "parts")["step"] == 7
    assert main_of(name)([*parts, "--resume"]) == whole
    assert differences(checkpoint(tmp_path / "whole"), checkpoint(tmp_path / "parts")) == []


@pytest.mark.parametrize("name", NAMES)
def test_another_seed_gives_other_losses(name, tmp_path):
    options = small(name, tmp_path)
    options[options.index("--steps") + 1] = "2"
    for seed in "01":
        main_of(name)([*options, "--seed", seed, "--out", str(tmp_path / seed)])
    assert ".losses" in differences(checkpoint(tmp_path / "0"), checkpoint(tmp_path / "1"))


@pytest.mark.parametrize("device", ["cpu", "emulated"])
def test_random_numbers_go_on_where_they_were_on_every_device(device, tmp_path):
    try:
        device = training.device_of(device)
    except training.Problem as problem:
        pytest.skip(str(problem))

    def draw(*options, stop_after=None):
        run = run_of("--out", str(tmp_path), *options, device=device)
        for step in run:
            run.log(cg.rand(1, device=device).item() + cg.rand(1).item())
            if step == stop_after:
                signal.raise_signal(signal.SIGINT)
        return run.losses

    cg.manual_seed(5)
    whole = draw()
    cg.manual_seed(5)
    with pytest.raises(SystemExit):
        draw(stop_after=1)
    cg.manual_seed(6)
    assert draw("--resume") == whole


def test_a_run_counts_the_steps_and_saves_the_last(tmp_path):
    run = run_of("--out", str(tmp_path))
    assert list(run) == [0, 1, 2, 3, 4] and checkpoint(tmp_path)["step"] == 5


def test_a_checkpoint_is_written_every_so_many_steps(tmp_path, monkeypatch):
    saved = []
    monkeypatch.setattr(training.Run, "save", lambda run: saved.append(run.step))
    walk(run_of("--out", str(tmp_path)))
    assert saved == [2, 4, 5]


def test_without_a_folder_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    walk(run_of("--out", ""))
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_lets_the_step_end_and_says_how_to_go_on(tmp_path, capsys):
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(SystemExit) as stopped:
        walk(run_of("--out", str(tmp_path)), stop_after=2)
    assert stopped.value.code == 130 and signal.getsignal(signal.SIGINT) is before
    assert f"stopped after step 3: the same command with --resume goes on from {tmp_path}" in capsys.readouterr().out
    assert checkpoint(tmp_path)["losses"].tolist() == [0.0, 1.0, 2.0]
    walk(run_of("--out", str(tmp_path), "--resume"))
    assert checkpoint(tmp_path)["losses"].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_a_second_ctrl_c_does_not_wait(tmp_path):
    run = run_of("--out", str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        for _ in run:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_without_a_folder_says_that_nothing_is_kept(capsys):
    with pytest.raises(SystemExit):
        walk(run_of(), stop_after=0)
    assert capsys.readouterr().out.endswith("stopped after step 1: nothing is kept\n")


def test_a_run_with_nothing_to_go_on_from_says_so_and_starts(tmp_path, capsys):
    run = run_of("--out", str(tmp_path), "--resume")
    assert run.step == 0 and "starts at step 0" in capsys.readouterr().out


def test_a_new_run_keeps_the_checkpoint_of_an_earlier_one(tmp_path, capsys):
    walk(run_of("--out", str(tmp_path)))
    walk(run_of("--out", str(tmp_path), "--steps", "1"))
    assert "is now" in capsys.readouterr().out
    assert cg.load(tmp_path / "earlier.cgt")["step"] == 5 and checkpoint(tmp_path)["step"] == 1


def test_what_a_kill_left_half_written_is_cleared_away(tmp_path):
    (tmp_path / ".checkpoint.cgt.0123456789ab.tmp").write_bytes(b"half")
    walk(run_of("--out", str(tmp_path), "--resume"))
    assert [f.name for f in tmp_path.iterdir()] == ["checkpoint.cgt"]


def test_other_options_are_refused_with_those_of_before(tmp_path):
    walk(run_of("--out", str(tmp_path)))
    with pytest.raises(training.Problem, match=r"it was made with --seed 0 --width 8") as refused:
        run_of("--out", str(tmp_path), "--resume", "--width", "16", "--seed", "1")
    assert "fix: " in str(refused.value)


def test_more_steps_may_be_asked_for(tmp_path):
    walk(run_of("--out", str(tmp_path)))
    assert list(run_of("--out", str(tmp_path), "--resume", "--steps", "7")) == [5, 6]


@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b[:-1] + bytes([b[-1] ^ 1]), lambda b: b""])
def test_a_damaged_checkpoint_is_refused_with_its_name(tmp_path, damage):
    walk(run_of("--out", str(tmp_path)))
    file = tmp_path / "checkpoint.cgt"
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(training.Problem, match="checkpoint.cgt does not fit this run: .*(damaged|empty)"):
        run_of("--out", str(tmp_path), "--resume")


@pytest.mark.parametrize("other", [{"step": 1}, [1, 2]])
def test_a_file_of_another_kind_is_refused(other, tmp_path):
    cg.save(other, tmp_path / "checkpoint.cgt")
    with pytest.raises(training.Problem, match="it is no checkpoint of an example"):
        run_of("--out", str(tmp_path), "--resume")


def test_a_model_of_another_shape_is_refused(tmp_path):
    walk(run_of("--out", str(tmp_path), model=cg.nn.Linear(2, 3)))
    with pytest.raises(training.Problem, match="does not fit this run: Error"):
        run_of("--out", str(tmp_path), "--resume", model=cg.nn.Linear(2, 4))


@pytest.mark.parametrize(
    "option", ["--steps=-1", "--steps=many", "--every=0", "--width=0", "--lr=0", "--lr=inf", "--lr=x"]
)
def test_impossible_numbers_are_refused(option, capsys):
    with pytest.raises(SystemExit):
        run_of(option)
    assert re.search("is no (integer of|number above) ", capsys.readouterr().err)


@pytest.mark.parametrize("name", ["nonsense", "cuda:99", "meta"])
def test_a_device_that_is_not_there_is_a_sentence(name):
    with pytest.raises(training.Problem, match=f"--device {name}: "):
        training.device_of(name)


def test_auto_is_a_device_that_is_there():
    assert training.device_of("auto").type == ("cuda" if cg.cuda.is_available() else "cpu")


def raising(error):
    def main():
        raise error

    return main


@pytest.mark.parametrize("error", [training.Problem("a sentence"), FileNotFoundError("a sentence")])
def test_as_a_program_a_problem_is_a_sentence(error):
    with pytest.raises(SystemExit, match="^a sentence$"):
        training.command(raising(error))


def test_as_a_program_ctrl_c_is_no_traceback(capsys):
    with pytest.raises(SystemExit) as stopped:
        training.command(raising(KeyboardInterrupt()))
    assert stopped.value.code == 130 and capsys.readouterr().err == "\nstopped\n"


def test_a_mistake_of_ours_keeps_its_traceback():
    with pytest.raises(ValueError):
        training.command(raising(ValueError("ours")))


def test_progress_goes_line_by_line_where_there_is_no_terminal(capsys):
    run = run_of("--steps", "40")
    for _ in run:
        run.log(2.0, 10, "tokens", "a note")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 20 and lines[-1].startswith("step 40/40  loss 2.0000  ")
    assert " tokens/s  0:00 left  a note" in lines[-1]


@pytest.mark.parametrize("columns, bar", [(100, True), (50, False), (20, False)])
def test_the_progress_bar_fits_the_terminal(columns, bar, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    run = run_of("--steps", "4")
    walk(run)
    *shown, end = capsys.readouterr().out.split("\r")[1:]
    assert len(shown) == 3 and end.endswith("\x1b[K\n")
    assert all(len(line.removesuffix("\x1b[K")) < columns and ("|" in line) == bar for line in shown)


def test_the_learning_rate_goes_up_linearly_and_down_to_a_tenth_by_a_cosine():
    rates = [training.learning_rate(step, 300, 2.0, warmup=100) for step in range(301)]
    assert rates[0] == pytest.approx(0.02) and rates[49] == pytest.approx(1.0)
    assert max(rates) == rates[99] == rates[100] == 2.0
    assert rates[200] == pytest.approx(1.1) and rates[300] == pytest.approx(0.2)
    assert all(a > b for a, b in zip(rates[100:], rates[101:]))
    assert training.learning_rate(500, 300, 2.0) == pytest.approx(0.2)


def test_files_come_in_order_without_tests_packages_and_hidden_folders(tmp_path):
    for name in ("b.py", "a.py", "a.txt", "c/d.py", "test/e.py", "site-packages/f.py", ".git/g.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    found = [file.removeprefix(f"{tmp_path}/") for file in training.files_of(str(tmp_path), ".py")]
    assert found == ["a.py", "b.py", "c/d.py"]
