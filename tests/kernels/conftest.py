"""Fixtures of the tests of kernels."""

import pytest

import cudagrad.config


@pytest.fixture
def strict(monkeypatch):
    """An op that runs without its kernel is an error."""
    monkeypatch.setattr(cudagrad.config, "STRICT", True)
