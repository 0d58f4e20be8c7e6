"""The switches of ``torch.backends``, which training programs set before they begin."""

import importlib

import pytest

import cudagrad as cg


@pytest.mark.parametrize("name", ("cudnn", "cuda", "mps", "mkl", "mkldnn", "openmp"))
def test_the_switches_of_a_library_can_be_imported_by_their_path(name):
    module = importlib.import_module(f"cudagrad.backends.{name}")
    assert module is getattr(cg.backends, name) and not module.is_available()


def test_a_switch_keeps_what_it_was_set_to(monkeypatch):
    import cudagrad.backends.cudnn as cudnn

    monkeypatch.setattr(cudnn, "benchmark", True)
    assert cg.backends.cudnn.benchmark is True and cudnn.version() is None
