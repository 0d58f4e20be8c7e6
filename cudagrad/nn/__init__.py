"""Neural networks: modules, parameters, their initial values, and the functions they are made of."""

from . import functional, init, modules, parallel, utils
from .activation import *
from .adaptive import *
from .attention import *
from .batchnorm import *
from .container import *
from .conv import *
from .distance import *
from .dropout import *
from .flatten import *
from .fold import *
from .instancenorm import *
from .lazy import *
from .linear import *
from .loss import *
from .module import *
from .normalization import *
from .padding import *
from .parallel import (
    DataParallel,
)
from .parameter import *
from .parameter_container import *
from .pixelshuffle import *
from .pooling import *
from .rnn import *
from .rnn_cells import *
from .sparse import *
from .syncbatchnorm import *
from .transformer import *
from .upsampling import *


def factory_kwargs(kwargs):
    """The keywords ``device``, ``dtype`` and ``memory_format`` out of ``kwargs`` and its ``factory_kwargs``.

    Raises      TypeError for any other keyword, or one that is given twice
    """
    if kwargs is None:
        return {}
    known = {"device", "dtype", "memory_format"}
    unknown = kwargs.keys() - known - {"factory_kwargs"}
    if unknown:
        raise TypeError(f"unexpected kwargs {unknown}")
    found = dict(kwargs.get("factory_kwargs", {}))
    for name in sorted(known & kwargs.keys()):
        if name in found:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
        found[name] = kwargs[name]
    return found
