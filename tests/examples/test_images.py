"""The pictures: IDX files, the network, and what it learns."""

import gzip
import sys

import numpy as np
import pytest

import cudagrad as cg
from cudagrad.examples import images
from cudagrad.examples.training import Problem

from .common import idx, pictures


@pytest.mark.parametrize("shape", [(5,), (4, 3, 2)])
def test_an_idx_file_gives_its_array(shape, tmp_path):
    array = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    idx(tmp_path / "a.gz", array)
    assert np.array_equal(images.read_idx(tmp_path / "a.gz", len(shape)), array)


def changed(change):
    """A damage to the unpacked bytes of a file."""
    return lambda packed: gzip.compress(change(gzip.decompress(packed)))


DAMAGES = {
    "no gzip": lambda packed: b"no gzip at all",
    "cut short": lambda packed: packed[: len(packed) // 2],
    "a bit over": lambda packed: packed[:-9] + bytes([packed[-9] ^ 1]) + packed[-8:],
    "empty": changed(lambda b: b""),
    "too few bytes": changed(lambda b: b[:-1]),
    "too many": changed(lambda b: b + b"x"),
    "of floats": changed(lambda b: b[:2] + b"\x0d" + b[3:]),
    "of two axes": changed(lambda b: b[:3] + b"\x02" + b[4:]),
    "sizes beyond int64": changed(lambda b: b[:4] + b"\x7f\xff\xff\xff" * 3 + b[16:]),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_refused_with_its_name(damage, tmp_path):
    file = tmp_path / "a.gz"
    idx(file, np.zeros((4, 3, 2), np.uint8))
    file.write_bytes(DAMAGES[damage](file.read_bytes()))
    with pytest.raises(Problem, match="a.gz (cannot be read|is no IDX file)"):
        images.read_idx(file, 3)


def test_a_folder_without_the_files_is_refused_with_the_name_of_the_first(tmp_path):
    with pytest.raises(Problem, match="there is no .*train-images-idx3-ubyte.gz .*digits .*, fashion"):
        images.idx_folder(tmp_path)


def test_as_many_labels_as_pictures_are_needed(tmp_path):
    folder = pictures(tmp_path / "p", sizes=(6, 4))
    idx(folder / "t10k-labels-idx1-ubyte.gz", np.zeros(3, np.uint8))
    with pytest.raises(Problem, match="t10k has 4 images and 3 labels"):
        images.idx_folder(folder)


def test_pictures_smaller_than_the_pooling_are_refused(tmp_path):
    folder = pictures(tmp_path / "p", sizes=(6, 4))
    idx(folder / "train-images-idx3-ubyte.gz", np.zeros((6, 3, 8), np.uint8))
    with pytest.raises(Problem, match=r"train has pictures of \(3, 8\), need 4 x 4 or larger"):
        images.idx_folder(folder)


def test_pictures_are_floats_from_0_to_1_with_a_channel(tmp_path):
    train, held = images.idx_folder(pictures(tmp_path / "p", sizes=(6, 4)))
    image, label = train[0]
    assert image.shape == (1, 8, 8) and image.dtype == cg.float32 and label.dtype == cg.int64
    assert image.max() == 1.0 and image.min() >= 0 and (len(train), len(held)) == (6, 4)
    assert image[0, 2 * int(label)].tolist() == [1.0] * 8


def test_without_scikit_learn_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(Problem, match=r"not installed \(fix: pip install 'cudagrad-cupy\[examples\]'"):
        images.digits()


@pytest.mark.parametrize("height, width", [(8, 8), (28, 28), (9, 14)])
def test_the_network_takes_pictures_of_any_size(height, width):
    net = images.Net(height, width, classes=5, channels=3)
    assert net(cg.rand(2, 1, height, width)).shape == (2, 5)


def test_accuracy_is_the_share_named_rightly_in_evaluation_mode():
    class Model(cg.nn.Module):
        def forward(self, x):
            assert not self.training
            return cg.nn.functional.one_hot(x[:, 0, 0, 0].long(), 3)

    pixels = np.array([0, 1, 2, 2]).reshape(4, 1, 1) * np.ones((1, 2, 2))
    dataset = images.dataset_of(pixels, np.array([0, 1, 2, 0]))
    assert images.accuracy_of(Model(), dataset, cg.device("cpu")) == 0.75


def test_it_learns_where_a_bar_is(tmp_path, capsys):
    folder = pictures(tmp_path / "p")
    accuracy = images.main(["--data", str(folder), "--out", "", "--steps", "40", "--channels", "4", "--batch", "16"])
    assert accuracy >= 0.95 and capsys.readouterr().out.endswith(f"accuracy on held-out pictures {accuracy:.2%}\n")


def test_digits_are_read_rightly_98_times_in_100(capsys):
    pytest.importorskip("sklearn", reason="the digits come with scikit-learn, which the extra examples installs")
    accuracy = images.main(["--out", "", "--device", "cpu", "--steps", "300"])
    assert accuracy >= 0.98 and "1,438 pictures, 359 held out, 10 classes" in capsys.readouterr().out
