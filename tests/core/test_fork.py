"""Processes forked while another thread is in the middle of something."""

import os
import signal
import threading
import warnings

import pytest

import cudagrad
from cudagrad.core import turns

from ..kernels.common import needs_compiler

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


def ends_well_in_a_fork(lock, act):
    """Whether ``act()`` returns in a process that was forked while another thread held ``lock``."""
    held, done = threading.Event(), threading.Event()

    def hold():
        with lock:
            held.set()
            done.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # that there are threads is the point
            child = os.fork()
        if child == 0:
            signal.alarm(10)
            try:
                act()
                os._exit(0)
            finally:
                os._exit(1)
        return os.waitpid(child, 0)[1] == 0
    finally:
        done.set()
        holder.join()


def test_a_fork_beside_a_backward_can_go_backward():
    x = cudagrad.ones(3, requires_grad=True)
    assert ends_well_in_a_fork(turns.LOCK, lambda: (x * x).sum().backward())


@needs_compiler
def test_a_fork_beside_a_launch_can_launch():
    from cudagrad.backend import emulator

    x = cudagrad.ones(3, device="emulated").tanh()
    assert ends_well_in_a_fork(emulator._LOCK, lambda: x.tanh())
