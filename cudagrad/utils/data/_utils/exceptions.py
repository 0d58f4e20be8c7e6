"""An exception on its way from a worker to the user: its type and the text of its traceback."""

import pickle
import sys
import traceback


class KeyErrorMessage(str):
    """A text that KeyError, which shows the repr of its argument, shows as it is."""

    __slots__ = ()

    def __repr__(self):
        return str(self)


class ExceptionWrapper:
    """The exception being handled where this is made; ``reraise`` raises its like elsewhere."""

    def __init__(self, exc_info=None, where="in background"):
        exc_info = exc_info or sys.exc_info()
        self.exc_type = exc_info[0]
        self.exc_msg = "".join(traceback.format_exception(*exc_info))
        self.where = where

    def __getstate__(self):
        """With RuntimeError in the place of a type that other processes cannot find."""
        state = dict(self.__dict__)
        try:
            pickle.dumps(self.exc_type)
        except Exception:
            state["exc_type"], state["name"] = RuntimeError, self.exc_type.__name__
        return state

    def reraise(self):
        """Raise an exception of the original's type with its traceback as text.

        Raises      RuntimeError where the type cannot be made of one text, and for StopIteration, which would end the
                    user's loop as if the epoch were over
        """
        name = getattr(self, "name", self.exc_type.__name__)
        message = f"Caught {name} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            message = KeyErrorMessage(message)
        if self.exc_type is StopIteration:
            raise RuntimeError(message)
        try:
            if getattr(self.exc_type, "message", None):
                error = self.exc_type(message=message)
            else:
                error = self.exc_type(message)
        except Exception:
            raise RuntimeError(message) from None
        raise error
