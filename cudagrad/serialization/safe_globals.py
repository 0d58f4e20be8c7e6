"""The user's own list of classes and functions that PyTorch files may name."""

import threading

_allowed = {}  # full name -> object
_lock = threading.Lock()


def _names(items):
    """{full name: object} of a list of objects or of (object, full name) pairs."""
    found = {}
    for item in items:
        if not isinstance(item, tuple):
            item = item, f"{item.__module__}.{item.__qualname__}"
        if len(item) != 2:
            first = "Expected tuple of length 2 (global, str of callable full path), but got tuple of length: "
            raise ValueError(f"{first}{len(item)}")
        if type(item[1]) is not str:
            raise TypeError(f"Expected second item in tuple to be str of callable full path, but got: {type(item[1])}")
        found[item[1]] = item[0]
    return found


def add_safe_globals(safe_globals):
    """From now on files may name these classes and functions, which means that loading one may call them.

    ``safe_globals`` is a list of objects or of (object, "full.name") pairs.
    """
    with _lock:
        _allowed.update(_names(safe_globals))


def get_safe_globals():
    """The classes and functions that were added."""
    return list(_allowed.values())


def clear_safe_globals():
    """Take back all that was added."""
    with _lock:
        _allowed.clear()


class safe_globals:
    """``with safe_globals([Config]): load(f)``: files may name these classes and functions within."""

    def __init__(self, safe_globals):
        self.safe_globals = safe_globals

    def __enter__(self):
        self._before = dict(_allowed)
        add_safe_globals(self.safe_globals)

    def __exit__(self, *exception):
        with _lock:
            _allowed.clear()
            _allowed.update(self._before)
