"""The parts of the loader: fetching, collating, workers, shared memory, pinned memory."""

from . import collate, exceptions, fetch, pin_memory, worker
from .exceptions import ExceptionWrapper

MP_STATUS_CHECK_INTERVAL = 5.0  # seconds a worker has to end by itself before it is ended
