"""The paths ``torch.nn.modules.*``: they name what the files of ``nn`` define."""

from ..activation import *
from ..adaptive import *
from ..attention import *
from ..batchnorm import *
from ..container import *
from ..conv import *
from ..distance import *
from ..dropout import *
from ..flatten import *
from ..fold import *
from ..instancenorm import *
from ..lazy import *
from ..linear import *
from ..loss import *
from ..module import *
from ..normalization import *
from ..padding import *
from ..parameter_container import *
from ..pixelshuffle import *
from ..pooling import *
from ..rnn import *
from ..rnn_cells import *
from ..sparse import *
from ..syncbatchnorm import *
from ..transformer import *
from ..upsampling import *
from . import (
    activation,
    adaptive,
    batchnorm,
    channelshuffle,
    container,
    conv,
    distance,
    dropout,
    flatten,
    fold,
    instancenorm,
    lazy,
    linear,
    loss,
    module,
    normalization,
    padding,
    pixelshuffle,
    pooling,
    rnn,
    sparse,
    transformer,
    upsampling,
    utils,
)
