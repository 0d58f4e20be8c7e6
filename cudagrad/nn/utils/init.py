"""Making a module whose parameters need no first values."""

import inspect


def skip_init(module_cls, *args, **kwargs):
    """``module_cls(*args, **kwargs)``, whose parameters the caller is going to fill.

    Raises      RuntimeError where the class takes no ``device``
    Differs     The parameters do get their first values
    """
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    return module_cls(*args, **kwargs)
