"""A module called with other parameters and buffers than its own."""

import contextlib
from collections.abc import Sequence

from ...core.tensor import Tensor

_MISSING = object()


def _swap(module, name, value):
    """Put ``value`` in the place of the tensor with this full name; returns what was there."""
    path, _, last = name.rpartition(".")
    owner = module.get_submodule(path)
    for registry in (owner._parameters, owner._buffers):
        if last in registry:
            before = registry[last]
            registry[last] = value
            return before
    before = getattr(owner, last, _MISSING)
    if value is _MISSING:
        delattr(owner, last)
    else:
        setattr(owner, last, value)
    return before


def _tied_names(module):
    """Full name -> the names of the same tensor, for tensors that have several."""
    names = {}
    for find in (module.named_parameters, module.named_buffers):
        for name, tensor in find(remove_duplicate=False):
            names.setdefault(id(tensor), []).append(name)
    return {name: group for group in names.values() if len(group) > 1 for name in group}


def _with_tied(module, given):
    """The given tensors under all names that are tied in the module."""
    tied, spread = _tied_names(module), dict(given)
    for name in given:
        group = tied.get(name, ())
        if len({id(given[n]) for n in group if n in given}) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(group)}, which are tied. Consider using "
                "tie_weights=False"
            )
        spread.update(dict.fromkeys(group, given[name]))
    return spread


def _check_names(module, given):
    own = {n for find in (module.named_parameters, module.named_buffers) for n, _ in find(remove_duplicate=False)}
    texts = []
    for what, names in (("Unexpected", [n for n in given if n not in own]), ("Missing", sorted(own - set(given)))):
        if names:
            texts.append(f"{what} key(s): {', '.join(map(repr, names))}.")
    if texts:
        raise RuntimeError("Error(s) in reparametrizing for {}:\n\t{}".format(module._get_name(), "\n\t".join(texts)))


@contextlib.contextmanager
def _reparametrize_module(module, parameters_and_buffers, tie_weights=False, strict=False):
    given = _with_tied(module, parameters_and_buffers) if tie_weights else parameters_and_buffers
    if strict:
        _check_names(module, given)
    before = {}
    try:
        for name, value in given.items():
            if not isinstance(value, Tensor):
                raise TypeError(f"{value} is not an instance of torch.Tensor")
            before[name] = _swap(module, name, value)
        yield
    finally:
        after = {name: _swap(module, name, value) for name, value in before.items()}
        # What the module itself put in their place (running statistics) is handed back.
        parameters_and_buffers.update({n: t for n, t in after.items() if n in parameters_and_buffers})


def _functional_call(module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False):
    from ..parallel import DataParallel

    if isinstance(module, DataParallel):
        raise RuntimeError("The stateless API can't be used with nn.DataParallel module")
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights=tie_weights, strict=strict):
        return module(*args, **(kwargs or {}))


def functional_call(module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """What ``module(*args, **kwargs)`` returns with the given tensors, by full name, in the place of its own.

    ``parameter_and_buffer_dicts``: a dict or a sequence of dicts. ``tie_weights``: a tensor given under one name also
    stands under the names tied with it. ``strict``: every parameter and buffer must be given, and no other.

    Raises      ValueError for a name in two dicts or two values of tied names; RuntimeError for wrong names
    """
    given = parameter_and_buffer_dicts
    if isinstance(given, Sequence):
        if not all(isinstance(d, dict) for d in given):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
        names = [name for d in given for name in d]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        given = {name: value for d in given for name, value in d.items()}
    elif not isinstance(given, dict):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(given)}"
        )
    return _functional_call(module, given, args, kwargs, tie_weights=tie_weights, strict=strict)
