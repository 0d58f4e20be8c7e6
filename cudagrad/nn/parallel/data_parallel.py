"""DataParallel on one device: the module itself under another name."""

from ..module import Module


class DataParallel(Module):
    """A module whose batch could be split over devices; with at most one of them it is called as it is.

    Its state_dict's names begin with ``module.``, as PyTorch's do.

    Raises      NotImplementedError for several ``device_ids``
    Differs     One device at most: use one process a device instead
    """

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        self.device_ids = _at_most_one(device_ids)
        self.module, self.dim = module, dim
        self.output_device = output_device if output_device is not None else next(iter(self.device_ids), None)

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)


def _at_most_one(device_ids):
    device_ids = list(device_ids or ())
    if len(set(map(str, device_ids))) > 1:
        raise NotImplementedError(
            f"DataParallel runs on one device here, got device_ids={device_ids}. Start one process a device instead."
        )
    return device_ids


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """``module(*inputs, **module_kwargs)`` on one device.

    Raises      NotImplementedError for several ``device_ids``
    """
    _at_most_one(device_ids)
    inputs = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    return module(*inputs, **(module_kwargs or {}))
