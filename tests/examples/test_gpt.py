"""The character GPT: its texts, batches, model and whole runs."""

import math

import numpy as np
import pytest

import cudagrad as cg
from cudagrad.examples import gpt
from cudagrad.examples.training import Problem

CPU = cg.device("cpu")


def test_of_a_file_the_last_twentieth_is_held_out(tmp_path):
    (tmp_path / "text").write_text("a" * 190 + "b" * 10, encoding="utf-8")
    assert gpt.texts_of(str(tmp_path / "text")) == ("a" * 190, "b" * 10)


def test_of_a_folder_whole_files_are_held_out_by_their_names(tmp_path):
    for i in range(100):
        (tmp_path / f"{i}.txt").write_text(f"<{i}>", encoding="utf-8")
    train, held = gpt.texts_of(str(tmp_path))
    assert set(train[1:-1].split("><")) | set(held[1:-1].split("><")) == {str(i) for i in range(100)}
    assert len(train + held) == sum(len(f"<{i}>") for i in range(100)) and 0 < held.count("<") < 15
    (tmp_path / "0.txt").write_text("<other>", encoding="utf-8")
    assert (gpt.texts_of(str(tmp_path))[1] == held) == ("<0>" in train), "what a file holds does not move it"


def test_of_a_folder_with_one_file_a_part_is_held_out(tmp_path):
    (tmp_path / "a").write_text("x" * 100, encoding="utf-8")
    assert [len(text) for text in gpt.texts_of(str(tmp_path))] == [95, 5]


def test_the_standard_library_is_there_without_asking():
    train, held = gpt.texts_of()
    assert "def main(" in train and 0.01 < len(held) / len(train) < 0.2


def test_no_such_file_is_a_problem_that_names_it():
    with pytest.raises(Problem, match="there is no file or folder nowhere/at/all"):
        gpt.texts_of("nowhere/at/all")


def test_a_text_goes_to_numbers_and_back():
    text = gpt.Text("to be or not to be, äλ𝄞")
    numbers = text.encode("not a robot äλ𝄞")
    assert numbers.dtype == np.int64 and text.decode(numbers) == "not \ufffd robot äλ𝄞"
    assert text.decode([0]) == "\ufffd" and sorted(text.number.values()) == list(range(len(text.alphabet)))


def test_characters_rarer_than_one_in_ten_thousand_share_a_number():
    text = gpt.Text("a" * 19_996 + "bb" + "c" + "\ufffd")
    assert text.alphabet == "\ufffdab" and text.encode("abc\ufffd").tolist() == [1, 2, 0, 0]


def test_targets_are_the_tokens_one_on_and_every_place_is_drawn():
    cg.manual_seed(0)
    tokens, targets = gpt.batch_of(np.arange(12), 500, 8, CPU)
    assert tokens.shape == targets.shape == (500, 8) and tokens.dtype == cg.int64
    assert (targets == tokens + 1).all() and (tokens[:, 1:] == targets[:, :-1]).all()
    assert set(tokens[:, 0].tolist()) == {0, 1, 2, 3}


def test_a_seed_gives_the_same_batches():
    def draw():
        cg.manual_seed(3)
        return [gpt.batch_of(np.arange(1000), 4, 8, CPU)[0].tolist() for _ in range(2)]

    first = draw()
    assert first == draw() and first[0] != first[1]


def test_scores_depend_on_earlier_characters_only():
    cg.manual_seed(0)
    model = gpt.GPT(11, layers=2, heads=2, width=16, context=8)
    tokens = cg.randint(11, (2, 8))
    other = tokens.clone()
    other[:, 5] = (other[:, 5] + 1) % 11
    changed = (model(tokens) - model(other)).abs().amax((0, 2))
    assert changed[:5].tolist() == [0.0] * 5 and (changed[5:] > 0).all()


def test_at_the_start_every_character_is_about_as_likely():
    cg.manual_seed(0)
    model = gpt.GPT(50, layers=2, heads=2, width=32, context=16)
    loss = gpt.loss_of(model, *gpt.batch_of(np.arange(2000) % 50, 8, 16, CPU))
    assert loss.item() == pytest.approx(math.log(50), abs=0.1)


def test_what_is_held_out_is_measured_evenly_and_without_a_graph():
    places = []

    def model(tokens):
        places.extend(tokens[:, 0].tolist())
        return cg.zeros(*tokens.shape, 7, requires_grad=True)

    loss = gpt.held_out_loss(model, np.arange(1000) % 7, 9, CPU, batches=3, batch=5)
    assert loss == pytest.approx(math.log(7))
    assert places == [int(s) % 7 for s in np.linspace(0, 990, 15)]


def test_a_text_is_continued_and_its_beginning_kept():
    cg.manual_seed(0)
    model = gpt.GPT(5, layers=1, heads=1, width=8, context=4)
    tokens = cg.tensor([[1, 2, 3]])
    more = model.continue_(tokens, 6)
    assert more.shape == (1, 9) and more[0, :3].tolist() == [1, 2, 3] and 0 <= more.min() and more.max() < 5
    assert not more.requires_grad


def test_it_learns_a_text_that_repeats(tmp_path, capsys):
    (tmp_path / "text").write_text("abcdefgh" * 400, encoding="utf-8")
    small = "--device cpu --steps 60 --layers 1 --heads 2 --width 32 --context 16 --batch 8 --lr 0.01 --sample 20"
    loss = gpt.main([*small.split(), "--data", str(tmp_path / "text"), "--out", ""])
    *_, line, sample = capsys.readouterr().out.splitlines()
    assert loss < 0.4 and line == f"held-out loss {loss:.4f} nats a character"
    assert len(sample) >= 20 and "cdef" in sample


def test_heads_that_do_not_divide_the_width_are_a_sentence(capsys):
    with pytest.raises(SystemExit):
        gpt.main(["--width", "30", "--out", ""])
    assert "--width 30 must be a multiple of --heads 4" in capsys.readouterr().err


def test_too_little_text_is_a_sentence(tmp_path, capsys):
    (tmp_path / "text").write_text("short", encoding="utf-8")
    with pytest.raises(SystemExit):
        gpt.main(["--data", str(tmp_path / "text"), "--out", ""])
    assert "too little text: 4 and 1 characters, need over 65" in capsys.readouterr().err
