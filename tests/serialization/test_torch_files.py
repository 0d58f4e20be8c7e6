"""PyTorch's own files are read, with PyTorch installed or not."""

import collections
import math

import numpy as np
import pytest

from cudagrad import dtypes
from cudagrad.backend import device
from cudagrad.core.shape import Size
from cudagrad.nn.parameter import Parameter
from cudagrad.serialization import load, save

from .common import FIXTURES, refused, tensor


def test_a_torch_file_is_read_without_torch():
    for name in ("torch_2_13.pt", "torch_legacy.pt"):
        got = load(FIXTURES / name)
        assert got["epoch"] == 3
        assert math.isnan(got["loss"])
        assert got["mixed"] == (1, 2.5, None, True, "x", b"\x00\xff", 1 + 2j, {4, 5}, 2**70)
        assert (got["size"], got["dtype"], got["device"]) == (Size((2, 3)), dtypes.float16, device("cpu"))
        assert got["array"].tolist() == [[0, 1], [2, 3]]
        assert got["array"].dtype == np.int16
        assert got["scalar"] == np.float32(0.5)
        assert type(got["scalar"]) is np.float32
        assert got["mask"].array.tolist() == [True, False]
        assert got["complex"].array.tolist() == [1 + 2j]
        assert got["empty"].shape == (0, 3)
        assert got["transposed"].array.tolist() == [[0, 3], [1, 4], [2, 5]]
        assert got["transposed"].array.strides == (4, 12)
        assert type(got["parameter"]) is Parameter
        assert got["parameter"].dtype is dtypes.bfloat16
        assert got["parameter"].array.astype(float).tolist() == [1, 2]
        got["transposed"].array[0, 1] = -1
        assert got["row"].array.tolist() == [-1, 4, 5]
        model = got["model"]
        assert type(model) is collections.OrderedDict
        assert (model["0.weight"].array * 8 == np.arange(6).reshape(2, 3)).all()
        assert model["1.num_batches_tracked"].array == 1
        assert model._metadata["1"] == {"version": 2}


def test_a_torch_optimizer_state_is_read():
    got = load(FIXTURES / "torch_2_13.pt")["optimizer"]
    assert list(got["state"]) == [0, 1, 2, 3]
    assert got["state"][0]["exp_avg"].array.tolist() == [[0.25] * 3] * 2
    assert got["state"][3]["step"].array == 1
    assert got["param_groups"][0]["lr"] == 0.5
    assert got["param_groups"][0]["betas"] == (0.9, 0.999)


def test_a_torch_file_is_mapped():
    got = load(FIXTURES / "torch_2_13.pt", mmap=True, weights_only=True, map_location="cpu")
    assert got["row"].array.tolist() == [3, 4, 5]
    got["transposed"].array[0, 1] = -1
    assert got["row"].array[0] == -1


@pytest.mark.parametrize("name", ["torch_2_13.pt", "torch_legacy.pt"])
def test_a_damaged_torch_file_is_refused_or_read(name, tmp_path):
    raw = (FIXTURES / name).read_bytes()
    for size in range(0, len(raw), 97):
        assert refused(raw[:size], tmp_path)
    for at in range(0, len(raw), 29):
        flipped = bytearray(raw)
        flipped[at] ^= 1 << at % 8
        refused(bytes(flipped), tmp_path)  # a zip has bytes that nobody reads: any answer but another error will do


@pytest.mark.peer
@pytest.mark.parametrize("new", [True, False])
def test_what_torch_saves_is_what_we_read(new, tmp_path):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    base = torch.arange(24.0).reshape(4, 6)
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(4, 3)).sum().backward()
    optimizer.step()
    kinds = [getattr(torch, d.name) for d in dtypes.ALL]
    obj = {
        "views": [base, base[1], base.t(), base[::2, 1:], base.expand(2, 4, 6)],
        "kinds": [torch.arange(3).to(d) for d in kinds],
        "names": kinds,
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "complex": torch.tensor([1 + 2j]).conj(),
        "imag": torch.tensor([1 + 2j]).conj().imag,
        "parameters": list(model.parameters()),
        "rng": torch.get_rng_state(),
        "wide": torch.tensor([2**15], dtype=torch.uint16),
    }
    obj["parameters"][0].note = "attribute"
    torch.save(obj, tmp_path / "a.pt", _use_new_zipfile_serialization=new)
    for mmap in (False, True) if new else (False,):
        check(load(tmp_path / "a.pt", mmap=mmap), obj, torch)


def check(got, want, torch):
    """``got`` of ours has the values, strides and types of ``want`` of torch."""
    if isinstance(want, torch.Tensor):
        assert got.requires_grad == want.requires_grad
        assert got.stride() == want.stride() or want.is_conj() or want.is_neg()
        assert got.dtype.name == str(want.dtype).removeprefix("torch.")
        plain = want.detach().resolve_conj().resolve_neg()
        plain = plain.float() if plain.dtype is torch.bfloat16 else plain
        assert (got.array.astype(plain.numpy().dtype) == plain.numpy()).all()
        assert got.shape == tuple(want.shape)
        assert isinstance(got, Parameter) == isinstance(want, torch.nn.Parameter)
    elif isinstance(want, dict):
        assert list(got) == list(want)
        for k in want:
            check(got[k], want[k], torch)
    elif isinstance(want, (list, tuple)):
        assert len(got) == len(want)
        for a, b in zip(got, want):
            check(a, b, torch)
    elif isinstance(want, torch.dtype):
        assert got.name == str(want).removeprefix("torch.")
    else:
        assert got == want


@pytest.mark.peer
def test_torch_reads_our_arrays(tmp_path):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    st = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")
    kinds = [d for d in dtypes.ALL if not d.is_complex]
    save({d.name: tensor([[0, 1], [1, 0]], d.numpy) for d in kinds}, tmp_path / "a")
    got = st.load_file(tmp_path / "a")
    for d in kinds:
        assert str(got[d.name].dtype) == repr(d)
        assert got[d.name].tolist() == [[0, 1], [1, 0]]
