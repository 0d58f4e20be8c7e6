"""The workers of an iterator: starting them, talking to them, noticing that one died, ending them."""

import contextlib
import multiprocessing
import os
import queue
import signal
import socket
import threading
import time
import warnings
from multiprocessing import connection

from ....config import set_num_threads
from ....errors import text
from .exceptions import ExceptionWrapper
from .transport import Receiver, Sender
from .worker import Worker

INTERVAL_S = 5.0  # how long a worker may take to end by itself; how often it looks whether its parent lives


class Timeout(Exception):
    """No worker answered in time."""


# ---- processes


class Processes:
    """Worker processes, each with a socket of its own: no lock is shared, so a dying one takes nothing with it."""

    def __init__(self, job, base_seed, keep, context=None):
        self.context = multiprocessing.get_context() if context is None else context
        self.owner, self.workers, self.receivers, self.closed = os.getpid(), [], [], False
        self.epoch = 0
        try:
            for i in range(job.num_workers):
                self._start(job, base_seed, keep, i)
        except BaseException:
            self.close()
            raise

    def _start(self, job, base_seed, keep, worker_id):
        ours, theirs = self.context.Pipe(duplex=True)
        # A forked child inherits our ends of the pipes; it closes them, or its siblings would not see us go.
        inherited = [r.connection for r in self.receivers] + [ours]
        forked = getattr(self.context, "get_start_method", multiprocessing.get_start_method)() == "fork"
        process = self.context.Process(
            target=serve, args=(job, base_seed, worker_id, theirs, inherited if forked else []), daemon=True
        )
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "This process.*multi-threaded", DeprecationWarning)
                process.start()
        except Exception as error:
            ours.close()
            if forked:
                raise
            raise _unpicklable(error) from error
        finally:
            theirs.close()
        self.workers.append(process)
        self.receivers.append(Receiver(ours, keep))

    def send(self, worker_id, message):
        """Give a worker a task, and the segments it may use again."""
        receiver = self.receivers[worker_id]
        free = receiver.released()
        try:
            receiver.connection.send((message, free))
        except OSError:
            raise self._died([worker_id]) from None

    def receive(self, timeout):
        """((worker id, epoch, number of the task), value) of the next answer; no value where the epoch is over.

        Raises      Timeout; RuntimeError where a worker died
        """
        ends = {r.connection: i for i, r in enumerate(self.receivers)}
        lives = {w.sentinel: i for i, w in enumerate(self.workers)}
        ready = connection.wait([*ends, *lives], timeout)
        if not ready:
            raise Timeout
        for end in ready:  # answers first: a worker may have died after it
            if end in ends:
                try:
                    return self.receivers[ends[end]].receive(self._wanted)
                except (EOFError, ConnectionError):
                    pass
        raise self._died(sorted({ends.get(r, lives.get(r)) for r in ready}))

    def _wanted(self, head):
        return head[1] == self.epoch

    def _died(self, ids):
        for i in ids:
            self.workers[i].join(1.0)
        pids = ", ".join(str(self.workers[i].pid) for i in ids)
        return RuntimeError(
            text(
                f"DataLoader worker (pid(s) {pids}) exited unexpectedly",
                *(f"worker {i}: {_cause(self.workers[i].exitcode)}" for i in ids),
                "fix: num_workers=0 runs the same code in this process, where its error shows",
            )
        )

    def close(self):
        """End all workers: by request, after 5 s by SIGTERM, after 5 more by SIGKILL."""
        if self.closed or self.owner != os.getpid():  # a forked copy of this has no workers of its own
            return
        self.closed = True
        for r in self.receivers:
            _hang_up(r.connection)
        for end in (lambda w: None, lambda w: w.terminate(), lambda w: w.kill()):
            limit = time.monotonic() + INTERVAL_S
            for w in self.workers:
                if w.is_alive():
                    end(w)
            for w in self.workers:
                w.join(max(0.0, limit - time.monotonic()))

    def pids(self):
        return [w.pid for w in self.workers]


def _hang_up(end):
    """Let the other side read the end of the stream, which is the request to end.

    Closing would not do: workers of another pool, forked since, hold copies of this end.
    """
    if os.name == "posix":
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(end.fileno())) as s:
            s.shutdown(socket.SHUT_RDWR)
    end.close()


def _cause(code):
    if code is None:
        return "it closed its connection"
    if code >= 0:
        return f"exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = str(-code)
    more = " (out of memory?)" if name == "SIGKILL" else ""
    return f"killed by signal {name}{more}"


def _unpicklable(error):
    """The same type of error, with the reason why everything has to be pickled."""
    said = text(
        str(error),
        "got an error when starting a worker process, to which the dataset, collate_fn and worker_init_fn are pickled",
        "fix: define them at the top of a module, not as lambdas or inside functions; or use workers='thread', or "
        "multiprocessing_context='fork'",
    )
    try:
        return type(error)(said)
    except Exception:
        return RuntimeError(said)


def serve(job, base_seed, worker_id, channel, inherited):
    """The main function of a worker process."""
    for end in inherited:
        end.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all; the user's process decides what becomes of us
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # without threadpoolctl the workers' BLAS has as many threads as ever
        set_num_threads(1)
    inbox = Inbox()
    threading.Thread(target=_listen, args=(channel, inbox), daemon=True).start()
    sender = Sender(channel)
    try:
        _work(Worker(job, worker_id, base_seed), inbox, sender.free, sender.send)
    except ConnectionError:  # the user's process closed the socket while we were sending
        pass


class Inbox:
    """The messages for a worker: a task (epoch, number, index, first sample), the begin of an epoch, or the end."""

    def __init__(self):
        self.queue, self.newest, self.gone = queue.SimpleQueue(), -1, False

    def put(self, message, released=()):
        if message[1] is None:
            self.newest = message[0]
        self.queue.put((message, released))

    def end(self):
        self.gone = True
        self.queue.put((None, ()))


def _listen(channel, inbox):
    """Put what comes into the inbox; where the user's process is gone, see that this one goes too."""
    parent = os.getppid()
    try:
        while os.getppid() == parent:
            if channel.poll(INTERVAL_S):
                inbox.put(*channel.recv())
    except (EOFError, OSError):
        pass
    inbox.end()
    time.sleep(2 * INTERVAL_S)
    os._exit(1)  # a dataset that hangs must not outlive its user, who may have been killed


def _work(worker, inbox, free, send):
    """Answer tasks until the end; those of an epoch that is over are passed by."""
    while True:
        message, released = inbox.queue.get()
        free(released)
        if inbox.gone:
            return
        epoch, number, index, first = message
        if epoch < inbox.newest:
            continue
        if number is None:
            worker.begin(*index)
            continue
        data = worker.answer(index, first)
        head = worker.id, epoch, number
        try:
            send(head, data)
        except ConnectionError:
            raise
        except Exception:
            send(head, ExceptionWrapper(where=worker.where))
        del data, message, index


# ---- threads


class Threads:
    """Worker threads: nothing is copied, and whatever releases the GIL (NumPy, zlib, files) runs side by side."""

    def __init__(self, job, base_seed, keep=None, context=None):
        self.answers, self.inboxes, self.workers, self.epoch = queue.SimpleQueue(), [], [], 0
        for i in range(job.num_workers):
            inbox = Inbox()
            args = job, base_seed, i, inbox, self.answers
            thread = threading.Thread(target=_serve_thread, args=args, daemon=True, name=f"DataLoader worker {i}")
            thread.start()
            self.inboxes.append(inbox)
            self.workers.append(thread)

    def send(self, worker_id, message):
        """Give a worker a task."""
        self.inboxes[worker_id].put(message)

    def receive(self, timeout):
        """((worker id, epoch, number of the task), value) of the next answer.

        Raises      Timeout; RuntimeError where a worker thread ended itself
        """
        try:
            head, value = self.answers.get(timeout=timeout)
        except queue.Empty:
            raise Timeout from None
        if head is None:
            raise RuntimeError(text(f"DataLoader worker (thread {value[0]}) exited unexpectedly", value[1]))
        return head, value

    def close(self):
        """Ask all workers to end after what they do; one that takes more than 5 s is left to the program's end."""
        for inbox in self.inboxes:
            inbox.end()
        limit = time.monotonic() + INTERVAL_S
        for thread in self.workers:
            if thread is not threading.current_thread():
                thread.join(max(0.0, limit - time.monotonic()))

    def pids(self):
        return [os.getpid()]


def _serve_thread(job, base_seed, worker_id, inbox, answers):
    try:
        worker = Worker(job, worker_id, base_seed)
        _work(worker, inbox, lambda released: None, lambda head, data: answers.put((head, data)))
    except BaseException as error:  # SystemExit, say, which would end a worker process
        answers.put((None, (worker_id, f"{type(error).__name__}: {error}")))
