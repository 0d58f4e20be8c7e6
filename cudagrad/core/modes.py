"""Grad mode, inference mode and the watchers of op calls: the few globals that generated op code reads."""

import functools
import inspect
import threading

# The globals of every generated function. RECORD: no thread has switched recording off just now. WATCH: who sees op
# calls before they run, or None. RARE: a complex or inference tensor has been made in this process.
SPACE = {"__name__": "cudagrad.core.generated", "RECORD": True, "WATCH": None, "RARE": False}

_lock = threading.Lock()
_threads_off = 0


class _Mode(threading.local):
    grad = True
    inference = False
    watchers = ()
    saved_hooks = ()  # (pack, unpack) pairs, innermost first
    hooks_disabled = None  # the error for who asks for saved-tensor hooks, while they are disabled
    autocast = {}  # device type -> the innermost autocast
    checker = None  # looks at every node's gradients in backward (anomaly detection)


MODE = _Mode()


def is_grad_enabled():
    """Whether ops of this thread are recorded for backward."""
    return MODE.grad


def is_inference_mode_enabled():
    """Whether this thread is in inference mode."""
    return MODE.inference


def _set(grad):
    global _threads_off
    if grad == MODE.grad:
        return
    MODE.grad = grad
    with _lock:
        _threads_off += -1 if grad else 1
        SPACE["RECORD"] = _threads_off == 0


class _Context:
    """A mode that works as ``with mode():``, ``@mode()`` and ``@mode``, on functions and on generators."""

    def __new__(cls, function=None, *args, **kwargs):
        self = super().__new__(cls)
        if callable(function):
            self.__init__()
            return self(function)
        return self

    def __call__(self, function):
        if inspect.isclass(function):
            raise TypeError(f"{type(self).__name__}: decorates functions, not the class {function.__name__}")
        if inspect.isgeneratorfunction(function):
            return self._generator(function)

        @functools.wraps(function)
        def within(*args, **kwargs):
            with self._clone():
                return function(*args, **kwargs)

        return within

    def _generator(self, function):
        """Enter only while the generator itself runs: between yields the caller has its own mode."""

        @functools.wraps(function)
        def within(*args, **kwargs):
            generator = function(*args, **kwargs)
            step, value = generator.send, None
            try:
                while True:
                    try:
                        with self._clone():
                            got = step(value)
                    except StopIteration as end:
                        return end.value
                    try:
                        step, value = generator.send, (yield got)
                    except GeneratorExit:
                        raise
                    except BaseException as error:
                        step, value = generator.throw, error
            finally:
                with self._clone():
                    generator.close()

        return within

    def _clone(self):
        return type(self)()

    def __enter__(self):
        self._before = MODE.grad, MODE.inference
        self._enter()

    def __exit__(self, *exception):
        grad, MODE.inference = self._before
        _set(grad)


class no_grad(_Context):
    """Nothing is recorded within: results require no gradient. Context manager and decorator."""

    def _enter(self):
        _set(False)


class enable_grad(_Context):
    """Recording is on again within ``no_grad``; not within ``inference_mode``."""

    def _enter(self):
        if not MODE.inference:
            _set(True)


class set_grad_enabled(_Context):
    """Recording on or off by ``mode``, from the call on; as a context manager or decorator until its end."""

    def __new__(cls, mode):
        return object.__new__(cls)

    def __init__(self, mode):
        self.mode = mode
        self._called = MODE.grad, MODE.inference
        _set(mode and not MODE.inference)

    def __call__(self, function):
        _set(self._called[0])
        return super().__call__(function)

    def _clone(self):
        return type(self)(self.mode)

    def __enter__(self):
        self._before = self._called
        _set(self.mode and not MODE.inference)


class inference_mode(_Context):
    """As ``no_grad``, and what is made within can never enter a graph: no version counters are kept for it."""

    def __init__(self, mode=True):
        self.mode = mode

    def _clone(self):
        return type(self)(self.mode)

    def _enter(self):
        if self.mode:
            SPACE["RARE"] = True
            MODE.inference = True
            _set(False)
        else:
            MODE.inference = False
            _set(True)


class watching:
    """``watcher(op, tensors, options, call)`` stands between every op call of this thread and the op.

    ``call(tensors, options)`` runs what comes next and returns the result; the innermost watcher is asked first.
    """

    _threads = 0

    def __init__(self, watcher):
        self.watcher = watcher

    def __enter__(self):
        MODE.watchers = (self.watcher, *MODE.watchers)
        with _lock:
            watching._threads += 1
            SPACE["WATCH"] = _watched
        return self

    def __exit__(self, *exception):
        own = MODE.watchers.index(self.watcher)  # not always the innermost: set_detect_anomaly ends when it is told
        MODE.watchers = MODE.watchers[:own] + MODE.watchers[own + 1 :]
        with _lock:
            watching._threads -= 1
            if not watching._threads:
                SPACE["WATCH"] = None


def _watched(op, tensors, options, out=None):
    result = _pass_on(op, tensors, options, MODE.watchers)
    return result if out is None else SPACE["into"](out, op, result, *tensors)


def _pass_on(op, tensors, options, watchers):
    if not watchers:
        return op.bare(*((tensors,) if op.variadic else tensors), **options)
    return watchers[0](op, tensors, options, lambda t, o: _pass_on(op, t, o, watchers[1:]))


SPACE["MODE"] = MODE


def autocasts(function):
    """``function``, a composition of ops that autocast's lists name as one: its tensors are cast before it runs."""

    @functools.wraps(function)
    def cast_first(*args, **kwargs):
        for mode in MODE.autocast.values():
            args, kwargs = mode.cast_for(function.__name__, args, kwargs)
        return function(*args, **kwargs)

    cast_first.autocasts = True
    return cast_first
