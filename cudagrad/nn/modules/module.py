"""The path ``torch.nn.modules.module``: Module and the hooks that hold for all modules."""

from ..module import *
from ..module_hooks import (
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from ..module_state import _EXTRA_STATE_KEY_SUFFIX, _IncompatibleKeys
